"""Learning the cheap judge from the gap: whether it gets better, gets worse, or has arrived.

Everything named here is loaded when it is first used.
"""

from __future__ import annotations

from jumar.core.lazy import loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jumar.judging.history import analyze_gap_increase, check_convergence, check_for_regression, detect_divergence, is_stable
    from jumar.judging.patterns.phrases import extract_keywords
    from jumar.learning.calls import evaluate_auto, learn, prove, verify_proof
    from jumar.learning.material import GapItem, gap_items
    from jumar.learning.proposals.asking import Asked, ask_for_proposals
    from jumar.learning.proposals.candidates import learn_from_gap, propose
    from jumar.learning.recovery import RECOVERY_ACTIONS, Recovery, RecoveryMeans, execute_recovery
    from jumar.learning.regression import GapChange, Regression, Scored, attribute_gap_change, check_change
    from jumar.learning.state import KnownSet, LearnParameters, LearnState

__all__ = [
    "RECOVERY_ACTIONS",
    "Asked",
    "GapChange",
    "GapItem",
    "KnownSet",
    "LearnParameters",
    "LearnState",
    "Recovery",
    "RecoveryMeans",
    "Regression",
    "Scored",
    "analyze_gap_increase",
    "ask_for_proposals",
    "attribute_gap_change",
    "check_change",
    "check_convergence",
    "check_for_regression",
    "detect_divergence",
    "evaluate_auto",
    "execute_recovery",
    "extract_keywords",
    "gap_items",
    "is_stable",
    "learn",
    "learn_from_gap",
    "propose",
    "prove",
    "verify_proof",
]

_ELSEWHERE = {
    "Asked": "proposals.asking",
    "GapChange": "regression",
    "GapItem": "material",
    "KnownSet": "state",
    "LearnParameters": "state",
    "LearnState": "state",
    "RECOVERY_ACTIONS": "recovery",
    "Recovery": "recovery",
    "RecoveryMeans": "recovery",
    "Regression": "regression",
    "Scored": "regression",
    "analyze_gap_increase": "jumar.judging.history",
    "ask_for_proposals": "proposals.asking",
    "attribute_gap_change": "regression",
    "check_change": "regression",
    "check_convergence": "jumar.judging.history",
    "check_for_regression": "jumar.judging.history",
    "detect_divergence": "jumar.judging.history",
    "evaluate_auto": "calls",
    "execute_recovery": "recovery",
    "extract_keywords": "jumar.judging.patterns.phrases",
    "gap_items": "material",
    "is_stable": "jumar.judging.history",
    "learn": "calls",
    "learn_from_gap": "proposals.candidates",
    "propose": "proposals.candidates",
    "prove": "calls",
    "verify_proof": "calls",
}
"""Where a name is defined, below this package."""

if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name
    __getattr__ = loader(globals(), _ELSEWHERE)


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
