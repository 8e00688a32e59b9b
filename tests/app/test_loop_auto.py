"""``[evaluator] mode = "auto"``: the loop's score is the corrected average; a proof that does not fit is refused at once."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from auto_kit import proven_folder
from pydantic import ValidationError
from steps_kit import context

from jumar.app.config.evaluator import EvaluatorConfig
from jumar.app.run.evaluator import Evaluators, Place
from jumar.core.codec import Fields
from jumar.errors import ConfigError, StoreDamagedError
from jumar.judging.proofs import read_proof
from jumar.loop.generators.prompt import render_protocol
from jumar.loop.scorers import JudgeScorer
from jumar.model import Judgement, ScoreReading

OPTIONS: dict[str, Any] = {
    "mode": "auto",
    "items": "new.jsonl",
    "judge": "replay:new.jsonl",
    "patterns": "patterns.json",
    "proof": "proof.json",
    "decision_line": 3.5,
    "repeat": 1,
}


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return proven_folder(tmp_path_factory.mktemp("loop-auto"))


@pytest.fixture
def work(proven: Path, tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    for one in proven.iterdir():
        if one.is_file():
            shutil.copy(one, tmp_path / one.name)
    shutil.copy(proven / "new.jsonl", directory / "new.jsonl")
    return directory


def scorers(work: Path, **options: Any) -> list[JudgeScorer]:
    config = EvaluatorConfig.model_validate({**OPTIONS, **options})
    return Evaluators(Place(base=work.parent, root=work.parent / "root")).scorers(config)


def read(work: Path, **options: Any) -> tuple[ScoreReading, Judgement]:
    found = scorers(work, **options)[0].score(context(work))
    assert found.judgement is not None
    return found, found.judgement


def test_the_score_is_the_corrected_average_and_the_judge_is_asked_about_a_part(work: Path) -> None:
    reading, judged = read(work, audit=0.2)
    rows = [json.loads(line) for line in (work / "new.jsonl").read_text().splitlines()]
    truth = sum(sum(row["judge_scores"]) / len(row["judge_scores"]) for row in rows) / len(rows)
    print(f"corrected {judged.gestalt:.3f}, cheap {judged.cheap:.3f}, the judge's own {truth:.3f}; {judged.calls} calls")

    assert (judged.mode, judged.items, judged.scored) == ("auto", 180, 180)
    assert 0 < judged.calls < 120
    assert judged.gestalt is not None
    assert reading.score == pytest.approx((judged.gestalt - 1) / 4)
    assert abs(judged.gestalt - truth) < 0.1
    assert judged.flags == () or "not_trusted" not in str(judged.flags)
    assert Judgement.from_json(Fields(judged.to_json(), "here")) == judged
    assert "AUTO MODE" in render_protocol([judged])
    written = json.loads(next((work.parent).rglob("auto_eval.json")).read_text())
    assert len(written["items"]) == 180
    assert written["calls_saved"] == 180 - judged.calls


def test_an_empty_item_counts_as_one(work: Path) -> None:
    _, before = read(work, audit=0.2)
    with (work / "new.jsonl").open("a") as stream:
        stream.write(json.dumps({"id": "empty", "text": "", "group": "e"}) + "\n")
    _, after = read(work, audit=0.2)

    assert before.gestalt is not None
    assert after.gestalt == pytest.approx((before.gestalt * 180 + 1) / 181)


def test_a_stale_proof_asks_about_everything_and_says_so(work: Path) -> None:
    proof = read_proof(work.parent / "proof.json")
    old = proof.model_copy(update={"created_at": proof.created_at - timedelta(days=365)}).hashed()
    (work.parent / "proof.json").write_bytes(old.to_bytes())
    _, judged = read(work)

    assert judged.calls == 180
    assert "proof_not_trusted" in judged.flags


@pytest.mark.parametrize("missing", ["patterns", "proof", "decision_line", "judge"])
def test_what_auto_needs_is_asked_for(missing: str) -> None:
    with pytest.raises(ValidationError, match=missing):
        EvaluatorConfig.model_validate({name: value for name, value in OPTIONS.items() if name != missing})


def test_what_auto_alone_knows_is_refused_elsewhere() -> None:
    with pytest.raises(ValidationError, match="decision_line: is for mode = 'auto', and the mode is 'dual'"):
        EvaluatorConfig.model_validate({"items": "a", "judge": "mock:", "decision_line": 3})


def test_a_proof_that_does_not_fit_is_found_when_the_loop_is_put_together(work: Path) -> None:
    (work.parent / "mine.toml").write_text('kind = "text"\nname = "mine"\n[judge]\ntask = "Judge."\ncriteria = ["good"]\n')
    with pytest.raises(ConfigError, match=r"\[evaluator\] proof: the proof was made with the rubric 'text'"):
        scorers(work, rubric="mine.toml")
    with pytest.raises(ConfigError, match=r"\[evaluator\] proof: .*cannot be read"):
        scorers(work, proof="nothing.json")
    proof = work.parent / "proof.json"
    proof.write_text(proof.read_text().replace('"verdict": "tracks"', '"verdict": "fails"'))
    with pytest.raises(StoreDamagedError, match="does not hold"):
        scorers(work)
