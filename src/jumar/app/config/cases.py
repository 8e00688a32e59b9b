"""``cases.toml`` as typed models. Unknown keys are errors; only the shape is checked here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from jumar.app.config.config import Megabytes
from jumar.app.config.tables import Caps, Count, PythonName, Seconds, Section, check_one_time_limit
from jumar.cases.settings import MARKER, SEPARATOR, read_order
from jumar.core.toml import parse_model, read_toml
from jumar.errors import ConfigError
from jumar.model.pipeline import (
    DEFAULT_DIFF,
    DEFAULT_FAILURES,
    DEFAULT_MAX_FILE_MB,
    DEFAULT_MAX_ITERS,
    DEFAULT_ORDER,
    DEFAULT_TIMEOUT,
    ContinueFrom,
)

Text = Annotated[str, Field(min_length=1)]
Threshold = Annotated[float, Field(allow_inf_nan=False)]
CaseCommand = str | Annotated[list[str | Annotated[list[str], Field(min_length=1)]], Field(min_length=1)]


class RunConfig(Section):
    """``[run]``: where it goes, how long a case may take, what is handed on."""

    run_id: str | None = None
    output_root: str | None = None
    max_iters: Count = DEFAULT_MAX_ITERS
    continue_from: ContinueFrom = "previous"
    carry_forward: bool = True
    carry_if: Text | None = None
    select_best: bool = True
    max_file_mb: Megabytes = DEFAULT_MAX_FILE_MB
    workdir: str = "."
    env: list[str] = Field(default_factory=list)


class StartConfig(Section):
    """``[start]``: what the first case starts from: a file for each carried role, or nothing."""

    from_scratch: bool = False
    base: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_start(self) -> Self:
        if self.from_scratch and self.base:
            raise ValueError("from_scratch and base exclude each other; keep one")
        return self


class CaseConfig(Section):
    """``[[cases]]``: one case. ``number`` defaults to its place in the file, ``id`` to ``case<number>``."""

    number: Count | None = None
    id: Text | None = None
    file: Text


class CaseFileConfig(Section):
    """``[case_file]``: how a case's file is divided into report and query."""

    marker: Text = MARKER
    separator: Text = SEPARATOR


class RoleConfig(Section):
    """``[roles.NAME]``: a file of each iteration. What is left out is the seed's, for its seven roles."""

    folder: Text | None = None
    file: Text | None = None
    suffix: Text | None = None
    best: Text | None = None
    carry: bool | None = None
    snapshot: Text | None = None
    empty: str | None = None


class StepConfig(Section):
    """``[[steps]]``: one program of the pipeline."""

    name: Text
    command: CaseCommand | None = None
    python: PythonName | None = None
    builtin: str | None = None
    inputs: list[Text] = Field(default_factory=list)
    outputs: list[Text] = Field(default_factory=list)
    files: list[Text] | None = None
    timeout: Seconds = DEFAULT_TIMEOUT

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        if sum(given is not None for given in (self.command, self.python, self.builtin)) != 1:
            raise ValueError("give one of command, python or builtin")
        return self


class ScaledKey(Section):
    """A key of the order, and what its scores may be."""

    key: Text
    min: Threshold | None = None
    max: Threshold | None = None

    @model_validator(mode="after")
    def _a_scale(self) -> Self:
        try:
            read_order([self.model_dump()])
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self


def _kind(value: object) -> str:
    return type(value).__name__.replace("dict", "ScaledKey")


def _either(wanted: str) -> Discriminator:
    return Discriminator(_kind, custom_error_type="order", custom_error_message=f"give {wanted}")


Ranked = Annotated[Annotated[str, Tag("str")] | Annotated[ScaledKey, Tag("ScaledKey")], _either("a key, or {key, min, max}")]
Order = Annotated[
    Annotated[str, Tag("str")] | Annotated[list[Ranked], Tag("list")], _either('"accuracy,overall", or a list of keys')
]


class RankingConfig(Section):
    """``[ranking]``: which iteration is best. ``ranking = [{key, min, max}]`` is its order alone."""

    order: Order = Field(default_factory=lambda: list(DEFAULT_ORDER))
    tiebreak: str | list[str] = "earlier_iter"
    keys: dict[str, str] | None = None
    diff: list[str] = Field(default_factory=lambda: list(DEFAULT_DIFF))


class CaseStopConfig(BaseModel):
    """``[stop]``: when a case ends. Every further key is the threshold of a key of the ranking; all of them must hold."""

    model_config = ConfigDict(extra="allow", frozen=True)

    max_seconds: Seconds | None = None
    consecutive_failures: Count = DEFAULT_FAILURES

    @model_validator(mode="after")
    def _numbers(self) -> Self:
        for name, value in (self.model_extra or {}).items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"{name} should be a number, the threshold of that key")  # noqa: TRY004 - pydantic wants it
        return self

    @property
    def thresholds(self) -> dict[str, Any]:
        """The thresholds by key, as they stand in the file."""
        return dict(self.model_extra or {})


class DryRunConfig(Section):
    """``[dry_run]``: what ``--dry-run`` does when its options are not given."""

    stop_iter: Count = 1
    scores: str | None = None


class CasesConfig(Section):
    """A whole ``cases.toml``."""

    run: RunConfig = Field(default_factory=RunConfig)
    start: StartConfig = Field(default_factory=StartConfig)
    cases: Annotated[list[CaseConfig], Field(min_length=1)]
    case_file: CaseFileConfig = Field(default_factory=CaseFileConfig)
    roles: dict[str, RoleConfig] = Field(default_factory=dict[str, RoleConfig])
    steps: list[StepConfig] = Field(default_factory=list[StepConfig])
    ranking: RankingConfig = Field(default_factory=RankingConfig)
    stop: CaseStopConfig = Field(default_factory=CaseStopConfig)
    budget: Caps = Field(default_factory=Caps)
    dry_run: DryRunConfig = Field(default_factory=DryRunConfig)

    @field_validator("ranking", mode="before")
    @classmethod
    def _order_alone(cls, given: object) -> object:
        return {"order": given} if isinstance(given, list) else given  # pyright: ignore[reportUnknownVariableType]

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        check_one_time_limit(self.budget, self.stop.max_seconds)
        return self

    @model_validator(mode="after")
    def _numbers_differ(self) -> Self:
        seen: dict[int, str] = {}
        for place, case in enumerate(self.cases, start=1):
            number = case.number or place
            if number in seen:
                raise ValueError(f"two cases have the number {number}: {seen[number]} and {case.file}")
            seen[number] = case.file
        return self


def load_cases_config(path: Path) -> CasesConfig:
    """Read and check a ``cases.toml``. Errors: :class:`ConfigError`."""
    data, text = read_toml(path, "jumar init --template cases")
    if "generator" in data and "cases" not in data:
        raise ConfigError(f"{path}: this configures a loop, not cases: `jumar run {path}`")
    return parse_model(CasesConfig, data, str(path), text)
