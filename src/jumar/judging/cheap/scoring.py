"""From the components' scores and the patterns that fired to a raw score, a gestalt, and what each gave.

A calibrated set of patterns scores by itself: points of what fires, added up and read off a curve. It is the same arithmetic that
the fit predicts with, so that a set read back from its file gives what the fit promised, to the last bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from jumar.judging.cheap.evidence import PatternEvidence
from jumar.judging.cheap.panels import StoryPanel, TextPanel
from jumar.judging.cheap.phrases import lowered_words
from jumar.judging.items.item import Item
from jumar.judging.models import CheapModeResult, Contribution, Unscored
from jumar.judging.patterns.models import Scorecard
from jumar.judging.rubric import StoryRubric, TextRubric

BASE: Final = "base"
CURVE: Final = "calibration"
"""Names of the contributions that no pattern gives: where the adding begins, and what the curve makes of the total."""

_SEEN: Final = 0.005  # points; less is ±0.00 with two decimals
_MOST: Final = 5.0
_REMEMBERED: Final = 4096
"""A story's components have few different values, so that most stories share what follows from them."""

Points = tuple[tuple[str, float], ...]
"""What each component or pattern gave, by name."""

Shares = Sequence[tuple[str, float, float]]
"""The same, each with its share of all that was given."""


class Details(NamedTuple):
    """What led to a score: ``matched`` are the ids of what fired, ``contributions`` and ``sub_scores`` go by name."""

    reasons: Sequence[str]
    matched: Sequence[str]
    contributions: Shares
    sub_scores: Mapping[str, float]


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

    def score(self, fired: Sequence[int], item: Item) -> float:
        """Return the score from 1 to 5. More points never give less; good phrases over the guard's limit give none."""
        return self.read(fired, item)[0]

    def read(self, fired: Sequence[int], item: Item) -> tuple[float, bool]:
        """Return :meth:`score`, and whether good phrases were withheld."""
        withheld = self.withheld(fired, item) > 0.0
        given = self._points(self.counted(fired, withheld=withheld))
        return self.card.curve.at(self.card.base + sum(points for _, points in given)), withheld

    def _points(self, fired: Sequence[int]) -> list[tuple[int, float]]:
        """Return positions and signed points, in points of the scale before the curve, of the active ones."""
        return [] if self._evidence is None else self._evidence.points(fired, self.card.unit)

    def good_phrases(self, fired: Sequence[int]) -> float:
        """Return the points that the good phrases among ``fired`` give together where all of them count."""
        return sum(points for index, points in self._points(fired) if index in self._good)

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

    def details(self, reading: CheapReading, most: int | None) -> tuple[list[str], Shares]:
        """Return what moved a score, as ``+0.31 DESCRIPTION``, and what adds up to it: ``most`` of each, the largest first.

        What would read ``±0.00`` is left out, and a last line says so where good phrases were withheld. The contributions are the
        base, the points of each pattern that counts, and what the curve adds to them.
        """
        card, ids = self.card, () if self._evidence is None else self._evidence.ids
        live = () if self._evidence is None else self._evidence.live
        given = self._points(self.counted(reading.fired, withheld=reading.withheld))
        moved = sorted((one for one in given if abs(one[1]) >= _SEEN), key=lambda one: -abs(one[1]))
        reasons = [f"{points:+.2f} {live[index].description}" for index, points in moved[:most]]
        if reading.withheld and card.guard is not None:
            limit, lost = card.guard.most(words_of(reading.item)), self.good_phrases(reading.fired)
            reasons.append(f"+0.00 good phrases do not count: {lost:.2f} of them is over {limit:.2f}, the most for this length")
        total = card.base + sum(points for _, points in given)
        named = tuple((ids[index], points) for index, points in given)
        return reasons, _contributions(named, most, before=((BASE, card.base),), after=((CURVE, card.curve.at(total) - total),))


def words_of(item: Item) -> int:
    """Return the length that the guard goes by, in words."""
    return len(lowered_words(item.text))


class Base(NamedTuple):
    """What the components alone give: ``points`` by name in their order, which add up to ``raw``."""

    raw: float
    reasons: tuple[str, ...]
    points: Points


class CheapReading(NamedTuple):
    """One item's score without what only reports need; :meth:`CheapScorer.result` adds that.

    ``reasons`` and ``points`` are empty where a scorecard makes the score, and ``scores`` may be: they are then worked out when
    somebody asks. ``withheld``: good phrases did not count on this item.
    """

    item: Item
    gestalt: float
    raw: float
    scores: tuple[float | None, ...]
    fired: list[int]
    reasons: tuple[str, ...] = ()
    points: Points = ()
    withheld: bool = False


