"""Mode auto, its arithmetic: intervals that cover, averages that are right, promises that are checked, the same draws."""

from __future__ import annotations

import math
import os
import random
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from learning_kit import MADE, small_proof
from scipy.stats import binom

from jumar.errors import ConfigError, PatternLoadError
from jumar.judging.auto.escalation import (
    AutoRules,
    distrust,
    guarantee,
    guarantee_by_group,
    is_audited,
    outcome,
    plan,
    sealed_check,
)
from jumar.judging.auto.intervals import LEVELS, ConformalIntervals, corrected_average, fit_intervals, intervals_of
from jumar.judging.auto.results import AuditLog, new_audits
from jumar.judging.items.item import Item
from jumar.judging.patterns import PatternSet
from jumar.judging.proofs import audit_evidence

CHANCE = 1e-4
"""How often a correct program fails one of the counts below."""


def generated(draw: np.random.Generator, groups: int, each: int) -> tuple[list[float], list[float], list[str]]:
    """Cheap and expensive scores: errors that groups share, skewed, and larger for higher scores."""
    cheap, judge, names = [], [], []
    for group in range(groups):
        shared = draw.normal(0, 0.3)
        for _ in range(int(draw.integers(1, 2 * each))):
            score = float(draw.uniform(1.5, 4.5))
            error = shared + (0.2 + 0.2 * score) * (float(draw.exponential(1.0)) - 1.0)
            cheap.append(score)
            judge.append(score + error)
            names.append(f"g{group}")
    return cheap, judge, names


@pytest.mark.parametrize("confidence", [0.8, 0.9])
def test_each_end_of_an_interval_holds_for_an_item_of_a_new_group_as_often_as_it_says(confidence: float) -> None:
    draw = np.random.default_rng(7)
    not_below = not_above = sure = 0
    runs = 600
    for _ in range(runs):
        cheap, judge, names = generated(draw, 41, 3)
        new = names.index("g40") + int(draw.integers(0, names.count("g40")))
        known = [place for place, name in enumerate(names) if name != "g40"]
        found = fit_intervals(
            [cheap[at] for at in known], [judge[at] for at in known], [names[at] for at in known], levels=[confidence]
        )
        one = found.bins[next(at for at, each in enumerate(found.bins) if each.up_to is None or cheap[new] <= each.up_to)]
        below, above = one.below[0], one.above[0]
        not_below += below is None or judge[new] >= cheap[new] - below
        not_above += above is None or judge[new] <= cheap[new] + above
        sure += below is not None and above is not None
    print(f"of {runs} at {confidence} {not_below} not below, {not_above} not above, {sure} with finite intervals")

    for inside in (not_below, not_above):
        assert inside >= binom.ppf(CHANCE, runs, confidence)
        assert inside <= binom.ppf(1 - CHANCE, runs, confidence + 1 / 31 + 0.02), "far too wide"
    assert sure == runs


def test_the_half_widths_are_those_of_the_slow_way() -> None:
    draw = np.random.default_rng(3)
    cheap, judge, names = generated(draw, 40, 3)
    found = fit_intervals(cheap, judge, names, most_bins=1)

    sizes = {name: names.count(name) for name in names}
    errors = [one - other for one, other in zip(judge, cheap, strict=True)]
    for place, level in enumerate(LEVELS):
        reach = [
            error
            for error in errors
            if sum(1 / sizes[name] for other, name in zip(errors, names, strict=True) if other <= error) / 41 >= level - 1e-12
        ]
        assert found.bins[0].above[place] == (max(0.0, min(reach)) if reach else None)
    assert None not in found.bins[0].above[: LEVELS.index(0.98)]
    assert found.bins[0].above[LEVELS.index(0.98)] is None  # forty groups do not bound what one of fifty does


def test_bins_have_enough_groups_and_small_sets_have_one() -> None:
    draw = np.random.default_rng(3)
    many = fit_intervals(*generated(draw, 300, 3))
    few = fit_intervals(*generated(draw, 25, 3))
    alone = fit_intervals([3.0, 3.0], [2.0, 4.0], [None, None])

    assert len(many.bins) == 5
    assert min(one.groups for one in many.bins) >= 30
    assert len(few.bins) == 1
    assert alone.at(3.0, 0.9) == (1.0, 5.0)  # of two items nothing is known at 90 %
    with pytest.raises(ValueError, match="no errors"):
        fit_intervals([], [], [])


