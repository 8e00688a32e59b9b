"""What this machine can do for a loop, each thing tried for real and cleaned up again; how tests are run here."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, cast

from jumar.core.files import free_bytes, fsync_directory, rename_new, write_once
from jumar.core.leftovers import remove_tree
from jumar.core.record import Record
from jumar.core.rendering.figures import size

State = Literal["green", "yellow", "red"]

MINIMUM_PYTHON: Final = (3, 11)
_LITTLE: Final = 100_000_000  # bytes; below it a loop is likely to end in the middle
_PASSES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Record):
    """One line of the check. A red one says in ``fix`` what to do; a yellow one what is missing without it."""

    name: str
    state: State
    detail: str
    fix: str = ""


def machine_rows(root: Path, *, encoding: str | None) -> Iterator[Row]:
    """Yield the rows that need no configuration. ``encoding`` is that of the terminal."""
    yield python_row()
    yield from root_rows(root)
    yield git_row()
    yield terminal_row(encoding)


def python_row(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> Row:
    """Return whether this Python is new enough."""
    shown = ".".join(map(str, version))
    if version[:2] >= MINIMUM_PYTHON:
        return Row(name="python", state="green", detail=shown)
    wanted = ".".join(map(str, MINIMUM_PYTHON))
    return Row(
        name="python", state="red", detail=f"{shown} is too old", fix=f"install Python {wanted} or newer, and jumar with it"
    )


def root_rows(root: Path) -> Iterator[Row]:
    """Yield whether loops can be kept at ``root``: writable, hard links, locks, renames; tried in a directory of its own."""
    place = _nearest_existing(root)
    elsewhere = "choose a place on a local disk with --root or JUMAR_ROOT"
    try:
        trial = Path(tempfile.mkdtemp(prefix=".jumar-doctor-", dir=place))
    except OSError as error:
        detail = f"{place} is not writable: {os.strerror(error.errno or 0)}"
        yield Row(name="root", state="red", detail=detail, fix=f"check its owner and mode, or {elsewhere}")
        return
    try:
        yield Row(name="root", state="green", detail=f"{root} can be written")
        tried: tuple[tuple[str, Callable[[Path], str | None], str], ...] = (
            ("hard links", _try_links, "nothing that was written once is overwritten by accident"),
            ("locks", _try_locks, "two runs cannot write one loop"),
            ("renames", _try_renames, "an iteration is there whole or not at all"),
        )
        for name, attempt, use in tried:
            problem = _problem(attempt, trial)
            if problem is None:
                yield Row(name=name, state="green", detail=f"work: {use}")
            else:
                yield Row(name=name, state="red", detail=f"don't work at {place}: {problem}", fix=elsewhere)
    finally:
        with contextlib.suppress(OSError):
            remove_tree(trial)


def _nearest_existing(path: Path) -> Path:
    current = path.absolute()
    while not current.is_dir() and current != current.parent:
        current = current.parent
    return current


def _problem(attempt: Callable[[Path], str | None], trial: Path) -> str | None:
    try:
        return attempt(trial)
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)


def _try_links(trial: Path) -> str | None:
    one, other = trial / "one", trial / "other"
    write_once(one, b"1")
    os.link(one, other)
    if not one.samefile(other):
        return "a link is a copy"
    try:
        write_once(one, b"2")
    except FileExistsError:
        return None
    return "a link replaces what is there"


def _try_locks(trial: Path) -> str | None:
    path = trial / "lock"
    first = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    second = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        return "a lock that is held is given a second time"
    finally:
        os.close(first)
        os.close(second)


def _try_renames(trial: Path) -> str | None:
    source, target = trial / "before", trial / "after"
    source.mkdir()
    (source / "file").write_bytes(b"1")
    fsync_directory(source)
    rename_new(source, target)
    return None if (target / "file").read_bytes() == b"1" and not source.exists() else "a renamed directory is not whole"


def disk_row(root: Path, snapshot: int | None = None) -> Row:
    """Return whether there is room. ``snapshot`` is the size of the first one in bytes; later ones share what did not change."""
    free = free_bytes(root.absolute())
    needed = max(_LITTLE, 2 * (snapshot or 0))
    if free < needed:
        detail = f"{size(free)} free, {size(needed)} are needed at least"
        return Row(name="disk space", state="red", detail=detail, fix="free some space, or choose another disk with --root")
    if snapshot is not None and free < _PASSES * snapshot:
        detail = f"{size(free)} free; {_PASSES} iterations that change everything would need {size(_PASSES * snapshot)}"
        return Row(
            name="disk space", state="yellow", detail=detail, fix="free some space, or leave files out with [artifacts] exclude"
        )
    return Row(name="disk space", state="green", detail=f"{size(free)} free")


def git_row() -> Row:
    """Return whether git is there; only branches and commits need it."""
    path = shutil.which("git")
    if path is None:
        detail = "not found: `jumar apply --branch` and `--commit` need it"
        return Row(
            name="git", state="yellow", detail=detail, fix="install git, for instance `apt-get install git` or `brew install git`"
        )
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Row(name="git", state="yellow", detail=f"{path} does not work: {error}", fix="reinstall git")
    return Row(name="git", state="green", detail=done.stdout.strip().removeprefix("git version "))


def terminal_row(encoding: str | None) -> Row:
    """Return whether the terminal shows what jumar prints."""
    known = (encoding or "").lower().replace("_", "-")
    if known in {"utf-8", "utf8"}:
        return Row(name="terminal", state="green", detail="UTF-8")
    detail = f"{encoding or 'unknown encoding'}: signs such as ★ and Δ are shown as escapes"
    return Row(name="terminal", state="yellow", detail=detail, fix="export LANG=C.UTF-8, or PYTHONUTF8=1")


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
    except (ValueError, RecursionError):
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
