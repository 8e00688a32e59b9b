"""Whether somebody else wrote in a loop's directory while its writer was waiting: told by names and stat, mended from copies.

Everything that was recorded is write-once, so a change is never legitimate. The store says what it writes; the copies lie in a
file without a name, which nothing but this process can open by a path. A look costs the same at iteration 10 and 10,000:
directories tell by their time stamp that names changed; of the files, the newest and a turn of the others are looked at, and all
of them at the end. What a program wrote while no jumar ran is found by its mark when it is read.

Snapshots are not looked at here: their files are compared with the manifest's hashes wherever they are used.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumar.core import files, leftovers
from jumar.core.file_cache import times_tell
from jumar.core.leftovers import is_of_the_machine
from jumar.core.lock import QUARANTINE
from jumar.core.text import escape
from jumar.errors import StoreDamagedError, StoreWriteError
from jumar.loop.store.layout import ARTIFACTS, LOGS, MANIFEST, METRICS, STAGE, iteration_name, loops_beside, replaced
from jumar.loop.store.loop_store import LoopStore

_NEWEST: Final = 32  # of what was written last, looked at each time
_TURN: Final = 16  # older ones, looked at each time: what was read of them is in memory, and the end looks at all
_TAKEN: Final = 32  # older ones of a loop that is gone on with, taken in each time
_LARGEST_COPY: Final = 8_000_000  # bytes of one attempt's or iteration's files
_FEW: Final = ("loop.json", "decisions/", "readings/")
_PARTS: Final = (METRICS, MANIFEST, STAGE)
_Contents = list[bytes | None]
_Place = tuple[int, tuple[int, ...]]  # where the contents begin, and the length of each, -1 where there is none


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that was changed in the store: where, what, and whether it is again as it was."""

    path: str
    what: str
    mended: bool

    def __str__(self) -> str:
        return f"{self.path} {self.what}"


