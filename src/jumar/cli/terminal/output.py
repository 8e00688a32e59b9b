"""Tables, drawn with colour on a terminal and plainly aligned elsewhere; and reports, printed, written to a file or shown."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jumar.cli.common import colour_wanted, print_json, print_text, says_everything, writable
from jumar.core.files import as_write_error, write_named
from jumar.core.text import cell_width, escape, in_ascii
from jumar.errors import UsageError

_GAP = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A heading, and how its cells are laid out. ``fold`` lets long cells take several lines on a terminal."""

    name: str
    right: bool = False
    fold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """The cells of one line, as text of any origin, and a colour for terminals (a style of rich)."""

    cells: tuple[str, ...]
    style: str = ""


def print_table(columns: Sequence[Column], rows: Sequence[TableRow]) -> None:
    """Print ``rows`` below their headings on stdout. Control characters in cells are shown, not obeyed."""
    spelled: Callable[[str], str] = str if says_everything(sys.stdout.encoding) else in_ascii  # before anything is aligned
    columns = [replace(column, name=spelled(column.name)) for column in columns]
    safe = [TableRow(cells=tuple(escape(spelled(cell)) for cell in row.cells), style=row.style) for row in rows]
    if sys.stdout.isatty():
        _print_rich(columns, safe)
    else:
        _print_plain(columns, safe)


def print_title(left: str, right: str = "") -> None:
    """Print a heading line: bold on a terminal, ``right`` moved to its edge there."""
    left, right = escape(left), escape(right)
    if not sys.stdout.isatty():
        print_text(f"{left}   {right}".rstrip())
        return
    space = min(shutil.get_terminal_size().columns, 100) - cell_width(left) - cell_width(right)
    line = writable(f"{left}{' ' * max(3, space)}{right}".rstrip(), sys.stdout.encoding)
    sys.stdout.write(f"\x1b[1m{line}\x1b[0m\n" if colour_wanted() else f"{line}\n")


def _print_plain(columns: Sequence[Column], rows: Sequence[TableRow]) -> None:
    lines = [tuple(column.name for column in columns), *(row.cells for row in rows)]
    widths = [max(cell_width(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        cells = [
            (" " * (width - cell_width(cell)) + cell) if column.right else (cell + " " * (width - cell_width(cell)))
            for column, width, cell in zip(columns, widths, line, strict=True)
        ]
        print_text((_GAP + _GAP.join(cells)).rstrip())


def _print_rich(columns: Sequence[Column], rows: Sequence[TableRow]) -> None:
    import io

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0), header_style="dim")
    table.add_column("", width=0)
    for column in columns:
        table.add_column(
            Text(column.name),
            justify="right" if column.right else "left",
            no_wrap=not column.fold,
            overflow="fold" if column.fold else "ellipsis",
        )
    for row in rows:
        table.add_row("", *(Text(cell) for cell in row.cells), style=row.style)
    # drawn into a string first: what the terminal's encoding cannot say is escaped instead of being an error
    drawing = Console(
        file=io.StringIO(),
        force_terminal=colour_wanted(),
        highlight=False,
        width=shutil.get_terminal_size().columns,
    )
    drawing.print(table)
    drawn = drawing.file.getvalue() if isinstance(drawing.file, io.StringIO) else ""
    lines = [line.rstrip() for line in drawn.splitlines()]
    sys.stdout.write(writable("\n".join(lines), sys.stdout.encoding) + "\n")


# ------------------------------------------------------------------------------------------------------------------ documents


def choose_format(form: str | None, output: Path | None, suffixes: Mapping[str, str], *, default: str, as_json: bool) -> str:
    """Return the format that is named, else that of the file's suffix, else ``default`` (JSON with --json).

    Errors: :class:`UsageError` for two documents on one stdout, a suffix that says nothing, and a folder that is not there.
    """
    if as_json and output is None and form not in {None, "json"}:
        raise UsageError(f"--json and --format {form} are two documents for one stdout; write one of them to a file with -o")
    if output is None:
        return form or ("json" if as_json else default)
    suffix = output.suffix.lower()
    if form is None and suffix not in {"", *suffixes}:
        known = ", ".join(suffixes)
        raise UsageError(f"-o {escape(output.name)}: its format cannot be told from the name ({known}); say it with --format")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"-o {escape(str(output))}: the folder {escape(str(output.parent))} does not exist")
    return form or suffixes.get(suffix, default)


def write_document(
    text: str, output: Path | None, form: str, *, of: Mapping[str, str], for_people: str, as_json: bool, quiet: bool
) -> None:
    """Print a report, or write it to ``output`` and say so. ``of`` names what it is about, for --json.

    ``for_people`` is the format that is text for a terminal. Errors: :class:`jumar.errors.StoreWriteError`.
    """
    data = text.encode("utf-8", "backslashreplace")
    if output is None:
        if form == for_people:
            print_text(text.removesuffix("\n"))
        else:
            # formats for programs are UTF-8 whatever the terminal speaks; their renderings hold no control characters
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        return
    write_file(data, output, form, of=of, as_json=as_json, quiet=quiet)


def write_file(data: bytes, output: Path, form: str, *, of: Mapping[str, str], as_json: bool, quiet: bool) -> None:
    """Write what a command made to ``output`` and say so, as :func:`write_document` does."""
    with as_write_error("write", output):
        write_named(output, data)
    if as_json:
        print_json({**of, "format": form, "output": str(output.absolute()), "bytes": len(data)})
    elif not quiet:
        print_text(f"wrote {escape(str(output))} ({form}, {len(data):,} bytes)")


def new_page() -> Path:
    """Return a new, empty temporary file for a page that a browser is to show; nobody else can have made it."""
    handle, name = tempfile.mkstemp(prefix="jumar-report-", suffix=".html")
    os.close(handle)
    return Path(name)


def show_page(page: Path) -> bool:
    """Show ``page`` in the person's browser; return whether one was started."""
    import webbrowser

    return webbrowser.open(page.absolute().as_uri())
