"""What lies between two judges of the same items: item by item, and what the expensive one saw that no pattern fired for."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final

from jumar.judging.items.item import Item
from jumar.judging.models import CheapModeResult, DualModeResult, ExpensiveModeResult, Unscored
from jumar.judging.patterns.matcher import PatternMatcher
from jumar.judging.patterns.models import PatternSet
from jumar.judging.support import PhraseSupport, supported_phrases

GAP_TARGET: Final = 0.5
"""The mean absolute gap that the first design asks for, and the gap from which an item is looked at."""

QUALITY_TARGET: Final = 4.0
"""The cheap average that the first design asks for."""

_LONGEST_PHRASE: Final = 4
_EMPTY: Final = frozenset(
    """a about all also an and any are as at be been being but by can could does doing done for from get had has have how in
    into is it its
    just like make makes may more most much must no not of off on one only or other our out over own same should so some such
    than that the
    their them then there these they this those to too under up use used uses using very was well were what when where which
    while who will
    with without would you your item text story answer""".split()  # noqa: SIM905 - words read better as words
)
"""Words that say nothing about an item: a phrase of nothing else is no signal."""


@dataclass(frozen=True, slots=True)
class LargeGap:
    """An item on which the judges differ by more than half a point.

    ``missed`` is what the expensive judge gave as its reasons; ``phrases`` are those of their words that stand in the item's
    text, where a pattern could find them. ``support`` is what all items say for a pattern on one of them, None where they say
    nothing for any: a pattern is advised only with it.
    """

    story_id: str
    expensive: float
    cheap: float
    gap: float
    missed: tuple[str, ...]
    phrases: tuple[str, ...]
    issue: str
    action: str
    support: PhraseSupport | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "story_id": self.story_id,
            "expensive": self.expensive,
            "cheap": self.cheap,
            "gap": self.gap,
            "missed": list(self.missed),
            "phrases": list(self.phrases),
            "issue": self.issue,
            "action": self.action,
            "support": self.support and self.support.to_json(),
        }


@dataclass(frozen=True, slots=True)
class GapSummary:
    """Averages over the items that both judges scored, None where there are none.

    ``gap`` is expensive - cheap, signed: too generous and too strict items cancel out in it. ``abs_gap_mean`` does not let them.
    """

    scored: int
    expensive_avg: float | None
    cheap_avg: float | None
    gap: float | None
    abs_gap_mean: float | None
    large: tuple[LargeGap, ...]

    @property
    def gap_met(self) -> bool | None:
        """Whether the mean absolute gap is within its target."""
        return None if self.abs_gap_mean is None else self.abs_gap_mean <= GAP_TARGET

    @property
    def quality_met(self) -> bool | None:
        """Whether the cheap average reaches its target."""
        return None if self.cheap_avg is None else self.cheap_avg >= QUALITY_TARGET


def pair_results(
    expensive: Sequence[ExpensiveModeResult | Unscored], cheap: Sequence[CheapModeResult | Unscored]
) -> list[DualModeResult]:
    """Return the items that both judges scored, in the order of ``expensive``; each list has an item at most once."""
    known = {one.story_id: one for one in cheap if isinstance(one, CheapModeResult)}
    return [
        DualModeResult(story_id=one.story_id, expensive=one, cheap=other, gap=one.gestalt - other.gestalt)
        for one in expensive
        if isinstance(one, ExpensiveModeResult) and (other := known.get(one.story_id)) is not None
    ]


def summarise_gaps(results: Sequence[DualModeResult], items: Mapping[str, Item]) -> GapSummary:
    """Return the averages and every item with a large gap, the largest first. ``items`` are by id."""
    if not results:
        return GapSummary(0, None, None, None, None, ())
    large = [explain_gap(result, items[result.story_id]) for result in results if abs(result.gap) > GAP_TARGET]
    found = supported_phrases(results, items, (phrase for one in large for phrase in one.phrases))
    large = [_advised(one, found) for one in large]
    return GapSummary(
        scored=len(results),
        expensive_avg=fmean(result.expensive.gestalt for result in results),
        cheap_avg=fmean(result.cheap.gestalt for result in results),
        gap=fmean(result.gap for result in results),
        abs_gap_mean=fmean(abs(result.gap) for result in results),
        large=tuple(sorted(large, key=lambda one: -abs(one.gap))),
    )


def _advised(one: LargeGap, supported: Mapping[str, PhraseSupport]) -> LargeGap:
    """Return it with the pattern that the items speak for most, of those that would lessen its gap."""
    kind = "good" if one.gap > 0 else "bad"
    fitting = [found for phrase in one.phrases if (found := supported.get(phrase)) is not None and found.kind == kind]
    best = max(fitting, key=lambda found: found.errors, default=None)
    return one if best is None else replace(one, support=best, action=best.says)


def explain_gap(result: DualModeResult, item: Item) -> LargeGap:
    """Return what the expensive judge saw, and what could be done about it as far as this item alone tells.

    Where the cheap judge was too strict the reasons are the strengths, where it was too generous the weaknesses; where the
    expensive judge named none, the sentences of its reasoning.
    """
    stricter = result.gap > 0
    named = result.expensive.strengths if stricter else result.expensive.weaknesses
    missed = tuple(one.strip() for one in named if one.strip())
    saw = f"the expensive judge saw: {missed[0]}" if missed else "the expensive judge gave no reason"
    if not missed and (missed := _sentences(result.expensive.reasoning)):
        saw = f"the expensive judge wrote: {missed[0]}"
    phrases = _shared_phrases(missed, item.text)
    direction = "too strict" if stricter else "too generous"
    action = "Read the item: without the judge's reasons there is nothing to look for"
    if phrases:
        action = "Read the item: no phrase that it shares with the judge's words is supported by other items"
    elif missed:
        action = "Read the item: none of the judge's words stand in its text, so no phrase of them can fire"
    return LargeGap(
        story_id=result.story_id,
        expensive=result.expensive.gestalt,
        cheap=result.cheap.gestalt,
        gap=result.gap,
        missed=missed,
        phrases=phrases,
        issue=f"Cheap mode was {direction}; {saw}",
        action=action,
    )


def _sentences(reasoning: str) -> tuple[str, ...]:
    return tuple(part for part in (one.strip() for one in re.split(r"(?<=[.!?])\s+", reasoning)) if part)


def _shared_phrases(statements: Collection[str], text: str, most: int = 3) -> tuple[str, ...]:
    """Return the longest runs of the statements' words that stand in the text too, and in which a longer word means something."""
    words = _words(text)
    there = {tuple(words[at : at + size]) for size in range(1, _LONGEST_PHRASE + 1) for at in range(len(words) - size + 1)}
    found: dict[tuple[str, ...], None] = {}
    for statement in statements:
        own = _words(statement)
        for size in range(_LONGEST_PHRASE, 0, -1):
            for at in range(len(own) - size + 1):
                run = tuple(own[at : at + size])
                if run in there and _says_something(run):
                    found.setdefault(run)
    ranked = sorted(found, key=lambda run: -sum(word not in _EMPTY for word in run))
    kept: list[tuple[str, ...]] = []
    for run in ranked:
        if not any(_within(run, longer) for longer in kept):
            kept.append(run)
    return tuple(" ".join(run) for run in kept[:most])


def _words(text: str) -> list[str]:
    return re.findall(r"\w[\w'-]*", text.lower())


def _says_something(run: Sequence[str]) -> bool:
    return run[0] not in _EMPTY and run[-1] not in _EMPTY and any(len(word) >= 4 and word not in _EMPTY for word in run)


def _within(run: Sequence[str], longer: Sequence[str]) -> bool:
    return any(tuple(longer[at : at + len(run)]) == tuple(run) for at in range(len(longer) - len(run) + 1))


class MissedPatterns:
    """The good patterns of a set that can fire, ready to be held against a judge's words."""

    def __init__(self, patterns: PatternSet) -> None:
        good = [
            pattern for pattern in patterns.patterns if pattern.type == "good" and pattern.status in {"active", "provisional"}
        ]
        self._ids = [one.id for one in good]
        self._matcher = PatternMatcher(good)

    def of(self, strengths: Sequence[str], matched: Collection[str]) -> list[str]:
        """Return the ids of those that match one of ``strengths`` and are not in ``matched``, in the order of the set."""
        if not strengths:
            return []
        there = {self._ids[index] for strength in strengths for index in self._matcher.fired(strength)}
        return [one for one in self._ids if one in there and one not in matched]
