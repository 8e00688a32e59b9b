"""What went wrong in a loop, by kind, counted from its attempts and iterations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from jumar.model import IterationRecord
from jumar.model.attempts import Attempt, Outcome
from jumar.model.records import FAILURES, FailureKind, IterationView

__all__ = ["count_failures", "failure_of_attempt"]

_OF_OUTCOME: Final[Mapping[Outcome, FailureKind]] = MappingProxyType(
    {
        "failed": "generator_failed",
        "timeout": "generator_timeout",
        "rate_limited": "rate_limited",
        "blocked": "blocked",
        "lost": "lost",
    }
)


def failure_of_attempt(outcome: Outcome) -> FailureKind | None:
    """Return the kind of failure that an attempt's outcome is, None when it is none or its own evaluation says which."""
    return _OF_OUTCOME.get(outcome)


def count_failures(attempts: Iterable[Attempt], views: Iterable[IterationView | IterationRecord]) -> dict[str, int]:
    """Return how many failures of each kind a loop has had, retried ones included; kinds that did not occur are left out.

    What an attempt's end tells is counted there; what is known only of an iteration (no effect, an invalid score), there.
    """
    counted: Counter[str] = Counter()
    for attempt in attempts:
        if attempt.end is not None and (kind := attempt.end.failure or failure_of_attempt(attempt.end.outcome)) is not None:
            counted[kind] += 1
    for view in views:
        if view.failure in {"changed_nothing", "produced_nothing", "invalid_score", "snapshot_failed"}:
            counted[view.failure] += 1
    return {kind: counted[kind] for kind in FAILURES if counted[kind]}
