"""How a loop ends when what it waits for does not come: a retry, a provider, a scorer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jumar.loop.engine.engine import Loop
from jumar.loop.engine.evaluation import Evaluation
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.events.events import AttemptEnded, AttemptStarted, Event, Notice
from jumar.loop.settings import LoopParts, LoopSettings, Retries
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify
from jumar.model import GenerateOutcome, ScoreReading, SelectionCriteria, StepContext, StopRules, Usage
from jumar.model.budget.pricing import Budget
from jumar.model.judgement import Judgement
from jumar.testing import ManualClock, PassingValidator, ReadingScorer


class Died(BaseException):
    """The process is dead."""


OK = GenerateOutcome(exit_code=0, seconds=1.0)
FAILS = GenerateOutcome(exit_code=1, seconds=1.0, failure="exit code 1")
REFUSED = GenerateOutcome(exit_code=75, seconds=0.1, failure="exit code 75", rate_limited=True, usage=Usage(retry_after=600.0))


class Agent:
    """Does the next of ``outcomes`` with each run: writes its number, and says that; dies where there is none."""

    def __init__(self, outcomes: Sequence[GenerateOutcome | None]) -> None:
        self._outcomes = list(outcomes)
        self.iterations: list[int] = []

    def generate(self, context: StepContext) -> GenerateOutcome:
        outcome = self._outcomes.pop(0) if self._outcomes else OK
        self.iterations.append(context.iteration)
        (context.workdir / "out.txt").write_text("junk" if outcome is FAILS else f"0.{context.iteration}")
        if outcome is None:
            raise Died
        return outcome


def run(
    directory: Path,
    agent: Agent,
    *,
    hear: Callable[[Event], None] | None = None,
    scorer: Any = None,
    holdout: Any = None,
    clock: ManualClock | None = None,
    **settings: Any,
) -> LoopOutcome:
    place = directory / ".jumar" / "loops" / "t"
    if place.exists():
        store = LoopStore.open(place)
    else:
        prepare_root(directory / ".jumar")
        (directory / "out.txt").write_text("0.9")
        store = LoopStore.create(place, "t", {}, workdir=directory, created_at="2026-01-01T00:00:00Z")
    chosen = LoopSettings(
        loop_id="t",
        workdir=directory,
        artifacts=ArtifactRules(include=("out.txt",)),
        criteria=SelectionCriteria(threshold=None),
        stop=StopRules(max_iterations=3),
    )
    held_out = () if holdout is None else (holdout,)
    parts = LoopParts(generator=agent, validators=(PassingValidator(),), scorers=(scorer or ReadingScorer(),), holdout=held_out)
    clock = clock or ManualClock()
    try:
        return Loop.of(store, replace(chosen, **settings), parts, clock=clock, listener=hear, sleep=clock.advance).run()
    finally:
        assert () == verify(LoopStore.open(place)).problems


def stored(directory: Path) -> LoopStore:
    return LoopStore.open(directory / ".jumar" / "loops" / "t")


def test_a_failed_pass_that_the_budget_lets_nobody_try_again_is_on_record_and_the_best_in_place(tmp_path: Path) -> None:
    outcome = run(tmp_path, Agent([OK, FAILS]), retries=Retries(generator_failed=2), budget=Budget(max_iterations=2))
    assert "max_attempts" == outcome.stop.reason
    assert ["ok", "ok", "generator_failed"] == [record.status for record in stored(tmp_path).records()]
    assert outcome.apply_problem is None
    assert "0.9" == (tmp_path / "out.txt").read_text()


def test_a_failed_pass_is_tried_again_after_a_stop_on_request(tmp_path: Path) -> None:
    (tmp_path / ".jumar" / "loops").mkdir(parents=True)

    def hear(event: Event) -> None:
        if isinstance(event, AttemptEnded) and event.outcome == "failed":
            (stored(tmp_path).paths.directory / "STOP").touch()

    agent = Agent([FAILS, OK])
    settings: dict[str, Any] = {"retries": Retries(generator_failed=1), "stop": StopRules(max_iterations=1)}
    outcome = run(tmp_path, agent, hear=hear, **settings)
    assert "stop_file" == outcome.stop.reason
    assert [0] == list(stored(tmp_path).iteration_numbers())
    (stored(tmp_path).paths.directory / "STOP").unlink()
    assert "max_iterations" == run(tmp_path, agent, **settings).stop.reason
    assert ["ok", "ok"] == [record.status for record in stored(tmp_path).records()]


def test_a_loop_that_gives_up_on_its_provider_leaves_the_best_in_place_and_goes_on_when_run_again(tmp_path: Path) -> None:
    agent = Agent([OK, REFUSED, REFUSED])
    retries = Retries(rate_limited=1)
    outcome = run(tmp_path, agent, retries=retries)
    assert ("rate_limited", None) == (outcome.stop.reason, outcome.apply_problem)
    assert "0.9" == (tmp_path / "out.txt").read_text()
    clock = ManualClock()
    clock.advance(10_000)
    assert "max_iterations" == run(tmp_path, agent, retries=retries, clock=clock).stop.reason
    assert [1, 2, 2, 2, 3] == agent.iterations


def test_a_kill_between_two_refusals_does_not_begin_their_count_anew(tmp_path: Path) -> None:
    agent = Agent([REFUSED, None, REFUSED])
    with pytest.raises(Died):
        run(tmp_path, agent, retries=Retries(rate_limited=1))
    outcome = run(tmp_path, agent, retries=Retries(rate_limited=1))
    assert "rate_limited" == outcome.stop.reason
    assert "refused iteration 1 twice in a row" in outcome.stop.detail


def test_a_pass_that_failed_before_it_was_refused_is_no_missing_iteration(tmp_path: Path) -> None:
    agent = Agent([FAILS, REFUSED])
    outcome = run(tmp_path, agent, retries=Retries(generator_failed=1, rate_limited=0))
    assert "rate_limited" == outcome.stop.reason
    assert [0] == list(stored(tmp_path).iteration_numbers())


def test_the_other_candidates_wait_too_when_the_provider_refuses_one(tmp_path: Path) -> None:
    clock = ManualClock()
    began: list[tuple[int, float]] = []

    def hear(event: Event) -> None:
        if isinstance(event, AttemptStarted) and event.purpose == "generate":
            began.append((event.iteration, clock.monotonic()))

    run(tmp_path, Agent([REFUSED]), hear=hear, clock=clock, candidates=3)
    assert [1, 1, 2, 3] == [iteration for iteration, _ in began]
    assert [0, 600, 600, 600] == [round(at) for _, at in began]


class BreakingScorer(ReadingScorer):
    """Cannot answer about iteration 1, and after ``dies_at`` such answers the process is dead."""

    def __init__(self, dies_at: int) -> None:
        super().__init__()
        self.asked = 0
        self._dies_at = dies_at

    def score(self, context: StepContext) -> ScoreReading:
        if context.iteration != 1:
            return super().score(context)
        self.asked += 1
        if self.asked > self._dies_at:
            self._dies_at = 99
            raise Died
        return ScoreReading(dimension="quality", score=None, broken="timed out")


@pytest.mark.parametrize("dies_at", [0, 1, 2, 99])
def test_how_often_a_scorer_could_not_answer_is_remembered_over_a_kill(tmp_path: Path, dies_at: int) -> None:
    scorer, agent = BreakingScorer(dies_at), Agent([])
    settings: dict[str, Any] = {"retries": Retries(broken=2), "stop": StopRules(max_iterations=1), "scorer": scorer}
    if dies_at < 99:
        with pytest.raises(Died):
            run(tmp_path, agent, **settings)
    run(tmp_path, agent, **settings)
    assert "scorer_broken" == stored(tmp_path).record(1).status
    outcomes = [one.end and one.end.outcome for one in stored(tmp_path).attempts() if one.start.purpose == "score"]
    assert 3 == outcomes.count("broken"), outcomes
    assert [1] == agent.iterations


class SlowAndSilent:
    """A hold-out that takes 20 seconds and cannot answer."""

    dimension = "exam"

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def score(self, context: StepContext) -> ScoreReading:
        del context
        self._clock.advance(20)
        return ScoreReading(dimension="exam", score=None, broken="no exam today")


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        ({}, [0, 0, 0, 0, 1, 1, 1, 1]),
        ({"budget": Budget(max_seconds=30)}, [0, 0]),
        ({"stop": StopRules(max_iterations=1, max_seconds=30)}, [0, 0]),
    ],
)
def test_a_holdout_that_cannot_answer_is_asked_again_as_long_as_the_budget_has_room(
    tmp_path: Path, limits: dict[str, Any], asked: list[int]
) -> None:
    clock = ManualClock()
    settings: dict[str, Any] = {"stop": StopRules(max_iterations=1), "retries": Retries(broken=3), **limits}
    run(tmp_path, Agent([]), holdout=SlowAndSilent(clock), clock=clock, **settings)
    store = stored(tmp_path)
    confirmed = [one for one in store.attempts() if one.start.purpose == "confirm"]
    assert asked == [one.start.iteration for one in confirmed]
    assert {"broken"} == {one.end and one.end.outcome for one in confirmed}
    assert [(number, None, "scorer_broken") for number in dict.fromkeys(asked)] == [
        (one.iteration, one.score, one.status) for one in store.readings()
    ]


class Paid(ReadingScorer):
    def score(self, context: StepContext) -> ScoreReading:
        judged = Judgement(mode="expensive", items=1, scored=1, gestalt=3.0, cost_usd=2.0)
        return super().score(context).with_judgement(judged)


def test_a_reading_that_is_on_record_is_charged_what_it_cost_though_its_process_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any, **__: Any) -> None:
        raise Died

    close = Evaluation.close
    limits: dict[str, Any] = {"stop": StopRules(max_iterations=1), "budget": Budget(max_cost_usd=3.0, reserve_cost_usd=0.1)}
    free = replace(OK, usage=Usage(token_cost_usd=0.0))

    def hear(event: Event) -> None:  # the hold-out's evaluation only
        monkeypatch.setattr(Evaluation, "close", die if isinstance(event, Notice) and "hold-out" in event.message else close)

    with pytest.raises(Died):
        run(tmp_path, Agent([free]), holdout=Paid(), hear=hear, **limits)
    monkeypatch.undo()
    run(tmp_path, Agent([]), holdout=Paid(), **limits)
    store = stored(tmp_path)
    ends = [one.end for one in store.attempts() if one.start.purpose == "confirm"]
    assert [("lost", 2.0)] == [(end.outcome, end.usage.token_cost_usd) for end in ends if end]
    assert 1 == len(store.readings())


def test_what_the_budget_does_not_count_is_told_once(tmp_path: Path) -> None:
    told: list[str] = []

    def hear(event: Event) -> None:
        if isinstance(event, Notice) and "budget" in event.message:
            told.append(event.message)

    run(tmp_path, Agent([]), hear=hear, budget=Budget(max_cost_usd=5.0, on_unknown_cost="allow"))
    assert ["the budget counts only what is known: the cost of 1 attempt is not in it"] == told


class _SideBySide(Agent):
    """The second of two candidates fails while the first is being scored."""

    dimension = "quality"

    def __init__(self) -> None:
        super().__init__([])
        self.first_is_scored, self.second_failed = threading.Event(), threading.Event()

    def generate(self, context: StepContext) -> GenerateOutcome:
        (context.workdir / "out.txt").write_text("0.5")
        if context.iteration == 1:
            return OK
        assert self.first_is_scored.wait(60)
        return FAILS

    def score(self, context: StepContext) -> ScoreReading:
        if context.iteration == 1:
            self.first_is_scored.set()
            assert self.second_failed.wait(60)
        return ReadingScorer().score(context)


def test_a_record_that_only_lacked_its_rename_is_not_held_against_the_candidate_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = _SideBySide()
    acknowledge = LoopStore._acknowledge

    def dies(store: LoopStore, directory: Path, target: Path) -> None:
        if target.name == "iteration-002":
            agent.second_failed.set()
            raise Died
        acknowledge(store, directory, target)

    no_retry = Retries(generator_failed=0)
    settings: dict[str, Any] = {"candidates": 2, "workers": 2, "retries": no_retry, "stop": StopRules(max_iterations=2)}
    with monkeypatch.context() as patch:
        patch.setattr(LoopStore, "_acknowledge", dies)
        with pytest.raises(Died):
            run(tmp_path, agent, scorer=agent, **settings)
    place = tmp_path / ".jumar" / "loops" / "t"
    assert (place / "pending" / "iteration-002" / "metrics.json").exists()
    assert not (place / "pending" / "iteration-001" / "metrics.json").exists()
    run(tmp_path, Agent([]), **settings)
    records = {one.iteration_number: one for one in LoopStore.open(place).records()}
    assert ("ok", "passed", ()) == (records[1].status, records[1].verification_status, records[1].tampering)
    assert "generator_failed" == records[2].status
    assert not (place / "planted").exists()
