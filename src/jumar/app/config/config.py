"""``jumar.toml`` as typed models. Unknown keys are errors; every message names the file, the line and the key.

Only the shape is checked here. What the values mean lives with the rooms that use them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Optional, Self, TypedDict, cast, get_args, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    Tag,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from jumar.app.config.evaluator import EvaluatorConfig, JudgeOptions, check_judge_scorer
from jumar.app.config.tables import (
    BudgetConfig,
    Command,
    Count,
    Flag,
    HooksConfig,
    MemoryConfig,
    MlflowConfig,
    NoiseConfig,
    NotifyConfig,
    Option,
    PlaceConfig,
    PythonName,
    RedactConfig,
    RetryConfig,
    Seconds,
    Section,
    TelemetryConfig,
    check_one_time_limit,
    check_protect,
)
from jumar.core.toml import parse_model, read_toml
from jumar.errors import ConfigError
from jumar.loop.ranking.stopping import TRENDS
from jumar.loop.settings import IN_PLACE, ContinueFrom, Isolation
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.model.budget.pricing import DEFAULT_MAX_ITERATIONS
from jumar.model.records import Known
from jumar.model.selection import Mode, SelectionCriteria, StopRules, TrendRule, refuse_percent, refuse_share

_MEGABYTE = 1_000_000
Megabytes = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Score = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False), BeforeValidator(refuse_percent), AfterValidator(refuse_share)]


class RunOptions(TypedDict, total=False):
    """Options of ``jumar run`` as keywords; what is left out is as the configuration says. Dollars, seconds, scores 0 to 100."""

    max_iterations: Annotated[int, Flag(typed=("-n", "--max-iterations"), least=1, help="Iterations at most (default 10).")]
    max_cost: Annotated[float, Flag(metavar="USD", least=0, help="Dollars at most, over all resumes.")]
    reserve_cost: Annotated[float, Flag(metavar="USD", least=0, help="What an iteration that reports no cost is charged.")]
    max_tokens: Annotated[int, Flag(metavar="N", least=0, help="Tokens at most, over all resumes.")]
    max_seconds: Annotated[float, Flag(metavar="S", least=0, above=True, help="Time of all iterations at most.")]
    include: Annotated[
        Sequence[str], Flag(metavar="GLOB", help="What to keep of the directory, in gitignore syntax; repeatable.")
    ]
    exclude: Annotated[Sequence[str], Flag(metavar="GLOB", help="What to leave out; repeatable.")]
    target: Annotated[
        float,
        Flag(
            metavar="SCORE",
            least=0,
            most=100,
            help="End at this score; with scorers only if no check fails. Default: 100 without scorers.",
        ),
    ]
    keep_going: Annotated[bool, Flag(help="Don't end where every check passes.")]
    threshold: Annotated[float, Flag(least=0, most=100, help="The score required for exit code 0.")]
    mode: Annotated[Mode, Flag(help="How the best iteration is selected.")]
    isolation: Annotated[Isolation, Flag(help="Work in place, or elsewhere.")]
    candidates: Annotated[int, Flag(least=1, most=64, help="Iterations made side by side; the next ones start from the best.")]
    workers: Annotated[int, Flag(least=1, help="How many of them run at once.")]
    protect: Annotated[Sequence[str], Flag(metavar="GLOB", help="What checks need as it was at the start; repeatable.")]
    continue_from: Annotated[ContinueFrom, Flag(help="What the next iteration starts from.")]
    timeout: Annotated[float, Flag(metavar="SECONDS", least=0, above=True, help="For one run of the generator.")]
    environment: Annotated[
        Sequence[str], Flag(typed=("--env",), metavar="NAME", help="Let the programs see this variable; repeatable.")
    ]
    loop_id: Annotated[str, Flag(typed=("--id",), help="The loop's name.")]
    new: Annotated[bool, Flag(help="Start a new loop even if there is one to resume.")]
    resume: Annotated[
        Literal["auto", "never", "require"],
        Flag(help="Resume a loop that is there, or insist that there is none, or one."),
    ]
    steps: Annotated[int, Flag(metavar="N", least=0, help="Rest after N more iterations; the same command goes on.")]
    given_by: Annotated[Literal["agent"], Flag(help="Say in every report that an agent chose what the options say.")]
    allow_broken_start: Annotated[bool, Flag(help="Run although a check or scorer cannot judge the start.")]
    accept_size: Annotated[bool, Flag(help="Keep all of a directory of over 1 GB or 1,000,000 files.")]
    accept_changes: Annotated[bool, Flag(help="Resume although the configuration has changed.")]


def run_flags() -> Iterator[tuple[str, Any, Flag]]:
    """Yield the keywords of :class:`RunOptions` with the type and the option of each."""
    for name, hint in get_type_hints(RunOptions, include_extras=True).items():
        kind, flag = get_args(hint)
        yield name, kind, flag


def _when_not_given(kind: Any) -> Any:
    return False if kind is bool else () if kind == Sequence[str] else None


OPTIONS_NOT_GIVEN: Final[Mapping[str, Any]] = {
    **{name: _when_not_given(kind) for name, kind, _ in run_flags()},
    "resume": "auto",
}
"""What stands for an option that nobody gives."""


class LoopConfig(PlaceConfig):
    """``[loop]``: what is to be done, and where."""

    id: Annotated[str | None, Option("loop_id")] = None
    objective: str = ""
    objective_file: str | None = None
    max_iterations: Count | None = None
    continue_from: Annotated[ContinueFrom, Option("continue_from")] = "best"
    apply: Literal["auto", "never"] | None = None
    workdir: str = "."
    env: Annotated[list[str], Option("environment")] = Field(default_factory=list[str])
    protect: Annotated[list[str], AfterValidator(check_protect), Option("protect")] = Field(default_factory=list[str])
    candidates: Annotated[int, Field(ge=1, le=64, strict=True), Option("candidates")] = 1
    workers: Annotated[Count | None, Option("workers")] = None
    seed: Annotated[int, Field(ge=0, strict=True)] = 0
    given_by: Annotated[Literal["agent"] | None, Option("given_by")] = None

    @model_validator(mode="after")
    def _one_objective(self) -> Self:
        if self.objective and self.objective_file:
            raise ValueError("objective and objective_file are both set; keep one")
        return self


class ArtifactsConfig(Section):
    """``[artifacts]``: what is snapshotted, in gitignore syntax."""

    include: Annotated[list[str], Option("include")] = Field(default_factory=list[str])
    exclude: Annotated[list[str], Option("exclude")] = Field(default_factory=list[str])
    max_files: Count | None = None
    max_file_mb: Megabytes | None = None
    max_total_mb: Megabytes | None = None

    def rules(self, otherwise: ArtifactRules | None = None) -> ArtifactRules:
        """Return what is kept; the limits that are not set are those of ``otherwise``, by default the usual ones."""
        given = otherwise or ArtifactRules()
        return ArtifactRules(
            include=tuple(self.include),
            exclude=tuple(self.exclude),
            max_files=given.max_files if self.max_files is None else self.max_files,
            max_file_bytes=given.max_file_bytes if self.max_file_mb is None else int(self.max_file_mb * _MEGABYTE),
            max_total_bytes=given.max_total_bytes if self.max_total_mb is None else int(self.max_total_mb * _MEGABYTE),
        )


class GeneratorConfig(Section):
    """``[generator]``: the program that changes the working directory."""

    command: Command | None = None
    python: PythonName | None = None
    builtin: Literal["workdir"] | None = None
    timeout: Annotated[Seconds, Option("timeout")] = 1800
    session: Literal["fresh", "resume"] = "fresh"
    resume_command: Command | None = None
    stdin: Literal["none", "prompt"] = "none"
    prompt: str | None = None
    usage: dict[str, str] = Field(default_factory=dict)
    usage_is: Literal["delta", "cumulative"] = "delta"
    completion_promise: str | None = None

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        if sum(way is not None for way in (self.command, self.python, self.builtin)) != 1:
            raise ValueError("give either command, python or builtin")
        if self.resume_command is not None and (self.session == "fresh" or self.command is None):
            raise ValueError('resume_command goes with session = "resume" and a command')
        if self.usage_is == "cumulative" and self.session == "fresh":
            raise ValueError('usage_is = "cumulative" goes with session = "resume": a fresh session has no earlier usage')
        return self


class ValidatorConfig(Section):
    """``[[checks]]``, also written ``[[validators]]``: passes or not, and how many of its tests pass."""

    name: Annotated[str, Field(min_length=1)]
    command: Command | None = None
    python: PythonName | None = None
    timeout: Seconds = 600
    baseline: Literal["no_new_failures"] | None = None
    junit: str | None = None
    failures: str | None = None
    known: Known = "start"
    files: list[Annotated[str, Field(min_length=1)]] | None = None

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        if (self.command is None) == (self.python is None):
            raise ValueError("give either command or python")
        return self


class ScorerConfig(BaseModel):
    """``[[scorers]]``: one number in [0, 1] for one dimension. Further keys are options of the built-in scorer."""

    model_config = ConfigDict(extra="allow", frozen=True)

    dimension: Annotated[str, Field(min_length=1)] | None = None
    command: Command | None = None
    python: PythonName | None = None
    builtin: str | None = None
    timeout: Seconds = 600
    files: list[Annotated[str, Field(min_length=1)]] | None = None
    repeat: Annotated[int, Field(ge=1, le=99, strict=True)] | None = None

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        if self.builtin is None and (self.command is None) == (self.python is None):
            raise ValueError("give one of command, python or builtin")
        if self.builtin is not None and self.python is not None:
            raise ValueError("a built-in scorer takes no python")
        if self.builtin is None and self.dimension is None:
            raise ValueError("dimension is missing")
        if self.builtin == "judge":
            check_judge_scorer(self.judge_options())
        return self

    def judge_options(self) -> dict[str, Any]:
        """Return the options of a ``judge`` scorer, as they were given."""
        return {**self.model_dump(include={"command", "timeout", "repeat"}, exclude_unset=True), **self.options}

    @property
    def options(self) -> dict[str, Any]:
        """Keys beyond the known ones, for the built-in scorer."""
        return dict(self.model_extra or {})


class HoldoutConfig(Section):
    """``[holdout]``: scorers that no iteration hears of, and that confirm the choice once at the end."""

    scorers: Annotated[list[ScorerConfig], Field(min_length=1)]
    weights: dict[str, float] = Field(default_factory=dict)


class SelectionConfig(Section):
    """``[selection]``: which iteration is selected. Without a threshold there is no gate."""

    mode: Annotated[Mode, Option("mode")] = "highest_quality_verified"
    threshold: Annotated[Score | None, Option("threshold")] = None
    require_verification: bool = True

    def criteria(self) -> SelectionCriteria:
        return SelectionCriteria(mode=self.mode, threshold=self.threshold, require_verification=self.require_verification)


class TrendConfig(Section):
    """``{window = 2, delta = 5}`` of one trend rule."""

    window: Count | None = None
    delta: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


def _trend_kind(value: object) -> str | None:
    if isinstance(value, dict | TrendConfig):
        return "TrendConfig"
    return {bool: "bool", int: "int"}.get(cast("type[int]", type(value)))


Trend = (
    Annotated[
        Annotated[StrictBool, Tag("bool")] | Annotated[Count, Tag("int")] | Annotated[TrendConfig, Tag("TrendConfig")],
        Discriminator(
            _trend_kind,
            custom_error_type="trend",
            custom_error_message="give true, a number of steps, or {window = 2, delta = 5}",
        ),
    ]
    | None
)


def _trend(value: Trend, default: TrendRule) -> TrendRule | None:
    if value is None or value is False:
        return None
    if value is True:
        return default
    if isinstance(value, int):
        return TrendRule(window=value, delta=default.delta)
    return TrendRule(
        window=default.window if value.window is None else value.window,
        delta=default.delta if value.delta is None else value.delta,
    )


class StopKeys(Section):
    """``[stop]``: when the loop ends. A trend rule is ``true``, a number of steps, or ``{window, delta}``.

    These are the keys that say more than a rule; the others are made from :class:`jumar.model.selection.StopRules`.
    """

    target: Annotated[Score | None, Option("target")] = None
    keep_going: Annotated[bool, Field(strict=True)] = False
    max_iterations: Count | None = None

    @field_validator(*TRENDS, check_fields=False)
    @classmethod
    def _wide_enough(cls, value: Trend, info: ValidationInfo) -> Trend:
        smallest = TRENDS[str(info.field_name)].smallest_window
        window = value.window if isinstance(value, TrendConfig) else value
        if isinstance(window, int) and not isinstance(window, bool) and window < smallest:
            raise ValueError(f"a window of {window} would end every loop at once; give {smallest} or more")
        return value

    def rules(self, max_iterations: int, *, default_target: float | None = None) -> StopRules:
        """Return the rules. ``default_target`` holds where no target is set, unless the loop is told to keep going.

        Where there is such a default, the checks make the score: a target that is set asks for the score alone.
        """
        own: dict[str, Any] = {name: getattr(self, name) for name in _RULE_KEYS}
        rules: dict[str, Any] = {
            **own,
            **{name: _trend(own[name], trend.default) for name, trend in TRENDS.items()},
            "target": default_target if self.target is None and not self.keep_going else self.target,
            "target_unverified": self.target is not None and default_target is not None,
            "max_iterations": max_iterations,
        }
        return StopRules(**rules)


_KINDS: Final[Mapping[object, Any]] = {
    TrendRule | None: Trend,
    bool: Annotated[bool, Field(strict=True)],
    int: Count,
    int | None: Optional[Count],  # noqa: UP045 - at run time
    float | None: Optional[Seconds],  # noqa: UP045 - at run time
}
_RULE_KEYS: Final[Mapping[str, Any]] = {
    rule.name: (_KINDS[get_type_hints(StopRules)[rule.name]], rule.default)
    for rule in fields(StopRules)
    if rule.name not in {*StopKeys.model_fields, "target_unverified"}
}
if TYPE_CHECKING:
    StopConfig = StopKeys
else:
    StopConfig = create_model("StopConfig", __base__=StopKeys, __doc__=StopKeys.__doc__, **_RULE_KEYS)


class OverrideConfig(Section):
    """``[override]``: whether a person may choose another iteration."""

    enabled: bool = True


DONE = 100.0


class JumarConfig(Section):
    """A whole ``jumar.toml``."""

    loop: LoopConfig = Field(default_factory=LoopConfig)
    artifacts: ArtifactsConfig = Field(default_factory=ArtifactsConfig)
    generator: GeneratorConfig
    validators: list[ValidatorConfig] = Field(default_factory=list[ValidatorConfig])
    scorers: list[ScorerConfig] = Field(default_factory=list[ScorerConfig])
    evaluator: EvaluatorConfig | None = None
    weights: dict[str, float] = Field(default_factory=dict)
    selection: SelectionConfig = Field(default_factory=SelectionConfig)
    stop: StopConfig = Field(default_factory=StopConfig)
    budget: BudgetConfig = Field(default_factory=BudgetConfig)
    retry: RetryConfig = Field(default_factory=RetryConfig)
    noise: NoiseConfig = Field(default_factory=NoiseConfig)
    holdout: HoldoutConfig | None = None
    hooks: HooksConfig = Field(default_factory=HooksConfig)
    telemetry: TelemetryConfig = Field(default_factory=TelemetryConfig)
    mlflow: MlflowConfig = Field(default_factory=MlflowConfig)
    notify: NotifyConfig = Field(default_factory=NotifyConfig)
    override: OverrideConfig = Field(default_factory=OverrideConfig)
    memory: MemoryConfig = Field(default_factory=MemoryConfig)
    redact: RedactConfig = Field(default_factory=RedactConfig)

    @model_validator(mode="before")
    @classmethod
    def _checks(cls, data: object) -> object:
        """Take ``checks`` as what older configurations and the records of loops call ``validators``."""
        if not isinstance(data, dict):
            return data
        found = dict(cast("dict[str, Any]", data))
        if "checks" in found and "validators" in found:
            raise ValueError("[[checks]] and [[validators]] are one table under two names; call it [[checks]] everywhere")
        if "checks" in found:
            found["validators"] = found.pop("checks")
        return found

    @field_validator("validators")
    @classmethod
    def _names_differ(cls, validators: list[ValidatorConfig]) -> list[ValidatorConfig]:
        names = [validator.name for validator in validators]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"two checks are called {repeated[0]!r}")
        return validators

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        if self.loop.max_iterations is not None and self.stop.max_iterations is not None:
            raise ValueError("[loop] max_iterations and [stop] max_iterations are one limit; keep one")
        rules = self.stop.rules(self.max_iterations)
        check_one_time_limit(self.budget, rules.max_seconds)
        target, threshold = self.stop.target, self.selection.threshold
        if target is not None and threshold is not None and target < threshold:
            raise ValueError(
                f"[stop] target = {target:g} (--target) would end the loop below the score required for exit code 0, [selection] "
                f"threshold = {threshold:g} (--threshold): raise the target to {threshold:g}, or lower the threshold"
            )
        if rules.converged and not any(judge.learns for judge in self.judges()):
            raise ValueError(
                "[stop] converged needs a cheap judge that learns: [evaluator] with mode = 'dual', and learn not false"
            )
        if not self.validators and not self.scorers and self.evaluator is None:
            raise ValueError(
                "nothing would be evaluated: add [[checks]], [[scorers]] or [evaluator] (or --check 'COMMAND'), "
                "so that there is something to choose by"
            )
        return self

    def judges(self) -> list[JudgeOptions]:
        """Return the options of every judge of the loop's own scores."""
        own = [check_judge_scorer(scorer.judge_options())[0] for scorer in self.scorers if scorer.builtin == "judge"]
        return [*own, *(() if self.evaluator is None else (self.evaluator.options(),))]

    def stop_rules(self) -> StopRules:
        """Return when the loop ends. Without scorers of one's own it has arrived where every check passes: at a score of 100."""
        own = bool(self.scorers) or self.evaluator is not None
        return self.stop.rules(self.max_iterations, default_target=None if own else DONE)

    @property
    def max_iterations(self) -> int:
        """The one limit on iterations, from wherever it is set."""
        return self.loop.max_iterations or self.stop.max_iterations or DEFAULT_MAX_ITERATIONS

    @property
    def apply(self) -> Literal["auto", "never"]:
        """``auto`` in place and ``never`` in a copy or worktree, unless the file says otherwise."""
        return self.loop.apply or ("auto" if self.loop.isolation in IN_PLACE else "never")

    def reply_directories(self, base: Path) -> list[Path]:
        """Return the directories that are named for the replies of judges."""
        scorers = [*self.scorers, *(() if self.holdout is None else self.holdout.scorers)]
        judged = [scorer.judge_options().get("cache") for scorer in scorers if scorer.builtin == "judge"]
        named = [*judged, None if self.evaluator is None else self.evaluator.cache]
        return [base / cache for cache in named if isinstance(cache, str)]

    def directory(self, base: Path) -> Path:
        """The working directory: relative to the configuration's own."""
        return Path(os.path.realpath(base / self.loop.workdir))


DEFAULT_NAME = "jumar.toml"


def find_config(given: Path | None) -> Path | None:
    """Return the configuration file to use: the given one, else ``jumar.toml`` here, else None."""
    if given is not None:
        return given / DEFAULT_NAME if given.is_dir() else given
    default = Path(DEFAULT_NAME)
    return default if default.is_file() else None


def load_config(path: Path) -> JumarConfig:
    """Read and check ``path``. Errors: :class:`ConfigError`."""
    data, text = read_toml(path, "jumar init")
    if "cases" in data and "generator" not in data:
        raise ConfigError(f"{path}: this configures cases, not a loop: `jumar cases run {path}`")
    return parse_config(data, str(path), text)


def parse_config(data: dict[str, Any], where: str, text: str = "") -> JumarConfig:
    """Check ``data``; ``text`` is its source, from which line numbers are found."""
    return parse_model(JumarConfig, data, where, text, {} if "validators" in data else {"validators": "checks"})
