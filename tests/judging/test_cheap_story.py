"""The story rubric: the first design's numbers, and where word boundaries make a difference on purpose."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from cheap_seed import SEED_PHRASES, components_as_first_designed, score_as_first_designed

from jumar.errors import ItemError, PatternLoadError
from jumar.judging import CheapModeEvaluator, CheapModeResult, Story, Unscored, builtin_rubric, evaluate_cheap
from jumar.judging.patterns import PatternSet, TechValidation, ValuePhrase

PATHS = {"aero": ["packages/", "infra/", "apps/"], "tack": ["service/", "client/"], "zuck": ["service/"]}
KNOWN = PatternSet(version="2.0", patterns=[], tech_validation=TechValidation(valid_repo_paths=PATHS))

TITLES = [
    "",
    "Add a filter",
    "fix: the login",
    "Updated export",
    "Improves speed",
    "The list",
    "Add " + "x" * 76,
    "Add " + "x" * 77,
]
DESCRIPTIONS = [
    "",
    "short",
    "x" * 49,
    "x" * 50,
    "y" * 2000,
    "y" * 2001,
    *(f"With it the {phrase} do much more than before." for phrase in SEED_PHRASES),
]
AREAS = [
    None,
    "",
    "aero/packages/editor",
    "aero",
    "tack: service/pins",
    "the tack and aero apps/",
    "src/app/main.py",
    "ui/list.tsx",
    "backend",
    "a.py",
]


def story(**fields: Any) -> dict[str, Any]:
    return {
        "id": "s",
        "title": "Add a filter",
        "description": "The user can find it." + "x" * 50,
        "acceptance_criteria": ["a"] * 3,
        **fields,
    }


def score(given: dict[str, Any], patterns: PatternSet | None = None) -> CheapModeResult:
    found = CheapModeEvaluator(patterns).evaluate_story(given)
    assert isinstance(found, CheapModeResult)
    return found


def points(result: CheapModeResult) -> dict[str, float]:
    return {one.name: one.points for one in result.contributions}


@pytest.mark.parametrize("title", TITLES)
def test_scores_are_those_of_the_first_design(title: str):
    evaluator = CheapModeEvaluator(KNOWN)
    compared = 0
    for description, count, area in product(DESCRIPTIONS, range(13), AREAS):
        given = {
            "id": "s",
            "title": title,
            "description": description,
            "acceptance_criteria": ["c"] * count,
            "technical_area": area,
        }
        found = evaluator.evaluate_story(given)
        if isinstance(found, Unscored):
            assert (title, description, count, area or "") == ("", "", 0, "")
            continue
        expected = score_as_first_designed(given, PATHS)
        assert expected == {"raw_score": found.raw_score, "gestalt": found.gestalt, "reasons": found.reasons}, given
        compared += 1
    assert compared >= len(DESCRIPTIONS) * 13 * len(AREAS) - 2


@pytest.mark.parametrize(
    ("field", "value", "component", "then", "now"),
    [
        ("title", "Address the slow search", "title_quality", 1.0, 0.0),
        ("title", "Fixture for the tests", "title_quality", 1.0, 0.0),
        ("description", "The user cannot find a thing in this long list of things.", "user_focus", 1.0, 0.0),
        ("description", "The setting disallows exports of more than one hundred rows.", "user_focus", 1.0, 0.0),
        ("technical_area", "aerospace/packages/wing", "tech_specificity", 1.0, 0.2),
        ("technical_area", "tack microservice/pins", "tech_specificity", 1.0, 0.5),
        ("technical_area", "config/settings.json", "tech_specificity", 0.7, 0.2),
        ("acceptance_criteria", ["", " ", "\t"], "ac_count", 1.0, 0.0),
    ],
)
def test_differences_from_the_first_design_are_word_boundaries_and_blank_criteria(
    field: str, value: Any, component: str, then: float, now: float
):
    given = story(**{field: value})
    position = list(builtin_rubric("story").weights.model_dump()).index(component)
    assert then == list(components_as_first_designed(given, PATHS).values())[position]
    assert now == points(score(given, KNOWN))[component]


def test_inflected_action_words_count():
    for title in (
        "Adds a filter",
        "Adding a filter",
        "Fixes it",
        "Fixed",
        "Update: x",
        "Updated",
        "Implementing",
        "ADD IT",
        "fix-up",
    ):
        assert 1.0 == points(score(story(title=title)))["title_quality"], title
    for title in ("Additional filter", "Prefix", "Implementation", " Add", "add_filter"):
        assert 0.0 == points(score(story(title=title)))["title_quality"], title


def test_weights_of_the_patterns_beat_those_of_the_rubric():
    known = PatternSet(
        version="2.0", patterns=[], scoring_weights={"title_quality": 0.0, "tech_specificity": 2.0, "elsewhere": 1.0}
    )
    evaluator = CheapModeEvaluator(known)
    found = evaluator.evaluate_story(story(technical_area="x"))
    assert isinstance(found, CheapModeResult)
    assert pytest.approx((3.0 + 0.4) / 5.0 * 5.0) == found.raw_score
    assert ("elsewhere",) == evaluator.unused_weights
    assert 0.0 == points(found)["title_quality"]


def test_learned_value_phrases_give_at_most_their_weight():
    known = PatternSet(
        version="2.0",
        patterns=[],
        value_phrases=[
            ValuePhrase(phrase="Frustrated when", weight=0.8),
            ValuePhrase(phrase="glad", weight=2.0),
            ValuePhrase(phrase="a bit", weight=0.3),
        ],
    )
    for text, expected in (
        ("frustrated when it rains", 0.8),
        ("a bit glad", 1.0),
        ("a bit", 0.3),
        ("gladly", 0.0),
        ("A bit, user can", 1.0),
    ):
        assert expected == points(score(story(description=text), known))["user_focus"], text
    assert "clear_user_value" not in score(story(description="a bit"), known).reasons


def test_extensions_of_the_patterns_are_added():
    known = PatternSet(version="2.0", patterns=[], tech_validation=TechValidation(valid_extensions=[".php", ".ts"]))
    assert 0.7 == points(score(story(technical_area="app/index.php"), known))["tech_specificity"]
    assert 0.2 == points(score(story(technical_area="app/index.php")))["tech_specificity"]


def test_nothing_at_all_is_not_scored():
    found = CheapModeEvaluator().evaluate_story({"id": "x", "title": " ", "description": "", "acceptance_criteria": [""]})
    assert isinstance(found, Unscored)
    assert ("x", "abstained") == (found.story_id, found.kind)


def test_empty_criteria_are_legal():
    found = score(story(acceptance_criteria=[]))
    assert 0.0 == points(found)["ac_count"]
    assert "good_ac" not in found.reasons


def test_a_story_of_the_wrong_types_says_which():
    with pytest.raises(ItemError, match=r"acceptance_criteria.1: input should be a valid string"):
        CheapModeEvaluator().evaluate_story(story(acceptance_criteria=["a", 3]))


def test_a_patterns_file_that_is_named_has_to_be_there():
    with pytest.raises(PatternLoadError, match="nowhere"):
        CheapModeEvaluator("nowhere.json")


def test_results_are_read_as_dictionaries_too():
    found = score(story())
    assert found.gestalt == found["gestalt"]
    with pytest.raises(KeyError):
        found["model_dump"]


def test_parts_of_a_story():
    found = score(
        story(
            acceptance_criteria=["Given a list, then 3 are shown", "nice", "the export fails within a second"],
            technical_area="a/b.py",
        )
    )
    parts = found.sub_scores
    assert pytest.approx(2 / 3) == parts["invest_testable"]
    assert (1.0, 0.7, 1.0, 1.0) == (
        parts["story_quality"],
        parts["tech_accuracy"],
        parts["invest_independent"],
        parts["invest_negotiable"],
    )
    letters = [value for name, value in parts.items() if name.startswith("invest_")]
    assert pytest.approx(sum(letters) / 6) == parts["invest"]
    assert 6 == len(letters)
    bound = score(
        story(description="It depends on story 3 and must use the old table; the user can wait." + "x" * 2000)
    ).sub_scores
    assert (0.0, 0.0, 0.0) == (bound["invest_independent"], bound["invest_negotiable"], bound["invest_small"])


# ------------------------------------------------------------------------------------------------------ evaluate_cheap


def test_first_phase_evaluate_cheap_keeps_the_keys_of_the_first_design():
    found = evaluate_cheap([story(), Story(id="b", title="The", description="", acceptance_criteria=[]), {}])
    assert {"mode", "gestalt_avg", "story_count", "individual_scores", "unscored"} == set(found)
    assert ("cheap", 3, ["s", "b"]) == (
        found["mode"],
        found["story_count"],
        [one["story_id"] for one in found["individual_scores"]],
    )
    assert {"gestalt", "reasons", "raw_score"} < set(found["individual_scores"][0])
    assert (4.2 + 1.0) / 2 == pytest.approx(found["gestalt_avg"])
    assert ["story-3"] == [one["story_id"] for one in found["unscored"]]
    assert evaluate_cheap([])["gestalt_avg"] is None


def test_the_text_rubric_judges_stories_when_it_is_asked_to():
    found = CheapModeEvaluator(rubric="text").evaluate_story(story())
    assert isinstance(found, CheapModeResult)
    assert "length" in points(found)
    assert "text" == builtin_rubric("text").name
