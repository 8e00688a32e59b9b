"""``jumar learn``: the learner as a loop of the engine in its folder, and what follows its end: the final set, and its proof."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from jumar.core.clock import SystemClock
from jumar.core.codec import flat
from jumar.core.files import read_bytes, replace_file, sha256_bytes, sha256_file
from jumar.core.offload import ExecutorError
from jumar.core.redaction import Redactor, environment_secrets, install
from jumar.core.text import escape, json_rows, plural
from jumar.errors import ConfigError, EvaluationUnreliableError, JumarError
from jumar.judging.agreement import spearman
from jumar.judging.asking.call_log import FILE as CALLS
from jumar.judging.asking.call_log import CallLog
from jumar.judging.asking.summary import JudgeInterruptedError
from jumar.judging.cheap.offload import read_by
from jumar.judging.dual import require_statistics
from jumar.judging.gap import QUALITY_TARGET
from jumar.judging.history import FEWEST_ITERATIONS
from jumar.judging.items.item import digest_of
from jumar.judging.judges import make_judge
from jumar.judging.patterns.models import PatternProposal, PatternSet
from jumar.judging.patterns.storage import PatternStore, load_pattern_set, read_pattern_set, serialised
from jumar.judging.proofs import Proof
from jumar.learning.convergence import missing_probes, missing_verdict
from jumar.learning.material import Material, Target
from jumar.learning.plan import Plan, make_plan
from jumar.learning.proof.probes import ProbeReport
from jumar.learning.proof.support import Member, sealed_tests
from jumar.learning.proposals import proposer_of
from jumar.learning.report.course import Totals, stop_words
from jumar.learning.run.data import LearnData, check_output, open_share, read_learning_items, split_of, start_set, warn_of_few
from jumar.learning.run.prove import prove_set
from jumar.learning.run.read import ceiling_of, publish, read_logs
from jumar.learning.run.request import LOOP, RESULT, ROOT, SEALED_TESTS, LearnRequest, LearnResult, prove_request, remember
from jumar.learning.run.verdicts import Hear
from jumar.learning.set_building import final_set, probe_set
from jumar.learning.state import (
    ARTIFACTS,
    DIMENSIONS,
    PATTERNS,
    STATE,
    Checkpoint,
    ProposalLedger,
    pattern_hash,
    read_checkpoint,
    write_checkpoint,
)
from jumar.learning.step import IterationOutcome, begin, learn_once
from jumar.loop.engine.engine import Loop
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.events.events import Listener
from jumar.loop.settings import LoopParts, LoopSettings, Retries
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import LoopPaths, loops_directory, prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.model import SelectionCriteria, StopRules
from jumar.model.judgement import Judgement
from jumar.model.protocols import GenerateOutcome, StepContext
from jumar.model.records import CheckResult, ScoreReading, Usage
from jumar.model.selection import UNENDED_REASONS
from jumar.processes.control import StopSwitch, refuse_stop_file

_SPAN: Final = 4.0  # from 1 to 5
_DIGITS: Final = 2
Floats = NDArray[np.float64]


class MaterialSource(Protocol):
    """Gives what the run learns from: the first call asks the judge about the open items.

    ``judgement`` is what it said and was paid, once: it belongs to one reading and no other.
    """

    def material(self) -> Material: ...

    def judgement(self) -> Judgement | None: ...


@dataclass(frozen=True, slots=True)
class Learner:
    """The generator: one iteration of learning. ``publish`` is told of each, to leave its files for people."""

    judged: MaterialSource
    publish: Callable[[IterationOutcome, Material], None]
    now: Callable[[], datetime]

    def generate(self, context: StepContext) -> GenerateOutcome:
        began = time.monotonic()
        try:
            material = self.judged.material()
            with material.features.used():
                checkpoint = checkpoint_in(context.workdir, material)
                learned = learn_once(checkpoint, material, iteration=context.iteration, now=self.now())
        except EvaluationUnreliableError as error:
            return GenerateOutcome(exit_code=1, seconds=time.monotonic() - began, failure=str(error))
        save_set(learned.checkpoint.state.patterns, context.workdir / PATTERNS, message_of(learned))
        write_checkpoint(learned.checkpoint, context.workdir)
        with material.features.used():
            self.publish(learned, material)
        return GenerateOutcome(
            exit_code=0,
            seconds=time.monotonic() - began,
            usage=Usage(token_cost_usd=learned.proposed.cost_usd, completed=True if learned.checkpoint.stopped else None),
            printed=True,
        )


def message_of(learned: IterationOutcome) -> str:
    """Return what the log of versions says of an iteration's set."""
    metrics = learned.metrics
    rolled = " rolled back" if metrics.regression_detected else ""
    done = Counter(action["action"] for action in learned.actions)
    counts = f"{done['committed_pattern']} committed, {done['rejected_pattern']} rejected"
    return f"iteration {metrics.iteration}:{rolled} {counts}"


