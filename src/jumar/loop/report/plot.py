"""Geometry of the trajectory plot and its small multiples: numbers in, coordinates out. The template draws them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from jumar.core.rendering.figures import iteration_label, share
from jumar.core.text import percent, points
from jumar.loop.report.read import LoopReport
from jumar.loop.report.rows import VERIFIED
from jumar.model import IterationRecord
from jumar.model.ordering import valid_score

MOST_MARKS: Final = 120
"""With more iterations than this, only the selected, the first and the last one are marked; the line still has all of them."""

Kind = Literal["passed", "failed", "skipped", "invalid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The size of a drawing and the space around its plot area, in user units."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    x_ticks: int
    y_ticks: int

    @property
    def x_end(self) -> int:
        return self.width - self.right

    @property
    def y_end(self) -> int:
        return self.height - self.bottom


WIDE: Final = Frame(width=880, height=320, left=44, right=28, top=36, bottom=36, x_ticks=16, y_ticks=5)
NARROW: Final = Frame(width=360, height=280, left=36, right=16, top=36, bottom=34, x_ticks=9, y_ticks=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One iteration in the plot; ``title`` is what hovering tells."""

    number: int
    x: float
    y: float
    kind: Kind
    chosen: bool
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A grid line with its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Text at a place; ``anchor`` is ``start``, ``middle`` or ``end``."""

    x: float
    y: float
    anchor: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """The trajectory as SVG path data and marks.

    ``line`` joins neighbouring valid scores, ``bridges`` those around invalid ones; ``best`` is the running best, a staircase.
    """

    frame: Frame
    line: str
    bridges: str
    best: str
    marks: tuple[Mark, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    threshold: Tick | None
    label: Label | None
    all_marked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """One dimension over the iterations, on 0–1. ``dot`` is the selected iteration's place, None where it has no value."""

    name: str
    value: str
    change: str
    path: str
    bridges: str
    singles: tuple[tuple[float, float], ...]
    dot: tuple[float, float] | None
    title: str


Scale = Callable[[float], float]
Run = list[tuple[float, float]]
"""Neighbouring places that have a value."""


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    """Return a linear map from data to user units; to the middle where all data are the same."""
    if high <= low:
        return lambda _: round((start + end) / 2, 1)
    return lambda value: round(start + (value - low) * (end - start) / (high - low), 1)


def trajectory_plot(report: LoopReport, frame: Frame = WIDE) -> Plot | None:
    """Return the plot of all scores; None when nothing is recorded."""
    if not report.records:
        return None
    scores = [score for view in report.views if (score := valid_score(view)) is not None]
    low, high, step = _range(
        [*scores, *([] if report.criteria.threshold is None else [report.criteria.threshold])], frame.y_ticks
    )
    first, last = report.records[0].iteration_number, report.records[-1].iteration_number
    x = _scale(first, last, frame.left + 12, frame.x_end - 12)
    y = _scale(low, high, frame.y_end, frame.top)
    runs = _runs((x(view.number), None if (score := valid_score(view)) is None else y(score)) for view in report.views)
    few = len(report.records) <= MOST_MARKS
    marks = tuple(_mark(record, report, x, y, frame) for record in report.records if few or _is_marked(record, report))
    threshold = report.criteria.threshold
    return Plot(
        frame=frame,
        line=_path(runs),
        bridges=_bridges(runs),
        best=_staircase(report, x, y),
        marks=marks,
        x_ticks=tuple(Tick(at=x(number), label=_x_label(number, frame)) for number in _x_numbers(report, frame)),
        y_ticks=tuple(Tick(at=y(value), label=points(value)) for value in _steps(low, high, step)),
        threshold=None if threshold is None else Tick(at=y(threshold), label=f"threshold {percent(threshold)}"),
        label=_label(marks, report, frame),
        all_marked=few,
    )


def _range(values: Sequence[float], ticks: int) -> tuple[float, float, float]:
    """Return a range of at least 10 points around ``values`` within 0–100, and the step of its grid."""
    low, high = (min(values), max(values)) if values else (0.0, 100.0)
    if high - low < 10:
        middle = (low + high) / 2
        low, high = middle - 5, middle + 5
    span = high - low
    step = next(size for size in (1, 2, 5, 10, 20, 25, 50) if span / size <= ticks)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    low, high = max(0, low), min(100, high)
    return low, max(high, low + step), step


def _steps(low: float, high: float, step: float) -> list[float]:
    return [low + index * step for index in range(math.floor((high - low) / step + 1e-9) + 1)]


