"""An iteration's files, written to a directory of their own for somebody to look at."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path

from jumar.core import files
from jumar.core.files import as_write_error, make_directory
from jumar.core.text import escape, named
from jumar.errors import ConflictError
from jumar.loop.decisions.plan import refuse_own_files, snapshot_of
from jumar.loop.snapshots.restore import RestorePlan, plan_restore, refuse_leading_out, restore
from jumar.loop.store.loop_store import LoopStore


def write_out(store: LoopStore, iteration: int, directory: Path) -> RestorePlan:
    """Write the snapshot of ``iteration`` into ``directory``, which is new or empty, with the modes that the files had.

    FIFOs, devices and sockets are left out. After an error no file is left there. Errors: as of
    :func:`jumar.loop.decisions.plan.snapshot_of`; :class:`ConflictError` where anything lies there, or it is jumar's own;
    :class:`jumar.errors.ArtifactError` for links that lead out of it; :class:`jumar.errors.StoreDamagedError` for a file that
    is missing or altered; :class:`jumar.errors.StoreWriteError`.
    """
    manifest, content = snapshot_of(store, iteration)
    target = Path(os.path.realpath(directory))
    _refuse_used(store, target)
    new = not target.exists()
    with as_write_error("create", target):
        make_directory(target)
    plan = RestorePlan(target=target, content=content, write=(), delete=(), unchanged=())
    try:
        plan = plan_restore(manifest, content, target, ())
        refuse_own_files(store, target, (detail.path for detail in plan.write))
        refuse_leading_out(plan, target)
        restore(plan)
    except BaseException:
        with contextlib.suppress(Exception):  # the first error is the one to tell
            restore(replace(plan, write=(), delete=tuple(detail.path for detail in plan.write)))
            if new:
                target.rmdir()
        raise
    return plan


def _refuse_used(store: LoopStore, target: Path) -> None:
    root = os.path.realpath(store.paths.root)
    if target.is_relative_to(root):
        raise ConflictError(f"{escape(os.fspath(target))} lies in {escape(root)}, which is jumar's: name a directory elsewhere")
    with as_write_error("look into", target), contextlib.suppress(FileNotFoundError):
        there = sorted(files.names_in(target))
        if there:
            raise ConflictError(
                f"{escape(os.fspath(target))} is not empty ({named(there)}): name a new or an empty directory, so that nothing of"
                " yours is mixed with the iteration's files"
            )