class StoreWatch:
    """Watches the loop of ``store`` in the name of its writer, who holds the lock.

    :meth:`arm` before others run, :meth:`look` after; between the two only what the store itself writes may come. What is watched
    goes by *keys*, paths in the loop: ``attempts/000001.start.json``, and ``iterations/iteration-001`` for the three files there.
    """

    def __init__(self, store: LoopStore) -> None:
        self._store, self._paths = store, store.paths
        self._root = os.fspath(store.paths.directory)
        self._vault: _Vault | None = None
        self._tells = True
        self._prints: dict[str, int] = {}
        self._places: dict[str, _Place | None] = {}
        self._keys: list[str] = []
        self._single: list[str] = []  # not one an iteration, and looked at each time
        self._newest: deque[str] = deque(maxlen=_NEWEST)
        self._running: set[str] = set()
        self._turn = 0
        self._backlog: Iterator[str] = iter(())
        self._written: list[str] = []
        self._waiting: set[str] = set()
        self._stamps: dict[Path, tuple[int, int, int]] = {}
        self._beside: Path | None = None

    def arm(self, *, alone: bool = True) -> None:
        """Take in what the store wrote since the last time, and, where nobody else runs (``alone``), the directories as they are.

        Of a loop that is gone on with, the newest records are taken in at once, and the others by turns.
        """
        if self._vault is None:
            self._vault = _Vault(self._paths.directory)
            self._tells = times_tell(self._paths.directory)
            self._backlog = iter(self._found())
            self._store.wrote = self._written.append
            self._beside = loops_beside(self._paths)
        self._take_in()
        for key in itertools.islice(self._backlog, _TAKEN):
            self._add(key)
        for directory in self._names() if alone else ():
            self._stamps[directory] = _stamp(directory)

    def look(self, *, everything: bool = False) -> tuple[Damage, ...]:
        """Return what others changed since :meth:`arm`, put back where there is a copy. ``everything`` looks at every file.

        Errors: :class:`StoreDamagedError` when the loop's directory itself is gone, or another.
        """
        self._store.check_place()
        told = replaced(self._paths)
        if not self._paths.loop_json.parent.is_dir():
            raise StoreDamagedError(
                f"{escape(self._root)} was deleted while the loop ran, with all that was recorded; if the "
                "generator cleans up with `git clean -x`, let it say `git clean -x -e .jumar`. Start again with `jumar run`"
            )
        self._take_in()
        found = [Damage(*said.split(" ", 1), mended=True) for said in told] + list(self._misplaced())
        beside = loops_beside(self._paths)
        if beside != self._beside and beside is not None:  # commands would look for this loop there
            found.append(self._planted(beside, self._paths.root))
        for key in list(self._prints) if everything else self._due():
            found += self._changed(key)
        return tuple(found)

    def _found(self) -> list[str]:
        """Return the keys of all that is recorded when this begins, the newest first."""
        store = self._store
        self._waiting = set(map(iteration_name, store.pending_numbers()))
        few = [f"decisions/{name}" for name in store.names(self._paths.decisions)]
        few += [f"readings/{name}" for name in store.names(self._paths.readings)]
        few += [f"pending/{name}" for name in self._waiting]
        attempts = sorted((name for name in store.names(self._paths.attempts) if name.endswith(".json")), reverse=True)
        iterations = [f"iterations/{iteration_name(number)}" for number in reversed(store.iteration_numbers())]
        for key in ("loop.json", *few):
            self._add(key)
        pairs = itertools.zip_longest(iterations, (f"attempts/{name}" for name in attempts))
        return [key for pair in pairs for key in pair if key is not None]

    def _take_in(self) -> None:
        """Remember what the store says that it wrote."""
        for path in self._written:
            key = os.path.relpath(path, self._root)
            directory, _, name = key.partition("/")
            if directory == "pending":
                self._waiting.add(name)
            elif directory == "iterations" and name in self._waiting:
                self._waiting.discard(name)
                self._prints.pop(f"pending/{name}", None)
            if name.endswith(".start.json"):
                self._running.add(key)
            self._running.discard(key.removesuffix(".end.json") + ".start.json")
            self._add(key)
            self._newest.append(key)
        self._written.clear()

    def _names(self) -> dict[Path, set[str]]:
        paths = self._paths
        of_records = (paths.attempts, paths.iterations, paths.decisions, paths.readings)
        return {**{directory: self._store.names(directory) for directory in of_records}, paths.pending: self._waiting}

    def _due(self) -> list[str]:
        turn = self._keys[self._turn : self._turn + _TURN]
        self._turn = self._turn + _TURN if self._turn + _TURN < len(self._keys) else 0
        waiting = [f"pending/{name}" for name in self._waiting]
        return list(dict.fromkeys([*self._single, *waiting, *self._running, *self._newest, *turn]))

    def _files(self, key: str) -> tuple[str, ...]:
        """Return the paths of a key's files; as text, because they are asked for all the time."""
        path = f"{self._root}/{key}"
        if key.startswith(("iterations/", "pending/")):
            return tuple([f"{path}/{part}" for part in _PARTS])
        return (path,)

    def _add(self, key: str) -> None:
        """Remember the files of ``key`` as they are now; those of a key that is known are remembered anew."""
        if key not in self._prints:
            self._keys.append(key)
            if key.startswith(_FEW):
                self._single.append(key)
        self._prints[key] = self._print(key)
        self._places[key] = self._vault and self._vault.put([files.content_of(path) for path in self._files(key)])

    def _print(self, key: str) -> int:
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

    def _changed(self, key: str) -> Iterator[Damage]:
        if key not in self._prints:
            return
        before = self._vault and self._vault.get(self._places[key])
        if self._print(key) == self._prints[key] and (self._tells or before is None):  # without a copy nothing else can tell
            return
        paths = self._files(key)
        for there in self._down_to(Path(paths[0]).parent):
            leftovers.give_rights(there)
        for index, path in enumerate(paths):
            now = files.content_of(path)
            if before is not None and not files.holds(path, before[index]):
                yield self._mend(Path(path), now, before[index])
            elif before is None and (now is None or not self._store.trust.takes(path, now)):
                yield Damage(self._shown(path), "was changed and could not be put back", mended=False)
        self._prints[key] = self._print(key)

    def _mend(self, path: Path, now: bytes | None, before: bytes | None) -> Damage:
        what = "was deleted" if now is None else "was changed" if before is not None else "was put there"
        try:
            if before is None:
                return self._planted(path)
            if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
                leftovers.remove_any(path)
            self._own_directory(path.parent)
            files.replace_file(path, before)
        except OSError:
            return Damage(self._shown(path), f"{what} and could not be put back", mended=False)
        return Damage(self._shown(path), what, mended=True)

    def _down_to(self, directory: Path) -> list[Path]:
        """Return the directories of the store around ``directory``, the outermost first, and itself."""
        return [there for there in (*reversed(directory.parents), directory) if self._paths.directory in there.parents]

    def _own_directory(self, directory: Path) -> None:
        """Make ``directory`` one of the store's own: a link or a file in the place of it, or above it, is moved away."""
        for there in self._down_to(directory):
            if os.path.lexists(there) and not files.is_directory(there):
                self._store.quarantine(there)
        files.make_directory(directory)

    def _misplaced(self) -> Iterator[Damage]:
        """Find names that the store did not make, and records that are gone."""
        for directory, known in self._names().items():
            if directory == self._paths.pending:
                beside = (directory / name for name in known)
                yield from map(
                    self._planted, (path / name for path in beside for name in (_listed(path) or frozenset()) - _OF_WAITING)
                )
            if _stamp(directory) == self._stamps.get(directory):
                continue
            with contextlib.suppress(OSError):
                files.make_directory(directory)
            there = _listed(directory)
            if there is None:
                continue
            yield from self._strangers(directory, sorted(there - known))
            yield from self._gone(directory, known - there)
            self._stamps[directory] = _stamp(directory)

    def _strangers(self, directory: Path, names: list[str]) -> Iterator[Damage]:
        """Move away what the store did not put into ``directory``; very many together, as each move takes a while to last."""
        if len(names) > _FEW_NAMES:
            empty = self._paths.directory / leftovers.temporary_name() / directory.name
            files.make_directory(empty)
            place = self._paths.directory / self._store.quarantine(empty)
            empty.parent.rmdir()
            for name in names:
                with contextlib.suppress(OSError):
                    os.rename(directory / name, place / name)
            where = escape(os.path.relpath(place, self._root))
            yield Damage(f"{directory.name}/", f"was given {len(names):,} names; they lie in {where} now", mended=True)
            names = sorted(set(names) & (_listed(directory) or frozenset()))
        yield from (self._planted(directory / name) for name in names)

    def _gone(self, directory: Path, names: Iterable[str]) -> Iterator[Damage]:
        """Put back what is missing; of an iteration the record alone."""
        for name in sorted(name for name in names if not name.startswith(leftovers.TEMPORARY)):
            key = f"{directory.name}/{name}"
            yield from self._changed(key)
            if directory == self._paths.iterations:
                yield Damage(f"{escape(key)}/{ARTIFACTS}", "was deleted and could not be put back", mended=False)

    def _planted(self, path: Path, of: Path | None = None) -> Damage:
        try:
            self._store.quarantine(path, of)
        except StoreWriteError:
            return Damage(self._shown(path), "was put there and could not be moved away", mended=False)
        return Damage(self._shown(path), f"was put there; it lies in {QUARANTINE}/ now", mended=True)

    def _shown(self, path: str | Path) -> str:
        return escape(os.path.relpath(path, self._root))


