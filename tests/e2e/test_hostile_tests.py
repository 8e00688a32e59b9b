"""Tests whose names were made to hurt, exit codes that disagree, and two checks that run the same tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import CONTROL, call, call_json

NAMES = ("\u202egnp.exe", "a\x9b31mred", "b`c` | **d**", "e\u2028f", "x" * 2_000)


def report(*failing: str) -> str:
    cases = [f'<testcase classname="m" name="{name}">{"<failure/>" * (name in failing)}</testcase>' for name in (*NAMES, "fine")]
    return f"<testsuite>{''.join(cases)}</testsuite>"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n").write_text("0")
    (tmp_path / "0.xml").write_text(report(*NAMES))
    (tmp_path / "1.xml").write_text(report(NAMES[0]))
    (tmp_path / "2.xml").write_text(report(NAMES[1]))
    return tmp_path


AGENT = ("--include", "n", "--", "sh", "-c", "echo $JUMAR_ITERATION > n")


def test_names_of_tests_never_reach_a_terminal_or_a_page_as_they_are(place: Path) -> None:
    check = 'cp "$(cat n).xml" junit.xml; exit 1'
    shown = [call("run", "-n", "2", "--check", check, *AGENT, check=10)]
    shown += [call("show", "--iteration", number, check=0) for number in (0, 1, 2)]
    shown += [call("show", check=0), *(call("report", "--format", kind) for kind in ("md", "csv", "html", "junit"))]

    assert set() == CONTROL & set("".join(one.out + one.err for one in shown))
    assert not {"\u202e", "\u2028"} & set("".join(one.out + one.err for one in shown))
    assert "fixed a\\x9b31mred, b`c` | **d**, e\\u2028f +1 more" in " ".join(shown[0].out.split())
    logs = Path(
        call_json("run", "-n", "3", "--check", check, *AGENT, check=10)["directory"], "iterations", "iteration-003", "logs"
    )
    assert not {"\u202e", "\x9b"} & set((logs / "prompt.md").read_text())
    assert [f"m::{NAMES[1]}"] == json.loads((logs / "feedback.json").read_text())["progress"][-1]["broke"]["names"]


def test_what_is_odd_about_the_counts_is_told_once(place: Path) -> None:
    check = 'cp "$(cat n).xml" junit.xml'
    told = call("run", "-n", "2", "--keep-going", "--check", check, "--check", f"{check} ", *AGENT, check=0)

    notes = [line for line in (told.out + told.err).splitlines() if "although" in line or "the same 6 tests" in line]
    assert 1 == sum("check 'cp \"$(cat n).xml\" junit.xml': exit code 0 although 5 tests failed" in line for line in notes)
    assert 1 == sum("run the same 6 tests" in line for line in notes)
