"""A noisy scorer, end to end: who is scored again, what confirms the choice, and that nothing is read twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from loops import calls, jumar, jumar_json, write_loop
from paid_judge import PaidJudge

from jumar.loop.ranking.noise import finals
from jumar.loop.report.export import report_document
from jumar.loop.report.page import render_html
from jumar.loop.report.read import load_report
from jumar.loop.store.in_force import evidence_of
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify
from jumar.model import SelectionCriteria

SCORER = """\
import json, os, pathlib, signal
iteration, repeat = int(os.environ["JUMAR_ITERATION"]), int(os.environ["JUMAR_REPEAT"])
place = pathlib.Path("asked.json")
asked = json.loads(place.read_text()) if place.exists() else []
again = [iteration, repeat] in asked
place.write_text(json.dumps([*asked, [iteration, repeat]]))
kill = pathlib.Path("kill")
if again and kill.exists() and len(asked) == int(kill.read_text()):
    kill.unlink()
    os.kill(os.getppid(), signal.SIGKILL)
luck = 0 if again else {1: 0.0, 2: 0.06}.get(iteration, 0)
print(round(float(pathlib.Path("score.txt").read_text()) + luck + (0.02 if repeat == 1 else -0.02), 6))
"""

HOLDOUT = """\
import json, pathlib, sys
if pathlib.Path("broken").exists():
    sys.exit("no exam today")
