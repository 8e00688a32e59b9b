"""What no iteration of any loop names any more is deleted from the objects of a root: mark, then sweep."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from jumar.core import files
from jumar.core.codec import broken_seal, decode
from jumar.core.files import read_store_file
from jumar.core.leftovers import folders_of
from jumar.core.lock import QUARANTINE
from jumar.errors import JumarError, StoreDamagedError
from jumar.loop.snapshots.manifest import Manifest, paths_listed
from jumar.loop.snapshots.objects import Objects
from jumar.loop.store.layout import MANIFEST, METRICS, OBJECTS, STAGE, places_of_loops, root_of
from jumar.loop.store.loop_reader import LoopReader

_PATIENCE: Final = 2.0  # seconds that a snapshot which is taken now is waited for
_SNAPSHOTS: Final = ("iterations", "pending")
_RECORDS: Final = frozenset({MANIFEST, METRICS, STAGE})


def collect(root: Path) -> int:
    """Delete the contents that nothing below ``root`` names, and return the bytes that are free now.

    Nothing is deleted while another loop takes a snapshot, or as long as nobody can say what a loop needs: it lies on a disk that
    is not there, or one of its manifests is damaged. The next call sees to it. What lies in a ``quarantine/`` names all that its
    manifests list. Errors: :class:`jumar.errors.StoreWriteError`.
    """
    objects = Objects(root / OBJECTS)
    if not files.is_directory(objects.directory):
        return 0
    with objects.alone(_PATIENCE) as held:
        named = _named(root) if held else None
        return 0 if named is None else objects.collect(named)


def named_by(directory: Path) -> set[str]:
    """Return the hashes of the objects that the loop in ``directory`` needs, what lies in its quarantine included.

    One that cannot be read as a whole needs all that its manifests list. Errors: :class:`JumarError` and ``OSError`` where one of
    them cannot be read.
    """
    found = set(_listed(directory / QUARANTINE))
    try:
        reader = LoopReader(directory)
        found.update(_waiting(reader))
        for number in filter(reader.has_snapshot, reader.iteration_numbers()):
            found.update(_hashes(reader.manifest(number)))
        found.update(_waiting(reader))  # one that was put back meanwhile
    except (JumarError, OSError):
        found.update(_all_of(directory))
    return found


def alone_in(directory: Path) -> int:
    """Return the bytes of the objects that only the loop in ``directory`` needs; 0 where nobody knows."""
    root = root_of(directory)
    objects = Objects(root / OBJECTS)
    objects.refresh()
    others = _named(root, but=directory) if objects else None
    with contextlib.suppress(JumarError, OSError):
        return 0 if others is None else objects.bytes_of(named_by(directory) - others)
    return 0


def _named(root: Path, *, but: Path | None = None) -> set[str] | None:
    """Return what all loops of ``root`` need but one; None where nobody can say that."""
    found = set(_listed(root / QUARANTINE))
    with contextlib.suppress(JumarError, OSError):
        for loops in places_of_loops(root):
            found.update(_listed(loops.with_name(QUARANTINE)))
            for entry in loops.iterdir() if loops.is_dir() else ():
                if entry.name[0] != "." and (but is None or entry.name != but.name):
                    found |= named_by(entry)
        return found
    return None


def _waiting(reader: LoopReader) -> Iterator[str]:
    for number in reader.pending_numbers():
        with contextlib.suppress(FileNotFoundError):  # it is an iteration by now
            yield from _hashes(reader.pending_of(number).manifest)


def _hashes(manifest: Manifest) -> Iterable[str]:
    return [detail.content_hash for detail in manifest.entries.values() if detail.content_hash] if manifest.by_hash else ()


def _all_of(directory: Path) -> Iterator[str]:
    """Yield every hash that the manifests of a loop list. Errors: where one of them, or the loop, is damaged or not there."""
    directory.stat()
    for folder in map(directory.joinpath, _SNAPSHOTS):
        names: list[str] = []
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            names = files.names_in(folder)
        for place in filter(files.is_directory, map(folder.joinpath, names)):
            if not _RECORDS.isdisjoint(files.names_in(place)):
                yield from _hashes_in(place / MANIFEST, sealed=True)


def _listed(directory: Path) -> Iterator[str]:
    """Yield every hash that a manifest below ``directory`` lists itself, whoever wrote it; one that is damaged says nothing."""
    for folder, _, names in folders_of(directory):
        if MANIFEST in names:
            with contextlib.suppress(JumarError, OSError):
                yield from _hashes_in(Path(folder, MANIFEST))


def _hashes_in(path: Path, *, sealed: bool = False) -> Iterator[str]:
    fields = decode(read_store_file(path), os.fspath(path))
    if sealed and (broken := broken_seal(fields.data)) is not None:
        raise StoreDamagedError(f"{path} {broken}; `jumar verify` lists what is damaged")
    yield from filter(None, paths_listed(fields).values())
