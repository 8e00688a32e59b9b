"""What the adapters of retrieval libraries share: a strategy as a field of a pydantic model, and limits that fit each other."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, TypeVar, cast

from jumar.errors import ScoreError, StrategyError
from jumar.topk.base import SelectionStrategy, parameters
from jumar.topk.contract import check_limits, shown
from jumar.topk.result import ScoredItem
from jumar.topk.retrieval import log_selection
from jumar.topk.strategies import DEFAULT_STRATEGY, STRATEGIES

T = TypeVar("T")


def keep(
    strategy: SelectionStrategy, items: Sequence[ScoredItem[T]], max_k: int, min_k: int, log_as: str, turn: str | None = None
) -> list[T]:
    """Return what ``strategy`` keeps of ``items``, which may be in any order, and log it; none from none, without a word."""
    result = strategy.select(items, max_k, min_k, assume_sorted=False)
    if items:
        log_selection(log_as, len(items), result, turn=turn)
    return [one.item for one in result.selected]


def scored(found: Sequence[T], score_of: Callable[[T], float | None], what: str, way: str) -> list[ScoredItem[T]]:
    """Return what was found with the scores that it has.

    Errors: :class:`jumar.errors.ScoreError` for one without, named ``what`` and by its position, and how to mend that.
    """
    items: list[ScoredItem[T]] = []
    for place, one in enumerate(found):
        score = score_of(one)
        if score is None:
            raise ScoreError(f"the {what} at position {place} has no score: put the {way}")
        items.append(ScoredItem(one, score))
    return items


def written_strategy(strategy: SelectionStrategy) -> dict[str, Any]:
    """Return what :func:`jumar.topk.create_selection_strategy` makes the same strategy of: its name and parameters.

    Errors: :class:`jumar.errors.StrategyError` for a strategy that is not jumar's: it has no name to be found by.
    """
    if STRATEGIES.get(strategy.name) is type(strategy):
        return {"strategy": strategy.name, **strategy.params()}
    raise StrategyError(
        f"{type(strategy).__name__} is a strategy of your own, which has no name to be found by: write down its parameters, and "
        "build it again where they are read"
    )


def refuse_parameters(given: Any, fields: Container[str]) -> Any:
    """Return what a model is built from, unless it has a strategy's parameter beside the model's own ``fields``.

    Errors: :class:`jumar.errors.StrategyError` with the place where it belongs.
    """
    if not isinstance(given, dict):
        return given
    told = cast("dict[str, Any]", given)
    others = [name for name in told if name not in fields]
    for name in others:
        having = [one for one in (DEFAULT_STRATEGY, *STRATEGIES) if name in parameters(STRATEGIES[one])]
        if having:
            chosen = told.get("strategy")
            named = chosen if isinstance(chosen, str) else having[0]
            raise StrategyError(
                f"{name} is a parameter of the strategy: strategy={{'strategy': {named!r}, {name!r}: {shown(told[name])}}}, or "
                "a strategy that was built with it"
            )
    return told


def check_pair(name: str | None, value: int, others: dict[str, Any]) -> int:
    """Return the limit ``name``, ``max_k`` or ``min_k``, unless it does not fit the other one, where that is known already.

    Errors: :class:`jumar.errors.StrategyError`.
    """
    limits = {**others, name: value}
    if "max_k" in limits and "min_k" in limits:
        check_limits(limits["max_k"], limits["min_k"])
    return value
