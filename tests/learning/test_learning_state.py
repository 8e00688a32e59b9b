"""The learner's state: frozen, bounded, and the same after a round trip through JSON."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.errors import FormatTooNewError, StoreDamagedError
from jumar.judging import IterationMetrics
from jumar.judging.patterns import PatternProposal, PatternSet, PatternV2, ValidationRule
from jumar.learning import KnownSet, LearnParameters, LearnState

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def pattern(name: str, **fields: Any) -> PatternV2:
    known = {"type": "good", "description": name, "keywords": [name], "source": "test", "discovered_at": DAY}
    return PatternV2.model_validate({"id": name, **known, **fields})


def patterns(*names: str) -> PatternSet:
    return PatternSet(version="2.0", patterns=[pattern(name) for name in names])


def metrics(iteration: int) -> IterationMetrics:
    figures = {"expensive_avg": 4.2, "cheap_avg": 3.9, "gap": 0.3, "gap_delta": -0.1, "abs_gap": 0.4}
    counts = {"pattern_count": 3, "provisional_patterns": 1, "patterns_committed": 0, "patterns_rejected": 2}
    return IterationMetrics.model_validate({"iteration": iteration, "timestamp": DAY, **figures, **counts, "story_ids": ["a"]})


names = st.lists(st.text("abcdé ", min_size=1, max_size=6).filter(str.strip), unique=True, max_size=4)
states = st.builds(
    LearnState,
    patterns=names.map(lambda found: patterns(*found)),
    iteration=st.integers(0, 99),
    proposals=st.lists(
        st.builds(
            PatternProposal,
            pattern=st.just({"type": "bad", "phrases": ["é"]}),
            proposed_at=st.integers(0, 9),
            provenance=st.just({"by": "log_odds", "items": ["a"], "statistic": {"z": 1.25}}),
        ),
        max_size=2,
    ).map(tuple),
    history=st.lists(st.integers(0, 9).map(metrics), max_size=2).map(tuple),
    parameters=st.builds(
        LearnParameters,
        learning_rate=st.floats(0.01, 1),
        validation=st.builds(ValidationRule, commit_accuracy=st.floats(0.3, 1)),
        diversity=st.integers(0, 3),
        prune_below=st.floats(0, 2),
    ),
    versions=st.lists(
        st.builds(
            KnownSet,
            iteration=st.integers(0, 9),
            patterns=names.map(lambda found: patterns(*found)),
            abs_gap=st.none() | st.floats(0, 4),
            good=st.booleans(),
        ),
        max_size=3,
    ).map(tuple),
    actions=st.just(({"action": "rollback_patterns", "before": 0.5, "after": None},)),
)


@given(states)
def test_a_state_is_the_same_after_a_round_trip(state: LearnState) -> None:
    assert state == LearnState.from_json(json.loads(json.dumps(state.to_json(), allow_nan=False)))


def test_a_state_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        LearnState(patterns=patterns()).iteration = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"format": 2}, FormatTooNewError, "format 2 of a newer jumar"),
        ({"format": "1"}, StoreDamagedError, "its format is '1', not 1"),
        ({"patterns": {"version": "2.0", "patterns": [{}]}}, StoreDamagedError, "my.json is not a state of the learner"),
        ({"parameters": {"diversity": 9}}, StoreDamagedError, "diversity = 9 should be from 0 to 3"),
        ({"versions": [{}]}, StoreDamagedError, "'iteration' is missing"),
    ],
)
def test_a_damaged_state_is_told(change: dict[str, Any], error: type[Exception], said: str) -> None:
    document = {**LearnState(patterns=patterns("a")).to_json(), **change}
    with pytest.raises(error, match=said):
        LearnState.from_json(document, "my.json")


def test_fields_of_other_versions_are_left_out() -> None:
    document = LearnState(patterns=patterns("a")).to_json()
    more = {**document, "mood": 1, "parameters": {**document["parameters"], "mood": 1, "validation": {"mood": 1}}}
    assert LearnState(patterns=patterns("a")) == LearnState.from_json(more)


@pytest.mark.parametrize(
    "wrong", [{"learning_rate": 0.0}, {"learning_rate": float("nan")}, {"diversity": 4}, {"prune_below": -1}]
)
def test_parameters_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LearnParameters(**wrong)


def test_a_rollback_goes_to_the_newest_good_set_that_differs() -> None:
    state = LearnState(patterns=patterns("a")).remembered(abs_gap=0.4)
    state = replace(state, iteration=1, patterns=patterns("a", "b")).remembered(abs_gap=0.9, good=False)
    state = replace(state, iteration=2, patterns=patterns("a", "b", "c")).remembered(abs_gap=0.5)
    found = state.last_good()
    assert found is not None
    assert (0, ["a"]) == (found.iteration, [one.id for one in found.patterns.patterns])
    assert LearnState(patterns=patterns("a")).remembered().last_good() is None


def test_versions_are_bounded_and_the_best_one_stays() -> None:
    state = LearnState(patterns=patterns())
    for number in range(20):
        state = replace(state, iteration=number, patterns=patterns(f"p{number}")).remembered(abs_gap=0.1 if number == 3 else 0.5)
    assert [3, *range(13, 20)] == [one.iteration for one in state.versions]
    assert [3, *range(13, 20)] == [one.iteration for one in state.remembered(abs_gap=0.5).versions], "equal sets count once"


def test_the_log_is_bounded() -> None:
    state = LearnState(patterns=patterns()).logged(*({"action": "x", "n": n} for n in range(1_200)))
    assert (1_000, 1_199) == (len(state.actions), state.actions[-1]["n"])
