"""What test runners left, turned into counts. The recorded outputs are of small projects whose tests are known."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from runner_outputs import OUTPUTS, counts, read_output, spoken

from jumar.loop.checks.runners import joined, read_junit, read_runs
from jumar.loop.checks.runners.configuration import Deciding, is_harmless, stands_in
from jumar.loop.checks.runners.table import without_passing

# ------------------------------------------------------------------------------------------- recorded and written outputs

EXPECTED: dict[str, tuple[str, int, int, int]] = {  # runner, passed, failed, skipped
    # pytest: adds, xpassed, one of param, one, two and one that is not torn down pass; two fail, and two have errors
    **dict.fromkeys(("pytest", "pytest-q", "pytest-continue", "pytest-twice"), ("pytest", 6, 4, 2)),
    **dict.fromkeys(("pytest-colour", "pytest-s"), ("pytest", 4, 4, 2)),
    "pytest-rerun": ("pytest", 5, 4, 2),
    "pytest-x": ("pytest", 1, 1, 0),
    "pytest-xdist": ("pytest", 1, 1, 2),
    "pytest-maxfail": ("pytest", 2, 2, 2),
    **dict.fromkeys(("pytest-collection", "pytest-none", "pytest-deselected"), ("pytest", 0, 0, 0)),
    "pytest-subtests": ("pytest", 1, 2, 0),
    **dict.fromkeys(("pytest-nested", "pytest-nested-loud"), ("pytest", 1, 1, 0)),
    **dict.fromkeys(("unittest", "unittest-v"), ("unittest", 4, 4, 2)),
    **dict.fromkeys(("unittest-ok", "unittest-collection", "unittest-class"), ("unittest", 2, 0, 0)),
    "unittest-failfast": ("unittest", 2, 1, 1),
    "unittest-none": ("unittest", 0, 0, 0),
    # node: a suite of four, a test with two subtests, three others and one that is to be done
    **dict.fromkeys(
        ("node18-spec", "node18-tap", "node20-tap", "node24-spec", "node24-tap", "node24-colour"), ("node --test", 5, 3, 3)
    ),
    **dict.fromkeys(("node18-tap-load", "node20-spec-load", "node24-spec-load", "node24-tap-load"), ("node --test", 2, 0, 0)),
    **dict.fromkeys(("node18-dot", "node20-dot", "node24-dot"), ("node --test", 7, 5, 0)),
    # jest, vitest and bun: adds, flat, one and two pass, subtracts fails, multiplies is skipped and divides to be done
    **dict.fromkeys(("jest", "jest-colour", "jest-load"), ("jest", 4, 1, 2)),
    "jest-bail": ("jest", 2, 1, 2),
    "jest-ok": ("jest", 2, 0, 0),
    "jest-t": ("jest", 1, 0, 6),
    **dict.fromkeys(("vitest", "vitest-colour", "vitest-load", "vitest-verbose"), ("vitest", 4, 1, 2)),
    "vitest-bail": ("vitest", 1, 1, 2),
    "vitest-ok": ("vitest", 2, 0, 0),
    **dict.fromkeys(("vitest-tap", "vitest-tap-flat"), ("TAP", 4, 1, 2)),
    **dict.fromkeys(("bun", "bun-colour", "bun-load", "bun-dots", "bun-agent"), ("bun test", 4, 1, 2)),
    "bun-bail": ("bun test", 1, 1, 0),
    "bun-ok": ("bun test", 2, 0, 0),
    "old-jest": ("jest", 4, 1, 2),
    "old-vitest": ("vitest", 4, 1, 2),
    "old-bun": ("bun test", 4, 1, 2),
    # mocha: as jest, a slow one, and a hook that fails for two
    **dict.fromkeys(("mocha", "mocha-colour", "mocha-dot", "old-mocha"), ("mocha", 5, 2, 2)),
    "mocha-tap": ("TAP", 5, 2, 2),
    "mocha-bail": ("mocha", 4, 1, 0),
    "mocha-ok": ("mocha", 2, 0, 0),
    "npm-workspaces": ("mocha + node --test", 10, 5, 5),  # 2 tests, then 11, then 7
    # cargo: a crate of five tests, one of integration and one of documentation, and a crate of two
    **dict.fromkeys(("cargo-all", "cargo-quiet", "cargo-nocapture", "cargo-colour"), ("cargo test", 6, 1, 2)),
    "cargo": ("cargo test", 2, 1, 2),
    **dict.fromkeys(("cargo-ok", "cargo-filter"), ("cargo test", 2, 0, 0)),
    **dict.fromkeys(("nextest-all", "nextest-colour", "nextest-retries"), ("cargo nextest", 5, 1, 2)),
    "nextest": ("cargo nextest", 3, 1, 2),
    "nextest-ok": ("cargo nextest", 2, 0, 0),
    "nextest-filter": ("cargo nextest", 2, 0, 6),
    # go: five tests of which one has three subtests, two of another package, and a package that is not built
    **dict.fromkeys(("go-v", "go-json"), ("go test", 5, 2, 2)),
    **dict.fromkeys(("go", "go-two"), ("go test", 1, 1, 0)),  # packages
    "go-ok": ("go test", 1, 0, 0),
    "go-failfast": ("go test", 2, 1, 0),
    "go-panic": ("go test", 2, 3, 2),
    **dict.fromkeys(("dotnet-normal", "dotnet-terminal-logger", "dotnet-platform"), ("dotnet test", 2, 1, 1)),
    "dotnet-minimal": ("dotnet test", 4, 1, 1),
    "dotnet-platform-ok": ("dotnet test", 12, 0, 0),
    "maven": ("Maven Surefire", 2, 2, 1),
    "maven-modules": ("Maven Surefire", 4, 0, 1),
    "gradle": ("Gradle", 2, 2, 1),
    **dict.fromkeys(("rspec", "rspec-colour"), ("rspec", 3, 2, 3)),
    "rspec-ok": ("rspec", 2, 0, 0),
    "rspec-load": ("rspec", 0, 0, 0),
    "rspec-failfast": ("rspec", 1, 1, 0),
    **dict.fromkeys(("phpunit", "phpunit-colour", "phpunit-testdox"), ("PHPUnit", 3, 2, 2)),
    "phpunit-ok": ("PHPUnit", 1, 0, 0),
    "phpunit-skipped": ("PHPUnit", 1, 0, 1),
    "phpunit-stop": ("PHPUnit", 1, 1, 0),
    "phpunit-11": ("PHPUnit", 4, 0, 1),
    # ctest: one fails, one is not found, one is too slow and one crashes; one skips itself and one is disabled
    "ctest": ("ctest", 2, 4, 2),
    "ctest-ok": ("ctest", 2, 0, 0),
    "ctest-stop": ("ctest", 1, 1, 0),
    "bats-pretty": ("bats", 3, 1, 1),
    **dict.fromkeys(("bats", "bats-tap13"), ("TAP", 3, 1, 1)),
    "bats-load": ("TAP", 1, 1, 0),
    **dict.fromkeys(("tape", "node-tap"), ("TAP", 2, 1, 2)),
    "perl": ("TAP", 3, 2, 4),
    "perl-bail": ("TAP", 1, 0, 0),
    "perl-short": ("TAP", 2, 0, 0),
    "perl-skip": ("TAP", 0, 0, 0),
    "prove-v": ("TAP", 5, 2, 4),
}

SILENT = {"pytest-qq", "jest-none", "phpunit-none", "ctest-none"}

CUT_SHORT = {
    *("pytest-x", "pytest-xdist", "pytest-maxfail", "jest-bail", "vitest-bail", "bun-bail", "cargo", "nextest", "go-panic"),
    *("perl-bail", "perl-short", "prove-v"),
}

COLLECTION_ERRORS = (
    *("pytest-collection", "pytest-continue", "unittest-collection", "unittest-class", "node18-tap-load", "node20-spec-load"),
    *("node24-spec-load", "node24-tap-load", "jest-load", "jest-t", "vitest-load", "bun-load", "old-jest", "old-vitest", "go"),
    *("go-v", "go-json", "rspec-load"),
)

CALC = {"calc > adds": "passed", "calc > subtracts": "failed", "calc > multiplies": "skipped", "calc > divides": "skipped"}
NAMED: dict[str, dict[str, str]] = {
    "bun": {**CALC, "flat": "passed", "one": "passed", "two": "passed"},
    "node24-tap": {
        **CALC,
        "flat": "passed",
        "with # hash \\ and red > inner one": "passed",
        "with # hash \\ and red > inner two": "failed",
        "with # hash \\ and red": "failed",
        "todo that fails": "skipped",
        "one": "passed",
        "two": "passed",
    },
    "node24-spec-load": {"one": "passed", "two": "passed"},
    "cargo-all": {
        "alpha::tests::adds": "passed",
        "alpha::tests::divides": "skipped",
        "alpha::tests::multiplies": "skipped",
        "alpha::tests::panics": "passed",
        "alpha::tests::subtracts": "failed",
        "it::flat": "passed",
        "beta::tests::adds": "passed",
        "beta::tests::one": "passed",
        "Doc-tests alpha::alpha/src/lib.rs - add": "passed",
    },
    "nextest-retries": {
        "alpha tests::adds": "passed",
        "alpha tests::panics": "passed",
        "alpha tests::subtracts": "failed",
        "alpha::it flat": "passed",
        "beta tests::adds": "passed",
        "beta tests::one": "passed",
    },
    "go-v": {
        "example.com/calc::ExampleAdd": "passed",
        "example.com/calc::TestAdd": "passed",
        "example.com/calc::TestMul": "skipped",
        "example.com/calc::TestSub": "failed",
        "example.com/calc::TestTable/one": "passed",
        "example.com/calc::TestTable/three": "skipped",
        "example.com/calc::TestTable/two_words": "failed",
        "example.com/calc/more::TestAdd": "passed",
        "example.com/calc/more::TestOne": "passed",
    },
    "go": {"example.com/calc": "failed", "example.com/calc/more": "passed"},
    "ctest": {
        "adds": "passed",
        "crash": "failed",
        "divides": "skipped",
        "flat": "passed",
        "gone": "failed",
        "multiplies": "skipped",
        "slow": "failed",
        "subtracts well": "failed",
    },
    "unittest-v": {
        "test_u.T.test_add": "passed",
        "test_u.T.test_div": "skipped",
        "test_u.T.test_doc": "passed",
        "test_u.T.test_error": "failed",
        "test_u.T.test_many": "failed",
        "test_u.T.test_mul": "skipped",
        "test_u.T.test_pow": "failed",
        "test_u.T.test_sub": "failed",
        "test_v.V.test_one": "passed",
        "test_v.V.test_two": "passed",
    },
    "bats-tap13": {
        "adds": "passed",
        "flat": "passed",
        "multiplies": "skipped",
        "one": "passed",
        "subtracts # not a directive": "failed",
    },
    "node-tap": {
        "adds > one": "failed",
        "adds > two": "passed",
        "divides": "skipped",
        "flat": "passed",
        "multiplies": "skipped",
    },
    "tape": {"fine": "passed", "later": "skipped", "not yet": "skipped", "one": "failed", "two": "passed"},
}

SAME_NAMES = {  # told in another way
    "bun-colour": "bun",
    "bun-load": "bun",
    "cargo-colour": "cargo-all",
    "go-json": "go-v",
    "bats": "bats-tap13",
    "node18-tap": "node24-tap",
    "node20-tap": "node24-tap",
    "node20-spec-load": "node24-spec-load",
    "nextest-all": "nextest-retries",
    "nextest-colour": "nextest-retries",
}


FAILING = {  # of runners that name no test that passes
    "jest": ["calc › subtracts"],
    "old-jest": ["calc › subtracts"],
    "vitest": ["a.test.js > calc > subtracts"],
    "vitest-load": ["a.test.js > calc > subtracts"],
    "old-vitest": ["a.test.js > calc > subtracts"],
    "mocha": ['calc > hook > "before each" hook for "never"', "calc > subtracts"],
    "mocha-bail": ["calc > subtracts"],
    "rspec": ["calc fixed", "calc subtracts"],
    "unittest-failfast": ["test_u.T.test_error"],
    "unittest": [],  # one that unexpectedly passed is counted, and not named
    "dotnet-minimal": ["Calc.Tests.Subtracts"],
    "dotnet-normal": ["Calc.Tests.Subtracts"],
    "dotnet-platform": ["Calc.Tests.Subtracts"],
    "phpunit": [],
    "node24-spec": [],
}


def test_every_output_is_expected_to_say_something():
    assert set(OUTPUTS) == set(EXPECTED) | SILENT
    assert 100 < sum(output.recorded for output in OUTPUTS.values())
    runners = {runner for runner, *_ in EXPECTED.values()}
    recorded = {runner for name, (runner, *_) in EXPECTED.items() if OUTPUTS[name].recorded}
    assert {"dotnet test"} == runners - recorded  # does not install here


@pytest.mark.parametrize("name", EXPECTED)
def test_counts_of_an_output(name: str):
    run = spoken(OUTPUTS[name].text)
    assert EXPECTED[name] == (run.runner, *counts(run))
    assert (name in CUT_SHORT, COLLECTION_ERRORS.count(name)) == (run.cut_short, run.collection_errors)


@pytest.mark.parametrize("name", sorted(SILENT))
def test_an_output_without_counts(name: str):
    assert read_output(OUTPUTS[name].text) is None


@pytest.mark.parametrize("name", sorted({*NAMED, *SAME_NAMES}))
def test_outcomes_by_name(name: str):
    assert NAMED[SAME_NAMES.get(name, name)] == spoken(OUTPUTS[name].text).outcomes


@pytest.mark.parametrize("name", FAILING)
def test_failures_by_name(name: str):
    run = spoken(OUTPUTS[name].text)
    assert (None, FAILING[name]) == (run.outcomes, list(run.named("failed")))
    assert () == run.named("passed")


def test_failures_of_several_runners_have_all_their_names_or_none():
    assert ("alpha::tests::subtracts", "calc › subtracts") == joined_failures("cargo", "jest")
    assert ("calc › subtracts", "calc › subtracts (2)") == joined_failures("jest", "jest")
    assert () == joined_failures("cargo", "phpunit")


def joined_failures(*names: str) -> tuple[str, ...]:
    run = joined(spoken(OUTPUTS[name].text) for name in names)
    assert run is not None
    return run.named("failed")


@pytest.mark.parametrize("name", EXPECTED)
def test_outcomes_agree_with_counts(name: str):
    run = spoken(OUTPUTS[name].text)
    if run.outcomes is not None:
        assert (run.passed, run.failed) == (len(run.named("passed")), len(run.named("failed")))


@pytest.mark.parametrize("name", EXPECTED)
def test_colours_and_line_ends_do_not_matter(name: str):
    text = OUTPUTS[name].text
    expected = spoken(text)
    painted = "\n".join(f"\x1b[1m\x1b[38;5;208m{line}\x1b[0m\x1b(B\x1b[m" for line in text.split("\n"))
    assert expected == spoken(painted)
    assert expected == spoken(text.replace("\n", "\r\n"))


# ---------------------------------------------------------------------------------------------------- several, and forged


def test_runs_of_several_runners_are_summed():
    text = "".join(OUTPUTS[name].text for name in ("pytest-q", "jest", "cargo-ok"))
    run = spoken(text)
    assert ("pytest + jest + cargo test", 12, 5, 4, None) == (run.runner, *counts(run), run.outcomes)


def test_names_that_come_twice_are_told_apart_by_their_order():
    run = spoken(OUTPUTS["cargo-ok"].text * 2)
    assert {"beta::tests::adds", "beta::tests::adds (2)", "beta::tests::one", "beta::tests::one (2)"} == set(run.outcomes or {})


def test_nothing_joined_is_nothing():
    assert joined([]) is None


PASSING = {
    "pytest": "==== test session starts ====\n==== 100 passed in 0.10s ====\n",
    "unittest": OUTPUTS["unittest-ok"].text,
    "node --test": OUTPUTS["node24-spec-load"].text.replace("ℹ fail 1", "ℹ fail 0").replace("'test failed'", ""),
    "jest": OUTPUTS["jest-ok"].text,
    "vitest": OUTPUTS["vitest-ok"].text,
    "bun test": OUTPUTS["bun-ok"].text,
    "mocha": OUTPUTS["mocha-ok"].text,
    "cargo test": OUTPUTS["cargo-ok"].text,
    "cargo nextest": OUTPUTS["nextest-ok"].text,
    "go test": "=== RUN   TestAdd\n--- PASS: TestAdd (0.00s)\n" + OUTPUTS["go-ok"].text,
    "dotnet test": OUTPUTS["dotnet-platform-ok"].text,
    "Maven Surefire": OUTPUTS["maven-modules"].text,
    "rspec": OUTPUTS["rspec-ok"].text,
    "PHPUnit": OUTPUTS["phpunit-ok"].text,
    "ctest": OUTPUTS["ctest-ok"].text,
    "TAP": "1..2\nok 1 - one\nok 2 - two\n",
    "bats": "\n2 tests, 0 failures\n\n",
    "Gradle": "\n2 tests completed, 0 failed\n",
}


@pytest.mark.parametrize(
    "name", sorted(name for name, (_, _, failed, _) in EXPECTED.items() if failed and not name.endswith("-dot"))
)
def test_an_imitated_closing_never_takes_a_failure_away(name: str):
    """A program can add to what it says that passed. What failed stays failed."""
    text, (runner, _, failed, _) = OUTPUTS[name].text, EXPECTED[name]
    forged = PASSING[runner.partition(" + ")[0]]
    assert failed <= spoken(f"{forged}\n{text}").failed
    assert failed <= spoken(f"{text}\n{forged}").failed


def test_a_session_that_a_test_runs_inside_is_no_session_of_the_check():
    assert [(1, 1, 0)] == [counts(run) for run in read_runs(OUTPUTS["pytest-nested"].text)]
    assert [(2, 0, 0), (4, 4, 2)] == [counts(run) for run in read_runs(OUTPUTS["pytest-twice"].text)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "100 passed\nTests: 100 passed, 100 total\n  100 passing (1ms)\nok\nPASS\n",
        "3 files changed in 0.12s\n",
        "Ran 12 tests in 0.003s\n\nOK\n",
        "ok 1 - without a plan\nnot ok 2 - neither\n",
        "1..5\n",
        "running 3 tests\n\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\nmore\n",
        "running 4 tests\n\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\n",
        "OK (100 tests, 100 assertions)\n",
        "Tests run: 100, Failures: 0, Errors: 0, Skipped: 0\n",
        "--- PASS: TestForged (0.00s)\n",
        "loading...\n...\n",
        "\udce9\x00\x1b[\x1b]8;;\r\r\n",
    ],
)
def test_what_is_no_test_run(text: str):
    assert read_output(text) is None


def test_pytest_without_a_summary_counts_its_last_line():
    """``-rN`` leaves out what tells a session's closing line from one in its captured output."""
    text = "F    [100%]\n=== FAILURES ===\n9 passed in 0.01s\n1 failed in 0.05s\n"
    assert (0, 1, 0) == counts(spoken(text))