_FEW_NAMES: Final = 100
_OF_WAITING: Final = frozenset({ARTIFACTS, LOGS, *_PARTS})


def _stamp(path: Path) -> tuple[int, int, int]:
    """Return what tells that names in a directory changed; the last is a time that no program can set."""
    try:
        found = os.lstat(path)
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns)


def _listed(directory: Path) -> frozenset[str] | None:
    """Return the names in a directory, none where there is no such directory; None where the machine refuses to read it."""
    try:
        return frozenset(name for name in os.listdir(directory) if not name.startswith(leftovers.TEMPORARY))
    except OSError as error:
        return None if is_of_the_machine(error) else frozenset()


class _Vault:
    """Copies of small files in one file without a name. On a full disk nothing is kept, and nothing can be put back."""

    def __init__(self, directory: Path) -> None:
        self._fd = -1
        self._end = 0
        with contextlib.suppress(OSError):
            with tempfile.TemporaryFile(dir=directory) as nameless:
                self._fd = os.dup(nameless.fileno())
            weakref.finalize(self, os.close, self._fd)

    def put(self, contents: _Contents) -> _Place | None:
        """Keep the contents (None: there is no such file) and return where; None when they were not kept."""
        data = b"".join(content or b"" for content in contents)
        place = self._end, tuple([-1 if content is None else len(content) for content in contents])
        try:
            while data and len(data) <= _LARGEST_COPY:
                written = os.pwrite(self._fd, data, self._end)
                self._end += written
                data = data[written:]
        except OSError:
            return None
        return None if data else place

    def get(self, place: _Place | None) -> _Contents | None:
        """Return what is kept at ``place``; None for none."""
        if place is None:
            return None
        found: _Contents = []
        at, lengths = place
        for length in lengths:
            found.append(None if length < 0 else os.pread(self._fd, length, at) if length else b"")
            at += max(0, length)
        return found
