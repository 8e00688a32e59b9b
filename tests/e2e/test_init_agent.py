"""``jumar init --agent``: the tests of a directory are found, and the configuration runs as it stands."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from commands import call, call_json

from jumar.app.agents import AGENTS, Agent
from jumar.app.config.config import load_config
from jumar.app.machine import FALLBACK, suites_in

TEST = "def test_it():\n    assert True\n"
OLD_TEST = "import unittest\n"
NPM = '{"scripts": {"test": "node --test"}}'

LAYOUTS = {
    "pytest, by its file": ({"pytest.ini": ""}, [("pytest -q", "pytest.ini")]),
    "pytest, by a section": ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, [("pytest -q", "pyproject.toml")]),
    "pytest, by conftest": ({"tests/conftest.py": ""}, [("pytest -q", "tests/conftest.py")]),
    "pytest, by its tests": ({"tests/test_a.py": TEST}, [("pytest -q", "tests/test_a.py")]),
    "pytest of its own": ({"test_a.py": TEST, ".venv/bin/pytest": ""}, [(".venv/bin/python -m pytest -q", "test_a.py")]),
    "a project without tests": ({"pyproject.toml": "[project]\n", "setup.cfg": ""}, []),
    "unittest": ({"test_a.py": OLD_TEST}, [("python3 -m unittest -v", "test_a.py")]),
    "unittest in a folder": ({"tests/test_a.py": OLD_TEST}, [("python3 -m unittest discover -s tests -v", "tests/test_a.py")]),
    "unittest in a package": (
        {"tests/test_a.py": OLD_TEST, "tests/__init__.py": ""},
        [("python3 -m unittest -v", "tests/test_a.py")],
    ),
    "unittest run by pytest": ({"test_a.py": OLD_TEST + "import pytest\n"}, [("pytest -q", "test_a.py")]),
    "npm": ({"package.json": NPM}, [("npm test", "package.json")]),
    "npm without tests": ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, []),
    "no package": ({"package.json": "[]"}, []),
    "broken package": ({"package.json": "{"}, []),
    "cargo": ({"Cargo.toml": "[package]\n"}, [("cargo test", "Cargo.toml")]),
    "go": ({"go.mod": "module x\n"}, [("go test -v ./...", "go.mod")]),
    "several": ({"pytest.ini": "", "package.json": NPM}, [("pytest -q", "pytest.ini"), ("npm test", "package.json")]),
}


@pytest.fixture(autouse=True)
def pytest_on_path(fresh_place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    programs = fresh_place.parent / "programs"
    programs.mkdir()
    (programs / "pytest").write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest -p no:cacheprovider "$@"\n')
    (programs / "pytest").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return programs


@pytest.mark.parametrize(("files", "found"), LAYOUTS.values(), ids=LAYOUTS)
def test_how_the_tests_of_a_directory_are_run(files: dict[str, str], found: list[tuple[str, str]], fresh_place: Path):
    for name, text in files.items():
        (fresh_place / name).parent.mkdir(parents=True, exist_ok=True)
        (fresh_place / name).write_text(text)
    assert found == [tuple(suite) for suite in suites_in(fresh_place)]


def test_without_pytest_on_path_it_is_run_as_a_module(fresh_place: Path, pytest_on_path: Path, monkeypatch: pytest.MonkeyPatch):
    (pytest_on_path / "pytest").unlink()
    monkeypatch.setenv("PATH", str(pytest_on_path))
    (fresh_place / "test_a.py").write_text(TEST)
    assert [(FALLBACK, "test_a.py")] == [tuple(suite) for suite in suites_in(fresh_place)]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.program)
def test_every_agent_is_written_ready_to_run(agent: Agent, fresh_place: Path):
    (fresh_place / "tests").mkdir()
    (fresh_place / "tests" / "test_a.py").write_text(TEST)
    said = call_json("init", "--agent", agent.program)
    assert ("coding-agent", None, agent.program, "pytest -q") == tuple(
        said[key] for key in ("template", "agent_line", "agent", "check")
    )
    text = (fresh_place / "jumar.toml").read_text()
    assert [] == [line for line in text.splitlines() if len(line) > 130 or "your-agent" in line or "{agents}" in line]
    config = load_config(fresh_place / "jumar.toml")
    assert (agent.command, dict(agent.usage)) == (config.generator.command, config.generator.usage)
    assert list(agent.exclude) == config.artifacts.exclude
    assert ["tests/**"] == config.loop.protect
    assert (10, agent.reserve_usd, 100) == (config.budget.max_cost_usd, config.budget.reserve_cost_usd, config.stop.target)
    assert ["pytest -q"] == [check.command for check in config.validators]
    assert [] == config.scorers
    kept = "\n".join(agent.resume_settings())
    commented = text.replace("\n# ", "\n")
    assert kept in commented


def test_what_it_says_and_refuses(fresh_place: Path):
    said = call("init", "--agent", "claude", check=0).out
    wrote = "wrote     jumar.toml\nwrote     .mcp.json\nwrote     AGENTS.md\n"
    assert f"agent     Claude Code, unattended\n{wrote}\n1. install the agent: npm install" in said
    assert "2. have `jumar mcp` on PATH" in said
    assert "3. edit jumar.toml: no tests were found" in said
    again = call("init", "--agent", "claude", check=0).out
    assert "kept      jumar.toml" in again
    assert "jumar run --agent claude     in place of the agent of jumar.toml" in again
    call("init", "--agent", "aider", "--force", check=0)
    assert "exists; --force" in call("init", "--agent", "aider", check=2).err
    assert "goes with the template coding-agent" in call("init", "--agent", "claude", "-t", "prompt", "--force", check=2).err
    assert "--template" not in call("init", "--agent", "claude", "-t", "coding-agent", "--force", check=0).err


def test_it_runs_as_written_scored_by_the_tests_which_run_once(fresh_place: Path, pytest_on_path: Path):
    (fresh_place / "code.py").write_text("")
    names = ("one", "two", "three", "four")
    tests = "".join(f"def test_{name}():\n    import mended\n    assert mended.{name}\n\n" for name in names)
    (fresh_place / "test_code.py").write_text(tests)
    (fresh_place / "mended.py").write_text("one = two = three = four = 0\n")
    runs = fresh_place.parent / "runs"
    (fresh_place / "conftest.py").write_text(f"open({str(runs)!r}, 'a').write('run\\n')\n")
    (pytest_on_path / "codex").write_text(
        "#!/bin/sh\ncat > /dev/null\ncase $JUMAR_ITERATION in 1) set 1 1 1 0;; *) set 1 0 0 0;; esac\n"
        'printf "one = $1\\ntwo = $2\\nthree = $3\\nfour = $4\\n" > mended.py\n'
        'echo \'{"usage": {"input_tokens": 5, "cached_input_tokens": 0, "output_tokens": 7}, "thread_id": "t"}\'\n'
    )
    (pytest_on_path / "codex").chmod(0o755)
    said = call("init", "--agent", "codex", check=0).out
    assert "tests     pytest -q (from conftest.py)" in said
    assert "install the agent" not in said
    outcome = json.loads(call("run", "--json", "-n", 2).out)
    assert (1, 75.0, 25.0) == (outcome["selected_iteration"], outcome["quality_score"], outcome["final_quality"])
    assert 2.0 == outcome["spend"]["assumed_cost_usd"]
    assert 3 == len(runs.read_text().splitlines()), "the start and two iterations"
