"""``manifest.json``: what a snapshot holds, whole or as the difference to another iteration's.

    {"format": 1, "base": null, "depth": 0, "entries": [{path, kind, content_hash, mode, size, target, skipped}, …]}
    {"format": 1, "base": 6, "depth": 3, "changed": [{…}, …], "removed": ["old.txt", …]}

A difference is written for large trees of which little changed. ``depth`` counts the differences down to a whole manifest and is
limited, so that reading one never takes more than :data:`MAX_DEPTH` files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast

from jumar.core.codec import FORMAT, Fields, encode
from jumar.errors import StoreDamagedError
from jumar.model.records import ArtifactDetail

DELTA_FROM: Final = 256
"""Up to this many entries a manifest is always whole."""

MAX_DEPTH: Final = 32


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything a snapshot holds, by relative path, sorted; ``base`` is the iteration its file on disk is a difference to.

    ``entries`` is complete whether or not there is a base. ``depth`` is 0 for a whole manifest.
    """

    entries: Mapping[str, ArtifactDetail]
    base: int | None = None
    depth: int = 0

    def against(self, base: int, other: Manifest) -> tuple[Manifest, ManifestFile]:
        """Return this manifest as it should stand on disk: the difference to iteration ``base``'s, ``other``, where that pays."""
        if len(self.entries) <= DELTA_FROM or other.depth + 1 > MAX_DEPTH:
            return self.whole()
        before = other.entries
        # A snapshot keeps the very object of an entry that stayed the same, so that most are told apart without a comparison.
        differing = [(before.get(path), detail) for path, detail in self.entries.items() if before.get(path) is not detail]
        changed = [detail for old, detail in differing if old != detail]
        removed = tuple([path for path in before if path not in self.entries])
        if 2 * (len(changed) + len(removed)) > len(self.entries):
            return self.whole()
        depth = other.depth + 1
        return Manifest(self.entries, base, depth), ManifestFile(base, depth, tuple(changed), removed)

    def whole(self) -> tuple[Manifest, ManifestFile]:
        """Return this manifest as it stands on disk without a base."""
        return Manifest(self.entries), ManifestFile(None, 0, tuple(self.entries.values()), ())


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """One ``manifest.json``: all entries when ``base`` is None, else those that differ from the base's."""

    base: int | None
    depth: int
    changed: tuple[ArtifactDetail, ...]
    removed: tuple[str, ...]

    def encode(self, place: str | None = None) -> bytes:
        """Return the file's bytes, marked for ``place``."""
        listed = [detail.to_json() for detail in self.changed]
        data: dict[str, Any] = {"format": FORMAT, "base": self.base, "depth": self.depth}
        if self.base is None:
            data["entries"] = listed
        else:
            data |= {"changed": listed, "removed": list(self.removed)}
        return encode(data, compact=True, sealed=True, exact=True, place=place)  # names and hashes

    @classmethod
    def from_json(cls, fields: Fields) -> ManifestFile:
        """Read the file. Errors: :class:`StoreDamagedError` that names the field."""
        base = fields.integer_or_none("base")
        listed = fields.sections("entries" if base is None else "changed")
        return cls(
            base=base,
            depth=fields.integer("depth"),
            changed=tuple(ArtifactDetail.from_json(item) for item in listed),
            removed=() if base is None else fields.texts("removed"),
        )


def paths_listed(fields: Fields) -> dict[str, str | None]:
    """Return the paths of the entries that a manifest's file lists itself, with their hashes; nothing else of it is looked at."""
    entries: object = fields.data.get("entries") or fields.data.get("changed")
    listed = cast("list[Any]", entries) if isinstance(entries, list) else []
    found = (cast("dict[str, Any]", entry) for entry in listed if isinstance(entry, dict))
    return {entry["path"]: entry.get("content_hash") for entry in found if isinstance(entry.get("path"), str)}


def compose(number: int, read: Callable[[int], ManifestFile], known: Callable[[int], Manifest | None]) -> Manifest:
    """Return the complete manifest of iteration ``number``.

    ``read(n)`` gives the file of iteration ``n``; ``known(n)`` a manifest that is in memory already, or None. Errors:
    :class:`StoreDamagedError` when the bases go round in a circle or on for too long, and whatever ``read`` raises.
    """
    chain: list[ManifestFile] = []
    seen: set[int] = set()
    current: int | None = number
    entries: dict[str, ArtifactDetail] = {}
    while current is not None:
        found = known(current)
        if found is not None:
            entries.update(found.entries)
            break
        if current in seen or len(seen) > MAX_DEPTH:
            raise StoreDamagedError(
                f"the manifest of iteration {number} refers to bases without end; `jumar verify` lists what is damaged"
            )
        seen.add(current)
        file = read(current)
        chain.append(file)
        current = file.base
    for file in reversed(chain):
        for path in file.removed:
            entries.pop(path, None)
        entries.update((detail.path, detail) for detail in file.changed)
    top = chain[0] if chain else None
    base, depth = (top.base, top.depth) if top else _standing(known(number))
    return Manifest(MappingProxyType(dict(sorted(entries.items()))), base, depth)


def _standing(found: Manifest | None) -> tuple[int | None, int]:
    return (found.base, found.depth) if found else (None, 0)
