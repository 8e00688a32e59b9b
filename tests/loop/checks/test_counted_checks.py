"""Checks that run tests, with real pytest and with files: how many pass, which are missing, and where that is read."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from counted_kit import BASE, PYTEST, check, counts, junit, write

from jumar.loop.checks.broken import trouble_of_check
from jumar.loop.checks.runners.suite import count_notes
from jumar.model import CheckResult


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "a folder's work"
    directory.mkdir()
    return directory


def test_pytest_names_its_tests_and_later_runs_are_held_against_them(work):
    write(work, a="pass", b="fail", c="fail", d="skip")
    start = check(work, PYTEST)
    assert (False, 1, (1, 2, 0, 3, 0)) == (start.passed, start.exit_code, counts(start))
    assert ("test_it::test_a", "test_it::test_b", "test_it::test_c") == start.known
    assert pytest.approx(1 / 3) == start.share

    write(work, a="skip", b="pass", new="pass", worse="fail", d="skip")
    now = check(work, PYTEST, CheckResult(name="other", passed=True), start)
    assert (1, 1, 2, 4, 1) == counts(now)
    assert ("test_it::test_worse",) == now.failures == now.added
    assert ("test_it::test_a", "test_it::test_c") == now.missing
    assert () == now.known

    write(work, b="pass", c="pass")
    green = check(work, PYTEST, start)
    assert (0, False, 2 / 3) == (green.exit_code, green.passed, green.share)
    assert "[jumar: 1 known test did not run: test_it::test_a]\n" in green.output_tail


def test_tests_become_known_when_the_first_ones_run(work):
    (work / "test_it.py").write_text("def test_a(:\n")
    start = check(work, PYTEST)
    assert (2, None, 0.0) == (start.exit_code, start.tests, start.share)
    write(work, a="pass", b="fail")
    first = check(work, PYTEST, start)
    assert (("test_it::test_a", "test_it::test_b"), (1, 1, 0, 2, 0)) == (first.known, counts(first))
    (work / "test_it.py").write_text("def test_a(:\n")
    later = check(work, PYTEST, start, first)
    assert (0, 0, 2, 2, 0) == counts(later)
    assert "1 file could not be loaded" in later.output_tail


@pytest.mark.parametrize(
    ("settings", "command", "options"),
    [
        ("", f"{PYTEST} --junitxml=theirs.xml", ""),
        ("", f"{PYTEST} --junit-xml 'theirs.xml'", ""),
        ("", PYTEST, "--junitxml=theirs.xml"),
        ("[pytest]\naddopts = -ra --junitxml=theirs.xml\n", PYTEST, ""),
    ],
)
def test_a_report_of_the_person_s_own_is_still_written_and_read(settings, command, options, work):
    (work / "pytest.ini").write_text(settings or "[pytest]\n# --junitxml=x\n")
    write(work, a="pass", b="fail")
    found = check(work, command, base=BASE | ({"PYTEST_ADDOPTS": options} if options else {}))
    assert (work / "theirs.xml").exists()
    assert ("test_it::test_a", "test_it::test_b") == found.known
    assert (1, 1, 0, 2, 0) == counts(found)


def test_settings_that_are_nothing_but_line_feeds_take_no_time_to_look_through(work: Path) -> None:
    for name in ("pyproject.toml", "setup.cfg", "tox.ini"):
        (work / name).write_text("\n" * 900_000)
    began = time.monotonic()
    check(work, "true")
    assert time.monotonic() - began < 30  # it was hours


def test_a_report_that_a_script_asks_for_elsewhere_costs_the_names_only(work):
    (work / "run.sh").write_text(f"exec {PYTEST} --junitxml=elsewhere/x.xml\n")
    write(work, a="pass", b="fail")
    found = check(work, "sh run.sh")
    assert ((), (1, 1, 0, 2, 0)) == (found.known, counts(found))
    assert ("test_it.py::test_b",) == found.failures


def test_a_report_of_the_person_s_own_may_lie_anywhere(work, tmp_path):
    write(work, a="pass", b="fail")
    expected = (("test_it::test_a", "test_it::test_b"), (1, 1, 0, 2, 0))
    for command in (f"{PYTEST} --junitxml='{tmp_path}/out/x.xml'", f"{PYTEST} --junitxml=$HOME/y.xml"):
        found = check(work, command, base=BASE | {"HOME": str(tmp_path)})
        assert expected == (found.known, counts(found))
    assert (tmp_path / "out/x.xml").exists()
    stale = check(work, f"true --junitxml='{tmp_path}/out/x.xml'")
    assert None is stale.tests


def test_what_else_the_person_asks_of_pytest_stays(work):
    write(work, a="pass", b="fail", c="pass")
    found = check(work, PYTEST, base=BASE | {"PYTEST_ADDOPTS": "-k 'a or b'"})
    assert ("test_it::test_a", "test_it::test_b") == found.known


@pytest.mark.parametrize(
    ("flags", "settings", "expected"),
    [
        ("", "", "-v"),
        ("-mod=mod", "GOFLAGS=-tags=x\n", "-mod=mod -v"),
        ("-v -race", "", "-v -race"),
        ("-json", "", "-json"),
        ("", "GOPROXY=off\n", "-v"),
        ("", "GOPROXY=off\nGOFLAGS=-mod=vendor\n", ""),
    ],
)
def test_go_is_asked_to_name_its_tests(flags, settings, expected, work, tmp_path):
    (tmp_path / "go").mkdir()
    (tmp_path / "go/env").write_text(settings)
    asked = 'echo "flags $GOFLAGS."'
    base = {name: value for name, value in BASE.items() if name not in {"GOENV", "GOFLAGS"}} | {"XDG_CONFIG_HOME": str(tmp_path)}
    base |= {"GOFLAGS": flags} if flags else {}
    assert f"flags {expected}.\n" == check(work, asked, base=base).output_tail
    assert f"flags {flags}.\n" == check(work, asked, base=base, junit="x.xml").output_tail


@pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
def test_go_itself_names_its_tests(work):
    (work / "go.mod").write_text("module calc\n")
    (work / "calc_test.go").write_text(
        'package calc\nimport "testing"\nfunc TestGood(t *testing.T) {}\nfunc TestBad(t *testing.T) { t.Fail() }\n'
        'func TestLater(t *testing.T) { t.Skip("later") }\n'
    )
    found = check(work, "go test ./...", base={name: value for name, value in BASE.items() if name != "GOFLAGS"})
    assert (("calc::TestBad", "calc::TestGood"), (1, 1, 0, 2, 0)) == (found.known, counts(found))
    assert ("calc::TestBad",) == found.failures


@pytest.mark.parametrize("place", ["plain", "a folder's work"])
def test_pytest_without_the_plugin_is_run_once_more_without_being_asked(place, tmp_path):
    work = tmp_path / place
    work.mkdir()
    write(work, a="pass", b="fail")
    found = check(work, f"echo run >> runs; {PYTEST} -p no:junitxml")
    assert (1, (1, 1, 0, 2, 0), ()) == (found.exit_code, counts(found), found.known)
    assert "run\nrun\n" == (work / "runs").read_text()
    usage = check(work, f"echo run >> runs; {PYTEST} --no-such-option")
    assert (4, None) == (usage.exit_code, usage.tests)
    assert 3 == len((work / "runs").read_text().split())


@pytest.mark.parametrize(
    ("content", "command", "why"),
    [
        ("", PYTEST, "no tests ran"),
        ("def f(:\n", PYTEST, "does not collect: SyntaxError: invalid syntax (test_it.py, line 1)"),
        ("import not_there\n", PYTEST, "does not collect: ModuleNotFoundError: No module named 'not_there'"),
        ("", f"{sys.executable} -m unittest -q", "no tests ran"),
        ("", "echo 'no luck'; false", ""),
    ],
)
def test_a_runner_that_comes_to_no_test_says_why(work, content, command, why):
    (work / "test_it.py").write_text(content)
    found = check(work, command)
    assert (None, why) == (found.tests, found.note)
    assert [f"check 'c': {why}"] * bool(why) == [note for _, note in count_notes([replace(found, name="c")])]


def test_a_run_that_stops_at_its_first_failure_says_so(work):
    write(work, a="fail", b="pass")
    found = check(work, f"{PYTEST} -x")
    assert (0, 1, 0, 1, 0) == counts(found)
    assert "cut short (as by -x" in found.output_tail


def test_a_gate_that_refuses_passing_tests_is_one_more_failure(work):
    write(work, a="pass", b="pass")
    found = check(work, f"{PYTEST} && exit 2")
    assert ((2, 1, 0, 3, 0), ("exit code 2",)) == (counts(found), found.failures)
    again = check(work, f"{PYTEST} && exit 2", found)
    assert (2, 1, 0, 3, 0) == counts(again), "it is held against the tests, not against itself"


def test_failures_with_exit_code_0_pass_and_are_told(work):
    write(work, a="pass", b="fail")
    found = check(work, f"{PYTEST} || true")
    assert (True, 0.5, ("test_it::test_b",)) == (found.passed, found.share, found.failures)
    assert "[jumar: exit code 0 although 1 test failed]" in found.output_tail


@pytest.mark.parametrize("baseline", [None, "no_new_failures"])
def test_an_exit_code_0_that_was_not_the_starts_is_not_believed_against_failing_tests(work, baseline):
    write(work, a="pass", b="fail")
    start = check(work, PYTEST, baseline=baseline)
    write(work, a="fail", b="fail")
    forged = f"{PYTEST} || true"
    assert check(work, forged, start, baseline=baseline).passed is False
    told = check(work, forged, baseline=baseline)
    assert (told.passed, check(work, forged, told, baseline=baseline).passed) == (True, True)


def test_each_run_is_counted_by_itself_where_names_change(work):
    write(work, a="pass", b="fail")
    start = check(work, PYTEST, known="each")
    assert (((1, 1, 0, 2, 0), ()), 0) == ((counts(start), start.known), start.tests and start.tests.known)
    write(work, c="pass", d="pass", e="fail")
    assert (2, 1, 0, 3, 0) == counts(check(work, PYTEST, start, known="each"))


def test_no_new_failures_is_told_by_the_names_of_the_report(work):
    write(work, a="pass", b="fail")
    start = check(work, PYTEST, baseline="no_new_failures")
    assert (True, 0.5) == (start.passed, start.share)
    assert check(work, PYTEST, start, baseline="no_new_failures").passed
    write(work, a="pass", b="fail", new="fail")
    worse = check(work, PYTEST, start, baseline="no_new_failures")
    assert (False, ("test_it::test_new",)) == (worse.passed, worse.new_failures)
    write(work, b="fail")
    assert not check(work, PYTEST, start, baseline="no_new_failures").passed, "test_a is missing"


# ------------------------------------------------------------------------------------------------- other runners' files


def test_files_in_the_usual_places_count_when_the_command_wrote_them(work):
    reports = work / "target" / "surefire-reports"
    reports.mkdir(parents=True)
    (reports / "TEST-a.xml").write_text(junit(a="pass", b="fail", c="skip"))
    (work / "next").write_text(junit(a="pass", b="fail"))
    stale = check(work, "exit 1")
    assert (None, 0.0) == (stale.tests, stale.share)
    found = check(work, f"cp next {reports.relative_to(work)}/TEST-b.xml; exit 1")
    assert (("m::a", "m::b"), (1, 1, 0, 2, 0)) == (found.known, counts(found))
    again = check(work, f"cp next {reports.relative_to(work)}/TEST-b.xml", found)
    assert (1, 1, 0, 2, 0) == counts(again), "written again, with the same content"
    silent = check(work, "true", again, found)
    assert (False, (0, 0, 2, 2, 0)) == (silent.passed, counts(silent))


def test_files_that_the_table_names_are_the_only_ones_that_count(work):
    (work / "a").write_text(junit(a="pass", b="fail"))
    (work / "b").write_text(junit(x="pass"))
    found = check(work, "cp b junit.xml; mkdir out; cp a out/one.xml; cp b out/two.xml; exit 1", junit="out/*.xml")
    assert ("m::a", "m::b", "m::x") == found.known


def test_a_report_that_the_table_names_and_nobody_writes_is_told(work):
    (work / "odd").write_text("<testsuite>")
    for command in ("true", "exit 1", f"cp odd out.xml; {PYTEST}"):
        assert "which its `junit` names" in check(work, command, junit="out*.xml").note
    assert "" == check(work, "true").note


def test_a_broken_report_leaves_the_closing_lines(work):
    (work / "next").write_text("<testsuite>")
    found = check(work, "cp next junit.xml; echo '1 failed, 2 passed in 0.05s'; exit 1")
    assert ((2, 1, 0, 3, 0), ()) == (counts(found), found.known)


def test_the_closing_lines_are_found_behind_more_output_than_is_kept(work):
    lines = "\x1b[31m===== \x1b[31m\x1b[1m1 failed\x1b[0m, \x1b[32m2 passed\x1b[0m\x1b[31m in 0.05s\x1b[0m\x1b[31m =====\x1b[0m\n"
    (work / "output").write_text("x" * 79 + "\n" + "y\n" * 50_000 + lines)
    found = check(work, "cat output; exit 1", output_cap=4_000)
    assert (2, 1, 0, 3, 0) == counts(found)


def test_a_check_sees_that_nobody_is_there(work):
    found = check(work, 'cat; echo "CI=$CI"', base=BASE)
    assert "CI=1\n" == found.output_tail
    assert "CI=no\n" == check(work, 'echo "CI=$CI"', base=BASE | {"CI": "no"}).output_tail


def test_records_stay_small_however_many_tests_there_are(work):
    names = [f"test_{number:05}" for number in range(20_000)]
    (work / "start").write_text(junit(**dict.fromkeys(names, "pass")))
    (work / "now").write_text(junit(**dict.fromkeys(names[:12_000], "fail")))
    start = check(work, "cp start junit.xml")
    now = check(work, "cp now junit.xml; exit 1", start)
    assert (20_000, (0, 12_000, 8_000, 20_000, 0)) == (len(start.known), counts(now))
    assert (5_000, 5_000, "m::test_00000", "m::test_12000") == (
        len(now.failures),
        len(now.missing),
        now.failures[0],
        now.missing[0],
    )
    assert 250_000 > len(json.dumps(now.to_json()))


def test_a_check_that_only_says_yes_or_no_stays_that(work):
    assert (None, 1.0) == ((green := check(work, "true")).tests, green.share)
    assert (None, 0.0) == ((red := check(work, "exit 3")).tests, red.share)
    assert "3" in str(red.exit_code)


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (".jumar/loops/t/pending/iteration-000/artifacts/test_it.py", ".jumar/loops"),
        ("at file://{work}/.jumar/loops/t/pending/iteration-000/artifacts/test_it.py:3:1", ".jumar/loops"),
        ("(../.jumar/loops/t/pending/iteration-000/artifacts/test_it.py)", ".jumar/loops"),
        ("FAIL  ./store/node_modules/loops/t/iterations/iteration-001/artifacts/test_it.py", "store/loops"),
        ("'{work}/.jumar/work/t@c01/test_it.py'", ".jumar/work"),
        (".jumar/loops/t/pending/iteration-007/artifacts/test_it.py", None),  # which is not there
        ("/elsewhere/.jumar/loops/t/pending/iteration-000/artifacts/test_it.py", None),
        ("{work}/test_it.py", None),
    ],
)
def test_tests_in_copies_of_ours_are_not_counted(work, printed, told):
    places = ("loops/t/pending/iteration-000/artifacts", "work/t@c01")
    for place in (
        *(work / ".jumar" / path for path in places),
        work / "store/node_modules/loops/t/iterations/iteration-001/artifacts",
    ):
        place.mkdir(parents=True)
    (work / "out.txt").write_text(f"not ok 1 - adds\n  {printed.format(work=work)}\n1..1\n")
    found = check(work, "cat out.txt; exit 1")
    trouble = trouble_of_check(found)
    if told is None:
        assert (0, 1, 0, 1, 0) == counts(found)
        assert trouble is None
    else:
        assert found.tests is None
        assert trouble is not None
        assert f"counts too much: it also runs the tests in the copies that jumar keeps in {told}" == trouble.what
        assert ("cleanup LOOP --trees" if "work" in told else "--root") in trouble.fix


def test_a_tree_of_ours_in_which_the_tests_run_is_no_copy(work):
    tree = work / ".jumar" / "work" / "t"
    tree.mkdir(parents=True)
    (tree / "out.txt").write_text(f"not ok 1 - adds\n  {tree}/test_it.py\n1..1\n")
    assert (0, 1, 0, 1, 0) == counts(check(tree, "cat out.txt; exit 1"))


def test_the_end_of_a_test_run_has_its_failures_and_no_colours(work):
    points = "".join(f"ok {number} - t{number}\n  ---\n  duration_ms: 1.5\n  ...\n" for number in range(2, 500))
    (work / "out.txt").write_text(f"not ok 1 - \x1b[31mbad\x1b[0m\n{points}1..499\n")
    found = check(work, "cat out.txt; echo '\x1b[2mbye\x1b[22m' >&2; exit 1")
    assert "not ok 1 - bad\n\nbye\n" == found.output_tail.replace("\n\n\n", "\n\n")
    assert ("bad",) == found.failures
