"""What ``jumar cases run`` prints while it runs: a line an iteration, and what was handed on."""

from __future__ import annotations

from typing import TextIO

from jumar.cli.common import writable
from jumar.loop.cases.events import CaseEnded, CaseEvent, CaseNotice, CaseStarted, IterationMade
from jumar.model.cases import CarriedFrom, CaseIteration, shown_ranking
from jumar.text import escape, escape_block, plural

__all__ = ["CaseProgress"]

_NAMES = {"causal_chain_completeness": "chain"}


class CaseProgress:
    """Prints events to ``stream``, or to nobody when it is None."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._headed = False

    def say(self, text: str) -> None:
        """Print one line; control characters are shown, not obeyed."""
        if self._stream is not None:
            self._stream.write(writable(escape_block(text), self._stream.encoding) + "\n")
            self._stream.flush()

    def hear(self, event: CaseEvent) -> None:
        """Print what is worth a line."""
        if isinstance(event, CaseNotice):
            self.say(f"note      {event.message}")
        elif isinstance(event, CaseStarted):
            self._start(event)
        elif isinstance(event, IterationMade):
            self._row(event.record, best=event.record.number == event.best)
        elif isinstance(event, CaseEnded):
            end = event.end
            best = (
                "no iteration is valid, nothing is carried from here" if end.best_iter is None else f"iteration {end.best_iter}"
            )
            lead = "  " if self._headed else f"case {end.case}  "
            self.say(f"{lead}stopped   {end.stopped_by}: {end.detail}")
            self.say(f"{' ' * len(lead)}kept      {best}")

    def _start(self, event: CaseStarted) -> None:
        self._headed = False
        self.say(f"case {event.case} · {escape(event.case_id)} · {_origin(event.carried_from)}")
        for record in event.recorded:
            self._row(record, best=False)

    def _row(self, record: CaseIteration, *, best: bool) -> None:
        names = [_NAMES.get(name, name) for name in shown_ranking(record.values)]
        if not self._headed:
            self.say("  it  " + "".join(f"{escape(name)[:12]:>12}" for name in names) + f"{'diff':>8}{'time':>9}")
            self._headed = True
        cells = "".join(f"{_number(value):>12}" for value in record.values.values())
        seconds = sum(step.seconds or 0.0 for step in record.steps)
        mark = "  ★ best so far" if best else ""
        if record.status != "ok":
            mark = f"  ✗ {record.status.replace('_', ' ')}: {record.reason}"
        self.say(f"{record.number:>4}  {cells}{_number(record.diff):>8}{seconds:>8.1f}s{mark}")


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:g}"


def _origin(carried: CarriedFrom | None) -> str:
    if carried is None:
        return "from the start of the run"
    return f"from case {carried.case}, its {carried.selected_by} iteration {carried.iteration}"


def cases_line(count: int, most: int) -> str:
    """Return ``3 cases, at most 5 iterations each``."""
    return f"{plural(count, 'case')}, at most {plural(most, 'iteration')} each"
