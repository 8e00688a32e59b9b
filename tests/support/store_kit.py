"""Loops with given trees, for tests of ``jumar.loop.store``; and every way in which a call that changes the disk can go wrong."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from jumar.core import files
from jumar.loop.snapshots.content import Content
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.store.loop_store import LoopStore
from jumar.model import AttemptEnd, IterationRecord

__all__ = [
    "AT",
    "WAYS",
    "Disk",
    "Killed",
    "Way",
    "end",
    "kept",
    "kept_tree",
    "memory_place",
    "new_store",
    "put",
    "record",
    "score",
    "stored_tree",
    "unmarked",
]

AT = "2026-01-25T10:00:00Z"

Way = Literal["killed before", "killed after", "error", "answer lost", "error for good"]
WAYS: tuple[Way, ...] = ("killed before", "killed after", "error", "answer lost", "error for good")
"""``answer lost``: the call happened, and says that it failed."""

_CHANGING = (
    "write",
    "pwrite",
    "mkdir",
    "rmdir",
    "unlink",
    "rename",
    "replace",
    "link",
    "symlink",
    "chmod",
    "fchmod",
    "fsync",
    "truncate",
)


def unmarked(directory: Path | str) -> Path:
    """Make a loop one of an older jumar, which left no marks: then it is read whoever wrote it."""
    path = Path(directory) / "loop.json"
    path.write_bytes(re.sub(rb',\s*"mark": "[^"]*"', b"", path.read_bytes()))
    return path.parent


class Killed(BaseException):
    """The process is dead: from now on nothing that it does reaches the disk."""


class Disk:
    """Counts the calls that change the disk and lets one go wrong, and with a death or for good all that follow."""

    def __init__(self, at: int, way: Way, errno: int) -> None:
        self.count = 0
        self._at = at
        self._way = way
        self._errno = errno
        self._dead = False

    def call(self, real: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        if self._dead:
            raise Killed
        self.count += 1
        if self._at == 0 or self.count < self._at or (self.count > self._at and self._way != "error for good"):
            return real(*arguments, **named)
        if self._way == "killed before":
            self._dead = True
            raise Killed
        if self._way in {"error", "error for good"}:
            raise OSError(self._errno, os.strerror(self._errno))
        result = real(*arguments, **named)
        if self._way == "killed after":
            self._dead = True
            raise Killed
        if real is os.open:
            os.close(result)
        raise OSError(self._errno, os.strerror(self._errno))

    @contextmanager
    def failing(self) -> Iterator[Disk]:
        """Go between the program and the disk: every function of ``os`` that changes it, and ``syncfs``."""
        opened, synced = os.open, files._syncfs

        def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *arguments, **named: self.call(real, *arguments, **named)

        def open_(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
            if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
                return self.call(opened, path, flags, *arguments, **named)
            return opened(path, flags, *arguments, **named)

        calls: dict[str, Any] = {"open": open_, **{name: wrapped(getattr(os, name)) for name in _CHANGING}}
        with (
            mock.patch.multiple(os, **calls),
            mock.patch.object(files, "_syncfs", wrapped(synced)),
        ):
            yield self


def new_store(directory: Path | str = "loop", workdir: Path | None = None) -> LoopStore:
    return LoopStore.create(directory, "loop-001", {"selection": {"mode": "highest_quality"}}, workdir=workdir, created_at=AT)


def put(root: Path, tree: Mapping[str, bytes | str]) -> None:
    """Write files (bytes) and links (text: their target) below ``root``."""
    for path, content in tree.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or target.exists():
            target.unlink()
        if isinstance(content, bytes):
            target.write_bytes(content)
        else:
            target.symlink_to(content)


def kept_tree(content: Content, manifest: Manifest) -> dict[str, bytes | str]:
    """Return what a snapshot holds, as :func:`stored_tree` does, wherever it lies; contents are compared with their hashes."""
    tree: dict[str, bytes | str] = {}
    for path, detail in manifest.entries.items():
        if detail.kind == "file":
            tree[path] = data = b"".join(content.chunks(detail))
            assert files.sha256_bytes(data) == detail.content_hash, path
        elif detail.kind == "symlink":
            tree[path] = detail.target or ""
    return tree


def kept(store: LoopStore, number: int) -> dict[str, bytes | str]:
    """Return what an iteration's snapshot holds."""
    return kept_tree(store.content(number), store.manifest(number))


def score(number: int, quality: float | None = 70.0, **fields: Any) -> IterationRecord:
    return IterationRecord(iteration_number=number, timestamp=AT, quality_score=quality, **fields)


def record(
    store: LoopStore, number: int, paths: tuple[str, ...], source: Path, *, quality: float | None = 70.0, **fields: Any
) -> IterationRecord:
    """Take a snapshot and acknowledge it."""
    with store.lock():
        pending = store.stage(number, source=source, paths=paths, nonce=f"n{number}", attempt=None, stage={}, logs=None)
        return store.commit(pending, score(number, quality, **fields))


def end(**fields: Any) -> AttemptEnd:
    return AttemptEnd(**{"outcome": "ok", "seconds": 1.0, "ended_at": AT, **fields})


def stored_tree(directory: Path) -> dict[str, bytes | str]:
    """Return what lies below a directory: content of files, targets of links."""
    found: dict[str, bytes | str] = {}
    for path, entry in files.walk(directory):
        if stat.S_ISLNK(entry.stat(follow_symlinks=False).st_mode):
            found[path] = os.readlink(entry.path)
        else:
            found[path] = Path(entry.path).read_bytes()
    return found


@contextmanager
def memory_place() -> Iterator[Path]:
    """A directory in memory where there is one: sweeps of thousands of syncs need not wait for the disk."""
    shared = Path("/dev/shm")
    parent = shared if os.access(shared, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="jumar-sweep-", dir=parent) as name:
        yield Path(name)