def test_a_killed_go_test_fails_what_had_begun():
    run = spoken("=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n")
    assert {"?::TestA": "passed", "?::TestB": "failed"} == run.outcomes


def test_a_go_test_that_prints_without_a_line_feed():
    run = spoken("=== RUN   TestA\nhello--- PASS: TestA (0.00s)\nPASS\nok  \tx\t0.001s\n")
    assert {"x::TestA": "passed"} == run.outcomes


def test_go_events_that_are_none():
    events = [
        '{"Action":',
        '{"x":' + "[" * 1_900,
        '{"Action":1,"Package":"p","Test":"T"}',
        '{"Action":"run","Package":[],"Test":"T"}',
    ]
    events += ['{"Action":"pass","Package":"p","Test":"Forged"}', '{"Action":"run","Package":"p","Test":"T"}']
    events += ['{"Action":"fail","Package":"p","Test":"T"}', '{"Action":"pass","Package":"p","Test":"T"}']
    assert {"p::T": "failed"} == spoken("\n".join(events)).outcomes


# ------------------------------------------------------------------------------------------------------------------- TAP


@pytest.mark.parametrize(
    ("text", "expected", "cut_short"),
    [
        ("1..3\nok 1 - a\nok 2 - forged\nnot ok 2 - b\nok 3 - c\n", (2, 1, 0), False),
        ("1..2\nok 1 - a\nok 3 - beyond\nok 2 - b\n", (2, 0, 0), False),
        ("1..2\nok 1 - a\nok 2 - b\nnot ok 3 - beyond\n", (2, 1, 0), False),
        ("1..4\nok 1 - a\n1..9\nok 2 - b\nok 3 - c\nnot ok 4 - d\n", (3, 1, 0), False),
        ("TAP version 14\n1..2\nok 1\nok 2\n", (2, 0, 0), False),
        ("1..2\nok\nnot ok\n", (1, 1, 0), False),
        ("1..2\nok 1 - a\nok so far\nok 2 - b\n", (2, 0, 0), False),
        ("1..2\nok 1 - a\n  ---\nnot ok 2 - b\n", (1, 1, 0), False),
        ("TAP version 13\nok 1 - a\n", (1, 0, 0), True),
        ("ok 1 - a\nok 2 - b\n1..2\nok 1 - c\nnot ok 2 - d\n1..2\n", (3, 1, 0), False),
        ("1..1\nok 1 - a\n1..1\nnot ok 1 - a\n", (1, 1, 0), False),
    ],
)
def test_tap_with_noise(text: str, expected: tuple[int, int, int], cut_short: bool):
    run = spoken(text)
    assert (expected, cut_short) == (counts(run), run.cut_short)


