"""``jumar run`` with an evaluator: real processes, judges that need no network."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from loops import jumar, jumar_json

from jumar.loop.store.loop_reader import LoopReader
from jumar.model.budget.ledger import spend
from jumar.model.budget.pricing import Budget

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "score-with-a-judge.md"

# What iteration N makes of the stories: how many criteria each of them has.
AGENT = """
import json, os
counts = {counts!r}[int(os.environ["JUMAR_ITERATION"]) - 1]
open("calls.log", "a").write(os.environ["JUMAR_ITERATION"] + "\\n")
with open("stories.jsonl", "w") as file:
    for number, count in enumerate(counts):
        story = {{"id": f"s{{number}}", "title": f"Add {{number}}", "description": "d", "acceptance_criteria": ["c"] * count}}
        file.write(json.dumps(story) + "\\n")
"""
# A point for each criterion; every question that it is asked is in asked.log.
JUDGE = """
import json, os, sys, time
item = json.load(sys.stdin)["item"]
count = len(item["acceptance_criteria"])
with open("asked.log", "a") as file:
    file.write(f"{item['id']} {count}\\n")
if os.path.exists("hang") and len(open("asked.log").readlines()) == 3:
    time.sleep(600)
print(json.dumps({"gestalt": min(5, 1 + count), "reasoning": "", "weaknesses": [f"only {count} criteria"],
                  "usage": {"cost_usd": 0.25}}))
"""


def write(directory: Path, *counts: list[int], evaluator: str = "", extra: str = "") -> None:
    (directory / "agent.py").write_text(AGENT.format(counts=list(counts)))
    (directory / "judge.py").write_text(JUDGE)
    (directory / "jumar.toml").write_text(
        f"""
[loop]
id = "t"
objective = "more criteria"
max_iterations = {len(counts)}

[artifacts]
include = ["stories.jsonl"]

[generator]
command = [{json.dumps(sys.executable)}, "agent.py"]

[evaluator]
items = "stories.jsonl"
repeat = 1
concurrency = 1
{evaluator or f'mode = "expensive"{chr(10)}judge = "command:{sys.executable} judge.py"'}

