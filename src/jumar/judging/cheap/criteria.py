"""Are there acceptance criteria, neither too few nor too many?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jumar.judging.rubric import CriteriaRules

__all__ = ["count_criteria", "criteria_scorer"]


def count_criteria(criteria: Sequence[str]) -> int:
    """Return how many criteria say anything; blank ones do not count."""
    count = len(criteria)
    for one in criteria:
        if not one or one.isspace():
            count -= 1
    return count


def criteria_scorer(rules: CriteriaRules) -> Callable[[int], float]:
    """Return the function from the number of criteria to a score from 0.0 (none) to 1.0."""
    by_count = [_score(rules, count) for count in range(rules.most + 1)]

    def score(count: int) -> float:
        return by_count[count] if count < len(by_count) else rules.over

    return score


def _score(rules: CriteriaRules, count: int) -> float:
    if count == 0:
        return 0.0
    if rules.best_from <= count <= rules.best_to:
        return 1.0
    return rules.one if count == 1 else rules.near