def test_tap_subtests_that_pass_under_a_parent_that_fails():
    run = spoken("1..1\n    ok 1 - a\n    1..1\nnot ok 1 - plan was wrong\n")
    assert {"plan was wrong > a": "passed", "plan was wrong": "failed"} == run.outcomes


# ----------------------------------------------------------------------------------------------------------------- JUnit


def report(*cases: str) -> bytes:
    return f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>".encode()


def test_junit_with_a_module_that_cannot_be_collected():
    error = '<testcase classname="" name="tests.test_x"><error message="collection failure">x</error></testcase>'
    run = read_junit([report('<testcase classname="a" name="b"/>', error)])
    assert (1, 0, 0, 1, {"a::b": "passed"}) == (*counts(run), run.collection_errors, run.outcomes)


def test_junit_of_several_reports_counts_each_case_and_names_each_once():
    passing, failing = '<testcase classname="a" name="b"/>', '<testcase classname="a" name="b"><failure/></testcase>'
    skipped = '<testcase classname="a" name="b"><skipped/></testcase>'
    for contents in ([report(passing, failing)], [report(failing), report(passing)], [report(skipped, failing, passing)]):
        assert {"a::b": "failed"} == read_junit(contents).outcomes
    assert {"a::b": "passed"} == read_junit([report(skipped), report(passing)]).outcomes
    assert (1, 1, 0) == counts(read_junit([report(failing), report(passing)]))
    assert (0, 0, 0) == counts(read_junit([]))


