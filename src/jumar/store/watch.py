"""Whether somebody else wrote in a loop's directory while its writer was waiting: told by names and stat, mended from copies.

Everything that was recorded is write-once, so a change is never legitimate. The copies lie in a file without a name, which
nothing but this process can open by a path. A look costs the same at iteration 10 and 10,000: directories tell by their time
stamp that names changed; of the files, the newest and a turn of the others are looked at, and all of them at the end.

Snapshots are not looked at here: their files are compared with the manifest's hashes wherever they are used.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import itertools
import os
import stat
import tempfile
import weakref
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumar import files
from jumar.errors import StoreDamagedError
from jumar.store.layout import iteration_name, iteration_number
from jumar.store.loop_reader import LoopReader
from jumar.store.reading import iteration_numbers
from jumar.store.staging import ARTIFACTS, LOGS, MANIFEST, METRICS, PLANTED, STAGE
from jumar.text import escape

__all__ = ["Damage", "StoreWatch"]

_NEWEST: Final = 6  # attempts and iterations, looked at each time
_TURN: Final = 4  # older ones, looked at each time: what was read of them is in memory, and the end looks at all
_TAKEN: Final = 32  # older ones of a loop that is gone on with, taken in each time
_LARGEST_COPY: Final = 8_000_000  # bytes of one attempt's or iteration's files
_Key = int | str


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that was changed in the store: where, what, and whether it is again as it was."""

    path: str
    what: str
    mended: bool

    def __str__(self) -> str:
        return f"{self.path} {self.what}"


class _Vault:
    """Copies of small files in one file without a name. On a full disk nothing is kept, and nothing can be put back."""

    def __init__(self, directory: Path) -> None:
        self._fd = -1
        self._end = 0
        with contextlib.suppress(OSError):
            with tempfile.TemporaryFile(dir=directory) as nameless:
                self._fd = os.dup(nameless.fileno())
            weakref.finalize(self, os.close, self._fd)

    def put(self, data: bytes) -> int:
        """Keep ``data`` and return where; -1 when it was not kept."""
        place = self._end
        try:
            while data:
                written = os.pwrite(self._fd, data, self._end)
                self._end += written
                data = data[written:]
        except OSError:
            return -1
        return place

    def get(self, place: int, size: int) -> bytes:
        return os.pread(self._fd, size, place)


