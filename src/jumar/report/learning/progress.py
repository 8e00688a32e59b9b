"""``progress.txt``: a paragraph for every iteration of a learning run."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jumar.report.judging.numbers import number
from jumar.report.learning.decisions import Decisions
from jumar.text import escape, plural

__all__ = ["Progress", "course_words", "render_progress"]

_WIDTH = 96
_SHOWN = 6
_TRACKS = {True: "tracks the judge", False: "does not track the judge", None: "not proven"}
_COURSES = {
    "": "",
    "insufficient_data": "",
    "good_plateau": "level, and within the target",
    "improving": "improving",
}


def course_words(said: str) -> str:
    """Return in words how the gap goes, empty where there is nothing to say of it yet."""
    return _COURSES.get(said, said.replace("_", " "))


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What there is to say of one iteration; figures are of the test items, None where there are none."""

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

    @classmethod
    def of(cls, log: Mapping[str, Any]) -> Progress:
        """Read an iteration's log. Errors: KeyError and TypeError of one that is none."""
        metrics, divergence = log["metrics"], log["divergence_check"]
        return cls(
            iteration=int(metrics["iteration"]),
            when=str(metrics["timestamp"]),
            abs_gap=metrics["abs_gap"],
            gap=metrics["gap"],
            spearman=metrics.get("spearman"),
            patterns=int(metrics["pattern_count"]),
            committed=int(metrics["patterns_committed"]),
            rejected=int(metrics["patterns_rejected"]),
            provisional=int(metrics["provisional_patterns"]),
            tracks=metrics["tracks"],
            divergence=course_words(str(divergence.get("diagnosis") or divergence.get("reason") or "")),
            actions=tuple(log["actions_taken"]),
            plan=str(log["next_iteration_plan"].get("focus", "")),
        )

    @property
    def decisions(self) -> Decisions:
        return Decisions.of(self.actions)


def render_progress(iterations: Sequence[Progress]) -> str:
    """Return the text of all iterations, oldest first, each ended by a blank line."""
    return "\n".join(_paragraph(one, before) for one, before in zip(iterations, [None, *iterations], strict=False))


def _paragraph(one: Progress, before: Progress | None) -> str:
    change = "" if before is None or one.abs_gap is None or before.abs_gap is None else f" ({one.abs_gap - before.abs_gap:+.3f})"
    figures = (
        f"Gap {number(one.abs_gap)}{change}, rank correlation {number(one.spearman)}, {plural(one.patterns, 'active pattern')}"
    )
    decided = f"of its proposals {one.committed:,} committed, {one.rejected:,} rejected"
    lines = [
        f"Iteration {one.iteration}, {one.when[:16].replace('T', ' ')}",
        f"{figures}; {decided}. On items that it did not see: {_TRACKS[one.tracks]}.",
    ]
    if one.divergence:
        lines.append(f"Course: {escape(one.divergence)}.")
    lines += [f"- {line}" for line in one.decisions.lines(most=_SHOWN)]
    if one.plan:
        lines.append(f"Next: {escape(one.plan)}." if one.plan != "none" else "Next: nothing more.")
    return "\n".join(textwrap.fill(line, _WIDTH, subsequent_indent="  " * line.startswith("- ")) for line in lines) + "\n"
