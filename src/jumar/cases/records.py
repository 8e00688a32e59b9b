"""The records of a chain of cases: inputs, iterations, choices, ends, as they stand on disk; and the events that a run emits.

``None`` means unknown or not there, never zero. Paths in records are POSIX and relative to the run's directory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, get_args

from jumar.core.codec import Fields
from jumar.core.record import FileRecord, Record, nothing, stored
from jumar.model.pipeline import DEFAULT_FAILURES, DEFAULT_MAX_ITERS, Scale
from jumar.model.records import IterationView, Usage

_log = logging.getLogger("jumar.cases")

CaseStatus = Literal["ok", "step_failed", "step_timeout", "missing_output", "invalid_score"]
CASE_STATUSES: Final[tuple[str, ...]] = get_args(CaseStatus)
StoppedBy = Literal[
    "thresholds",
    "max_iters",
    "max_seconds",
    "max_cost",
    "max_tokens",
    "unknown_cost",
    "consecutive_failures",
    "interrupted",
    "terminated",
]
STOPPED_BY: Final[tuple[str, ...]] = get_args(StoppedBy)
SPENT: Final[frozenset[StoppedBy]] = frozenset({"max_seconds", "max_cost", "max_tokens", "unknown_cost"})
"""Ends by a limit of the whole run: a resume that raises it opens the case again."""
StepOutcome = Literal["ok", "failed", "timeout", "missing_output", "interrupted", "lost"]

CHAIN_NAME: Final = "causal_chain_completeness"
"""What ``best.json`` calls the key ``chain`` (seed 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleFile(Record):
    """One file of a record: where it is, what is in it."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFile(Record):
    """A file that the judge's step runs: its ``path``, relative to the working directory or absolute, and the run's ``copy``."""

    path: str
    mode: int
    copy: RoleFile


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord(Record):
    """One run of one step, paid for. ``outcome`` ``lost`` means that its process died and nothing more is known.

    ``reserve_cost_usd`` and ``reserve_tokens`` are what was set aside for it, None without a budget and where nothing was known.
    """

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
    reserve_cost_usd: float | None = field(default=None, metadata=stored(omit=True))
    reserve_tokens: int | None = field(default=None, metadata=stored(omit=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStart(FileRecord):
    """The reservation of one run of a step: written before it is paid for. ``nonce`` marks its processes."""

    attempt: int
    step: str
    nonce: str
    started_at: str = ""
    pid: int = 0
    reserve_cost_usd: float | None = field(default=None, metadata=stored(omit=True))
    reserve_tokens: int | None = field(default=None, metadata=stored(omit=True))


def shown_ranking(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the values under the names that ``best.json`` has: ``chain`` is called ``causal_chain_completeness``."""
    return {CHAIN_NAME if name == "chain" else name: value for name, value in values.items()}


def _inner_ranking(fields: Fields, key: str) -> Mapping[str, float | None]:
    section = fields.section(key)
    names = {name: "chain" if name == CHAIN_NAME else name for name in section.data}
    return MappingProxyType({inner: section.number_or_none(name) for name, inner in names.items()})


RANKING: Final = stored("ranking", write=shown_ranking, read=_inner_ranking)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseIteration(FileRecord):
    """One iteration of one case (``iteration.json``).

    ``values`` are the judge's scores by the name of their key, None where there is none. ``diff`` is the size of the
    augmentation, None when unknown. ``parent`` is the iteration whose outputs it started from, None for the case's inputs.
    ``steps`` are all runs of steps, the lost ones too.
    """

    case: int
    number: int = field(metadata=stored("iteration"))
    status: CaseStatus
    reason: str = ""
    values: Mapping[str, float | None] = field(default_factory=nothing, metadata=RANKING)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedFrom(Record):
    """The case and iteration whose outputs a case started from, and whether they were the best or the last."""

    case: int
    iteration: int = field(metadata=stored("iter"))
    selected_by: Literal["best", "last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseInputs(FileRecord):
    """What a case started from (``inputs/inputs_case_02.json``): its report and prompt, and every carried role."""

    case: int
    case_id: str
    files: Mapping[str, RoleFile]
    carried_from: CarriedFrom | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TieBreak(Record):
    """What decides between equal iterations, in seed 3's words."""

    prefer_earlier_iter: bool
    prefer_smaller_diff: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseBest(FileRecord):
    """The pointer to a case's best iteration (``best.json``): seed 3's fields, and why it is that one.

    ``files`` are the copies in the bundle by role, ``paths`` where each role of the run is, None where the iteration has no such
    file. ``runner_up`` is the second of the order, None when there is none, and ``margin`` the difference between the two in the
    key that decided (0 when a tie-break did). ``last`` is the last complete
    iteration and what it scored. ``not_carried`` is why the next case does not start from it, None where it may.
    """

    case: int
    best_iter: int
    selected_by: Literal["best", "last"]
    values: Mapping[str, float | None] = field(metadata=RANKING)
    tie_break: TieBreak
    paths: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType(dict[str, "str | None"]()))
    files: Mapping[str, RoleFile]
    order: tuple[str, ...]
    runner_up: int | None = None
    margin: float | None = None
    decided_by: str | None = None
    explanation: str = ""
    last_iter: int
    last_values: Mapping[str, float | None] = field(metadata=stored("last_ranking", write=shown_ranking, read=_inner_ranking))
    not_carried: str | None = field(default=None, metadata=stored(omit=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLimits:
    """When a case ends: all ``thresholds`` reached by one iteration (none: never), or a limit.

    A threshold is reached from below (``≥``), that of a key in ``at_most`` from above (``≤``): less is better there.

    ``max_iters`` counts iterations of the case; ``max_seconds`` is the time of all steps of the run, None for no limit;
    ``consecutive_failures`` counts iterations without a usable score; one outside of the ``scales``, by key, is none.
    """

    thresholds: Mapping[str, float]
    max_iters: int = DEFAULT_MAX_ITERS
    max_seconds: float | None = None
    consecutive_failures: int = DEFAULT_FAILURES
    at_most: frozenset[str] = frozenset()
    scales: Mapping[str, Scale] = field(default_factory=nothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStop:
    """Why a case ends, and in words."""

    stopped_by: StoppedBy
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseEnd(FileRecord):
    """How a case ended (``case.json``). ``best_iter`` is None when no iteration is valid."""

    case: int
    stopped_by: StoppedBy
    detail: str
    iterations: int
    best_iter: int | None
    ended_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStarted:
    """A case is about to run. ``recorded`` are the iterations that it has already, ``best`` the number of the best of them."""

    case: int
    case_id: str
    carried_from: CarriedFrom | None
    recorded: tuple[CaseIteration, ...]
    best: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStepStarted:
    """A step of an iteration begins."""

    case: int
    iteration: int
    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationMade:
    """An iteration is acknowledged. ``best`` is the number of the best so far, None when none is valid."""

    record: CaseIteration
    best: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseEnded:
    """A case has ended, its best bundle is written: ``best``, None when no iteration is valid."""

    end: CaseEnd
    best: CaseBest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseNotice:
    """Something that the person should know."""

    message: str


CaseEvent = CaseStarted | CaseStepStarted | IterationMade | CaseEnded | CaseNotice
CaseListener = Callable[[CaseEvent], None]


def tell(event: CaseEvent, listener: CaseListener | None) -> None:
    """Hand ``event`` to ``listener``; an exception there is logged and dropped."""
    if isinstance(event, CaseNotice):
        _log.info("jumar.case_notice: %s", event.message)
    if listener is None:
        return
    try:
        listener(event)
    except Exception:  # noqa: BLE001 - whatever a listener raises, it is not the run's
        _log.exception("jumar.listener_failed")
