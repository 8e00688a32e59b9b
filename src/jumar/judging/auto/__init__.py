"""Cheap where it is certain enough, expensive where it is not: intervals, escalation, audits, the average, the guarantee. Pure.

What is named here is loaded when it is first used.
"""

from __future__ import annotations

from jumar.core.lazy import loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jumar.judging.auto.average import CorrectedAverage, corrected_average
    from jumar.judging.auto.conformal import LEVELS, ConformalIntervals, fit_intervals, intervals_of
    from jumar.judging.auto.decided import AutoOutcome, Decided, outcome
    from jumar.judging.auto.escalation import AutoRules, Planned, is_audited, plan
    from jumar.judging.auto.promise import Guarantee, SealedCheck, distrust, guarantee, guarantee_by_group, sealed_check

__all__ = [
    "LEVELS",
    "AutoOutcome",
    "AutoRules",
    "ConformalIntervals",
    "CorrectedAverage",
    "Decided",
    "Guarantee",
    "Planned",
    "SealedCheck",
    "corrected_average",
    "distrust",
    "fit_intervals",
    "guarantee",
    "guarantee_by_group",
    "intervals_of",
    "is_audited",
    "outcome",
    "plan",
    "sealed_check",
]

_ELSEWHERE = {
    "LEVELS": "conformal",
    "AutoOutcome": "decided",
    "AutoRules": "escalation",
    "ConformalIntervals": "conformal",
    "CorrectedAverage": "average",
    "Decided": "decided",
    "Guarantee": "promise",
    "Planned": "escalation",
    "SealedCheck": "promise",
    "corrected_average": "average",
    "distrust": "promise",
    "fit_intervals": "conformal",
    "guarantee": "promise",
    "guarantee_by_group": "promise",
    "intervals_of": "conformal",
    "is_audited": "escalation",
    "outcome": "decided",
    "plan": "escalation",
    "sealed_check": "promise",
}
"""Where a name is defined, below this package."""

if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name
    __getattr__ = loader(globals(), _ELSEWHERE)


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
