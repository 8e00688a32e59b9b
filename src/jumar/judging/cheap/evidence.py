"""Patterns as evidence: what fires on an item, and by how much it moves the raw score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jumar.judging.cheap.detectors import Detector, Judged, detector_for, view_of_item
from jumar.judging.cheap.features import FeaturePatterns
from jumar.judging.items.item import Item
from jumar.judging.patterns.models import PatternSet, PatternV2
from jumar.judging.rubric import PatternRules

if TYPE_CHECKING:
    from jumar.judging.patterns.coverage import Coverage
    from jumar.judging.patterns.matcher import PatternMatcher

_MATCHED = frozenset({"active", "provisional"})


class Evidence(NamedTuple):
    """What fired: ids in the order of the set, and the signed points that each active one would give by itself."""

    ids: list[str]
    points: list[tuple[str, float]]


class PatternEvidence:
    """The patterns of a set, ready to fire. Rejected and pruned ones never do.

    Errors: those of :class:`jumar.judging.patterns.matcher.PatternMatcher` and of
    :class:`jumar.judging.cheap.features.FeaturePatterns`.
    """

    def __init__(self, patterns: PatternSet) -> None:
        live = [pattern for pattern in patterns.patterns if pattern.status in _MATCHED]
        named = [(index, detector_for(one.id, one.description)) for index, one in enumerate(live)]
        self._detectors: list[tuple[int, Detector]] = [(index, rule) for index, rule in named if rule is not None]
        by_rule = {index for index, _ in self._detectors}
        self._others = [index for index in range(len(live)) if index not in by_rule]
        self._matcher = _matcher([live[index] for index in self._others])
        self._features = FeaturePatterns([one for index, one in enumerate(live) if index not in by_rule])
        self._as_given = not by_rule and not self._features
        self.ids = tuple(pattern.id for pattern in live)
        self.live = tuple(live)
        self._signed = [(1.0 if one.type == "good" else -1.0) * one.weight * (one.status == "active") for one in live]
        self._moves = [one.status == "active" for one in live]
        self.active = sum(self._moves)

    @property
    def uses_judged(self) -> bool:
        """Whether :meth:`fired` looks at what the components said."""
        return bool(self._detectors)

    def fired(self, item: Item, judged: Judged | None) -> list[int]:
        """Return the positions in ``ids`` of the patterns that fire, ascending; ``judged`` may be None unless ``uses_judged``."""
        found = [] if self._matcher is None else self._matcher.fired(item.text)
        if self._as_given:
            return found
        found = [self._others[index] for index in {*found, *self._features.fired(item)}]
        if judged is not None:
            view = view_of_item(item)
            found += [index for index, rule in self._detectors if rule(view, judged)]
        return sorted(found)

    def points(self, fired: Sequence[int], unit: float) -> list[tuple[str, float]]:
        """Return id and signed points, ``unit`` at weight 1, of the active ones among what fired, in their order."""
        ids = self.ids
        return [(ids[index], self._signed[index] * unit) for index in fired if self._moves[index]]

    def moves(self, fired: Sequence[int], unit: float) -> list[tuple[int, float]]:
        """Return :meth:`points` with the positions instead of the ids."""
        return [(index, self._signed[index] * unit) for index in fired if self._moves[index]]

    def weigh(self, fired: Sequence[int], rules: PatternRules) -> Evidence:
        """Return what fired with its points; ``rules.most`` is not applied yet."""
        ids = self.ids
        return Evidence([ids[index] for index in fired], self.points(fired, rules.points))


def measure_items(patterns: PatternSet, items: Iterable[Item]) -> Coverage:
    """Return what ``patterns`` do on ``items``, by phrases, expressions and features; the named indicators by their phrases.

    Errors: those of :class:`PatternEvidence`; :class:`jumar.errors.MissingExtraError`.
    """
    from jumar.judging.patterns.coverage import count_coverage, measure_coverage

    features = FeaturePatterns(patterns.patterns)
    if not features:
        return measure_coverage(patterns, (item.text for item in items))
    from jumar.judging.patterns.matcher import PatternMatcher

    matcher = PatternMatcher(patterns)
    return count_coverage(patterns, (sorted({*matcher.fired(item.text), *features.fired(item)}) for item in items))


def _matcher(patterns: list[PatternV2]) -> PatternMatcher | None:
    """Import the matching libraries only where there is something to match."""
    if all(pattern.feature is not None and not pattern.phrases and pattern.regex is None for pattern in patterns):
        return None
    from jumar.judging.patterns.matcher import PatternMatcher

    return PatternMatcher(patterns)
