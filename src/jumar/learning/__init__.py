"""Learning the cheap judge from the gap: whether it gets better, gets worse, or has arrived.

Everything named here is loaded when it is first used.
"""

from __future__ import annotations

from jumar.lazy import loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jumar.judging.history import (
        analyze_gap_increase,
        check_convergence,
        check_for_regression,
        detect_divergence,
        is_stable,
    )
    from jumar.learning.state import KnownSet, LearnParameters, LearnState

__all__ = [
    "KnownSet",
    "LearnParameters",
    "LearnState",
    "analyze_gap_increase",
    "check_convergence",
    "check_for_regression",
    "detect_divergence",
    "is_stable",
]

_ELSEWHERE = {
    "KnownSet": "state",
    "LearnParameters": "state",
    "LearnState": "state",
    "analyze_gap_increase": "jumar.judging.history",
    "check_convergence": "jumar.judging.history",
    "check_for_regression": "jumar.judging.history",
    "detect_divergence": "jumar.judging.history",
    "is_stable": "jumar.judging.history",
}
"""Where a name is defined, below this package."""

if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name
    __getattr__ = loader(globals(), _ELSEWHERE)


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
