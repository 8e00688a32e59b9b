"""What the cheap judge knows, as it is on disk: patterns, how their points become a score from 1 to 5, proposals of new ones.

Names and bounds are those of the first design of dual-mode evaluation; what was added has a default, so that its files are
read. Numbers are finite: NaN, an infinity and a weight of 3.0 are pydantic's ``ValidationError``, a ValueError.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from datetime import datetime
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Least = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Gestalt = Annotated[float, Field(ge=1.0, le=5.0, allow_inf_nan=False)]


class Curve(BaseModel):
    """From totals to scores: ``x`` increases, ``y`` never falls; at least one point, as many of both."""

    model_config = ConfigDict(frozen=True)

    x: tuple[Finite, ...] = Field(..., min_length=1)
    y: tuple[Gestalt, ...] = Field(..., min_length=1)

    @model_validator(mode="after")
    def _increasing(self) -> Curve:
        if len(self.x) != len(self.y):
            raise ValueError(f"the curve has {len(self.x)} values of x and {len(self.y)} of y; give as many of both")
        if any(one >= other for one, other in pairwise(self.x)):
            raise ValueError("the curve's x must increase from each point to the next")
        if any(one > other for one, other in pairwise(self.y)):
            raise ValueError("the curve's y must not fall: more points never mean a lower score")
        return self

    def at(self, total: float) -> float:
        """Return the score of ``total``: linear between the points, that of the first or the last point beyond them."""
        x, y = self.x, self.y
        if not x[0] < total < x[-1]:
            return y[0] if total <= x[0] else y[-1]
        right = bisect_right(x, total)
        low, high = y[right - 1], y[right]
        # both ends are met exactly, and rounding leads out of neither
        return min(high, low + (high - low) * ((total - x[right - 1]) / (x[right] - x[right - 1])))


class PatternGuard(BaseModel):
    """What keeps a score from being had for nothing.

    ``good_phrases`` times the root of an item's words are the points, before the curve, that good patterns without a feature
    give together at most: of an item on which they would give more, none of them counts. What is not known here is kept.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    good_phrases: Least

    def most(self, words: int) -> float:
        """Return the most points of good phrases that count in a text of ``words`` words; none has as many as one has."""
        return self.good_phrases * math.sqrt(max(1, words))


