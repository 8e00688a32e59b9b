"""One step of the cheap judge of a loop: no leak between the sides, the same when it is made again, and when it waits."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any, Literal

import pytest
from steps_kit import context
from store_kit import unmarked

from jumar.app.config.config import JumarConfig
from jumar.app.config.evaluator import EvaluatorConfig, JudgeOptions
from jumar.app.run.learning import LoopLearning
from jumar.core.codec import Fields
from jumar.errors import StoreDamagedError
from jumar.judging.items.item import Item
from jumar.judging.models import ExpensiveModeResult
from jumar.learning.proof.split import FOLDS
from jumar.learning.state import read_checkpoint
from jumar.loop.report.judged import unconverged_sentence
from jumar.loop.store.loop_store import LoopStore
from jumar.model import IterationView, Judgement, LearnedSoFar, StopDecision

WORDS = ("river", "stone", "paper", "window", "garden", "copper", "market", "bridge", "winter", "pencil", "harbor", "kettle")


def items(iteration: int, count: int = 20) -> tuple[list[Item], list[ExpensiveModeResult]]:
    """Texts at random, and a judge that holds some words against them; half of the texts are new in each iteration."""
    made: list[Item] = []
    for number in range(count):
        draw = random.Random(f"{number} {iteration if number % 2 else 0}")
        poor = " roughly speaking" if draw.random() < 0.4 else ""
        made.append(Item(f"i{number}", f"{' '.join(draw.choices(WORDS, k=8))}{poor} {draw.choice(WORDS)}."))
    return made, [
        ExpensiveModeResult(
            story_id=one.id, gestalt=2.0 if "roughly" in one.text else 4.8, reasoning="", strengths=[], weaknesses=[]
        )
        for one in made
    ]


def learning(root: Path, wanted: Literal["evidence", "seed"] = "seed", patterns: Path | None = None) -> LoopLearning:
    return LoopLearning(wanted, root=root, folder="evaluation", patterns=patterns, rubric=None, where="[evaluator]")


def learn(root: Path, iteration: int, count: int = 20, scores: tuple[float | None, ...] = ()) -> LearnedSoFar:
    """Learn in an iteration of the loop below ``root``; all before it have a score, unless ``scores`` say otherwise."""
    known = (*scores, *(50.0 for _ in range(iteration - len(scores))))
    views = tuple(IterationView(number=number, score=score) for number, score in enumerate(known))
    place = root / f"loops/loop/iterations/iteration-{iteration:03d}"
    (place / "work").mkdir(parents=True, exist_ok=True)
    where = context(place / "work", iteration=iteration, history=views)
    object.__setattr__(where, "log_directory", place / "logs")
    (place / "logs/evaluation").mkdir(parents=True, exist_ok=True)
    return learning(root).learn(where, *items(iteration, count))


def folder(root: Path, iteration: int) -> Path:
    return root / f"loops/loop/iterations/iteration-{iteration:03d}/logs/evaluation/learned"


def test_what_a_line_learned_from_never_tests_it(tmp_path: Path) -> None:
    proposed = 0
    for iteration in range(3):
        learn(tmp_path, iteration)
        known = read_checkpoint(folder(tmp_path, iteration))
        homes: dict[str, int] = json.loads((folder(tmp_path, iteration) / "learned.json").read_text())["homes"]
        assert len(known.lines) == FOLDS == len(set(homes.values()))
        learned_from = [{name.partition("@")[0] for name in line.predictions} for line in known.lines]
        tested = [{name.partition("@")[0] for name in known.tested} - ids for ids in learned_from]
        for line, ids, others in zip(known.lines, learned_from, tested, strict=True):
            assert others
            assert not ids & others
            for one in line.candidates:
                proposed += 1
                text = one.phrases[0] if one.phrases else ""
                assert any(text in item.text for n in range(iteration + 1) for item in items(n)[0] if item.id in ids)
    assert proposed > 0


def test_a_step_that_is_made_again_gives_the_same(tmp_path: Path) -> None:
    for iteration in range(2):
        learn(tmp_path, iteration)
    before = {path.name: path.read_bytes() for path in folder(tmp_path, 1).iterdir()}
    found = learn(tmp_path, 1)
    assert before == {path.name: path.read_bytes() for path in folder(tmp_path, 1).iterdir()}
    (folder(tmp_path, 1) / "learned.json").unlink()  # killed before the last file
    assert found == learn(tmp_path, 1)
    assert before == {path.name: path.read_bytes() for path in folder(tmp_path, 1).iterdir()}


def test_an_iteration_without_a_score_teaches_nothing(tmp_path: Path) -> None:
    learn(tmp_path, 0)
    learn(tmp_path, 1)
    with_it = learn(tmp_path, 2)
    without = learn(tmp_path, 2, scores=(50.0, None))
    assert 40 == with_it.items
    assert 30 == without.items
    shutil.rmtree(tmp_path / "loops/loop/iterations/iteration-001")
    assert without == learn(tmp_path, 2, scores=(50.0, None))


def test_it_waits_until_there_are_ten_groups_and_says_so(tmp_path: Path) -> None:
    found = learn(tmp_path, 0, count=6)
    assert found.waiting.startswith("6 texts in 6 groups so far")
    assert (None, 6) == (found.set, found.items)
    assert not folder(tmp_path, 0).exists()
    later = learn(tmp_path, 1, count=12)
    assert ("", 15, 12) == (later.waiting, later.items, later.groups)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    learn(tmp_path, 0, count=6)
    (folder(tmp_path, 0).parent / "verdicts.jsonl").write_text("{]\n")
    with pytest.raises(StoreDamagedError, match=r"verdicts\.jsonl is damaged"):
        learn(tmp_path, 1)


@pytest.mark.parametrize("ours", [True, False])
def test_verdicts_that_somebody_else_wrote_teach_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture, *, ours: bool) -> None:
    store = LoopStore.create(tmp_path / "loops/loop", "loop", {}, workdir=None, created_at="2026-01-01T00:00:00Z")
    if not ours:
        unmarked(store.paths.directory)
    learn(tmp_path, 0, 20)
    own = folder(tmp_path, 0).parent / "verdicts.jsonl"
    own.write_text(own.read_text().replace('"gestalt": 2.0', '"gestalt": 5.0'))
    found = learn(tmp_path, 1, 20)
    assert (found.items <= 20) is ours, "the verdicts of iteration 0 too, where nobody can tell who wrote them"
    assert ("jumar.learned_forged" in caplog.text) is ours


def test_a_record_holds_what_was_learned() -> None:
    learned = LearnedSoFar(profile="seed", items=3, patterns=2, abs_gap=0.25, checks={"tracking": True}, converged=True)
    judged = Judgement(mode="dual", items=3, scored=3, gestalt=4.0, learned=learned)
    assert judged == Judgement.from_json(Fields(judged.to_json(), "x"))
    old: dict[str, Any] = judged.to_json()
    del old["learned"]  # of an earlier jumar
    assert Judgement.from_json(Fields(old, "x")).learned is None


def test_learn_belongs_to_dual_mode_and_converged_to_learning() -> None:
    given = {"items": "x", "judge": "mock:"}
    assert JudgeOptions.model_validate(given).learns
    assert not JudgeOptions.model_validate({**given, "learn": False}).learns
    with pytest.raises(ValueError, match="learn needs mode 'dual'"):
        EvaluatorConfig.model_validate({**given, "mode": "expensive", "learn": True})
    whole = {"generator": {"command": "true"}, "stop": {"converged": True}, "evaluator": given}
    assert JumarConfig.model_validate(whole).stop.rules(3).converged
    with pytest.raises(ValueError, match="converged needs a cheap judge that learns"):
        JumarConfig.model_validate({**whole, "evaluator": {**given, "learn": False}})


def test_a_loop_that_was_to_stop_on_convergence_says_what_is_missing() -> None:
    ended = StopDecision(reason="max_iterations", detail="3 of 3")
    learned = {"missing": "the gap is 0.70. What would help: more", "waiting": ""}
    assert "Not converged: the gap is 0.70. What would help: more." == unconverged_sentence(learned, ended, asked=True)
    assert "Not converged: 3 texts." == unconverged_sentence({"missing": "", "waiting": "3 texts"}, ended, asked=True)
    assert "" == unconverged_sentence({"missing": "", "waiting": ""}, ended, asked=True)
    assert "" == unconverged_sentence(None, ended, asked=True)
    assert "" == unconverged_sentence(learned, None, asked=True)
    assert "" == unconverged_sentence(learned, ended, asked=False)
    assert "" == unconverged_sentence(learned, StopDecision(reason="converged", detail=""), asked=True)
