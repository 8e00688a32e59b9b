"""``jumar learn``: the learner as a loop of the engine in its folder, and what follows its end: the final set, and its proof."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jumar.core.clock import SystemClock
from jumar.core.codec import flat
from jumar.core.files import sha256_file
from jumar.core.redaction import Redactor, environment_secrets, install
from jumar.core.text import escape
from jumar.errors import ConfigError, EvaluationUnreliableError
from jumar.judging.asking.call_log import FILE as CALLS
from jumar.judging.asking.call_log import CallLog
from jumar.judging.asking.summary import JudgeInterruptedError
from jumar.judging.history import FEWEST_ITERATIONS
from jumar.judging.judges.spec import make_judge
from jumar.judging.patterns.models import PatternSet
from jumar.judging.patterns.storage import load_pattern_set
from jumar.judging.tracking import require_statistics
from jumar.learning.learner import ARTIFACTS, DIMENSIONS, PATTERNS, Learner, LearnerScorer, Sound, write_set
from jumar.learning.run.data import LearnData, check_output, open_share, read_learning_items, split_of, warn_of_few
from jumar.learning.run.files import publish
from jumar.learning.run.finish import finish
from jumar.learning.run.model import LOOP, ROOT, LearnRequest, LearnResult, prove_request
from jumar.learning.run.proposers import proposer_of
from jumar.learning.run.prove_request import remember
from jumar.learning.run.verdicts import Hear
from jumar.loop.engine.engine import Loop
from jumar.loop.events.events import Listener
from jumar.loop.settings import LoopParts, LoopSettings, Retries
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import LoopPaths, loops_directory, prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.model import SelectionCriteria, StopRules
from jumar.model.stopping import UNENDED_REASONS
from jumar.processes.control import StopSwitch, refuse_stop_file

__all__ = ["learn"]


def learn(
    request: LearnRequest, *, switch: StopSwitch, listener: Listener | None = None, hear: Hear | None = None
) -> LearnResult:
    """Learn, or resume learning; at the end make the final set and prove it, which is one look at the held-out items.

    ``listener`` is told of the loop, ``hear`` of each answer of the judge.

    Errors: :class:`ConfigError` for a run that was begun with other options, and of judge, rubric and extras;
    :class:`jumar.errors.ItemError` of the items; everything before anything is asked.
    """
    require_statistics()
    _require_fitting(request)
    install(Redactor(environment_secrets(os.environ)))
    items = read_learning_items(request)
    start = PatternSet(version="2.0", patterns=[]) if request.patterns is None else load_pattern_set(request.patterns)
    check_output(request)
    split = split_of(request, items)
    warn_of_few(split, items)
    root = request.output / ROOT
    prepare_root(root)
    refuse_stop_file(LoopPaths(loops_directory(root) / LOOP).stop_files())
    judge = make_judge(request.judge, max_tokens=request.max_tokens)
    store = _store(root, request, _recorded(request, split.items_hash, judge.identity))
    remember(prove_request(request))
    durable = not getattr(judge, "recorded", False)
    with CallLog(request.output / CALLS, "learn", reserve=request.settings.reserve_cost, durable=durable) as calls:
        data = LearnData(
            request=request,
            items=items,
            split=split,
            judge=judge,
            made=datetime.fromisoformat(store.created_at),
            proposer=proposer_of(request, judge, items, open_share(request, split, items), calls),
            stop=lambda: switch.requested,
            halt=lambda: switch.now(switch.reason),
            hear=hear,
            calls=calls,
        )
        return _learned(request, data, _loop(request, store, data, switch, listener, start), switch)


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
    return LearnResult(output=request.output, outcome=outcome, summary=summary)


def _require_fitting(request: LearnRequest) -> None:
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
        shown = "\n".join(f"  {name}: {escape(str(known.get(name)))}, now {escape(str(now.get(name)))}" for name in differ)
        raise ConfigError(
            f"{escape(str(request.output))} was begun with other options:\n{shown}\n"
            "give the same ones to resume, or learn into another folder"
        )
    return store


def _recorded(request: LearnRequest, items: str, judge: str) -> dict[str, Any]:
    """Return what decides about the result. How fast, for how much and how long is free to change."""
    settings = request.settings
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
        validators=(Sound(data),),
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
