"""Tables of prices: the one that comes with jumar, a person's own file over it, and single rows over that."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from jumar.app.config.budget import BudgetConfig, Name, PriceConfig
from jumar.core.text import escape
from jumar.core.toml import parse_model, read_toml
from jumar.errors import ConfigError
from jumar.model.budget.prices import Prices
from jumar.model.budget.pricing import PriceRow, PriceTable

__all__ = ["PriceFile", "default_prices", "load_prices"]

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
