"""The smaller tables of ``jumar.toml``, and what of ``[loop]`` says where the steps run and what is run around them."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, Self, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from jumar.core.redaction import NOTHING, Redactor, environment_secrets, install, unfit
from jumar.core.text import escape
from jumar.core.toml import parse_model, read_toml
from jumar.errors import ConfigError, StoreDamagedError
from jumar.loop.events.events import Hook as EventHook
from jumar.loop.events.events import Listener
from jumar.loop.hooks import Hook
from jumar.loop.settings import Retries
from jumar.loop.store.in_force import config_now
from jumar.model.budget.pricing import Budget, OnUnknownCost, PriceRow, Prices, PriceTable
from jumar.model.selection import EndKind, NoiseRules

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from jumar.integrations.notify import Notifier
    from jumar.loop.store.loop_reader import LoopReader
    from jumar.topk.config import RetrievalConfig


Command = str | Annotated[list[str], Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PythonName = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
Name = Annotated[str, Field(min_length=1, pattern=r"\S")]


class Section(BaseModel):
    """A table of the file: frozen, and closed to keys that nobody knows."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Option(NamedTuple):
    """Marks a key that an option of ``jumar run`` sets, or adds to where it is a list; ``name`` is the option as a keyword."""

    name: str


def option_of(key: FieldInfo) -> str | None:
    """Return the name of the option that sets ``key``; None where there is none."""
    return next((each.name for each in key.metadata if isinstance(each, Option)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """How a keyword of ``jumar.run`` is typed on the command line, where that is not its name; and its line of help.

    A number is from ``least`` to ``most``, without ``least`` itself where it is ``above``.
    """

    help: str
    typed: tuple[str, ...] = ()
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    above: bool = False


class PlaceConfig(Section):
    """Keys of ``[loop]``. A command is a string for the shell, or a list without one; times are seconds."""

    isolation: Annotated[Literal["none", "copy", "worktree", "sandbox"], Option("isolation")] = "none"
    final_output: Literal["auto", "full", "changed"] = "auto"
    network: bool = True
    sandbox_writable: list[str] = Field(default_factory=list)
    setup: Command | None = None
    setup_timeout: Seconds = 600
    recheck: Literal["clean", "strict", "off"] = "clean"
    reset: Command | None = None
    reset_timeout: Seconds = 120
    on_stop: Command | None = None
    on_stop_timeout: Seconds = 30

    def hook(self, name: Literal["setup", "reset", "on_stop"]) -> Hook | None:
        """Return one of the commands around the steps; None when there is none. Errors: :class:`jumar.errors.ConfigError`."""
        command: Command | None = getattr(self, name)
        return None if command is None else Hook(name=name, command=command, timeout=getattr(self, f"{name}_timeout"))


def check_protect(patterns: list[str]) -> list[str]:
    """Return ``protect`` when its patterns are usable. Errors: ``ValueError``."""
    from pathspec import GitIgnoreSpec

    for pattern in patterns:
        if not pattern.strip() or pattern.startswith("#"):
            raise ValueError("an empty pattern names nothing; give patterns in .gitignore syntax, such as 'tests/**'")
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError as error:
            raise ValueError(f"{pattern!r} is no pattern: {error}") from None
    return patterns


_DEFAULT: Final = NoiseRules()


class NoiseConfig(Section):
    """``[noise]``: who is scored again after the last iteration, how often, and which differences count as none."""

    rescore: Annotated[int, Field(ge=0, le=100, strict=True)] = _DEFAULT.rescore
    finalists: Annotated[int, Field(ge=1, le=1000, strict=True)] = _DEFAULT.finalists
    level: Annotated[float, Field(ge=0.5, lt=1, allow_inf_nan=False)] = _DEFAULT.level
    tie: Annotated[float, Field(ge=0, le=5, allow_inf_nan=False)] = _DEFAULT.tie

    def rules(self) -> NoiseRules:
        return NoiseRules(**self.model_dump())


_Times = Annotated[int, Field(ge=0, strict=True)]


class RetryConfig(Section):
    """``[retry]``: further tries by kind of failure; 0 is none."""

    generator_failed: _Times = 0
    generator_timeout: _Times = 0
    rate_limited: _Times = 20
    broken: _Times = 1

    def retries(self) -> Retries:
        return Retries(**self.model_dump())


Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class RedactConfig(Section):
    """``values_of`` names variables whose values are secrets besides those whose names say so; ``patterns`` are expressions."""

    enabled: bool = True
    values_of: list[Variable] = Field(default_factory=list[str])
    patterns: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list[str])

    @field_validator("patterns")
    @classmethod
    def _are_expressions(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            why = unusable(pattern)
            if why is not None:
                raise ValueError(f"the pattern {pattern!r} {why}")
        return patterns


def unusable(pattern: str) -> str | None:
    """Return why ``pattern`` cannot say what a secret is; None when it can."""
    try:
        compiled = re.compile(pattern.encode(), re.MULTILINE)
    except (re.error, UnicodeEncodeError) as error:
        return f"is no regular expression: {error}"
    if compiled.search(b"") is not None:
        return "also matches nothing at all: say what the secret begins with"
    return None


def redactor_of(config: RedactConfig, environment: Mapping[str, str], also: Mapping[str, str]) -> Redactor:
    """Return what ``config`` means where ``environment`` holds the values; ``also`` are further secrets by name.

    Errors: :class:`jumar.errors.ConfigError`.
    """
    if not config.enabled:
        return NOTHING
    for name in config.values_of:
        value = environment.get(name)
        why = None if value is None else unfit(value)
        if why is not None:
            raise ConfigError(f"[redact] values_of: the value of {name} {why}; set a longer one, or take {name} off the list")
    return Redactor({**also, **environment_secrets(environment, config.values_of)}, patterns=config.patterns)


def install_redaction(config: RedactConfig, also: Mapping[str, str] = MappingProxyType({})) -> None:
    """Wire ``[redact]`` for this process; ``also`` are further secrets by name. Errors: :class:`jumar.errors.ConfigError`."""
    install(redactor_of(config, os.environ, also))


def install_recorded(section: Mapping[str, Any]) -> None:
    """Wire the ``[redact]`` that a loop was recorded with. What cannot be used here is left out: a loop stays readable."""
    if section.get("enabled") is False:
        install(NOTHING)
        return
    patterns = [pattern for pattern in _texts(section.get("patterns")) if unusable(pattern) is None]
    install(Redactor(environment_secrets(os.environ, _texts(section.get("values_of"))), patterns=patterns))


def take_up_redaction(store: LoopReader) -> None:
    """Wire the ``[redact]`` of a loop for this process, the environment's secrets where it has none."""
    try:
        run = config_now(store).get("run")
    except StoreDamagedError:  # of a decision; whoever needs that one will say so
        run = store.config.get("run")
    section = cast("Mapping[str, Any]", run).get("redact") if isinstance(run, Mapping) else None
    if isinstance(section, Mapping):
        install_recorded(cast("Mapping[str, Any]", section))
    else:
        install(None)


def _texts(found: object) -> list[str]:
    return [item for item in cast("list[object]", found) if isinstance(item, str)] if isinstance(found, list) else []


class HooksConfig(Section):
    """``[hooks]``: functions that are called with each event."""

    python: list[PythonName] = Field(default_factory=list[str])


class TelemetryConfig(Section):
    """``[telemetry]``: spans and events for OpenTelemetry."""

    otel: bool = False
    agent: Name = "generator"
    provider: Name = "unknown"
    content: bool = False


_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class NotifyConfig(Section):
    """``[notify]``: who is told how a run ended. An address, or the name of a variable that holds one or several."""

    urls: list[Name] = Field(default_factory=list[str])
    on: Annotated[list[EndKind], Field(min_length=1)] = Field(default_factory=lambda: list(get_args(EndKind)))

    def addresses(self) -> list[str]:
        """Return the addresses. Errors: :class:`ConfigError` for a variable that is not set."""
        found: list[str] = []
        for entry in self.urls:
            if _VARIABLE.fullmatch(entry) is None:
                found.append(entry.strip())
            elif values := os.environ.get(entry, "").split():
                found += values
            else:
                raise ConfigError(
                    f"[notify] urls: the variable {entry} is not set; set it to the address, or take it off the list"
                )
        return found

    def digests(self) -> list[str]:
        """Return what tells whether an entry is the same as another time, without the address."""
        return [f"sha256:{hashlib.sha256(entry.encode()).hexdigest()[:16]}" for entry in self.urls]

    def secrets(self) -> dict[str, str]:
        """Return what is never written, by a name for it."""
        named = {entry: os.environ.get(entry, "") for entry in self.urls if _VARIABLE.fullmatch(entry)}
        return {**named, **{f"notify_urls_{place}": entry for place, entry in enumerate(self.urls, 1) if entry not in named}}


def load_notifier(notify: NotifyConfig) -> Notifier | None:
    """Return who tells of the end, None for nobody. Errors: :class:`ConfigError`, without its extra too."""
    if not notify.urls:
        return None
    from jumar.integrations.notify import Notifier

    return Notifier(notify.addresses(), notify.on)


class MlflowConfig(Section):
    """``[mlflow]``: the loop as a run of MLflow, at ``MLFLOW_TRACKING_URI``."""

    enabled: bool = False
    experiment: Name = "jumar"
    artifacts: bool = True

    def listeners(self, root: Path, params: Mapping[str, str]) -> list[Listener]:
        """Return the listener, if there is to be one. ``params`` is what is said of the loop. Errors: :class:`ConfigError`."""
        if not self.enabled:
            return []
        from jumar.integrations.mlflow import environment_listener

        return [environment_listener(experiment=self.experiment, root=root, params=params, artifacts=self.artifacts)]


def load_listeners(hooks: HooksConfig, telemetry: TelemetryConfig, base: Path) -> list[Listener]:
    """Return the listeners that a configuration names. Errors: :class:`ConfigError` when one cannot be loaded."""
    found: list[Listener] = [
        EventHook(name, load_function(name, base, key="[hooks] python", takes="one event")) for name in hooks.python
    ]
    if telemetry.otel:
        try:
            from jumar.integrations.opentelemetry import OpenTelemetryListener, environment_providers

            tracers, loggers = environment_providers()
        except ImportError as error:
            raise ConfigError(f"[telemetry] otel needs OpenTelemetry: pip install 'jumar[otel]' ({error})") from error
        found.append(
            OpenTelemetryListener(tracers, loggers, agent=telemetry.agent, provider=telemetry.provider, content=telemetry.content)
        )
    return found


def load_function(reference: str, base: Path, *, key: str, takes: str) -> Any:
    """Return the function ``module:function``, which is looked for in ``base``, the configuration's directory, first.

    ``key`` is what the configuration calls it, ``takes`` completes "it takes". Errors: :class:`ConfigError` when the module
    cannot be imported, has no such name, or what it has is no function.
    """
    module, _, name = reference.partition(":")
    directory = str(base.resolve())
    sys.path.insert(0, directory)
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except Exception as error:
        why = escape(f"{type(error).__name__}: {error}")
        raise ConfigError(f"{key} '{escape(reference)}' cannot be loaded: {why}") from error
    finally:
        sys.path.remove(directory)
    if not callable(found):
        raise ConfigError(f"{key} '{escape(reference)}' is no function: it takes {takes}")
    return found


Count = Annotated[int, Field(ge=1, strict=True)]
Tokens = Annotated[int, Field(ge=0, strict=True)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
_StrictSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]


class MemoryConfig(Section):
    """``[memory]``: whether the prompt carries what fits of earlier reflections, and how they are found."""

    enabled: bool = False
    summarise: Command | None = None
    embedder: str = "words"
    loops: Literal["this", "all"] = "all"
    max_k: Count = 8
    min_k: Annotated[int, Field(ge=0, strict=True)] = 0
    candidate_k: Count = 50
    selection: dict[str, Any] = Field(default_factory=dict)

    @field_validator("embedder")
    @classmethod
    def _words_or_a_function(cls, value: str) -> str:
        if value != "words" and not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", value):
            raise ValueError("give 'words', or 'module:function' that takes a list of texts and returns their vectors")
        return value

    @field_validator("selection")
    @classmethod
    def _a_strategy(cls, value: dict[str, Any]) -> dict[str, Any]:
        if value:
            from jumar.topk.settings import check_selection

            check_selection({"strategy": "otsu", **value})
        return value

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.min_k > min(self.max_k, self.candidate_k):
            raise ValueError(
                f"min_k is {self.min_k}: at most max_k and candidate_k are kept, so give the smaller of both or less"
            )
        return self

    def retrieval(self) -> RetrievalConfig:
        """Return the settings of the pipeline. Without a selection: the natural break among scores of 0.15 and more."""
        from jumar.topk.config import RetrievalConfig
        from jumar.topk.settings import check_selection

        selection = {"strategy": "otsu", **self.selection} if self.selection else {"strategy": "otsu", "min_score": 0.15}
        return RetrievalConfig(
            max_k=self.max_k, min_k=self.min_k, candidate_k=self.candidate_k, memory_selection=check_selection(selection)
        )


class PriceConfig(Section):
    """``[budget.price."model"]``: USD for a million tokens; ``cached`` is for input read from a cache."""

    input: Dollars
    output: Dollars
    cached: Dollars | None = None
    date: str = ""
    source: str = ""


class Caps(Section):
    """``[budget]`` of cases. None is no limit."""

    max_seconds: Annotated[_StrictSeconds | None, Option("max_seconds")] = None
    max_tokens: Annotated[Tokens | None, Option("max_tokens")] = None
    max_cost_usd: Annotated[Dollars | None, Option("max_cost")] = None
    reserve_cost_usd: Annotated[Dollars | None, Option("reserve_cost")] = None
    reserve_tokens: Tokens | None = None
    on_unknown_cost: OnUnknownCost = "charge_reserve"

    @model_validator(mode="after")
    def _room_for_one(self) -> Self:
        pairs: tuple[tuple[str, Any, str, Any], ...] = (
            ("reserve_cost_usd", self.reserve_cost_usd, "max_cost_usd", self.max_cost_usd),
            ("reserve_tokens", self.reserve_tokens, "max_tokens", self.max_tokens),
        )
        for reserve, needed, limit, most in pairs:
            if needed is not None and most is not None and needed > most:
                raise ValueError(f"{reserve} = {needed:g} is more than {limit} = {most:g}: no iteration could ever begin")
        return self

    def limits(self) -> Budget:
        """Return the limits as a value."""
        return Budget(**self.model_dump(include=set(Budget.__dataclass_fields__)))


class BudgetConfig(Caps):
    """``[budget]`` of a loop."""

    max_iterations: Count | None = None
    max_calls_per_hour: Count | None = None
    model: Name | None = None
    prices: Name | None = None
    price: dict[Name, PriceConfig] = Field(default_factory=dict[str, PriceConfig])


def check_one_time_limit(budget: Caps, stop_max_seconds: float | None) -> None:
    """Refuse two limits on the same time. Errors: ``ValueError``."""
    if budget.max_seconds is not None and stop_max_seconds is not None:
        raise ValueError("[budget] max_seconds and [stop] max_seconds are one limit; keep one")


class PriceFile(Section):
    """A file of prices."""

    format: Literal[1] = 1
    version: Name | None = None
    models: dict[Name, PriceConfig] = Field(default_factory=dict[str, PriceConfig])

    def table(self, name: str) -> PriceTable:
        """Return the file's rows; ``name`` is its version where it names none. Errors: :class:`ConfigError` for a model twice."""
        return PriceTable(version=self.version or name, rows=_rows(self.models))


def default_prices() -> PriceTable:
    """Return the table that comes with jumar."""
    return _read(Path(str(resources.files("jumar.app.config") / "prices.toml")))


def load_prices(config: BudgetConfig, base: Path) -> PriceTable:
    """Return the table for a loop; ``[budget] prices`` is a path from ``base``, the configuration's directory.

    Errors: :class:`ConfigError` for a file that cannot be read, and for a ``[budget] model`` without a price.
    """
    table = default_prices()
    if config.prices is not None:
        table = _read(base / config.prices).over(table)
    if config.price:
        table = PriceTable(version="[budget.price]", rows=_rows(config.price)).over(table)
    if config.model is not None and table.find(config.model) is None:
        raise ConfigError(f"[budget] model: {table.unknown(config.model)}")
    return table


def _read(path: Path) -> PriceTable:
    if not path.exists():
        raise ConfigError(
            f'[budget] prices: {escape(str(path))}: no such file; it holds a table [models."name"] for each model, with '
            "input and output in USD for a million tokens"
        )
    data, text = read_toml(path, "jumar init")
    return parse_model(PriceFile, data, escape(str(path)), text).table(escape(path.name))


def _rows(models: Mapping[str, PriceConfig]) -> Mapping[str, PriceRow]:
    rows: dict[str, PriceRow] = {}
    for given, price in models.items():
        name = given.strip().lower()
        if name in rows:
            raise ConfigError(f"the model '{escape(given)}' has two prices; capital letters make no difference")
        prices = Prices(input_per_million=price.input, output_per_million=price.output, cached_per_million=price.cached)
        rows[name] = PriceRow(prices=prices, date=price.date, source=price.source)
    return MappingProxyType(rows)