def test_intervals_are_read_from_a_set_or_named_as_damaged() -> None:
    found = fit_intervals(*generated(np.random.default_rng(1), 60, 3))
    card: dict[str, Any] = {
        "kind": "scorecard",
        "base": 3.0,
        "unit": 1.0,
        "curve": {"x": [1, 5], "y": [1, 5]},
        "interval": found.model_dump(mode="json"),
    }

    assert intervals_of(PatternSet(version="2.0", patterns=[], calibration=card)) == found
    assert intervals_of(PatternSet(version="2.0", patterns=[])) is None
    broken = {**card, "interval": {**card["interval"], "levels": [0.9, 0.5]}}
    with pytest.raises(PatternLoadError, match=r"calibration\.interval.*levels must increase"):
        intervals_of(PatternSet(version="2.0", patterns=[], calibration=broken))


WIDE = ConformalIntervals.model_validate(
    {
        "levels": [0.9],
        "bins": [{"up_to": None, "items": 9, "groups": 9, "below": [0.5], "above": [0.25]}],
    }
)


def test_what_crosses_the_line_is_escalated_and_nothing_else() -> None:
    rules = AutoRules(line=3.5, audit=0.0)
    scores = [("low", 3.2), ("edge", 3.25), ("mid", 3.5), ("top", 4.0), ("over", 4.1), ("none", None)]
    found = {one.id: one.why for one in plan(scores, WIDE, rules)}

    assert found == {
        "low": "certain",
        "edge": "uncertain",
        "mid": "uncertain",
        "top": "certain",
        "over": "certain",
        "none": "abstained",
    }
    assert {one.why for one in plan(scores[:-1], WIDE, rules, trusted=False)} == {"not_trusted"}
    assert {one.why for one in plan(scores[:-1], None, rules)} == {"not_trusted"}


@pytest.mark.parametrize(
    "wrong", [{"line": 0.5}, {"line": math.nan}, {"line": 3, "confidence": 0.999}, {"line": 3, "audit": 1.5}]
)
def test_rules_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="should be"):
        AutoRules(**wrong)


def test_audits_are_drawn_by_seed_and_id_at_the_rate_that_was_asked_for() -> None:
    names = [f"item-{number}" for number in range(20_000)]
    drawn = {name for name in names if is_audited(name, share=0.05, seed=1)}
    print(f"{len(drawn)} of {len(names)} drawn")

    assert drawn == {name for name in reversed(names) if is_audited(name, share=0.05, seed=1)}
    assert binom.ppf(CHANCE, 20_000, 0.05) <= len(drawn) <= binom.ppf(1 - CHANCE, 20_000, 0.05)
    assert drawn <= {name for name in names if is_audited(name, share=0.2, seed=1)}
    assert len(drawn & {name for name in names if is_audited(name, share=0.05, seed=2)}) < 0.2 * len(drawn)


def test_the_corrected_average_is_unbiased_and_its_interval_covers_though_the_cheap_judge_is_not() -> None:
    draw = np.random.default_rng(5)
    runs, truth = 500, 3.0
    estimates, covered, plain = [], 0, []
    for _ in range(runs):
        cheap, judge, chances, names = [], [], [], []
        for group in range(60):
            level = truth + draw.normal(0, 0.3)
            for _ in range(4):
                score = level + draw.normal(0, 0.5)
                guess = score + 0.4 + draw.normal(0, 0.3)  # too high by 0.4
                chance = 1.0 if abs(guess - 3.5) < 0.5 else 0.25
                cheap.append(float(guess))
                judge.append(float(score) if draw.random() < chance else None)
                chances.append(chance)
                names.append(f"g{group}")
        found = corrected_average(cheap, judge, chances, names)
        assert found is not None
        assert found.interval is not None
        estimates.append(found.estimate)
        plain.append(found.cheap)
        covered += found.interval[0] <= truth <= found.interval[1]
    error = float(np.std(estimates)) / math.sqrt(runs)
    print(f"mean of estimates {np.mean(estimates):.4f} ± {error:.4f}, of plain averages {np.mean(plain):.3f}; {covered} cover")

    assert abs(np.mean(estimates) - truth) < 4 * error
    assert np.mean(plain) > truth + 0.3
    assert binom.ppf(CHANCE, runs, 0.94) <= covered <= binom.ppf(1 - CHANCE, runs, 0.97)


