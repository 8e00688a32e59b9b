"""What the report needs of a run's recorded configuration; it was written by whichever front end made the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from jumar.errors import ConfigError, StoreDamagedError
from jumar.model.cases import CaseBest
from jumar.ranking.order import DEFAULT_TIE_BREAKS, LexicographicOrder, parse_order

__all__ = ["DEFAULT_ITERATIONS", "DEFAULT_ORDER", "carries_forward", "chain_order", "planned_iterations"]

DEFAULT_ORDER: Final = "accuracy,overall,chain"
DEFAULT_ITERATIONS: Final = 5


def chain_order(config: Mapping[str, Any], bests: Iterable[CaseBest]) -> LexicographicOrder:
    """Return the order that a run was made with: as configured, else as its best bundles say, else the default.

    A bundle has the names of the keys without their direction, so the configuration comes first. Errors:
    :class:`StoreDamagedError` when the recorded order cannot be read.
    """
    recorded = next(iter(bests), None)
    order = _found(config, "order", "best_order")
    ties = _found(config, "tiebreak", "tie_breaks", "best_tiebreak")
    if order is None:
        order = DEFAULT_ORDER if recorded is None else list(recorded.order)
    if ties is None:
        ties = DEFAULT_TIE_BREAKS if recorded is None else _ties_of(recorded)
    try:
        return parse_order(_items(order), _items(ties))
    except ConfigError as error:
        raise StoreDamagedError(f"run.json: config: {error}") from error


def planned_iterations(config: Mapping[str, Any]) -> int:
    """Return how many iterations a case could have had."""
    found = _found(config, "max_iters")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else DEFAULT_ITERATIONS


def carries_forward(config: Mapping[str, Any]) -> bool:
    """Return whether cases hand on what they chose."""
    return _found(config, "carry_forward") is not False


def _found(config: Mapping[str, Any], *names: str) -> Any:
    """Return the value of the first of ``names``, at the top or in a section."""
    sections = [config, *(cast("Mapping[str, Any]", value) for value in config.values() if isinstance(value, Mapping))]
    return next((section[name] for name in names for section in sections if section.get(name) is not None), None)


def _items(value: object) -> str | list[str]:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return [str(item) for item in cast("list[object]", value)]
    raise ConfigError(f"an order is a text or a list, not {type(value).__name__}")


def _ties_of(best: CaseBest) -> tuple[str, ...]:
    # the record does not say which came first; a smaller diff behind an earlier iteration could never have decided
    wanted = (("smaller_diff", best.prefer_smaller_diff), ("earlier_iter", best.prefer_earlier_iter))
    return tuple(name for name, is_wanted in wanted if is_wanted)
