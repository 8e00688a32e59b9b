"""What the tokens of a model cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jumar.core.record import Record
from jumar.errors import ConfigError
from jumar.model.records import Usage

__all__ = ["Prices"]


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
