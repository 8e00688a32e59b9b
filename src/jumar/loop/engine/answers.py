"""What checks and scorers said of one snapshot: kept with the attempt's end, so that it is paid for once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from jumar.core.codec import Fields
from jumar.core.record import Record, stored
from jumar.loop.engine.run_context import LoopRun
from jumar.loop.store.loop_store import Pending
from jumar.loop.workspace.guard import Finding
from jumar.model import CheckResult, ScoreReading

__all__ = ["Answers", "kept_answers"]


@dataclass(frozen=True, slots=True)
class Answers(Record):
    """What the programs said of one snapshot. ``full`` is why that is none of it: the disk was full for them."""

    checks: tuple[CheckResult, ...] = ()
    readings: tuple[ScoreReading, ...] = ()
    seconds: float = 0.0
    found: tuple[Finding, ...] = field(default=(), metadata=stored("guard"))
    full: str | None = field(default=None, metadata=stored(omit=True))


def kept_answers(run: LoopRun, pending: Pending) -> tuple[bool, Answers | None]:
    """Return whether an evaluation of this snapshot came to its end, and what the last one said.

    That is None where none did, and where an earlier version of jumar did not keep it. ``found`` is that of all of them.
    """
    ended = [
        run.store.attempt(start.number)
        for start, end in run.ended_attempts(pending.number)
        if start.nonce == pending.nonce and start.purpose == "score" and end.outcome in {"ok", "broken"}
    ]
    kept: list[Answers] = []
    for attempt in ended:
        said = attempt.end and attempt.end.answers
        if said is None:
            break
        kept.append(Answers.from_json(Fields(said, str(run.store.paths.attempt_end(attempt.start.number)))))
    if not kept:
        return bool(ended), None
    return True, replace(kept[0], found=tuple(finding for answers in reversed(kept) for finding in answers.found))
