"""The scores of single items on the terminal: all of them where they are few, else none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from jumar.cli.terminal.tabular import Column, Row, print_table
from jumar.core.text import cut, escape

__all__ = ["print_scores", "score_text"]

_TEXT: Final = 60  # columns of an item's text that tell people which one it is


def print_scores(names: Sequence[str], rows: Iterable[tuple[str, Sequence[str], str]]) -> None:
    """Print a table of items: id, a cell for each of ``names``, and the beginning of its text."""
    columns = [Column(name="item"), *(Column(name=name, right=True) for name in names), Column(name="text", fold=True)]
    print_table(columns, [Row(cells=(name, *cells, escape(cut(" ".join(text.split()), _TEXT)))) for name, cells, text in rows])


def score_text(value: float | None, *, sign: bool = False) -> str:
    """Return a score with two decimals, a dash for an item that has none."""
    return "—" if value is None else f"{round(value, 2) + 0.0:{'+' if sign else ''}.2f}"
