"""From the components' scores and the patterns that fired to a raw score, a gestalt, and what each gave."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, Protocol

from jumar.judging.cheap.evidence import Evidence, Judged, PatternEvidence
from jumar.judging.cheap.phrases import lowered_words
from jumar.judging.items.item import Item
from jumar.judging.models import CheapModeResult, Contribution, Unscored
from jumar.judging.patterns.models import Scorecard
from jumar.judging.rubric import Rubric, StoryRubric, TextRubric

BASE: Final = "base"
CURVE: Final = "calibration"
"""Names of the contributions that no pattern gives: where the adding begins, and what the curve makes of the total."""

_SEEN: Final = 0.005  # points; less is ±0.00 with two decimals


class AppliedScorecard:
    """A scorecard with the patterns whose points it adds up. An instance is immutable.

    ``fired`` are positions in the evidence's ``ids``, ascending, ``item`` is what they fire on.
    """

    def __init__(self, card: Scorecard, evidence: PatternEvidence | None) -> None:
        self.card = card
        self._evidence = evidence
        live = () if evidence is None else evidence.live
        self._good = frozenset(
            index for index, one in enumerate(live) if one.type == "good" and one.status == "active" and one.feature is None
        )

    def total(self, fired: Sequence[int], item: Item) -> float:
        """Return base and points of the active patterns among ``fired``."""
        return self.card.base + sum(points for _, points in self.points(fired, item))

    def score(self, fired: Sequence[int], item: Item) -> float:
        """Return the score from 1 to 5. More points never give less; good phrases over the guard's limit give none."""
        return self.card.curve.at(self.total(fired, item))

    def read(self, fired: Sequence[int], item: Item) -> tuple[float, bool]:
        """Return :meth:`score`, and whether good phrases were withheld."""
        counted = self._counted(fired, item)
        given = [] if self._evidence is None else self._evidence.points(counted, self.card.unit)
        return self.card.curve.at(self.card.base + sum(points for _, points in given)), counted is not fired

    def points(self, fired: Sequence[int], item: Item) -> list[tuple[str, float]]:
        """Return ids and signed points, in points of the scale before the curve, of the active ones that count."""
        return [] if self._evidence is None else self._evidence.points(self._counted(fired, item), self.card.unit)

    def good_phrases(self, fired: Sequence[int]) -> float:
        """Return the points that the good phrases among ``fired`` give together where all of them count."""
        if self._evidence is None:
            return 0.0
        own = [index for index in fired if index in self._good]
        return sum(points for _, points in self._evidence.points(own, self.card.unit))

    def withheld(self, fired: Sequence[int], item: Item) -> float:
        """Return the points of good phrases that do not count, because no text of that length should have so many; else 0.0."""
        guard = self.card.guard
        if guard is None:
            return 0.0
        given = self.good_phrases(fired)
        # most items are below what a single word may have, and need no counting
        return given if given > guard.most(1) and given > guard.most(words_of(item)) else 0.0

    def counted(self, fired: Sequence[int], *, withheld: bool) -> Sequence[int]:
        """Return ``fired``, without the good phrases where they are withheld."""
        return [index for index in fired if index not in self._good] if withheld else fired

    def contributions(self, counted: Sequence[int], *, most: int | None = None) -> list[Contribution]:
        """Return what adds up to the score: the base, the points of each pattern that counts, and what the curve adds to them.

        A ``share`` is of the patterns' points; base and curve have 0.0. With ``most`` only so many, the largest first.
        """
        points = [] if self._evidence is None else self._evidence.points(counted, self.card.unit)
        whole = sum(abs(one) for _, one in points)
        total = self.card.base + sum(one for _, one in points)
        given = [(BASE, self.card.base), *points, (CURVE, self.card.curve.at(total) - total)]
        last = len(given) - 1
        places: Sequence[int] = range(len(given))
        if most is not None:
            places = sorted(places, key=lambda place: -abs(given[place][1]))[:most]
        return [
            Contribution(
                name=given[place][0],
                points=given[place][1],
                share=min(1.0, abs(given[place][1]) / whole) if whole and 0 < place < last else 0.0,
            )
            for place in places
        ]

    def reasons(
        self, counted: Sequence[int], fired: Sequence[int], item: Item, *, withheld: bool, most: int | None = None
    ) -> list[str]:
        """Return what moved the score, as ``+0.31 DESCRIPTION``, the largest first; what would read ``±0.00`` is left out.

        With ``most`` only so many of these.
        The last one says so where good phrases were withheld.
        """
        if self._evidence is None:
            return []
        live = self._evidence.live
        given = ((points, live[index].description) for index, points in self._evidence.moves(counted, self.card.unit))
        moved = sorted((one for one in given if abs(one[0]) >= _SEEN), key=lambda one: -abs(one[0]))
        said = [f"{points:+.2f} {said}" for points, said in moved[:most]]
        if withheld and self.card.guard is not None:
            limit, lost = self.card.guard.most(words_of(item)), self.good_phrases(fired)
            said.append(f"+0.00 good phrases do not count: {lost:.2f} of them is over {limit:.2f}, the most for this length")
        return said

    def _counted(self, fired: Sequence[int], item: Item) -> Sequence[int]:
        """Return ``fired`` without the good phrases that are withheld."""
        return self.counted(fired, withheld=bool(self.withheld(fired, item)))


