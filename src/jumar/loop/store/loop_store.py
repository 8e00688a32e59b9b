"""One loop's directory: everything that is read from it and written to it, by the rules of ``docs/design/store.md``."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

from jumar.core import files, leftovers
from jumar.core.codec import encode
from jumar.core.lock import move_aside, next_place
from jumar.core.text import escape
from jumar.errors import DuplicateIterationError, NotFoundError, StoreDamagedError, StoreWriteError, UsageError
from jumar.loop.snapshots.content import PlainFiles
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.snapshots.snapshot import StatCache, take_snapshot
from jumar.loop.snapshots.tree_size import TreeSize
from jumar.loop.store.creation import create_loop, import_foreign, is_foreign, loop_json
from jumar.loop.store.layout import ARTIFACTS, MANIFEST, METRICS, LoopPaths, iteration_name, open_to_owner, replaced
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.reading import light
from jumar.loop.store.staging import Base, Pending, build, clean_logs, decision_bytes, metrics_bytes, whole_or_gone, write_plain
from jumar.loop.store.takeover import take_over
from jumar.loop.store.trust import place_of
from jumar.model.attempts import Attempt, AttemptEnd, AttemptStart
from jumar.model.decisions import Decision, Kind
from jumar.model.records import IterationRecord, Reading, ReadingKind

_FIELDS: Final = ("best_iteration", "final_iteration", "delta", "decision", "reason", "by", "at", "replaced", "data")


class LoopStore(LoopReader):
    """A loop that is read and written. Every writing method takes the lock itself; hold it around several of them.

    ``cache`` holds the hashes of working directory files seen so far. ``wrote`` is told the path of each record, and
    of each directory of an iteration, that this object wrote. ``moved`` tells what stood in the place of a directory.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        super().__init__(directory)
        self.cache = StatCache()
        self._doubtful = False
        self.wrote: Callable[[str], object] = str
        self.moved: list[str] = []

    @classmethod
    def create(
        cls,
        directory: str | os.PathLike[str],
        loop_id: str,
        config: Mapping[str, Any],
        *,
        workdir: Path | None,
        created_at: str,
    ) -> Self:
        """Make ``directory`` a new, empty loop and open it. Errors: :class:`UsageError` when it is one already."""
        create_loop(Path(directory), loop_id, config, workdir=workdir, created_at=created_at)
        return cls(directory)

    @classmethod
    def begin_again(
        cls, directory: str | os.PathLike[str], config: Mapping[str, Any], *, workdir: Path | None, created_at: str
    ) -> Self:
        """Make a loop of which nothing was ever recorded as new, with ``config``; its attempts stay where one was paid for.

        Cut off anywhere, it can be done again. Errors: :class:`UsageError` where an iteration is recorded,
        :class:`jumar.errors.LockedError`, :class:`jumar.errors.StoreWriteError`.
        """
        store = cls.open(directory)
        paths = store.paths
        with store._writing("begin anew in", paths.directory):  # noqa: SLF001 - its own
            if store.iteration_numbers():
                raise UsageError(f"loop '{store.loop_id}' has iterations; only one that never began can begin anew")
            ends = [attempt.end for attempt in store.attempts()]
            free = all(end is not None and (end.usage.token_cost_usd, end.usage.tokens) == (0, 0) for end in ends)
            data = loop_json(
                paths.directory, store.loop_id, config, workdir=workdir, created_at=created_at, nonce=store.nonce
            )  # by which its attempts are known
            store._empty(paths.pending, paths.checks, paths.decisions)  # noqa: SLF001 - its own
            files.replace_file(paths.loop_json, data)
            if free:  # last: until then they tell that it never began
                store._empty(paths.attempts)  # noqa: SLF001 - its own
        return cls(directory)

    def _empty(self, *places: Path) -> None:
        """Remove what ``places`` hold. Each loses its name first, so that half of it is never read."""
        for place in places:
            if place.exists():
                aside = self.paths.directory / leftovers.temporary_name()
                files.rename_new(place, aside)
                leftovers.remove_tree(aside)
            if place in self.paths.subdirectories:
                files.make_directory(place)

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> Self:
        """Open a loop; a directory with only a foreign tracking file is imported first.

        Errors: :class:`NotFoundError` when there is no loop, :class:`StoreDamagedError` and
        :class:`jumar.errors.FormatTooNewError` for a ``loop.json`` that is missing, cut off or newer.
        """
        paths = LoopPaths(Path(os.path.abspath(directory)))
        if not os.access(paths.loop_json, os.R_OK):
            open_to_owner(paths)
        if not paths.loop_json.exists():
            if is_foreign(paths.directory):
                import_foreign(paths)
            elif has_iterations(paths):
                raise StoreDamagedError(f"{paths.loop_json} is missing, but there are iterations; restore it from a backup")
            else:
                raise NotFoundError(f"there is no loop in {escape(os.fspath(directory))}")
        opened = cls(directory)
        take_over(opened)
        return opened

    @contextlib.contextmanager
    def lock(self) -> Generator[Self]:
        """Hold the lock. What others wrote meanwhile is seen. Errors: :class:`jumar.errors.LockedError` that names the holder."""
        self._refuse_link()
        with self._lock:
            self.check_place()
            if self._doubtful or not self._lock.unchanged_since_mine:
                if not self.paths.directory.is_dir():
                    raise NotFoundError(f"loop '{self.loop_id}' was removed")
                with files.as_write_error("create a directory of", self.paths.directory):
                    self.moved += replaced(self.paths)
                    for directory in self.paths.subdirectories:  # archives and git keep no empty ones
                        files.make_directory(directory)
                self.refresh()
                self._doubtful = False
                self._lock.unchanged_since_mine = True  # seen: until the release, only this object writes
            yield self

    def _refuse_link(self) -> None:
        """Raise :class:`StoreWriteError` for a link below ``loops/``: a program may have made it, to a person's files."""
        directory = self.paths.directory
        if directory.is_symlink() and self.paths.root != directory:
            self.check_place()
            name, real = escape(os.fspath(directory)), escape(os.path.realpath(directory))
            raise StoreWriteError(
                f"{name} is a link to {real}, and nothing is written through it: remove it, and move the loop into its place"
            )

    def regain_lock(self) -> bool:
        """Return whether the lock's file was taken away from its holder, who has it anew then. Errors: as :meth:`lock`."""
        return self._lock.regain()

    @contextlib.contextmanager
    def _writing(self, what: str, path: Path) -> Generator[None]:
        """Hold the lock for one write; after an error the disk is looked at again before anything is believed."""
        with self.lock():
            try:
                with files.as_write_error(what, path):
                    yield
            except BaseException:
                self._doubtful = True
                self.refresh()
                raise

    def begin_attempt(self, iteration: int, parent: int | None, nonce: str, at: str, **fields: Any) -> Attempt:
        """Reserve the next attempt: durable when this returns, so that the step may be paid for.

        ``fields`` are further ones of :class:`AttemptStart`: purpose, batch, candidate, reserve_cost_usd, reserve_tokens.
        """
        with self._writing("write an attempt to", self.paths.attempts):
            number = self.last_attempt() + 1
            start = AttemptStart(
                number=number, iteration=iteration, parent=parent, nonce=nonce, started_at=at, pid=os.getpid(), **fields
            )
            self._write(self.paths.attempt_start(number), start.to_json())
            attempt = Attempt(start=start, end=None)
            self._note_attempt(attempt)
        return attempt

    def end_attempt(self, number: int, end: AttemptEnd) -> None:
        """Write how an attempt ended, once. Errors: :class:`NotFoundError`, :class:`UsageError` when it has an end already."""
        with self._writing("write the end of an attempt to", self.paths.attempts):
            started = self.attempt(number).start
            try:
                self._write(self.paths.attempt_end(number), end.to_json())
            except FileExistsError as error:
                raise UsageError(f"attempt {number} of loop '{self.loop_id}' has ended already") from error
            self._note_attempt(Attempt(start=started, end=end))

    def _write(self, path: Path, data: Mapping[str, Any]) -> None:
        files.write_once(path, encode(data, sealed=True, place=place_of(self.nonce, path)))
        self.wrote(os.fspath(path))

    def _note_attempt(self, attempt: Attempt) -> None:
        number = attempt.start.number
        path = self.paths.attempt_start(number) if attempt.end is None else self.paths.attempt_end(number)
        self._attempts.names.add(path.name)
        self._known_attempts[number] = known = light(attempt)
        before = self._all_attempts
        if before is None:
            return
        if attempt.end is None:
            self._all_attempts = (*before, known)
            return
        place = next((place for place in range(len(before) - 1, -1, -1) if before[place].start.number == number), None)
        self._all_attempts = None if place is None else (*before[:place], known, *before[place + 1 :])

    def stage(
        self,
        number: int,
        *,
        source: Path,
        paths: Iterable[str],
        nonce: str,
        attempt: int | None,
        stage: Mapping[str, Any],
        logs: Path | None,
        quota: ArtifactRules | None = None,
        cache: StatCache | None = None,
    ) -> Pending:
        """Take the snapshot of iteration ``number`` into ``pending/``: durable when this returns, and never generated again.

        ``paths`` are files, links or directories below ``source``. ``stage`` is any JSON, kept beside it. ``logs`` is a
        directory that is moved into the snapshot. ``quota`` limits what is taken, without a second look at every file. A
        pending snapshot of the same number that no attempt paid for is replaced. ``cache`` is that of ``source``, where it is not
        the loop's own tree. Errors, with nothing recorded:
        :class:`DuplicateIterationError`, :class:`jumar.errors.ArtifactError`, :class:`jumar.errors.StoreWriteError`.
        """
        with self._writing("stage an iteration in", self.paths.pending):
            target = self.paths.pending_iteration(number)
            with self._building(number, attempt) as temporary, self.objects.adding() as adding:
                manifest, file = build(
                    temporary,
                    number=number,
                    source=source,
                    paths=paths,
                    nonce=nonce,
                    attempt=attempt,
                    stage=stage,
                    loop=self.nonce,
                    base=self._base(),
                    cache=cache or self.cache,
                    adding=adding,
                    logs=logs,
                    never=self._never(),
                    allow=None if quota is None else lambda sizes: quota.check_size(TreeSize(sizes)),
                )
                files.sync_tree(temporary)
                files.rename_new(temporary, target)
                self.wrote(os.fspath(target))
        if logs is not None:
            with contextlib.suppress(OSError):
                leftovers.remove_tree(logs)
        return Pending(
            number=number,
            directory=target,
            stage=dict(stage),
            manifest=manifest,
            nonce=nonce,
            attempt=attempt,
            file=file,
            content=self.objects if manifest.by_hash else PlainFiles(target / ARTIFACTS),
        )

    def commit(self, pending: Pending, record: IterationRecord) -> IterationRecord:
        """Acknowledge a pending snapshot with its record: from the moment this returns the iteration exists, whole.

        ``snapshot_path``, ``artifacts`` and ``artifacts_detail`` are filled in, so is ``nonce``, and ``attempt`` where it is
        unset. A snapshot that has its ``metrics.json`` already keeps it. Returns the record as :meth:`record` reads it, not
        ``listed``. Errors: :class:`DuplicateIterationError`, :class:`jumar.errors.StoreWriteError`; the snapshot is then still
        pending.
        """
        number = pending.number
        if record.iteration_number != number:
            raise UsageError(f"the record is of iteration {record.iteration_number}, the snapshot of iteration {number}")
        attempt = pending.attempt if record.attempt is None else record.attempt
        record = replace(record, nonce=pending.nonce, attempt=attempt)
        with self._writing("record an iteration in", self.paths.iterations):
            self._free_number(number)
            data = metrics_bytes(record, pending.manifest, pending.file, self.nonce)
            metrics = pending.directory / METRICS
            if pending.record is None:
                with contextlib.suppress(FileNotFoundError):
                    metrics.unlink()  # nobody but us has one to give
                clean_logs(pending.logs)
                files.write_once(metrics, data, temporary_in=self.paths.pending)
            self._acknowledge(pending.directory, self.paths.iteration(number))
            return self._note_iteration(number, pending.manifest, listed=False)

    def add(
        self,
        record: IterationRecord,
        *,
        source: Path,
        paths: Iterable[str],
        stage: Mapping[str, Any] | None = None,
    ) -> IterationRecord:
        """Snapshot and acknowledge in one step, for iterations whose score is known beforehand: one rename, nothing pending.

        Arguments, result and errors as of :meth:`stage` and :meth:`commit`; after an error nothing is recorded.
        """
        number = record.iteration_number
        if not record.nonce:
            record = replace(record, nonce=secrets.token_hex(8))
        with self._writing("record an iteration in", self.paths.iterations):
            with self._building(number, record.attempt) as temporary:
                manifest, file = build(
                    temporary,
                    number=number,
                    source=source,
                    paths=paths,
                    nonce=record.nonce,
                    attempt=record.attempt,
                    stage=stage or {},
                    loop=self.nonce,
                    base=self._base(),
                    cache=self.cache,
                    never=self._never(),
                )
                write_plain(temporary / METRICS, metrics_bytes(record, manifest, file, self.nonce))
                files.sync_tree(temporary, entries=len(manifest.entries))
                self._acknowledge(temporary, self.paths.iteration(number))
            return self._note_iteration(number, manifest)

    @contextlib.contextmanager
    def _building(self, number: int, attempt: int | None) -> Generator[Path]:
        """Yield where a new iteration is built; what is there goes when that fails."""
        self._free_number(number)
        self._replace_unpaid(number, attempt)
        temporary = self.paths.pending / leftovers.temporary_name()
        with whole_or_gone(temporary):
            yield temporary

    def _acknowledge(self, directory: Path, target: Path) -> None:
        """Rename a whole directory into ``iterations/``; when that is not certain to last, take it back."""
        try:
            files.rename_new(directory, target)
        except OSError:
            # The caller is told that nothing was recorded; if the disk lets us, that is made true.
            with contextlib.suppress(OSError):
                if not os.path.lexists(directory):
                    os.rename(target, directory)
            raise

    def _note_iteration(self, number: int, manifest: Manifest, *, listed: bool = True) -> IterationRecord:
        """Add an iteration that was just acknowledged to what is known, and return its record as everybody reads it."""
        self.wrote(os.fspath(self.paths.iteration(number)))
        self._keep_manifest(number, manifest)
        record = self.record(number, listed=listed)
        self._iterations.names.add(iteration_name(number))
        self._views[number] = record.view()
        if not self._numbers or number > self._numbers[-1]:
            self._numbers.append(number)
            if self._ordered is not None:
                self._ordered = (*self._ordered, self._views[number])
        else:
            self._numbers = sorted({*self._numbers, number})
            self._ordered = None
        return record

    def add_decision(self, kind: Kind, **fields: Any) -> Decision:
        """Write the next decision, once. ``fields`` are those of :class:`Decision`; those not given are None or empty."""
        unknown = set(fields) - set(_FIELDS)
        if unknown:
            raise TypeError(f"a decision has no field {', '.join(sorted(unknown))}")
        with self._writing("write a decision to", self.paths.decisions):
            number = max((decision.number for decision in self.decisions()), default=0) + 1
            values: dict[str, Any] = {
                **dict.fromkeys(("best_iteration", "final_iteration", "delta", "decision")),
                **dict.fromkeys(("reason", "by", "at"), ""),
                **fields,
            }
            decision = Decision(number=number, kind=kind, **values)
            copy = self.paths.undo_of(number)
            if kind == "apply" and os.path.lexists(copy):  # nobody but this apply has one to give
                self.quarantine(copy)
            name = f"{number:04d}-{kind}.json"
            path = self.paths.decisions / name
            files.write_once(path, decision_bytes(decision, place_of(self.nonce, path)))
            self.wrote(os.fspath(path))
            self._decisions.add(name, number, decision)
        return decision

    def add_reading(self, kind: ReadingKind, iteration: int, **fields: Any) -> Reading:
        """Write the next reading of an iteration, once: durable when this returns. ``fields`` are those of :class:`Reading`.

        Errors: :class:`NotFoundError` when there is no such iteration, :class:`jumar.errors.StoreWriteError`.
        """
        with self._writing("write a reading to", self.paths.readings):
            if iteration not in self.iteration_numbers():
                raise NotFoundError(f"loop '{self.loop_id}' has no iteration {iteration}")
            number = max((reading.number for reading in self.readings()), default=0) + 1
            reading = Reading(number=number, kind=kind, iteration=iteration, **fields)
            path = self.paths.reading_file(number, kind, iteration)
            self._write(path, reading.to_json())
            self._readings.add(path.name, number, reading)
        return reading

    def set_aside(self, source: Path, paths: Iterable[str]) -> Path:
        """Keep a durable copy of ``paths`` below ``source`` and return its directory, ``set-aside/0001``."""
        with self._writing("set files aside in", self.paths.set_aside):
            files.make_directory(self.paths.set_aside)
            target = next_place(self.paths.set_aside)
            self._copy_to(target, source, paths)
        return target

    def keep_checks(self, number: int, source: Path, paths: Iterable[str]) -> Manifest:
        """Keep a durable copy of ``paths`` below ``source`` as ``checks/NUMBER``, which must not exist; return what it holds."""
        with self._writing("keep the checks in", self.paths.checks):
            files.make_directory(self.paths.checks)
            target = self.paths.checks_of(number)
            return self._copy_to(target, source, paths, place_of(self.nonce, target / MANIFEST))

    def _copy_to(self, target: Path, source: Path, paths: Iterable[str], place: str | None = None) -> Manifest:
        """Copy ``paths`` to ``target``; the mark for ``place`` is for what decides, and in no other directory of that number."""
        temporary = target.parent / leftovers.temporary_name()
        with whole_or_gone(temporary):
            os.mkdir(temporary)
            os.mkdir(temporary / ARTIFACTS)
            manifest = take_snapshot(source, paths, temporary / ARTIFACTS, cache=self.cache)
            files.replace_file(temporary / MANIFEST, manifest.whole()[1].encode(place))
            files.sync_tree(temporary, entries=len(manifest.entries))
            files.rename_new(temporary, target)
        return manifest

    def quarantine(self, path: Path, of: Path | None = None) -> str:
        """Move what jumar did not write out of the way, and return where it lies in the loop, or in ``of``."""
        with self._writing("move out of the way", path):
            return move_aside(of or self.paths.directory, path)

    def discard_leftovers(self) -> None:
        """Remove what an interrupted process left behind: temporaries, and the scratch of all but the last attempt.

        That of a last attempt that was lost goes too: what it had reported was read when it was written off.
        """
        with self._writing("remove leftovers from", self.paths.directory):
            scratch, last = self.paths.scratch, self.paths.attempt_scratch(self.last_attempt()).name
            ended = self.attempts()[-1].end if self.attempts() else None
            last = "" if ended is not None and ended.outcome == "lost" else last
            undone = self.paths.undo.iterdir() if files.is_directory(self.paths.undo) else ()
            for directory in (self.paths.directory, *self.paths.subdirectories, self.paths.checks, self.paths.recheck, *undone):
                if not files.is_directory(directory):  # nothing is removed through a link
                    continue
                for name in os.listdir(directory):
                    if name.startswith(leftovers.TEMPORARY) or (name != last and directory == scratch):
                        leftovers.remove_any(directory / name)
            immutable = {self.paths.iterations.name, self.paths.final_output.name, self.paths.undo.name}
            for place, below, _ in leftovers.folders_of(self.paths.directory):
                below[:] = [name for name in below if name not in immutable and name != ARTIFACTS]
                leftovers.sweep(Path(place))

    def _free_number(self, number: int) -> None:
        if number < 0:
            raise UsageError(f"{number} cannot be an iteration number: they start at 0")
        self._look_at_iterations()
        if iteration_name(number) in self._iterations.names or os.path.lexists(self.paths.iteration(number)):
            if self.is_foreign(number):
                self.quarantine(self.paths.iteration(number))
                return
            raise DuplicateIterationError(
                f"iteration {number} of loop '{self.loop_id}' is recorded already; records are written once, use the next number"
            )

    def _replace_unpaid(self, number: int, attempt: int | None) -> None:
        directory = self.paths.pending_iteration(number)
        if not os.path.lexists(directory):
            return
        if attempt is not None or self.pending_of(number).attempt is not None:
            raise DuplicateIterationError(
                f"a snapshot of iteration {number} waits to be scored; run the loop again: it resumes there"
            )
        self._empty(directory)

    def _never(self) -> tuple[Path, ...]:
        directory = self.paths.directory
        if directory == self.paths.root:
            return (directory,)
        return (directory, directory.parent, self.paths.lock.parent)

    def _base(self) -> Base | None:
        """Return the newest snapshot that is still there, for the manifest's difference."""
        self._look_at_iterations()
        newest = next(filter(self.has_snapshot, reversed(self._numbers)), None)
        return None if newest is None else Base(newest, self.manifest(newest))


def has_iterations(paths: LoopPaths) -> bool:
    """Whether iterations are recorded, though the directory may be no loop any more: its ``loop.json`` may be gone."""
    try:
        with os.scandir(paths.iterations) as listing:
            return any(os.path.exists(os.path.join(entry.path, METRICS)) for entry in listing)
    except (FileNotFoundError, NotADirectoryError):
        return False
