"""``looks.jsonl``: every look at the held-out items, written down before it is made, so that no crash hides one."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from jumar.core.files import as_write_error, fsync_directory, make_directory, wait_for_lock, write_all
from jumar.core.text import escape, plural
from jumar.errors import ConflictError, LockedError, NotFoundError, StoreDamagedError
from jumar.judging.items.item import digest_of
from jumar.judging.proofs import PLANNED_LOOKS, ProofLooks
from jumar.learning.proof.make import look_at

FILE: Final = "looks.jsonl"
_FORMAT: Final = 1
_PATIENCE: Final = 10.0  # seconds; whoever holds the lock writes one line


@dataclass(frozen=True, slots=True)
class _Look:
    """``subject`` is the hash of what was looked at with what, ``at`` when; None of a line that a crash cut off: a look, too.

    ``seen`` is the hash of the verdicts that were seen, None while that was not written down.
    """

    subject: str | None
    at: datetime | None
    seen: str | None = None


def look_known(output: Path, subject: dict[str, Any]) -> int | None:
    """Return which look at the held-out items of ``output`` this one was, from 1; None where none was written down.

    Errors: :class:`jumar.errors.NotFoundError` where no look was.
    """
    try:
        known = _read((output / FILE).read_bytes())
    except OSError as error:
        raise NotFoundError(f"{escape(str(output / FILE))} cannot be read ({error.strerror})") from error
    key = digest_of(subject)
    return max((number for number, one in enumerate(known, start=1) if one.subject == key), default=None)


def count_look(
    output: Path, subject: dict[str, Any], *, at: datetime, extra: bool = False, known: str | None = None, told: int = 0
) -> tuple[ProofLooks, datetime]:
    """Write a look down, and return which one it is and when the first was begun; only then may the held-out items be looked at.

    ``subject`` is all that decides what will be seen: patterns, split, judge, rubric. The same one again, as after a crash, shows
    nothing new and is the same look, unless what the judge said of the held-out items is not what was seen then: ``known`` is the
    hash of the verdicts that are on file, None when there are none. ``told`` is how many looks a proof tells of.

    Errors: :class:`jumar.errors.StoreDamagedError` when fewer than these are written down,
    :class:`jumar.errors.ConflictError` for one beyond the plan without ``extra``, :class:`jumar.errors.LockedError`,
    :class:`jumar.errors.StoreWriteError`.
    """
    path = output / FILE
    key = digest_of(subject)
    with as_write_error("write", path):
        make_directory(output)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            if not wait_for_lock(fd, _PATIENCE):
                raise LockedError(f"{escape(str(path))} is being written by another process; try again when it is done")
            return _counted(fd, path, key, subject, at, extra=extra, known=known, told=told)
        finally:
            os.close(fd)


def record_seen(output: Path, subject: dict[str, Any], verdicts: str) -> None:
    """Write down what was seen at the last look at ``subject``: the hash of the held-out items' verdicts.

    Errors: :class:`jumar.errors.StoreWriteError`.
    """
    path = output / FILE
    looks = _read(path.read_bytes())
    key = digest_of(subject)
    if any(look.subject == key and look.seen == verdicts for look in looks):
        return
    with as_write_error("write", path):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            write_all(fd, json.dumps({"format": _FORMAT, "of": key, "seen": verdicts}).encode() + b"\n")
            os.fsync(fd)
        finally:
            os.close(fd)


def _counted(
    fd: int, path: Path, key: str, subject: dict[str, Any], at: datetime, *, extra: bool, known: str | None, told: int
) -> tuple[ProofLooks, datetime]:
    data = path.read_bytes()
    looks = _read(data)
    if len(looks) < told:
        raise StoreDamagedError(
            f"{escape(str(path))}: {plural(len(looks), 'evaluation')} written down, and proof.json beside it has number {told}; "
            "put the file back, or learn into another folder: nobody knows any more how often the held-out items were used"
        )
    first = min((look.at for look in looks if look.at is not None), default=at)
    for number, one in reversed(list(enumerate(looks, start=1))):
        if one.subject == key and one.seen in {None, known}:
            return look_at(number), first
    number = len(looks) + 1
    if number > PLANNED_LOOKS and not extra:
        raise ConflictError(
            f"{escape(str(path))}: the held-out items were used for {plural(len(looks), 'evaluation')}, and {PLANNED_LOOKS} were "
            "planned: each one more is another chance for luck. Learn from new items, or evaluate all the same with "
            "--extra-look, which the proof tells"
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
                if "of" in found:
                    looks = _with_seen(looks, str(found["of"]), str(found["seen"]))
                else:
                    looks.append(_Look(str(found["key"]), datetime.fromisoformat(found["at"])))
            except (ValueError, TypeError, KeyError):
                looks.append(_Look(None, None))
    return looks


def _with_seen(looks: list[_Look], key: str, seen: str) -> list[_Look]:
    """Return the looks, the last at ``key`` with what was seen then."""
    place = max((number for number, one in enumerate(looks) if one.subject == key), default=None)
    return [replace(one, seen=seen) if number == place else one for number, one in enumerate(looks)]
