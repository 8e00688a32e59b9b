"""Checking everything on disk against what was recorded: every file is read, every hash computed again."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from jumar.core import files, leftovers
from jumar.core.codec import broken_seal, decode
from jumar.core.files import read_store_file
from jumar.core.findings import BACKUP, Findings, Planted, VerifyReport
from jumar.core.redaction import current
from jumar.core.text import escape
from jumar.errors import FormatTooNewError, JumarError, StoreDamagedError
from jumar.loop.snapshots.manifest import Manifest, ManifestFile
from jumar.loop.snapshots.snapshot import planted_in
from jumar.loop.store.layout import ARTIFACTS, ELSEWHERE, LOGS, MANIFEST, METRICS, RECHECKED, STAGE, iteration_number
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.reading import (
    accepted_paths,
    attempt_names,
    cleaned_iterations,
    decision_number,
    given_up,
    iteration_numbers,
    light,
    read_attempt,
    read_decision,
    read_later_reading,
    read_record,
)
from jumar.loop.store.staging import Pending
from jumar.model.attempts import Attempt
from jumar.model.decisions import Decision
from jumar.model.records import ArtifactDetail, IterationRecord

_T = TypeVar("_T")
_BEST_SCORE: Final = 100
_TOLD: Final = 1_000
_TRASH: Final = ".trash-"
NEWER: Final = "upgrade jumar: this was written by a newer version"
NOT_OURS: Final = "nothing that jumar wrote: move it elsewhere, or let `jumar repair` do that"
_CONTENT: Final = "restore objects/ from a backup; else `jumar repair` takes it from a copy that is left, or goes on without it"
ALTERED: Final = "has another content than was recorded"
UNLIKE: Final = "does not list the artifacts that manifest.json lists"
_RECORDED: Final = frozenset({"ok", "failed", "timeout", "blocked"})
_UNPAID: Final = frozenset({"lost", "failed", "timeout", "interrupted", "rate_limited"})


def verify(store: LoopReader, *, quick: bool = False) -> VerifyReport:
    """Check the whole loop; damage is reported, never raised. Takes no lock: what a writer does meanwhile is not damage.

    ``quick`` looks whether all files are there, in their size, and reads none of them.
    """
    check = _Check(store.paths.directory, quick=quick)
    fresh = check.guard(store.paths.loop_json, lambda: LoopReader(store.paths.directory))
    if fresh is not None:
        check.look_at(fresh)
    return check.report()


class _Check(Findings):
    """The checks of a loop that need to know nothing but a path."""

    def __init__(self, directory: Path, *, quick: bool = False) -> None:
        super().__init__(directory)
        self._quick = quick
        self._hashes: dict[tuple[int, int] | str, str] = {}
        self._redactor = current()

    def guard(self, path: Path, read: Callable[[], _T]) -> _T | None:
        """Return what ``read`` returns, or None and a problem when it raises one of our errors."""
        try:
            return read()
        except FormatTooNewError as error:
            self.problem(path, escape(str(error)), NEWER)
        except JumarError as error:
            if os.path.lexists(path):
                self.problem(path, escape(str(error)), BACKUP)
            else:
                self.gone(path, escape(str(error)))
        return None

    def names(self, directory: Path) -> Iterator[str]:
        """Yield the names in a directory of the loop, sorted; leftovers become notes."""
        try:
            found = sorted(files.names_in(directory.resolve() if directory == self._paths.directory else directory))
        except FileNotFoundError:
            return
        except OSError as error:
            self.problem(directory, f"cannot be listed: {os.strerror(error.errno or 0)}", NOT_OURS)
            return
        for name in found:
            if name.startswith(leftovers.TEMPORARY):
                note = f"{self.shown(directory / name)}: left by an interrupted command, the next run removes it"
                self.notes += [] if note in self.notes else [note]  # a directory is listed by more than one check
            else:
                yield name

    def artifacts(self, directory: Path, manifest: Manifest) -> bool:
        """Compare a snapshot's files with its manifest: missing, unknown, altered.

        Returns False when nothing is there, or it vanished meanwhile: then there is nothing to say about its files.
        """
        before = len(self.problems)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if files.is_directory(directory):
                self._compare(directory, replace(manifest, entries={}) if manifest.by_hash else manifest)
                self._compare_by_hash(directory, manifest.entries if manifest.by_hash else {})
        if files.is_directory(directory):
            return True
        del self.problems[before:]
        if os.path.lexists(directory):
            self.problem(directory, "is no directory", NOT_OURS)
            return True
        return False

    def _compare(self, directory: Path, manifest: Manifest) -> None:
        missing = {path: detail for path, detail in manifest.entries.items() if detail.kind != "special"}
        folders = {path[: at + 1] for path in manifest.entries for at, letter in enumerate(path) if letter == "/"}

        def is_unknown(folder: str) -> bool:  # told as one, whatever it holds
            if folder not in folders:
                self.problem(directory / folder, "is not in the manifest", NOT_OURS)
            return folder not in folders

        for path, entry in files.walk(directory, prune=is_unknown):
            detail = missing.pop(path, None)
            place = directory / path
            if detail is None and manifest.by_hash and path == ELSEWHERE:
                continue
            if detail is None:
                self.problem(place, "is not in the manifest", NOT_OURS)
                continue
            try:
                what = self._difference(entry.path, detail)
            except OSError as error:
                what = f"cannot be read: {os.strerror(error.errno or 0)}"
            if what is not None:
                self.problem(place, what, BACKUP)
        for path in missing:
            self.problem(directory / path, "is missing", BACKUP)

    def _difference(self, path: str, detail: ArtifactDetail) -> str | None:
        status = os.lstat(path)
        if detail.kind == "symlink":
            if not stat.S_ISLNK(status.st_mode):
                return "should be a symbolic link"
            target = os.readlink(path)
            expected = files.sha256_bytes(os.fsencode(detail.target or ""))
            same = target == detail.target and expected == detail.content_hash
            return None if same else f"leads to '{escape(target)}', recorded was '{escape(detail.target or '')}'"
        if not stat.S_ISREG(status.st_mode):
            return "should be a regular file"
        if status.st_size != detail.size:
            return f"has {status.st_size:,} bytes, recorded were {detail.size:,}"
        if self._quick:
            return None
        inode = status.st_dev, status.st_ino
        return None if self._hash(inode, lambda: files.chunks_of(path), path) == detail.content_hash else ALTERED

    def _compare_by_hash(self, directory: Path, entries: Mapping[str, ArtifactDetail]) -> None:
        objects = self._store.objects
        wrong = dict.fromkeys((each.path for each in objects.lacking(entries.values())), "its content is missing in objects/")
        for path, detail in entries.items() if not self._quick else ():
            if detail.kind == "file" and path not in wrong:
                try:
                    found = self._hash(detail.content_hash or "", partial(objects.chunks, detail), path)
                except (StoreDamagedError, OSError) as error:
                    wrong[path] = f"its content cannot be read: {error}"
                else:
                    wrong |= {} if found == detail.content_hash else {path: ALTERED}
        for path, what in wrong.items():
            self.problem(directory / path, what, _CONTENT)

    def _hash(self, once: tuple[int, int] | str, chunks: Callable[[], Iterator[bytes]], path: str) -> str:
        """Return the hash of a content, which is read only the first time that ``once`` is asked for."""
        if once not in self._hashes:
            self._hashes[once], size = files.sha256_chunks(chunks())
            self.files += 1
            self.bytes += size
            names = planted_in(chunks(), self._redactor) if self._redactor.knows_values else ()
            if names:
                shown = self._redactor.redact(self.shown(self._directory / path))
                self.planted.append(Planted(shown, tuple(sorted(names))))
        return self._hashes[once]

    def look_at(self, store: LoopReader) -> None:
        """Check the loop of ``store``, which was opened anew."""
        self._store, self._paths = store, store.paths
        for _ in self.names(self._paths.directory):
            pass  # asked for its notes: a view may have any name
        decisions = self._decisions()
        attempts = self._attempts()
        cleaned = cleaned_iterations(decisions)
        records: dict[int, IterationRecord] = {}
        for name in self.names(self._paths.iterations):
            if (number := iteration_number(name)) is None:
                self.problem(self._paths.iterations / name, "is not an iteration's name", NOT_OURS)
                continue
            if store.is_foreign(number):
                self.notes.append(f"{self.shown(self._paths.iterations / name)}: is not jumar's, and no tracking file names it")
                continue
            self.iterations += 1
            record = self._iteration(number, may_lack_artifacts=number in cleaned)
            if record is not None:
                records[number] = record
        pending = self._pending(set(records))
        self._claims(attempts, decisions, records, pending)
        self._lost(attempts, decisions, records, pending)
        self._seals()
        for directory in (self._paths.undo, self._paths.set_aside, self._paths.checks):
            for name in self.names(directory):
                if not (directory == self._paths.set_aside and name.startswith(RECHECKED)):
                    self._copy(directory / name)
        self._readings(attempts)
        self.accept({path: decision.number for decision in decisions for path in accepted_paths(decision)})

    def _iteration(self, number: int, *, may_lack_artifacts: bool) -> IterationRecord | None:
        directory = self._paths.iteration(number)
        for name in self.names(directory):
            if name.startswith(_TRASH):
                self.notes.append(f"{self.shown(directory / name)}: left by an interrupted cleanup, the next one removes it")
            elif name not in {ARTIFACTS, LOGS, MANIFEST, METRICS, STAGE}:
                self.problem(directory / name, "is nothing that an iteration holds", NOT_OURS)
        found = self.guard(directory / METRICS, lambda: read_record(directory / METRICS))
        listed = self.guard(directory / MANIFEST, lambda: _manifest_file(directory / MANIFEST))
        stage = self.guard(directory / STAGE, lambda: decode(read_store_file(directory / STAGE), os.fspath(directory / STAGE)))
        manifest = None if listed is None else self.guard(directory / MANIFEST, lambda: self._store.manifest(number))
        if manifest is not None:
            self._artifacts_of(number, manifest, may_lack=may_lack_artifacts)
        if found is None:
            return None
        record = found[0]
        for what in _contradictions(record, number, listed):
            self.problem(directory / METRICS, what, BACKUP)
        if stage is not None and stage.data.get("nonce") != record.nonce:
            self.problem(directory / STAGE, "has another nonce than metrics.json: they don't belong together", BACKUP)
        return record

    def _artifacts_of(self, number: int, manifest: Manifest, *, may_lack: bool) -> None:
        directory = self._store.artifacts(number)
        if self.artifacts(directory, manifest):
            return
        if not may_lack and number not in cleaned_iterations(LoopReader(self._paths.directory).decisions()):
            self.problem(directory, "the snapshot is missing, and no cleanup was decided", BACKUP)

    def _pending(self, recorded: set[int]) -> list[Pending]:
        found: list[Pending] = []
        for name in self.names(self._paths.pending):
            directory = self._paths.pending / name
            number = iteration_number(name)
            if number is None:
                self.problem(directory, "is not an iteration's name", NOT_OURS)
                continue
            try:
                pending = self.guard(directory, lambda number=number: self._store.pending_of(number))
            except FileNotFoundError:  # acknowledged meanwhile
                continue
            if pending is None or not self.artifacts(pending.artifacts, pending.manifest):
                continue
            found.append(pending)
            if number in recorded:
                self.problem(directory, f"iteration {number} is recorded already", "remove this directory")
            self.notes.append(f"{self.shown(directory)}: waits to be scored, the next run does that")
        return found

    def _attempts(self) -> dict[int, Attempt]:
        directory = self._paths.attempts
        names = set(self.names(directory))
        starts, ends = attempt_names(names)
        known = {path.name for number in starts for path in (self._paths.attempt_start(number), self._paths.attempt_end(number))}
        known |= {self._paths.attempt_end(number).name for number in ends}
        for name in sorted(names - known):
            self.problem(directory / name, "is not an attempt's name", NOT_OURS)
        for number in sorted(ends - starts):
            path, start = self._paths.attempt_end(number), self._paths.attempt_start(number)
            if self._store.trust.takes(path, files.content_of(path) or b""):
                self.gone(path, "is the end of an attempt whose start is missing", start)
            else:
                self.problem(path, "was not written by jumar", NOT_OURS)
        found: dict[int, Attempt] = {}
        for number in sorted(starts):
            path = self._paths.attempt_start(number)
            attempt = self.guard(path, lambda number=number: read_attempt(self._paths, number, ended=number in ends))
            if attempt is not None:
                found[number] = light(attempt)
                if attempt.end is None:
                    self.notes.append(f"{self.shown(path)}: has no end yet; if nothing runs, the next run counts it as lost")
        for number in _gaps(starts | ends, found):
            self._gap(self._paths.attempt_start(number), "attempts")
        return found

    def _gap(self, path: Path, what: str) -> None:
        self.gone(path, f"is missing: {what} are numbered without gaps")

    def _claims(
        self,
        attempts: dict[int, Attempt],
        decisions: list[Decision],
        records: dict[int, IterationRecord],
        pending: list[Pending],
    ) -> None:
        """Check that what was paid for and what was recorded belong together. What is missing for good is made again."""
        accepted = given_up(decisions)
        claimed: dict[int, int] = {}
        generated = {number: attempt for number, attempt in attempts.items() if attempt.start.purpose == "generate"}
        for number, attempt in generated.items():
            before = claimed.get(attempt.start.iteration)
            if before is not None and before > accepted.get(self.shown(self._paths.iteration(attempt.start.iteration)), 0):
                end = attempts[before].end
                if end is not None and end.outcome not in _UNPAID:
                    what = f"is for iteration {attempt.start.iteration}, which attempt {before} completed"
                    self.problem(self._paths.attempt_start(number), what, BACKUP)
            claimed[attempt.start.iteration] = number
        named = [(self._paths.iteration(number) / METRICS, record.attempt) for number, record in records.items()]
        named += [(item.directory / STAGE, item.attempt) for item in pending]
        for path, number in named:
            if number is not None and not self._begun(number, attempts):
                what = f"names attempt {number}, of which there is nothing"
                self.gone(path, what, self._paths.attempt_start(number))

    def _begun(self, number: int, attempts: dict[int, Attempt]) -> bool:
        """Whether there is an attempt: one that began after they were listed, too."""
        return number in attempts or os.path.lexists(self._paths.attempt_start(number))

    def _lost(
        self,
        attempts: dict[int, Attempt],
        decisions: list[Decision],
        records: dict[int, IterationRecord],
        pending: list[Pending],
    ) -> None:
        """Find iterations that something else speaks of and that are not there."""
        there = {number for name in self.names(self._paths.iterations) if (number := iteration_number(name)) is not None}
        there |= {item.number for item in pending}
        generated = {number: attempt for number, attempt in attempts.items() if attempt.start.purpose == "generate"}
        open_batch = max((attempt.start.batch or 0 for attempt in generated.values()), default=0)
        last = max(generated, default=0)
        begun = any(attempt.start.iteration == 0 for attempt in attempts.values())
        named: dict[int, str] = {}
        for record in records.values():
            if record.parent is not None:
                named.setdefault(record.parent, f"iteration {record.iteration_number} started from it")
        for decision in decisions:
            for number in (decision.best_iteration, decision.final_iteration):
                if number is not None:
                    named.setdefault(number, f"decision {decision.number} names it")
        last_of = {attempt.start.iteration: number for number, attempt in generated.items()}  # a failed one may be made again
        for number, attempt in sorted((number, generated[number]) for number in last_of.values()):
            recorded = attempt.end is not None and attempt.end.outcome in _RECORDED
            waits = number == last or (attempt.start.batch is not None and attempt.start.batch == open_batch)
            if recorded and not waits:  # those snapshots are taken by the next run
                named.setdefault(attempt.start.iteration, f"attempt {number} ended and was paid for")
            if begun and recorded and attempt.start.parent is not None and attempt.start.iteration not in there:
                named.setdefault(attempt.start.parent, f"attempt {number} began from it")
        for number in sorted(set(named) - there):
            self.gone(self._paths.iteration(number), f"is missing: {named[number]}")

    def _seals(self) -> None:
        """Check the digest in every write-once file that can be read at all."""
        paths = [self._paths.loop_json]
        for directory in (self._paths.attempts, self._paths.decisions, self._paths.readings):
            paths += [directory / name for name in self.names(directory) if name.endswith(".json")]
        for folder in (self._paths.iterations, self._paths.pending):
            for name in self.names(folder):
                paths += [path for part in (METRICS, MANIFEST, STAGE) if (path := folder / name / part).exists()]
        for path in paths:
            with contextlib.suppress(OSError, ValueError, JumarError):
                data = read_store_file(path)
                broken = broken_seal(decode(data, os.fspath(path), versioned=False).data)
                if broken is not None:
                    self.problem(path, broken, BACKUP)
                elif not self._store.trust.takes(path, data):
                    self.problem(path, "was not written by jumar", NOT_OURS)

    def _numbered(self, directory: Path, what: str, read: Callable[[Path, int], _T]) -> Iterator[tuple[Path, int, _T]]:
        """Yield the records of a directory that can be read, with their paths and numbers."""
        numbered: dict[int, str] = {}
        found: set[int] = set()
        for name in self.names(directory):
            path, number = directory / name, decision_number(name)
            if number is None:
                self.problem(path, f"is not a {what}'s name", NOT_OURS)
            elif number in numbered:
                self.problem(path, f"has the same number as {escape(numbered[number])}", BACKUP)
            else:
                numbered[number] = name
                record = self.guard(path, partial(read, path, number))
                if record is not None:
                    found.add(number)
                    yield path, number, record
        for number in _gaps(numbered, found):
            self._gap(directory / f"{number:04d}-*.json", f"{what}s")

    def _decisions(self) -> list[Decision]:
        found: list[Decision] = []
        for path, number, decision in self._numbered(self._paths.decisions, "decision", read_decision):
            found.append(decision)
            if path.name != f"{number:04d}-{decision.kind}.json":
                self.problem(path, f"holds a decision of the kind {decision.kind}", BACKUP)
        return found

    def _readings(self, attempts: dict[int, Attempt]) -> None:
        there = {*iteration_numbers({*self.names(self._paths.iterations), *self.names(self._paths.pending)})}
        for path, number, reading in self._numbered(self._paths.readings, "reading", read_later_reading):
            if path != self._paths.reading_file(number, reading.kind, reading.iteration):
                self.problem(path, f"holds a {reading.kind} of iteration {reading.iteration}", BACKUP)
            if reading.iteration not in there:
                self.problem(path, f"is of iteration {reading.iteration}, of which there is nothing", BACKUP)
            if reading.attempt is not None and not self._begun(reading.attempt, attempts):
                what = f"names attempt {reading.attempt}, of which there is nothing"
                self.gone(path, what, self._paths.attempt_start(reading.attempt))

    def _copy(self, directory: Path) -> None:
        """Check a directory of ``undo/``, ``set-aside/`` or ``checks/``."""
        path = directory / MANIFEST
        listed = self.guard(path, lambda: _manifest_file(path))
        if listed is not None:
            manifest = Manifest({detail.path: detail for detail in listed.changed})
            if not self.artifacts(directory / ARTIFACTS, manifest):
                self.problem(directory / ARTIFACTS, "is missing", BACKUP)


def _gaps(there: Collection[int], read: Collection[int]) -> Iterator[int]:
    """Yield the first of the numbers that are not ``there`` below the highest that was ``read``: any other may be anybody's."""
    return itertools.islice((each for each in range(1, max(read, default=0)) if each not in there), _TOLD)


def _manifest_file(path: Path) -> ManifestFile:
    return ManifestFile.from_json(decode(read_store_file(path), os.fspath(path)))


def _contradictions(record: IterationRecord, number: int, listed: ManifestFile | None) -> Iterator[str]:
    if record.iteration_number != number:
        yield f"holds iteration {record.iteration_number}, its directory says {number}"
    score = record.quality_score
    if score is not None and not 0 <= score <= _BEST_SCORE:
        yield f"has a quality_score of {score}, outside of 0 to {_BEST_SCORE}"
    if listed is not None and record.artifacts_detail != (() if listed.by_hash else listed.changed):
        yield UNLIKE
