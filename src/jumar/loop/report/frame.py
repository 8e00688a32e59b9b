"""One frame of `jumar watch`: a read model in, lines of styled text out. Pure; nothing here reads a file or a clock."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from jumar.core.given import Given, extreme
from jumar.core.rendering.figures import count, dollars, duration, share
from jumar.core.text import cut, escape, in_ascii, points
from jumar.loop.report.rows import checks_head, compared_with, trajectory_row
from jumar.loop.report.spending import failures_text, spent_money, spent_tokens
from jumar.loop.report.status import PHASES, Chosen, LoopStatus, Running
from jumar.model import IterationRecord, IterationView
from jumar.model.ordering import valid_score

Span = tuple[str, str]
"""Text and the name of its style: ``""``, ``stair``, ``score``, ``score_on`` (on the stair), ``best``, ``bad``, ``dim``,
``head``, ``warn``, ``good``."""

Line = list[Span]

_NAMES: Final = MappingProxyType({"generate": "generating", "verify": "checking", "score": "scoring", "wait": "waiting"})
_STATES: Final = MappingProxyType(
    {"running": "good", "waiting": "warn", "finished": "good", "interrupted": "warn", "dead": "bad", "damaged": "bad"}
)
_SIDE_BY_SIDE: Final = 100  # columns from which dimensions and budget stand beside each other
_GAP: Final = 4
_MOST_DIMENSIONS: Final = 8
_MOST_LINES: Final = 3  # of what the state has to say
_LEVELS: Final = ((8, 8, 8, True), (6, 6, 5, True), (5, 4, 3, True), (5, 3, 2, False), (4, 2, 1, False), (3, 1, 0, False))
"""Rows of the chart and the table, lines of the log, and whether everything else is there: from plenty of room to little."""


def frame_lines(view: LoopStatus, *, width: int = 80, height: int | None = None, ascii_only: bool = False) -> list[Line]:
    """Return the frame as lines of spans (text, style), none longer than ``width`` characters.

    With a ``height`` what matters less is left out until it fits; what still does not fit is cut at the bottom.
    """
    signs = glyphs(ascii_only=ascii_only)
    width = max(40, width)
    lines: list[Line] = []
    for chart_rows, table_rows, log_rows, everything in _LEVELS:
        lines = _frame(view, width, signs, chart_rows, table_rows, log_rows, everything=everything)
        if height is None or len(lines) <= height:
            break
    if ascii_only:
        lines = [[(_in_ascii(text), style) for text, style in line] for line in lines]
    return lines[:height]


def _in_ascii(text: str) -> str:
    """Return ``text`` in plain words; those of the table's cells take room from the blanks before them."""
    return in_ascii(text.replace("  Δ", "+/-").replace("  —", "n/a"))


def _frame(
    view: LoopStatus, width: int, signs: Glyphs, chart_rows: int, table_rows: int, log_rows: int, *, everything: bool
) -> list[Line]:
    lines = _head(view, width, signs)
    if view.views:
        lines += [[], *_chart(view, width, chart_rows, signs)]
        lines += [[], *_table(view, table_rows, width)]
    left = [*_dimensions(view, signs, everything=everything), *_checks(view, signs)]
    if width >= _SIDE_BY_SIDE and left:
        lines += [[], *_beside(left, _budget(view, signs), width)]
    else:
        lines += [*([[], *left] if left else []), [], *_folded(_budget(view, signs), width)]
    lines += _phases(view, signs)
    lines += [[("failures  ", "head"), (failures_text(view.failures), "warn")]] if view.failures else []
    if log_rows and view.log:
        lines += [[], [("log       ", "head"), (view.log_name, "dim")]]
        lines += [[("  " + text, "dim")] for text in view.log[-log_rows:]]
    for problem in view.problems:
        wrapped = textwrap.wrap(escape(problem), max(20, width - 10)) or [""]
        lines += [[("note      " if first == 0 else " " * 10, "warn"), (text, "warn")] for first, text in enumerate(wrapped)]
    return [_cut(line, width) for line in lines]


