"""``[budget]``: what a loop may use over all its resumes, and what tokens cost."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from jumar.app.config.workspace import Option
from jumar.model.budget.limits import Budget, OnUnknownCost

__all__ = ["BudgetConfig", "PriceConfig", "check_one_time_limit"]

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
