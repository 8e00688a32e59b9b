"""How a directory's tests are run, read off the files that its tools leave: for the check that ``jumar init --agent`` writes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, cast

__all__ = ["FALLBACK", "Suite", "likely_check", "suites_in"]

FALLBACK = "python3 -m pytest -q"
"""What is written where no tests are found."""

_PLACES = (".", "tests", "test")
_NO_SCRIPT = "no test specified"  # what `npm init` writes
_SECTIONS = (("pyproject.toml", "[tool.pytest"), ("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]"))


class Suite(NamedTuple):
    """``command`` runs the tests, naming each where the runner can; ``because`` is the file that says so."""

    command: str
    because: str


def suites_in(directory: Path) -> list[Suite]:
    """Return the commands that run the tests in ``directory``, the likeliest first; none where nothing tells."""
    return list(_commands(directory))


def likely_check(directory: Path) -> str:
    """Return what follows ``--check`` in a hint, quoted: the likeliest tests of ``directory``, else those that most have."""
    found = next((suite.command for suite in suites_in(directory)), None)
    return shlex.quote(found or ("npm test" if (directory / "package.json").is_file() else "pytest -q"))


def _commands(directory: Path) -> Iterator[Suite]:
    configured = _pytest_file(directory)
    if configured is not None:
        yield Suite(_pytest(directory), configured)
    if (directory / "Cargo.toml").is_file():
        yield Suite("cargo test", "Cargo.toml")
    if (directory / "go.mod").is_file():
        yield Suite("go test -v ./...", "go.mod")
    if _has_npm_script(directory / "package.json"):
        yield Suite("npm test", "package.json")
    if configured is None:
        yield from _by_test_files(directory)


def _pytest_file(directory: Path) -> str | None:
    names = ["pytest.ini", *(f"{place}/conftest.py".removeprefix("./") for place in _PLACES)]
    told = [name for name, section in _SECTIONS if section in _text(directory / name)]
    return next(iter([*(name for name in names if (directory / name).is_file()), *told]), None)


def _pytest(directory: Path) -> str:
    own = next((place for place in (".venv", "venv") if (directory / place / "bin" / "pytest").exists()), None)
    if own is not None:
        return f"{own}/bin/python -m pytest -q"
    return "pytest -q" if shutil.which("pytest") else FALLBACK


def _has_npm_script(path: Path) -> bool:
    try:
        package: object = json.loads(_text(path) or "{}")
    except ValueError:
        return False
    scripts: object = cast("dict[str, object]", package).get("scripts") if isinstance(package, dict) else None
    script: object = cast("dict[str, object]", scripts).get("test") if isinstance(scripts, dict) else None
    return isinstance(script, str) and script.strip() != "" and _NO_SCRIPT not in script


def _by_test_files(directory: Path) -> Iterator[Suite]:
    for place in _PLACES:
        found = sorted(path for pattern in ("test_*.py", "*_test.py") for path in (directory / place).glob(pattern))
        if not found:
            continue
        because = found[0].relative_to(directory).as_posix()
        texts = [_text(path) for path in found]
        if all(re.search(r"^\s*(?:import|from) unittest\b", text, re.MULTILINE) and "pytest" not in text for text in texts):
            start = "" if place == "." or (directory / place / "__init__.py").exists() else f" discover -s {place}"
            yield Suite(f"python3 -m unittest{start} -v", because)
        else:
            yield Suite(_pytest(directory), because)
        return


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
