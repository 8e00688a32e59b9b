"""Which loop a run goes on with, and what a new one is called."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jumar.app.run.given import config_with, defaults_of, was_cut_off
from jumar.core.files import names_in
from jumar.core.lock import who_holds
from jumar.core.text import escape
from jumar.errors import ConfigError, ForgedError, JumarError
from jumar.loop.decisions.plan import plan_apply
from jumar.loop.engine.verdict import never_begun
from jumar.loop.ranking.stopping import evaluate_stop
from jumar.loop.store.creation import is_foreign
from jumar.loop.store.in_force import artifact_rules, config_now, criteria_of, is_made_up, standing
from jumar.loop.store.layout import UNREADABLE, LoopPaths, list_loops, loops_directory, standing_of
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore, has_iterations
from jumar.loop.store.reading import attempt_names
from jumar.loop.store.running import by_creation
from jumar.model.selection import DONE_REASONS, LIMIT_REASONS

if TYPE_CHECKING:
    from jumar.app.run.request import RunRequest

_LOOKED_BACK: Final = 20  # loops

_TO_GO_ON_FROM = LIMIT_REASONS | {"blocked"}
"""How a loop ends that is not at its end: with a higher limit, or once the reason is gone, the same command resumes."""


@dataclass(frozen=True, slots=True)
class LoopChoice:
    """The loop of a run; a ``fresh`` one is yet to be made (``told``: why), and one that is ``unbegun`` is made anew."""

    loop_id: str
    fresh: bool
    unbegun: bool = False
    told: str = ""


def choose_loop(request: RunRequest, workdir: Path, same: Callable[[LoopReader], bool]) -> LoopChoice:
    """Return the loop to resume, or the name of a new one.

    A named configuration goes on with the newest of its loops, unless that is done and its result is not what the working
    directory holds now: then the work begins anew. A command line without a name goes on with a loop that was started with the
    ``same`` words in the same directory and is unfinished, or is the newest of them and was ended by a limit: its budget is not
    to be had a second time by running the command again, and a higher ``-n`` adds to it. Otherwise the name is made up: the
    directory's with the next free number, ``calc-3``. A loop that never began is as good as a new one: it is taken where one
    would be made.
    """
    root, given = request.root, request.config.loop.id
    taken, stem = _taken(root), _slug(workdir.name)
    if not request.named:
        twin = None if request.new else _unfinished_twin(request, workdir, same)
        unbegun = _unbegun(root, workdir) if twin is None else None
        if unbegun is not None:
            return LoopChoice(unbegun, fresh=False, unbegun=True)
        return _there(root, twin) if twin else LoopChoice(_next(stem, taken), fresh=True)
    name, existing = given or stem, list_loops(root)
    if request.exact and not request.new and name in existing:
        return _there(root, name)
    own = [(_generation(loop, name), loop) for loop in existing if loop == given or not _is_made_up(root, loop)]
    numbered = [(number, loop) for number, loop in own if number is not None]
    meant = {loop: standing_of(LoopPaths(loops_directory(root) / loop).loop_json) for _, loop in numbered}
    numbered = [each for each in numbered if meant[each[1]] in {max(meant.values()), UNREADABLE}]
    newest = _there(root, max(numbered)[1]) if numbered else None
    told = ""
    if newest is not None and (newest.unbegun or not request.new):
        if newest.unbegun or request.resume == "require" or not _is_past(request, workdir, newest.loop_id, same):
            return newest
        told = f"loop '{newest.loop_id}' reached its target, and the directory is not what it left any more: this is a new loop"
    if name not in taken:
        return LoopChoice(name, fresh=True)
    if given is not None and not numbered:
        paths = LoopPaths(loops_directory(root) / name)
        if is_foreign(paths.directory) or has_iterations(paths):
            return LoopChoice(name, fresh=False)
        told = f"there is no loop in {escape(os.fspath(paths.directory))}, which stays as it is: this is a new loop"
    return LoopChoice(_next(name, taken), fresh=True, told=told)


def new_name(root: Path, workdir: Path, taken: Collection[str] = ()) -> str:
    """Return the name that the next loop of ``workdir`` gets where nobody names it; it is none of those ``taken`` elsewhere."""
    return _next(_slug(workdir.name), _taken(root).union(taken))


def refuse_another_loop(request: RunRequest, choice: LoopChoice, workdir: Path) -> None:
    """Refuse the loop that a configuration names where another one of this directory was cut off: its agent may have named it.

    Errors: :class:`ConfigError`.
    """
    if request.path is None or request.new or request.exact or request.accept_changes:
        return
    names = [name for name in by_creation(request.root)[-_LOOKED_BACK:] if name != choice.loop_id]
    cut_off = next((name for name in names if _was_cut_off_in(request.root, name, workdir)), None)
    if cut_off is not None:
        what = "[loop] id" if request.named else escape(request.path.name)
        raise ConfigError(
            f"{what} leads to loop '{escape(choice.loop_id)}', and loop '{escape(cut_off)}' of this directory did not end: "
            "jumar was killed while an agent ran, which may have written that: put it back, or give --new or --accept-changes if "
            "it was you"
        )


def _was_cut_off_in(root: Path, name: str, workdir: Path) -> bool:
    with contextlib.suppress(JumarError, OSError):  # whoever opens a damaged one will say so
        store = LoopReader(loops_directory(root) / name)
        if store.config.get("run") is None or store.workdir is None:
            return False
        near = workdir == store.workdir or workdir in store.workdir.parents or store.workdir in workdir.parents
        if not near or who_holds(store.paths.lock) is not None:
            return False
        end, (begun, _) = store.last_end(), attempt_names(set(names_in(store.paths.attempts)))
        nothing_since = end is not None and end.data.get("attempts") == max(begun, default=0)
        try:
            return os.path.lexists(store.paths.recheck_begun) if nothing_since else was_cut_off(store)  # reads all attempts
        except ForgedError:  # somebody wrote an end that jumar did not see
            return True
    return False


def _is_past(request: RunRequest, workdir: Path, loop: str, same: Callable[[LoopReader], bool]) -> bool:
    """Whether a loop has nothing more to do, by the rules of this run, and the working directory lost its result since."""
    with contextlib.suppress(JumarError):  # whoever opens a damaged one will say so
        store = LoopStore.open(loops_directory(request.root) / loop)
        stop, in_force = store.recorded_stop(), config_now(store)
        if stop is None or stop.reason not in DONE_REASONS or in_force.get("apply") != "auto" or not same(store):
            return False
        now = evaluate_stop(store.views(), config_with(defaults_of(store), request.config_for(store)).stop_rules(), seconds=0)
        left = standing(store, criteria_of(in_force)).iteration
        if now is None or now.reason not in DONE_REASONS or left is None or store.workdir != workdir:
            return False
        return not plan_apply(store, left, workdir, artifact_rules(store), exact=True).empty
    return False


def _there(root: Path, loop: str) -> LoopChoice:
    """Return the choice of a loop that is there."""
    with contextlib.suppress(JumarError):  # whoever opens a damaged one will say so
        return LoopChoice(loop, fresh=False, unbegun=never_begun(LoopReader(loops_directory(root) / loop)))
    return LoopChoice(loop, fresh=False)


def _unbegun(root: Path, workdir: Path) -> str | None:
    """Return the newest loop of a command line in ``workdir`` that never began."""
    for loop in reversed(by_creation(root)):
        with contextlib.suppress(JumarError):
            store = LoopReader(loops_directory(root) / loop)
            if is_made_up(store) and store.workdir == workdir and never_begun(store):
                return loop
    return None


def _taken(root: Path) -> frozenset[str]:
    """Return the names below ``root`` that no new loop may have: of loops, and of what is left of one."""
    try:
        return frozenset(entry.name for entry in loops_directory(root).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()


def _unfinished_twin(request: RunRequest, workdir: Path, same: Callable[[LoopReader], bool]) -> str | None:
    newest, best = True, 0
    found = [LoopPaths(loops_directory(request.root) / loop).loop_json for loop in reversed(by_creation(request.root))]
    for meant, path in sorted(((standing_of(path), path) for path in found), key=itemgetter(0), reverse=True):
        store = LoopReader(path.parent)
        if meant < best or store.config.get("run") is None or store.workdir != workdir or not same(store):
            continue
        end, best = store.last_end(), meant
        if end is None or (newest and _may_go_on(store, end.data.get("stop_reason"), request.config.max_iterations)):
            return path.parent.name
        newest = False
    return None


def _may_go_on(store: LoopReader, reason: object, most: int) -> bool:
    """Whether a loop that ended for ``reason`` was ended by a limit, that on iterations only where ``most`` is higher."""
    if reason == "max_iterations":
        return max(store.iteration_numbers(), default=0) < most
    return reason in _TO_GO_ON_FROM


def _is_made_up(root: Path, loop: str) -> bool:
    with contextlib.suppress(JumarError):  # whoever opens a damaged one will say so
        return is_made_up(LoopReader(loops_directory(root) / loop))
    return False


def _generation(loop: str, name: str) -> int | None:
    """Return 1 for ``name``, N for ``name-N``, None for another loop."""
    if loop == name:
        return 1
    match = re.fullmatch(re.escape(name) + r"-([0-9]{1,6})", loop)
    return int(match[1]) if match and int(match[1]) > 1 else None


def _next(name: str, taken: frozenset[str]) -> str:
    """Return ``name-N`` with the number after the highest that is taken; ``name`` itself counts as the first."""
    pattern = re.compile(re.escape(name) + r"-([0-9]{1,6})")
    numbers = [int(match[1]) for loop in taken if (match := pattern.fullmatch(loop))]
    number = max([*numbers, int(name in taken)]) + 1
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.")[:60] or "loop"
