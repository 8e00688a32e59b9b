"""Who decides about an item: the cheap judge where its whole interval is on one side of the line, else the expensive one.

A random share of the cheap judge's decisions is audited: the same items whenever the same ones are evaluated with the same seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from jumar.errors import ConfigError
from jumar.judging.auto.conformal import LEVELS, ConformalIntervals

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
