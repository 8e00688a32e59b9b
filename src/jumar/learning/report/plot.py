"""The course of a learning run: gap, rank correlation and patterns over the iterations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jumar.core.rendering.plot import (
    WIDE,
    Frame,
    Label,
    Mark,
    Panel,
    Plot,
    Tick,
    iteration_ticks,
    linear,
    lines_of,
    range_of,
)
from jumar.core.text import number
from jumar.learning.report.view import LearningReport

_TOP: Final = 48
_HEIGHT: Final = 104
_BETWEEN: Final = 52
_MOST_DOTS: Final = 120
_FEW, _FEW_NARROW = 16, 8  # points whose values can stand beside them


@dataclass(frozen=True, slots=True)
class _Point:
    number: int
    values: tuple[float | None, float | None, float | None]
    kind: str
    said: str


_STRIPS: Final = (
    ("Gap", "distance from the judge in points, less is better"),
    ("Rank correlation", "1 is the judge's order, 0 is chance"),
    ("Active patterns", ""),
)


def course_plot(report: LearningReport, frame: Frame = WIDE) -> Plot | None:
    """Return the plot of three panels; None where there is no iteration.

    Marks are of kind ``start``, ``kept`` or ``back`` (rolled back).
    """
    points = _points(report)
    if not report.logs:
        return None
    numbers = [point.number for point in points]
    x = linear(numbers[0], numbers[-1], frame.left + 10, frame.x_end - 10)
    xs = [x(number) for number in numbers]
    here = None
    if report.best in numbers:
        here = Label(x=x(report.best), y=0, anchor=frame.anchor(x(report.best)), text="★ best")
    return Plot(
        frame=frame,
        panels=tuple(_panel(points, place, xs, report, frame) for place in range(len(_STRIPS))),
        x_ticks=iteration_ticks(numbers, frame, x),
        here=here,
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


def _panel(points: Sequence[_Point], place: int, xs: Sequence[float], report: LearningReport, frame: Frame) -> Panel:
    name, note = _STRIPS[place]
    counted = place == 2
    level = report.constant if place == 0 else None
    values = [point.values[place] for point in points]
    held = [value for value in (*values, level) if value is not None]
    axis = range_of(held, steps=3, least=10 if counted else 0.1, zero=counted)
    top = _TOP + place * (_HEIGHT + _BETWEEN)
    y = linear(axis.low, axis.high, top + _HEIGHT, top)
    few = len(points) <= (_FEW if frame.width >= WIDE.width else _FEW_NARROW)
    marks: list[Mark] = []
    written: list[Label] = []
    for point, x, value in zip(points, xs, values, strict=True):
        if value is None:
            continue
        exact = f"{value:,.0f}" if counted else f"{value:.3f}"
        if few:
            short = exact if counted else f"{value:.2f}"
            written.append(Label(x=x, y=y(value) - 9, text=short.replace("-", "−"), kind="value"))
        best = point.number == report.best
        if len(points) <= _MOST_DOTS or best or point.kind == "back":
            title = f"iteration {point.number}: {name.lower()} {exact}; {point.said}{'; best' if best else ''}"
            marks.append(Mark(x=x, y=y(value), kind=point.kind, title=title, chosen=best, radius=4))
    return Panel(
        top=top,
        bottom=top + _HEIGHT,
        y_ticks=axis.ticks(y),
        lines=lines_of((x, None if value is None else y(value)) for x, value in zip(xs, values, strict=True)),
        marks=tuple(marks),
        levels=() if level is None else (Tick(at=y(level), label=f"constant {level:.2f}"),),
        labels=tuple(written),
        name=name,
        note=note,
    )
