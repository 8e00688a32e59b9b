"""Both judges over the same items: what is covered, what is missed, what is unscored; and seed 4's first two phases."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jumar.errors import ConfigError, EvaluationUnreliableError
from jumar.judging import CheapModeEvaluator, JudgeSettings
from jumar.judging.component_health import COMPONENTS, check_gap_calculator, check_patterns
from jumar.judging.dual import evaluate_dual, judge_both
from jumar.judging.items.item import Item
from jumar.judging.judges.mock import MockJudge
from jumar.judging.judges.replay import ReplayJudge
from jumar.judging.patterns import PatternSet, migrate_existing_patterns

STORY: dict[str, Any] = {
    "title": "Add an export button",
    "description": "Users will save the table as a file, which saves time in every monthly report.",
    "acceptance_criteria": ["A button is there", "The file has all rows", "Errors are shown"],
    "technical_area": "web/table.ts",
}


def stories(count: int) -> list[dict[str, Any]]:
    return [{**STORY, "id": f"s{number}", "acceptance_criteria": ["works"] * (number % 5)} for number in range(count)]


def recorded(place: Path, scores: dict[str, Any], feedback: str = "") -> ReplayJudge:
    lines = [
        json.dumps({"id": one, "judge_scores": value, **({"judge_feedback": feedback} if feedback else {})})
        for one, value in scores.items()
    ]
    (place / "judged.jsonl").write_text("\n".join(lines), "utf-8")
    return ReplayJudge(place / "judged.jsonl")


def pattern(number: int, phrase: str, **more: Any) -> dict[str, Any]:
    known = {"type": "good", "description": phrase, "keywords": [], "source": "test", "discovered_at": "2026-01-01T00:00:00"}
    return {"id": f"p_{number}", "phrases": [phrase], **known, **more}


def test_only_what_both_scored_is_averaged_and_the_rest_is_counted(tmp_path: Path) -> None:
    judge = recorded(tmp_path, {"s0": 3, "s1": [4, 4, 5], "s3": 2})  # s2 is not on record
    found = evaluate_dual([*stories(4)], judge=judge, max_unscored=0.25)
    assert (4, 3, 1) == (found["story_count"], found["scored"], found["unscored"])
    assert {"missing": 1} == found["expensive"]["unscored_kinds"]
    pairs = {one["story_id"]: one["gestalt"] for one in found["expensive"]["individual_scores"]}
    cheap = {one["story_id"]: one["gestalt"] for one in found["cheap"]["individual_scores"]}
    assert {"s0": 3.0, "s1": 4.0, "s3": 2.0} == pairs
    gaps = [pairs[one] - cheap[one] for one in pairs]
    assert found["gap"] == pytest.approx(sum(gaps) / 3)
    assert found["abs_gap_mean"] == pytest.approx(sum(map(abs, gaps)) / 3)
    assert 3 == found["tracking"]["items"]
    assert set(COMPONENTS) == set(found["health"])


def test_nothing_in_common_is_no_gap_rather_than_zero(tmp_path: Path) -> None:
    found = evaluate_dual(stories(2), judge=recorded(tmp_path, {"other": 3}), max_unscored=1.0)
    assert (0, None, None, None) == (found["scored"], found["gap"], found["abs_gap_mean"], found["tracking"])
    assert ["nothing_in_common"] == found["health"]["gap_calculator"]["flags"]


def test_good_patterns_that_match_the_praise_and_not_the_item_were_missed(tmp_path: Path) -> None:
    patterns = PatternSet.model_validate(
        {
            "version": "2.0",
            "patterns": [
                pattern(1, "export button"),
                pattern(2, "failure cases"),
                pattern(3, "failure cases are", type="bad"),
                pattern(4, "failure cases", status="pruned"),
            ],
        }
    )
    praise = json.dumps({"score": 5, "strengths": ["Failure cases are named"], "weaknesses": [], "reasoning": "r"})

    class Praising(MockJudge):
        async def judge(self, request: Any) -> Any:
            reply = await super().judge(request)
            return type(reply)(text=praise.replace('"score"', '"gestalt"'), usage=reply.usage)

    found = evaluate_dual([{**STORY, "id": "s"}], patterns, judge=Praising())
    (one,) = found["cheap"]["individual_scores"]
    assert (["p_1"], ["p_2"]) == (one["patterns_matched"], one["patterns_missed"])
    assert 1.0 == found["cheap"]["pattern_match"]


def test_a_constant_judge_has_no_rank_and_is_flagged() -> None:
    found = evaluate_dual(stories(40), judge=MockJudge(score=4.0))
    assert None is found["tracking"]["spearman"]
    assert ["all_same_score"] == found["health"]["expensive_evaluator"]["flags"]
    assert found["tracking"]["verdict"] != "tracks"
    assert "NaN" not in json.dumps(found, allow_nan=False)


def test_an_unreliable_judge_ends_the_evaluation() -> None:
    with pytest.raises(EvaluationUnreliableError):
        evaluate_dual(stories(10), judge=MockJudge(fail=1.0), max_retries=0)


def test_settings_and_their_fields_exclude_each_other() -> None:
    with pytest.raises(TypeError, match="not both"):
        evaluate_dual(stories(1), judge=MockJudge(), settings=JudgeSettings(), concurrency=2)


def test_without_the_packages_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumar.core.lazy.find_spec", lambda name: None)
    judge = MockJudge()
    with pytest.raises(ConfigError, match=r"pip install 'jumar\[judge\]'"):
        evaluate_dual(stories(1), judge=judge)
    assert 0 == judge.calls  # nothing was paid for


def test_the_same_items_in_another_order_give_the_same_figures() -> None:
    one, other = (evaluate_dual(order, judge=MockJudge()) for order in (stories(30), stories(30)[::-1]))
    assert one["gap"] == pytest.approx(other["gap"])
    assert one["tracking"]["mae"] == pytest.approx(other["tracking"]["mae"])


def test_metrics_are_signed_and_know_the_change() -> None:
    items = [
        Item(f"i{n}", f"A sentence about topic number {n}. It has another one, because of that." * (1 + n % 4)) for n in range(40)
    ]
    found = asyncio.run(judge_both(items, MockJudge(score=1.0), CheapModeEvaluator()))
    metrics = found.metrics(3, datetime(2026, 1, 1, tzinfo=UTC), previous_gap=-1.0)
    assert metrics is not None
    assert metrics.gap < 0
    assert metrics.gap == pytest.approx(metrics.expensive_avg - metrics.cheap_avg)
    assert metrics.gap_delta == pytest.approx(metrics.gap + 1.0)
    assert metrics.abs_gap == pytest.approx(-metrics.gap)
    assert (0, 40, False) == (metrics.pattern_count, len(metrics.story_ids), metrics.tracks)


def test_metrics_know_the_rank_correlation() -> None:
    items = [Item(f"i{n}", "A sentence about a topic. " * (1 + n % 7)) for n in range(30)]
    found = asyncio.run(judge_both(items, MockJudge(), CheapModeEvaluator()))
    metrics = found.metrics(1, datetime(2026, 1, 1, tzinfo=UTC))
    assert metrics is not None
    assert metrics.spearman is not None
    assert found.to_json()["tracking"]["spearman"] == metrics.spearman


def test_patterns_that_cannot_fire_are_an_illness_and_a_fresh_migration_is_none() -> None:
    legacy = {
        "version": "1.0",
        "patterns": [
            {
                "type": "good_pattern",
                "description": "Keep the export button in one story",
                "example": "e",
                "discovered_at": "2026-01-13T21:33:54",
            }
        ],
    }
    fresh = PatternSet.model_validate(migrate_existing_patterns(legacy))
    assert (True, ["all_provisional"]) == ((found := check_patterns(fresh)).healthy, found.flags)
    mute = PatternSet.model_validate({"version": "2.0", "patterns": [pattern(1, "x", phrases=[])]})
    assert (False, ["cannot_fire"]) == ((found := check_patterns(mute)).healthy, found.flags)
    step = pattern(1, "x", phrases=[], keywords=[]) | {"feature": "words", "at_least": 20.0}
    steps = PatternSet.model_validate({"version": "2.0", "patterns": [step]})
    assert (True, []) == ((found := check_patterns(steps)).healthy, found.flags)
    assert (False, ["no_patterns"]) == ((found := check_patterns(PatternSet(version="2.0", patterns=[]))).healthy, found.flags)
    assert (True, []) == ((found := check_patterns(None)).healthy, found.flags)
    assert (True, []) == ((found := check_gap_calculator([], asked=0)).healthy, found.flags)


def test_seed_4_phase_1_foundation_and_observability(tmp_path: Path) -> None:
    """Models, migration that is validated, the cheap evaluator with its health, from the first iteration on."""
    legacy = {
        "version": "1.0",
        "patterns": [
            {
                "type": "good_pattern",
                "description": "Keep the export button in one story",
                "example": "e",
                "discovered_at": "2026-01-13T21:33:54",
            }
        ],
        "service_insights": {},
        "scoping_rules": {},
    }
    patterns = PatternSet.model_validate(migrate_existing_patterns(legacy))
    assert ["provisional"] == [one.status for one in patterns.patterns]
    found = evaluate_dual(stories(5), patterns, judge=recorded(tmp_path, {f"s{n}": 3 for n in range(5)}))
    assert {"score_range", "variance"} <= set(found["health"]["cheap_evaluator"]["details"])
    assert None not in found["health"]["cheap_evaluator"]["flags"]


def test_seed_4_phase_2_dual_mode(recorded_data: Path) -> None:
    """Recorded judgements: the gap, both verdicts, and what a mean hides."""
    file = recorded_data / "judged" / "vicuna.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    found = evaluate_dual(rows, judge=ReplayJudge(file))
    assert (320, 0) == (found["scored"], found["unscored"])
    assert found["gap"] == pytest.approx(found["expensive"]["gestalt_avg"] - found["cheap"]["gestalt_avg"])
    assert found["abs_gap_mean"] > abs(found["gap"])
    assert found["tracking"]["verdict"] in {"does_not_track", "not_proven"}
    assert found["tracking"]["judge_noise"]["mean_abs_difference"] == pytest.approx(0.258, abs=0.001)
    assert {"constant", "length_only"} == set(found["tracking"]["baselines"])
