"""Is the story neither too small nor too large?"""

from __future__ import annotations

from collections.abc import Callable

from jumar.judging.rubric import ScopeRules

__all__ = ["scope_scorer"]


def scope_scorer(rules: ScopeRules) -> Callable[[int, int], float]:
    """Return the function from the description's length in characters and the number of criteria to 1.0 or 0.0."""

    def score(length: int, criteria: int) -> float:
        fits = rules.shortest <= length <= rules.longest and rules.fewest_criteria <= criteria <= rules.most_criteria
        return 1.0 if fits else 0.0

    return score
