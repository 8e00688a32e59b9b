"""What a learning run has left in its folder so far; nothing is changed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final, cast

from jumar.core.lock import who_holds
from jumar.core.text import escape
from jumar.errors import NotFoundError, StoreDamagedError
from jumar.judging.agreement import bootstrap
from jumar.judging.asking.summary import mean_abs_difference
from jumar.judging.patterns.storage import load_pattern_set
from jumar.judging.proofs import Proof, read_proof
from jumar.learning.learner import DIMENSIONS, PATTERNS
from jumar.learning.proof.split import Split
from jumar.learning.report.course import stop_words
from jumar.learning.report.view import LearningProgress, LearningReport
from jumar.learning.run.data import SPLIT
from jumar.learning.run.files import iteration_folder, read_logs
from jumar.learning.run.prove import PROOF
from jumar.learning.run.request import LOOP, REQUEST, RESULT, ROOT
from jumar.loop.report.read import LoopReport, load_report
from jumar.loop.store.layout import LoopPaths, loops_directory
from jumar.loop.store.loop_store import LoopStore

_SUMMARY: Final = (
    *("iterations", "best_iteration", "committed", "rejected", "supported", "rolled_back", "recoveries", "verdict"),
    *("heldout", "converged", "tracks", "quality_met", "cheap_avg", "probes", "looks", "judge_calls", "members", "cost_usd"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRun:
    """A run as it is on disk. ``state`` is ``running``, ``finished`` or ``stopped``; ``summary`` is there with a verdict."""

    output: Path
    state: str
    logs: tuple[Mapping[str, Any], ...]
    summary: Mapping[str, Any] | None

    @property
    def iterations(self) -> list[LearningProgress]:
        """The iterations that have left a log, oldest first."""
        return [LearningProgress.of(log) for log in self.logs]

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        done = {"state": self.state, "done": len(self.logs), "output": str(self.output.absolute())}
        last = self.logs[-1]["metrics"] if self.logs else None
        return {**done, "last": last, "verdict": None, **(self.summary or {})}


def read_run(output: Path) -> LearningRun:
    """Return the run in ``output``. Errors: :class:`NotFoundError` when there is none, :class:`StoreDamagedError`."""
    paths = LoopPaths(loops_directory(output / ROOT) / LOOP)
    if not paths.loop_json.is_file():
        raise NotFoundError(
            f"there is no learning run in {escape(str(output))}; `jumar learn ITEMS --judge SPEC -o DIR` makes one"
        )
    logs = read_logs(output)
    summary = _summary(output / RESULT)
    state = "running" if who_holds(paths.lock) is not None else "stopped" if summary is None else "finished"
    return LearningRun(output=output, state=state, logs=tuple(logs), summary=summary)


def read_report(output: Path) -> LearningReport:
    """Return what a report is made from. Errors: as :func:`read_run`; :class:`jumar.errors.PatternLoadError` of the set."""
    run = read_run(output)
    known = load_pattern_set(output / PATTERNS)
    active = [pattern.model_dump(mode="json") for pattern in known.patterns if pattern.status == "active"]
    loop = load_report(LoopStore.open(loops_directory(output / ROOT) / LOOP))
    recorded = loop.config.get("run")
    # `evaluate -o` leaves folders of the same name
    known_to_loop = {view.number for view in loop.views}
    logs = [log for log in run.logs if int(log["metrics"]["iteration"]) in known_to_loop]
    numbers = [int(log["metrics"]["iteration"]) for log in logs]
    profile = cast("Mapping[str, Any]", recorded).get("profile") if isinstance(recorded, Mapping) else None
    proof, spread, noise = _proof(output / PROOF)
    return LearningReport(
        name=output.resolve().name or str(output),
        directory=str(output),
        state=run.state,
        profile=str(profile or "evidence"),
        logs=logs,
        summary=run.summary,
        patterns=active,
        calibration=None if known.scorecard() is None else known.calibration,
        split=Split.from_json((output / SPLIT).read_bytes(), str(output / SPLIT)).to_json(),
        best=loop.chosen,
        stopped="" if loop.stop is None else stop_words(loop.stop.reason, loop.stop.detail, _why(logs)),
        start=_start(loop),
        proof=proof,
        sealed_scores=spread,
        proposals=_proposals(output, numbers),
        constant=_constant(output, numbers),
        scores={view.number: view.score for view in loop.views if view.score is not None},
        noise=noise,
        judge=judge_of(output),
    )


def judge_of(output: Path) -> str:
    """Return what was named as the judge of a run, empty where that is not on file."""
    return str(_object(output / REQUEST).get("judge") or "")


def _why(logs: Sequence[Mapping[str, Any]]) -> str:
    return str(logs[-1]["next_iteration_plan"].get("why") or "") if logs else ""


def _start(loop: LoopReport) -> tuple[float | None, float | None] | None:
    """Return gap and rank correlation of the set that the run began with, from what the scorers said of it."""
    if loop.start is None:
        return None
    said = {reading.dimension: reading.reason.rpartition(" ")[2] for reading in loop.start.readings}
    found = [_float(said.get(name, "")) for name in DIMENSIONS]
    return found[0], found[1]


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


Spread = tuple[float, float]


def _proof(path: Path) -> tuple[dict[str, Any] | None, Spread | None, dict[str, Any] | None]:
    """Return the last proof without its rows, the lowest and the highest cheap score in them, and the judge's own noise."""
    if not path.exists():
        return None, None, None
    proof = read_proof(path)
    scores = [row.cheap for row in proof.rows]
    told = proof.model_dump(mode="json", exclude={"rows", "opened"})
    return told, (min(scores), max(scores)) if scores else None, _noise(proof)


