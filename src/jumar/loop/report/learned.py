"""What the cheap judge of a loop learned, iteration by iteration: for the report and for ``jumar status``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any, Final

from jumar.core.rendering.figures import UNKNOWN, iteration_label
from jumar.loop.store.layout import iteration_name
from jumar.model import IterationRecord, Judgement

__all__ = ["LEARNED_COLUMNS", "learned_document", "learned_rows", "learned_words", "take_over"]

LEARNED_COLUMNS: Final = ("Iteration", "Gap", "Gap, unseen", "Patterns", "Committed", "Rejected", "Tracks", "Note")
_TRACKS: Final = {True: "yes", False: "no", None: "not proven"}


def _learning(record: IterationRecord) -> list[Judgement]:
    found = (reading.judgement for reading in record.readings)
    return [one for one in found if one is not None and one.learned is not None]


def learned_rows(records: Iterable[IterationRecord]) -> list[tuple[str, ...]]:
    """Return a row of texts for each evaluation that learned, or waited to; none where no cheap judge learns."""
    return [_row(record, judged) for record in records for judged in _learning(record)]


def _row(record: IterationRecord, judged: Judgement) -> tuple[str, ...]:
    label, gap = iteration_label(record.iteration_number), _number(judged.abs_gap)
    learned = judged.learned
    if learned is None or learned.set is None:
        return (label, gap, *(UNKNOWN for _ in range(5)), "" if learned is None else learned.waiting)
    counts = (f"{learned.patterns:,}", f"{learned.committed:,}", f"{learned.rejected:,}")
    notes = [word for word, holds in (("rolled back", learned.rolled_back), ("converged", learned.converged)) if holds]
    return (label, gap, _number(learned.abs_gap), *counts, _TRACKS[learned.tracks], ", ".join(notes))


def take_over(records: Iterable[IterationRecord], directory: str) -> str | None:
    """Return the command that makes the newest learned set the person's own, None where nothing was learned.

    ``directory`` is the loop's.
    """
    found: str | None = None
    for record in records:
        for judged in _learning(record):
            if judged.learned is not None and judged.learned.set is not None and record.quality_score is not None:
                found = f"{directory}/iterations/{iteration_name(record.iteration_number)}/{judged.learned.set}"
    return None if found is None else f"cp {shlex.quote(found)} patterns.json"


def learned_document(record: IterationRecord | None) -> dict[str, Any] | None:
    """Return what the cheap judge knew after an iteration, as it stands in its record; None where it does not learn."""
    judged = [] if record is None else _learning(record)
    return judged[0].learned.to_json() if judged and judged[0].learned is not None else None


def learned_words(learned: dict[str, Any]) -> str:
    """Return :func:`learned_document` as a line."""
    if learned["set"] is None:
        return str(learned["waiting"])
    words = f"{learned['patterns']:,} patterns from {learned['items']:,} texts, {learned['committed']:,} committed, "
    words += (
        f"{learned['rejected']:,} rejected; gap on unseen {_number(learned['abs_gap'])}, tracks: {_TRACKS[learned['tracks']]}"
    )
    return words + (", converged" if learned["converged"] else "")


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"
