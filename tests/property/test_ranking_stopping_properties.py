"""Stopping, for any trajectory: against a slow reference in whole numbers, replayed pass by iteration."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.loop.ranking import detect_diminishing_returns, evaluate_stop
from jumar.model import IterationView, StopRules, TrendRule

MANY = settings.default.max_examples * 5 if settings.default else 300
TRIED = Counter[str]()
FAILING = ("generator_failed", "generator_timeout", "validator_broken", "scorer_broken", "invalid_score")


@pytest.fixture(scope="module", autouse=True)
def counts(request):
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\nstopping:", "; ".join(f"{count:,} {what}" for what, count in sorted(TRIED.items())) or "nothing tried")


@dataclass(frozen=True)
class Pass:
    """One iteration in whole numbers: ``units`` are ten-thousandths of a point, so that the reference has no rounding at all."""

    units: int | None
    status: Any = "ok"
    verification: Any = "skipped"
    completed: bool = False
    tampered: bool = False

    def view(self, number):
        return IterationView(
            number=number,
            score=None if self.units is None else self.units / 10_000,
            status=self.status,
            verification=self.verification,
            completed=self.completed,
            tampered=self.tampered,
        )


def steps_of(scores, window):
    return [scores[place] - scores[place - 1] for place in range(len(scores) - window, len(scores))]


def declines(scores, window, delta):
    return len(scores) > window and all(step < 0 for step in steps_of(scores, window)) and -sum(steps_of(scores, window)) >= delta


def oscillates(scores, window, delta):
    if len(scores) <= window:
        return False
    steps = steps_of(scores, window)
    signs = ["+" if step > 0 else "-" if step < 0 else "0" for step in steps]
    alternating = "".join(signs) in {("+-" * window)[:window], ("-+" * window)[:window]}
    new_best = any(score > max(scores[: len(scores) - window]) for score in scores[len(scores) - window :])
    return alternating and all(abs(step) >= delta for step in steps) and not new_best


def is_flat(scores, window, delta):
    if len(scores) < window:
        return False
    last = scores[len(scores) - window :]
    only_falls = window >= 3 and last == sorted(set(last), reverse=True)
    return all(abs(one - other) <= delta for one in last for other in last) and not only_falls


def diminishes(scores, window, delta):
    return len(scores) > window and all(abs(step) < delta for step in steps_of(scores, window))


def failures_in_a_row(passes):
    """Counted forwards: an iteration with a score starts again at 0, an interrupted one changes nothing."""
    row = 0
    for one in passes:
        if one.status == "ok" and one.units is not None:
            row = 0
        elif one.status != "interrupted":
            row += 1
    return row


def counts_for_target(one, rules):
    """Whether the checks let an iteration reach the target: none refused it, or only the score is asked for, and it is honest."""
    if one.verification != "failed":
        return True
    return rules.target_unverified and not one.tampered


def reference(everything, rules, units, seconds):
    """The reason to stop after ``everything`` (the start first), or None. ``units`` has target and deltas in ten-thousandths."""
    passes = everything[1:]
    scored = [one for one in everything if one.status == "ok" and one.units is not None]
    scores = [one.units for one in scored]
    last = passes[-1] if passes else None
    target = units["target"]
    reached = target is None or (last is not None and last.units is not None and last.units >= target)
    agreed = last is not None and (last.verification == "passed" or (last.verification == "skipped" and target is not None))
    holds = {
        "completed": last in scored and last is not None and last.completed and agreed and reached,
        "target": target is not None and any(one.units >= target and counts_for_target(one, rules) for one in scored),
        "consecutive_failures": failures_in_a_row(passes) >= rules.consecutive_failures,
        "max_iterations": len(passes) >= rules.max_iterations,
        "max_seconds": rules.max_seconds is not None and seconds >= rules.max_seconds,
    }
    trends = {"decline": declines, "oscillation": oscillates, "plateau": is_flat, "diminishing_returns": diminishes}
    for name, holds_for in trends.items():
        rule = getattr(rules, name)
        holds[name] = rule is not None and holds_for(scores, rule.window, units[name])
    return next((name for name, held in holds.items() if held), None)


def replay(everything, rules, units, times):
    """Stop where the loop would have stopped, pass by iteration; both must agree at each iteration."""
    for length in range(1, len(everything) + 1):
        views = [one.view(number) for number, one in enumerate(everything[:length])]
        seconds = sum(times[: length - 1])
        decision = evaluate_stop(views, rules, seconds=seconds)
        expected = reference(everything[:length], rules, units, seconds)
        assert expected == (decision.reason if decision else None), f"after {length - 1} passes"
        if decision is not None:
            assert decision.detail
            return length
    return None


# A narrow band with repeated values makes plateaus and swings; the deltas below lie on the same grid, so limits are hit exactly.
UNITS = st.sampled_from([600_000, 610_000, 620_000, 660_000, 612_000, 662_000]) | st.integers(590_000, 670_000)
PASSES = st.one_of(
    st.builds(Pass, UNITS, verification=st.sampled_from(["passed", "failed", "skipped"]), completed=st.booleans()),
    st.builds(Pass, UNITS, verification=st.just("failed"), tampered=st.booleans()),
    st.builds(Pass, UNITS),
    st.builds(Pass, UNITS),
    st.builds(Pass, st.none(), st.sampled_from([*FAILING, "interrupted"])),
)
DELTAS = st.sampled_from([0, 10_000, 20_000, 50_000]) | st.integers(0, 80_000)


@st.composite
def rules_and_units(draw):
    units, trends = {}, {}
    for name, least in (("decline", 1), ("oscillation", 2), ("plateau", 2), ("diminishing_returns", 1)):
        if draw(st.booleans()):
            units[name] = draw(DELTAS)
            trends[name] = TrendRule(window=draw(st.integers(least, 5)), delta=units[name] / 10_000)
    units["target"] = draw(st.none() | st.sampled_from([660_000, 662_000]))
    rules = StopRules(
        target=None if units["target"] is None else units["target"] / 10_000,
        target_unverified=draw(st.booleans()),
        max_iterations=draw(st.integers(3, 20)),
        max_seconds=draw(st.none() | st.integers(1, 40)),
        consecutive_failures=draw(st.integers(1, 4)),
        **trends,
    )
    return rules, units


@settings(max_examples=MANY)
@given(
    everything=st.lists(PASSES, min_size=1, max_size=14),
    drawn=rules_and_units(),
    times=st.lists(st.integers(0, 9), min_size=14, max_size=14),
)
def test_every_prefix_of_a_random_loop_against_the_reference(everything, drawn, times):
    TRIED["random loops, replayed pass by iteration"] += 1
    rules, units = drawn
    replay(everything, rules, units, times)


RULES = {
    "decline": [(1, 0), (2, 0), (2, 30_000), (3, 0)],
    "oscillation": [(2, 0), (2, 10_000), (3, 10_000), (3, 40_000)],
    "plateau": [(2, 0), (2, 50_000), (3, 20_000), (4, 50_000)],
    "diminishing_returns": [(1, 20_000), (2, 50_000), (3, 50_000), (2, 0)],
}


def test_every_short_trajectory_against_the_reference_under_each_rule():
    kinds = [Pass(600_000), Pass(620_000), Pass(621_000), Pass(700_000)]
    for length in range(1, 7):
        for everything in itertools.product(kinds, repeat=length):
            TRIED["short trajectories, all of them, under each of 16 rules"] += 1
            views = [one.view(number) for number, one in enumerate(everything)]
            for name, settings_of in RULES.items():
                for window, delta in settings_of:
                    rule: dict[str, Any] = {name: TrendRule(window=window, delta=delta / 10_000)}
                    rules = StopRules(consecutive_failures=99, **rule)
                    decision = evaluate_stop(views, rules, seconds=0)
                    expected = reference(everything, rules, {"target": None, name: delta}, 0)
                    assert expected == (decision.reason if decision else None)


@given(everything=st.lists(PASSES, min_size=1, max_size=14), drawn=rules_and_units(), data=st.data())
def test_the_order_of_input_never_matters(everything, drawn, data):
    views = [one.view(number) for number, one in enumerate(everything)]
    rules, _ = drawn
    assert evaluate_stop(views, rules, seconds=3) == evaluate_stop(data.draw(st.permutations(views)), rules, seconds=3)


@given(everything=st.lists(PASSES, min_size=1, max_size=14), drawn=rules_and_units())
def test_iterations_without_a_score_never_bring_a_trend_about_or_hide_one(everything, drawn):
    """What the trend rules say is the same with the failed and interrupted passes taken out."""
    rules = StopRules(
        max_iterations=99,
        consecutive_failures=99,
        **{name: getattr(drawn[0], name) for name in ("decline", "oscillation", "plateau", "diminishing_returns")},
    )
    views = [one.view(number) for number, one in enumerate(everything) if not one.completed]
    assert evaluate_stop(views, rules, seconds=0) == evaluate_stop(
        [view for view in views if view.score is not None], rules, seconds=0
    )


@given(
    units=st.lists(UNITS, min_size=1, max_size=12),
    window=st.integers(1, 4),
    delta=DELTAS,
)
def test_the_diminishing_returns_rule_fires_at_the_first_pass_that_the_detector_would_name(units, window, delta):
    views = [Pass(one).view(number) for number, one in enumerate(units)]
    rules = StopRules(max_iterations=99, diminishing_returns=TrendRule(window=window, delta=delta / 10_000))
    stopped = [n for n in range(1, len(views) + 1) if evaluate_stop(views[:n], rules, seconds=0) is not None]
    detected = detect_diminishing_returns(views, window, delta / 10_000)
    assert detected.detected == bool(stopped)
    if stopped:
        assert views[stopped[0] - window].number == detected.iteration
