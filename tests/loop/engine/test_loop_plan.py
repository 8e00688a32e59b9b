"""What comes next, from the records alone."""

from __future__ import annotations

from collections.abc import Sequence

from jumar.loop.ranking.noise import Evidence
from jumar.loop.ranking.ratchet import BatchPlan, choose_parent, missing_of_batch, plan_next
from jumar.loop.ranking.stopping import evaluate_stop
from jumar.model import IterationView, SelectionCriteria, StopRules, TrendRule


def made(
    number: int, score: float | None, *, batch: int | None = None, candidate: int | None = None, **fields: object
) -> IterationView:
    fields = {"status": "ok" if score is not None else "generator_failed"} | fields
    return IterationView(number=number, score=score, batch=batch, candidate=candidate, **fields)  # type: ignore[arg-type]


CRITERIA = SelectionCriteria(mode="highest_quality", threshold=None)


def planned(views: Sequence[IterationView], *, candidates: int, max_iterations: int = 9, continue_from: str) -> BatchPlan:
    evidence = Evidence(views=tuple(views))
    return plan_next(evidence, CRITERIA, candidates=candidates, max_iterations=max_iterations, continue_from=continue_from)


def parent(views: Sequence[IterationView], continue_from: str) -> int:
    return choose_parent(Evidence(views=tuple(views)), CRITERIA, continue_from)


START = made(0, 10.0)
BATCH = (made(1, 30.0, batch=1, candidate=1), made(2, 50.0, batch=1, candidate=2), made(3, None, batch=1, candidate=3))


def test_a_lone_pass_goes_on_from_the_last_that_did_not_fail() -> None:
    plan = planned((START, made(1, 50.0), made(2, None)), candidates=1, continue_from="previous")
    assert (plan.numbers, plan.parent, plan.batch, plan.candidates) == ((3,), 1, None, (None,))


def test_a_batch_goes_on_from_the_best_of_the_one_before() -> None:
    plan = planned((START, *BATCH), candidates=3, continue_from="previous")
    assert (plan.numbers, plan.parent, plan.batch, plan.candidates) == ((4, 5, 6), 2, 2, (1, 2, 3))


def test_the_last_batch_is_as_short_as_the_limit_says() -> None:
    plan = planned((START, *BATCH), candidates=3, max_iterations=5, continue_from="best")
    assert plan.numbers == (4, 5)
    views = (START, *BATCH, made(4, 1.0, batch=2, candidate=1), made(5, 2.0, batch=2, candidate=2))
    assert missing_of_batch(views, candidates=3, max_iterations=5) == ()


def test_a_batch_that_was_cut_off_is_completed_from_the_same_parent() -> None:
    views = (START, *BATCH, made(5, 90.0, batch=2, candidate=2, parent=1))
    assert missing_of_batch(views, candidates=3, max_iterations=9) == (4, 6)
    for continue_from in ("previous", "best"):
        plan = planned(views, candidates=3, continue_from=continue_from)
        assert (plan.numbers, plan.parent, plan.batch, plan.candidates) == ((4, 6), 1, 2, (1, 3))


def test_a_loop_that_goes_on_with_fewer_candidates_completes_nothing() -> None:
    views = (START, *BATCH, made(5, 90.0, batch=2, candidate=2))
    assert missing_of_batch(views, candidates=1, max_iterations=9) == ()
    assert planned(views, candidates=1, continue_from="previous").numbers == (6,)


def test_where_all_of_a_batch_failed_the_next_goes_on_from_before_it() -> None:
    failed = tuple(made(number, None, batch=2, candidate=number - 3) for number in (4, 5, 6))
    for continue_from in ("previous", "best"):
        assert parent((START, *BATCH, *failed), continue_from) == 2
        assert parent((made(0, None), made(1, None)), continue_from) == 1
        assert parent((made(0, None, status="scorer_broken"), made(1, None)), continue_from) == 0


def test_the_best_is_gone_on_from_and_the_latest_of_equals() -> None:
    views = (START, made(1, 5.0), made(2, 10.0), made(3, 9.9))
    assert [0, 0, 2, 2] == [parent(views[: end + 1], "best") for end in range(4)]
    assert [0, 1, 2, 3] == [parent(views[: end + 1], "previous") for end in range(4)]


def test_trends_go_from_batch_to_batch() -> None:
    views = [START]
    for batch in (1, 2, 3):
        views += [made(2 * batch - 1, 80.0, batch=batch, candidate=1), made(2 * batch, 5.0, batch=batch, candidate=2)]
    rules = StopRules(max_iterations=99, oscillation=TrendRule(window=3, delta=1))
    assert evaluate_stop(views, rules, seconds=0) is None, "inside of a batch scores are no oscillation"
    plateau = evaluate_stop(views, StopRules(max_iterations=99, plateau=TrendRule(window=3, delta=1)), seconds=0)
    assert plateau is not None
    assert plateau.reason == "plateau"


def test_any_of_a_batch_may_complete_or_be_blocked() -> None:
    done = made(1, 60.0, batch=1, candidate=1, completed=True, verification="passed")
    views = (START, done, made(2, 50.0, batch=1, candidate=2))
    decision = evaluate_stop(views, StopRules(), seconds=0)
    assert decision is not None
    assert decision.reason == "completed"
    blocked = made(1, 60.0, batch=1, candidate=1, failure="blocked", blocked="no key")
    decision = evaluate_stop((START, blocked, made(2, 50.0, batch=1, candidate=2)), StopRules(), seconds=0)
    assert decision is not None
    assert decision.reason == "blocked"
    assert "no key" in decision.detail


def test_passes_without_effect_are_failures_in_a_row() -> None:
    views = (START, *(made(number, 10.0, failure="changed_nothing") for number in (1, 2, 3)))
    decision = evaluate_stop(views, StopRules(consecutive_failures=3), seconds=0)
    assert decision is not None
    assert decision.reason == "consecutive_failures"
    assert "changed nothing" in decision.detail
    assert evaluate_stop(views[:3], StopRules(consecutive_failures=3), seconds=0) is None
