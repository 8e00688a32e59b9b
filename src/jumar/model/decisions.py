"""Decisions: write-once facts about what was chosen, overridden, applied or cleaned up, by whom and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, cast, get_args

from jumar.model.codec import FORMAT, Fields

__all__ = ["KINDS", "Decision", "DecisionKind", "Kind"]

Kind = Literal["select", "override", "apply", "apply-end", "undo", "undo-end", "cleanup", "accept", "limits", "redact", "end"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)

DecisionKind = Literal["use_best", "use_final", "use_specific"]


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One file of ``decisions/``.

    ``best_iteration`` is the iteration that stands from now on, ``final_iteration`` the last one recorded then, ``delta``
    the score of the final one minus the best one's (None when one has no score), ``replaced`` the iteration that stood
    before (None at first). ``accept`` is a changed configuration that a person agreed to, ``limits`` another limit than in the
    run before, ``redact`` a secret that was taken out of the whole history, ``end`` the end of a run with everything done that
    belongs to it. ``data`` holds what belongs to the kind alone: the selection result, an apply's plan, a cleanup's list.
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
    data: Mapping[str, Any] = field(default_factory=_nothing)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "number": self.number,
            "kind": self.kind,
            "best_iteration": self.best_iteration,
            "final_iteration": self.final_iteration,
            "delta": self.delta,
            "decision": self.decision,
            "reason": self.reason,
            "by": self.by,
            "at": self.at,
            "replaced": self.replaced,
            "data": dict(self.data),
        }

    @classmethod
    def from_json(cls, fields: Fields) -> Decision:
        decision = fields.text_or_none("decision")
        return cls(
            number=fields.integer("number"),
            kind=cast("Kind", fields.choice("kind", KINDS)),
            best_iteration=fields.integer_or_none("best_iteration"),
            final_iteration=fields.integer_or_none("final_iteration"),
            delta=fields.number_or_none("delta"),
            decision=cast("DecisionKind | None", decision),
            reason=fields.text("reason"),
            by=fields.text("by"),
            at=fields.text("at"),
            replaced=fields.integer_or_none("replaced"),
            data=MappingProxyType(dict(fields.section("data").data)),
        )
