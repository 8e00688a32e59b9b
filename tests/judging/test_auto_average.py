"""The interval of the corrected average: how often it covers, whatever the cheap judge's errors are like.

``JUMAR_SWEEP=full`` runs ten times as many.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from jumar.judging.auto.intervals import FEWEST_AUDITS, CorrectedAverage, corrected_average

FULL = os.environ.get("JUMAR_SWEEP") == "full"
CHANCE: Final = 1e-4
"""How often a correct program fails one of the counts below."""

Floats = NDArray[np.floating[Any]]
Errors = Callable[[np.random.Generator, int, int], Floats]


def rare(share: float, size: float) -> Errors:
    """Nothing but a ``share`` of items whose cheap score is wrong by ``size``."""
    return lambda draw, groups, each: (draw.random(groups * each) < share) * size


def rare_groups(share: float, size: float) -> Errors:
    return lambda draw, groups, each: np.repeat((draw.random(groups) < share) * size, each)


def normal(middle: float) -> Errors:
    return lambda draw, groups, each: draw.normal(middle, 0.4, groups * each)


def evaluated(
    draw: np.random.Generator, groups: int, each: int, audit: float, error: Errors, *, level: float = 3.5, escalated: float = 0.0
) -> tuple[float, CorrectedAverage]:
    """Return the judge's average over the items, and what mode auto makes of a few audits."""
    of_group = np.repeat(draw.normal(0, 0.3 * (each > 1), groups), each)
    judge = np.clip(level + of_group + draw.normal(0, 0.6, groups * each), 1, 5)
    cheap = np.clip(judge + error(draw, groups, each), 1, 5)
    chances = np.where(draw.random(len(judge)) < escalated, 1.0, audit)
    asked = draw.random(len(judge)) < chances
    names = [f"g{place // each}" if each > 1 else None for place in range(len(judge))]
    said = [float(one) if known else None for one, known in zip(judge, asked, strict=True)]
    found = corrected_average(cheap.tolist(), said, chances.tolist(), names)
    assert found is not None
    return float(judge.mean()), found


CASES: Final = [
    *((f"rare {share:.0%} −2.5, {items} items, audit {audit:.0%}", items, 1, audit, rare(share, -2.5), 3.5)
      for items, audit in ((400, 0.05), (1000, 0.05), (200, 0.1)) for share in (0.03, 0.04, 0.08, 0.12, 0.2)),
    *((f"rare {share:.0%} +3.9 where most are near 1, 400 items, audit 5%", 400, 1, 0.05, rare(share, 3.9), 1.3)
      for share in (0.03, 0.06, 0.1, 0.15)),
    ("rare 10% +3.9 where most are near 1, 1000 items, audit 5%", 1000, 1, 0.05, rare(0.1, 3.9), 1.3),
    ("normal ± 0.4, 400 items, audit 5%", 400, 1, 0.05, normal(0.0), 3.5),
    ("normal −0.5 ± 0.4, 400 items, audit 5%", 400, 1, 0.05, normal(-0.5), 3.5),
    ("normal ± 0.4, 40 × 10, audit 5%", 40, 10, 0.05, normal(0.0), 3.5),
    ("5% of groups −2.5, 40 × 10, audit 5%", 40, 10, 0.05, rare_groups(0.05, -2.5), 3.5),
    ("10% of groups −2.5, 100 × 4, audit 5%", 100, 4, 0.05, rare_groups(0.1, -2.5), 3.5),
]  # fmt: skip


@pytest.mark.sweep
def test_the_interval_covers_the_judges_average_where_errors_are_rare_and_large_normal_or_shared_by_groups() -> None:
    draw = np.random.default_rng(26)
    runs = 3_000 if FULL else 150
    counts: dict[str, int] = {}
    for name, groups, each, audit, error, level in CASES:
        covered = known = 0
        width = 0.0
        for _ in range(runs):
            truth, found = evaluated(draw, groups, each, audit, error, level=level)
            if found.interval is not None:
                known += 1
                covered += found.interval[0] <= truth <= found.interval[1]
                width += found.interval[1] - found.interval[0]
        print(f"{covered / known:.1%} of {known} cover, width {width / known:.2f}: {name}")
        counts[name] = int(binom.ppf(CHANCE, known, 0.95)) - covered

    assert [name for name, lacking in counts.items() if lacking > 0] == []


@pytest.mark.sweep
def test_the_interval_covers_what_the_groups_are_a_sample_of() -> None:
    draw = np.random.default_rng(27)
    runs = 3_000 if FULL else 200
    for groups, each in ((400, 1), (60, 4), (40, 10)):
        found = [evaluated(draw, groups, each, 0.1, normal(-0.3), escalated=0.3)[1].interval for _ in range(runs)]
        known = [one for one in found if one is not None]
        covered = sum(low <= 3.5 <= high for low, high in known)
        print(f"{covered} of {len(known)} cover the mean of all groups, {groups} × {each}")
        assert covered >= binom.ppf(CHANCE, len(known), 0.95)


def test_more_audits_make_it_narrower_and_asking_about_all_leaves_nothing_unmet() -> None:
    widths: list[float] = []
    for audit in (0.05, 0.1, 0.2, 0.4, 0.8, 1.0):
        draw = np.random.default_rng(28)
        found = [evaluated(draw, 1000, 1, audit, normal(0.0))[1].interval for _ in range(10)]
        widths.append(float(np.mean([one[1] - one[0] for one in found if one is not None])))
    print([round(one, 3) for one in widths])

    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == pytest.approx(2 * 1.96 * 0.6 / 1000**0.5, rel=0.05)


def test_audits_in_few_groups_say_too_little_for_an_interval() -> None:
    items = 20 * FEWEST_AUDITS
    judge = [4.0 if place % 2 else None for place in range(items)]
    few = corrected_average(
        [3.5] * items, judge, [0.5] * items, [f"g{place * (FEWEST_AUDITS - 1) // items}" for place in range(items)]
    )
    enough = corrected_average(
        [3.5] * items, judge, [0.5] * items, [f"g{place * FEWEST_AUDITS // items}" for place in range(items)]
    )
    assert few is not None
    assert enough is not None

    assert (few.interval, few.drawn, few.drawn_groups) == (None, items // 2, FEWEST_AUDITS - 1)
    assert enough.interval is not None
    assert enough.interval[0] <= enough.estimate <= enough.interval[1]
    all_lowest = corrected_average([1.0] * 40, [1.0] * 20 + [None] * 20, [0.5] * 40, [None] * 40)
    assert all_lowest is not None
    assert all_lowest.interval is not None
    assert (all_lowest.interval[0], all_lowest.interval[1] > 1.2) == (1.0, True)  # an item may only be better than that
