"""Judging items in two modes, the expensive and the cheap one, and what lies between them.

Everything named here is loaded when it is first used.
"""

from __future__ import annotations

from jumar.core.lazy import loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jumar.judging.asking.cache import ReplyCache
    from jumar.judging.asking.call_log import CallLog
    from jumar.judging.asking.evaluate import JudgeRun, evaluate_expensive, judge_items
    from jumar.judging.asking.settings import JudgeSettings
    from jumar.judging.asking.summary import JudgeRejectedError
    from jumar.judging.cheap.evaluator import CheapModeEvaluator, evaluate_cheap
    from jumar.judging.component_health import check_cheap_evaluator, check_expensive_evaluator
    from jumar.judging.dual import DualEvaluation, evaluate_dual, judge_both
    from jumar.judging.gap import PatternCoverage, pattern_coverage
    from jumar.judging.history import analyze_gap_increase, check_convergence, check_for_regression, detect_divergence, is_stable
    from jumar.judging.items.item import Item
    from jumar.judging.judges import make_judge
    from jumar.judging.judges.mock import MockJudge
    from jumar.judging.models import (
        CheapModeResult,
        ComponentHealthStatus,
        DualModeResult,
        ExpensiveModeResult,
        IterationLog,
        IterationMetrics,
        Story,
        Unscored,
    )
    from jumar.judging.patterns.storage import update_calibration_history
    from jumar.judging.raters.figures import RaterAgreement, compare_raters
    from jumar.judging.raters.ratings import Rater, read_raters
    from jumar.judging.rubric import JudgeRubric, Rubric, StoryRubric, TextRubric, builtin_rubric
    from jumar.model.budget.pricing import Prices

__all__ = [
    "CallLog",
    "CheapModeEvaluator",
    "CheapModeResult",
    "ComponentHealthStatus",
    "DualEvaluation",
    "DualModeResult",
    "ExpensiveModeResult",
    "Item",
    "IterationLog",
    "IterationMetrics",
    "JudgeRejectedError",
    "JudgeRubric",
    "JudgeRun",
    "JudgeSettings",
    "MockJudge",
    "PatternCoverage",
    "Prices",
    "Rater",
    "RaterAgreement",
    "ReplyCache",
    "Rubric",
    "Story",
    "StoryRubric",
    "TextRubric",
    "Unscored",
    "analyze_gap_increase",
    "builtin_rubric",
    "check_cheap_evaluator",
    "check_convergence",
    "check_expensive_evaluator",
    "check_for_regression",
    "compare_raters",
    "detect_divergence",
    "evaluate_cheap",
    "evaluate_dual",
    "evaluate_expensive",
    "is_stable",
    "judge_both",
    "judge_items",
    "make_judge",
    "pattern_coverage",
    "read_raters",
    "update_calibration_history",
]

_ELSEWHERE = {
    "Rater": "raters.ratings",
    "RaterAgreement": "raters.figures",
    "compare_raters": "raters.figures",
    "read_raters": "raters.ratings",
    "CallLog": "asking.call_log",
    "CheapModeEvaluator": "cheap.evaluator",
    "CheapModeResult": "models",
    "ComponentHealthStatus": "models",
    "DualEvaluation": "dual",
    "DualModeResult": "models",
    "ExpensiveModeResult": "models",
    "Item": "items.item",
    "IterationLog": "models",
    "IterationMetrics": "models",
    "JudgeRejectedError": "asking.summary",
    "JudgeRubric": "rubric",
    "JudgeRun": "asking.evaluate",
    "JudgeSettings": "asking.settings",
    "MockJudge": "judges.mock",
    "PatternCoverage": "gap",
    "Prices": "jumar.model.budget.pricing",
    "ReplyCache": "asking.cache",
    "Rubric": "rubric",
    "Story": "models",
    "StoryRubric": "rubric",
    "TextRubric": "rubric",
    "Unscored": "models",
    "analyze_gap_increase": "history",
    "builtin_rubric": "rubric",
    "check_cheap_evaluator": "component_health",
    "check_convergence": "history",
    "check_expensive_evaluator": "component_health",
    "check_for_regression": "history",
    "detect_divergence": "history",
    "evaluate_cheap": "cheap.evaluator",
    "evaluate_dual": "dual",
    "evaluate_expensive": "asking.evaluate",
    "is_stable": "history",
    "judge_both": "dual",
    "judge_items": "asking.evaluate",
    "make_judge": "judges",
    "pattern_coverage": "gap",
    "update_calibration_history": "patterns.storage",
}
"""Where a name is defined, below this package."""

if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name
    __getattr__ = loader(globals(), _ELSEWHERE)


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
