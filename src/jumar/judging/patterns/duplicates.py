"""Patterns that say nearly the same: by their wording, and by what they fire on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from jumar.core.extras import need_extra
from jumar.judging.patterns.models import PatternV2

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
