"""What a redaction changes in a loop's files: contents, names, and the hashes and seals that speak of them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from jumar import files
from jumar.model.codec import broken_seal, encode
from jumar.redaction import Redactor
from jumar.store.snapshot import STORED_MODE
from jumar.store.staging import ARTIFACTS
from jumar.store.unfinished import REDACTION

__all__ = ["Changes", "Rewriting"]

_SNAPSHOT: Final = re.compile(rf"((?:iterations|pending|undo|set-aside)/[^/]+/{ARTIFACTS}/)(.+)", re.DOTALL)
_EXACT: Final = frozenset(
    {
        *("nonce", "seal", "kind", "content_hash", "loop_id", "workdir", "timestamp", "at", "started_at", "ended_at"),
        *("created_at", "mode", "format", "outcome", "status", "verification_status", "purpose", "storage_path"),
    }
)
_PATHS: Final = frozenset({"path", "removed", "artifacts_modified"})
_FIELD: Final = re.compile(r"[a-z][a-z0-9_]{0,40}")
_SEAL: Final = "seal"


@dataclass(slots=True)
class Changes:
    """Relative paths: ``put`` have a new content or are a new name, ``removed`` are old names. The rest are counts."""

    put: set[str] = field(default_factory=set[str])
    removed: set[str] = field(default_factory=set[str])
    files: int = 0
    places: int = 0
    renamed: int = 0


class Rewriting:
    """Looks through everything below ``directory``; what changes is written below ``stage/new``, or only counted without one."""

    def __init__(self, directory: Path, redactor: Redactor, stage: Path | None) -> None:
        self._directory = directory
        self._redactor = redactor
        self._new = None if stage is None else stage / "new"
        self._found = Changes()
        self._names: dict[str, str] = {}
        self._hashes: dict[str, tuple[str, int]] = {}
        self._inodes: dict[tuple[int, int], bytes | Path | None] = {}

    def run(self) -> Changes:
        """Look through it all. Errors: ``OSError``."""
        listed = list(self._listed())
        self._names = self._new_names(listed)
        documents: list[tuple[str, os.DirEntry[str]]] = []
        for path, entry in listed:
            if entry.is_symlink():
                self._link(path, entry)
            elif entry.is_file(follow_symlinks=False):
                if _SNAPSHOT.fullmatch(path):
                    self._artifact(path, entry)
                else:
                    documents.append((path, entry))
        for path, entry in documents:
            self._document(path, entry)
        return self._found

    def _listed(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        def ours(name: str) -> bool:
            return name == f"{REDACTION}/" or name.startswith(files.TEMPORARY)

        for path, entry in files.walk(self._directory, prune=ours):
            if not path.startswith(files.TEMPORARY):
                yield path, entry

    # ---------------------------------------------------------------------------------------------------------- names

    def _new_names(self, listed: list[tuple[str, os.DirEntry[str]]]) -> dict[str, str]:
        """Return old → new for every path of a snapshot that holds the secret: the same in each, and no two alike."""
        known: set[str] = set()
        for path, entry in listed:
            match = _SNAPSHOT.fullmatch(path)
            if match is not None:
                known.add(match.group(2))
            elif path.endswith((".json",)):
                known.update(_paths_in(_parsed(Path(entry.path).read_bytes())))
        names: dict[str, str] = {}
        taken = set(known)
        for path in sorted(known):
            wanted = self._renamed(path)
            if wanted != path:
                stem, number = wanted, 2
                while wanted in taken:
                    wanted, number = f"{stem}-{number}", number + 1
                taken.add(wanted)
                names[path] = wanted
        return names

    def _renamed(self, path: str) -> str:
        return "/".join(self._redactor.redact(part).replace("/", "_") for part in path.split("/"))

    def _target(self, path: str) -> str:
        """Return the new relative path of a file of the loop."""
        match = _SNAPSHOT.fullmatch(path)
        if match is not None:
            return match.group(1) + self._names.get(match.group(2), match.group(2))
        return self._renamed(path)

    # ------------------------------------------------------------------------------------------------------- contents

    def _link(self, path: str, entry: os.DirEntry[str]) -> None:
        before = os.readlink(entry.path)
        after = self._redactor.redact(before)
        if after != before:
            self._found.files += 1
            self._found.places += 1
        self._place(path, changed=after != before, make=lambda place: os.symlink(after, place))

    def _artifact(self, path: str, entry: os.DirEntry[str]) -> None:
        """Rewrite a file of a snapshot once, however many snapshots share it."""
        status = entry.stat(follow_symlinks=False)
        inode = status.st_dev, status.st_ino
        if inode not in self._inodes:
            data = Path(entry.path).read_bytes()
            clean = self._redactor.redact_bytes(data)
            self._inodes[inode] = None if clean is data else clean
            if clean is not data:
                self._count(data)
                self._hashes[files.sha256_bytes(data)] = files.sha256_bytes(clean), len(clean)
        known = self._inodes[inode]

        def make(place: Path) -> None:
            if known is None:
                _link_or_copy(Path(entry.path), place)
            elif isinstance(known, Path):
                _link_or_copy(known, place)
            else:
                _write(place, known, STORED_MODE)
                self._inodes[inode] = place

        self._place(path, changed=known is not None, make=make)
        if self._new is None and known is not None:
            self._inodes[inode] = b""  # only whether it changes is asked again

    def _document(self, path: str, entry: os.DirEntry[str]) -> None:
        data = Path(entry.path).read_bytes()
        parsed = _parsed(data) if path.endswith(".json") else None
        if parsed is None:
            clean = self._redactor.redact_bytes(data)
        else:
            after = self._rewritten(parsed)
            clean = data if after == parsed else _encoded(parsed, after, data)
        if self._redactor.finds(data):
            self._count(data)
        mode = entry.stat(follow_symlinks=False).st_mode & 0o7777
        self._place(path, changed=clean is not data, make=lambda place: _write(place, clean, mode))

    def _count(self, data: bytes) -> None:
        self._found.files += 1
        self._found.places += self._redactor.count(data)

    def _place(self, path: str, *, changed: bool, make: Callable[[Path], None]) -> None:
        target = self._target(path)
        if not changed and target == path:
            return
        self._found.put.add(target)
        if target != path:
            self._found.removed.add(path)
            self._found.renamed += 1
        if self._new is not None:
            place = self._new / target
            place.parent.mkdir(parents=True, exist_ok=True)
            make(place)

    # ------------------------------------------------------------------------------------------------------ documents

    def _rewritten(self, value: Any, *, work_tree: bool = False) -> Any:
        """Return JSON data without the secret, speaking of the new names and hashes.

        What an apply left in the work tree (``after``) keeps its hash: the work tree is not changed, and ``--undo`` looks at it.
        """
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._rewritten(item, work_tree=work_tree) for item in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        found = cast("dict[str, Any]", value)
        after = {
            name if _FIELD.fullmatch(name) else self._text(name): item
            if name in _EXACT
            else self._rewritten(item, work_tree=work_tree or name == "after")
            for name, item in found.items()
        }
        if "content_hash" in found and not work_tree:
            self._rehash(found, after)
        return after

    def _rehash(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        if before.get("kind") == "symlink" and isinstance(before.get("target"), str):
            if after["target"] != before["target"]:
                raw = os.fsencode(after["target"])
                after |= {"content_hash": files.sha256_bytes(raw), "size": len(raw)}
        elif before.get("content_hash") in self._hashes:
            after["content_hash"], after["size"] = self._hashes[before["content_hash"]]

    def _text(self, text: str) -> str:
        if text in self._names:
            return self._names[text]
        match = _SNAPSHOT.fullmatch(text)
        if match is not None and match.group(2) in self._names:
            return match.group(1) + self._names[match.group(2)]
        return self._redactor.redact(text)


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _encoded(before: dict[str, Any], after: dict[str, Any], data: bytes) -> bytes:
    """Return the document as it was laid out; a seal that held is made anew, one that was broken stays broken."""
    compact = data.count(b"\n") <= 1
    if _SEAL not in before or broken_seal(before) is not None:
        return encode(after, compact=compact, exact=True)
    return encode({name: value for name, value in after.items() if name != _SEAL}, compact=compact, sealed=True, exact=True)


def _paths_in(value: Any) -> Iterator[str]:
    """Yield the paths of artifacts that a document speaks of."""
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _paths_in(item)
    elif isinstance(value, dict):
        for name, item in cast("dict[str, Any]", value).items():
            if name not in _PATHS:
                yield from _paths_in(item)
            elif isinstance(item, str):
                yield item
            elif isinstance(item, list):
                yield from (one for one in cast("list[Any]", item) if isinstance(one, str))


def _write(place: Path, data: bytes, mode: int) -> None:
    fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        files.write_all(fd, data)
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def _link_or_copy(source: Path, place: Path) -> None:
    try:
        os.link(source, place, follow_symlinks=False)
    except OSError:
        place.unlink(missing_ok=True)
        files.copy_file(source, place, STORED_MODE)