def checkpoint_in(directory: Path, material: Material) -> Checkpoint:
    """Return what the files below ``directory`` hold; before the first iteration that is the set alone."""
    if (directory / STATE).exists():
        return read_checkpoint(directory)
    patterns = load_pattern_set(directory / PATTERNS)
    name = digest_of(patterns.model_dump(mode="json"))
    if name not in material.begun:
        material.begun[name] = begin(patterns, material)
    return material.begun[name]


def write_set(patterns: PatternSet, path: Path) -> None:
    """Write a set as its file is written, without a version in its log."""
    replace_file(path, serialised(patterns, path))


def save_set(patterns: PatternSet, path: Path, message: str) -> None:
    """Save a set with a version, unless the last one is this very set: an iteration made again after a kill is not two."""
    store = PatternStore(path)
    log = store.log()
    if log and log[-1].hash == sha256_bytes(serialised(patterns, path)) and path.exists() and store.load() == patterns:
        return
    store.save(patterns, message)


@dataclass(frozen=True, slots=True)
class SetCheck:
    """The validator: the set can be read, is the one that was learned, and was tried on every test item that it can score."""

    judged: MaterialSource
    name: str = "sound"

    def validate(self, context: StepContext) -> CheckResult:
        try:
            material = self.judged.material()
            checkpoint, patterns = checkpoint_in(context.workdir, material), load_pattern_set(context.workdir / PATTERNS)
        except EvaluationUnreliableError as error:
            return CheckResult(name=self.name, passed=False, broken=str(error))
        except JumarError as error:
            return CheckResult(name=self.name, passed=False, output_tail=str(error))
        if pattern_hash(patterns) != pattern_hash(checkpoint.state.patterns):
            return CheckResult(name=self.name, passed=False, output_tail=f"{PATTERNS} is not the set of the state")
        untried = [one.item.id for one in material.tested if one.item.id not in checkpoint.tested]
        said = f"{plural(len(checkpoint.tested), 'test item')} scored" + (f", {len(untried):,} abstained from" if untried else "")
        return CheckResult(name=self.name, passed=bool(checkpoint.tested), output_tail=said)


class LearnerScorer:
    """One dimension of what the test items say: ``closeness`` is 1 - MAE / 4, ``ranking`` is (1 + Spearman) / 2.

    Both figures are taken in hundredths, as every table shows them: a set is not better than one before it by less than that, and
    of equals the loop keeps the earlier one.
    """

    def __init__(self, dimension: str, judged: MaterialSource) -> None:
        self.dimension = dimension
        self._judged = judged

    def score(self, context: StepContext) -> ScoreReading:
        began = time.monotonic()
        try:
            material = self._judged.material()
        except EvaluationUnreliableError as error:
            return ScoreReading(dimension=self.dimension, score=None, broken=str(error), seconds=time.monotonic() - began)
        checkpoint = checkpoint_in(context.workdir, material)
        tested = [one for one in material.tested if one.item.id in checkpoint.tested]
        if not tested:
            return ScoreReading(dimension=self.dimension, score=None, invalid="the set abstains from every test item")
        truth = np.asarray([one.score for one in tested], dtype=np.float64)
        score, said = self._of(truth, np.asarray([checkpoint.tested[one.item.id] for one in tested], dtype=np.float64))
        constant = float(np.abs(truth - np.median(truth)).mean())
        if self.dimension == "closeness" and not context.iteration and material.fits and (1.0 - score) * _SPAN > constant:
            score, said = 0.0, f"a constant errs less, by {constant:.2f}: {said}"  # it can be had for nothing, and a fit has it
        reading = ScoreReading(
            dimension=self.dimension, score=max(0.0, min(1.0, score)), reason=said, seconds=time.monotonic() - began
        )
        # the start is scored first, and once: what the judge said of the open items was paid for it
        return reading.with_judgement(self._judged.judgement() if context.iteration == 0 else None)

    def _of(self, truth: Floats, guess: Floats) -> tuple[float, str]:
        if self.dimension == "closeness":
            mae = round(float(np.abs(truth - guess).mean()), _DIGITS)
            return 1.0 - mae / _SPAN, f"MAE {mae:.2f}"
        rank = spearman(truth, guess)
        return (1.0 + round(rank or 0.0, _DIGITS)) / 2.0, f"Spearman {'—' if rank is None else f'{rank:.2f}'}"


