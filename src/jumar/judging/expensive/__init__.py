"""The expensive judge: asking it, reading its answers, and what to do when it does not answer.

Everything named here is loaded when it is first used.
"""

from __future__ import annotations

from jumar.lazy import loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jumar.judging.expensive.cache import ReplyCache
    from jumar.judging.expensive.call_log import CallLog
    from jumar.judging.expensive.command import CommandJudge
    from jumar.judging.expensive.evaluate import JudgeRun, evaluate_expensive, judge_items
    from jumar.judging.expensive.health import check_expensive_evaluator
    from jumar.judging.expensive.ledger import Prices
    from jumar.judging.expensive.mock import MockJudge
    from jumar.judging.expensive.noise import JudgeNoise, judge_noise
    from jumar.judging.expensive.replay import ReplayJudge
    from jumar.judging.expensive.settings import JudgeSettings
    from jumar.judging.expensive.summary import Evaluation, JudgeInterruptedError, JudgeRejectedError

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
    "CommandJudge": "command",
    "Evaluation": "summary",
    "JudgeInterruptedError": "summary",
    "JudgeNoise": "noise",
    "JudgeRejectedError": "summary",
    "JudgeRun": "evaluate",
    "JudgeSettings": "settings",
    "MockJudge": "mock",
    "Prices": "ledger",
    "ReplayJudge": "replay",
    "ReplyCache": "cache",
    "check_expensive_evaluator": "health",
    "evaluate_expensive": "evaluate",
    "judge_items": "evaluate",
    "judge_noise": "noise",
}
"""Where a name is defined, below this package."""

if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name
    __getattr__ = loader(globals(), _ELSEWHERE)


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
