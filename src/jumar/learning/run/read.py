"""What a learning run has left in its folder so far; nothing is changed."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final, cast

from jumar.core.files import as_write_error, make_directory, read_bytes, replace_file
from jumar.core.leftovers import remove_any
from jumar.core.lock import who_holds
from jumar.core.redaction import current
from jumar.core.text import escape, json_rows
from jumar.errors import NotFoundError, StoreDamagedError
from jumar.judging.agreement import bootstrap
from jumar.judging.asking.summary import Evaluation, mean_abs_difference
from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.component_health import check_pattern_learner
from jumar.judging.dual import CheapResult, DualEvaluation, combine
from jumar.judging.expensive import dual_documents
from jumar.judging.files import item_row
from jumar.judging.gap import pattern_coverage
from jumar.judging.models import ComponentHealthStatus, IterationLog, Unscored
from jumar.judging.patterns.storage import load_pattern_set
from jumar.judging.proofs import Proof, read_proof
from jumar.learning.material import Material, noise_of
from jumar.learning.proof.evidence import noise_ceiling
from jumar.learning.proof.split import Split
from jumar.learning.report.course import stop_words
from jumar.learning.report.view import LearningProgress, LearningReport, render_progress
from jumar.learning.run.data import SPLIT, LearnData
from jumar.learning.run.prove import PROOF
from jumar.learning.run.request import LOOP, REQUEST, RESULT, ROOT
from jumar.learning.state import DIMENSIONS, PATTERNS
from jumar.learning.step import IterationOutcome
from jumar.loop.report.read import LoopReport, load_report
from jumar.loop.store.layout import LoopPaths, loops_directory
from jumar.loop.store.loop_store import LoopStore

PROGRESS: Final = "progress.txt"
_LOG: Final = "iteration_log.json"
_FOLDER: Final = re.compile(r"iteration_(\d+)")
_POINTS: Final = 10
_RESAMPLES: Final = (200, 1_000)
_RESAMPLED: Final = 2_000_000  # items: the intervals beside the gap decide nothing, and should not cost what learning does
_SHARED: Final = ("stories.json", "expensive_eval.json")  # the same in every iteration


def iteration_folder(output: Path, number: int) -> Path:
    """Return the folder of iteration ``number``."""
    return output / f"iteration_{number}"


def publish(data: LearnData, learned: IterationOutcome, material: Material) -> None:
    """Write the iteration's folder, over what an interrupted run left of it, and ``progress.txt`` anew.

    Errors: :class:`jumar.errors.StoreWriteError`.
    """
    output, number = data.request.output, learned.metrics.iteration
    folder = iteration_folder(output, number)
    with as_write_error("write into", folder):
        make_directory(folder)
        dual = _dual(data, learned, material)
        documents = {
            **dual_documents(
                number, dual, [metrics.model_dump(mode="json") for metrics in learned.checkpoint.state.history[:-1]]
            ),
            "pattern_proposals.json": json_rows(_proposals_document(learned)),
            _LOG: json_rows(_log(learned, dual).model_dump(mode="json")),
        }
        before = iteration_folder(output, number - 1)
        for name in _SHARED:
            if not _linked(before / name, folder / name):
                documents[name] = _shared(name, dual)
        for name, text in documents.items():
            replace_file(folder / name, current().redact_bytes(text.encode("utf-8", "backslashreplace")))
        replace_file(output / PROGRESS, _progress(output, number).encode("utf-8", "backslashreplace"))


def _dual(data: LearnData, learned: IterationOutcome, material: Material) -> DualEvaluation:
    items = [target.item for target in material.targets]
    checkpoint = learned.checkpoint
    scores = {**checkpoint.own, **checkpoint.tested}
    evaluator = CheapModeEvaluator(checkpoint.state.patterns, rubric=material.rubric)
    cheap: list[CheapResult] = []
    for item in items:
        reading = evaluator.read(item)
        if isinstance(reading, Unscored):
            cheap.append(reading)
        else:
            # a set of hundreds of patterns would fill gigabytes with all that it gave
            reading = reading._replace(gestalt=scores.get(item.id, reading.gestalt))
            cheap.append(evaluator.result(reading, parts=False, most=_POINTS))
    resamples = max(_RESAMPLES[0], min(_RESAMPLES[1], _RESAMPLED // max(1, len(items))))
    return combine(items, _evaluation(data, material), cheap, checkpoint.state.patterns, resamples=resamples)


def _evaluation(data: LearnData, material: Material) -> Evaluation:
    """Return the judge's verdicts as an evaluation of their own; what they cost was told when they were asked for."""
    results = tuple(data.verdicts.results([target.item for target in material.targets]))
    scores = [result.gestalt for result in results]
    return Evaluation(
        results=results,
        judge=data.judge.identity,
        settings=data.request.judge.settings.to_json(),
        story_count=len(results),
        scored=len(results),
        unscored_kinds={},
        gestalt_avg=sum(scores) / len(scores),
        cost_usd=0.0,
        known_cost_usd=0.0,
        input_tokens=0,
        output_tokens=0,
        calls=0,
        retries=0,
        cached=len(results),
        repeat=data.request.judge.settings.repeat or 1,
        noise=noise_of(material.targets),
        stopped=None,
    )


