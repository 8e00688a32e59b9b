"""``[evaluator]``, and the options of ``[[scorers]] builtin = "judge"``: what is judged, by whom, and what becomes of it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from jumar.app.config.tables import Name as Text
from jumar.app.config.tables import Section
from jumar.core.text import escape, nearest
from jumar.errors import ConfigError
from jumar.judging.asking.settings import DEFAULTS, MAX_TOKENS
from jumar.judging.judges import forms, kind_of
from jumar.processes.written_files import check_relative

Pair = Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=2, max_length=2)]

_STORY_PARTS: Final = (
    "story_quality",
    "tech_accuracy",
    "actionability",
    "invest",
    "invest_independent",
    "invest_negotiable",
    "invest_valuable",
    "invest_estimable",
    "invest_small",
    "invest_testable",
)
_TEXT_PARTS: Final = ("length", "structure", "specificity", "repetition", "overlap", "hedging", "sentences", "reasoning")
PARTS: Final = ("gestalt", *_STORY_PARTS, *_TEXT_PARTS)
"""What an evaluation may be taken apart into: the score of the mode, and the cheap judge's parts of stories and of texts."""

_OF_AUTO: Final = ("proof", "decision_line", "audit", "confidence", "audit_seed")
_NEEDED: Final = {
    "patterns": "the file of what the cheap judge has learned",
    "proof": "the proof.json that says that these patterns track the judge",
    "decision_line": "a score such as 3.5; an item of which it is not certain on which side it is goes to the judge",
}


