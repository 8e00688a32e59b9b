"""Both judges over the same items, one after the other, and everything that follows from the two lists of results.

The expensive judge goes first: what it said is needed to tell which patterns should have fired.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from jumar.core.lazy import need_extra
from jumar.judging.asking.evaluate import judge_items, run_async, split_options
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.asking.summary import Evaluation, Result
from jumar.judging.cheap.evaluator import CheapModeEvaluator, RubricChoice
from jumar.judging.component_health import (
    check_cheap_evaluator,
    check_expensive_evaluator,
    check_gap_calculator,
    check_patterns,
    every_component,
)
from jumar.judging.gap import GapSummary, MissedPatterns, pair_results, summarise_gaps
from jumar.judging.items.item import Item, as_items
from jumar.judging.models import (
    CheapModeResult,
    ComponentHealthStatus,
    DualModeResult,
    ExpensiveModeResult,
    IterationMetrics,
    Story,
    Unscored,
)
from jumar.judging.patterns.models import PatternSet
from jumar.judging.rubric import Rubric, rubric_of
from jumar.model.protocols import Judge

if TYPE_CHECKING:
    from jumar.judging.tracking import Tracking

CheapResult = CheapModeResult | Unscored


@dataclass(frozen=True, slots=True, kw_only=True)
class DualEvaluation:
    """Both lists of results in the items' order, and what they amount to.

    ``results`` are the items that both judges scored; ``summary`` and ``tracking`` are of those, ``tracking`` is None without
    any.
    ``pattern_match`` is the share of items on which at least one pattern fired, None without patterns.
    """

    items: tuple[Item, ...]
    expensive: Evaluation
    cheap: tuple[CheapResult, ...]
    results: tuple[DualModeResult, ...]
    summary: GapSummary
    tracking: Tracking | None
    pattern_match: float | None
    health: Mapping[str, ComponentHealthStatus]
    patterns: PatternSet | None

    def metrics(self, iteration: int, timestamp: datetime, previous_gap: float | None = None) -> IterationMetrics | None:
        """Return the metrics of this iteration, None when no item was scored by both. ``previous_gap`` is signed, as ``gap``."""
        summary = self.summary
        if summary.gap is None or summary.expensive_avg is None or summary.cheap_avg is None:
            return None
        known = [] if self.patterns is None else self.patterns.patterns
        return IterationMetrics(
            iteration=iteration,
            timestamp=timestamp,
            expensive_avg=summary.expensive_avg,
            cheap_avg=summary.cheap_avg,
            gap=summary.gap,
            gap_delta=0.0 if previous_gap is None else summary.gap - previous_gap,
            pattern_count=len(known),
            provisional_patterns=sum(one.status == "provisional" for one in known),
            patterns_committed=0,
            patterns_rejected=0,
            abs_gap=summary.abs_gap_mean,
            spearman=None if self.tracking is None else self.tracking.agreement.spearman,
            story_ids=[result.story_id for result in self.results],
            tracks=None if self.tracking is None or self.tracking.verdict == "not_proven" else self.tracking.verdict == "tracks",
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON: the figures of both modes with their items, gap, tracking and quality, health."""
        return {
            **self.figures(),
            "cheap": cheap_document(self.cheap, self.pattern_match),
            "expensive": self.expensive.to_json(),
            "large_gaps": [gap.to_json() for gap in self.summary.large],
        }

    def figures(self) -> dict[str, Any]:
        """Return what :meth:`to_json` does, without the single items."""
        summary = self.summary
        return evaluation_document(
            "dual",
            len(self.items),
            summary.scored,
            health=self.health,
            cheap=_cheap_figures(self.cheap, self.pattern_match),
            expensive=self.expensive.figures(),
            gap=summary.gap,
            abs_gap_mean=summary.abs_gap_mean,
            tracking=None if self.tracking is None else self.tracking.to_json(),
            quality={"cheap_avg": summary.cheap_avg, "met": summary.quality_met},
        )


def evaluation_document(
    mode: str, count: int, scored: int, *, health: Mapping[str, ComponentHealthStatus], **parts: Any
) -> dict[str, Any]:
    """Return what ``--json`` prints in every mode, of ``count`` items; a part that the mode does not have is null."""
    empty = dict.fromkeys(("cheap", "expensive", "gap", "abs_gap_mean", "tracking", "quality"))
    counts = {"mode": mode, "story_count": count, "scored": scored, "unscored": count - scored}
    return {**counts, **empty, **parts, "health": {name: status.model_dump() for name, status in health.items()}}


def cheap_document(results: Sequence[CheapResult], pattern_match: float | None) -> dict[str, Any]:
    """Return the figures of the cheap mode alone, over all items that it scored, with the items."""
    return {
        **_cheap_figures(results, pattern_match),
        "individual_scores": [result.model_dump() for result in results if isinstance(result, CheapModeResult)],
        "unscored_items": [result.model_dump() for result in results if isinstance(result, Unscored)],
    }


def _cheap_figures(results: Sequence[CheapResult], pattern_match: float | None) -> dict[str, Any]:
    scored = [result for result in results if isinstance(result, CheapModeResult)]
    return {
        "mode": "cheap",
        "gestalt_avg": fmean(one.gestalt for one in scored) if scored else None,
        "story_count": len(results),
        "scored": len(scored),
        "unscored": len(results) - len(scored),
        "pattern_match": pattern_match,
    }


