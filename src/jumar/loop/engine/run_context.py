"""What all steps of one run share: the store, what it was told, its programs, its clock and who listens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from jumar.core.redaction import current
from jumar.loop.events.events import Event, Listener, Notice, deliver
from jumar.loop.generators.memory import Notebook
from jumar.loop.settings import LoopParts, LoopSettings, achievable
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.running_totals import Tally
from jumar.loop.workspace.disk_space import Space
from jumar.loop.workspace.guard import Finding, Guard
from jumar.loop.workspace.surroundings import Surroundings
from jumar.model import Clock, SelectionCriteria
from jumar.model.attempts import AttemptEnd, AttemptStart
from jumar.processes.control import StopSwitch

__all__ = ["LoopRun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRun:
    """Holds no state of its own but the notes that it read and what it told: what a step may conclude stands in the store."""

    store: LoopStore
    settings: LoopSettings
    parts: LoopParts
    clock: Clock
    switch: StopSwitch
    tally: Tally
    listener: Listener | None = None
    notebook: Notebook = field(default_factory=Notebook)
    space: Space | None = None
    sleep: Callable[[float], None] = time.sleep
    guard: Guard = field(init=False)
    surroundings: Surroundings = field(init=False)
    telling: threading.Lock = field(default_factory=threading.Lock, repr=False)
    told: set[str] = field(default_factory=set[str], repr=False)

    def __post_init__(self) -> None:
        surroundings = Surroundings(self.store, self.settings.own)
        object.__setattr__(self, "surroundings", surroundings)
        object.__setattr__(self, "guard", Guard(self.store, self.settings.guard, surroundings))

    @property
    def criteria(self) -> SelectionCriteria:
        """By what the best is selected: what the settings ask for, as far as this loop's programs can tell."""
        return achievable(self.settings.criteria, has_validators=bool(self.parts.validators))

    def ended_attempts(self, number: int) -> Iterator[tuple[AttemptStart, AttemptEnd]]:
        """Yield the attempts of iteration ``number`` that have ended, the last one first.

        It looks back to the batch before and no further: those of an iteration that is not recorded yet stand near the end.
        """
        for attempt in reversed(self.store.attempts()):
            if attempt.start.iteration < number - self.settings.candidates:
                return
            if attempt.start.iteration == number and attempt.end is not None:
                yield attempt.start, attempt.end

    def tell(self, event: Event) -> None:
        """Hand ``event`` to whoever listens, one at a time: parallel candidates tell from threads of their own."""
        with self.telling:
            deliver(event, self.listener)

    def found(self, number: int, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Tell what was found of iteration ``number``, and return it."""
        for finding in findings:
            self.notice(f"iteration {number}: {finding.message}")
        return findings

    def notice(self, message: str) -> None:
        """Tell the person something, and what to do about it."""
        self.tell(Notice(message=current().redact(message)))

    def notice_once(self, what: str, message: str) -> None:
        """Tell ``message``, unless something was told under the name ``what`` in this run already."""
        if what not in self.told:
            self.told.add(what)
            self.notice(message)
