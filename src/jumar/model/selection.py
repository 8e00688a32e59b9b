"""How to choose, and what was selected: criteria, results, degradation, diminishing returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from jumar.core.codec import is_finite
from jumar.core.record import Record

Mode = Literal["highest_quality", "highest_quality_verified", "most_recent_above_threshold"]
MODES: Final[tuple[str, ...]] = ("highest_quality", "highest_quality_verified", "most_recent_above_threshold")


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
