"""``looks.jsonl``: every look at the sealed items, written down before it is made, so that no crash hides one."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from jumar.errors import ConflictError, LockedError, NotFoundError
from jumar.files import as_write_error, fsync_directory, make_directory, wait_for_lock, write_all
from jumar.judging.digests import digest_of
from jumar.judging.proofs import PLANNED_LOOKS, ProofLooks
from jumar.learning.proof import look_at
from jumar.text import escape

__all__ = ["FILE", "count_look", "look_known", "looks_made"]

FILE: Final = "looks.jsonl"
_FORMAT: Final = 1
_PATIENCE: Final = 10.0  # seconds; whoever holds the lock writes one line


@dataclass(frozen=True, slots=True)
class _Look:
    """``subject`` is the hash of what was looked at with what, ``at`` when; None of a line that a crash cut off: a look, too."""

    subject: str | None
    at: datetime | None


def looks_made(output: Path) -> int:
    """Return how many looks at the sealed items of ``output`` were begun."""
    try:
        return len(_read((output / FILE).read_bytes()))
    except FileNotFoundError:
        return 0


def look_known(output: Path, subject: dict[str, Any]) -> int | None:
    """Return which look at the sealed items of ``output`` this one was, from 1; None where none was written down.

    Errors: :class:`jumar.errors.NotFoundError` where no look was.
    """
    try:
        known = _read((output / FILE).read_bytes())
    except OSError as error:
        raise NotFoundError(f"{escape(str(output / FILE))} cannot be read ({error.strerror})") from error
    key = digest_of(subject)
    return next((number for number, one in enumerate(known, start=1) if one.subject == key), None)


def count_look(output: Path, subject: dict[str, Any], *, at: datetime, extra: bool = False) -> tuple[ProofLooks, datetime]:
    """Write a look down, and return which one it is and when the first was begun; only then may the sealed items be looked at.

    ``subject`` is all that decides what will be seen: patterns, split, judge, rubric. The same one again, as after a crash, shows
    nothing new and is the same look. Errors: :class:`jumar.errors.ConflictError` for one beyond the plan without ``extra``,
    :class:`jumar.errors.LockedError`, :class:`jumar.errors.StoreWriteError`.
    """
    path = output / FILE
    key = digest_of(subject)
    with as_write_error("write", path):
        make_directory(output)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            if not wait_for_lock(fd, _PATIENCE):
                raise LockedError(f"{escape(str(path))} is being written by another process; try again when it is done")
            return _counted(fd, path, key, subject, at, extra=extra)
        finally:
            os.close(fd)


def _counted(fd: int, path: Path, key: str, subject: dict[str, Any], at: datetime, *, extra: bool) -> tuple[ProofLooks, datetime]:
    data = path.read_bytes()
    known = _read(data)
    first = min((one.at for one in known if one.at is not None), default=at)
    for number, one in enumerate(known, start=1):
        if one.subject == key:
            return look_at(number), first
    number = len(known) + 1
    if number > PLANNED_LOOKS and not extra:
        raise ConflictError(
            f"{escape(str(path))}: the sealed items were looked at {len(known)} times, and {PLANNED_LOOKS} looks were planned: "
            "each one more is another chance for luck. Learn from new items, or look all the same with --extra-look, which the "
            "proof tells"
        )
    line = {"format": _FORMAT, "number": number, "at": at.isoformat(), "extra": number > PLANNED_LOOKS, "key": key, **subject}
    cut = b"\n" if data and not data.endswith(b"\n") else b""
    write_all(fd, cut + json.dumps(line, ensure_ascii=True).encode() + b"\n")
    os.fsync(fd)
    fsync_directory(path.parent)
    return look_at(number), first


def _read(data: bytes) -> list[_Look]:
    looks: list[_Look] = []
    for line in data.split(b"\n"):
        if line.strip():
            try:
                found: Any = json.loads(line)
                looks.append(_Look(str(found["key"]), datetime.fromisoformat(found["at"])))
            except (ValueError, TypeError, KeyError):
                looks.append(_Look(None, None))
    return looks
