"""What changes the working directory: a command, or a Python function in a child process; and reports that are corrected."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypeVar

from jumar.core.files import read_bytes
from jumar.loop.generators.failures import blocked_by_exit, error_lines, promises_completion, rate_limit
from jumar.model.attempts import Attempt
from jumar.model.budget.pricing import Priced, PriceTable, price_usage
from jumar.model.protocols import GenerateOutcome, Generator, StepContext
from jumar.model.records import Usage
from jumar.processes.captured_output import DEFAULT_OUTPUT_CAP
from jumar.processes.functions import ask, check_reference
from jumar.processes.process import ProcessResult, check_command, check_timeout, run_command
from jumar.processes.usage import UsageReading, check_usage_map, join_readings, parse_usage, read_usage_file, usage_from_output

DEFAULT_TIMEOUT: Final = 1800.0
SUMMED_OUTPUT_CAP: Final = 16 << 20
"""Bytes of output that are kept where usage is summed over all of it: a sum over a part would be too small."""
_LOG: Final = "generator.log"
Wrap = Callable[[Sequence[str], StepContext], list[str]]
"""What makes another argv of a command's, such as :meth:`jumar.processes.sandbox.Sandbox.wrap`."""
_PAID: Final = ("tokens_used", "input_tokens", "output_tokens", "token_cost_usd")
PLACEHOLDER: Final = re.compile(r"\{(prompt|prompt_file|feedback_file|iteration|loop_id|session_id)\}")
"""What is replaced in a command that is a list of words."""


