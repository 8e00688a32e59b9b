"""Reading a loop's directory: no lock, no write, and only whole files, because that is all there ever is.

Directories are listed again only when they may have changed, and of a file that was read once nothing is read again: records,
attempts and decisions are written once.
"""

from __future__ import annotations

import json
import os
import stat
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, cast

from jumar.core import files
from jumar.core.codec import FORMAT, decode, encode
from jumar.core.files import names_in, read_store_file
from jumar.core.record import load
from jumar.core.text import natural
from jumar.errors import StoreDamagedError
from jumar.loop.store.layout import LoopPaths, iteration_number
from jumar.loop.store.trust import MarkTrust, place_of
from jumar.model.attempts import Attempt, AttemptEnd, AttemptStart
from jumar.model.decisions import Decision
from jumar.model.records import IterationRecord, IterationView, Reading

CLEANED: Final = "iterations"
"""The key of a cleanup's and a repair's data: the numbers of the iterations whose artifacts it takes away."""

ACCEPTED: Final = "accepted"
"""The key of a repair's data: what is missing for good, as objects with ``path`` and ``what``."""

ACCEPTED_AT: Final = "attempts"
"""The key beside it: the number of the last attempt at that time."""

_SETTLED_NS: Final = 2_000_000_000
_START: Final = ".start.json"
_END: Final = ".end.json"


class Listing:
    """The names in one directory, as of the last look.

    :meth:`look` lists again unless the directory's time stamp says that nothing changed; a stamp that was young when it was
    seen is not believed, because two changes may share it.
    """

    def __init__(self, directory: Path) -> None:
        self.names: set[str] = set()
        self._directory = os.fspath(directory)
        self._stamp: tuple[int, int] | None = None

    def forget(self) -> None:
        """Make the next :meth:`look` list the directory, whatever its time stamp says."""
        self._stamp = None

    def look(self) -> bool:
        """List the directory again if it may have changed; returns whether the names did.

        One that is missing is empty, and so is what is none: a link leads to files that are no records.
        """
        looked_at = time.time_ns()
        try:
            status = os.lstat(self._directory)
            if self._stamp == (status.st_ino, status.st_mtime_ns):
                return False
            names = set(names_in(self._directory)) if stat.S_ISDIR(status.st_mode) else set[str]()
        except FileNotFoundError:
            names, self._stamp = set[str](), None
        else:
            settled = status.st_mtime_ns <= looked_at - _SETTLED_NS
            self._stamp = (status.st_ino, status.st_mtime_ns) if settled else None
        changed = names != self.names
        self.names = names
        return changed


_R = TypeVar("_R")


class Records(Listing, Generic[_R]):
    """The records of one directory, a file each, whose names begin with their number; each is read once."""

    def __init__(self, directory: Path, read: Callable[[Path, int], _R]) -> None:
        super().__init__(directory)
        self._place = directory
        self._read = read
        self._known: dict[int, _R] = {}
        self._all: tuple[_R, ...] | None = None

    def all(self, *, changed: bool) -> tuple[_R, ...]:
        """Return every record by number; ``changed`` says that the names did. Errors: those of reading one."""
        if changed:
            self._all = None
        if self._all is None:
            numbered = sorted((number, name) for name in self.names if (number := decision_number(name)) is not None)
            for number, name in numbered:
                if number not in self._known:
                    self._known[number] = self._read(self._place / name, number)
            self._all = tuple(self._known[number] for number, _ in numbered)
        return self._all

    def add(self, name: str, number: int, record: _R) -> None:
        """Take in a record that was just written."""
        self.names.add(name)
        self._known[number] = record
        self._all = None


Read = Callable[[str | Path], bytes]
"""Returns the content of a file that has to be there, or raises :class:`StoreDamagedError`."""


def read_record(path: Path, read: Read = read_store_file) -> tuple[IterationRecord, int | None]:
    """Read a ``metrics.json`` as it stands, paths relative to the loop; also the iteration that its artifacts differ from."""
    fields = decode(read(path), os.fspath(path))
    return IterationRecord.from_json(fields), fields.integer_or_none("artifacts_base")


_NOT_VIEWED: Final = frozenset({"artifacts", "artifacts_detail", "reflections", "reasons"})


def read_view(path: str, number: int, read: Read = read_store_file) -> IterationView:
    """Read of a ``metrics.json`` what decisions are made from. Errors: :class:`StoreDamagedError` that names file and field."""
    view = load(IterationRecord, decode(read(path), path), without=_NOT_VIEWED).view()
    if view.number != number:
        raise StoreDamagedError(f"{path}: holds iteration {view.number}, its directory says {number}; was it renamed by hand?")
    return view


def iteration_numbers(names: set[str]) -> list[int]:
    """Return the iterations among the names of a directory, sorted; other names are not ours."""
    numbers = (iteration_number(name) for name in names)
    return sorted(number for number in numbers if number is not None)


def attempt_names(names: set[str]) -> tuple[set[int], set[int]]:
    """Return the numbers of the attempts that started and of those that ended."""
    starts, ends = ({natural(name[: -len(end)]) for name in names if name.endswith(end)} for end in (_START, _END))
    # a number that is written otherwise is no attempt's
    return (
        {each for each in starts if each is not None and f"{each:06d}{_START}" in names},
        {each for each in ends if each is not None and f"{each:06d}{_END}" in names},
    )


_OUTPUT: Final = frozenset({"output_tail", "answers", "tree"})


