"""Who decides about an item, what became of all of them, and what is promised of decisions that nobody checked."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any, Final, Literal

from jumar.core.record import Record
from jumar.errors import ConfigError
from jumar.judging.auto.intervals import LEVELS, ConformalIntervals, CorrectedAverage, corrected_average
from jumar.judging.proofs import Proof, stale_reasons

_WHOLE: Final = float(2**64)


def is_audited(item_id: str, *, share: float, seed: int) -> bool:
    """Return whether an item is among the ``share`` (0 to 1) that is audited.

    Each item is drawn by itself, by a hash of seed and id: neither their order nor the others matter.
    """
    digest = hashlib.sha256(f"{seed}\0{item_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / _WHOLE < share


Why = Literal["certain", "uncertain", "abstained", "not_trusted", "audited", "audits_failed"]
Side = Literal["above", "below"]
CONFIDENCE: Final = 0.9
AUDIT: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoRules:
    """What decides about escalation. Errors: :class:`jumar.errors.ConfigError` for a number that is out of range.

    ``line``: scores from it on are above, others below. ``confidence`` is that of each end of an interval; ``audit`` is the share
    of items that are drawn for an audit, by ``seed``.
    """

    line: float
    confidence: float = CONFIDENCE
    audit: float = AUDIT
    seed: int = 0

    def __post_init__(self) -> None:
        checks = (
            ("decision_line", self.line, 1.0 <= self.line <= 5.0, "from 1 to 5"),
            ("confidence", self.confidence, LEVELS[0] <= self.confidence <= LEVELS[-1], f"from {LEVELS[0]} to {LEVELS[-1]}"),
            ("audit", self.audit, 0.0 <= self.audit <= 1.0, "a share from 0 to 1"),
        )
        for name, value, holds, wanted in checks:
            if not holds:
                raise ConfigError(f"{name} = {value} should be {wanted}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What is to become of an item. ``cheap`` and the interval are None where the cheap judge abstained.

    ``escalated``: the expensive judge decides. ``drawn``: it is audited; where it is not escalated, that is a question more.
    """

    id: str
    cheap: float | None
    low: float | None
    high: float | None
    escalated: bool
    drawn: bool
    why: Why

    @property
    def asked(self) -> bool:
        """Whether the expensive judge is asked."""
        return self.escalated or self.drawn


def side_of(score: float, line: float) -> Side:
    """Return on which side of the line a score is; on the line is above."""
    return "above" if score >= line else "below"


def plan(
    scores: Iterable[tuple[str, float | None]], intervals: ConformalIntervals | None, rules: AutoRules, *, trusted: bool = True
) -> list[Planned]:
    """Return who decides about each of the items, given as ids and cheap scores (None: the cheap judge abstained).

    Where the cheap judge is not ``trusted``, or has no intervals, everything is escalated.
    """
    found: list[Planned] = []
    for name, cheap in scores:
        drawn = is_audited(name, share=rules.audit, seed=rules.seed)
        low = high = None
        if cheap is not None and intervals is not None:
            low, high = intervals.at(cheap, rules.confidence)
        why: Why = "uncertain"
        if cheap is None:
            why = "abstained"
        elif not trusted or low is None or high is None:
            why = "not_trusted"
        elif side_of(low, rules.line) == side_of(high, rules.line):
            why = "audited" if drawn else "certain"
        escalated = why not in {"certain", "audited"}
        found.append(Planned(id=name, cheap=cheap, low=low, high=high, escalated=escalated, drawn=drawn, why=why))
    return found


LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee(Record):
    """The share of decisions on the wrong side of the line among those not escalated: at most ``promised``.

    ``wrong`` of ``audited`` decisions were. ``lower`` and ``upper`` are bounds of the share, each of ``level`` (Clopper and
    Pearson 1934). ``held`` is True where even the upper bound keeps the promise, False where even the lower one breaks it,
    and None where there are too few audits to say.
    """

    promised: float
    audited: int
    wrong: int
    share: float | None
    lower: float
    upper: float
    level: float
    held: bool | None


def guarantee(wrong: int, audited: int, promised: float, *, level: float = LEVEL) -> Guarantee:
    """Return what ``wrong`` of ``audited`` decisions, each drawn at random by itself, say about those they were drawn from.

    The bounds are exact. Since each decision is drawn by itself it does not matter that those of a group may be wrong together.
    """
    if not 0 <= wrong <= audited:
        raise ValueError(f"{wrong} of {audited} decisions cannot be wrong")
    lower, upper = _lower(wrong, audited, level), _upper(wrong, audited, level)
    return _found(wrong, audited, promised, lower, upper, level)