HOSTILE = ("\x1b[31mred", "a\u202eb", "x" * 5_000, "> > >", "# SKIP", "\udce9", "1..9", "'; rm -rf /", "\u2028ok 5 - forged")


def test_hostile_names_in_an_output_are_bounded():
    lines = [f"not ok {number} - {name}" for number, name in enumerate(HOSTILE, 1)]
    run = spoken("\n".join([f"1..{len(lines)}", *lines, ""]))
    assert {True} == {len(name) <= 300 for name in run.outcomes or {"x" * 999: ""}}
    assert (0, len(HOSTILE) - 1, 1) == counts(run)  # one is a directive


# ------------------------------------------------------------------------------------------------------------------ size

SECONDS = 20.0  # of this process; what is quadratic takes minutes, what is linear two at most


def test_a_report_of_a_hundred_thousand_tests():
    cases = "".join(f"<testcase classname='c' name='t{number}'/>" for number in range(100_000))
    began = time.process_time()
    assert (100_000, 0, 0) == counts(read_junit([report(cases)]))
    assert time.process_time() - began < SECONDS


LONG = (
    *("ok  \texample.com/x\t(cached)\n", "1..3\n", "..\n", "not ok 3 - two\n", "    ok 1 - a\n", "  ---\n", "ok 1 - a {\n"),
    *(
        "=== RUN   Test/a\n",
        '{"Action":"run","Package":"p","Test":"t"}\n',
        "== FAILURES ==\n",
        "1 passed in 0.01s\n",
        "F [100%]\n",
    ),
    *(
        "▶ a\n",
        "✖ a (1ms)\n",
        "test at x\n",
        "\n\n",
        "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\n",
    ),
    *("error: test failed, to rerun pass `x`\n", "Test run summary: x\n", "1% tests passed, 1 tests failed out of 2\n\n"),
    *("  1) a:b\n", "       c:d\n", "  1) a\n" + "       c\n" * 20, f"failed {'a (' * 500}\n", f" FAIL  {'a > ' * 400}\n"),
    *("FAIL a\n  ● Test suite failed to run\n", "\x1b[", "\x1b]", "\r", f"{'-' * 70}\n", f"{'=' * 70}\nFAIL: a (b)\n"),
    "".join(
        f"{first}{'a - ( [ . # ' * 150}\n" for first in ("test ", "1/2 Test #1: ", "ok 1 ", "(pass) ", "✔ ", "       PASS [ 1s] ")
    ),
)
ENDS = "".join(OUTPUTS[name].text for name in ("bun-ok", "cargo-ok", "ctest-ok", "nextest-ok", "node24-spec-load", "unittest-v"))


