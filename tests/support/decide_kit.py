"""Loops with given trees, for the tests of ``jumar.loop.decisions``: no engine, no generator, only snapshots and records."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.loop_store import LoopStore
from jumar.model import IterationRecord

__all__ = ["AT", "BY", "RULES", "File", "Link", "Tree", "new_loop", "read_tree", "record", "write_tree"]

AT = "2026-01-25T10:00:00Z"
BY = "ada"
RULES = ArtifactRules()


@dataclass(frozen=True)
class File:
    content: bytes = b""
    mode: int = 0o644


@dataclass(frozen=True)
class Link:
    target: str


Tree = Mapping[str, File | Link]


def write_tree(root: Path, tree: Tree) -> Path:
    """Make ``root`` hold exactly ``tree`` and nothing else but ``.git`` and ``.jumar``."""
    root.mkdir(parents=True, exist_ok=True)
    for directory, names, files in os.walk(root, topdown=False):
        if {".git", ".jumar"}.intersection(Path(directory).relative_to(root).parts):
            continue
        for name in files:
            os.unlink(os.path.join(directory, name))
        for name in names:
            path = os.path.join(directory, name)
            if os.path.islink(path):
                os.unlink(path)
            elif name not in {".git", ".jumar"}:
                os.rmdir(path)
    for path, item in tree.items():
        put(root, path, item)
    return root


def put(root: Path, path: str, item: File | Link) -> None:
    target = f"{os.fspath(root)}/{path}"
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target):
        os.unlink(target)
    if isinstance(item, Link):
        os.symlink(item.target, target)
        return
    with open(target, "wb") as file:
        file.write(item.content)
    os.chmod(target, item.mode)


def read_tree(root: Path) -> dict[str, File | Link]:
    """Return everything below ``root`` but directories, ``.git`` and ``.jumar``."""
    found: dict[str, File | Link] = {}
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if name not in {".git", ".jumar"}]
        links = [name for name in names if os.path.islink(os.path.join(directory, name))]
        for name in [*files, *links]:
            path = os.path.join(directory, name)
            relative = os.path.relpath(path, root)
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                found[relative] = Link(os.readlink(path))
            elif stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    found[relative] = File(file.read(), stat.S_IMODE(status.st_mode))
            else:
                found[relative] = Link(f"special {stat.S_IFMT(status.st_mode):o}")
    return found


def directories(root: Path) -> dict[str, int]:
    """Return the permission bits of every directory below ``root`` but ``.git`` and ``.jumar``."""
    found: dict[str, int] = {}
    for directory, names, _ in os.walk(root):
        names[:] = [name for name in names if name not in {".git", ".jumar"}]
        for name in names:
            path = os.path.join(directory, name)
            if not os.path.islink(path):
                found[os.path.relpath(path, root)] = stat.S_IMODE(os.lstat(path).st_mode)
    return found


def new_loop(workdir: Path, loop_id: str = "polish", config: Mapping[str, object] | None = None) -> LoopStore:
    """Create a loop in ``workdir/.jumar``."""
    workdir.mkdir(parents=True, exist_ok=True)
    directory = workdir / ".jumar" / "loops" / loop_id
    return LoopStore.create(directory, loop_id, dict(config or {}), workdir=workdir, created_at=AT)


def record(
    store: LoopStore,
    number: int,
    tree: Tree,
    *,
    score: float | None = 50.0,
    verification: str = "passed",
    status: str = "ok",
    status_reason: str = "",
    rules: ArtifactRules = RULES,
) -> IterationRecord:
    """Record an iteration whose snapshot is ``tree``, taken from a directory beside the working directory."""
    assert store.workdir is not None
    source = write_tree(store.workdir.parent / f"{store.workdir.name}-source", tree)
    with store.lock():
        pending = store.stage(
            number, source=source, paths=rules.list(source), nonce=f"n{number}", attempt=None, stage={}, logs=None
        )
        return store.commit(
            pending,
            IterationRecord(
                iteration_number=number,
                timestamp=AT,
                quality_score=score,
                verification_status=verification,  # pyright: ignore[reportArgumentType]
                status=status,  # pyright: ignore[reportArgumentType]
                status_reason=status_reason,
            ),
        )
