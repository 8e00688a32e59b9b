"""The scorers that come with jumar, one file each, and :func:`build_scorer`, which makes one from its options."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from jumar.core.text import nearest
from jumar.errors import ConfigError
from jumar.loop.scorers.base import Builtin, Options, ScorerRuntime, SharedEvaluation
from jumar.loop.scorers.checks import CHECKS, ChecksScorer
from jumar.loop.scorers.command import COMMAND, CommandScorer
from jumar.loop.scorers.coverage import COVERAGE
from jumar.loop.scorers.exit_code import EXIT, ExitScorer
from jumar.loop.scorers.judge import JUDGE, JudgeScorer
from jumar.loop.scorers.length import LENGTH
from jumar.loop.scorers.python import PYTHON, PythonScorer
from jumar.loop.scorers.readability import READABILITY
from jumar.loop.scorers.repeat import RepeatedScorer
from jumar.loop.scorers.reports import JUNIT
from jumar.loop.scorers.required_sections import REQUIRED_SECTIONS
from jumar.model.protocols import Scorer

__all__ = [
    "BUILTIN_SCORERS",
    "Builtin",
    "ChecksScorer",
    "CommandScorer",
    "ExitScorer",
    "JudgeScorer",
    "PythonScorer",
    "RepeatedScorer",
    "ScorerRuntime",
    "SharedEvaluation",
    "build_scorer",
]

BUILTIN_SCORERS: Final[Mapping[str, Builtin]] = MappingProxyType(
    {
        "checks": CHECKS,
        "command": COMMAND,
        "coverage": COVERAGE,
        "exit": EXIT,
        "judge": JUDGE,
        "junit": JUNIT,
        "length": LENGTH,
        "python": PYTHON,
        "readability": READABILITY,
        "required_sections": REQUIRED_SECTIONS,
    }
)


def build_scorer(
    kind: str, options: Mapping[str, object], *, dimension: str | None = None, runtime: ScorerRuntime | None = None
) -> Scorer:
    """Make the scorer ``kind`` from ``options``, as they stand in a ``[[scorers]]`` table without ``builtin`` and ``dimension``.

    ``dimension`` None takes the kind's own. Errors: :class:`jumar.errors.ConfigError` for an unknown kind or option (with the
    nearest known one), a missing or unusable value, and a missing dimension.
    """
    known = tuple(BUILTIN_SCORERS)
    if kind not in BUILTIN_SCORERS:
        raise ConfigError(f"unknown scorer '{kind}'{nearest(kind, known)}; known are {', '.join(known)}")
    builtin = BUILTIN_SCORERS[kind]
    checked = Options(options, scorer=kind, known=builtin.options)
    name = builtin.dimension if dimension is None else dimension
    if name is None or not name.strip():
        raise ConfigError(f"{checked.where}: set 'dimension', the name of what it scores, such as 'correctness'")
    return builtin.build(name, checked, runtime or ScorerRuntime())
