"""What the goldens are compared in: an unpacked place, commands in it, and documents without what differs from run to run.

With ``GOLDEN=record`` in the environment what a test finds is written where the expected is read else; `record.py` sets it.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import shlex
import tarfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from commands import Called, call

__all__ = ["HERE", "STORES", "called_at_home", "expect", "first_line", "run", "told_once", "unpack"]

HERE = Path(__file__).parent
STORES = HERE / "stores"
HOW = (
    "the goldens differ; if that is meant, `python tests/golden/record.py` records them anew (never the stores): review the diff"
)
WIDTH = "100"  # columns
LINE = 200
WORTH_A_HASH = 60
_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")  # twelve figures of a SHA-256 say enough


def expect(path: Path, actual: Any) -> None:
    """Compare ``actual``, text or JSON, with the file ``path``; fail with a diff. While recording, write it there."""
    text = actual if isinstance(actual, str) else _written(actual) + "\n"
    if os.environ.get("GOLDEN") == "record":
        path.write_text(text, encoding="utf-8")
        return
    expected = path.read_text(encoding="utf-8")
    lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), str(path.name), "now", lineterm="", n=4)
    assert expected == text, "\n".join([HOW, *list(lines)[:200]])


def unpack(store: str) -> Path:
    """Unpack a store into the current directory, as it was left on another machine, and return that directory."""
    with tarfile.open(STORES / f"{store}.tar.xz") as archive:
        archive.extraction_filter = lambda member, _path: member  # times and modes as they were; later versions change them
        archive.extractall()
    return Path.cwd()


def run(command: str, moving: Collection[str] = ()) -> dict[str, Any]:
    """Return the exit code of ``command`` and what it printed on stdout, of which ``moving`` names the keys that vary.

    Besides commands of `jumar` there are ``cat FILE`` and ``ls FOLDER``, the formats on disk, and ``rm FILE``.
    """
    program, *arguments = shlex.split(command)
    if program == "cat":
        return {"document": _still(_document(Path(arguments[0]).read_text(encoding="utf-8")), moving)}
    if program == "ls":
        top = Path(arguments[0])
        return {"document": sorted(str(path.relative_to(top)) for path in top.rglob("*") if not path.is_dir())}
    if program == "rm":
        Path(arguments[0]).unlink()
        return {"document": None}
    assert program == "jumar", command
    called = called_at_home(*arguments)
    says = [line for line in called.err.splitlines() if line.startswith(("note ", "jumar: "))]  # not how it went meanwhile
    return (
        {"exit": called.code}
        | ({"says": _still(says, moving)} if says else {})
        | {"document": _still(_document(called.out), moving)}
    )


def called_at_home(*arguments: str) -> Called:
    """Call `jumar` as somebody with this width of lines and this umask, whoever and wherever that is."""
    mask = os.umask(0o022)
    try:
        with mock.patch.dict(os.environ, COLUMNS=WIDTH, LOGNAME="somebody"):
            return call(*arguments)
    finally:
        os.umask(mask)


def told_once(value: Any, told: set[str]) -> Any:
    """Return ``value`` with what was ``told`` before by its hash alone: most documents of a store say the same again."""
    if not isinstance(value, dict | list):
        return value
    line = json.dumps(value)
    if len(line) >= WORTH_A_HASH:
        name = hashlib.sha256(line.encode()).hexdigest()[:6]
        if name in told:
            return f"<again {name}>"
        told.add(name)
    if isinstance(value, list):
        return [told_once(item, told) for item in value]
    return {key: told_once(item, told) for key, item in value.items()}


def first_line(text: str) -> str:
    """Return the first line of a message, without where this is."""
    return str(_still(text.strip().partition("\n")[0], ()))


def _written(value: Any, indent: str = "") -> str:
    """Return JSON in which whatever fits is on one line: a third of the size, and a diff still says what changed."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent) + len(line) <= LINE:
        return line
    deeper = indent + " "
    if isinstance(value, list):
        return "[" + ",".join(f"\n{deeper}{_written(item, deeper)}" for item in value) + f"\n{indent}]"
    named = (f"\n{deeper}{json.dumps(key)}: {_written(item, deeper)}" for key, item in value.items())
    return "{" + ",".join(named) + f"\n{indent}}}"


def _document(text: str) -> Any:
    """Return JSON where ``text`` is JSON, a list where each line is, else the lines."""
    lines = text.splitlines()
    for read in (lambda: json.loads(text), lambda: [json.loads(line) for line in lines]):
        try:
            return read()
        except ValueError:
            continue
    return lines


def _still(value: Any, moving: Collection[str]) -> Any:
    """Return ``value`` without this place, without what the keys ``moving`` hold, and numbers as far as machines agree."""
    if isinstance(value, dict):
        return dict(_still_items(value, moving))
    if isinstance(value, list):
        return [_still(item, moving) for item in value]
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, str):
        return _DIGEST.sub(r"\1…", value.replace(str(Path.cwd()), "<here>").replace(str(Path.cwd().resolve()), "<here>"))
    return value


def _still_items(table: dict[str, Any], moving: Collection[str]) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        yield key, f"<{key}>" if key in moving and value is not None else _still(value, moving)
