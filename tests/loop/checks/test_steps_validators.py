"""Validators: who passes, who fails, and who is broken."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from steps_kit import context, wild

from jumar.core.files import UnreadableFileError
from jumar.errors import ConfigError
from jumar.loop.checks import validators
from jumar.loop.checks.runners import read_junit
from jumar.loop.checks.validators import CommandValidator, PythonValidator
from jumar.model import CheckResult


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


# -------------------------------------------------------------------------------------------------------- commands


def test_exit_code_0_passes(work):
    step = context(work)
    check = CommandValidator("tests", "echo fine").validate(step)
    assert CheckResult(name="tests", passed=True, exit_code=0, seconds=check.seconds, output_tail="fine\n") == check
    assert "fine\n" == (step.log_directory / "check-tests.log").read_text()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("command", "before", "passes"),
    [
        ("make test", "", False),
        ("make -j2 test", "", False),
        ("make test", "make: 'test' is up to date.\n", True),  # at the start too
        ("make built", "", True),  # its rule makes it
        ("make test && echo ran", "", True),
        ("make other", "", True),
    ],
)
def test_a_rule_of_make_that_runs_nothing_as_its_name_is_there_does_not_pass(command, before, passes, work):
    (work / "Makefile").write_text("test:\n\tfalse\nbuilt:\n\tfalse\nother: test\n")
    (work / "test").mkdir()
    (work / "built").touch()
    step = replace(context(work), baseline_checks=(CheckResult(name="tests", passed=False, exit_code=2, output_tail=before),))
    check = CommandValidator("tests", command).validate(step)
    assert (passes, 0) == (check.passed, check.exit_code)
    assert passes is ("no test ran: test is there, and make takes it for made" not in check.output_tail)


@pytest.mark.parametrize(("command", "code"), [("exit 1", 1), ("exit 255", 255), ("kill -SEGV $$", -11), (wild("fail"), 3)])
def test_another_exit_code_fails(command, code, work):
    check = CommandValidator("tests", command).validate(context(work))
    assert (False, None, code) == (check.passed, check.broken, check.exit_code)


@pytest.mark.parametrize(
    ("command", "broken"),
    [
        ("no-such-tool --check", "exit code 127: a command in it was not found"),
        (["no-such-tool"], "the command 'no-such-tool' was not found: check its spelling and the PATH that jumar sees"),
        ("./plain", "exit code 126: a command in it is not executable"),
        (["./plain"], "the command './plain' is not executable: `chmod +x` it, or name its interpreter"),
        (["sh", "-c", "nope"], "exit code 127: a command in it was not found"),
    ],
)
def test_a_validator_that_cannot_run_is_broken(command, broken, work):
    (work / "plain").write_text("exit 0\n")
    check = CommandValidator("tests", command, baseline="no_new_failures").validate(context(work))
    assert (False, broken) == (check.passed, check.broken)


def test_a_validator_that_hangs_or_is_interrupted_is_broken(work):
    assert "timed out after 0.3 s" == CommandValidator("tests", wild("hang"), timeout=0.3).validate(context(work)).broken
    stop = threading.Event()
    stop.set()
    assert "interrupted" == CommandValidator("tests", wild("hang"), stop=stop).validate(context(work)).broken


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"command": ""}, "check 'tests': the command is empty"),
        ({"command": "x", "timeout": 0}, "check 'tests': timeout = 0 should be"),
        ({"command": "x", "junit": "../r.xml"}, r"check 'tests': the path '\.\./r.xml' should lie below"),
        ({"command": "x", "failures": "("}, r"check 'tests': failures = '\(' is not a regular expression"),
    ],
)
def test_wrong_configuration_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        CommandValidator("tests", **cast("Any", options))


# -------------------------------------------------------------------------------------------------------- baseline


def printing(work: Path, text: str, code: int) -> str:
    (work / "output").write_text(text)
    return f"cat output; exit {code}"


def from_start(work: Path, start: tuple[str, int], now: tuple[str, int], **options) -> CheckResult:
    """Check iteration 0 with one output and exit code, then iteration 1 with another."""
    options = cast("Any", {"baseline": "no_new_failures"} | options)
    first = CommandValidator("tests", printing(work, *start), **options).validate(context(work, iteration=0))
    step = replace(context(work), baseline_checks=(CheckResult(name="other", passed=True), first))
    return CommandValidator("tests", printing(work, *now), **options).validate(step)


TWO = "FAILED tests/test_a.py::test_one - assert 1 == 2\nFAILED tests/test_a.py::test_two[a b - c]\nERROR tests/test_b.py\n"


@pytest.mark.parametrize(
    ("start", "now", "passed", "new"),
    [
        ((TWO, 1), (TWO, 1), True, ()),
        ((TWO, 1), ("FAILED tests/test_a.py::test_one - another reason\n", 1), True, ()),
        ((TWO, 1), (TWO + "FAILED tests/test_c.py::test_new\n", 1), False, ("tests/test_c.py::test_new",)),
        ((TWO, 1), ("FAILED tests/test_c.py::test_new\n", 1), False, ("tests/test_c.py::test_new",)),
        ((TWO, 1), ("all good\n", 0), True, ()),
        ((TWO, 1), ("usage: pytest\n", 4), False, ()),
        ((TWO, 1), ("", 1), False, ()),
        ((TWO, 1), ("FAILED tests/test_a.py::test_one\nSegmentation fault\n", 139), False, ()),
        (("all good\n", 0), ("FAILED tests/test_a.py::test_one\n", 1), False, ("tests/test_a.py::test_one",)),
        (("all good\n", 0), ("no names\n", 1), False, ()),
        (("no names\n", 2), ("no names\n", 2), True, ()),
        (("no names\n", 2), ("no names\n", 3), False, ()),
        (("no names\n", 1), ("FAILED tests/test_a.py::test_one\n", 1), False, ()),
    ],
)
def test_no_new_failures(start, now, passed, new, work):
    check = from_start(work, start, now)
    assert (passed, new, None) == (check.passed, check.new_failures, check.broken)
    assert now[1] == 0 or "[jumar: " in check.output_tail


def test_what_was_compared_is_said(work):
    assert from_start(work, (TWO, 1), (TWO, 1)).output_tail.endswith("[jumar: 3 failing tests, 0 of them new since the start]\n")
    same = from_start(work, ("no names", 2), ("no names", 2)).output_tail
    assert (
        "no names\n[jumar: its output names no failing test; it passes, because the start failed with the same exit code]\n"
        == same
    )
    other = from_start(work, ("no names", 2), ("no names", 3)).output_tail
    assert other.endswith("; it fails, because the start was not like that]\n")


def test_the_start_itself_passes_and_its_failures_are_kept(work):
    command = printing(work, TWO, 1)
    check = CommandValidator("tests", command, baseline="no_new_failures").validate(context(work, iteration=0))
    expected = ("tests/test_a.py::test_one", "tests/test_a.py::test_two[a b", "tests/test_b.py")
    assert (True, expected, ()) == (check.passed, check.failures, check.new_failures)


def test_without_a_baseline_failures_are_named_and_count(work):
    check = CommandValidator("tests", printing(work, TWO, 1)).validate(context(work))
    assert (False, 3, ()) == (check.passed, len(check.failures), check.new_failures)


@pytest.mark.parametrize("baseline_checks", [(), (CheckResult(name="tests", passed=False, broken="timed out"),)])
def test_without_a_start_to_compare_with_every_failure_counts(baseline_checks, work):
    step = replace(context(work), baseline_checks=baseline_checks)
    check = CommandValidator("tests", printing(work, TWO, 1), baseline="no_new_failures").validate(step)
    assert (False, 3, 3) == (check.passed, len(check.failures), len(check.new_failures))


def test_failures_are_found_in_colour_and_in_standard_error(work):
    coloured = printing(work, "\x1b[31mFAILED\x1b[0m tests/\x1b[1mtest_a.py\x1b[0m::test_x\x1b[0m - boom\n", 1)
    assert ("tests/test_a.py::test_x",) == CommandValidator("tests", coloured).validate(context(work)).failures
    quiet = "echo 'FAILED a.py::b' >&2; exit 1"
    assert ("a.py::b",) == CommandValidator("tests", quiet).validate(context(work)).failures


@pytest.mark.parametrize(
    "text", ["ERROR    root:x.py:5 message\n", "FAILED\n", "ERROR: x\n", "FAILED to start\n", "xFAILED a.py::b\n"]
)
def test_lines_that_name_no_test(text, work):
    assert () == CommandValidator("tests", printing(work, text, 1)).validate(context(work)).failures


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [(r"^not ok \d+ - (?P<id>.*)$", ("b c",)), (r"^not ok \d+ - (.*)$", ("b c",)), (r"not ok \d+", ("not ok 2",))],
)
def test_a_pattern_of_one_s_own(pattern, expected, work):
    command = printing(work, "ok 1 - a\nnot ok 2 - b c\n", 1)
    assert expected == CommandValidator("tests", command, failures=pattern).validate(context(work)).failures


def test_output_that_is_not_read_whole_names_no_tests(work, monkeypatch):
    monkeypatch.setattr(validators, "READ_OUTPUT", 0)
    check = from_start(work, (TWO, 1), (TWO + "x\n" * 10_000, 1), output_cap=5_000)
    assert not check.passed
    assert "it printed more than is read" in check.output_tail


def test_hostile_output_takes_bounded_time(work):
    text = "FAILED a::" + " " * 500_000 + "x\n" + "FAILED " + "a" * 400_000
    assert CommandValidator("tests", printing(work, text, 1)).validate(context(work)).seconds < 60


def test_a_real_pytest_run(work):
    (work / "test_it.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "@pytest.mark.parametrize('x', [1, 2])\ndef test_bad(x): assert x == 1, 'FAILED nothing'\n"
        "@pytest.fixture\ndef broken(): raise ValueError\n"
        "def test_error(broken): pass\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--junitxml=report.xml",
        "test_it.py",
    ]
    step = context(work, iteration=0, base={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    start = CommandValidator("tests", command, baseline="no_new_failures").validate(step)
    assert (True, ("test_it::test_bad[2]", "test_it::test_error")) == (start.passed, start.failures)
    by_report = CommandValidator("tests", command, junit="report.xml").validate(step)
    assert (False, start.failures) == (by_report.passed, by_report.failures)
    by_output = CommandValidator("tests", command, known="none").validate(step)
    assert (False, ("test_it.py::test_bad[2]", "test_it.py::test_error")) == (by_output.passed, by_output.failures)
    assert by_output.tests is None


# ----------------------------------------------------------------------------------------------------------- JUnit


def report(*failing: str, passing: int = 1) -> str:
    cases = "".join(f'<testcase classname="s" name="{name}"><failure message="m">x</failure></testcase>' for name in failing)
    cases += "".join(f'<testcase classname="s" name="ok{number}"/>' for number in range(passing))
    return f'<?xml version="1.0"?><testsuites><testsuite name="x">{cases}</testsuite></testsuites>'


def reporting(work: Path, content: str, code: int = 1) -> str:
    (work / "next.xml").write_text(content)
    return f"cp next.xml report.xml; exit {code}"


def test_failures_from_a_report(work):
    validator = CommandValidator("tests", reporting(work, report("b", "a")), junit="report.xml")
    assert ("s::a", "s::b") == validator.validate(context(work)).failures
    again = CommandValidator("tests", reporting(work, report("a")), junit="*.xml")
    (work / "next.xml").rename(work / "next")
    assert ("s::a",) == replace_command(again, "cp next report.xml; exit 1").validate(context(work)).failures


def replace_command(validator: CommandValidator, command: str) -> CommandValidator:
    validator._command = command
    return validator


def test_a_report_that_is_left_from_before_does_not_count(work):
    options: Any = {"junit": "report.xml", "baseline": "no_new_failures"}
    start = CommandValidator("tests", reporting(work, report("a")), **options).validate(context(work, iteration=0))
    step = replace(context(work), baseline_checks=(start,))
    crashed = CommandValidator("tests", "exit 1", **options).validate(step)
    assert (False, ()) == (crashed.passed, crashed.failures)
    assert "the command did not write 'report.xml'; it fails" in crashed.output_tail
    same = CommandValidator("tests", reporting(work, report("a")), **options).validate(step)
    assert (True, ("s::a",)) == (same.passed, same.failures)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("not xml", "not readable as XML"),
        ("<testsuite>", "not readable as XML"),
        ("<testsuite/>", "its report names no failing test"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "it declares a document type (a), which a report has no use for"),
    ],
)
def test_a_report_that_cannot_be_read_is_told(content, why, work):
    validator = CommandValidator("tests", reporting(work, content), junit="report.xml", baseline="no_new_failures")
    check = validator.validate(context(work))
    assert not check.passed
    step = replace(context(work), baseline_checks=(CheckResult(name="tests", passed=False, exit_code=1),))
    assert why in validator.validate(step).output_tail


def test_a_report_that_leads_out_or_is_too_long_names_no_tests(work, tmp_path, monkeypatch):
    (tmp_path / "theirs.xml").write_text(report("a"))
    (work / "report.xml").symlink_to(tmp_path / "theirs.xml")
    step = replace(context(work), baseline_checks=(CheckResult(name="tests", passed=False, exit_code=1, failures=("x",)),))
    check = CommandValidator("tests", "exit 1", junit="report.xml", baseline="no_new_failures").validate(step)
    assert (False, ()) == (check.passed, check.failures)
    assert "'report.xml' leads out of the working directory; it fails" in check.output_tail
    monkeypatch.setattr(validators, "_MAX_FAILURES", 2)
    check = CommandValidator("tests", printing(work, TWO, 1), baseline="no_new_failures").validate(step)
    assert (False, ()) == (check.passed, check.failures)
    assert "more than 2 tests fail; it fails" in check.output_tail


def test_junit_counts():
    content = b"""<testsuites xmlns="urn:x"><testsuite><testcase name="a"/><testcase classname="k" name="b"><skipped/></testcase>
      <testcase file="f.py" name="c"><error/></testcase><testcase name="d"><failure/><error/></testcase>
      <testsuite><testcase classname="k" name="e"><system-out>x</system-out></testcase></testsuite></testsuite></testsuites>"""
    found = read_junit([content])
    assert (2, 2, 1, ("d", "f.py::c")) == (found.passed, found.failed, found.skipped, found.named("failed"))


def test_a_long_identity_keeps_its_difference():
    names = [f"{'x' * 1_000}{number}" for number in range(3)]
    failures = read_junit([report(*names).encode()]).named("failed")
    assert 3 == len(failures)
    assert {False} == {len(name) > 300 for name in failures}


BOMB = (
    '<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;">'
    '<!ENTITY lol3 "&lol2;&lol2;&lol2;&lol2;&lol2;&lol2;&lol2;&lol2;&lol2;&lol2;">]><lolz>&lol3;</lolz>'
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_never_expanded(encoding):
    content = f'<?xml version="1.0" encoding="{encoding}"?>{BOMB}'.encode(encoding)
    with pytest.raises(UnreadableFileError, match="declares a document type"):
        read_junit([content])
    external = b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>'
    with pytest.raises(UnreadableFileError, match="declares a document type"):
        read_junit([external])
    with pytest.raises(UnreadableFileError, match="not readable as XML"):
        read_junit([b'<?xml version="1.0" encoding="no-such-encoding"?><a/>'])


# ------------------------------------------------------------------------------------------------ Python functions

MODULE = """
import sys, time
def good(context): return True
def silent(context): print("looked"); return None
def bad(context): return False, "too long"
def asserts(context): assert (context.workdir / "x").exists(), "x is missing"
def bare(context): assert False
def raises(context): raise OSError("disk")
def wrong(context): return 1
def hangs(context): time.sleep(300)
"""


@pytest.mark.parametrize(
    ("name", "passed", "tail", "broken"),
    [
        ("good", True, "", None),
        ("silent", True, "looked\n", None),
        ("bad", False, "too long\n", None),
        ("asserts", False, "x is missing\n", None),
        ("bare", False, "assertion failed\n", None),
        ("raises", False, "", "checks:raises: OSError: disk"),
        ("wrong", False, "", "checks:wrong: TypeError: it returned a value of type int; return True, False"),
        ("hangs", False, "", "timed out after 1 s"),
        ("none", False, "", "checks:none cannot be loaded: AttributeError: module 'checks' has no 'none'"),
    ],
)
def test_functions_in_a_child_process(name, passed, tail, broken, work, tmp_path):
    (tmp_path / "checks.py").write_text(MODULE)
    validator = PythonValidator("style", f"checks:{name}", search=(tmp_path,), timeout=1.0 if name == "hangs" else 60.0)
    check = validator.validate(context(work))
    assert (passed, "style") == (check.passed, check.name)
    assert check.output_tail.endswith(tail)
    assert (broken is None) == (check.broken is None)
    assert (check.broken or "").startswith(broken or "")
