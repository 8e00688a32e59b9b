"""What a report of a learning run is made from, as plain values; and ``progress.txt``, a paragraph for every iteration."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from jumar.core.text import escape, number, plural

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


GAP_LIMIT = 0.2
_WIDTH = 96
_SHOWN = 6
_TRACKS = {True: "tracks the judge", False: "does not track the judge", None: "not proven"}
_COURSES = {
    "": "",
    "insufficient_data": "",
    "good_plateau": "level, and within the target",
    "improving": "improving",
    "cheap_mode_degraded": "the gap grows while the set's scores fall: new patterns hurt",
    "expensive_mode_shifted": "the gap grows while the judge's scores rise",
    "pattern_explosion": "more than half as many patterns again as before",
    "patterns not capturing new signals": "the gap stays above its target: new patterns find nothing that the judge looks at",
    "unknown": "the gap grows, and neither the set's nor the judge's average says why",
}


def course_words(said: str) -> str:
    """Return in words how the gap goes, empty where there is nothing to say of it yet."""
    return _COURSES.get(said.partition(":")[0], said.replace("_", " "))


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningProgress:
    """What there is to say of one iteration; figures are of the ``tested`` items, None where there are none.

    ``committed`` and ``rejected`` count the proposals that became so in it, whenever they were made.
    """

    iteration: int
    when: str
    abs_gap: float | None
    gap: float | None
    spearman: float | None
    patterns: int
    committed: int
    rejected: int
    provisional: int
    tracks: bool | None
    divergence: str
    actions: tuple[Mapping[str, Any], ...]
    plan: str
    tested: int = 0

    @classmethod
    def of(cls, log: Mapping[str, Any]) -> LearningProgress:
        """Read an iteration's log. Errors: KeyError and TypeError of one that is none."""
        metrics, divergence = log["metrics"], log["divergence_check"]
        counts = Counter(str(one.get("action")) for one in log["actions_taken"])
        return cls(
            iteration=int(metrics["iteration"]),
            when=str(metrics["timestamp"]),
            abs_gap=metrics["abs_gap"],
            gap=metrics["gap"],
            spearman=metrics.get("spearman"),
            patterns=int(metrics["pattern_count"]),
            committed=counts["committed_pattern"],
            rejected=counts["rejected_pattern"],
            provisional=int(metrics["provisional_patterns"]),
            tracks=metrics["tracks"],
            divergence=course_words(str(divergence.get("diagnosis") or divergence.get("reason") or "")),
            actions=tuple(log["actions_taken"]),
            plan=str(log["next_iteration_plan"].get("focus", "")),
            tested=len(metrics.get("story_ids") or ()),
        )

    @property
    def decisions(self) -> Decisions:
        return Decisions.of(self.actions)


def kept_text(one: LearningProgress, before: float | None) -> str:
    """Return why an iteration whose gap grew from ``before`` was not rolled back, empty where there is nothing to say."""
    if before is None or one.abs_gap is None or one.decisions.rollbacks:
        return ""
    grown = one.abs_gap - before
    if grown < 0.005:
        return ""
    limit = (
        "within the 0.2 points by which a gap may grow before it counts" if grown <= GAP_LIMIT else "no more than chance can do"
    )
    return f"the gap grew by {number(grown)}, and the change was kept: that is {limit}"


def render_progress(iterations: Sequence[LearningProgress], before: LearningProgress | None = None) -> str:
    """Return the text of all iterations, oldest first, each ended by a blank line; ``before`` is the one before the first."""
    return "\n".join(_paragraph(one, last) for one, last in zip(iterations, [before, *iterations], strict=False))


