"""Attempts that have ended, read once and kept in one file: ten thousand iterations leave forty thousand small ones.

``attempts.settled`` is derived, never a source of truth: a part of it is believed only while inode, size and both time stamps of
every file that it was read from are what they were. Where they are not, where it is damaged, of another version or missing, the
files themselves are read, and it is made anew. It is appended to; each line stands for itself, with its own digest.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import math
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from sys import intern
from typing import Any, Final, TypeVar, cast

from jumar.core import files
from jumar.core.codec import FORMAT
from jumar.core.files import read_bytes
from jumar.core.marks import digest
from jumar.errors import StoreDamagedError
from jumar.loop.store.integrity.trust import Trust, place_of
from jumar.loop.store.layout import LoopPaths
from jumar.loop.store.quick_attempts import END_TYPES, START_TYPES, USAGE_TYPES, read_light_attempt
from jumar.model.attempts import OUTCOMES, PURPOSES, Attempt, AttemptEnd, AttemptStart
from jumar.model.records import FAILURES, Usage

__all__ = ["AT_ONCE", "SETTLED", "Part", "Settled", "parts_of"]

SETTLED: Final = "attempts.settled"
AT_ONCE: Final = 512
"""So many attempts go into one line, and fewer are not worth the file."""

_SETTLED_NS: Final = 2_000_000_000
_LISTS: Final = ("commits", "errors", "notes")
_LARGEST: Final = 1 << 30
_SILENT: Final = Usage()
_T = TypeVar("_T")
_Stamp = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """One line: the attempts from ``first`` on, and the print of the files that they were read from."""

    first: int
    files: str
    attempts: tuple[Attempt, ...]


class Settled:
    """The file of one loop. Reading takes no lock and writes nothing; :meth:`grow` belongs to who holds the lock."""

    def __init__(self, paths: LoopPaths, trust: Trust) -> None:
        self.path = paths.directory / SETTLED
        self.at_once = AT_ONCE
        self._paths = paths
        self._trust = trust
        self._up_to = 0  # the last attempt of a file that is whole and believed from its beginning
        self._stamp: _Stamp | None = None

    def read(self) -> dict[int, Attempt]:
        """Return the attempts that may be believed, without their output; none where nothing may be. Never raises."""
        self._up_to, self._stamp = 0, _stamp(self.path)
        if self._stamp is None:
            return {}
        known: dict[int, Attempt] = {}
        up_to: int | None = 0
        with _opened(self._paths.attempts) as directory:
            for part in parts_of(self.path, self._trust.nonce):
                if part is None or directory is None or _print(directory, part.first, len(part.attempts)) != part.files:
                    up_to = None
                    continue
                known.update(enumerate(part.attempts, part.first))
                if up_to is not None:
                    up_to = part.first + len(part.attempts) - 1 if part.first == up_to + 1 else None
        self._up_to = up_to or 0
        return known

    def grow(self, attempts: Sequence[Attempt]) -> bool:
        """Take the next of ``attempts`` in, as their files say, where enough have ended; return whether anything was written.

        ``attempts`` are all there are, by number. A disk that refuses is left alone: nothing depends on it.
        """
        first = self._up_to + 1
        if len(attempts) < self._up_to + self.at_once or any(
            attempt.end is None or attempt.start.number != number
            for number, attempt in enumerate(attempts[self._up_to : self._up_to + self.at_once], first)
        ):
            return False
        with contextlib.suppress(OSError, StoreDamagedError, ValueError), _opened(self._paths.attempts) as directory:
            if directory is None:
                return False
            found = _print(directory, first, self.at_once, settled_by=time.time_ns() - _SETTLED_NS)
            if found is None:
                return False
            read = self._trust.read
            known = [read_light_attempt(self._paths, first + n, ended=True, read=read) for n in range(self.at_once)]
            line = _line(first, found, known, place_of(self._trust.nonce, self.path))
            if first > 1 and _stamp(self.path) != self._stamp:
                self._up_to = 0  # somebody else wrote there: from the beginning, the next time
                return False
            if first == 1:
                files.replace_file(self.path, line)
            else:
                self._append(line)
            self._up_to += self.at_once
            self._stamp = _stamp(self.path)
            return True
        self._up_to, self._stamp = 0, _stamp(self.path)  # half a line may be there: from the beginning, the next time
        return False

    def _append(self, line: bytes) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            files.write_all(descriptor, line)
        finally:
            os.close(descriptor)

    def touched(self) -> bool:
        """Whether the file is another than this object last read or wrote."""
        return _stamp(self.path) != self._stamp

    def forget(self) -> None:
        """Remove the file, whatever it is; it is made anew. Errors: ``OSError``."""
        self._up_to, self._stamp = 0, None
        if os.path.lexists(self.path):
            files.remove_any(self.path)


def parts_of(path: Path, nonce: str) -> Iterator[Part | None]:
    """Yield the parts of a file of the loop with this nonce, None for one that is damaged or of another version.

    A file that cannot be read has none.
    """
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            yield None
            return
        data = read_bytes(os.fspath(path))
    except OSError:
        return
    for line in data.splitlines(keepends=True):
        yield _parsed(line, place_of(nonce, path))


def _line(first: int, found: str, attempts: Sequence[Attempt], place: str) -> bytes:
    starts, ends = [attempt.start for attempt in attempts], [attempt.end for attempt in attempts]
    lists = {name: [getattr(end, name) for end in ends] for name in _LISTS}
    usages = [None if end is None or end.usage == _SILENT else end.usage for end in ends]
    document = {
        "format": FORMAT,
        "first": first,
        "files": found,
        "start": {name: [getattr(start, name) for start in starts] for name in START_TYPES},
        "end": {name: [getattr(end, name) for end in ends] for name in END_TYPES},
        "texts": {name: [list(row) for row in texts] for name, texts in lists.items() if any(texts)},
        "usage": {name: [usage and getattr(usage, name) for usage in usages] for name in USAGE_TYPES} if any(usages) else None,
    }
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    return digest(text, place).encode() + b" " + text + b"\n"


def _parsed(line: bytes, place: str) -> Part | None:
    mark, _, text = line.partition(b" ")
    if not text.endswith(b"\n") or digest(text[:-1], place).encode() != mark:
        return None
    try:
        document: dict[str, Any] = json.loads(text, parse_constant=_refuse)
        if document["format"] != FORMAT or type(document["first"]) is not int or document["first"] < 1:
            return None
        return _part(document)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _refuse(_constant: str) -> float:
    raise ValueError


def _part(document: Mapping[str, Any]) -> Part | None:
    first, count = document["first"], len(document["start"]["number"])
    start = _columns(document["start"], START_TYPES, count)
    end = _columns(document["end"], END_TYPES, count)
    said = document["usage"] and _columns(document["usage"], USAGE_TYPES, count)
    texts = {name: _texts(document["texts"].get(name), count) for name in _LISTS}
    if start["number"] != list(range(first, first + count)) or not set(start["purpose"]) <= set(PURPOSES):
        return None
    if not set(end["outcome"]) <= set(OUTCOMES) or not set(end["failure"]) <= {None, *FAILURES}:
        return None
    usages = [_SILENT] * count
    if said is not None:
        silent = [not any(value is not None for value in row) for row in zip(*said.values(), strict=True)]
        usages = [_SILENT if none else usage for none, usage in zip(silent, _made(Usage, count, said), strict=True)]
    heavy: dict[str, list[Any]] = {"output_tail": [""] * count, "answers": [None] * count, "tree": [None] * count}
    more: dict[str, list[Any]] = {**texts, **heavy, "usage": usages}
    ends = _made(AttemptEnd, count, {**end, **more})
    attempts = _made(Attempt, count, {"start": _made(AttemptStart, count, start), "end": ends})
    return Part(first=first, files=str(document["files"]), attempts=tuple(attempts))


def _made(kind: type[_T], count: int, columns: Mapping[str, Sequence[Any]]) -> list[_T]:
    """Return so many values of a frozen record, made column by column: a third of the time of one call for each.

    Errors: ``KeyError`` when a field has no column.
    """
    made = [object.__new__(kind) for _ in range(count)]
    for field in fields(cast("Any", kind)):
        put: Callable[[object, Any], None] = vars(kind)[field.name].__set__
        collections.deque(map(put, made, columns[field.name]), maxlen=0)
    return made


def _texts(column: Any, count: int) -> list[tuple[str, ...]]:
    """Return a column of lists of texts; None is one of empty ones. Errors: ``ValueError``, ``TypeError`` for anything else."""
    if column is None:
        return [()] * count
    rows = [tuple(row) for row in cast("list[list[str]]", column)]
    if len(rows) != count or set(map(type, column)) != {list} or any(type(text) is not str for row in rows for text in row):
        raise ValueError
    return rows


def _columns(given: Mapping[str, list[Any]], wanted: Mapping[str, frozenset[type]], count: int) -> dict[str, list[Any]]:
    """Return the wanted columns. Errors: ``ValueError`` for one of another length, a value of another type or not finite."""
    found: dict[str, list[Any]] = {}
    for name, types in wanted.items():
        column = found[name] = given[name]
        if type(column) is not list or len(column) != count or not set(map(type, column)) <= types:
            raise ValueError(name)
        if float in types and (math.inf in column or -math.inf in column):
            raise ValueError(name)
        if str in types:
            found[name] = [intern(value) if type(value) is str else value for value in column]
    return found


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _print(directory: int, first: int, count: int, *, settled_by: int | None = None) -> str | None:
    """Return what tells that one of the files of these attempts was touched; None when one is missing, or changed lately."""
    stamps: list[int] = []
    latest = 0
    try:
        for number in range(first, first + count):
            for name in (f"{number:06d}.start.json", f"{number:06d}.end.json"):
                found = os.stat(name, dir_fd=directory, follow_symlinks=False)
                changed = found.st_ctime_ns
                stamps += (found.st_ino, found.st_size, found.st_mtime_ns, changed)
                latest = max(latest, changed)
    except OSError:
        return None
    return None if settled_by is not None and latest > settled_by else hashlib.sha256(repr(stamps).encode()).hexdigest()


@contextlib.contextmanager
def _opened(directory: Path) -> Generator[int | None]:
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
