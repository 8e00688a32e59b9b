"""What a check said of one iteration, and how many of its tests passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jumar.core.record import Record
from jumar.core.text import plural

NO_TESTS = "no tests ran"
NOT_COLLECTED = "does not collect"
"""How the note of a check begins whose runner came to no test: there was none, or what holds them could not be loaded."""

Known = Literal["start", "each", "none"]
"""Which tests a run is held against: those that ran first, its own each time, or none, and it only says yes or no."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCounts(Record):
    """The tests of one check, held against those that are *known*: the tests that ran at the start.

    ``total`` is what is counted against: the known tests and the new ones that fail. ``passed`` are known tests that pass,
    ``failed`` known and new ones that fail, ``missing`` known ones that were skipped or did not run; together they are ``total``.
    A new test that passes is in none of them, and is counted in ``new_passing``. ``known`` is how many are known, 0 where each
    run is counted by itself. ``cut_short``: it ended before all tests had run. ``note`` says what a person should know of the
    counts (that, or an exit code that disagrees), and is empty as a rule.
    """

    passed: int
    failed: int
    missing: int
    total: int
    known: int = 0
    new_passing: int = 0
    cut_short: bool = False
    note: str = ""

    @property
    def share(self) -> float:
        """The share that passes, in [0, 1]; 0 where there is nothing to count."""
        return self.passed / self.total if self.total else 0.0

    def __str__(self) -> str:
        """Return the counts as people read them: ``11 of 12 tests pass, 1 missing, 2 new`` (passing, and worth nothing)."""
        gone = f", {self.missing:,} missing" if self.missing else ""
        more = f", {self.new_passing:,} new" if self.new_passing else ""
        return f"{self.passed:,} of {plural(self.total, 'test')} pass{gone}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult(Record):
    """One check's verdict on one iteration.

    ``broken`` is set when the check itself could not give one (not found, timed out): that says nothing about the candidate.
    ``failures`` are the identities of single failing tests where the check names them; with ``baseline`` set to
    ``no_new_failures``, only ``new_failures`` (those not failing at the start) count against the candidate. ``tests`` is None for
    a check that only says yes or no. ``added`` are failing tests that are not known, ``missing`` known ones that were skipped or
    did not run; of many names the first 5,000 are kept. ``known`` are the identities of all tests that ran, in the one record
    that makes them known (iteration 0, else the first in which any ran), else empty. ``note`` says why its tests are not
    counted as it was asked to, or why none ran, and is empty as a rule.
    """

    name: str
    passed: bool
    exit_code: int | None = None
    seconds: float = 0.0
    output_tail: str = ""
    broken: str | None = None
    failures: tuple[str, ...] = ()
    new_failures: tuple[str, ...] = ()
    tests: SuiteCounts | None = None
    added: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    note: str = ""

    @property
    def share(self) -> float:
        """The check's part of the score, in [0, 1]: the share of its tests that pass, else whether it passes."""
        return float(self.passed) if self.tests is None else self.tests.share
