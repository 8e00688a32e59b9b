"""The expensive judge: asking it, reading its answers, and what to do when it does not answer.

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
    from jumar.judging.asking.summary import Evaluation, JudgeInterruptedError, JudgeNoise, JudgeRejectedError, judge_noise
    from jumar.judging.component_health import check_expensive_evaluator
    from jumar.judging.judges.command import CommandJudge
    from jumar.judging.judges.mock import MockJudge
    from jumar.judging.judges.replay import ReplayJudge
    from jumar.model.budget.pricing import Prices

__all__ = [
    "CallLog",
    "CommandJudge",
    "Evaluation",
    "JudgeInterruptedError",
    "JudgeNoise",
    "JudgeRejectedError",
    "JudgeRun",
    "JudgeSettings",
    "MockJudge",
    "Prices",
    "ReplayJudge",
    "ReplyCache",
    "check_expensive_evaluator",
    "evaluate_expensive",
    "judge_items",
    "judge_noise",
]

_ELSEWHERE = {
    "CallLog": "call_log",
    "CommandJudge": "jumar.judging.judges.command",
    "Evaluation": "summary",
    "JudgeInterruptedError": "summary",
    "JudgeNoise": "summary",
    "JudgeRejectedError": "summary",
    "JudgeRun": "evaluate",
    "JudgeSettings": "settings",
    "MockJudge": "jumar.judging.judges.mock",
    "Prices": "jumar.model.budget.pricing",
    "ReplayJudge": "jumar.judging.judges.replay",
    "ReplyCache": "cache",
    "check_expensive_evaluator": "jumar.judging.component_health",
    "evaluate_expensive": "evaluate",
    "judge_items": "evaluate",
    "judge_noise": "summary",
}
"""Where a name is defined, below this package."""

if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name
    __getattr__ = loader(globals(), _ELSEWHERE)


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
