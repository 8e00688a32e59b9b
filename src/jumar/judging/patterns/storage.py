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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import BaseModel

from jumar.core.files import fsync_directory, replace_file, write_all
from jumar.core.text import escape
from jumar.errors import PatternLoadError, PatternSaveError
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

    The backup is announced by a :class:`PatternBackupWarning` and in the log ``jumar.judging.patterns``. A file of format 1 or
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
        data = file.read_bytes()
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


def as_set(patterns: PatternSet | Mapping[str, Any], file: Path) -> PatternSet:
    """Return a set of patterns, from a mapping too. Errors: :class:`PatternSaveError` when it is none."""
    if isinstance(patterns, PatternSet):
        return patterns
    try:
        return parse_patterns(dict(patterns), "what is to be saved")
    except PatternLoadError as error:
        raise PatternSaveError(f"not saved, {escape(str(file))} is as it was: {error}") from error


def real_path(path: str | Path) -> Path:
    """Return the file itself: a rename would replace a link to it."""
    return Path(os.path.realpath(path))


def completed(patterns: Sequence[PatternV2] | PatternSet, file: Path) -> PatternSet:
    """Return a set as it is; a list with the other sections of ``file``, where there is one.

    Errors: :class:`PatternSaveError` when those sections cannot be read.
    """
    if isinstance(patterns, PatternSet):
        return patterns
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
        return file.read_bytes()
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
    found = temporary.read_bytes()
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