print(json.dumps({"score": round(float(pathlib.Path("score.txt").read_text()) - 0.05, 6), "reason": "the sealed exam"}))
"""


def noisy(directory: Path, scores: list[float], *, holdout: str | None = None, extra: str = "", repeat: int = 2) -> Path:
    """A loop whose scorer flatters iteration 2 when it is first asked about it. ``holdout`` is its dimension."""
    held_out = f"[[holdout.scorers]]\ndimension = '{holdout}'\ncommand = ['python3', '-S', 'exam.py']\n" if holdout else ""
    config = write_loop(directory, list(scores), start=0.3, extra=f"{extra}\n{held_out}")
    scorer = f'command = ["python3", "-S", "score.py"]\nrepeat = {repeat}'
    config.write_text(config.read_text().replace('command = "cat score.txt"', scorer))
    (directory / "score.py").write_text(SCORER)
    (directory / "exam.py").write_text(HOLDOUT)
    return config


def store_of(directory: Path) -> LoopStore:
    return LoopStore.open(directory / ".jumar" / "loops" / "t")


def readings(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / ".jumar/loops/t/readings").iterdir())


ALL = [
    "0001-rescore-iteration-002.json",
    "0002-rescore-iteration-003.json",
    "0003-rescore-iteration-001.json",
    "0004-rescore-iteration-002.json",
    "0005-rescore-iteration-003.json",
    "0006-rescore-iteration-001.json",
]


def test_finalists_are_scored_again_and_the_choice_is_confirmed(tmp_path: Path) -> None:
    noisy(tmp_path, [0.60, 0.62, 0.61], extra="[noise]\ntie = 0")
    done = jumar_json(tmp_path, "run")
    assert [*ALL, "0007-confirm-iteration-002.json"] == readings(tmp_path)
    assert (2, 64.0) == (done["selected_iteration"], done["quality_score"])
    assert {"iteration": 2, "score": 62.0, "by": "confirm"} == done["confirmed"]
    assert 2.0 == done["optimism"]
    assert "0.62" == (tmp_path / "score.txt").read_text()
    assert [1, 2, 3] == calls(tmp_path)
    store = store_of(tmp_path)
    made = [attempt for attempt in store.attempts() if attempt.start.purpose == "confirm"]
    assert [2, 3, 1, 2, 3, 1, 2] == [attempt.start.iteration for attempt in made]
    assert {"ok"} == {attempt.end and attempt.end.outcome for attempt in made}
    assert 3 == done["spend"]["iterations"]
    assert () == verify(store).problems
    seeds = [reading.readings[0].repeats for reading in store.readings()]
    assert 7 == len(seeds)
    chosen = jumar_json(tmp_path, "select", "t")
    assert (2, 64.0, done["reason"]) == (chosen["selected_iteration"], chosen["quality_score"], chosen["reason"])
    report = jumar(tmp_path, "report", "t", check=0).stdout
    assert "## How Sure Is This" in report
    assert "Iterations 1, 2 and 3 were too close to call and were scored again" in report
    assert "The score that won is 64%; read once more, it is 62%: optimism of the selection +2 points" in report
    assert "| 2 ✓ | 68% | 62%, 62% | 64% |" in report
    assert "| First | 0 (start) | 30% | 30% | its own, which nothing was selected by |" in report
    read = load_report(store)
    assert "How sure is this" in render_html(read)
    assert 2.0 == report_document(read)["certainty"]["optimism"]
    again = jumar_json(tmp_path, "run", check=2)
    assert (2.0, 7) == (again["optimism"], len(readings(tmp_path)))
    status = jumar_json(tmp_path, "status", "t")
    assert (68.0, 64.0, 3) == (status["best"]["quality_score"], status["chosen"]["quality_score"], status["chosen"]["readings"])
    assert "selected  ★ 64 (iteration 2, mean of 3 readings)  +34 to the start" in jumar(tmp_path, "watch", "--once").stdout


def test_a_tie_goes_to_the_earlier_in_every_command(tmp_path: Path) -> None:
    noisy(tmp_path, [0.60, 0.55, 0.61])
    done = jumar_json(tmp_path, "run")
    found = finals(evidence_of(store_of(tmp_path)), SelectionCriteria(threshold=None))
    assert found is not None
    assert (1, 3) == found.tied
    assert (1, 3) == (done["selected_iteration"], done["runner_up"])
    assert done["reason"].startswith("Iterations 1 and 3 are within the noise (±")
    assert "0.6" == (tmp_path / "score.txt").read_text()
    for name in ("show", "select"):
        assert "within the noise" in jumar(tmp_path, name, "t", check=0).stdout
    assert "1 point ahead, which is within the noise" in jumar(tmp_path, "report", "t", check=0).stdout
    frame = jumar(tmp_path, "watch", "--once", check=0).stdout
    assert "selected  ★ 60 (iteration 1, mean of 3 readings)" in frame
    print("\n".join(frame.splitlines()[:4]))


@pytest.mark.parametrize("dimension", ["quality", "exam"])
def test_the_holdout_confirms_the_chosen_the_first_and_the_last(tmp_path: Path, dimension: str) -> None:
    """On the loop's dimension it is what the optimism is measured by; on another it compares only with itself."""
    noisy(tmp_path, [0.60, 0.62, 0.50], holdout=dimension, extra="[noise]\ntie = 0")
    done = jumar_json(tmp_path, "run")
    held_out = [name for name in readings(tmp_path) if "holdout" in name]
    chosen = done["selected_iteration"]
    assert [f"iteration-{number:03d}.json" for number in (chosen, 0, 3)] == [name.partition("holdout-")[2] for name in held_out]
    same = dimension == "quality"
    assert same != any("confirm" in name for name in readings(tmp_path))
    assert ("holdout" if same else "confirm") == done["confirmed"]["by"]
    assert pytest.approx(done["quality_score"] - done["confirmed"]["score"]) == done["optimism"]
    report = jumar(tmp_path, "report", "t", check=0).stdout
    assert "| First | 0 (start) | 30% | 25% | the hold-out |" in report
    assert "| Last | 3 | 50% | 45% | the hold-out |" in report


def test_a_holdout_works_without_repeats_and_never_changes_the_choice(tmp_path: Path) -> None:
    noisy(tmp_path, [0.60, 0.50], holdout="quality", repeat=1, extra="")
    config = tmp_path / "jumar.toml"
    config.write_text(config.read_text().replace("repeat = 1", "").replace('"score.py"]', '"plain.py"]'))
    (tmp_path / "plain.py").write_text("print(open('score.txt').read())")
    done = jumar_json(tmp_path, "run")
    assert ["0001-holdout-iteration-001.json", "0002-holdout-iteration-000.json", "0003-holdout-iteration-002.json"] == readings(
        tmp_path
    )
    assert (1, 60.0, 5.0) == (done["selected_iteration"], done["quality_score"], done["optimism"])
    # going on: what was read stays, the new last one is read, and no iteration hears of it
    config.write_text(config.read_text().replace("max_iterations = 2", "max_iterations = 3"))
    jumar_json(tmp_path, "run")
    assert ["0004-holdout-iteration-003.json"] == readings(tmp_path)[3:]
    logs = tmp_path / ".jumar/loops/t/iterations/iteration-003/logs"
    for name in ("prompt.md", "feedback.json"):
        assert "sealed exam" not in (logs / name).read_text()
        assert "holdout" not in (logs / name).read_text()


