"""``jumar files``: what an iteration holds, listed or written to a directory."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path

import click

from jumar.cli.common import (
    chosen_iteration,
    iteration_argument,
    loop_or_iteration,
    open_loop,
    print_json,
    print_line,
    print_text,
    shown_path,
    standard_options,
)
from jumar.core.redaction import current, redacted_json
from jumar.core.rendering.figures import size
from jumar.core.text import escape, plural
from jumar.loop.decisions.plan import snapshot_of
from jumar.loop.decisions.write_out import write_out
from jumar.loop.store.loop_store import LoopStore
from jumar.model import ArtifactDetail

_EPILOG = """\b
Examples:
  jumar files                     of the selected iteration of the newest loop
  jumar files 3 -o look           the files of iteration 3, in the new folder look
  jumar files readme-polish 3 --json"""

_KINDS = {"file": stat.S_IFREG, "symlink": stat.S_IFLNK}


@click.command("files", epilog=_EPILOG)
@iteration_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the files here, with their modes: a new or an empty directory.",
)
@standard_options
def files_command(
    loop: str | None,
    number: int | None,
    iteration: int | None,
    output: Path | None,
    root: Path,
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    """List the files that an iteration holds, or write them to a directory: of iteration N, else of the selected one.

    What is written was compared with the hashes that were recorded. A link that leads out of the directory is refused.
    """
    loop, iteration = loop_or_iteration(root, loop, number, iteration)
    store = open_loop(root, loop, tell=not (quiet or as_json))
    chosen = chosen_iteration(store) if iteration is None else iteration
    if output is None:
        _list(store, chosen, as_json=as_json, quiet=quiet)
    else:
        _write(store, chosen, output, as_json=as_json, quiet=quiet)
    return 0


def _list(store: LoopStore, iteration: int, *, as_json: bool, quiet: bool) -> None:
    details = list(snapshot_of(store, iteration)[0].entries.values())
    if as_json:
        document = {"loop_id": store.loop_id, "iteration": iteration, "files": [detail.to_json() for detail in details]}
        print_json(redacted_json(document, current().redact, keep=frozenset({"content_hash"})))
        return
    width = max((len(f"{detail.size:,}") for detail in details), default=0)
    for detail in details:
        mode = stat.filemode(_KINDS[detail.kind] | detail.mode) if detail.kind in _KINDS else "?" * 10
        print_text(f"{mode}  {detail.size:>{width},}  {_name(detail)}")
    if not quiet:
        print_line("files", f"{_counted(details)} in iteration {iteration} of {store.loop_id}")


def _write(store: LoopStore, iteration: int, directory: Path, *, as_json: bool, quiet: bool) -> None:
    written = write_out(store, iteration, directory).write
    if as_json:
        print_json(
            {
                "loop_id": store.loop_id,
                "iteration": iteration,
                "output": str(directory.absolute()),
                "files": len(written),
                "bytes": sum(detail.size for detail in written),
            }
        )
    elif not quiet:
        print_text(f"wrote {_counted(written)} of iteration {iteration} to {shown_path(directory)}")


def _name(detail: ArtifactDetail) -> str:
    further = f" → {detail.target}" if detail.target is not None else f" (not stored: {detail.skipped})" if detail.skipped else ""
    return current().redact(escape(detail.path + further))


def _counted(details: Iterable[ArtifactDetail]) -> str:
    sizes = [detail.size for detail in details]
    return f"{plural(len(sizes), 'file')}, {size(sum(sizes))}"
