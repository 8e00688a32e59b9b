"""Drift: found where it is, quiet where nothing is, whatever else a log holds."""

from __future__ import annotations

import itertools
import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest
from commands import call
from hypothesis import given
from hypothesis import strategies as st

from jumar.errors import StrategyError
from jumar.topk.tuning.drift import LEAST, LoggedSelection, _pettitt, _ranks, find_drift


def readings(values: list[float], stream: str = "rules · elbow", kept: int = 3) -> list[LoggedSelection]:
    return [LoggedSelection(stream, value, kept, str(number)) for number, value in enumerate(values)]


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.7]), min_size=1, max_size=12))
def test_the_statistic_is_what_counting_pairs_gives(values: list[float]):
    def pairs(split: int) -> int:
        return sum((late > early) - (late < early) for early, late in itertools.product(values[:split], values[split:]))

    place, statistic = _pettitt(values)
    assert max(abs(pairs(split)) for split in range(len(values))) == statistic
    assert abs(pairs(place)) == statistic


def test_ranks_of_equal_values_are_shared():
    assert [2.5, 1.0, 2.5, 4.0] == _ranks([0.5, 0.1, 0.5, 0.9])


def test_a_shift_is_found_where_it_is():
    draw = random.Random(1)
    values = [draw.gauss(0.7, 0.05) for _ in range(60)] + [draw.gauss(0.6, 0.05) for _ in range(40)]
    stream = find_drift(readings(values))[0]
    cutoff = stream.changes[0]
    assert ("cutoff", True, True) == (cutoff.measure, cutoff.drifted, stream.drifted)
    assert cutoff.since is not None
    assert abs(cutoff.since - 61) <= 3
    assert str(cutoff.since - 1) == cutoff.where
    assert (0.7, 0.6) == pytest.approx((cutoff.before, cutoff.after), abs=0.02)
    assert 0.6 < cutoff.effect <= 1.0
    assert [False, False] == [change.drifted for change in stream.changes[1:]]


def test_false_alarms_are_as_rare_as_asked_for():
    draw = random.Random(2)
    alarms = sum(find_drift(readings([draw.random() for _ in range(80)]), level=0.05)[0].drifted for _ in range(400))
    print(f"false alarms: {alarms} of 400 at level .05")
    assert alarms <= 20


def test_small_changes_of_long_logs_are_let_be():
    draw = random.Random(3)
    values = [draw.gauss(0.7, 0.1) for _ in range(5000)] + [draw.gauss(0.712, 0.1) for _ in range(5000)]
    change = find_drift(readings(values))[0].changes[0]
    assert (True, False) == (change.p < 0.001, change.drifted)
    assert find_drift(readings(values), effect=0.01)[0].changes[0].drifted


def test_empty_answers_have_no_cutoff_but_are_counted():
    rows = [LoggedSelection("s", 0.7 - 0.001 * (number % 7), 2) for number in range(40)] + [LoggedSelection("s", 0.0, 0)] * 30
    changes = {change.measure: change for change in find_drift(rows)[0].changes}
    assert not changes["cutoff"].drifted
    assert (True, 0.0, 1.0, 41) == (
        changes["abstained"].drifted,
        changes["abstained"].before,
        changes["abstained"].after,
        changes["abstained"].since,
    )


def test_too_few_and_always_the_same():
    assert () == find_drift(readings([0.5] * (LEAST - 1)))[0].changes
    same = find_drift(readings([0.5] * LEAST))[0]
    assert [(None, 0.5, 0.5, 0.0, 1.0, False)] == [
        (change.since, change.before, change.after, change.effect, change.p, change.drifted) for change in same.changes[:1]
    ]
    assert () == find_drift([])


@pytest.mark.parametrize("options", [{"level": 0}, {"level": 1.5}, {"effect": 0}])
def test_limits(options: dict[str, Any]):
    with pytest.raises(StrategyError):
        find_drift([], **options)


# ----------------------------------------------------------------------------------------------------- the command


def event(number: int, cutoff: float, kept: int = 3) -> str:
    one = {"strategy": "elbow", "input_count": 20, "output_count": kept, "cutoff_score": cutoff, "metadata": {}}
    return json.dumps({"event": "jumar.topk_selected", "time": 1_800_000_000 + number, "retrieval": {"rules": one, "odd": 1}})


def test_a_log_of_ours_among_other_lines(fresh_place: Path):
    rows = [event(number, 0.7 - 0.2 * (number >= 30) + 0.001 * (number % 5)) for number in range(60)]
    Path("app.log").write_text("\n".join(["starting", "[1]", '{"event": "other"}', *rows]) + "\n")
    found = call("topk", "drift", "app.log", "--json", check=0).document
    assert (True, 60, 3) == (found["drifted"], found["selections"], found["skipped"])
    cutoff = found["streams"][0]["changes"][0]
    assert ("rules · elbow", 31, "2027-01-15 08:00:30") == (found["streams"][0]["stream"], cutoff["since"], cutoff["where"])
    out = call("topk", "drift", "app.log", check=0).out
    assert "DRIFT" in out
    assert "60 selections, 3 other lines skipped" in out


def test_what_the_formatter_writes_is_read(fresh_place: Path):
    from jumar.topk.result import SelectionResult
    from jumar.topk.retrieval import JsonFormatter, TurnLog

    log = logging.getLogger("jumar.topk")
    handler = logging.FileHandler("app.log")
    handler.setFormatter(JsonFormatter())
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        for number in range(LEAST):
            with TurnLog(f"turn{number}") as turn:
                turn.add("memory", 9, SelectionResult([], 0.0, "elbow", {}))
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        handler.close()
    found = call("topk", "drift", "app.log", "--json", check=0).document
    assert [("memory · elbow", LEAST, False)] == [(one["stream"], one["selections"], one["drifted"]) for one in found["streams"]]


def test_what_select_prints_is_read(fresh_place: Path):
    scores = [json.dumps({"query_id": number, "scores": [0.9, 0.8, 0.2]}) for number in range(5)]
    Path("in.jsonl").write_text("\n".join(scores))
    Path("out.jsonl").write_text(call("topk", "select", "in.jsonl", "--json", check=0).out)
    out = call("topk", "drift", "out.jsonl", check=0).out
    assert "entropy_normalized: 5 selections, at least 20 are needed" in out


def test_a_log_without_selections(fresh_place: Path):
    Path("app.log").write_text('nothing\n{"retrieval": {"rules": {"cutoff_score": "x"}}}\n{"method": "m", "cutoff_score": NaN}\n')
    assert "app.log: no selection in it" in call("topk", "drift", "app.log", check=2).err
    assert "there is no file x.log" in call("topk", "drift", "x.log", check=2).err
