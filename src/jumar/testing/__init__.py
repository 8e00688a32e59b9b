"""What users need to test parts of their own: a clock that is set by hand, scripted parts, and conformance checks.

Imported by nobody inside jumar.
"""

from __future__ import annotations

from jumar.testing.parts import (
    ManualClock,
    PassingValidator,
    ReadingScorer,
    ScriptedGenerator,
    check_generator,
    check_scorer,
    check_validator,
    make_context,
)

__all__ = [
    "ManualClock",
    "PassingValidator",
    "ReadingScorer",
    "ScriptedGenerator",
    "check_generator",
    "check_scorer",
    "check_validator",
    "make_context",
]
