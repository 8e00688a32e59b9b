"""The geometry of every plot: numbers in, coordinates out. ``plot.svg.j2`` draws them.

A plot is a stack of panels over one x-axis. Coordinates are user units of the SVG, rounded to a tenth; y grows downwards.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Scale = Callable[[float], float]
Place = tuple[float, float]
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The width of a drawing and the room left and right of its panels, in user units, and how many x-ticks fit."""

    width: int
    left: int
    right: int
    x_ticks: int

    @property
    def x_end(self) -> int:
        return self.width - self.right

    def anchor(self, x: float) -> Anchor:
        """Return how text at ``x`` is aligned so that it stays inside."""
        return "start" if x < self.left + 60 else "end" if x > self.x_end - 60 else "middle"


WIDE: Final = Frame(width=880, left=44, right=28, x_ticks=16)
NARROW: Final = Frame(width=360, left=38, right=16, x_ticks=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A grid line, or a level to compare with, and its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Text at a place; ``kind`` is its class."""

    x: float
    y: float
    text: str
    anchor: Anchor = "middle"
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Path data; ``kind`` is the class it is drawn in: ``score``, ``bridge``, ``stair``, ``equal``."""

    kind: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point of the data. ``kind`` says what it is, ``title`` what hovering tells, ``key`` what a link to it ends with."""

    x: float
    y: float
    kind: str
    title: str
    chosen: bool = False
    radius: float = 4.5
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One y-axis with what is drawn on it; ``name`` and ``note`` stand above it; both have to fit on 360 units."""

    top: float
    bottom: float
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...] = ()
    marks: tuple[Mark, ...] = ()
    levels: tuple[Tick, ...] = ()
    labels: tuple[Label, ...] = ()
    name: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Panels from top to bottom over the ticks of one x-axis; ``here`` is the x of a vertical line through all.

    One that ``is_dense`` has marks that nobody steps through by keyboard: a table beside it does that.
    """

    frame: Frame
    panels: tuple[Panel, ...]
    x_ticks: tuple[Tick, ...]
    x_title: str = ""
    x_grid: bool = False
    here: Label | None = None
    is_dense: bool = False

    @property
    def height(self) -> float:
        """The lowest panel, the labels below it and the axis' name."""
        return self.panels[-1].bottom + 34 + (18 if self.x_title or self.here else 0)


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """Return a map from data in ``[low, high]`` to user units; to the middle where all data are the same."""
    if high <= low:
        return lambda _: round((start + end) / 2, 1)
    return lambda value: round(start + (value - low) * (end - start) / (high - low), 1)