def _proposals_document(learned: IterationOutcome) -> dict[str, Any]:
    """Return the iteration's proposals with what became of them, and the tests that they went through."""
    number = learned.metrics.iteration
    own = [proposal for proposal in learned.checkpoint.state.proposals if proposal.proposed_at == number]
    return {
        "iteration": number,
        "proposals": [{**one.model_dump(mode="json"), "accuracy": one.accuracy} for one in own],
        "tests": [entry for entry in learned.checkpoint.ledger.to_json()["entries"] if entry["iteration"] == number],
        "merged": [one.to_json() for one in learned.proposed.merges],
        "told": list(learned.proposed.told),
    }


def _log(learned: IterationOutcome, dual: DualEvaluation) -> IterationLog:
    return IterationLog(
        iteration=learned.metrics.iteration,
        timestamp=learned.metrics.timestamp,
        component_health={**dual.health, "pattern_learner": _health(learned, dual)},
        metrics=learned.metrics,
        divergence_check=dict(learned.divergence),
        per_story_results=list(dual.results),
        actions_taken=[dict(action) for action in learned.actions],
        convergence_check=dict(learned.convergence),
        next_iteration_plan=dict(learned.plan),
    )


def _health(learned: IterationOutcome, dual: DualEvaluation) -> ComponentHealthStatus:
    """Return the learner's health, with the share of items on which a pattern names an issue that the judge named too."""
    metrics = learned.metrics
    found = check_pattern_learner(
        proposed=len(learned.proposed.own),
        committed=metrics.patterns_committed,
        rejected=metrics.patterns_rejected,
        provisional=metrics.provisional_patterns,
    )
    covered = pattern_coverage(dual.results, learned.checkpoint.state.patterns)
    return found.model_copy(update={"details": {**found.details, "pattern_coverage": covered.to_json()}})


def _shared(name: str, dual: DualEvaluation) -> str:
    if name == "stories.json":
        return "[\n" + ",\n".join(item_row(item) for item in dual.items) + "\n]\n"
    return json_rows(dual.expensive.to_json())


def _linked(source: Path, target: Path) -> bool:
    """Give a file of the iteration before a second name, so that it takes no room again; False where that cannot be done."""
    with contextlib.suppress(OSError):
        remove_any(target)
        os.link(source, target)
        return True
    return False


def _progress(output: Path, last: int) -> str:
    return render_progress([one for log in read_logs(output) if (one := LearningProgress.of(log)).iteration <= last])


def read_logs(output: Path) -> list[Mapping[str, Any]]:
    """Return the logs of all iterations, the first one first.

    Errors: :class:`jumar.errors.StoreDamagedError` for one that cannot be read, and for one that is missing between others.
    """
    numbers = sorted(int(found[1]) for one in output.glob("iteration_*") if (found := _FOLDER.fullmatch(one.name)))
    while numbers and not (iteration_folder(output, numbers[-1]) / _LOG).exists():
        numbers.pop()  # an iteration that is being made, or was cut off
    return [_checked(iteration_folder(output, number) / _LOG) for number in range(1, max(numbers, default=0) + 1)]


def _checked(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(read_bytes(path))
        LearningProgress.of(found)
        bool(found["convergence_check"]["converged"])
        [str(one["action"]) for one in found["actions_taken"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreDamagedError(
            f"{escape(str(path))} is damaged or gone ({type(error).__name__}); put it back from a copy, or learn into another "
            "folder"
        ) from error
    return cast("dict[str, Any]", found)


def read_progress(output: Path, number: int) -> LearningProgress | None:
    """Return what there is to say of iteration ``number``, None where it has left no log that can be read."""
    try:
        return LearningProgress.of(_checked(iteration_folder(output, number) / _LOG))
    except StoreDamagedError:
        return None


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
    why = str(logs[-1]["next_iteration_plan"].get("why") or "") if logs else ""
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
        split=Split.from_json(read_bytes(output / SPLIT), str(output / SPLIT)).to_json(),
        best=loop.chosen,
        stopped="" if loop.stop is None else stop_words(loop.stop.reason, loop.stop.detail, why),
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
        "ceiling": ceiling_of(proof),
    }


def ceiling_of(proof: Proof) -> dict[str, Any] | None:
    """Return what the judge's noise allows on the held-out items, and the share of it that the set has; None if not known."""
    found = noise_ceiling(proof.rows, (*proof.opened, *proof.rows), proof.statistics["figures"]["spearman"])
    return None if found is None else asdict(found)


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
        found = json.loads(read_bytes(path))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _summary(path: Path) -> Mapping[str, Any] | None:
    try:
        found = json.loads(read_bytes(path))
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
