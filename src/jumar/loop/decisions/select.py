"""Writing down what the rules chose, and a person's word against them: who, when, why, and what it replaced.

Some commands are a person's to give. A program of a loop is told where it is by its environment, and so are those that it starts.
One that wiped its environment and left its parents cannot be told from a person by that. So where jumar was killed while a step
ran, what is selected is held until the loop was resumed, or somebody at a terminal says yes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, Literal

from jumar.core.codec import decode
from jumar.core.text import escape
from jumar.errors import JumarError, NotFoundError, UsageError
from jumar.loop.store.in_force import config_now, select_from, standing
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore
from jumar.model import Decision, IterationView, SelectionCriteria, SelectionResult
from jumar.model.ordering import difference, invalid_reason, valid_score
from jumar.processes.process_tree import Family, programs_above


def record_selection(
    store: LoopStore,
    result: SelectionResult,
    *,
    by: str,
    at: str,
    reason: str | None = None,
    criteria: SelectionCriteria | None = None,
) -> Decision:
    """Write the selection as a decision and return it; the same result as last time writes nothing and returns that one.

    ``reason`` defaults to the result's own; ``criteria`` are kept beside it where they are given. An override that was made
    before still stands afterwards. ``replaced`` is the iteration that stood until now.
    """
    data = {"result": result.to_json(), "criteria": criteria and criteria.to_json()}
    text = result.reason if reason is None else reason
    with store.lock():
        last = next((decision for decision in reversed(store.decisions()) if decision.kind == "select"), None)
        if last is not None and dict(last.data) == data and last.reason == text:
            return last
        return store.add_decision(
            "select",
            best_iteration=result.stands,
            final_iteration=result.final_iteration,
            delta=final_delta(result.final_quality, result.quality_score),
            decision="use_best",
            reason=text,
            by=by,
            at=at,
            replaced=standing(store).iteration,
            data=data,
        )


def final_delta(final: float | None, chosen: float | None) -> float | None:
    """Return the final score minus the selected one, rounded to 4 decimals; None when one of them is unknown."""
    return None if final is None or chosen is None else difference(final, chosen)


def parse_use(text: str) -> Literal["best", "final"] | int:
    """Read what stands behind ``--use``: ``best``, ``final`` or a number; seed 1's ``use_best`` and ``use_final`` too."""
    word = text.strip().lower().removeprefix("use_")
    if word == "best" or word == "final":  # noqa: PLR1714  # the type checker narrows the word only this way
        return word
    if word.isascii() and word.isdigit():
        return int(word)
    raise UsageError(f"--use takes best, final or the number of an iteration, not '{escape(text)}'")


def override(
    store: LoopStore,
    use: Literal["best", "final"] | int,
    *,
    reason: str,
    by: str,
    at: str,
    criteria: SelectionCriteria,
    made_by: str | None = None,
) -> Decision:
    """Let ``use`` stand from now on, whatever the rules choose, and return the decision.

    ``made_by`` names a program of the loop that makes it, or that runs meanwhile, or may have made it: then it is only written
    down, as ``held``.

    ``best`` is what ``criteria`` choose now, ``final`` the last iteration, a number that one. The working directory is not
    touched. Errors: :class:`UsageError` without a reason, when the configuration forbids overrides, and for an iteration without
    a valid score or snapshot; :class:`NotFoundError` for a number that is not there;
    :class:`jumar.errors.NothingEvaluatedError` when there is nothing to choose from.
    """
    why = reason.strip()
    if not why:
        raise UsageError('an override needs a reason: say why with --reason "…"; it is kept with the decision')
    if config_now(store).get("override_enabled") is False:
        raise UsageError("overrides are off: [override] enabled = false in the configuration of this loop")
    with store.lock():
        views = store.views()
        data: dict[str, Any] = {"use": use}
        if use == "best":
            result = select_from(store, criteria)
            number = result.stands
            data |= {"result": result.to_json(), "criteria": criteria.to_json()}
        else:
            number = _number(views, use)
        chosen = _usable(store, views, number)
        final = max(views, key=lambda view: view.number)
        if made_by is not None:
            data = {"use": use, "wanted": number, "made_by": made_by}
            nothing = {"best_iteration": None, "final_iteration": final.number, "delta": None, "decision": None}
            return store.add_decision("held", reason=why, by=by, at=at, data=data, **nothing)
        return store.add_decision(
            "override",
            best_iteration=number,
            final_iteration=final.number,
            delta=final_delta(valid_score(final), valid_score(chosen)),
            decision="use_best" if use == "best" else "use_final" if use == "final" else "use_specific",
            reason=why,
            by=by,
            at=at,
            replaced=standing(store).iteration,
            data=data,
        )


