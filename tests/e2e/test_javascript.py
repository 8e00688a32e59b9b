"""A JavaScript project, with the runners that people have: node's own, and vitest and jest where npm could bring them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from loops import jumar, jumar_json

RUNNERS = {"node": "node --test", "vitest": "vitest run", "jest": "jest"}
FROM_NPM = Path(sys.prefix) / "npm-agents" / "node_modules"

SOURCE = "const add = (a, b) => a - b, sub = (a, b) => a - b, mul = (a, b) => a + b;\nmodule.exports = { add, sub, mul };\n"
HEADS = {
    "node": "const test = require('node:test'), { describe } = test; const same = require('node:assert').equal;",
    "vitest": "import { test, describe, expect } from 'vitest'; const same = (a, b) => expect(a).toBe(b);",
    "jest": "const same = (a, b) => expect(a).toBe(b);",
}
TESTS = """
test('adds', () => same(add(1, 2), 3));
test('subs', () => same(sub(5, 2), 3));
describe('more', () => {
  test('muls', () => same(mul(4, 2), 8));
  test('subs nothing', () => same(sub(5, 0), 5));
});
"""
AGENT = """#!/bin/sh
case $JUMAR_ITERATION in
1) sed -i 's/add = (a, b) => a - b/add = (a, b) => a + b/' src/calc.cjs;;
*) sed -i 's/mul = (a, b) => a + b/mul = (a, b) => a * b/' src/calc.cjs;;
esac
"""


@pytest.fixture(params=RUNNERS)
def project(request: pytest.FixtureRequest, fresh_place: Path) -> Path:
    """A project of which ``npm test`` has two tests that pass and two that fail, and an agent that mends one an iteration."""
    runner: str = request.param
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    if runner != "node" and not (FROM_NPM / ".bin" / runner).exists():
        pytest.skip(f"{runner} is not installed: make .venv/.npm-agents")
    (fresh_place / ".git").mkdir()
    (fresh_place / "package.json").write_text(json.dumps({"name": "calc", "scripts": {"test": RUNNERS[runner]}}))
    for folder in ("src", "tests"):
        (fresh_place / folder).mkdir()
    (fresh_place / "src" / "calc.cjs").write_text(SOURCE)
    source = "import { add, sub, mul } from" if runner == "vitest" else "const { add, sub, mul } = require("
    needed = f"{source} '../src/calc.cjs'{'' if runner == 'vitest' else ')'};\n"
    (fresh_place / "tests" / "calc.test.js").write_text(f"{HEADS[runner]}\n{needed}{TESTS}")
    (fresh_place / "agent.sh").write_text(AGENT)
    (fresh_place / "agent.sh").chmod(0o755)
    if runner != "node":
        (fresh_place / "node_modules").symlink_to(FROM_NPM)
    return fresh_place


def run_of(place: Path, *more: str, check: int | None = None) -> str:
    words = ("run", "-n", "2", "--agent", "./agent.sh", "-p", "mend it", "--check", "npm test")
    done = jumar(place, *words, *more, check=check, env={"FORCE_COLOR": "1"})
    return f"{done.stdout}{done.stderr}"


def own_count(place: Path) -> int:
    """Return how many tests the person's own ``npm test`` finds."""
    environment = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"} | {"NO_COLOR": "1"}
    done = subprocess.run(["npm", "test"], cwd=place, capture_output=True, text=True, check=False, env=environment)
    found = re.search(r"(?m)^(?:# tests (\d+)|.*Tests .*\((\d+)\)|Tests: .* (\d+) total)$", f"{done.stdout}{done.stderr}")
    assert found is not None, done
    return int(next(number for number in found.groups() if number))


def test_every_test_counts_once_and_npm_leaves_the_loops_alone(project: Path) -> None:
    printed = run_of(project, check=0)
    assert [row[:2] for row in re.findall(r"(?m)^ +(\d) +[\d.]+ .*? (\d/\d)( ✓)? ", printed)] == [
        ("0", "2/4"),
        ("1", "3/4"),
        ("2", "4/4"),
    ]
    assert own_count(project) == 4
    if not (project / "node_modules").exists():
        subprocess.run(["npm", "install", "--offline", "--no-audit"], cwd=project, check=True, capture_output=True)
        for words in (["ci", "--offline"], ["prune", "--offline"]):
            subprocess.run(["npm", *words], cwd=project, check=True, capture_output=True)
    assert jumar_json(project, "verify")["ok"]
    assert [loop["state"] for loop in jumar_json(project, "list")["loops"]] == ["finished"]


@pytest.mark.parametrize("isolation", ["copy", "worktree"])
def test_a_copy_goes_with_the_end_and_is_made_anew_by_a_resume(project: Path, isolation: str) -> None:
    if isolation == "worktree" and (project / "node_modules").exists():
        pytest.skip("a worktree has no installed packages")
    (project / ".git").rmdir()
    (project / ".gitignore").write_text("node_modules\n")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@x", "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    elsewhere = ("--isolation", isolation, "--id", "apart")
    run_of(project, *elsewhere, "-n", "1", check=10)
    assert [] == list((project / ".jumar/work").iterdir())
    assert 1 == len(subprocess.run(["git", "worktree", "list"], cwd=project, capture_output=True, check=True).stdout.splitlines())
    assert own_count(project) == 4
    printed = " ".join(run_of(project, *elsewhere, "-n", "2", check=0).split())
    assert "4/4" in printed
    assert "set-aside" not in printed
    assert [] == list((project / ".jumar/work").iterdir())
    assert " 2/4 " in run_of(project, "--id", "here", check=0), "a run in place counts the person's tests, and no others"


