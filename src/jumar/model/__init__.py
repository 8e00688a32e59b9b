"""Frozen records and the Protocols: no input or output, no engine, so that everyone may import them."""

from __future__ import annotations

from jumar.model.attempts import Attempt, AttemptEnd, AttemptStart, Spend
from jumar.model.budget.pricing import Budget, Reservation
from jumar.model.decisions import Decision
from jumar.model.judgement import AutoDecisions, JudgedItem, Judgement, LearnedSoFar
from jumar.model.protocols import Clock, Evaluated, Evaluator, GenerateOutcome, Generator, Scorer, StepContext, Validator
from jumar.model.records import (
    Analysis,
    ArtifactDetail,
    CheckResult,
    IterationRecord,
    IterationView,
    Reading,
    ScoreReading,
    SuiteCounts,
    Usage,
)
from jumar.model.selection import (
    DEFAULT_CRITERIA,
    Degradation,
    DiminishingReturns,
    NoiseRules,
    SelectionCriteria,
    SelectionResult,
    StopDecision,
    StopRules,
    TrendRule,
)

__all__ = [
    "DEFAULT_CRITERIA",
    "Analysis",
    "ArtifactDetail",
    "Attempt",
    "AttemptEnd",
    "AttemptStart",
    "AutoDecisions",
    "Budget",
    "CheckResult",
    "Clock",
    "Decision",
    "Degradation",
    "DiminishingReturns",
    "Evaluated",
    "Evaluator",
    "GenerateOutcome",
    "Generator",
    "IterationRecord",
    "IterationView",
    "JudgedItem",
    "Judgement",
    "LearnedSoFar",
    "NoiseRules",
    "Reading",
    "Reservation",
    "ScoreReading",
    "Scorer",
    "SelectionCriteria",
    "SelectionResult",
    "Spend",
    "StepContext",
    "StopDecision",
    "StopRules",
    "SuiteCounts",
    "TrendRule",
    "Usage",
    "Validator",
]
