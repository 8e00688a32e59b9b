"""What a loop may use: its limits, and what is set aside for a step before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from jumar.core.record import Record

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
