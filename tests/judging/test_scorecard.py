"""A calibrated set of patterns: what its file may say, and how it scores."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from commands import call
from pydantic import ValidationError

from jumar.app.run.findings import missing_overall, weaknesses_of
from jumar.errors import ConfigError
from jumar.judging import CheapModeEvaluator, CheapModeResult, Item, Story, TextRubric, Unscored, builtin_rubric
from jumar.judging.patterns import PatternSet

CARD: dict[str, Any] = {
    "format": 1,
    "kind": "scorecard",
    "rubric": "text",
    "base": 3.0,
    "unit": 0.5,
    "curve": {"x": [2.0, 3.0, 4.0], "y": [1.5, 3.0, 3.5]},
}
PATTERNS: list[dict[str, Any]] = [
    {"id": "says", "type": "good", "description": 'says "red"', "keywords": ["red"], "weight": 2.0},
    {
        "id": "long",
        "type": "bad",
        "description": "3 words or more",
        "keywords": [],
        "feature": "words",
        "at_least": 3,
        "weight": 1.0,
    },
    {"id": "new", "type": "good", "description": "new", "keywords": ["red"], "status": "provisional"},
]


def document(**card: Any) -> dict[str, Any]:
    rest = {"source": "test", "discovered_at": datetime(2026, 1, 1, tzinfo=UTC).isoformat()}
    return {"version": "2.0", "patterns": [{**one, **rest} for one in PATTERNS], "calibration": {**CARD, **card}}


def result(text: str, **card: Any) -> CheapModeResult:
    found = CheapModeEvaluator(PatternSet.model_validate(document(**card)), rubric="text").evaluate_item(Item("i", text))
    assert isinstance(found, CheapModeResult)
    return found


@pytest.mark.parametrize(
    ("text", "total", "score"),
    [("blue", 3.0, 3.0), ("red", 4.0, 3.5), ("a red one", 3.5, 3.25), ("one two three", 2.5, 2.25)],
)
def test_points_are_added_up_and_read_off_the_curve(text: str, total: float, score: float):
    found = result(text)
    assert score == pytest.approx(found.gestalt)
    assert score == pytest.approx(1 + 4 * found.raw_score / 5)
    given = {one.name: one.points for one in found.contributions}
    assert total == pytest.approx(sum(given.values()) - given["calibration"])
    assert score == pytest.approx(sum(given.values()))


def test_the_reasons_are_sentences_with_their_points_and_provisional_patterns_give_none():
    found = result("a red one")
    assert ["says", "long", "new"] == found.patterns_matched
    assert ['+1.00 says "red"', "-0.50 3 words or more"] == found.reasons
    assert {"base", "says", "long", "calibration"} == {one.name for one in found.contributions}
    assert pytest.approx(1.0) == sum(one.share for one in found.contributions)


def test_more_from_good_phrases_than_a_text_of_its_length_should_have_is_none_at_all():
    guard = {"good_phrases": 0.7}  # "red" gives 1.0: too much for two words, not for three
    short, long = result("red roses", guard=guard), result("a red one", guard=guard)
    assert 3.0 == short.gestalt
    assert ["+0.00 good phrases do not count: 1.00 of them is over 0.99, the most for this length"] == short.reasons
    assert {"base": 3.0, "calibration": 0.0} == {one.name: one.points for one in short.contributions}
    assert ["says", "new"] == short.patterns_matched
    assert result("a red one") == long
    assert result("red roses") == result("red roses", guard={"good_phrases": 1.0}) == result("red roses", guard=None)


def test_what_is_withheld_takes_no_bad_pattern_with_it():
    found = result("a red one", guard={"good_phrases": 0.0})
    assert "-0.50 3 words or more" == found.reasons[0]
    assert 2.25 == found.gestalt
    assert result("blue", guard={"good_phrases": 0.0}).gestalt == result("blue").gestalt


def test_beyond_its_ends_the_curve_goes_on_flat():
    assert 1.5 == result("one two three", base=-10.0).gestalt
    assert 3.5 == result("red", base=10.0).gestalt
    assert 4.0 == result("red", curve={"x": [0.0], "y": [4.0]}).gestalt


@pytest.mark.parametrize(
    ("card", "says"),
    [
        ({"base": float("nan")}, "finite"),
        ({"unit": 0.0}, "greater than 0"),
        ({"unit": float("inf")}, "finite"),
        ({"curve": {"x": [], "y": []}}, "at least 1"),
        ({"curve": {"x": [1.0, 2.0], "y": [1.0]}}, "2 values of x and 1 of y"),
        ({"curve": {"x": [2.0, 2.0], "y": [1.0, 2.0]}}, "x must increase"),
        ({"curve": {"x": [1.0, 2.0], "y": [3.0, 2.0]}}, "y must not fall"),
        ({"curve": {"x": [1.0, 2.0], "y": [0.0, 2.0]}}, "greater than or equal to 1"),
        ({"format": 2}, "Input should be 1"),
        ({"guard": {"good_phrases": -0.1}}, "greater than or equal to 0"),
        ({"guard": {"good_phrases": float("inf")}}, "finite"),
        ({"guard": {}}, "Field required"),
        ({"rubric": "poem"}, "'story' or 'text'"),
    ],
)
def test_a_scorecard_with_a_wrong_value_is_refused(card: dict[str, Any], says: str):
    with pytest.raises(ValidationError, match=says):
        PatternSet.model_validate(document(**card))


def test_a_calibration_of_another_kind_is_kept_and_has_no_effect():
    plain = {**document(), "calibration": None}
    other = {**plain, "calibration": {"kind": "by hand", "note": 1}}
    known = PatternSet.model_validate(other)
    assert {"kind": "by hand", "note": 1} == known.calibration
    item = Item("i", "a red one")
    assert CheapModeEvaluator(known).evaluate_item(item) == CheapModeEvaluator(PatternSet.model_validate(plain)).evaluate_item(
        item
    )


def test_a_set_for_texts_is_not_used_on_stories():
    known = PatternSet.model_validate(document())
    with pytest.raises(ConfigError, match="calibrated for items of the kind 'text', and the rubric 'story'"):
        CheapModeEvaluator(known, rubric="story")
    story = Item.of(Story(id="s", title="t", description="d", acceptance_criteria=[]))
    found = CheapModeEvaluator(known).evaluate_item(story)
    assert isinstance(found, Unscored)
    assert "calibrated for items of the kind 'text'" in found.message
    anywhere = CheapModeEvaluator(PatternSet.model_validate(document(rubric=None)), rubric="story").evaluate_item(story)
    assert isinstance(anywhere, CheapModeResult)


def test_the_command_scores_with_it_and_takes_a_context(tmp_path: Path):
    known = document()
    known["patterns"][1] |= {"feature": "context_longest_copy", "at_least": 2}
    (tmp_path / "patterns.json").write_text(json.dumps(known))
    rows = [{"id": "a", "text": "a red one", "fact": "there is a red one"}, {"id": "b", "text": "a red one", "fact": "nothing"}]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = [str(tmp_path / "items.jsonl"), "--patterns", str(tmp_path / "patterns.json"), "--per-item", str(tmp_path / "out")]
    done = call("evaluate", *files, "--mode", "cheap", "--rubric", "text", "--field", "context=fact", "-q")
    assert 0 == done.code, done
    scores = [json.loads(line)["cheap"] for line in (tmp_path / "out").read_text().splitlines()]
    assert [3.25, 3.5] == scores


def test_patterns_check_names_a_feature_that_nobody_knows(tmp_path: Path):
    known = document()
    known["patterns"][1]["feature"] = "wrods"
    (tmp_path / "patterns.json").write_text(json.dumps(known))
    done = call("patterns", "check", str(tmp_path / "patterns.json"))
    assert 2 == done.code
    assert "pattern long: no feature 'wrods'" in done.err


def test_a_set_scores_where_no_component_of_the_rubric_applies():
    text = builtin_rubric("text")
    assert isinstance(text, TextRubric)
    weights = {**dict.fromkeys(TextRubric.COMPONENTS, 0.0), "overlap": 1.0}
    rubric = TextRubric.model_validate({**text.model_dump(), "weights": weights})
    item = Item("i", "a red one")
    assert isinstance(CheapModeEvaluator(rubric=rubric).evaluate_item(item), Unscored)
    found = CheapModeEvaluator(PatternSet.model_validate(document()), rubric=rubric).evaluate_item(item)
    assert isinstance(found, CheapModeResult)
    assert 3.25 == pytest.approx(found.gestalt)


def test_nothing_of_a_learned_set_is_told_of_an_item():
    known = PatternSet.model_validate(document(curve={"x": [1.0, 5.0], "y": [1.0, 2.0]}))
    rubric = builtin_rubric("text")
    found = CheapModeEvaluator(known, rubric=rubric).evaluate_item(Item("i", "a red one"))
    assert isinstance(found, CheapModeResult)
    assert any(one.points < 0 and one.name == "long" for one in found.contributions)
    assert weaknesses_of(found, rubric, known) == ()
    assert missing_overall([(found, rubric)], known) == ()
