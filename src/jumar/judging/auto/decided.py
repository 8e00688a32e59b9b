"""From the plan and what the expensive judge said of the items that it was asked about to scores, decisions and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from jumar.core.record import Record
from jumar.judging.auto.average import CorrectedAverage, corrected_average
from jumar.judging.auto.escalation import AutoRules, Planned, Why, side_of
from jumar.judging.auto.promise import Guarantee, guarantee


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(Record):
    """What became of an item: its ``score``, from 1 to 5, of the judge that decided it, and why that one.

    ``wrong``: the cheap score of an audited item was on the other side of the line; None where nobody looked. ``why`` is
    ``unscored`` where the judge that had to decide gave no score; then ``judge``, ``score`` and ``decision`` are None.
    """

    id: str
    judge: Literal["cheap", "expensive"] | None
    why: Why | Literal["unscored"]
    score: float | None
    decision: Literal["above", "below"] | None
    interval: tuple[float, float] | None
    wrong: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoOutcome:
    """All items' decisions in their order, and figures over them.

    Every item is one of ``cheaply`` (decided by the cheap judge alone), ``audited`` (it would have been), ``escalated`` and
    ``undecided``. ``errors`` are the audits' errors of the cheap score, expensive − cheap, in order.
    """

    items: tuple[Decided, ...]
    cheaply: int
    audited: int
    escalated: int
    undecided: int
    average: CorrectedAverage | None
    guarantee: Guarantee
    errors: tuple[float, ...]

    @property
    def above(self) -> int:
        """Items at or above the line."""
        return sum(item.decision == "above" for item in self.items)

    @property
    def below(self) -> int:
        """Items below the line."""
        return sum(item.decision == "below" for item in self.items)


def outcome(
    planned: Sequence[Planned],
    judged: Mapping[str, float],
    groups: Sequence[str | None],
    rules: AutoRules,
    *,
    rest_asked: bool = False,
) -> AutoOutcome:
    """Return what became of the items, given the expensive judge's scores by id.

    ``rest_asked``: the audits failed, and the judge was asked about all others, too; then it decides about everything. An item
    whose question was not answered has no score, unless it was asked for an audit only: then the cheap score stays.
    """
    decided = [_decided(one, judged.get(one.id), rules.line, rest_asked=rest_asked) for one in planned]
    audits = [(one, judged[one.id]) for one in planned if not one.escalated and one.drawn and one.id in judged]
    wrong = sum(side_of(one.cheap or 0.0, rules.line) != side_of(score, rules.line) for one, score in audits)
    kept = [(one, group) for one, group in zip(planned, groups, strict=True) if one.cheap is not None or one.id in judged]
    scored = [(one, group) for one, group in kept if one.id in judged or not _asked(one, rest_asked=rest_asked)]
    kinds = [one.why if one.judge is not None else None for one in decided]
    return AutoOutcome(
        items=tuple(decided),
        cheaply=kinds.count("certain"),
        audited=kinds.count("audited"),
        escalated=sum(kind not in {None, "certain", "audited"} for kind in kinds),
        undecided=kinds.count(None),
        average=corrected_average(
            [one.cheap for one, _ in scored],
            [judged.get(one.id) for one, _ in scored],
            [1.0 if one.escalated or rest_asked else rules.audit for one, _ in scored],
            [group for _, group in scored],
        ),
        guarantee=guarantee(wrong, len(audits), 1.0 - rules.confidence),
        errors=tuple(score - one.cheap for one, score in audits if one.cheap is not None),
    )


def _asked(one: Planned, *, rest_asked: bool) -> bool:
    return one.asked or rest_asked


def _decided(one: Planned, judged: float | None, line: float, *, rest_asked: bool) -> Decided:
    interval = None if one.low is None or one.high is None else (one.low, one.high)
    drawn = one.drawn and not one.escalated
    wrong = None if not drawn or judged is None or one.cheap is None else side_of(one.cheap, line) != side_of(judged, line)
    if judged is not None:
        why: Why = "audits_failed" if rest_asked and not one.asked else one.why
        return Decided(
            id=one.id, judge="expensive", why=why, score=judged, decision=side_of(judged, line), interval=interval, wrong=wrong
        )
    if one.escalated or rest_asked or one.cheap is None:
        return Decided(id=one.id, judge=None, why="unscored", score=None, decision=None, interval=interval)
    return Decided(id=one.id, judge="cheap", why="certain", score=one.cheap, decision=side_of(one.cheap, line), interval=interval)