def _paragraph(one: LearningProgress, before: LearningProgress | None) -> str:
    change = "" if before is None or one.abs_gap is None or before.abs_gap is None else f" ({one.abs_gap - before.abs_gap:+.3f})"
    figures = (
        f"Gap {number(one.abs_gap)}{change}, rank correlation {number(one.spearman)}, {plural(one.patterns, 'active pattern')}"
    )
    decided = f"{one.committed:,} committed, {one.rejected:,} rejected"
    lines = [
        f"Iteration {one.iteration}, {one.when[:16].replace('T', ' ')}",
        f"{figures}; {decided}. On items that it did not see: {_TRACKS[one.tracks]}.",
    ]
    if one.divergence:
        lines.append(f"Course: {escape(one.divergence)}.")
    lines += [f"- {line}" for line in one.decisions.lines(most=_SHOWN)]
    if (kept := kept_text(one, None if before is None else before.abs_gap)) != "":
        lines.append(f"- {kept}")
    if one.plan:
        lines.append(f"Left to learn from: {escape(one.plan)}." if one.plan != "none" else "Left to do: nothing.")
    return "\n".join(textwrap.fill(line, _WIDTH, subsequent_indent="  " * line.startswith("- ")) for line in lines) + "\n"


@dataclass(frozen=True, kw_only=True)
class LearningReport:
    """A learning run. ``logs`` are those of the iterations, oldest first; ``summary`` is None before there is a verdict.

     ``patterns`` are the active ones of the set in the folder, as its file has them, ``calibration`` what makes their points a
     score (None: the rubric does); ``split`` is what ``split.json`` holds. ``start`` are the gap and the rank of the set that the
     run began with. ``proof`` is the last one without its rows, ``sealed_scores`` the lowest and the highest cheap score in it.
    ``proposals`` are the iterations' files of that name, by number, without what the logs tell. ``constant`` is what a
     constant is off by on the open items. ``best`` is 0 where the start is. ``scores`` are those of the loop by iteration, from 0
     to 100. ``noise`` is how far the judge is from itself, over all items that it read more than once: ``mean, interval, items,
     sealed, readings``. ``judge`` is what was named as the judge.
    """

    name: str
    directory: str
    state: str
    profile: str
    logs: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any] | None
    patterns: Sequence[Mapping[str, Any]]
    calibration: Mapping[str, Any] | None
    split: Mapping[str, Any]
    best: int | None = None
    stopped: str = ""
    start: tuple[float | None, float | None] | None = None
    proof: Mapping[str, Any] | None = None
    sealed_scores: tuple[float, float] | None = None
    proposals: Mapping[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])
    constant: float | None = None
    scores: Mapping[int, float] = field(default_factory=dict[int, float])
    noise: Mapping[str, Any] | None = None
    judge: str = ""

    @cached_property
    def iterations(self) -> list[LearningProgress]:
        return [LearningProgress.of(log) for log in self.logs]

    @property
    def verdict(self) -> str | None:
        """The verdict of the last proof, which the summary may be older than."""
        if self.proof is not None:
            return str(self.proof["verdict"])
        return None if self.summary is None else str(self.summary["verdict"])

    @cached_property
    def members(self) -> Mapping[str, Mapping[str, Any]]:
        """What the held-out items say of each proposal in the set, by its id; empty before there is a verdict."""
        found: list[dict[str, Any]] = [] if self.summary is None else self.summary.get("members") or []
        return {str(one["id"]): one for one in found}

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        """The active patterns that are steps of features."""
        return [pattern for pattern in self.patterns if pattern.get("feature") is not None]

    @property
    def orders_only(self) -> bool:
        """Whether the set has learned an order and no level: in points its scores are the same, in effect."""
        fitted: Mapping[str, Any] = {} if self.calibration is None else self.calibration.get("fitted") or {}
        spread = self.sealed_scores
        level = fitted.get("calibration") == "constant" or (spread is not None and spread[1] - spread[0] < 0.05)
        return level and bool(self.patterns)

    @property
    def empty_means(self) -> str:
        """What an empty set does, in words."""
        if self.calibration is None:
            return "its scores are those of the built-in rubric"
        return f"it gives every item {float(self.calibration['base']):.2f}, the median of the judge's scores"

    @property
    def replayed(self) -> bool:
        """Whether the judge is a file of recorded answers."""
        return self.judge.startswith("replay:")

    @property
    def unit(self) -> float | None:
        """Points of the scale that a weight of 1 is, None where the rubric adds weights up."""
        return None if self.calibration is None else float(self.calibration["unit"])