def words_of(item: Item) -> int:
    """Return the length that the guard goes by, in words."""
    return len(lowered_words(item.text))


_MOST = 5.0
_REMEMBERED = 4096
"""A story's components have few different values, so that most stories share what follows from them."""


class Panel(Protocol):
    """The components of one kind of rubric: their names, the reason that a score over 0.5 gives, and what they say."""

    names: ClassVar[tuple[str, ...]]
    codes: ClassVar[tuple[str, ...]]

    def mute(self, item: Item) -> str | None: ...

    def scores(self, item: Item) -> tuple[float | None, ...] | str: ...

    def judged(self, item: Item, scores: Sequence[float | None]) -> Judged: ...

    def parts(self, item: Item, scores: Sequence[float | None]) -> dict[str, float]: ...


class Base(NamedTuple):
    """What the components alone give: ``points`` by name in their order, which add up to ``raw``."""

    raw: float
    reasons: tuple[str, ...]
    points: tuple[tuple[str, float], ...]


_NO_BASE = Base(0.0, (), ())


class CheapReading(NamedTuple):
    """One item's score without what only reports need; :meth:`CheapScorer.result` adds that.

    ``base`` is empty where a scorecard makes the score, and ``scores`` may be: they are then worked out when somebody asks.
    ``withheld``: good phrases did not count on this item.
    """

    item: Item
    gestalt: float
    raw: float
    base: Base
    scores: tuple[float | None, ...]
    fired: list[int]
    evidence: Evidence | None
    withheld: bool = False


def gestalt_of(raw: float) -> float:
    """Return the score from 1 to 5 for a raw one from 0 to 5."""
    return 1.0 + (raw / 5.0) * 4.0


def _raw_of(gestalt: float) -> float:
    """Return the raw score from 0 to 5 that a gestalt stands for."""
    return _clamped((gestalt - 1.0) / 4.0 * 5.0)


