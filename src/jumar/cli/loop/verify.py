"""``jumar verify``: is what is on disk what was written?"""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cli.common import (
    command_for,
    find_loop,
    listed_root,
    loop_argument,
    open_loop,
    print_json,
    print_text,
    standard_options,
)
from jumar.core.findings import Problem, VerifyReport, told
from jumar.core.rendering.figures import size
from jumar.core.text import escape, plural
from jumar.errors import NotFoundError, StoreDamagedError
from jumar.loop.report.observer import list_summaries
from jumar.loop.store.layout import root_of
from jumar.loop.store.verify import verify

_EPILOG = """\b
Examples:
  jumar verify readme-polish
  jumar verify                    all loops
  jumar verify --quick            is everything there? Stored files are not read
  jumar verify --json --quiet

Exit code: 0 when everything is as it was written, 14 when anything is damaged."""


@click.command("verify", epilog=_EPILOG)
@loop_argument
@click.option("--quick", is_flag=True, help="Only look whether every stored file is there, in its size; read the records alone.")
@standard_options
def verify_command(loop: str | None, root: Path, *, quick: bool, as_json: bool, quiet: bool) -> int:
    """Re-hash everything that a loop stored, and read every record; without LOOP, of all loops.

    Nothing is changed. Each problem says what can be done about it. Many files of one snapshot are told as one; --json names
    each. What several snapshots share is stored, and counted, once.
    """
    if loop is not None:
        results = [_verified(root, find_loop(root, loop), quick=quick)]
    else:
        root = listed_root(root)
        listed = [summary.directory for summary in list_summaries(root) if summary.state.name != "foreign"]
        results = [_verified(root, directory, quick=quick) for directory in listed]
        if not root.is_dir():
            raise NotFoundError(f"there is no folder {escape(str(root))}, so nothing to verify; name another one with --root")
    damaged = any(report.problems for _, _, report in results)
    if as_json:
        said = {"ok": not damaged, "quick": True} if quick else {"ok": not damaged}
        print_json({**said, "loops": [{"loop_id": name} | report.to_json() for name, _, report in results]})
    else:
        _print(results, quick=quick, quiet=quiet)
    return StoreDamagedError.exit_code if damaged else 0


Verified = tuple[str, Path, VerifyReport]
"""A loop's name, where it is, and what was found."""


def _verified(root: Path, directory: Path, *, quick: bool) -> Verified:
    try:
        store = open_loop(root, str(directory.absolute()))
    except StoreDamagedError as error:
        return _unreadable(directory, str(error))
    except NotFoundError:
        if root_of(directory) == directory:
            raise
        return _unreadable(directory, "missing")
    return store.loop_id, directory, verify(store, quick=quick)


def _unreadable(directory: Path, what: str) -> Verified:
    away = f"{command_for('repair', directory, named=True)} moves the whole loop away"
    fix = f"restore it from a backup; where there is none, {away}"
    problem = Problem("loop.json", what, fix, directory / "loop.json")
    return directory.name, directory, VerifyReport(problems=(problem,), files=0, bytes=0, iterations=0)


def _print(results: list[Verified], *, quick: bool, quiet: bool) -> None:
    for loop_id, directory, report in results:
        name = escape(loop_id)
        for path, what, fix in told((each.path, each.what, each.fix) for each in report.problems):
            print_text(f"{name}: {escape(path)}: {escape(what)}")
            print_text(f"    {escape(fix)}")
        for planted in report.planted:
            print_text(f"{name}: {escape(planted.path)}: holds a secret, the value of {', '.join(planted.names)}")
            delete = " or ".join(command_for(command, directory) for command in ("cleanup", "rm"))
            print_text(f"    revoke it, exclude the file under [artifacts], and delete the snapshot or the loop: {delete}")
        if quiet:
            continue
        for note in report.notes:
            print_text(f"{name}: note: {note}")
        verdict = plural(len(report.problems), "problem") if report.problems else "ok"
        hashed = "contents not re-hashed" if quick else f"{plural(report.files, 'stored file')}, {size(report.bytes)} re-hashed"
        print_text(f"{name}: {verdict} ({plural(report.iterations, 'iteration')}, {hashed})")
