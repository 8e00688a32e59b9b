"""Going on from what is on disk: an interrupted step is completed or charged, never forgotten."""

from __future__ import annotations

from dataclasses import dataclass

from jumar.loop.step import Step
from jumar.loop.strays import end_strays
from jumar.model.attempts import Attempt, AttemptEnd
from jumar.model.records import IterationView

__all__ = ["Recovery", "choose_parent", "recover"]

_LEFT_LYING = frozenset({"generator_failed", "generator_timeout", "interrupted"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What a resume found and did, as sentences for the person."""

    notices: tuple[str, ...]


def recover(step: Step) -> Recovery:
    """Bring the loop to the state between two iterations. The caller holds the lock.

    In this order: attempts that never ended are written off as lost, and what they left running is ended; a snapshot that
    was taken is scored; an attempt that ended without a snapshot gets one from the work tree; a tree that differs from
    the recorded parent's is set aside and restored.
    """
    notices: list[str] = []
    store = step.store
    lost = [attempt for attempt in store.attempts() if attempt.end is None]
    for attempt in lost:
        end_strays(attempt.start.nonce)
        store.end_attempt(attempt.start.number, _lost(step))
        notices.append(f"attempt {attempt.start.number} did not end (its process died); it is counted as lost")
    completed = _complete_pending(step, notices) or _complete_unstaged(step, notices)
    views = store.views()
    if views and not completed:
        parent = choose_parent(views, step.settings.continue_from, step.tally.best())
        kept = step.workspace.restore(parent, set_aside=True)
        if kept is not None:
            notices.append(
                f"the work tree was not that of iteration {parent}; what differed is kept in {kept}, "
                f"and the loop goes on from {parent}"
            )
    store.discard_leftovers()
    return Recovery(notices=tuple(notices))


def choose_parent(views: tuple[IterationView, ...], continue_from: str, best: IterationView | None) -> int:
    """Return the iteration whose tree the next one starts from.

    ``previous`` is the last iteration whose generator succeeded: what a failed one left lying is in its snapshot, and not in the
    way of the next. ``best`` is the running best, else the previous.
    """
    if continue_from == "best" and best is not None:
        return best.number
    usable = (view for view in reversed(views) if view.status not in _LEFT_LYING)
    return next(usable, views[-1]).number


def _lost(step: Step) -> AttemptEnd:
    return AttemptEnd(outcome="lost", seconds=None, ended_at=step.clock.now(), detail="its process died before it ended")


def _complete_pending(step: Step, notices: list[str]) -> bool:
    pending = step.store.pending()
    if pending is None:
        return False
    end_strays(pending.nonce)
    step.workspace.carry_out(step.workspace.difference_to(pending), set_aside=True)
    if step.complete(pending) is not None:
        notices.append(f"iteration {pending.number} was generated before the interruption; it is scored now, not generated again")
    return True


def _complete_unstaged(step: Step, notices: list[str]) -> bool:
    """Snapshot what an attempt left that ended just before the interruption."""
    attempts = step.store.attempts()
    if not attempts or not _is_unstaged(step, attempts[-1]):
        return False
    start, end = attempts[-1].start, attempts[-1].end
    if end is None or start.parent is None:
        return False
    scratch = step.store.paths.scratch / f"{start.number:06d}"
    logs = scratch if scratch.is_dir() else None
    pending = step.stage_ended(start.iteration, start.parent, start.nonce, start.number, end, logs)
    if step.complete(pending) is not None:
        notices.append(f"iteration {start.iteration} was generated before the interruption; its work tree is taken as it lies")
    return True


def _is_unstaged(step: Step, attempt: Attempt) -> bool:
    if attempt.end is None or attempt.end.outcome in {"lost", "interrupted"}:
        return False
    return attempt.start.iteration not in step.store.iteration_numbers()
