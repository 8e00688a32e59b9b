"""What an iteration repaired and broke, from its record and its parent's alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.loop.checks.runners import SuiteRun
from jumar.loop.checks.runners.suite import KnownTests, give_credit
from jumar.loop.ranking.repairs import NamedTests, Repairs, repairs
from jumar.model import CheckResult, IterationRecord
from jumar.model.records import SuiteCounts

KNOWN = frozenset(f"m::test_{letter}" for letter in "abcdef")


def record(*checks: CheckResult) -> IterationRecord:
    return IterationRecord(iteration_number=1, timestamp="", quality_score=1.0, checks=checks)


def counted(outcomes: dict[str, str], *, named: bool = True, known: int | None = None, name: str = "tests") -> CheckResult:
    passed, failed, skipped = (list(outcomes.values()).count(kind) for kind in ("passed", "failed", "skipped"))
    run = SuiteRun(
        runner="pytest",
        passed=passed,
        failed=failed,
        skipped=skipped,
        outcomes=dict(outcomes) if named else None,  # pyright: ignore[reportArgumentType]
    )
    credit = give_credit(run, KnownTests(count=len(KNOWN), names=KNOWN), int(failed > 0))
    counts = credit.counts
    if known is not None:
        counts = SuiteCounts(**{**counts.to_json(), "known": known})
    return CheckResult(name=name, passed=False, tests=counts, failures=credit.failing, added=credit.added, missing=credit.missing)


def by_count(*, passed: int, failing: list[str]) -> CheckResult:
    """A check that counts all of its tests, and names those that fail."""
    run = SuiteRun(runner="jest", passed=passed, failed=len(failing), skipped=0, failing=tuple(failing))
    credit = give_credit(run, KnownTests(count=6), int(bool(failing)))
    return CheckResult(name="tests", passed=False, tests=credit.counts, failures=credit.failing)


OUTCOMES = st.dictionaries(
    st.sampled_from([*sorted(KNOWN), "m::test_new", "m::test_newer"]), st.sampled_from(["passed", "failed", "skipped"])
)


@given(OUTCOMES, OUTCOMES)
def test_known_tests_are_told_as_comparing_them_one_by_one_says(before, after):
    found = repairs(record(counted(after)), record(counted(before)))
    fixed = {name for name in KNOWN if after.get(name) == "passed" != before.get(name)}
    broke = {name for name in KNOWN if before.get(name) == "passed" and after.get(name) == "failed"}
    ran = {"passed", "failed"}
    missing = {name for name in KNOWN if before.get(name) in ran and after.get(name) not in ran}
    assert fixed == set(found.fixed.names) & KNOWN
    assert broke == set(found.broke.names) & KNOWN
    assert missing == set(found.missing.names)
    new_fixed = set(found.fixed.names) - KNOWN
    assert new_fixed <= {name for name in before if before[name] == "failed"} - {n for n in after if after[n] == "failed"}
    assert {name for name in after if after[name] == "failed" != before.get(name)} - KNOWN == set(found.broke.names) - KNOWN


def test_a_new_failure_behind_a_run_that_was_cut_short_is_not_broken_now():
    before, after = counted({"m::test_a": "failed"}), counted({"m::test_a": "passed", "m::test_new": "failed"})
    assert "fixed test_a · broke test_new" == str(repairs(record(after), record(before)))
    assert before.tests is not None
    cut_short = replace(before, tests=replace(before.tests, cut_short=True))
    assert "fixed test_a" == str(repairs(record(after), record(cut_short)))


def test_a_new_test_that_was_taken_away_is_not_repaired():
    before = counted(dict.fromkeys(KNOWN, "passed") | {"m::test_new": "failed"})
    assert "" == str(repairs(record(counted(dict.fromkeys(KNOWN, "passed"))), record(before)))
    passes = counted(dict.fromkeys(KNOWN, "passed") | {"m::test_new": "passed"})
    assert "fixed test_new" == str(repairs(record(passes), record(before)))


def yes(name: str, *, passed: bool = True, broken: str | None = None) -> CheckResult:
    return CheckResult(name=name, passed=passed, broken=broken)


@pytest.mark.parametrize(
    ("after", "before", "expected"),
    [
        ((yes("lint"), yes("types", passed=False)), (yes("lint", passed=False), yes("types")), "fixed lint · broke types"),
        ((yes("lint"),), (yes("lint", passed=False, broken="not found"),), ""),
        ((yes("lint", passed=False, broken="not found"),), (yes("lint"),), ""),
        ((yes("new", passed=False),), (yes("lint"),), ""),
        ((counted(dict.fromkeys(KNOWN, "passed")),), (CheckResult(name="tests", passed=False),), "fixed 6 tests"),
        ((counted({}),), (counted(dict.fromkeys(KNOWN, "passed")),), "missing test_a, test_b, test_c +3 more"),
        ((counted({"m::test_a": "passed"}, named=False),), (counted({}, named=False),), ""),  # without its name it earns nothing
        (
            (counted({"m::test_a": "passed", "m::test_b": "failed"}),),
            (counted({"m::test_a": "failed", "m::test_b": "passed", "m::test_c": "failed", "m::test_d": "passed"}),),
            "fixed test_a · broke test_b · missing test_c, test_d",
        ),
        ((by_count(passed=4, failing=["b"]),), (by_count(passed=4, failing=["a", "b"]),), "missing 1 test"),
        ((by_count(passed=5, failing=["b"]),), (by_count(passed=4, failing=["a", "b"]),), "fixed a"),
        ((by_count(passed=3, failing=["a", "b"]),), (by_count(passed=4, failing=["a", "b"]),), "missing 1 test"),
        ((by_count(passed=5, failing=[]),), (by_count(passed=4, failing=["a", "b"]),), "fixed 1 test · missing 1 test"),
        ((by_count(passed=2, failing=["a", "c"]),), (by_count(passed=4, failing=["a"]),), "broke 1 test · missing 1 test"),
        (
            (counted({"x": "failed", "y": "passed"}, known=0),),
            (counted({"u": "failed", "v": "failed", "w": "passed"}, known=0),),
            "fixed 1 test",
        ),
    ],
)
def test_what_is_said(after, before, expected):
    assert expected == str(repairs(record(*after), record(*before)))
    assert Repairs() == repairs(record(*after), None)


def test_names_are_short_and_safe_to_print():
    assert "test_a[x::y], test_b" == str(NamedTests(names=("tests.m.TestX::test_a[x::y]", "tests.m::test_b")))
    assert "m::test_a, n::test_a" == str(NamedTests(names=("m::test_a", "n::test_a")))
    assert "more > adds, subs" == str(NamedTests(names=("tests/calc.test.ts > more > adds", "tests/calc.test.ts > subs")))
    same = ("a/b/one.test.js > adds", "a/b/two.test.js > adds", "a/c/two.test.js > subs")
    assert "one.test.js > adds, two.test.js > adds, subs" == str(NamedTests(names=same))
    assert "a/b/one.js > adds, a/c/one.js > adds" == str(NamedTests(names=("a/b/one.js > adds", "a/c/one.js > adds")))
    assert f"{'x' * 40}, +2 more".replace(",", "") == str(NamedTests(names=("x" * 40, "y" * 40, "z")))
    assert "\\x1b[31m" == str(NamedTests(names=("\x1b[31m",)))
    assert 60 == len(str(NamedTests(names=("x" * 100,))))
    assert "a, b, c +1,003 more" == str(NamedTests(names=("a", "b", "c", "d"), unnamed=1_002))


def test_names_that_were_cut_are_not_compared():
    many = tuple(f"m::test_{number}" for number in range(10))
    cut = SuiteCounts(passed=0, failed=20, missing=0, total=20, known=20)
    before = CheckResult(name="tests", passed=False, tests=cut, failures=many)
    fewer = SuiteCounts(passed=15, failed=5, missing=0, total=20, known=20)
    after = CheckResult(name="tests", passed=False, tests=fewer, failures=many[:5])
    assert Repairs(fixed=NamedTests(unnamed=15)) == repairs(record(after), record(before))


def test_a_test_that_two_checks_tell_is_named_once():
    ours = ("tests/test_pt.py::test_mul", "tests/test_unit.py::T::test_zero", "tests/test_unit.py::test_run[a.b]")
    theirs = ("test_unit.T.test_zero", "tests.test_unit.T.test_other")
    now, then = ([named(name, failing) for name, failing in zip("ab", each, strict=True)] for each in ((ours, theirs), ((), ())))

    broke = repairs(record(*now), record(*then)).broke

    assert {*ours, "tests.test_unit.T.test_other"} == set(broke.names)


def named(name: str, failing: tuple[str, ...]) -> CheckResult:
    counts = SuiteCounts(passed=9 - len(failing), failed=len(failing), missing=0, total=9, known=9)
    return CheckResult(name=name, passed=not failing, tests=counts, failures=failing)
