"""The files beside the records that people and other tools read: made from the records, written by the lock holder only.

``best-tracker.json`` is written last and says what all of them derive from; as long as that is what is on disk, nothing is
written. It and ``best-output-tracking.json`` are the records in the two seeds' own formats: the original tool does arithmetic on
every number of an iteration, so what is unknown is 0 there, and a key of ours beside it says that it is not known. Keys of ours
come after the original's: ``baseline`` (iteration 0), ``derived_from``, ``*_known``, ``status``.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import hashlib
import json
import os
import secrets
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jumar.core import files, leftovers
from jumar.core.codec import encode
from jumar.core.given import as_given
from jumar.core.redaction import current
from jumar.errors import LockedError
from jumar.loop.ranking.choose import running_best
from jumar.loop.report.diff import Holds, changes_from_start, output_holds
from jumar.loop.report.page import render_markdown
from jumar.loop.report.read import LoopReport, load_report
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.restore import plan_restore, restore
from jumar.loop.store.layout import iteration_name
from jumar.loop.store.takeover import WRITTEN, best_view, is_due, take_over_now
from jumar.model import IterationRecord, SelectionCriteria

if TYPE_CHECKING:
    from jumar.loop.store.loop_store import LoopStore

_TURNS: Final = 5  # times that the original may write its file while jumar makes its own of it
MOST_ARTIFACTS_NAMED: Final = 500
"""With more artifacts than this an iteration lists their directory: a long loop over a large tree has millions of them."""


def refresh_views(store: LoopStore, *, at: str, criteria: SelectionCriteria | None = None, force: bool = False) -> bool:
    """Bring ``final-output/``, the tracking view, the report and ``best-tracker.json`` up to date; returns whether they are.

    ``at`` is the time that the tracking view names; ``criteria`` None: those of the loop's configuration. Nothing is written,
    and no lock is taken, when they are fresh already, unless ``force`` is set. While another process holds the lock, nothing is
    written and False is returned: that process will refresh them. Errors: :class:`jumar.errors.StoreWriteError`,
    :class:`jumar.errors.StoreDamagedError`, and those of :func:`jumar.loop.store.takeover.take_over`.
    """
    if not force and _is_fresh(store):
        return True
    try:
        with store.lock():
            for _ in range(_TURNS):
                seen = _state(store.paths.tracking_view) if store.is_shared else None
                if take_over_now(store):  # what this would overwrite
                    store.refresh()
                if not force and _is_fresh(store):
                    return True
                with files.as_write_error("write the views of", store.paths.directory), contextlib.suppress(_ChangedError):
                    _write(store, at, criteria, seen, force=force)
                    return True
    except LockedError:
        pass
    return False


def _derived_from(store: LoopStore) -> dict[str, Any]:
    numbers = store.iteration_numbers()
    decisions = store.decisions()
    return {
        "iteration": numbers[-1] if numbers else None,
        "decision": decisions[-1].number if decisions else None,
        "reading": _last_reading(store.paths.readings),
        "iterations": len(numbers),
    }


def _last_reading(directory: Path) -> str | None:
    try:
        names = [path.name for path in directory.iterdir() if not path.name.startswith(".")]
    except OSError:
        return None
    return max(names, default=None)


def _is_fresh(store: LoopStore) -> bool:
    if is_due(store):
        return False
    written = best_view(store.paths)
    if written.get("derived_from") != _derived_from(store):
        return False
    beside = (store.paths.tracking_view, store.paths.report_view)
    if not all(path.is_file() for path in beside):
        return False
    return written.get("final_output") is None or store.paths.final_output.is_dir()


def _write(store: LoopStore, at: str, criteria: SelectionCriteria | None, seen: object, *, force: bool) -> None:
    report = load_report(store, criteria=criteria)
    derived_from = _derived_from(store)
    for view in (store.paths.tracking_view, store.paths.report_view, store.paths.best_view):
        if os.path.lexists(view) and files.content_of(view) is None:  # a directory cannot be replaced, a FIFO never ends
            store.quarantine(view)
    output = _fill_output(store, report, force=force)
    records = report.records if report.artifacts_complete else store.records()
    written = _replace(store.paths.tracking_view, tracking_chunks(report, records, at=at, derived_from=derived_from), seen)
    files.replace_file(store.paths.report_view, current().redact_bytes(render_markdown(report).encode()))
    beside = {WRITTEN: written} if store.is_shared else {}
    document = best_document(report, derived_from=derived_from, output={**output, **beside})
    files.replace_file(store.paths.best_view, encode(document))


def _fill_output(store: LoopStore, report: LoopReport, *, force: bool) -> dict[str, Any]:
    """Bring ``final-output/`` up to date and return what it holds now: the iteration, how much of it, what was deleted."""
    there = store.paths.final_output.is_dir()
    written = best_view(store.paths) if there else {}
    held = {
        "final_output": written.get("final_output"),
        "final_output_holds": written.get("final_output_holds", "full"),
        "final_output_deleted": written.get("final_output_deleted", []),
    }
    if report.chosen is None or not store.has_snapshot(report.chosen):
        return held
    found = changes_from_start(report) if output_holds(report) == "changed" else None
    wanted = {
        "final_output": report.chosen,
        "final_output_holds": "full" if found is None else "changed",
        "final_output_deleted": [] if found is None else [one.path for one in found.removed],
    }
    if force or not there or wanted != held:
        # Until the new one is in place nothing may claim to know what is there.
        store.paths.best_view.unlink(missing_ok=True)
        fill_final_output(store, report.chosen, None if found is None else {one.path for one in (*found.added, *found.changed)})
    return wanted


def held_output(store: LoopStore) -> Holds | None:
    """Return how much of the selected iteration ``final-output/`` holds as it lies there; None where there is none."""
    written = best_view(store.paths)
    return None if written.get("final_output") is None else written.get("final_output_holds", "full")


class _ChangedError(Exception):
    """The original tracker wrote its file meanwhile."""


def _state(path: Path) -> tuple[int, ...]:
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns
    return ()


def _refuse_changed(path: Path, seen: object) -> None:
    if seen is not None and os.path.lexists(path) and _state(path) != seen:
        raise _ChangedError


def _replace(path: Path, chunks: Iterable[bytes], seen: object) -> dict[str, Any]:
    """Like :func:`jumar.core.files.replace_file`, without the whole content in memory; returns what tells it from another.

    Raises :class:`_ChangedError`, with nothing written, where the file is not as it was ``seen`` any more (None: whatever it is).
    """
    temporary = path.with_name(leftovers.temporary_name())
    digest = hashlib.sha256()
    try:
        with temporary.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
                digest.update(chunk)
            file.flush()
            os.fsync(file.fileno())
            status = os.fstat(file.fileno())
        _refuse_changed(path, seen)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    files.fsync_directory(path.parent)
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "content_hash": digest.hexdigest()}


# --------------------------------------------------------------------------------------------- in the seeds' own formats


def tracking_chunks(
    report: LoopReport, records: Iterable[IterationRecord], *, at: str, derived_from: dict[str, Any]
) -> Iterator[bytes]:
    """Yield the tracking view piece by piece, one iteration at a time, so that it is never in memory as a whole.

    ``records`` are those of the report, with their artifacts. ``at`` becomes ``last_updated``.
    """
    head = {
        "loop_id": report.loop_id,
        "config": {
            "storage_path": report.storage_path,
            "selection": report.criteria.to_json(),
            "keep_all_iterations": report.config.get("keep_all_iterations", True) is not False,
            "quality_weights": dict(report.weights),
        },
    }
    yield _dump(head).removesuffix(b"\n}") + b',\n  "iterations": ['
    baseline: dict[str, Any] | None = None
    begun = False
    for record in records:
        entry = tracking_entry(record, report.storage_path)
        if record.iteration_number == 0:
            baseline = entry
            continue
        yield (b"," if begun else b"") + b"\n    " + _dump(entry).replace(b"\n", b"\n    ")
        begun = True
    yield b"\n  ],\n" if begun else b"],\n"
    best = running_best(view for view in report.views if view.number > 0)
    tail: dict[str, Any] = {"best_iteration_number": best and best.number, "last_updated": at}
    if baseline is not None:
        tail["baseline"] = baseline
    tail["derived_from"] = derived_from
    yield _dump(tail).removeprefix(b"{\n") + b"\n"


def _dump(data: dict[str, Any]) -> bytes:
    return json.dumps(as_given(data), allow_nan=False, indent=2).encode("ascii")


def tracking_entry(record: IterationRecord, storage_path: str) -> dict[str, Any]:
    """Return one iteration with the original's fields in its order. Paths begin with ``storage_path``, as the original's do.

    ``snapshot_path`` ends in ``iteration-NNN``, by which the original's readers know an iteration. In our layout the files lie
    one level deeper, in the directory ``artifacts/`` that the record itself names, and ``artifacts`` lists them there.

    An invalid score stays null: in the original's sums it counts as nothing, and it is never the best.
    """
    inside = f"iterations/{iteration_name(record.iteration_number)}"
    here = record.snapshot_path.removesuffix(inside)
    snapshot = f"{storage_path.rstrip('/')}/{inside}" if storage_path else inside

    def as_stored(path: str) -> str:
        return snapshot + path.removeprefix(here + inside) if path.startswith(here + inside) else path

    many = len(record.artifacts) > MOST_ARTIFACTS_NAMED
    entry: dict[str, Any] = {
        "iteration_number": record.iteration_number,
        "timestamp": record.timestamp,
        "quality_score": record.quality_score,
        "quality_delta": record.quality_delta,
        "dimensions": dict(record.dimensions),
        "tokens_used": record.tokens_used or 0,
        "token_cost_usd": record.token_cost_usd or 0,
        "execution_time_ms": record.execution_time_ms or 0,
        "verification_status": record.verification_status,
        "snapshot_path": snapshot,
        "artifacts": [f"{snapshot}/artifacts"] if many else [as_stored(path) for path in record.artifacts],
        "reflections": list(record.reflections),
        "status": record.status,
    }
    known = {
        "tokens_known": record.tokens_used is not None,
        "token_cost_known": record.token_cost_usd is not None,
        "execution_time_known": record.execution_time_ms is not None,
        "artifacts_listed": not many,
    }
    return entry | {name: False for name, value in known.items() if not value}


def best_document(report: LoopReport, *, derived_from: dict[str, Any], output: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``best-tracker.json``: seed 1's running best, verified or not, and ``output``: what ``final-output/`` holds."""
    current: dict[str, Any] | None = None
    if report.leaders:
        best = report.record(report.leaders[-1])
        path = f"{report.storage_path.rstrip('/')}/iterations/{iteration_name(best.iteration_number)}/artifacts/"
        current = {"iteration": best.iteration_number, "quality_score": best.quality_score, "artifacts_path": path}
    return {"current_best": current, **output, "derived_from": derived_from}


