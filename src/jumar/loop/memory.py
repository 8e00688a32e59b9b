"""What earlier passes and loops learned: their reflections as notes, and the question that a pass asks of them.

Which notes fit is not decided here: that is a :class:`Memory`'s business, which ``app/`` wires. All functions read records only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from jumar.errors import JumarError
from jumar.model.records import IterationRecord
from jumar.store.layout import list_loops, loops_directory
from jumar.store.loop_reader import LoopReader

__all__ = ["Memory", "Note", "gather", "question"]

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
        """Return the notes that fit ``query``, best first; ``turn`` names the pass in the log.

        What it raises is told as a notice, and the prompt goes without.
        """
        ...


def gather(store: LoopReader, parent: int | None, *, everywhere: bool) -> list[Note]:
    """Return the notes of the iterations before ``parent``, newest first, then those of other loops; each text once.

    A loop that cannot be read has none.
    """
    notes = [] if parent is None else _notes(store, store.loop_id, before=parent)
    if everywhere:
        root = _root(store)
        for name in reversed([name for name in list_loops(root) if name != store.loop_id][-_LOOPS:]):
            try:
                notes += _notes(LoopReader(loops_directory(root) / name), name)
            except JumarError:
                continue
    seen: dict[str, Note] = {}
    for note in notes:
        seen.setdefault(note.text, note)
    return list(seen.values())


def _root(store: LoopReader) -> Path:
    return store.paths.directory.parent.parent


def _notes(store: LoopReader, loop_id: str, *, before: int | None = None) -> list[Note]:
    numbers = [number for number in store.iteration_numbers() if before is None or number < before]
    records = (store.record(number) for number in reversed(numbers[-_ITERATIONS:]))
    return [
        Note(loop_id=loop_id, iteration=record.iteration_number, score=record.quality_score, text=text)
        for record in records
        for text in record.reflections
        if text.strip()
    ]


def question(objective: str, last: IterationRecord | None) -> str:
    """Return what a pass faces, as text to compare notes with: the objective, and what is wrong with the state it starts from."""
    parts = [objective.strip()]
    if last is not None:
        parts += [f"check '{check.name}' fails" for check in last.checks if not check.passed]
        parts += last.reflections
        parts += last.analysis.errors
    return "\n".join(dict.fromkeys(part for part in parts if part))
