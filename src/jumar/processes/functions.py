"""Python functions as steps: ``python = "module:function"`` runs in a child process, so that it can be timed out and killed.

The child is this module, ``python -m jumar.processes.functions``: it reads the context as JSON from its standard input, calls the
function, and writes one JSON document. What the function prints goes to the log and cannot be mistaken for the answer.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from jumar.core.codec import Fields
from jumar.core.redaction import current
from jumar.core.text import nearest
from jumar.errors import ConfigError
from jumar.model.pipeline import CaseStepContext
from jumar.model.protocols import StepContext
from jumar.model.records import STATUSES, VERIFICATIONS, CheckResult, IterationView
from jumar.processes.process import ProcessResult, run_command
from jumar.processes.usage import as_score, as_usage, as_verdict


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


Purpose = Literal["generate", "validate", "score", "step"]
_REFERENCE: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_PATHS: Final = ("workdir", "prompt_file", "feedback_file", "usage_file", "log_directory")


def check_reference(reference: str, *, where: str) -> str:
    """Return ``reference`` when it is ``module:function``. Errors: :class:`jumar.errors.ConfigError`."""
    if not _REFERENCE.fullmatch(reference):
        raise ConfigError(f"{where}: python = {reference!r} should be 'module:function', such as 'scoring:accuracy'")
    return reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the child said. Exactly one of ``value``, ``refusal`` (an AssertionError's text) and ``error`` is set."""

    process: ProcessResult
    value: Mapping[str, Any] | None = None
    refusal: str | None = None
    error: str | None = None


def ask(
    purpose: Purpose,
    reference: str,
    context: StepContext | CaseStepContext,
    *,
    search: Sequence[Path],
    timeout: float | None,
    log: Path,
    output_cap: int,
    stop: threading.Event | None,
    wrap: Callable[[list[str]], list[str]] | None = None,
) -> Answer:
    """Call ``reference`` with ``context`` in a child process. ``search`` stands before the working directory on its path.

    ``wrap`` makes another argv of the child's, one that puts it into a sandbox.

    Errors of the function are part of the answer. Errors: as :func:`jumar.processes.process.run_command`.
    """
    request = {
        "purpose": purpose,
        "reference": reference,
        # the person's own directory first: a candidate cannot put its module in the place of theirs
        "search": [str(path.absolute()) for path in (*search, context.workdir)],
        "context": case_context_to_json(context) if isinstance(context, CaseStepContext) else context_to_json(context),
    }
    # -P: nothing in the working directory stands in for the standard library while jumar itself is imported; -B: it stays clean
    child = [sys.executable, "-P", "-B", "-m", "jumar.processes.functions"]
    process = run_command(
        child if wrap is None else wrap(child),
        cwd=context.workdir,
        env=context.environment,
        timeout=timeout,
        log=log,
        output_cap=output_cap,
        stdin=json.dumps(request).encode(),
        stop=stop,
        marker=context.nonce or None,
    )
    if process.error is not None or process.timed_out or process.interrupted:
        return Answer(process=process, error=process.failure)
    try:
        answer: Any = json.loads(process.stdout)
    except (ValueError, RecursionError):
        answer = None
    if not _is_answer(purpose, answer):
        ended = process.failure or "it ended the process"
        return Answer(process=process, error=f"{reference} gave no answer: {ended}")
    return Answer(process=process, **answer)


def _is_answer(purpose: Purpose, answer: Any) -> bool:
    """Return whether ``answer`` is one of :func:`_answer`'s: whatever runs in the child can write where that does."""
    if not isinstance(answer, dict) or len(cast("dict[str, object]", answer)) != 1:
        return False
    (kind, said), *_ = cast("dict[str, Any]", answer).items()
    if kind != "value" or not isinstance(said, dict):
        return kind in {"refusal", "error"} and isinstance(said, str)
    value = cast("dict[str, Any]", said)
    if purpose == "validate":
        return {"passed": bool, "reason": str} == {name: type(each) for name, each in value.items()}
    if purpose == "score":
        score, reason, invalid = (value.get(name) for name in ("score", "reason", "invalid"))
        told = isinstance(invalid, str) if score is None else type(score) in {int, float} and 0 <= score <= 1 and invalid is None
        return told and isinstance(reason, str) and len(value) == 3
    notes: Any = value.get("notes")
    named = isinstance(notes, list) and all(isinstance(each, str) for each in cast("list[object]", notes))
    return named and isinstance(value.get("usage"), dict)


def context_to_json(context: StepContext) -> dict[str, Any]:
    """Return what the child needs of ``context``: all but the environment, which it has, and the names of all known tests."""
    return {
        **{name: str(getattr(context, name).absolute()) for name in _PATHS},
        "loop_id": context.loop_id,
        "iteration": context.iteration,
        "objective": context.objective,
        "artifacts": list(context.artifacts),
        "checks": [check.to_json() for check in context.checks],
        "baseline_checks": [replace(check, known=()).to_json() for check in context.baseline_checks],
        "generator_exit": context.generator_exit,
        "history": [_view_to_json(view) for view in context.history],
        "nonce": context.nonce,
        "since_ns": context.since_ns,
        "session_id": context.session_id,
    }


def _view_to_json(view: IterationView) -> dict[str, Any]:
    return {
        "number": view.number,
        "score": view.score,
        "verification": view.verification,
        "status": view.status,
        "dimensions": dict(view.dimensions),
        "failed_checks": view.failed_checks,
        "completed": view.completed,
        "keys": dict(view.keys),
    }


