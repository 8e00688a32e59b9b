"""What an iteration of learning decided, with its reasons: rolled back, recovered, committed, rejected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jumar.core.text import escape, number

SMALL: Final = 0.005
"""Points of the scale below which a pattern is told of by number only: no score that is shown would change by it."""

_WORDS: Final = {"committed_pattern": "committed", "rejected_pattern": "rejected", "proposed_pattern": "provisional"}
_NO_REASON: Final = "no reason is on file"


_WORSE: Final = {
    "gap_increased": "the gap grew",
    "cheap_score_dropped": "the set's average score fell",
    "correlation_decreased": "the rank correlation fell",
}
_EQUAL: Final = 1e-12
_RECOVERIES: Final = {
    "rollback_patterns": "going back to an earlier set",
    "reduce_learning_rate": "smaller steps",
    "increase_validation_threshold": "asking more of a proposal",
    "increase_proposal_diversity": "more varied proposals",
    "prune_low_weight_patterns": "pruning patterns of little weight",
    "reset_provisional": "dropping what is provisional",
    "recalibrate_weights": "fitting all weights again",
    "deduplicate_patterns": "merging patterns that say the same",
    "prune_by_coverage": "pruning patterns that never fire",
}
_DIAGNOSES: Final = {
    "gap_increasing": "a gap that grew twice in a row",
    "gap_plateau": "a gap that stays above its target",
    "cheap_mode_degraded": "a gap that grew while the set's scores fell",
    "expensive_mode_shifted": "a gap that grew while the judge's scores rose",
    "pattern_explosion": "more than half as many patterns again as before",
}


def recovery_words(name: str) -> str:
    """Return what a recovery action does, in words."""
    return _RECOVERIES.get(name, escape(name).replace("_", " "))


def diagnosis_words(key: str) -> str:
    """Return in words what was found to be wrong."""
    return _DIAGNOSES.get(key, escape(key).replace("_", " ") or "a divergence")


def is_small(points: float | None) -> bool:
    """Return whether points of a pattern are known, and too few to be told of one by one."""
    return points is not None and abs(points) < SMALL


def points_text(points: float | None) -> str:
    """Return signed points of the scale: two decimals, or as many as show that it is not nothing, up to four."""
    if points is None:
        return ""
    if abs(points) < 0.00005:
        return f"{'−' if points < 0 else '+'}0.00"
    places = 2 if abs(points) >= 0.005 else 4
    return f"{points:+.{places}f}".replace("-", "−")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionGroup:
    """Proposals that the same became of for the same reason: what each says, with its points where it has some."""

    status: str
    reason: str
    patterns: tuple[tuple[str, float | None], ...]

    @property
    def head(self) -> str:
        """Return ``138 rejected: the fit gave them no points``."""
        count = len(self.patterns)
        return f"{count:,} {self.status}: {escape(self.reason) if count == 1 else _many(self.reason)}"

    def names(self, most: int | None = None) -> list[str]:
        """Return what the patterns say, those that move a score most first; without those that hardly do (:data:`SMALL`)."""
        ordered = sorted(self._told, key=lambda one: -abs(one[1] or 0.0))
        shown = ordered if most is None else ordered[:most]
        return [f"{escape(says)}{'' if points is None else f' {points_text(points)}'}" for says, points in shown]

    @property
    def _told(self) -> list[tuple[str, float | None]]:
        return [pattern for pattern in self.patterns if not is_small(pattern[1])]

    def rest(self, most: int | None = None, where: str = "") -> str:
        """Return what :meth:`names` leaves out, in words; empty where that is nothing. ``where`` says where all of them are."""
        over = 0 if most is None else max(0, len(self._told) - most)
        small = len(self.patterns) - len(self._told)
        only = " " if over or small == len(self.patterns) else " more "
        parts = [f"{over:,} more{where}"] if over else []
        return ", and ".join([*parts, *([f"{small:,}{only}of under {SMALL} points each"] if small else [])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """An iteration's decisions, in the order in which they are told."""

    rollbacks: tuple[str, ...]
    recoveries: tuple[str, ...]
    decided: tuple[DecisionGroup, ...]

    @classmethod
    def of(cls, actions: Iterable[Mapping[str, Any]]) -> Decisions:
        """Read the entries of a log; what is not known is left out."""
        rollbacks: list[str] = []
        recoveries: list[str] = []
        groups: dict[tuple[str, str], list[tuple[str, float | None]]] = {}
        for action in actions:
            name = str(action.get("action", ""))
            if name == "rolled_back":
                rollbacks.append(rollback_text(action))
            elif name == "recovery":
                recoveries.append(recovery_text(action))
            elif name in _WORDS:
                says = str(action.get("description") or action.get("pattern_id") or "")
                key = (_WORDS[name], str(action.get("reason") or _NO_REASON))
                groups.setdefault(key, []).append((says, action.get("points")))
        order = list(_WORDS.values())
        found = sorted(groups.items(), key=lambda item: order.index(item[0][0]))
        return cls(
            rollbacks=tuple(rollbacks),
            recoveries=tuple(recoveries),
            decided=tuple(DecisionGroup(status=key[0], reason=key[1], patterns=tuple(rows)) for key, rows in found),
        )

    @property
    def any(self) -> bool:
        return bool(self.rollbacks or self.recoveries or self.decided)

    def lines(self, *, most: int) -> list[str]:
        """Return a line a decision, of each kind of proposals the ``most`` important by name."""
        told = [*self.rollbacks, *self.recoveries]
        for one in self.decided:
            parts = [", ".join(one.names(most)), one.rest(most)]
            told.append(f"{one.head} ({', and '.join(part for part in parts if part)})")
        return told

    @property
    def short(self) -> str:
        """Return the decisions in a few words: ``rolled back; recovered; 3 committed, 138 rejected``."""
        counts: dict[str, int] = {}
        for one in self.decided:
            counts[one.status] = counts.get(one.status, 0) + len(one.patterns)
        parts = [*(["rolled back"] if self.rollbacks else []), *(["recovery"] if self.recoveries else [])]
        parts += [", ".join(f"{count:,} {status}" for status, count in counts.items())] if counts else []
        return "; ".join(parts) or "nothing was decided"