def _number(views: tuple[IterationView, ...], use: Literal["final"] | int) -> int:
    numbers = [view.number for view in views]
    if not numbers:
        raise NotFoundError("no iteration is recorded yet, so there is none to choose")
    if use == "final":
        return max(numbers)
    if use not in numbers:
        raise NotFoundError(f"there is no iteration {use}; recorded are {min(numbers)} to {max(numbers)}")
    return use


def _usable(store: LoopStore, views: tuple[IterationView, ...], number: int) -> IterationView:
    """Refuse what could not be applied, or what nobody could compare with anything."""
    view = next(view for view in views if view.number == number)
    invalid = invalid_reason(view)
    if invalid is not None:
        why = store.record(number, listed=False).status_reason
        said = f"{invalid}: {escape(why)}" if why else invalid
        raise UsageError(f"iteration {number} has no valid score ({said}), so it cannot be selected; choose another one")
    gone = store.without_snapshot(number)
    if gone is not None and "origin" not in store.config:
        raise UsageError(f"the snapshot of iteration {number} {gone}, so it cannot be applied; choose another one")
    return view


def calling_program(loop_id: str, nonce: str | None = None) -> str | None:
    """Return which program of the loop this process is, or was started by, as words; None for a person.

    A copy of the loop that has another name has its ``nonce``: what is marked there would be believed here.
    """
    above = programs_above()
    iteration = next((iteration for loop, iteration, nonces in above if loop == loop_id or nonce in nonces), None)
    if iteration == "":
        return "a program of setup or on_stop"
    return None if iteration is None else f"a program of iteration {escape(iteration)}"


def program_of(store: LoopReader, confirm: Callable[[str], bool] | None = None) -> str | None:
    """Return which program of the loop calls this, runs, or may have called it since jumar was killed, as words.

    None for a person: where only the last is to be feared, one whom ``confirm``, told what ran then, lets say yes.
    """
    who = calling_program(store.loop_id, store.nonce) or running_program(store)
    begun = left_open(store) if who is None else None
    return who if begun is None or (confirm is not None and confirm(begun)) else begun


def running_program(store: LoopReader) -> str | None:
    """Return which program of a step that never ended still runs, as words; None when there is none."""
    for attempt in store.attempts():
        if attempt.end is None and (left := Family(attempt.start.nonce).living()):
            return f"process {left[0]} of iteration {attempt.start.iteration}, which still runs,"
    begun = store.paths.recheck_begun
    with contextlib.suppress(JumarError):
        if os.path.lexists(begun) and (left := Family(decode(store.trust.read(begun), os.fspath(begun)).text("nonce")).living()):
            return f"process {left[0]} of the checks that ran once more, which still runs,"
    return None


def left_open(store: LoopReader) -> str | None:
    """Return what ran when jumar was killed, or runs now, as words; None where all that began has ended.

    Its programs may be gone since, by themselves or ended by any command of jumar's: that they were there stays on record until
    the loop is resumed.
    """
    if os.path.lexists(store.paths.recheck_begun):
        return "a recheck that never ended"
    starts = (attempt.start for attempt in store.attempts() if attempt.end is None)
    return next((f"a step of iteration {start.iteration} that never ended" for start in starts), None)


def refuse_program(loop_id: str, what: str, nonce: str | None = None) -> None:
    """Raise :class:`UsageError` where a program of the loop, or of one that it is a copy of, calls ``what``.

    That is for a person to do. ``nonce`` is the loop's, where that can be read.
    """
    who = calling_program(loop_id, nonce)
    if who is not None:
        raise UsageError(
            f"{who} of loop '{escape(loop_id)}' called `jumar {what}`, which is for a person to do; nothing was changed"
        )
