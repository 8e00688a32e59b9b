"""``manifest.json``: what a snapshot holds, whole or as the difference to another iteration's.

    {"format": 1, "base": null, "depth": 0, "entries": [{path, kind, content_hash, mode, size, target, skipped}, …]}
    {"format": 1, "base": 6, "depth": 3, "changed": [{…}, …], "removed": ["old.txt", …]}

A difference is written for large trees of which little changed. ``depth`` counts the differences down to a whole manifest and is
limited, so that reading one takes little more than reading a whole one. ``"content": "objects"`` says that the files lie there by
their hashes; without it they lie in ``artifacts/``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, cast

from jumar.core.codec import FORMAT, Fields, encode
from jumar.errors import StoreDamagedError
from jumar.model.records import ArtifactDetail

DELTA_FROM: Final = 256
"""Up to this many entries a manifest is always whole."""

MAX_DEPTH: Final = 32
"""Differences down to a whole manifest that any may have; a large one may have one for each :data:`_ENTRIES_A_FILE` entries."""

_ENTRIES_A_FILE: Final = 50  # that are read in the time that a file of differences takes
_CONTENT: Final = "content"
_OBJECTS: Final = "objects"


def _deepest(entries: int) -> int:
    return max(MAX_DEPTH, entries // _ENTRIES_A_FILE)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything a snapshot holds, by relative path, sorted; ``base`` is the iteration its file on disk is a difference to.

    ``entries`` is complete whether or not there is a base. ``depth`` is 0 for a whole manifest. ``by_hash``: the contents lie
    in the objects of the root.
    """

    entries: Mapping[str, ArtifactDetail]
    base: int | None = None
    depth: int = 0
    by_hash: bool = False

    def against(self, base: int, other: Manifest) -> tuple[Manifest, ManifestFile]:
        """Return this manifest as it should stand on disk: the difference to iteration ``base``'s, ``other``, where that pays."""
        if len(self.entries) <= DELTA_FROM or other.depth + 1 > _deepest(len(self.entries)):
            return self.whole()
        before = other.entries
        # A snapshot keeps the very object of an entry that stayed the same, so that most are told apart without a comparison.
        differing = [(before.get(path), detail) for path, detail in self.entries.items() if before.get(path) is not detail]
        changed = [detail for old, detail in differing if old != detail]
        removed = tuple([path for path in before if path not in self.entries])
        if 2 * (len(changed) + len(removed)) > len(self.entries):
            return self.whole()
        depth = other.depth + 1
        return replace(self, base=base, depth=depth), ManifestFile(base, depth, tuple(changed), removed, self.by_hash)

    def whole(self) -> tuple[Manifest, ManifestFile]:
        """Return this manifest as it stands on disk without a base."""
        return replace(self, base=None, depth=0), ManifestFile(None, 0, tuple(self.entries.values()), (), self.by_hash)


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """One ``manifest.json``: all entries when ``base`` is None, else those that differ from the base's."""

    base: int | None
    depth: int
    changed: tuple[ArtifactDetail, ...]
    removed: tuple[str, ...]
    by_hash: bool = False
    seal: str = field(default="", compare=False)  # of the file, by which its record names it

    def encode(self, place: str | None = None) -> bytes:
        """Return the file's bytes, marked for ``place``."""
        data: dict[str, Any] = {"format": FORMAT, "base": self.base, "depth": self.depth}
        if self.by_hash:
            data[_CONTENT] = _OBJECTS
        if self.base is None:
            data["entries"] = self.changed
        else:
            data |= {"changed": self.changed, "removed": self.removed}
        # exact, for these are names and hashes
        return encode(data, compact=True, sealed=True, exact=True, place=place, default=ArtifactDetail.to_json)

    @classmethod
    def from_json(cls, fields: Fields) -> ManifestFile:
        """Read the file. Errors: :class:`StoreDamagedError` that names the field."""
        base = fields.integer_or_none("base")
        listed = fields.sections("entries" if base is None else "changed")
        content = fields.text_or_none(_CONTENT)
        if content not in {None, _OBJECTS}:
            raise fields.wrong(_CONTENT, f"'{_OBJECTS}'")
        return cls(
            base=base,
            depth=fields.integer("depth"),
            changed=tuple(ArtifactDetail.from_json(item) for item in listed),
            removed=() if base is None else fields.texts("removed"),
            by_hash=content is not None,
            seal=fields.text_or_none("seal") or "",
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
        if current in seen or (chain and len(seen) > max(MAX_DEPTH, chain[0].depth)):
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
    if top is None:
        return known(number) or Manifest(MappingProxyType({}))
    return Manifest(MappingProxyType(dict(sorted(entries.items()))), top.base, top.depth, top.by_hash)
