"""Degradation, for any trajectory: against a slow reference in whole numbers that looks at every iteration by itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.loop.ranking import PATTERNS, detect_degradation, detect_diminishing_returns, likely_causes, running_best
from jumar.loop.ranking.degradation import Chance, Errors
from jumar.model import IterationView

MANY = settings.default.max_examples * 5 if settings.default else 300
TRIED = Counter[str]()


@pytest.fixture(scope="module", autouse=True)
def counts(request):
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\ndegradation:", "; ".join(f"{count:,} {what}" for what, count in sorted(TRIED.items())) or "nothing tried")


TENTHS = st.sampled_from([800, 850, 855, 800, 799, 612, 662]) | st.integers(600, 900)
DIMENSIONS = st.dictionaries(
    st.sampled_from(["completeness", "efficiency", "readability", "tone"]), st.sampled_from([0.2, 0.5, 0.505, 0.51, 0.9])
)
VIEWS = st.builds(
    lambda number, tenths, verification, failed, status, dimensions: IterationView(
        number=number,
        score=None if tenths is None or status != "ok" else tenths / 10,
        verification=verification,
        failed_checks=failed,
        status=status,
        dimensions=dimensions,
    ),
    st.integers(0, 40),
    TENTHS | st.none(),
    st.sampled_from(["passed", "failed", "skipped"]),
    st.none() | st.integers(0, 2),
    st.sampled_from(["ok", "ok", "ok", "ok", "scorer_broken", "validator_broken", "generator_failed"]),
    DIMENSIONS,
)
ERRORS = st.dictionaries(st.integers(0, 40), st.sampled_from([10, 21, 400]))
LISTS = st.lists(VIEWS, max_size=10, unique_by=lambda view: view.number)


def tenths(view) -> Any:
    return None if view.score is None else round(view.score * 10)


def moved(before, after, errors) -> bool:
    """Whether the fall is more than two standard errors of it; ``errors`` are in tenths."""
    error = (errors.get(before.number, 0) ** 2 + errors.get(after.number, 0) ** 2) ** 0.5
    return tenths(before) - tenths(after) > 2 * error


def fires(history, place, drop, consecutive, errors):
    """Which triggers fire at ``history[place]``, looked at by itself."""
    found = set()
    view = history[place]
    valid = [one for one in history[: place + 1] if one.score is not None]
    if view.score is not None and len(valid) >= 2:
        if tenths(valid[-2]) - tenths(valid[-1]) > drop and moved(valid[-2], valid[-1], errors):
            found.add("quality_drop")
        falling = [view]
        while len(falling) < len(valid) and tenths(valid[-len(falling) - 1]) > tenths(falling[-1]):
            falling.append(valid[-len(falling) - 1])
        if len(falling) > consecutive and moved(falling[-1], view, errors):
            found.add("consecutive_decreases")
    telling = [
        one
        for one in history[: place + 1]
        if one.status in {"ok", "scorer_broken"} and not (one.failed_checks is None and one.verification == "skipped")
    ]
    if telling and telling[-1] is view and len(telling) >= 2:
        before = telling[-2]
        if None not in {before.failed_checks, view.failed_checks}:
            worse = view.failed_checks > before.failed_checks
        else:
            worse = (before.verification, view.verification) == ("passed", "failed")
        if worse:
            found.add("validation_failures_increased")
    return found


@settings(max_examples=MANY)
@given(views=LISTS, drop=st.integers(0, 80), consecutive=st.integers(1, 4), errors=st.just({}) | ERRORS)
def test_triggers_iterations_and_causes_against_the_reference(views, drop, consecutive, errors):
    TRIED["random lists"] += 1
    history = sorted(views, key=lambda view: view.number)
    fired = {view.number: fires(history, place, drop, consecutive, errors) for place, view in enumerate(history)}
    numbers = [number for number, triggers in fired.items() if triggers]
    chance = Chance(errors={number: Errors(error / 10, {}) for number, error in errors.items()})
    found = detect_degradation(views, drop=drop / 10, consecutive=consecutive, chance=chance)
    assert (bool(numbers), tuple(numbers)) == (found.detected, found.iterations)
    assert set().union(*fired.values()) == set(found.triggers)
    best = running_best([view for view in history if numbers and view.number < numbers[0]])
    assert (best.number if best else None) == found.best_before
    assert (best is not None) == ("preserve_pre_degradation_best" in found.actions)
    causes = set()
    for number in numbers:
        until = [view for view in history if view.number <= number]
        lead = running_best(until[:-1])
        if lead is not None and until[-1].score is not None:
            causes |= {cause.pattern for cause in likely_causes(until, lead.number, chance=chance)}
    assert tuple(pattern for pattern in PATTERNS if pattern in causes) == found.causes


@given(views=LISTS, data=st.data())
def test_the_order_of_input_never_matters(views, data):
    shuffled = data.draw(st.permutations(views))
    assert detect_degradation(views) == detect_degradation(shuffled)
    assert detect_diminishing_returns(views) == detect_diminishing_returns(shuffled)
    for view in views:
        assert likely_causes(views, view.number) == likely_causes(shuffled, view.number)


@given(views=LISTS)
def test_rising_scores_and_falling_failures_are_never_degradation(views):
    history = sorted(views, key=lambda view: view.number)
    rising = [
        IterationView(number=view.number, score=min(100, 50 + place), failed_checks=max(0, 20 - place), verification="failed")
        for place, view in enumerate(history)
    ]
    assert not detect_degradation(rising).detected


@settings(max_examples=MANY)
@given(scores=st.lists(st.none() | TENTHS, max_size=12), streak=st.integers(1, 4), delta=st.integers(0, 80))
def test_diminishing_returns_against_looking_at_every_window(scores, streak, delta):
    TRIED["random trajectories for diminishing returns"] += 1
    views = [IterationView(number=n, score=None if one is None else one / 10) for n, one in enumerate(scores, 1)]
    expected = None
    for first in range(1, len(scores) - streak + 1):
        window = scores[first - 1 : first + streak]
        if None not in window and all(abs(window[n + 1] - window[n]) < delta for n in range(streak)):
            expected = views[first].number
            break
    found = detect_diminishing_returns(views, streak, delta / 10)
    assert (expected is not None, expected) == (found.detected, found.iteration)


@given(views=LISTS, data=st.data())
def test_every_cause_brings_evidence_and_a_way_out(views, data):
    if not views:
        return
    best = data.draw(st.sampled_from(views)).number
    for cause in likely_causes(views, best):
        assert (cause.meaning, cause.mitigation) == PATTERNS[cause.pattern]
        assert f"iteration {best}" in cause.evidence or f"iterations {best} and" in cause.evidence
