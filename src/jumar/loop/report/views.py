"""The files beside the records that people and other tools read: made from the records, written by the lock holder only.

``best-tracker.json`` is written last and says what all of them derive from; as long as that is what is on disk, nothing is
written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jumar.core import files
from jumar.core.codec import encode
from jumar.core.redaction import current
from jumar.errors import LockedError
from jumar.loop.report.artifacts import Holds, changes_from_start, output_holds
from jumar.loop.report.final_output import fill_final_output
from jumar.loop.report.formats.page import render_markdown
from jumar.loop.report.read import LoopReport, load_report
from jumar.loop.report.tracking import best_document, tracking_chunks
from jumar.model import SelectionCriteria

if TYPE_CHECKING:
    from jumar.loop.store.loop_store import LoopStore

__all__ = ["held_output", "refresh_views"]


def refresh_views(store: LoopStore, *, at: str, criteria: SelectionCriteria | None = None, force: bool = False) -> bool:
    """Bring ``final-output/``, the tracking view, the report and ``best-tracker.json`` up to date; returns whether they are.

    ``at`` is the time that the tracking view names; ``criteria`` None: those of the loop's configuration. Nothing is written,
    and no lock is taken, when they are fresh already, unless ``force`` is set. While another process holds the lock, nothing is
    written and False is returned: that process will refresh them. Errors: :class:`jumar.errors.StoreWriteError`,
    :class:`jumar.errors.StoreDamagedError`.
    """
    if not force and _is_fresh(store):
        return True
    try:
        with store.lock():
            if force or not _is_fresh(store):
                with files.as_write_error("write the views of", store.paths.directory):
                    _write(store, at, criteria, force=force)
    except LockedError:
        return False
    return True


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
    written = _written(store.paths.best_view)
    if written.get("derived_from") != _derived_from(store):
        return False
    beside = (store.paths.tracking_view, store.paths.report_view)
    if not all(path.is_file() for path in beside):
        return False
    return written.get("final_output") is None or store.paths.final_output.is_dir()


def _written(path: Path) -> dict[str, Any]:
    """The view as it stands, empty when it is missing or unreadable: then it is made again."""
    try:
        found: object = json.loads(files.content_of(path) or b"")
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _write(store: LoopStore, at: str, criteria: SelectionCriteria | None, *, force: bool) -> None:
    report = load_report(store, criteria=criteria)
    derived_from = _derived_from(store)
    for view in (store.paths.tracking_view, store.paths.report_view, store.paths.best_view):
        if os.path.lexists(view) and files.content_of(view) is None:  # a directory cannot be replaced, a FIFO never ends
            store.quarantine(view)
    output = _fill_output(store, report, force=force)
    records = report.records if report.artifacts_complete else store.records()
    _replace(store.paths.tracking_view, tracking_chunks(report, records, at=at, derived_from=derived_from))
    files.replace_file(store.paths.report_view, current().redact_bytes(render_markdown(report).encode()))
    files.replace_file(store.paths.best_view, encode(best_document(report, derived_from=derived_from, output=output)))


def _fill_output(store: LoopStore, report: LoopReport, *, force: bool) -> dict[str, Any]:
    """Bring ``final-output/`` up to date and return what it holds now: the iteration, how much of it, what was deleted."""
    there = store.paths.final_output.is_dir()
    written = _written(store.paths.best_view) if there else {}
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
    written = _written(store.paths.best_view)
    return None if written.get("final_output") is None else written.get("final_output_holds", "full")


def _replace(path: Path, chunks: Iterable[bytes]) -> None:
    """Like :func:`jumar.core.files.replace_file`, without the whole content in memory."""
    temporary = path.with_name(files.temporary_name())
    try:
        with temporary.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    files.fsync_directory(path.parent)
