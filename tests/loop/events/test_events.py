"""Events: frozen values with a stable name each, whose JSON stays small however long the loop is."""

from __future__ import annotations

import dataclasses
import io
import json
import pickle
import typing

import pytest

from jumar.cli.terminal.display import TableDisplay
from jumar.loop.events import events
from jumar.model import IterationRecord, StopRules, Usage
from jumar.model.attempts import Spend

RECORD = IterationRecord(
    iteration_number=3,
    timestamp="2026-01-01T00:00:00Z",
    quality_score=81.5,
    quality_delta=None,
    dimensions={"quality": 0.815},
    tokens_used=None,
    token_cost_usd=None,
    execution_time_ms=None,
    verification_status="passed",
    artifacts=tuple(f"iterations/iteration-003/artifacts/{number}" for number in range(5000)),
)
EVERY = (
    events.LoopStarted(loop_id="t", resumed=True, rules=StopRules(), recorded=1, latest=(RECORD,), weights={"quality": 1.0}),
    events.AttemptStarted(attempt=4, iteration=3, reserve_cost_usd=0.5),
    events.AttemptEnded(attempt=4, iteration=3, outcome="ok", usage=Usage(input_tokens=40, output_tokens=2), seconds=1.5),
    events.PhaseStarted(iteration=3, phase="verify"),
    events.IterationRecorded(record=RECORD, best=3, spend=Spend()),
    events.Waiting(why="rate_limited", seconds=30.0, iteration=4, detail="try again\x1b in 30 seconds"),
    events.Notice(message="look"),
    events.StopDecided(reason="target", detail="the target is reached"),
    events.LoopEnded(outcome={"loop_id": "t", "exit_code": 0}),
)


def test_every_kind_of_event_has_an_example_here() -> None:
    assert set(typing.get_args(events.Event)) == {type(event) for event in EVERY}


def test_types_are_stable_names() -> None:
    expected = [
        *("loop_started", "attempt_started", "attempt_ended", "phase_started", "iteration_recorded", "waiting", "notice"),
        *("stop_decided", "loop_ended"),
    ]
    assert expected == [event.type for event in EVERY]


@pytest.mark.parametrize("event", EVERY, ids=lambda event: event.type)
def test_an_event_is_frozen_and_its_json_is_small_and_finite(event: events.Event) -> None:
    text = json.dumps(event.to_json(), allow_nan=False)
    assert event.type == json.loads(text)["type"]
    assert 1500 > len(text)
    for name in (dataclasses.fields(event)[0].name, "type", "note"):  # of what is no field, Python says TypeError
        with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
            setattr(event, name, None)
        with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
            delattr(event, name)
    assert event == pickle.loads(pickle.dumps(event)) == dataclasses.replace(event)


def test_what_is_unknown_is_null_and_tokens_add_up() -> None:
    ended, recorded = EVERY[2].to_json(), EVERY[4].to_json()
    assert (42, None, None) == (ended["tokens"], ended["cost_usd"], ended["failure"])
    assert (None, None, None) == (recorded["seconds"], recorded["cost_usd"], recorded["tokens"])


def test_the_plain_display_takes_every_event_and_tells_of_waiting() -> None:
    stream = io.StringIO()
    display = TableDisplay(stream)
    for event in EVERY:
        display.hear(event)
    assert r"waiting   up to 30s (rate limited: try again\x1b in 30 seconds)" in stream.getvalue()
