"""``select_batch``: the same choice for many queries at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jumar.topk.registry import create_selection_strategy
from jumar.topk.types import ScoredItem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["select_batch"]


def select_batch(
    scores: ArrayLike, strategy: object, max_k: int = 20, min_k: int = 1, *, return_mask: bool = False, **params: Any
) -> NDArray[np.intp] | NDArray[np.bool_]:
    """Return how many items each query keeps; with ``return_mask`` which ones, as booleans (queries × items)."""
    import numpy as np

    table = np.asarray(scores, dtype=np.float64)
    chosen = create_selection_strategy(strategy, **params)
    mask = np.zeros(table.shape, dtype=np.bool_)
    for query, row in enumerate(table.tolist()):
        for one in chosen.select([ScoredItem(k, score) for k, score in enumerate(row)], max_k, min_k).selected:
            mask[query, one.item] = True
    return mask if return_mask else mask.sum(axis=1)
