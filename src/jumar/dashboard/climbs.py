"""Loops over each other: the best score so far of each, over iterations, dollars or time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

from jumar.core.given import Given
from jumar.core.rendering.figures import UNKNOWN, dollars, duration, iteration_label
from jumar.core.rendering.plot import (
    NARROW,
    WIDE,
    Frame,
    Label,
    Line,
    Mark,
    Panel,
    Plot,
    Scale,
    iteration_ticks,
    linear,
    range_of,
    stair_of,
)
from jumar.core.text import percent
from jumar.loop.report.climb import ClimbPoint, climb_of
from jumar.loop.report.plot import MOST_MARKS

if TYPE_CHECKING:
    from jumar.dashboard.library import Library, Run
    from jumar.loop.report.read import LoopReport

Over = Literal["iterations", "dollars", "time"]
OVERS: Final[tuple[Over, ...]] = ("iterations", "dollars", "time")
MOST_LOOPS: Final = 6  # lines that can still be told apart
LOOPS: Final = "/loops/"
_LETTERS: Final = "ABCDEF"
_UNITS: Final = ((7200, 3600, "hours"), (120, 60, "minutes"), (0, 1, "seconds"))
_TOP, _BOTTOM_WIDE, _BOTTOM_NARROW = 36, 304, 266
_APART: Final = 13  # user units between the letters of two lines that end at one place


@dataclass(frozen=True, slots=True)
class Climb:
    """One loop of a comparison: its place among them, and a point for each of its iterations."""

    place: int
    run: Run
    report: LoopReport
    points: tuple[ClimbPoint, ...]

    @property
    def letter(self) -> str:
        return _LETTERS[self.place]

    @property
    def name(self) -> str:
        return self.run.name

    @property
    def cost(self) -> float | None:
        """What all of it cost, None where that is not reported."""
        return self.points[-1].cost_usd if self.points else None

    def rises(self) -> list[ClimbPoint]:
        """Return the points at which the best score rose, the first one among them."""
        found: list[ClimbPoint] = []
        for point in self.points:
            if point.best is not None and (not found or point.best != found[-1].best):
                found.append(point)
        return found

    def is_drawn(self, over: Over) -> bool:
        """Whether there is a line: a score, and over dollars what it cost."""
        return bool(self.rises()) and (over != "dollars" or self.cost is not None)


def climb(library: Library, key: str, place: int) -> Climb:
    """Return a loop of a comparison. Errors: those of :meth:`jumar.dashboard.library.Library.loop`."""
    store, report = library.loop(key)
    return Climb(place, library.find("loop", key), report, climb_of(report, store.attempts()))


def climbs_page(climbs: Sequence[Climb], over: Over) -> dict[str, Any]:
    """Return what the page shows of ``climbs``: the plot in two widths, its key, its ends and its steps as tables."""
    return {
        "wide": climb_plot(climbs, over, WIDE),
        "narrow": climb_plot(climbs, over, NARROW),
        "links": LOOPS,
        "rows": [_row(each) for each in climbs],
        "steps": [_step(each, point) for each in climbs for point in each.rises()],
        "silent": [each.name for each in climbs if over == "dollars" and each.cost is None],
    }


def climb_plot(climbs: Sequence[Climb], over: Over, frame: Frame) -> Plot | None:
    """Return the best scores so far of several loops in one plot, a stair a loop; None where nothing can be drawn."""
    drawn = [each for each in climbs if each.is_drawn(over)]
    if not drawn:
        return None
    longest = max(each.points[-1].seconds for each in drawn)
    size, unit = next((size, unit) for least, size, unit in _UNITS if longest >= least)

    def across(point: ClimbPoint) -> float:
        return {"iterations": float(point.iteration), "dollars": point.cost_usd or 0.0, "time": point.seconds / size}[over]

    bottom = _BOTTOM_WIDE if frame.width >= WIDE.width else _BOTTOM_NARROW
    up = range_of([point.best or 0.0 for each in drawn for point in each.rises()], steps=5, least=10, floor=0, ceiling=100)
    ends = [across(each.points[-1]) for each in drawn]
    axis = range_of(ends, steps=frame.x_ticks // 2, least=1e-6 if over == "dollars" else 0.1, zero=True)
    last = max(ends) if over == "iterations" else axis.high
    x, y = linear(0, last, frame.left + 8, frame.x_end - 14), linear(up.low, up.high, bottom, _TOP)
    marks = tuple(mark for each in drawn for mark in _marks(each, lambda point: x(across(point)), y))
    panel = Panel(
        top=_TOP,
        bottom=bottom,
        y_ticks=up.ticks(y),
        lines=tuple(
            Line(
                kind=f"loop loop-{each.place}",
                path=stair_of([(x(across(point)), y(point.best or 0.0)) for point in each.rises()], x(across(each.points[-1]))),
            )
            for each in drawn
        ),
        marks=marks,
        labels=_labels([(each.letter, x(across(each.points[-1])), y(each.rises()[-1].best or 0.0)) for each in drawn], bottom),
        name="Best score so far",
        note="0 to 100"
        + ", of each loop's own way from its worst to its best" * any(isinstance(each.rises()[-1].best, Given) for each in drawn),
    )
    return Plot(
        frame=frame,
        panels=(panel,),
        x_ticks=iteration_ticks(range(int(last) + 1), frame, x) if over == "iterations" else axis.ticks(x),
        x_title={"iterations": "iteration", "dollars": "US dollars, all attempts", "time": f"{unit}, all attempts"}[over],
        is_dense=len(marks) > MOST_MARKS,
    )


def _marks(each: Climb, x: Callable[[ClimbPoint], float], y: Scale) -> list[Mark]:
    rises = each.rises()
    shown = rises if len(rises) <= MOST_MARKS else [rises[0], rises[-1]]
    return [
        Mark(
            x=x(point),
            y=y(point.best or 0.0),
            kind=f"loop-{each.place}",
            title=f"{each.name}, iteration {iteration_label(point.iteration)}: {percent(point.best)}, {_cost(point.cost_usd)}, "
            f"{duration(point.seconds)}",
            radius=3.5,
            key=quote(f"{each.run.key}/iterations/{point.iteration}"),
        )
        for point in shown
    ]


def _labels(ends: Sequence[tuple[str, float, float]], bottom: float) -> tuple[Label, ...]:
    """Return a letter where each line ends; those that would cover each other go on towards the middle."""
    placed: list[Label] = []
    for letter, x, y in ends:
        step = _APART if y < (_TOP + bottom) / 2 else -_APART
        at = y + 4
        while any(abs(other.x - x - 8) < _APART and abs(other.y - at) < _APART for other in placed):
            at += step
        placed.append(Label(x=x + 8, y=at, text=letter, anchor="start", kind="value"))
    return tuple(placed)


def _cost(value: float | None) -> str:
    return "cost not reported" if value is None else dollars(value)


def _row(each: Climb) -> dict[str, Any]:
    start, rises = each.report.start, each.rises()
    best = f"{percent(rises[-1].best)} at {rises[-1].iteration or 'start'}" if rises else UNKNOWN
    return {
        "index": each.place,
        "letter": each.letter,
        "name": each.name,
        "address": quote(each.run.address),
        "cells": [
            f"{each.report.passes:,}",
            percent(None if start is None else start.quality_score),
            best,
            percent(each.report.final_quality),
            "not reported" if each.cost is None else dollars(each.cost),
            duration(each.points[-1].seconds if each.points else None),
        ],
    }


def _step(each: Climb, point: ClimbPoint) -> dict[str, Any]:
    return {
        "name": f"{each.letter} {each.name}",
        "number": iteration_label(point.iteration),
        "address": f"{quote(each.run.address)}/iterations/{point.iteration}",
        "cells": [
            percent(point.best),
            "not reported" if point.cost_usd is None else dollars(point.cost_usd),
            duration(point.seconds),
        ],
    }
