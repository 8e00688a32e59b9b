"""Runs the loops of :mod:`wild_world`, killing them as asked, and holds what they leave against :mod:`wild_model`."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dying import Killed as Died
from dying import dying
from wild_model import NEAR, Model
from wild_world import Fuse, Killed, Scenario, WildClock, WildScorer, WildValidator, World

from jumar.loop.engine.engine import Loop
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.events.events import Event, Waiting
from jumar.loop.settings import LoopParts, LoopSettings, Retries
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify
from jumar.model import SelectionCriteria
from jumar.model.decisions import recheck_seconds

COUNTS: Counter[str] = Counter()


@dataclass
class Ran:
    """One scenario carried out in a directory: its last outcome (None: killed after its end), and every wait that was told."""

    directory: Path
    scenario: Scenario
    outcome: LoopOutcome | None = None
    kills: int = 0
    waits: list[Waiting] = field(default_factory=list[Waiting])
    said: Mapping[str, Any] | None = None
    world: World | None = None

    def store(self) -> LoopStore:
        return LoopStore.open(self.directory / ".jumar" / "loops" / "t")

    def is_at_its_end(self) -> bool:
        """Whether the loop recorded that it has ended: what comes then is only telling about it."""
        if not (self.directory / ".jumar" / "loops" / "t" / "loop.json").exists():
            return False
        store = self.store()
        return any(one.kind == "end" for one in store.decisions()[-1:])


def loop_of(ran: Ran, fuse: Fuse) -> Loop:
    """Return the loop of a scenario, its store made or opened: what a new process does."""
    directory, scenario = ran.directory, ran.scenario
    place = directory / ".jumar" / "loops" / "t"
    if (place / "loop.json").exists():
        store = LoopStore.open(place)
    else:
        prepare_root(directory / ".jumar")
        store = LoopStore.create(place, "t", {}, workdir=directory, created_at="2026-01-01T00:00:00Z")
    settings = LoopSettings(
        allow_broken_start=True,
        loop_id="t",
        workdir=directory,
        continue_from=scenario.continue_from,  # type: ignore[arg-type]
        isolation=scenario.isolation,  # type: ignore[arg-type]
        apply="auto" if scenario.isolation == "none" else "never",
        artifacts=ArtifactRules(include=("out.txt",)),
        criteria=SelectionCriteria(threshold=None),
        stop=scenario.rules,
        candidates=scenario.candidates,
        workers=scenario.workers,
        seed=scenario.seed,
        retries=Retries(**scenario.retries),
        budget=scenario.budget,
    )
    clock = WildClock()
    world = ran.world = World(scenario, store.attempts(), clock, fuse)
    scorer = WildScorer(world)
    validators = (WildValidator(scorer.asked),) if scenario.validated else ()
    parts = LoopParts(generator=world, validators=validators, scorers=(scorer,))

    def hear(event: Event) -> None:
        if isinstance(event, Waiting):
            ran.waits.append(event)
        fuse.chance()

    return Loop.of(store, settings, parts, clock=clock, listener=hear, sleep=clock.advance)


def carry_out(directory: Path, scenario: Scenario, *, kills: int = 0, salt: str = "") -> Ran:
    """Run a scenario to its end, its process killed ``kills`` times at random points in between."""
    directory.mkdir()
    (directory / "out.txt").write_text("0.3")
    ran = Ran(directory, scenario)
    rng = random.Random(f"{scenario.seed} kills {salt}")
    while ran.outcome is None and not (ran.kills and ran.is_at_its_end()):
        fuse, at = Fuse(), 0
        if ran.kills < kills and rng.random() < 0.5:
            fuse.left = rng.randrange(60)
        elif ran.kills < kills:
            at = rng.randrange(1, 260)
        try:
            with dying(at, rng.choice(("killed before", "killed after"))):
                ran.outcome = loop_of(ran, fuse).run()
        except (Killed, Died):
            ran.kills += 1
            COUNTS["kills"] += 1
    COUNTS["scenarios"] += 1
    return ran


def carry_out_again(ran: Ran) -> LoopOutcome:
    """Run a loop that has ended once more."""
    return loop_of(ran, Fuse()).run()


def facts(ran: Ran) -> dict[str, Any]:
    """Return what a loop decided: what must be the same whenever the same happens to it."""
    store = ran.store()
    ends = [one for one in store.decisions() if one.kind in {"select", "end"}]
    return {
        "records": [
            (
                *(one.iteration_number, one.quality_score, one.quality_delta, one.status, one.status_reason, one.failure),
                *(one.verification_status, one.parent, one.batch, one.candidate, one.token_cost_usd),
                tuple((detail.path, detail.content_hash) for detail in one.artifacts_detail),
            )
            for one in store.records()
        ],
        "decided": [(one.kind, one.best_iteration, one.final_iteration, one.reason) for one in ends],
        "tree": (ran.directory / "out.txt").read_text(),
    }


def audit(ran: Ran) -> None:
    """Hold what a loop left against the model. Raises ``AssertionError`` that says what is wrong."""
    store, scenario = ran.store(), ran.scenario
    assert () == verify(store).problems
    attempts, records = store.attempts(), {one.iteration_number: one for one in store.records()}
    COUNTS["attempts"] += len(attempts)
    COUNTS["iterations"] += len(records) - 1
    assert list(range(1, len(attempts) + 1)) == [one.start.number for one in attempts]
    model = Model(scenario, records)
    seen: set[int] = set()
    for attempt in attempts:
        number = attempt.start.iteration
        if attempt.start.purpose == "generate":
            _may_begin(model, attempt.start, seen)
        model.take(attempt)
        seen.add(number)
    for number, record in records.items():
        text = store.artifacts(number) / "out.txt"
        model.texts[number] = text.read_text()
        model.check_record(number)
        assert record.candidate is not None or scenario.candidates == 1 or number == 0
    _is_ended(ran, model)
    _is_within_budget(model)
    _best_is_there(ran, model)
    said = ran.said if ran.outcome is None else ran.outcome.to_json()
    if said is not None:
        _says_the_same(said, model, recheck_seconds(store.decisions()))
    if not ran.kills:
        told = sorted(one.seconds for one in ran.waits if one.why == "rate_limited")
        due = [wait for wait in model.waits if wait > 0]
        if scenario.candidates == 1:
            last = ran.outcome is not None and ran.outcome.stop.reason == "rate_limited"
            due = due[:-1] if last and model.waits and model.waits[-1] > 0 else due
            assert sorted(due)[: len(told)] == told or sorted(due) == told, (due, told)


def _may_begin(model: Model, start: Any, seen: set[int]) -> None:
    """No run of the generator begins when there is a reason to stop."""
    scenario, number = model.scenario, start.iteration
    before = [model.records[one] for one in sorted(model.records) if one < number]
    if scenario.candidates > 1:
        before = [one for one in before if one.batch is None or one.batch < start.batch]
        assert start.candidate == (number - 1) % scenario.candidates + 1 or scenario.budget != type(scenario.budget)()
    else:
        assert [one.iteration_number for one in before] == list(range(number)), (
            f"iteration {number} began before another was done"
        )
        assert model.parent(before) == start.parent
        assert not model.stops_by_budget(), f"attempt {start.number} began although {model.stops_by_budget()}"
        assert not model.refused(number)
    assert not model.stops_by_records(before), f"attempt {start.number} began although {model.stops_by_records(before)}"
    if number in model.records:
        assert start.parent == model.records[number].parent


def _is_ended(ran: Ran, model: Model) -> None:
    """The loop ended for a reason that there is, and nothing that was paid for was left."""
    store = ran.store()
    assert not store.pending_numbers()
    before = [model.records[one] for one in sorted(model.records)]
    reasons = model.stops_by_records(before) | model.stops_by_budget()
    refused = [number for number in list(model.ends) if model.refused(number)]
    reasons |= {"rate_limited"} if refused else set[str]()
    end = next(one for one in reversed(store.decisions()) if one.kind == "end")
    reason = end.data["stop_reason"]
    assert reason in reasons, f"ended by {reason}; there is only {reasons}"
    COUNTS[f"ended: {reason}"] += 1
    for number, ends in model.ends.items():
        recorded = number in model.records
        nothing_left = ends[-1] in {"rate_limited", "lost"}  # a run that was killed may be the last that the budget allows
        assert recorded or nothing_left, f"iteration {number} was paid for and is not on record"


def _is_within_budget(model: Model) -> None:
    """The caps hold but for what was in flight when they were reached."""
    workers = model.scenario.workers
    budget = model.scenario.budget
    for one in (model.cost, model.tokens):
        if one.cap is not None:
            in_flight = sum(sorted(one.steps.values())[-workers:])
            assert one.charged - in_flight <= one.cap + NEAR, f"{one.charged} of {one.cap}, {in_flight} in flight"
    if budget.max_iterations is not None:
        assert model.begun <= budget.max_iterations


def _best_is_there(ran: Ran, model: Model) -> None:
    """The best is chosen, whole, and in place; never worse than the start."""
    store, chosen = ran.store(), model.chosen()
    selected = [one for one in store.decisions() if one.kind == "select"]
    assert chosen == (selected[-1].best_iteration if selected else None)
    if chosen is None:
        return
    if ran.scenario.isolation == "copy" and ran.outcome is None:
        return  # killed after its end, before what is only shown was written
    snapshot = (store.artifacts(chosen) / "out.txt").read_text()
    place = ran.directory if ran.scenario.isolation == "none" else store.paths.final_output
    assert snapshot == (place / "out.txt").read_text(), f"iteration {chosen} is the best and not in place"
    if ran.scenario.isolation == "copy":
        assert "0.3" == (ran.directory / "out.txt").read_text()
    start, best = model.records[0], model.records[chosen]
    if start.quality_score is not None and start.verification_status == best.verification_status:
        assert (best.quality_score or 0.0) >= start.quality_score


def _says_the_same(said: Mapping[str, Any], model: Model, rechecks: float) -> None:
    """The final JSON is the model's ledger, and what the rechecks took."""
    budget = model.scenario.budget
    spend, left = said["spend"], said["budget_left"]
    assert model.begun == spend["iterations"]
    assert abs(model.seconds + rechecks - spend["seconds"]) < NEAR
    for one, name, keys in ((model.cost, "cost_usd", "known_cost_usd"), (model.tokens, "tokens", "known_tokens")):
        assert (one.total is None) == (spend[name] is None), f"{name}: unknown is None, never a number, and known never None"
        assert one.total is None or abs(one.total - spend[name]) < NEAR
        assert abs(one.known - spend[keys]) < NEAR
        assert abs(one.assumed - spend[keys.replace("known", "assumed")]) < NEAR
        assert left[name] == (None if one.cap is None else left[name])
        assert one.cap is None or abs(left[name] - max(0.0, one.cap - one.charged)) < NEAR
    caps = {"iterations": (budget.max_iterations, model.begun), "seconds": (budget.max_seconds, model.seconds)}
    for name, (cap, used) in caps.items():
        assert (cap is None) == (left[name] is None)
        assert cap is None or abs(left[name] - max(0, cap - used)) < NEAR
    assert dict(model.failures) == dict(said["failures"])
