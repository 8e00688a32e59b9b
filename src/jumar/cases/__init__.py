"""Case loops: one case refined until its judge is content, and chains of cases that hand on their best.

The names are loaded when they are first used, and nothing else is: the child processes of a step pass through this file.
"""

from __future__ import annotations

from jumar.core.lazy import loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jumar.cases.config import CaseLoopConfig, run_case_loop
    from jumar.model.pipeline import CaseStepContext, Role, Step

__all__ = ["CaseLoopConfig", "CaseStepContext", "Role", "Step", "run_case_loop"]

_PIPELINE = dict.fromkeys(("CaseStepContext", "Role", "Step"), "jumar.model.pipeline")

if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name
    __getattr__ = loader(globals(), {"CaseLoopConfig": "config", "run_case_loop": "config", **_PIPELINE})
