"""What is known of a chain of cases: inputs, iterations, choices, ends; and how they stand on disk.

``None`` means unknown or not there, never zero. Paths in records are POSIX and relative to the run's directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, cast, get_args

from jumar.core.codec import FORMAT, Fields
from jumar.model.records import IterationView, Usage

__all__ = [
    "CASE_STATUSES",
    "CHAIN_NAME",
    "STOPPED_BY",
    "CarriedFrom",
    "CaseBest",
    "CaseEnd",
    "CaseInputs",
    "CaseIteration",
    "CaseLimits",
    "CaseStatus",
    "CaseStop",
    "RoleFile",
    "StepRecord",
    "StoppedBy",
    "shown_ranking",
]

CaseStatus = Literal["ok", "step_failed", "step_timeout", "missing_output", "invalid_score"]
CASE_STATUSES: Final[tuple[str, ...]] = get_args(CaseStatus)
StoppedBy = Literal["thresholds", "max_iters", "max_seconds", "consecutive_failures", "interrupted", "terminated"]
STOPPED_BY: Final[tuple[str, ...]] = get_args(StoppedBy)
StepOutcome = Literal["ok", "failed", "timeout", "missing_output", "interrupted", "lost"]

CHAIN_NAME: Final = "causal_chain_completeness"
"""What ``best.json`` calls the key ``chain`` (seed 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleFile:
    """One file of a record: where it is, what is in it."""

    path: str
    sha256: str
    size: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Fields) -> RoleFile:
        return cls(path=fields.text("path"), sha256=fields.text("sha256"), size=fields.integer("size"))


def _files_to_json(files: Mapping[str, RoleFile]) -> dict[str, Any]:
    return {role: found.to_json() for role, found in files.items()}


def _files_from_json(fields: Fields, name: str) -> Mapping[str, RoleFile]:
    section = fields.section(name)
    return MappingProxyType({role: RoleFile.from_json(section.section(role)) for role in section.data})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One run of one step, paid for. ``outcome`` ``lost`` means that its process died and nothing more is known."""

    attempt: int
    step: str
    outcome: StepOutcome
    seconds: float | None
    exit_code: int | None = None
    detail: str = ""
    output_tail: str = ""
    usage: Usage = field(default_factory=Usage)
    outputs: Mapping[str, RoleFile] = field(default_factory=lambda: MappingProxyType(dict[str, RoleFile]()))
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "attempt": self.attempt,
            "step": self.step,
            "outcome": self.outcome,
            "seconds": self.seconds,
            "exit_code": self.exit_code,
            "detail": self.detail,
            "output_tail": self.output_tail,
            "usage": self.usage.to_json(),
            "outputs": _files_to_json(self.outputs),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, fields: Fields) -> StepRecord:
        return cls(
            attempt=fields.integer("attempt"),
            step=fields.text("step"),
            outcome=cast("StepOutcome", fields.choice("outcome", get_args(StepOutcome))),
            seconds=fields.number_or_none("seconds"),
            exit_code=fields.integer_or_none("exit_code"),
            detail=fields.text("detail"),
            output_tail=fields.text("output_tail"),
            usage=Usage.from_json(fields.section("usage")),
            outputs=_files_from_json(fields, "outputs"),
            notes=fields.texts("notes"),
        )


def shown_ranking(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the values under the names that ``best.json`` has: ``chain`` is called ``causal_chain_completeness``."""
    return {CHAIN_NAME if name == "chain" else name: value for name, value in values.items()}


