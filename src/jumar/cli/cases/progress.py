"""What ``jumar cases run`` prints while it runs: a line an iteration, and what was handed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TextIO

from jumar.cases.events import CaseEnded, CaseEvent, CaseNotice, CaseStarted, IterationMade
from jumar.cases.records import CarriedFrom, CaseIteration
from jumar.cli.common import room, writable
from jumar.core.text import escape, escape_block, plural, wrapped

__all__ = ["CaseProgress", "cases_line"]

_WIDTH = 12


class CaseProgress:
    """Prints events to ``stream``, or to nobody when it is None.

    ``heading`` comes before the first event: what is refused before that begins nothing. ``keys`` are the columns, those of the
    order first.
    """

    def __init__(self, stream: TextIO | None, *, heading: str = "", keys: Sequence[str] = ()) -> None:
        self._stream = stream
        self._heading = heading
        self._keys = tuple(keys)
        self._headed = False

    def say(self, text: str) -> None:
        """Print one line; control characters are shown, not obeyed."""
        if self._stream is not None:
            self._stream.write(writable(escape_block(text), self._stream.encoding) + "\n")
            self._stream.flush()

    def hear(self, event: CaseEvent) -> None:
        """Print what is worth a line."""
        if self._heading:
            heading, self._heading = self._heading, ""
            self.say(heading)
        if isinstance(event, CaseNotice):
            self.say("\n".join(wrapped(f"note      {event.message}", room(), 10)))
        elif isinstance(event, CaseStarted):
            self._start(event)
        elif isinstance(event, IterationMade):
            self._row(event.record, mark="★ best so far" if event.record.number == event.best else "")
        elif isinstance(event, CaseEnded):
            self._end(event)

    def _start(self, event: CaseStarted) -> None:
        self._headed = False
        self.say(f"case {event.case} · {escape(event.case_id)} · {_origin(event.carried_from)}")
        for record in event.recorded:
            self._row(record, mark="made before" + (", ★ best so far" if record.number == event.best else ""))

    def _row(self, record: CaseIteration, *, mark: str) -> None:
        names = tuple(dict.fromkeys((*(name for name in self._keys if name in record.values), *record.values)))
        if not self._headed:
            self.say("  it  " + "".join(f"{escape(name)[:_WIDTH]:>{_WIDTH}}" for name in names) + f"{'diff':>8}{'time':>9}")
            self._headed = True
        cells = "".join(f"{_number(record.values[name]):>{_WIDTH}}" for name in names)
        seconds = sum(step.seconds or 0.0 for step in record.steps)
        if record.status != "ok":
            mark = f"✗ {record.status.replace('_', ' ')}: {record.reason}"
        self.say(f"{record.number:>4}  {cells}{_number(record.diff):>8}{seconds:>8.1f}s  {mark}".rstrip())

    def _end(self, event: CaseEnded) -> None:
        end = event.end
        kept = "no iteration is valid, nothing is carried from here"
        if event.best is not None:
            kept = f"iteration {event.best.best_iter}: {_scores(event.best.values, self._keys)}"
        lead = "  " if self._headed else f"case {end.case}  "
        self.say(f"{lead}stopped   {end.stopped_by}: {end.detail}")
        self.say(f"{' ' * len(lead)}kept      {kept}")


def _scores(values: Mapping[str, float | None], keys: Sequence[str]) -> str:
    named = [name for name in (keys or tuple(values)) if name in values]
    return ", ".join(f"{escape(name)} {_number(values[name])}" for name in named)


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:g}"


def _origin(carried: CarriedFrom | None) -> str:
    if carried is None:
        return "from the start of the run"
    return f"from case {carried.case}, its {carried.selected_by} iteration {carried.iteration}"


def cases_line(count: int, most: int) -> str:
    """Return ``3 cases, at most 5 iterations each``."""
    return f"{plural(count, 'case')}, at most {plural(most, 'iteration')} each"
