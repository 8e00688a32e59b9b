"""What all steps of one run share: the store, what it was told, its programs, its clock and who listens.

A step hands out what must run elsewhere (:data:`Way`); what was said of its snapshot is kept with the attempt's end, so that it
is paid for once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, TypeVar

from jumar.core.codec import Fields
from jumar.core.record import Record, stored
from jumar.core.redaction import current
from jumar.errors import JumarError
from jumar.loop.events.events import Event, Listener, Notice, deliver
from jumar.loop.generators.memory import Notebook
from jumar.loop.settings import LoopParts, LoopSettings, achievable
from jumar.loop.store.in_force import RunningTotals
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.staging import Pending
from jumar.loop.workspace.clearing import why_of_the_tree
from jumar.loop.workspace.disk_space import Space, with_room
from jumar.loop.workspace.guard import Finding, Guard
from jumar.loop.workspace.surroundings import Surroundings
from jumar.loop.workspace.workspace import Workspace
from jumar.model import CheckResult, Clock, ScoreReading, SelectionCriteria
from jumar.model.attempts import AttemptEnd, AttemptStart, Purpose
from jumar.processes.control import StopSwitch


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRun:
    """Holds no state of its own but the notes that it read and what it told: what a step may conclude stands in the store."""

    store: LoopStore
    settings: LoopSettings
    parts: LoopParts
    clock: Clock
    switch: StopSwitch
    tally: RunningTotals
    listener: Listener | None = None
    notebook: Notebook = field(default_factory=Notebook)
    space: Space | None = None
    steps: int | None = None
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

    def killed(self, number: int, purpose: Purpose) -> int:
        """Return how many steps of a purpose in a row, the last ones of iteration ``number``, ended with jumar killed.

        What they run may kill it.
        """
        outcomes = (end.outcome for start, end in self.ended_attempts(number) if start.purpose == purpose)
        return sum(1 for _ in takewhile(lambda outcome: outcome == "lost", outcomes))

    def tell(self, event: Event) -> None:
        """Hand ``event`` to whoever listens, one at a time: parallel candidates tell from threads of their own."""
        with self.telling:
            deliver(event, self.listener)

    def found(self, number: int, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Tell what was found of iteration ``number``, and return it."""
        for finding in findings:
            self.notice(f"iteration {number}: {finding.message}")
        return findings

    def look_around(self, workspace: Workspace, pending: Pending) -> None:
        """See, where a recheck may take the checks that follow for its own, whether they see more than the snapshot."""
        rechecks = bool(self.parts.validators) and self.settings.recheck != "off" and self.settings.candidates == 1
        if rechecks and workspace.gone() is None:
            self.surroundings.note_before(pending.number, workspace, (*pending.manifest.entries, *self.guard.guarded))

    def notice(self, message: str) -> None:
        """Tell the person something, and what to do about it."""
        self.tell(Notice(message=current().redact(message)))

    def notice_once(self, what: str, message: str) -> None:
        """Tell ``message``, unless something was told under the name ``what`` in this run already."""
        if what not in self.told:
            self.told.add(what)
            self.notice(message)


@dataclass(frozen=True, slots=True)
class Answers(Record):
    """What the programs said of one snapshot, by its manifest's seal. ``full``: none of it, as the disk was full for them."""

    checks: tuple[CheckResult, ...] = ()
    readings: tuple[ScoreReading, ...] = ()
    seconds: float = 0.0
    found: tuple[Finding, ...] = field(default=(), metadata=stored("guard"))
    full: str | None = field(default=None, metadata=stored(omit=True))
    snapshot: str | None = field(default=None, metadata=stored(omit=True))


