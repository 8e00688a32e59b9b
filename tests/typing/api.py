"""What type checkers know about jumar's public names. Not run: `make check` reads it with pyright and mypy, both strict.

Lines that must not fit say so with mypy's code; both checkers complain as soon as one of them fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import jumar
from jumar import topk
from jumar.app.evaluate import CheapEvaluation
from jumar.app.run_cases import CasesResult
from jumar.judging.expensive import JudgedEvaluation
from jumar.learning.run.prove import Proving
from jumar.learning.run.request import LearnResult
from jumar.loop import ranking
from jumar.loop.engine.outcome import LoopOutcome
from jumar.topk.config import ElbowSelectionConfig


def the_commands_are_functions(directory: Path) -> None:
    outcome = jumar.run(directory, checks=["pytest -q"], max_iterations=5, isolation="copy", include=["*.md"])
    assert_type(outcome, LoopOutcome)
    assert_type(outcome.selection, jumar.SelectionResult | None)
    assert_type(outcome.exit_code, int)
    assert_type(jumar.evaluate("items.jsonl", mode="cheap", jobs=2), CheapEvaluation)
    assert_type(jumar.evaluate(directory / "items.jsonl", "openai:MODEL", max_cost=1.0), JudgedEvaluation)
    assert_type(jumar.learn("items.jsonl", "openai:MODEL", "outputs", group="author"), LearnResult)
    assert_type(jumar.prove("outputs", max_cost=1.0), Proving)
    assert_type(jumar.run_cases("cases.toml", cases=[1, 2], dry_run=True), CasesResult)
    assert_type(jumar.run_cases().cases[0]["best_iter"], Any)
    jumar.run(directory, isolation="docker")  # type: ignore[arg-type]
    jumar.run(directory, iterations=5)  # type: ignore[call-arg]
    jumar.evaluate("items.jsonl", mode="dual")  # type: ignore[call-overload]


def topk_is_an_attribute(items: list[topk.ScoredItem[str]]) -> None:
    assert_type(jumar.topk.create_selection_strategy("elbow").select(items), topk.SelectionResult[str])


def errors_have_exit_codes(error: jumar.JumarError) -> None:
    assert_type(error.exit_code, int)
    assert_type(jumar.ScoreError.exit_code, int)


def a_score_error_is_a_value_error() -> None:
    try:
        raise jumar.ScoreError("quality: nan")
    except ValueError as error:
        assert_type(error, ValueError)


def records_are_read(record: jumar.IterationRecord) -> None:
    assert_type(record.iteration_number, int)
    assert_type(record.quality_score, float | None)
    assert_type(record.artifacts, tuple[str, ...])
    assert_type(record.view(), jumar.IterationView)


def results_are_read(result: jumar.SelectionResult) -> None:
    assert_type(result.selected_iteration, int)
    assert_type(result.fallback, str | None)
    assert_type(result.meets_threshold, bool | None)


def the_tracker_is_used(directory: Path) -> None:
    with jumar.BestOutputTracker(
        "loop-001", storage_path=directory, selection={"mode": "highest_quality"}, quality_weights={"validation": 0.5}
    ) as tracker:
        assert_type(tracker, jumar.BestOutputTracker)
        record = tracker.record_iteration(
            iteration_number=1,
            dimensions={"validation": 1},
            artifacts=["a.md", directory / "b.md"],
            tokens_used=5000,
            token_cost_usd=0.05,
            execution_time_ms=30_000,
            verification_status="passed",
            reflections=["say how errors are handled"],
        )
        assert_type(record, jumar.IterationRecord)
        assert_type(tracker.get_best(), jumar.IterationRecord | None)
        assert_type(tracker.get_all_iterations(), list[jumar.IterationRecord])
        assert_type(tracker.select_output(), jumar.SelectionResult)
        assert_type(tracker.apply_output(), jumar.SelectionResult)
        assert_type(tracker.generate_selection_report(), str)
        assert_type(tracker.detect_diminishing_returns(), jumar.DiminishingReturns)
        assert_type(tracker.detect_degradation(), jumar.Degradation)
        assert_type(tracker.override("best", reason="shorter"), jumar.Decision)
        assert_type(tracker.override(3, reason="keeps the API stable"), jumar.Decision)


def the_tracker_refuses(tracker: jumar.BestOutputTracker) -> None:
    tracker.override("best")  # type: ignore[call-arg]
    tracker.override("newest", reason="why not")  # type: ignore[arg-type]
    tracker.record_iteration(iteration_number=1, dimensions={}, verification_status="green")  # type: ignore[arg-type]
    tracker.record_iteration(1, {})  # type: ignore[call-arg]


def ranking_is_pure(views: tuple[jumar.IterationView, ...]) -> None:
    assert_type(ranking.weighted_score({"a": 0.5}, {"a": 1}), float)
    assert_type(ranking.choose(views, jumar.SelectionCriteria(mode="highest_quality")), jumar.SelectionResult)
    assert_type(ranking.running_best(views), jumar.IterationView | None)
    assert_type(ranking.evaluate_stop(views, jumar.StopRules(), seconds=1.0), jumar.StopDecision | None)
    jumar.SelectionCriteria(mode="best")  # type: ignore[arg-type]
    views[0].score = 1.0  # type: ignore[misc]


class Condense:
    """A generator that a user writes: no base class, only the method."""

    def generate(self, context: jumar.StepContext) -> jumar.GenerateOutcome:
        (context.workdir / "text.md").write_text(context.objective)
        return jumar.GenerateOutcome(exit_code=0, seconds=0.0)


class Short:
    """A scorer that a user writes."""

    dimension = "efficiency"

    def score(self, context: jumar.StepContext) -> jumar.ScoreReading:
        return jumar.ScoreReading(dimension="efficiency", score=1.0 if len(context.objective) < 80 else 0.0)


class NotAScorer:
    """Its score is a number, not a reading."""

    dimension = "efficiency"

    def score(self, context: jumar.StepContext) -> float:
        return len(context.objective) / 80


def parts_fit_the_protocols() -> tuple[jumar.Generator, jumar.Scorer]:
    return Condense(), Short()


def a_part_that_returns_something_else_does_not_fit() -> jumar.Scorer:
    return NotAScorer()  # type: ignore[return-value]


def topk_chooses(items: list[topk.ScoredItem[str]]) -> None:
    result = topk.AdaptiveKSelectionStrategy(alpha=1.5).select(items, max_k=20, min_k=1, ties="keep")
    assert_type(result, topk.SelectionResult[str])
    assert_type(result.selected, list[topk.ScoredItem[str]])
    assert_type(result.selected[0].item, str)
    assert_type(result.cutoff_score, float)
    assert_type(result.explain(), topk.Explanation)
    assert_type(topk.create_selection_strategy("elbow", drop_threshold=0.1), topk.SelectionStrategy)
    assert_type(topk.create_selection_strategy(ElbowSelectionConfig()).select(items), topk.SelectionResult[str])
    assert_type(topk.STRATEGIES["otsu"], type[topk.SelectionStrategy])
    topk.ElbowSelectionStrategy(threshold=0.1)  # type: ignore[call-arg]
    topk.OtsuSelectionStrategy().select(items, ties="both")  # type: ignore[arg-type]
    assert_type(topk.create_selection_strategy(min_score=0.3), topk.SelectionStrategy)


def topk_chooses_for_many(scores: NDArray[np.float64]) -> None:
    assert_type(topk.select_batch(scores, "otsu"), NDArray[np.intp])
    assert_type(topk.select_batch([[0.9, 0.5], [0.4]], "otsu", max_k=3, return_mask=False), NDArray[np.intp])
    assert_type(topk.select_batch(scores, topk.OtsuSelectionStrategy(), return_mask=True), NDArray[np.bool_])
    assert_type(topk.select_batch(scores), NDArray[np.intp])
    topk.select_batch(scores, "otsu", ties="both")  # type: ignore[call-overload]


def topk_learns(runs: list[dict[str, object]]) -> None:
    tuned = topk.tune(runs, metric="f1", max_k=10)
    assert_type(tuned.strategy, topk.SelectionStrategy)
    assert_type(tuned.quality.low, float | None)
    assert_type(tuned.fixed_k_as_good, bool)
    compared = topk.compare(runs, ["elbow", topk.FixedKSelectionStrategy(3)], scale="bm25")
    assert_type(compared.rows[0].skill.value, float | None)
    topk.compare(runs, scale="cosine")  # type: ignore[arg-type]
    topk.tune([0.9, 0.5])  # type: ignore[list-item]


class Rules:
    """A store that a user writes: no base class, only the method."""

    def search(
        self,
        query_embedding: Sequence[float],  # noqa: ARG002
        *,
        limit: int,
        tenant_id: str | None = None,  # noqa: ARG002
        agent_id: str | None = None,  # noqa: ARG002
        group_id: str | None = None,  # noqa: ARG002
    ) -> list[topk.ScoredItem[int]]:
        return [topk.ScoredItem(7, 0.9)][:limit]


class NotAStore:
    """It has no filters."""

    def search(self, query_embedding: Sequence[float], limit: int) -> list[topk.ScoredItem[int]]:  # noqa: ARG002
        return [topk.ScoredItem(7, 0.9)][:limit]


async def topk_retrieves(session: topk.Session) -> None:
    own, embedded = Rules(), topk.NumpyVectorStore[str]()
    assert_type(topk.retrieve_rules_sync([1.0], session, own), list[int])
    assert_type(await topk.retrieve_rules([1.0], session, own), list[int])
    with topk.TurnLog("abc123") as turn:
        assert_type(await topk.retrieve_memory([1.0], "group", embedded, turn=turn), list[str])
    assert_type(topk.retrieve_sync("scenarios", [1.0], embedded), topk.SelectionResult[str])
    topk.retrieve_sync("tools", [1.0], embedded)  # type: ignore[arg-type]
    topk.retrieve_rules_sync([1.0], session, NotAStore())  # type: ignore[arg-type]


def stores_fit_the_protocol() -> tuple[topk.VectorStore[int], topk.VectorStore[str]]:
    return Rules(), topk.NumpyVectorStore[str]()


def a_name_that_does_not_exist_is_an_error() -> None:
    print(jumar.Nothing)  # type: ignore[attr-defined]
    print(topk.Nothing)  # type: ignore[attr-defined]


assert_type(jumar.__version__, str)
