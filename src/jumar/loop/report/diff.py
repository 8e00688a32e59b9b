"""What changed between two iterations: paths, text and score; and what the selected one changed against the start."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from jumar.core.record import Record
from jumar.core.redaction import current
from jumar.core.rendering.figures import UNKNOWN, size
from jumar.core.text import escape, escape_block, plural, points, signed_points
from jumar.loop.report.read import LoopReport
from jumar.loop.snapshots.content import Content, read_content
from jumar.loop.store.layout import iteration_name
from jumar.model import ArtifactDetail, IterationRecord

if TYPE_CHECKING:
    from jumar.loop.store.loop_store import LoopStore

What = Literal["content", "mode", "kind"]
_BINARY_PROBE: Final = 8192

Holds = Literal["full", "changed"]
MOST_LISTED: Final = 50
"""How many paths a report names; the diff and the JSON report have all of them."""

_LARGE: Final = 100_000_000
_MANY: Final = 10_000  # files, each of which is written durably at the end of every run


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLimits:
    """How much text a diff may hold: a longer file is only named. Bytes and lines of a file are those of one side."""

    file_bytes: int = 262_144
    file_lines: int = 5_000
    total_lines: int = 20_000
    total_letters: int = 4_000_000


_LIMITS: Final = DiffLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class PathChange(Record):
    """One path that differs.

    ``before`` is None for an added path, ``after`` for a removed one. ``what`` names what changed of a path that is on both
    sides (empty else). ``text`` is a unified diff without file headers, raw as the files hold it, or None with ``note`` saying
    why there is none.
    """

    path: str
    what: tuple[What, ...] = ()
    before: ArtifactDetail | None
    after: ArtifactDetail | None
    text: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotDiff:
    """Iteration ``b`` against iteration ``a``; paths sorted. Scores are 0–100, deltas are b − a, None where one side has none."""

    loop_id: str
    a: int
    b: int
    score_a: float | None
    score_b: float | None
    score_delta: float | None
    dimensions: Mapping[str, tuple[float | None, float | None]]
    added: tuple[PathChange, ...]
    removed: tuple[PathChange, ...]
    changed: tuple[PathChange, ...]
    unchanged: int

    @property
    def is_empty(self) -> bool:
        """Whether both snapshots hold the same."""
        return not (self.added or self.removed or self.changed)

    def to_json(self) -> dict[str, Any]:
        """Return plain values; names that are not UTF-8 hold lone surrogates, which JSON writes as escapes."""
        return {
            "loop_id": self.loop_id,
            "a": self.a,
            "b": self.b,
            "quality_a": self.score_a,
            "quality_b": self.score_b,
            "quality_delta": self.score_delta,
            "dimensions": {name: {"a": one, "b": other} for name, (one, other) in self.dimensions.items()},
            "added": [change.to_json() for change in self.added],
            "removed": [change.to_json() for change in self.removed],
            "changed": [change.to_json() for change in self.changed],
            "unchanged": self.unchanged,
        }


def diff_snapshots(store: LoopStore, a: int, b: int, *, text: bool = True, limits: DiffLimits = _LIMITS) -> SnapshotDiff:
    """Compare what iterations ``a`` and ``b`` hold. ``text`` False leaves file contents out.

    A snapshot that a cleanup removed is still compared by its manifest, without text. Errors:
    :class:`jumar.errors.NotFoundError` for an iteration that is not recorded.
    """
    return compare(store.loop_id, side_of(store, a), side_of(store, b), text=text, limits=limits)


Side = tuple[IterationRecord, Mapping[str, ArtifactDetail], Content | None]
"""An iteration's record, what its snapshot holds by path, and where the files lie (None: removed)."""


def side_of(store: LoopStore, number: int) -> Side:
    """Return an iteration as one side of a comparison. Errors: :class:`jumar.errors.NotFoundError`."""
    return (
        store.record(number, listed=False),
        store.manifest(number).entries,
        store.content(number) if store.has_snapshot(number) else None,
    )


