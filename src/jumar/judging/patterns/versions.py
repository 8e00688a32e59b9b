"""Every saved set of patterns by its hash, beside the file: rolling back needs nothing else.

``patterns.json.versions/`` holds ``objects/<sha256>.json``, the file as it was saved, and ``log/<number>.json``, one
record a save. Both are only ever added to. What somebody else wrote into the file is recorded before it is overwritten; when it
cannot be read, it is no version, and lies byte for byte in ``unreadable/<sha256>``.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from jumar.core.files import make_directory, sha256_bytes, write_once
from jumar.core.lock import writing
from jumar.core.text import escape
from jumar.errors import FormatTooNewError, NotFoundError, PatternSaveError, StoreDamagedError
from jumar.judging.patterns.models import PatternSet, PatternV2
from jumar.judging.patterns.reading import parse_pattern_text
from jumar.judging.patterns.storage import (
    as_set,
    completed,
    content_of,
    load_pattern_set,
    readable,
    real_path,
    serialised,
    write_patterns,
)

FORMAT: Final = 1
_SHORT: Final = 12

_log = logging.getLogger("jumar.patterns")


class PatternReplacedWarning(UserWarning):
    """A file that could not be read was replaced by patterns; its bytes are kept."""


def save_patterns_safely(patterns: Sequence[PatternV2] | PatternSet | Mapping[str, Any], path: str | Path) -> None:
    """Write patterns so that they can be read again, or leave the file as it was.

    Every save is a version of :class:`PatternStore`. A list replaces the patterns of an existing file and keeps its other
    sections; a mapping is a whole set, such as :func:`jumar.judging.patterns.migrate_existing_patterns` returns. Errors: as
    :meth:`PatternStore.save`, and :class:`PatternSaveError` when the other sections of a damaged file would be lost.
    """
    PatternStore(path).save(patterns, "saved")


@dataclass(frozen=True, slots=True)
class Version:
    """One save: ``number`` from 1, the hash of the content, how many patterns it has, and when and why it was made."""

    number: int
    hash: str
    patterns: int
    at: str
    message: str

    @property
    def short(self) -> str:
        """The first characters of the hash, which are enough to name it."""
        return self.hash[:_SHORT]


@dataclass(frozen=True, slots=True)
class PatternChange:
    """A pattern that is in both sets: ``fields`` maps what differs to its values before and after."""

    id: str
    fields: dict[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class PatternDiff:
    """What differs from one set to another: patterns by id, in the order of their file, and the other sections by name."""

    added: tuple[PatternV2, ...]
    removed: tuple[PatternV2, ...]
    changed: tuple[PatternChange, ...]
    sections: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.sections)


def _now() -> datetime:
    return datetime.now(UTC)


class PatternStore:
    """The versions of one patterns file. ``now`` is the clock of the log.

    The file and its versions are written under the lock ``patterns.json.lock``. Nothing is made on disk before the first save.
    """

    def __init__(self, path: str | Path, *, now: Callable[[], datetime] = _now) -> None:
        self.path: Final = real_path(path)
        self.directory: Final = self.path.with_name(self.path.name + ".versions")
        self._now = now

    def load(self) -> PatternSet:
        """Return what the file holds; as :func:`jumar.judging.patterns.load_pattern_set`."""
        return load_pattern_set(self.path)

    def save(self, patterns: Sequence[PatternV2] | PatternSet | Mapping[str, Any], message: str = "") -> str:
        """Save a set, record it, and return the hash of its content, 64 characters.

        A list is saved with the other sections of the file. Saving what the file holds already is recorded too. Bytes that
        cannot be read as patterns are kept below ``unreadable/``, with a :class:`PatternReplacedWarning`. Errors:
        :class:`PatternSaveError` when a value is out of bounds, the disk refuses, or the file is of format 1 or of a newer
        version, after which file and log are as they were, or the file is and the log has what somebody else had written into
        it; :class:`jumar.errors.LockedError` while another process writes it.
        """
        wanted = as_set(patterns, self.path) if isinstance(patterns, Mapping) else patterns
        with writing(self.path):
            return self._save(wanted, message)

    def log(self) -> list[Version]:
        """Return the saves, oldest first. Errors: :class:`StoreDamagedError`, :class:`FormatTooNewError`."""
        return [self._record(file) for file in sorted(self._records.glob("*.json"))] if self._records.is_dir() else []

    def get(self, version: str) -> PatternSet:
        """Return the set with this hash, or with the only one that begins so (4 characters at least).

        Errors: :class:`NotFoundError`, :class:`StoreDamagedError` when the content is not what its hash says.
        """
        return self._parsed(self.resolve(version))

    def diff(self, before: str, after: str | None = None) -> PatternDiff:
        """Return what differs from version ``before`` to ``after``, by default to the file as it is. Errors: as :meth:`get`."""
        return _difference(self.get(before), self.load() if after is None else self.get(after))

    def rollback(self, version: str) -> str:
        """Save a recorded set again and return the hash of what the file holds now.

        That is another one than was asked for when the version was found in the file in another shape, or with other blanks:
        what is written has one shape. Nothing is lost: what the file held stays in the log.

        Errors: as :meth:`get` and :meth:`save`.
        """
        with writing(self.path):
            wanted = self.resolve(version)
            return self._save(self._parsed(wanted), f"rolled back to {wanted[:_SHORT]}")

    def resolve(self, version: str) -> str:
        """Return the whole hash that ``version`` is, or begins. Errors: :class:`NotFoundError`."""
        known = dict.fromkeys(one.hash for one in self.log())
        found = [one for one in known if one.startswith(version.lower())]
        if len(found) == 1 and len(version) >= 4:
            return found[0]
        name = f"version '{escape(version)}' of {escape(str(self.path))}"
        if len(version) < 4 or len(found) > 1:
            raise NotFoundError(f"{name} could be several, or is too short: give at least 4 characters, and as many as it takes")
        raise NotFoundError(f"there is no {name}; `jumar patterns log {escape(str(self.path))}` lists them")

    @property
    def _records(self) -> Path:
        return self.directory / "log"

    @property
    def _objects(self) -> Path:
        return self.directory / "objects"

    def _save(self, patterns: Sequence[PatternV2] | PatternSet, message: str) -> str:
        wanted = completed(patterns, self.path)
        data = serialised(wanted, self.path)
        before = content_of(self.path)
        found = None if before is None else readable(before, self.path)
        try:
            make_directory(self._objects)
            make_directory(self._records)
            if before is not None:
                self._keep_foreign(before, found)
            self._keep(data)
            write_patterns(data, self.path)
            return self._append(data, len(wanted.patterns), message)
        except OSError as error:
            raise PatternSaveError(f"{escape(str(self.directory))}: {error.strerror}; nothing was recorded") from error

    def _keep_foreign(self, data: bytes, found: PatternSet | None) -> None:
        """Record what the file holds when it is not the last save: another program's work is not overwritten for good."""
        known = self.log()
        if known and known[-1].hash == sha256_bytes(data):
            return
        if found is None:
            self._keep_unreadable(data)
            return
        self._keep(data)
        self._append(data, len(found.patterns), "found in the file, saved by another program" if known else "found in the file")

    def _keep_unreadable(self, data: bytes) -> None:
        folder = self.directory / "unreadable"
        make_directory(folder)
        place = folder / sha256_bytes(data)
        _write_whole(place, data)
        message = f"{escape(str(self.path))} could not be read as patterns; what it held is kept as {escape(str(place))}"
        _log.warning(message, extra={"event": "patterns_unreadable_kept", "path": str(self.path), "kept": str(place)})
        warnings.warn(message, PatternReplacedWarning, stacklevel=2)

    def _keep(self, data: bytes) -> None:
        _write_whole(self._objects / f"{sha256_bytes(data)}.json", data)

    def _append(self, data: bytes, patterns: int, message: str) -> str:
        known = self.log()
        at = self._now().astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        version = Version(known[-1].number + 1 if known else 1, sha256_bytes(data), patterns, at, message)
        record = json.dumps({"format": FORMAT, **asdict(version)}, indent=2) + "\n"
        write_once(self._records / f"{version.number:06d}.json", record.encode("ascii"))
        return version.hash

    def _record(self, file: Path) -> Version:
        try:
            found = json.loads(file.read_bytes())
            if isinstance(found, dict):
                record = cast("dict[str, Any]", found)
                if record["format"] > FORMAT:
                    raise FormatTooNewError(f"{escape(str(file))}: format {record['format']} of a newer jumar; update jumar")
                return Version(
                    int(record["number"]), str(record["hash"]), int(record["patterns"]), str(record["at"]), str(record["message"])
                )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StoreDamagedError(f"{escape(str(file))} is not a record of a version: {escape(str(error))}") from error
        raise StoreDamagedError(f"{escape(str(file))} is not a record of a version")

    def _parsed(self, version: str) -> PatternSet:
        place = self._objects / f"{version}.json"
        try:
            data = place.read_bytes()
        except FileNotFoundError as error:
            raise StoreDamagedError(f"{escape(str(place))} is missing: version {version[:_SHORT]} is lost") from error
        if sha256_bytes(data) != version:
            raise StoreDamagedError(f"{escape(str(place))} was altered or cut off: it is not version {version[:_SHORT]} any more")
        return parse_pattern_text(data.decode("utf-8-sig"), escape(str(place)))


def _write_whole(place: Path, data: bytes) -> None:
    try:
        write_once(place, data)
    except FileExistsError:
        if place.read_bytes() != data:  # cut off by a crash of the machine: the right content is here
            place.unlink()
            write_once(place, data)


def _difference(before: PatternSet, after: PatternSet) -> PatternDiff:
    old = {pattern.id: pattern for pattern in before.patterns}
    new = {pattern.id: pattern for pattern in after.patterns}
    changes: list[PatternChange] = []
    for name, pattern in new.items():
        if name in old and pattern != old[name]:
            was, now = old[name].model_dump(mode="json"), pattern.model_dump(mode="json")
            fields = {key: (was.get(key), now.get(key)) for key in {**was, **now} if was.get(key) != now.get(key)}
            changes.append(PatternChange(name, fields))
    one, other = (found.model_dump(mode="json", exclude={"patterns"}) for found in (before, after))
    return PatternDiff(
        added=tuple(pattern for name, pattern in new.items() if name not in old),
        removed=tuple(pattern for name, pattern in old.items() if name not in new),
        changed=tuple(changes),
        sections=tuple(sorted(key for key in {**one, **other} if one.get(key) != other.get(key))),
    )
