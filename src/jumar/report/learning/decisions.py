"""What an iteration of learning decided, with its reasons: rolled back, recovered, committed, rejected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jumar.report.judging.numbers import number
from jumar.text import escape

__all__ = ["Decided", "Decisions", "points_text", "recovery_text", "rollback_text"]

_WORDS: Final = {"committed_pattern": "committed", "rejected_pattern": "rejected", "proposed_pattern": "provisional"}
_NO_REASON: Final = "no reason is on file"


def points_text(points: float | None) -> str:
    """Return signed points of the scale: two decimals, or as many as show that it is not nothing, up to four."""
    if points is None:
        return ""
    if abs(points) < 0.00005:
        return f"{'−' if points < 0 else '+'}0.00"
    places = 2 if abs(points) >= 0.005 else 4
    return f"{points:+.{places}f}".replace("-", "−")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """Proposals that the same became of for the same reason: what each says, with its points where it has some."""

    status: str
    reason: str
    patterns: tuple[tuple[str, float | None], ...]

    @property
    def head(self) -> str:
        """Return ``138 rejected: the fit gave them no points``."""
        return f"{len(self.patterns):,} {self.status}: {self.reason}"

    def names(self, most: int | None = None) -> list[str]:
        """Return what the patterns say, those that move a score most first."""
        ordered = sorted(self.patterns, key=lambda one: -abs(one[1] or 0.0))
        shown = ordered if most is None else ordered[:most]
        return [f"{escape(says)}{'' if points is None else f' {points_text(points)}'}" for says, points in shown]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """An iteration's decisions, in the order in which they are told."""

    rollbacks: tuple[str, ...]
    recoveries: tuple[str, ...]
    decided: tuple[Decided, ...]

    @classmethod
    def of(cls, actions: Iterable[Mapping[str, Any]]) -> Decisions:
        """Read the entries of a log; what is not known is left out."""
        rollbacks: list[str] = []
        recoveries: list[str] = []
        groups: dict[tuple[str, str], list[tuple[str, float | None]]] = {}
        for one in actions:
            name = str(one.get("action", ""))
            if name == "rolled_back":
                rollbacks.append(rollback_text(one))
            elif name == "recovery":
                recoveries.append(recovery_text(one))
            elif name in _WORDS:
                says = str(one.get("description") or one.get("pattern_id") or "")
                key = (_WORDS[name], _many(str(one.get("reason") or _NO_REASON)))
                groups.setdefault(key, []).append((says, one.get("points")))
        order = list(_WORDS.values())
        found = sorted(groups.items(), key=lambda one: order.index(one[0][0]))
        return cls(
            rollbacks=tuple(rollbacks),
            recoveries=tuple(recoveries),
            decided=tuple(Decided(status=key[0], reason=key[1], patterns=tuple(rows)) for key, rows in found),
        )

    @property
    def any(self) -> bool:
        return bool(self.rollbacks or self.recoveries or self.decided)

    def lines(self, *, most: int) -> list[str]:
        """Return a line a decision, of each kind of proposals the ``most`` important by name."""
        told = [*self.rollbacks, *self.recoveries]
        for one in self.decided:
            left = len(one.patterns) - most
            more = f", and {left:,} more" if left > 0 else ""
            told.append(f"{one.head} ({', '.join(one.names(most))}{more})")
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
    ):
        told = told.replace(one, several)
    return told


def rollback_text(action: Mapping[str, Any]) -> str:
    """Return what was rolled back, why, and what confirms it."""
    gaps = [number(action.get(name)) for name in ("before", "after", "confirmed")]
    interval = action.get("interval")
    sure = "" if interval is None else f", 95 % interval {interval[0]:+.3f} to {interval[1]:+.3f}: more than chance"
    why = escape(str(action.get("description", "")))
    return (
        f"rolled back: {why}{sure.replace('-', '−')}. With the change the gap was {gaps[1]}, before it {gaps[0]}; "
        f"measured again after going back: {gaps[2]}"
    )


def recovery_text(action: Mapping[str, Any]) -> str:
    """Return what a recovery did, whether it was kept, and the gap before and after."""
    which = escape(str(action.get("recovery", ""))).replace("_", " ")
    note, before, after = escape(str(action.get("note", ""))), action.get("before"), action.get("after")
    why = escape(str(action.get("diagnosis", ""))).replace("_", " ")
    if not action.get("changed"):
        return f"recovery from a {why}, nothing to do: {which} ({note})"
    moved = "" if before is None or after is None else f"; gap {number(before)} → {number(after)}"
    if action.get("kept"):
        return f"recovery from a {why}, kept: {which} ({note}{moved})"
    worse = before is not None and after is not None and after > before
    return f"recovery from a {why}, {'tried, and worse' if worse else 'tried; another one did better'}: {which} ({note}{moved})"
