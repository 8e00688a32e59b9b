"""What ``tune`` tries: for each strategy the parameters worth a look, on the scale of the scores at hand.

Thresholds come from quantiles of the scores, never from the labels. None is never a value, since a configuration file cannot say
it: no minimum is written as the lowest that there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from jumar.errors import StrategyError
from jumar.topk.base import SelectionStrategy
from jumar.topk.registry import create_selection_strategy
from jumar.topk.tuning.labelled import LabelledQuery
from jumar.topk.types import Scale

__all__ = ["STATIC", "default", "space"]


class _Scores(NamedTuple):
    floors: tuple[float, ...]  # the first one drops nothing
    tops: tuple[float, ...]
    max_k: int
    unit: float  # 1 for similarities; elsewhere how far the scores reach from the best to the worst


Params = dict[str, Any]


def space(name: str, queries: Sequence[LabelledQuery], *, max_k: int, scale: Scale) -> list[SelectionStrategy]:
    """Return the candidates of the strategy called ``name``, its defaults first if it has any; none if it refuses the scale."""
    rows: list[Params] = [{}, *STATIC[name](_seen(queries, max_k, scale))]
    found = (_built(name, row, scale) for row in rows)
    return [one for one in found if one is not None and getattr(one, "k", 1) <= max_k]  # a number above max_k is none


def default(name: str, scale: Scale) -> SelectionStrategy | None:
    """Return the strategy called ``name`` with its defaults; None where it has none for the scale."""
    return _built(name, {}, scale)


def _built(name: str, row: Params, scale: Scale) -> SelectionStrategy | None:
    try:
        return create_selection_strategy(name, **row, **({} if scale == "similarity" else {"scale": scale}))
    except StrategyError:
        return None


def _seen(queries: Sequence[LabelledQuery], max_k: int, scale: Scale) -> _Scores:
    import numpy as np

    pooled = np.array([score for query in queries for score in query.scores[:max_k]] or [0.0])
    tops = np.array([query.scores[0] for query in queries if query.scores] or [0.0])
    shares = np.arange(0.1, 0.95, 0.1)
    if scale == "distance":
        none, shares = float(pooled.max()), 1.0 - shares
    else:
        none = min(0.0, float(pooled.min()))
    lowest = 0.0 if scale == "similarity" else -np.inf  # a file of settings takes no lower minimum for similarities
    floors, tops = ((none, *_rounded(np.quantile(values, shares))) for values in (pooled, tops))
    unit = 1.0 if scale == "similarity" else float(pooled.max() - pooled.min()) or 1.0
    return _Scores(tuple(dict.fromkeys(max(floor, lowest) for floor in floors)), tops, max_k, unit)


def _rounded(values: Any) -> tuple[float, ...]:
    """Return three digits that count: what a person can read, and finer than any of this can be told apart."""
    return tuple(float(f"{value:.3g}") for value in values)


def _grid(**axes: Sequence[Any]) -> list[Params]:
    return [dict(zip(axes, row, strict=True)) for row in product(*axes.values())]


def _sizes(max_k: int) -> list[int]:
    return sorted({size for size in (1, 2, 3, 5, 8, 10, 12, 15, 20, 30, max_k) if size <= max_k})


def _entropy(seen: _Scores) -> list[Params]:
    names = ("low_entropy_k", "medium_entropy_k", "high_entropy_k")
    triples = [dict(zip(names, (k, k, high), strict=True)) for k, high in product(_sizes(seen.max_k), repeat=2) if k <= high]
    return [{**triple, "min_score": floor} for triple in triples for floor in seen.floors[::2]]


def _entropy_normalized(seen: _Scores) -> list[Params]:
    names = ("low_entropy_k", "medium_entropy_k", "high_entropy_k")
    sizes = _sizes(seen.max_k)
    triples = [dict(zip(names, three, strict=True)) for three in product(sizes, repeat=3) if list(three) == sorted(three)]
    return [{**triple, "low": low, "high": high} for triple in triples for low, high in ((0.75, 0.9), (0.85, 0.95))]


STATIC: Final[dict[str, Callable[[_Scores], list[Params]]]] = {
    "fixed_k": lambda seen: _grid(k=range(1, seen.max_k + 1)),
    "adaptive_k": lambda seen: _grid(alpha=(1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0), min_score=seen.floors),
    "clustering": lambda seen: _grid(
        eps=_rounded(seen.unit * share for share in (0.01, 0.02, 0.05, 0.1)),
        min_cluster_size=(2, 3),
        top_per_cluster=(3, 5, 10, 20),
        min_score=seen.floors[::2],
    ),
    "elbow": lambda seen: _grid(drop_threshold=(0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5), min_score=seen.floors),
    "entropy": _entropy,
    "entropy_normalized": _entropy_normalized,
    "largest_gap": lambda seen: _grid(min_top=seen.tops[::2], min_score=seen.floors),
    "otsu": lambda seen: _grid(min_score=seen.floors),
    "ratio_to_top": lambda seen: _grid(
        ratio=(0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95), min_score=seen.floors[::2]
    ),
    "score_threshold": lambda seen: _grid(threshold=(*seen.floors, *seen.tops[1:])),
}
"""Parameters by strategy. ``conformal`` is for a promised recall and ``expected_f1`` is fitted: neither is searched."""
