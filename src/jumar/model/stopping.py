"""When a loop ends: the rules, and the typed reason that one of them gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from jumar.core.record import Record

StopReason = Literal[
    "target",
    "completed",
    "converged",
    "max_iterations",
    "max_seconds",
    "max_cost",
    "max_tokens",
    "max_attempts",
    "unknown_cost",
    "diminishing_returns",
    "plateau",
    "decline",
    "oscillation",
    "consecutive_failures",
    "blocked",
    "rate_limited",
    "disk_full",
    "stop_file",
    "interrupted",
    "terminated",
]
STOP_REASONS: Final[tuple[str, ...]] = get_args(StopReason)

REQUESTED_REASONS: Final[frozenset[str]] = frozenset({"interrupted", "terminated", "stop_file"})
"""Reasons that somebody gave from outside: nothing is selected or put in place yet, and the same command resumes."""

UNENDED_REASONS: Final[frozenset[str]] = REQUESTED_REASONS | {"disk_full"}
"""Reasons after which a run writes no ``end``: choice, confirmation and apply are left to the run that resumes."""

DONE_REASONS: Final[frozenset[str]] = frozenset({"target", "completed", "converged"})
"""Reasons of a loop that has arrived: there is nothing more to do."""

LIMIT_REASONS: Final[frozenset[str]] = frozenset(
    {"max_seconds", "max_cost", "max_tokens", "max_attempts", "unknown_cost", "disk_full", "rate_limited"}
)
"""Reasons that end a loop with exit code 11 when its threshold is not met: a budget, not a judgement about the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRule:
    """A rule over the last ``window`` steps with a size of ``delta`` points; what both mean is said by the rule's name."""

    window: int
    delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRules(Record):
    """Every rule but ``max_iterations`` and ``consecutive_failures`` is off by default. Invalid scores are passed over.

    target               stop once a valid score of an iteration that no check refused reaches it (0–100)
    target_unverified    the score alone reaches the target, whatever the checks say
    max_iterations       iterations, failed ones included, iteration 0 not counted
    max_seconds          sum of the attempts' time
    diminishing_returns  seed 2: ``window`` deltas in a row, each below ``delta`` in absolute value
    plateau              the last ``window`` scores lie within ``delta`` points of each other and don't just fall
    decline              the last ``window`` deltas are all negative and add up to at least ``delta``
    oscillation          the last ``window`` deltas alternate in sign, each at least ``delta``, without a new best
    consecutive_failures failed iterations in a row
    converged            the cheap judge of an evaluator tracks the expensive one, and the items are good
    """

    target: float | None = None
    target_unverified: bool = False
    max_iterations: int = 10
    max_seconds: float | None = None
    diminishing_returns: TrendRule | None = None
    plateau: TrendRule | None = None
    decline: TrendRule | None = None
    oscillation: TrendRule | None = None
    consecutive_failures: int = 3
    converged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StopDecision:
    """Why the loop ends, as a typed reason and as a sentence for people."""

    reason: StopReason
    detail: str
