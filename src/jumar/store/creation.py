"""How a directory becomes a loop: built aside and renamed, or, when it exists already, by the link of its ``loop.json``."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jumar import files
from jumar.errors import UsageError
from jumar.model.codec import FORMAT, encode
from jumar.store.layout import LOOPS, LoopPaths, check_loop_id, prepare_root
from jumar.store.lock import LoopLock

__all__ = ["create_loop", "loop_json"]


def create_loop(directory: Path, loop_id: str, config: Mapping[str, Any], *, workdir: Path | None, created_at: str) -> None:
    """Make ``directory`` a loop. Its parents are created; a parent called ``loops`` becomes part of a whole root.

    Errors: :class:`UsageError` when it is a loop already or ``loop_id`` is not allowed, :class:`jumar.errors.StoreWriteError`,
    :class:`jumar.errors.LockedError`.
    """
    check_loop_id(loop_id)
    paths = LoopPaths(Path(os.path.abspath(directory)))
    data = loop_json(paths.directory, loop_id, config, workdir=workdir, created_at=created_at)
    with files.as_write_error("create", paths.directory):
        if paths.directory.parent.name == LOOPS:
            prepare_root(paths.directory.parent.parent)
        else:
            files.make_directory(paths.directory.parent)
    with LoopLock(paths.lock) if paths.directory.is_dir() else contextlib.nullcontext():
        if paths.loop_json.exists():
            raise UsageError(f"{paths.directory} is a loop already; open it, or choose another id")
        with files.as_write_error("create", paths.directory):
            if paths.directory.is_dir():
                _become(paths, data)
            else:
                _build(paths, data)


def _become(paths: LoopPaths, data: bytes) -> None:
    """Turn a directory that exists into a loop; it is none until the last step."""
    for directory in paths.subdirectories:
        directory.mkdir(exist_ok=True)
    files.write_once(paths.loop_json, data)


def _build(paths: LoopPaths, data: bytes) -> None:
    temporary = LoopPaths(paths.directory.with_name(f"{files.TEMPORARY}{secrets.token_hex(6)}"))
    try:
        temporary.directory.mkdir()
        for directory in temporary.subdirectories:
            directory.mkdir()
        files.write_once(temporary.loop_json, data)
        files.fsync_directory(temporary.directory)
        files.rename_new(temporary.directory, paths.directory)
    except OSError as error:
        with contextlib.suppress(OSError):
            files.remove_tree(temporary.directory)
        if paths.loop_json.exists():  # somebody else was faster
            raise UsageError(f"{paths.directory} is a loop already; open it, or choose another id") from error
        raise


def loop_json(directory: Path, loop_id: str, config: Mapping[str, Any], *, workdir: Path | None, created_at: str) -> bytes:
    """Return the bytes of ``loop.json``. Errors: ``TypeError`` and ``ValueError`` for a configuration that is not JSON."""
    return encode(
        {
            "format": FORMAT,
            "loop_id": loop_id,
            "created_at": created_at,
            "nonce": secrets.token_hex(8),
            "workdir": None if workdir is None else _movable(directory, workdir),
            "config": dict(config),
        },
        sealed=True,
    )


def _movable(directory: Path, workdir: Path) -> str:
    """Return ``workdir`` relative to the loop when both move together: one lies in the other's project."""
    loop, work = os.path.realpath(directory), os.path.realpath(workdir)
    inside = Path(loop).parents[1 if Path(loop).parent.name != LOOPS else 2] if len(Path(loop).parts) > 3 else Path(loop)
    together = Path(work).is_relative_to(inside) or Path(loop).is_relative_to(work)
    return os.path.relpath(work, loop) if together else work
