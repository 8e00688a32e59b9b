"""Who says whether a candidate passes: a command, or a Python function in a child process.

A check that cannot give a verdict (not found, timed out) is *broken*, which says nothing about the candidate.
"""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from jumar.core.text import plural, without_escapes
from jumar.errors import ConfigError
from jumar.loop.checks.broken import runs_copies, runs_with_npx
from jumar.loop.checks.runners import SuiteRun, short_identity
from jumar.loop.checks.runners.suite import KnownTests, give_credit, ran_tests
from jumar.loop.checks.suite_reports import SuiteReports
from jumar.model.protocols import StepContext
from jumar.model.records import NO_TESTS, NOT_COLLECTED, CheckResult, Known
from jumar.processes.captured_output import DEFAULT_OUTPUT_CAP
from jumar.processes.command_words import runs_tests, simple_commands
from jumar.processes.functions import ask, check_reference
from jumar.processes.process import ProcessResult, broken_reason, check_command, check_timeout, run_command, tail
from jumar.processes.written_files import check_relative, log_name

DEFAULT_TIMEOUT: Final = 600.0
Baseline = Literal["no_new_failures"]

PYTEST_FAILURES: Final = r"^(?:FAILED|ERROR) (?P<id>[^\s:][^\n:]*(?:::[^\n]+?|\.py))(?: - [^\n]*)?[ \t]*$"
"""The lines of pytest's short summary: ``FAILED tests/test_a.py::test_b - AssertionError: …``."""

READ_OUTPUT: Final = 16 << 20
"""Bytes of each of the two outputs in which tests are counted; the log holds ``output_cap``."""
_LOOKED_THROUGH: Final = 4 << 20  # characters of which those about passing tests are left out
_MAX_FAILURES: Final = 5_000
_SHOWN: Final = 10
_LONGEST_LINE: Final = 2_000
_LONGEST_ERROR: Final = 120
_ERROR: Final = re.compile(r"^E {1,20}(\w[\w.]{0,80}(?:Error|Exception|Warning)\b[^\n]*)", re.MULTILINE)
"""The line in which pytest names the error of what it could not import."""
_UP_TO_DATE: Final = re.compile(r"^g?make: [`'](\S+)' is up to date\.\s*\Z", re.MULTILINE)
_NO_TESTS: Final = re.compile(r"\bno tests? (?:ran|found|files? found)\b|\bran 0 tests\b|\bno tests? to run\b", re.IGNORECASE)
_CRASHES: Final = {128 + signal.SIGABRT, 128 + signal.SIGKILL, 128 + signal.SIGSEGV}


