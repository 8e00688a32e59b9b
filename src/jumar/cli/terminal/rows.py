"""The terminal's table: its headline, its head, and one iteration as a row that keeps to the width."""

from __future__ import annotations

import re
import shlex
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from jumar.app.doctor.agents import AGENTS
from jumar.cli.terminal.screen import aligned
from jumar.core.text import cell_width, cut, escape, plural, wrapped
from jumar.loop.events.events import LATEST
from jumar.loop.report.rows import checks_head, compared_with, trajectory_row
from jumar.model import IterationRecord

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
