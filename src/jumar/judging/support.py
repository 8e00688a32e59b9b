"""Whether the items speak for a pattern: what the expensive judge says of those with a phrase, and of the others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean, variance
from typing import Final, Literal

from jumar.core.record import Record
from jumar.judging.items.item import Item
from jumar.judging.models import DualModeResult
from jumar.judging.patterns.matcher import PatternMatcher
from jumar.judging.patterns.models import PatternV2

FEWEST_ITEMS: Final = 5
FEWEST_GROUPS: Final = 3
_OFF: Final = 0.25
"""Half of the gap that is aimed at: a cheap judge that is less far off on average needs no pattern."""

_ERRORS: Final = 3.0
"""Standard errors that both means lie apart at least: some hundred phrases are looked at, and two are often met by chance."""


@dataclass(frozen=True, slots=True)
class PhraseSupport(Record):
    """A phrase on which a pattern would fire on ``items`` items of ``groups`` groups.

    The expensive judge's mean score of these is ``with_it``, of all others ``without_it``; ``gap`` is the mean of expensive -
    cheap on these. ``kind`` is that of the pattern that they speak for.
    """

    phrase: str
    kind: Literal["good", "bad"]
    items: int
    groups: int
    others: int
    with_it: float
    without_it: float
    gap: float
    errors: float

    @property
    def says(self) -> str:
        """What to do, and what it rests on, as a sentence."""
        way = "low" if self.gap > 0 else "high"
        given = f"{self.with_it:.2f} to the {self.items:,} items with it and {self.without_it:.2f} to the {self.others:,} others"
        return (
            f'Add a {self.kind} pattern for "{self.phrase}": the judge gives {given}, and the cheap judge is {abs(self.gap):.2f} '
            f"too {way} on those with it"
        )


def supported_phrases(
    results: Sequence[DualModeResult], items: Mapping[str, Item], phrases: Iterable[str]
) -> dict[str, PhraseSupport]:
    """Return those of ``phrases`` that a pattern should fire on, by phrase.

    They stand in at least 5 items of 3 groups (an item without a group is one of its own); the expensive judge scores these
    higher (lower) than the others, by three standard errors; and the cheap judge is too low (too high) on them on average, by
    more than a quarter of a point. ``items`` are by id.
    """
    wanted = list(dict.fromkeys(phrases))
    if not wanted:
        return {}
    matcher = PatternMatcher([_pattern(phrase) for phrase in wanted])
    having: dict[str, list[DualModeResult]] = {}
    for result in results:
        for phrase in matcher.fired_ids(items[result.story_id].text):
            having.setdefault(phrase, []).append(result)
    found = (_support(phrase, having.get(phrase, []), results, items) for phrase in wanted)
    return {one.phrase: one for one in found if one is not None}


def _pattern(phrase: str) -> PatternV2:
    return PatternV2(
        id=phrase, type="good", description=phrase, keywords=[], source="gap", discovered_at=datetime.now(UTC), phrases=[phrase]
    )


def _support(
    phrase: str, having: Sequence[DualModeResult], results: Sequence[DualModeResult], items: Mapping[str, Item]
) -> PhraseSupport | None:
    ids = {one.story_id for one in having}
    groups = {items[name].group or name for name in ids}
    if len(ids) < FEWEST_ITEMS or len(groups) < FEWEST_GROUPS or len(results) - len(ids) < FEWEST_ITEMS:
        return None
    own = [one.expensive.gestalt for one in having]
    others = [result.expensive.gestalt for result in results if result.story_id not in ids]
    gap, apart = fmean(one.gap for one in having), fmean(own) - fmean(others)
    error = math.sqrt(variance(own) / len(own) + variance(others) / len(others))
    errors = math.inf if error == 0 else abs(apart) / error
    if apart * gap <= 0 or abs(gap) <= _OFF or errors < _ERRORS:
        return None
    return PhraseSupport(
        phrase=phrase,
        kind="good" if apart > 0 else "bad",
        items=len(own),
        groups=len(groups),
        others=len(others),
        with_it=fmean(own),
        without_it=fmean(others),
        gap=gap,
        errors=errors,
    )
