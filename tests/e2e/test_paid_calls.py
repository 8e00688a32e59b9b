"""Money outside of loops: what jumar says was spent, against what the judge itself has on file, through kills."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from commands import call
from learn_items import judged_items, write_items
from paid_judge import COST, PaidJudge, jumar, kill_while_paying

from jumar.judging.asking.call_log import CallLog

KILLS = 3 if os.environ.get("JUMAR_SWEEP") != "full" else 100
ITEMS, AT_ONCE, LIMIT = 60, 4, 0.4
FEW = ("--concurrency", AT_ONCE, "--repeat", 1, "--backoff-base", 0.01)


@pytest.fixture
def judge(tmp_path: Path) -> PaidJudge:
    return PaidJudge(tmp_path)


@pytest.fixture
def items(tmp_path: Path) -> Path:
    return write_items(tmp_path / "items.jsonl", judged_items(ITEMS, 1))


def spent(path: Path, judge: PaidJudge, purpose: str, kills: int) -> None:
    """Compare the file of calls with what the judge charged: nothing is missing, and at most what was in flight is too much."""
    with CallLog(path, purpose) as found:
        assert judge.calls <= found.calls <= judge.calls + kills * AT_ONCE
        assert found.known_usd <= judge.paid + 1e-9
        if found.each is not None:
            assert found.known_usd + found.assumed_usd == pytest.approx(found.calls * COST)
            assert found.total_usd is not None
        assert found.lost <= kills * AT_ONCE


EVALUATIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "folder": (("-o", "out", "--no-cache"), "out/calls.jsonl"),
    "rows": (("--per-item", "rows.jsonl", "--no-cache"), "rows.jsonl.calls.jsonl"),
    "replies": (("--cache", "replies"), "replies/calls/*.jsonl"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("limit", [None, LIMIT], ids=["free", "limited"])
@pytest.mark.parametrize("place", EVALUATIONS)
def test_an_evaluation_that_is_killed_again_and_again_tells_what_it_cost(
    place: str,
    limit: float | None,
    judge: PaidJudge,
    items: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    options, where = EVALUATIONS[place]
    capped = () if limit is None else ("--max-cost", limit)
    words = jumar("evaluate", items, "--mode", "expensive", "--judge", judge.spec, *options, *FEW, *capped, "--json")
    rng, kills = random.Random(7), 0

    def look() -> None:
        path = next(tmp_path.glob(where))
        if not path.read_bytes().splitlines()[-1].startswith(b'{"done"'):  # it had come to its end just before
            spent(path, judge, "evaluate", kills + 1)
        assert limit is None or judge.paid <= limit + 1e-9

    while kills < KILLS and kill_while_paying(words, judge, rng, look):
        kills += 1
    if b'{"done"' in next(tmp_path.glob(where)).read_bytes():  # killed at its very end: what is asked later is counted anew
        with capsys.disabled():
            print(f"\nevaluate, {place}, {limit or 'no'} limit: {kills} kills, {judge.calls} calls on the judge's file")
        return
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout)["expensive"]
    assert judge.paid <= said["cost_usd"] + 1e-9 <= judge.paid + kills * AT_ONCE * COST + 2e-9
    assert judge.calls <= said["calls"] <= judge.calls + kills * AT_ONCE
    if limit is not None:
        before = judge.calls
        again = json.loads(subprocess.run(words, capture_output=True, text=True, check=False).stdout)["expensive"]
        assert (before, said["cost_usd"]) == (judge.calls, again["cost_usd"])
        assert judge.paid <= limit + 1e-9
    with capsys.disabled():
        told = f"{judge.calls} calls on the judge's file, {said['calls']} told"
        print(f"\nevaluate, {place}, {limit or 'no'} limit: {kills} kills, {told}")


@pytest.mark.sweep
@pytest.mark.parametrize("limit", [None, LIMIT], ids=["free", "limited"])
def test_learning_that_is_killed_again_and_again_tells_what_it_cost(
    limit: float | None, judge: PaidJudge, items: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    capped = () if limit is None else ("--max-cost", limit)
    options = ("--max-iterations", 1, "--profile", "seed", "--no-cache", "--json", *FEW, *capped)
    words = jumar("learn", items, "--judge", judge.spec, "-o", output, *options)
    rng, kills = random.Random(11), 0

    def look() -> None:
        spent(output / "calls.jsonl", judge, "learn", kills + 1)
        assert limit is None or judge.paid <= limit + 1e-9

    while kills < KILLS and kill_while_paying(words, judge, rng, look):
        kills += 1
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    with CallLog(output / "calls.jsonl", "learn") as found:
        assert judge.paid <= found.known_usd + found.assumed_usd + 1e-9
    if limit is None:
        said = json.loads(done.stdout)
        assert judge.calls <= said["judge_calls"] <= judge.calls + kills * AT_ONCE
        assert judge.paid <= said["cost_usd"] + 1e-9 <= judge.paid + kills * AT_ONCE * COST + 2e-9
    else:
        assert judge.paid <= limit + 1e-9
        assert (1, True) == (done.returncode, f"give more than --max-cost {limit:g}" in " ".join(done.stderr.split())), (
            done.stderr
        )
    with capsys.disabled():
        print(f"\nlearn, {limit or 'no'} limit: {kills} kills, {judge.calls} calls on the judge's file, {found.calls} counted")


def test_proving_counts_its_own_calls_over_all_starts(judge: PaidJudge, items: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    judged = ("--judge", judge.spec, "--no-cache", *FEW)
    learned = call("learn", items, *judged, "-o", output, "--max-iterations", 1, "--profile", "seed", "--json", check=0).document
    assert (judge.calls, pytest.approx(judge.paid)) == (learned["judge_calls"], learned["cost_usd"])
    verdicts = output / "verdicts.jsonl"
    verdicts.write_text("".join(verdicts.read_text().splitlines(keepends=True)[:20]))
    before = judge.calls
    for _ in range(3):
        poor = call("prove", output, *judged, "--max-cost", 10 * COST, check=1)
        assert "the limit of $0.1 is reached: $0.1000 spent" in poor.err
        assert before + 10 == judge.calls
    proven = call("prove", output, *judged, "--max-cost", 1, "--json", check=0).document
    assert judge.calls - before == proven["judge_calls"] == ITEMS - 20
    assert 0 == call("prove", output, *judged, "--json", check=0).document["judge_calls"]
    again = call("learn", items, *judged, "-o", output, "--max-iterations", 1, "--profile", "seed", "--json", check=0).document
    assert learned["judge_calls"] == again["judge_calls"]


def evaluate(judge: PaidJudge, items: Path, *options: object, check: int | None = None) -> Any:
    return call("evaluate", items, "--mode", "expensive", "--judge", judge.spec, *FEW, *options, check=check)


def test_a_limit_is_of_the_evaluation_and_not_of_its_start(judge: PaidJudge, items: Path, tmp_path: Path) -> None:
    options = ("-o", tmp_path / "out", "--json", "--cache", tmp_path / "replies", "--max-cost")
    for _ in range(3):
        said = evaluate(judge, items, *options, 0.05, check=0).document["expensive"]
        assert (5, 5, 0.05) == (judge.calls, said["calls"], said["cost_usd"])
        assert f"{tmp_path}/out/calls.jsonl has every call since the first start" in said["stopped"]
    more = evaluate(judge, items, *options, 0.08, check=0).document["expensive"]
    assert (8, 8, 0.08) == (judge.calls, more["calls"], more["cost_usd"])
    whole = evaluate(judge, items, *options, 5, check=0).document["expensive"]
    assert (ITEMS, None, pytest.approx(ITEMS * COST)) == (whole["calls"], whole["stopped"], whole["cost_usd"])
    anew = evaluate(judge, items, *options, 5, check=0).document["expensive"]  # the last one came to its end
    assert (0, 0.0, ITEMS) == (anew["calls"], anew["cost_usd"], judge.calls)


@pytest.mark.parametrize("limit", [(), ("--max-cost", 0.05)], ids=["no limit", "limit"])
def test_a_judge_that_only_fails_is_given_up(limit: tuple[object, ...], judge: PaidJudge, items: Path, tmp_path: Path) -> None:
    judge.broken.touch()
    failed = evaluate(judge, items, "-o", tmp_path / "out", "--concurrency", 1, *limit, check=1)
    assert "unavailable), 3 in a row without an answer, and nothing more was asked" in failed.err or limit
    called = judge.calls
    assert 3 == called if limit else 3 * 4 <= called <= 5 * 4  # some items take turns while they wait to be tried again
    again = evaluate(judge, items, "-o", tmp_path / "out", "--concurrency", 1, *limit, check=12 if limit else 1)
    assert not limit or (called == judge.calls and "3 calls so far" in again.out)
    judge.broken.unlink()
    called = judge.calls
    options = ("-o", tmp_path / "out", "--json", *limit, "--reserve-cost", COST)
    mended = evaluate(judge, items, *options, check=0).document["expensive"]
    assert (5 if limit else called + ITEMS) == judge.calls == mended["calls"]
    assert (None, pytest.approx(called * COST)) == (mended["cost_usd"], mended["assumed_cost_usd"])


def test_a_judge_that_breaks_on_the_way_is_given_up_and_keeps_the_limit(judge: PaidJudge, items: Path, tmp_path: Path) -> None:
    words = jumar("evaluate", items, "--mode", "expensive", "--judge", judge.spec, *FEW, "-o", tmp_path / "out", "--no-cache")
    process = subprocess.Popen([*words, "--max-cost", "0.4"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while judge.calls < 8:
        assert process.poll() is None
        time.sleep(0.002)
    judge.broken.touch()
    _, err = process.communicate(timeout=60)
    assert 1 == process.returncode
    assert "3 in a row without an answer" in err or "more than 20%" in err
    assert judge.paid <= 0.4


def test_two_evaluations_do_not_count_in_one_file(judge: PaidJudge, items: Path, tmp_path: Path) -> None:
    with CallLog(tmp_path / "out" / "calls.jsonl"):
        locked = evaluate(judge, items, "-o", tmp_path / "out", check=13)
    assert "out/calls.jsonl: another process asks the judge and counts here" in locked.err
    assert 0 == judge.calls
