"""What a check's tests are worth: single cases, with the sentences that people read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from jumar.loop.checks.runners import SuiteRun
from jumar.loop.checks.runners.suite import KnownTests, count_notes, give_credit, ran_tests
from jumar.model.records import CheckResult, SuiteCounts

KNOWN = KnownTests(count=3, names=frozenset({"m::a", "m::b", "m::c"}))


def suite(**outcomes: str) -> SuiteRun:
    named = {f"m::{name}": outcome for name, outcome in outcomes.items()}
    passed, failed, skipped = (list(named.values()).count(kind) for kind in ("passed", "failed", "skipped"))
    return SuiteRun(runner="pytest", passed=passed, failed=failed, skipped=skipped, outcomes=cast("Any", named))


@pytest.mark.parametrize(
    ("run", "code", "counts", "note"),
    [
        (suite(a="passed", b="passed", c="failed"), 1, (2, 1, 0, 3, 0), ""),
        (suite(a="passed", b="passed", c="passed", new="passed"), 0, (3, 0, 0, 3, 1), ""),
        (suite(a="passed", b="passed", c="passed", new="failed"), 1, (3, 1, 0, 4, 0), ""),
        (suite(a="passed", b="skipped", new="skipped"), 0, (1, 0, 2, 3, 0), ""),
        (None, 139, (0, 0, 3, 3, 0), ""),
        (
            suite(a="passed", b="passed", c="passed"),
            2,
            (3, 1, 0, 4, 0),
            "exit code 2 although no test failed: counted as one more that fails",
        ),
        (suite(a="passed", b="passed", c="failed"), 0, (2, 1, 0, 3, 0), "exit code 0 although 1 test failed"),
        (
            replace(suite(a="failed"), cut_short=True),
            1,
            (0, 1, 2, 3, 0),
            "cut short (as by -x, fail-fast or a crash): what did not run is not counted as passing",
        ),
        (SuiteRun(runner="pytest", passed=0, failed=0, skipped=0, collection_errors=2), 2, (0, 0, 3, 3, 0), "2 files could not"),
        (SuiteRun(runner="jest", passed=4, failed=1, skipped=0), 1, (0, 0, 3, 3, 0), "its tests were told by name before"),
        (SuiteRun(runner="pytest", passed=3, failed=0, skipped=0), 0, (0, 0, 3, 3, 0), "its tests were told by name before"),
    ],
)
def test_counts_and_what_is_said(run, code, counts, note):
    found = give_credit(run, KNOWN, code).counts
    assert counts == (found.passed, found.failed, found.missing, found.total, found.new_passing)
    assert found.note.startswith(note)
    assert bool(note) == bool(found.note)


def test_names():
    credit = give_credit(suite(b="failed", c="skipped", z="failed", y="passed"), KNOWN, 1)
    assert (("m::b", "m::z"), ("m::z",), ("m::a", "m::c")) == (credit.failing, credit.added, credit.missing)
    assert ("exit code 1",) == give_credit(suite(a="passed", b="passed", c="passed"), KNOWN, 1).failing


def test_only_what_ran_is_known():
    assert ran_tests(None) is None
    assert ran_tests(suite(a="skipped")) is None
    assert KnownTests(count=2, names=frozenset({"m::a", "m::b"})) == ran_tests(suite(a="passed", b="failed", c="skipped"))
    assert KnownTests(count=5) == ran_tests(SuiteRun(runner="ctest", passed=4, failed=1, skipped=3))


def test_what_a_person_is_told_once():
    noted = give_credit(suite(a="passed", b="passed", c="failed"), KNOWN, 0).counts
    same = ("m::a", "m::b")
    checks = [
        CheckResult(name="a", passed=True, tests=noted),
        CheckResult(name="b", passed=True, known=same),
        CheckResult(name="c\x1b", passed=True, known=same),
        CheckResult(name="d", passed=True, known=("m::a",)),
        CheckResult(name="e", passed=True, note="the command did not write 'x'"),
    ]
    assert [
        ("a", "check 'a': exit code 0 although 1 test failed"),
        (
            "c\x1b again",
            "checks 'b' and 'c\\x1b' run the same 2 tests, so that these count twice in the score; one of the checks is enough",
        ),
        ("e report", "check 'e': the command did not write 'x'"),
    ] == list(count_notes(checks))


def test_counts_as_json():
    counts = give_credit(suite(a="passed", b="failed"), KNOWN, 1).counts
    expected = {"passed": 1, "failed": 1, "missing": 1, "total": 3, "known": 3, "new_passing": 0}
    assert expected | {"cut_short": False, "note": ""} == counts.to_json()
    assert 0.0 == SuiteCounts(passed=0, failed=0, missing=0, total=0).share