def test_the_average_says_what_it_cannot_know() -> None:
    whole = corrected_average([2.0, 3.0], [2.5, 3.5], [1.0, 1.0], [None, None])
    none = corrected_average([2.0, 3.0, 4.0], [None, None, None], [0.1, 0.1, 0.1], ["a", "b", "c"])

    assert whole is not None
    assert whole.estimate == 3.0
    assert whole.interval is not None
    assert none is not None
    assert (none.estimate, none.interval) == (3.0, None)
    assert corrected_average([], [], [], []) is None
    with pytest.raises(ValueError, match="has to be judged"):
        corrected_average([None], [None], [1.0], [None])


def test_a_promise_is_held_broken_or_unknown() -> None:
    assert guarantee(0, 0, 0.1).held is None
    assert guarantee(0, 28, 0.1).held is None
    assert guarantee(0, 29, 0.1).held is True  # 0.9 ** 29 is below 5 %
    assert guarantee(3, 5, 0.1).held is False
    assert (guarantee(5, 5, 0.1).upper, guarantee(0, 5, 0.1).lower) == (1.0, 0.0)
    broken = sum(guarantee(int(wrong), 60, 0.1).held is False for wrong in np.random.default_rng(2).binomial(60, 0.1, 2000))
    print(f"{broken} of 2000 promises that are just kept are called broken")
    assert broken <= binom.ppf(1 - CHANCE, 2000, 0.05)


@pytest.mark.sweep
@pytest.mark.parametrize(("groups", "each", "shared"), [(24, 7, 0.0), (24, 7, 0.5), (24, 7, 1.0), (60, 3, 1.0), (13, 8, 0.5)])
def test_a_promise_of_sealed_groups_is_called_broken_or_held_as_rarely_as_it_says(groups: int, each: int, shared: float) -> None:
    """The share of wrong decisions is the one that is promised, and those of a group are wrong together."""
    draw = np.random.default_rng(29)
    runs = 3_000 if os.environ.get("JUMAR_SWEEP") == "full" else 300
    names = [f"g{place // each}" for place in range(groups * each)]
    broken = held = broken_by_item = found = 0
    for _ in range(runs):
        of_group = np.repeat(draw.random(groups) < 0.2, each)
        wrong = np.where(draw.random(len(names)) < shared, of_group, draw.random(len(names)) < 0.2).tolist()
        one = guarantee_by_group(wrong, names, 0.2)
        broken += one.held is False
        held += one.upper < 0.2
        broken_by_item += guarantee(sum(wrong), len(wrong), 0.2).held is False
        found += guarantee_by_group(wrong, names, 0.05).held is False
    print(f"of {runs}: {broken} broken, by items {broken_by_item}; {held} below; {found} found where a quarter is promised")

    assert max(broken, held) <= binom.ppf(1 - CHANCE, runs, 0.05)
    assert found >= (0.7 if groups > 13 else 0.5) * runs


