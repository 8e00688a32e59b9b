"""How to choose, and what was selected: criteria, results, degradation, diminishing returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, get_args

from jumar.core.codec import is_finite
from jumar.core.record import Record

Mode = Literal["highest_quality", "highest_quality_verified", "most_recent_above_threshold"]
MODES: Final[tuple[str, ...]] = ("highest_quality", "highest_quality_verified", "most_recent_above_threshold")


def refuse_share(score: float) -> float:
    """Return a score of 0 to 100. Errors: ValueError for a share of 1, such as 0.7, which says what to write."""
    if 0 < score < 1:
        raise ValueError(f"scores are from 0 to 100, so {score:g} is next to nothing: write {round(100 * score, 10):g}")
    return score


def refuse_percent(given: Any) -> Any:
    """Return what is no text in per cent. Errors: ValueError for one, such as 70% or 0.7%, which says what to write."""
    number = given.strip().removesuffix("%").rstrip() if isinstance(given, str) and given.strip().endswith("%") else ""
    try:
        meant = float(number)
    except ValueError:
        return given
    if not is_finite(meant):
        return given
    meant = 100 * meant if 0 < meant < 1 else meant
    raise ValueError(f"scores are points from 0 to 100: write {round(meant, 10):g}, without a sign")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionCriteria(Record):
    """Seed 2's selection options. ``threshold`` is on 0–100 and inclusive; None asks for none.

    The mode decides about verification: ``highest_quality`` ignores it, ``highest_quality_verified`` wants it whatever
    ``require_verification`` says, ``most_recent_above_threshold`` obeys ``require_verification``.
    """

    mode: Mode = "highest_quality_verified"
    threshold: float | None = 70
    require_verification: bool = True


DEFAULT_CRITERIA: Final = SelectionCriteria()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseRules:
    """How noise is dealt with; see :mod:`jumar.loop.ranking.noise`.

    ``rescore``: how often each finalist is scored again, 0 for never. ``finalists``: how many at most, 1 or more. ``level``: the
    probability with which the truly best one is among those that are within the noise of the leader, from 0.5 up to, not
    including, 1. ``tie``: two scores that differ by at most this many standard errors of their difference are a tie; 0 to 5.
    """

    rescore: int = 2
    finalists: int = 5
    level: float = 0.95
    tie: float = 1.0

    @classmethod
    def recorded(cls, section: Mapping[str, Any]) -> Self:
        """Read the rules from a recorded configuration, which was checked then; what is missing is the default."""
        known = {name: section[name] for name in ("rescore", "finalists", "level", "tie") if name in section}
        usable = all(isinstance(value, int | float) and is_finite(value) for value in known.values())
        return cls(**known) if usable else cls()


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionResult(Record):
    """The selected iteration and why. Scores are 0–100.

    ``meets_threshold`` is True when the selected one satisfies every rule of its mode, and None when no threshold was asked for.
    ``fallback`` names the rules that had to be relaxed (``"threshold"``, ``"threshold, verification"``, ``"verification"``, …)
    and is None exactly when none was. ``margin`` is the score of the selected one minus the runner-up's; both are None with a
    single candidate. ``below_start`` is True when the selected one scores less than iteration 0. ``kept`` is an iteration that
    stands although the start was selected, because it is as good (:func:`jumar.loop.ranking.ratchet.select_kept`); else None.
    """

    selected_iteration: int
    quality_score: float
    reason: str
    final_iteration: int
    final_quality: float | None
    degradation_detected: bool
    meets_threshold: bool | None
    fallback: str | None
    runner_up: int | None
    margin: float | None
    below_start: bool = False
    kept: int | None = None

    @property
    def stands(self) -> int:
        """The iteration that is reported, applied and compared with: the selected one, or what is kept in its place."""
        return self.selected_iteration if self.kept is None else self.kept


@dataclass(frozen=True, slots=True, kw_only=True)
class DiminishingReturns:
    """Seed 2: ``iteration`` is the number of the first iteration of the streak of small deltas."""

    detected: bool
    iteration: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation(Record):
    """Seed 1's triggers that fired, the iteration where the first did, and what seed 1 says to do about it.

    ``triggers`` is a subset of ``quality_drop``, ``consecutive_decreases``, ``validation_failures_increased``; ``actions`` of
    ``flag_degradation``, ``consider_early_stopping``, ``preserve_pre_degradation_best``. ``iterations`` are those at which a
    trigger fired. ``best_before`` is the best iteration before the first of them.
    """

    detected: bool
    triggers: tuple[str, ...] = ()
    iterations: tuple[int, ...] = ()
    best_before: int | None = None
    actions: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()


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
    "paused",
    "terminated",
]
STOP_REASONS: Final[tuple[str, ...]] = get_args(StopReason)

REQUESTED_REASONS: Final[frozenset[str]] = frozenset({"interrupted", "paused", "terminated", "stop_file"})
"""Reasons that somebody gave from outside: nothing is selected or put in place yet, and the same command resumes."""

UNENDED_REASONS: Final[frozenset[str]] = REQUESTED_REASONS | {"disk_full"}
"""Reasons after which a run writes no ``end``: choice, confirmation and apply are left to the run that resumes."""

DONE_REASONS: Final[frozenset[str]] = frozenset({"target", "completed", "converged"})
"""Reasons of a loop that has arrived: there is nothing more to do."""

LIMIT_REASONS: Final[frozenset[str]] = frozenset(
    {"max_seconds", "max_cost", "max_tokens", "max_attempts", "unknown_cost", "disk_full", "rate_limited"}
)
"""Reasons that end a loop with exit code 11 when its threshold is not met: a budget, not a judgement about the work."""

EndKind = Literal["end", "limit", "failure", "needs_person"]
"""How a run ended, for people who are told of it: by its own rules, by a limit, by an error, or so that it cannot go on alone."""


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