def _head(view: LoopStatus, width: int, signs: Glyphs) -> list[Line]:
    what = f"{view.state_text}{': ' + view.detail if view.detail else ''}"
    name = escape(view.loop_id)
    told = textwrap.wrap(escape(what), max(20, width - len(name) - 3)) or [""]
    lines: list[Line] = [[(name, "head"), ("   ", ""), (told[0], _STATES.get(view.state, ""))]]
    lines += [[(" " * (len(name) + 3) + more, _STATES.get(view.state, ""))] for more in told[1:_MOST_LINES]]
    for running, seconds in view.running[:3]:
        if view.state == "dead":
            lines.append([("last step ", "head"), (_running(running, None) + ", cut off", "")])
        else:
            lines.append([("now       ", "head"), (_running(running, seconds), "")])
    if len(view.running) > 3:
        lines.append([(f"          and {len(view.running) - 3} more", "dim")])
    lines += _best(view, signs) if view.chosen is None else _chosen(view, view.chosen, signs)
    if view.objective.strip():
        lines.append([("objective ", "head"), (cut(escape(view.objective.strip().splitlines()[0]), width - 10), "dim")])
    return lines


def _best(view: LoopStatus, signs: Glyphs) -> list[Line]:
    if view.best is None:
        return []
    start = view.views[0] if view.views and view.views[0].number == 0 else None
    said = f"{signs.best} {points(view.best.quality_score or 0)} (iteration {view.best.iteration_number})"
    against = _to_start(view.best, view.best.quality_score, start and start.score)
    return [[("best      ", "head"), (said, "best"), *against]]


def _chosen(view: LoopStatus, chosen: Chosen, signs: Glyphs) -> list[Line]:
    number = chosen.record.iteration_number
    notes = [f"iteration {number}" if number else "the start", *chosen.notes]
    said = f"{signs.chosen} {'—' if chosen.score is None else points(chosen.score)} ({', '.join(notes)})"
    lines: list[Line] = [[("selected  ", "head"), (said, "best"), *_to_start(chosen.record, chosen.score, chosen.start)]]
    best = view.best
    if best is not None and best.iteration_number != number:
        why = f", {chosen.highest}" if chosen.highest else ""
        told = f"{signs.best} {points(best.quality_score or 0)} (iteration {best.iteration_number}){why}"
        lines.append([(f"{extreme(best.quality_score or 0.0):<10}", "head"), (told, "")])
    return lines


def _to_start(record: IterationRecord, score: float | None, start: float | None) -> Line:
    if score is None or start is None or not record.iteration_number:
        return []
    return [(f"  {points(score - start, sign=True)} to the start", "dim")]


def _chart(view: LoopStatus, width: int, height: int, signs: Glyphs) -> list[Line]:
    chosen = None if view.chosen is None else view.chosen.record.iteration_number
    return chart(view.views, width=width, height=height, signs=signs, limit=view.threshold, chosen=chosen)


def _running(running: Running, seconds: float | None) -> str:
    name = _NAMES.get(running.phase, running.phase)
    parts = [name]
    if running.iteration is not None:
        parts.append(f"iteration {running.iteration}")
    if running.candidate is not None:
        parts.append(f"(candidate {running.candidate})")
    if seconds is not None:
        parts.append(f"for {duration(seconds)}")
    if running.phase == "wait" and running.seconds is not None:
        parts.append(f"of {duration(running.seconds)}")
    return " ".join(parts) + (f": {escape(running.detail.replace('_', ' '))}" if running.detail else "")


