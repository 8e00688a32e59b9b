"""Geometry of the course of a learning run: three strips over the iterations. Numbers in, coordinates out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jumar.core.text import number
from jumar.learning.report.view import LearningReport
from jumar.loop.report.plot import Label, Tick

WIDE: Final = (880, 44, 84)
NARROW: Final = (360, 38, 16)
"""Width, and the room at the left and at the right, in user units."""

_TOP: Final = 48
_NOTE: Final = 17  # a narrow plot has the note on a line of its own
_HEIGHT: Final = 104
_BETWEEN: Final = 52
_BOTTOM: Final = 48
_MOST_DOTS: Final = 120
_FEW, _FEW_NARROW = 16, 8  # points whose values can stand beside them


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """An iteration in a strip. ``kind`` is ``start``, ``kept`` or ``back`` (rolled back); ``title`` is what hovering tells."""

    x: float
    y: float
    kind: str
    best: bool
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """One figure: a line with its dots, grid lines, and a level to compare with where there is one.

    ``head`` is where its name stands, ``level_text`` where the level is named in a narrow plot. ``values`` is what the dots
    say, where there are few enough to write that down.
    """

    name: str
    note: str
    head: float
    top: float
    bottom: float
    line: str
    dots: tuple[Dot, ...]
    ticks: tuple[Tick, ...]
    level: Tick | None
    level_text: float
    values: tuple[Label, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoursePlot:
    """The strips with the x-axis that they share. ``best`` is where the best iteration stands, None where none is known."""

    width: int
    height: int
    left: int
    right: int
    strips: tuple[Strip, ...]
    x_ticks: tuple[Tick, ...]
    best: Label | None


@dataclass(frozen=True, slots=True)
class _Point:
    number: int
    values: tuple[float | None, float | None, float | None]
    kind: str
    said: str


_STRIPS: Final = (
    ("Gap", "mean distance from the judge in points, less is better"),
    ("Rank correlation", "1 is the judge's order, 0 is chance"),
    ("Active patterns", ""),
)


def course_plot(report: LearningReport, size: tuple[int, int, int] = WIDE) -> CoursePlot | None:
    """Return the plot; None where there is no iteration."""
    points = _points(report)
    if not report.logs:
        return None
    width, left, room = size
    right = width - room
    first, last = points[0].number, points[-1].number

    def x(number_: int) -> float:
        return round(
            (left + right) / 2 if first == last else left + 10 + (number_ - first) / (last - first) * (right - left - 20), 1
        )

    strips: list[Strip] = []
    between = _BETWEEN if width >= WIDE[0] else _BETWEEN + _NOTE
    for place in range(len(_STRIPS)):
        top = _TOP + place * (_HEIGHT + between)
        level = report.constant if place == 0 else None
        strips.append(
            _strip(points, place, [x(point.number) for point in points], top, report.best, level, narrow=width < WIDE[0])
        )
    height = _TOP + 3 * _HEIGHT + 2 * between + _BOTTOM
    numbers = _numbers([point.number for point in points], 16 if width >= WIDE[0] else 8)
    best = None
    if report.best is not None and any(point.number == report.best for point in points):
        at = x(report.best)
        best = Label(
            x=at, y=height - 6, anchor="start" if at < left + 40 else "end" if at > right - 40 else "middle", text="★ best"
        )
    return CoursePlot(
        width=width,
        height=height,
        left=left,
        right=right,
        strips=tuple(strips),
        x_ticks=tuple(
            Tick(at=x(number), label="start" if number == 0 and len(numbers) <= _FEW_NARROW + 1 else str(number))
            for number in numbers
        ),
        best=best,
    )


def course_summary(report: LearningReport) -> str:
    """Return in a sentence what the plot shows, for those who do not see it."""
    rows = report.iterations
    if not rows:
        return ""
    best = next((row for row in rows if row.iteration == report.best), None)
    told = f"Gap from {number(rows[0].abs_gap)} to {number(rows[-1].abs_gap)} over {len(rows)} iterations"
    if best is not None:
        told += f"; iteration {best.iteration} is the best, with a gap of {number(best.abs_gap)} and {best.patterns:,} patterns"
    return told + "."


def _points(report: LearningReport) -> list[_Point]:
    found: list[_Point] = []
    if report.start is not None:
        gap, rank = report.start
        found.append(_Point(0, (gap, rank, None), "start", "the set that the run began with"))
    for iteration in report.iterations:
        decisions = iteration.decisions
        kind = "back" if decisions.rollbacks else "kept"
        found.append(
            _Point(iteration.iteration, (iteration.abs_gap, iteration.spearman, float(iteration.patterns)), kind, decisions.short)
        )
    return found


def _strip(
    points: Sequence[_Point],
    place: int,
    xs: Sequence[float],
    top: float,
    best: int | None,
    level: float | None,
    *,
    narrow: bool,
) -> Strip:
    name, note = _STRIPS[place]
    values = [point.values[place] for point in points]
    known = [value for value in values if value is not None]
    low, high, step = _range([*known, *([] if level is None else [level])], whole=place == 2)
    bottom = top + _HEIGHT

    def y(value: float) -> float:
        return round(bottom - (value - low) / (high - low) * _HEIGHT, 1)

    dots: list[Dot] = []
    line: list[str] = []
    written: list[Label] = []
    few = len(points) <= (_FEW_NARROW if narrow else _FEW)
    for one, x, value in zip(points, xs, values, strict=True):
        if value is None:
            continue
        line.append(f"{'L' if line else 'M'}{x:g} {y(value):g}")
        told = f"{value:,.0f}" if place == 2 else f"{value:.3f}"
        if few:
            short = told if place == 2 else f"{value:.2f}"
            written.append(Label(x=x, y=y(value) - 9, anchor="middle", text=short.replace("-", "−")))
        is_best = one.number == best
        if len(points) <= _MOST_DOTS or is_best or one.kind == "back":
            title = f"iteration {one.number}: {name.lower()} {told}; {one.said}{'; best' if is_best else ''}"
            dots.append(Dot(x=x, y=y(value), kind=one.kind, best=is_best, title=title))
    count = round((high - low) / step)
    labels = [low + index * step for index in range(count + 1)]
    places = 0 if place == 2 or step >= 1 else max(0, -math.floor(math.log10(step) + 1e-9))
    return Strip(
        name=name,
        note=note,
        head=top - 20 - (_NOTE if narrow and note else 0),
        values=tuple(written),
        top=top,
        bottom=bottom,
        line="".join(line),
        dots=tuple(dots),
        ticks=tuple(Tick(at=y(value), label=f"{round(value, 6) + 0.0:,.{places}f}".replace("-", "−")) for value in labels),
        level_text=0.0 if level is None else y(level) + (14 if dots and dots[-1].y <= y(level) else -5),
        level=None if level is None else Tick(at=y(level), label=f"constant {level:.2f}"),
    )


def _range(values: Sequence[float], *, whole: bool) -> tuple[float, float, float]:
    """Return a range around ``values`` and the step of its grid, two to four steps in all."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    least = 10.0 if whole else 0.1
    if whole:
        low = 0.0
    if high - low < least:
        middle = (low + high) / 2
        low, high = (0.0, max(high, least)) if whole else (middle - least / 2, middle + least / 2)
    step = _round_step((high - low) / 3)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return low, max(high, low + step), step


def _numbers(numbers: Sequence[int], most: int) -> list[int]:
    if len(numbers) <= most:
        return list(numbers)
    step = int(_round_step((numbers[-1] - numbers[0]) / (most - 1)))
    return [number for number in numbers if number % step == 0]


def _round_step(wanted: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten."""
    magnitude: float = 10 ** math.floor(math.log10(wanted))
    return next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= wanted)
