"""``jumar verify``: is what is on disk what was written?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from jumar.cli.common import (
    command_for,
    find_loop,
    json_option,
    listed_root,
    loop_argument,
    open_loop,
    print_json,
    print_text,
    quiet_option,
    root_option,
)
from jumar.cli.loop.list import summaries
from jumar.core.text import escape, plural
from jumar.errors import NotFoundError, StoreDamagedError
from jumar.loop.store.layout import root_of

__all__ = ["verify_command"]

_EPILOG = """\b
Examples:
  jumar verify readme-polish
  jumar verify                    all loops
  jumar verify --json --quiet

Exit code: 0 when everything is as it was written, 14 when anything is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The result for one loop. ``problems`` are dicts with ``path``, ``what`` and ``fix``, ``planted`` with ``path``."""

    loop_id: str
    directory: Path
    problems: tuple[dict[str, str], ...]
    iterations: int = 0
    files: int = 0
    size: int = 0
    notes: tuple[str, ...] = ()
    planted: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "loop_id": self.loop_id,
            "ok": not self.problems,
            "iterations": self.iterations,
            "files": self.files,
            "bytes": self.size,
            "problems": list(self.problems),
            "notes": list(self.notes),
            "planted": list(self.planted),
        }


@click.command("verify", epilog=_EPILOG)
@loop_argument
@root_option
@json_option
@quiet_option
def verify_command(loop: str | None, root: Path, *, as_json: bool, quiet: bool) -> int:
    """Re-hash everything that a loop stored, and read every record; without LOOP, of all loops.

    Nothing is changed. Each problem says what can be done about it.
    """
    if loop is not None:
        results = [_verified(root, find_loop(root, loop))]
    else:
        root = listed_root(root)
        results = [_verified(root, summary.directory) for summary in summaries(root) if summary.state.name != "foreign"]
        if not root.is_dir():
            raise NotFoundError(f"there is no folder {escape(str(root))}, so nothing to verify; name another one with --root")
    damaged = any(result.problems for result in results)
    if as_json:
        print_json({"ok": not damaged, "loops": [result.to_json() for result in results]})
    else:
        _print(results, quiet=quiet)
    return StoreDamagedError.exit_code if damaged else 0


def _verified(root: Path, directory: Path) -> Verified:
    from jumar.loop.store.integrity.verify import verify

    name = directory.name
    try:
        store = open_loop(root, str(directory.absolute()))
    except StoreDamagedError as error:
        fix = f"restore it from a backup; where there is none, {_aside(directory)}"
        return Verified(loop_id=name, directory=directory, problems=({"path": "loop.json", "what": str(error), "fix": fix},))
    except NotFoundError:
        if root_of(directory) == directory:
            raise
        fix = f"restore it from a backup; where there is none, {_aside(directory)}"
        return Verified(loop_id=name, directory=directory, problems=({"path": "loop.json", "what": "missing", "fix": fix},))
    report = verify(store)
    problems = tuple({"path": str(found.path), "what": found.what, "fix": found.fix} for found in report.problems)
    return Verified(
        loop_id=store.loop_id,
        directory=directory,
        problems=problems,
        iterations=report.iterations,
        files=report.files,
        size=report.bytes,
        notes=report.notes,
        planted=tuple(found.to_json() for found in report.planted),
    )


def _aside(directory: Path) -> str:
    return f"{command_for('repair', directory, named=True)} moves the whole loop away"


def _print(results: list[Verified], *, quiet: bool) -> None:
    from jumar.core.rendering.figures import size

    for result in results:
        for problem in result.problems:
            print_text(f"{escape(result.loop_id)}: {escape(problem['path'])}: {escape(problem['what'])}")
            print_text(f"    {escape(problem['fix'])}")
        for found in result.planted:
            names = ", ".join(found["values_of"])
            print_text(f"{escape(result.loop_id)}: {escape(found['path'])}: holds a secret, the value of {names}")
            delete = " or ".join(command_for(command, result.directory) for command in ("cleanup", "rm"))
            print_text(f"    revoke it, exclude the file under [artifacts], and delete the snapshot or the loop: {delete}")
        if quiet:
            continue
        for note in result.notes:
            print_text(f"{escape(result.loop_id)}: note: {note}")
        verdict = plural(len(result.problems), "problem") if result.problems else "ok"
        counts = f"{plural(result.iterations, 'iteration')}, {plural(result.files, 'file')}, {size(result.size)} re-hashed"
        print_text(f"{escape(result.loop_id)}: {verdict} ({counts})")
