"""A learning run as a person sees it: a line an iteration with what matters in learning, and how far the judge is."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TextIO

from jumar.cli.terminal.display import waiting_text, whole_seconds
from jumar.cli.terminal.screen import LinesDisplay, SilentDisplay, aligned, is_live
from jumar.core.rendering.figures import dollars
from jumar.core.text import cut, escape, number, plural
from jumar.learning.report.view import LearningProgress, recovery_words, rollback_words
from jumar.loop.events.events import Event, IterationRecorded, LoopStarted, Notice, PhaseStarted, Waiting
from jumar.model import IterationRecord

if TYPE_CHECKING:
    from jumar.judging.asking.summary import Result
    from jumar.learning.plan import Plan

Told = Callable[[int], "LearningProgress | None"]
"""Gives what there is to say of an iteration, None where it has left nothing."""

COLUMNS: Final = ("it", "gap", "Δ", "rank", "patterns", "committed", "rejected", "")
_WIDTHS: Final = (5, 7, 8, 7, 10, 11, 10, 0)
_SAID: Final = 100
_QUARTERS: Final = 4


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
        re.compile(
            r"the working directory differed from iteration (\d+), from which the loop resumes: (.*); what was there is in (.*)"
        ),
        r"\2: put back to what iteration \1 left, to resume from; what was there (a final set, or an edit) is in \3",
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

    def planned(self, plan: Plan) -> None:
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
        gap = _figure(record, "closeness")
        change = "" if gap is None or self._gap is None else _signed(gap - self._gap)
        self._gap = gap
        shown = number(_figure(record, "ranking")).replace("-", "−")
        if found is None:
            said = " · ".join([*(["start"] if not number_ else []), *marks])
            return (str(number_), number(gap), change, shown, "", "", "", said)
        counts = (f"{found.patterns:,}", f"{found.committed:,}", f"{found.rejected:,}")
        return (str(number_), number(gap), change, shown, *counts, " · ".join([*marks, *_happened(found)]))


def _figure(record: IterationRecord, dimension: str) -> float | None:
    """Return the figure that ends the reason of a reading; None where there is none."""
    said = next((one.reason.rpartition(" ")[2] for one in record.readings if one.dimension == dimension), "")
    return None if said in {"", "—"} else float(said)


def _happened(found: LearningProgress) -> list[str]:
    """Return in a few words what was rolled back or recovered, and why."""
    said: list[str] = []
    for action in found.actions:
        if action.get("action") == "rolled_back":
            said.append(f"rolled back: {rollback_words(action)}")
        elif action.get("action") == "recovery" and action.get("kept"):
            said.append(f"recovery: {recovery_words(str(action.get('recovery', '')))}")
    return said


def _signed(value: float) -> str:
    return "0" if abs(value) < 0.0005 else f"{value:+.3f}".replace("-", "−")


class LearningDisplay(LinesDisplay, SilentLearning):
    """One line an iteration, as it is recorded. ``live`` adds what is being done, and how far the judge is."""

    def __init__(self, stream: TextIO, told: Told, *, live: bool = False) -> None:
        super().__init__(stream, live=live)
        self._rows = _Rows(told)
        self._headed = False
        self._asked = 0
        self._paid = 0.0
        self._most = 0
        self._doing = ""
        self._began = time.monotonic()

    def hear(self, event: Event) -> None:
        """Print what the event has to say."""
        if isinstance(event, LoopStarted):
            self._most = event.rules.max_iterations
            again = f", {max(0, event.recorded - 1):,} done before" if event.resumed else ""
            self.say(f"learning  up to {plural(event.rules.max_iterations, 'iteration')}{again}", "bold")
            for record in event.latest:
                self._row(record, event.best)
        elif isinstance(event, PhaseStarted):
            doing = {"generate": "proposing and fitting", "verify": "checking", "score": "measuring"}[event.phase]
            self._do(f"iteration {event.iteration}: {doing}" if event.iteration else "the start: measuring")
        elif isinstance(event, IterationRecorded):
            self._row(event.record, event.best)
            self._do("" if event.record.iteration_number < self._most else "the last set: fitting, probing, proving")
        elif isinstance(event, Notice):
            self.note(learning_words(event.message))
        elif isinstance(event, Waiting):
            self._do(f"waiting {waiting_text(event)}")
            if not self._live:
                self.say(f"waiting   {waiting_text(event)}")

    def planned(self, plan: Plan) -> None:
        """Say what the items could prove; that they are too few is a warning of its own."""
        self.say(f"items     {plural(plan.items, 'item')} in {plural(plan.groups, 'group')}, {plan.held}")
        if plan.smallest is not None:
            self.say(f"plan      {plan.says}", indent=10)

    def judged(self, result: Result, total: int) -> None:
        """Say how far the judge is: at each quarter and at the end, or below the table, with what it was paid."""
        self._asked += 1
        self._paid += result.cost_usd or 0.0
        paid = f" · {dollars(self._paid, places=2)}" if self._paid else ""
        self._do(f"judging {self._asked:,} of {plural(total, 'item')}{paid}")
        if not self._live and self._asked * _QUARTERS // total > (self._asked - 1) * _QUARTERS // total:
            self.say(f"judge     {self._asked:,} of {plural(total, 'item')}")
        if self._asked >= total:
            self._asked = 0

    def status(self, width: int) -> Sequence[str]:
        """Return what is being done and since when; nothing when nothing is."""
        del width
        return [f"  {self._doing} · {whole_seconds(time.monotonic() - self._began)}"] if self._doing else []

    def _do(self, what: str) -> None:
        if what.partition(" ")[0] != self._doing.partition(" ")[0]:  # the count of the judged is one thing that is done
            self._began = time.monotonic()
        self._doing = what

    def _row(self, record: IterationRecord, best: int | None) -> None:
        if not self._headed:
            self._headed = True
            self.say(aligned(COLUMNS, _WIDTHS), "dim")
        style = "good" if record.iteration_number == best else "bad" if record.status != "ok" else ""
        self.say(aligned(self._rows.cells(record, best), _WIDTHS), style, indent=sum(_WIDTHS) + 3)


def learn_display(told: Told, *, as_json: bool, quiet: bool) -> SilentLearning:
    """Return the display for this call: silent, lines on stderr beside JSON, live on a terminal where it may be, else lines."""
    if quiet:
        return SilentLearning()
    if as_json:
        return LearningDisplay(sys.stderr, told)
    return LearningDisplay(sys.stdout, told, live=is_live(sys.stdout))
