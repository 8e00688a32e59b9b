"""Which iteration stands: selections, overrides, and the trail of both."""

from __future__ import annotations

from pathlib import Path

import pytest
from decide_kit import AT, BY, File, new_loop, record

from jumar.core.leftovers import remove_tree
from jumar.errors import LockedError, NotFoundError, NothingEvaluatedError, UsageError
from jumar.loop.decisions.select import final_delta, override, parse_use, record_selection
from jumar.loop.ranking.choose import choose
from jumar.loop.store.in_force import standing, trail
from jumar.loop.store.loop_store import LoopStore
from jumar.model import SelectionCriteria

CRITERIA = SelectionCriteria()


@pytest.fixture
def store(tmp_path: Path) -> LoopStore:
    """Four iterations: 72, 85 (the best), 83, and a failed one."""
    store = new_loop(tmp_path / "work")
    for number, score in ((1, 72.0), (2, 85.0), (3, 83.0)):
        record(store, number, {"a": File(b"%d" % number)}, score=score)
    record(store, 4, {"a": File(b"4")}, score=None, status="generator_failed", status_reason="exit code 3\x1b[2J")
    return store


def select(store: LoopStore, at: str = AT):
    return record_selection(store, choose(store.views(), CRITERIA), by=BY, at=at)


# ------------------------------------------------------------------------------------------------------------- select


def test_a_selection_is_a_decision_with_everything_it_rests_on(store):
    decision = select(store)
    assert (decision.kind, decision.best_iteration, decision.final_iteration) == ("select", 2, 4)
    assert (decision.decision, decision.delta, decision.replaced) == ("use_best", None, None)
    assert decision.reason == "Highest verified quality: 85%"
    assert decision.data["result"]["runner_up"] == 3
    assert [decision] == list(LoopStore.open(store.paths.directory).decisions())


def test_the_same_selection_again_writes_nothing(store):
    first = select(store)
    again = select(LoopStore.open(store.paths.directory), at="2027-01-01T00:00:00Z")
    assert first == again
    assert 1 == len(list(store.paths.decisions.iterdir()))


def test_another_result_is_another_decision_and_says_what_it_replaced(store):
    select(store)
    record(store, 5, {"a": File(b"5")}, score=90)
    decision = select(store)
    assert (decision.best_iteration, decision.replaced, decision.delta) == (5, 2, 0.0)


def test_an_older_result_that_comes_back_is_written_again(store):
    select(store)
    record(store, 5, {"a": File(b"5")}, score=90)
    high = SelectionCriteria(mode="most_recent_above_threshold", threshold=80)
    results = [choose(store.views(), criteria) for criteria in (CRITERIA, high, CRITERIA)]
    for result in results:
        record_selection(store, result, by=BY, at=AT)
    assert 4 == len(store.decisions())


def test_criteria_are_kept_where_they_are_given(store):
    result = choose(store.views(), CRITERIA)
    first = record_selection(store, result, by=BY, at=AT, criteria=CRITERIA)
    assert first.data["criteria"] == CRITERIA.to_json()
    assert record_selection(store, result, by=BY, at=AT, criteria=CRITERIA) == first
    assert record_selection(store, result, by=BY, at=AT, reason="asked for").reason == "asked for"


@pytest.mark.parametrize(
    ("final", "chosen", "delta"), [(83.0, 85.0, -2.0), (66.2, 61.2, 5.0), (None, 85.0, None), (83.0, None, None), (1, 1, 0)]
)
def test_delta_is_the_final_score_minus_the_chosen(final, chosen, delta):
    assert delta == final_delta(final, chosen)


# ----------------------------------------------------------------------------------------------------------- override


@pytest.mark.parametrize(
    ("use", "iteration", "decision", "delta"),
    [("best", 2, "use_best", 0.0), ("final", 3, "use_final", 0.0), (1, 1, "use_specific", 11.0)],
)
def test_an_override_stands_and_says_who_when_why_and_instead_of_what(tmp_path, use, iteration, decision, delta):
    store = new_loop(tmp_path / "work")
    for number, score in ((1, 72.0), (2, 85.0), (3, 83.0)):
        record(store, number, {"a": File(b"%d" % number)}, score=score)
    select(store)
    made = override(store, use, reason="  keeps the API stable ", by="grace", at=AT, criteria=CRITERIA)
    assert (made.kind, made.best_iteration, made.decision, made.replaced) == ("override", iteration, decision, 2)
    assert (made.reason, made.by, made.at, made.final_iteration) == ("keeps the API stable", "grace", AT, 3)
    assert made.delta == pytest.approx(83.0 - {1: 72.0, 2: 85.0, 3: 83.0}[iteration])
    assert standing(LoopStore.open(store.paths.directory)).decision == made
    assert standing(store).iteration == iteration


