"""Where every strategy cuts one ranking, and how a comparison of strategies reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jumar.errors import JumarError
from jumar.topk.result import Scale, ScoredItem
from jumar.topk.strategies import STRATEGIES, create_selection_strategy

if TYPE_CHECKING:
    from jumar.topk.tuning.metrics import Comparison, ComparisonRow, Estimate

_HEADS: Final = ("strategy", "F1", "95 %", "precision", "recall", "nDCG", "mean k", "skill", "95 %", "gap")
_ABSTAINING: Final = ("wrongly empty", "wrongly answered")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What one strategy, with its defaults, keeps: how many, down to which score, and by which rule.

    ``kept`` is None where it refused these scores; ``rule`` says why then.
    """

    strategy: str
    kept: int | None
    cutoff_score: float | None
    rule: str


def cuts_of(scores: Sequence[float], *, max_k: int, min_k: int, scale: Scale = "similarity") -> tuple[Cut, ...]:
    """Return the cut of every strategy, the fewest first. ``scores`` are of one query, in any order."""
    cuts = [_cut(name, scores, max_k, min_k, scale) for name in STRATEGIES]
    return tuple(sorted(cuts, key=lambda cut: (cut.kept is None, cut.kept or 0, cut.strategy)))


def _cut(name: str, scores: Sequence[float], max_k: int, min_k: int, scale: Scale) -> Cut:
    items = [ScoredItem(position, score) for position, score in enumerate(scores)]
    try:
        result = create_selection_strategy(name, scale=scale).select(items, max_k, min_k, assume_sorted=False)
    except JumarError as error:
        return Cut(strategy=name, kept=None, cutoff_score=None, rule=str(error))
    cutoff = None if result.abstained else result.cutoff_score
    return Cut(strategy=name, kept=len(result.selected), cutoff_score=cutoff, rule=result.explain().rule)


def comparison_heads(comparison: Comparison) -> tuple[str, ...]:
    """Return the names of the columns of a comparison; where queries may go unanswered, two more."""
    return (*_HEADS, *_ABSTAINING) if _abstains(comparison) else _HEADS


def comparison_cells(comparison: Comparison, row: ComparisonRow) -> tuple[str, ...]:
    """Return a row of a comparison, a text a column."""
    cells = (
        row.strategy,
        figure(row.f1),
        interval(row.f1),
        figure(row.precision),
        figure(row.recall),
        figure(row.ndcg),
        figure(row.mean_k, "{:.1f}"),
        figure(row.skill, "{:+.3f}"),
        interval(row.skill, "{:+.3f}"),
        figure(row.oracle_gap),
    )
    beside = (figure(row.wrongly_empty, "{:.1%}"), figure(row.wrongly_answered, "{:.1%}"))
    return (*cells, *beside) if _abstains(comparison) else cells


def _abstains(comparison: Comparison) -> bool:
    return comparison.min_k == 0 or comparison.in_scope < comparison.queries


def figure(estimate: Estimate, form: str = "{:.3f}") -> str:
    """Return a figure for people, a dash when there is none."""
    return "—" if estimate.value is None else form.format(estimate.value)


def interval(estimate: Estimate, form: str = "{:.3f}") -> str:
    """Return an interval for people, nothing when there is none."""
    return "" if estimate.low is None or estimate.high is None else f"{form.format(estimate.low)} to {form.format(estimate.high)}"
