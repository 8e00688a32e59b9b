"""Choosing, for any list of iterations: properties, and two slow references that filter literally, rule by rule."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jumar.errors import NothingEvaluatedError
from jumar.loop.ranking import choose, invalid_reason, ordered, running_best
from jumar.loop.ranking.choose import leader
from jumar.model import IterationView, SelectionCriteria

MANY = settings.default.max_examples * 5 if settings.default else 300
MODES = ("highest_quality", "highest_quality_verified", "most_recent_above_threshold")
TRIED = Counter[str]()


@pytest.fixture(scope="module", autouse=True)
def counts(request):
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\nchoosing:", "; ".join(f"{count:,} {what}" for what, count in sorted(TRIED.items())) or "nothing tried")


# Few distinct scores make ties and thresholds hit exactly; the others make sure that nothing depends on the grid.
SCORES = st.sampled_from([0, 65, 69.9999, 70, 70.0, 85, 85.0, 100]) | st.floats(0, 100).map(lambda score: round(score, 4))
BAD_SCORES = st.sampled_from([None, math.nan, math.inf, -math.inf, -1, 100.5, True, 10**400])
STATUSES = ("generator_failed", "generator_timeout", "interrupted", "validator_broken", "scorer_broken", "invalid_score")
VERIFICATIONS = st.sampled_from(["passed", "failed", "skipped"])


OK = st.just("ok")


def views_of(numbers, *, scores: Any = SCORES, statuses: Any = OK):
    return st.builds(IterationView, number=numbers, score=scores, verification=VERIFICATIONS, status=statuses)


NUMBERS = st.integers(0, 30)
VALID = views_of(NUMBERS)
INVALID = views_of(NUMBERS, scores=BAD_SCORES) | views_of(NUMBERS, statuses=st.sampled_from(STATUSES))


def number_of(view):
    return view.number


LISTS = st.lists(VALID | INVALID, max_size=9, unique_by=number_of)
VALID_LISTS = st.lists(VALID, min_size=1, max_size=9, unique_by=number_of)
CRITERIA = st.builds(
    SelectionCriteria,
    mode=st.sampled_from(MODES),
    threshold=st.none() | st.sampled_from([0, 65, 70, 70.0, 85, 100]),
    require_verification=st.booleans(),
)


def chosen_or_none(views, criteria):
    try:
        return choose(views, criteria)
    except NothingEvaluatedError:
        return None


# ------------------------------------------------------------------------------------------------ slow references


def rules_of(criteria):
    """The rules of a mode, in the order in which they are given up, each as a literal filter."""
    rules = {
        "threshold": lambda view: view.score >= criteria.threshold,
        "verification": lambda view: view.verification == "passed",
    }
    wanted = {
        "highest_quality": ["threshold"],
        "highest_quality_verified": ["threshold", "verification"],
        "most_recent_above_threshold": ["verification", "threshold"] if criteria.require_verification else ["threshold"],
    }[criteria.mode]
    return [(name, rules[name]) for name in wanted if name != "threshold" or criteria.threshold is not None]


def literal_choice(views, criteria):
    """Filter by every rule; while nothing is left, give up the next rule and filter all again: (view, given up), or None."""
    usable = [view for view in sorted(views, key=number_of) if view.status == "ok" and is_score(view.score)]
    rules = rules_of(criteria)
    given_up = []
    while usable:
        left = [view for view in usable if all(rule(view) for _, rule in rules)]
        if left:
            return pick(left, criteria.mode), given_up
        given_up.append(rules.pop(0)[0])
    return None


def is_score(value):
    return type(value) in {int, float} and 0 <= value <= 100  # NaN is not


def pick(left, mode):
    best = left[0]
    for view in left[1:]:
        if mode == "most_recent_above_threshold" or view.score > best.score:
            best = view
    return best


def original_choice(views, criteria):
    """The original tracker as its page describes it: one joint filter, all iterations when it leaves none, then the mode."""
    usable = sorted(views, key=number_of)
    left = [view for view in usable if view.score >= criteria.threshold]
    if criteria.require_verification:
        left = [view for view in left if view.verification == "passed"]
    left = left or usable
    if criteria.mode == "highest_quality":
        best, words = pick(left, criteria.mode), "Highest quality score"
    elif criteria.mode == "highest_quality_verified":
        verified = [view for view in left if view.verification == "passed"]
        best = pick(verified or left, criteria.mode)
        words = "Highest verified quality" if verified else "Highest quality (no verified iterations)"
    else:
        best, words = left[-1], f"Most recent above threshold ({criteria.threshold}%)"
    final = usable[-1]
    return {
        "selected_iteration": best.number,
        "quality_score": best.score,
        "reason": f"{words}: {best.score}%",
        "final_iteration": final.number,
        "final_quality": final.score,
        "degradation_detected": best.number != final.number and best.score > final.score,
    }


def check_against_literal(views, criteria):
    expected = literal_choice(views, criteria)
    found = chosen_or_none(views, criteria)
    if expected is None:
        assert found is None
        return
    assert found is not None
    view, given_up = expected
    assert (view.number, ", ".join(given_up) or None) == (found.selected_iteration, found.fallback)
    assert (view.score, type(view.score)) == (found.quality_score, type(found.quality_score))
    second = literal_choice([other for other in views if other is not view], criteria)
    assert (None if second is None else second[0].number) == found.runner_up
    assert (None if second is None else round(view.score - second[0].score, 4)) == found.margin
    assert found.meets_threshold == (None if criteria.threshold is None else not given_up)


@settings(max_examples=MANY)
@given(views=LISTS, criteria=CRITERIA)
def test_the_leader_is_the_first_one_and_that_of_the_earlier_leader_and_what_came_since(views, criteria):
    expected = ordered(views, criteria)[0] if ordered(views, criteria) else None
    if criteria.mode == "most_recent_above_threshold":
        expected = running_best(views)
    step: IterationView | None = None
    for view in views:
        step = leader((view,) if step is None else (step, view), criteria)
    assert leader(views, criteria) == expected == step
    TRIED["leaders"] += 1


@given(views=LISTS, criteria=CRITERIA)
def test_choice_fallback_runner_up_and_margin_against_filters_rule_by_rule(views, criteria):
    TRIED["random lists against literal filters"] += 1
    check_against_literal(views, criteria)


KINDS: list[tuple[Any, Any]] = [(score, verification) for score in (65, 70, 85) for verification in ("passed", "skipped")] + [
    (None, "passed")
]
ALL_CRITERIA = [
    SelectionCriteria(mode=mode, threshold=threshold, require_verification=require)
    for mode in MODES
    for threshold in (None, 70)
    for require in (True, False)
]


def test_every_short_list_against_filters_rule_by_rule():
    for length in range(5):
        for kinds in itertools.product(KINDS, repeat=length):
            views = [IterationView(number=n, score=score, verification=verdict) for n, (score, verdict) in enumerate(kinds)]
            TRIED["short lists, all of them, under each of 12 criteria"] += 1
            for criteria in ALL_CRITERIA:
                check_against_literal(views, criteria)
    assert TRIED["short lists, all of them, under each of 12 criteria"] == sum(len(KINDS) ** length for length in range(5))


def agrees_with_the_original(criteria, views):
    """Where this program chooses as the original did; elsewhere the mode decides about verification, which it did not there."""
    same_wish = criteria.require_verification == (criteria.mode == "highest_quality_verified")
    joint = [view for view in views if view.score >= criteria.threshold and view.verification == "passed"]
    return same_wish or (criteria.mode == "most_recent_above_threshold" and bool(joint))


@settings(max_examples=MANY)
@given(
    views=st.lists(views_of(st.integers(1, 30), scores=st.integers(60, 90)), min_size=1, max_size=9, unique_by=number_of),
    criteria=st.builds(
        SelectionCriteria, mode=st.sampled_from(MODES), threshold=st.integers(65, 95), require_verification=st.booleans()
    ),
)
def test_choice_against_the_original_where_both_agree(views, criteria):
    assume(agrees_with_the_original(criteria, views))
    TRIED["random lists against the original"] += 1
    expected = original_choice(views, criteria)
    result = choose(views, criteria)
    found = {name: getattr(result, name) for name in expected}
    if result.fallback is not None:  # the original kept silent about it
        del expected["reason"], found["reason"]
    assert expected == found


# ------------------------------------------------------------------------------------------------ properties


@given(views=LISTS, criteria=CRITERIA, data=st.data())
def test_the_order_of_input_never_matters(views, criteria, data):
    shuffled = data.draw(st.permutations(views))
    assert ordered(views, criteria) == ordered(shuffled, criteria)
    assert chosen_or_none(views, criteria) == chosen_or_none(shuffled, criteria)
    assert running_best(views) == running_best(shuffled)


@given(views=LISTS, criteria=CRITERIA)
def test_ordered_holds_exactly_the_valid_ones_and_begins_with_the_chosen(views, criteria):
    found = ordered(views, criteria)
    assert sorted(view.number for view in views if invalid_reason(view) is None) == sorted(view.number for view in found)
    result = chosen_or_none(views, criteria)
    assert [view.number for view in found[:2]] == [
        number for number in ((result.selected_iteration, result.runner_up) if result else ()) if number is not None
    ]


@given(trio=st.lists(VALID, min_size=3, max_size=3, unique_by=number_of), criteria=CRITERIA)
def test_the_order_is_total_antisymmetric_and_transitive(trio, criteria):
    def before(one, other):
        return ordered([one, other], criteria)[0] is one

    for one, other in itertools.permutations(trio, 2):
        assert before(one, other) != before(other, one)
    for one, two, three in itertools.permutations(trio):
        assert not (before(one, two) and before(two, three)) or before(one, three)


@given(views=VALID_LISTS, criteria=CRITERIA)
def test_pairs_stand_in_a_long_list_as_they_stand_alone(views, criteria):
    for one, other in itertools.combinations(ordered(views, criteria), 2):
        assert (one, other) == ordered([other, one], criteria)


@given(views=VALID_LISTS, bad=INVALID, criteria=CRITERIA)
def test_an_invalid_iteration_changes_nothing_but_what_is_final(views, bad, criteria):
    assume(all(bad.number != view.number for view in views))
    without, result = choose(views, criteria), choose([*views, bad], criteria)
    if bad.number > max(view.number for view in views):
        assert (bad.number, None, False) == (result.final_iteration, result.final_quality, result.degradation_detected)
    about_final = {
        "final_iteration": without.final_iteration,
        "final_quality": without.final_quality,
        "degradation_detected": without.degradation_detected,
    }
    expected = without if bad.number < without.final_iteration else replace(result, **about_final)
    assert expected == (result if bad.number < without.final_iteration else without)
    assert running_best(views) == running_best([*views, bad])


@given(views=VALID_LISTS, criteria=CRITERIA, rise=st.floats(0, 100))
def test_raising_the_chosen_ones_score_keeps_it_chosen_in_the_quality_modes(views, criteria, rise):
    assume(criteria.mode != "most_recent_above_threshold")
    chosen = choose(views, criteria).selected_iteration
    raised = [replace(view, score=min(100, view.score + rise)) if view.number == chosen else view for view in views]
    assert chosen == choose(raised, criteria).selected_iteration


@given(views=VALID_LISTS, criteria=CRITERIA)
def test_fallback_is_none_exactly_when_the_chosen_one_satisfies_every_rule(views, criteria):
    result = choose(views, criteria)
    chosen = next(view for view in views if view.number == result.selected_iteration)
    satisfied = all(rule(chosen) for _, rule in rules_of(criteria))
    assert satisfied == (result.fallback is None)
    if any(all(rule(view) for _, rule in rules_of(criteria)) for view in views):
        assert satisfied


@given(views=VALID_LISTS, criteria=CRITERIA)
def test_sign_of_the_margin(views, criteria):
    result = choose(views, criteria)
    assert (result.margin is None) == (result.runner_up is None) == (len(views) == 1)
    if result.margin is None:
        return
    by_number = {view.number: view for view in views}
    chosen, second = by_number[result.selected_iteration], by_number[result.runner_up]
    assert round(chosen.score - second.score, 4) == result.margin
    if criteria.mode == "highest_quality":
        assert result.margin >= 0
    if criteria.mode == "highest_quality_verified" and result.margin < 0:
        assert (chosen.verification, second.verification != "passed") == ("passed", True)


@given(views=VALID_LISTS, criteria=CRITERIA)
def test_never_below_the_start_but_where_the_rules_ask_for_it(views, criteria):
    result = choose(views, criteria)
    start = next((view for view in views if view.number == 0), None)
    assert result.below_start == (start is not None and result.quality_score < start.score)
    if criteria.mode == "highest_quality":
        assert not result.below_start
    if criteria.mode == "highest_quality_verified" and result.below_start:
        assert start is not None
        assert start.verification != "passed"


@given(views=LISTS)
def test_running_best_is_the_first_of_the_highest(views):
    best = None
    for view in sorted(views, key=number_of):
        if invalid_reason(view) is None and (best is None or view.score > best.score):
            best = view
    assert best == running_best(views)


@given(views=VALID_LISTS)
def test_with_everything_verified_and_no_threshold_the_chosen_one_is_the_running_best(views):
    verified = [replace(view, verification="passed") for view in views]
    criteria = SelectionCriteria(threshold=None)
    best = running_best(verified)
    assert best is not None
    assert best.number == choose(verified, criteria).selected_iteration
