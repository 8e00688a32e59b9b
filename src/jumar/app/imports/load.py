"""A history becomes a loop: a record an experiment, without snapshots, ranked by its own metric."""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jumar.app.imports.history import Experiment, History
from jumar.app.imports.tables import number_in
from jumar.app.run.naming import new_name
from jumar.core.clock import SystemClock, stamp
from jumar.core.given import OwnScale
from jumar.core.text import cut
from jumar.errors import JumarError
from jumar.loop.report.read import LoopReport, load_report
from jumar.loop.store.creation import Past, create_from
from jumar.loop.store.layout import list_loops, loops_directory
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore
from jumar.model.records import IterationRecord, Measured, Status

_EPOCH: Final = 1e8  # smaller numbers of seconds are counts, or durations
_NOTE: Final = 500  # characters that are kept of what an experiment says of itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The loop that a history became; ``again`` when it was one already."""

    store: LoopStore
    report: LoopReport
    history: History
    again: bool

    @property
    def best(self) -> int | None:
        """The iteration that is best by the metric, whatever a person selected since."""
        return None if self.report.selection is None else self.report.selection.selected_iteration

    @property
    def kept(self) -> int:
        """How many experiments whoever made the loop kept."""
        return sum(each.fate == "kept" for each in self.history.experiments)

    @property
    def last_kept(self) -> int | None:
        """The iteration that whoever made the loop ended with."""
        kept = [number for number, each in enumerate(self.history.experiments) if each.fate == "kept" and each.ranks]
        return kept[-1] if kept else None

    @property
    def crashes(self) -> int:
        """How many experiments crashed."""
        return sum(each.fate == "crashed" for each in self.history.experiments)

    @property
    def unranked(self) -> int:
        """How many experiments that did not crash have no value, or a status that nobody knows."""
        return sum(not each.ranks and each.fate != "crashed" for each in self.history.experiments)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome; scores as they were given."""
        best, last = self.best, self.report.final
        return {
            "loop_id": self.store.loop_id,
            "metric": self.history.metric,
            "direction": self.history.direction,
            "iterations": len(self.report.records),
            "best_iteration": best,
            "best_score": None if best is None else self.report.score_of(best),
            "last_iteration": None if last is None else last.iteration_number,
            "last_score": self.report.final_quality,
            "kept_by_agent": self.kept,
            "crashes": self.crashes,
            "skipped_rows": len(self.history.skipped),
        }


def load_history(history: History, path: Path, kind: str, root: Path) -> Imported:
    """Make a loop of a history below ``root``, or return the one that the same file already became.

    Errors: :class:`jumar.errors.StoreWriteError`.
    """
    origin = {"kind": kind, "path": str(path.absolute()), "sha256": history.sha256}
    what = {"origin": origin, "metric": history.metric, "direction": history.direction}
    there = _twin(root, what)
    directory = there or loops_directory(root) / new_name(root, Path(f"{path.absolute().parent.name}-{path.stem}"))
    if there is None:
        records = tuple(_records(history))
        at = SystemClock().now()
        config = {**what, "selection": {"mode": "highest_quality", "threshold": None, "require_verification": False}}
        past = Past(loop_id=directory.name, config=config, last_updated=at, records=records)
        create_from(directory, past, workdir=None, created_at=at)
    store = LoopStore.open(directory)
    return Imported(store=store, report=load_report(store), history=history, again=there is not None)


def imported_loops(root: Path) -> Iterator[tuple[LoopReader, Mapping[str, Any]]]:
    """Yield the loops below ``root`` that were imported, each with its origin; one that cannot be read is passed over."""
    for name in list_loops(root):
        with contextlib.suppress(JumarError, OSError):
            reader = LoopReader(loops_directory(root) / name)
            if "origin" in reader.config:
                yield reader, reader.config["origin"]


def _twin(root: Path, what: Mapping[str, Any]) -> Path | None:
    """Return the loop that was made of the same content with the same metric, wherever the file lay."""
    for reader, origin in imported_loops(root):
        same = origin.get("sha256") == what["origin"]["sha256"]
        if same and all(reader.config.get(key) == what[key] for key in ("metric", "direction")):
            return reader.paths.directory
    return None


def _records(history: History) -> Iterator[IterationRecord]:
    """Yield a record an experiment: each began from the last one that was kept, where that is known."""
    places = positions(history)
    values = sorted(places, key=places.__getitem__)
    worst, best = values[0], values[-1]
    kept, before = None, None
    for number, each in enumerate(history.experiments):
        score = places[each.value] if each.ranks and each.value is not None else None
        measured = Measured(
            metric=history.metric,
            direction=history.direction,
            value=each.value,
            worst=worst,
            best=best,
            status=each.status,
            kept={"kept": True, "discarded": False}.get(each.fate),
        )
        yield IterationRecord(
            iteration_number=number,
            timestamp=_moment(each.at),
            quality_score=score,
            quality_delta=None if score is None or before is None else score - before,
            reflections=(cut(each.note, _NOTE),) if each.note else (),
            status="ok" if each.ranks else "crashed" if each.fate == "crashed" else _unranked(each),
            status_reason="" if each.ranks else _reason(history, each),
            parent=kept,
            commits=(each.commit,) if each.commit else (),
            nonce=secrets.token_hex(8),
            measured=measured,
        )
        before = before if score is None else score
        kept = number if each.fate == "kept" and each.ranks else kept


def _moment(given: str) -> str:
    """Return a time as all records have it, of an ISO date or of seconds or milliseconds since 1970; else an empty text."""
    seconds = number_in(given)
    try:
        if seconds is not None and seconds > _EPOCH:
            return stamp(datetime.fromtimestamp(seconds / 1000 if seconds > 1000 * _EPOCH else seconds, UTC))
        return stamp(datetime.fromisoformat(given).astimezone(UTC))
    except (ValueError, OverflowError, OSError):
        return ""


def _unranked(each: Experiment) -> Status:
    return "invalid_score" if each.value is None else "unranked"


def _reason(history: History, each: Experiment) -> str:
    if each.fate == "crashed":
        return f"its status is '{each.status}'"
    if each.value is None:
        return f"no {history.metric}"
    return f"its status '{each.status}' does not say whether it counts"


def positions(history: History) -> dict[float, float]:
    """Return where each value that ranks stands between 0 (the worst) and 100 (the best); different values never stand together.

    Where the worst is so far off that close ones would fall together, each is moved by the least that tells them apart.
    """
    ranked = sorted({each.value for each in history.experiments if each.ranks and each.value is not None})
    best_first = ranked[::-1] if history.direction == "max" else ranked
    scale = OwnScale(history.metric, history.direction, worst=best_first[-1], best=best_first[0])
    places: dict[float, float] = {}
    above = math.inf
    for value in best_first:
        above = min(scale.position(value), math.nextafter(above, -math.inf))
        places[value] = above
    return places
