"""Who says whether a candidate passes: a command, a Python function in a child process, or a callable in this one.

A validator that cannot give a verdict (not found, timed out) is *broken*, which says nothing about the candidate.
"""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from jumar.errors import ConfigError
from jumar.files import as_write_error
from jumar.loop.analyzer import without_escapes
from jumar.loop.callables import ask, check_reference, describe_exception, described
from jumar.loop.junit import parse_junit, short_identity
from jumar.loop.process import DEFAULT_OUTPUT_CAP, ProcessResult, broken_reason, check_command, check_timeout, run_command
from jumar.loop.values import as_verdict
from jumar.loop.workfiles import FileIdentity, UnreadableFileError, check_relative, find_files, identity, log_name, read_regular
from jumar.model.protocols import StepContext
from jumar.model.records import CheckResult
from jumar.text import plural

__all__ = ["DEFAULT_TIMEOUT", "PYTEST_FAILURES", "Baseline", "CallableValidator", "CommandValidator", "PythonValidator"]

DEFAULT_TIMEOUT: Final = 600.0
Baseline = Literal["no_new_failures"]

PYTEST_FAILURES: Final = r"^(?:FAILED|ERROR) (?P<id>[^\s:][^\n:]*(?:::[^\n]+?|\.py))(?: - [^\n]*)?[ \t]*$"
"""The lines of pytest's short summary: ``FAILED tests/test_a.py::test_b - AssertionError: …``."""

_MAX_FAILURES: Final = 5_000
_LONGEST_LINE: Final = 2_000
_CRASHES: Final = {128 + signal.SIGABRT, 128 + signal.SIGKILL, 128 + signal.SIGSEGV}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failures:
    """The failing tests of one run. ``unknown`` says why they cannot be told, and is None when they can."""

    names: tuple[str, ...] = ()
    unknown: str | None = None


