"""What every iteration changed, for a page that is sent around: bounded, the selected iteration before all others."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from jumar.core.text import plural
from jumar.loop.report.diff import DiffLimits, PathChange, diff_snapshots
from jumar.loop.report.read import LoopReport

if TYPE_CHECKING:
    from jumar.loop.store.loop_store import LoopStore

MOST_TEXT: Final = 1_500_000
"""Characters of differences and their markup in one page, which keeps it below two megabytes."""
_LIMITS: Final = DiffLimits(file_bytes=131_072, file_lines=2_000, total_lines=5_000)
_MOST_FILES: Final = 200
_MARKUP: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that differs: the blocks of its unified difference, lines of one kind together.

    Kinds are ``plus``, ``minus``, ``hunk`` and ``same``.
    """

    path: str
    what: str
    note: str
    blocks: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationChanges:
    """What an iteration changed ``against`` another one; ``note`` says what is left out."""

    number: int
    against: int
    files: tuple[ChangedFile, ...]
    note: str


def changes_of(store: LoopStore, report: LoopReport, *, most: int = MOST_TEXT) -> tuple[IterationChanges, ...]:
    """Return the changes of every iteration against the one that it began from, by number.

    ``most`` bounds the characters of all of them. The selected iteration comes first to them, then the last, then the others from
    the first on; of what has no room only the files are named.
    """
    first = [number for number in (report.chosen, report.records[-1].iteration_number if report.records else None) if number]
    numbers = dict.fromkeys([*first, *(record.iteration_number for record in report.records)])
    left, found = most, list[IterationChanges]()
    for number in numbers:
        record = report.record(number)
        parent = report.compared_with(record)
        if parent is None:
            continue
        diff = diff_snapshots(store, parent.iteration_number, number, text=left > 0, limits=_LIMITS)
        marked = (("added", diff.added), ("removed", diff.removed), ("changed", diff.changed))
        every = [(what, change) for what, group in marked for change in group]
        files = tuple(_file(what, change) for what, change in every[:_MOST_FILES])
        used = sum(map(_size, files))
        fits = left > 0 and used <= left
        left -= used if fits else 0
        found.append(
            IterationChanges(
                number=number,
                against=parent.iteration_number,
                files=files if fits else tuple(replace(file, blocks=()) for file in files),
                note=_note(len(every), whole=fits or not every),
            )
        )
    return tuple(sorted(found, key=lambda each: each.number))


def _note(files: int, *, whole: bool) -> str:
    told = [] if whole else ["the lines are left out, because this page would be too large: jumar diff has them"]
    told += [f"{plural(files - _MOST_FILES, 'further file')}"] if files > _MOST_FILES else []
    return "; ".join(told)


def _file(what: str, change: PathChange) -> ChangedFile:
    lines = (change.text or "").split("\n")
    lines = lines if lines[-1] else lines[:-1]
    blocks = tuple((kind, "\n".join(group)) for kind, group in itertools.groupby(lines, key=_kind))
    return ChangedFile(path=change.path, what=what, note=change.note or ("" if blocks else ", ".join(change.what)), blocks=blocks)


def _kind(line: str) -> str:
    return {"+": "plus", "-": "minus", "@": "hunk", "\\": "hunk"}.get(line[:1], "same")


def _size(file: ChangedFile) -> int:
    """Return how much room a file takes in a page, its markup included."""
    return sum(_MARKUP + len(text) + 4 * sum(map(text.count, "<>&\"'")) for _, text in (*file.blocks, ("", file.path)))