def kept_answers(run: LoopRun, pending: Pending) -> tuple[bool, Answers | None]:
    """Return whether an evaluation of this snapshot came to its end, and what the last one said.

    That is None where none did, and where an earlier version of jumar did not keep it. ``found`` is that of all of them.
    """
    ended = [
        run.store.attempt(start.number)
        for start, end in run.ended_attempts(pending.number)
        if start.nonce == pending.nonce and start.purpose == "score" and end.outcome in {"ok", "broken"}
    ]
    kept: list[Answers] = []
    for attempt in ended:
        said = attempt.end and attempt.end.answers
        if said is None:
            break
        answers = Answers.from_json(Fields(said, str(run.store.paths.attempt_end(attempt.start.number))))
        if answers.snapshot in {None, pending.file.seal}:  # else of another one, which was taken in its place
            kept.append(answers)
    if not kept:
        return bool(ended), None
    return True, replace(kept[0], found=tuple(finding for answers in reversed(kept) for finding in answers.found))


T = TypeVar("T")

Work = Callable[[], object]
"""Something that touches no store and may run in another thread."""

Way = Generator[Work, Any, T]


def elsewhere(work: Callable[[], T]) -> Way[T]:
    """Hand ``work`` out and return its result; used with ``yield from``."""
    result: T = yield work
    return result


def drive(way: Way[T]) -> T:
    """Go a way to its end in this thread, and return its result."""
    try:
        work = next(way)
        while True:
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - the way decides what becomes of it
                work = way.throw(error)
            else:
                work = way.send(result)
    except StopIteration as end:
        value: T = end.value
        return value


FAILED: Final = "snapshot_failed"
"""Key of a stage with the reason why there is no snapshot of what the generator left."""


def take(
    run: LoopRun,
    workspace: Workspace,
    stage: Mapping[str, Any],
    *,
    number: int,
    nonce: str,
    attempt: int | None,
    logs: Path | None,
    failed: str | None = None,
) -> Pending:
    """Take the snapshot of the tree as it lies. Errors: as ``LoopStore.stage``, and of a tree that cannot be brought back.

    ``failed`` says why the iteration failed: then the tree is brought back to the parent, and that is taken. A snapshot that
    cannot be taken of what a generator left, because it is over the quota, too deep or not to be read, is such a reason.
    """
    if failed is not None:
        run.notice(f"iteration {number} failed: {failed}")
        workspace.bring_back(stage["parent"])
        stage = {**stage, FAILED: failed}

    def stage_it() -> Pending:
        return run.store.stage(
            number,
            source=workspace.directory,
            paths=workspace.paths_since(stage.get("parent")),
            nonce=nonce,
            attempt=attempt,
            stage=stage,
            logs=logs,
            quota=run.settings.artifacts,
            cache=workspace.cache,
        )

    return with_room(run.space, stage_it)


def take_ended(
    run: LoopRun,
    workspace: Workspace,
    start: AttemptStart,
    ended: AttemptEnd,
    scratch: Path | None,
    *,
    since: int | None = None,
    found: tuple[Finding, ...] = (),
    lost: str | None = None,
) -> Pending:
    """Snapshot the working directory after an attempt that has ended, with the checks as they were at the start.

    ``since`` is the wall clock when it began, if that is known; ``found`` is what the guard found of it. ``lost`` says why the
    tree is not what the attempt left: then, and where that cannot be kept, it is a failed iteration's. Errors: as of
    :func:`take`.
    """
    number, nonce, attempt = start.iteration, start.nonce, start.number
    lost = lost or workspace.gone()
    if lost is None:
        try:
            found = (*found, *run.found(start.iteration, run.guard.put_back(workspace, scratch)))
            stage = _stage(start, ended, since, found)
            return take(run, workspace, stage, number=number, nonce=nonce, attempt=attempt, logs=scratch)
        except (JumarError, OSError, RecursionError) as error:
            lost = why_of_the_tree(error)
            if lost is None or start.parent is None:
                raise
    stage = _stage(start, ended, since, found)
    return take(run, workspace, stage, number=number, nonce=nonce, attempt=attempt, logs=scratch, failed=lost)


def _stage(start: AttemptStart, ended: AttemptEnd, since: int | None, found: tuple[Finding, ...]) -> dict[str, Any]:
    return {
        "parent": start.parent,
        "batch": start.batch,
        "candidate": start.candidate,
        "since_ns": since,
        "ended": ended.to_json(),
        "guard": [finding.to_json() for finding in found],
    }
