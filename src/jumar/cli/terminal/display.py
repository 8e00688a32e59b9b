"""A run as a person sees it: a line an iteration and, on a terminal, what is being done below them."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from jumar.app.agents import AGENTS
from jumar.cli.terminal.screen import LinesDisplay, SilentDisplay, aligned, is_live
from jumar.core.rendering.figures import count, dollars, duration
from jumar.core.text import cell_width, cut, escape, fit, last_line, plural, without_escapes, wrapped
from jumar.loop.events.events import (
    LATEST,
    AttemptEnded,
    AttemptStarted,
    Event,
    IterationRecorded,
    LoopStarted,
    Notice,
    PhaseStarted,
    StopDecided,
    Waiting,
)
from jumar.loop.report.observer import end_of
from jumar.loop.report.rows import checks_head, compared_with, trajectory_row
from jumar.loop.report.spending import spent_money
from jumar.loop.store.layout import LoopPaths
from jumar.model import IterationRecord
from jumar.model.attempts import Spend
from jumar.model.budget.pricing import Budget
from jumar.processes.captured_output import SHOWN_AT_ONCE

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
        words: list[str] = shlex.split(command) if isinstance(command, str) else list(command or ())
    except ValueError:
        return ""
    if isinstance(command, str) and any(sign in command for sign in ";|&<>$`\n"):
        return next((name for word in words if (name := Path(word).name) in _AGENTS), "")
    words = list(itertools.dropwhile(_SETTING.match, words))
    while len(words) > 1 and _INTERPRETER.fullmatch(Path(words[0]).name):
        options = list(itertools.takewhile(lambda word: word.startswith("-"), words[1:]))
        if {"-c", "-e"} & {*options}:  # a program in the command has no name
            return ""
        words = list(itertools.dropwhile(_SETTING.match, words[1 + len(options) :]))
    name = Path(words[0]).name if words else ""
    return cut(escape(name.rpartition(".")[2] if name.startswith("jumar.") else name), _NAME)


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


# --------------------------------------------------------------------------------------------------------- what is being done


_PHASES: Final = {"generate": "agent", "verify": "checks", "score": "scoring", "confirm": "re-scoring"}
_LOG: Final = "generator.log"
_END: Final = 4 << 10  # bytes of a log in which its last line is looked for
_WHY: Final = 60


@dataclass(frozen=True, slots=True)
class _Step:
    """A phase of one iteration that runs since ``began``; ``log`` is where the agent's output goes."""

    iteration: int
    phase: str
    began: float
    log: Path | None = None


