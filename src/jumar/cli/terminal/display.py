"""A run as a person sees it: a line an iteration and, on a terminal, what is being done below them."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TextIO

from jumar.app.doctor.agents import AGENTS
from jumar.cli.terminal.progress import Progress, waiting_text
from jumar.cli.terminal.screen import LinesDisplay, SilentDisplay, aligned, is_live
from jumar.core.text import cell_width, cut, escape, plural, wrapped
from jumar.loop.events.events import LATEST, AttemptEnded, Event, IterationRecorded, LoopStarted, Notice, Waiting
from jumar.loop.report.rows import checks_head, compared_with, trajectory_row
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


# ------------------------------------------------------------------------------------------------------------------- the rows


_WIDTHS: Final = (4, 7, 7, 9, 8, 8)
"""Columns of ``it, score, Δ, checks or tests, cost, time``; the note has the rest of the line."""

_NOTE: Final = 3  # blanks before it
_ROOM: Final = 24  # columns that a note needs beside the others; with fewer it stands below
_REASON: Final = 100
_WIDEST: Final = 120  # columns of a row where nobody says how wide it may be
_NAME: Final = 30
_AGENTS: Final = {*(agent.program for agent in AGENTS), "amp", "copilot", "cursor-agent", "goose", "qwen"}
_INTERPRETER: Final = re.compile(r"(?:python|pypy)[0-9.]*|sh|bash|zsh|dash|node|bun|deno|ruby|perl|env|npx|uvx|exec|nice|time")
_SETTING: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def head_line(loop_id: str, agent: str, *, most: int | None) -> str:
    """Return ``jumar · calc-3 · claude · up to 5 iterations``; what is not known is left out."""
    parts = ["jumar", escape(loop_id), escape(agent), "" if most is None else f"up to {plural(most, 'iteration')}"]
    return " · ".join(part for part in parts if part)


def agent_name(command: str | Sequence[str] | None) -> str:
    """Return what a person calls the program of ``command``: ``claude``, ``agent.py``; empty where it cannot be told.

    Of an interpreter, that is the script or module that it runs; of a line of the shell with several programs, the first one that
    is an agent.
    """
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command or ())
    except ValueError:
        return ""
    names = [Path(word).name for word in words]
    if isinstance(command, str) and any(sign in command for sign in ";|&<>$`\n"):
        return next((name for name in names if name in _AGENTS), "")
    while names and (_SETTING.match(words[0]) or (_INTERPRETER.fullmatch(names[0]) and len(names) > 1)):
        interpreter = not _SETTING.match(words[0])
        words, names = words[1:], names[1:]
        while interpreter and names and words[0].startswith("-"):
            if words[0] in {"-c", "-e"}:  # a program in the command has no name
                return ""
            words, names = words[1:], names[1:]
    return cut(escape(names[0].rpartition(".")[2] if names[0].startswith("jumar.") else names[0]), _NAME) if names else ""


def heading(records: Iterable[IterationRecord]) -> tuple[str, ...]:
    """Return the head of the table; checks that count tests are called by them."""
    return ("it", "score", "Δ", checks_head(records), "cost", "time", "")


def row_lines(cells: Sequence[str], width: int | None) -> list[str]:
    """Return a row, or the head, as lines of at most ``width`` columns; None for one line, of which the note is cut at a word.

    A note that does not fit goes on below its own beginning, or below the row where there is no room beside it; on a narrow
    terminal the last columns are left out.
    """
    shown = len(_WIDTHS)
    while width is not None and shown > 2 and sum(_WIDTHS[:shown]) > width:
        shown -= 1
    row, note = aligned(cells[:shown], _WIDTHS[:shown]), cells[-1]
    if not note:
        return [row]
    begin = max(sum(_WIDTHS[:shown]), cell_width(row)) + _NOTE
    if width is None:
        return [f"{row}{' ' * (begin - cell_width(row))}{cut(note, _WIDEST - begin)}"]
    if width - begin < min(_ROOM, cell_width(note)):
        begin = _WIDTHS[0] + _NOTE
        return [row, *(" " * begin + line for line in wrapped(note, width - begin))]
    first, *more = wrapped(note, width - begin)
    return [f"{row}{' ' * (begin - cell_width(row))}{first}", *(" " * begin + line for line in more)]


class Past:
    """What a display knows of the iterations so far: the latest, all that were the running best, and refusals by a provider."""

    def __init__(self) -> None:
        self._latest: deque[IterationRecord] = deque(maxlen=LATEST)  # a night has ten thousand
        self._bests: dict[int, IterationRecord] = {}
        self._refused: Counter[int] = Counter()

    def add(self, record: IterationRecord, best: int | None) -> None:
        """Take one more; ``best`` is the running best now."""
        self._latest.append(record)
        if best == record.iteration_number:
            self._bests[record.iteration_number] = record

    def refuse(self, iteration: int) -> None:
        """Note that the provider refused ``iteration``."""
        self._refused[iteration] += 1

    def cells(self, record: IterationRecord, best: int | None, weights: Mapping[str, float]) -> tuple[str, ...]:
        """Return the cells of a record that was added, in the order of :func:`heading`; a failed one says why."""
        known = {**self._bests, **{one.iteration_number: one for one in self._latest}}
        earlier = [number for number in known if number < record.iteration_number]
        before = known[max(earlier)] if earlier else None
        parent = compared_with(record, before, known)
        leader = best or None  # that the start is the best so far says nothing
        row = trajectory_row(record, parent, best=leader, weights=weights, refused=self._refused[record.iteration_number])
        return (*row.cells[:-1], row.said(cut(escape(record.status_reason), _REASON) if record.status != "ok" else ""))
