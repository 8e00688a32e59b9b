"""Strategies by name or configuration."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import Any, Final

from jumar.core.text import nearest
from jumar.errors import StrategyError
from jumar.topk.base import SelectionStrategy, parameters, similarity_defaults
from jumar.topk.contract import shown

DEFAULT_STRATEGY: Final = "entropy_normalized"
"""What chooses where nobody names a strategy: the best of them without labels on the public runs of docs/topk."""

_NAMES: Final = tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))
"""Every module here is a strategy, called as its module; settings are made from the class."""


class _Strategies(Mapping[str, type[SelectionStrategy]]):
    """The classes by their names, each loaded when it is asked for."""

    def __getitem__(self, name: str) -> type[SelectionStrategy]:
        if name not in _NAMES:
            raise KeyError(name)
        defined = vars(import_module(f"{__name__}.{name}")).values()
        return next(each for each in defined if isinstance(each, type) and vars(each).get("NAME") == name)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def __repr__(self) -> str:
        return f"STRATEGIES({', '.join(self)})"


STRATEGIES: Final[Mapping[str, type[SelectionStrategy]]] = _Strategies()
"""Every strategy by its name."""


def strategy_class(name: object) -> type[SelectionStrategy]:
    """Return the class of a name. Errors: :class:`jumar.errors.StrategyError`, a ValueError, that says which name is nearest."""
    if not isinstance(name, str) or name not in _NAMES:
        close = nearest(name, _NAMES) if isinstance(name, str) else ""
        raise StrategyError(f"unknown strategy {shown(name)}{close}; there are: {', '.join(_NAMES)}")
    return STRATEGIES[name]


def create_selection_strategy(config_or_name: object = DEFAULT_STRATEGY, **params: Any) -> SelectionStrategy:
    """Return the strategy that a name, a configuration or a mapping with the key ``strategy`` describes.

    Without a name it is ``entropy_normalized``.
    ``params`` go before those of the configuration. A strategy is returned as it is, or as a copy with ``params``. Errors:
    :class:`jumar.errors.StrategyError` for a name or a parameter that does not exist, and for values out of range.
    """
    if isinstance(config_or_name, SelectionStrategy):
        return _changed(config_or_name, params)
    if isinstance(config_or_name, str):
        return _built(config_or_name, params)
    if callable(getattr(config_or_name, "select", None)):
        raise StrategyError(
            f"{type(config_or_name).__name__} has a select, but is no strategy: derive it from jumar.topk.SelectionStrategy, or "
            "from jumar.topk.RuleStrategy; of a StagedSelection give the selector"
        )
    settings = _settings(config_or_name)
    name = settings.pop("strategy", None)
    if name is None:
        raise StrategyError(f"{shown(config_or_name)} names no strategy: give a name, or a configuration with a field 'strategy'")
    return _built(name, {**settings, **params})


def _changed(strategy: SelectionStrategy, params: dict[str, Any]) -> SelectionStrategy:
    if not params:
        return strategy
    if not is_dataclass(strategy):
        raise StrategyError(f"{type(strategy).__name__} takes no parameters here: build it with those that you want")
    _check_names(strategy.name, type(strategy), params)
    if strategy.scale == "similarity" != params.get("scale", "similarity"):  # a default is none on another scale
        unset = {name: value for name, value in similarity_defaults(type(strategy)).items() if getattr(strategy, name) == value}
        params = {**unset, **params}
    return replace(strategy, **params)


def _settings(config: Any) -> dict[str, Any]:
    """Return the fields of a pydantic model, a mapping, or any object with attributes."""
    if isinstance(config, Mapping):
        return {str(name): value for name, value in config.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if hasattr(config, "model_dump"):
        return dict(config.model_dump())
    if is_dataclass(config) and not isinstance(config, type):
        return {field.name: getattr(config, field.name) for field in fields(config)}
    return dict(vars(config)) if hasattr(config, "__dict__") else {}


def _built(name: object, params: dict[str, Any]) -> SelectionStrategy:
    strategy = strategy_class(name)
    _check_names(str(name), strategy, params)
    return strategy(**params)


def _check_names(name: str, strategy: type[SelectionStrategy], params: dict[str, Any]) -> None:
    names = parameters(strategy)
    for given in params:
        if given not in names:
            raise StrategyError(f"{name} has no parameter {shown(given)}{nearest(given, names)}; it has: {', '.join(names)}")