class CommandGenerator:
    """Runs an agent's command in the working directory.

    A string goes to the shell and finds its facts in the environment. A list sees no shell; in it ``{prompt}``,
    ``{prompt_file}``, ``{feedback_file}``, ``{iteration}``, ``{loop_id}`` and ``{session_id}`` (empty for a fresh session) are
    replaced, and any other braces left alone. ``resume_command`` is run instead where there is a session to resume.
    ``stdin="prompt"`` gives it the prompt on its standard input. ``usage_map`` finds usage in the JSON that it prints (see
    :func:`jumar.processes.usage.check_usage_map`); the usage file comes first, and takes nothing off. ``completion_promise`` is
    a text which, alone on a line of its output, says that it is done. ``wrap`` puts it into a sandbox. Errors:
    :class:`jumar.errors.ConfigError`.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
        output_cap: int = DEFAULT_OUTPUT_CAP,
        usage_map: Mapping[str, str] | None = None,
        stdin: Literal["none", "prompt"] = "none",
        completion_promise: str | None = None,
        stop: threading.Event | None = None,
        wrap: Wrap | None = None,
        resume_command: str | Sequence[str] | None = None,
    ) -> None:
        self._command = check_command(command, where="generator")
        self._resume = None if resume_command is None else check_command(resume_command, where="generator: resume_command")
        self._timeout = check_timeout(timeout, where="generator")
        self._paths = check_usage_map(usage_map or {})
        sums = any(path.every for path in self._paths.values())
        self._output_cap = max(output_cap, SUMMED_OUTPUT_CAP) if sums else output_cap
        self._stdin = stdin
        self._promise = completion_promise
        self._stop = stop
        self._wrap = wrap

    def generate(self, context: StepContext) -> GenerateOutcome:
        """Run the command once. Every way in which it can fail is an outcome."""
        command = self._filled(context)
        if self._wrap is not None:
            command = self._wrap(["/bin/sh", "-c", command] if isinstance(command, str) else command, context)
        result = run_command(
            command,
            cwd=context.workdir,
            env=context.environment,
            timeout=self._timeout,
            log=context.log_directory / _LOG,
            output_cap=self._output_cap,
            stdin=read_bytes(context.prompt_file) if self._stdin == "prompt" else None,
            stop=self._stop,
            marker=context.nonce or None,
        )
        printed = usage_from_output(result.stdout, self._paths, whole=not result.truncated)
        reading = join_readings(read_usage_file(context.usage_file), printed)
        told = [getattr(printed.usage, name) is not None for name in _PAID if name in self._paths]
        nothing = told and not any(told) and not reading.usage.token_cost_usd
        if result.failure is not None and nothing:  # it did not come to its report: that the file says nothing is no report
            reading = replace(reading, usage=replace(reading.usage, **dict.fromkeys(_PAID)))
        if promises_completion(result.stdout, self._promise):
            reading = replace(reading, usage=replace(reading.usage, completed=True))
        if result.error is not None:  # it never began: that it used nothing is known
            reading = UsageReading(usage=Usage(tokens_used=0, token_cost_usd=0.0))
        return replace(_outcome(result, reading), reported=printed.usage if self._paths else None)

    def _filled(self, context: StepContext) -> str | list[str]:
        command = self._command if self._resume is None or context.session_id is None else self._resume
        if isinstance(command, str):
            return command
        values = {
            "prompt_file": str(context.prompt_file.absolute()),
            "feedback_file": str(context.feedback_file.absolute()),
            "iteration": str(context.iteration),
            "loop_id": context.loop_id,
            "session_id": context.session_id or "",
        }
        if any("{prompt}" in argument for argument in command):
            values["prompt"] = read_bytes(context.prompt_file).decode()
        return [PLACEHOLDER.sub(lambda match: values[match[1]], argument) for argument in command]


def _outcome(
    result: ProcessResult, reading: UsageReading, *, failure: str | None = None, output: str | None = None
) -> GenerateOutcome:
    notes = reading.notes if result.log_error is None else (*reading.notes, result.log_error)
    usage, failure = reading.usage, failure or result.failure
    stopped = result.timed_out or result.interrupted
    may_wait = not stopped and (failure is not None or usage.rate_limited is True)
    limit = rate_limit(result.exit_code, result.output_tail, usage) if may_wait else None
    if limit is not None:
        usage = replace(usage, rate_limited=True, retry_after=limit.retry_after)
    blocked = usage.blocked or (None if stopped else blocked_by_exit(result.exit_code, result.output_tail))
    if blocked is not None:
        usage = replace(usage, blocked=blocked)
    if limit is not None:  # a refused run has nothing to report
        notes = tuple(note for note in notes if note not in reading.notes)
    return GenerateOutcome(
        exit_code=result.exit_code,
        seconds=result.seconds,
        output_tail=result.output_tail if output is None else output,
        timed_out=result.timed_out,
        interrupted=result.interrupted,
        failure=_failure(failure, blocked=blocked is not None and not stopped, waits=limit is not None),
        usage=usage,
        errors=error_lines(result.stdout, result.stderr),
        stdout=result.stdout,
        notes=notes,
        rate_limited=limit is not None,
        blocked=blocked,
        printed=result.output_bytes > 0,
    )


def _failure(said: str | None, *, blocked: bool, waits: bool) -> str | None:
    """Return how the run failed: one that is blocked did not, and one that has to wait did, whatever its exit code."""
    if blocked:
        return None
    return said or ("its provider wants it to wait" if waits else None)


class PythonGenerator:
    """Calls ``module:function`` with the :class:`StepContext` in a child process.

    The function returns None, a :class:`Usage` or a mapping with its fields; what it does not say is looked for in the usage
    file. ``search`` are directories to import from, before the working directory: the configuration's own.
    """

    def __init__(
        self,
        reference: str,
        *,
        search: Sequence[Path] = (),
        timeout: float | None = DEFAULT_TIMEOUT,
        output_cap: int = DEFAULT_OUTPUT_CAP,
        stop: threading.Event | None = None,
        wrap: Wrap | None = None,
    ) -> None:
        self._wrap = wrap
        self._reference = check_reference(reference, where="generator")
        self._search = tuple(search)
        self._timeout = check_timeout(timeout, where="generator")
        self._output_cap = output_cap
        self._stop = stop

    def generate(self, context: StepContext) -> GenerateOutcome:
        """Call the function once. Whatever it raises is an outcome."""
        wrap = self._wrap
        answer = ask(
            "generate",
            self._reference,
            context,
            search=self._search,
            timeout=self._timeout,
            log=context.log_directory / _LOG,
            output_cap=self._output_cap,
            stop=self._stop,
            wrap=None if wrap is None else lambda argv: wrap(argv, context),
        )
        reading = read_usage_file(context.usage_file)
        if answer.value is not None:
            returned = parse_usage(answer.value["usage"], where="returned usage")
            reading = join_readings(replace(returned, notes=tuple(answer.value["notes"])), reading)
        # its standard output is the answer; what the function printed went to standard error
        printed = replace(answer.process, stdout="")
        return _outcome(printed, reading, failure=answer.error, output=answer.process.stderr_tail)


# ------------------------------------------------------------------------------------------------- reports that are corrected


_Number = TypeVar("_Number", int, float)
_EXACT: Final = 12  # digits after the point of a dollar that are kept


def charged_before(attempts: Iterable[Attempt], session_id: str) -> Usage:
    """Return the sum of what ``attempts`` were charged for that session: equal to its last report. None where none said."""
    used = [
        attempt.end.usage
        for attempt in attempts
        if attempt.start.purpose == "generate" and attempt.end is not None and attempt.end.usage.session_id == session_id
    ]
    return Usage(
        tokens_used=_sum(usage.tokens_used for usage in used),
        input_tokens=_sum(usage.input_tokens for usage in used),
        output_tokens=_sum(usage.output_tokens for usage in used),
        cached_tokens=_sum(usage.cached_tokens for usage in used),
        token_cost_usd=_exact(_sum(usage.token_cost_usd for usage in used)),
        session_id=session_id,
    )


def usage_since(total: Usage, before: Usage) -> Usage:
    """Return ``total`` without the tokens and dollars of ``before``, field by field; what is unknown in ``total`` stays unknown.

    A figure below that of before is of a counter that began anew, and counts as it is.
    """
    return replace(
        total,
        tokens_used=_since(total.tokens_used, before.tokens_used),
        input_tokens=_since(total.input_tokens, before.input_tokens),
        output_tokens=_since(total.output_tokens, before.output_tokens),
        cached_tokens=_since(total.cached_tokens, before.cached_tokens),
        token_cost_usd=_exact(_since(_exact(total.token_cost_usd), before.token_cost_usd)),
    )


def usage_at_least(usage: Usage, least: Usage) -> Usage:
    """Return ``usage`` with no figure below that of ``least``; what is unknown in one of them is as in the other."""

    def larger(one: _Number | None, other: _Number | None) -> _Number | None:
        return max((each for each in (one, other) if each is not None), default=None)

    return replace(usage, **{name: larger(getattr(usage, name), getattr(least, name)) for name in _PAID})


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeGenerator:
    """Runs ``generator``; where it went on with a session and reports that one, earlier reports of it are taken off.

    A report that names no session is taken for one of the session that was gone on with.
    """

    generator: Generator

    def generate(self, context: StepContext) -> GenerateOutcome:
        outcome = self.generator.generate(context)
        usage, before = outcome.usage, context.session_usage
        if before is None or context.session_id is None or usage.session_id not in {None, context.session_id}:
            return outcome
        own = replace(usage_since(usage, before), session_id=context.session_id)
        reported = None if outcome.reported is None else usage_since(outcome.reported, before)
        taken = before.tokens_used
        notes = (f"the session's earlier {taken:,} tokens are taken off what it reports",) if taken else ()
        return replace(outcome, usage=own, reported=reported, notes=(*outcome.notes, *notes))


def _sum(values: Iterable[_Number | None]) -> _Number | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None


def _exact(dollars: float | None) -> float | None:
    """Return ``dollars`` without what binary sums leave behind: a sum must not lie above the report that it is equal to."""
    return None if dollars is None else round(dollars, _EXACT)


def _since(total: _Number | None, before: _Number | None) -> _Number | None:
    if total is None or before is None or total < before:
        return total
    return total - before


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedGenerator:
    """Runs ``generator``; the cost that follows from its tokens, and by which prices, stands in the outcome and its notes.

    What its output says counts where its usage file says less: programs that it ran may have written that. ``model`` is assumed
    where the report names none. ``wanted`` is whether a limit in dollars asks for what is missing.
    """

    generator: Generator
    table: PriceTable
    model: str | None = None
    wanted: bool = False

    def generate(self, context: StepContext) -> GenerateOutcome:
        outcome = self.generator.generate(context)
        priced, printed = self._priced(outcome.usage), outcome.reported
        usage, notes = priced.usage, priced.notes
        if printed is not None:
            own = self._priced(replace(printed, model=printed.model or self.model or usage.model))
            cost, said = own.usage.token_cost_usd, usage.token_cost_usd
            if cost is not None and said is not None and said < cost:
                notes = (*own.notes, f"usage file: ${said:g} is less than the ${cost:g} of its output, which count")
            usage = usage_at_least(usage, own.usage)
        return replace(outcome, usage=usage, notes=(*outcome.notes, *notes))

    def _priced(self, usage: Usage) -> Priced:
        return price_usage(usage, self.table, model=self.model, wanted=self.wanted)
