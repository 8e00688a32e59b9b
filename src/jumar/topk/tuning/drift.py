"""Whether selections changed over time: their cutoffs, how many they keep, how often they keep nothing.

A model that is exchanged, an index that is rebuilt, another kind of question: scores move, and a threshold that was right is
right no more. Nothing here knows which change is bad; it says that there is one, since when, and how large.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final, Literal

from jumar.topk.contract import check_number

Measure = Literal["cutoff", "kept", "abstained"]

LEAST: Final = 20
"""Selections of a stream below which nothing is said about it."""


@dataclass(frozen=True, slots=True)
class LoggedSelection:
    """One logged selection. ``stream`` is what it belongs to, such as ``rules · elbow``; ``where`` is shown, such as a time."""

    stream: str
    cutoff: float
    kept: int
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The place in a stream that splits it into the two most different parts, and how different they are.

    ``since`` is the number of the first selection after it, the stream's first is 1; None where no place parts them, because all
    values are the same. ``where`` is what that one was labelled with. ``before`` and ``after`` are medians, for ``abstained``
    shares. ``effect`` is 0–1: how much more often a value of one part exceeds one of the other than the other way round. ``p`` is
    how often chance alone makes a split as clear as this one, at most.
    """

    measure: Measure
    since: int | None
    where: str
    before: float
    after: float
    effect: float
    p: float
    drifted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What was found in the selections of one kind and strategy; ``changes`` are none when there are fewer than ``LEAST``."""

    name: str
    selections: int
    changes: tuple[Change, ...]

    @property
    def drifted(self) -> bool:
        """Whether any measure changed."""
        return any(change.drifted for change in self.changes)


def find_drift(readings: Iterable[LoggedSelection], *, level: float = 0.01, effect: float = 0.2) -> tuple[Stream, ...]:
    """Return every stream with its changes, in the order in which the streams begin.

    A change counts when ``p`` is below ``level`` shared among all that is tested, and ``effect`` is reached: in a long log
    anything is significant. Selections that follow one another are taken to be independent; a stream of bursts of the same
    question looks more certain than it is. Errors: :class:`jumar.errors.StrategyError` unless both lie between 0 and 1. Source:
    A. N. Pettitt, "A non-parametric approach to the change-point problem", Applied Statistics 28 (1979) 126–135.
    """
    check_number("level", level, above=0, below=1)
    check_number("effect", effect, above=0, below=1)
    streams: dict[str, list[LoggedSelection]] = {}
    for reading in readings:
        streams.setdefault(reading.stream, []).append(reading)
    columns = {name: _columns(rows) for name, rows in streams.items()}
    share = level / max(sum(len(found) for found in columns.values()), 1)
    return tuple(
        Stream(
            name=name,
            selections=len(rows),
            changes=tuple(_change(measure, chosen, rows, share, effect) for measure, chosen in columns[name]),
        )
        for name, rows in streams.items()
    )


_Column = tuple[Measure, list[tuple[int, float]]]


def _columns(rows: Sequence[LoggedSelection]) -> list[_Column]:
    """Return what is tested of a stream: number and value of each selection; an empty one has no cutoff."""
    every: list[_Column] = [
        ("cutoff", [(number, row.cutoff) for number, row in enumerate(rows) if row.kept]),
        ("kept", [(number, float(row.kept)) for number, row in enumerate(rows)]),
        ("abstained", [(number, float(not row.kept)) for number, row in enumerate(rows)]),
    ]
    return [(measure, column) for measure, column in every if len(column) >= LEAST]


def _change(
    measure: Measure, column: list[tuple[int, float]], rows: Sequence[LoggedSelection], level: float, least: float
) -> Change:
    values = [value for _, value in column]
    split, statistic = _pettitt(values)
    size = len(values)
    p = min(1.0, 2.0 * math.exp(-6.0 * statistic**2 / (size**3 + size**2)))
    effect = statistic / (split * (size - split)) if 0 < split < size else 0.0
    middle = fmean if measure == "abstained" else median
    number = column[split][0] if 0 < split < size else None
    return Change(
        measure=measure,
        since=None if number is None else number + 1,
        where="" if number is None else rows[number].where,
        before=middle(values[:split] or values),
        after=middle(values[split:] or values),
        effect=effect,
        p=p,
        drifted=p < level and effect >= least,
    )


def _pettitt(values: Sequence[float]) -> tuple[int, float]:
    """Return after how many values the two parts differ most, and by how many more pairs one part exceeds the other."""
    size, best, place, total = len(values), 0.0, 0, 0.0
    for count, rank in enumerate(_ranks(values), 1):
        total += rank
        statistic = abs(2.0 * total - count * (size + 1))
        if statistic > best:
            best, place = statistic, count
    return place, best


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value from 1; equal ones share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            ranks[place] = (start + 1 + end) / 2
        start = end
    return ranks
