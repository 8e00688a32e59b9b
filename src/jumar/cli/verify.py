"""``jumar verify``: is what is on disk what was written?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from jumar.cli.common import command_for, complete_loop, json_option, open_loop, print_json, print_text, quiet_option, root_option
from jumar.cli.list import summaries
from jumar.errors import NotFoundError, StoreDamagedError
from jumar.text import escape, plural

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
    problems: tuple[dict[str, str], ...]
    iterations: int = 0
    files: int = 0
    size: int = 0
    planted: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "loop_id": self.loop_id,
            "ok": not self.problems,
            "iterations": self.iterations,
            "files": self.files,
            "bytes": self.size,
            "problems": list(self.problems),
            "planted": list(self.planted),
        }


@click.command("verify", epilog=_EPILOG)
@click.argument("loop", required=False, shell_complete=complete_loop)
@root_option
@json_option
@quiet_option
def verify_command(loop: str | None, root: Path, *, as_json: bool, quiet: bool) -> int:
    """Re-hash everything that a loop stored, and read every record; without LOOP, of all loops.

    Nothing is changed. Each problem says what can be done about it.
    """
    if loop is not None:
        results = [_verified(root, loop)]
    else:
        results = [_verified(root, summary.directory.name) for summary in summaries(root) if summary.state.name != "foreign"]
    damaged = any(result.problems for result in results)
    if as_json:
        print_json({"ok": not damaged, "loops": [result.to_json() for result in results]})
    else:
        _print(results, root, quiet=quiet)
    return StoreDamagedError.exit_code if damaged else 0


def _verified(root: Path, loop: str) -> Verified:
    from jumar.store.verify import verify

    try:
        store = open_loop(root, loop)
    except StoreDamagedError as error:
        fix = "restore loop.json from a backup; the iterations below it are untouched"
        return Verified(loop_id=loop, problems=({"path": "loop.json", "what": str(error), "fix": fix},))
    except NotFoundError:
        if not (root / "loops" / loop).is_dir():
            raise
        fix = "restore it from a backup, or move the directory away"
        return Verified(loop_id=loop, problems=({"path": "loop.json", "what": "missing", "fix": fix},))
    report = verify(store)
    problems = tuple({"path": str(found.path), "what": found.what, "fix": found.fix} for found in report.problems)
    return Verified(
        loop_id=store.loop_id,
        problems=problems,
        iterations=report.iterations,
        files=report.files,
        size=report.bytes,
        planted=tuple(found.to_json() for found in report.planted),
    )


def _print(results: list[Verified], root: Path, *, quiet: bool) -> None:
    from jumar.report.figures import size

    for result in results:
        for problem in result.problems:
            print_text(f"{escape(result.loop_id)}: {escape(problem['path'])}: {escape(problem['what'])}")
            print_text(f"    {escape(problem['fix'])}")
        for found in result.planted:
            names = ", ".join(found["values_of"])
            print_text(f"{escape(result.loop_id)}: {escape(found['path'])}: holds a secret, the value of {names}")
            print_text(f"    {command_for('redact', result.loop_id, '--value-of ' + found['values_of'][0])} takes it out")
        if quiet:
            continue
        verdict = plural(len(result.problems), "problem") if result.problems else "ok"
        counts = f"{plural(result.iterations, 'iteration')}, {plural(result.files, 'file')}, {size(result.size)} re-hashed"
        print_text(f"{escape(result.loop_id)}: {verdict} ({counts})")
    if not results and not quiet:
        print_text(f"no loops in {escape(str(root))}; nothing to verify")
