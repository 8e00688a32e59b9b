"""``[budget]``: what a loop may use over all its resumes, and what tokens cost."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from jumar.app.config.tables import Option
from jumar.core.text import escape
from jumar.core.toml import parse_model, read_toml
from jumar.errors import ConfigError
from jumar.model.budget.limits import Budget, OnUnknownCost
from jumar.model.budget.pricing import PriceRow, Prices, PriceTable

Count = Annotated[int, Field(ge=1, strict=True)]
Tokens = Annotated[int, Field(ge=0, strict=True)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
Name = Annotated[str, Field(min_length=1, pattern=r"\S")]


class PriceConfig(BaseModel):
    """``[budget.price."model"]``: USD for a million tokens; ``cached`` is for input read from a cache."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: Dollars
    output: Dollars
    cached: Dollars | None = None
    date: str = ""
    source: str = ""


class BudgetConfig(BaseModel):
    """``[budget]``. None is no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_iterations: Count | None = None
    max_seconds: Annotated[Seconds | None, Option("max_seconds")] = None
    max_tokens: Annotated[Tokens | None, Option("max_tokens")] = None
    max_cost_usd: Annotated[Dollars | None, Option("max_cost")] = None
    max_calls_per_hour: Count | None = None
    reserve_cost_usd: Annotated[Dollars | None, Option("reserve_cost")] = None
    reserve_tokens: Tokens | None = None
    on_unknown_cost: OnUnknownCost = "charge_reserve"
    model: Name | None = None
    prices: Name | None = None
    price: dict[Name, PriceConfig] = Field(default_factory=dict[str, PriceConfig])

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


def check_one_time_limit(budget: BudgetConfig, stop_max_seconds: float | None) -> None:
    """Refuse two limits on the same time. Errors: ``ValueError``."""
    if budget.max_seconds is not None and stop_max_seconds is not None:
        raise ValueError("[budget] max_seconds and [stop] max_seconds are one limit; keep one")


_OWN = "[budget.price]"


class PriceFile(BaseModel):
    """A file of prices."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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
        table = PriceTable(version=_OWN, rows=_rows(config.price)).over(table)
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
