"""A run as a person sees it: a live table on a terminal, one line an iteration elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from jumar.cli.common import writable
from jumar.cli.rows import COLUMNS, Past, closing_lines
from jumar.cli.screen import LinesDisplay, PictureDisplay, SilentDisplay, aligned
from jumar.loop.events import LATEST, AttemptEnded, Event, IterationRecorded, LoopStarted, Notice, PhaseStarted, Waiting
from jumar.loop.outcome import LoopOutcome
from jumar.model import IterationRecord
from jumar.model.attempts import Spend
from jumar.report.figures import dollars, duration
from jumar.text import escape, escape_block, plural

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Display", "LiveDisplay", "PlainDisplay", "SilentDisplay", "waiting_text"]

_WIDTHS = (4, 7, 7, 7, 8, 8, 0)
_SHOWN = LATEST - 1  # rows of the past; one more is known, which the first of them is compared with
_PHASES = {"generate": "generating", "verify": "checking", "score": "scoring"}


class Display(Protocol):
    """Hears the loop's events and shows its end."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def hear(self, event: Event) -> None: ...

    def end(self, outcome: LoopOutcome) -> None: ...


class PlainDisplay(LinesDisplay):
    """One line an iteration, as it is recorded."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._past = Past()
        self._weights: Mapping[str, float] = {}
        self._headed = False

    def hear(self, event: Event) -> None:
        """Print what the event has to say."""
        if isinstance(event, LoopStarted):
            self.say(f"jumar run · {event.loop_id} · up to {plural(event.rules.max_iterations, 'iteration')}")
            self._headed = False
            self._weights = event.weights
            self._shown(event)
        elif isinstance(event, IterationRecorded):
            self._row(event.record, event.best)
        elif isinstance(event, Notice):
            self.say(f"note      {escape_block(event.message)}")
        elif isinstance(event, Waiting):
            self.say(f"waiting   {waiting_text(event)}")
        elif isinstance(event, AttemptEnded) and event.outcome == "rate_limited":
            self._past.refuse(event.iteration)

    def _shown(self, event: LoopStarted) -> None:
        if event.latest:
            self._head()
        hidden, shown = max(0, event.recorded - _SHOWN), event.latest[-_SHOWN:]
        if hidden:
            self.say(f"      {hidden:,} earlier: `jumar show {event.loop_id}`")
            self._past.add(event.latest[0], event.best)
        for record in shown:
            self._row(record, event.best)

    def _head(self) -> None:
        """Print the table's header: with the first row, so that what is noted before it stands above the table."""
        if not self._headed:
            self._headed = True
            self.say(aligned(COLUMNS, _WIDTHS))

    def _row(self, record: IterationRecord, best: int | None) -> None:
        self._head()
        self._past.add(record, best)
        self.say(aligned(self._past.cells(record, best, self._weights), _WIDTHS))

    def end(self, outcome: LoopOutcome) -> None:
        """Print why the loop ended and what was chosen."""
        for line in closing_lines(outcome):
            self.say(line)


class LiveDisplay(PictureDisplay):
    """A table that grows in place, with a progress bar; only on a terminal."""

    def __init__(self, *, colour: bool) -> None:
        super().__init__(colour=colour)
        self._past = Past()
        self._recorded = 0
        self._started: LoopStarted | None = None
        self._best: int | None = None
        self._spend = Spend()
        self._notices: list[str] = []

    def hear(self, event: Event) -> None:
        """Take the event into the picture."""
        if isinstance(event, LoopStarted):
            self._started = event
            for record in event.latest:
                self._past.add(record, event.best)
            self._recorded = event.recorded
            self._best = event.best
        elif isinstance(event, PhaseStarted):
            self.phase = f"{_PHASES[event.phase]} iteration {event.iteration} …"
        elif isinstance(event, IterationRecorded):
            self._past.add(event.record, event.best)
            self._recorded += 1
            self._best = event.best
            self._spend = event.spend
            self.phase = ""
        elif isinstance(event, Waiting):
            self.phase = f"waiting {waiting_text(event)} …"
        elif isinstance(event, AttemptEnded) and event.outcome == "rate_limited":
            self._past.refuse(event.iteration)
        elif isinstance(event, Notice):
            self._notices.append(event.message)

    def render(self) -> RenderableType:
        """Return the picture as it is now."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for name, width in zip(COLUMNS, _WIDTHS, strict=True):
            table.add_column(name, justify="right" if width else "left", min_width=width or None, no_wrap=bool(width))
        weights: Mapping[str, float] = self._started.weights if self._started else {}
        for record in self._past.latest[-_SHOWN:]:
            style = "bold green" if record.iteration_number == self._best else "red" if record.status != "ok" else ""
            table.add_row(*(Text(cell) for cell in self._past.cells(record, self._best, weights)), style=style)
        total = self._started.rules.max_iterations if self._started else 1
        done = max(0, self._recorded - 1)  # the start is no pass
        head = Text(self._headline(done, total), style="bold")
        bar = ProgressBar(total=total, completed=done, width=40)
        notes = [Text(f"note      {escape(note)}", style="yellow") for note in self._notices]
        foot = [bar, Text(self.phase, style="dim")] if self.phase or done < total else []
        return Group(head, table, *notes, *foot)

    def _headline(self, done: int, total: int) -> str:
        name = self._started.loop_id if self._started else ""
        parts = [f"{done} of {plural(total, 'iteration')}", duration(self._spend.seconds)]
        if self._spend.cost_usd:
            parts.insert(1, dollars(self._spend.cost_usd, places=2))
        return f"jumar run · {name}   {' · '.join(parts)}"

    def end(self, outcome: LoopOutcome) -> None:
        """Print why the loop ended, below the finished table."""
        self.stop()
        for line in closing_lines(outcome):
            sys.stdout.write(writable(line, sys.stdout.encoding) + "\n")


def waiting_text(event: Waiting) -> str:
    """Return for how long, and why: ``up to 31s (rate limited: try again in 30 seconds)``."""
    why = {"rate_limited": "rate limited", "calls_per_hour": "calls per hour", "budget": "the budget"}[event.why]
    detail = f": {escape(event.detail)}" if event.detail else ""
    return f"up to {duration(event.seconds)} ({why}{detail})"