def test_a_root_that_was_there_before_is_refused_before_anything_is_paid(project: Path) -> None:
    (project / ".jumar" / "loops").mkdir(parents=True)
    printed = " ".join(run_of(project, check=2).split())
    assert "check 'npm test' counts too much: it also runs the tests in the copies that jumar keeps in .jumar/loops" in printed
    assert "name a new folder with --root" in printed
    run_of(project, "--root", ".jumar-2", check=2)  # those of .jumar are still there
    shutil.rmtree(project / ".jumar")
    run_of(project, "--root", ".jumar-2", check=0)


def test_the_agent_reads_what_failed_and_nobody_reads_colours(project: Path) -> None:
    run_of(project, "-n", "1", check=10)
    loop = next((project / ".jumar" / "node_modules" / "loops").iterdir())
    run_of(project, check=0)
    prompt = (loop / "iterations" / "iteration-002" / "logs" / "prompt.md").read_text()
    told = prompt.partition("## Failing checks")[2].partition("\n## ")[0]
    assert "muls" in told
    assert {"6", "8"} <= set(re.findall(r"\d+", told)), "what it is and what it should be"
    assert "subs nothing" not in re.sub(r"test\(.*", "", told), "which passes; a line of the source may quote it"
    shown = jumar(project, "show", loop.name, "--iteration", "1", check=0).stdout
    for text in (prompt, shown, (loop / "iterations" / "iteration-001" / "metrics.json").read_text()):
        assert not re.search(r"\x1b|\\x1b|\\u001b", text)


def test_a_test_that_was_deleted_is_named(project: Path) -> None:
    (project / "agent.sh").write_text("#!/bin/sh\nsed -i \"/'adds'/d\" tests/calc.test.js\n")
    rows = run_of(project, "-n", "1", check=10)
    assert not re.search("fixed|broke", rows)
    assert re.search(r"(?m)^ +1 +50.0 .* missing (?:1 test|adds)$", rows), rows


def test_a_file_that_cannot_be_loaded_cuts_nothing_short(project: Path) -> None:
    (project / "agent.sh").write_text("#!/bin/sh\necho 'const x = (;' > tests/more.test.js\n")
    printed = run_of(project, "-n", "1", check=10)
    assert "1 file could not be loaded" in printed
    assert "cut short" not in printed
    assert re.search(r"(?m)^ +1 +50.0 .* 2/4 ", printed), "the other file's tests are what they were"


def test_what_npm_brought_is_run_by_npx(fresh_place: Path) -> None:
    """Without npm: a program in ``node_modules/.bin`` is all that there is to it."""
    program = fresh_place / "node_modules" / ".bin" / "calc-tests"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    words = ("run", "--agent", "cat", "-p", "mend it", "--check")
    done = jumar(fresh_place, *words, "CI=1 calc-tests --all", check=2)
    assert "check 'CI=1 calc-tests --all' cannot run: calc-tests is no program on PATH\n" in done.stderr
    assert "to mend it: --check 'CI=1 npx calc-tests --all'\n" in done.stderr
    assert "npx" not in jumar(fresh_place, *words, "others-tests", check=2).stderr
    (fresh_place / "package.json").write_text('{"scripts": {"test": "calc-tests"}}')
    for command in (("list",), ("doctor",), ("run",)):
        found = jumar(fresh_place, *command, "--root", "nowhere")
        assert "--check 'npm test'" in found.stdout + found.stderr, command


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["--agent", "./agent.sh"], "'./agent.sh' is not executable: chmod +x ./agent.sh"),
        (
            ["--agent", "agent.sh"],
            "'agent.sh' is no program on PATH; the file here is called ./agent.sh, after chmod +x agent.sh",
        ),
        (["--agent", "./other.sh"], "'./other.sh' does not exist"),
        (["--agent", "."], "'.' is no agent that jumar knows"),
        (["--agent", "./folder/"], "'./folder/' is a directory"),
        (["--agent", "./agent.sh --yes"], "'./agent.sh' is not executable; chmod +x ./agent.sh"),
        (["--agent", "agent.sh --yes"], "'agent.sh' is no program on PATH; the file here is called ./agent.sh"),
        (["--", "./other.sh"], "'./other.sh' does not exist; install ./other.sh"),
    ],
)
def test_a_program_that_cannot_be_the_agent(fresh_place: Path, typed: list[str], expected: str) -> None:
    (fresh_place / "agent.sh").write_text("#!/bin/sh\n")
    (fresh_place / "folder").mkdir()
    done = jumar(fresh_place, "run", "-p", "mend it", "--check", "false", *typed, check=2)
    assert expected in done.stderr
    assert not (fresh_place / ".jumar").exists()