class CheapScorer:
    """One rubric, one set of patterns. ``weights`` beat those of the rubric, by the name of a component.

    With ``card`` the patterns alone make the score; the components then only say whether there is something to judge, and give
    the sub-scores.
    """

    def __init__(
        self,
        rubric: StoryRubric | TextRubric,
        panel: Panel,
        patterns: PatternEvidence | None,
        weights: Mapping[str, float],
        card: AppliedScorecard | None = None,
    ) -> None:
        own: dict[str, float] = rubric.weights.model_dump()
        self.weights = {name: weights.get(name, own[name]) for name in panel.names}
        self._rubric: Rubric = rubric
        self._panel = panel
        self._patterns = patterns
        self._card = card
        self._other = None
        if card is not None and card.card.rubric not in {None, rubric.kind}:
            self._other = (
                f"the patterns are calibrated for items of the kind '{card.card.rubric}', and this is one of '{rubric.kind}'"
            )
        self._base: Callable[[tuple[float | None, ...]], Base | None] = self._weigh
        if isinstance(rubric, StoryRubric):
            self._base = functools.lru_cache(_REMEMBERED)(self._weigh)
        self._contributions = functools.lru_cache(_REMEMBERED)(_contributions)

    def read(self, item: Item) -> CheapReading | Unscored:
        """Return the item's score, or that there is nothing to judge."""
        if self._other is not None:
            return Unscored(story_id=item.id, kind="abstained", message=self._other)
        if self._card is not None and not (self._patterns is not None and self._patterns.uses_judged):
            return self._by_card(item, self._card)
        scores = self._panel.scores(item)
        if isinstance(scores, str):
            return Unscored(story_id=item.id, kind="abstained", message=scores)
        base = self._base(scores)
        if base is None and self._card is not None:
            base = _NO_BASE
        if base is None:
            return Unscored(story_id=item.id, kind="abstained", message="no component of this rubric that counts applies to it")
        raw, fired, evidence = base.raw, [], None
        patterns = self._patterns
        if patterns is not None:
            fired = patterns.fired(item, self._panel.judged(item, scores) if patterns.uses_judged else None)
        if self._card is not None:
            return self._carded(item, self._card, fired, scores)
        if patterns is not None and fired and patterns.active:
            evidence = _moved(patterns.weigh(fired, self._rubric.patterns), raw, self._rubric.patterns.most)
            raw = _clamped(raw + sum(points for _, points in evidence.points))
        return CheapReading(item, gestalt_of(raw), raw, base, scores, fired, evidence)

    def _by_card(self, item: Item, card: AppliedScorecard) -> CheapReading | Unscored:
        """Read an item whose components decide nothing: they take as long as the patterns, and are left for :meth:`result`."""
        mute = self._panel.mute(item)
        if mute is not None:
            return Unscored(story_id=item.id, kind="abstained", message=mute)
        return self._carded(item, card, [] if self._patterns is None else self._patterns.fired(item, None), ())

    def _carded(self, item: Item, card: AppliedScorecard, fired: list[int], scores: tuple[float | None, ...]) -> CheapReading:
        gestalt, withheld = card.read(fired, item)
        return CheapReading(item, gestalt, _raw_of(gestalt), _NO_BASE, scores, fired, None, withheld)

    def result(self, reading: CheapReading, *, parts: bool = True, most: int | None = None) -> CheapModeResult:
        """Return everything about a score: what each component and each active pattern gave, and the sub-scores if asked for.

        ``most``: only so many contributions, and reasons of a scorecard, those that moved it most.
        """
        evidence, patterns, card = reading.evidence, self._patterns, self._card
        moved = () if evidence is None else tuple(evidence.points)
        if card is None:
            reasons = list(reading.base.reasons)
            given = largest(self._contributions((*reading.base.points, *moved)), most)
        else:
            counted = card.counted(reading.fired, withheld=reading.withheld)
            reasons = card.reasons(counted, reading.fired, reading.item, withheld=reading.withheld, most=most)
            given = card.contributions(counted, most=most)
        return CheapModeResult(
            story_id=reading.item.id,
            gestalt=reading.gestalt,
            raw_score=reading.raw,
            reasons=reasons,
            patterns_matched=[] if patterns is None else [patterns.ids[index] for index in reading.fired],
            contributions=given,
            sub_scores=self._parts(reading) if parts else {},
        )

    def _parts(self, reading: CheapReading) -> dict[str, float]:
        scores = reading.scores or self._panel.scores(reading.item)
        return {} if isinstance(scores, str) else self._panel.parts(reading.item, scores)

    def _weigh(self, scores: tuple[float | None, ...]) -> Base | None:
        """Return Σ weight · score / Σ weight · 5 over the components that apply; None when none of them counts."""
        panel, total, whole = self._panel, 0.0, 0.0
        given: list[tuple[str, float]] = []
        for name, score in zip(panel.names, scores, strict=True):
            if score is not None:
                weight = self.weights[name]
                total += weight * score
                whole += weight
                given.append((name, weight * score))
        if whole == 0.0:
            return None
        factor = _MOST / whole
        reasons = tuple(code for code, score in zip(panel.codes, scores, strict=True) if score is not None and score > 0.5)
        return Base(_clamped(total * factor), reasons, tuple((name, points * factor) for name, points in given))


def _moved(evidence: Evidence, raw: float, most: float) -> Evidence:
    """Scale the patterns' points so that together they move ``raw`` by at most ``most``, and not out of 0 to 5."""
    wanted = sum(points for _, points in evidence.points)
    possible = _clamped(raw + max(-most, min(most, wanted))) - raw
    if wanted in {0.0, possible}:
        return evidence
    factor = possible / wanted
    return Evidence(evidence.ids, [(name, points * factor) for name, points in evidence.points])


def _contributions(points: tuple[tuple[str, float], ...]) -> tuple[Contribution, ...]:
    """Return the points with each one's share of all that was given; all shares are 0.0 where nothing was."""
    whole = sum(abs(given) for _, given in points)
    return tuple(
        Contribution(name=name, points=given, share=min(1.0, abs(given) / whole) if whole else 0.0) for name, given in points
    )


def largest(given: Sequence[Contribution], most: int | None) -> list[Contribution]:
    """Return what moved a score most, the largest first; all of it, as it is, for None."""
    return list(given) if most is None else sorted(given, key=lambda one: -abs(one.points))[:most]


def _clamped(raw: float) -> float:
    return 0.0 if raw < 0.0 else min(raw, _MOST)
