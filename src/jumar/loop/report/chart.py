"""The best score so far as a stair, and every score below it, in characters. Pure: views in, lines out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jumar.model import IterationView
from jumar.model.views import valid_score

Span = tuple[str, str]
"""Text and the name of its style: ``""``, ``stair``, ``score``, ``score_on`` (on the stair), ``best``, ``bad``, ``dim``,
``head``, ``warn``, ``good``."""

_WIDEST: Final = 6  # columns for one iteration
_AXIS: Final = 7  # columns for the numbers on the left


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters of a frame: ``levels`` fill ⅛ to a whole cell, ``score`` is an iteration, ``bad`` one without a score.

    ``best`` is an iteration that was a new best, ``chosen`` the one that stands in the end.
    """

    levels: str
    score: str
    best: str
    chosen: str
    bad: str
    axis: str
    corner: str
    floor: str
    full: str
    empty: str
    reserved: str
    passed: str
    failed: str
    dot: str


_UNICODE: Final = Glyphs("▁▂▃▄▅▆▇█", "•", "◆", "★", "×", "┤", "└", "─", "█", "░", "▒", "✓", "✗", "·")
_ASCII: Final = Glyphs("____====", "o", "*", "@", "x", "|", "+", "-", "#", ".", "+", "ok ", "FAIL ", "|")


def glyphs(*, ascii_only: bool) -> Glyphs:
    """Return the characters for a terminal."""
    return _ASCII if ascii_only else _UNICODE


@dataclass(frozen=True, slots=True)
class _Column:
    """One column, or group of columns: the best at its end, its scores, a new best, the selected one, whether one is invalid."""

    number: int
    best: float | None
    scores: tuple[float, ...]
    record: float | None
    bad: bool
    chosen: float | None = None


def chart(
    views: Sequence[IterationView],
    *,
    width: int,
    height: int,
    signs: Glyphs,
    limit: float | None = None,
    chosen: int | None = None,
) -> list[list[Span]]:
    """Return ``height`` lines of at most ``width`` columns, and two for the axis.

    ``limit`` is a threshold to be in the picture, ``chosen`` the number of the iteration that stands, None while the loop runs.
    With more iterations than columns, one column stands for several: the best at their end, and the highest and lowest score.
    Without a valid score there is nothing to draw: one line says so.
    """
    scores = [score for view in views if (score := valid_score(view)) is not None]
    if not scores:
        return [[("no valid score yet", "dim")]]
    low, high = _range([*scores, *([] if limit is None else [limit])])
    room = max(4, width - _AXIS)
    wide = max(1, min(_WIDEST, room // len(views)))
    columns = _columns(views, room // wide, chosen)
    rows = [_row(columns, row, height, low, high, wide, signs) for row in range(height - 1, -1, -1)]
    labels = {0: high, height // 2: high - (high - low) * (height // 2) / max(1, height - 1), height - 1: low}
    lines: list[list[Span]] = []
    for index, spans in enumerate(rows):
        label = f"{labels[index]:>5.0f} " if index in labels else " " * 6
        lines.append([(label + signs.axis, "dim"), *spans])
    lines.append([(" " * 6 + signs.corner + signs.floor * (len(columns) * wide), "dim")])
    lines.append([(" " * _AXIS + _ticks(columns, wide), "dim")])
    return lines


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Return round limits around ``values`` within 0 to 100, at least 10 points apart."""
    low, high = min(values), max(values)
    if high - low < 10:
        low, high = low - (10 - (high - low)) / 2, high + (10 - (high - low)) / 2
    low, high = max(0.0, math.floor(low / 5) * 5.0), min(100.0, math.ceil(high / 5) * 5.0)
    return (low, high) if high - low >= 10 else (max(0.0, high - 10), max(high, 10.0))


def _columns(views: Sequence[IterationView], most: int, chosen: int | None) -> list[_Column]:
    size = max(1, -(-len(views) // most))
    best: float | None = None
    columns: list[_Column] = []
    for begin in range(0, len(views), size):
        valid: list[float] = []
        record: float | None = None
        stands: float | None = None
        bad = False
        for view in views[begin : begin + size]:
            score = valid_score(view)
            if score is None:
                bad = True
                continue
            valid.append(score)
            if best is None or score > best:
                best = record = score
            if view.number == chosen:
                stands = score
        shown = tuple(dict.fromkeys((max(valid), min(valid)))) if valid else ()
        number = views[begin].number
        columns.append(_Column(number=number, best=best, scores=shown, record=record, bad=bad, chosen=stands))
    return columns


def _row(columns: Sequence[_Column], row: int, height: int, low: float, high: float, wide: int, signs: Glyphs) -> list[Span]:
    """Return the cells of one row, ``row`` 0 at the bottom; neighbours of one style are one span."""
    spans: list[Span] = []
    for column in columns:
        text, style = _cell(column, row, height, low, high, signs)
        fill, fill_style = _area(column.best, row, height, low, high, signs)
        if wide == 1 or (text, style) == (fill, fill_style):
            pieces = [(text * wide, style)]
        else:
            before = (wide - 1) // 2
            pieces = [(fill * before, fill_style), (text, style), (fill * (wide - 1 - before), fill_style)]
        for piece, piece_style in pieces:
            if spans and spans[-1][1] == piece_style:
                spans[-1] = (spans[-1][0] + piece, piece_style)
            elif piece:
                spans.append((piece, piece_style))
    return spans


def _cell(column: _Column, row: int, height: int, low: float, high: float, signs: Glyphs) -> Span:
    if column.chosen is not None and _level(column.chosen, height, low, high) == row:
        return signs.chosen, "best"
    if column.record is not None and _level(column.record, height, low, high) == row:
        return signs.best, "best"
    if any(_level(score, height, low, high) == row for score in column.scores):
        below = _area(column.best, row, height, low, high, signs)[0] == signs.full
        return signs.score, "score_on" if below else "score"
    if column.bad and row == 0:
        return signs.bad, "bad"
    return _area(column.best, row, height, low, high, signs)


def _level(score: float, height: int, low: float, high: float) -> int:
    return min(height - 1, max(0, int((score - low) / (high - low) * height)))


def _area(best: float | None, row: int, height: int, low: float, high: float, signs: Glyphs) -> Span:
    """Return the cell of the stair: full below the best, part of a cell at its height, blank above."""
    if best is None:
        return " ", ""
    filled = (best - low) / (high - low) * height - row
    if filled >= 1:
        return (signs.levels[-1] if signs is _UNICODE else " "), "stair"
    if filled < 0:
        return " ", ""
    return signs.levels[min(7, int(filled * 8))], "stair"


def _ticks(columns: Sequence[_Column], wide: int) -> str:
    """Return the numbers of some iterations below their columns, without touching each other."""
    text = ""
    wanted = max(1, -(-8 // wide))
    for index, column in enumerate(columns):
        label = str(column.number)
        if index % wanted == 0 and len(text) <= index * wide and index * wide + len(label) <= len(columns) * wide:
            text = text.ljust(index * wide) + label + " "
    return text.rstrip()
