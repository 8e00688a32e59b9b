"""Patterns as evidence: what fires moves the score by a bounded amount, and everything that gave points is listed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from jumar.judging import (
    CheapModeEvaluator,
    CheapModeResult,
    Item,
    Story,
    StoryRubric,
    builtin_rubric,
    check_cheap_evaluator,
    evaluate_cheap,
)
from jumar.judging.cheap.evidence import DETECTORS
from jumar.judging.patterns import PatternSet, PatternV2


def pattern(name: str, phrase: str = "", **fields: Any) -> PatternV2:
    known: dict[str, Any] = {
        "description": name,
        "keywords": [],
        "phrases": [phrase] if phrase else [],
        "type": "good",
        "source": "test",
    }
    return PatternV2.model_validate({"id": name, "discovered_at": datetime(2026, 1, 1, tzinfo=UTC), **known, **fields})


def patterns(*given: PatternV2) -> PatternSet:
    return PatternSet(version="2.0", patterns=list(given))


def story(**fields: Any) -> Story:
    empty: dict[str, Any] = {
        "id": "s",
        "title": "Export",
        "description": "The list as a file for the boat",
        "acceptance_criteria": ["one", "two"],
    }
    return Story.model_validate(empty | fields)


def judged(given: PatternSet | None, one: Story | None = None, rubric: StoryRubric | None = None) -> CheapModeResult:
    found = CheapModeEvaluator(given, rubric=rubric or "story").evaluate_story(one or story())
    assert isinstance(found, CheapModeResult)
    return found


BASE = judged(None).raw_score


def test_active_patterns_move_the_raw_score_by_their_weight():
    found = judged(patterns(pattern("g", "boat", weight=2.0), pattern("b", "list", type="bad"), pattern("n", "nowhere")))
    assert ["g", "b"] == found.patterns_matched
    assert pytest.approx(BASE + 0.5 - 0.25) == found.raw_score
    assert {"g": 0.5, "b": -0.25} == {one.name: one.points for one in found.contributions if one.name in "gb"}
    assert [] == found.patterns_missed


def test_provisional_patterns_are_reported_and_move_nothing():
    found = judged(
        patterns(
            pattern("p", "boat", status="provisional"),
            pattern("r", "boat", status="rejected"),
            pattern("x", "boat", status="pruned"),
        )
    )
    assert ["p"] == found.patterns_matched
    assert BASE == found.raw_score
    assert "p" not in {one.name for one in found.contributions}


@pytest.mark.parametrize(("kind", "moved"), [("good", 1.0), ("bad", -BASE)])
def test_all_patterns_together_move_at_most_one_point_and_never_out_of_range(kind: str, moved: float):
    found = judged(patterns(*(pattern(f"p{number}", "boat", type=kind, weight=2.0) for number in range(20))))
    assert pytest.approx(BASE + moved) == found.raw_score
    assert pytest.approx(found.raw_score) == sum(one.points for one in found.contributions)
    assert pytest.approx(1.0) == sum(one.share for one in found.contributions)
    assert 1 == len({one.points for one in found.contributions if one.name.startswith("p")})


def test_the_rubric_says_how_much_patterns_may_move():
    own = StoryRubric.model_validate({**builtin_rubric("story").model_dump(), "patterns": {"points": 1.0, "most": 0.5}})
    assert pytest.approx(BASE + 0.5) == judged(patterns(pattern("g", "boat")), rubric=own).raw_score


def test_components_without_points_are_listed_too():
    found = judged(None, story(description="", acceptance_criteria=[]))
    assert [(name, 0.0, 0.0) for name in StoryRubric.COMPONENTS] == [
        (one.name, one.points, one.share) for one in found.contributions
    ]


def test_patterns_fire_on_title_description_and_criteria_between_word_boundaries():
    given = patterns(
        pattern("t", "export"), pattern("d", "boat"), pattern("c", "two"), pattern("no", "oat"), pattern("across", "one two")
    )
    assert ["t", "d", "c"] == judged(given).patterns_matched


# ------------------------------------------------------------------------------------------------- named indicators

LONG = "Whoever exports the list needs a file that other programs can read without any further work."
NAMED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "has_clear_user_problem": ({"description": "A user wants a file"}, {"description": "There is a file"}),
    "has_acceptance_criteria": ({}, {"acceptance_criteria": ["one", " "]}),
    "has_technical_area": ({"technical_area": "app/list.py"}, {"technical_area": "backend"}),
    "reasonable_scope": ({"description": LONG}, {"description": "short"}),
    "too_vague": (
        {"description": "Make some things better for everybody who uses this at home"},
        {"description": LONG + " It has 3 columns."},
    ),
    "kitchen_sink": ({"title": "Export, import and search"}, {"title": "Export"}),
    "missing_user_value": ({"description": "A file"}, {"description": "A file, so that it is read elsewhere"}),
}


@pytest.mark.parametrize("name", DETECTORS)
@pytest.mark.parametrize("key", ["id", "description"])
def test_a_named_indicator_fires_by_its_rule(name: str, key: str):
    given = patterns(pattern("first", "boat"), pattern("x", **{key: name, "keywords": ["never"]}), pattern("last", "list"))
    fires, silent = NAMED[name]
    shown = name if key == "id" else "x"
    assert shown in judged(given, story(**fires)).patterns_matched
    assert shown not in judged(given, story(**silent)).patterns_matched


def test_named_indicators_keep_the_order_of_the_set():
    given = patterns(pattern("first", "boat"), pattern("has_acceptance_criteria"), pattern("last", "list"))
    assert ["first", "has_acceptance_criteria", "last"] == judged(given).patterns_matched


def test_named_indicators_serve_other_texts():
    text = "The app saves time.\n- one\n- two\nSee src/list.py, which users need to read every single day."
    found = CheapModeEvaluator(patterns(*(pattern(name) for name in DETECTORS))).evaluate_item(Item("i", text))
    assert isinstance(found, CheapModeResult)
    assert {"has_clear_user_problem", "has_acceptance_criteria", "has_technical_area", "reasonable_scope"} == set(
        found.patterns_matched
    )


# ------------------------------------------------------------------------------------------------------------ health


def result(gestalt: float, reasons: list[str], matched: list[str]) -> CheapModeResult:
    return CheapModeResult.model_construct(
        story_id="s", gestalt=gestalt, raw_score=0.0, reasons=reasons, patterns_matched=matched
    )


@pytest.mark.parametrize(
    ("results", "patterns_known", "flags"),
    [
        ([], 0, ["no_scores"]),
        ([result(2.0, ["a"], [])], 0, []),
        ([result(2.0, ["a"], []), result(2.0, ["a"], [])], 0, ["all_same_score"]),
        ([result(2.0, ["a"], []), result(5.5, [], [])], 0, ["scores_out_of_range"]),
        ([result(2.0, [], ["p"]), result(3.0, [], [])], 3, []),
        ([result(2.0, [], []), result(3.0, [], [])], 0, ["zero_patterns_matched"]),
        ([result(2.0, ["a"], []), result(3.0, [], [])], 3, ["zero_patterns_matched"]),
        ([result(2.0, ["a"], []), result(3.0, [], ["p"])], 3, []),
    ],
)
def test_health(results: list[CheapModeResult], patterns_known: int, flags: list[str]):
    found = check_cheap_evaluator(results, patterns=patterns_known)
    assert (flags, not flags) == (found.flags, found.healthy)


def test_health_tells_range_and_variance():
    found = check_cheap_evaluator([result(2.0, ["a"], []), result(3.0, ["a"], [])])
    assert {"score_range": [2.0, 3.0], "variance": 0.5} == found.details


@pytest.mark.parametrize(
    ("title", "flags"), [("Add the export", ["all_same_score"]), ("the export", ["all_same_score", "zero_patterns_matched"])]
)
def test_health_reads_what_evaluate_cheap_returns(title: str, flags: list[str]):
    story = {"title": title, "description": "", "acceptance_criteria": []}
    scores = evaluate_cheap([{"id": "a", **story}, {"id": "b", **story}])["individual_scores"]
    found = check_cheap_evaluator(scores)
    assert flags == found.flags
    assert [scores[0]["gestalt"]] * 2 == found.details["score_range"]


def test_health_judges_the_range_of_mappings():
    found = check_cheap_evaluator(
        [{"gestalt": 3, "reasons": ["a"]}, {"gestalt": 6, "reasons": []}, {"story_id": "empty", "kind": "abstained"}]
    )
    assert ["scores_out_of_range"] == found.flags