class CommandValidator:
    """Runs a command in the work directory; exit code 0 passes.

    With ``baseline="no_new_failures"``, a red result passes too as long as no test fails that did not already fail at the start
    (iteration 0, which is compared with itself and passes). Which tests fail is read from the JUnit file ``junit`` (relative to
    the work directory) that the command writes, else found in its output by the regular expression ``failures``: its group
    ``id``, else its first, else the whole match. Without identities on either side, the same exit code as at the start passes,
    and the output's end says so.

    Broken: not found, not executable, the shell's codes 126 and 127, timed out, interrupted. Errors:
    :class:`jumar.errors.ConfigError`.
    """

    def __init__(
        self,
        name: str,
        command: str | Sequence[str],
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
        output_cap: int = DEFAULT_OUTPUT_CAP,
        baseline: Baseline | None = None,
        junit: str | None = None,
        failures: str | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        where = f"validator '{name}'"
        self.name = name
        self._command = check_command(command, where=where)
        self._timeout = check_timeout(timeout, where=where)
        self._output_cap = output_cap
        self._baseline = baseline
        self._junit = None if junit is None else check_relative(junit, where=where)
        try:
            self._pattern = re.compile(failures or PYTEST_FAILURES, re.MULTILINE)
        except re.error as error:
            raise ConfigError(f"{where}: failures = {failures!r} is not a regular expression: {error}") from error
        self._stop = stop

    def validate(self, context: StepContext) -> CheckResult:
        """Run the command once and say what its end means for the candidate."""
        before = self._reports(context.workdir)
        result = run_command(
            self._command,
            cwd=context.workdir,
            env=context.environment,
            timeout=self._timeout,
            log=context.log_directory / log_name("check", self.name),
            output_cap=self._output_cap,
            stop=self._stop,
            marker=context.nonce or None,
        )
        check = CheckResult(
            name=self.name,
            passed=False,
            exit_code=result.exit_code,
            seconds=result.seconds,
            output_tail=result.output_tail,
            broken=broken_reason(result),
        )
        if check.broken is not None or result.exit_code == 0:
            return replace(check, passed=check.broken is None)
        found = self._failing(context.workdir, result, before)
        check = replace(check, failures=found.names)
        return check if self._baseline is None else _against_start(check, found.unknown, context)

    def _reports(self, workdir: Path) -> dict[Path, FileIdentity | None]:
        if self._junit is None:
            return {}
        try:
            return {path: identity(path) for path in find_files(workdir, self._junit)}
        except UnreadableFileError:
            return {}

    def _failing(self, workdir: Path, result: ProcessResult, before: dict[Path, FileIdentity | None]) -> _Failures:
        code = result.exit_code or 0
        if code < 0 or code in _CRASHES:
            return _Failures(unknown=f"it was cut short: {result.failure}")
        found = self._from_junit(workdir, before) if self._junit is not None else self._from_output(result)
        if len(found.names) > _MAX_FAILURES:
            return _Failures(unknown=f"more than {_MAX_FAILURES:,} tests fail")
        return found

    def _from_junit(self, workdir: Path, before: dict[Path, FileIdentity | None]) -> _Failures:
        names: set[str] = set()
        try:
            fresh = [path for path in find_files(workdir, self._junit or "") if before.get(path) != identity(path)]
            for path in fresh:
                names.update(parse_junit(read_regular(path)).failures)
        except (UnreadableFileError, FileNotFoundError) as error:
            return _Failures(unknown=f"the report '{self._junit}' {error}")
        if not fresh:
            return _Failures(unknown=f"the command did not write '{self._junit}'")
        return _Failures(names=tuple(sorted(names)), unknown=None if names else "its report names no failing test")

    def _from_output(self, result: ProcessResult) -> _Failures:
        if result.truncated:
            return _Failures(unknown="it printed more than output_cap allows, so that failing tests may be missing")
        group: str | int = "id" if "id" in self._pattern.groupindex else min(self._pattern.groups, 1)
        # cut, because a pattern may look ahead as far as it can and the lines are the candidate's
        lines = (line[:_LONGEST_LINE] for line in without_escapes(f"{result.stdout}\n{result.stderr}").split("\n"))
        matches = self._pattern.finditer("\n".join(lines))
        names = {short_identity(match[group]) for match in matches if match[group]}
        return _Failures(names=tuple(sorted(names)), unknown=None if names else "its output names no failing test")


def _against_start(check: CheckResult, unknown: str | None, context: StepContext) -> CheckResult:
    """Compare a red result with that of the start state."""
    start = check if context.iteration == 0 else _start_of(check.name, context)
    if start is None or start.broken is not None:
        check = replace(check, new_failures=check.failures)
        return _noted(check, "there is no result of the start to compare with, so that every failure counts")
    if unknown is None and (start.failures or start.exit_code == 0):
        known = set(start.failures)
        new = tuple(name for name in check.failures if name not in known)
        sentence = f"{plural(len(check.failures), 'failing test')}, {len(new):,} of them new since the start"
        return _noted(replace(check, new_failures=new, passed=not new), sentence)
    same = unknown is not None and start.exit_code == check.exit_code and not start.failures
    sentence = (
        "passes, because the start failed with the same exit code" if same else "fails, because the start was not like that"
    )
    return _noted(replace(check, passed=same), f"{unknown or 'at the start no failing test was named'}; it {sentence}")


def _start_of(name: str, context: StepContext) -> CheckResult | None:
    return next((check for check in context.baseline_checks if check.name == name), None)


def _noted(check: CheckResult, sentence: str) -> CheckResult:
    tail = check.output_tail
    return replace(check, output_tail=f"{tail}{'' if not tail or tail.endswith(chr(10)) else chr(10)}[jumar: {sentence}]\n")


class PythonValidator:
    """Calls ``module:function`` with the :class:`StepContext` in a child process.

    The function returns True, False, ``(bool, reason)``, or None when it passes; an ``AssertionError`` is a failure with its text
    as the reason. Any other exception or value means that the validator is broken. ``search`` are directories to import from,
    before the work directory.
    """

    def __init__(
        self,
        name: str,
        reference: str,
        *,
        search: Sequence[Path] = (),
        timeout: float | None = DEFAULT_TIMEOUT,
        output_cap: int = DEFAULT_OUTPUT_CAP,
        stop: threading.Event | None = None,
    ) -> None:
        where = f"validator '{name}'"
        self.name = name
        self._reference = check_reference(reference, where=where)
        self._search = tuple(search)
        self._timeout = check_timeout(timeout, where=where)
        self._output_cap = output_cap
        self._stop = stop

    def validate(self, context: StepContext) -> CheckResult:
        """Call the function once."""
        answer = ask(
            "validate",
            self._reference,
            context,
            search=self._search,
            timeout=self._timeout,
            log=context.log_directory / log_name("check", self.name),
            output_cap=self._output_cap,
            stop=self._stop,
        )
        printed = answer.process.stderr_tail
        check = CheckResult(
            name=self.name, passed=False, seconds=answer.process.seconds, output_tail=printed, broken=answer.error
        )
        if answer.value is not None:
            check = replace(check, passed=answer.value["passed"])
            return _with_reason(check, answer.value["reason"])
        return check if answer.refusal is None else _with_reason(check, answer.refusal)


def _with_reason(check: CheckResult, reason: str) -> CheckResult:
    return replace(check, output_tail=f"{check.output_tail}{reason}\n") if reason else check


class CallableValidator:
    """Calls ``function`` in this process: for loops that are part of a Python program.

    It cannot be timed out. What it may return or raise is what :class:`PythonValidator` says.
    """

    def __init__(self, name: str, function: Callable[[StepContext], object]) -> None:
        self.name = name
        self._function = function

    def validate(self, context: StepContext) -> CheckResult:
        """Call the function once. A traceback goes to the log only."""
        began = time.monotonic()
        check = CheckResult(name=self.name, passed=False)
        try:
            passed, reason = as_verdict(self._function(context))
            check = _with_reason(replace(check, passed=passed), reason)
        except AssertionError as error:
            check = _with_reason(check, str(error).strip() or "assertion failed")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever somebody's function may raise
            log = context.log_directory / log_name("check", self.name)
            with as_write_error("write", log):
                log.write_text(described(error), encoding="utf-8", errors="backslashreplace")
            check = replace(check, broken=describe_exception(error))
        return replace(check, seconds=time.monotonic() - began)