def _x_numbers(report: LoopReport, frame: Frame) -> list[int]:
    numbers = [record.iteration_number for record in report.records]
    if len(numbers) <= frame.x_ticks:
        return numbers
    first, last = numbers[0], numbers[-1]
    wanted = (last - first) / (frame.x_ticks - 1)
    magnitude = 10 ** math.floor(math.log10(wanted))
    step = next(int(factor * magnitude) for factor in (1, 2, 5, 10) if factor * magnitude >= wanted)
    return [number for number in range(-(-first // step) * step, last + 1, step) if number > 0] or [first, last]


def _x_label(number: int, frame: Frame) -> str:
    return ("start" if frame.width >= WIDE.width else "0") if number == 0 else f"{number:,}"


def _is_marked(record: IterationRecord, report: LoopReport) -> bool:
    return record.iteration_number in {report.chosen, report.records[0].iteration_number, report.records[-1].iteration_number}


def _mark(record: IterationRecord, report: LoopReport, x: Scale, y: Scale, frame: Frame) -> Mark:
    number = record.iteration_number
    score = valid_score(record.view())
    kind: Kind = "invalid" if score is None else record.verification_status
    said = f"iteration {iteration_label(number)}: "
    if score is None:
        said += f"no valid score, {record.status.replace('_', ' ')}"
    else:
        said += f"{percent(score)}, {VERIFIED[record.verification_status]}"
        if record.quality_delta is not None:
            said += f", {points(record.quality_delta, sign=True)} to the one before"
    chosen = number == report.chosen
    place = frame.y_end if score is None else y(score)
    return Mark(number=number, x=x(number), y=place, kind=kind, chosen=chosen, title=said + (", selected" if chosen else ""))


def _label_text(report: LoopReport, record: IterationRecord) -> str:
    """Return the score that the mark stands at, and the mean of all readings where that is what was decided with."""
    mean = report.score_of(record.iteration_number)
    told = percent(record.quality_score)
    return told if percent(mean) == told else f"{told}, mean {percent(mean)}"


def _label(marks: Iterable[Mark], report: LoopReport, frame: Frame) -> Label | None:
    chosen = next((mark for mark in marks if mark.chosen), None)
    record = report.chosen_record
    if chosen is None or record is None:
        return None
    near_start, near_end = chosen.x < frame.left + 60, chosen.x > frame.x_end - 60
    anchor, shift = ("start", -8) if near_start else ("end", 8) if near_end else ("middle", 0)
    return Label(x=chosen.x + shift, y=chosen.y - 15, anchor=anchor, text=f"★ {_label_text(report, record)}")


def _runs(places: Iterable[tuple[float, float | None]]) -> list[Run]:
    """Return the stretches without a gap: a place without a value interrupts the line."""
    groups = itertools.groupby(places, key=lambda place: place[1] is None)
    return [[(x, y) for x, y in group if y is not None] for missing, group in groups if not missing]


def _path(runs: Iterable[Run]) -> str:
    return "".join("M" + "L".join(f"{x:g} {y:g}" for x, y in run) for run in runs)


def _bridges(runs: Iterable[Run]) -> str:
    """Join the places on both sides of a gap, to be drawn as what it is: a guess."""
    return _path([before[-1], after[0]] for before, after in itertools.pairwise(runs))


def _staircase(report: LoopReport, x: Scale, y: Scale) -> str:
    """The running best: level until a better score comes, then straight up. It never goes down."""
    if not report.leaders:
        return ""
    parts: list[str] = []
    for number in report.leaders:
        height = y(report.record(number).quality_score or 0)
        parts.append(f"{'H' if parts else 'M'}{x(number):g}" + (f"V{height:g}" if parts else f" {height:g}"))
    return "".join(parts) + f"H{x(report.records[-1].iteration_number):g}"


def sparklines(report: LoopReport, *, width: float = 160, height: float = 40, pad: float = 4) -> tuple[Sparkline, ...]:
    """Return one small drawing for each dimension, all with the same scale of 0–1."""
    if not report.records:
        return ()
    x = _scale(report.records[0].iteration_number, report.records[-1].iteration_number, pad, width - pad)
    y = _scale(0, 1, height - pad, pad)
    return tuple(_sparkline(name, report, x, y) for name in report.dimensions)


def _sparkline(name: str, report: LoopReport, x: Scale, y: Scale) -> Sparkline:
    values = [(record.iteration_number, record.dimensions.get(name)) for record in report.records]
    runs = _runs((x(number), None if value is None else y(min(1.0, max(0.0, value)))) for number, value in values)
    chosen, start = report.chosen_record, report.start
    value = None if chosen is None else chosen.dimensions.get(name)
    before = None if start is None or chosen is start else start.dimensions.get(name)
    known = [(number, value) for number, value in values if value is not None]
    best = max(known, key=lambda pair: pair[1])
    return Sparkline(
        name=name,
        value=share(value),
        change="" if value is None or before is None else f"{value - before:+.2f}".replace("-", "−"),
        path=_path(runs),
        bridges=_bridges(runs),
        singles=tuple(run[0] for run in runs if len(run) == 1),
        dot=None if value is None or chosen is None else (x(chosen.iteration_number), y(min(1.0, max(0.0, value)))),
        title=f"{name}: {share(value)} at the selected iteration; highest {share(best[1])} at {iteration_label(best[0])}",
    )
