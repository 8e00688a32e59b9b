"""What a test run came to: counts, the outcome of each test where the runner names them, and the credit that it earns. Pure.

Known are the tests that ran when the check first ran any. They stay the denominator: who removes, skips or renames a known test
loses it, who adds a passing one earns nothing, and who adds a failing one pays for it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from jumar.core.text import escape, plural
from jumar.model.records import CheckResult, SuiteCounts

Outcome = Literal["passed", "failed", "skipped"]

_LONGEST: Final = 300
_GRAVITY: Final[Mapping[Outcome, int]] = {"skipped": 0, "passed": 1, "failed": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """The tests of one run, or of several that are counted together.

    ``runner`` is for people: ``pytest``, ``JUnit``, several joined by `` + ``. ``outcomes`` has each test by its identity; it is
    None where the runner tells counts only. Some of those name what failed: then ``failing`` has all of that.

    ``cut_short`` says that the run ended before all tests had run (``-x``, fail-fast, bail), so that the counts are not whole;
    ``truncated`` that it printed more than is read.
    ``collection_errors`` are files that could not be loaded: no tests, and in none of the counts. A test that is expected to fail
    and does is skipped; one that unexpectedly passes is what its runner makes of it.
    """

    runner: str
    passed: int
    failed: int
    skipped: int
    outcomes: Mapping[str, Outcome] | None = None
    failing: tuple[str, ...] = ()
    cut_short: bool = False
    truncated: bool = False
    collection_errors: int = 0

    @classmethod
    def of(cls, runner: str, outcomes: Mapping[str, Outcome], *, cut_short: bool = False, collection_errors: int = 0) -> SuiteRun:
        """Return the run in which each test ended so."""
        tally = Counter(outcomes.values())
        return cls(
            runner=runner,
            passed=tally["passed"],
            failed=tally["failed"],
            skipped=tally["skipped"],
            outcomes=outcomes,
            cut_short=cut_short,
            collection_errors=collection_errors,
        )

    @property
    def ran(self) -> int:
        """Number of tests that passed or failed."""
        return self.passed + self.failed

    @property
    def told(self) -> int:
        """Number of all that it tells of: tests, and files that could not be loaded."""
        return self.ran + self.skipped + self.collection_errors

    def named(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the identities of the tests that ended so, sorted; empty where the runner does not name them."""
        if self.outcomes is None:
            return self.failing if outcome == "failed" else ()
        return tuple(sorted(name for name, found in self.outcomes.items() if found == outcome))


def worse(first: Outcome | None, second: Outcome) -> Outcome:
    """Return what two results of one identity come to: failed if it ever failed, skipped only if it never ran."""
    return second if first is None or _GRAVITY[second] > _GRAVITY[first] else first


def numbered(pairs: Iterable[tuple[str, Outcome]]) -> dict[str, Outcome]:
    """Return outcomes by identity, shortened; those that share a name are told apart by their order: ``adds``, ``adds (2)``."""
    found: dict[str, Outcome] = {}
    times: Counter[str] = Counter()
    for text, outcome in pairs:
        name = short_identity(text)
        times[name] += 1
        found[name if times[name] == 1 else f"{name} ({times[name]})"] = outcome
    return found


def joined(runs: Iterable[SuiteRun]) -> SuiteRun | None:
    """Return the sum of several runs, None of none. There are identities when every run that has tests gives them."""
    listed = list(runs)
    if len(listed) < 2:
        return listed[0] if listed else None
    named = all(run.outcomes is not None for run in listed if run.ran + run.skipped)
    failing = numbered((name, "failed") for run in listed for name in run.named("failed"))
    failed = sum(run.failed for run in listed)
    return SuiteRun(
        runner=" + ".join(dict.fromkeys(run.runner for run in listed)),
        passed=sum(run.passed for run in listed),
        failed=failed,
        skipped=sum(run.skipped for run in listed),
        outcomes=numbered(pair for run in listed for pair in (run.outcomes or {}).items()) if named else None,
        failing=tuple(sorted(failing)) if len(failing) == failed and not named else (),
        cut_short=any(run.cut_short for run in listed),
        truncated=any(run.truncated for run in listed),
        collection_errors=sum(run.collection_errors for run in listed),
    )


def together(sessions: Iterable[SuiteRun]) -> list[SuiteRun]:
    """Return ``sessions`` with names, of which one that runs nothing but what an earlier one ran is taken into that.

    It tries failures again (``--lf``), or runs the same in another way: a test that ever failed is failed.
    """
    runs: list[SuiteRun] = []
    for run in sessions:
        outcomes = run.outcomes or {}
        twin = next((index for index, other in enumerate(runs) if outcomes.keys() <= (other.outcomes or {}).keys()), None)
        if twin is None or not outcomes:
            runs.append(run)
            continue
        first = runs[twin]
        both: dict[str, Outcome] = {**(first.outcomes or {})}
        both.update((name, worse(both[name], outcome)) for name, outcome in outcomes.items())
        unloaded = max(first.collection_errors, run.collection_errors)
        runs[twin] = SuiteRun.of(first.runner, both, cut_short=first.cut_short, collection_errors=unloaded)
    return runs


def short_identity(text: str) -> str:
    """Return ``text``, or its beginning and a hash where it is long: parametrised tests may carry their data in their name."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 20]}…{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


# ---------------------------------------------------------------------------------------------------- against the known tests


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

    With names the score is known tests that pass ÷ (known + new ones that fail). With counts only it is
    max(0, known − failed − missing) ÷ known: there a failing test that was replaced by a passing one looks like a repaired one.
    So a run without names earns nothing where the names are known: who edits a runner's settings could choose.
    """
    run = run or SuiteRun(runner="", passed=0, failed=0, skipped=0, outcomes={})
    unnamed = run.outcomes is None and run.ran + run.skipped > 0
    if known.names is None:
        credit = _by_count(run, known.count)
    else:
        credit = _by_name(replace(run, outcomes={}) if run.outcomes is None else run, known.names)
    lost = "its tests were told by name before and are not any more, so that none of them counts"
    counts, note = credit.counts, _note(run, lost if unnamed and known.names is not None else "")
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
