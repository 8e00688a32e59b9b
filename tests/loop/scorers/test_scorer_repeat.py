"""A scorer that is asked several times: every answer is kept, and a broken one among good ones is told and left out."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from steps_kit import context

from jumar.app.config.config import JumarConfig, ScorerConfig
from jumar.app.run.parts import build_parts
from jumar.core.codec import Fields
from jumar.errors import StoreDamagedError
from jumar.loop.scorers import RepeatedScorer, build_scorer
from jumar.model import ScoreReading
from jumar.model.records import IterationRecord, Repeats
from jumar.processes.control import StopSwitch

SCRIPT = """\
import os, pathlib, sys
seen = pathlib.Path("seen"); seen.write_text((seen.read_text() if seen.exists() else "") + os.environ["JUMAR_REPEAT"])
answers = {answers!r}
answer = answers[int(os.environ["JUMAR_REPEAT"]) - 1]
print("asked", os.environ["JUMAR_REPEAT"], file=sys.stderr)
sys.exit(answer) if isinstance(answer, int) else print(answer)
"""


def ask(work: Path, answers: list[object], *, stop: threading.Event | None = None) -> ScoreReading:
    (work / "score.py").write_text(SCRIPT.format(answers=answers))
    scorer = build_scorer("command", {"command": "python3 -S score.py"}, dimension="worth")
    repeated = RepeatedScorer(scorer, len(answers), stop=stop)
    assert "worth" == repeated.dimension
    return repeated.score(context(work))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_every_answer_is_kept_and_the_score_is_their_mean(work: Path) -> None:
    reading = ask(work, ["0.5", '{"score": 0.6, "reason": "so"}', "0.7"])
    assert (0.5, 0.6, 0.7) == reading.repeats == reading.scores
    assert 0.6 == reading.score
    assert "mean of 3 answers, 0.5 to 0.7" == reading.reason
    assert "123" == (work / "seen").read_text()
    logs = sorted(path.parent.name for path in (work.parent / "work.step").rglob("score-*.log"))
    assert ["repeat-2", "repeat-3", "work.step"] == logs  # no answer's output overwrites another's


def test_a_broken_answer_leaves_the_others_standing_and_is_told(work: Path) -> None:
    reading = ask(work, [3, "0.4", "0.6"])
    assert (None, 0.4, 0.6) == reading.repeats
    assert (0.4, 0.6) == reading.scores
    assert (0.5, None, None) == (reading.score, reading.broken, reading.invalid)
    assert "mean of 2 of 3 answers, 0.4 to 0.6 (not: exit code 3: asked 1)" == reading.reason


def test_all_broken_is_broken(work: Path) -> None:
    reading = ask(work, [3, 3])
    assert (None, None) == reading.repeats
    assert () == reading.scores
    assert None is reading.score
    assert "exit code 3: asked 1" == reading.broken


def test_an_answer_that_is_no_score_makes_the_reading_invalid_at_once(work: Path) -> None:
    reading = ask(work, ["0.5", "1.5", "0.5"])
    assert (0.5, None) == reading.repeats
    assert (None, None) == (reading.score, reading.broken)
    assert "1.5" in (reading.invalid or "")
    assert "12" == (work / "seen").read_text()


def test_a_stop_ends_the_asking(work: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert 1 == len(ask(work, ["0.5", "0.5", "0.5"], stop=stop).repeats)


def test_once_is_no_repeat() -> None:
    with pytest.raises(ValueError, match="twice or more"):
        RepeatedScorer(build_scorer("checks", {}), 1)


def test_the_configuration_repeats_every_scorer_but_a_judge(tmp_path: Path) -> None:
    """``repeat`` of a judge is how often it reads each item; it is the judge's own."""
    judge = {"builtin": "judge", "items": "a.md", "mode": "cheap", "repeat": 3}
    scorers = [{"command": "true", "dimension": "a", "repeat": 4}, {"command": "true", "dimension": "b", "repeat": 1}, judge]
    config = JumarConfig.model_validate({"generator": {"command": "true"}, "scorers": scorers})
    parts = build_parts(config, tmp_path, StopSwitch())
    assert [True, False, False] == [isinstance(scorer, RepeatedScorer) for scorer in parts.scorers]
    assert 3 == config.scorers[2].judge_options()["repeat"]
    for wrong in (0, -1, 2.5, "3", 100):
        with pytest.raises(ValueError, match="repeat"):
            ScorerConfig.model_validate({"command": "true", "dimension": "a", "repeat": wrong})


def test_answers_survive_their_record_and_older_records_have_none() -> None:
    reading = ScoreReading(dimension="d", score=0.5, repeats=(0.4, None, 0.6))
    assert reading == ScoreReading.from_json(Fields(reading.to_json(), "x"))
    old = {key: value for key, value in reading.to_json().items() if key != "repeats"}
    assert () == ScoreReading.from_json(Fields(old, "x")).repeats
    for damaged in ("0.5", ["0.5"], [True], [float("nan")]):
        with pytest.raises(StoreDamagedError, match="repeats"):
            ScoreReading.from_json(Fields({**old, "repeats": damaged}, "x"))


def test_a_view_has_the_answers_when_somebody_was_asked_twice() -> None:
    once = ScoreReading(dimension="a", score=0.25)
    twice = ScoreReading(dimension="b", score=0.5, repeats=(0.4, 0.6))
    record = IterationRecord(iteration_number=1, timestamp="", quality_score=37.5, readings=(once, twice))
    assert (Repeats("a", (0.25,)), Repeats("b", (0.4, 0.6))) == record.view().repeats
    assert () == replace(record, readings=(once, once)).view().repeats
    unscored = replace(twice, score=None, broken="gone")
    assert () == replace(record, readings=(once, unscored), quality_score=None, status="scorer_broken").view().repeats
