"""What the report needs of a run's recorded configuration; it was written by whichever front end made the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from jumar.errors import ConfigError, StoreDamagedError
from jumar.model.cases import CaseBest
from jumar.model.pipeline import DEFAULT_KEYS
from jumar.ranking.order import DEFAULT_TIE_BREAKS, LexicographicOrder, parse_order

__all__ = ["DEFAULT_ORDER", "chain_order", "planned_iterations", "recorded_keys"]

DEFAULT_ORDER: Final = "accuracy,overall,chain"


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


def planned_iterations(config: Mapping[str, Any]) -> int | None:
    """Return how many iterations a case could have had; None when it is not recorded, as it may be raised by a resume."""
    found = _found(config, "max_iters")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def recorded_keys(config: Mapping[str, Any]) -> Mapping[str, str]:
    """Return where a run found its scores in the judge's file: the seed's expressions, and those that were configured."""
    found = _found(config, "keys")
    own = cast("Mapping[str, Any]", found).items() if isinstance(found, Mapping) else ()
    return {**DEFAULT_KEYS, **{name: expression for name, expression in own if isinstance(expression, str)}}


def _found(config: Mapping[str, Any], *names: str) -> Any:
    """Return the first of ``names`` that is set: at the top, by an option of the command line, or in a section of the file."""
    sections = [config]
    for path in (("options",), ("file", "ranking"), ("file", "run"), ("ranking",), ("run",)):
        section: Any = config
        for part in path:
            section = section.get(part) if isinstance(section, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if isinstance(section, Mapping):
            sections.append(cast("Mapping[str, Any]", section))
    return next((section[name] for section in sections for name in names if section.get(name) is not None), None)


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
