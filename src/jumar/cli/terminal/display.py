"""A run as a person sees it: a line an iteration and, on a terminal, what is being done below them."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TextIO

from jumar.cli.terminal.progress import Progress, waiting_text
from jumar.cli.terminal.rows import Past, head_line, heading, row_lines
from jumar.cli.terminal.screen import LinesDisplay, SilentDisplay, is_live
from jumar.loop.events.events import LATEST, AttemptEnded, Event, IterationRecorded, LoopStarted, Notice, Waiting
from jumar.loop.report.spending import spent_money
from jumar.loop.store.layout import LoopPaths
from jumar.model import IterationRecord
from jumar.model.budget.limits import Budget

_SHOWN = LATEST - 1  # rows of the past; one more is known, which the first of them is compared with


class TableDisplay(LinesDisplay):
    """One line an iteration, as it is recorded. ``live`` adds what is being done, what the agent says and what is left."""

    def __init__(self, stream: TextIO, *, live: bool = False, colour: bool = True) -> None:
        super().__init__(stream, live=live, colour=colour)
        self._past = Past()
        self._progress = Progress(time.monotonic)
        self._weights: Mapping[str, float] = {}
        self._agent = ""
        self._headed = False

    def introduce(self, *, agent: str, paths: LoopPaths) -> None:
        """Take what the events do not say: the agent's name, and where its output goes."""
        self._agent = agent
        self._progress.begin(paths)

    def hear(self, event: Event) -> None:
        """Print what the event has to say."""
        self._progress.hear(event)
        if isinstance(event, LoopStarted):
            self.say(head_line(event.loop_id, self._agent, most=event.rules.max_iterations), "bold")
            self._headed = False
            self._weights = event.weights
            self._shown(event)
            if event.resumed:
                at = f"{event.recorded} of at most {event.rules.max_iterations}"
                self.note(f"resumed at iteration {at}, {spent_money(event.spend, event.budget or Budget())} so far")
        elif isinstance(event, IterationRecorded):
            self._row(event.record, event.best)
        elif isinstance(event, Notice):
            self.note(event.message)
        elif isinstance(event, Waiting) and not self._live:
            self.say(f"waiting   {waiting_text(event)}")
        elif isinstance(event, AttemptEnded) and event.outcome == "rate_limited":
            self._past.refuse(event.iteration)

    def status(self, width: int) -> Sequence[str]:
        """Return what is being done and, where it says something, the last line of the agent's output."""
        return self._progress.lines(width)

    def _shown(self, event: LoopStarted) -> None:
        hidden, shown = max(0, event.recorded - _SHOWN), event.latest[-_SHOWN:]
        if hidden:
            self._head(event.latest[0])
            self.say(f"      {hidden:,} earlier: `jumar show {event.loop_id}`", "dim")
            self._past.add(event.latest[0], event.best)
        for record in shown:
            self._row(record, event.best)

    def _head(self, record: IterationRecord) -> None:
        """Print the table's header: with the first row, so that what is noted before it stands above the table."""
        if not self._headed:
            self._headed = True
            self._print(heading((record,)), "dim")

    def _row(self, record: IterationRecord, best: int | None) -> None:
        self._head(record)
        self._past.add(record, best)
        style = "good" if record.iteration_number == best != 0 else "bad" if record.status != "ok" else ""
        self._print(self._past.cells(record, best, self._weights), style)

    def _print(self, cells: Sequence[str], style: str) -> None:
        for line in row_lines([self.spelled(cell) for cell in cells], self.width):
            self.print(line, style)


def choose_display(*, as_json: bool, quiet: bool, live: bool = True) -> SilentDisplay:
    """Return the display for this call: silent, lines on stderr beside JSON, live on a terminal where it may be, else lines."""
    if quiet:
        return SilentDisplay()
    if as_json:
        return TableDisplay(sys.stderr)
    return TableDisplay(sys.stdout, live=live and is_live(sys.stdout), colour=live)