class StoreWatch:
    """Watches the loop of ``store`` in the name of its writer, who holds the lock.

    :meth:`arm` before others run, :meth:`look` after; between the two only files that the store itself knows of may come.
    """

    def __init__(self, store: LoopReader) -> None:
        self._store = store
        self._paths = store.paths
        self._directory = os.fspath(store.paths.directory)
        self._vault: _Vault | None = None
        self._rows: dict[_Key, int] = {}
        self._single: list[str] = []  # those of the rows that are one file
        self._prints = array("q")
        self._places = array("q")
        self._digests: list[bytes] = []
        self._attempts = 0  # so many are taken in, and have ended
        self._under_way: set[int] = set()
        self._iterations = 0
        self._turn = 0
        self._backlog: Iterator[int] = iter(())
        self._pending: dict[int, list[bytes | None]] = {}
        self._stamps: dict[Path, tuple[int, ...]] = {}
        self._names: dict[Path, frozenset[str]] = {}

    def arm(self) -> None:
        """Take in what the store wrote since the last time, and remember the directories as they are.

        Of a loop that is gone on with, the newest records are taken in at once, and the others by turns.
        """
        if self._vault is None:
            self._vault = _Vault(self._paths.directory)
        self._store.attempts()
        for _ in self._derived():
            pass  # of another process, before anybody could be blamed for it
        self._take_in()
        for key in itertools.islice(self._backlog, _TAKEN):
            self._add(key)
        for directory in (self._paths.attempts, self._paths.iterations, self._paths.pending):
            self._stamps[directory] = _stamp(directory)
        for directory in (self._paths.decisions, self._paths.readings):
            stamp = _stamp(directory)
            if self._stamps.get(directory) != stamp:
                self._names[directory] = names = _listed(directory)
                self._stamps[directory] = stamp
                for key in (f"{directory.name}/{name}" for name in names):
                    if key not in self._rows:
                        self._add(key)
        waiting = iteration_numbers(set(_listed(self._paths.pending)))
        self._pending = {number: [files.content_of(path) for path in self._pending_files(number)] for number in waiting}

    def look(self, *, pending: frozenset[int] = frozenset(), everything: bool = False) -> tuple[Damage, ...]:
        """Return what others changed since :meth:`arm`, put back where there is a copy.

        ``pending`` are the iterations that may wait to be scored now, besides those that already did. ``everything`` looks at
        every file. Errors: :class:`StoreDamagedError` when the loop's directory itself is gone.
        """
        if not self._paths.loop_json.parent.is_dir():
            raise StoreDamagedError(
                f"{escape(os.fspath(self._paths.directory))} was deleted while the loop ran, with all that was recorded; if the "
                "generator cleans up with `git clean -x`, let it say `git clean -x -e .jumar`. Start again with `jumar run`"
            )
        self._take_in()
        found = [*self._derived(), *self._misplaced(pending)]
        for key in self._due(everything=everything):
            found += self._changed(key)
        for number, before in self._pending.items():
            if not self._is_recorded(number):
                found += self._altered_pending(number, before)
        return tuple(found)

    def _derived(self) -> Iterator[Damage]:
        """Remove what stands for the attempts in one file, when somebody else wrote there: what they cost would be believed."""
        settled = self._store.settled
        if settled.touched():
            mended = False
            with contextlib.suppress(OSError):
                settled.forget()
                mended = True
            yield Damage(settled.path.name, "was changed; it is made anew" if mended else "was changed", mended=mended)

    def _take_in(self) -> None:
        attempts, numbers = self._store.attempts(), self._store.iteration_numbers()
        if not self._rows:
            self._add("loop.json")
            self._attempts, self._iterations = max(0, len(attempts) - _NEWEST), max(0, len(numbers) - _NEWEST)
            older = (_attempt_key(attempt.start.number) for attempt in reversed(attempts[: self._attempts]))
            self._backlog = itertools.chain(older, map(_iteration_key, reversed(numbers[: self._iterations])))
        for attempt in attempts[self._attempts :]:
            number, ended = attempt.start.number, attempt.end is not None
            if _attempt_key(number) not in self._rows or (ended and number in self._under_way):
                self._add(_attempt_key(number))
            (self._under_way.discard if ended else self._under_way.add)(number)
        while self._attempts < len(attempts) and attempts[self._attempts].end is not None:
            self._attempts += 1
        for number in numbers[self._iterations :]:
            self._add(_iteration_key(number))
        self._iterations = len(numbers)

    def _pending_files(self, number: int) -> tuple[Path, ...]:
        directory = self._paths.pending_iteration(number)
        return (directory / MANIFEST, directory / STAGE)

    def _altered_pending(self, number: int, before: list[bytes | None]) -> Iterator[Damage]:
        """Compare a snapshot that waits to be scored with what it was: a record that is put there would be believed."""
        directory = self._paths.pending_iteration(number)
        if not directory.is_dir():
            return
        for name in sorted(_listed(directory) - {ARTIFACTS, LOGS, MANIFEST, STAGE}):
            yield self._planted(directory / name)
        for path, content in zip(self._pending_files(number), before, strict=True):
            now = files.content_of(path)
            if now != content:
                yield self._mend(path, now, content)

    def _files(self, key: _Key) -> tuple[str, ...]:
        """Return the paths of a key's files; as text, because they are asked for all the time."""
        if isinstance(key, str):
            return (f"{self._directory}/{key}",)
        number, is_iteration = divmod(key, 2)
        if not is_iteration:
            return (f"{self._directory}/attempts/{number:06d}.start.json", f"{self._directory}/attempts/{number:06d}.end.json")
        directory = f"{self._directory}/iterations/{iteration_name(number)}/"
        return (directory + METRICS, directory + MANIFEST, directory + STAGE)

    def _add(self, key: _Key) -> None:
        """Remember the files of ``key`` as they are now; those of a row that is known are remembered anew."""
        contents = [files.content_of(path) for path in self._files(key)]
        framed = _framed(contents)
        place = -1 if self._vault is None or len(framed) > _LARGEST_COPY else self._vault.put(framed)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = len(self._prints)
            if isinstance(key, str):
                self._single.append(key)
            self._prints.append(0)
            self._places.append(-1)
            self._digests.append(b"")
        self._prints[row] = self._print(key)
        self._places[row] = place
        self._digests[row] = _digest_of(framed)

    def _print(self, key: _Key) -> int:
        """Return what tells that one of the files was touched; written out, because it is asked for all the time."""
        found: list[int] = []
        for path in self._files(key):
            try:
                status = os.lstat(path)
            except OSError:
                found.append(0)
            else:
                found += (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode)
        return hash(tuple(found))

    def _due(self, *, everything: bool) -> Iterator[_Key]:
        if everything:
            yield from list(self._rows)
            return
        yield from list(self._single)
        attempts, numbers = self._store.attempts(), self._store.iteration_numbers()
        recent = list(map(_attempt_key, {*self._under_way, *(attempt.start.number for attempt in attempts[-_NEWEST:])}))
        recent += [_iteration_key(number) for number in numbers[-_NEWEST:]]
        yield from recent
        older = max(0, min(len(attempts), len(numbers)) - _NEWEST)
        for _ in range(min(_TURN, older)):
            self._turn = (self._turn + 1) % older
            yield _attempt_key(attempts[self._turn].start.number)
            yield _iteration_key(numbers[self._turn])

    def _changed(self, key: _Key) -> Iterator[Damage]:
        row = self._rows.get(key)
        if row is None or self._print(key) == self._prints[row]:
            return
        paths = self._files(key)
        now = [files.content_of(path) for path in paths]
        if _digest(now) == self._digests[row]:  # touched, or its mode was changed
            self._prints[row] = self._print(key)
            return
        before = self._copy(row)
        for index, path in enumerate(paths):
            if before is None:
                shown = escape(os.path.relpath(path, self._paths.directory))
                yield Damage(shown, "or what belongs to it was changed and could not be put back", mended=False)
                break
            if now[index] != before[index]:
                yield self._mend(path, now[index], before[index])
        self._prints[row] = self._print(key)

    def _copy(self, row: int) -> list[bytes | None] | None:
        if self._vault is None or self._places[row] < 0:
            return None
        return _unframed(self._vault, self._places[row])

    def _mend(self, place: str | Path, now: bytes | None, before: bytes | None) -> Damage:
        what = "was deleted" if now is None else "was changed" if before is not None else "was put there"
        path = Path(place)
        shown = escape(os.path.relpath(path, self._paths.directory))
        mended = False
        with contextlib.suppress(OSError):
            if now is not None or os.path.lexists(path):
                if before is None:
                    self._move_away(path)
                elif path.is_symlink() or not path.is_file():
                    files.remove_any(path)
            if before is not None:
                files.make_directory(path.parent)
                files.replace_file(path, before)
            mended = True
        return Damage(shown, what if mended else f"{what} and could not be put back", mended)

    def _is_recorded(self, number: int) -> bool:
        numbers = self._store.iteration_numbers()
        place = bisect.bisect_left(numbers, number)
        return place < len(numbers) and numbers[place] == number

    def _misplaced(self, pending: frozenset[int]) -> Iterator[Damage]:
        """Find names that the store did not make, and directories of iterations that are gone."""
        waiting = [number for number in self._pending if not self._is_recorded(number)]
        expected = {
            self._paths.attempts: self._attempt_names,
            self._paths.iterations: lambda: frozenset(map(iteration_name, self._store.iteration_numbers())),
            self._paths.pending: lambda: frozenset(map(iteration_name, waiting)),
            self._paths.decisions: lambda: self._names.get(self._paths.decisions, frozenset()),
            self._paths.readings: lambda: self._names.get(self._paths.readings, frozenset()),
        }
        for directory, names in expected.items():
            stamp = _stamp(directory)
            if stamp == self._stamps.get(directory):
                continue
            known, there = names(), _listed(directory)
            allowed = frozenset(map(iteration_name, pending)) if directory == self._paths.pending else frozenset[str]()
            for name in sorted(there - known - allowed):
                yield self._planted(directory / name)
            for name in sorted(known - there):
                yield from self._gone(directory / name)
            self._stamps[directory] = _stamp(directory)

    def _attempt_names(self) -> frozenset[str]:
        names: set[str] = set()
        for attempt in self._store.attempts():
            names.add(self._paths.attempt_start(attempt.start.number).name)
            if attempt.end is not None:
                names.add(self._paths.attempt_end(attempt.start.number).name)
        return frozenset(names)

    def _gone(self, path: Path) -> Iterator[Damage]:
        """Put back what is missing; of an iteration the record alone, of a snapshot that waits nothing."""
        shown = escape(os.path.relpath(path, self._paths.directory))
        if path.parent == self._paths.attempts:
            yield from self._changed(_attempt_key(int(path.name.partition(".")[0])))
        elif path.parent in {self._paths.decisions, self._paths.readings}:
            yield from self._changed(shown)
        else:
            number = iteration_number(path.name)
            if number is not None and path.parent == self._paths.iterations:
                yield from self._changed(_iteration_key(number))
            yield Damage(f"{shown}/{ARTIFACTS}", "was deleted and could not be put back", mended=False)

    def _planted(self, path: Path) -> Damage:
        shown = escape(os.path.relpath(path, self._paths.directory))
        try:
            self._move_away(path)
        except OSError:
            return Damage(shown, "was put there and could not be moved away", mended=False)
        return Damage(shown, f"was put there; it lies in {PLANTED}/ now", mended=True)

    def _move_away(self, path: Path) -> None:
        directory = self._paths.directory / PLANTED
        files.make_directory(directory)
        number = len(os.listdir(directory)) + 1
        os.rename(path, directory / f"{number:04d}-{path.name}")


