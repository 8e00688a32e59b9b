"""Beside the original tracker: what it added to a tracker's directory since jumar's own views is taken over at the next open.

Only where ``BestOutputTracker`` records. The loop of a run has its scores from its checks, and an agent could write such a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from jumar.core import files, leftovers
from jumar.core.lock import LoopLock
from jumar.core.text import escape, number
from jumar.errors import ConflictError, LockedError, StoreDamagedError
from jumar.loop.store.creation import (
    FOREIGN_ITERATIONS,
    FOREIGN_TRACKING,
    Past,
    build_iteration,
    read_tracking,
    snapshot_of,
    write_cleaned,
)
from jumar.loop.store.layout import METRICS, LoopPaths
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.reading import cleaned_iterations, iteration_numbers, read_view
from jumar.loop.store.staging import whole_or_gone
from jumar.model.records import IterationRecord, IterationView

ORIGIN: Final = "best-output-tracking.json"
"""The ``origin`` of an iteration that was taken over."""

WRITTEN: Final = "tracking"
"""The key of ``best-tracker.json`` that tells the tracking file that jumar wrote: ``size``, ``mtime_ns``, ``content_hash``."""


_LOOKS: Final = 3
_PAUSE: Final = 0.05  # seconds


def take_over(reader: LoopReader) -> None:
    """Make iterations of those that the original tracker added; its snapshots move to ``foreign-iterations/`` and are copied.

    Cut off anywhere, the next call goes on. While another process holds the lock nothing is done: it takes over itself. Errors:
    :class:`ConflictError` for an iteration that both recorded, :class:`StoreDamagedError` for a file that cannot be read;
    nothing is changed then. :class:`jumar.errors.StoreWriteError`.
    """
    if is_due(reader) and tuple(_new(reader, _read(reader.paths))):
        with contextlib.suppress(LockedError), LoopLock(reader.paths.lock):
            take_over_now(reader)


def take_over_now(reader: LoopReader) -> bool:
    """Do so where there is something to take over; the caller holds the lock. Returns whether there was. Errors: as above."""
    if not is_due(reader):
        return False
    paths = reader.paths
    with files.as_write_error("take over what is in", paths.directory):
        found = _read(paths)
        new = tuple(_new(reader, found))
        for directory in paths.subdirectories:  # archives and git keep no empty ones
            files.make_directory(directory)
        for record in new:
            _set_aside(paths, record.iteration_number, found)
        _decide_gone(
            reader, [each.iteration_number for each in new if _snapshot(paths, each.iteration_number, found) is None], found
        )
        for record in new:
            _add(reader, replace(record, origin=ORIGIN), found)
        paths.best_view.unlink(missing_ok=True)  # so that the views are made anew, with what that file lacks
    return True


def is_due(reader: LoopReader) -> bool:
    """Return whether the tracking file is another than jumar wrote last, or imported: by its content, as times may lie."""
    paths = reader.paths
    if not reader.is_shared or not paths.tracking_view.is_file():  # what is no file makes way when the view is written
        return False
    told = best_view(paths).get(WRITTEN)
    written = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
    status = paths.tracking_view.stat()
    if (written.get("size"), written.get("mtime_ns")) == (status.st_size, status.st_mtime_ns):
        return False
    data = files.read_bytes(paths.tracking_view, links=True)  # the original follows a link
    return written.get("content_hash") != files.sha256_bytes(data) and not files.holds(paths.directory / FOREIGN_TRACKING, data)


def best_view(paths: LoopPaths) -> dict[str, Any]:
    """Return ``best-tracker.json`` as it stands, empty when it is missing or unreadable: then it is made again."""
    try:
        found: object = json.loads(files.content_of(paths.best_view) or b"")
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _read(paths: LoopPaths) -> Past:
    """Read the tracking file; where it is half a file, once more a little later: the original does not write it in one step."""
    path = Path(os.path.realpath(paths.tracking_view))
    for _ in range(_LOOKS):
        with contextlib.suppress(StoreDamagedError):
            return read_tracking(path)
        time.sleep(_PAUSE)
    return read_tracking(path, "mend it, or move it away: jumar writes it again")


def _new(reader: LoopReader, found: Past) -> Iterator[IterationRecord]:
    """Yield what the file has and the loop has not. All are compared before the first one is added."""
    paths = reader.paths
    known = [each for each in iteration_numbers(set(files.names_in(paths.iterations))) if _is_ours(paths, each)]
    for record in found.records:
        if record.iteration_number in known:
            view = read_view(
                os.fspath(paths.iteration(record.iteration_number) / METRICS), record.iteration_number, reader.trust.read
            )
            _refuse_conflict(paths, view, record)
    yield from (record for record in found.records if record.iteration_number not in known)


def _is_ours(paths: LoopPaths, each: int) -> bool:
    return (paths.iteration(each) / METRICS).exists()


def _refuse_conflict(paths: LoopPaths, ours: IterationView, theirs: IterationRecord) -> None:
    same = ours.score == theirs.quality_score and ours.verification == theirs.verification_status
    if not same or dict(ours.dimensions) != dict(theirs.dimensions):
        file, has = escape(os.fspath(paths.tracking_view)), number(theirs.quality_score)
        raise ConflictError(
            f"iteration {ours.number} was recorded twice: the loop has the score {number(ours.score)} ({ours.verification}), "
            f"{file} has {has} ({theirs.verification_status}). Give the one in the file another number, or move the file away "
            "to keep the loop's: jumar writes it again"
        )


def _set_aside(paths: LoopPaths, each: int, found: Past) -> None:
    """Move what the original has in the place of an iteration, and its snapshot, to ``foreign-iterations/``."""
    aside = paths.directory / FOREIGN_ITERATIONS
    for name in found.directories[each]:
        there = paths.iterations / name
        if os.path.lexists(there) and not (there / METRICS).exists():
            files.make_directory(aside)
            taken = os.path.lexists(aside / name)
            files.rename_new(there, aside / (f"{name}-{secrets.token_hex(4)}" if taken else name))


def _snapshot(paths: LoopPaths, each: int, found: Past) -> Path | None:
    return snapshot_of(paths.directory / FOREIGN_ITERATIONS, found.directories[each])


def _decide_gone(reader: LoopReader, gone: list[int], found: Past) -> None:
    """Decide that these iterations have no snapshot, before there are any: cut off in between, they would be damaged."""
    reader.refresh()
    decisions = reader.decisions()
    gone = sorted(set(gone) - cleaned_iterations(decisions))
    if gone:
        number = 1 + max((each.number for each in decisions), default=0)
        write_cleaned(reader.paths, gone, found, reader.nonce, number=number)


def _add(reader: LoopReader, record: IterationRecord, found: Past) -> None:
    paths, each = reader.paths, record.iteration_number
    built = paths.pending / leftovers.temporary_name()
    with whole_or_gone(built):
        build_iteration(built, record, _snapshot(paths, each, found), None, reader.nonce)
        files.sync_tree(built)
        files.rename_new(built, paths.iteration(each))
