"""Items and what the judges say about them. Names and bounds are those of the first design of dual-mode evaluation.

A gestalt is from 1 to 5. There is none that says "failed": an item that could not be judged is an :class:`Unscored`, never a
number.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Gestalt = Annotated[float, Field(ge=1.0, le=5.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


class Story(BaseModel):
    """A user story. Empty criteria are legal."""

    id: str
    title: str
    description: str
    acceptance_criteria: list[str]
    technical_area: str | None = None
    services: list[str] = Field(default_factory=list[str])
    source_conversations: list[str] = Field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one component or pattern gave to a raw score: ``points`` of 5, signed; ``share`` of all points given, from 0 to 1."""

    name: str
    points: float
    share: float


class CheapModeResult(BaseModel):
    """The cheap judge's score of one item, with everything that led to it.

    ``raw_score`` is from 0 to 5 and ``gestalt`` is 1 + 4 · raw / 5. ``reasons`` are codes; ``patterns_matched`` are the ids
    of all that fired,
    provisional ones too; ``sub_scores`` are from 0 to 1. By a scorecard, ``reasons`` are sentences with their points, and the
    points of ``contributions`` are those of the scale and add up to ``gestalt``.
    """

    story_id: str
    gestalt: Gestalt
    raw_score: float = Field(..., ge=0.0, le=5.0, allow_inf_nan=False)
    reasons: list[str]
    patterns_matched: list[str] = Field(..., description="Pattern IDs that fired")
    patterns_missed: list[str] = Field(default_factory=list[str], description="Patterns that should have fired")
    contributions: list[Contribution] = Field(default_factory=list[Contribution])
    sub_scores: dict[str, float] = Field(default_factory=dict[str, float])

    def __getitem__(self, name: str) -> Any:
        """Return a field by name: programs for the first design read results as dictionaries. Errors: KeyError."""
        if name not in type(self).model_fields:
            raise KeyError(name)
        return getattr(self, name)


class ExpensiveModeResult(BaseModel):
    """The expensive judge's score of one item: the median of ``readings`` where it was asked several times."""

    model_config = ConfigDict(protected_namespaces=())

    story_id: str
    gestalt: Gestalt
    reasoning: str
    strengths: list[str]
    weaknesses: list[str]
    readings: list[Gestalt] = Field(default_factory=list[float])
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_usd: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = None
    model: str | None = None
    cached: bool = False


UnscoredKind = Literal[
    "abstained",
    "rate_limited",
    "timed_out",
    "unavailable",
    "refused",
    "unparseable",
    "out_of_range",
    "missing",
    "rejected",
    "budget",
]


class Unscored(BaseModel):
    """An item without a score, and why. ``raw`` is what the judge answered, where it answered."""

    story_id: str
    kind: UnscoredKind
    message: str
    raw: str | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_usd: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = None


class DualModeResult(BaseModel):
    """Both judges' scores of one item."""

    story_id: str
    expensive: ExpensiveModeResult
    cheap: CheapModeResult
    gap: Finite = Field(..., description="expensive.gestalt - cheap.gestalt")


class IterationMetrics(BaseModel):
    """Averages of one iteration over the items that both modes scored.

    ``gap`` is signed; ``abs_gap`` is the mean of the items' absolute gaps. ``spearman`` is their rank
    correlation. ``tracks`` says whether the cheap judge tracked the expensive one; None when nobody knows.
    """

    iteration: Count
    timestamp: datetime
    expensive_avg: Finite
    cheap_avg: Finite
    gap: Finite
    gap_delta: Finite = Field(..., description="Change from previous iteration")
    pattern_count: Count
    provisional_patterns: Count
    patterns_committed: Count
    patterns_rejected: Count
    abs_gap: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = None
    story_ids: list[str] = Field(default_factory=list[str])
    regression_detected: bool = False
    tracks: bool | None = None
    spearman: Annotated[float, Field(ge=-1.0, le=1.0, allow_inf_nan=False)] | None = None


class ComponentHealthStatus(BaseModel):
    """Whether a component works; ``flags`` are codes of what was noticed, ``details`` the figures behind them."""

    healthy: bool
    flags: list[str] = Field(default_factory=list[str])
    details: dict[str, Any] = Field(default_factory=dict[str, Any])


class IterationLog(BaseModel):
    """Everything about one iteration, for programs."""

    iteration: Count
    timestamp: datetime
    component_health: dict[str, ComponentHealthStatus]
    metrics: IterationMetrics
    divergence_check: dict[str, Any]
    per_story_results: list[DualModeResult]
    actions_taken: list[dict[str, Any]]
    convergence_check: dict[str, Any]
    next_iteration_plan: dict[str, Any] = Field(default_factory=dict[str, Any])