def _attempt_key(number: int) -> int:
    return 2 * number


def _iteration_key(number: int) -> int:
    return 2 * number + 1


def _stamp(path: str | Path) -> tuple[int, ...]:
    try:
        found = os.lstat(path)
    except OSError:
        return (0, 0)
    if stat.S_ISDIR(found.st_mode):
        return (found.st_ino, found.st_mtime_ns)
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode)


def _listed(directory: Path) -> frozenset[str]:
    try:
        return frozenset(name for name in os.listdir(directory) if not name.startswith(files.TEMPORARY))
    except OSError:
        return frozenset()


def _digest(contents: list[bytes | None]) -> bytes:
    return _digest_of(_framed(contents))


def _digest_of(framed: bytes) -> bytes:
    return hashlib.blake2b(framed, digest_size=16).digest()


_WIDTH: Final = 8


def _framed(contents: list[bytes | None]) -> bytes:
    """Return several contents as one: how many, the length of each (-1 when there is none), then all of them."""
    lengths = [len(contents), *(-1 if content is None else len(content) for content in contents)]
    head = b"".join(length.to_bytes(_WIDTH, "big", signed=True) for length in lengths)
    return head + b"".join(content or b"" for content in contents)


def _unframed(vault: _Vault, place: int) -> list[bytes | None] | None:
    def number(index: int) -> int:
        return int.from_bytes(vault.get(place + index * _WIDTH, _WIDTH), "big", signed=True)

    count = number(0)
    found: list[bytes | None] = []
    at = place + (count + 1) * _WIDTH
    for index in range(1, count + 1):
        length = number(index)
        found.append(None if length < 0 else vault.get(at, length))
        at += max(0, length)
    return found
