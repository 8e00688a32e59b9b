"""What is judged, and by what: the components of the cheap score with their weights, and what the expensive judge is asked.

A rubric is a TOML file; ``story`` and ``text`` are built in. A score is only comparable with one of the same rubric: its
``digest`` is on
record with every evaluation.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["JudgeRubric", "PatternRules", "Rubric"]

Weight = Annotated[float, Field(ge=0.0, le=2.0, allow_inf_nan=False)]


class JudgeRubric(BaseModel):
    """What the expensive judge is asked: ``task`` in a sentence, one line a criterion, and what the ends of the scale mean."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: str = Field(..., min_length=1)
    criteria: tuple[str, ...] = Field(..., min_length=1)
    anchors: dict[str, str] = Field(default_factory=dict[str, str], description="What a score means, by the score: '1', '3', '5'")


class PatternRules(BaseModel):
    """How much the active patterns may say.

    Each gives ``points`` · weight to the raw score, all of them at most ``most`` either way.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    points: Annotated[float, Field(ge=0.0, le=5.0, allow_inf_nan=False)] = 0.25
    most: Annotated[float, Field(ge=0.0, le=5.0, allow_inf_nan=False)] = 1.0


class Rubric(BaseModel):
    """One rubric.

    ``weights`` are those of the components by name (0 to 2); ``settings`` are the numbers and word lists they use.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(..., min_length=1)
    kind: Literal["story", "text"]
    weights: dict[str, Weight] = Field(default_factory=dict[str, float])
    settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    patterns: PatternRules = PatternRules()
    judge: JudgeRubric