def read_attempt(paths: LoopPaths, number: int, *, ended: bool, read: Read = read_store_file, whole: bool = True) -> Attempt:
    """Read one attempt; unless ``whole``, as :func:`light` leaves it. Errors: :class:`StoreDamagedError`."""
    start_path = f"{paths.directory}/attempts/{number:06d}{_START}"
    start = AttemptStart.from_json(decode(read(start_path), start_path))
    if start.number != number:
        raise StoreDamagedError(f"{start_path}: holds attempt {start.number}; was it renamed by hand?")
    if not ended:
        return Attempt(start=start, end=None)
    end_path = f"{paths.directory}/attempts/{number:06d}{_END}"
    fields = decode(read(end_path), end_path)
    return Attempt(start=start, end=load(AttemptEnd, fields, without=() if whole else _OUTPUT))


def light(attempt: Attempt) -> Attempt:
    """Return the attempt without output, the scorers' answers and the tree's digest: what is kept of ten thousand of them."""
    return attempt if attempt.end is None else replace(attempt, end=replace(attempt.end, output_tail="", answers=None, tree=None))


def decision_number(name: str) -> int | None:
    """Return the number of a decision's or a reading's file name, ``0003-apply.json`` → 3; None for other names."""
    digits, dash, kind = name.partition("-")
    return natural(digits) if dash and kind.endswith(".json") else None


def cleaned_iterations(decisions: Iterable[Decision]) -> frozenset[int]:
    """Return the iterations whose artifacts a cleanup or a repair was decided to take away."""
    return _named_by(decisions, "cleanup", "repair")


def damaged_iterations(decisions: Iterable[Decision]) -> frozenset[int]:
    """Return the iterations whose artifacts were damaged, and set aside by a repair."""
    return _named_by(decisions, "repair")


def lost_iterations(decisions: Iterable[Decision]) -> frozenset[int]:
    """Return the iterations from which nothing starts, and of which none is selected, because artifacts were damaged.

    Those that a cleanup deleted are among them then: what it kept in their place may be what is lost.
    """
    decisions = tuple(decisions)
    return cleaned_iterations(decisions) if damaged_iterations(decisions) else frozenset()


def _named_by(decisions: Iterable[Decision], *kinds: str) -> frozenset[int]:
    listed = (decision.data.get(CLEANED, ()) for decision in decisions if decision.kind in kinds)
    return frozenset(number for numbers in listed for number in numbers if isinstance(number, int))


def accepted_paths(decision: Decision) -> Iterable[str]:
    """Return what a repair accepted as missing for good, as paths in the loop; nothing of any other decision."""
    return [item["path"] for item in decision.data.get(ACCEPTED, ())] if decision.kind == "repair" else []


def given_up(decisions: Iterable[Decision]) -> Mapping[str, int]:
    """Return what repairs accepted as missing, as paths in the loop, each with the number of the last attempt at that time."""
    return {path: decision.data.get(ACCEPTED_AT, 0) for decision in decisions for path in accepted_paths(decision)}


def read_decision(path: Path, number: int, read: Read = read_store_file) -> Decision:
    """Read one decision. Errors: :class:`StoreDamagedError`."""
    decision = Decision.from_json(decode(read(path), os.fspath(path)))
    if decision.number != number:
        raise StoreDamagedError(f"{path}: holds decision {decision.number}; was it renamed by hand?")
    return decision


def read_later_reading(path: Path, number: int, read: Read = read_store_file) -> Reading:
    """Read one file of ``readings/``. Errors: :class:`StoreDamagedError`."""
    reading = Reading.from_json(decode(read(path), os.fspath(path)))
    if reading.number != number:
        raise StoreDamagedError(f"{path}: holds reading {reading.number}; was it renamed by hand?")
    return reading


@dataclass(slots=True)
class TreeStart:
    """One tree: its root's device and inode, the stamps of all that was in no snapshot, and what the start's checks changed.

    A directory in ``touched`` ends with a slash, and stands for all below it. None: they have not run. ``lost``: agents have
    worked in it, and nobody knows any more how it was.
    """

    root: tuple[int, int]
    entries: dict[str, str]
    touched: frozenset[str] | None = None
    lost: bool = False

    @classmethod
    def read(cls, paths: LoopPaths, trust: MarkTrust, tree: str) -> TreeStart | None:
        """Return what was kept of the tree of this name; None where nothing was, or nothing that jumar wrote."""
        path = _file(paths, tree)
        content = files.content_of(path)
        if content is None or not trust.takes(path, content):
            return None
        try:
            document = cast("dict[str, Any]", json.loads(content))
            entries = cast("dict[str, str]", json.loads(zlib.decompress(b64decode(document["entries"]))))
            device, inode = document["root"]
            touched = document["touched"]
            return cls((device, inode), entries, None if touched is None else frozenset(touched))
        except (zlib.error, ValueError, KeyError, TypeError):
            return None

    def write(self, paths: LoopPaths, trust: MarkTrust, tree: str) -> None:
        """Keep it. Errors: :class:`jumar.errors.StoreWriteError`."""
        document: dict[str, Any] = {"format": FORMAT, "root": self.root}
        document["touched"] = None if self.touched is None else sorted(self.touched)
        document["entries"] = b64encode(zlib.compress(json.dumps(self.entries).encode(), 1)).decode()
        path = _file(paths, tree)
        with files.as_write_error("write", path):
            files.make_directory(path.parent)
            files.replace_file(path, encode(document, exact=True, place=place_of(trust.nonce, path)))


def _file(paths: LoopPaths, tree: str) -> Path:
    return paths.recheck / f"start-{tree}.json"
