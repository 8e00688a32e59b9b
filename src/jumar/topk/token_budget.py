"""The last stage: what fits into the prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from jumar.errors import StrategyError
from jumar.topk.contract import check_size, shown
from jumar.topk.types import ScoredItem

__all__ = ["Spending", "TokenBudget", "about_tokens"]

T = TypeVar("T")


def about_tokens(item: object) -> int:
    """Return a rough number of tokens: a quarter of the UTF-8 bytes of ``str(item)``; a model's own tokenizer knows better."""
    return -(-len(str(item).encode("utf-8", "surrogatepass")) // 4)


@dataclass(frozen=True)
class Spending:
    """What fitted. ``positions`` index the items given; ``dropped`` counts those that did not fit; ``used`` is in tokens."""

    positions: tuple[int, ...]
    used: int
    dropped: int


@dataclass(frozen=True)
class TokenBudget:
    """Keeps items, best first, while their tokens fit into ``tokens``.

    ``count`` says how many tokens an item has; ``overhead`` is added for each (separators, titles). With ``overflow="stop"`` the
    first that does not fit ends it, so that the kept stay the best ones; ``"skip"`` leaves it out and goes on to smaller ones,
    but never past rank 1: when the best does not fit, nothing is kept. A budget is hard: it goes before ``min_k``. Errors:
    :class:`jumar.errors.StrategyError` for a budget or an overhead that is no whole number of 0 or more, for an unknown
    ``overflow``, and for a count that is no whole number of 0 or more.
    """

    tokens: int
    count: Callable[[Any], int] = about_tokens
    overhead: int = 0
    overflow: Literal["stop", "skip"] = "stop"

    def __post_init__(self) -> None:
        check_size("tokens", self.tokens, least=0)
        check_size("overhead", self.overhead, least=0)
        if self.overflow not in {"stop", "skip"}:
            raise StrategyError(f"overflow is {shown(self.overflow)}: choose 'stop' or 'skip'")

    def fit(self, items: Sequence[ScoredItem[T]]) -> Spending:
        """Return which of ``items``, best first, fit."""
        positions: list[int] = []
        used = 0
        for position, one in enumerate(items):
            size = self.count(one.item)
            check_size(f"the token count of the item at position {position}", size, least=0)
            if used + size + self.overhead <= self.tokens:
                used += size + self.overhead
                positions.append(position)
            elif self.overflow == "stop" or not position:
                break
        return Spending(tuple(positions), used, len(items) - len(positions))
