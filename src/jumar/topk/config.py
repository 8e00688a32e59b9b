"""Every strategy's parameters as a model, with their bounds, and the retrieval settings that are made of them.

The only module here that needs pydantic. A configuration is frozen, closed to unknown keys, and builds whenever it is valid:
:func:`jumar.topk.create_selection_strategy` takes it as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from jumar.topk.base import refuse_untold, similarity_defaults
from jumar.topk.contract import SCALES
from jumar.topk.registry import create_selection_strategy, strategy_class
from jumar.topk.result import Scale

__all__ = [
    "CONFIGS",
    "AdaptiveKSelectionConfig",
    "ClusterSelectionConfig",
    "ConformalSelectionConfig",
    "ElbowSelectionConfig",
    "EntropySelectionConfig",
    "ExpectedF1SelectionConfig",
    "FixedKSelectionConfig",
    "LargestGapSelectionConfig",
    "NormalizedEntropySelectionConfig",
    "OtsuSelectionConfig",
    "PipelineConfig",
    "RatioToTopSelectionConfig",
    "RetrievalConfig",
    "ScoreThresholdSelectionConfig",
    "SelectionConfig",
    "SelectionStrategyConfig",
    "Settings",
]

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Size = Annotated[int, Field(ge=1, strict=True)]


class SelectionConfig(BaseModel):
    """What the configurations of all strategies share.

    ``scale`` says what the scores are. A ``min_score`` for similarities is from 0 to 1; what it may be on other scales, and which
    scales a strategy takes, the strategy itself says. Defaults in the unit of similarities hold for these alone: on other scales
    ``min_score`` is none, and ``threshold``, ``eps``, ``slope`` and ``intercept`` have to be given. Errors: pydantic's
    ``ValidationError``, a ValueError.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    scale: Scale = Field(default="similarity", description="What the scores are")

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_scale(cls, given: Any) -> Any:
        """Leave out the defaults that are made for similarities where the scores are none."""
        scale: object = given.get("scale", "similarity") if isinstance(given, dict) else "similarity"  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if scale == "similarity" or scale not in SCALES:
            return given  # pyright: ignore[reportUnknownVariableType]
        strategy: str = cls.model_fields["strategy"].default
        found = strategy_class(strategy)
        untold = [name for name in similarity_defaults(found) if name not in given]
        refuse_untold(strategy, [name for name in untold if name in getattr(found, "NEEDED", ())], scale)
        values: dict[str, Any] = dict(given)  # pyright: ignore[reportUnknownArgumentType]
        return {**dict.fromkeys(untold), **values}

    @field_validator("min_score", check_fields=False)
    @classmethod
    def _in_range(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("scale") == "similarity" and not 0 <= value <= 1:
            raise ValueError("allowed: from 0 to 1 for scale 'similarity'; other scores need their scale beside it")
        return value

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        create_selection_strategy(self)
        return self


class ElbowSelectionConfig(SelectionConfig):
    """Configuration of the elbow: cut before the first large relative drop."""

    strategy: Literal["elbow"] = "elbow"
    drop_threshold: Number = Field(default=0.15, gt=0, lt=1, description="Smallest relative drop that cuts")
    min_score: Number | None = Field(default=0.5, description="Absolute minimum score")


class AdaptiveKSelectionConfig(SelectionConfig):
    """Configuration of adaptive-k: cut after the first gap above alpha × the mean gap."""

    strategy: Literal["adaptive_k"] = "adaptive_k"
    alpha: Number = Field(default=1.5, ge=0.5, le=5.0, description="A gap of alpha × the mean gap cuts: higher keeps more")
    min_score: Number | None = Field(default=0.4, description="Absolute minimum score")


class EntropySelectionConfig(SelectionConfig):
    """Configuration of the entropy: one of three sizes, by how alike the scores are; low ≤ medium ≤ high."""

    strategy: Literal["entropy"] = "entropy"
    low_entropy_k: Size = Field(default=3, description="Items below 1 nat")
    medium_entropy_k: Size = Field(default=5, description="Items from 1 to 2 nats")
    high_entropy_k: Size = Field(default=10, description="Items from 2 nats up")
    min_score: Number | None = Field(default=0.3, description="Absolute minimum score")


class ClusterSelectionConfig(SelectionConfig):
    """Configuration of clustering: the best of each group of scores."""

    strategy: Literal["clustering"] = "clustering"
    eps: Number = Field(default=0.1, gt=0, description="Largest distance between neighbours in a cluster")
    min_cluster_size: Size = Field(default=2, description="Items that make a cluster")
    top_per_cluster: Size = Field(default=3, description="Items kept of each cluster")
    min_score: Number | None = Field(default=0.4, description="Absolute minimum score")


class FixedKSelectionConfig(SelectionConfig):
    """Configuration of the baseline: always the same number."""

    strategy: Literal["fixed_k"] = "fixed_k"
    k: Size = Field(default=5, description="Items to keep")
    min_score: Number | None = Field(default=None, description="Absolute minimum score; none when absent")


class OtsuSelectionConfig(SelectionConfig):
    """Configuration of the natural break: where the two sides differ most."""

    strategy: Literal["otsu"] = "otsu"
    min_score: Number | None = Field(default=None, description="Absolute minimum score; none when absent")


class LargestGapSelectionConfig(SelectionConfig):
    """Configuration of the largest gap, with a floor for weak tops."""

    strategy: Literal["largest_gap"] = "largest_gap"
    min_top: Number | None = Field(default=None, description="With a best score below it, only min_k is kept")
    min_score: Number | None = Field(default=None, description="Absolute minimum score; none when absent")


class RatioToTopSelectionConfig(SelectionConfig):
    """Configuration of a share of the best score."""

    strategy: Literal["ratio_to_top"] = "ratio_to_top"
    ratio: Number = Field(default=0.7, gt=0, lt=1, description="Smallest share of the best score that is kept")
    min_score: Number | None = Field(default=None, description="Absolute minimum score; none when absent")


class ScoreThresholdSelectionConfig(SelectionConfig):
    """Configuration of a plain threshold."""

    strategy: Literal["score_threshold"] = "score_threshold"
    threshold: Number = Field(default=0.5, description="Score from which on items are kept; of distances, up to which")


class NormalizedEntropySelectionConfig(SelectionConfig):
    """Configuration of the evenness, 0 to 1: one of three sizes; low ≤ high, and the sizes low ≤ medium ≤ high."""

    strategy: Literal["entropy_normalized"] = "entropy_normalized"
    low_entropy_k: Size = Field(default=3, description="Items below an evenness of low")
    medium_entropy_k: Size = Field(default=8, description="Items from low to high")
    high_entropy_k: Size = Field(default=12, description="Items from high up")
    low: Number = Field(default=0.75, ge=0, le=1, description="Evenness below which the scores point at few")
    high: Number = Field(default=0.9, ge=0, le=1, description="Evenness from which on the scores are all alike")
    min_score: Number | None = Field(default=None, description="Absolute minimum score; none when absent")


class ConformalSelectionConfig(SelectionConfig):
    """Configuration of a recall target: a threshold that was fitted on labelled queries."""

    strategy: Literal["conformal"] = "conformal"
    threshold: Number | None = Field(default=None, description="The fitted threshold; up to max_k are kept without one")
    recall: Number = Field(default=0.9, gt=0, lt=1, description="Mean recall that the threshold was fitted for")
    on: Literal["score", "ratio"] = Field(default="score", description="What is compared: the score, or its share of the best")
    queries: Annotated[int, Field(ge=0, strict=True)] = Field(default=0, description="Labelled queries it was fitted on")


class ExpectedF1SelectionConfig(SelectionConfig):
    """Configuration of the largest expected F: how a score becomes a probability."""

    strategy: Literal["expected_f1"] = "expected_f1"
    slope: Number = Field(default=8.0, description="Weight of the score in the logit")
    intercept: Number = Field(default=-4.0, description="The logit's constant")
    rank_slope: Number = Field(default=-0.5, description="Weight of ln(rank) in the logit")
    unseen: Number = Field(default=0.0, ge=0, description="Relevant items expected beyond those given")
    beta: Number = Field(default=1.0, gt=0, description="Above 1, recall weighs more than precision")
    min_score: Number | None = Field(default=None, description="Absolute minimum score; none when absent")


SelectionStrategyConfig = Annotated[
    ElbowSelectionConfig
    | AdaptiveKSelectionConfig
    | EntropySelectionConfig
    | ClusterSelectionConfig
    | FixedKSelectionConfig
    | OtsuSelectionConfig
    | LargestGapSelectionConfig
    | RatioToTopSelectionConfig
    | ScoreThresholdSelectionConfig
    | NormalizedEntropySelectionConfig
    | ConformalSelectionConfig
    | ExpectedF1SelectionConfig,
    Field(discriminator="strategy"),
]
"""The configuration of any strategy; the key ``strategy`` says which."""

CONFIGS: Final[Mapping[str, type[SelectionConfig]]] = MappingProxyType(
    {
        "adaptive_k": AdaptiveKSelectionConfig,
        "clustering": ClusterSelectionConfig,
        "conformal": ConformalSelectionConfig,
        "elbow": ElbowSelectionConfig,
        "entropy": EntropySelectionConfig,
        "entropy_normalized": NormalizedEntropySelectionConfig,
        "expected_f1": ExpectedF1SelectionConfig,
        "fixed_k": FixedKSelectionConfig,
        "largest_gap": LargestGapSelectionConfig,
        "otsu": OtsuSelectionConfig,
        "ratio_to_top": RatioToTopSelectionConfig,
        "score_threshold": ScoreThresholdSelectionConfig,
    }
)
"""Every strategy's configuration by the strategy's name."""


def _rules() -> SelectionStrategyConfig:
    return AdaptiveKSelectionConfig()  # with the 0.5 of the seed's file, the list that it opens with would lose its third rule


def _scenarios() -> SelectionStrategyConfig:
    return EntropySelectionConfig(low_entropy_k=1, medium_entropy_k=2, high_entropy_k=3, min_score=0.6)


def _memory() -> SelectionStrategyConfig:
    return ClusterSelectionConfig()


def _as_many_as_kept(data: dict[str, Any]) -> int:
    return int(data.get("max_k", 20))


class RetrievalConfig(BaseModel):
    """``[pipeline.retrieval]``: how many candidates are fetched, how many may be kept, and who decides for what.

    ``min_k`` ≤ ``max_k``, ``min_k`` ≤ ``candidate_k``; ``candidate_k``, the number that is fetched, is ``max_k`` unless it is
    given. ``embedding_provider`` is the name of whatever makes the embeddings; jumar hands it on and does not look at it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    embedding_provider: str = Field(default="default", description="Name of what makes the embeddings")
    max_k: Size = Field(default=20, description="Most items that are kept")
    min_k: Annotated[int, Field(ge=0, strict=True)] = Field(default=1, description="Fewest items that are kept")
    candidate_k: Size = Field(default_factory=_as_many_as_kept, description="Candidates that are fetched; as max_k when absent")
    rule_selection: SelectionStrategyConfig = Field(default_factory=_rules)
    scenario_selection: SelectionStrategyConfig = Field(default_factory=_scenarios)
    memory_selection: SelectionStrategyConfig = Field(default_factory=_memory)

    @field_validator("min_k")
    @classmethod
    def _at_most_max_k(cls, value: int, info: ValidationInfo) -> int:
        most = info.data.get("max_k", value)
        if value > most:
            raise ValueError(f"allowed: from 0 to max_k, which is {most}")
        return value

    @field_validator("candidate_k")
    @classmethod
    def _at_least_min_k(cls, value: int, info: ValidationInfo) -> int:
        least = info.data.get("min_k", value)
        if value < least:
            raise ValueError(f"allowed: min_k, which is {least}, or more")
        return value


class PipelineConfig(BaseModel):
    """``[pipeline]``; of its tables, jumar reads ``retrieval``."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    retrieval: RetrievalConfig = Field(default_factory=RetrievalConfig)


class Settings(BaseModel):
    """A whole file; of its tables, jumar reads ``pipeline``."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    pipeline: PipelineConfig = Field(default_factory=PipelineConfig)
