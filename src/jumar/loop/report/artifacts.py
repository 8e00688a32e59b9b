"""What the selected iteration changed against the start, and how much of it ``final-output/`` holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from jumar.core.text import plural
from jumar.loop.report.diff import SnapshotDiff, compare
from jumar.loop.report.read import LoopReport
from jumar.loop.store.layout import iteration_name
from jumar.model import ArtifactDetail, IterationRecord

__all__ = ["MOST_LISTED", "ArtifactLine", "Holds", "artifact_lines", "artifacts_sentence", "changes_from_start", "output_holds"]

Holds = Literal["full", "changed"]
MOST_LISTED: Final = 50
"""How many paths a report names; the diff and the JSON report have all of them."""

_LARGE: Final = 100_000_000


@dataclass(frozen=True, slots=True)
class ArtifactLine:
    """One path and what is to be said of it: ``changed``, ``added``, ``deleted``, why it was not stored, or nothing."""

    path: str
    note: str


def changes_from_start(report: LoopReport) -> SnapshotDiff | None:
    """Return what the selected iteration changed against iteration 0, without text; None where there is no such pair."""
    start, selected = report.start, report.chosen_record
    if start is None or selected is None:
        return None
    return compare(report.loop_id, (start, _entries(start), None), (selected, _entries(selected), None), text=False)


def _entries(record: IterationRecord) -> Mapping[str, ArtifactDetail]:
    return {detail.path: detail for detail in record.artifacts_detail}


def output_holds(report: LoopReport) -> Holds:
    """Return whether ``final-output/`` is to hold the whole selected iteration or what differs from the start.

    ``auto`` means what differs where the loop puts the best into the working directory itself, and where the whole is larger
    than 100 MB. A tracker's loop, one that was begun before there was a choice, and one without a start hold the whole.
    """
    wanted = report.config.get("final_output", "full")
    selected = report.chosen_record
    if report.start is None or selected is None or wanted not in {"auto", "changed"}:
        return "full"
    in_place = report.config.get("isolation") in {"none", "sandbox"} and report.config.get("apply") == "auto"
    large = sum(detail.size for detail in selected.artifacts_detail if detail.kind == "file") > _LARGE
    return "changed" if wanted == "changed" or in_place or large else "full"


def artifacts_sentence(report: LoopReport) -> str | None:
    """Return the counts against the start and where the whole lies; None where there is no start to compare with."""
    found, selected = changes_from_start(report), report.chosen_record
    if found is None or selected is None:
        return None
    kept = f"{report.storage_path.rstrip('/')}/iterations/{iteration_name(selected.iteration_number)}/artifacts"
    counts = (("changed", found.changed), ("added", found.added), ("deleted", found.removed))
    said = ", ".join(f"{len(paths):,} {word}" for word, paths in counts if paths) or "nothing differs"
    said = f"Against the start: {said}, {plural(found.unchanged, 'file')} as before"
    if output_holds(report) == "full":
        return f"{said}. final-output/ holds the whole."
    held = "nothing" if not (found.changed or found.added) else "what is changed or added"
    return f"{said}. final-output/ holds {held}; the whole is in {kept}"


def artifact_lines(report: LoopReport) -> tuple[list[ArtifactLine], int]:
    """Return what differs from the start, at most :data:`MOST_LISTED` paths, and how many more there are.

    Without a start these are all artifacts of the selected iteration. What was not stored is always among the first.
    """
    selected = report.chosen_record
    if selected is None:
        return [], 0
    skipped = [detail for detail in selected.artifacts_detail if detail.skipped is not None]
    lines = [ArtifactLine(detail.path, f"not stored: {detail.skipped}") for detail in skipped]
    found = changes_from_start(report)
    if found is None:
        lines += [ArtifactLine(path, "") for path in selected.artifacts]
    else:
        left_out = {detail.path for detail in skipped}
        marked = (("changed", found.changed), ("added", found.added), ("deleted", found.removed))
        lines += [ArtifactLine(one.path, mark) for mark, paths in marked for one in paths if one.path not in left_out]
    return lines[:MOST_LISTED], max(0, len(lines) - MOST_LISTED)
