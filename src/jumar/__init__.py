"""Run an agent again and again, score every iteration, and keep the best one instead of the last.

Everything named here is loaded when it is first used, so that ``import jumar`` costs next to nothing. What the names do is said
where they are defined; nothing inside the package imports from here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jumar import topk as topk
    from jumar.app.calls import evaluate, run, run_cases
    from jumar.core import __version__
    from jumar.errors import (
        ArtifactError,
        BrokenStartError,
        ConfigError,
        ConflictError,
        DuplicateIterationError,
        EvaluationUnreliableError,
        ExistsError,
        FormatTooNewError,
        ItemError,
        JumarError,
        LockedError,
        LoopFinishedError,
        NotFoundError,
        NothingEvaluatedError,
        PatternLoadError,
        PatternSaveError,
        ScoreError,
        StoreDamagedError,
        StoreWriteError,
        StrategyError,
        UsageError,
    )
    from jumar.learning.calls import learn, prove
    from jumar.loop.ranking import detect_degradation, detect_diminishing_returns, likely_causes
    from jumar.loop.tracker import BestOutputTracker
    from jumar.model import (
        CheckResult,
        Decision,
        Degradation,
        DiminishingReturns,
        GenerateOutcome,
        Generator,
        IterationRecord,
        IterationView,
        Scorer,
        ScoreReading,
        SelectionCriteria,
        SelectionResult,
        Spend,
        StepContext,
        StopDecision,
        StopRules,
        TrendRule,
        Usage,
        Validator,
    )
    from jumar.model.ordering import parse_order

__all__ = [
    "ArtifactError",
    "BestOutputTracker",
    "BrokenStartError",
    "CheckResult",
    "ConfigError",
    "ConflictError",
    "Decision",
    "Degradation",
    "DiminishingReturns",
    "DuplicateIterationError",
    "EvaluationUnreliableError",
    "ExistsError",
    "FormatTooNewError",
    "GenerateOutcome",
    "Generator",
    "ItemError",
    "IterationRecord",
    "IterationView",
    "JumarError",
    "LockedError",
    "LoopFinishedError",
    "NotFoundError",
    "NothingEvaluatedError",
    "PatternLoadError",
    "PatternSaveError",
    "ScoreError",
    "ScoreReading",
    "Scorer",
    "SelectionCriteria",
    "SelectionResult",
    "Spend",
    "StepContext",
    "StopDecision",
    "StopRules",
    "StoreDamagedError",
    "StoreWriteError",
    "StrategyError",
    "TrendRule",
    "Usage",
    "UsageError",
    "Validator",
    "__version__",
    "detect_degradation",
    "detect_diminishing_returns",
    "evaluate",
    "learn",
    "likely_causes",
    "parse_order",
    "prove",
    "run",
    "run_cases",
]

_CALLS: Final = "jumar.app.calls"
_MODEL: Final = "jumar.model"
_RANKING: Final = "jumar.loop.ranking"
_ELSEWHERE: Final = {
    "BestOutputTracker": "jumar.loop.tracker",
    "CheckResult": _MODEL,
    "Decision": _MODEL,
    "Degradation": _MODEL,
    "DiminishingReturns": _MODEL,
    "GenerateOutcome": _MODEL,
    "Generator": _MODEL,
    "IterationRecord": _MODEL,
    "IterationView": _MODEL,
    "ScoreReading": _MODEL,
    "Scorer": _MODEL,
    "SelectionCriteria": _MODEL,
    "SelectionResult": _MODEL,
    "Spend": _MODEL,
    "StepContext": _MODEL,
    "StopDecision": _MODEL,
    "StopRules": _MODEL,
    "TrendRule": _MODEL,
    "Usage": _MODEL,
    "Validator": _MODEL,
    "__version__": "jumar.core",
    "detect_degradation": _RANKING,
    "detect_diminishing_returns": _RANKING,
    "evaluate": _CALLS,
    "learn": "jumar.learning.calls",
    "likely_causes": _RANKING,
    "parse_order": "jumar.model.ordering",
    "prove": "jumar.learning.calls",
    "run": _CALLS,
    "run_cases": _CALLS,
}
"""Where a name is defined; those that are not here are errors."""


if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name

    def __getattr__(name: str) -> object:
        """Load a public name when it is first used, and keep it."""
        if name == "topk":  # a package, which becomes an attribute where it is imported
            return import_module("jumar.topk")
        if name not in __all__:
            raise AttributeError(f"module 'jumar' has no attribute {name!r}")
        value = getattr(import_module(_ELSEWHERE.get(name, "jumar.errors")), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
