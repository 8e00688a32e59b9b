"""What is judged, and by what: the components of the cheap score with their weights, and what the expensive judge is asked.

``--rubric`` names a built-in one, ``story`` or ``text``, or a TOML file. A score is only comparable with one of the same rubric:
its ``digest`` is on record with every evaluation.
"""

from __future__ import annotations

import functools
import hashlib
import json
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from jumar.core.text import escape, nearest
from jumar.core.toml import parse_model, read_toml
from jumar.errors import ConfigError
from jumar.judging.items.item import Item

BUILTIN: Final = ("story", "text")

Kind = Literal["story", "text"]
Weight = Annotated[float, Field(ge=0.0, le=2.0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Words = tuple[Annotated[str, Field(min_length=1, pattern=r"\S")], ...]


class _Part(BaseModel):
    """A table of a rubric: unknown keys are errors, and nothing changes after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class JudgeRubric(_Part):
    """What the expensive judge is asked: ``task`` in a sentence, one line a criterion, and what the ends of the scale mean."""

    task: str = Field(..., min_length=1)
    criteria: tuple[str, ...] = Field(..., min_length=1)
    anchors: dict[str, str] = Field(default_factory=dict[str, str], description="What a score means, by the score: '1', '3', '5'")


class PatternRules(_Part):
    """How much the active patterns may say.

    Each gives ``points`` · weight to the raw score, all of them at most ``most`` either way.
    """

    points: Annotated[float, Field(ge=0.0, le=5.0, allow_inf_nan=False)] = 0.25
    most: Annotated[float, Field(ge=0.0, le=5.0, allow_inf_nan=False)] = 1.0


class Rubric(_Part):
    """What every rubric has. ``kind`` says which components its score is made of."""

    KIND: ClassVar[str | None] = None

    name: str = Field(..., min_length=1)
    kind: Kind
    patterns: PatternRules = PatternRules()
    judge: JudgeRubric

    @model_validator(mode="after")
    def _of_its_kind(self) -> Rubric:
        if self.KIND not in {None, self.kind}:
            raise ValueError(f"a rubric of kind {self.kind!r} has other components")
        return self

    @functools.cached_property
    def digest(self) -> str:
        """The SHA-256 of all that the rubric says, in hexadecimal; the layout of its file does not matter."""
        content = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()


def _need_weight(weights: BaseModel) -> None:
    if not any(weights.model_dump().values()):
        raise ValueError("every weight is 0; give at least one component a weight")


# ------------------------------------------------------------------------------------------------------------ stories


class StoryWeights(_Part):
    """How much each component counts; 0 leaves it out."""

    title_quality: Weight = 1.0
    ac_count: Weight = 1.0
    tech_specificity: Weight = 1.0
    user_focus: Weight = 1.0
    scope_check: Weight = 1.0

    @model_validator(mode="after")
    def _some(self) -> StoryWeights:
        _need_weight(self)
        return self


class TitleRules(_Part):
    """1 for a title of at most ``longest`` characters that begins with one of ``action_words``, else 0."""

    longest: Count = 80
    action_words: Words = ("add", "fix", "update", "improve", "enable", "implement")


class CriteriaRules(_Part):
    """The score by number: none 0, ``best_from`` to ``best_to`` 1, over ``most`` ``over``, else ``one`` or ``near``."""

    one: Share = 0.2
    near: Share = 0.6
    over: Share = 0.3
    best_from: Annotated[int, Field(ge=1)] = 3
    best_to: Annotated[int, Field(ge=1)] = 7
    most: Annotated[int, Field(ge=1)] = 10

    @model_validator(mode="after")
    def _ordered(self) -> CriteriaRules:
        if not self.best_from <= self.best_to <= self.most:
            raise ValueError("best_from, best_to and most have to be in this order")
        return self


class TechnicalRules(_Part):
    """What a technical area is worth: a repository with a known path in it, a repository alone, a file, anything else.

    ``repositories`` maps a repository to the beginnings of the paths in it; those of the patterns file come first.
    """

    known_path: Share = 1.0
    known_repository: Share = 0.5
    file: Share = 0.7
    other: Share = 0.2
    extensions: Words = ("py", "ts", "tsx", "js", "jsx")
    repositories: dict[str, Words] = Field(default_factory=dict[str, Words])


class ValueRules(_Part):
    """1 when the description has one of ``phrases``, else 0; phrases of the patterns file give their weight, at most 1."""

    phrases: Words = ("user can", "users will", "allows", "enables", "improves", "reduces", "saves", "prevents")


class ScopeRules(_Part):
    """1 when description (characters) and criteria (number) are within these bounds, all of them included, else 0."""

    shortest: Count = 50
    longest: Count = 2000
    fewest_criteria: Count = 2
    most_criteria: Count = 10


class StoryRubric(Rubric):
    """A rubric for user stories: five components, each from 0 to 1."""

    KIND: ClassVar = "story"
    COMPONENTS: ClassVar = ("title_quality", "ac_count", "tech_specificity", "user_focus", "scope_check")

    weights: StoryWeights = StoryWeights()
    title_quality: TitleRules = TitleRules()
    ac_count: CriteriaRules = CriteriaRules()
    tech_specificity: TechnicalRules = TechnicalRules()
    user_focus: ValueRules = ValueRules()
    scope_check: ScopeRules = ScopeRules()


# --------------------------------------------------------------------------------------------------------------- text


class TextWeights(_Part):
    """How much each component counts; 0 leaves it out."""

    length: Weight = 1.0
    structure: Weight = 1.0
    specificity: Weight = 1.0
    repetition: Weight = 1.0
    overlap: Weight = 1.0
    hedging: Weight = 1.0
    sentences: Weight = 1.0
    reasoning: Weight = 1.0

    @model_validator(mode="after")
    def _some(self) -> TextWeights:
        _need_weight(self)
        return self


class LengthRules(_Part):
    """Words: the score rises to 1 at ``enough``, stays there to ``most``, and has fallen to ``over`` at twice ``most``."""

    enough: Annotated[int, Field(ge=1)] = 60
    most: Annotated[int, Field(ge=1)] = 500
    over: Share = 0.5

    @model_validator(mode="after")
    def _ordered(self) -> LengthRules:
        if self.enough > self.most:
            raise ValueError("enough is more than most")
        return self


class StructureRules(_Part):
    """Sentences, list entries and further paragraphs: ``units`` of them are all that is asked for."""

    units: Annotated[int, Field(ge=1)] = 5


class SpecificityRules(_Part):
    """The share of words that are specific (a number, a name, code, ``long`` letters or more) at which the score is 1."""

    enough: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)] = 0.3
    long: Annotated[int, Field(ge=2)] = 8


class RepetitionRules(_Part):
    """The share of different sequences of three words at which the score is 0; it is 1 where all differ."""

    worst: Annotated[float, Field(ge=0.0, lt=1.0, allow_inf_nan=False)] = 0.5


class OverlapRules(_Part):
    """The overlap of the words of text and prompt at which the score is 1; words of ``letters`` or more count."""

    enough: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)] = 0.5
    letters: Annotated[int, Field(ge=1)] = 4


class HedgingRules(_Part):
    """Hedges in 100 words at which the score is 0; it is 1 without any."""

    most: Positive = 4.0
    phrases: Words = ("maybe", "perhaps", "possibly", "probably", "might", "i think", "i guess", "not sure", "it seems")


class SentenceRules(_Part):
    """Words in a sentence, on average: 1 from ``shortest`` to ``longest``, 0 at none and at twice ``longest``."""

    shortest: Positive = 6.0
    longest: Positive = 30.0

    @model_validator(mode="after")
    def _ordered(self) -> SentenceRules:
        if self.shortest > self.longest:
            raise ValueError("shortest is more than longest")
        return self


class ReasoningRules(_Part):
    """How many different ones of ``phrases`` make the score 1."""

    enough: Annotated[int, Field(ge=1)] = 3
    phrases: Words = ("because", "therefore", "so that", "for example", "such as", "however", "if", "when")


class TextRubric(Rubric):
    """A rubric for any text: eight components, each from 0 to 1; ``overlap`` only where there is a prompt."""

    KIND: ClassVar = "text"
    COMPONENTS: ClassVar = (
        "length",
        "structure",
        "specificity",
        "repetition",
        "overlap",
        "hedging",
        "sentences",
        "reasoning",
    )

    weights: TextWeights = TextWeights()
    length: LengthRules = LengthRules()
    structure: StructureRules = StructureRules()
    specificity: SpecificityRules = SpecificityRules()
    repetition: RepetitionRules = RepetitionRules()
    overlap: OverlapRules = OverlapRules()
    hedging: HedgingRules = HedgingRules()
    sentences: SentenceRules = SentenceRules()
    reasoning: ReasoningRules = ReasoningRules()


def rubric_class(kind: object) -> type[StoryRubric | TextRubric]:
    """Return the model that a rubric of ``kind`` is checked against; that of stories where it is neither."""
    return TextRubric if kind == "text" else StoryRubric


@functools.cache
def builtin_rubric(name: Kind) -> StoryRubric | TextRubric:
    """Return the built-in rubric called ``name``."""
    source: dict[str, Any] = tomllib.loads(files("jumar.judging").joinpath(f"rubrics/{name}.toml").read_text(encoding="utf-8"))
    return rubric_class(source["kind"]).model_validate(source)


def kind_of_items(rubric: StoryRubric | TextRubric | None) -> Literal["story"] | None:
    """Return as what items are read for a rubric: as stories, or None, by what is in them."""
    return "story" if rubric is not None and rubric.kind == "story" else None


def load_rubric(spec: str | None) -> StoryRubric | TextRubric | None:
    """Return the rubric that ``spec`` names; None for None, which takes ``story`` or ``text`` by the item.

    ``story`` and ``text`` are the built-in ones; a file of such a name is ``./story``. Errors: :class:`jumar.errors.ConfigError`
    that names file, line, key and range.
    """
    if spec is None:
        return None
    if spec == "story" or spec == "text":  # noqa: PLR1714 - so that the type checker sees the two
        return builtin_rubric(spec)
    path = Path(spec)
    if "/" not in spec and not path.suffix and not path.exists():
        near, known = nearest(spec, BUILTIN), ", ".join(BUILTIN)
        raise ConfigError(f"--rubric {escape(spec)}: no rubric and no file of this name{near}; write {known} or FILE.toml")
    if not path.exists():
        raise ConfigError(f"--rubric {escape(spec)}: no such file; built in are {' and '.join(BUILTIN)}")
    data, text = read_toml(path, "jumar evaluate --rubric story")
    return parse_model(rubric_class(data.get("kind")), data, str(path), text)


def rubric_of(rubric: Rubric | JudgeRubric | None, items: Sequence[Item]) -> JudgeRubric:
    """Return the question of a rubric; without one, that of the built-in rubric: ``story`` when the first item is one."""
    if isinstance(rubric, Rubric):
        return rubric.judge
    if rubric is not None:
        return rubric
    return builtin_rubric("story" if items and items[0].story is not None else "text").judge
