"""A learning run as a person sees it: a line an iteration with what matters in learning, and how far the judge is."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TextIO

from jumar.cli.common import colour_wanted
from jumar.cli.display import waiting_text
from jumar.cli.screen import LinesDisplay, PictureDisplay, SilentDisplay, aligned
from jumar.loop.events import Event, IterationRecorded, LoopStarted, Notice, PhaseStarted, Waiting
from jumar.model import IterationRecord
from jumar.report.figures import dollars
from jumar.report.judging.numbers import number
from jumar.report.learning.decisions import recovery_words, rollback_words
from jumar.report.learning.progress import Progress
from jumar.text import cut, escape, escape_block, plural

if TYPE_CHECKING:
    from rich.console import RenderableType

    from jumar.judging.expensive.summary import Result

__all__ = ["LiveLearning", "PlainLearning", "SilentLearning", "learn_display", "learning_words"]

Told = Callable[[int], "Progress | None"]
"""Gives what there is to say of an iteration, None where it has left nothing."""

COLUMNS: Final = ("it", "gap", "Δ", "rank", "patterns", "committed", "rejected", "")
_WIDTHS: Final = (5, 7, 8, 7, 10, 11, 10, 0)
_SPAN: Final = 4.0  # a closeness of 0 is as far off as a score from 1 to 5 can be
_SAID: Final = 100
_QUARTERS: Final = 4
_SHOWN: Final = 30


_WORDS: Final = (
    (
        re.compile(r"iteration 0 was generated before the interruption; it is scored now, not generated again"),
        "the start was not measured before the interruption; it is now",
    ),
    (
        re.compile(r"iteration (\d+) was generated before the interruption; it is scored now, not generated again"),
        r"iteration \1 was learned before the interruption; it is measured now, not learned again",
    ),
    (
        re.compile(r"the work tree differed from iteration (\d+), which the loop goes on from: (.*); what was there is in (.*)"),
        r"\2: put back to what iteration \1 left, to go on from; what was there (a final set, or an edit) is in \3",
    ),
)
"""Notices of the engine that speak of another machine, and what they mean for learning."""


def learning_words(message: str) -> str:
    """Return a notice of the engine in the words of learning."""
    for pattern, words in _WORDS:
        if pattern.fullmatch(message):
            return pattern.sub(words, message)
    return message


class SilentLearning(SilentDisplay):
    """For ``--quiet``: says nothing."""

    def judged(self, result: Result, total: int) -> None:
        """Say nothing."""


class _Rows:
    """Cells of the table, each iteration compared with the one before."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._gap: float | None = None

    def cells(self, record: IterationRecord, best: int | None) -> tuple[str, ...]:
        number_ = record.iteration_number
        marks = ["★ best"] if number_ == best else []
        if record.status != "ok":
            return (str(number_), "—", "", "", "", "", "", cut(escape(record.status_reason), _SAID))
        found = self._told(number_) if number_ else None
        closeness = record.dimensions.get("closeness")
        gap = (1 - closeness) * _SPAN if closeness is not None else None
        change = "" if gap is None or self._gap is None else _signed(gap - self._gap)
        self._gap = gap
        rank = next((one.reason.rpartition(" ")[2] for one in record.readings if one.dimension == "ranking"), "—")
        shown = f"{float(rank):.2f}".replace("-", "−") if rank not in {"", "—"} else "—"
        if found is None:
            said = " · ".join([*(["start"] if not number_ else []), *marks])
            return (str(number_), number(gap), change, shown, "", "", "", said)
        counts = (f"{found.patterns:,}", f"{found.committed:,}", f"{found.rejected:,}")
        return (str(number_), number(gap), change, shown, *counts, " · ".join([*marks, *_happened(found)]))


def _happened(found: Progress) -> list[str]:
    """Return in a few words what was rolled back or recovered, and why."""
    said: list[str] = []
    for one in found.actions:
        if one.get("action") == "rolled_back":
            said.append(f"rolled back: {rollback_words(one)}")
        elif one.get("action") == "recovery" and one.get("kept"):
            said.append(f"recovery: {recovery_words(str(one.get('recovery', '')))}")
    return said


def _signed(value: float) -> str:
    return "0" if abs(value) < 0.0005 else f"{value:+.3f}".replace("-", "−")


