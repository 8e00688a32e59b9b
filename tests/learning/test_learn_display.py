"""What a person sees while a cheap judge is learned: each iteration with its figures, and how far the judge is."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from report_samples import record

from jumar.cli.learn.display import LearningDisplay, SilentLearning, learning_words
from jumar.judging.models import ExpensiveModeResult
from jumar.learning.report.view import LearningProgress
from jumar.loop.events.events import Event, IterationRecorded, LoopStarted, Notice, PhaseStarted
from jumar.model import IterationRecord, ScoreReading, StopRules
from jumar.model.attempts import Spend

ANSWER = ExpensiveModeResult(story_id="a", gestalt=4.0, reasoning="", strengths=[], weaknesses=[], cost_usd=0.25)


def made(number: int, gap: float, rank: float) -> IterationRecord:
    dimensions = {"closeness": 1 - gap / 4, "ranking": (1 + rank) / 2}
    readings = (
        ScoreReading(dimension="closeness", score=dimensions["closeness"], reason=f"MAE {gap:.3f}"),
        ScoreReading(dimension="ranking", score=dimensions["ranking"], reason=f"Spearman {rank:.3f}"),
    )
    return replace(record(number, 70.0), dimensions=dimensions, readings=readings)


def progress(number: int, *actions: dict[str, Any]) -> LearningProgress:
    return LearningProgress(
        iteration=number,
        when="2026-01-01T00:00:00Z",
        abs_gap=0.5,
        gap=0.1,
        spearman=0.3,
        patterns=1234,
        committed=3,
        rejected=7,
        provisional=0,
        tracks=None,
        divergence="",
        actions=actions,
        plan="",
    )


ACTIONS = (
    {"action": "rolled_back", "description": "correlation decreased by 0.068"},
    {"action": "recovery", "recovery": "prune_by_coverage", "kept": True},
    {"action": "recovery", "recovery": "reset_provisional", "kept": False},
)
TOLD = {1: progress(1), 2: progress(2, *ACTIONS)}


def events() -> list[Event]:
    started = LoopStarted(loop_id="learn", resumed=False, rules=StopRules(max_iterations=2), recorded=0, weights={})
    recorded = [
        IterationRecorded(record=made(0, 0.62, -0.1), best=0, spend=Spend()),
        IterationRecorded(record=made(1, 0.5, 0.3), best=1, spend=Spend()),
        IterationRecorded(record=made(2, 0.51, 0.3), best=1, spend=Spend()),
    ]
    return [started, *recorded[:2], Notice(message="something \x1b[31m"), recorded[2]]


def test_plain_lines_have_the_figures_of_learning():
    stream = io.StringIO()
    display = LearningDisplay(stream, TOLD.get)
    with display:
        for event in events():
            display.hear(event)
    lines = stream.getvalue().splitlines()
    assert "learning  up to 2 iterations" == lines[0]
    assert ["it", "gap", "Δ", "rank", "patterns", "committed", "rejected"] == lines[1].split()
    assert ["0", "0.62", "−0.10", "start", "·", "★", "best"] == lines[2].split()
    assert ["1", "0.50", "−0.120", "0.30", "1,234", "3", "7", "★", "best"] == lines[3].split()
    assert "\x1b" not in stream.getvalue()
    assert "rolled back: correlation decreased by 0.068 · recovery: pruning patterns that never fire" in lines[5]
    assert "reset" not in lines[5]
    assert not [word for word in ("checks", "cost", "$") if word in stream.getvalue()]


def test_plain_lines_say_at_each_quarter_how_far_the_judge_is_and_begin_anew():
    stream = io.StringIO()
    display = LearningDisplay(stream, TOLD.get)
    for total in (10, 3):
        for _ in range(total):
            display.judged(ANSWER, total)
    told = [line.split()[1] for line in stream.getvalue().splitlines()]
    assert ["3", "5", "8", "10", "1", "2", "3"] == told


def test_the_status_says_what_is_done_how_far_the_judge_is_and_what_it_was_paid():
    display = LearningDisplay(io.StringIO(), TOLD.get)

    def status() -> str:
        (line,) = display.status(80)
        return line.strip()

    assert [] == list(display.status(80))
    display.hear(events()[0])
    for _ in range(2):
        display.judged(ANSWER, 8)
    assert "judging 2 of 8 items · $0.50 · 0s" == status()
    for event in events()[1:]:
        display.hear(event)
    assert "the last set: fitting, probing, proving · 0s" == status()
    display.hear(PhaseStarted(phase="generate", iteration=3))
    assert "iteration 3: proposing and fitting · 0s" == status()


def test_quiet_says_nothing(capsys: Any):
    display = SilentLearning()
    with display:
        display.hear(events()[1])
        display.judged(ANSWER, 1)
    assert ("", "") == tuple(capsys.readouterr())


def test_notices_of_the_engine_are_said_in_words_of_learning():
    differed = (
        "the working directory differed from iteration 1, from which the loop resumes: patterns.json; "
        "what was there is in a/b/0001"
    )
    generated = "iteration {} was generated before the interruption; it is scored now, not generated again"
    told = [learning_words(one) for one in (differed, generated.format(0), generated.format(7), "something else")]
    assert "patterns.json: put back to what iteration 1 left" in told[0]
    assert told[0].endswith("is in a/b/0001")
    assert "the start was not measured" in told[1]
    assert "iteration 7 was learned before" in told[2]
    assert "something else" == told[3]
    assert not [one for one in told if "generated" in one or "working directory" in one]
