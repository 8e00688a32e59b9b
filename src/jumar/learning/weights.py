"""Weights without a library: a pattern weighs more the better its firing goes with the judge's scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from jumar.judging.patterns.matcher import PatternMatcher
from jumar.judging.patterns.models import PatternSet

__all__ = ["correlated"]


def correlated(patterns: PatternSet, texts: Sequence[str], scores: Sequence[float], *, rate: float = 1.0) -> PatternSet:
    """Return the set with the weights of its active patterns moved by ``rate`` (0 to 1) towards 1 ± r.

    r is the correlation of firing (0 or 1) with ``scores``, counted the way the pattern's type says: 2 for one that fires exactly
    where the judge finds an item as the pattern says, 0 for the opposite, 1 where nothing is to be seen. A pattern that fires on
    none or all of ``texts`` stays as it is; so do all where the scores do not differ. Errors: ValueError when the lengths differ.
    """
    if len(texts) != len(scores):
        raise ValueError(f"{len(texts)} texts and {len(scores)} scores do not belong together")
    mean = fmean(scores) if scores else 0.0
    spread = math.sqrt(math.fsum((score - mean) ** 2 for score in scores))
    if not spread:
        return patterns
    count = [0] * len(patterns.patterns)
    total = [0.0] * len(patterns.patterns)
    matcher = PatternMatcher(patterns)
    for text, score in zip(texts, scores, strict=True):
        for index in matcher.fired(text):
            count[index] += 1
            total[index] += score - mean
    found = list(patterns.patterns)
    for index, pattern in enumerate(found):
        fired = count[index]
        if pattern.status != "active" or not 0 < fired < len(texts):
            continue
        r = total[index] / (spread * math.sqrt(fired * (1 - fired / len(texts))))
        target = 1.0 + (r if pattern.type == "good" else -r)
        weight = pattern.weight + rate * (target - pattern.weight)
        found[index] = pattern.model_copy(update={"weight": min(2.0, max(0.0, weight))})
    return patterns.model_copy(update={"patterns": found})
