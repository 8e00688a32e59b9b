"""What an iteration repaired, broke and lost: its tests held against those of the iteration that it started from. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from jumar.core.text import cut, escape, plural
from jumar.model import CheckResult, IterationRecord
from jumar.model.records import NO_EFFECT

_SHOWN = 3
_LONGEST = 60  # characters of a name, and of several
_FOLDERS: Final = re.compile(r"^[^\s\[]*/")
_MODULE: Final = re.compile(r"^(?:[^\[]*::|\S+\.[cm]?[jt]sx? > )")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTests:
    """Some tests: ``names`` (sorted) of those that have one, and how many more there are of checks that tell counts only."""

    names: tuple[str, ...] = ()
    unnamed: int = 0

    def __bool__(self) -> bool:
        return bool(self.names or self.unnamed)

    def __str__(self) -> str:
        """Return ``test_add, test_mul, test_neg +3 more``, safe for a terminal; of counts ``2 tests``."""
        if not self.names:
            return plural(self.unnamed, "test")
        return _listed(self.names, self.unnamed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """What passes that did not, what fails that did not, and known tests that ran and do not run any more.

    A check that only says yes or no counts as one test. ``flaky`` are those that another result of the same files names.
    """

    fixed: NamedTests = field(default_factory=NamedTests)
    broke: NamedTests = field(default_factory=NamedTests)
    missing: NamedTests = field(default_factory=NamedTests)
    flaky: NamedTests = field(default_factory=NamedTests)

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __str__(self) -> str:
        """Return ``fixed test_add · broke test_sub · missing test_neg``; empty when nothing changed."""
        return " · ".join(f"{verb} {tests}" for verb, tests in self.parts)

    @property
    def parts(self) -> tuple[tuple[str, NamedTests], ...]:
        """What there is to tell, each with its verb."""
        return tuple((verb, tests) for verb, tests in self.all if tests)

    @property
    def all(self) -> tuple[tuple[str, NamedTests], ...]:
        """The same with what is empty."""
        return (("fixed", self.fixed), ("broke", self.broke), ("missing", self.missing), ("flaky", self.flaky))


def repairs(record: IterationRecord, parent: IterationRecord | None) -> Repairs:
    """Return what ``record`` changed against ``parent``, the iteration that it started from; nothing without one.

    A check that could not run says nothing. An iteration that changed no file repaired and broke nothing: its tests are flaky.
    Where a check does not name all of its tests, or counts each run by itself, the difference of its counts is told.
    """
    before = {} if parent is None else {check.name: check for check in parent.checks if check.broken is None}
    changes = [_compared(check, before[check.name]) for check in record.checks if check.broken is None and check.name in before]
    if record.failure in NO_EFFECT:
        return Repairs(flaky=_together([tests for change in changes for _, tests in change.all]))
    return Repairs(
        fixed=_together([change.fixed for change in changes]),
        broke=_together([change.broke for change in changes]),
        missing=_together([change.missing for change in changes]),
    )


def _together(tests: Sequence[NamedTests]) -> NamedTests:
    """Return the tests of several checks; one that two of them tell is named once, as the first of them calls it.

    A runner's names begin at its own folder, so one may be the end of the other.
    """
    named: list[str] = []
    told, ends = set[str](), set[str]()
    for part in tests:
        names = {name: _ends_of(name) for name in part.names}
        new = {name: found for name, found in names.items() if found[0] not in ends and told.isdisjoint(found)}
        named += new
        told |= {found[0] for found in new.values()}
        ends.update(*new.values())
    return NamedTests(names=tuple(sorted(named)), unnamed=sum(part.unnamed for part in tests))


def _ends_of(name: str) -> list[str]:
    """Return the whole name, ``tests/test_a.py::T::test_b`` with dots alone, and its ends of at least two words."""
    words = re.sub(r"\.py(?=::|$)", "", name).replace("::", ".").replace("/", ".").split(".")
    return [".".join(words[first:]) for first in range(max(1, len(words) - 1))]


def _compared(check: CheckResult, earlier: CheckResult) -> Repairs:
    if not _are_named(check, earlier):
        return _counted(check, earlier)
    failing, lost = _failing(check), set(check.missing)
    failed, gone = _failing(earlier), set(earlier.missing)
    if earlier.tests is not None and earlier.tests.cut_short:  # what is new had not run before, and may have failed all along
        failed |= set(check.added)
    return Repairs(
        fixed=NamedTests(names=tuple((failed | gone) - failing - lost - _taken_away(check, earlier))),
        broke=NamedTests(names=tuple(failing - failed - gone)),
        missing=NamedTests(names=tuple(lost - gone)),
    )


def _counted(check: CheckResult, earlier: CheckResult) -> Repairs:
    """Return what the counts tell."""
    better, lost = _better(check, earlier), 0
    if check.tests is not None and check.tests.known:
        lost = max(0, check.tests.missing - (0 if earlier.tests is None else earlier.tests.missing))
    return Repairs(
        fixed=NamedTests(unnamed=max(0, better)),
        broke=NamedTests(unnamed=max(0, -better - lost)),
        missing=NamedTests(unnamed=lost),
    )


def _are_named(check: CheckResult, earlier: CheckResult) -> bool:
    """Whether every test that does not pass is named in both, and stays the same test from one run to the next."""
    if check.tests is None or earlier.tests is None:
        return check.tests is earlier.tests
    both = ((check, check.tests), (earlier, earlier.tests))
    return check.tests.known > 0 and all(
        (len(one.failures), len(one.missing)) == (tests.failed, tests.missing) for one, tests in both
    )


def _failing(check: CheckResult) -> set[str]:
    if check.tests is None:
        return set() if check.passed else {check.name}
    return set(check.failures)


def _taken_away(check: CheckResult, earlier: CheckResult) -> set[str]:
    """Return new tests that failed and fail no more, unless the counts tell that they pass: they were taken away again."""
    new = set(earlier.added) - _failing(check)
    now, then = check.tests, earlier.tests
    return set() if now is None or then is None or now.new_passing - then.new_passing >= len(new) else new


def _better(check: CheckResult, earlier: CheckResult) -> int:
    """Return how many more tests pass, as far as the counts tell; all that pass where none ran before."""
    now, then = check.tests, earlier.tests
    if now is None or then is None:
        return 0 if now is None else now.passed
    return now.passed - then.passed if now.known else then.failed - now.failed


def _listed(names: Sequence[str], unnamed: int = 0) -> str:
    """Return the first names without their modules; with the file or the whole name where they would be the same."""
    told = list(names)
    for pattern in (_FOLDERS, _MODULE):
        short = [pattern.sub("", name) for name in names]
        told = [one if short.count(one) == 1 else more for one, more in zip(short, told, strict=True)]
    told = [escape(cut(one, _LONGEST)) for one in told[:_SHOWN]]
    while len(told) > 1 and len(", ".join(told)) > _LONGEST:
        told.pop()
    more = len(names) - len(told) + unnamed
    return f"{', '.join(told)}{f' +{more:,} more' if more else ''}"
