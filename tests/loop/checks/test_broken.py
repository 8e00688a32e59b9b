"""What tells a check that cannot begin from one that fails: how its command ends, and what it says."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from counted_kit import BASE, check

from jumar.loop.checks.broken import Trouble, trouble_of_check
from jumar.model import CheckResult

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
RULES = f"""usage:
\t{PYTEST} --no-such-option
deep:
\t$(MAKE) usage
source:
\t. ./no/activate
conftest:
\t{PYTEST} there
red:
\t{PYTEST} red
gone:
\tkill -9 $$$$
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in ("there", "red"):
        (tmp_path / "work" / name).mkdir(parents=True)
        (tmp_path / "work" / name / f"test_{name}.py").write_text("def test_a(): assert 0\n")
    (tmp_path / "work/there/conftest.py").write_text("import no_such_module\n")
    (tmp_path / "work/Makefile").write_text(RULES)
    return tmp_path / "work"


def trouble(work: Path, command: str) -> Trouble | None:
    return trouble_of_check(check(work, command, base=BASE))


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (". venv/bin/activate && pytest -q", "venv/bin/activate cannot be opened"),
        ("bash -c '. venv/bin/activate && pytest -q'", "venv/bin/activate cannot be opened"),
        ("cd no/dir && pytest", "there is no directory no/dir"),
        ("bash -c 'cd no/dir && pytest'", "there is no directory no/dir"),
        ("timeout 0.1 sleep 5", "exit code 124"),
        (f"{PYTEST} there", "a usage error (exit code 4); it fails because it finds no module no_such_module"),
        ("make conftest", "a usage error (exit code 4); it fails because it finds no module no_such_module"),
        ("make usage", "a usage error (exit code 4)"),
        ("make deep", "a usage error (exit code 4)"),
        ("make source", "./no/activate cannot be opened"),
        ("make gone", "was cut short"),
    ],
)
def test_a_command_that_cannot_begin(command: str, what: str, work: Path):
    if "bash" in command and shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    found = trouble(work, command)
    assert found is not None
    assert what in found.what
    assert found.sure


@pytest.mark.parametrize(
    "command",
    [
        f"{PYTEST} red",
        "make red",
        "bash -c 'wc -l < out.txt'",
        "timeout 20 false",
        f"timeout 20 {PYTEST} red || exit 124",
        "echo 'cd: no/dir: No such file or directory'; exit 1",
    ],
)
def test_a_command_that_fails(command: str, work: Path):
    assert None is trouble(work, command)


@pytest.mark.parametrize(
    ("code", "said", "what"),
    [
        (2, "/bin/sh: 1: cannot create /no/dir/log: Directory nonexistent\n", "/no/dir/log cannot be written"),
        (1, "npm error code E404\nnpm error 404  'nosuch@*' is not in this registry.\nnpm error 404\n", "nosuch was not found"),
        (1, "npm ERR! 404  The requested resource '@a/b@*' could not be found\nnpm ERR! 404\n", "@a/b was not found"),
        (1, 'npm error npx canceled due to missing packages and no YES option: ["nosuch@1.0.0"]\n', "nosuch was not found"),
        (1, "npm error could not determine executable to run\nnpm error A complete log\n", "npx finds no program"),
        (1, "npm error code EAI_AGAIN\nnpm error syscall getaddrinfo\n", "its registry (EAI_AGAIN)"),
        (1, "/work\n ERR_PNPM_NO_SCRIPT  Missing script: test\n", "no script test"),
        (1, 'error Command "jest" not found.\n', "jest was not found"),
        (1, "Command not found: pytest\n", "pytest was not found"),
        (2, "error: Failed to spawn: `pytest`\n  Caused by: No such file or directory (os error 2)\n", "pytest was not found"),
        (101, "error: no such command: `nextest`\n\nhelp: view all installed commands\n", "nextest was not found"),
        (1, "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?\n", "Docker daemon"),
        (1, "nox > Command pytest --x failed with exit code 4\npytest: error: no option --x\n", "a usage error (exit code 4)"),
    ],
)
def test_what_other_programs_say(code: int, said: str, what: str):
    found = trouble_of_check(CheckResult(name="t", passed=False, exit_code=code, output_tail=said))
    assert found is not None
    assert what in found.what
    assert found.sure