def learn(
    request: LearnRequest,
    *,
    switch: StopSwitch,
    listener: Listener | None = None,
    hear: Hear | None = None,
    planned: Callable[[Plan], None] | None = None,
    executor: Executor | None = None,
) -> LearnResult:
    """Learn, or resume learning; at the end make the final set and prove it, which is one look at the held-out items.

    ``listener`` is told of the loop, ``hear`` of each answer of the judge, ``planned`` before all of what the items could prove.
    ``executor`` reads texts elsewhere; the results are the same. One that breaks ends this process as a kill would: resume.

    Errors: :class:`ConfigError` for a run that was begun with other options, and of judge, rubric and extras;
    :class:`jumar.errors.ItemError` of the items; everything before anything is asked.
    """
    require_statistics()
    _require_fitting(request)
    install(Redactor(environment_secrets(os.environ)))
    items = read_learning_items(request)
    start = start_set(request, items)
    check_output(request)
    split = split_of(request, items)
    if planned is not None:
        planned(make_plan(items, heldout=request.heldout, seed=request.seed))
    warn_of_few(split, items)
    root = request.output / ROOT
    prepare_root(root)
    refuse_stop_file(LoopPaths(loops_directory(root) / LOOP).stop_files())
    judge = make_judge(request.judge.spec, max_tokens=request.judge.max_tokens)
    store = _store(root, request, _recorded(request, split.items_hash, judge.identity))
    remember(prove_request(request))
    durable = not getattr(judge, "recorded", False)
    with CallLog(request.output / CALLS, "learn", reserve=request.judge.settings.reserve_cost, durable=durable) as calls:
        data = LearnData(
            request=request,
            items=items,
            split=split,
            judge=judge,
            made=datetime.fromisoformat(store.created_at),
            proposer=proposer_of(
                request.proposer,
                judge,
                items,
                settings=replace(request.judge.settings, max_cost=open_share(request, split, items)),
                cache=request.judge.cache,
                prices=request.judge.prices,
                calls=calls,
            ),
            stop=lambda: switch.requested,
            halt=lambda: switch.now(switch.reason),
            hear=hear,
            calls=calls,
        )
        with _read_by(executor, switch):
            return _learned(request, data, _loop(request, store, data, switch, listener, start), switch)


@contextlib.contextmanager
def _read_by(executor: Executor | None, switch: StopSwitch) -> Generator[None]:
    try:
        with read_by(executor, switch.immediate.is_set):
            yield
    except ExecutorError as error:
        way_out = "the same command resumes, with an executor or without; what the judge said is kept"
        raise ExecutorError(f"{error}; {way_out}") from error


def _learned(request: LearnRequest, data: LearnData, loop: Loop, switch: StopSwitch) -> LearnResult:
    outcome = loop.run()
    if data.problem is not None:
        raise EvaluationUnreliableError(data.problem)
    if outcome.stop.reason in UNENDED_REASONS or (outcome.stop.reason == "consecutive_failures" and outcome.passes_ok == 0):
        return LearnResult(output=request.output, outcome=outcome, summary=None)
    try:
        summary = finish(request, data, outcome)
    except JudgeInterruptedError:
        return LearnResult(output=request.output, outcome=outcome, summary=None, cut_off=switch.reason)
    return LearnResult(output=request.output, outcome=outcome, summary=summary, ended=_ended(request.output, outcome))