class JudgeOptions(Section):
    """What ``jumar evaluate`` has as options. ``cache`` None is the folder of replies below the root, False none."""

    mode: Literal["cheap", "expensive", "dual", "auto"] = "dual"
    items: Text | Annotated[list[Text], Field(min_length=1)]
    judge: Text | None = None
    patterns: Text | None = None
    rubric: Text | None = None
    fields: dict[str, Text] = Field(default_factory=dict[str, str])
    repeat: Annotated[int, Field(ge=1, le=99, strict=True)] | None = None
    max_cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    reserve_cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    price: Pair | None = None
    concurrency: Annotated[int, Field(ge=1, le=1024, strict=True)] = DEFAULTS.concurrency
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = DEFAULTS.timeout
    max_retries: Annotated[int, Field(ge=0, le=100, strict=True)] = DEFAULTS.max_retries
    backoff_base: Annotated[float, Field(gt=0, allow_inf_nan=False)] = DEFAULTS.backoff_base
    judge_scale: Pair | None = None
    max_tokens: Annotated[int, Field(ge=1, strict=True)] = MAX_TOKENS
    cache: Text | Literal[False] | None = None
    proof: Text | None = None
    decision_line: Annotated[float, Field(ge=1, le=5)] | None = None
    audit: Annotated[float, Field(ge=0, le=1)] | None = None
    confidence: Annotated[float, Field(ge=0.5, le=0.99)] | None = None
    audit_seed: Annotated[int, Field(strict=True)] | None = None
    learn: bool | Literal["evidence", "seed"] | None = None
    allow_gameable: Annotated[bool, Field(strict=True)] | None = None

    @field_validator("items")
    @classmethod
    def _below_the_work_directory(cls, value: str | list[str]) -> str | list[str]:
        for path in [value] if isinstance(value, str) else value:
            try:
                check_relative(path, where="items")
            except ConfigError as error:
                raise ValueError(str(error).removeprefix("items: ")) from None
        return value

    @field_validator("fields")
    @classmethod
    def _known_fields(cls, value: dict[str, str]) -> dict[str, str]:
        from jumar.judging.items.records import FIELDS

        for name in value:
            if name not in FIELDS:
                raise ValueError(f"no field '{escape(name)}'{nearest(name, FIELDS)}; known: {', '.join(FIELDS)}")
        return value

    @field_validator("price")
    @classmethod
    def _no_gift(cls, value: list[float] | None) -> list[float] | None:
        if value is not None and min(value) < 0:
            raise ValueError("prices are 0 or more USD for a million tokens: [input, output]")
        return value

    @field_validator("judge_scale")
    @classmethod
    def _ordered(cls, value: list[float] | None) -> list[float] | None:
        if value is not None and not value[0] < value[1]:
            raise ValueError("give two numbers, the lower one first, such as [0, 100]")
        return value

    @model_validator(mode="after")
    def _has_a_judge(self) -> Self:
        # here and not at the key, because what is wrong at a key is shown, and this may hold somebody's password
        if self.judge is not None:
            try:
                kind_of(self.judge)
            except ConfigError as error:
                raise ValueError(f"judge: {error}") from None
        if self.mode != "cheap" and self.judge is None:
            raise ValueError(
                f"mode {self.mode!r} needs a judge: set judge = '{forms()[0]}' (or {', '.join(forms()[1:])}), "
                "or mode = 'cheap', which needs none"
            )
        if self.learn not in {None, False} and self.mode != "dual":
            raise ValueError(f"learn needs mode 'dual': in mode {self.mode!r} there is no judge to learn from")
        return self

    @model_validator(mode="after")
    def _has_what_auto_needs(self) -> Self:
        if self.mode == "auto":
            for name in ("patterns", "proof", "decision_line"):
                if getattr(self, name) is None:
                    raise ValueError(f"mode 'auto' needs '{name}': {_NEEDED[name]}")
            return self
        given = [name for name in _OF_AUTO if getattr(self, name) is not None]
        if given:
            raise ValueError(f"{given[0]}: is for mode = 'auto', and the mode is {self.mode!r}")
        return self

    @property
    def learns(self) -> bool:
        """Whether the cheap judge learns from the expensive one as the loop runs: in dual mode, unless somebody says no."""
        return self.mode == "dual" and self.learn is not False

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths and globs of the items."""
        return (self.items,) if isinstance(self.items, str) else tuple(self.items)

    def check_part(self, part: str) -> None:
        """Refuse a part that this mode does not have. Errors: ``ValueError``."""
        if part not in PARTS:
            raise ValueError(f"there is no part '{escape(part)}'{nearest(part, PARTS)}; there are {', '.join(PARTS)}")
        if self.mode == "expensive" and part != "gestalt":
            raise ValueError(
                f"'{part}' comes from the cheap judge: it needs mode 'dual', 'cheap' or 'auto'; "
                "mode 'expensive' has the overall score alone, 'gestalt'"
            )


class EvaluatorConfig(JudgeOptions):
    """``[evaluator]``: one evaluation of the items, several dimensions of the score."""

    dimensions: Annotated[dict[str, Text], Field(min_length=1)] = Field(default_factory=lambda: {"correctness": "gestalt"})

    @model_validator(mode="after")
    def _known_parts(self) -> Self:
        for dimension, part in self.dimensions.items():
            if not dimension.strip():
                raise ValueError("dimensions: a dimension needs a name")
            try:
                self.check_part(part)
            except ValueError as error:
                raise ValueError(f"dimensions.{escape(dimension)}: {error}") from None
        return self

    def options(self) -> JudgeOptions:
        """Return what decides about the evaluation, without what becomes of it."""
        return JudgeOptions.model_validate(self.model_dump(exclude={"dimensions"}, exclude_unset=True))


def check_judge_scorer(options: dict[str, Any]) -> tuple[JudgeOptions, str]:
    """Return the options of a ``judge`` scorer and its part. Errors: ``ValueError`` with the option and what is wrong with it."""
    given = dict(options)
    part = given.pop("part", "gestalt")
    if not isinstance(part, str):
        raise ValueError(f"part: give the name of a part: {', '.join(PARTS)}")  # noqa: TRY004 - pydantic catches no other
    try:
        found = JudgeOptions.model_validate(given)
    except ValidationError as error:
        raise ValueError(_first(error)) from None
    try:
        found.check_part(part)
    except ValueError as error:
        raise ValueError(f"part: {error}") from None
    return found, part


def _first(error: ValidationError) -> str:
    detail = error.errors(include_url=False)[0]
    name = escape(str(detail["loc"][0])) if detail["loc"] else ""
    known = (*JudgeOptions.model_fields, "part")
    if detail["type"] == "extra_forbidden":
        return f"unknown option '{name}'{nearest(name, known)}; known here: {', '.join(sorted(known))}"
    if detail["type"] == "missing":
        return f"'{name}' is missing"
    message = detail["msg"].removeprefix("Value error, ")
    return f"{name}: {message[:1].lower()}{message[1:]}" if name else message
