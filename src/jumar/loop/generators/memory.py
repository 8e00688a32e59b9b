"""What earlier iterations and loops learned: their reflections as notes, and the question that an iteration asks of them.

Which notes fit is not decided here: that is a :class:`Memory`'s business, which ``app/`` wires. All functions read records only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from jumar.errors import JumarError
from jumar.loop.store.layout import loops_directory
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.running import by_creation
from jumar.model.records import IterationRecord

_LOOPS: Final = 50  # other loops, the last ones by name
_ITERATIONS: Final = 100  # newest iterations of a loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One reflection: what it says, and the iteration that it was written after. ``score`` is that iteration's, None without."""

    loop_id: str
    iteration: int
    score: float | None
    text: str


class Memory(Protocol):
    """Finds the notes that fit. ``everywhere`` says whether those of other loops below the same root are to be looked at."""

    @property
    def everywhere(self) -> bool: ...

    def recall(self, query: str, notes: Sequence[Note], *, turn: str) -> Sequence[Note]:
        """Return the notes that fit ``query``, best first; ``turn`` names the iteration in the log.

        What it raises is told as a notice, and the prompt goes without.
        """
        ...


class Notebook:
    """The notes of a run's loop and of the others below the same root. Each record is read once, because records never change."""

    def __init__(self) -> None:
        self._pages: dict[str, _Page] = {}

    def gather(self, store: LoopReader, numbers: Sequence[int], *, everywhere: bool) -> list[Note]:
        """Return the notes of the iterations ``numbers``, the last first, then those of other loops; each text once.

        What was added since the last time is read now. A loop that cannot be read has none.
        """
        notes = self._pages.setdefault(store.loop_id, _Page(store)).notes(numbers)
        if everywhere:
            root = store.paths.root
            for name in reversed([name for name in by_creation(root) if name != store.loop_id][-_LOOPS:]):
                try:
                    page = self._page(name, loops_directory(root) / name)
                    notes += page.notes(page.reader.iteration_numbers())
                except (JumarError, FileNotFoundError):
                    self._pages.pop(name, None)
        seen: dict[str, Note] = {}
        for note in notes:
            seen.setdefault(note.text, note)
        return list(seen.values())

    def _page(self, name: str, directory: Path) -> _Page:
        """Return what is known of a loop; nothing of one that was deleted and begun anew."""
        status = (directory / "loop.json").stat()
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        page = self._pages.get(name)
        if page is None or page.stamp != stamp:
            page = self._pages[name] = _Page(LoopReader(directory), stamp)
        return page


@dataclass(slots=True)
class _Page:
    """A loop and the notes of its iterations that were read so far."""

    reader: LoopReader
    stamp: tuple[int, int, int] | None = None
    read: dict[int, tuple[Note, ...]] = field(default_factory=dict[int, tuple[Note, ...]])

    def notes(self, numbers: Sequence[int]) -> list[Note]:
        found: list[Note] = []
        for number in reversed(numbers[-_ITERATIONS:]):
            if number not in self.read:
                self.read[number] = _notes(self.reader.record(number, listed=False), self.reader.loop_id)
            found += self.read[number]
        return found


def _notes(record: IterationRecord, loop_id: str) -> tuple[Note, ...]:
    return tuple(
        Note(loop_id=loop_id, iteration=record.iteration_number, score=record.quality_score, text=text)
        for text in record.reflections
        if text.strip()
    )


def question(objective: str, last: IterationRecord | None) -> str:
    """Return what an iteration faces, to compare notes with: the objective, and what is wrong with the state it starts from."""
    parts = [objective.strip()]
    if last is not None:
        parts += [f"check '{check.name}' fails" for check in last.checks if not check.passed]
        parts += last.reflections
        parts += last.analysis.errors
    return "\n".join(dict.fromkeys(part for part in parts if part))