class Progress:
    """Follows the events of a run; ``clock`` counts seconds. Before :meth:`begin` it knows of no output."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._paths: LoopPaths | None = None
        self._spend = Spend()
        self._budget = Budget()
        self._most = 0
        self._steps: dict[int, _Step] = {}
        self._attempts: dict[int, int] = {}
        self._waiting: tuple[Waiting, float] | None = None

    def begin(self, paths: LoopPaths) -> None:
        """Take where the loop is."""
        self._paths = paths

    def hear(self, event: Event) -> None:
        """Take in one event. Replaced, never changed in place: another thread draws."""
        steps = dict(self._steps)
        if isinstance(event, LoopStarted):
            self._most, self._budget, self._spend = event.rules.max_iterations, event.budget or Budget(), event.spend
        elif isinstance(event, AttemptStarted):
            self._attempts[event.iteration] = event.attempt
            self._waiting = None
            if event.purpose == "confirm":
                steps[event.iteration] = _Step(event.iteration, event.purpose, self._clock())
        elif isinstance(event, PhaseStarted):
            self._waiting = None
            steps[event.iteration] = _Step(event.iteration, event.phase, self._clock(), self._log(event))
        elif isinstance(event, AttemptEnded):
            if event.purpose == "confirm" or event.outcome != "ok":  # what came of it may still be checked
                steps.pop(event.iteration, None)
        elif isinstance(event, IterationRecorded):
            steps.pop(event.record.iteration_number, None)
            self._spend = event.spend
        elif isinstance(event, Waiting):
            self._waiting = (event, self._clock())
        elif isinstance(event, StopDecided):
            steps, self._waiting = {}, None
        self._steps = steps

    def _log(self, event: PhaseStarted) -> Path | None:
        attempt = self._attempts.get(event.iteration)
        if event.phase != "generate" or self._paths is None or attempt is None:
            return None
        return self._paths.attempt_scratch(attempt) / _LOG

    def lines(self, width: int) -> list[str]:
        """Return the lines, of at most ``width`` columns; none while nothing runs."""
        steps, waiting, now = list(self._steps.values()), self._waiting, self._clock()
        if waiting is not None:
            event, since = waiting
            return [fit(f"  waiting {waiting_text(event)} · {whole_seconds(now - since)}", width)]
        if not steps:
            return []
        parts = [_which(steps, self._most), *_doing(steps, now), *self._left(now - min(step.began for step in steps))]
        said = last_words([step.log for step in steps if step.log is not None])
        return [fit("  " + " · ".join(parts), width), *([fit(f"  > {said}", width)] if said else [])]

    def _left(self, running: float) -> list[str]:
        """Return what is used of each limit that there is, and the dollars known of where there is none."""
        spend, budget, found = self._spend, self._budget, list[str]()
        if budget.max_cost_usd is not None:
            found.append(f"{dollars(spend.charged_cost_usd, places=2)} of {dollars(budget.max_cost_usd, places=2)}")
        elif spend.charged_cost_usd:
            found.append(dollars(spend.charged_cost_usd, places=2))
        if budget.max_tokens is not None:
            found.append(f"{count(spend.charged_tokens)} of {count(budget.max_tokens)} tokens")
        if budget.max_seconds is not None:
            found.append(f"{whole_seconds(spend.seconds + running)} of {duration(budget.max_seconds)}")
        return found


def _which(steps: list[_Step], most: int) -> str:
    numbers = sorted(step.iteration for step in steps)
    if numbers == [0]:
        return "the start"
    limit = f" of {most:,}" if most and numbers[-1] <= most else ""
    return f"iteration {numbers[0]}{limit}" if len(numbers) == 1 else f"iterations {numbers[0]}-{numbers[-1]}{limit}"


def _doing(steps: list[_Step], now: float) -> list[str]:
    """Return each phase with its time, that of the oldest where several candidates are in it."""
    phases = Counter(step.phase for step in steps)
    found: list[str] = []
    for phase, name in _PHASES.items():
        if phases[phase]:
            oldest = min(step.began for step in steps if step.phase == phase)
            several = f"{phases[phase]}× " if phases[phase] > 1 else ""
            found.append(f"{several}{name} {whole_seconds(now - oldest)}")
    return found


def whole_seconds(seconds: float) -> str:
    """Return ``3s``, ``1m 12s``: a time that is drawn again each second."""
    return f"{max(0, int(seconds))}s" if seconds < 60 else duration(seconds)


def last_words(logs: list[Path]) -> str:
    """Return the last line of the log that was written last, safe for a terminal; empty when they say nothing.

    A log that has reached what is written as it comes has newer lines that nobody sees yet: it says nothing.
    """
    known = [(found, log) for log in logs if (found := _stat(log)) is not None and 0 < found.st_size < SHOWN_AT_ONCE]
    if not known:
        return ""
    newest = max(known, key=lambda one: one[0].st_mtime_ns)[1]
    return escape(last_line(without_escapes(end_of(newest, _END))))


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def waiting_text(event: Waiting) -> str:
    """Return for how long, and why: ``up to 31s (rate limited: try again in 30 seconds)``."""
    why = {"rate_limited": "rate limited", "calls_per_hour": "calls per hour", "budget": "the budget"}[event.why]
    detail = f": {escape(cut(event.detail, _WHY))}" if event.detail else ""
    return f"up to {duration(event.seconds)} ({why}{detail})"
