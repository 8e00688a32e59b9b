"""``jumar learn`` from the command line: to a verdict offline, killed and gone on with, refused where it must be."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import call
from judge_server import Answer, JudgeServer, Seen
from learn_items import BAD, GOOD, WORDS, judged_items, write_items
from learning_kit import looks_made

from jumar.loop.engine.engine import Loop
from jumar.model import StopDecision

RESULT_KEYS = {
    *("iterations", "converged", "tracks", "quality_met", "committed", "supported", "rejected", "provisional", "rolled_back"),
    *("recoveries", "best_iteration", "verdict", "heldout", "judge_calls", "cost_usd"),
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_items(tmp_path_factory.mktemp("items") / "judged.jsonl", judged_items(50, 3, seed=8))


@pytest.fixture(scope="module")
def finished(judged: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A finished run with its final JSON; nobody changes it."""
    output = tmp_path_factory.mktemp("finished") / "out"
    done = call(
        "learn", str(judged), "--judge", f"replay:{judged}", "-o", str(output), "--max-iterations", "2", "--json", check=0
    )
    return output, json.loads(done.out)


def test_a_run_ends_with_a_verdict_and_leaves_what_the_docs_say(finished: tuple[Path, dict[str, Any]], judged: Path) -> None:
    output, said = finished
    assert set(said) >= RESULT_KEYS
    assert "tracks" == said["verdict"]
    assert said["tracks"]
    assert said["heldout"]["mae"] < said["heldout"]["constant_mae"]
    phrases = {phrase for one in json.loads((output / "patterns.json").read_text())["patterns"] for phrase in one["phrases"]}
    assert phrases & {*GOOD, *BAD} or phrases & {word for one in (*GOOD, *BAD) for word in one.split()}
    names = {"stories.json", "expensive_eval.json", "cheap_eval.json", "gap_analysis.json", "pattern_proposals.json"}
    assert names | {"iteration_log.json", "dashboard.txt"} <= {one.name for one in (output / "iteration_2").iterdir()}
    log = json.loads((output / "iteration_1" / "iteration_log.json").read_text())
    learner = log["component_health"]["pattern_learner"]["details"]
    assert log["metrics"]["patterns_committed"] == learner["committed"] > 0
    assert {"items", "covered", "share", "target", "met"} == set(learner["pattern_coverage"])
    assert "Iteration 2" in (output / "progress.txt").read_text()
    assert "holds" in call("prove", "--verify", str(output / "proof.json"), "--items", str(judged), check=0).out
    status = json.loads(call("learn", "status", str(output), "--json", check=0).out)
    assert ("finished", "tracks", 2) == (status["state"], status["verdict"], status["done"])
    report = call("learn", "report", str(output), check=0).out
    assert all(words in report for words in ("It tracks the judge", "## Course", "## Decisions", "## The set"))
    assert json.loads(call("learn", "report", str(output), "--json", check=0).out)["summary"]["verdict"] == "tracks"


