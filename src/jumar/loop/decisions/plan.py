"""What applying an iteration would change, worked out without writing anything."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumar.core.codec import Fields
from jumar.core.text import named
from jumar.errors import JumarError, NotFoundError, UsageError
from jumar.loop.decisions.moves import Change, Moves, conflict_message, directories, listed
from jumar.loop.snapshots.content import Content
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.snapshots.restore import RestorePlan, plan_restore, refuse_leading_out
from jumar.loop.snapshots.tree import Tree, same
from jumar.loop.store.in_force import last_applied, works_in_place
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyPlan:
    """How ``workdir`` becomes equal to the snapshot of ``iteration``.

    ``unchanged`` are the paths that are equal already. ``skipped`` are FIFOs, devices and sockets, in the snapshot's list or
    in the tree: they are neither made nor removed. ``left_alone`` are files and links of the tree that no iteration has by their
    path: a person's, or another program's, and no part of what is applied.
    """

    iteration: int
    workdir: Path
    moves: Moves
    unchanged: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    left_alone: tuple[str, ...] = ()

    @property
    def write(self) -> tuple[Change, ...]:
        """The files and links that are added or replaced, by path."""
        return tuple(change for change in self.moves.changes if change.after is not None)

    @property
    def delete(self) -> tuple[Change, ...]:
        """The files and links that are removed, by path; a copy is kept for the undo."""
        return tuple(change for change in self.moves.changes if change.after is None)

    @property
    def empty(self) -> bool:
        """Whether the tree equals the snapshot already."""
        return not self.moves.changes

    def to_json(self) -> dict[str, Any]:
        """Return the plan for ``--dry-run --json``: paths and what happens to them."""
        return {
            "iteration": self.iteration,
            "workdir": str(self.workdir),
            "changes": [{"path": change.path, "change": change.verb} for change in self.moves.changes],
            "unchanged": len(self.unchanged),
            "skipped": list(self.skipped),
            "left_alone": list(self.left_alone),
        }


def plan_apply(store: LoopStore, iteration: int, workdir: Path, rules: ArtifactRules, *, exact: bool = False) -> ApplyPlan:
    """Compare the part of ``workdir`` that ``rules`` match with the snapshot of ``iteration``. Nothing is written.

    What no iteration has by its path is left alone where it is not in the way; ``exact`` removes that too, for a tree in which
    nobody but the loop has worked.

    A link that stands where a directory is needed is replaced, never followed, whether the rules match it or not; so is a
    file. Errors: :class:`NotFoundError`; :class:`UsageError` when the snapshot was cleaned up, for a link that leads out of
    ``workdir`` and is not there already, for files that the rules do not match below a directory that has to become a file,
    and for a file that cannot be read.
    """
    manifest, content = snapshot_of(store, iteration)
    target = Path(os.path.abspath(workdir))
    with Tree(target) as tree:
        present = rules.list(target, never=(store.paths.root,), kept=_put_there(store, exact=exact))
        others = {path for path in present if path not in manifest.entries}
        theirs = store.not_kept_at_start("main", others)
        strangers = set[str]() if exact else strangers_among(store, others - theirs)
        ours = [path for path in present if path not in strangers and path not in theirs]
        restoring = plan_restore(manifest, content, target, ours, cache=store.cache)
        refuse_leading_out(restoring, target)
        changes, unchanged, skipped = _compare(tree, restoring, manifest)
        refuse_own_files(store, target, (change.path for change in changes))
        around = directories(tree, changes)
    return ApplyPlan(
        iteration=iteration,
        workdir=target,
        moves=Moves.of(changes, drop={**around.replaced, **around.emptied}, make=around.needed),
        unchanged=tuple(sorted(unchanged)),
        skipped=tuple(sorted(skipped)),
        left_alone=tuple(sorted(strangers.difference(restoring.delete))),
    )


def _put_there(store: LoopReader, *, exact: bool) -> set[str]:
    """Return the paths that the last apply put into a tree, and the last iteration of a loop that works in it.

    They are the loop's, though an iteration may have written an ignore file that names them.
    """
    applied, numbers = last_applied(store), store.iteration_numbers()
    known = set(numbers[-1:] if exact or works_in_place(store) else ())
    if applied is not None and applied.best_iteration in numbers:
        known.add(applied.best_iteration)
    found: set[str] = set()
    for number in known:
        with contextlib.suppress(JumarError):  # one that is damaged says nothing
            found.update(store.manifest(number).entries)
    return found


def strangers_among(store: LoopReader, paths: Iterable[str]) -> set[str]:
    """Return those of ``paths`` that no iteration has, nor a snapshot that waits to be scored."""
    unknown, listed = set(paths), store.listed()
    while unknown and (known := next(listed, None)) is not None:
        unknown.difference_update(known)
    return unknown


def unclaimed(paths: Sequence[str]) -> str:
    """Return what :func:`strangers_among` found, at least one, for people: ``notes.txt, report.html (no iteration has them)``."""
    return f"{named(paths)} (no iteration has {'them' if len(paths) > 1 else 'it'})"


def snapshot_of(store: LoopStore, iteration: int) -> tuple[Manifest, Content]:
    """Return what an iteration holds, and where. Errors: :class:`NotFoundError`; :class:`UsageError` where it has no snapshot."""
    numbers = store.iteration_numbers()
    if iteration not in numbers:
        known = f"recorded are {numbers[0]} to {numbers[-1]}" if numbers else "nothing is recorded yet"
        raise NotFoundError(f"there is no iteration {iteration} in loop '{store.loop_id}'; {known}")
    why = store.without_snapshot(iteration)
    if why is not None:
        raise UsageError(
            f"the snapshot of iteration {iteration} {why}: its record is all there is; `jumar select {store.loop_id} --use N`"
            " selects another"
        )
    return store.manifest(iteration), store.content(iteration)


def workdir_to_json(store: LoopStore, workdir: Path) -> str:
    """Return how a decision names the working directory: relative when the loop lies inside of it, so that both can be moved."""
    directory = store.paths.directory
    return os.path.relpath(workdir, directory) if directory.is_relative_to(workdir) else str(workdir)


def workdir_from_json(store: LoopStore, fields: Fields) -> Path:
    """Return the working directory that a decision names."""
    return Path(os.path.normpath(store.paths.directory / fields.text("workdir")))


def _compare(tree: Tree, restoring: RestorePlan, manifest: Manifest) -> tuple[list[Change], list[str], list[str]]:
    """Turn what differs into changes; what is neither file nor link is left alone, or refused where it is in the way."""
    changes: list[Change] = []
    in_the_way: list[str] = []
    skipped = [path for path, detail in manifest.entries.items() if detail.kind == "special"]
    special = set(skipped)
    unchanged = [path for path in restoring.unchanged if path not in special]
    for path in (*(detail.path for detail in restoring.write), *restoring.delete):
        found = tree.look(path).detail
        wanted = manifest.entries.get(path)
        if same(found, wanted):
            continue  # somebody made it so between the two looks
        if found is None or found.kind != "special":
            changes.append(Change(path=path, before=found, after=wanted))
        elif wanted is None and not any(detail.path.startswith(path + "/") for detail in restoring.write):
            skipped.append(path)
        else:
            in_the_way.append(path)
    if in_the_way:
        why = "in the way cannot be kept for an undo (a FIFO, device or socket)"
        raise UsageError(conflict_message(in_the_way, why) + "; move it away")
    return changes, unchanged, skipped


def refuse_own_files(store: LoopStore, workdir: Path, paths: Iterable[str]) -> None:
    """Refuse to write into the store or a repository's own files, whatever a manifest says."""
    root = store.paths.root
    for path in paths:
        if ".git" in path.lower().split("/") or (workdir / path).is_relative_to(root):
            raise UsageError(f"the snapshot holds {listed([path])}, which belongs to git or to jumar; it is not written")