def _noise(proof: Proof) -> dict[str, Any] | None:
    """Return how far the judge is from itself over all items that were read more than once, open and held out, by groups."""
    again = [row for row in (*proof.opened, *proof.rows) if len(row.readings) > 1]
    if not again:
        return None
    each = [mean_abs_difference(row.readings) for row in again]
    found = bootstrap([row.group for row in again], lambda at: {"mean": fmean(each[place] for place in at.tolist())})["mean"]
    return {
        "mean": fmean(each),
        "interval": None if found is None else list(found),
        "items": len(again),
        "sealed": sum(len(row.readings) > 1 for row in proof.rows),
        "readings": fmean(len(row.readings) for row in again),
    }


def _proposals(output: Path, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return of each iteration how many proposals came ``by`` what, what was ``merged``, and what was ``told``."""
    found: dict[int, dict[str, Any]] = {}
    for number in numbers:
        one = _object(iteration_folder(output, number) / "pattern_proposals.json")
        made = cast("list[dict[str, dict[str, Any]]]", one.get("proposals", []))
        by = Counter(str(each["provenance"].get("by", "?")) for each in made)
        found[number] = {"by": dict(by), "merged": one.get("merged", []), "told": one.get("told", [])}
    return found


def _constant(output: Path, numbers: Sequence[int]) -> float | None:
    """Return what a constant is off by on the open items, as the last iteration has it."""
    if not numbers:
        return None
    found: Any = _object(iteration_folder(output, numbers[-1]) / "gap_analysis.json")
    for name in ("tracking", "baselines", "constant", "mae"):
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    return found if isinstance(found, float) else None


def _object(path: Path) -> dict[str, Any]:
    """Return a file's object, an empty one where there is none that can be read: it only says more of what the logs say."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _summary(path: Path) -> Mapping[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
        missing = [name for name in _SUMMARY if name not in found]
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        missing = ["an object"]
        found = None
    if missing:
        raise StoreDamagedError(
            f"{escape(str(path))} is damaged (without {missing[0]}); the same `jumar learn` command writes it anew"
        )
    return cast("dict[str, Any]", found)