def compare(loop_id: str, a: Side, b: Side, *, text: bool = True, limits: DiffLimits = _LIMITS) -> SnapshotDiff:
    """Compare two sides, of one loop or of two, as :func:`diff_snapshots` does for iterations of a store."""
    (record_a, before, root_a), (record_b, after, root_b) = a, b
    reader = _Texts(root_a, root_b, limits) if text else None
    added = [_change(path, None, after[path], reader) for path in sorted(after) if path not in before]
    removed = [_change(path, before[path], None, reader) for path in sorted(before) if path not in after]
    both = sorted(path for path in before if path in after)
    changed = [_change(path, before[path], after[path], reader) for path in both if _differs(before[path], after[path])]
    score_a, score_b = record_a.quality_score, record_b.quality_score
    names = dict.fromkeys([*record_a.dimensions, *record_b.dimensions])
    return SnapshotDiff(
        loop_id=loop_id,
        a=record_a.iteration_number,
        b=record_b.iteration_number,
        score_a=score_a,
        score_b=score_b,
        score_delta=None if score_a is None or score_b is None else round(score_b - score_a, 4),
        dimensions={name: (record_a.dimensions.get(name), record_b.dimensions.get(name)) for name in names},
        added=tuple(added),
        removed=tuple(removed),
        changed=tuple(changed),
        unchanged=len(both) - len(changed),
    )


def _differs(one: ArtifactDetail, other: ArtifactDetail) -> tuple[What, ...]:
    if one.kind != other.kind:
        return ("kind",)
    what: list[What] = []
    if (one.content_hash, one.target) != (other.content_hash, other.target):
        what.append("content")
    if one.kind == "file" and one.mode != other.mode:
        what.append("mode")
    return tuple(what)


def _change(path: str, before: ArtifactDetail | None, after: ArtifactDetail | None, reader: _Texts | None) -> PathChange:
    what = () if before is None or after is None else _differs(before, after)
    text, note = (None, "") if reader is None or what == ("mode",) else reader.diff(before, after)
    return PathChange(path=path, before=before, after=after, what=what, text=text, note=note)


class _UnshownError(Exception):
    """Why the text of a file is not compared."""


class _Texts:
    """Reads both sides of a path and compares them, until there are as many lines or letters as the limits allow."""

    def __init__(self, root_a: Content | None, root_b: Content | None, limits: DiffLimits) -> None:
        self._roots = (root_a, root_b)
        self._limits = limits
        self._lines_left, self._letters_left = limits.total_lines, limits.total_letters

    def diff(self, before: ArtifactDetail | None, after: ArtifactDetail | None) -> tuple[str | None, str]:
        """Return ``(unified diff, "")`` or ``(None, why not)``."""
        if min(self._lines_left, self._letters_left) <= 0:
            return None, "not shown: the diff is too long"
        try:
            sides = [
                "" if detail is None else self._read(detail, root)
                for detail, root in zip((before, after), self._roots, strict=True)
            ]
        except _UnshownError as why:
            return None, str(why)
        one, other = (_lines(side) for side in sides)
        if max(len(one), len(other)) > self._limits.file_lines:
            return None, f"too long to compare ({plural(max(len(one), len(other)), 'line')})"
        lines = list(difflib.unified_diff(one, other, lineterm="\n"))[2:]
        text = "".join(lines)
        self._lines_left -= len(lines)
        self._letters_left -= len(text)
        return text, ""

    def _read(self, detail: ArtifactDetail, root: Content | None) -> str:
        if detail.skipped is not None or detail.kind == "special":
            raise _UnshownError(f"not stored: {detail.skipped or 'special file'}")
        if detail.kind == "symlink":
            return f"link to {detail.target or ''}"
        if root is None:
            raise _UnshownError("the snapshot was removed by a cleanup")
        if detail.size > self._limits.file_bytes:
            raise _UnshownError(f"too large to show ({size(detail.size)})")
        data = read_content(root, detail, self._limits.file_bytes)
        if data is None:
            raise _UnshownError("the stored file cannot be read; `jumar verify` says more")
        if b"\0" in data[:_BINARY_PROBE]:
            raise _UnshownError(f"binary ({size(len(data))})")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise _UnshownError(f"not UTF-8 ({size(len(data))})") from None


def _lines(text: str) -> list[str]:
    """Split at line feeds only, as diff programs do; a last line without one says so."""
    if not text:
        return []
    lines = [f"{line}\n" for line in text.split("\n")]
    if text.endswith("\n"):
        return lines[:-1]
    lines[-1] += "\\ No newline at end of file\n"
    return lines


