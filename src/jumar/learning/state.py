"""What the learner remembers between two iterations: its patterns, what is proposed, how it went, and how bold it is.

Values that are never changed: an iteration, a recovery action or a rollback returns another one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Self

from jumar.core.text import escape
from jumar.errors import FormatTooNewError, StoreDamagedError
from jumar.judging.digests import patterns_digest
from jumar.judging.models import IterationMetrics
from jumar.judging.patterns.models import PatternProposal, PatternSet
from jumar.judging.patterns.provisional import ValidationRule

__all__ = ["FORMAT", "KnownSet", "LearnParameters", "LearnState", "pattern_hash"]

FORMAT: Final = 1
MOST_VERSIONS: Final = 8
MOST_DIVERSITY: Final = 3
MOST_ACTIONS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnParameters:
    """How bold the learner is. Errors: ValueError for one that is out of range.

    ``learning_rate`` scales every change of a weight, above 0 up to 1. ``validation`` is when a provisional pattern is committed
    or rejected. ``diversity`` counts from 0 to 3 how far proposals are widened. Patterns with a weight below ``prune_below`` go
    when weights are pruned.
    """

    learning_rate: float = 1.0
    validation: ValidationRule = field(default_factory=ValidationRule)
    diversity: int = 0
    prune_below: float = 0.3

    def __post_init__(self) -> None:
        if not (math.isfinite(self.learning_rate) and 0 < self.learning_rate <= 1):
            raise ValueError(f"learning_rate = {self.learning_rate} should be above 0 and at most 1")
        if not 0 <= self.diversity <= MOST_DIVERSITY:
            raise ValueError(f"diversity = {self.diversity} should be from 0 to {MOST_DIVERSITY}")
        if not (math.isfinite(self.prune_below) and 0 <= self.prune_below <= 2):
            raise ValueError(f"prune_below = {self.prune_below} should be from 0 to 2")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSet:
    """A set that an iteration ended with. ``abs_gap`` is its mean absolute gap on the test split, None when it was not tried.

    ``good`` is False for one in whose iteration a regression or a divergence was found: nothing goes back to it.
    """

    iteration: int
    patterns: PatternSet
    abs_gap: float | None = None
    good: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnState:
    """Everything that decides about the next iteration, the ledger of proposals apart.

    ``history`` and ``versions`` are oldest first; of the versions the last eight are remembered, with the best one among them.
    ``actions`` are the entries of the log, JSON objects with ``action``, oldest first; the last thousand stay.
    """

    patterns: PatternSet
    iteration: int = 0
    proposals: tuple[PatternProposal, ...] = ()
    history: tuple[IterationMetrics, ...] = ()
    parameters: LearnParameters = field(default_factory=LearnParameters)
    versions: tuple[KnownSet, ...] = ()
    actions: tuple[dict[str, Any], ...] = ()

    def remembered(self, *, abs_gap: float | None = None, good: bool = True) -> Self:
        """Return the state with its present patterns as the newest version; one that is equal is not kept twice in a row."""
        new = KnownSet(iteration=self.iteration, patterns=self.patterns, abs_gap=abs_gap, good=good)
        before = self.versions
        if before and pattern_hash(before[-1].patterns) == pattern_hash(self.patterns):
            before = before[:-1]
        return replace(self, versions=_latest((*before, new)))

    def last_good(self) -> KnownSet | None:
        """Return the newest good version with other patterns than the present ones, None when there is none."""
        now = pattern_hash(self.patterns)
        return next((one for one in reversed(self.versions) if one.good and pattern_hash(one.patterns) != now), None)

    def logged(self, *entries: Mapping[str, Any]) -> Self:
        """Return the state with ``entries`` at the end of its log."""
        return replace(self, actions=(*self.actions, *(dict(one) for one in entries))[-MOST_ACTIONS:])

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON that :meth:`from_json` reads back as an equal state."""
        return {
            "format": FORMAT,
            "iteration": self.iteration,
            "patterns": self.patterns.model_dump(mode="json"),
            "proposals": [one.model_dump(mode="json") for one in self.proposals],
            "history": [one.model_dump(mode="json") for one in self.history],
            "parameters": asdict(self.parameters),
            "versions": [
                {
                    "iteration": one.iteration,
                    "patterns": one.patterns.model_dump(mode="json"),
                    "abs_gap": one.abs_gap,
                    "good": one.good,
                }
                for one in self.versions
            ],
            "actions": [dict(one) for one in self.actions],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], where: str = "state.json") -> LearnState:
        """Return the state that ``document`` holds; what it does not know is left out.

        Errors: :class:`jumar.errors.FormatTooNewError`; :class:`jumar.errors.StoreDamagedError` that names ``where``.
        """
        found = document.get("format")
        if isinstance(found, int) and found > FORMAT:
            raise FormatTooNewError(f"{escape(where)}: format {found} of a newer jumar; update jumar")
        try:
            if found != FORMAT:
                raise ValueError(f"its format is {found!r}, not {FORMAT}")  # noqa: TRY301 - one message for all of it
            return cls(
                iteration=int(document["iteration"]),
                patterns=PatternSet.model_validate(document["patterns"]),
                proposals=tuple(PatternProposal.model_validate(one) for one in document["proposals"]),
                history=tuple(IterationMetrics.model_validate(one) for one in document["history"]),
                parameters=_parameters(document["parameters"]),
                versions=tuple(
                    KnownSet(
                        iteration=int(one["iteration"]),
                        patterns=PatternSet.model_validate(one["patterns"]),
                        abs_gap=None if one["abs_gap"] is None else float(one["abs_gap"]),
                        good=bool(one["good"]),
                    )
                    for one in document["versions"]
                ),
                actions=tuple(dict(one) for one in document["actions"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise StoreDamagedError(f"{escape(where)} is not a state of the learner: {escape(said)}") from error


def pattern_hash(patterns: PatternSet) -> str:
    """Return the SHA-256 of what a set holds, whatever the layout it was read with, and without what is only counted."""
    return patterns_digest(patterns)


def _parameters(found: Mapping[str, Any]) -> LearnParameters:
    known = {one.name for one in fields(LearnParameters)}
    given = {name: value for name, value in found.items() if name in known}
    if "validation" in given:
        rule = {one.name for one in fields(ValidationRule)}
        given["validation"] = ValidationRule(**{name: value for name, value in given["validation"].items() if name in rule})
    return LearnParameters(**given)


def _latest(versions: tuple[KnownSet, ...]) -> tuple[KnownSet, ...]:
    if len(versions) <= MOST_VERSIONS:
        return versions
    tried = [one for one in versions if one.good and one.abs_gap is not None]
    best = min(tried, key=lambda one: one.abs_gap or 0.0, default=None)
    kept = versions[-MOST_VERSIONS:]
    return kept if best is None or any(one is best for one in kept) else (best, *kept[1:])
