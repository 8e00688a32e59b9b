"""What lies in a loop and was not written by jumar: set aside before it is believed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from jumar.core import files
from jumar.core.files import read_store_file
from jumar.core.text import escape
from jumar.errors import ForgedError, StoreDamagedError
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.staging import MANIFEST, METRICS, STAGE

_DIRECTORIES: Final = frozenset({"iterations", "pending", "checks"})
_FILES: Final = frozenset({"attempts", "decisions", "readings"})


def set_aside(error: ForgedError) -> str:
    """Move what ``error`` is about to ``quarantine/``, of an iteration or a snapshot all of it; return what to tell a person.

    Errors: ``error`` where that would be the loop itself; what taking its lock raises.
    """
    inside = next((parent for parent in error.path.parents if parent.name in _FILES | _DIRECTORIES), None)
    if inside is None:
        raise error
    store = LoopStore(inside.parent)
    with store.lock():
        return _aside(store, error)


def _aside(store: LoopStore, error: ForgedError) -> str:
    path = error.path
    said = "was not written by jumar, or was changed since: it lies in"
    scored = path.name == METRICS and _is_whole(store, path.parent)
    if path.parent.name in _FILES or scored:
        unit = path
    elif path.parent.parent.name in _DIRECTORIES:
        unit = path.parent
    else:
        raise error
    name, again = escape(os.path.relpath(unit, store.paths.directory)), ""
    if scored and path.parent.parent == store.paths.iterations:
        unit, again = wait_again(store, path.parent) / METRICS, ", and its snapshot is scored again"
    told = f"{name} {said} {store.quarantine(unit)} now{again}"
    store.refresh()
    return told


def wait_again(store: LoopStore, directory: Path) -> Path:
    """Have an iteration wait to be scored, under the lock, and return where; its record, if it has one, is moved after that.

    It had that place once, so that what lies there now is not jumar's: it is moved to ``quarantine/``. Cut off anywhere, the
    next look finds a record that it does not take, here or there, and goes on.
    """
    place = store.paths.pending / directory.name
    if os.path.lexists(place):
        store.quarantine(place)
    with files.as_write_error("move back", directory):
        files.rename_new(directory, place)
    return place


def _is_whole(store: LoopStore, directory: Path) -> bool:
    """Whether the snapshot of a record that is not ours is."""
    try:
        return all(store.trust.read(directory / name) for name in (MANIFEST, STAGE))
    except StoreDamagedError:
        return False


def quarantined(store: LoopStore) -> tuple[str, ...]:
    """Set aside what lies in ``store`` and is not jumar's; return what to tell a person about it all. The lock is held.

    Of iterations their records are read, their manifests when they are used. Errors: damage of another kind.
    """
    told, store.moved = store.moved, []
    for read in (store.decisions, store.readings, store.attempts, store.views, store.kept_checks):
        while True:
            try:
                read()
                break
            except ForgedError as error:
                told.append(_aside(store, error))
    for number in store.pending_numbers():
        directory = store.paths.pending_iteration(number)
        record = directory / METRICS
        if record.exists() and not store.trust.takes(record, read_store_file(record)):
            told.append(_aside(store, ForgedError(record)))
            if not directory.is_dir():
                continue
        why = "is recorded already" if number in store.iteration_numbers() else None
        try:
            if not store.pending_of(number).whole:
                why = "lacks files of its snapshot"
        except StoreDamagedError as error:
            why = f"is no snapshot of jumar's ({error})"
        if why is not None:
            told.append(f"{directory.name} waited to be scored and {why}: it lies in {store.quarantine(directory)} now")
    if store.trust.ours or not store.iteration_numbers():
        return tuple(told)
    elsewhere = "was written on another machine, by another user or by an older jumar"
    return (*told, f"what is recorded of this loop {elsewhere}: it is believed as it lies")
