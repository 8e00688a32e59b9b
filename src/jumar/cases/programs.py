"""Running one step of a case: a command, a Python function in a child process, a callable in this one."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jumar.core.files import as_write_error
from jumar.model.pipeline import CaseStepContext, Step, StepResult, Word
from jumar.processes.captured_output import DEFAULT_OUTPUT_CAP
from jumar.processes.environment import build_environment
from jumar.processes.functions import ask, describe_exception, described
from jumar.processes.process import ProcessResult, run_command
from jumar.processes.usage import UsageReading, join_readings, parse_usage, read_usage_file
from jumar.processes.values import as_usage

__all__ = ["fill_words", "run_program", "step_environment"]

_PLACEHOLDER: Final = re.compile(r"\{((?:in|out)\.[a-z][a-z0-9_]*|case_id|case_num|iteration|run_id|usage_file)\}")


def step_environment(context: CaseStepContext, allow: Sequence[str]) -> dict[str, str]:
    """Return the environment of a step: what every step may see, and where its files are."""
    paths = {f"JUMAR_IN_{name.upper()}": path for name, path in context.inputs.items()}
    paths |= {f"JUMAR_OUT_{name.upper()}": path for name, path in context.outputs.items()}
    variables = {name: str(path.absolute()) for name, path in paths.items()}
    variables |= {
        "JUMAR_CASES_RUN_ID": context.run_id,
        "JUMAR_CASE_ID": context.case_id,
        "JUMAR_CASE_NUM": str(context.case_num),
        "JUMAR_ITERATION": str(context.iteration),
        "JUMAR_USAGE_FILE": str(context.usage_file.absolute()),
    }
    return build_environment(os.environ, allow, variables)


def fill_words(words: Sequence[Word], context: CaseStepContext) -> list[str]:
    """Return the argv: placeholders replaced, and groups left out whose input is missing. Other braces are left alone.

    A word outside of a group whose input is missing becomes empty; :func:`jumar.cases.settings.check_chain` has made sure
    that only optional inputs are.
    """
    values = {f"in.{name}": str(path.absolute()) for name, path in context.inputs.items()}
    values |= {f"out.{name}": str(path.absolute()) for name, path in context.outputs.items()}
    values |= {
        "case_id": context.case_id,
        "case_num": str(context.case_num),
        "iteration": str(context.iteration),
        "run_id": context.run_id,
        "usage_file": str(context.usage_file.absolute()),
    }
    filled: list[str] = []
    for word in words:
        group = (word,) if isinstance(word, str) else word
        missing = any(name not in values for part in group for name in _PLACEHOLDER.findall(part))
        if missing and not isinstance(word, str):
            continue
        filled += [_PLACEHOLDER.sub(lambda match: values.get(match[1], ""), part) for part in group]
    return filled


def run_program(step: Step, context: CaseStepContext, *, search: Sequence[Path], stop: threading.Event | None) -> StepResult:
    """Run ``step`` once. Every way in which its program can fail is a result. Errors: as :func:`run_command`."""
    if step.call is not None:
        return _call(step, context)
    if step.python is not None:
        answer = ask(
            "step",
            step.python,
            context,
            search=search,
            timeout=step.timeout,
            log=context.log,
            output_cap=DEFAULT_OUTPUT_CAP,
            stop=stop,
        )
        reading = read_usage_file(context.usage_file)
        if answer.value is not None:
            returned = parse_usage(answer.value["usage"], where="returned usage")
            reading = join_readings(UsageReading(usage=returned.usage, notes=(*returned.notes, *answer.value["notes"])), reading)
        return _result(answer.process, reading, failure=answer.error, output=answer.process.stderr_tail)
    command = step.command or ""
    result = run_command(
        command if isinstance(command, str) else fill_words(command, context),
        cwd=context.workdir,
        env=context.environment,
        timeout=step.timeout,
        log=context.log,
        stop=stop,
        marker=context.nonce or None,
    )
    return _result(result, read_usage_file(context.usage_file), failure=result.failure, output=result.output_tail)


def _result(result: ProcessResult, reading: UsageReading, *, failure: str | None, output: str) -> StepResult:
    return StepResult(
        seconds=result.seconds,
        exit_code=result.exit_code,
        failure=failure or result.failure,
        timed_out=result.timed_out,
        interrupted=result.interrupted,
        output_tail=output,
        usage=reading.usage,
        notes=reading.notes if result.log_error is None else (*reading.notes, result.log_error),
    )


def _call(step: Step, context: CaseStepContext) -> StepResult:
    """Call a function in this process. An exception is a failed step; its traceback goes to the log only."""
    began = time.monotonic()
    try:
        returned = as_usage(None if step.call is None else step.call(context))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever somebody's function may raise
        with as_write_error("write", context.log):
            context.log.write_text(described(error), encoding="utf-8", errors="backslashreplace")
        failure = describe_exception(error)
        usage = read_usage_file(context.usage_file).usage
        return StepResult(seconds=time.monotonic() - began, failure=failure, output_tail=failure, usage=usage)
    reading = join_readings(returned, read_usage_file(context.usage_file))
    return StepResult(seconds=time.monotonic() - began, usage=reading.usage, notes=reading.notes)