class CheapScorer:
    """One rubric, one set of patterns. ``weights`` beat those of the rubric, by the name of a component.

    With ``card`` the patterns alone make the score; the components then only say whether there is something to judge, and give
    the sub-scores.
    """

    def __init__(
        self,
        rubric: StoryRubric | TextRubric,
        panel: StoryPanel | TextPanel,
        patterns: PatternEvidence | None,
        weights: Mapping[str, float],
        card: AppliedScorecard | None = None,
    ) -> None:
        own: dict[str, float] = rubric.weights.model_dump()
        self.weights = {name: weights.get(name, own[name]) for name in panel.names}
        self._rules = rubric.patterns
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

    def read(self, item: Item) -> CheapReading | Unscored:
        """Return the item's score, or that there is nothing to judge."""
        card, patterns = self._card, self._patterns
        looks = patterns is not None and patterns.uses_view
        scores: tuple[float | None, ...] | str
        if self._other is not None:
            scores = self._other
        elif card is not None and not looks:  # components decide nothing, take as long as the patterns, and are left for result
            scores = self._panel.mute(item) or ()
        else:
            scores = self._panel.scores(item)
        if isinstance(scores, str):
            return Unscored(story_id=item.id, kind="abstained", message=scores)
        fired = [] if patterns is None else patterns.fired(item, self._panel.view(item, scores) if looks else None)
        if card is not None:
            gestalt, withheld = card.read(fired, item)
            return CheapReading(item, gestalt, _clamped((gestalt - 1.0) / 4.0 * 5.0), scores, fired, withheld=withheld)
        base = self._base(scores)
        if base is None:
            return Unscored(story_id=item.id, kind="abstained", message="no component of this rubric that counts applies to it")
        raw, points = base.raw, base.points
        if patterns is not None and fired and patterns.active:
            moved = _moved(patterns.points(fired, self._rules.points), raw, self._rules.most)
            raw = _clamped(raw + sum(given for _, given in moved))
            points = (*points, *((patterns.ids[index], given) for index, given in moved))
        return CheapReading(item, 1.0 + (raw / 5.0) * 4.0, raw, scores, fired, base.reasons, points)

    def result(self, reading: CheapReading, *, parts: bool = True, most: int | None = None) -> CheapModeResult:
        """Return everything about a score: what each component and each active pattern gave, and the sub-scores if asked for.

        ``most``: only so many contributions, and reasons of a scorecard, those that moved it most.
        """
        details = self.details(reading, parts=parts, most=most)
        return CheapModeResult(
            story_id=reading.item.id,
            gestalt=reading.gestalt,
            raw_score=reading.raw,
            reasons=list(details.reasons),
            patterns_matched=list(details.matched),
            contributions=[Contribution(*one) for one in details.contributions],
            sub_scores=dict(details.sub_scores),
        )

    def details(self, reading: CheapReading, *, parts: bool = True, most: int | None = None) -> Details:
        """Return what :meth:`result` says besides the score."""
        if self._card is None:
            reasons, given = reading.reasons, _contributions(reading.points, most)
        else:
            reasons, given = self._card.details(reading, most)
        scores = () if not parts else reading.scores or self._panel.scores(reading.item)
        return Details(
            reasons,
            [] if self._patterns is None else [self._patterns.ids[index] for index in reading.fired],
            given,
            self._panel.parts(reading.item, scores) if scores and not isinstance(scores, str) else {},
        )

    def _weigh(self, scores: tuple[float | None, ...]) -> Base | None:
        """Return Σ weight · score / Σ weight · 5 over the components that apply; None when none of them counts."""
        panel, total, whole = self._panel, 0.0, 0.0
        given: list[tuple[str, float]] = []
        reasons: list[str] = []
        for (name, weight), code, score in zip(self.weights.items(), panel.codes, scores, strict=True):
            if score is not None:
                points = weight * score
                total += points
                whole += weight
                given.append((name, points))
                if score > 0.5:
                    reasons.append(code)
        if whole == 0.0:
            return None
        factor = _MOST / whole
        return Base(_clamped(total * factor), tuple(reasons), tuple([(name, points * factor) for name, points in given]))


def _moved(points: list[tuple[int, float]], raw: float, most: float) -> list[tuple[int, float]]:
    """Scale the patterns' points so that together they move ``raw`` by at most ``most``, and not out of 0 to 5."""
    wanted = sum(given for _, given in points)
    possible = _clamped(raw + max(-most, min(most, wanted))) - raw
    if wanted in {0.0, possible}:
        return points
    factor = possible / wanted
    return [(index, given * factor) for index, given in points]


def _contributions(points: Points, most: int | None, *, before: Points = (), after: Points = ()) -> Shares:
    """Return points with each one's share of all that was given, between others that have none, 0.0 where nothing was given.

    ``most``: only so many, what moved the score most first.
    """
    whole = sum([abs(given) for _, given in points])
    shared = [(name, given, min(1.0, abs(given) / whole) if whole else 0.0) for name, given in points]
    parts = [*((name, given, 0.0) for name, given in before), *shared, *((name, given, 0.0) for name, given in after)]
    return parts if most is None else sorted(parts, key=lambda part: -abs(part[1]))[:most]


def _clamped(raw: float) -> float:
    return 0.0 if raw < 0.0 else min(raw, _MOST)
