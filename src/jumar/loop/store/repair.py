"""The way out of damage: what ``verify`` finds gets its name back, is set aside, or is accepted as gone.

It goes in rounds, because one thing that is out of the way shows the next; each step is one that can be cut off anywhere and done
again. Nothing is deleted: what cannot be placed lies in ``quarantine/``.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from jumar.core import files
from jumar.core.codec import broken_seal, decode, encode
from jumar.core.files import read_store_file
from jumar.core.findings import Problem
from jumar.core.lock import QUARANTINE
from jumar.core.text import escape
from jumar.errors import ForgedError, JumarError, StoreDamagedError
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.snapshot import store_again
from jumar.loop.store.layout import ARTIFACTS, MANIFEST, METRICS, STAGE, iteration_name, iteration_number
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.reading import (
    ACCEPTED,
    ACCEPTED_AT,
    CLEANED,
    cleaned_iterations,
    decision_number,
    lost_iterations,
    read_record,
)
from jumar.loop.store.trust import FROM_ELSEWHERE, place_of
from jumar.loop.store.verify import NEWER, NOT_OURS, UNLIKE, verify
from jumar.model.attempts import AttemptEnd, AttemptStart
from jumar.model.decisions import Decision
from jumar.model.records import ArtifactDetail, IterationRecord, Reading

_ROUNDS: Final = 100
_ORDER: Final = ("decisions", "readings", "attempts", "pending", "iterations")
_UNITS: Final = frozenset({*_ORDER, "undo", "set-aside", "checks"})
_ASIDE: Final = f"is moved to {QUARANTINE}/"


@dataclass(frozen=True, slots=True)
class Mending:
    """One thing that is set right: where (relative to the loop), what is wrong, what is done about it, and how."""

    path: str
    what: str
    does: str
    act: Callable[[], object]

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "what": self.what, "does": self.does}


def plan_repair(store: LoopStore, problems: Sequence[Problem]) -> tuple[Mending, ...]:
    """Return what the first round of :func:`repair` does about ``problems``. Nothing is changed."""
    return tuple(_Round(store, problems, by="", at="").mendings())


def repair(store: LoopStore, *, by: str, at: str) -> tuple[tuple[Mending, ...], tuple[Problem, ...]]:
    """Set right what can be, under the lock; return what was done and what is left: what a newer jumar wrote.

    What was whole stays where it is. Cut off anywhere, it can be done again. Errors: :class:`jumar.errors.LockedError`,
    :class:`jumar.errors.StoreWriteError`.
    """
    done: list[Mending] = []
    with store.lock():
        for _ in range(_ROUNDS):
            problems = verify(store).problems
            mendings = tuple(_Round(store, problems, by=by, at=at).mendings())
            if not mendings:
                return tuple(done), problems
            for mending in mendings:
                with files.as_write_error("repair", store.paths.directory / mending.path):
                    mending.act()
                store.refresh()
                done.append(mending)
    raise StoreDamagedError(f"{store.paths.directory} is damaged anew as it is repaired: end what writes there")


class _Round:
    """What is done about the problems of one look at a loop."""

    def __init__(self, store: LoopStore, problems: Sequence[Problem], *, by: str, at: str) -> None:
        self._store, self._paths = store, store.paths
        self._by, self._at = by, at
        self._problems = [problem for problem in problems if problem.fix != NEWER]

    def mendings(self) -> Iterator[Mending]:
        again = list(self._stored_again())
        yield from again or self._set_right()

    def _stored_again(self) -> Iterator[Mending]:
        """Take contents that are missing or altered among the objects from the working directory or a copy."""
        found: dict[Path, dict[Problem, ArtifactDetail]] = {place: {} for place in self._copies()}
        for problem in self._problems:
            folder, _, rest = os.path.relpath(problem.place, self._paths.iterations).partition(f"/{ARTIFACTS}/")
            number = iteration_number(folder)
            with contextlib.suppress(JumarError, OSError):
                manifest = None if number is None else self._store.manifest(number)
                detail = manifest.entries.get(rest) if manifest is not None and manifest.by_hash else None
                place = None if detail is None else next((each for each in found if _has(each / rest, detail)), None)
                if detail is not None and place is not None:
                    found[place][problem] = detail
        for place, problems in found.items():
            act: Callable[[], object] = partial(store_again, self._store.objects, place, tuple(problems.values()))
            source = "the working directory" if place == self._store.workdir else os.path.relpath(place, self._paths.directory)
            for problem in problems:
                yield Mending(problem.path, problem.what, f"is stored again, from {escape(source)}", act)
                act = int  # all of them at once

    def _copies(self) -> Iterator[Path]:
        """Yield the directories that may have the files of an iteration by their paths."""
        paths = self._paths
        yield from filter(None, (self._store.workdir,))
        yield paths.final_output
        for kept in (paths.undo, paths.set_aside):
            yield from sorted(kept.glob(f"*/{ARTIFACTS}"))

    def _set_right(self) -> Iterator[Mending]:
        wrong = {problem.place for problem in self._problems if problem.missing is None}
        units: dict[Path, list[Problem]] = {}
        for problem in self._problems:
            if problem.missing in {None, problem.place}:
                units.setdefault(self._unit(problem.place), []).append(problem)
            elif problem.missing is not None and problem.place not in wrong:  # the word of a file that is sound
                units.setdefault(problem.missing, []).append(problem)
        mendings = (mending for unit in sorted(units, key=self._order) for mending in self._unit_mended(unit, units[unit]))
        found = {(mending.path, mending.does): mending for mending in mendings}
        yield from found.values()
        gone = [problem for problem in self._problems if problem.missing == problem.place]
        items = [{"path": problem.path, "what": problem.what} for problem in gone]
        for problem in gone if not found else ():  # all of them in one decision
            paths = ", ".join(item["path"] for item in items)
            data = {ACCEPTED: items, ACCEPTED_AT: max((each.start.number for each in self._store.attempts()), default=0)}
            act = partial(self._decide, f"accepted as missing: {paths}", data) if items else int
            items = []
            yield Mending(problem.path, problem.what, "is accepted, and on record", act)
        if not (found or gone):
            yield from self._nothing_to_go_on_from()

    def _nothing_to_go_on_from(self) -> Iterator[Mending]:
        """Set all iterations aside where damage took the last snapshot: the next run begins from the working directory."""
        store = self._store
        numbers = store.iteration_numbers()
        resumable = store.config.get("run") is not None and not store.pending_numbers()
        if not resumable or not lost_iterations(store.decisions()) or any(map(store.has_snapshot, numbers)):
            return
        for number in numbers:
            yield self._aside(self._paths.iteration(number), "no snapshot is left to go on from")

    def _unit(self, place: Path) -> Path:
        """Return what is moved as one: a file of records, the directory of an iteration or of a copy."""
        parts = place.relative_to(self._paths.directory).parts
        return self._paths.directory.joinpath(*parts[: 2 if parts[0] in _UNITS else 1])

    def _order(self, unit: Path) -> tuple[int, bool, str]:
        """Decisions first, because others are written meanwhile; what waits before iterations that shall wait in its place."""
        folder = unit.parent.name
        return (_ORDER.index(folder) if folder in _ORDER else len(_ORDER), not os.path.lexists(unit), os.fspath(unit))

    def _unit_mended(self, unit: Path, problems: list[Problem]) -> Iterator[Mending]:
        what, folder = problems[0].what, unit.parent.name
        if not os.path.lexists(unit):
            if folder == "attempts":
                yield self._mending(unit, what, "is written anew, so that it is charged", lambda: self._begin(unit))
            return
        right = self._rightful(unit)
        if right is not None and right != unit and not os.path.lexists(right):
            yield self._mending(unit, what, f"is named {escape(right.name)} again", lambda: files.rename_new(unit, right))
        elif folder == "iterations" and iteration_number(unit.name) is not None:
            yield from self._iteration(unit, problems)
        elif folder == "pending" and os.path.lexists(unit / METRICS):  # what is left is scored again
            yield self._aside(unit / METRICS, what)
        elif folder in {"decisions", "readings"} and (number := decision_number(unit.name)) is not None:
            wrong = [path for path in unit.parent.glob(f"{number:04d}-*.json") if self._rightful(path) != path] or [unit]
            yield from (self._aside(path, what) for path in wrong)
            copy = self._paths.undo_of(number)  # a later apply of the same number would take it for its own
            if any(path.name.endswith("-apply.json") for path in wrong) and os.path.lexists(copy):
                yield self._aside(copy, f"belongs to {escape(unit.name)}")
        else:
            yield self._aside(unit, what)
            if folder == "undo" and (undo := self._undo_of(unit.name)) is not None:
                yield self._mending(unit, "an undo needs it", "ends undone", partial(self._end_undo, undo))

    def _iteration(self, unit: Path, problems: list[Problem]) -> Iterator[Mending]:
        """Keep as much as is sound: the record without its snapshot, or the snapshot, which is scored again."""
        strays = [problem for problem in problems if problem.fix == NOT_OURS and problem.place.name != METRICS]
        yield from (self._aside(problem.place, problem.what) for problem in strays)
        of = {problem.place.relative_to(unit).parts[0]: problem for problem in reversed(problems) if problem not in strays}
        if MANIFEST in of and of[METRICS if METRICS in of else MANIFEST].what == UNLIKE:
            del of[METRICS]
        record, base = (None, None) if METRICS in of else self._record(unit)
        if MANIFEST in of and record is not None and base is None:
            does = "is made anew from metrics.json"
            yield self._mending(unit / MANIFEST, of[MANIFEST].what, does, lambda: self._list_anew(unit, record))
        elif METRICS in of and not {ARTIFACTS, MANIFEST, STAGE} & of.keys() and self._store.config.get("run") is not None:
            does = f"{_ASIDE}, and the next run scores the snapshot again"
            yield self._mending(unit / METRICS, of[METRICS].what, does, lambda: self._score_again(unit))
        elif METRICS in of or MANIFEST in of:
            yield self._aside(unit, (of.get(METRICS) or of[MANIFEST]).what)
        elif ARTIFACTS in of:
            does = f"{_ASIDE} with its snapshot; the record stays, and nothing starts from it any more"
            yield self._mending(of[ARTIFACTS].place, of[ARTIFACTS].what, does, lambda: self._lose(unit))
        elif STAGE in of and os.path.lexists(unit / STAGE):
            yield self._aside(unit / STAGE, of[STAGE].what)

    def _mending(self, path: Path, what: str, does: str, act: Callable[[], object]) -> Mending:
        return Mending(escape(os.path.relpath(path, self._paths.directory)), what, does, act)

    def _aside(self, path: Path, what: str) -> Mending:
        return self._mending(path, what, _ASIDE, lambda: os.path.lexists(path) and self._store.quarantine(path))

    def _decide(self, reason: str, data: dict[str, Any]) -> None:
        self._store.add_decision("repair", reason=reason, by=self._by, at=self._at, data=data)

    def _undo_of(self, name: str) -> Decision | None:
        """Return the undo that was cut off and needs a copy that cannot be used."""
        with contextlib.suppress(JumarError):
            decisions = [each for each in self._store.decisions() if f"{each.data.get('apply')}".zfill(4) == name]
            if decisions and decisions[-1].kind == "undo":
                return decisions[-1]
        return None

    def _end_undo(self, undo: Decision) -> None:
        data = {"undo": undo.number, "apply": undo.data["apply"]}
        self._store.add_decision("undo-end", best_iteration=undo.best_iteration, by=self._by, at=self._at, data=data)

    def _score_again(self, unit: Path) -> None:
        record = wait_again(self._store, unit) / METRICS
        if os.path.lexists(record):
            self._store.quarantine(record)

    def _lose(self, unit: Path) -> None:
        number = iteration_number(unit.name)
        if number not in cleaned_iterations(self._store.decisions()):
            self._decide(f"the snapshot of iteration {number} was damaged and is set aside", {CLEANED: [number]})
        if os.path.lexists(unit / ARTIFACTS):
            self._store.quarantine(unit / ARTIFACTS)

    def _list_anew(self, unit: Path, record: IterationRecord) -> None:
        manifest = Manifest({detail.path: detail for detail in record.artifacts_detail})
        if os.path.lexists(unit / MANIFEST):
            self._store.quarantine(unit / MANIFEST)
        files.replace_file(unit / MANIFEST, manifest.whole()[1].encode(place_of(self._store.nonce, unit / MANIFEST)))

    def _record(self, unit: Path) -> tuple[IterationRecord | None, int | None]:
        """Return the record of an iteration where it can be read, and the one that its list of artifacts differs from."""
        with contextlib.suppress(JumarError):
            return read_record(unit / METRICS, self._store.trust.read)
        return None, None

    def _begin(self, path: Path) -> None:
        """Write the start of an attempt that has none: its end tells what it cost, or the next run writes it off as lost."""
        number = int(path.name.partition(".")[0])
        others = self._store.attempts()
        earlier = max((other.start.iteration for other in others if other.start.number < number), default=0)
        record, reading = self._named_by(number)
        start = AttemptStart(
            number=number,
            iteration=reading.iteration if reading else record.iteration_number if record else earlier,
            parent=record.parent if record else None,
            nonce=record.nonce if record else secrets.token_hex(8),
            started_at=self._ended_at(number) or self._at,
            purpose="confirm" if reading else "generate" if record else "score",
            batch=record.batch if record else None,
            candidate=record.candidate if record else None,
            reserve_cost_usd=max((other.start.reserve_cost_usd or 0.0 for other in others), default=0.0) or None,
            reserve_tokens=max((other.start.reserve_tokens or 0 for other in others), default=0) or None,
        )
        files.write_once(path, encode(start.to_json(), sealed=True, place=place_of(self._store.nonce, path)))

    def _named_by(self, attempt: int) -> tuple[IterationRecord | None, Reading | None]:
        records = (self._record(self._paths.iteration(number))[0] for number in self._store.iteration_numbers())
        record = next((record for record in records if record is not None and record.attempt == attempt), None)
        return record, next((reading for reading in self._store.readings() if reading.attempt == attempt), None)

    def _ended_at(self, number: int) -> str | None:
        path = self._paths.attempt_end(number)
        with contextlib.suppress(JumarError):
            return AttemptEnd.from_json(decode(self._store.trust.read(path), os.fspath(path))).ended_at
        return None

    def _rightful(self, unit: Path) -> Path | None:
        """Return where a unit belongs by its own word; None where it gives none that can be believed."""
        folder = unit.parent.name
        told = unit / STAGE if folder in {"iterations", "pending"} else unit
        with contextlib.suppress(JumarError, OSError):
            data = read_store_file(told)
            fields = decode(data, os.fspath(told))
            if broken_seal(fields.data) is not None:
                return None
            if folder in {"iterations", "pending"}:
                right = unit.with_name(iteration_name(fields.integer("number")))
                other = self._paths.pending if folder == "iterations" else self._paths.iterations
                if right != unit and os.path.lexists(other / right.name):
                    return None
            elif folder == "decisions":
                decision = Decision.from_json(fields)
                right = unit.with_name(f"{decision.number:04d}-{decision.kind}.json")
            elif folder == "readings":
                reading = Reading.from_json(fields)
                right = self._paths.reading_file(reading.number, reading.kind, reading.iteration)
            elif folder == "attempts" and unit.name.endswith(".start.json"):
                right = self._paths.attempt_start(AttemptStart.from_json(fields).number)
            else:
                return None
            return right if self._store.trust.takes(right / STAGE if told != unit else right, data) else None
        return None


_DIRECTORIES: Final = frozenset({"iterations", "pending", "checks"})
_FILES: Final = frozenset({"attempts", "decisions", "readings"})


def _has(path: Path, detail: ArtifactDetail) -> bool:
    with contextlib.suppress(JumarError, OSError):
        return files.sha256_file(path) == detail.content_hash
    return False


def set_aside(error: ForgedError) -> str:
    """Move what ``error`` is about to ``quarantine/``, of an iteration or a snapshot all of it; return what to tell a person.

    Errors: ``error`` where that would be the loop itself; what taking its lock raises.
    """
    inside = next((parent for parent in error.path.parents if parent.name in _FILES | _DIRECTORIES), None)
    if inside is None:
        raise error
    store = LoopStore(inside.parent)
    with store.lock():
        return _aside(store, error)


def _aside(store: LoopStore, error: ForgedError) -> str:
    path = error.path
    said = "was not written by jumar, or was changed since: it lies in"
    scored = path.name == METRICS and _is_whole(store, path.parent)
    if path.parent.name in _FILES or scored:
        unit = path
    elif path.parent.parent.name in _DIRECTORIES:
        unit = path.parent
    else:
        raise error
    name, again = escape(os.path.relpath(unit, store.paths.directory)), ""
    if scored and path.parent.parent == store.paths.iterations:
        unit, again = wait_again(store, path.parent) / METRICS, ", and its snapshot is scored again"
    told = f"{name} {said} {store.quarantine(unit)} now{again}"
    store.refresh()
    return told


def wait_again(store: LoopStore, directory: Path) -> Path:
    """Have an iteration wait to be scored, under the lock, and return where; its record, if it has one, is moved after that.

    It had that place once, so that what lies there now is not jumar's: it is moved to ``quarantine/``. Cut off anywhere, the
    next look finds a record that it does not take, here or there, and goes on.
    """
    place = store.paths.pending / directory.name
    if os.path.lexists(place):
        store.quarantine(place)
    with files.as_write_error("move back", directory):
        files.rename_new(directory, place)
    return place


def _is_whole(store: LoopStore, directory: Path) -> bool:
    """Whether the snapshot of a record that is not ours is."""
    try:
        return all(store.trust.read(directory / name) for name in (MANIFEST, STAGE))
    except StoreDamagedError:
        return False


def quarantined(store: LoopStore) -> tuple[str, ...]:
    """Set aside what lies in ``store`` and is not jumar's; return what to tell a person about it all. The lock is held.

    Of iterations their records are read, their manifests when they are used. Errors: damage of another kind.
    """
    told, store.moved = store.moved, []
    for read in (store.decisions, store.readings, store.attempts, store.views, store.kept_checks):
        while True:
            try:
                read()
                break
            except ForgedError as error:
                told.append(_aside(store, error))
    for number in store.pending_numbers():
        directory = store.paths.pending_iteration(number)
        record = directory / METRICS
        if record.exists() and not store.trust.takes(record, read_store_file(record)):
            told.append(_aside(store, ForgedError(record)))
            if not directory.is_dir():
                continue
        why = "is recorded already" if number in store.iteration_numbers() else None
        try:
            if not store.pending_of(number).whole:
                why = "lacks files of its snapshot"
        except StoreDamagedError as error:
            why = f"is no snapshot of jumar's ({error})"
        if why is not None:
            told.append(f"{directory.name} waited to be scored and {why}: it lies in {store.quarantine(directory)} now")
    if store.trust.ours or not store.iteration_numbers():
        return tuple(told)
    return (*told, FROM_ELSEWHERE)