def guarantee_by_group(
    wrong: Sequence[bool], groups: Sequence[str | None], promised: float, *, level: float = LEVEL
) -> Guarantee:
    """Return what all decisions of some groups say about those of others (None: an item by itself).

    Decisions of a group may be wrong together, so that they count as fewer. The upper bound counts each group as one decision
    where they have as many, whatever is seen; the lower one, which breaks a promise, as many decisions as would vary as much
    (Korn and Graubard 1998). Groups by themselves give :func:`guarantee`.
    """
    keys: list[Any] = [place if name is None else name for place, name in enumerate(groups)]
    sizes: dict[Any, int] = {}
    missed: dict[Any, int] = {}
    for key, one in zip(keys, wrong, strict=True):
        sizes[key] = sizes.get(key, 0) + 1
        missed[key] = missed.get(key, 0) + one
    count, bad = len(keys), sum(wrong)
    if len(sizes) == count:
        return guarantee(bad, count, promised, level=level)
    share, fewest = bad / count, count**2 / math.fsum(size**2 for size in sizes.values())
    alike = fewest
    if 0 < bad < count and len(sizes) > 1:
        squares = math.fsum((missed[key] - share * size) ** 2 for key, size in sizes.items()) * len(sizes) / (len(sizes) - 1)
        alike = min(float(count), max(fewest, share * (1.0 - share) * count**2 / squares if squares else float(count)))
        student: Any = import_module("scipy.stats").t
        alike *= (student.ppf(level, count - 1) / student.ppf(level, len(sizes) - 1)) ** 2
    lower, upper = _lower(share * alike, alike, level), _upper(share * fewest, fewest, level)
    return _found(bad, count, promised, lower, upper, level)


def _found(wrong: int, audited: int, promised: float, lower: float, upper: float, level: float) -> Guarantee:
    held = True if upper <= promised else False if lower > promised else None
    return Guarantee(
        promised=promised,
        audited=audited,
        wrong=wrong,
        share=wrong / audited if audited else None,
        lower=lower,
        upper=upper,
        level=level,
        held=held,
    )


def _lower(wrong: float, audited: float, level: float) -> float:
    beta: Any = import_module("scipy.stats").beta
    return float(beta.ppf(1.0 - level, wrong, audited - wrong + 1)) if wrong else 0.0


def _upper(wrong: float, audited: float, level: float) -> float:
    beta: Any = import_module("scipy.stats").beta
    return float(beta.ppf(level, wrong + 1, audited - wrong)) if wrong < audited else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedCheck:
    """What the rules would have done with the held-out items: how many they escalate, and how the others are decided."""

    items: int
    escalated: int
    decisions: Guarantee

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        found = self.decisions
        return {
            "items": self.items,
            "escalated": self.escalated,
            "wrong": found.wrong,
            "share": found.share,
            "lower": found.lower,
            "upper": found.upper,
        }


def sealed_check(proof: Proof, intervals: ConformalIntervals, rules: AutoRules) -> SealedCheck:
    """Return what ``rules`` would have done with the held-out items. The intervals must not have been made of them."""
    planned = plan(((row.id, row.cheap) for row in proof.rows), intervals, rules)
    pairs = [(one, row) for one, row in zip(planned, proof.rows, strict=True) if not one.escalated]
    wrong = [side_of(row.cheap, rules.line) != side_of(row.score, rules.line) for _, row in pairs]
    return SealedCheck(
        items=len(proof.rows),
        escalated=len(proof.rows) - len(pairs),
        decisions=guarantee_by_group(wrong, [row.group for _, row in pairs], 1.0 - rules.confidence),
    )


def distrust(
    proof: Proof,
    now: datetime,
    *,
    scores: Sequence[float] = (),
    audits: Iterable[tuple[float, float]] = (),
    groups: Sequence[str | None] | None = None,
    audit_groups: Sequence[str | None] | None = None,
    check: SealedCheck | None = None,
) -> list[str]:
    """Return why the cheap judge must not decide, in words; empty when it may.

    It may with a verdict of ``tracks`` that is not stale (:func:`jumar.judging.proofs.stale_reasons`, with the cheap ``scores``
    of the new items, ``audits`` as pairs of cheap and expensive scores in their order, and the groups of either), and where the
    held-out items do not break the promise at the line.
    """
    reasons: list[str] = []
    if proof.verdict != "tracks":
        reasons.append(f"the proof's verdict is '{proof.verdict}', not 'tracks'")
    stale = stale_reasons(proof, now, scores, audits, groups=groups, audit_groups=audit_groups)
    reasons += [f"the proof is stale: {one}" for one in stale]
    if check is not None and check.decisions.held is False:
        found = check.decisions
        reasons.append(
            f"of the held-out items {found.wrong} of {found.audited} decisions would have been on the wrong side of the line, "
            f"more than the {found.promised:.0%} that are promised"
        )
    return reasons


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
