"""Case loops: one case refined until its judge is content, and chains of cases that hand on their best.

The names are loaded when they are first used, and nothing else is: the child processes of a step pass through this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jumar.cases.config import CaseLoopConfig, run_case_loop
    from jumar.model.pipeline import CaseStepContext, Role, Step

__all__ = ["CaseLoopConfig", "CaseStepContext", "Role", "Step", "run_case_loop"]


if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name

    def __getattr__(name: str) -> object:
        """Load a public name when it is first used, and keep it."""
        if name not in __all__:
            raise AttributeError(f"module 'jumar.cases' has no attribute {name!r}")
        if name in {"CaseLoopConfig", "run_case_loop"}:
            from jumar.cases import config as module
        else:
            from jumar.model import pipeline as module
        globals()[name] = value = getattr(module, name)
        return value
