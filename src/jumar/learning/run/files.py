"""What an iteration of learning leaves for people and programs: ``iteration_N/``, and a paragraph in ``progress.txt``.

The cheap score of an item is the one that counts: by a set that did not see it. The reasons beside it are those of the set
itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from jumar.core.files import as_write_error, make_directory, replace_file
from jumar.core.leftovers import remove_any
from jumar.core.redaction import current
from jumar.core.text import escape, json_rows
from jumar.errors import StoreDamagedError
from jumar.judging.asking.summary import Evaluation
from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.component_health import check_pattern_learner
from jumar.judging.dual import CheapResult, DualEvaluation, combine
from jumar.judging.expensive import dual_documents
from jumar.judging.files import item_row
from jumar.judging.gap import pattern_coverage
from jumar.judging.models import ComponentHealthStatus, IterationLog, Unscored
from jumar.learning.material import Material
from jumar.learning.report.view import LearningProgress, render_progress
from jumar.learning.run.data import LearnData
from jumar.learning.step import IterationOutcome
from jumar.learning.targets import noise_of

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
            "pattern_proposals.json": json_rows(_proposals(learned)),
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


def _proposals(learned: IterationOutcome) -> dict[str, Any]:
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
        found = json.loads(path.read_bytes())
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