@pytest.mark.parametrize("line", LONG, ids=lambda line: re.sub(r"[^ -~]", "?", line.strip()[:20]))
def test_an_output_of_a_quarter_of_a_mebibyte(line: str):
    text = line * ((1 << 17) // len(line))  # twice
    began = time.process_time()
    read_output(f"{text}\n{ENDS}{text}")
    assert time.process_time() - began < SECONDS


# ------------------------------------------------------------------------------------------------- what is said of failures

NODE_TAP = """TAP version 13
# Subtest: adds
ok 1 - adds
  ---
  duration_ms: 1.9
  ...
# Subtest: more
    # Subtest: fine
    ok 1 - fine
      ---
      duration_ms: 1.9
      ...
    # Subtest: muls
    not ok 2 - muls
      ---
      duration_ms: 0.2
      error: '6 !== 8'
      stack: |-
        TestContext.<anonymous> (file:///x/calc.test.mjs:5:46)
        Test.run (node:internal/test_runner/test:796:25)
      ...
    1..2
not ok 2 - more
  ---
  error: '1 subtest failed'
  ...
# Subtest: last
ok 3 - last # SKIP
1..3
# tests 4
"""
NODE_FAILURES = """TAP version 13
# Subtest: more
    not ok 2 - muls
      ---
      error: '6 !== 8'
      stack: |-
        TestContext.<anonymous> (file:///x/calc.test.mjs:5:46)
      ...
not ok 2 - more
  ---
  error: '1 subtest failed'
  ...
"""


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (NODE_TAP, NODE_FAILURES),
        (
            "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n  no\n--- FAIL: TestB (0.00s)",
            "  no\n--- FAIL: TestB (0.00s)",
        ),
        ("test a ... ok\ntest b ... FAILED\ntest c ... ignored", "test b ... FAILED"),
        ("t.py::test_a PASSED   [ 50%]\nt.py::test_b FAILED   [100%]\nE   3", "t.py::test_b FAILED   [100%]\nE   3"),
        ("PASS tests/a.test.js\n\x1b[32m  ✓ adds (1 ms)\x1b[39m\n  ✕ subs (1 ms)\n  ● subs", "  ✕ subs (1 ms)\n  ● subs"),
        ("all of it\nis kept\n", None),
    ],
)
def test_what_passed_is_left_out(printed: str, expected: str | None):
    assert expected == without_passing(printed)