{extra}
"""
    )


def asked(directory: Path) -> list[str]:
    log = directory / "asked.log"
    return log.read_text().splitlines() if log.exists() else []


def iterations(directory: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = jumar_json(directory, "show", "t")["iterations"]
    return found


def prompt(directory: Path, number: int) -> str:
    return (directory / f".jumar/loops/t/iterations/iteration-{number:03d}/logs/prompt.md").read_text()


def test_the_best_by_the_judge_is_kept_and_what_did_not_change_is_asked_once(tmp_path: Path) -> None:
    write(tmp_path, [1, 1, 1], [3, 1, 4], [3, 1, 0])

    result = jumar_json(tmp_path, "run")

    assert (2, 100 * (3 + 1 + 4) / 12) == (result["selected_iteration"], pytest.approx(result["quality_score"], abs=1e-3))
    assert ["s0 1", "s1 1", "s2 1", "s0 3", "s2 4", "s2 0"] == asked(tmp_path)
    records = iterations(tmp_path)
    judgements = [record["readings"][0]["judgement"] for record in records]
    assert [None, 0.75, 0.5, 0.25] == [one and one["cost_usd"] for one in judgements]
    assert [None, 0, 1, 2] == [one and one["cached"] for one in judgements]
    assert "missing: stories.jsonl" == records[0]["readings"][0]["reason"]
    assert "s1: only 1 criteria" in records[2]["reflections"]
    for text in ("## Evaluation protocol", "EXPENSIVE MODE", "- `s1` 2.00: only 1 criteria"):
        assert text in prompt(tmp_path, 3)
    details = tmp_path / ".jumar/loops/t/iterations/iteration-002" / judgements[2]["details"]
    assert 3 == json.loads((details / "expensive_eval.json").read_text())["scored"]
    jumar(tmp_path, "verify", "t", check=0)


def test_dual_mode_with_recorded_verdicts_gives_several_dimensions(tmp_path: Path) -> None:
    rows = [{"id": f"s{n}", "judge_scores": [2, 4, 5], "judge_feedback": "Fine."} for n in range(2)]
    (tmp_path / "judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dimensions = (
        '[evaluator.dimensions]\ncorrectness = "gestalt"\nready = "story_quality"\n[weights]\ncorrectness = 3\nready = 1\n'
    )
    write(tmp_path, [3, 0], evaluator='judge = "replay:judged.jsonl"', extra=dimensions)

    jumar(tmp_path, "run", check=0)

    start, record = iterations(tmp_path)
    assert {"correctness": 0.0, "ready": 0.0} == start["dimensions"]
    assert {"correctness": 0.75, "ready": 0.5} == record["dimensions"]
    assert pytest.approx(100 * (3 * 0.75 + 0.5) / 4, abs=1e-3) == record["quality_score"]
    judged = record["readings"][0]["judgement"]
    assert (4.0, 0.0) == (judged["gestalt"], judged["cost_usd"])
    assert judged["gap"] == pytest.approx(4.0 - judged["cheap"])
    assert record["readings"][1]["judgement"] is None


def test_an_unreliable_judge_leaves_no_score_and_no_zero(tmp_path: Path) -> None:
    write(tmp_path, [1], [2], evaluator='judge = "mock:fail=1,kind=rate_limited"\nmode = "expensive"\nmax_retries = 0')

    result = jumar_json(tmp_path, "run")

    assert 0 == result["selected_iteration"]
    assert [("ok", 0.0), ("scorer_broken", None), ("scorer_broken", None)] == [
        (record["status"], record["quality_score"]) for record in iterations(tmp_path)
    ]
    assert "could not be judged (1 rate_limited)" in iterations(tmp_path)[1]["status_reason"]


def test_a_mock_judge_and_cheap_mode_run_without_network(tmp_path: Path) -> None:
    write(tmp_path, [1, 2], evaluator='judge = "mock:score=3"')
    assert 50.0 == jumar_json(tmp_path, "run")["quality_score"]
    write(tmp_path, [0], [3], evaluator='mode = "cheap"')
    result = jumar_json(tmp_path, "run", "--id", "c")
    assert 2 == result["selected_iteration"]


@pytest.mark.parametrize("where", [".", "project"])
def test_a_judge_beside_the_configuration_runs_there(where: str, tmp_path: Path) -> None:
    project = tmp_path / where
    project.mkdir(exist_ok=True)
    write(project, [2], evaluator='judge = "command:./judge.sh"\nmode = "expensive"')
    (project / "judge.sh").write_text(f"#!/bin/sh\nexec {sys.executable} judge.py\n")
    (project / "judge.sh").chmod(0o755)
    result = jumar_json(tmp_path, "run", f"{where}/jumar.toml") if where != "." else jumar_json(tmp_path, "run")
    assert 50.0 == result["quality_score"]
    assert ["s0 2"] == asked(project)


def test_doctor_looks_at_the_evaluator_and_asks_nobody(tmp_path: Path) -> None:
    write(tmp_path, [1, 2])

    def rows() -> dict[str, dict[str, Any]]:
        done = jumar(tmp_path, "doctor", "--json", "--no-run")
        return {row["name"]: row for row in json.loads(done.stdout)["rows"]}

    assert "yellow" == rows()["evaluator"]["state"]
    (tmp_path / "stories.jsonl").write_text('{"id": "a", "text": "x"}\n')
    found = rows()
    assert "green" == found["evaluator"]["state"]
    assert "1 item on the start state; the judge is configured (command:" in found["evaluator"]["detail"]
    assert "no judge is asked" in found["start state"]["detail"]
    (tmp_path / "stories.jsonl").write_text("{]\n")
    assert "red" == rows()["evaluator"]["state"]
    write(tmp_path, [1], evaluator='judge = "openai:m"')
    done = jumar(tmp_path, "doctor", "--no-run", env={"OPENAI_API_KEY": ""})
    assert "[evaluator] judge: openai:m needs a key" in done.stdout
    assert [] == asked(tmp_path)
    assert not (tmp_path / ".jumar" / "replies").exists()


def test_a_wrong_evaluator_ends_before_anything_is_created(tmp_path: Path) -> None:
    write(tmp_path, [1], evaluator='judge = "replay:none.jsonl"')
    done = jumar(tmp_path, "run", check=2)
    assert "[evaluator] judge: there is no file" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".jumar" / "loops").exists()


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_run_that_ends_while_it_judges_goes_on_and_asks_only_what_was_not_answered(how: str, tmp_path: Path) -> None:
    write(tmp_path, [1, 2, 3], [1, 2, 4])
    (tmp_path / "hang").touch()
    with subprocess.Popen([sys.executable, "-m", "jumar.cli.entry", "run"], cwd=tmp_path, stdin=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: len(asked(tmp_path)) == 3)
            wait_for(lambda: len(list((tmp_path / ".jumar" / "replies").rglob("*.json"))) == 2)  # kept a moment later
            judging = psutil.Process(process.pid).children(recursive=True)
            (process.kill if how == "killed" else process.terminate)()
            process.wait(timeout=60)
        finally:
            process.kill()
    for one in judging:  # of a killed run nobody is left to end them
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    assert (-signal.SIGKILL if how == "killed" else 143) == process.returncode
    (tmp_path / "hang").unlink()

    result = jumar_json(tmp_path, "run")

    assert 2 == result["selected_iteration"]
    assert ["1", "2"] == (tmp_path / "calls.log").read_text().split()
    questions = asked(tmp_path)  # side by side, in any order
    assert ["s0 1", "s1 2", "s2 3"] == sorted(questions[:3])
    assert [questions[2], "s2 4"] == questions[3:]
    judged = iterations(tmp_path)[1]["readings"][0]["judgement"]
    assert 2 == judged["cached"]
    if how == "killed":  # what was in flight is charged as much as the dearest
        assert (1.0, 0.75) == (judged["cost_usd"], judged["known_cost_usd"])


TWO = """
[[scorers]]
builtin = "judge"
items = "stories.jsonl"
mode = "expensive"
repeat = 1
cache = false
judge = "command:PYTHON judge.py"
[[scorers]]
dimension = "own"
command = ["PYTHON", "own.py"]
[budget]
max_cost_usd = 1.6
reserve_cost_usd = 0.5
[retry]
broken = 2
""".replace("PYTHON", sys.executable)
BREAKS = """
import os, sys
open("tries", "a").write(".")
sys.exit(1) if 1 < len(open("tries").read()) < 4 else print(0.5)
"""
STOPS = """
import os, signal, time
for _ in range(2 if os.environ["JUMAR_ITERATION"] != "0" else 0):
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(0.5)
print(0.5)
"""


@pytest.mark.parametrize(("own", "runs"), [(BREAKS, 1), (STOPS, 5)], ids=["broken", "stopped"])
def test_each_time_that_a_judge_is_asked_again_is_charged_once_and_none_goes_beyond_the_limit(
    tmp_path: Path, own: str, runs: int
) -> None:
    write(tmp_path, [1, 2])
    config = tmp_path / "jumar.toml"
    config.write_text(config.read_text().partition("[evaluator]")[0] + TWO)
    (tmp_path / "own.py").write_text(own)
    with (tmp_path / "agent.py").open("a") as agent:
        agent.write("open(os.environ['JUMAR_USAGE_FILE'], 'w').write('{\"token_cost_usd\": 0}')\n")
    for _ in range(runs):
        jumar(tmp_path, "run")
    assert 6 == len(asked(tmp_path))
    loop = LoopReader(tmp_path / ".jumar/loops/t")
    assert 6 * 0.25 == spend(loop.attempts(), Budget()).cost_usd
    record = iterations(tmp_path)[1]
    assert "ok" == record["status"] or "jumar was stopped 3 times while it was evaluated" in record["status_reason"]


def test_another_judge_is_another_loop_and_another_timeout_is_not(tmp_path: Path) -> None:
    write(tmp_path, [1], evaluator='judge = "mock:score=3"\nmode = "expensive"')
    jumar(tmp_path, "run", check=0)
    write(tmp_path, [1], [2], evaluator='judge = "mock:score=3"\nmode = "expensive"\ntimeout = 7\nmax_cost = 3')
    jumar(tmp_path, "run", check=0)
    write(tmp_path, [1], [2], [3], evaluator='judge = "mock:score=4"\nmode = "expensive"')
    done = jumar(tmp_path, "run", check=2)
    assert "evaluator.judge: 'mock:score=3' → 'mock:score=4'" in done.stderr


def test_replies_in_the_work_directory_are_no_artifacts(tmp_path: Path) -> None:
    write(tmp_path, [1], [2], evaluator='judge = "mock:"\nmode = "expensive"\ncache = "replies"')
    config = tmp_path / "jumar.toml"
    config.write_text(config.read_text().replace('include = ["stories.jsonl"]', 'include = ["*"]'))
    jumar(tmp_path, "run", check=0)
    assert list((tmp_path / "replies").rglob("*.json"))
    assert [] == [path for record in iterations(tmp_path) for path in record["artifacts"] if "replies" in path]


def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:toml|python)\n(# ([\w.]+).*?)```", page, re.DOTALL)
    assert ["jumar.toml", "agent.py", "judge.py"] == [name for _, name in blocks]
    for text, name in blocks:
        (tmp_path / name).write_text(text.replace("python3 ", f"{sys.executable} "))
    result = jumar_json(tmp_path, "run")
    records = jumar_json(tmp_path, "show", result["loop_id"])["iterations"]
    scores = ", ".join(f"{round(record['quality_score'], 1):g}" for record in records)
    assert f"jumar run          # {scores}: the second iteration is the best" in page
    assert 2 == result["selected_iteration"]
    shown = re.search(r"```markdown\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    said = (Path(result["output"]).parent / "iterations/iteration-002/logs/prompt.md").read_text()
    assert shown[1].strip() in said


def test_between_two_runs_a_reply_without_a_mark_is_believed_only_where_it_is_older_than_the_loop(fresh_place: Path) -> None:
    write(fresh_place, [1], [1], [1])
    jumar(fresh_place, "run", "--no-input", "-n", "1")
    score = iterations(fresh_place)[-1]["quality_score"]

    def raised() -> None:
        for path in (fresh_place / ".jumar" / "replies").rglob("*.json"):
            unmarked = re.sub(rb',\s*"mark": "[^"]*"', b"", path.read_bytes())
            path.write_bytes(unmarked.replace(b'gestalt\\": 2', b'gestalt\\": 5'))

    raised()
    jumar(fresh_place, "run", "--no-input", "-n", "2")
    assert score == iterations(fresh_place)[-1]["quality_score"]
    raised()
    time.sleep(1.1)
    jumar(fresh_place, "run", "--no-input", "-n", "1", "--new", "--id", "other")
    later = jumar_json(fresh_place, "show", "other")["iterations"]
    assert score < later[-1]["quality_score"], "as an older jumar or a cache of CI left it"
