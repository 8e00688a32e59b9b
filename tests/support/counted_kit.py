"""Checks that run tests, without a loop: small modules of tests, JUnit files, and what a check says of them."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

from steps_kit import context

from jumar.core.codec import Fields
from jumar.loop.checks.validators import CommandValidator
from jumar.model import CheckResult

PYTEST = f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider"
BASE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
BASE = {name: value for name, value in BASE.items() if name not in {"CI", "PYTEST_ADDOPTS"}}


def write(work: Path, name: str = "test_it.py", **tests: str) -> None:
    """Write a module of tests: each passes, fails, is skipped or cannot be set up."""
    bodies = {"pass": "pass", "fail": "assert 0", "skip": "pytest.skip()"}
    lines = "".join(f"def test_{test}(): {bodies[what]}\n" for test, what in tests.items())
    (work / name).write_text(f"import pytest\n{lines}")


def check(work: Path, command: str, *known: CheckResult, base: dict[str, str] | None = None, **options) -> CheckResult:
    step = replace(context(work, base=base or BASE, iteration=1 if known else 0), baseline_checks=known)
    found = CommandValidator("tests", command, **options).validate(step)
    assert found == CheckResult.from_json(Fields(found.to_json(), "check"))
    assert not list(step.log_directory.glob("*.xml")), "what it says is in the record"
    return found


def counts(found: CheckResult) -> tuple[int, int, int, int, int]:
    assert found.tests is not None
    tests = found.tests
    return (tests.passed, tests.failed, tests.missing, tests.total, tests.new_passing)


def junit(**outcomes: str) -> str:
    inner = {"pass": "", "fail": "<failure/>", "skip": "<skipped/>"}
    cases = "".join(f'<testcase classname="m" name="{name}">{inner[what]}</testcase>' for name, what in outcomes.items())
    return f"<testsuite>{cases}</testsuite>"
