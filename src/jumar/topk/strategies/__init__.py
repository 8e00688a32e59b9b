"""One strategy a file. Importing this package loads them all; ``jumar.topk`` loads each when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from jumar.topk.base import SelectionStrategy
from jumar.topk.registry import CLASSES, strategy_class

__all__ = ["STRATEGIES"]

STRATEGIES: Final[Mapping[str, type[SelectionStrategy]]] = MappingProxyType(
    {name: strategy_class(name) for name in sorted(CLASSES)}
)
"""Every strategy by its name."""