def _ended(output: Path, outcome: LoopOutcome) -> str:
    """Return why there was no further iteration, as the report tells it."""
    logs = read_logs(output)
    why = str(logs[-1]["next_iteration_plan"].get("why") or "") if logs else ""
    return stop_words(outcome.stop.reason, outcome.stop.detail, why)


def _require_fitting(request: LearnRequest) -> None:
    if request.robust and request.profile == "seed":
        raise ConfigError("--robust is a way of fitting, and --profile seed fits nothing; leave one of them out")
    if request.profile == "evidence" and find_spec("sklearn") is None:
        raise ConfigError(
            "fitting weights needs scikit-learn: pip install 'jumar[learn]'; --profile seed adds them up without it"
        )


def _store(root: Path, request: LearnRequest, recorded: Mapping[str, Any]) -> LoopStore:
    """Open or make the run's loop. Errors: :class:`ConfigError` that shows the options that it was begun with."""
    directory = loops_directory(root) / LOOP
    if not directory.exists():
        document = {"selection": {}, "quality_weights": {}, "apply": "auto", "run": dict(recorded)}
        return LoopStore.create(directory, LOOP, document, workdir=request.output, created_at=SystemClock().now())
    store = LoopStore.open(directory)
    before = store.config.get("run")
    known, now = flat(before if isinstance(before, Mapping) else {}), flat(recorded)
    differ = [name for name in sorted({*known, *now}) if known.get(name) != now.get(name)]
    if differ:
        shown = "\n".join(f"  {name}: {_shown(known.get(name))}, now {_shown(now.get(name))}" for name in differ)
        raise ConfigError(
            f"{escape(str(request.output))} was begun with other options:\n{shown}\n"
            "give the same ones to resume, or learn into another folder"
        )
    return store


def _shown(value: object) -> str:
    return "not given" if value is None else escape(str(value))


def _recorded(request: LearnRequest, items: str, judge: str) -> dict[str, Any]:
    """Return what decides about the result. How fast, for how much and how long is free to change."""
    settings = request.judge.settings
    return {
        "items": items,
        "judge": judge,
        "repeat": settings.repeat,
        "scale": list(settings.scale),
        "explain": settings.explain,
        "rubric": request.rubric,
        "patterns": None if request.patterns is None else sha256_file(request.patterns),
        "heldout": request.heldout,
        "seed": request.seed,
        "profile": request.profile,
        "propose": request.proposer,
        # runs of before it could be selected have none
        "robust": request.robust or None,
        "min_iterations": None if request.min_iterations == FEWEST_ITERATIONS else request.min_iterations,
    }


def _loop(
    request: LearnRequest, store: LoopStore, data: LearnData, switch: StopSwitch, listener: Listener | None, start: PatternSet
) -> Loop:
    if not (request.output / PATTERNS).exists():
        write_set(start, request.output / PATTERNS)
    learner = Learner(data, lambda learned, material: publish(data, learned, material), _now)
    parts = LoopParts(
        generator=learner,
        validators=(SetCheck(data),),
        scorers=tuple(LearnerScorer(dimension, data) for dimension in DIMENSIONS),
    )
    settings = LoopSettings(
        loop_id=LOOP,
        workdir=request.output,
        objective="a cheap judge that tracks the expensive one",
        artifacts=ArtifactRules(include=ARTIFACTS),
        criteria=SelectionCriteria(mode="highest_quality", threshold=None),
        stop=StopRules(max_iterations=request.max_iterations),
        seed=request.seed,
        retries=Retries(killed=None),  # no agent runs here
    )
    return Loop.of(store, settings, parts, clock=SystemClock(), switch=switch, listener=listener)


def _now() -> datetime:
    return datetime.now(UTC)


