"""``progress.txt``: a paragraph for every iteration of a learning run."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jumar.report.judging.numbers import number
from jumar.text import escape, plural

__all__ = ["Progress", "render_progress", "told_action"]

_WIDTH = 96
_SHOWN = 8
_VERDICTS = {True: "tracks the judge", False: "fails", None: "not proven"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What there is to say of one iteration; figures are of the test items, None where there are none."""

    iteration: int
    when: str
    abs_gap: float | None
    gap: float | None
    patterns: int
    committed: int
    rejected: int
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
            patterns=int(metrics["pattern_count"]),
            committed=int(metrics["patterns_committed"]),
            rejected=int(metrics["patterns_rejected"]),
            tracks=metrics["tracks"],
            divergence=str(divergence.get("diagnosis") or divergence.get("reason") or ""),
            actions=tuple(log["actions_taken"]),
            plan=str(log["next_iteration_plan"].get("focus", "")),
        )


def render_progress(iterations: Sequence[Progress]) -> str:
    """Return the text of all iterations, oldest first, each ended by a blank line."""
    return "\n".join(_paragraph(one, before) for one, before in zip(iterations, [None, *iterations], strict=False))


def _paragraph(one: Progress, before: Progress | None) -> str:
    change = "" if before is None or one.abs_gap is None or before.abs_gap is None else f" ({one.abs_gap - before.abs_gap:+.3f})"
    figures = f"Gap {number(one.abs_gap)}{change}, {plural(one.patterns, 'active pattern')}"
    decided = f"{one.committed:,} committed, {one.rejected:,} rejected; on the test items: {_VERDICTS[one.tracks]}"
    lines = [f"Iteration {one.iteration}, {one.when[:16].replace('T', ' ')}", f"{figures}; {decided}."]
    if one.divergence and one.divergence != "insufficient_data":
        lines.append(f"Course: {escape(one.divergence.replace('_', ' '))}.")
    told = [told_action(action) for action in one.actions if action.get("action") != "rejected_pattern"]
    lines += [f"- {text}" for text in told[:_SHOWN]]
    if len(told) > _SHOWN:
        lines.append(f"- and {len(told) - _SHOWN:,} more in iteration_{one.iteration}/iteration_log.json")
    if one.plan:
        lines.append(f"Next: {escape(one.plan)}.")
    return "\n".join(textwrap.fill(line, _WIDTH, subsequent_indent="  " * line.startswith("- ")) for line in lines) + "\n"


def told_action(action: Mapping[str, Any]) -> str:
    """Return an entry of the log in words."""
    name = str(action.get("action", "")).replace("_", " ")
    about = action.get("description") or action.get("detail") or action.get("pattern_id") or ""
    tail = f": {escape(str(about))}" if about else ""
    if name == "recovery":
        kept = "kept" if action.get("kept") else "tried" if action.get("changed") else "nothing to do"
        gaps = [action.get("before"), action.get("after")]
        moved = f", gap {number(gaps[0])} → {number(gaps[1])}" if None not in gaps and action.get("changed") else ""
        which, note = (escape(str(action.get(key, ""))) for key in ("recovery", "note"))
        return f"recovery, {kept}: {which.replace('_', ' ')} ({note}{moved})"
    if name == "rolled back":
        return f"rolled back: {escape(str(about))}, beyond noise; evaluated again, the gap is {number(action.get('confirmed'))}"
    p_value = action.get("p_value")
    return f"{name}{tail}" + (f" (p = {p_value:.2g} on items that it was not made from)" if isinstance(p_value, float) else "")
