"""Whether patterns name what the judge named, and how the learner is."""

from __future__ import annotations

from typing import Any

import pytest

from jumar.judging import CheapModeResult, DualModeResult, ExpensiveModeResult
from jumar.judging.component_health import check_pattern_learner
from jumar.judging.gap import pattern_coverage
from jumar.judging.patterns import PatternSet
from jumar.judging.patterns.proposed import as_pattern

PATTERNS = PatternSet(
    version="2.0",
    patterns=[
        as_pattern({"id": "time", "phrase": "saves time"}, status="active"),
        as_pattern({"id": "hack", "phrase": "quick hack", "type": "bad"}),
        as_pattern({"id": "rule", "phrase": "oauth", "description": "One platform in one story"}, status="active"),
        as_pattern({"id": "out", "phrase": "clear"}, status="pruned"),
    ],
)


def result(*matched: str, strengths: tuple[str, ...] = (), weaknesses: tuple[str, ...] = ()) -> DualModeResult:
    expensive = ExpensiveModeResult(
        story_id="a", gestalt=4.0, reasoning="", strengths=list(strengths), weaknesses=list(weaknesses)
    )
    cheap = CheapModeResult(story_id="a", gestalt=3.0, raw_score=2.5, reasons=[], patterns_matched=list(matched))
    return DualModeResult(story_id="a", expensive=expensive, cheap=cheap, gap=1.0)


@pytest.mark.parametrize(
    ("matched", "said", "covered"),
    [
        (["time"], {"strengths": ("It is saving times of users",)}, True),
        (["time"], {"weaknesses": ("saves time",)}, False),
        (["hack"], {"weaknesses": ("It is a Quick Hack!",)}, True),
        (["rule"], {"strengths": ("keeps to a single platform, one story",)}, True),
        (["rule"], {"strengths": ("names the platform",)}, False),
        (["out"], {"strengths": ("clear",)}, False),
        ([], {"strengths": ("saves time",)}, False),
    ],
)
def test_an_item_is_covered_when_a_pattern_that_fired_names_what_the_judge_named(
    matched: list[str], said: dict[str, Any], covered: object
) -> None:
    found = pattern_coverage([result(*matched, **said)], PATTERNS)
    assert (1, int(bool(covered))) == (found.items, found.covered)


def test_coverage_is_held_against_four_fifths() -> None:
    named = result("time", strengths=("saves time",))
    four = pattern_coverage([named] * 4 + [result(strengths=("other",)), result("time")], PATTERNS)
    assert (5, 4, 0.8, True) == (four.items, four.covered, four.share, four.met)
    assert {"items": 5, "covered": 4, "target": 0.8, "share": 0.8, "met": True} == four.to_json()
    assert (None, None) == ((nothing := pattern_coverage([result("time")], PATTERNS)).share, nothing.met)


@pytest.mark.parametrize(
    ("counts", "flags", "healthy"),
    [
        ({"proposed": 5, "committed": 3, "rejected": 2}, ["high_rejection_rate"], True),
        ({"proposed": 5, "committed": 4, "rejected": 2}, [], True),
        ({"proposed": 5, "committed": 0, "rejected": 4}, [], True),
        ({"proposed": 0, "committed": 0, "rejected": 0}, ["no_proposals"], True),
        ({"proposed": 0, "committed": 0, "rejected": 0, "provisional": 3}, [], True),
        ({"proposed": 0, "committed": 0, "rejected": 0, "provisional": 3, "refused": 4}, ["answers_refused"], False),
    ],
)
def test_the_learners_health(counts: dict[str, int], flags: list[str], healthy: object) -> None:
    """Three committed and two rejected is what the first design's own log flags, and calls healthy."""
    found = check_pattern_learner(**counts)
    assert (flags, bool(healthy)) == (found.flags, found.healthy)
    assert found.details["ran"]
