"""The trajectory of a loop, and a small drawing of each of its dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from jumar.core.given import Given
from jumar.core.rendering.figures import UNKNOWN, dollars, duration, iteration_label, share
from jumar.core.rendering.plot import (
    WIDE,
    Frame,
    Label,
    Line,
    Mark,
    Panel,
    Plot,
    Range,
    Scale,
    Tick,
    bridges_of,
    iteration_ticks,
    linear,
    lines_of,
    path_of,
    range_of,
    runs_of,
    stair_of,
)
from jumar.core.text import percent, signed_points
from jumar.loop.report.read import LoopReport
from jumar.loop.report.rows import VERIFIED, change
from jumar.model import IterationRecord
from jumar.model.ordering import valid_score

MOST_MARKS: Final = 120
"""With more iterations than this, only the selected, the first and the last one are marked; the line still has all of them."""

Kind = Literal["passed", "failed", "skipped", "invalid"]
_TOP: Final = 36
_WIDE_BOTTOM, _NARROW_BOTTOM = 284, 246
_BARS_APART, _BARS_HIGH, _WIDEST_BAR = 52, 48, 18.0
_UNITS: Final = (("hours", 3600), ("minutes", 60), ("seconds", 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """One dimension, or the tests of a check, over the iterations, on 0–1.

    ``dot`` is the selected iteration's place, None where it has no value.
    """

    name: str
    value: str
    change: str
    path: str
    bridges: str
    singles: tuple[tuple[float, float], ...]
    dot: tuple[float, float] | None
    title: str


def trajectory_plot(report: LoopReport, frame: Frame = WIDE) -> Plot | None:
    """Return the plot of all scores; None when nothing is recorded."""
    if not report.records:
        return None
    scores = [score for view in report.views if (score := valid_score(view)) is not None]
    threshold = report.criteria.threshold
    axis = _axis(report, scores if threshold is None else [*scores, threshold])
    numbers = [record.iteration_number for record in report.records]
    bottom = _WIDE_BOTTOM if frame.width >= WIDE.width else _NARROW_BOTTOM
    x = linear(numbers[0], numbers[-1], frame.left + 12, frame.x_end - 12)
    level = linear(axis.low, axis.high, bottom, _TOP)

    def y(score: float) -> float:
        return level(score.value if isinstance(score, Given) else score)

    lines = lines_of((x(view.number), None if (score := valid_score(view)) is None else y(score)) for view in report.views)
    steps = [(x(number), y(report.record(number).quality_score or 0)) for number in report.leaders]
    stair = stair_of(steps, x(numbers[-1]))
    marks = tuple(_mark(record, report, x, y, bottom) for record in report.records if is_marked(record, report))
    panel = Panel(
        top=_TOP,
        bottom=bottom,
        y_ticks=axis.ticks(level),
        lines=(*((Line(kind="stair", path=stair),) if stair else ()), *lines),
        marks=marks,
        levels=() if threshold is None else (Tick(at=y(threshold), label=f"threshold {percent(threshold)}"),),
        labels=_labels(marks, report, frame),
    )
    return Plot(frame=frame, panels=(panel, *_took(report, x, bottom)), x_ticks=iteration_ticks(numbers, frame, x))


def _axis(report: LoopReport, held: Sequence[float]) -> Range:
    """Return the range of the scores: of 0–100, or of the values on a scale of their own."""
    values = [score.value for score in held if isinstance(score, Given)]
    if report.measured is not None and values:
        return range_of(values, steps=5, least=max(map(abs, values)) * 1e-6 or 1e-6)
    return range_of(held, steps=5, least=10, floor=0, ceiling=100) if held else range_of([], steps=5, least=100, floor=0)


def _took(report: LoopReport, x: Scale, above: float) -> Iterator[Panel]:
    """Yield a panel of bars below ``above`` for the time of each iteration, and one for its cost, where they are known."""
    times = [None if record.execution_time_ms is None else record.execution_time_ms / 1000 for record in report.records]
    longest = max((time for time in times if time is not None), default=0.0)
    unit, seconds = next((unit for unit in _UNITS if longest >= 2 * unit[1]), _UNITS[-1])
    costs = [record.token_cost_usd for record in report.records]
    unknown = sum(cost is None for record, cost in zip(report.records, costs, strict=True) if record.iteration_number)
    told = f"dollars, {unknown:,} not reported" if unknown else "dollars"
    kinds = [("Time", unit, [None if time is None else time / seconds for time in times]), ("Cost", told, costs)]
    for name, note, values in kinds:
        known = [value for value in values if value]
        if not known:
            continue
        top, bottom = above + _BARS_APART, above + _BARS_APART + _BARS_HIGH
        axis = range_of(known, steps=2, least=1e-9, zero=True)
        y = linear(axis.low, axis.high, bottom, top)
        numbered = zip(report.records, values, strict=True)
        bars = [(x(record.iteration_number), y(value)) for record, value in numbered if value]
        path = _bars(bars, bottom, x(1) - x(0) if len(report.records) > 1 else _WIDEST_BAR)
        yield Panel(
            top=top,
            bottom=bottom,
            y_ticks=axis.ticks(y),
            lines=(Line(kind="bars", path=path),),
            name=f"{name} of each iteration",
            note=note,
        )
        above = bottom


def _bars(ends: Iterable[tuple[float, float]], floor: float, apart: float) -> str:
    """Return the path of bars from ``floor`` to their ends, which are ``apart``."""
    half = round(min(_WIDEST_BAR, max(1.0, 0.6 * apart)) / 2, 1)
    return "".join(f"M{round(x - half, 1):g} {floor:g}V{y:g}h{2 * half:g}V{floor:g}Z" for x, y in ends)


def is_marked(record: IterationRecord, report: LoopReport) -> bool:
    """Return whether the plot has a mark for it."""
    records = report.records
    if len(records) <= MOST_MARKS:
        return True
    return record.iteration_number in {report.chosen, records[0].iteration_number, records[-1].iteration_number}


def _mark(record: IterationRecord, report: LoopReport, x: Scale, y: Scale, floor: float) -> Mark:
    number = record.iteration_number
    score = valid_score(record.view())
    kind: Kind = "invalid" if score is None else record.verification_status
    said = f"iteration {iteration_label(number)}: "
    if score is None:
        said += f"no valid score, {record.status.replace('_', ' ')}"
    else:
        said += f"{percent(score)}, {VERIFIED[record.verification_status]}"
        parent = report.compared_with(record)
        more = change(record, parent)
        if parent is not None and more is not None:
            origin = f"iteration {parent.iteration_number}" if parent.iteration_number else "the start"
            said += f", {signed_points(more)} on {origin}"
    if record.execution_time_ms is not None:
        said += f", {duration(record.execution_time_ms / 1000)}"
    if record.token_cost_usd is not None:
        said += f", {dollars(record.token_cost_usd, places=2)}"
    chosen = number == report.chosen
    place = floor if score is None else y(score)
    return Mark(x=x(number), y=place, kind=kind, chosen=chosen, title=said + (", selected" if chosen else ""), key=str(number))


def _label_text(report: LoopReport, record: IterationRecord) -> str:
    """Return the score that the mark stands at, and the mean of all readings where that is what was decided with."""
    mean = report.score_of(record.iteration_number)
    told = percent(record.quality_score)
    return told if percent(mean) == told else f"{told}, mean {percent(mean)}"


def _labels(marks: Iterable[Mark], report: LoopReport, frame: Frame) -> tuple[Label, ...]:
    chosen = next((mark for mark in marks if mark.chosen), None)
    record = report.chosen_record
    if chosen is None or record is None:
        return ()
    anchor = frame.anchor(chosen.x)
    shift = {"start": -8, "end": 8, "middle": 0}[anchor]
    text = f"★ {_label_text(report, record)}"
    return (Label(x=chosen.x + shift, y=chosen.y - 15, anchor=anchor, text=text, kind="best-text"),)


def sparklines(report: LoopReport, *, width: float = 160, height: float = 40, pad: float = 4) -> tuple[Sparkline, ...]:
    """Return one small drawing for each dimension, and each check whose tests are counted, all with the same scale of 0–1."""
    if not report.records:
        return ()
    x = linear(report.records[0].iteration_number, report.records[-1].iteration_number, pad, width - pad)
    y = linear(0, 1, height - pad, pad)
    counted = dict.fromkeys(check.name for record in report.records for check in record.checks if check.tests is not None)
    return (
        *(_sparkline(name, report, _dimension, x, y) for name in report.dimensions),
        *(_sparkline(name, report, _tests, x, y) for name in counted if name not in report.dimensions),
    )


Measured = tuple[float, str, float | int]
"""A value on 0–1, how it reads, and what its changes are counted in."""


def _dimension(record: IterationRecord, name: str) -> Measured | None:
    value = record.dimensions.get(name)
    return None if value is None else (value, share(value), value)


def _tests(record: IterationRecord, name: str) -> Measured | None:
    """Return the share of a check's tests that passed, and how many of how many."""
    tests = next((check.tests for check in record.checks if check.name == name), None)
    return None if tests is None else (tests.share, str(tests), tests.passed)


