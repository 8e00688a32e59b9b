"""The context of a case's step on its way into the child process of a Python step."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jumar.core.codec import Fields
from jumar.model.pipeline import CaseStepContext

__all__ = ["case_context_from_json", "case_context_to_json"]


def case_context_to_json(context: CaseStepContext) -> dict[str, Any]:
    """Return what the child needs of ``context``: all but the environment, which it has."""
    return {
        "run_id": context.run_id,
        "case_id": context.case_id,
        "case_num": context.case_num,
        "iteration": context.iteration,
        "workdir": str(context.workdir.absolute()),
        "inputs": {name: str(path.absolute()) for name, path in context.inputs.items()},
        "outputs": {name: str(path.absolute()) for name, path in context.outputs.items()},
        "usage_file": str(context.usage_file.absolute()),
        "log": str(context.log.absolute()),
        "nonce": context.nonce,
    }


def case_context_from_json(fields: Fields) -> CaseStepContext:
    """Rebuild the context in the child; its environment is the process's own."""
    return CaseStepContext(
        run_id=fields.text("run_id"),
        case_id=fields.text("case_id"),
        case_num=fields.integer("case_num"),
        iteration=fields.integer("iteration"),
        workdir=Path(fields.text("workdir")),
        inputs=_paths(fields.section("inputs")),
        outputs=_paths(fields.section("outputs")),
        usage_file=Path(fields.text("usage_file")),
        log=Path(fields.text("log")),
        environment=dict(os.environ),
        nonce=fields.text("nonce"),
    )


def _paths(fields: Fields) -> Mapping[str, Path]:
    return MappingProxyType({name: Path(fields.text(name)) for name in fields.data})
