"""What fires on given texts, what never does, what fires on nearly everything, and what fires on the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from jumar.core.lazy import need_extra
from jumar.judging.patterns.matcher import MATCHED, PatternMatcher
from jumar.judging.patterns.models import PatternSet, PatternV2

_CHUNK: Final = 512


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two patterns, the earlier one first. ``similarity`` is from 0 to 1; ``same_type`` is False when one is good and one bad."""

    first: str
    second: str
    by: Literal["wording", "firing"]
    similarity: float
    same_type: bool


def same_wording(patterns: Sequence[PatternV2], *, threshold: float = 0.8, limit: int = 1_000) -> list[Duplicate]:
    """Return the pairs whose descriptions are alike whatever the order of their words, most similar first, at most ``limit``.

    The similarity is rapidfuzz's ``token_sort_ratio`` of the words in lower case. All pairs are compared: 10,000 patterns take
    seconds. Errors: :class:`jumar.errors.MissingExtraError`.
    """
    need_extra("judge", "looking for near duplicates", "rapidfuzz", "numpy")
    import numpy as np
    from rapidfuzz import fuzz, process, utils

    said = [utils.default_process(pattern.description) for pattern in patterns]
    found: list[Duplicate] = []
    for start in range(0, len(said), _CHUNK):
        rows: Any = process.cdist(said[start : start + _CHUNK], said, scorer=fuzz.token_sort_ratio, score_cutoff=threshold * 100)
        for row, column in zip(*np.nonzero(rows), strict=True):
            one, other = start + int(row), int(column)
            if one < other and said[one]:
                found.append(_pair(patterns, one, other, "wording", float(rows[row, column]) / 100))
    return _best(found, limit)


def same_firing(
    patterns: Sequence[PatternV2],
    items: Mapping[int, Sequence[int]],
    *,
    threshold: float = 0.9,
    least: int = 3,
    limit: int = 1_000,
) -> list[Duplicate]:
    """Return the pairs that fire on nearly the same items, most similar first, at most ``limit``.

    ``items`` maps the position of a pattern to the items that it fired on; patterns that fired on fewer than ``least`` are left
    out. The similarity is Jaccard's: shared items over all items of either.
    """
    by_items: dict[frozenset[int], list[int]] = {}
    for index in sorted(items):
        if len(items[index]) >= least:
            by_items.setdefault(frozenset(items[index]), []).append(index)
    found: list[Duplicate] = []
    groups = sorted(by_items.items(), key=lambda item: (len(item[0]), item[1]))
    for number, (fired, members) in enumerate(groups):
        for place, one in enumerate(members):
            found += [_pair(patterns, one, other, "firing", 1.0) for other in members[place + 1 :]]
        for others, theirs in groups[number + 1 :]:
            if len(fired) < threshold * len(others):
                break  # they only get larger from here
            shared = len(fired & others)
            similarity = shared / (len(fired) + len(others) - shared)
            if similarity >= threshold:
                found += [_pair(patterns, min(a, b), max(a, b), "firing", similarity) for a in members for b in theirs]
        if len(found) > 20 * limit:
            found = _best(found, limit)
    return _best(found, limit)


def _pair(patterns: Sequence[PatternV2], one: int, other: int, by: Literal["wording", "firing"], similarity: float) -> Duplicate:
    first, second = patterns[one], patterns[other]
    return Duplicate(first.id, second.id, by, round(similarity, 6), first.type == second.type)


def _best(found: list[Duplicate], limit: int) -> list[Duplicate]:
    return sorted(found, key=lambda one: (-one.similarity, one.first, one.second))[:limit]


_REMEMBERED: Final = 10_000  # items a pattern remembers for finding duplicates; beyond, the first ones stand for all


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a set does on some items.

    ``fired`` maps the id of every pattern that is looked for to the number of items on which it fired, in the order of the set;
    ``duplicates`` are near ones, by wording and by the items.
    """

    items: int
    fired_items: int
    fired: dict[str, int]
    duplicates: tuple[Duplicate, ...]

    @property
    def fired_patterns(self) -> int:
        """How many patterns fired on at least one item."""
        return sum(1 for count in self.fired.values() if count)

    @property
    def never(self) -> list[str]:
        """The ids of the patterns that fired on no item."""
        return [name for name, count in self.fired.items() if not count]

    @property
    def largest_share(self) -> float:
        """The share of the items on which the most frequent pattern fired, from 0 to 1; 0 without items."""
        return max(self.fired.values(), default=0) / self.items if self.items else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the figures: ``items``, ``fired_items``, ``fired_patterns``, ``largest_share``."""
        counts = {"items": self.items, "fired_items": self.fired_items, "fired_patterns": self.fired_patterns}
        return {**counts, "largest_share": self.largest_share}


def measure_coverage(patterns: PatternSet, texts: Iterable[str]) -> Coverage:
    """Return what the phrases and expressions of ``patterns`` do on ``texts``, which are read once, one after the other.

    Errors: those of :class:`PatternMatcher`; :class:`jumar.errors.MissingExtraError`.
    """
    return count_coverage(patterns, map(PatternMatcher(patterns).fired, texts))


def count_coverage(patterns: PatternSet, firings: Iterable[Sequence[int]]) -> Coverage:
    """Return what ``patterns`` do, from the positions in ``patterns.patterns`` of what fired on each item, ascending."""
    looked_for = [index for index, pattern in enumerate(patterns.patterns) if pattern.status in MATCHED]
    counts = dict.fromkeys(looked_for, 0)
    where: dict[int, list[int]] = {}
    items = fired_items = 0
    for number, fired in enumerate(firings):
        items += 1
        fired_items += bool(fired)
        for index in fired:
            counts[index] += 1
            known = where.setdefault(index, [])
            if len(known) < _REMEMBERED:
                known.append(number)
    found = [*same_wording(patterns.patterns), *same_firing(patterns.patterns, where)]
    return Coverage(items, fired_items, {patterns.patterns[index].id: counts[index] for index in looked_for}, tuple(found))


class NaiveCount:
    """What fires when a pattern needs all its keywords somewhere in the text: the figure to compare with.

    That is what the first design's patterns amount to. Patterns without keywords never fire.
    """

    def __init__(self, patterns: PatternSet) -> None:
        self._wanted = [[keyword.lower() for keyword in pattern.keywords] for pattern in patterns.patterns]
        self._fired: set[int] = set()
        self.items = self.fired_items = 0

    def seen(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield ``texts`` as they are, counted."""
        for text in texts:
            self.items += 1
            low = text.lower()
            fired = [index for index, words in enumerate(self._wanted) if words and all(word in low for word in words)]
            self.fired_items += bool(fired)
            self._fired.update(fired)
            yield text

    def as_json(self) -> dict[str, int]:
        """Return ``items``, ``fired_items`` and ``fired_patterns``."""
        return {"items": self.items, "fired_items": self.fired_items, "fired_patterns": len(self._fired)}
