"""What a test run came to: counts, and the outcome of each test where the runner names them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

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
        tally = Counter(both.values())
        unloaded = max(first.collection_errors, run.collection_errors)
        runs[twin] = replace(
            first,
            passed=tally["passed"],
            failed=tally["failed"],
            skipped=tally["skipped"],
            outcomes=both,
            collection_errors=unloaded,
        )
    return runs


def short_identity(text: str) -> str:
    """Return ``text``, or its beginning and a hash where it is long: parametrised tests may carry their data in their name."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 20]}…{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
