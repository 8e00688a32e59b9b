"""A gate, a selector and a token budget, one after the other, with one report for the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from jumar.errors import StrategyError
from jumar.topk.base import unusual
from jumar.topk.contract import check_threshold
from jumar.topk.explain import Stage, StagedBasis
from jumar.topk.registry import DEFAULT_STRATEGY, create_selection_strategy
from jumar.topk.token_budget import TokenBudget
from jumar.topk.types import OnInvalid, Scale, ScoredItem, SelectionResult, Ties

__all__ = ["Gate", "StagedSelection"]

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
        report = [{"name": one.name, "given": one.given, "kept": one.kept, "reason": one.reason} for one in stages]
        cutoff = float(selected[-1].score) if selected else 0.0
        return SelectionResult(
            selected, cutoff, chosen.method, {**chosen.metadata, "stages": report}, StagedBasis(chosen, tuple(stages), fitting)
        )
