"""What the adapters of retrieval libraries share: a strategy as a field of a pydantic model, and limits that fit each other."""

from __future__ import annotations

from typing import Any

from jumar.errors import StrategyError
from jumar.topk.base import SelectionStrategy
from jumar.topk.contract import check_limits
from jumar.topk.registry import CLASSES, strategy_class

__all__ = ["check_pair", "written_strategy"]


def written_strategy(strategy: SelectionStrategy) -> dict[str, Any]:
    """Return what :func:`jumar.topk.create_selection_strategy` makes the same strategy of: its name and parameters.

    Errors: :class:`jumar.errors.StrategyError` for a strategy that is not jumar's: it has no name to be found by.
    """
    if strategy.name in CLASSES and type(strategy) is strategy_class(strategy.name):
        return {"strategy": strategy.name, **strategy.params()}
    raise StrategyError(
        f"{type(strategy).__name__} is a strategy of your own, which has no name to be found by: write down its parameters, and "
        "build it again where they are read"
    )


def check_pair(name: str | None, value: int, others: dict[str, Any]) -> int:
    """Return the limit ``name``, ``max_k`` or ``min_k``, unless it does not fit the other one, where that is known already.

    Errors: :class:`jumar.errors.StrategyError`.
    """
    limits = {**others, name: value}
    if "max_k" in limits and "min_k" in limits:
        check_limits(limits["max_k"], limits["min_k"])
    return value