def test_a_broken_holdout_is_told_and_not_hidden(tmp_path: Path) -> None:
    noisy(tmp_path, [0.60, 0.62], holdout="quality", extra="[noise]\nrescore = 0\n[retry]\nbroken = 0")
    (tmp_path / "broken").write_text("")
    done = jumar(tmp_path, "run", check=0)
    assert "no exam today" in done.stdout + done.stderr
    store = store_of(tmp_path)
    assert {("holdout", None, "scorer_broken")} == {(each.kind, each.score, each.status) for each in store.readings()}
    again = jumar_json(tmp_path, "run", check=2)
    assert (None, None) == (again["optimism"], again["confirmed"])
    report = jumar(tmp_path, "report", "t", check=0).stdout
    assert "the hold-out of iteration 0 gave no score: scorer of 'quality' could not run" in report
    assert () == verify(store).problems


@pytest.mark.parametrize("ask", [9, 20])
def test_killed_between_two_readings_nothing_is_read_twice(tmp_path: Path, ask: int) -> None:
    """The scorer kills jumar at its n-th asking; then the same command resumes what is missing."""
    noisy(tmp_path, [0.60, 0.62, 0.61], extra="[noise]\ntie = 0")
    (tmp_path / "kill").write_text(str(ask))
    jumar(tmp_path, "run", check=-9)
    before = readings(tmp_path)
    assert before == ALL[: len(before)]
    assert (ask - 8) // 2 == len(before)
    done = jumar_json(tmp_path, "run")
    assert [*ALL, "0007-confirm-iteration-002.json"] == readings(tmp_path)
    assert [1, 2, 3] == calls(tmp_path)
    store = store_of(tmp_path)
    outcomes = [attempt.end and attempt.end.outcome for attempt in store.attempts() if attempt.start.purpose == "confirm"]
    assert (8, 1) == (len(outcomes), outcomes.count("lost"))
    assert (2, 2.0) == (done["selected_iteration"], done["optimism"])
    assert () == verify(store).problems


def test_a_loop_that_may_take_no_more_time_reads_nothing(tmp_path: Path) -> None:
    noisy(tmp_path, [0.60], holdout="quality", extra="[stop]\nmax_seconds = 0.001")
    done = jumar(tmp_path, "run")
    assert "iteration 0 is not scored by the hold-out: " in done.stdout + done.stderr
    assert [] == readings(tmp_path)
    assert "max_seconds" in str(LoopReader(tmp_path / ".jumar/loops/t").decisions()[-1].data)


@pytest.mark.parametrize(("cap", "reserve", "read"), [(0.07, 0.0, [1]), (0.07, 0.06, []), (0.3, 0.06, [1, 0, 2])])
def test_a_hold_out_whose_judge_is_paid_keeps_to_the_limit(tmp_path: Path, cap: float, reserve: float, read: list[int]) -> None:
    judge, place = PaidJudge(tmp_path), tmp_path / "place"
    budget = f"[budget]\nmax_cost_usd = {cap}\nreserve_cost_usd = {reserve}\n[[holdout.scorers]]\ndimension = 'exam'\n"
    asked = f"builtin = 'judge'\nmode = 'expensive'\nrepeat = 3\nitems = 'score.txt'\njudge = '{judge.spec}'\n"
    write_loop(place, [0.6, 0.5], extra=budget + asked)
    with (place / "agent.py").open("a") as agent:
        agent.write("open(os.environ['JUMAR_USAGE_FILE'], 'w').write('{\"token_cost_usd\": 0.01}')\n")
    jumar(place, "run", check=0)
    assert read == [reading.iteration for reading in store_of(place).readings()]
    assert judge.calls == 3 * len(read)
    assert judge.paid + 0.02 <= cap


def test_without_repeats_nothing_changes(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6, 0.6, 0.5])
    done = jumar_json(tmp_path, "run")
    expected: dict[str, Any] = {"optimism": None, "confirmed": None, "selected_iteration": 1}
    assert expected == {key: done[key] for key in expected}
    assert [] == readings(tmp_path)
    assert "How Sure" not in jumar(tmp_path, "report", "t", check=0).stdout
