"""The copies and worktrees of a loop, of a killed run and of its candidates too: which there are, and removing them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from jumar.core.files import is_directory, names_in
from jumar.core.leftovers import TEMPORARY
from jumar.errors import UsageError
from jumar.loop.settings import LoopSettings
from jumar.loop.store.in_force import config_now
from jumar.loop.store.layout import WORK
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.workspace.workspace import Workspace, remove_copy
from jumar.loop.workspace.worktrees import discard_worktree

_GIT: Final = ".git"


def discard_slots(store: LoopStore, settings: LoopSettings) -> tuple[str, ...]:
    """Remove the trees of all candidate slots of a loop, those of a killed run too; return the refs that keep their commits."""
    pattern = re.compile(rf"(?:{re.escape(TEMPORARY)})?{re.escape(settings.loop_id)}@c(\d+)")
    slots = sorted({int(match[1]) for path in _trees(store.paths.root) if (match := pattern.fullmatch(path.name))})
    return tuple(filter(None, [Workspace(store, settings, slot).discard() for slot in slots]))


def trees_of(root: Path, loop_id: str) -> tuple[Path, ...]:
    """Return the copies and git worktrees of the loop that is, or was, called so below ``root``, its candidates' too, sorted."""
    pattern = re.compile(rf"(?:{re.escape(TEMPORARY)})?{re.escape(loop_id)}(?:@c\d+)?")
    return tuple(sorted(path for path in _trees(root) if pattern.fullmatch(path.name) and is_directory(path)))


def _trees(root: Path) -> list[Path]:
    try:
        return [root / WORK / name for name in names_in(root / WORK)]
    except OSError:
        return []


def remove_trees(root: Path, loop_id: str, workdir: Path) -> tuple[str, ...]:
    """Remove :func:`trees_of` a loop, whether or not it has ended; the caller holds its lock.

    ``workdir`` lies in the repository that its worktrees belong to. Returns the refs that keep what was committed in them.
    """
    refs: list[str | None] = []
    for tree in trees_of(root, loop_id):
        slot = tree.name.removeprefix(TEMPORARY).removeprefix(loop_id).removeprefix("@")
        if (tree / _GIT).is_file():
            refs.append(discard_worktree(workdir, tree, f"{loop_id}/{slot or 'main'}"))
        else:
            remove_copy(tree)
    return tuple(filter(None, refs))


def discard_trees(store: LoopStore) -> tuple[Path, tuple[str, ...]] | None:
    """Remove every tree that jumar made for a loop that has ended; the caller holds its lock.

    Returns the path of its own and the refs that keep the commits of its worktrees; None when there is none: the loop works in
    place. Errors: :class:`UsageError` for a loop that has not ended, whose tree may hold an iteration that is not yet kept.
    """
    isolation = config_now(store).get("isolation")
    if isolation not in {"none", "copy", "worktree", "sandbox"}:
        return None
    if store.end() is None:
        raise UsageError(
            f"loop '{store.loop_id}' has not ended: its working directory may hold an iteration that is not kept yet; "
            "`jumar run` resumes it"
        )
    settings = LoopSettings(loop_id=store.loop_id, workdir=store.workdir or Path(), isolation=isolation)
    refs = discard_slots(store, settings)
    own = Workspace(store, settings)
    if settings.in_place or not os.path.lexists(own.tree):
        return None
    return own.tree, tuple(filter(None, (*refs, own.discard())))
