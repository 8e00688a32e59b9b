"""What a report of a learning run is made from, as plain values; and ``progress.txt``, a paragraph for every iteration."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from jumar.core.text import escape, number, plural
from jumar.learning.report.decisions import Decisions

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
    def flat(self) -> bool:
        """Whether the set gives everything the same score, in effect."""
        fitted: Mapping[str, Any] = {} if self.calibration is None else self.calibration.get("fitted") or {}
        spread = self.sealed_scores
        return fitted.get("calibration") == "constant" or (spread is not None and spread[1] - spread[0] < 0.05)

    @property
    def replayed(self) -> bool:
        """Whether the judge is a file of recorded answers."""
        return self.judge.startswith("replay:")

    @property
    def unit(self) -> float | None:
        """Points of the scale that a weight of 1 is, None where the rubric adds weights up."""
        return None if self.calibration is None else float(self.calibration["unit"])
