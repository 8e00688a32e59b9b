"""Where a loop is in its life, told from its records: what `jumar list` and `jumar show` say about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from jumar.model.stopping import StopDecision

if TYPE_CHECKING:
    from jumar.loop.report.read import LoopReport
    from jumar.loop.store.loop_store import LoopStore

__all__ = ["LoopState", "StateName", "age_text", "is_run", "loop_state", "report_of", "seconds_since"]

StateName = Literal["new", "running", "finished", "interrupted", "tracked", "foreign", "damaged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """``stop`` says why a finished loop ended; ``holder`` who is writing a running one (``pid``, ``command``, ``since``).

    ``tracked`` are loops that a program of the person's own records with ``BestOutputTracker``: when they end is for that program
    to know. ``foreign`` are directories of the original tool; the first command that names one imports it.
    """

    name: StateName
    stop: StopDecision | None = None
    holder: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """One phrase for a table."""
        if self.name == "running" and self.holder is not None:
            pid = self.holder.get("pid")
            return f"running (process {pid})" if pid is not None else "running"
        if self.name == "finished" and self.stop is not None:
            return f"finished: {self.stop.reason.replace('_', ' ')}"
        return {"tracked": "recorded by a program", "foreign": "of another tool, not imported yet"}.get(self.name, self.name)

    def to_json(self) -> dict[str, Any]:
        holder = None if self.holder is None else {key: self.holder.get(key) for key in ("pid", "command", "since")}
        return {
            "state": self.name,
            "stop_reason": self.stop and self.stop.reason,
            "stop_detail": self.stop and self.stop.detail,
            "running": holder,
        }


def loop_state(store: LoopStore) -> LoopState:
    """Return the state of ``store``; takes no lock and writes nothing."""
    from jumar.core.lock import who_holds

    stop = store.recorded_stop()
    holder = who_holds(store.paths.lock)
    if holder is not None:
        return LoopState(name="running", holder=holder)
    if not is_run(store.config):
        return LoopState(name="tracked")
    if stop is not None:
        return LoopState(name="finished", stop=stop)
    begun = bool(store.iteration_numbers() or store.attempts())
    return LoopState(name="interrupted" if begun else "new")


def is_run(config: Mapping[str, Any]) -> bool:
    """Return whether a loop was made by `jumar run`, not by a tracker."""
    return "run" in config


def seconds_since(timestamp: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds since an ISO 8601 time, at least 0; None when it is none."""
    if timestamp is None:
        return None
    try:
        then = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, ((now or datetime.now(UTC)) - then).total_seconds())


def age_text(seconds: float | None) -> str:
    """Return ``<1m``, ``5m``, ``3h``, ``12d``; ``—`` when unknown."""
    if seconds is None:
        return "—"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "<1m"


def report_of(store: LoopStore, *, all_artifacts: bool = False) -> LoopReport:
    """Return the read model of a loop by the rules that hold for it now; takes no lock and writes nothing."""
    from jumar.loop.report.read import load_report

    return load_report(store, all_artifacts=all_artifacts)
