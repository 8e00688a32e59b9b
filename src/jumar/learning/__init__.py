"""Learning the cheap judge from the gap: whether it gets better, gets worse, or has arrived.

Everything named here is loaded when it is first used.
"""

from __future__ import annotations

from jumar.lazy import loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jumar.learning.history import (
        analyze_gap_increase,
        check_convergence,
        check_for_regression,
        detect_divergence,
        is_stable,
    )

__all__ = [
    "analyze_gap_increase",
    "check_convergence",
    "check_for_regression",
    "detect_divergence",
    "is_stable",
]

_ELSEWHERE = {
    "analyze_gap_increase": "history",
    "check_convergence": "history",
    "check_for_regression": "history",
    "detect_divergence": "history",
    "is_stable": "history",
}
"""Where a name is defined, below this package."""

if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name
    __getattr__ = loader(globals(), _ELSEWHERE)


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
