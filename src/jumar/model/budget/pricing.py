"""What an attempt cost, from its tokens and a table of prices. A model that the table doesn't have has an unknown cost.

Prices change: what a table said is written into the attempt that it was used for, with the table's version and digest.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal

from jumar.core.record import Record
from jumar.core.text import escape, nearest, plural
from jumar.errors import ConfigError
from jumar.model.records import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices(Record):
    """USD for a million tokens, as the provider's price list has them. Errors: :class:`jumar.errors.ConfigError`.

    ``cached_per_million`` is for input that was read from a cache; None: as all input.
    """

    input_per_million: float
    output_per_million: float
    cached_per_million: float | None = None

    def __post_init__(self) -> None:
        for name in ("input_per_million", "output_per_million", "cached_per_million"):
            value: float | None = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"{name} = {value} should be 0 or more USD")

    def cost(self, usage: Usage) -> float | None:
        """Return the cost in USD; None when the number of input or output tokens is unknown.

        Cached tokens are a part of the input; more than there is input count as all of it.
        """
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        if self.cached_per_million is None or not usage.cached_tokens:
            return (usage.input_tokens * self.input_per_million + usage.output_tokens * self.output_per_million) / 1e6
        cached = min(usage.cached_tokens, usage.input_tokens)
        fresh = (usage.input_tokens - cached) * self.input_per_million + cached * self.cached_per_million
        return (fresh + usage.output_tokens * self.output_per_million) / 1e6


_VARIANT: Final = re.compile(r"(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{3,4}|latest))?(?:\[1m\])?")
"""What may follow a model's name without being another model: a date or ``latest``, and a mark for a larger context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """The prices of one model, when they were looked up (ISO date) and where (the provider's name)."""

    prices: Prices
    date: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """Prices by model name, in small letters. A name that ends in ``*`` stands for every model that begins so."""

    version: str
    rows: Mapping[str, PriceRow] = field(default_factory=lambda: MappingProxyType(dict[str, PriceRow]()))

    @property
    def digest(self) -> str:
        """The first 12 digits of the SHA-256 of all rows: equal for equal prices, whatever their order."""
        rows = {name: row.prices.to_json() for name, row in self.rows.items()}
        text = json.dumps(rows, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def over(self, other: PriceTable) -> PriceTable:
        """Return the rows of ``other`` with these laid over them; the version names both."""
        version = f"{self.version} over {other.version}" if self.rows else other.version
        return PriceTable(version=version, rows=MappingProxyType({**other.rows, **self.rows}))

    def find(self, model: str) -> tuple[str, PriceRow] | None:
        """Return the row for ``model`` with its name; None when there is none.

        The exact name first; then without what stands before the last slash (``anthropic/``, ``models/``); then without a date,
        ``-latest`` or ``[1m]`` at its end; then the longest name with a ``*`` that fits. Case does not matter. ``gpt-5-mini`` is
        never taken for ``gpt-5``.
        """
        given = model.strip().lower()
        for name in dict.fromkeys((given, given.rpartition("/")[2])):
            if name in self.rows:
                return name, self.rows[name]
            known = (row for row in self.rows if name.startswith(row) and _VARIANT.fullmatch(name, len(row)))
            longest = max(known, key=len, default=None)
            if longest is None:
                stars = (row for row in self.rows if row.endswith("*") and name.startswith(row[:-1]))
                longest = max(stars, key=len, default=None)
            if longest is not None:
                return longest, self.rows[longest]
        return None

    def unknown(self, model: str) -> str:
        """Return a sentence that says that ``model`` has no price, and how to give it one."""
        close = nearest(model.strip().lower(), tuple(self.rows))
        return (
            f"the table of prices has no model '{escape(model)}'{close}; add [budget.price.\"{escape(model)}\"] with input and "
            "output in USD for a million tokens"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A usage whose cost may have been computed, and the notes that say how, or why not."""

    usage: Usage
    notes: tuple[str, ...] = ()
    row: Mapping[str, Any] | None = None


def price_usage(usage: Usage, table: PriceTable, *, model: str | None = None, wanted: bool = True) -> Priced:
    """Return ``usage`` with its cost in USD where that can be computed; what the generator reported itself is kept.

    ``model`` is assumed where the usage names none. Nothing is noted where there are no tokens to be priced. Tokens without a
    known model, or without input and output apart, have an unknown cost, and the note says what is missing. Unless dollars are
    ``wanted``, only a model that the table doesn't have is worth a note.
    """
    if usage.token_cost_usd is not None or not (usage.tokens_used or usage.input_tokens or usage.output_tokens):
        return Priced(usage=usage)
    name = usage.model or model
    if name is None:
        note = "not priced: it reports tokens and no model; report 'model' too, or set [budget] model; the cost is unknown"
        return Priced(usage=usage, notes=(note,) if wanted else ())
    found = table.find(name)
    if found is None:
        return Priced(usage=usage, notes=(f"not priced: {table.unknown(name)}; the cost is unknown",))
    row_name, row = found
    cost = row.prices.cost(usage)
    if cost is None:
        missing = "input" if usage.input_tokens is None else "output"
        note = f"not priced: it reports no {missing}_tokens, which cost differently; the cost is unknown"
        return Priced(usage=usage, notes=(note,) if wanted else ())
    note = f"priced: {_words(usage, row.prices)}, '{row_name}' of prices {table.version} ({table.digest})"
    return Priced(usage=replace(usage, token_cost_usd=cost), notes=(note,), row=MappingProxyType(row.prices.to_json()))


def _words(usage: Usage, prices: Prices) -> str:
    parts = [
        f"{plural(usage.input_tokens or 0, 'input token')} at ${prices.input_per_million:g}",
        f"{plural(usage.output_tokens or 0, 'output token')} at ${prices.output_per_million:g} a million",
    ]
    if usage.cached_tokens and prices.cached_per_million is not None:
        parts[0] += f" ({usage.cached_tokens:,} of them cached at ${prices.cached_per_million:g})"
    return " and ".join(parts)


DEFAULT_MAX_ITERATIONS: Final = 10
OnUnknownCost = Literal["charge_reserve", "stop", "allow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(Record):
    """Limits over all resumes of one loop; None is no limit.

    max_iterations       runs of the generator, failed, rate-limited and lost ones too
    max_seconds          sum of the attempts' monotonic time
    max_tokens           tokens of generators and judges
    max_cost_usd         US dollars of generators and judges
    max_calls_per_hour   runs of the generator begun within any 3,600 seconds
    reserve_cost_usd     what is set aside for a step before it begins; None: the largest seen of its kind
    reserve_tokens       the same in tokens
    on_unknown_cost      what becomes of an attempt that ended without saying what it used, under a limit of that kind:
                         ``charge_reserve`` charges the reservation and stops where there is none, ``stop`` ends the loop,
                         ``allow`` counts only what is known
    """

    max_iterations: int | None = None
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    max_calls_per_hour: int | None = None
    reserve_cost_usd: float | None = None
    reserve_tokens: int | None = None
    on_unknown_cost: OnUnknownCost = "charge_reserve"

    @classmethod
    def from_recorded(cls, values: Mapping[str, Any]) -> Budget:
        """Return the limits among ``values``, as they were recorded; other keys are left alone."""
        return cls(**{name: value for name, value in values.items() if name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What is set aside for one step. None: nothing is known of what it may use, which is not 0."""

    cost_usd: float | None = None
    tokens: int | None = None
