"""Patterns on disk: a file is only ever replaced by one that was read back, and the one before it stays beside it.

``patterns.json.tmp`` is written and synced, read back and compared; the file as it was becomes ``patterns.json.backup``; then one
rename. Killed anywhere, the file is the old one or the new one, whole.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import BaseModel

from jumar.core.files import fsync_directory, make_directory, read_bytes, replace_file, sha256_bytes, write_all, write_once
from jumar.core.lock import writing
from jumar.core.text import escape
from jumar.errors import FormatTooNewError, NotFoundError, PatternLoadError, PatternSaveError, StoreDamagedError
from jumar.judging.patterns.models import FORMAT_VERSION, PatternSet, PatternV2
from jumar.judging.patterns.reading import WrongFormatError, parse_pattern_text, parse_patterns

MAX_CALIBRATION_HISTORY: Final = 50

_log = logging.getLogger("jumar.patterns")


class PatternBackupWarning(UserWarning):
    """A patterns file was damaged; its backup was read instead."""


class OtherFormatError(PatternSaveError):
    """The file to be written holds patterns of format 1, or of a newer version. Exit code 2."""

    exit_code: ClassVar[int] = 2


def load_patterns_safely(path: str | Path) -> list[PatternV2]:
    """Return the patterns of a file; otherwise as :func:`load_pattern_set`."""
    return load_pattern_set(path).patterns


def load_pattern_set(path: str | Path) -> PatternSet:
    """Return what a patterns file holds, from its backup when the file itself is damaged.

    The backup is announced by a :class:`PatternBackupWarning` and in the log ``jumar.patterns``. A file of format 1 or
    of a newer version is not damaged: no backup is read for it. Errors: :class:`PatternLoadError` when the file is missing, or
    both are unusable.
    """
    file = Path(path)
    try:
        return read_pattern_set(file)
    except (PatternsMissingError, WrongFormatError):
        raise
    except PatternLoadError as error:
        backup = _backup_of(file)
        try:
            found = read_pattern_set(backup)
        except PatternsMissingError:
            raise error from None
        except PatternLoadError as second:
            raise PatternLoadError(f"{error}; and its backup is no better: {second}") from error
        message = f"{error}; read {escape(str(backup))} instead, which is one save older"
        _log.warning(message, extra={"event": "patterns_backup_read", "path": str(file), "backup": str(backup)})
        warnings.warn(message, PatternBackupWarning, stacklevel=2)
        return found


class PatternsMissingError(PatternLoadError):
    """There is no such file."""


def _backup_of(file: Path) -> Path:
    return file.with_name(file.name + ".backup")


def read_pattern_set(file: Path) -> PatternSet:
    """Return what this very file holds. Errors: :class:`PatternLoadError`."""
    where = escape(str(file))
    try:
        data = read_bytes(file, links=True)
    except FileNotFoundError as error:
        hint = f"; its backup {escape(str(_backup_of(file)))} is there" if _backup_of(file).exists() else ""
        raise PatternsMissingError(f"there is no patterns file {where}{hint}") from error
    except OSError as error:
        raise PatternLoadError(f"{where}: {error.strerror}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PatternLoadError(f"{where}, line {line}: not JSON: not UTF-8") from error
    return parse_pattern_text(text, where)


def completed(patterns: Sequence[PatternV2] | PatternSet | Mapping[str, Any], file: Path) -> PatternSet:
    """Return a set, from a mapping too; a list with the other sections of ``file``, where there is one.

    Errors: :class:`PatternSaveError` for a mapping that is none, and when those sections cannot be read.
    """
    if isinstance(patterns, PatternSet):
        return patterns
    if isinstance(patterns, Mapping):
        try:
            return parse_patterns(dict(patterns), "what is to be saved")
        except PatternLoadError as error:
            raise PatternSaveError(f"not saved, {escape(str(file))} is as it was: {error}") from error
    wanted = list(patterns)
    if content_of(file) is None:
        return PatternSet.model_construct(version=FORMAT_VERSION, patterns=wanted)
    try:
        known = load_pattern_set(file)
    except PatternLoadError as error:
        raise PatternSaveError(
            f"{error}; a list of patterns would lose what else the file holds: save a PatternSet, or move the file away"
        ) from error
    return known.model_copy(update={"patterns": wanted})


def write_patterns(data: bytes, file: Path) -> None:
    """Replace ``file`` by ``data`` for whoever holds the lock; what it held becomes the backup when it can be read.

    Errors: :class:`PatternSaveError`, also as :func:`readable`: what is neither readable nor another format has to be kept by
    the caller.
    """
    before = content_of(file)
    is_good = before is not None and readable(before, file) is not None
    temporary = file.with_name(file.name + ".tmp")
    try:
        _write_checked(temporary, data, _mode(file))
        if before is not None and is_good:
            replace_file(_backup_of(file), before, mode=_mode(file))
        try:
            temporary.replace(file)
        except OSError:
            if content_of(file) != data:  # the answer may be lost when the rename was not
                raise
        fsync_directory(file.parent)
    except OSError as error:
        raise PatternSaveError(
            f"{escape(str(file))} was not written: {error.strerror}; free space or choose another place"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def serialised(patterns: PatternSet, file: Path) -> bytes:
    """Return the content of a patterns file, checked by reading it back. Errors: :class:`PatternSaveError`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pydantic's, about a value that is refused a line below
            document = patterns.model_dump(mode="json")
        data = (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")
        parse_pattern_text(data.decode("utf-8"), escape(str(file)))
    except (PatternLoadError, ValueError, RecursionError) as error:
        raise PatternSaveError(f"not saved, {escape(str(file))} is as it was: {error}") from error
    return data


def content_of(file: Path) -> bytes | None:
    """Return what ``file`` holds, None when there is none. Errors: :class:`PatternSaveError`."""
    try:
        return read_bytes(file, links=True)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PatternSaveError(f"{escape(str(file))} was not written: {error.strerror}") from error


def readable(data: bytes, file: Path) -> PatternSet | None:
    """Return the patterns in ``data``, what ``file`` holds before a save; None when it is damaged, or something else.

    Errors: :class:`OtherFormatError` for patterns of format 1 or of a newer version: a save would take them from whoever can
    read them.
    """
    where = escape(str(file))
    try:
        return parse_pattern_text(data.decode("utf-8-sig"), where)
    except WrongFormatError as error:
        raise OtherFormatError(
            f"not saved, {where} is as it was: {error}; save under another name, or move this file away"
        ) from error
    except (PatternLoadError, UnicodeDecodeError):
        return None


def _mode(file: Path) -> int:
    try:
        return stat.S_IMODE(file.stat().st_mode)
    except FileNotFoundError:
        return 0o644


def _write_checked(temporary: Path, data: bytes, mode: int) -> None:
    temporary.unlink(missing_ok=True)
    fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)
    found = read_bytes(temporary)
    if found != data:
        raise PatternSaveError(f"{escape(str(temporary))} does not hold what was written into it; the file is as it was")


