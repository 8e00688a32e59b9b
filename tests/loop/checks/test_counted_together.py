"""Checks that run several runners, or one several times, that print more than a log holds, or that leave old reports."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from counted_kit import PYTEST, check, counts, junit, write

from jumar.loop.checks import validators

TAP = "printf '1..3\\nok 1 - x\\nok 2 - y\\nnot ok 3 - z\\n'"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "a folder's work"
    directory.mkdir()
    return directory


# --------------------------------------------------------------------------------------------------- sessions of pytest


@pytest.mark.parametrize(("how", "joint"), [("-q", ";"), ("-qq", "&&"), ("> log 2>&1", "||"), ("-n 2 -p xdist", ";")])
def test_each_session_of_one_check_has_its_report(how, joint, work):
    outcome = {"&&": "pass", ";": "fail", "||": "fail"}[joint]
    write(work, "test_a.py", a="pass", b="pass", c=outcome)
    write(work, "test_b.py", a="pass", e="fail")
    found = check(work, f"{PYTEST} {how} test_a.py {joint} {PYTEST} {how} test_b.py")
    assert (4 if outcome == "pass" else 3, 5) == (counts(found)[0], counts(found)[3])
    assert ("test_a::test_a", "test_a::test_b", "test_a::test_c", "test_b::test_a", "test_b::test_e") == found.known
    assert "test_b::test_e" in found.failures


def test_sessions_in_several_folders_may_have_tests_of_one_name(work):
    for name in ("one", "two"):
        (work / name).mkdir()
        write(work / name, a="pass", b="fail" if name == "two" else "pass")
    start = check(work, f"(cd one && {PYTEST} -qq); cd two && {PYTEST} -qq")
    assert (("test_it::test_a", "test_it::test_a (2)", "test_it::test_b", "test_it::test_b (2)"), (3, 1, 0, 4, 0)) == (
        start.known,
        counts(start),
    )
    loop = check(work, f"for each in one two; do (cd $each && {PYTEST} -qq); done", start)
    assert (3, 1, 0, 4, 0) == counts(loop)


@pytest.mark.parametrize("command", ["{0} || {0}", "{0} || {0} -k bad", "{0}; PYTHONHASHSEED=1 {0}"])
def test_a_session_that_only_repeats_counts_once(command, work):
    """Else the tests of the second try would be missing as soon as the first one passes."""
    write(work, good="pass", bad="fail")
    command = command.format(f"{PYTEST} -qq")
    start = check(work, command)
    assert (("test_it::test_bad", "test_it::test_good"), (1, 1, 0, 2, 0)) == (start.known, counts(start))
    write(work, good="pass", bad="pass")
    now = check(work, command, start)
    assert (True, (2, 0, 0, 2, 0)) == (now.passed, counts(now))


@pytest.mark.parametrize("how", ["-q", "-qq"])
def test_a_session_that_a_test_runs_inside_is_none_of_the_check_s(how, work):
    inner = f"[{sys.executable!r}, '-m', 'pytest', '-qq', '-p', 'no:cacheprovider', 'inner']"
    (work / "inner").mkdir()
    write(work / "inner", x="pass", y="fail")
    (work / "test_outer.py").write_text(
        f"import subprocess\ndef test_a(): assert subprocess.run({inner}).returncode == 0\ndef test_b(): pass\n"
    )
    found = check(work, f"{PYTEST} {how} test_outer.py; {PYTEST} {how} inner")
    assert ("inner.test_it::test_x", "inner.test_it::test_y", "test_outer::test_a", "test_outer::test_b") == found.known
    assert (2, 2, 0, 4, 0) == counts(found)


def test_more_sessions_in_the_output_than_reports_are_counted_by_their_lines(work):
    write(work, "test_a.py", a="pass", b="pass", c="fail")
    write(work, "test_b.py", d="pass", e="fail")
    found = check(work, f"{PYTEST} test_a.py; env -u PYTEST_ADDOPTS {PYTEST} test_b.py")
    assert ((3, 2, 0, 5, 0), ()) == (counts(found), found.known)
    assert ("test_a.py::test_c", "test_b.py::test_e") == found.failures


def test_a_report_larger_than_a_pipe_holds(work):
    (work / "test_it.py").write_text("import pytest\n@pytest.mark.parametrize('n', range(1000))\ndef test_it(n): assert n % 2\n")
    found = check(work, f"{PYTEST} -qq --tb=no; {PYTEST} -qq --tb=no > log")
    assert (500, 500, 0, 1000, 0) == counts(found)


def test_no_pipe_is_left_where_the_command_never_ran_or_never_ended(work):
    for command in ("no-such-program", "sleep 60"):
        assert check(work, command, timeout=0.2).broken is not None
    assert not [path for path in work.parent.rglob("*") if path.is_fifo()]


# ------------------------------------------------------------------------------------------------------ several runners


@pytest.mark.parametrize(
    "command", [f"{TAP}; {PYTEST}", f"{PYTEST}; {TAP}; exit 1", f"{PYTEST} -qq; {TAP}", f"{TAP}; {PYTEST} > log"]
)
def test_what_another_runner_says_is_added_to_pytest_s_report(command, work):
    write(work, a="pass", b="pass")
    found = check(work, command)
    assert (("test_it::test_a", "test_it::test_b", "x", "y", "z"), ("z",)) == (found.known, found.failures)
    assert (4, 1, 0, 5, 0) == counts(found)


def test_what_a_failing_test_printed_is_no_other_runner(work):
    noise = "1..2\\nok 1 - a\\nok 2 - b\\n" + "-" * 70 + "\\nRan 3 tests in 0.001s\\n\\nOK\\n"
    (work / "test_it.py").write_text(f"def test_a(): print('{noise}'); assert 0\ndef test_b(): pass\n")
    for how in ("", "-qq", "-v"):
        found = check(work, f"{PYTEST} {how}; {TAP}; exit 1")
        assert ((3, 2, 0, 5, 0), ("test_it::test_a", "z")) == (counts(found), found.failures)


def test_a_file_is_added_to_what_others_said_and_stands_for_the_runner_that_wrote_it(work):
    write(work, a="pass", b="fail")
    jest = "Test Suites: 1 failed, 1 total\nTests:       1 failed, 1 skipped, 2 passed, 4 total\nSnapshots:   0 total\n"
    (work / "said").write_text(jest)
    (work / "next").write_text(junit(j="pass", k="pass", l="fail", m="skip"))
    found = check(work, f"{PYTEST}; cat said; cp next junit.xml; {TAP}; exit 1")
    assert (5, 3, 0, 8, 0) == counts(found)
    assert ("m::l", "test_it::test_b", "z") == found.failures


@pytest.mark.skipif(shutil.which("bats") is None, reason="bats is not installed")
def test_bats_itself_beside_pytest(work):
    (work / "a.bats").write_text('@test "good" { true; }\n@test "bad" { false; }\n')
    write(work, a="pass")
    for command in (f"bats a.bats; {PYTEST}", f"{PYTEST} && bats a.bats"):
        found = check(work, command)
        assert ((2, 1, 0, 3, 0), ("bad",)) == (counts(found), found.failures)
    assert "although no test failed" not in found.output_tail


# --------------------------------------------------------------------------------------------------------- long outputs


def test_every_test_of_a_long_output_is_counted(work):
    (work / "tap.py").write_text(
        "print('1..100000')\nfor n in range(1, 100001): print('not ok' if n == 50000 else 'ok', n, '- adds', n)\n"
    )
    start = check(work, f"{sys.executable} tap.py; exit 1", known="each")
    assert ((99_999, 1, 0, 100_000, 0), ("adds 50000",)) == (counts(start), start.failures)
    assert "jumar:" not in start.output_tail
    log = work.parent / f"{work.name}.step" / "check-tests.log"
    assert 1 << 20 >= log.stat().st_size - 200


def test_what_was_not_read_is_told_and_is_no_fail_fast(work, monkeypatch):
    monkeypatch.setattr(validators, "READ_OUTPUT", 4_000)
    command = f'{sys.executable} -c \'print("1..900"); [print("ok", n) for n in range(1, 901)]\''
    found = check(work, command, output_cap=4_000)
    assert 900 > counts(found)[0]
    assert "longer than is read" in found.output_tail
    assert "fail-fast" not in found.output_tail


@pytest.mark.parametrize("read", [16 << 20, 50_000])
def test_the_numbers_that_close_an_output_hold_where_the_rest_is_not_whole(read, work, monkeypatch):
    monkeypatch.setattr(validators, "READ_OUTPUT", read)
    (work / "test_it.py").write_text(
        "import unittest\nclass A(unittest.TestCase): pass\n"
        "for n in range(1000): setattr(A, f'test_{n}', lambda self, n=n: self.assertLess(n, 250))\n"
    )
    found = check(work, f"{sys.executable} -m unittest -q", output_cap=4_000)
    assert (250, 750, 0, 1000, 0) == counts(found)


# ---------------------------------------------------------------------------------------------------------- old reports


@pytest.mark.parametrize("what", ["chmod 600 junit.xml", "touch junit.xml", "touch -a junit.xml", "cat junit.xml"])
def test_a_report_that_was_only_touched_is_none_of_this_run(what, work):
    (work / "junit.xml").write_text(junit(a="pass", b="pass"))
    os.utime(work / "junit.xml", (1e9, 1e9))
    assert None is check(work, f"{what}; exit 1").tests


@pytest.mark.parametrize("what", ["cp next junit.xml", "cat next > junit.xml", "mv next junit.xml"])
def test_a_report_that_was_written_again_is_of_this_run(what, work):
    for name in ("junit.xml", "next"):
        (work / name).write_text(junit(a="pass", b="pass"))
        os.utime(work / name, (1e9, 1e9))
    assert (2, 0, 0, 2, 0) == counts(check(work, what))


# ---------------------------------------------------------------------------------------------------- what is no report


def test_dots_are_no_report(work):
    assert None is check(work, "echo .....; exit 1").tests
    assert None is check(work, "echo ..X..; echo; exit 1").tests
    assert (4, 1, 0, 5, 0) == counts(check(work, "true node --test --test-reporter=dot; echo ..X..; exit 1"))


@pytest.mark.parametrize(
    ("command", "told"),
    [
        *((f"python -m unittest {option}", option != "-b") for option in ("-f", "-qf", "--failfast", "-b")),
        *((f"npx mocha {option}", option != "-f x") for option in ("-b", "--bail test/", "-f x")),
    ],
)
def test_a_runner_that_does_not_say_so_is_known_to_stop_at_a_failure_by_its_command(command, told, work):
    (work / "said").write_text(f"{'-' * 70}\nRan 2 tests in 0.003s\n\nFAILED (failures=1)\n")
    found = check(work, f"cat said; true || {command}; exit 1")
    assert told == ("cut short (as by -x" in found.output_tail)


def test_known_tests_are_named_when_none_runs_any_more(work):
    write(work, a="pass", b="fail")
    start = check(work, PYTEST)
    for text in ("", "import no_such_module\n", "def test_a(:\n"):
        (work / "test_it.py").write_text(text)
        for how in ("", "-qq"):
            gone = check(work, f"{PYTEST} {how}", start)
            assert (("test_it::test_a", "test_it::test_b"), (0, 0, 2, 2, 0)) == (gone.missing, counts(gone))
