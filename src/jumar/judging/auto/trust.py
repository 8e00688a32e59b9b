"""Whether a proof lets the cheap judge decide at all, and what its held-out items say about decisions at a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jumar.judging.auto.conformal import ConformalIntervals
from jumar.judging.auto.escalation import AutoRules, plan, side_of
from jumar.judging.auto.promise import Guarantee, guarantee_by_group
from jumar.judging.proofs import Proof, stale_reasons

__all__ = ["SealedCheck", "distrust", "sealed_check"]


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
