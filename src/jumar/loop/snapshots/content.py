"""Where the files of a snapshot lie, and reading them: nothing that was altered there is ever written elsewhere."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from jumar.core import copying, files
from jumar.core.text import escape
from jumar.errors import StoreDamagedError, UsageError
from jumar.loop.snapshots.tree import Tree
from jumar.model.records import ArtifactDetail


class Content(Protocol):
    """The contents of the regular files of a snapshot."""

    def name(self, detail: ArtifactDetail) -> str:
        """Return where a file's content lies, for messages."""
        ...

    def chunks(self, detail: ArtifactDetail) -> Iterator[bytes]:
        """Yield a file's content as it lies there, unchecked. Errors: :class:`StoreDamagedError` where there is none."""
        ...

    def copy(self, detail: ArtifactDetail, into: int, hear: Callable[[bytes], object]) -> None:
        """Write a file's content to the new file ``into``, holes as holes; ``hear`` gets each chunk. Errors as above."""
        ...

    def lacking(self, details: Iterable[ArtifactDetail]) -> Iterator[ArtifactDetail]:
        """Yield those of which nothing of their size is there. Contents are compared wherever they are used."""
        ...


@dataclass(frozen=True, slots=True)
class PlainFiles:
    """Files that lie below ``root`` by their own paths. No link is followed."""

    root: Path

    def name(self, detail: ArtifactDetail) -> str:
        return escape(os.fspath(self.root / detail.path))

    def chunks(self, detail: ArtifactDetail) -> Iterator[bytes]:
        with self._open(detail) as fd:
            yield from files.read_chunks(fd)

    def copy(self, detail: ArtifactDetail, into: int, hear: Callable[[bytes], object]) -> None:
        with self._open(detail) as fd:
            copying.write_like(into, fd, files.read_chunks(fd), hear)

    def lacking(self, details: Iterable[ArtifactDetail]) -> Iterator[ArtifactDetail]:
        for detail in details:
            size = None
            with contextlib.suppress(OSError):
                size = os.lstat(f"{self.root}/{detail.path}").st_size
            if size != detail.size and detail.kind != "special":
                yield detail

    @contextlib.contextmanager
    def _open(self, detail: ArtifactDetail) -> Generator[int]:
        lacking = StoreDamagedError(f"the snapshot lacks {self.name(detail)}; `jumar verify` lists what is damaged")
        try:
            with Tree(self.root) as tree:
                fd = tree.open(detail.path)
        except (UsageError, OSError) as error:
            raise lacking from error
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise lacking
            yield fd
        finally:
            os.close(fd)


def lay_out(content: Content, detail: ArtifactDetail, target: str | Path, mode: int) -> None:
    """Write a snapshot's file to ``target``, which is new. Errors: :class:`StoreDamagedError` when it was altered."""
    digest = hashlib.sha256()
    writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        content.copy(detail, writing, digest.update)
        os.fchmod(writing, mode)
    finally:
        os.close(writing)
    if digest.hexdigest() != detail.content_hash:
        found = content.name(detail)
        raise StoreDamagedError(f"{found} has another content than was recorded; `jumar verify` lists what is damaged")


def read_content(content: Content, detail: ArtifactDetail, most: int) -> bytes | None:
    """Return a file's content as it lies there; None where it is missing, or has more than ``most`` bytes."""
    data = bytearray()
    with contextlib.suppress(StoreDamagedError, OSError):
        for chunk in content.chunks(detail):
            data += chunk
            if len(data) > most:
                return None
        return bytes(data)
    return None
