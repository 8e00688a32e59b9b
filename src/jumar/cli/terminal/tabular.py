"""Tables: drawn with colour and wrapped to the window on a terminal, plainly aligned elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jumar.cli.common import colour_wanted, print_text, says_everything, writable
from jumar.core.text import cell_width, escape, in_ascii

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