def _table(view: LoopStatus, most: int, width: int) -> list[Line]:
    heads = ("it", "score", "Δ", checks_head(view.rows), "cost", "time", "")
    widths = (5, 7, 7, 9, 8, 8, 0)
    lines: list[Line] = [[(_cells(heads, widths), "dim")]]
    best = None if view.best is None else view.best.iteration_number
    chosen = None if view.chosen is None else view.chosen.record.iteration_number
    known = {record.iteration_number: record for record in (*((view.best,) if view.best else ()), *view.rows)}
    for index, record in enumerate(view.rows):
        if index < len(view.rows) - most:
            continue
        parent = compared_with(record, view.rows[index - 1] if index else None, known)
        row = trajectory_row(record, parent, best=best, chosen=chosen, weights=view.weights)
        said = row.said(escape(record.status_reason) if record.status != "ok" else "")
        cells = (*row.cells[:-1], cut(said, max(1, width - sum(widths) - 3)))
        style = "bad" if row.invalid else "best" if row.number == (best if chosen is None else chosen) else ""
        lines.append([(_cells(cells, widths)[:width], style)])
    return lines


def _cells(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return the cells right-aligned, a blank before each; the last one stands as it is."""
    return "".join(f" {cell:>{width - 1}}" if width else f"   {cell}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _dimensions(view: LoopStatus, signs: Glyphs, *, everything: bool) -> list[Line]:
    """Return a bar of the best iteration, or the selected one, for each dimension, and beside it how the last one did."""
    best, last = view.best if view.chosen is None else view.chosen.record, view.last
    names = dict.fromkeys([*(best.dimensions if best else ()), *(last.dimensions if last else ())])
    if not names or not everything:
        return []
    lines: list[Line] = [[("dimensions", "head"), (f"{'best' if view.chosen is None else 'selected':>13}{'last':>16}", "dim")]]
    for name in list(names)[:_MOST_DIMENSIONS]:
        of_best = None if best is None else best.dimensions.get(name)
        of_last = None if last is None else last.dimensions.get(name)
        line: Line = [(f"  {escape(name)[:14]:<15}", "")]
        for value, style in ((of_best, "best"), (of_last, "score")):
            line += [*_bar(value, 10, signs, style), (f" {share(value):>4} ", "")]
        lines.append(line)
    if len(names) > _MOST_DIMENSIONS:
        lines.append([(f"  and {len(names) - _MOST_DIMENSIONS} more", "dim")])
    return lines


def _bar(value: float | None, width: int, signs: Glyphs, style: str, reserved: float = 0.0) -> Line:
    if value is None:
        return [(" " * width, "")]
    filled = min(width, max(0, round(value * width)))
    if value > 0 and not filled:
        filled = 1
    aside = min(width - filled, round(reserved * width))
    parts = [(signs.full * filled, style), (signs.reserved * aside, "warn"), (signs.empty * (width - filled - aside), "dim")]
    return [part for part in parts if part[0]]


def _checks(view: LoopStatus, signs: Glyphs) -> list[Line]:
    if view.last is None or not view.last.checks:
        return []
    line: Line = [("checks    ", "head")]
    for check in view.last.checks[:12]:
        if check.broken is not None:
            line.append((f"? {escape(check.name)}  ", "warn"))
        else:
            mark, style = (signs.passed, "good") if check.passed else (signs.failed, "bad")
            counts = "" if check.tests is None else f" {check.tests.passed}/{check.tests.total}"
            line.append((f"{mark} {escape(check.name)}{counts}  ", style))
    return [line]


def _budget(view: LoopStatus, signs: Glyphs) -> list[Line]:
    spend, budget, done = view.settled_spend, view.budget, view.done
    money, tokens = view.reserved_cost_usd, view.reserved_tokens
    made = "attempts", spend.iterations, budget.max_iterations, _of(count, spend.iterations, budget.max_iterations), signs
    return [
        [("budget", "head")],
        _used("iterations", done, view.passes, _of(count, done, view.passes), signs),
        *([_used(*made)] if budget.max_iterations is not None or spend.iterations != done else []),
        _used("time", spend.seconds, budget.max_seconds, _of(duration, spend.seconds, budget.max_seconds), signs),
        _used("tokens", spend.charged_tokens, budget.max_tokens, spent_tokens(spend, budget), signs, tokens, count(tokens)),
        _used(
            *("cost", spend.charged_cost_usd, budget.max_cost_usd, spent_money(spend, budget).removeprefix("cost "), signs),
            *(money, dollars(money, places=2)),
        ),
    ]


def _of(show: Callable[[Any], str], used: float, limit: float | None) -> str:
    return f"{show(used)}{'' if limit is None else f' of {show(limit)}'}"


def _folded(lines: list[Line], width: int) -> list[Line]:
    """Return the lines with the note of one that is too long below its figures."""
    kept: list[Line] = []
    for line in lines:
        if sum(len(text) for text, _ in line) > width and line[-1][1] == "dim":
            kept += [line[:-1], [(" " * 13 + line[-1][0].strip(), "dim")]]
        else:
            kept.append(line)
    return kept


def _used(
    name: str, used: float, limit: float | None, text: str, signs: Glyphs, aside: float | None = None, reserved: str = ""
) -> Line:
    """Return a bar where there is a limit, and ``text``; of what is used, ``aside`` is ``reserved``, in words."""
    line: Line = [(f"  {name:<11}", "")]
    if limit is not None:
        full = used / limit if limit else 1.0
        line += [*_bar(full, 10, signs, "bad" if full > 1 else "score", (aside or 0.0) / limit if limit else 0.0), (" ", "")]
    figures, _, note = text.partition(" (")
    notes = [f"{reserved} reserved"] * bool(aside) + [note.removesuffix(")")] * bool(note)
    return [*line, (figures, ""), *([(f" ({', '.join(notes)})", "dim")] if notes else [])]


def _phases(view: LoopStatus, signs: Glyphs) -> list[Line]:
    total = sum(view.phase_seconds.get(name, 0.0) for name in PHASES)
    if total <= 0:
        return []
    parts = [
        f"{name} {duration(seconds)} {seconds / total:.0%}"
        for name in PHASES
        if (seconds := view.phase_seconds.get(name, 0.0)) > 0 or name != "wait"
    ]
    line: Line = [("time in   ", "head"), (f" {signs.dot} ".join(parts), "")]
    return [line, *([[("          (older events are gone)", "dim")]] if view.partial else [])]


def _beside(left: list[Line], right: list[Line], width: int) -> list[Line]:
    half = min(width // 2, max((sum(len(text) for text, _ in line) for line in left), default=0) + _GAP)
    lines: list[Line] = []
    right = _folded(right, width - half)
    for index in range(max(len(left), len(right))):
        one = _cut(left[index], half - 1) if index < len(left) else []
        used = sum(len(text) for text, _ in one)
        lines.append([*one, (" " * (half - used), ""), *(right[index] if index < len(right) else [])])
    return lines


def _cut(line: Line, width: int) -> Line:
    kept: Line = []
    for text, style in line:
        room = width - sum(len(one) for one, _ in kept)
        if room <= 0:
            break
        kept.append((text[:room], style))
    return kept


# ------------------------------------------------------------------------------------------------------------------ the chart


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
        label = _label(labels[index], scores[0]) if index in labels else " " * 6
        lines.append([(label + signs.axis, "dim"), *spans])
    lines.append([(" " * 6 + signs.corner + signs.floor * (len(columns) * wide), "dim")])
    lines.append([(" " * _AXIS + _ticks(columns, wide), "dim")])
    return lines


def _label(position: float, score: float) -> str:
    """Return what stands at the axis: points, or on a scale of their own the value there, as short as there is room."""
    if not isinstance(score, Given):
        return f"{position:>5.0f} "
    value = score.scale.at(position)
    return f"{next((text for digits in (4, 3, 2) if len(text := f'{value:.{digits}g}') <= _AXIS - 2), f'{value:.0e}'):>5} "


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
