"""What checks and scorers said of one snapshot: kept with the attempt's end, so that it is paid for once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from jumar.core.codec import Fields
from jumar.loop.engine.run_context import LoopRun
from jumar.loop.store.loop_store import Pending
from jumar.loop.workspace.guard import Finding, findings_from_json
from jumar.model import CheckResult, ScoreReading

__all__ = ["Answers", "kept_answers"]


@dataclass(frozen=True, slots=True)
class Answers:
    """What the programs said of one snapshot. ``full`` is why that is none of it: the disk was full for them."""

    checks: tuple[CheckResult, ...] = ()
    readings: tuple[ScoreReading, ...] = ()
    seconds: float = 0.0
    found: tuple[Finding, ...] = ()
    full: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "checks": [check.to_json() for check in self.checks],
            "readings": [reading.to_json() for reading in self.readings],
            "seconds": self.seconds,
            "guard": [finding.to_json() for finding in self.found],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], source: str) -> Answers:
        """Read what :meth:`to_json` wrote. Errors: :class:`jumar.errors.StoreDamagedError` that names ``source``."""
        fields = Fields(data, source)
        return cls(
            checks=tuple(CheckResult.from_json(item) for item in fields.sections("checks")),
            readings=tuple(ScoreReading.from_json(item) for item in fields.sections("readings")),
            seconds=fields.number("seconds"),
            found=findings_from_json(fields.data.get("guard")),
        )


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
        kept.append(Answers.from_json(said, str(run.store.paths.attempt_end(attempt.start.number))))
    if not kept:
        return bool(ended), None
    return True, replace(kept[0], found=tuple(finding for answers in reversed(kept) for finding in answers.found))