def _view_from_json(fields: Fields) -> IterationView:
    return IterationView(
        number=fields.integer("number"),
        score=fields.number_or_none("score"),
        verification=cast("Any", fields.choice("verification", VERIFICATIONS)),
        status=cast("Any", fields.choice("status", STATUSES)),
        dimensions=fields.numbers("dimensions"),
        failed_checks=fields.integer_or_none("failed_checks"),
        completed=fields.boolean("completed"),
        keys=fields.numbers("keys"),
    )


def context_from_json(fields: Fields) -> StepContext:
    """Rebuild the context in the child; its environment is the process's own."""
    return StepContext(
        loop_id=fields.text("loop_id"),
        iteration=fields.integer("iteration"),
        workdir=Path(fields.text("workdir")),
        prompt_file=Path(fields.text("prompt_file")),
        feedback_file=Path(fields.text("feedback_file")),
        usage_file=Path(fields.text("usage_file")),
        log_directory=Path(fields.text("log_directory")),
        environment=dict(os.environ),
        objective=fields.text("objective"),
        artifacts=fields.texts("artifacts"),
        checks=tuple(CheckResult.from_json(item) for item in fields.sections("checks")),
        baseline_checks=tuple(CheckResult.from_json(item) for item in fields.sections("baseline_checks")),
        generator_exit=fields.integer_or_none("generator_exit"),
        history=tuple(_view_from_json(item) for item in fields.sections("history")),
        nonce=fields.text("nonce"),
        since_ns=fields.integer_or_none("since_ns"),
        session_id=fields.text_or_none("session_id"),
    )


def described(error: BaseException) -> str:
    """Return the whole traceback, for a log: without secrets."""
    return current().redact("".join(traceback.format_exception(error)))


def describe_exception(error: BaseException) -> str:
    """Return ``ValueError: text``, in one line and of bounded length."""
    text = str(error).strip()
    name = type(error).__name__
    return f"{name}: {' '.join(text.split())[:500]}" if text else name


class _FromSource(SourceFileLoader):
    """Reads no bytecode: what lies beside a source may be that of another, which an agent put there."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(f"the bytecode of {path} is not looked for")


def _finder_in(search: Sequence[str]) -> Callable[[str], FileFinder]:
    """Return the path hook for what lies below one of these directories and is not installed there."""
    built, compiled = (ExtensionFileLoader, EXTENSION_SUFFIXES), (SourcelessFileLoader, BYTECODE_SUFFIXES)

    def finder(path: str) -> FileFinder:
        place = Path(path)
        if not any(place.is_relative_to(each) for each in search) or {"site-packages", "dist-packages"} & {*place.parts}:
            raise ImportError(path)
        return FileFinder(path, built, (_FromSource, SOURCE_SUFFIXES), compiled)

    return finder


def _load(reference: str, search: Sequence[str]) -> Callable[[StepContext | CaseStepContext], object]:
    sys.path[0:0] = search
    sys.path_hooks.insert(0, _finder_in(search))
    module_name, _, path = reference.partition(":")
    found: object = importlib.import_module(module_name)
    for name in path.split("."):
        known = [each for each in dir(found) if not each.startswith("_")]
        if not hasattr(found, name):
            raise AttributeError(f"module '{module_name}' has no '{name}'{nearest(name, known)}")
        found = getattr(found, name)
    if not callable(found):
        raise TypeError(f"'{reference}' is not a function")
    return found


def _convert(purpose: Purpose, value: object) -> dict[str, Any]:
    """Return the function's value as JSON. Errors: ``TypeError``."""
    if purpose in {"generate", "step"}:
        reading = as_usage(value)
        return {"usage": reading.usage.to_json(), "notes": list(reading.notes)}
    if purpose == "validate":
        passed, reason = as_verdict(value)
        return {"passed": passed, "reason": reason}
    score = as_score(value)
    return {"score": score.score, "reason": score.reason, "invalid": score.invalid}


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    reference = str(request["reference"])
    purpose: Purpose = request["purpose"]
    fields = Fields(request["context"], "context")
    context = case_context_from_json(fields) if purpose == "step" else context_from_json(fields)
    try:
        function = _load(reference, request["search"])
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever importing somebody's module may raise
        traceback.print_exc()
        return {"error": f"{reference} cannot be loaded: {describe_exception(error)}"}
    try:
        return {"value": _convert(purpose, function(context))}
    except AssertionError as error:
        traceback.print_exc()
        refused = str(error).strip() or "assertion failed"
        return {"refusal": refused[:2_000]} if purpose == "validate" else {"error": f"{reference}: {describe_exception(error)}"}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever somebody's function may raise
        traceback.print_exc()
        return {"error": f"{reference}: {describe_exception(error)}"}


def main() -> int:
    """Read a request from standard input, call the function, write the answer to standard output."""
    request = json.load(sys.stdin.buffer)
    answers = os.dup(1)
    os.dup2(2, 1)  # from here on, what anybody prints goes to the log
    answer = _answer(request)
    sys.stdout.flush()
    with os.fdopen(answers, "wb") as out:
        out.write(json.dumps(answer).encode())
    return 0 if "value" in answer else 1


if __name__ == "__main__":
    sys.exit(main())
