"""Decisions: write-once facts about what was selected, overridden, applied or cleaned up, by whom and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from jumar.core.record import FileRecord, nothing
from jumar.model.selection import STOP_REASONS, StopDecision

Kind = Literal[
    "select",
    "override",
    "held",
    "apply",
    "apply-end",
    "undo",
    "undo-end",
    "cleanup",
    "accept",
    "limits",
    "redact",
    "repair",
    "recheck",
    "end",
]
KINDS: Final[tuple[str, ...]] = get_args(Kind)

DecisionKind = Literal["use_best", "use_final", "use_specific"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(FileRecord):
    """One file of ``decisions/``.

    ``best_iteration`` is the iteration that stands from now on, ``final_iteration`` the last one recorded then, ``delta`` the
    score of the final one minus the best one's (None when one has no score), ``replaced`` the iteration that stood before
    (None at first). ``held`` is an override that a program of the loop made, or that was made while one ran: it changes
    nothing until a person says so; ``data`` has ``wanted``, the iteration, and ``made_by``. ``accept`` is a changed
    configuration that a person agreed to, ``limits`` another limit than in the run before, ``end`` the end of a run with
    everything done that belongs to it; ``redact``, in older loops only, a secret that was taken out of the whole history.
    ``repair`` is damage that was accepted: snapshots that were set aside, and what is missing for good. ``recheck`` is what
    came of running the checks of a selected iteration once more (:class:`Rechecked`). ``data`` holds what belongs to the kind
    alone: the selection result, an apply's plan, a cleanup's list.
    """

    number: int
    kind: Kind
    best_iteration: int | None
    final_iteration: int | None
    delta: float | None
    decision: DecisionKind | None
    reason: str
    by: str
    at: str
    replaced: int | None = None
    data: Mapping[str, Any] = field(default_factory=nothing)

    @property
    def stop(self) -> StopDecision | None:
        """Why the loop ended, of an ``end``; None for every other kind, and for a reason that this version does not know."""
        reason = self.data.get("stop_reason")
        return StopDecision(reason=reason, detail=self.reason) if self.kind == "end" and reason in STOP_REASONS else None


def last_end(decisions: Sequence[Decision]) -> Decision | None:
    """Return the last ``end`` of ``decisions``, which are in order; iterations may have followed it. None when there is none."""
    return next((decision for decision in reversed(decisions) if decision.kind == "end"), None)


def end_after(decisions: Sequence[Decision], last: int | None) -> Decision | None:
    """Return the ``end`` that followed iteration ``last``, the last one there is; None while the loop goes on from there."""
    end = last_end(decisions)
    return end if end is not None and last is not None and end.final_iteration == last else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rechecked:
    """Whether the checks of an iteration pass on what its snapshot holds: True, False, or None, not known. ``because`` says why.

    ``ran`` is False where that was known without running them; ``seconds`` is how long it took, setup included.
    ``strict``: where they don't, the iteration is not verified.
    """

    iteration: int
    rechecked: bool | None
    because: str
    ran: bool = True
    strict: bool = False
    seconds: float = 0.0

    @property
    def refused(self) -> bool:
        return self.strict and self.rechecked is False


def rechecks(decisions: Sequence[Decision]) -> dict[int, Rechecked]:
    """Return what the last recheck of each iteration came to, by iteration."""
    return {
        number: Rechecked(
            iteration=number,
            rechecked=decision.data.get("rechecked"),
            because=decision.reason,
            ran=decision.data.get("ran") is not False,
            strict=decision.data.get("strict") is True,
            seconds=_seconds(decision),
        )
        for decision in decisions
        if decision.kind == "recheck" and isinstance(number := decision.data.get("iteration"), int)
    }


def recheck_seconds(decisions: Sequence[Decision]) -> float:
    """Return how long all rechecks took: no attempt counts them."""
    return math.fsum(_seconds(decision) for decision in decisions if decision.kind == "recheck")


def _seconds(decision: Decision) -> float:
    found = decision.data.get("seconds")
    return float(found) if isinstance(found, int | float) and 0 <= found < math.inf else 0.0
