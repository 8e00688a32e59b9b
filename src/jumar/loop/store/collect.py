"""What no iteration of any loop names any more is deleted from the objects of a root: mark, then sweep."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from jumar.core import files
from jumar.core.codec import decode
from jumar.core.files import read_store_file
from jumar.core.lock import QUARANTINE
from jumar.errors import JumarError
from jumar.loop.snapshots.manifest import Manifest, paths_listed
from jumar.loop.snapshots.objects import Objects
from jumar.loop.store.layout import MANIFEST, OBJECTS, loop_folders, loops_directory, root_of
from jumar.loop.store.loop_reader import LoopReader

_PATIENCE: Final = 2.0  # seconds that a snapshot which is taken now is waited for


def collect(root: Path) -> int:
    """Delete the contents that nothing below ``root`` names, and return the bytes that are free now.

    While another loop takes a snapshot nothing is deleted, nor where a root has no objects; the next call sees to it. A loop that
    cannot be read, and what lies in a ``quarantine/``, names all that its manifests list. Errors:
    :class:`jumar.errors.StoreWriteError`.
    """
    objects = Objects(root / OBJECTS)
    if not files.is_directory(objects.directory):
        return 0
    with objects.alone(_PATIENCE) as held:
        return objects.collect(_named(root)) if held else 0


def named_by(directory: Path) -> set[str]:
    """Return the hashes of the objects that the loop in ``directory`` needs, what lies in its quarantine included."""
    found = set(_listed(directory / QUARANTINE))
    try:
        reader = LoopReader(directory)
        found.update(_waiting(reader))
        for number in filter(reader.has_snapshot, reader.iteration_numbers()):
            found.update(_hashes(reader.manifest(number)))
        found.update(_waiting(reader))  # one that was put back meanwhile
    except (JumarError, OSError):
        found.update(_listed(directory))
    return found


def alone_in(directory: Path) -> int:
    """Return the bytes of the objects that only the loop in ``directory`` needs."""
    root = root_of(directory)
    objects = Objects(root / OBJECTS)
    objects.refresh()
    return objects.bytes_of(named_by(directory) - _named(root, but=directory)) if objects else 0


def _named(root: Path, *, but: Path | None = None) -> set[str]:
    found = set(_listed(loops_directory(root).with_name(QUARANTINE)))
    for folder in loop_folders(root):
        if but is None or folder.name != but.name:
            found |= named_by(folder)
    return found


def _waiting(reader: LoopReader) -> Iterator[str]:
    for number in reader.pending_numbers():
        with contextlib.suppress(FileNotFoundError):  # it is an iteration by now
            yield from _hashes(reader.pending_of(number).manifest)


def _hashes(manifest: Manifest) -> Iterable[str]:
    return [detail.content_hash for detail in manifest.entries.values() if detail.content_hash] if manifest.by_hash else ()


def _listed(directory: Path) -> Iterator[str]:
    """Yield every hash that a manifest below ``directory`` lists itself, whoever wrote it."""
    for folder, _, names in os.walk(directory):
        if MANIFEST in names:
            path = os.path.join(folder, MANIFEST)
            with contextlib.suppress(JumarError, OSError):
                yield from filter(None, paths_listed(decode(read_store_file(path), path)).values())