class CommandValidator:
    """Runs a command in the working directory; exit code 0 passes, unless a known test did not run.

    A command that runs tests has them counted (:mod:`jumar.loop.checks.runners.suite`): from the JUnit files that ``junit``
    (a glob relative to the working directory) names, else from where :class:`jumar.loop.checks.suite_reports.SuiteReports`
    finds them. ``known`` is ``start``: they are held against the tests that ran first; ``each``: every run is counted by
    itself, for suites whose names change by nature; ``none``: nothing is counted, and the command only says yes or no.

    With ``baseline="no_new_failures"``, a red result passes too as long as no test fails that did not already fail at the start
    (iteration 0, which is compared with itself and passes). Which tests fail follows from the same reports, else from the
    output by the regular expression ``failures``: its group ``id``, else its first, else the whole match. Without identities on
    either side, the same exit code as at the start passes, and the output's end says so.

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
        known: Known = "start",
        stop: threading.Event | None = None,
    ) -> None:
        where = f"check '{name}'"
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
        self._known: Known = known
        self._stop = stop

    def validate(self, context: StepContext) -> CheckResult:
        """Run the command, once more where pytest refuses to write a report, and say what its end means for the candidate."""
        reports = SuiteReports.of(self.name, self._command, self._junit, context, ask=self._known != "none")
        with contextlib.closing(reports):
            result = self._run(context, reports.environment)
            again = reports.refused_by(result)
            if again is not None:
                reports, result = again, self._run(context, again.environment)
            broken = broken_reason(result)
            suite, problem = reports.read(result) if broken is None else (None, None)
        if suite is not None:
            broken = runs_copies(f"{result.stdout}\n{result.stderr}", context.workdir)
        elif result.error is not None or result.exit_code == 127:
            broken = runs_with_npx(self._command, context) or broken
        check = CheckResult(
            name=self.name,
            passed=broken is None and result.exit_code == 0,
            exit_code=result.exit_code,
            seconds=result.seconds,
            output_tail=_failures_of(result) if suite is not None and result.exit_code else result.output_tail,
            broken=broken,
        )
        if broken is not None:
            return check
        idle = self._idle(result, context)
        if idle is not None:
            check = _noted(replace(check, passed=False), idle)
        if problem is not None:
            check = replace(check, note=f"{problem}, which its `junit` names; its output is read instead")
        counted = check if self._known == "none" else self._counted(check, suite, context)
        if counted.tests is None and self._known != "none" and not counted.note:
            counted = replace(counted, note=_why_no_test(suite, result))
        if result.exit_code == 0 and idle is None and not _contradicted(counted, context):
            return counted
        counted = replace(counted, passed=False)
        failing, unknown = self._failing(counted, result, suite, problem)
        counted = replace(counted, failures=failing)
        if self._baseline is None:
            return counted
        compared = _against_start(counted, unknown, context)
        return replace(compared, passed=compared.passed and not (compared.tests and compared.tests.missing))

    def _idle(self, result: ProcessResult, context: StepContext) -> str | None:
        """Return that make, of which nothing else follows, ran no test, as a file or directory has the name of its rule."""
        said = _UP_TO_DATE.search(result.stdout) if result.exit_code == 0 else None
        start = _start_of(self.name, context)
        if said is None or start is None or said[0].strip() in start.output_tail or runs_tests(f"make {said[1]}") is None:
            return None
        *_, last = simple_commands(self._command)
        return f"no test ran: {said[1]} is there, and make takes it for made; .PHONY: {said[1]}" if said[1] in last else None

    def _run(self, context: StepContext, environment: Mapping[str, str]) -> ProcessResult:
        return run_command(
            self._command,
            cwd=context.workdir,
            env=environment,
            timeout=self._timeout,
            log=context.log_directory / log_name("check", self.name),
            output_cap=self._output_cap,
            kept=0 if self._known == "none" else READ_OUTPUT,
            stop=self._stop,
            marker=context.nonce or None,
        )

    def _counted(self, check: CheckResult, suite: SuiteRun | None, context: StepContext) -> CheckResult:
        """Return ``check`` with its tests held against those that are known; as it is where none ever ran."""
        first = None if self._known == "each" else _first_counted(self.name, context)
        ran = ran_tests(suite)
        known = ran if first is None else first
        if known is None:
            return check
        credit = give_credit(suite, known, check.exit_code or 0)
        counts = credit.counts if self._known == "start" else replace(credit.counts, known=0)
        makes_known = first is None and self._known == "start"
        counted = replace(
            check,
            passed=check.passed and not counts.missing,
            tests=counts,
            failures=credit.failing[:_MAX_FAILURES],
            added=credit.added[:_MAX_FAILURES],
            missing=credit.missing[:_MAX_FAILURES],
            known=tuple(sorted(known.names or ())) if makes_known else (),
        )
        names = ", ".join(counted.missing[:_SHOWN]) + (", …" if counts.missing > _SHOWN else "")
        gone = f"{plural(counts.missing, 'known test')} did not run{': ' if names else ''}{names}" if counts.missing else ""
        sentence = "; ".join(part for part in (gone, counts.note) if part)
        return _noted(counted, sentence) if sentence else counted

    def _failing(
        self, check: CheckResult, result: ProcessResult, suite: SuiteRun | None, problem: str | None
    ) -> tuple[tuple[str, ...], str | None]:
        """Return the names of the failing tests of a red run, and why they cannot be told, None when they can."""
        code = result.exit_code or 0
        if code < 0 or code in _CRASHES:
            return check.failures, f"it was cut short: {result.failure}"
        unnamed = problem or "its report names no failing test"
        if check.failures:
            names = check.failures if len(check.failures) < _MAX_FAILURES else (suite and suite.named("failed")) or ()
        elif self._junit is not None:
            names = () if suite is None or problem is not None else suite.named("failed")
        elif result.truncated:
            return (), "it printed more than is read, so that failing tests may be missing"
        else:
            names, unnamed = self._from_output(result), "its output names no failing test"
        if len(names) > _MAX_FAILURES:
            return (names[:_MAX_FAILURES] if self._baseline is None else ()), f"more than {_MAX_FAILURES:,} tests fail"
        return names, None if names else unnamed

    def _from_output(self, result: ProcessResult) -> tuple[str, ...]:
        group: str | int = "id" if "id" in self._pattern.groupindex else min(self._pattern.groups, 1)
        # cut, because a pattern may look ahead as far as it can and the lines are the candidate's
        lines = (line[:_LONGEST_LINE] for line in without_escapes(f"{result.stdout}\n{result.stderr}").split("\n"))
        matches = self._pattern.finditer("\n".join(lines))
        return tuple(sorted({short_identity(match[group]) for match in matches if match[group]}))


def _why_no_test(suite: SuiteRun | None, result: ProcessResult) -> str:
    """Return why a test runner came to no test; empty for a command that is none."""
    text = without_escapes(f"{result.stdout}\n{result.stderr}")[-_LOOKED_THROUGH:]
    if suite is not None and suite.collection_errors:
        error = _ERROR.search(text)
        if error is None:
            return NOT_COLLECTED
        place = re.search(r'File "([^"\n]+)", line (\d+)', text[max(0, error.start() - _LONGEST_LINE) : error.start()])
        where = "" if place is None else f" ({Path(place[1]).name}, line {place[2]})"
        return f"{NOT_COLLECTED}: {error[1].strip()[:_LONGEST_ERROR]}{where}"
    return NO_TESTS if (suite is None or not suite.told) and _NO_TESTS.search(text) else ""


def _failures_of(result: ProcessResult) -> str:
    """Return the end of what a test run printed, without what it says of tests that passed."""
    from jumar.loop.checks.runners.table import without_passing  # as lazy as the other patterns

    excerpt = without_passing(f"{result.stdout}\n{result.stderr}"[-_LOOKED_THROUGH:])
    return result.output_tail if excerpt is None else tail(excerpt)


def _first_counted(name: str, context: StepContext) -> KnownTests | None:
    """Return the tests that are known: those that ran at the start, else in the first iteration in which any ran."""
    for check in context.baseline_checks:
        if check.name == name and check.tests is not None and check.tests.known:
            return KnownTests(count=check.tests.known, names=frozenset(check.known) or None)
    return None


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
    verdict = "passes, because the start failed with the same exit code" if same else "fails, because the start was not like that"
    return _noted(replace(check, passed=same), f"{unknown or 'at the start no failing test was named'}; it {verdict}")


def _start_of(name: str, context: StepContext) -> CheckResult | None:
    return next((check for check in context.baseline_checks if check.name == name), None)


def _contradicted(check: CheckResult, context: StepContext) -> bool:
    """Return whether tests failed of a run that ended with exit code 0, which the candidate's own code can make of any.

    A command that did so at the start too means nothing by it.
    """
    if context.iteration == 0 or check.tests is None or not check.tests.failed:
        return False
    start = _start_of(check.name, context)
    return start is None or start.exit_code != 0 or start.tests is None or not start.tests.failed


def _noted(check: CheckResult, sentence: str) -> CheckResult:
    tail = check.output_tail
    return replace(check, output_tail=f"{tail}{'' if not tail or tail.endswith(chr(10)) else chr(10)}[jumar: {sentence}]\n")


class PythonValidator:
    """Calls ``module:function`` with the :class:`StepContext` in a child process.

    The function returns True, False, ``(bool, reason)``, or None when it passes; an ``AssertionError`` is a failure with its text
    as the reason. Any other exception or value means that the check is broken. ``search`` are directories to import from,
    before the working directory.
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
        where = f"check '{name}'"
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
