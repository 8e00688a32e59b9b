"""Counting tests in trees of their own, side by side, and where the start runs none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import calc
import pytest
from commands import call_json

from jumar.errors import ConfigError
from jumar.processes.sandbox import Sandbox

AGENT = (sys.executable, str(Path(calc.__file__)))
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "it's here"
    directory.mkdir()
    monkeypatch.chdir(directory)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return directory


def counts_of(result: dict[str, Any]) -> list[tuple[int, ...] | None]:
    """The counts of every iteration's first check: passed, failed, missing, known."""
    records = call_json("show", result["loop_id"])["iterations"]
    counts = [record["checks"][0]["tests"] for record in records]
    return [None if each is None else tuple(each[key] for key in ("passed", "failed", "missing", "known")) for each in counts]


@pytest.mark.parametrize("isolation", ["copy", "worktree", "sandbox"])
def test_tests_are_counted_by_name_wherever_the_loop_works(isolation: str, place: Path) -> None:
    if isolation == "sandbox":
        try:
            Sandbox(root=place / ".jumar").check(place)
        except ConfigError as error:
            pytest.skip(str(error))
    calc.write_project(place)
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm start"):
        subprocess.run(["git", *command.split()], check=True)

    result = call_json("run", "-n", 1, "--isolation", isolation, "--check", PYTEST, "--", *AGENT, check=10)

    assert [(3, 9, 0, 12), (9, 3, 0, 12)] == counts_of(result)
    failing = call_json("show", "--iteration", 1)["iterations"][0]["checks"][0]["failures"]
    assert ["test_calc::test_div", "test_calc::test_mod", "test_calc::test_mul"] == failing
    assert not list(place.glob("*.xml"))


def suite(*names: str, failing: str = "") -> str:
    cases = [f'<testcase classname="m" name="{name}">{"<failure/>" * (name in failing)}</testcase>' for name in names]
    return f"<testsuite>{''.join(cases)}</testsuite>"


def test_candidates_are_held_against_the_same_tests(place: Path) -> None:
    """The start runs no test; both candidates of the first batch run some, and those of the first are known from then on."""
    (place / "kind").write_text("0")
    for name, text in {"1": suite("a", "b", failing="b"), "2": suite("a", "b", "c", failing="abc"), "3": suite("a", "c")}.items():
        (place / f"{name}.xml").write_text(text)
    check = 'cp "$(cat kind).xml" junit.xml'
    agent = "test $JUMAR_ITERATION -gt 2 && echo 3 > kind || echo $JUMAR_CANDIDATE > kind"

    words = ("-n", 4, "--candidates", 2, "--keep-going", "--include", "*", "--check", check)
    result = call_json("run", *words, "--", "sh", "-c", agent, check=10)

    assert [None, (1, 1, 0, 2), (0, 3, 0, 3), (1, 0, 1, 2), (1, 0, 1, 2)] == counts_of(result)