def test_the_learned_set_judges_items_that_were_never_seen(finished: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    new = judged_items(20, 3, seed=99, noise=0.0)
    for number, one in enumerate(new):
        one["id"] = f"new-{number}"
    items = write_items(tmp_path / "new.jsonl", new)
    scores = tmp_path / "scores.jsonl"
    call(
        "evaluate",
        str(items),
        "--mode",
        "cheap",
        "--patterns",
        str(finished[0] / "patterns.json"),
        "--per-item",
        str(scores),
        check=0,
    )
    cheap = [json.loads(line)["cheap"] for line in scores.read_text().splitlines()]
    judge = [one["judge_scores"][0] for one in new]
    middle = sorted(judge)[len(judge) // 2]
    assert sum(abs(a - b) for a, b in zip(cheap, judge, strict=True)) < sum(abs(middle - one) for one in judge)


def test_copies_of_a_text_prove_nothing_whatever_groups_they_say_they_are_of(tmp_path: Path) -> None:
    draw = random.Random(7)
    texts = [" ".join(draw.choice(WORDS) for _ in range(30)) for _ in range(25)]
    scores = [draw.uniform(1, 5) for _ in texts]
    records = [
        {"id": f"{copy}-{place}", "text": text, "judge_scores": [round(score, 2)] * 2}
        for copy in range(8)
        for place, (text, score) in enumerate(zip(texts, scores, strict=True))
    ]
    items = write_items(tmp_path / "copies.jsonl", records)
    output = tmp_path / "out"
    done = call("learn", str(items), "--judge", f"replay:{items}", "-o", str(output), "--max-iterations", "1", "--json", check=0)
    said = json.loads(done.out)
    assert "warning: 200 items share a text with an item of another group" in done.err
    assert (False, 0, 10, 80) == (said["tracks"], said["supported"], said["heldout"]["groups"], said["heldout"]["items"])
    again = call("prove", "--verify", str(output / "proof.json"), "--items", str(items), check=0)
    assert "holds" in again.out
    assert 0 == json.loads(call("prove", str(output), "--json", check=0).out)["judge_calls"]


def test_a_finished_run_is_neither_learned_nor_looked_at_again(finished: tuple[Path, dict[str, Any]], judged: Path) -> None:
    output, said = finished
    dated = {"request.json"}  # from where it was asked
    before = {path.name: path.read_bytes() for path in output.iterdir() if path.is_file() and path.name not in dated}
    again = call(
        "learn", str(judged), "--judge", f"replay:{judged}", "-o", str(output), "--max-iterations", "2", "--json", check=0
    )
    found = json.loads(again.out)
    assert {name: said[name] for name in RESULT_KEYS} == {name: found[name] for name in RESULT_KEYS}
    assert [] == [name for name, data in before.items() if (output / name).read_bytes() != data]
    assert 1 == looks_made(output)


@pytest.mark.parametrize("damage", ["{}", "gar", '{"metrics": []}', None], ids=["empty", "no JSON", "other", "gone"])
def test_a_damaged_log_is_named_and_nothing_is_counted_without_it(
    finished: tuple[Path, dict[str, Any]], judged: Path, tmp_path: Path, damage: str | None
) -> None:
    output = tmp_path / "out"
    shutil.copytree(finished[0], output)
    log, before = output / "iteration_1" / "iteration_log.json", (output / "result.json").read_bytes()
    log.unlink()
    if damage is not None:
        log.write_text(damage)
    learn = ["learn", str(judged), "--judge", f"replay:{judged}", "-o", str(output), "--max-iterations", "2"]
    for words in (["learn", "status", str(output)], ["learn", "report", str(output)], learn):
        told = call(*words, check=14)
        assert "iteration_1/iteration_log.json is damaged or gone" in told.err
    assert (1, before) == (looks_made(output), (output / "result.json").read_bytes())


@pytest.mark.parametrize("damage", ["[]", "{}", "gar"])
def test_a_damaged_result_is_written_anew(
    finished: tuple[Path, dict[str, Any]], judged: Path, tmp_path: Path, damage: str
) -> None:
    output = tmp_path / "out"
    shutil.copytree(finished[0], output)
    before = (output / "result.json").read_bytes()
    (output / "result.json").write_text(damage)
    for command in ("status", "report"):
        assert "the same `jumar learn` command writes it anew" in call("learn", command, str(output), check=14).err
    call("learn", str(judged), "--judge", f"replay:{judged}", "-o", str(output), "--max-iterations", "2", check=0)
    assert before == (output / "result.json").read_bytes()


@pytest.mark.parametrize("name", ["patterns.json", "iteration_3", "verdicts.jsonl"])
def test_a_folder_that_holds_something_else_is_left_alone(judged: Path, tmp_path: Path, name: str) -> None:
    output = tmp_path / "out"
    (output / name).mkdir(parents=True)
    refused = call("learn", str(judged), "--judge", f"replay:{judged}", "-o", str(output), check=2)
    assert f"holds {name}, which no run of learning made" in refused.err
    assert [name] == [one.name for one in output.iterdir()]


def test_a_full_disk_ends_a_run_without_a_look(judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "out"
    words = ["learn", str(judged), "--judge", f"replay:{judged}", "-o", str(output), "--max-iterations", "1", "--profile", "seed"]
    with monkeypatch.context() as patched:
        patched.setattr(Loop, "_disk_full", lambda _: StopDecision(reason="disk_full", detail="3 bytes are free"))
        full = call(*words, check=11)
    assert "3 bytes are free" in full.out
    assert not (output / "proof.json").exists()
    assert 0 == looks_made(output)
    assert "has not ended" in call("prove", str(output), check=2).err
    call(*words, check=0)
    assert 1 == looks_made(output)


@pytest.mark.parametrize(
    ("options", "named"),
    [(["--seed", "5"], "seed: 0, now 5"), (["--heldout", "0.3"], "heldout: "), (["--robust"], "robust: not given, now True")],
)
def test_other_options_are_refused_and_named(
    finished: tuple[Path, dict[str, Any]], judged: Path, options: list[str], named: str
) -> None:
    refused = call("learn", str(judged), "--judge", f"replay:{judged}", "-o", str(finished[0]), *options, check=2)
    assert f"  {named}" in refused.err
    assert "another folder" in refused.err


def test_a_command_that_is_misspelled_is_no_file_of_items(tmp_path: Path) -> None:
    assert "did you mean 'report'?" in call("learn", "reprot", str(tmp_path), check=2).err
    Path("reprot").write_text("")
    assert "did you mean" not in call("learn", "reprot", check=2).err


def test_a_minimum_of_iterations_decides_about_the_result_and_has_to_be_possible(
    finished: tuple[Path, dict[str, Any]], judged: Path, tmp_path: Path
) -> None:
    words = ("learn", str(judged), "--judge", f"replay:{judged}", "--max-iterations", "4", "--min-iterations")
    other = call(*words, "3", "-o", str(finished[0]), check=2)
    assert "min_iterations: not given, now 3" in other.err
    never = call(*words, "5", "-o", str(tmp_path / "out"), check=2)
    assert "--min-iterations 5 is more than --max-iterations 4" in never.err
    assert not (tmp_path / "out").exists()


def test_other_items_are_refused(finished: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    other = write_items(tmp_path / "other.jsonl", judged_items(50, 3, seed=9))
    refused = call("learn", str(other), "--judge", f"replay:{other}", "-o", str(finished[0]), check=2)
    assert "split.json" in refused.err


def test_without_a_judge_or_with_too_few_groups_nothing_is_made(tmp_path: Path) -> None:
    items = write_items(tmp_path / "few.jsonl", judged_items(3, 4))
    assert "--judge" in call("learn", str(items), "-o", str(tmp_path / "a"), check=2).err
    for share in ("nan", "0", "1"):
        assert (
            "--heldout"
            in call("learn", str(items), "--judge", "mock:", "-o", str(tmp_path / "c"), "--heldout", share, check=2).err
        )
    few = call("learn", str(items), "--judge", f"replay:{items}", "-o", str(tmp_path / "b"), check=2)
    assert "group" in few.err
    assert not (tmp_path / "b" / ".jumar").exists()


def _model(seen: Seen, _number: int) -> Answer:
    """Answer as a model that judges by the planted phrases, and proposes one that stands in the item."""
    said = json.dumps(seen.json)
    if "<<<GAP" in said:
        shown = said.partition("<<<GAP")[2]
        phrase = next((one for one in (*GOOD, *BAD) if one in shown), "nothing of the kind")
        category = "bad_story_indicators" if phrase in BAD else "good_story_indicators"
        return Answer(text=json.dumps({"category": category, "pattern": phrase, "rationale": "the judge looks at it"}))
    score = 3 + sum(one in said for one in GOOD) - sum(one in said for one in BAD)
    found = {"reasoning": "so it is", "strengths": [], "weaknesses": [], "gestalt": max(1, min(5, score))}
    return Answer(text=json.dumps(found))


def test_a_model_judges_and_proposes_and_is_paid_once(tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", judged_items(40, 2, seed=3))
    output = tmp_path / "out"
    with JudgeServer(_model) as server:
        judge = ["--judge", f"{server.base}/v1#m", "--price", "1,2", "--repeat", "1", "--cache", str(tmp_path / "replies")]
        options = ["-o", str(output), "--max-iterations", "2", "--propose", "judge", "--json"]
        said = json.loads(call("learn", str(items), *judge, *options, check=0).out)
        asked = len(server.seen)
        again = json.loads(call("learn", str(items), *judge, *options, check=0).out)
        assert asked == len(server.seen), "nothing is asked twice"
    assert asked == said["judge_calls"] == again["judge_calls"] > 80
    assert said["cost_usd"] == pytest.approx(asked * (100 * 1 + 20 * 2) / 1e6)
    assert said["cost_usd"] == again["cost_usd"]
    first, second = (json.loads((output / f"iteration_{number}" / "pattern_proposals.json").read_text()) for number in (1, 2))
    assert {"fit"} == {one["provenance"]["by"] for one in first["proposals"]}, "the model is asked about what a fit leaves"
    made = [one for one in second["proposals"] if one["provenance"]["by"] != "fit"]
    assert {phrase for one in made for phrase in one["pattern"]["phrases"]} <= {*GOOD, *BAD}
    assert made or second["merged"] or second["told"]
    assert all("the judge looks at it" == one["rationale"] for one in made)
    assert "verdict" in said


def test_a_budget_that_is_too_small_is_kept_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", judged_items(30, 2, seed=3))
    output = tmp_path / "out"
    with JudgeServer(_model) as server:
        judge = ["--judge", f"{server.base}/v1#m", "--price", "1000,500", "--repeat", "1", "--no-cache", "--concurrency", "1"]
        words = ["learn", str(items), *judge, "-o", str(output), "--max-iterations", "1", "--profile", "seed"]
        poor = call(*words, "--max-cost", "2", check=1)
        assert "open items" in poor.err
        assert "give more than --max-cost 2" in poor.err
        assert "the limit of $1.2 is reached" in poor.err
        again = call(*words, "--max-cost", "2", check=1)
        assert "the limit of $1.2 is reached" in again.err
        assert len(server.seen) * 0.11 <= 2
        kept = (output / "verdicts.jsonl").read_text().splitlines()
        assert len(server.seen) == len(kept)
        said = json.loads(call(*words, "--max-cost", "20", "--json", check=0).out)
        assert 60 == len(server.seen)
    assert said["cost_usd"] == pytest.approx(60 * 0.11)


def test_what_was_paid_counts_in_every_run_of_it(tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", judged_items(30, 2, seed=3))
    with JudgeServer(_model) as server:
        judge = ["--judge", f"{server.base}/v1#m", "--price", "1000,500", "--repeat", "1", "--no-cache", "--concurrency", "1"]
        words = ["learn", str(items), *judge, "-o", str(tmp_path / "out"), "--max-iterations", "1", "--profile", "seed", "--json"]
        once = json.loads(call(*words, "--max-cost", "5.4", check=0).out)
        asked = len(server.seen)
        assert 29 + 20 == asked  # of the open items for their share of the budget, of the held-out ones for the rest
        again = json.loads(call(*words, "--max-cost", "5.4", check=0).out)
        assert asked == len(server.seen)
    assert [pytest.approx(asked * 0.11)] * 2 == [once["cost_usd"], again["cost_usd"]]


def test_a_judge_on_file_proposes_nothing(judged: Path, tmp_path: Path) -> None:
    refused = call(
        "learn", str(judged), "--judge", f"replay:{judged}", "-o", str(tmp_path / "out"), "--propose", "judge", check=2
    )
    assert "--propose" in refused.err


JUDGE = """
import json, pathlib, sys, time
said = sys.stdin.read()
time.sleep(0.3 if pathlib.Path(__file__).with_name("slow").exists() else 0)
print(json.dumps({"reasoning": "", "strengths": [], "weaknesses": [], "gestalt": 2 + len(said) % 3}))
"""


FLAKY = """
import json, sys
said = sys.stdin.read()
if "item 3 " in said or "item 17 " in said:
    sys.exit("no verdict")
print(json.dumps({"reasoning": "", "strengths": [], "weaknesses": [], "gestalt": 2 + len(said) % 3}))
"""


def test_items_that_the_judge_never_scores_keep_nobody_from_going_on(tmp_path: Path) -> None:
    items = [{**one, "text": f"item {number} : {one['text']}"} for number, one in enumerate(judged_items(40, 1))]
    path = write_items(tmp_path / "items.jsonl", items)
    (tmp_path / "judge.py").write_text(FLAKY)
    output = tmp_path / "out"
    judge = ["--judge", f"command:{sys.executable} {tmp_path / 'judge.py'}", "--repeat", "1", "--max-retries", "0", "--no-cache"]
    words = ["learn", str(path), *judge, "-o", str(output), "--max-iterations", "1", "--profile", "seed", "--json"]
    done = call(*words, check=0)
    assert "16 items in 16 groups are held out for the proof, and 30 in 20 are the least" in done.err.splitlines()[1]
    assert "2 of 24 open items got no score (2 unavailable), and what follows is about the others alone" in done.err
    first = json.loads(done.out)
    assert 40 == first["judge_calls"]
    again = json.loads(call(*words, check=0).out)
    assert 42 == again["judge_calls"]
    assert first == {**again, **{name: first[name] for name in ("resumed", "stop_detail", "judge_calls")}}
    call("prove", str(output), "--max-retries", "0", check=0)


def test_ctrl_c_while_the_judge_is_asked_keeps_what_it_said(tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", judged_items(20, 1))
    (tmp_path / "judge.py").write_text(JUDGE)
    slow, output = tmp_path / "slow", tmp_path / "out"
    slow.touch()
    judge = ["--judge", f"command:{sys.executable} {tmp_path / 'judge.py'}", "--concurrency", "2", "--no-cache"]
    words = ["learn", str(items), *judge, "-o", str(output), "--max-iterations", "1", "--profile", "seed", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "jumar.cli.entry", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    verdicts = output / "verdicts.jsonl"
    while process.poll() is None and (not verdicts.exists() or verdicts.read_bytes().count(b"\n") < 2):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert 130 == process.returncode, err
    assert json.loads(out)["verdict"] is None
    kept = verdicts.read_text().splitlines()
    assert 2 <= len(kept) < 20
    slow.unlink()
    said = json.loads(call(*words, check=0).out)
    assert "not_proven" == said["verdict"]
    assert kept == verdicts.read_text().splitlines()[: len(kept)]
    assert 20 + 5 + 5 <= said["judge_calls"] <= 20 + 5 + 5 + 2  # the first five of each part are read twice; two were in flight
    call(*[str(tmp_path / "whole") if word == str(output) else word for word in words], check=0)
    assert verdicts.read_bytes() == (tmp_path / "whole" / "verdicts.jsonl").read_bytes()


KILLS = 7 if os.environ.get("JUMAR_SWEEP") != "full" else 60  # more than an agent may kill jumar


@pytest.mark.sweep
def test_killed_at_any_point_it_resumes_to_the_same_result(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def words(output: Path) -> list[str]:
        options = ["--max-iterations", "2", "--profile", "seed", "--json"]
        judge = ["--judge", f"replay:{judged}", "-o", str(output)]
        return [sys.executable, "-m", "jumar.cli.entry", "learn", str(judged), *judge, *options]

    whole = json.loads(subprocess.run(words(tmp_path / "whole"), capture_output=True, check=True, text=True).stdout)
    rng, kills, said = random.Random(11), 0, ""
    broken = tmp_path / "broken"
    while not said:
        process = subprocess.Popen(words(broken), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if kills < KILLS:
            _wait_for(process, broken, rng)
            process.send_signal(signal.SIGKILL)
            kills += 1
        out, err = process.communicate()
        assert process.returncode in {0, -signal.SIGKILL}, err
        said = out if process.returncode == 0 else ""
    found = json.loads(said)
    assert {name: whole[name] for name in RESULT_KEYS} == {name: found[name] for name in RESULT_KEYS}
    for name in ("patterns.json", "split.json", "ledger.json", "predictions.json"):
        assert _undated(tmp_path / "whole" / name) == _undated(broken / name), name
    with capsys.disabled():
        print(f"\nlearn: {kills} kills survived, one result")


def _undated(path: Path) -> str:
    """Return a file's content without the day on which the run began."""
    return re.sub(r'"(discovered_at|last_updated)": "[^"]*"', "", path.read_text())


def _wait_for(process: subprocess.Popen[str], output: Path, rng: random.Random) -> None:
    """Wait until the run has come one step further than it was, and then a moment more."""
    before, deadline = _steps(output), time.monotonic() + 60
    wanted = before + rng.randint(1, 4)
    while process.poll() is None and _steps(output) < wanted and time.monotonic() < deadline:
        time.sleep(0.01)


def _steps(output: Path) -> int:
    """Return a number that grows as a run goes on: attempts, iterations and files that are there."""
    loop = output / ".jumar" / "loops" / "learn"
    return sum(len(list(one.iterdir())) for one in (output, loop / "attempts", loop / "iterations") if one.is_dir())


@pytest.mark.parametrize("name", ["looks.jsonl", "proof.json", "state.json", "patterns.json", "split.json", "request.json"])
def test_what_is_no_regular_file_in_the_folder_is_waited_for_by_no_command(
    finished: tuple[Path, dict[str, Any]], judged: Path, tmp_path: Path, name: str
) -> None:
    output = tmp_path / "out"
    shutil.copytree(finished[0], output)
    (output / name).unlink()
    os.mkfifo(output / name)
    learn = ("learn", str(judged), "--judge", f"replay:{judged}", "-o", str(output), "--max-iterations", "2")
    for arguments in (("learn", "status", str(output)), ("prove", "--verify", str(output / "proof.json")), learn):
        done = subprocess.run(
            [sys.executable, "-m", "jumar.cli.entry", *arguments],
            capture_output=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert b"Traceback" not in done.stderr
