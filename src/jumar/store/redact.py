"""Taking a secret out of a loop's whole history.

First everything that changes is written anew below ``.tmp-…``, with the list of what goes where, and synced; then that directory
is renamed to ``.redact``. Until then nothing was touched; from then on the secret is not needed any more: each new file is
renamed onto the old one, files of another name are removed, the decision is written, ``.redact`` goes. What was cut off in
between is completed by the next ``jumar redact``, and until then nobody else writes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from jumar import files
from jumar.errors import UsageError
from jumar.model.codec import FORMAT, Fields, decode, encode
from jumar.model.decisions import Decision
from jumar.redaction import Redactor
from jumar.store.loop_store import LoopStore
from jumar.store.reading import read_store_file
from jumar.store.rewriting import Changes, Rewriting
from jumar.store.unfinished import PLAN, REDACTION, has_redaction
from jumar.text import escape, plural

__all__ = ["Redaction", "complete_redaction", "plan_redaction", "redact_folder", "redact_loop"]

_SHOWN: Final = 5
_GIT: Final = ".git"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """What was changed, or would be. ``files`` are those that held the secret, ``places`` how often, hard links counted once.

    ``renamed`` are paths that held it in their name; ``left`` says where it still stands, in words. ``decision`` is None for a
    plan, and when nothing was found.
    """

    files: int = 0
    places: int = 0
    renamed: int = 0
    left: tuple[str, ...] = ()
    decision: Decision | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "places": self.places,
            "renamed": self.renamed,
            "left": list(self.left),
            "decision": self.decision and self.decision.number,
        }


def plan_redaction(store: LoopStore, redactor: Redactor) -> Redaction:
    """Return what :func:`redact_loop` would change; nothing is written. Errors: as there."""
    _refuse_own_names(store, redactor)
    found = Rewriting(store.paths.directory, redactor, None).run()
    return Redaction(files=found.files, places=found.places, renamed=found.renamed)


def redact_loop(store: LoopStore, redactor: Redactor, *, what: str, by: str, at: str) -> Redaction:
    """Replace everything that ``redactor`` finds below the loop's directory, names of files included; durable when this returns.

    ``what`` says for the record what was looked for, never the value. What ``store`` has read by then is out of date: open the
    loop again. Errors, with nothing changed: :class:`UsageError` when the secret stands
    in the names that jumar itself gives, or a redaction was cut off (:func:`complete_redaction`);
    :class:`jumar.errors.LockedError`; :class:`jumar.errors.StoreWriteError`, which in the second half means that the next
    ``jumar redact`` completes it.
    """
    with store.lock():
        _refuse_own_names(store, redactor)
        store.discard_leftovers()
        with files.as_write_error("remove", store.settled.path):
            store.settled.forget()  # made anew, of what is clean then
        directory = store.paths.directory
        temporary = directory / f"{files.TEMPORARY}{secrets.token_hex(6)}"
        with files.as_write_error("rewrite files in", temporary):
            os.mkdir(temporary)
            found = Rewriting(directory, redactor, temporary).run()
            decision: Decision | None = None
            if found.put or found.removed:
                plan = _plan(found, what=what, by=by, at=at)
                files.replace_file(temporary / PLAN, encode(plan, sealed=True, exact=True))
                files.sync_tree(temporary)
                files.rename_new(temporary, directory / REDACTION)
                decision = _carry_out(store)
            else:
                files.remove_tree(temporary)
        return Redaction(
            files=found.files, places=found.places, renamed=found.renamed, left=_left(directory, redactor), decision=decision
        )


def complete_redaction(store: LoopStore) -> Decision | None:
    """Complete a redaction that was cut off; None when there is none. It needs no secret any more."""
    if not has_redaction(store.paths):
        return None
    with store.lock(redacting=True):
        return _carry_out(store) if has_redaction(store.paths) else None


def redact_folder(directory: Path, redactor: Redactor, *, change: bool) -> tuple[str, ...]:
    """Replace what ``redactor`` finds in the regular files below ``directory``, each in one step; return their relative paths.

    Without ``change`` only the paths are returned. What git keeps is left out: a changed index is no index. Errors:
    :class:`jumar.errors.StoreWriteError`.
    """
    if not directory.is_dir():
        return ()
    found: list[str] = []
    with files.as_write_error("rewrite files in", directory):
        for relative, entry in files.walk(directory, prune=lambda path: PurePosixPath(path).name == _GIT):
            if entry.is_file(follow_symlinks=False) and entry.name != _GIT:
                path = Path(entry.path)
                data = path.read_bytes()
                if redactor.finds(data):
                    found.append(relative)
                    if change:
                        files.replace_file(path, redactor.redact_bytes(data), mode=path.stat().st_mode & 0o7777)
    return tuple(found)


def _refuse_own_names(store: LoopStore, redactor: Redactor) -> None:
    """Refuse a secret that is a part of what jumar calls its own files: what is left would not be a loop."""
    for name in (
        "iterations/iteration-000/artifacts/logs",
        "attempts/000000.start.json",
        "decisions",
        "manifest.json metrics.json",
    ):
        if redactor.finds(name.encode()):
            raise UsageError("what is looked for is also in names that jumar itself gives to files: say it more exactly")
    if redactor.finds(store.loop_id.encode()):
        raise UsageError("the loop's own name holds it: rename its directory, and `loop_id` in loop.json, by hand")


def _plan(found: Changes, *, what: str, by: str, at: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "put": sorted(found.put),
        "remove": sorted(found.removed),
        "nonce": secrets.token_hex(8),
        "what": what,
        "files": found.files,
        "places": found.places,
        "renamed": found.renamed,
        "by": by,
        "at": at,
    }


def _carry_out(store: LoopStore) -> Decision:
    """Do what the plan says, from wherever it was left; the lock is held."""
    directory = store.paths.directory
    stage = directory / REDACTION
    plan = decode(read_store_file(stage / PLAN), os.fspath(stage / PLAN))
    put, removed = plan.texts("put"), plan.texts("remove")
    files.check_names([*put, *removed])
    with files.as_write_error("rewrite files of", directory):
        for path in put:
            target, source = directory / path, stage / "new" / path
            if os.path.lexists(source):
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(source, target)
        _sync_parents(directory, put)
        for path in removed:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(directory / path)
        _sync_parents(directory, removed)
        for path in removed:
            _drop_empty(directory, (directory / path).parent)
        store.refresh()
        decision = _record(store, plan)
        gone = directory / f"{files.TEMPORARY}{secrets.token_hex(6)}"
        files.rename_new(stage, gone)
        files.remove_tree(gone)
    return decision


def _sync_parents(directory: Path, paths: tuple[str, ...]) -> None:
    parents = {parent for path in paths for parent in (directory / path).parents if parent.is_relative_to(directory)}
    for parent in sorted(parents, key=lambda path: len(path.parts), reverse=True):
        if parent.is_dir():
            files.fsync_directory(parent)


def _drop_empty(directory: Path, parent: Path) -> None:
    """Remove directories that lost their last file to another name: they held the secret in theirs, as files else stay there."""
    while parent != directory:
        try:
            os.rmdir(parent)
        except OSError:
            return
        parent = parent.parent


def _record(store: LoopStore, plan: Fields) -> Decision:
    nonce = plan.text("nonce")
    for decision in store.decisions():
        if decision.kind == "redact" and decision.data.get("nonce") == nonce:
            return decision
    count, places = plan.integer("files"), plan.integer("places")
    numbers = store.iteration_numbers()
    return store.add_decision(
        "redact",
        final_iteration=numbers[-1] if numbers else None,
        reason=f"{plan.text('what')} taken out of {plural(count, 'file')}, {plural(places, 'place')}",
        by=plan.text("by"),
        at=plan.text("at"),
        data={"files": count, "places": places, "renamed": plan.integer("renamed"), "nonce": nonce},
    )


def _left(directory: Path, redactor: Redactor) -> tuple[str, ...]:
    """Return where the secret still stands below the loop, in words; a path that holds it is shown without it."""
    found: list[str] = []
    directories: list[str] = []
    holding: set[str] = set()

    def every_one(path: str) -> bool:
        directories.append(path.rstrip("/"))
        return False

    for relative, entry in files.walk(directory, prune=every_one):
        holding.update(map(os.fspath, PurePosixPath(relative).parents))
        shown = redactor.redact(escape(relative))
        if shown != escape(relative):
            found.append(f"the name of {shown}")
        if entry.is_file(follow_symlinks=False) and redactor.finds(Path(entry.path).read_bytes()):
            found.append(shown)
    empty = (redactor.redact(escape(path)) for path in directories if path not in holding and redactor.finds(os.fsencode(path)))
    found += [f"the name of the empty directory {shown}" for shown in empty]
    more = (f"and {len(found) - _SHOWN:,} more",) if len(found) > _SHOWN else ()
    return (*found[:_SHOWN], *more)
