"""How a directory becomes a loop: built aside and renamed, or, when it exists already, by the link of its ``loop.json``."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jumar.core import files, leftovers
from jumar.core.codec import FORMAT, encode
from jumar.core.lock import LoopLock
from jumar.errors import UsageError
from jumar.loop.store.layout import LoopPaths, check_loop_id, prepare_root, root_of
from jumar.loop.store.staging import whole_or_gone
from jumar.loop.store.trust import place_of


def create_loop(directory: Path, loop_id: str, config: Mapping[str, Any], *, workdir: Path | None, created_at: str) -> None:
    """Make ``directory`` a loop. Its parents are created; a parent called ``loops`` becomes part of a whole root.

    Errors: :class:`UsageError` when it is a loop already or ``loop_id`` is not allowed, :class:`jumar.errors.StoreWriteError`,
    :class:`jumar.errors.LockedError`.
    """
    check_loop_id(loop_id)
    paths = LoopPaths(Path(os.path.abspath(directory)))
    data = loop_json(paths.directory, loop_id, config, workdir=workdir, created_at=created_at)
    with files.as_write_error("create", paths.directory):
        if paths.root != paths.directory:
            prepare_root(paths.root, paths.directory.parent)
        else:
            files.make_directory(paths.directory.parent)
    _refuse_loop(paths)  # before its lock, which whoever works in it has
    with LoopLock(paths.lock) if paths.directory.is_dir() else contextlib.nullcontext():
        _refuse_loop(paths)
        with files.as_write_error("create", paths.directory):
            if paths.directory.is_dir():
                _become(paths, data)
            else:
                _build(paths, data)


def _refuse_loop(paths: LoopPaths, cause: OSError | None = None) -> None:
    if paths.loop_json.exists():
        raise UsageError(f"{paths.directory} is a loop already; open it, or choose another id") from cause


def _become(paths: LoopPaths, data: bytes) -> None:
    """Turn a directory that exists into a loop; it is none until the last step."""
    for directory in paths.subdirectories:
        directory.mkdir(exist_ok=True)
    files.write_once(paths.loop_json, data)


def _build(paths: LoopPaths, data: bytes) -> None:
    temporary = LoopPaths(paths.directory.with_name(leftovers.temporary_name()))
    try:
        with whole_or_gone(temporary.directory):
            temporary.directory.mkdir()
            for directory in temporary.subdirectories:
                directory.mkdir()
            files.write_once(temporary.loop_json, data)
            files.fsync_directory(temporary.directory)
            files.rename_new(temporary.directory, paths.directory)
    except OSError as error:
        _refuse_loop(paths, error)  # somebody else was faster
        raise


def loop_json(
    directory: Path,
    loop_id: str,
    config: Mapping[str, Any],
    *,
    workdir: Path | None,
    created_at: str,
    nonce: str | None = None,
) -> bytes:
    """Return the bytes of ``loop.json``, with a new nonce where none is given.

    Errors: ``TypeError`` and ``ValueError`` for a configuration that is not JSON.
    """
    nonce = nonce or secrets.token_hex(8)
    return encode(
        {
            "format": FORMAT,
            "loop_id": loop_id,
            "created_at": created_at,
            "nonce": nonce,
            "workdir": None if workdir is None else _movable(directory, workdir),
            "config": dict(config),
        },
        sealed=True,
        place=place_of(nonce, directory / "loop.json"),
    )


def _movable(directory: Path, workdir: Path) -> str:
    """Return ``workdir`` relative to the loop when both move together: one lies in the other's project."""
    loop, work = os.path.realpath(directory), os.path.realpath(workdir)
    root = root_of(Path(loop))
    inside = root.parents[root == Path(loop)] if len(Path(loop).parts) > 3 else Path(loop)
    together = Path(work).is_relative_to(inside) or Path(loop).is_relative_to(work)
    return os.path.relpath(work, loop) if together else work