def require_statistics() -> None:
    """Return where the statistics of both judges can be computed. Errors: :class:`jumar.errors.MissingExtraError`."""
    need_extra("judge", "holding both judges against each other", "numpy", "scipy")


async def judge_both(
    items: Sequence[Item],
    judge: Judge,
    evaluator: CheapModeEvaluator,
    *,
    rubric: Rubric | None = None,
    settings: JudgeSettings | None = None,
    on_result: Callable[[Result], None] | None = None,
    **options: Any,
) -> DualEvaluation:
    """Ask the expensive judge about every item, then the cheap one, and compare. The judge is not closed.

    ``options`` are those of :class:`jumar.judging.asking.evaluate.JudgeRun`. Errors: those of
    :func:`jumar.judging.judge_items`, and :class:`jumar.errors.ConfigError` without the packages of the statistics.
    """
    require_statistics()
    question = rubric_of(rubric, items)
    expensive = await judge_items(items, judge, question, settings, on_result=on_result, total=len(items), **options)
    return combine(items, expensive, list(evaluator.evaluate(items)), evaluator.patterns)


def combine(
    items: Sequence[Item],
    expensive: Evaluation,
    cheap: Sequence[CheapResult],
    patterns: PatternSet | None,
    *,
    resamples: int | None = None,
) -> DualEvaluation:
    """Return both lists of results, each in the items' order, as one evaluation, with the good patterns that did not fire.

    ``resamples`` is that of :func:`jumar.judging.tracking.track`.
    """
    completed = _with_missed(items, expensive.results, cheap, patterns)
    results = pair_results(expensive.results, completed)
    by_id = {item.id: item for item in items}
    fired = [one for one in completed if isinstance(one, CheapModeResult)]
    has_patterns = patterns is not None and bool(patterns.patterns)
    live = 0 if patterns is None else sum(pattern.status in {"active", "provisional"} for pattern in patterns.patterns)
    match = fmean(bool(one.patterns_matched) for one in fired) if has_patterns and fired else None
    return DualEvaluation(
        items=tuple(items),
        expensive=expensive,
        cheap=tuple(completed),
        results=tuple(results),
        summary=summarise_gaps(results, by_id),
        tracking=_tracking(results, by_id, resamples),
        pattern_match=match,
        health=every_component(
            pattern_migration=check_patterns(patterns),
            cheap_evaluator=check_cheap_evaluator(completed, patterns=live),
            expensive_evaluator=check_expensive_evaluator(expensive.results),
            gap_calculator=check_gap_calculator(results, asked=len(cheap)),
        ),
        patterns=patterns,
    )


def _with_missed(
    items: Sequence[Item], expensive: Sequence[Result], cheap: Sequence[CheapResult], patterns: PatternSet | None
) -> list[CheapResult]:
    """Return the cheap results with the good patterns that match what the judge praised, but did not fire on the item."""
    missed = MissedPatterns(patterns) if patterns is not None and patterns.patterns else None
    judged = {one.story_id: one for one in expensive if isinstance(one, ExpensiveModeResult)}
    completed: list[CheapResult] = []
    for item, one in zip(items, cheap, strict=True):
        verdict = judged.get(item.id)
        if missed is None or verdict is None or isinstance(one, Unscored):
            completed.append(one)
        else:
            found = missed.of(verdict.strengths, one.patterns_matched)
            completed.append(one.model_copy(update={"patterns_missed": found}) if found else one)
    return completed


def _tracking(results: Sequence[DualModeResult], items: Mapping[str, Item], resamples: int | None) -> Tracking | None:
    if not results:
        return None
    from jumar.judging.tracking import track

    judged = [items[result.story_id] for result in results]
    return track(
        [result.expensive.gestalt for result in results],
        [result.cheap.gestalt for result in results],
        lengths=[len(item.text) for item in judged],
        groups=[item.group for item in judged],
        readings=[result.expensive.readings for result in results],
        resamples=resamples,
    )


def evaluate_dual(
    stories: Iterable[Item | Story | Mapping[str, Any]],
    patterns_path: str | Path | PatternSet | None = None,
    *,
    judge: Judge,
    rubric: RubricChoice = None,
    settings: JudgeSettings | None = None,
    on_result: Callable[[Result], None] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Judge stories, or any records with ``text``, in both modes, and return :meth:`DualEvaluation.to_json`.

    ``options`` are fields of :class:`JudgeSettings`, and ``cache`` and ``prices``. The judge is closed afterwards, and may be
    used again.
    Works inside a running event loop, too, which it blocks. Errors: those of :func:`jumar.judging.evaluate_expensive` and of
    :class:`jumar.judging.CheapModeEvaluator`.
    """
    items = as_items(stories)
    evaluator = CheapModeEvaluator(patterns_path, rubric=rubric)
    chosen, run_options = split_options(settings, options)
    asked = evaluator.rubrics[0] if rubric is not None else None

    async def work() -> DualEvaluation:
        async with contextlib.aclosing(judge):
            return await judge_both(items, judge, evaluator, rubric=asked, settings=chosen, on_result=on_result, **run_options)

    return run_async(work).to_json()
