"""A gate, a selector and a token budget, one after the other, with one report for the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

from jumar.errors import StrategyError
from jumar.topk.base import unusual
from jumar.topk.contract import check_size, check_threshold, shown
from jumar.topk.result import OnInvalid, Scale, ScoredItem, SelectionResult, Stage, StagedBasis, Ties
from jumar.topk.strategies import DEFAULT_STRATEGY, create_selection_strategy

T = TypeVar("T")


@dataclass(frozen=True)
class Gate:
    """Lets a ranking through when its best score is at least ``min_top`` (for distances: at most).

    Errors: :class:`jumar.errors.StrategyError` for a ``min_top`` that means nothing on the ``scale``.
    """

    min_top: float
    scale: Scale = "similarity"

    def __post_init__(self) -> None:
        if self.min_top is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise StrategyError("min_top is None: give the best score from which on there is an answer")
        check_threshold("min_top", self.min_top, self.scale)

    def opens(self, top: float) -> bool:
        """Return whether a ranking whose best score is ``top`` goes through."""
        return top <= self.min_top if self.scale == "distance" else top >= self.min_top


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


class StagedSelection:
    """``gate`` → ``selector`` → ``budget``; a stage that is None lets everything through.

    ``selector`` is a strategy, its name or its configuration, ``entropy_normalized`` when absent. The result has the selector's
    method and metadata, with ``stages`` beside them: what each was given, what it kept and why. A closed gate and a budget that
    is too small keep less than ``min_k``; the result then says ``abstained`` or how many were dropped.
    """

    def __init__(
        self, selector: object = DEFAULT_STRATEGY, *, gate: Gate | None = None, budget: TokenBudget | None = None
    ) -> None:
        self.selector = create_selection_strategy(selector)
        self.gate = gate
        self.budget = budget
        if gate is not None and gate.scale != self.selector.scale:
            raise StrategyError(f"the gate is for {gate.scale}, the selector for {self.selector.scale}: give both the same scale")

    def select(
        self,
        items: Sequence[ScoredItem[T]],
        max_k: int = 20,
        min_k: int = 1,
        *,
        assume_sorted: bool = True,
        on_invalid: OnInvalid = "raise",
        ties: Ties = "split",
    ) -> SelectionResult[T]:
        """Return what goes through all stages; see :meth:`jumar.topk.SelectionStrategy.select` for parameters and errors."""
        items = list(items)
        given = unusual(assume_sorted=assume_sorted, on_invalid=on_invalid)
        chosen = self.selector.select(items, max_k, min_k, **given, **unusual(ties=ties))
        first = chosen.selected or self.selector.select(items, 1, 1, **given).selected
        stages: list[Stage] = []
        selected = chosen.selected
        if self.gate is not None and first:
            top = float(first[0].score)
            opened = self.gate.opens(top)
            word = "at most" if self.gate.scale == "distance" else "at least"
            reason = f"the best score {top:.4g} is {'' if opened else 'not '}{word} {self.gate.min_top:g}"
            stages.append(Stage("gate", len(items), len(items) if opened else 0, reason))
            if not opened:
                selected = []
        if not stages or stages[0].kept:
            stages.append(Stage("selector", len(items), len(selected), self.selector.name))
        fitting = tuple(range(len(selected)))
        if self.budget is not None and selected:
            spending = self.budget.fit(selected)
            reason = f"{spending.used:,} of {self.budget.tokens:,} tokens"
            stages.append(Stage("budget", len(selected), len(spending.positions), reason))
            fitting = spending.positions
            selected = [selected[position] for position in fitting]
        metadata = {**chosen.metadata, "stages": [asdict(stage) for stage in stages]}
        cutoff = float(selected[-1].score) if selected else 0.0
        return SelectionResult(selected, cutoff, chosen.method, metadata, StagedBasis(chosen, tuple(stages), fitting))