# -------------------------------------------------------------------------------------------------------------- final-output/


_PREFIX: Final = f"{leftovers.TEMPORARY}final-output-"
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_NOT_HERE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


def fill_final_output(store: LoopStore, iteration: int, only: Collection[str] | None = None) -> None:
    """Make ``final-output/`` hold what iteration ``iteration`` holds, or the paths ``only`` of it; the caller holds the lock.

    Errors: :class:`jumar.errors.StoreWriteError`, with the old directory still there;
    :class:`jumar.errors.StoreDamagedError` when the snapshot lacks a file.
    """
    target = store.paths.final_output
    with files.as_write_error("fill", target):
        for leftover in store.paths.directory.glob(f"{_PREFIX}*"):
            leftovers.remove_any(leftover)
        built = store.paths.directory / f"{_PREFIX}{secrets.token_hex(6)}"
        built.mkdir()
        manifest = store.manifest(iteration)
        if only is not None:
            manifest = Manifest({path: detail for path, detail in manifest.entries.items() if path in only})
        try:
            restore(plan_restore(manifest, store.content(iteration), built, ()))
            files.fsync_directory(built)
            _put_in_place(built, target)
        finally:
            with contextlib.suppress(OSError):
                leftovers.remove_any(built)  # the old one, once they are exchanged
        files.fsync_directory(target.parent)


def _put_in_place(built: Path, target: Path) -> None:
    if not os.path.lexists(target):
        built.rename(target)
        return
    if _exchange(built, target):
        return
    aside = built.with_name(f"{built.name}-old")
    target.rename(aside)
    built.rename(target)
    leftovers.remove_any(aside)


@functools.cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; False where the system or the file system cannot."""
    function = _renameat2()
    if function is None:
        return False
    if function(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_HERE:
        return False
    raise OSError(number, os.strerror(number), str(other))
