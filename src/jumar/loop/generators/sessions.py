"""Which of an agent's sessions an iteration resumes: that of the iteration whose tree it starts from."""

from __future__ import annotations

from jumar.loop.store.loop_store import LoopStore
from jumar.model import IterationRecord
from jumar.model.records import NOT_GENERATED

__all__ = ["session_to_resume"]


def session_to_resume(store: LoopStore, number: int, parent: int | None) -> str | None:
    """Return the session id that iteration ``number`` resumes, None for a fresh session. A function of the records alone.

    It is the one that ``parent`` reported, else its own parent, and so on: failed and blocked iterations are passed over. Once a
    run of the generator from this parent has failed, the others from it begin afresh: an expired session would fail for ever.
    """
    if parent is None or _failed_from(store, number, parent):
        return None
    record = store.find_record(parent)
    while record is not None:
        if record.usage.session_id is not None and _usable(record):
            return record.usage.session_id
        record = store.find_record(record.parent)
    return None


def _usable(record: IterationRecord) -> bool:
    return record.status not in NOT_GENERATED and record.usage.blocked is None


def _failed_from(store: LoopStore, number: int, parent: int) -> bool:
    """Whether an earlier run from ``parent`` failed; of the parallel ones only the iteration's own, so that no order matters."""
    attempts = store.attempts()
    batch = next((attempt.start.batch for attempt in reversed(attempts) if attempt.start.iteration == number), None)
    for attempt in reversed(attempts):
        start, end = attempt.start, attempt.end
        if start.iteration <= parent:
            break
        if start.purpose != "generate" or start.parent != parent or end is None or end.outcome != "failed":
            continue
        if start.iteration == number or start.batch is None or start.batch != batch:
            return True
    return False