class Scorecard(BaseModel):
    """A calibrated judge: ``total = base + unit · Σ ±weight`` of the active patterns that fire, ``score = curve(total)``.

    ``guard`` bounds what good phrases give, None for no bound. ``rubric`` is the kind of items it was fitted on, None where
    that is not known. ``interval`` holds what ``--mode auto`` needs, ``fitted`` how it was made; neither has an effect on a
    score. What is not known here is kept.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    format: Literal[1] = 1
    kind: Literal["scorecard"] = "scorecard"
    rubric: Literal["story", "text"] | None = None
    base: Finite
    unit: Positive
    curve: Curve
    guard: PatternGuard | None = None
    interval: dict[str, Any] | None = None
    fitted: dict[str, Any] = Field(default_factory=dict[str, Any])


FORMAT_VERSION: Final = "2.0"

PatternStatus = Literal["active", "provisional", "rejected", "pruned"]
Weight = Annotated[float, Field(ge=0.0, le=2.0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


class PatternV1(BaseModel):
    """A pattern of format 1.0: a sentence and an example, nothing that could be matched."""

    type: Literal["good_pattern", "bad_pattern"]
    description: str
    example: str
    discovered_at: datetime
    source: str = "scoping_validation"


class PatternV2(BaseModel):
    """A pattern that can fire.

    It fires when one of ``phrases`` occurs in the item's text between word boundaries, ignoring case, or when ``regex`` (RE2)
    matches; without
    either, the ``keywords`` are its phrases. With ``feature`` it fires when that feature of the item is ``at_least`` so much;
    its keywords are then no phrases. A name of a feature that nobody knows is kept, and is an error where the pattern is to
    fire. ``type`` is the sign of its evidence, ``weight`` (0 to 2) how much of it. Only
    ``active`` ones take
    part in a score; ``pruned`` ones stay on record and are not matched.
    """

    id: str = Field(..., min_length=1, description="Unique pattern ID, e.g., 'p_001'")
    type: Literal["good", "bad"]
    description: str
    keywords: list[str] = Field(..., description="Extracted keywords for matching")
    weight: Weight = 1.0
    source: str
    discovered_at: datetime
    accuracy: Share = 0.0
    times_fired: Count = 0
    status: PatternStatus = "active"
    example: str = ""
    category: str | None = None
    phrases: list[str] = Field(default_factory=list[str])
    regex: Annotated[str, Field(min_length=1)] | None = None
    feature: Annotated[str, Field(min_length=1)] | None = None
    at_least: Annotated[float, Field(allow_inf_nan=False)] | None = None
    learned_iter: Count | None = None
    frequency: Count | None = Field(default=None, description="How many patterns of the migrated file said the same")

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="after")
    def _feature_with_a_value(self) -> PatternV2:
        if (self.feature is None) != (self.at_least is None):
            raise ValueError(
                "feature and at_least go together: the name of a feature, and the value from which the pattern fires"
            )
        return self


class ValuePhrase(BaseModel):
    """A phrase that says what a user gains."""

    phrase: str = Field(..., min_length=1)
    weight: Weight = 1.0
    learned_iter: Count = 0

    model_config = ConfigDict(extra="allow")


class TechValidation(BaseModel):
    """Where code lives: the beginnings of paths below each repository, and the extensions of source files.

    ``service_insights`` is what a migrated file said about its services, word for word.
    """

    valid_repo_paths: dict[str, list[str]] = Field(default_factory=dict[str, list[str]])
    valid_extensions: list[str] = Field(default_factory=list[str])
    learned_iter: Count = 0
    service_insights: dict[str, Any] = Field(default_factory=dict[str, Any])

    model_config = ConfigDict(extra="allow")


class PatternSet(BaseModel):
    """``patterns.json``. Only ``version`` and ``patterns`` are required; an empty list is legal; what is not known here is kept.

    ``scoring_weights`` are those of the rubric's components, by name; a component that is not named weighs 1. ``calibration``
    of the kind ``"scorecard"`` is checked against :class:`jumar.judging.patterns.models.Scorecard`, which turns points
    into scores; of any other kind it is kept and has no effect. ``calibration_history`` is oldest first. A set that
    was learned has the key ``robust``, which :attr:`is_robust` reads.
    """

    version: Literal["2.0"]
    patterns: list[PatternV2]
    last_updated: datetime | None = None
    iteration_learned: Count = 0
    value_phrases: list[ValuePhrase] = Field(default_factory=list[ValuePhrase])
    tech_validation: TechValidation = Field(default_factory=TechValidation)
    scoping_rules: list[Any] | dict[str, Any] = Field(default_factory=list[Any])
    scoring_weights: dict[str, Weight] = Field(default_factory=dict[str, float])
    calibration: dict[str, Any] | None = None
    calibration_history: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="after")
    def _readable_scorecard(self) -> PatternSet:
        self.scorecard()
        if not isinstance((self.model_extra or {}).get("robust", True), bool):
            raise ValueError("robust: should be true or false, or left out")  # noqa: TRY004 - pydantic catches no other
        return self

    @property
    def said_robust(self) -> bool | None:
        """Whether points were fitted so that making an item worse or longer raises no score; None where the set does not say."""
        said = (self.model_extra or {}).get("robust")
        return said if isinstance(said, bool) else None

    @property
    def is_robust(self) -> bool:
        """Whether a loop may optimise against the set: unless it says that it was made without the guard."""
        return self.said_robust is not False

    def scorecard(self) -> Scorecard | None:
        """Return the calibration as a scorecard; None where there is none, or one of another kind.

        Errors: pydantic's ``ValidationError`` for a scorecard with a wrong value.
        """
        given = self.calibration
        return None if given is None or given.get("kind") != "scorecard" else Scorecard.model_validate(given)


class PatternProposal(BaseModel):
    """A proposed pattern that has to prove itself. ``proposed_at`` is an iteration's number.

    ``pattern`` has the fields of a :class:`PatternV2`; :func:`jumar.judging.patterns.proposed.as_pattern` reads looser ones too.
    ``provenance`` says where it comes from: ``by``, ``items``, ``judge_words``, ``statistic``.
    """

    pattern: dict[str, Any]
    proposed_at: Count
    status: Literal["provisional", "validated", "rejected"] = "provisional"
    category: str | None = None
    rationale: str = ""
    provenance: dict[str, Any] = Field(default_factory=dict[str, Any])
    stories_tested: Count = 0
    correct_predictions: Count = 0

    @property
    def accuracy(self) -> float:
        """Share of the tested items on which firing and the expensive judge agreed; 0.0 before the first."""
        return self.correct_predictions / self.stories_tested if self.stories_tested else 0.0

    def should_commit(self) -> bool:
        """Return whether at least ten items were tested and at least 70 % agreed."""
        return self.stories_tested >= 10 and self.accuracy >= 0.7

    def should_reject(self) -> bool:
        """Return whether at least five items were tested and fewer than 30 % agreed."""
        return self.stories_tested >= 5 and self.accuracy < 0.3