class PlainLearning(LinesDisplay, SilentLearning):
    """One line an iteration, as it is recorded."""

    def __init__(self, stream: TextIO, told: Told) -> None:
        super().__init__(stream)
        self._rows = _Rows(told)
        self._headed = False
        self._asked = 0

    def hear(self, event: Event) -> None:
        """Print what the event has to say."""
        if isinstance(event, LoopStarted):
            again = f", {max(0, event.recorded - 1):,} done before" if event.resumed else ""
            self.say(f"learning  up to {plural(event.rules.max_iterations, 'iteration')}{again}")
            for record in event.latest:
                self._row(record, event.best)
        elif isinstance(event, IterationRecorded):
            self._row(event.record, event.best)
        elif isinstance(event, Notice):
            self.say(f"note      {escape_block(learning_words(event.message))}")
        elif isinstance(event, Waiting):
            self.say(f"waiting   {waiting_text(event)}")

    def judged(self, result: Result, total: int) -> None:
        """Say at each quarter how far the judge is, and at the end."""
        del result
        self._asked += 1
        if self._asked * _QUARTERS // total > (self._asked - 1) * _QUARTERS // total:
            self.say(f"judge     {self._asked:,} of {plural(total, 'item')}")
        if self._asked >= total:
            self._asked = 0

    def _row(self, record: IterationRecord, best: int | None) -> None:
        if not self._headed:
            self._headed = True
            self.say(aligned(COLUMNS, _WIDTHS))
        self.say(aligned(self._rows.cells(record, best), _WIDTHS))


class LiveLearning(PictureDisplay, SilentLearning):
    """A table that grows in place, with what is being done below it; only on a terminal."""

    def __init__(self, told: Told, *, colour: bool) -> None:
        super().__init__(colour=colour)
        self._rows = _Rows(told)
        self._table: list[tuple[tuple[str, ...], int, bool]] = []
        self._best: int | None = None
        self._most = 0
        self._asked = 0
        self._paid = 0.0
        self._notices: list[str] = []

    def hear(self, event: Event) -> None:
        """Take the event into the picture."""
        if isinstance(event, LoopStarted):
            self._most = event.rules.max_iterations
            for record in event.latest:
                self._add(record, event.best)
        elif isinstance(event, PhaseStarted):
            doing = {"generate": "proposing and fitting", "verify": "checking", "score": "measuring"}[event.phase]
            self.phase = f"iteration {event.iteration}: {doing} …" if event.iteration else "the start: measuring …"
        elif isinstance(event, IterationRecorded):
            self._add(event.record, event.best)
            self.phase = "" if event.record.iteration_number < self._most else "the last set: fitting, probing, proving …"
        elif isinstance(event, Waiting):
            self.phase = f"waiting {waiting_text(event)} …"
        elif isinstance(event, Notice):
            self._notices.append(learning_words(event.message))

    def judged(self, result: Result, total: int) -> None:
        """Show how far the judge is, and what it was paid."""
        self._asked += 1
        self._paid += result.cost_usd or 0.0
        paid = f" · {dollars(self._paid, places=2)}" if self._paid else ""
        self.phase = f"judging {self._asked:,} of {plural(total, 'item')}{paid} …"
        if self._asked >= total:
            self._asked = 0

    def _add(self, record: IterationRecord, best: int | None) -> None:
        self._best = best
        self._table.append((self._rows.cells(record, best), record.iteration_number, record.status == "ok"))

    def render(self) -> RenderableType:
        """Return the picture as it is now."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for name, width in zip(COLUMNS, _WIDTHS, strict=True):
            table.add_column(name, justify="right" if width else "left", no_wrap=bool(width))
        for cells, place, good in self._table[-_SHOWN:]:
            told = [part for part in cells[-1].split(" · ") if place == self._best or part != "★ best"]
            said = " · ".join(told)
            style = "bold green" if place == self._best else "" if good else "red"
            table.add_row(*(Text(cell) for cell in (*cells[:-1], said)), style=style)
        done = max((place for _, place, _ in self._table), default=0)
        head = Text(f"jumar learn   {done} of {plural(self._most, 'iteration')}" if self._most else "jumar learn", style="bold")
        notes = [Text(f"note      {escape(note)}", style="yellow") for note in self._notices]
        foot = [Text(self.phase, style="dim")] if self.phase else []
        return Group(head, *([table] if self._table else []), *notes, *foot)


def learn_display(told: Told, *, as_json: bool, quiet: bool) -> SilentLearning:
    """Return the display for this call: silent, plain on stderr beside JSON, live on a terminal, else plain."""
    if quiet:
        return SilentLearning()
    if as_json:
        return PlainLearning(sys.stderr, told)
    if sys.stdout.isatty():
        return LiveLearning(told, colour=colour_wanted())
    return PlainLearning(sys.stdout, told)