@pytest.mark.parametrize(
    "line", [" " * 300_000, "x" * 300_000 + " ... ", "::" * 150_000, "(" * 300_000, ("x" * 1990 + " ...\n") * 100]
)
def test_leaving_out_what_passed_takes_no_time(line: str):
    began = time.process_time()
    without_passing(f"not ok 1\n{line}")
    assert time.process_time() - began < SECONDS


# ------------------------------------------------------------------------------------------------------------ really run


def run_here(command: list[str], where: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=where,
        env={**os.environ, "CI": "1", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return f"{done.stdout}\n{done.stderr}"


def test_pytest_itself(tmp_path: Path):
    (tmp_path / "test_a.py").write_text(
        "import pytest\ndef test_good(): pass\ndef test_bad(): print('9 passed in 0.01s'); assert 0\n"
        "@pytest.mark.skip\ndef test_later(): pass\n@pytest.fixture\ndef broken(): 1 / 0\ndef test_error(broken): pass\n"
    )
    (tmp_path / "test_b.py").write_text("import nothing_of_this_name\n")
    options = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors", "--junit-xml=r.xml"]
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    for more in ([], ["-q"], ["-v", "--color=yes"]):
        run = spoken(run_here([*options, *more], tmp_path, **alone))
        assert ("pytest", 1, 2, 1, 1) == (run.runner, *counts(run), run.collection_errors)
        report = read_junit([(tmp_path / "r.xml").read_bytes()])
        assert (counts(run), run.collection_errors) == (counts(report), report.collection_errors)
        assert ("test_a::test_bad", "test_a::test_error") == report.named("failed")


def test_unittest_itself(tmp_path: Path):
    (tmp_path / "test_a.py").write_text(
        "import unittest\nclass A(unittest.TestCase):\n    def test_good(self): pass\n    def test_bad(self): self.fail()\n"
        "    @unittest.skip('x')\n    def test_later(self): pass\n"
    )
    (tmp_path / "test_b.py").write_text("import nothing_of_this_name\n")
    run = spoken(run_here([sys.executable, "-m", "unittest"], tmp_path))
    assert ("unittest", 1, 1, 1, 1) == (run.runner, *counts(run), run.collection_errors)
    run = spoken(run_here([sys.executable, "-m", "unittest", "-v"], tmp_path))
    assert {"test_a.A.test_bad": "failed", "test_a.A.test_good": "passed", "test_a.A.test_later": "skipped"} == run.outcomes


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("reporter", ["spec", "tap"])
def test_nodes_own_runner_itself(tmp_path: Path, reporter: str):
    (tmp_path / "a.test.js").write_text(
        "const { test, describe } = require('node:test');\n"
        "describe('s', () => { test('good', () => {}); test('bad', () => { throw new Error('no'); }); test.skip('later'); });\n"
        "test('second', () => {}); test('third', () => {});\n"
    )
    (tmp_path / "b.test.js").write_text("throw new Error('does not load');\n")
    run = spoken(run_here(["node", "--test", f"--test-reporter={reporter}", "a.test.js", "b.test.js"], tmp_path))
    assert ("node --test", 3, 1, 1, 1) == (run.runner, *counts(run), run.collection_errors)
    others = {"second": "passed", "third": "passed"}  # the file has the number of one of them
    assert {"s > bad": "failed", "s > good": "passed", "s > later": "skipped"} | others == run.outcomes
    assert not run.cut_short


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        *[(path, True) for path in ("conftest.py", "any/where/conftest.py", "src/sitecustomize.py", "web/jest.config.mjs")],
        *[(path, True) for path in ("web/.mocharc.json", "a/b/vitest.config.ts", ".config/nextest.toml", "x/phpunit.xml.dist")],
        *[(path, True) for path in ("setup.cfg", "tests/pyproject.toml", "tox.ini", "vite.config.ts", "GNUmakefile", "rakefile")],
        *[(path, True) for path in (".cargo/config.toml", "tests/.cargo/config.toml", ".mvn/maven.config")],
        *[(path, False) for path in ("lib/setup.cfg", "tests/data/pyproject.toml", "lib/.cargo/config.toml", "config.toml")],
        *[(path, True) for path in ("x-1.0.dist-info/entry_points.txt", "tests/x.EGG-INFO/entry_points.txt")],
        *[
            (path, True)
            for path in (".proverc", "web/nyc.config.js", "features/cucumber.mjs", "tox.toml", ".Rprofile", "a/.busted")
        ],
        *[(path, True) for path in ("src/test/resources/junit-platform.properties", "behave.ini")],
        *[(path, True) for path in (".npmrc", "web/.babelrc", "babel.config.js", "web/.swcrc", ".yarnrc.yml")],
        *[(path, False) for path in ("lib/x.egg-info/entry_points.txt", "x.egg-info/PKG-INFO", "entry_points.txt")],
        *[(path, True) for path in ("json.py", "random.pyc", "tests/os.cpython-312-x86_64-linux-gnu.so", "_pytest/__init__.py")],
        *[(path, False) for path in ("lib/json.py", "tests/json/data.py", "json.md", "jsonx.py", "my.conftest.py.txt", "json")],
    ],
)
def test_what_changes_how_tests_run(path: str, expected: bool):
    assert stands_in(path, Deciding.of(["tests/test_it.txt"])) is expected


