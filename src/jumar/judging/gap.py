"""What lies between two judges of the same items: item by item, and what the expensive one saw that no pattern fired for."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from statistics import fmean
from typing import Any, Final, Literal, NamedTuple

from jumar.core.record import Record
from jumar.judging.items.item import Item
from jumar.judging.models import CheapModeResult, DualModeResult, ExpensiveModeResult, Unscored
from jumar.judging.patterns.matcher import PatternMatcher, folded, literals
from jumar.judging.patterns.models import PatternSet, PatternV2
from jumar.judging.patterns.phrases import FUNCTION_WORDS, stem

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
class LargeGap(Record):
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


FEWEST_ITEMS: Final = 5
FEWEST_GROUPS: Final = 3
_OFF: Final = 0.25
"""Half of the gap that is aimed at: a cheap judge that is less far off on average needs no pattern."""

_CHANCE: Final = 0.00135
"""How likely chance may be on either side, as beyond three standard errors of many groups: some hundred phrases are looked at."""


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
    higher (lower) than the others, beyond chance as groups tell it (:class:`_Whole`); and the cheap judge is too low (too high)
    on them on average, by more than a quarter of a point. ``items`` are by id.
    """
    wanted = list(dict.fromkeys(phrases))
    if not wanted:
        return {}
    matcher = PatternMatcher([_pattern(phrase) for phrase in wanted])
    having: dict[str, list[DualModeResult]] = {}
    for result in results:
        for phrase in matcher.fired_ids(items[result.story_id].text):
            having.setdefault(phrase, []).append(result)
    middle = fmean(one.expensive.gestalt for one in results) if results else 0.0
    groups = {one.story_id: items[one.story_id].group or one.story_id for one in results}
    offsets = {one.story_id: one.expensive.gestalt - middle for one in results}
    whole = _Whole.of(_by_group(results, offsets, groups))
    found: dict[str, PhraseSupport] = {}
    for phrase, among in having.items():
        own = _by_group(among, offsets, groups)
        if len(among) < FEWEST_ITEMS or len(own) < FEWEST_GROUPS or len(results) - len(among) < FEWEST_ITEMS:
            continue
        support = _support(phrase, own, whole, middle, gap=fmean(one.gap for one in among))
        if support is not None:
            found[phrase] = support
    return {phrase: found[phrase] for phrase in wanted if phrase in found}


class _Sum(NamedTuple):
    """Of scores that are counted from the mean of all, so that the difference of two sums keeps its digits."""

    items: int
    total: float


def _by_group(among: Sequence[DualModeResult], offsets: Mapping[str, float], groups: Mapping[str, str]) -> dict[str, _Sum]:
    found: dict[str, _Sum] = {}
    for one in among:
        items, total = found.get(groups[one.story_id], (0, 0.0))
        found[groups[one.story_id]] = _Sum(items + 1, total + offsets[one.story_id])
    return found


@dataclass(frozen=True, slots=True)
class _Whole:
    """All items by group, with the sums over groups of total², items · total and items².

    Items of one group are scored alike, and many of them say little more than one. So the error of a difference of two means is
    what the groups, each as a whole, contribute to it (Liang and Zeger 1986); of single items it is Welch's.
    """

    groups: Mapping[str, _Sum]
    items: int
    total: float
    moments: tuple[float, float, float]

    @classmethod
    def of(cls, groups: Mapping[str, _Sum]) -> _Whole:
        sums = list(groups.values())
        return cls(groups, sum(one.items for one in sums), math.fsum(one.total for one in sums), _moments(sums))

    def error(self, own: Mapping[str, _Sum], mean: float, other: float) -> float:
        """Return the standard error of ``mean`` of ``own`` less ``other``, the mean of all other items."""
        count = sum(one.items for one in own.values())
        rest = self.items - count
        here = 0.0
        for name, one in own.items():
            of_all = self.groups[name]
            beside = of_all.total - one.total - (of_all.items - one.items) * other
            here += ((one.total - one.items * mean) / count - beside / rest) ** 2
        squares, products, sizes = (
            all_ - part for all_, part in zip(self.moments, _moments([self.groups[name] for name in own]), strict=True)
        )
        there = max(0.0, squares - 2 * other * products + other * other * sizes) / rest**2
        return math.sqrt(here * _unbiased(len(own)) + there * _unbiased(len(self.groups) - len(own)))


def _moments(sums: Sequence[_Sum]) -> tuple[float, float, float]:
    return (
        math.fsum(one.total**2 for one in sums),
        math.fsum(one.items * one.total for one in sums),
        float(sum(one.items**2 for one in sums)),
    )


