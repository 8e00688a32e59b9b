"""What is promised about decisions that nobody checked, by audited ones and by the held-out items of a proof."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any, Final

from jumar.core.record import Record
from jumar.judging.auto.conformal import ConformalIntervals
from jumar.judging.auto.escalation import AutoRules, plan, side_of
from jumar.judging.proofs import Proof, stale_reasons

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