@pytest.mark.parametrize("reason", ["", "   ", "\n\t"])
def test_an_override_without_a_reason_is_refused(store, reason):
    with pytest.raises(UsageError, match="needs a reason: say why with --reason"):
        override(store, 1, reason=reason, by=BY, at=AT, criteria=CRITERIA)
    assert store.decisions() == ()


@pytest.mark.parametrize("use", [4, "final"])
def test_an_iteration_without_a_valid_score_is_refused_with_its_reason(store, use):
    with pytest.raises(UsageError, match=r"iteration 4 has no valid score \(generator_failed: exit code 3\\x1b\[2J\)"):
        override(store, use, reason="because", by=BY, at=AT, criteria=CRITERIA)
    assert store.decisions() == ()


def test_an_iteration_without_a_snapshot_is_refused(store):
    remove_tree(store.artifacts(1))
    with pytest.raises(UsageError, match="snapshot of iteration 1 is missing"):
        override(store, 1, reason="because", by=BY, at=AT, criteria=CRITERIA)


def test_an_iteration_that_is_not_there_is_refused(store, tmp_path):
    with pytest.raises(NotFoundError, match="there is no iteration 9; recorded are 1 to 4"):
        override(store, 9, reason="because", by=BY, at=AT, criteria=CRITERIA)
    empty = new_loop(tmp_path / "empty")
    for use in (1, "final"):
        with pytest.raises(NotFoundError, match="no iteration is recorded yet"):
            override(empty, use, reason="because", by=BY, at=AT, criteria=CRITERIA)
    with pytest.raises(NothingEvaluatedError):
        override(empty, "best", reason="because", by=BY, at=AT, criteria=CRITERIA)


def test_a_configuration_may_forbid_overrides(tmp_path):
    store = new_loop(tmp_path / "work", config={"override_enabled": False})
    record(store, 1, {"a": File(b"1")})
    with pytest.raises(UsageError, match=r"\[override\] enabled = false"):
        override(store, 1, reason="because", by=BY, at=AT, criteria=CRITERIA)


def test_an_override_waits_for_its_turn(store):
    with LoopStore.open(store.paths.directory).lock(), pytest.raises(LockedError):
        override(store, 1, reason="because", by=BY, at=AT, criteria=CRITERIA)


@pytest.mark.parametrize(("text", "use"), [("best", "best"), ("use_final", "final"), (" Final ", "final"), ("12", 12), ("0", 0)])
def test_use_is_read(text, use):
    assert use == parse_use(text)


@pytest.mark.parametrize("text", ["", "last", "-1", "1.5", "²", "bëst\x1b"])
def test_use_that_says_nothing_is_refused(text):
    with pytest.raises(UsageError, match="--use takes best, final or the number"):
        parse_use(text)


# ----------------------------------------------------------------------------------------------------------- standing


def test_what_stands_is_the_last_override_else_the_last_selection_else_what_the_rules_choose(store, tmp_path):
    assert (None, None) == (standing(store).iteration, standing(store).decision)
    assert (2, None) == (standing(store, CRITERIA).iteration, standing(store, CRITERIA).decision)
    select(store)
    assert 2 == standing(store).iteration
    override(store, 1, reason="first", by=BY, at=AT, criteria=CRITERIA)
    override(store, 3, reason="second", by=BY, at=AT, criteria=CRITERIA)
    record(store, 5, {"a": File(b"5")}, score=99)
    select(store)
    assert 3 == standing(store).iteration
    assert (None, None) == (standing(new_loop(tmp_path / "empty"), CRITERIA).iteration, None)


def test_the_trail_lists_what_was_decided_and_what_it_replaced(store):
    select(store)
    override(store, 1, reason="shorter", by="grace", at=AT, criteria=CRITERIA)
    override(store, "best", reason="no, longer", by=BY, at=AT, criteria=CRITERIA)
    entries = [
        (one.decision.kind, one.decision.best_iteration, one.decision.replaced, one.decision.by, one.state)
        for one in trail(store)
    ]
    assert entries == [
        ("select", 2, None, BY, "done"),
        ("override", 1, 2, "grace", "done"),
        ("override", 2, 1, BY, "done"),
    ]