def _many(reason: str) -> str:
    """Return a reason of one pattern as that of several."""
    told = escape(reason)
    for one, several in (
        ("gave it ", "gave them "),
        ("that it was part of", "that they were part of"),
        ("it had points", "they had points"),
        ("is without it", "is without them"),
        ("and it was one", "and they were among these"),
        ("merged it into one that says", "merged them into ones that say"),
    ):
        told = told.replace(one, several)
    return told


def rollback_words(action: Mapping[str, Any]) -> str:
    """Return what got worse, and by how much."""
    words, delta = _WORSE.get(str(action.get("type", ""))), action.get("delta")
    if words is None or delta is None:
        return escape(str(action.get("description", "")))
    return f"{words} by {abs(float(delta)):.3f}"


def rollback_text(action: Mapping[str, Any]) -> str:
    """Return what was rolled back, why, and what confirms it."""
    gaps = [number(action.get(name)) for name in ("before", "after", "confirmed")]
    interval = action.get("interval")
    sure = "" if interval is None else f", 95 % interval {interval[0]:+.3f} to {interval[1]:+.3f}: more than chance"
    why = rollback_words(action)
    return (
        f"rolled back: {why}{sure.replace('-', '−')}. With the change the gap was {gaps[1]}, before it {gaps[0]}; "
        f"measured again after going back: {gaps[2]}"
    )


def recovery_text(action: Mapping[str, Any]) -> str:
    """Return what a recovery did, whether it was kept, and the gap before and after."""
    which, why = recovery_words(str(action.get("recovery", ""))), diagnosis_words(str(action.get("diagnosis", "")))
    note, before, after = escape(str(action.get("note", ""))), action.get("before"), action.get("after")
    head = f"recovery from {why}"
    if not action.get("changed"):
        return f"{head}, nothing to do: {which} ({note})"
    moved = ""
    if before is not None and after is not None:
        moved = f"; {_moved(float(before), float(after))}"
    if action.get("kept"):
        return f"{head}, kept: {which} ({note}{moved})"
    worse = before is not None and after is not None and after > before + _EQUAL
    return f"{head}, {'tried, and worse' if worse else 'tried; another one did as well or better'}: {which} ({note}{moved})"


def _moved(before: float, after: float) -> str:
    """Return what became of a gap, in as many decimals as show it, three at most."""
    if number(before) != number(after):
        return f"gap {number(before)} → {number(after)}"
    if abs(after - before) >= 0.0005:
        return f"gap {before:.3f} → {after:.3f}"
    change = "" if abs(after - before) <= _EQUAL else f", {'more' if after > before else 'less'} by under 0.001"
    return f"the gap stays at {number(after)}{change}"
