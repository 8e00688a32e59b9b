"""Partial credit against a slow obvious reference: nobody earns by adding, skipping or removing tests."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from jumar.loop.checks.runners import SuiteRun
from jumar.loop.checks.runners.suite import KnownTests, give_credit, ran_tests

NAMES = st.sampled_from([f"m::test_{letter}" for letter in "abcdefgh"])
OUTCOMES = st.dictionaries(NAMES, st.sampled_from(["passed", "failed", "skipped"]))
SUITES = OUTCOMES.filter(lambda outcomes: any(outcome != "skipped" for outcome in outcomes.values()))


def run_of(outcomes, *, named=True) -> SuiteRun:
    passed, failed, skipped = (sum(outcome == kind for outcome in outcomes.values()) for kind in ("passed", "failed", "skipped"))
    outcomes = dict(outcomes) if named else None
    return SuiteRun(runner="pytest", passed=passed, failed=failed, skipped=skipped, outcomes=outcomes)


def known_of(outcomes, *, named=True) -> KnownTests:
    known = ran_tests(run_of(outcomes, named=named))
    assert known is not None
    return known


def share(outcomes, known, *, gate=False, named=True) -> float:
    """The score of a run whose exit code is what pytest's would be: red for a failing test, or for a gate of its own."""
    red = gate or "failed" in outcomes.values()
    return give_credit(run_of(outcomes, named=named), known, int(red)).counts.share


def slow_reference(start, now, exit_code):
    """Test by test, in fractions."""
    passed, failing, missing = [], [], []
    for name in sorted(start.keys() | now.keys()):
        is_known = start.get(name) in {"passed", "failed"}
        match now.get(name):
            case "passed" if is_known:
                passed.append(name)
            case "failed":
                failing.append(name)
            case "skipped" | None if is_known:
                missing.append(name)
            case _:
                pass
    if exit_code != 0 and not failing and not missing:
        failing.append(f"exit code {exit_code}")
    return Fraction(len(passed), len(passed) + len(failing) + len(missing)), failing, missing


@given(SUITES, OUTCOMES, st.sampled_from([0, 1, 5, -9]))
def test_it_is_what_counting_test_by_test_says(start, now, exit_code):
    expected, failing, missing = slow_reference(start, now, exit_code)
    credit = give_credit(run_of(now), known_of(start), exit_code)
    counts = credit.counts
    assert float(expected) == counts.share
    assert (tuple(failing), tuple(missing)) == (credit.failing, credit.missing)
    assert (counts.failed, counts.missing) == (len(failing), len(missing))
    assert counts.total == counts.passed + counts.failed + counts.missing >= counts.known > 0
    assert set(credit.added) == {name for name in failing if start.get(name) not in {"passed", "failed"}} - {
        f"exit code {exit_code}"
    }
    assert counts.new_passing == sum(now[name] == "passed" and start.get(name) not in {"passed", "failed"} for name in now)


@given(SUITES, SUITES, st.booleans(), st.data())
def test_no_sequence_of_removing_skipping_and_adding_passing_tests_raises_the_score(start, now, gate, data):
    known = known_of(start)
    new_failing = {name for name in now if now[name] == "failed" and name not in (known.names or ())}
    before = share(now, known, gate=gate)
    for _ in range(data.draw(st.integers(1, 6))):
        now = dict(now)
        # to take a new test that fails away again only undoes what it cost
        name = data.draw(NAMES.filter(lambda name: name not in new_failing))
        operation = data.draw(st.sampled_from(["remove", "skip", "add"]))
        if operation == "add" and name not in now and name not in (known.names or ()):
            now[name] = "passed"
        elif operation == "skip" and name in now:
            now[name] = "skipped"
        elif operation == "remove":
            now.pop(name, None)
        after = share(now, known, gate=gate)
        assert after <= before
        before = after


@given(SUITES, OUTCOMES)
def test_nothing_earns_more_than_the_known_tests_that_pass(start, now):
    known = known_of(start)
    passing = sum(now.get(name) == "passed" for name in known.names or ())
    assert give_credit(run_of(now), known, 0).counts.share <= passing / known.count


@given(SUITES, st.integers(0, 8), st.integers(0, 8), st.booleans())
def test_counts_without_names_earn_nothing_by_removing_or_adding_passing_tests(start, removed, added, gate):
    known = known_of(start, named=False)
    passing = [name for name, outcome in start.items() if outcome == "passed"]
    now = {name: outcome for name, outcome in start.items() if name not in passing[:removed]}
    more = now | {f"m::new_{number}": "passed" for number in range(added)}
    assert share(now, known, gate=gate, named=False) <= share(start, known, gate=gate, named=False)
    assert share(more, known, gate=gate, named=False) <= share(start, known, gate=gate, named=False)
    failed = sum(outcome == "failed" for outcome in now.values())
    missing = max(0, known.count - sum(outcome != "skipped" for outcome in now.values()))
    expected = Fraction(max(0, known.count - failed - missing), known.count)
    assert float(expected) == give_credit(run_of(now, named=False), known, int(failed > 0)).counts.share


@given(SUITES)
def test_names_that_come_later_count_as_counts_and_names_that_go_count_as_missing(start):
    ran = len([outcome for outcome in start.values() if outcome != "skipped"])
    by_count = give_credit(run_of(start), known_of(start, named=False), 1).counts
    assert by_count.share == share(start, known_of(start, named=False), gate=True, named=False)
    lost = give_credit(run_of(start, named=False), known_of(start), 0).counts
    assert (0, ran, ran) == (lost.share, lost.missing, lost.known)
