"""What goes into a selection and what comes out of it.

Plain classes, not frozen ones: a frozen dataclass takes three times as long to make, and a search makes thirty of them a query.
Both compare by identity, because an item may be anything, an array too, and jumar never compares or hashes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from jumar.topk.explain import Explanation

__all__ = ["OnInvalid", "Scale", "ScoredItem", "SelectionResult", "Ties"]

T = TypeVar("T")

Scale = Literal["similarity", "distance", "bm25", "rrf", "logit"]
"""What the scores are. ``similarity``: cosine or the like, about 0–1, a hair outside is fine; ``bm25``: 0 or more, no upper end;
``rrf``: sums of 1/(60 + rank); ``logit``: any number; ``distance``: 0 or more, and the smallest is best."""

Ties = Literal["split", "keep"]
"""What becomes of items with the score of one that is kept: ``split`` cuts where the rule says, ``keep`` keeps them too, up to
``max_k``."""

OnInvalid = Literal["raise", "drop"]
"""What becomes of scores that are NaN or infinite: an error that names the first, or the item is left out."""


@dataclass(slots=True, eq=False)
class ScoredItem(Generic[T]):
    """An item with its score. The item is never looked at."""

    item: T
    score: float


@dataclass(slots=True, eq=False)
class SelectionResult(Generic[T]):
    """What was kept, best first, and why.

    ``cutoff_score`` is the worst kept score, 0.0 when nothing is kept. ``method`` is the strategy's name. ``metadata`` is plain
    JSON, with the keys that the strategy's page lists.
    """

    selected: list[ScoredItem[T]]
    cutoff_score: float
    method: str
    metadata: dict[str, Any]
    _basis: Any = field(default=None, repr=False)

    @property
    def abstained(self) -> bool:
        """True when nothing is kept: there was nothing, or ``min_k`` is 0 and nothing was good enough."""
        return not self.selected

    def explain(self) -> Explanation:
        """Return which rule made the cut, the runner-up, the margin and what truncated it; ``str()`` of it is for a terminal."""
        from jumar.topk.explain import explain

        return explain(self, self._basis)
