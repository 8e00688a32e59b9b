"""Learning runs come to their own end under each profile, and one that does not says what is missing."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from commands import call
from learn_items import WORDS, judged_items, write_items

from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.items.records import read_items
from jumar.judging.models import Unscored
from jumar.judging.patterns.models import PatternSet


def learn(items: Path, output: Path, *more: str) -> dict[str, Any]:
    return json.loads(call("learn", str(items), "--judge", f"replay:{items}", "-o", str(output), "--json", *more, check=0).out)


def rubric_items(path: Path) -> Path:
    """Write good items whose judge sees what the built-in rubric sees, a tenth of a point higher at most."""
    draw = random.Random(4)
    facts = (
        "It carries {} boats a day, because it is deep.",
        "For example, the mill was built in {}.",
        "The {} villages use it, so it matters.",
        "Therefore {} people live there.",
        "It costs {} dollars, which is less than before.",
    )
    records: list[dict[str, Any]] = []
    for number in range(120):
        said = [one.format(draw.randint(11, 999)) for one in draw.sample(facts, draw.randint(3, 5))]
        doubt = ["Maybe it is perhaps so, I think."] * draw.randint(0, 1)
        text = " ".join([f"The {draw.choice(WORDS)} is by the river.", *said, *doubt])
        records.append(
            {"id": f"i{number}", "group": f"g{number // 2}", "prompt": "Tell something about the river.", "text": text}
        )
    evaluator = CheapModeEvaluator(PatternSet(version="2.0", patterns=[]), rubric=None)
    for record, item in zip(records, read_items(write_items(path, records), {}, kind=None), strict=True):
        reading = evaluator.read(item)
        assert not isinstance(reading, Unscored)
        record["judge_scores"] = [round(min(5.0, reading.gestalt + more), 3) for more in (0.0, 0.1)]
    return write_items(path, records)


def test_the_default_profile_converges_on_items_that_are_not_good(tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", judged_items(50, 3, seed=8))
    found = learn(items, tmp_path / "out")
    assert (True, [], False) == (found["converged"], found["missing"], found["quality_met"])
    assert "two iterations in a row met every target" in found["stop_detail"] or "nothing more to propose" in found["stop_detail"]
    assert "converged yes" in call("learn", "status", str(tmp_path / "out"), check=0).out


def test_the_seed_profile_converges_where_the_rubric_is_the_judges(tmp_path: Path) -> None:
    found = learn(rubric_items(tmp_path / "items.jsonl"), tmp_path / "out", "--profile", "seed")
    assert (True, []) == (found["converged"], found["missing"]), found["missing"]


def test_a_run_that_does_not_converge_says_what_is_missing_by_how_much_and_what_helps(tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", judged_items(20, 2, seed=8, effect=0.0, noise=0.8))
    found = learn(items, tmp_path / "out", "--max-iterations", "1")
    assert not found["converged"]
    assert ["iterations", "verdict"] == [one["check"] for one in found["missing"]]
    status = " ".join(call("learn", "status", str(tmp_path / "out"), check=0).out.split())
    assert (
        "converged no: 1 iteration of the 2 that are asked for; 16 held-out items in 8 groups, and 30 in 20 are the least"
        in status
    )
    assert "What would help: 1 iteration more (`--max-iterations`); more groups of judged items" in status


@pytest.mark.parametrize("profile", ["evidence", "seed"])
def test_a_run_ends_when_nothing_is_left_to_propose(tmp_path: Path, profile: str) -> None:
    items = write_items(tmp_path / "items.jsonl", judged_items(20, 2, seed=3, effect=0.4, noise=0.6))
    found = learn(items, tmp_path / "out", "--profile", profile, "--max-iterations", "30")
    assert found["iterations"] < 30
    assert "completed" == found["stop_reason"]


@pytest.mark.parametrize("robust", [(), ("--robust",)])
def test_of_scores_that_follow_nothing_the_set_is_the_constant_and_empty(tmp_path: Path, robust: tuple[str, ...]) -> None:
    draw = random.Random(6)
    records = judged_items(40, 2, seed=6)
    for record in records:
        record["judge_scores"] = [draw.choice([2.0, 3.0, 4.0])] * 2
    items, output = write_items(tmp_path / "items.jsonl", records), tmp_path / "out"
    found = learn(items, output, "--max-iterations", "2", *robust)
    assert ([], "not_proven", False) == (found["members"], found["verdict"], found["converged"])
    patterns = json.loads((output / "patterns.json").read_text())
    assert [] == patterns["patterns"]
    told = " ".join(call("learn", "status", str(output), check=0).out.split())
    assert "set empty: nothing was learned; it gives every item 3.00, the median of the judge's scores" in told
    rows = tmp_path / "rows.jsonl"
    call("evaluate", str(items), "--mode", "cheap", "--patterns", str(output / "patterns.json"), "--per-item", str(rows), check=0)
    assert {3.0} == {json.loads(row)["cheap"] for row in rows.read_text().splitlines()}