def round_step(wanted: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten that is not below ``wanted``, which is above 0."""
    magnitude: float = 10.0 ** math.floor(math.log10(wanted))
    return next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= wanted * (1 - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The ends of an axis, which are multiples of its ``step``."""

    low: float
    high: float
    step: float

    def values(self) -> list[float]:
        """Return where the grid lines are, from ``low`` to ``high``."""
        return [self.low + index * self.step for index in range(math.floor((self.high - self.low) / self.step + 1e-9) + 1)]

    def label(self, value: float) -> str:
        """Return a value of the grid with as many decimals as the step has."""
        places = max(0, -math.floor(math.log10(self.step) + 1e-9))
        return f"{round(value, 6) + 0.0:,.{places}f}".replace("-", "−")

    def ticks(self, scale: Scale) -> tuple[Tick, ...]:
        """Return the grid with its labels."""
        return tuple(Tick(at=scale(value), label=self.label(value)) for value in self.values())


def range_of(
    values: Sequence[float],
    *,
    steps: int,
    least: float,
    floor: float = -math.inf,
    ceiling: float = math.inf,
    zero: bool = False,
) -> Range:
    """Return a range around finite ``values`` of about ``steps`` steps, at least ``least`` wide, inside of floor and ceiling.

    ``zero``: it begins there. Of no values: from the floor, or 0, and ``least`` wide.
    """
    start = floor if math.isfinite(floor) else 0.0
    low, high = (min(values), max(values)) if values else (start, start + least)
    low = min(low, 0.0) if zero else low
    if high - low < least:
        middle = (low + high) / 2
        low, high = (low, low + least) if zero else (middle - least / 2, middle + least / 2)
    step = round_step((high - low) / steps)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    low, high = max(floor, low), min(ceiling, high)
    return Range(low=low, high=max(high, low + step), step=step)


def iteration_ticks(numbers: Sequence[int], frame: Frame, scale: Scale) -> tuple[Tick, ...]:
    """Return the x-ticks of sorted iteration ``numbers``: all where they fit, else round ones. A wide plot calls 0 ``start``."""
    shown = list(numbers)
    if len(shown) > frame.x_ticks:
        step = max(1, int(round_step((numbers[-1] - numbers[0]) / (frame.x_ticks - 1))))
        first = max(1, -(-numbers[0] // step)) * step
        shown = list(range(first, numbers[-1] + 1, step)) or [numbers[0], numbers[-1]]
    begin = "start" if frame.width >= WIDE.width else "0"
    return tuple(Tick(at=scale(number), label=f"{number:,}" if number else begin) for number in shown)


def runs_of(places: Iterable[tuple[float, float | None]]) -> list[list[Place]]:
    """Return the stretches without a gap: a place without a value interrupts the line."""
    groups = itertools.groupby(places, key=lambda place: place[1] is None)
    return [[(x, y) for x, y in group if y is not None] for missing, group in groups if not missing]


def path_of(runs: Iterable[Sequence[Place]]) -> str:
    """Return the path along each run."""
    return "".join("M" + "L".join(f"{x:g} {y:g}" for x, y in run) for run in runs)


def bridges_of(runs: Sequence[Sequence[Place]]) -> str:
    """Return the path that joins both sides of every gap, to be drawn as what it is: a guess."""
    return path_of([before[-1], after[0]] for before, after in itertools.pairwise(runs))


def lines_of(places: Iterable[tuple[float, float | None]]) -> tuple[Line, ...]:
    """Return the line through the places that have a value, and what bridges the gaps between them."""
    runs = runs_of(places)
    made = (Line(kind="bridge", path=bridges_of(runs)), Line(kind="score", path=path_of(runs)))
    return tuple(line for line in made if line.path)


def stair_of(steps: Sequence[Place], end: float) -> str:
    """Return the path of a value that holds until the next step, and then up to ``end``; empty for no steps."""
    parts = [f"H{x:g}V{y:g}" if index else f"M{x:g} {y:g}" for index, (x, y) in enumerate(steps)]
    return "".join([*parts, f"H{end:g}"]) if parts else ""


SQUARE: Final = Frame(width=360, left=38, right=2, x_ticks=6)
_TOP, _FLOOR = 10, 330
MOST_DOTS: Final = 2_000
"""More points than this are not drawn one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A point of a scatter plot; ``title``, ``radius`` and ``key`` are its mark's."""

    x: float
    y: float
    title: str
    radius: float = 3.5
    key: str = ""


def scatter_of(dots: Sequence[Dot], x_title: str) -> Plot:
    """Return the plot of the first :data:`MOST_DOTS` of at least one dot, both axes alike, with the line of equal values."""
    axis = range_of([value for dot in dots for value in (dot.x, dot.y)], steps=5, least=1)
    x_of = linear(axis.low, axis.high, SQUARE.left + 12, SQUARE.x_end - 12)
    y_of = linear(axis.low, axis.high, _FLOOR - 12, _TOP + 12)
    marks = tuple(
        Mark(x=x_of(dot.x), y=y_of(dot.y), kind="item", title=dot.title, radius=dot.radius, key=dot.key)
        for dot in dots[:MOST_DOTS]
    )
    equal = Line(kind="equal", path=path_of([[(x_of(end), y_of(end)) for end in (axis.low, axis.high)]]))
    panel = Panel(top=_TOP, bottom=_FLOOR, y_ticks=axis.ticks(y_of), lines=(equal,), marks=marks)
    return Plot(frame=SQUARE, panels=(panel,), x_ticks=axis.ticks(x_of), x_title=x_title, x_grid=True, is_dense=True)