PROTECTED = [
    *("tests/helpers.py", "tests/unit/test_a.py", "tests/pack/__init__.py", "tests/conftest.py", "tools/score.py", "check.py"),
    *("web/helper.ts", "web/old.js", "web/part/index.js", "web/package.json", "web/data.json"),
]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        *[
            (path, True)
            for path in ("tests/helpers/__init__.py", "tests/helpers.abi3.so", "tests/helpers.pyd", "check/__init__.py")
        ],
        *[(path, True) for path in ("tests/helpers/__init__.pyc", "tests/pack.py", "tests/pack/__init__.abi3.so", "check.pyc")],
        *[(path, True) for path in ("tests/unit.py", "tests/unit/__init__.py", "tests.py", "tools/__init__.py")],
        *[(path, True) for path in ("tools/yaml.py", "tools/yaml/__init__.py", "tests/yaml.so", "yaml.py", "tools/yaml.pyc")],
        *[
            (path, True)
            for path in ("web/helper.js", "web/helper.mjs", "web/helper.cjs", "web/helper.json", "web/helper/index.js")
        ],
        *[(path, True) for path in ("web/old.mjs", "web/part.js", "web/part/index.mjs", "web/part/package.json", "web/data.js")],
        *[
            (path, False)
            for path in ("tests/new_helpers.py", "tests/data/x.json", "tests/data/__init__.py", "tests/test_helpers.py")
        ],
        *[(path, False) for path in ("tests/helpers/data.txt", "tests/helpers/more.py", "tests/helpers", "lib/helpers.py")],
        *[(path, False) for path in ("tests/helpers.md", "tests/helpers.old.py", "src/yaml.py", "tools/yaml/data.py", "yaml.md")],
        *[(path, False) for path in ("app/__init__.py", "app/core/__init__.py", "mine/__init__.py", "mine.py", "tools/mine.py")],
        *[(path, False) for path in ("web/helper.d.ts", "web/helper.test.ts", "web/old.json", "web/helper.css", "web/new.js")],
        *[(path, False) for path in ("web/index.js", "web/yaml.js", "lib/helper.js", "web/helper.py", "index.js")],
    ],
)
def test_what_is_imported_instead_of_what_decides(path: str, expected: bool):
    """``yaml`` and ``mine`` are installed, and ``mine`` is a directory of the tree; ``app`` is the candidate's."""
    start = [*PROTECTED, "app/main.py", "mine/data.txt", "tools/mine/x.txt"]
    assert stands_in(path, Deciding.of(PROTECTED, start=start, installed={"yaml", "mine", "tests"})) is expected


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("tests/__init__.py", b"", True),
        ("tests/__init__.py", b'"""Tests."""\n# of it\n', True),
        ("tests/__init__.py", b"import os\n", False),
        ("tests/__init__.py", b"(", False),
        ("tests/__init__.py", None, False),
        ("tests/helpers/__init__.py", b"", False),
        ("json/__init__.py", b"", False),
        ("x.egg-info/entry_points.txt", b"[console_scripts]", True),
        ("x.egg-info/entry_points.txt", b"[pytest11]", False),
        ("setup.cfg", b"", False),
    ],
)
def test_what_changes_nothing_by_its_content(path: str, content: bytes | None, expected: bool):
    assert is_harmless(path, content, Deciding.of(PROTECTED)) is expected