def _moved(before: Measured, after: Measured) -> str:
    more = after[2] - before[2]
    return (f"{more:+,}" if isinstance(more, int) else f"{more:+.2f}").replace("-", "−")


def _sparkline(
    name: str, report: LoopReport, of: Callable[[IterationRecord, str], Measured | None], x: Scale, y: Scale
) -> Sparkline:
    values = [(record.iteration_number, of(record, name)) for record in report.records]
    runs = runs_of((x(number), None if value is None else y(min(1.0, max(0.0, value[0])))) for number, value in values)
    chosen, start = report.chosen_record, report.start
    value = None if chosen is None else of(chosen, name)
    before = None if start is None or chosen is start else of(start, name)
    known = [(number, value) for number, value in values if value is not None]
    best = max(known, key=lambda pair: pair[1][0])
    told = UNKNOWN if value is None else value[1]
    return Sparkline(
        name=name,
        value=told,
        change="" if value is None or before is None else _moved(before, value),
        path=path_of(runs),
        bridges=bridges_of(runs),
        singles=tuple(run[0] for run in runs if len(run) == 1),
        dot=None if value is None or chosen is None else (x(chosen.iteration_number), y(min(1.0, max(0.0, value[0])))),
        title=f"{name}: {told} at the selected iteration; highest {best[1][1]} at {iteration_label(best[0])}",
    )
