"""Which patterns should have fired: they match what the expensive judge praised, and not the item."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jumar.judging.patterns.matcher import PatternMatcher
from jumar.judging.patterns.models import PatternSet

__all__ = ["MissedPatterns"]


class MissedPatterns:
    """The good patterns of a set that can fire, ready to be held against a judge's words."""

    def __init__(self, patterns: PatternSet) -> None:
        good = [one for one in patterns.patterns if one.type == "good" and one.status in {"active", "provisional"}]
        self._ids = [one.id for one in good]
        self._matcher = PatternMatcher(good)

    def of(self, strengths: Sequence[str], matched: Collection[str]) -> list[str]:
        """Return the ids of those that match one of ``strengths`` and are not in ``matched``, in the order of the set."""
        if not strengths:
            return []
        there = {self._ids[index] for strength in strengths for index in self._matcher.fired(strength)}
        return [one for one in self._ids if one in there and one not in matched]
