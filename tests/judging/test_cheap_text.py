"""The text rubric: what each component makes of a text, and that every text gets a score."""

from __future__ import annotations

import math

import pytest

from jumar.judging import CheapModeEvaluator, CheapModeResult, Item, Unscored, builtin_rubric
from jumar.judging.cheap.panels import (
    score_hedging,
    score_length,
    score_overlap,
    score_reasoning,
    score_repetition,
    score_sentences,
    score_specificity,
    score_structure,
)
from jumar.judging.cheap.phrases import take_apart
from jumar.judging.rubric import TextRubric

RUBRIC = TextRubric.model_validate(builtin_rubric("text").model_dump())


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, 0.0), (59, math.log(60) / math.log(61)), (60, 1.0), (500, 1.0), (750, 0.75), (1000, 0.5), (9000, 0.5)],
)
def test_length(count: int, expected: float):
    assert expected == pytest.approx(score_length(take_apart("word " * count), RUBRIC.length))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0.0),
        ("...", 0.0),
        ("One", 0.1),
        ("One.", 0.6),
        ("One. Two! Three? Four… Five.", 1.0),
        ("- one\n- two", 0.4),
        ("One.\n\nTwo.", 0.5 + 0.5 * 3 / 5),
        ("It is 3.5 percent.", 0.6),
    ],
)
def test_structure(text: str, expected: float):
    assert expected == pytest.approx(score_structure(take_apart(text), RUBRIC.structure))


@pytest.mark.parametrize(
    ("text", "specific", "words"),
    [
        ("it is so", 0, 3),
        ("it is 5pm in Berlin", 2, 5),
        ("so I say", 0, 3),
        ("the configuration", 1, 2),
        ("run `go` now or not at all", 1, 7),
        ("Berlin is big", 0, 3),
    ],
)
def test_specificity(text: str, specific: int, words: int):
    assert min(1.0, specific / words / 0.3) == pytest.approx(score_specificity(take_apart(text), RUBRIC.specificity))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0.0),
        ("one two", 1.0),
        ("a b c d e", 1.0),
        ("no no no no no no", 0.0),
        ("a b c a b c", (3 / 4 - 0.5) / 0.5),
        ("A b C a B c", 0.5),
    ],
)
def test_repetition(text: str, expected: float):
    assert expected == pytest.approx(score_repetition(take_apart(text), RUBRIC.repetition))


@pytest.mark.parametrize(
    ("text", "prompt", "expected"),
    [
        ("Paris lies there", "", None),
        ("Paris lies there", "a b c", None),
        ("a b", "Where does Paris lie?", 0.0),
        ("In Paris, of course", "Where does Paris lie?", 1.0),
        ("one river more streams about", "river bank boat house", (1 / 4) / 0.5),
    ],
)
def test_overlap(text: str, prompt: str, expected: float | None):
    assert expected == score_overlap(take_apart(text), prompt, RUBRIC.overlap)


def test_hedging_counts_phrases_between_word_boundaries():
    def hedging(text: str) -> float:
        return score_hedging(take_apart(text), RUBRIC.hedging)

    assert 0.0 == hedging("")
    assert 1.0 == hedging("The mighty river")
    assert 1.0 - 2 / 4 == pytest.approx(hedging("Maybe " + "so " * 98 + "perhaps"))
    assert 0.0 == hedging("I think maybe")


def test_sentences():
    def sentences(words: int) -> float:
        return score_sentences(take_apart("word " * words + "."), RUBRIC.sentences)

    assert [0.0, 0.5, 1.0, 1.0, 0.5, 0.0, 0.0] == [sentences(count) for count in (0, 3, 6, 30, 45, 60, 90)]


def test_reasoning():
    def reasoning(text: str) -> float:
        return score_reasoning(take_apart(text), RUBRIC.reasoning)

    assert [0.0, 1 / 3, 1 / 3, 1.0] == [reasoning(text) for text in ("", "Because", "if if if", "if, when, because, unless")]


def test_every_text_that_is_not_empty_gets_a_score():
    evaluator = CheapModeEvaluator()
    for text in (" ", "\n", "x", "!", "日本語", "\x00", "a" * 100_000, "😀"):
        found = evaluator.evaluate_item(Item("i", text))
        assert isinstance(found, CheapModeResult), repr(text)
        assert 1.0 <= found.gestalt <= 5.0
    empty = evaluator.evaluate_item(Item("i", ""))
    assert isinstance(empty, Unscored)
    assert "abstained" == empty.kind
    blank = evaluator.evaluate_item(Item("i", " "))
    assert isinstance(blank, CheapModeResult)
    assert (1.0, []) == (blank.gestalt, blank.reasons)


def test_overlap_takes_no_part_without_a_prompt():
    evaluator = CheapModeEvaluator()
    without, beside = (
        evaluator.evaluate_item(Item("i", "The boat went home.", prompt=prompt)) for prompt in ("", "Quite another question")
    )
    assert isinstance(without, CheapModeResult)
    assert isinstance(beside, CheapModeResult)
    assert "overlap" not in without.sub_scores
    assert 0.0 == beside.sub_scores["overlap"]
    assert pytest.approx(without.raw_score * 7 / 8) == beside.raw_score


def test_a_rubric_whose_only_component_does_not_apply_abstains():
    weights = dict.fromkeys(TextRubric.COMPONENTS, 0.0) | {"overlap": 1.0}
    own = TextRubric.model_validate({**RUBRIC.model_dump(), "weights": weights})
    found = CheapModeEvaluator(rubric=own).evaluate_item(Item("i", "text"))
    assert isinstance(found, Unscored)
    assert "no component" in found.message


def test_phrases_of_a_rubric_may_be_written_in_capitals():
    own = TextRubric.model_validate({**RUBRIC.model_dump(), "reasoning": {"enough": 1, "phrases": ["So That"]}})
    found = CheapModeEvaluator(rubric=own).evaluate_item(Item("i", "It is shut SO THAT it stays warm."))
    assert isinstance(found, CheapModeResult)
    assert 1.0 == found.sub_scores["reasoning"]


def test_a_text_is_no_story():
    found = CheapModeEvaluator(rubric="story").evaluate_item(Item("i", "text"))
    assert isinstance(found, Unscored)
    assert "no story" in found.message