def finish(request: LearnRequest, data: LearnData, outcome: LoopOutcome) -> dict[str, Any]:
    """Make the final set from the best iteration, hold it against the held-out items, and write ``result.json``; return that.

    Made again after a kill, it comes to the same: everything follows from the best iteration and from verdicts that are on file.
    A look that was counted for this very set is not counted again. Errors: those of :func:`jumar.learning.run.prove.prove_set`.
    """
    material = data.material()
    sealed = data.split.part(data.items, "sealed")
    checkpoint = checkpoint_in(request.output, material)
    final = final_set(checkpoint, material) if checkpoint.state.iteration else checkpoint.state.patterns
    save_set(final, request.output / PATTERNS, f"the set of iteration {checkpoint.state.iteration}, fitted on all open items")
    probes = probe_set(final, [target.item for target in material.targets], material.rubric, seed=request.seed)
    saved = read_pattern_set(request.output / PATTERNS)
    proven = prove_set(
        prove_request(request),
        saved,
        data.split,
        data.items,
        data.verdicts,
        datetime.now(UTC),
        data.hear,
        parts=("sealed",),
    )
    average = fmean(row.cheap for row in proven.proof.rows)
    verdict = proven.proof.verdict
    logs = read_logs(request.output)
    missing = _missing(logs, proven.proof, probes, robust=request.robust)
    members = _members(
        request.output, final, checkpoint.state.proposals, data.verdicts.targets(sealed), proven.proof.looks.number
    )
    summary = {
        **_course(logs),
        "supported": sum(member.role == "supported" for member in members),
        "converged": bool(logs) and not missing,
        "missing": missing,
        "tracks": verdict == "tracks",
        "quality_met": average >= QUALITY_TARGET,
        "cheap_avg": average,
        "best_iteration": None if outcome.chosen is None else outcome.chosen.iteration_number,
        "verdict": verdict,
        "heldout": proven.heldout,
        "noise_ceiling": ceiling_of(proven.proof),
        "robust": saved.said_robust,
        "probes": probes.to_json(),
        "looks": proven.proof.looks.model_dump(),
        "judge_calls": data.calls.calls,
        "members": [member.to_json() for member in members],
        "cost_usd": data.calls.total_usd,
    }
    replace_file(request.output / RESULT, (json.dumps(summary, indent=2, allow_nan=False) + "\n").encode())
    return summary


def _missing(logs: Sequence[Mapping[str, Any]], proof: Proof, probes: ProbeReport, *, robust: bool) -> list[dict[str, str]]:
    """Return what is missing for convergence: of the last iteration, of the verdict, and of the final set's probes."""
    found: list[dict[str, str]] = list(logs[-1]["convergence_check"]["missing"]) if logs else []
    if proof.verdict != "tracks":
        verdict = missing_verdict(proof.statistics, "held-out", tracks=False)
        if found and found[-1]["check"] == "tracking":  # what helps on the test items helps here
            found[-1] = {**found[-1], "helps": verdict.helps}
        found.append(verdict.to_json())
    if robust and not probes.passed and not any(one["check"] == "probes" for one in found):
        found.append(missing_probes(probes.to_json()).to_json())
    return found


def _members(
    output: Path, patterns: PatternSet, proposals: Sequence[PatternProposal], sealed: Sequence[Target], look: int
) -> tuple[Member, ...]:
    """Test the proposals on the held-out items, all earlier tests being counted, and keep the tests for the next time."""
    path = output / SEALED_TESTS
    before = ProposalLedger.from_json(read_bytes(path), str(path)) if path.exists() else ProposalLedger()
    found = sealed_tests(patterns, proposals, sealed, known=before, look=look)
    replace_file(path, json_rows(found.ledger.to_json()).encode())
    return found.members


def _course(logs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what happened in the run: totals, whatever iteration is the best."""
    actions = [action for log in logs for action in log["actions_taken"]]
    totals = Totals.of(logs)
    return {
        "iterations": len(logs),
        "committed": totals.committed,
        "rejected": totals.rejected,
        "provisional": totals.provisional,
        "rolled_back": sum(action["action"] == "rolled_back" for action in actions),
        "recoveries": [action for action in actions if action["action"] == "recovery" and action["kept"]],
    }
