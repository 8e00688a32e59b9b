"""What an evaluator said about all items of an iteration: figures and the worst items, bounded in size, part of a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from jumar.core.record import Record, nothing, stored

EvaluatorMode = Literal["cheap", "expensive", "dual", "auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedItem(Record):
    """One item that scored low, or on which the judges differ. Both scores are from 1 to 5, None where there is none.

    ``gestalt`` is that of the judge that counts; ``cheap`` that of the cheap one beside it. ``weaknesses`` are in words.
    """

    id: str
    gestalt: float | None
    cheap: float | None = None
    weaknesses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedSoFar(Record):
    """What the cheap judge has learned when an iteration was judged. ``waiting`` is why nothing was learned in it, else empty.

    ``profile`` is ``evidence`` or ``seed``. ``items`` and ``groups`` are those that were learned from; ``left_out`` items of this
    iteration were not, because they belong to both sides of the split. ``patterns`` are active ones; ``proposed``,
    ``committed`` and ``rejected`` are totals of the loop. ``abs_gap`` is the mean absolute gap of this iteration's items, each
    scored by a set that saw nothing of its group; ``tracks`` is of all items, None where it is not proven either way.
    ``checks`` are those of convergence, empty before two iterations; ``converged`` when all hold, else ``missing`` says what is
    missing, by how much, and what would help. ``rolled_back``: the step made
    things worse, and was taken back. ``set`` is the patterns file, below the iteration's own folder.
    """

    profile: str
    items: int = 0
    groups: int = 0
    left_out: int = 0
    patterns: int = 0
    proposed: int = 0
    committed: int = 0
    rejected: int = 0
    abs_gap: float | None = None
    tracks: bool | None = None
    rolled_back: bool = False
    converged: bool = False
    checks: Mapping[str, bool] = field(default_factory=nothing)
    missing: str = ""
    set: str | None = None
    waiting: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoDecisions(Record):
    """Who decided about the items of an iteration in mode auto, and what is known of the decisions that nobody checked.

    ``line`` is where an item is good enough, from 1 to 5. Every item is one of ``cheaply`` decided, ``audited`` (it would have
    been, and the judge was asked to check), ``escalated`` and ``undecided``; ``above`` and ``below`` the line are the decisions.
    ``cost_saved_usd`` is None where nobody knows what a call costs. ``interval`` is that of the average, 95 %, None where there
    are too few audits. At most the share ``promised`` of cheap decisions may be wrong; ``wrong`` of the audits were, so that it
    is ``wrong_at_most``; ``held`` is None where that is not known yet. ``verdict`` is the proof's, and ``reasons`` why the cheap
    judge must not decide; ``rest_asked``: audits failed in this iteration, and the judge was asked about all others, too.
    """

    line: float
    cheaply: int
    audited: int
    escalated: int
    undecided: int
    above: int
    below: int
    calls_saved: int
    cost_saved_usd: float | None
    interval: tuple[float, float] | None
    promised: float
    wrong: int
    wrong_at_most: float
    held: bool | None
    rest_asked: bool
    verdict: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement(Record):
    """One evaluation. Averages are from 1 to 5 and None where nothing was scored.

    ``gestalt`` is the mean that became the score, in dual mode the expensive judge's, in mode auto what that one's
    would be. ``cheap``, ``gap`` (expensive − cheap,
    signed), ``abs_gap`` and ``tracks`` are of dual mode, over the items that both scored; ``tracks`` is None where it is not
    proven either way. ``unscored`` counts the items without a score by kind. ``cost_usd`` is what the judge was paid for this
    evaluation, None when a call did not say; then ``known_cost_usd`` is what the others cost. Both hold ``earlier_cost_usd``:
    what earlier tries were charged. Replies from the cache cost nothing. ``weaknesses`` are the reflections of the iteration,
    ``missing`` what the cheap judge did not find or see.
    ``flags`` say what is odd about the judge; ``targets`` what ``gestalt`` and ``gap`` should reach. ``rubric`` is its digest,
    ``patterns`` the SHA-256 of the file, ``details`` the folder with every item's result, below the iteration's own. ``learned``
    is what the cheap judge learned from this and earlier iterations, None where it does not learn. ``auto`` is who decided in
    mode auto, None in the others.
    """

    mode: EvaluatorMode
    items: int
    scored: int
    gestalt: float | None
    cheap: float | None = None
    gap: float | None = None
    abs_gap: float | None = None
    tracks: bool | None = None
    unscored: Mapping[str, int] = field(default_factory=nothing)
    judge: str | None = None
    rubric: str | None = None
    patterns: str | None = None
    cost_usd: float | None = None
    known_cost_usd: float = 0.0
    earlier_cost_usd: float | None = field(default=None, metadata=stored(omit=True))
    input_tokens: int | None = None
    output_tokens: int | None = None
    calls: int = 0
    cached: int = 0
    flags: tuple[str, ...] = ()
    targets: Mapping[str, float] = field(default_factory=nothing)
    worst: tuple[JudgedItem, ...] = ()
    missing: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()
    details: str | None = None
    learned: LearnedSoFar | None = None
    auto: AutoDecisions | None = None