def render_diff(diff: SnapshotDiff) -> str:
    """Return the diff as text for a terminal: scores, paths, then the changed lines. All that comes from files is escaped."""
    lines = [f"compared  {_headline(diff)}", *_dimension_lines(diff)]
    if diff.is_empty:
        lines.append(f"files     no difference in {plural(diff.unchanged, 'path')}")
        return "\n".join(lines) + "\n"
    totals = (
        f"files     {len(diff.added):,} added, {len(diff.removed):,} removed, {len(diff.changed):,} changed, "
        f"{diff.unchanged:,} unchanged"
    )
    lines += [totals, ""]
    marked = [("A", diff.added), ("D", diff.removed), ("M", diff.changed)]
    lines += [_path_line(mark, change) for mark, changes in marked for change in changes]
    for _, changes in marked:
        for change in changes:
            lines += _text_lines(diff, change)
    return "\n".join(lines) + "\n"


def _headline(diff: SnapshotDiff) -> str:
    delta = "" if diff.score_delta is None else f" ({signed_points(diff.score_delta)})"
    one, other = (UNKNOWN if score is None else points(score) for score in (diff.score_a, diff.score_b))
    return f"iteration {diff.a} → {diff.b}, score {one} → {other}{delta}"


def _dimension_lines(diff: SnapshotDiff) -> list[str]:
    width = max((len(escape(name)) for name in diff.dimensions), default=0)
    lines: list[str] = []
    for name, (one, other) in diff.dimensions.items():
        if one == other:
            continue
        change = "" if one is None or other is None else f"  {other - one:+.2f}"
        shown = [UNKNOWN if value is None else f"{value:.2f}" for value in (one, other)]
        lines.append(f"          {escape(name).ljust(width)}  {shown[0]} → {shown[1]}{change}")
    return lines


def _path_line(mark: str, change: PathChange) -> str:
    said: list[str] = []
    if change.before is not None and change.after is not None:
        if "kind" in change.what:
            said.append(f"{change.before.kind} → {change.after.kind}")
        if "mode" in change.what:
            said.append(f"mode {change.before.mode:04o} → {change.after.mode:04o}")
    if change.note:
        said.append(escape(change.note))
    return f"{mark} {current().redact(escape(change.path))}" + (f"  ({'; '.join(said)})" if said else "")


def _text_lines(diff: SnapshotDiff, change: PathChange) -> Sequence[str]:
    if not change.text:
        return ()
    name = current().redact(escape(change.path))
    old = "/dev/null" if change.before is None else f"{diff.a}/{name}"
    new = "/dev/null" if change.after is None else f"{diff.b}/{name}"
    return ("", f"--- {old}", f"+++ {new}", escape_block(change.text).rstrip("\n"))


# ------------------------------------------------------------------------------------------------------ against the start


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
    than 100 MB or has more than 10,000 files. A tracker's loop, one that was begun before there was a choice, and one without a
    start hold the whole.
    """
    wanted = report.config.get("final_output", "full")
    selected = report.chosen_record
    if report.start is None or selected is None or wanted not in {"auto", "changed"}:
        return "full"
    in_place = report.config.get("isolation") in {"none", "sandbox"} and report.config.get("apply") == "auto"
    details = selected.artifacts_detail
    large = len(details) > _MANY or sum(detail.size for detail in details if detail.kind == "file") > _LARGE
    return "changed" if wanted == "changed" or in_place or large else "full"


def artifacts_sentence(report: LoopReport) -> str | None:
    """Return the counts against the start and where the whole lies; None where there is no start to compare with."""
    found, selected = changes_from_start(report), report.chosen_record
    if report.measured is not None:
        return "Imported without its files: there is nothing to apply."
    if found is None or selected is None:
        return None
    number = selected.iteration_number
    kept = f"the whole is in {report.storage_path.rstrip('/')}/iterations/{iteration_name(number)}/artifacts"
    if number in report.by_hash:
        kept = f"`jumar files {report.loop_id} {number} -o DIR` writes the whole"
    counts = (("changed", found.changed), ("added", found.added), ("deleted", found.removed))
    said = ", ".join(f"{len(paths):,} {word}" for word, paths in counts if paths) or "nothing differs"
    said = f"Against the start: {said}, {plural(found.unchanged, 'file')} as before"
    if output_holds(report) == "full":
        return f"{said}. final-output/ holds the whole."
    held = "nothing" if not (found.changed or found.added) else "what is changed or added"
    return f"{said}. final-output/ holds {held}; {kept}"


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