def update_calibration_history(
    history: Sequence[Mapping[str, Any]], entry: Mapping[str, Any] | BaseModel
) -> list[dict[str, Any]]:
    """Return ``history``, oldest first, with ``entry`` at its end: at most 50, of which the first stays.

    The list that was given is not changed.
    """
    new = entry.model_dump(mode="json") if isinstance(entry, BaseModel) else dict(entry)
    found = [*(dict(metrics) for metrics in history), new]
    if len(found) <= MAX_CALIBRATION_HISTORY:
        return found
    return [found[0], *found[-(MAX_CALIBRATION_HISTORY - 1) :]]


FORMAT: Final = 1
_SHORT: Final = 12


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
        self.path: Final = Path(os.path.realpath(path))  # a rename would replace a link to the file
        self.directory: Final = self.path.with_name(self.path.name + ".versions")
        self._records, self._objects = self.directory / "log", self.directory / "objects"
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
        if isinstance(patterns, Mapping):
            patterns = completed(patterns, self.path)  # what is no set is refused before anything is locked
        with writing(self.path):
            return self._save(patterns, message)

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
            place = self.directory / "unreadable" / sha256_bytes(data)
            make_directory(place.parent)
            _write_whole(place, data)
            message = f"{escape(str(self.path))} could not be read as patterns; what it held is kept as {escape(str(place))}"
            _log.warning(message, extra={"event": "patterns_unreadable_kept", "path": str(self.path), "kept": str(place)})
            warnings.warn(message, PatternReplacedWarning, stacklevel=2)
            return
        self._keep(data)
        same = [save.number for save in known if save.hash == sha256_bytes(data)]
        by = f", which is save {same[-1]} put back" if same else ", saved by another program" if known else ""
        self._append(data, len(found.patterns), f"found in the file{by}")

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
            record: Any = json.loads(read_bytes(file))
            if record["format"] > FORMAT:
                raise FormatTooNewError(f"{escape(str(file))}: format {record['format']} of a newer jumar; update jumar")
            number, patterns = int(record["number"]), int(record["patterns"])
            return Version(number, str(record["hash"]), patterns, str(record["at"]), str(record["message"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StoreDamagedError(f"{escape(str(file))} is not a record of a version: {escape(str(error))}") from error

    def _parsed(self, version: str) -> PatternSet:
        place = self._objects / f"{version}.json"
        try:
            data = read_bytes(place)
        except FileNotFoundError as error:
            raise StoreDamagedError(f"{escape(str(place))} is missing: version {version[:_SHORT]} is lost") from error
        if sha256_bytes(data) != version:
            raise StoreDamagedError(f"{escape(str(place))} was altered or cut off: it is not version {version[:_SHORT]} any more")
        return parse_pattern_text(data.decode("utf-8-sig"), escape(str(place)))


def _write_whole(place: Path, data: bytes) -> None:
    try:
        write_once(place, data)
    except FileExistsError:
        if read_bytes(place) != data:  # cut off by a crash of the machine: the right content is here
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