def _inner_ranking(section: Fields) -> Mapping[str, float | None]:
    names = {name: "chain" if name == CHAIN_NAME else name for name in section.data}
    return MappingProxyType({inner: section.number_or_none(name) for name, inner in names.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseIteration:
    """One iteration of one case (``iteration.json``).

    ``values`` are the judge's scores by the name of their key, None where there is none. ``diff`` is the size of the
    augmentation, None when unknown. ``parent`` is the iteration whose outputs it started from, None for the case's inputs.
    ``steps`` are all runs of steps, the lost ones too.
    """

    case: int
    number: int
    status: CaseStatus
    reason: str = ""
    values: Mapping[str, float | None] = field(default_factory=lambda: MappingProxyType(dict[str, "float | None"]()))
    diff: float | None = None
    parent: int | None = None
    started_at: str = ""
    ended_at: str = ""
    nonce: str = ""
    outputs: Mapping[str, RoleFile] = field(default_factory=lambda: MappingProxyType(dict[str, RoleFile]()))
    steps: tuple[StepRecord, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every step did its work, so that the next iteration may build on it; the score may still be unusable."""
        return self.status in {"ok", "invalid_score"}

    def view(self) -> IterationView:
        """Return what an order looks at. Only for iterations whose ``status`` is ok."""
        keys = {name: value for name, value in {**self.values, "diff": self.diff}.items() if value is not None}
        return IterationView(number=self.number, score=None, keys=MappingProxyType(keys))

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "case": self.case,
            "iteration": self.number,
            "status": self.status,
            "reason": self.reason,
            "ranking": shown_ranking(self.values),
            "diff": self.diff,
            "parent": self.parent,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "nonce": self.nonce,
            "outputs": _files_to_json(self.outputs),
            "steps": [step.to_json() for step in self.steps],
        }

    @classmethod
    def from_json(cls, fields: Fields) -> CaseIteration:
        return cls(
            case=fields.integer("case"),
            number=fields.integer("iteration"),
            status=cast("CaseStatus", fields.choice("status", CASE_STATUSES)),
            reason=fields.text("reason"),
            values=_inner_ranking(fields.section("ranking")),
            diff=fields.number_or_none("diff"),
            parent=fields.integer_or_none("parent"),
            started_at=fields.text("started_at"),
            ended_at=fields.text("ended_at"),
            nonce=fields.text("nonce"),
            outputs=_files_from_json(fields, "outputs"),
            steps=tuple(StepRecord.from_json(item) for item in fields.sections("steps")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedFrom:
    """The case and iteration whose outputs a case started from, and whether they were the best or the last."""

    case: int
    iteration: int
    selected_by: Literal["best", "last"]

    def to_json(self) -> dict[str, Any]:
        return {"case": self.case, "iter": self.iteration, "selected_by": self.selected_by}

    @classmethod
    def from_json(cls, fields: Fields) -> CarriedFrom:
        return cls(
            case=fields.integer("case"),
            iteration=fields.integer("iter"),
            selected_by=cast("Any", fields.choice("selected_by", ("best", "last"))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseInputs:
    """What a case started from (``inputs/inputs_case_02.json``): its report and prompt, and every carried role."""

    case: int
    case_id: str
    files: Mapping[str, RoleFile]
    carried_from: CarriedFrom | None

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "case": self.case,
            "case_id": self.case_id,
            "files": _files_to_json(self.files),
            "carried_from": None if self.carried_from is None else self.carried_from.to_json(),
        }

    @classmethod
    def from_json(cls, fields: Fields) -> CaseInputs:
        carried = fields.section_or_none("carried_from")
        return cls(
            case=fields.integer("case"),
            case_id=fields.text("case_id"),
            files=_files_from_json(fields, "files"),
            carried_from=None if carried is None else CarriedFrom.from_json(carried),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseBest:
    """The pointer to a case's best iteration (``best.json``): seed 3's fields, and why it is that one.

    ``files`` are the copies in the bundle by role. ``runner_up`` is the second of the order, None when there is none, and
    ``margin`` the difference between the two in the key that decided (0 when a tie-break did). ``last`` is the last complete
    iteration and what it scored.
    """

    case: int
    best_iter: int
    selected_by: Literal["best", "last"]
    values: Mapping[str, float | None]
    prefer_earlier_iter: bool
    prefer_smaller_diff: bool
    files: Mapping[str, RoleFile]
    order: tuple[str, ...]
    runner_up: int | None = None
    margin: float | None = None
    decided_by: str | None = None
    explanation: str = ""
    last_iter: int
    last_values: Mapping[str, float | None]

    def to_json(self, roles: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the document; every one of ``roles`` has a path, null where the iteration has no such file."""
        names = dict.fromkeys((*roles, *self.files))
        return {
            "format": FORMAT,
            "case": self.case,
            "best_iter": self.best_iter,
            "selected_by": self.selected_by,
            "ranking": shown_ranking(self.values),
            "tie_break": {"prefer_earlier_iter": self.prefer_earlier_iter, "prefer_smaller_diff": self.prefer_smaller_diff},
            "paths": {name: self.files[name].path if name in self.files else None for name in names},
            "files": _files_to_json(self.files),
            "order": list(self.order),
            "runner_up": self.runner_up,
            "margin": self.margin,
            "decided_by": self.decided_by,
            "explanation": self.explanation,
            "last_iter": self.last_iter,
            "last_ranking": shown_ranking(self.last_values),
        }

    @classmethod
    def from_json(cls, fields: Fields) -> CaseBest:
        tie_break = fields.section("tie_break")
        return cls(
            case=fields.integer("case"),
            best_iter=fields.integer("best_iter"),
            selected_by=cast("Any", fields.choice("selected_by", ("best", "last"))),
            values=_inner_ranking(fields.section("ranking")),
            prefer_earlier_iter=tie_break.boolean("prefer_earlier_iter"),
            prefer_smaller_diff=tie_break.boolean("prefer_smaller_diff"),
            files=_files_from_json(fields, "files"),
            order=fields.texts("order"),
            runner_up=fields.integer_or_none("runner_up"),
            margin=fields.number_or_none("margin"),
            decided_by=fields.text_or_none("decided_by"),
            explanation=fields.text("explanation"),
            last_iter=fields.integer("last_iter"),
            last_values=_inner_ranking(fields.section("last_ranking")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLimits:
    """When a case ends: all ``thresholds`` reached by one iteration (none: never), or a limit.

    A threshold is reached from below (``≥``), that of a key in ``at_most`` from above (``≤``): less is better there.

    ``max_iters`` counts iterations of the case; ``max_seconds`` is the time of all steps of the run, None for no limit;
    ``consecutive_failures`` counts iterations without a usable score.
    """

    thresholds: Mapping[str, float]
    max_iters: int = 5
    max_seconds: float | None = None
    consecutive_failures: int = 3
    at_most: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStop:
    """Why a case ends, and in words."""

    stopped_by: StoppedBy
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseEnd:
    """How a case ended (``case.json``). ``best_iter`` is None when no iteration is valid."""

    case: int
    stopped_by: StoppedBy
    detail: str
    iterations: int
    best_iter: int | None
    ended_at: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, fields: Fields) -> CaseEnd:
        return cls(
            case=fields.integer("case"),
            stopped_by=cast("StoppedBy", fields.choice("stopped_by", STOPPED_BY)),
            detail=fields.text("detail"),
            iterations=fields.integer("iterations"),
            best_iter=fields.integer_or_none("best_iter"),
            ended_at=fields.text("ended_at"),
        )
