"""A command's output, made ready for reading: all runners that speak in it, and a row for each that closes with its own lines.

An agent is to read why tests fail. ``node --test`` gives five lines to each that passes, ``go test -v`` two, and the end of
such an output may hold no failure at all. What cannot be told apart is an output that imitates a whole closing, line by line.
It adds tests that passed, and takes none away that failed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from jumar.core.text import without_escapes
from jumar.loop.checks.runners.go import read_go
from jumar.loop.checks.runners.node import read_dots, spec_tree
from jumar.loop.checks.runners.pytest import read_pytest
from jumar.loop.checks.runners.suite import Outcome, SuiteRun, joined, numbered, short_identity
from jumar.loop.checks.runners.tap import read_tap
from jumar.loop.checks.runners.unittest import read_unittest

_NUMBER: Final = re.compile(r"<(\w+)>")


def lines(*patterns: str) -> re.Pattern[str]:
    """Return what matches these whole lines, one after the other. ``<passed>`` stands for a number of that name."""
    return re.compile("^" + "\n".join(_NUMBER.sub(r"(?P<\1>\\d{1,9})", pattern) for pattern in patterns) + "$", re.MULTILINE)


def anywhere(pattern: str) -> re.Pattern[str]:
    """Return what matches whole lines, in one pattern."""
    return re.compile(f"^{pattern}$", re.MULTILINE)


def words(*, passed: str, failed: str, skipped: str = "") -> dict[str, Outcome]:
    """Return what each word means; those of one kind are written with ``|`` between them."""
    kinds: tuple[tuple[str, Outcome], ...] = ((passed, "passed"), (failed, "failed"), (skipped, "skipped"))
    return {word: outcome for listed, outcome in kinds for word in listed.split("|")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """How one runner speaks.

    ``hint`` is a text that no closing lacks: an output without it is not searched. The numbers of ``closing`` are named
    ``passed``, ``failed``, ``skipped`` or ``total``, with an ending after ``_`` where there are several of one kind; what is not
    told is the rest of the total. They add up to a number that was ``announced`` before, where the runner does that.

    A run of ``part`` files or tests out of a ``whole`` is cut short, and so is one that prints ``cut_short`` and does not print
    ``went_on``. ``unloaded`` is the number of files that could not be loaded; where only their names are told, ``unloads`` finds
    them. ``unloaded_fails`` says that the runner has them among its failed tests.

    ``tests`` finds the line of one test (groups ``name`` and ``word``), of which ``words`` has the outcome; where that takes
    more, ``named`` returns the ways to read the output before the closing. Names are used when they agree with the counts.
    ``scopes`` finds what to put before the names of each closing, in order. ``failing`` finds what failed where the rest has no
    names; a name of several lines is joined by ``>``.
    """

    name: str
    hint: str
    closing: re.Pattern[str]
    announced: re.Pattern[str] | None = None
    cut_short: re.Pattern[str] | None = None
    went_on: re.Pattern[str] | None = None
    unloads: re.Pattern[str] | None = None
    unloaded_fails: bool = False
    tests: re.Pattern[str] | None = None
    words: Mapping[str, Outcome] = field(default_factory=dict[str, Outcome])
    named: Callable[[str], Iterable[Mapping[str, Outcome]]] | None = None
    scopes: re.Pattern[str] | None = None
    failing: re.Pattern[str] | None = None

    def read(self, output: str) -> SuiteRun | None:
        """Return all runs of this runner in the cleaned ``output`` as one, None when it did not speak."""
        if self.hint not in output:
            return None
        closings = list(self._closings(output))
        scopes = [found[1] for found in self.scopes.finditer(output)] if self.scopes is not None else []
        unloaded = {found[1] for found in self.unloads.finditer(output)} if self.unloads is not None and closings else set[str]()
        runs: list[SuiteRun] = []
        start = 0
        for index, closing in enumerate(closings):
            run = self._counted(closing)
            body = output[start : closing.start()]
            runs.append(self._with_names(run, body, f"{scopes[index]}::" if len(scopes) == len(closings) else ""))
            start = closing.end()
        run = joined(runs)
        if run is None:
            return None
        ended_early = self.cut_short is not None and self.cut_short.search(output) is not None
        went_on = self.went_on is not None and self.went_on.search(output) is not None
        run = replace(self._without(run, unloaded), cut_short=run.cut_short or (ended_early and not went_on))
        names = {_one_line(found[1]) for found in self.failing.finditer(output)} if self.failing is not None else set[str]()
        return replace(run, failing=tuple(sorted(names))) if run.outcomes is None and len(names) == run.failed else run

    def _closings(self, output: str) -> Iterator[re.Match[str]]:
        announced = list(self.announced.finditer(output))[::-1] if self.announced is not None else []
        waiting: Counter[int] = Counter()
        for closing in self.closing.finditer(output):
            while announced and announced[-1].start() < closing.start():
                waiting[int(announced.pop()[1])] += 1
            total = sum(int(number or 0) for number in closing.groups())
            if self.announced is None or waiting[total]:
                waiting[total] -= 1
                yield closing

    def _counted(self, closing: re.Match[str]) -> SuiteRun:
        counts: Counter[str] = Counter()
        for name, number in closing.groupdict(default="0").items():
            counts[name.partition("_")[0]] += int(number)
        if self.unloaded_fails:
            counts["failed"] -= counts["unloaded"]
        if "total" in counts:
            counts["passed"] = counts["total"] - counts["failed"] - counts["skipped"]
        return SuiteRun(
            runner=self.name,
            passed=max(0, counts["passed"]),
            failed=max(0, counts["failed"]),
            skipped=counts["skipped"],
            cut_short=counts["part"] < counts["whole"],
            collection_errors=counts["unloaded"],
        )

    def _without(self, run: SuiteRun, unloaded: set[str]) -> SuiteRun:
        """Take the files that could not be loaded out of the tests that failed."""
        if not unloaded:
            return run
        outcomes = run.outcomes
        if outcomes is not None and self.unloaded_fails:
            outcomes = {name: outcome for name, outcome in outcomes.items() if name not in unloaded}
        failed = max(0, run.failed - len(unloaded)) if self.unloaded_fails else run.failed
        return replace(run, failed=failed, outcomes=outcomes, collection_errors=len(unloaded))

    def _with_names(self, run: SuiteRun, body: str, scope: str) -> SuiteRun:
        """Return ``run`` with the first reading that agrees with its counts; some count a skipped test as passed."""
        for outcomes in self.named(body) if self.named is not None else self._single(body):
            tally = Counter(outcomes.values())
            if tally["failed"] == run.failed and tally["passed"] <= run.passed <= tally["passed"] + tally["skipped"]:
                scoped = {f"{scope}{name}": outcome for name, outcome in outcomes.items()}
                if scoped and tally["failed"] == len(scoped):  # some name only what fails: that is no list of the tests
                    return replace(run, failing=tuple(sorted(scoped)))
                return replace(run, passed=tally["passed"], skipped=max(run.skipped, tally["skipped"]), outcomes=scoped)
        return run

    def _single(self, body: str) -> Iterator[Mapping[str, Outcome]]:
        if self.tests is not None:
            found = [match for match in self.tests.finditer(body) if match["word"] in self.words]
            yield numbered((str(match["name"]), self.words[match["word"]]) for match in found)


def _one_line(name: str) -> str:
    return short_identity(" > ".join(line.strip() for line in name.split("\n")))


_MSBUILD: Final = r"<failed>, Passed: +<passed>, Skipped: +<skipped>, Total: +\d+(?:, Duration: .*)?"
_DOTNET_FAILED: Final = anywhere(r"  Failed (.+) \[[<\dhms ]+\]")

RUNNERS: Final = (
    Runner(
        name="jest",
        hint="\nTest Suites: ",
        closing=lines(
            r"Test Suites: (?:<part_failed> failed, )?(?:<part_skipped> skipped, )?(?:<part> passed, )?(?:\d+ of )?<whole> total",
            r"Tests: +(?:<failed> failed, )?(?:<skipped> skipped, )?(?:<skipped_todo> todo, )?(?:<passed> passed, )?\d+ total",
            r"Snapshots: .*",
        ),
        unloads=anywhere(r" ?FAIL +(.+?)(?: \(\d[\d.]* m?s\))?\n +● Test suite failed to run"),
        failing=anywhere(r"  ● (?!Test suite failed to run$|Console$)(.+)"),
    ),
    Runner(
        name="vitest",
        hint="\n      Tests  ",
        closing=lines(
            r" Test Files  (?:<part_failed> failed(?: \| )?)?(?:<part> passed(?: \| )?)?(?:<part_skipped> skipped(?: \| )?)?"
            r"(?:<part_todo> todo)? \(<whole>\)",
            r"      Tests  (?:no tests|(?:<failed> failed(?: \| )?)?(?:<passed> passed(?: \| )?)?"
            r"(?:<skipped_expected> expected fail(?: \| )?)?(?:<skipped> skipped(?: \| )?)?(?:<skipped_todo> todo)? \(\d+\))",
            r"(?: +(?:Type )?Errors  .*\n){0,2}   Start at  .*",
        ),
        unloads=anywhere(r" FAIL  (\S+) \[ \S+ \]"),
        failing=anywhere(r" FAIL  (.+ > .+)"),
    ),
    Runner(
        name="mocha",
        hint=" passing (",
        closing=lines(r"", r"  <passed> passing \(\d+(?:ms|s|m|h|d)\)(?:\n  <skipped> pending)?(?:\n  <failed> failing)?", r""),
        failing=anywhere(r"  \d{1,6}\) (.+(?:\n {7,40}\S.*){0,16}?):"),
    ),
    Runner(
        name="node --test",
        hint="\nℹ tests ",
        closing=lines(
            r"ℹ tests \d+(?:\nℹ suites \d+)?",
            r"ℹ pass <passed>",
            r"ℹ fail <failed>",
            r"ℹ cancelled <failed_cancelled>",
            r"ℹ skipped <skipped>",
            r"ℹ todo <skipped_todo>",
            r"ℹ duration_ms [\d.]+",
        ),
        named=spec_tree,
        unloads=anywhere(r"✖ (.+) \([\d.]+ms\)\n  'test failed'"),
        unloaded_fails=True,
    ),
    Runner(
        name="bun test",
        hint="\nRan ",
        closing=lines(
            r" ?<passed> pass(?:\n ?<skipped> skip)?(?:\n ?<skipped_todo> todo)?",
            r" ?<failed> fail(?:\n ?<unloaded> errors?)?(?:\n ?\d+ .*){0,3}",
            r"Ran \d+ tests? across \d+ files?\..*",
        ),
        tests=anywhere(r"\(?(?P<word>pass|fail|skip|todo|[✓✗»✎])\)? (?P<name>.+?)(?: \[[\d.]+m?s\])?"),
        words=words(passed="pass|✓", failed="fail|✗", skipped="skip|todo|»|✎"),
        unloaded_fails=True,
    ),
    Runner(
        name="bun test",  # --bail leaves the counts out
        hint="\nBailed out after ",
        closing=lines(r"Ran <total> tests? across \d+ files?\..*", r"Bailed out after <failed> failures?"),
        cut_short=anywhere(r"Bailed out after \d+ failures?"),
    ),
    Runner(
        name="cargo test",
        hint="\ntest result: ",
        closing=lines(
            r"(?:[.iF]+(?: \d+/\d+)?)?",
            r"test result: (?:ok|FAILED)\. <passed> passed; <failed> failed; <skipped> ignored; <measured> measured; \d+ filtered"
            r" out.*",
            r"",
        ),
        announced=anywhere(r"running (\d{1,9}) tests?"),
        tests=anywhere(
            r"test (?P<name>.+?)(?: \(line \d+\))?(?: - [a-z ]+)? \.\.\. (?P<word>ok|FAILED|ignored)(?:, .*)?"
        ),  # the line of a documentation test moves with every edit
        words=words(passed="ok", failed="FAILED", skipped="ignored"),
        scopes=anywhere(r" +(?:Running .*[/\\]|(?=Doc-tests ))([^/\\]+?)(?:-[0-9a-f]{16}\)?)?"),
        cut_short=anywhere(r"error: test failed, to rerun pass .*"),
        went_on=anywhere(r"error: \d+ targets? failed:"),
    ),
    Runner(
        name="cargo nextest",
        hint="     Summary [",
        closing=lines(
            r"[─-]{12}",
            r" +Summary \[ *[\d.]+s\] (?:<part>/<whole>|\d+) tests? run: <passed> passed(?: \([^()]*\))?(?:, <failed> failed)?"
            r"(?:, <failed_exec> exec failed)?(?:, <failed_time> timed out)?(?:, <skipped> skipped)?",
        ),
        tests=anywhere(
            r" +(?:(?:TRY \d+ )?(?P<word>PASS|FAIL|LEAK|FLAKY|TIMEOUT|ABORT|SIG[A-Z]+)(?: \d+/\d+)?|TRY \d+ [A-Z]+)"
            r" \[ *>? *[\d.]+s\] (?:\( *\d+/\d+\) )?(?P<name>[^(].*)"
        ),  # of a test that is tried again, the last has a number
        words=words(
            passed="PASS|LEAK|FLAKY", failed="FAIL|TIMEOUT|ABORT|SIGABRT|SIGBUS|SIGFPE|SIGILL|SIGKILL|SIGSEGV|SIGTERM|SIGTRAP"
        ),
    ),
    Runner(
        name="dotnet test",
        hint="!  - Failed: ",
        closing=lines(rf"(?:Passed|Failed|Skipped)! +- Failed: +{_MSBUILD}"),
        failing=_DOTNET_FAILED,
    ),
    Runner(
        name="dotnet test",
        hint="\nTotal tests: ",
        closing=lines(
            r"Total tests: <total>(?:\n +Passed: \d+)?(?:\n +Failed: <failed>)?(?:\n +Skipped: <skipped>)?", r" Total time: .*"
        ),
        failing=_DOTNET_FAILED,
    ),
    Runner(
        name="dotnet test",
        hint="\nTest summary: total: ",
        closing=lines(r"Test summary: total: \d+, failed: <failed>, succeeded: <passed>, skipped: <skipped>, duration: .*"),
    ),
    Runner(
        name="dotnet test",
        hint="\nTest run summary: ",
        closing=lines(
            r"Test run summary: .*",
            r"(?:(?: .*)?\n){0,64}?  total: \d+",
            r"  failed: <failed>",
            r"  succeeded: <passed>",
            r"  skipped: <skipped>",
            r"  duration: .*",
        ),
        failing=anywhere(r"failed (.+) \([\dhms. ]+\)"),
    ),
    Runner(
        name="Maven Surefire",
        hint="] Tests run: ",
        closing=lines(
            r"\[(?:INFO|WARNING|ERROR)\] Tests run: <total>, Failures: <failed>, Errors: <failed_errors>, Skipped: <skipped>"
            r"(?:, Flakes: \d+)?",
            r"\[[A-Z]+\]",
        ),
    ),
    Runner(
        name="Gradle",
        hint=" completed, ",
        closing=lines(r"", r"<total> tests? completed, <failed> failed(?:, <skipped> skipped)?"),
    ),
    Runner(
        name="rspec",
        hint="\nFinished in ",
        closing=lines(
            r"Finished in .*",
            r"<total> examples?, <failed> failures?(?:, <skipped> pending)?"
            r"(?:, <unloaded> errors? occurred outside of examples)?",
        ),
        failing=anywhere(r"rspec \S+ # (.+)"),
    ),
    Runner(
        name="PHPUnit",
        hint="\nOK (",
        closing=lines(r"Time: .*", r"", r"OK \(<passed> tests?, \d+ assertions?\)"),
    ),
    Runner(
        name="PHPUnit",
        hint=", Assertions: ",
        closing=lines(
            r"(?:[A-Z]+!|OK, but .*)",
            r"Tests: <total>, Assertions: \d+(?:, Errors: <failed_errors>)?(?:, Failures: <failed>)?"
            r"(?:, (?:PHPUnit )?(?:Warnings|Deprecations|Notices): \d+){0,6}(?:, Skipped: <skipped>)?"
            r"(?:, Incomplete: <skipped_incomplete>)?(?:, Risky: \d+)?\.",
        ),
    ),
    Runner(
        name="ctest",
        hint="% tests passed, ",
        closing=lines(
            r"\d{1,3}% tests passed, <failed> tests? failed out of <total>", r"", r"(?:.+\n){0,64}?\n?Total Test time .*"
        ),
        tests=anywhere(
            r" *\d+/\d+ Test +#\d+: (?P<name>.+?) \.*(?P<word>   Passed|\*\*\*(?:Not Run(?: \(Disabled\))?|[A-Z][a-z]+)).*"
        ),
        words=words(
            passed="   Passed",
            failed="***Failed|***Not Run|***Timeout|***Exception",
            skipped="***Skipped|***Not Run (Disabled)",
        ),
    ),
    Runner(
        name="bats",
        hint=" failure",
        closing=lines(
            r"", r"<total> tests?, <failed> failures?(?:, <skipped> skipped)?(?:, <missing> not run)?(?: in \d+ seconds)?"
        ),
    ),
)
"""What the output has of each is summed: several crates, workspaces, ``a && b``."""


_LONGEST: Final = 2_000


def cleaned(text: str) -> str:
    """Return ``text`` without escape sequences and trailing blanks, between blank lines.

    What a carriage return overwrote is left out, and a line is cut at 2,000 characters: longer ones are data, and a pattern may
    take time over them.
    """
    lines = (line.rstrip().rpartition("\r")[2] for line in without_escapes(text).split("\n"))
    return "\n\n" + "\n".join(line[:_LONGEST] for line in lines) + "\n\n"


def read_runs(text: str) -> list[SuiteRun]:
    """Return every run that closes in ``text``."""
    runs, lines = read_pytest(cleaned(text).split("\n"))
    output = "\n".join(lines)
    runs += [*read_unittest(output), *read_go(lines), *read_tap(lines)]
    runs += [run for runner in RUNNERS if (run := runner.read(output)) is not None]
    return runs or read_dots(output)


_PASSED: Final = re.compile(
    r"(?:[✓✔√] .*"  # mocha, jest, vitest, node
    r"|PASS +\S.*|--- (?:PASS|SKIP): .*|=== (?:RUN|PAUSE|CONT|NAME) .*|ok  \t.*"  # jest, nextest, go
    r"|\S.* \.\.\. (?:ok|ignored|skipped .*)"  # cargo, unittest
    r"|\S+::.* (?:PASSED|SKIPPED|XFAIL)\b.*"  # pytest -v
    r"|\d+/\d+ Test +#\d+: .* Passed .*|Passed .* \[.*\])"  # ctest, dotnet
)
_POINT: Final = re.compile(r"( *)(not )?ok\b")
_STARTED: Final = re.compile(r"( *)# Subtest: ")
_TAP: Final = re.compile(r"^(?:TAP version \d+| *not ok \d+)", re.MULTILINE)
_NOISE: Final = re.compile(
    r"duration_ms: [\d.]+|# [a-z_]+ [\d.]+|1\.\.\d+|.*\((?:node:.*|<anonymous>)\)|node:internal/.*|async Promise\.all .*"
)
"""Lines of a TAP stream that help nobody: how long it took, counts, plans, and what Node's own files have on the stack."""


def without_passing(text: str) -> str | None:
    """Return the lines of a test run's output that are not about a test that passed; None where all of them are kept."""
    lines = without_escapes(text).split("\n")
    kept = list(_of_tap(lines) if _TAP.search("\n".join(lines)) else lines)
    kept = [line for line in kept if len(line) > _LONGEST or not _PASSED.fullmatch(line.strip())]
    return "\n".join(kept) if len(kept) < len(lines) else None


def _of_tap(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines without points that are ok, what stands below them, and the headings of both."""
    headings: list[tuple[int, str]] = []  # of subtests of which nothing was kept so far
    below = -1  # the indent of a point that is ok, while its block may follow
    inside = False
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        if inside or (below >= 0 and indent > below and line.strip() == "---"):
            inside = line.strip() != "..."
            continue
        point, started = _POINT.match(line), _STARTED.match(line)
        below = indent if point is not None and point[2] is None else -1
        if point is not None:
            headings = [heading for heading in headings if heading[0] < indent]
        if started is not None:
            headings.append((indent, line))
        elif below < 0 and (len(line) > _LONGEST or not _NOISE.fullmatch(line.strip())):
            yield from (heading for _, heading in headings)
            headings = []
            yield line
