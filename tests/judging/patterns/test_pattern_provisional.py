"""The first design's rule for provisional patterns, against its own loop written out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.errors import PatternLoadError
from jumar.judging import ExpensiveModeResult, Item, Story, Unscored
from jumar.judging.patterns import PatternMatcher, PatternProposal, ValidationRule, validate_provisional_patterns
from jumar.judging.patterns.proposed import as_pattern, pattern_id


def proposal(phrase: str = "saves time", kind: str = "good", **fields: Any) -> PatternProposal:
    return PatternProposal(pattern={"type": kind, "description": phrase, "keywords": [phrase]}, proposed_at=1, **fields)


def items(*given_: tuple[str, float]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return [{"text": text} for text, _ in given_], [{"gestalt": gestalt} for _, gestalt in given_]


WORDS = st.lists(st.sampled_from(["saves time", "quick hack", "other"]), max_size=3).map(" ".join)
MADE = st.lists(st.tuples(st.sampled_from(["saves time", "quick hack"]), st.sampled_from(["good", "bad"])), max_size=4)
SCORED = st.lists(st.tuples(WORDS, st.sampled_from([1.0, 3.9, 4.0, 5.0])), max_size=12)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["saves time", "quick hack"]), st.sampled_from(["good", "bad"])), max_size=4),
    SCORED,
    SCORED,
)
def test_counters_and_statuses_are_those_of_the_first_designs_loop(
    made: list[tuple[str, str]], first: list[tuple[str, float]], second: list[tuple[str, float]]
) -> None:
    found = expected = [proposal(*one) for one in made]
    for scored in (first, second):
        found = validate_provisional_patterns(found, *items(*scored))
        expected = [written_out(one, scored) for one in expected]
        assert expected == found


def written_out(one: PatternProposal, scored: list[tuple[str, float]]) -> PatternProposal:
    """One proposal through the loop of the first design, item by item."""
    if one.status != "provisional":
        return one
    found = one.model_copy()
    for text, gestalt in scored:
        fired = bool(PatternMatcher([as_pattern(one)]).fired(text))
        agreed = gestalt >= 4.0 if one.pattern["type"] == "good" else gestalt < 4.0
        found.stories_tested += 1
        found.correct_predictions += fired == agreed
    if found.should_commit():
        found.status = "validated"
    elif found.should_reject():
        found.status = "rejected"
    return found


@pytest.mark.parametrize(
    ("right", "wrong", "status"),
    [
        (7, 3, "validated"),
        (6, 4, "provisional"),
        (9, 0, "provisional"),
        (1, 4, "rejected"),
        (0, 4, "provisional"),
        (3, 7, "provisional"),
    ],
)
def test_at_the_thresholds(right: int, wrong: int, status: str) -> None:
    scored = [("saves time", 5.0)] * right + [("saves time", 1.0)] * wrong
    (found,) = validate_provisional_patterns([proposal()], *items(*scored))
    assert (status, right + wrong, right) == (found.status, found.stories_tested, found.correct_predictions)


def test_the_accuracy_that_is_asked_for_can_be_raised() -> None:
    scored = items(*[("saves time", 5.0)] * 7, *[("saves time", 1.0)] * 3)
    (found,) = validate_provisional_patterns([proposal()], *scored, rule=ValidationRule(commit_accuracy=0.8))
    assert "provisional" == found.status
    with pytest.raises(ValueError, match=r"reject_accuracy = 0\.9 and commit_accuracy = 0\.7"):
        ValidationRule(reject_accuracy=0.9)
    with pytest.raises(ValueError, match="commit_tested = 0 should be at least 1"):
        ValidationRule(commit_tested=0)


def test_stories_models_and_mappings_belong_together_by_id_or_by_place() -> None:
    story = Story(id="a", title="Export", description="saves time", acceptance_criteria=["works"])
    good = ExpensiveModeResult(story_id="a", gestalt=4.5, reasoning="", strengths=[], weaknesses=[])
    bad = {"story_id": "b", "gestalt": 1.0}
    for stories in ([Item("b", "quick hack"), story], [{"id": "b", "text": "quick hack"}, story.model_dump()]):
        (found,) = validate_provisional_patterns([proposal().model_dump()], stories, [good, bad])
        assert (2, 2) == (found.stories_tested, found.correct_predictions)


def test_what_has_no_score_tests_nothing_and_what_is_decided_stays() -> None:
    unscored = Unscored(story_id="a", kind="timed_out", message="")
    failed = [unscored, {"gestalt": 0.0}, {"gestalt": float("nan")}, {"gestalt": True}, {}]
    given_ = [proposal(), proposal(status="validated")]
    assert given_ == validate_provisional_patterns(given_, [{"text": "saves time"}] * 5, failed)


def test_what_is_given_is_not_changed() -> None:
    given_ = [proposal()]
    before = given_[0].model_copy(deep=True)
    validate_provisional_patterns(given_, *items(("saves time", 5.0)))
    assert [before] == given_


def test_the_first_designs_answer_is_a_pattern() -> None:
    made = as_pattern({"category": "bad_story_indicators", "pattern": "quick hack", "rationale": "r"})
    assert ("bad", ["quick hack"], "provisional") == (made.type, made.phrases, made.status)
    assert made.id == pattern_id(as_pattern({"phrases": ["Quick  HACK"], "type": "bad"}))
    with pytest.raises(PatternLoadError, match="neither phrases nor an expression"):
        as_pattern({"description": "vague"})
    with pytest.raises(PatternLoadError, match="'weight'"):
        as_pattern({"phrase": "x", "weight": 9})
