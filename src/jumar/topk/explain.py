"""Why a selection kept what it kept: the rule, the cut, the runner-up, what truncated it, and a small bar chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from jumar.text import plural
from jumar.topk.base import Evidence, RuleStrategy, SelectionStrategy

__all__ = ["Explanation", "Stage", "StagedBasis", "explain"]

_BAR = 32
_SHOWN = 30


@dataclass(frozen=True)
class Stage:
    """What a stage did: how many it was given and how many it let through."""

    name: str
    given: int
    kept: int
    reason: str


@dataclass(frozen=True)
class Explanation:
    """Why so many. ``str()`` is for a terminal, :meth:`as_dict` is plain JSON.

    ``by_rule`` is how many the rule alone would keep and ``truncated_by`` what changed that: ``max_k``, ``min_k``,
    ``min_score``, ``ties``, ``budget``, ``gate``. ``runner_up`` is the number that the rule would keep next, ``margin`` how far
    it was from that, in ``unit``; both None where there is no second. ``scores`` are all that there were and ``kept_positions``
    those kept.
    """

    method: str
    rule: str
    kept: int
    cutoff_score: float
    by_rule: int | None
    runner_up: int | None
    margin: float | None
    unit: str
    truncated_by: tuple[str, ...]
    scores: tuple[float, ...]
    kept_positions: tuple[int, ...]
    stages: tuple[Stage, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        found: dict[str, Any] = asdict(self)
        for name in ("truncated_by", "scores", "kept_positions", "stages"):
            found[name] = list(found[name])
        return found

    def __str__(self) -> str:
        lines = [f"{self.method} keeps {self.kept} of {plural(len(self.scores), 'item')}: {self.rule}"]
        if self.runner_up is not None and self.margin is not None:
            lines.append(f"runner-up: {self.runner_up}, a margin of {self.margin:.4g} in {self.unit}")
        if self.by_rule is not None and self.by_rule != self.kept:
            lines.append(f"the rule alone: {self.by_rule}")
        if self.truncated_by:
            lines.append(f"truncated by: {', '.join(self.truncated_by)}")
        lines += [f"{stage.name}: {stage.given} → {stage.kept}, {stage.reason}" for stage in self.stages]
        return "\n".join([*lines, *self.chart()])

    def chart(self) -> list[str]:
        """Return one line a score, the first 30 of them: a full bar is kept, a light one is not."""
        shown = self.scores[:_SHOWN]
        if not shown:
            return []
        low, high = min(0.0, *shown), max(0.0, *shown)
        kept = set(self.kept_positions)
        lines: list[str] = []
        for position, score in enumerate(shown):
            width = round((score - low) / (high - low) * _BAR) if high > low else 0
            bar = ("█" if position in kept else "░") * max(width, 1)
            lines.append(f"{position + 1:>4}  {score:>9.4f}  {bar}")
            if kept and position == max(kept) and position + 1 < len(self.scores):
                lines.append(f"{'':>4}  {'─' * 9}  {'─' * _BAR}")
        if len(self.scores) > _SHOWN:
            lines.append(f"      … and {len(self.scores) - _SHOWN} more")
        return lines


@dataclass(frozen=True)
class StagedBasis:
    """What a result of several stages was made from: the selector's own, and which of its items went on."""

    chosen: Any
    stages: tuple[Stage, ...]
    fitting: tuple[int, ...]


def explain(result: Any, basis: Sequence[Any] | StagedBasis | None) -> Explanation:
    """Return the explanation of ``result``, made from ``basis``: strategy, scores, limits, ties and, if any, positions."""
    if isinstance(basis, StagedBasis):
        return _explain_stages(result, basis)
    if basis is None:
        return Explanation(result.method, "there was nothing to choose from", 0, 0.0, 0, None, None, "", (), (), ())
    strategy, scores, max_k, min_k, ties, *rest = basis
    kept = len(result.selected)
    positions: tuple[int, ...] = tuple(rest[0]) if rest else tuple(range(kept))
    evidence = strategy.evidence(scores, max_k, min_k) if isinstance(strategy, RuleStrategy) else None
    sign = -1 if strategy.scale == "distance" else 1
    by_rule = None if evidence is None or evidence.kept_by_rule is None else min(evidence.kept_by_rule, len(scores))
    runner_up, margin = (None, None) if evidence is None else _runner_up(evidence)
    return Explanation(
        method=result.method,
        rule=_words(result) if evidence is None else evidence.rule,
        kept=kept,
        cutoff_score=result.cutoff_score,
        by_rule=by_rule,
        runner_up=runner_up,
        margin=margin,
        unit="" if evidence is None else evidence.unit,
        truncated_by=_truncated(strategy, scores, (max_k, min_k), kept, by_rule, ties),
        scores=tuple(float(sign * score) for score in scores),
        kept_positions=positions,
    )


def _explain_stages(result: Any, basis: StagedBasis) -> Explanation:
    inner: Explanation = basis.chosen.explain()
    cutting = tuple(stage.name for stage in basis.stages if stage.name != "selector" and stage.kept < stage.given)
    return replace(
        inner,
        kept=len(result.selected),
        cutoff_score=result.cutoff_score,
        truncated_by=(*inner.truncated_by, *cutting),
        kept_positions=tuple(inner.kept_positions[position] for position in basis.fitting) if result.selected else (),
        stages=basis.stages,
    )


def _words(result: Any) -> str:
    reason = result.metadata.get("reason", "the strategy says no more")
    return str(reason).replace("_", " ")


def _runner_up(evidence: Evidence) -> tuple[int | None, float | None]:
    """Return the number that would have been kept next, and how far away it was."""
    cut, values, threshold = evidence.kept_by_rule, evidence.values, evidence.threshold
    others = {k: value for k, value in values.items() if k != cut}
    if cut is None or not others:
        return None, None
    if evidence.at_least and threshold is not None:
        near = {k: abs(values[k] - threshold) for k in (cut, cut + 1) if k in values}
        closest = min(near, key=near.__getitem__) if near else None
        return (None, None) if closest is None else (cut - 1 if closest == cut else closest, near[closest])
    second = max(others, key=others.__getitem__)
    decisive = values.get(cut)
    if decisive is None:  # nothing was large enough to cut: how far the largest was from it
        return (second, threshold - others[second]) if threshold is not None else (second, None)
    return second, decisive - (others[second] if threshold is None else threshold)


def _truncated(
    strategy: SelectionStrategy, scores: list[float], limits: tuple[int, int], kept: int, by_rule: int | None, ties: str
) -> tuple[str, ...]:
    max_k, min_k = limits
    found: list[str] = []
    floor = getattr(strategy, "floor", getattr(strategy, "min_score", None))
    if kept == max_k < len(scores) and (by_rule is None or by_rule >= max_k):
        found.append("max_k")
    elif isinstance(floor, (int, float)) and kept < len(scores) and kept == sum(score >= floor for score in scores):
        found.append("min_score")
    if by_rule is not None and by_rule < kept:
        found.append("min_k" if kept == min(min_k, len(scores)) else "ties" if ties == "keep" else "min_k")
    return tuple(found)
