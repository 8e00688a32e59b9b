"""How much of a check's tests pass, held against the tests that are known. Pure.

Known are the tests that ran when the check first ran any. They stay the denominator: who removes, skips or renames a known test
loses it, who adds a passing one earns nothing, and who adds a failing one pays for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jumar.core.text import escape, plural
from jumar.loop.checks.runners import SuiteRun
from jumar.model.checks import CheckResult, SuiteCounts

CUT_SHORT: Final = (
    "cut short (as by -x, fail-fast or a crash): what did not run is not counted as passing. At the start that makes known only "
    "the tests that ran until then; leave -x or fail-fast out, so that all are counted"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTests:
    """The tests that a run is held against; ``names`` is None where their runner tells counts only."""

    count: int
    names: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """The counts of one run, with names (sorted) where its runner gives them.

    ``failing`` are known and new tests that fail, ``added`` the new ones of them, ``missing`` known ones that were skipped or did
    not run. An exit code that refuses a run in which every test passes is in ``failing``, as ``exit code 1``.
    """

    counts: SuiteCounts
    failing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def ran_tests(run: SuiteRun | None) -> KnownTests | None:
    """Return the tests that ran, so that they are known from now on; None when there are none. A skipped test did not run."""
    if run is None or run.ran == 0:
        return None
    names = None if run.outcomes is None else frozenset((*run.named("passed"), *run.named("failed")))
    return KnownTests(count=run.ran, names=names)


def give_credit(run: SuiteRun | None, known: KnownTests, exit_code: int) -> Credit:
    """Return the credit of ``run``, which is None when the check told of no test: then all that are known are missing.

    With names on both sides the score is known tests that pass ÷ (known + new ones that fail). With counts only it is
    max(0, known − failed − missing) ÷ known: there a failing test that was replaced by a passing one looks like a repaired one.
    """
    run = run or SuiteRun(runner="", passed=0, failed=0, skipped=0, outcomes={})
    if run.ran + run.skipped == 0:
        run = replace(run, outcomes={})  # of no test, all names are known
    named = known.names is not None and run.outcomes is not None
    credit = _by_name(run, known.names or frozenset()) if named else _by_count(run, known.count)
    counts, note = credit.counts, _note(run, "" if named or known.names is None else "its tests are counted without names")
    if exit_code == 0 and counts.failed:
        note = f"exit code 0 although {plural(counts.failed, 'test')} failed{note and '; '}{note}"
    if exit_code != 0 and counts.failed == counts.missing == 0:
        gate = f"exit code {exit_code}"
        credit = replace(credit, failing=(gate,))
        counts = replace(counts, failed=1, total=counts.total + 1)
        note = f"{gate} although no test failed: counted as one more that fails{note and '; '}{note}"
    return replace(credit, counts=replace(counts, cut_short=run.cut_short, note=note))


def count_notes(checks: Sequence[CheckResult]) -> Iterator[tuple[str, str]]:
    """Yield what a person should know of the counts of one iteration: the check that it is about, and a sentence."""
    seen: dict[tuple[str, ...], str] = {}
    for check in checks:
        name = escape(check.name)
        if check.tests is not None and check.tests.note:
            yield check.name, f"check '{name}': {check.tests.note}"
        if check.note:
            yield f"{check.name} report", f"check '{name}': {check.note}"
        if check.known and check.known in seen:
            same = f"checks '{seen[check.known]}' and '{name}' run the same {plural(len(check.known), 'test')}"
            yield f"{check.name} again", f"{same}, so that these count twice in the score; one of the checks is enough"
        seen.setdefault(check.known, name)


def _by_name(run: SuiteRun, known: frozenset[str]) -> Credit:
    passing, failing = set(run.named("passed")), set(run.named("failed"))
    added, missing = failing - known, known - passing - failing
    counts = SuiteCounts(
        passed=len(known & passing),
        failed=len(failing),
        missing=len(missing),
        total=len(known) + len(added),
        known=len(known),
        new_passing=len(passing - known),
    )
    return Credit(counts=counts, failing=tuple(sorted(failing)), added=tuple(sorted(added)), missing=tuple(sorted(missing)))


def _by_count(run: SuiteRun, known: int) -> Credit:
    missing = max(0, known - run.ran)
    passed = max(0, known - run.failed - missing)
    counts = SuiteCounts(
        passed=passed,
        failed=run.failed,
        missing=missing,
        total=passed + run.failed + missing,
        known=known,
        new_passing=max(0, run.passed - passed),
    )
    return Credit(counts=counts, failing=run.named("failed"))


def _note(run: SuiteRun, more: str = "") -> str:
    """Return what a person should know of the counts, empty as a rule."""
    parts = [
        CUT_SHORT if run.cut_short else "",
        "its output was longer than is read: tests in the middle of it are not counted" if run.truncated else "",
        f"{plural(run.collection_errors, 'file')} could not be loaded" if run.collection_errors else "",
        more,
    ]
    return "; ".join(part for part in parts if part)
