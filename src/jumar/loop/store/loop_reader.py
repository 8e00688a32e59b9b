"""The reading half of a loop: no lock, no write.

What was read is kept as long as nobody else can have written: while the lock is held, and after that as long as its file still
names this object as the last holder. Otherwise the directories' time stamps decide what is listed again. Only small values are
kept: views, attempts without their output, decisions, and the manifests that the next snapshot is compared with.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from jumar.core.codec import decode
from jumar.core.files import is_directory, names_in, read_store_file
from jumar.core.lock import LoopLock
from jumar.core.text import escape, natural
from jumar.errors import JumarError, NotFoundError, StoreDamagedError
from jumar.loop.snapshots.content import Content, PlainFiles
from jumar.loop.snapshots.manifest import Manifest, ManifestFile, compose, paths_listed
from jumar.loop.snapshots.objects import Objects
from jumar.loop.store.layout import ARTIFACTS, MANIFEST, METRICS, STAGE, LoopPaths, iteration_name
from jumar.loop.store.reading import (
    Listing,
    Records,
    TreeStart,
    attempt_names,
    cleaned_iterations,
    damaged_iterations,
    iteration_numbers,
    lost_iterations,
    read_attempt,
    read_decision,
    read_later_reading,
    read_record,
    read_view,
)
from jumar.loop.store.staging import Pending, read_pending
from jumar.loop.store.trust import MarkTrust
from jumar.model.attempts import Attempt
from jumar.model.decisions import Decision, end_after, last_end
from jumar.model.records import IterationRecord, IterationView, Reading
from jumar.model.selection import StopDecision

_MANIFESTS_KEPT: Final = 3
_LOOKS: Final = 5


class LoopReader:
    """A loop that is only read. Paths in records are joined with ``directory`` as it was given.

    ``config`` is what the loop was created with; ``workdir`` is absolute, None for a loop that has none.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._given = os.fspath(directory)
        self.paths = LoopPaths(Path(os.path.abspath(directory)))
        data = read_store_file(self.paths.loop_json)
        fields = decode(data, os.fspath(self.paths.loop_json))
        self.loop_id = fields.text("loop_id")
        self.created_at = fields.text("created_at")
        self.nonce = fields.text("nonce")
        self.trust = MarkTrust(self.nonce, self.paths.loop_json, data)
        self.config: Mapping[str, Any] = MappingProxyType(dict(fields.section("config").data))
        stored = fields.text_or_none("workdir")
        self.workdir = None if stored is None else Path(os.path.normpath(self.paths.directory / stored))
        self.objects = Objects(self.paths.objects)
        self._lock = LoopLock(self.paths.lock)
        self._place = os.lstat(self.paths.directory)
        self._iterations = Listing(self.paths.iterations)
        self._attempts = Listing(self.paths.attempts)
        self._decisions = Records(self.paths.decisions, partial(read_decision, read=self.trust.read))
        self._readings = Records(self.paths.readings, partial(read_later_reading, read=self.trust.read))
        self._numbers: list[int] = []
        self._views: dict[int, IterationView] = {}
        self._ordered: tuple[IterationView, ...] | None = None
        self._known_attempts: dict[int, Attempt] = {}
        self._all_attempts: tuple[Attempt, ...] | None = None
        self._manifests: dict[int, Manifest] = {}
        self._looked: set[Listing] = set()
        self.tree_starts: dict[str, TreeStart] = {}  # of a run: what a program changes on disk is not read again

    def check_place(self) -> None:
        """Raise :class:`StoreDamagedError` where the loop's directory is another by now. Nothing is said of one that is gone."""
        with contextlib.suppress(OSError):
            if not os.path.samestat(os.lstat(self.paths.directory), self._place):
                raise StoreDamagedError(
                    f"{escape(os.fspath(self.paths.directory))} was replaced while the loop was at work, with all that was "
                    "recorded; nothing is written there. Start again with `jumar run`"
                )

    def iteration_numbers(self) -> tuple[int, ...]:
        """Return the numbers of the acknowledged iterations, ascending."""
        self._look_at_iterations()
        return tuple(self._numbers)

    def views(self) -> tuple[IterationView, ...]:
        """Return what decisions are made from, by number. Errors: :class:`StoreDamagedError` that names the file.

        One whose snapshot was damaged, and set aside by a repair, has no score here, and nothing starts from it. In a loop
        with such a one, neither does anything from those that were cleaned up.
        """
        self._look_at_iterations()
        if self._ordered is None:
            directory, lost = os.fspath(self.paths.iterations), lost_iterations(self.decisions())
            for number in self._numbers:
                if number not in self._views:
                    view = read_view(f"{directory}/{iteration_name(number)}/{METRICS}", number, self.trust.read)
                    self._views[number] = replace(view, score=None, status="interrupted") if number in lost else view
            self._ordered = tuple(self._views[number] for number in self._numbers)
        return self._ordered

    def record(self, number: int, *, listed: bool = True) -> IterationRecord:
        """Read one record from disk. Errors: :class:`NotFoundError`, :class:`StoreDamagedError`.

        Where its own file does not list its artifacts, ``listed`` takes them from the manifest, which of a large tree takes its
        time; without, ``artifacts`` names the directory alone.
        """
        path = self.paths.iteration(number) / METRICS
        if not path.parent.is_dir():
            raise NotFoundError(f"loop '{self.loop_id}' has no iteration {number}")
        record, base = read_record(path, self.trust.read)
        artifacts, details = record.artifacts, record.artifacts_detail
        if base is not None and not listed:
            artifacts, details = (record.snapshot_path,), ()
        elif base is not None:
            details = tuple(self.manifest(number).entries.values())
            artifacts = tuple(f"{record.snapshot_path}/{item.path}" for item in details if item.kind != "special")
        prefix = self._given if self._given.endswith("/") else self._given + "/"
        return replace(
            record,
            snapshot_path=prefix + record.snapshot_path,
            artifacts=tuple([prefix + path for path in artifacts]),
            artifacts_detail=details,
        )

    def find_record(self, number: int | None) -> IterationRecord | None:
        """Return the record of an iteration, not ``listed``; None for None, and for one that is not there, or not any more."""
        return self.record(number, listed=False) if number is not None and self.paths.iteration(number).is_dir() else None

    def records(self) -> Iterator[IterationRecord]:
        """Yield every record by number, not ``listed``; one at a time is in memory."""
        for number in self.iteration_numbers():
            yield self.record(number, listed=False)

    def attempts(self) -> tuple[Attempt, ...]:
        """Return every attempt by number, without the generator's output (``output_tail``): :meth:`attempt` has that."""
        if self._changed(self._attempts):
            self._all_attempts = None
        if self._all_attempts is None:
            starts, ends = attempt_names(self._attempts.names)
            known = self._known_attempts
            for number in starts:
                found = known.get(number)
                if found is None or (found.end is None and number in ends):
                    known[number] = read_attempt(self.paths, number, ended=number in ends, read=self.trust.read, whole=False)
            self._all_attempts = tuple(known[number] for number in sorted(starts))
        return self._all_attempts

    def last_attempt(self) -> int:
        """Return the number of the last attempt, 0 when there is none."""
        attempts = self.attempts()
        return attempts[-1].start.number if attempts else 0

    def attempt(self, number: int) -> Attempt:
        """Return one attempt with its output. Errors: :class:`NotFoundError`, :class:`StoreDamagedError`."""
        if not self.paths.attempt_start(number).exists():
            raise NotFoundError(f"loop '{self.loop_id}' has no attempt {number}")
        return read_attempt(self.paths, number, ended=self.paths.attempt_end(number).exists(), read=self.trust.read)

    def decisions(self) -> tuple[Decision, ...]:
        """Return every decision by number. Errors: :class:`StoreDamagedError`."""
        return self._decisions.all(changed=self._changed(self._decisions))

    def last_end(self) -> Decision | None:
        """Return the end of the last run that came to one; iterations may have followed it. None when there is none."""
        return last_end(self.decisions())

    def end(self) -> Decision | None:
        """Return the end that the loop is at: its last iteration was followed by choice, apply and all. None while it goes on."""
        numbers = self.iteration_numbers()
        return end_after(self.decisions(), numbers[-1] if numbers else None)

    def recorded_stop(self) -> StopDecision | None:
        """Return why the loop is at its end; None while it goes on, and for a reason that this version does not know."""
        end = self.end()
        return end and end.stop

    def readings(self) -> tuple[Reading, ...]:
        """Return every later evaluation of an iteration, by number. Errors: :class:`StoreDamagedError`."""
        return self._readings.all(changed=self._changed(self._readings))

    def manifest(self, number: int) -> Manifest:
        """Return the complete manifest of an iteration. Errors: :class:`NotFoundError`, :class:`StoreDamagedError`."""
        known = self._manifests.get(number)
        if known is None:
            if not self.paths.iteration(number).is_dir():
                raise NotFoundError(f"loop '{self.loop_id}' has no iteration {number}")
            known = compose(number, self._manifest_file, self._manifests.get)
            self._keep_manifest(number, known)
        return known

    def listed(self) -> Iterator[Mapping[str, str | None]]:
        """Yield the paths that each manifest lists itself, with their hashes, the newest manifest first.

        Together that is all that any iteration holds, or a snapshot that waits to be scored. One that cannot be read says
        nothing. Unchecked, and so five times as fast as :meth:`manifest`.
        """
        numbers = sorted({*self.iteration_numbers(), *self.pending_numbers()}, reverse=True)
        for number in numbers:
            directories = (self.paths.iteration(number), self.paths.pending_iteration(number))
            for path in (directory / MANIFEST for directory in directories):
                with contextlib.suppress(JumarError, OSError):
                    yield paths_listed(decode(self.trust.read(path), os.fspath(path)))
                    break

    def artifacts(self, number: int) -> Path:
        """Return the directory of an iteration's snapshot, whether or not it was cleaned up."""
        return self.paths.iteration(number) / ARTIFACTS

    def content(self, number: int) -> Content:
        """Return where the files of an iteration's snapshot lie, whether or not it was cleaned up."""
        return self.objects if self.manifest(number).by_hash else PlainFiles(self.artifacts(number))

    def kept_checks(self) -> tuple[int, Manifest] | None:
        """Return the newest of ``checks/``, its number and what it holds; None when there is none. Errors: as for a manifest."""
        try:
            numbers = [number for name in names_in(self.paths.checks) if (number := natural(name)) is not None]
        except OSError:
            return None
        if not numbers:
            return None
        path = self.paths.checks_of(max(numbers)) / MANIFEST
        listed = ManifestFile.from_json(decode(self.trust.read(path), os.fspath(path)))
        return max(numbers), Manifest({detail.path: detail for detail in listed.changed})

    def not_kept_at_start(self, tree: str, paths: Iterable[str]) -> set[str]:
        """Return those of ``paths`` that lay in a tree (``main``, or a candidate's) in no snapshot when the loop began.

        They are a person's, whatever a program made of the ignore files since, and no restore deletes them. Lost, there are none.
        """
        asked = set(paths)
        start = self.tree_starts.get(tree) or (TreeStart.read(self.paths, self.trust, tree) if asked else None)
        return set() if start is None else asked.intersection(start.entries)

    def has_snapshot(self, number: int) -> bool:
        """Return whether the iteration's artifacts are still there."""
        return is_directory(self.artifacts(number))

    def without_snapshot(self, number: int) -> str | None:
        """Return why the iteration has none, to be read after "its snapshot": ``was cleaned up``; None where it has one."""
        if self.has_snapshot(number):
            return None
        if "origin" in self.config:
            return "was not imported"
        if number in damaged_iterations(self.decisions()):
            return "was damaged, and a repair set it aside"
        return "was cleaned up" if number in cleaned_iterations(self.decisions()) else "is missing"

    def pending(self) -> Pending | None:
        """Return the snapshot that waits to be scored, the lowest number of several, or None."""
        for _ in range(_LOOKS):
            names = Listing(self.paths.pending)
            names.look()
            numbers = iteration_numbers(names.names)
            if not numbers:
                return None
            try:
                return self.pending_of(numbers[0])
            except FileNotFoundError:  # renamed into iterations/ between the two looks
                continue
        raise StoreDamagedError(f"{self.paths.pending}: changes too quickly to be read; is another jumar writing it?")

    def pending_numbers(self) -> tuple[int, ...]:
        """Return the numbers of the snapshots that wait to be scored, ascending."""
        names = Listing(self.paths.pending)
        names.look()
        return tuple(iteration_numbers(names.names))

    def names(self, directory: Path) -> set[str]:
        """Return the names in one of the directories of records, as they are known here."""
        listings = {
            self.paths.attempts: self._attempts,
            self.paths.iterations: self._iterations,
            self.paths.decisions: self._decisions,
            self.paths.readings: self._readings,
        }
        self._changed(listings[directory])
        return listings[directory].names

    def refresh(self) -> None:
        """Look at the disk again the next time something is asked for."""
        self._looked.clear()
        for listing in (self._iterations, self._attempts, self._decisions, self._readings):
            listing.forget()

    def pending_of(self, number: int) -> Pending:
        """Return the pending snapshot of one iteration. Errors: ``FileNotFoundError``, :class:`StoreDamagedError`."""

        def complete(file: ManifestFile) -> Manifest:
            return compose(number, lambda n: file if n == number else self._manifest_file(n), self._manifests.get)

        return read_pending(self.paths, iteration_name(number), self.trust.read, complete, self.objects)

    def _manifest_file(self, number: int) -> ManifestFile:
        path, record, named = self.paths.iteration(number) / MANIFEST, self.paths.iteration(number) / METRICS, None
        file = ManifestFile.from_json(decode(self.trust.read(path), os.fspath(path)))
        with contextlib.suppress(JumarError):  # whoever needs the record says so
            named = decode(self.trust.read(record), os.fspath(record)).text_or_none("artifacts_seal")
        if named not in {None, file.seal}:  # jumar wrote it for this place, but of a snapshot that was taken again
            raise StoreDamagedError(
                f"{path} is not the one that metrics.json was written for; `jumar verify` lists what is damaged"
            )
        return file

    def _keep_manifest(self, number: int, manifest: Manifest) -> None:
        self._manifests.pop(number, None)
        self._manifests[number] = manifest
        while len(self._manifests) > _MANIFESTS_KEPT:
            self._manifests.pop(next(iter(self._manifests)))

    def _look_at_iterations(self) -> None:
        if self._changed(self._iterations):
            self._numbers = [each for each in iteration_numbers(self._iterations.names) if not self.is_foreign(each)]
            known = self._views
            self._views = {number: known[number] for number in self._numbers if number in known}
            self._ordered = None

    @property
    def is_shared(self) -> bool:
        """Whether the original tracker may record here too: this is neither a run's loop, nor an import of another kind."""
        return "run" not in self.config and "origin" not in self.config

    def is_foreign(self, number: int) -> bool:
        """Whether what has an iteration's name in a tracker's loop is a copy of the original's, which it has not listed yet."""
        if not self.is_shared:
            return False
        directory = self.paths.iteration(number)
        return not any((directory / name).exists() for name in (METRICS, MANIFEST, STAGE))

    def _changed(self, listing: Listing) -> bool:
        """Look at a directory unless nobody else can have written; returns whether its names changed."""
        if listing in self._looked and (self._lock.held or self._lock.last_holder_was_me()):
            return False
        changed = listing.look()
        self._looked.add(listing)
        return changed