def test_groups_by_themselves_are_bounded_exactly_and_larger_ones_more_widely() -> None:
    wrong = [True, True, *[False] * 28]
    alone = guarantee(2, 30, 0.1)
    assert guarantee_by_group(wrong, [None] * 30, 0.1) == guarantee_by_group(wrong, [str(one) for one in range(30)], 0.1) == alone
    pairs = guarantee_by_group(wrong, [str(one // 2) for one in range(30)], 0.1)
    assert (pairs.wrong, pairs.audited, pairs.share) == (2, 30, 2 / 30)
    assert pairs.lower < alone.lower < alone.upper < pairs.upper
    assert pairs.upper == pytest.approx(guarantee(1, 15, 0.1).upper)
    assert guarantee_by_group([False] * 30, [str(one // 2) for one in range(30)], 0.2) == guarantee_by_group(
        [False] * 30, [str(one % 15) for one in range(30)], 0.2
    )
    assert guarantee_by_group([], [], 0.1) == guarantee(0, 0, 0.1)
    one_group = guarantee_by_group(wrong, ["g"] * 30, 0.1)
    assert one_group.held is None
    assert guarantee_by_group([True] * 30, ["g"] * 30, 0.1).upper == 1.0


def test_the_promise_of_audits_is_about_these_decisions_in_whatever_groups_they_are_wrong() -> None:
    """Each decision is drawn by itself, so that the bounds hold for the share of these decisions."""
    draw = np.random.default_rng(30)
    runs = 1_000
    wrong = np.repeat(np.arange(40) < 4, 10)  # a tenth of the groups, wholly
    above = below = 0
    for _ in range(runs):
        drawn = draw.random(400) < 0.1
        found = guarantee(int((wrong & drawn).sum()), int(drawn.sum()), 0.1)
        above += found.upper < 0.1
        below += found.lower > 0.1
    print(f"of {runs}: {above} upper and {below} lower bounds on the wrong side")

    assert max(above, below) <= binom.ppf(1 - CHANCE, runs, 0.05)


def test_what_becomes_of_the_items() -> None:
    rules = AutoRules(line=3.5, audit=0.4, seed=0)
    scores = [(f"i{number}", 1.5 + number % 7 / 2) for number in range(70)] + [("none", None)]
    planned = plan(scores, WIDE, rules)
    judged = {one.id: 4.4 for one in planned if one.asked and one.id not in {"none", "i4"}}
    found = outcome(planned, judged, [None] * len(planned), rules)

    by_id = {one.id: one for one in found.items}
    assert found.cheaply + found.audited + found.escalated + found.undecided == 71
    assert {one.id for one in found.items if one.judge is None} == {"none", "i4"}  # asked, and not answered
    assert all((one.judge == "expensive") == (one.id in judged) for one in found.items if one.judge is not None)
    assert all(one.score == 4.4 for one in found.items if one.judge == "expensive")
    low = [one for one in planned if not one.escalated and one.drawn and (one.cheap or 0) < 3.5]
    assert found.guarantee.wrong == len(low) == sum(one.wrong is True for one in found.items) > 0
    assert found.guarantee.audited == found.audited == len(found.errors)
    assert by_id["i0"].interval == (1.0, 1.75)
    whole = outcome(planned, {one.id: 2.0 for one in planned}, [None] * 71, rules, rest_asked=True)
    assert (whole.cheaply, whole.undecided) == (0, 0)
    assert {one.why for one in whole.items} == {"uncertain", "audited", "abstained", "audits_failed"}


def test_evidence_of_audits_keeps_its_level_and_finds_what_has_changed() -> None:
    draw = random.Random(4)
    false = found = 0
    runs = 400
    for _ in range(runs):
        known = [abs(draw.gauss(0, 0.5)) for _ in range(60)]
        audits = [(3.0, 3.0 + draw.gauss(0, 0.5)) for _ in range(300)]
        false += audit_evidence(known, audits) >= 100
        found += audit_evidence(known, [(3.0, 3.0 + draw.gauss(0, 1.0)) for _ in range(100)]) >= 100
    print(f"evidence of 100 in {false} of {runs} runs where nothing changed, in {found} where errors doubled")

    assert false <= binom.ppf(1 - CHANCE, runs, 0.01)
    assert found >= 0.75 * runs  # of so few audits, with so few held-out items


def test_trust_needs_tracks_freshness_and_sealed_decisions_that_hold() -> None:
    proof, targets, _ = small_proof()
    intervals = fit_intervals(
        [row.cheap for row in proof.rows], [row.score for row in proof.rows], [row.group for row in proof.rows]
    )
    check = sealed_check(proof, intervals, AutoRules(line=3.5))
    narrow = WIDE.model_copy(update={"bins": (WIDE.bins[0].model_copy(update={"below": (0.0,), "above": (0.0,)}),)})
    middle = sorted(row.score for row in proof.rows)[len(proof.rows) // 2]
    bad = sealed_check(proof, narrow, AutoRules(line=middle))

    assert check.items == len(proof.rows)
    assert check.decisions.audited == check.items - check.escalated
    assert distrust(proof, MADE, check=check) == ([] if proof.verdict == "tracks" else [distrust(proof, MADE)[0]])
    assert any("stale" in one for one in distrust(proof, MADE + timedelta(days=400)))
    assert any("stale" in one for one in distrust(proof, MADE, audits=[(1.0, 5.0)] * 60))
    assert any("'fails'" in one for one in distrust(proof.model_copy(update={"verdict": "fails"}), MADE))
    if bad.decisions.held is False:
        assert any("wrong side" in one for one in distrust(proof, MADE, check=bad))
    assert len(targets) > len(proof.rows)


def test_audits_are_a_sample_of_all_items_escalated_or_not_and_an_item_again_is_no_new_one() -> None:
    rules = AutoRules(line=3.5, audit=0.3, seed=3)
    items = [Item(f"i{number}", f"text {number}") for number in range(200)]
    planned = plan([(item.id, 1.5 + number % 7 / 2) for number, item in enumerate(items)], WIDE, rules)
    log = AuditLog(patterns="p").added(new_audits(items, planned, {one.id: 3.0 for one in planned if one.asked}, "p"))

    assert len(log.pairs) == sum(one.drawn for one in planned)
    assert {cheap for cheap, _ in log.pairs} == {1.5 + step / 2 for step in range(7)}
    assert log.added(log.audits) == log
    assert AuditLog(log.audits, "another set").pairs == []