def _unbiased(groups: int) -> float:
    return groups / (groups - 1) if groups > 1 else 1.0


@cache
def _errors_needed(groups: int) -> float:
    """Return how many standard errors chance hardly exceeds, where so many groups say how large one is (Student)."""
    return float(import_module("scipy.stats").t.isf(_CHANCE, groups - 1))


def _pattern(phrase: str) -> PatternV2:
    return PatternV2(
        id=phrase, type="good", description=phrase, keywords=[], source="gap", discovered_at=datetime.now(UTC), phrases=[phrase]
    )


def _support(phrase: str, own: Mapping[str, _Sum], whole: _Whole, middle: float, *, gap: float) -> PhraseSupport | None:
    items, total = sum(one.items for one in own.values()), math.fsum(one.total for one in own.values())
    others = whole.items - items
    mean, other = total / items, (whole.total - total) / others
    apart, error = mean - other, whole.error(own, mean, other)
    errors = math.inf if error == 0 else abs(apart) / error
    if apart * gap <= 0 or abs(gap) <= _OFF or errors < _errors_needed(len(own)):
        return None
    return PhraseSupport(
        phrase=phrase,
        kind="good" if apart > 0 else "bad",
        items=items,
        groups=len(own),
        others=others,
        with_it=middle + mean,
        without_it=middle + other,
        gap=gap,
        errors=errors,
    )


COVERAGE_TARGET: Final = 0.8
"""The share of items that the first design asks for."""

_WORD: Final = re.compile(r"\w+")
_HALF: Final = 0.5
_TELLING: Final = 2  # stems of a description that have to be shared at least: one word in common is an accident


@dataclass(frozen=True, slots=True)
class PatternCoverage:
    """On how many of the ``items`` about which the judge named something a pattern named it too.

    ``share`` is None where the judge named nothing anywhere; ``met`` says whether it reaches 80 %.
    """

    items: int
    covered: int
    target: float = COVERAGE_TARGET

    @property
    def share(self) -> float | None:
        """Covered items over items, from 0 to 1."""
        return self.covered / self.items if self.items else None

    @property
    def met(self) -> bool | None:
        """Whether the share reaches the target; None where there is no share."""
        return None if self.share is None else self.share >= self.target

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON with ``share`` and ``met``."""
        return {**asdict(self), "share": self.share, "met": self.met}


def pattern_coverage(results: Iterable[DualModeResult], patterns: PatternSet) -> PatternCoverage:
    """Return on how many items a pattern that fired names an issue that the expensive judge named.

    A good pattern is held against each of the judge's ``strengths``, a bad one against its ``weaknesses``. It names the same when
    one of its phrases stands there in any inflection, word after word, or when at least two of the words that mean something in
    its description do, and half of them. Items about which the judge named neither are left out; active and provisional patterns
    count.
    """
    named = {pattern.id: _Named(pattern) for pattern in patterns.patterns if pattern.status in {"active", "provisional"}}
    known: dict[str, tuple[str, ...]] = {}
    items = covered = 0
    for result in results:
        said = {"good": result.expensive.strengths, "bad": result.expensive.weaknesses}
        if not any(one.strip() for ones in said.values() for one in ones):
            continue
        items += 1
        fired = [named[one] for one in result.cheap.patterns_matched if one in named]
        covered += any(one.names(_stems(statement, known)) for one in fired for statement in said[one.type])
    return PatternCoverage(items, covered)


class _Named:
    """The stems by which a pattern is recognised in a statement."""

    def __init__(self, pattern: PatternV2) -> None:
        self.type = pattern.type
        known: dict[str, tuple[str, ...]] = {}
        self._phrases = [stems for one in literals(pattern) if (stems := _stems(one, known))]
        words = [word for word in _WORD.findall(folded(pattern.description)) if word not in FUNCTION_WORDS and len(word) > 2]
        self._telling = frozenset(map(_stem, words))

    def names(self, statement: tuple[str, ...]) -> bool:
        if any(_runs(phrase, statement) for phrase in self._phrases):
            return True
        shared = len(self._telling.intersection(statement))
        return shared >= _TELLING and shared >= _HALF * len(self._telling)


def _stems(text: str, known: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    if text not in known:
        known[text] = tuple(_stem(word) for word in _WORD.findall(folded(text)))
    return known[text]


def _stem(word: str) -> str:
    return stem(word) if word.isascii() else word


def _runs(phrase: Sequence[str], statement: Sequence[str]) -> bool:
    size = len(phrase)
    return any(tuple(statement[at : at + size]) == tuple(phrase) for at in range(len(statement) - size + 1))
