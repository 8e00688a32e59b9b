"""The runners that close with lines of their own: a row each.

What cannot be told apart is an output that imitates a whole closing, line by line. It adds tests that passed, and takes none away
that failed.
"""

from __future__ import annotations

from typing import Final

from jumar.loop.checks.runners.closing import Runner, anywhere, lines, words
from jumar.loop.checks.runners.node import spec_tree

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
