"""Money in a run of cases: caps over all cases, steps and resumes, killed or not; what is too bad to be carried."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loops import jumar
from pipelines import RUN, before_steps, calls, write_pipeline

from jumar.cases.resume import leftovers
from jumar.cases.run_store import RunReader, RunStore
from jumar.cases.verify import verify_run

SIX, SEVEN = (6, 6, 6), (7, 7, 7)
SCORES = {1: [SIX, SIX], 2: [SIX, SEVEN], 3: [SIX, SIX]}
PAYS = 'echo "{\\"token_cost_usd\\": 0.1, \\"tokens_used\\": 10}" > "$JUMAR_USAGE_FILE"'
SCORE_SECOND = '[ranking]\norder = ["accuracy", {key = "score", min = 0, max = 10}]\nkeys = {score = "composite_score"}'
TO_TEN = '[ranking]\norder = [{key = "accuracy", min = 0, max = 10}, "overall", "chain"]'
HANGS = '[ "$1" != augment ] || { touch hanging; while [ -e hang ]; do sleep 0.02; done; }; ' + PAYS


def prepared(directory: Path, budget: str, *, script: str = PAYS, scores: Any = SCORES, run: str = "") -> Path:
    config = write_pipeline(directory, scores, extra=f"[budget]\n{budget}\n", run=run)
    before_steps(directory, script)
    return config


def run(directory: Path, *options: str, check: int | None = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(jumar(directory, "cases", "run", "--json", *options, check=check).stdout)
    return found


def ends(found: dict[str, Any]) -> list[tuple[str, int]]:
    return [(case["stopped_by"], case["iterations"]) for case in found["cases"]]


def test_one_cap_holds_over_all_cases_and_resumes_and_a_raised_one_opens_what_it_ended(tmp_path: Path) -> None:
    prepared(tmp_path, "max_cost_usd = 1.0")
    found = run(tmp_path, check=1)

    assert [("max_iters", 2), ("max_cost", 1), ("max_cost", 0)] == ends(found)
    assert "$0.90 of $1.00 ([budget] max_cost_usd), and the next iteration may take $0.30" == found["cases"][1]["stop_detail"]
    assert (0.9, 0.0, 9) == (round(found["spend"]["cost_usd"], 9), found["spend"]["assumed_cost_usd"], found["spend"]["calls"])
    again = run(tmp_path, "--resume", check=1)
    assert ends(found) == ends(again)
    assert 9 == len(calls(tmp_path)), "nothing was paid for"
    more = run(tmp_path, "--resume", "--max-cost", "5")
    assert [("max_iters", 2)] * 3 == ends(more)
    assert [1, 2, 1] == [case["best_iter"] for case in more["cases"]]
    assert {"case": 2, "iter": 2, "selected_by": "best"} == more["cases"][2]["carried_from"]
    assert 18 == len(calls(tmp_path)) == len(set(calls(tmp_path))), "no step was paid for twice"
    assert () == verify_run(tmp_path / RUN).problems
    told = jumar(tmp_path, "cases", "run", "--run-id", "anew", check=1).stdout
    assert 1 == told.count("no iteration was made, nothing is carried from here")


@pytest.mark.parametrize("what", ["case_01", "case_0[12]", ""])
def test_what_a_later_case_deletes_is_not_made_and_paid_for_again(tmp_path: Path, what: str) -> None:
    deletes = f'[ "$JUMAR_CASE_NUM$1" != 3augment ] && [ "$JUMAR_CASE_NUM$1" != 2judge ] || rm -rf {RUN}/{what}; {PAYS}'
    prepared(tmp_path, "max_cost_usd = 1.5", script=deletes)
    found = run(tmp_path, check=None)

    made = calls(tmp_path)
    assert len(made) == len(set(made)) <= 15, "no iteration is made twice"
    assert len(made) == found["spend"]["calls"], "what is told is what was paid for"


def test_tokens_have_a_cap_too_and_a_step_that_costs_more_than_was_foreseen_is_the_last(tmp_path: Path) -> None:
    dear = f'{PAYS}; [ "$1" != agent ] || [ "$JUMAR_ITERATION" = 1 ] || echo "{{\\"tokens_used\\": 45}}" > "$JUMAR_USAGE_FILE"'
    prepared(tmp_path, "max_tokens = 90\nreserve_tokens = 10", script=dear, scores={1: [SIX] * 4})
    found = run(tmp_path)

    assert [("max_tokens", 2)] == ends(found)
    record = RunReader(tmp_path / RUN).case(1).iterations()[1]
    assert ("step_failed", 3) == (record.status, len(calls(tmp_path)) - 2)
    assert "step judge: not run: 85 tokens of 90 tokens ([budget] max_tokens), and the next iteration may take" in record.reason


@contextmanager
def hanging(directory: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A run whose first step hangs."""
    (directory / "hang").touch()
    (directory / "hanging").unlink(missing_ok=True)
    command = [sys.executable, "-m", "jumar.cli.entry", "cases", "run", "--json", *options]
    with subprocess.Popen(
        command, cwd=directory, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            deadline = time.monotonic() + 30
            while not (directory / "hanging").exists():
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


def kill(directory: Path, *options: str) -> None:
    with hanging(directory, *options) as process:
        os.kill(process.pid, signal.SIGKILL)
    (directory / "hang").unlink()


def test_what_a_kill_cut_off_is_charged_as_reserved_and_the_cap_holds_over_restarts(tmp_path: Path) -> None:
    prepared(tmp_path, "max_cost_usd = 1.0\nreserve_cost_usd = 0.3", script=HANGS, scores={1: [SIX, SIX]})
    for options in ((), ("--resume",), ("--resume",)):
        kill(tmp_path, *options)
    assert 3 == len(calls(tmp_path))
    found = run(tmp_path, "--resume", check=12)

    assert 3 == len(calls(tmp_path)), "a fourth run of the step would be over the cap"
    assert [("max_cost", 1)] == ends(found)
    assert (0.9, 0.0) == (round(found["spend"]["assumed_cost_usd"], 9), found["spend"]["known_cost_usd"])
    more = run(tmp_path, "--resume", "--max-cost", "2.4")
    assert [("max_iters", 2)] == ends(more), "the failed iteration stays one, and the second is made"
    assert (0.9, 0.3) == (round(more["spend"]["assumed_cost_usd"], 9), round(more["spend"]["known_cost_usd"], 9))
    assert () == verify_run(tmp_path / RUN).problems


def test_what_to_do_about_a_step_that_does_not_say_what_it_cost_is_said_and_opens_the_case(tmp_path: Path) -> None:
    config = prepared(tmp_path, 'max_cost_usd = 9\non_unknown_cost = "stop"', script=":", scores={1: [SIX, SIX]})
    found = run(tmp_path, check=12)
    way_out = 'set on_unknown_cost = "charge_reserve" with reserve_cost_usd, or set "allow"'
    assert found["cases"][0]["stop_detail"].endswith(way_out)

    config.write_text(config.read_text().replace('"stop"', '"charge_reserve"\nreserve_cost_usd = 0.1'))
    assert [("max_iters", 2)] == ends(run(tmp_path, "--resume"))
    config.write_text(config.read_text().replace('"charge_reserve"\nreserve_cost_usd = 0.1', '"allow"'))
    told = jumar(tmp_path, "cases", "run", "--run-id", "allowed", check=0).stdout
    assert "spent     $0.00 of $9.00, and 6 runs of a step did not say" in told


def test_a_kill_without_a_reservation_asks_for_one(tmp_path: Path) -> None:
    config = prepared(tmp_path, "max_cost_usd = 1.0", script=HANGS, scores={1: [SIX, SIX, SIX]})
    resume = "resume    jumar cases run --resume --run-id t; nobody works on it now"
    with hanging(tmp_path) as process:
        assert resume not in jumar(tmp_path, "cases", "show", "t", check=0).stdout
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    (tmp_path / "hang").unlink()
    assert resume in jumar(tmp_path, "cases", "show", "t", check=0).stdout
    config.write_text(config.read_text().replace("max_cost_usd = 1.0", ""))  # caps of the start hold all the same
    found = run(tmp_path, "--resume", check=12)
    assert [("unknown_cost", 1)] == ends(found)
    assert "give [budget] reserve_cost_usd, or set on_unknown_cost" in found["cases"][0]["stop_detail"]
    assert 1 == len(calls(tmp_path))

    more = run(tmp_path, "--resume", "--reserve-cost", "0.1")
    assert [("max_iters", 3)] == ends(more)
    assert (0.1, 0.6) == (round(more["spend"]["assumed_cost_usd"], 9), round(more["spend"]["known_cost_usd"], 9))


def test_cases_side_by_side_share_one_budget(tmp_path: Path) -> None:
    scores = {case: [SIX] * 3 for case in (1, 2, 3, 4)}
    prepared(tmp_path, "max_cost_usd = 1.5", script=f"sleep 0.1; {PAYS}", scores=scores, run="carry_forward = false")
    refused = jumar(tmp_path, "cases", "run", "--executor", "threads:4", check=2).stderr
    assert "give [budget] reserve_cost_usd (and reserve_tokens for max_tokens), or no executor" in refused

    found = run(tmp_path, "--executor", "threads:4", "--reserve-cost", "0.2", check=None)
    spend = found["spend"]
    assert 0.9 <= spend["known_cost_usd"] <= 1.5 + 1e-9
    assert {"max_cost"} == {case["stopped_by"] for case in found["cases"]}
    assert round(spend["known_cost_usd"] * 10) == len(calls(tmp_path))
    more = run(tmp_path, "--resume", "--executor", "processes:2", "--max-cost", "9")
    assert {"max_iters"} == {case["stopped_by"] for case in more["cases"]}
    assert () == verify_run(tmp_path / RUN).problems


def test_seconds_that_are_raised_open_what_they_ended(tmp_path: Path) -> None:
    prepared(tmp_path, "max_seconds = 0.5", script='[ "$1" != augment ] || sleep 0.6', scores={1: [SIX, SEVEN], 2: [SIX, SIX]})
    found = run(tmp_path, check=1)
    assert [("max_seconds", 1), ("max_seconds", 0)] == ends(found)
    assert {"case": 1, "iter": 1, "selected_by": "best"} == found["cases"][1]["carried_from"]
    assert [("max_seconds", 1), ("max_seconds", 0)] == ends(run(tmp_path, "--resume", check=1))

    more = run(tmp_path, "--resume", "--max-seconds", "900")
    assert [("max_iters", 2)] * 2 == ends(more)
    assert {"case": 1, "iter": 2, "selected_by": "best"} == more["cases"][1]["carried_from"], "what is best now"
    assert () == verify_run(tmp_path / RUN).problems


def test_a_case_that_a_later_one_was_built_on_stays_as_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(tmp_path, "max_cost_usd = 9", scores={1: [SIX] * 2, 2: [SIX] * 2})
    run(tmp_path)
    monkeypatch.chdir(tmp_path)
    store = RunStore(tmp_path / RUN).store(1)
    with store.lock():
        end = store.end()
        assert end is not None
        store.paths.end.unlink()
        store.write_end(replace(end, stopped_by="max_cost"))  # as one of an earlier jumar, which went on behind it
    done = jumar(tmp_path, "cases", "run", "--resume", "--run-id", "t", "--max-cost", "20", "--max-iters", "3", check=0)
    assert "case 1 had ended by a limit, and stays so: a later case was built on what it selected" in done.stdout
    assert 12 == len(calls(tmp_path))


@pytest.mark.parametrize("fails_at", range(1, 5))
def test_opening_again_can_be_cut_off_anywhere(tmp_path: Path, fails_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(tmp_path, "max_cost_usd = 1.0")
    run(tmp_path, check=1)
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    count = 0
    removes = leftovers.remove_any

    def cut_off(path: Path) -> None:
        nonlocal count
        count += 1
        if count == fails_at:
            raise KeyboardInterrupt
        removes(path)

    from jumar.app.run_cases import cases_request, chain_of
    from jumar.cases.chain import run_chain

    request = cases_request(tmp_path / "cases.toml", output_root=None, root=None, resume=True, max_cost=5.0)
    with monkeypatch.context() as patched:
        patched.setattr("jumar.cases.resume.leftovers.remove_any", cut_off)
        with pytest.raises(KeyboardInterrupt):
            run_chain(chain_of(request), resume=True)
    more = run(tmp_path, "--resume", "--max-cost", "5")
    assert [("max_iters", 2)] * 3 == ends(more)
    assert {"case": 2, "iter": 2, "selected_by": "best"} == more["cases"][2]["carried_from"]
    assert 18 == len(calls(tmp_path))
    assert () == verify_run(tmp_path / RUN).problems


def test_a_best_that_is_bad_is_not_carried(tmp_path: Path) -> None:
    prepared(tmp_path, "", run='carry_if = "score >= 6.5 and overall >= 2"')
    done = jumar(tmp_path, "cases", "run", check=0)
    assert "not carried: accuracy is 6, and carry_if asks for accuracy >= 6.5" in done.stdout
    bests = [RunReader(tmp_path / RUN).case(number).best() for number in (1, 2, 3)]
    assert [False, True, False] == [best is not None and best.not_carried is None for best in bests]
    inputs = [RunReader(tmp_path / RUN).case(number).inputs() for number in (2, 3)]
    assert [None, (2, 2)] == [
        each and (each.carried_from and (each.carried_from.case, each.carried_from.iteration)) for each in inputs
    ]
    assert () == verify_run(tmp_path / RUN).problems
    for command in ("show", "report"):
        told = jumar(tmp_path, "cases", command, "t", check=0).stdout
        assert 2 == told.count("Not carried: accuracy is 6, and carry_if asks for accuracy >= 6.5"), told


@pytest.mark.parametrize(
    ("budget", "head", "message"),
    [
        ("max_cost_usd = 1\nreserve_cost_usd = 2", "", "reserve_cost_usd = 2 is more than max_cost_usd = 1"),
        ("max_cost = 1", "", "unknown key 'budget.max_cost' (did you mean 'max_cost_usd'?)"),
        ("max_cost_usd = -1", "", "budget.max_cost_usd"),
        ("max_seconds = 5\n[stop]\nmax_seconds = 6", "", "[budget] max_seconds and [stop] max_seconds are one limit; keep one"),
        ("", 'carry_if = "accurcy > 3"', "carry_if: unknown name 'accurcy' (did you mean 'accuracy'?)"),
        ("", 'carry_if = "accuracy is 3"', "carry_if: 'accuracy is 3' should be a key, >=, >, <= or < and a number"),
        ("", 'carry_if = "accuracy > 1e999"', "should be a key"),
        (TO_TEN, 'carry_if = "score >= 70"', "carry_if: accuracy >= 70 is outside of the scale of accuracy, 0 to 10"),
        (SCORE_SECOND, 'carry_if = "score >= 70"', "carry_if: score >= 70 is outside of the scale of score, 0 to 10"),
        (f"{TO_TEN}\n[stop]\naccuracy = 90", "", "stop threshold accuracy = 90 is outside of the scale of accuracy, 0 to 10"),
    ],
)
def test_what_is_no_budget_and_no_condition_is_refused(tmp_path: Path, budget: str, head: str, message: str) -> None:
    prepared(tmp_path, budget, run=head)
    assert message in jumar(tmp_path, "cases", "run", check=2).stderr
    assert [] == calls(tmp_path)
