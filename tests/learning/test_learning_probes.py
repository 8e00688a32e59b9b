"""Whether a cheap score can be had for nothing."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime

import pytest
from learning_kit import planted_targets, set_of

from jumar.judging import CheapModeEvaluator, Item, Story, Unscored, builtin_rubric
from jumar.judging.patterns.matcher import PatternMatcher
from jumar.judging.patterns.models import PatternSet, PatternV2
from jumar.learning.proof.attacks import ATTACKS, CHUNK, stuffings
from jumar.learning.proof.probes import PROBES, Cheat, ProbeReport, cheat_of, good_phrases, probe, probed, text_that_fires
from jumar.learning.set_building import probe_set

TEXT = "The user can pay by card. It saves a minute! Nobody has to wait?"
ITEMS = [Item(f"i{number}", f"{TEXT} Number {number} is last.", group=f"g{number // 2}") for number in range(60)]

PHRASES = Cheat(phrases=("saves time",))
MADE = datetime(2026, 1, 1, tzinfo=UTC)


def results(report: ProbeReport) -> dict[str, bool]:
    return {one.name: one.passed for one in report.results}


def test_an_honest_score_passes_and_nothing_depends_on_the_order_of_the_items():
    report = probe(ITEMS, lambda item: 3.0, PHRASES)
    assert report.passed
    assert () == report.failed
    assert list(PROBES) == [one.name for one in report.results]
    changed = {one.name: (one.items, one.mean_change) for one in report.results}
    bare = {name for name in PROBES if name.startswith(("prompt", "context"))}
    assert dict.fromkeys(bare, (0, None)) | dict.fromkeys(set(PROBES) - bare, (60, 0.0)) == changed
    again = probe(ITEMS[::-1], lambda item: 3.0, PHRASES)
    assert report.to_json() == again.to_json() == json.loads(json.dumps(report.to_json()))


def test_what_differs_in_the_last_bits_only_is_named_in_the_order_of_the_ids():
    def score(item: Item) -> float:
        gain = 0.5 if "saves time" in item.text else 0.0
        return 3.0 + gain + (1e-13 * int(item.id[1:]) if gain else 0.0)

    [stuffed] = [one for one in probe(ITEMS, score, PHRASES).results if one.name == "stuffing"]
    assert tuple(sorted(item.id for item in ITEMS)[:3]) == stuffed.worst


@pytest.mark.parametrize(
    ("score", "failed"),
    [
        (lambda item: 3.0 + min(2.0, 0.5 * item.text.count("saves time")), ("stuffing",)),
        (lambda item: min(5.0, 1 + len(item.text) / 100), ("padding",)),
        (lambda item: 3.0 if item.text.startswith("The user") else 4.0, ("shuffled_sentences", "shuffled_words")),
        (lambda item: 4.0 if " not " in item.text else 3.0, ("negation",)),
    ],
)
def test_a_score_that_can_be_gamed_is_told_by_how(score, failed):
    found = probe(ITEMS, score, PHRASES)
    assert not found.passed
    assert set(failed) <= set(found.failed)
    for one in found.results:
        if one.name in failed:
            assert one.mean_change is not None
            assert one.mean_change > 0.1
            assert one.interval is not None
            assert 3 == len(one.worst)


def test_a_rise_within_the_tolerance_passes_and_one_whose_interval_leaves_it_does_not():
    def score(item: Item) -> float:  # a tenth of the groups gains a point when padded
        return 4.0 if len(item.text) > 100 and item.group in {"g1", "g2", "g3"} else 3.0

    (found,) = (one for one in probe(ITEMS, score).results if one.name == "padding")
    assert found.mean_change == pytest.approx(0.1)
    assert not found.passed  # the mean is 0.1, but by groups it may well be 0.2
    (wider,) = (one for one in probe(ITEMS, score, tolerance=0.3).results if one.name == "padding")
    assert wider.passed


def test_additive_patterns_are_caught_by_stuffing():
    patterns = set_of({"velvet": 1.0, "silk": 1.0, "rust": -1.0}, 2.0)
    patterns.patterns[1].weight = 1.0
    assert ("velvet", "silk") == good_phrases(patterns)
    evaluator = CheapModeEvaluator(patterns, rubric=builtin_rubric("text"))

    def score(item: Item) -> float | None:
        reading = evaluator.read(item)
        return None if isinstance(reading, Unscored) else reading.gestalt

    items = [one.item for one in planted_targets(30, 2, {"rust": -1.0})]
    assert "stuffing" in probe(items, score, cheat_of(patterns)).failed


def test_probes_change_what_they_say_and_nothing_else():
    item = Item("a", TEXT, prompt="How so", group="g")
    made = {name: probed(name, item, ["saves time", "can pay"]) for name in PROBES}
    assert made == {name: probed(name, item, ["saves time", "can pay"]) for name in PROBES}
    assert f"{TEXT} saves time." == made["stuffing"].text
    assert made["padding"].text.startswith(TEXT)
    assert 2 * len(TEXT) <= len(made["padding"].text) < 4 * len(TEXT)
    assert (
        Counter(TEXT.split()) == Counter(made["shuffled_words"].text.split()) == Counter(made["shuffled_sentences"].text.split())
    )
    assert len({one.text for one in made.values()}) == len([name for name in PROBES if not name.startswith("context")]) + 1
    assert made["many_list_entries"].text.count("\n- ") > made["few_list_entries"].text.count("\n- ") == 3
    assert ("How so", f"{TEXT} How so") == (made["prompt_copied"].text, made["prompt_appended"].text)
    assert all(TEXT == made[name].text for name in PROBES if name.startswith("context"))  # there is none
    assert "The user can not pay by card. It is not true that it saves a minute! Nobody has not to wait?" == made["negation"].text
    assert all(("a", "How so", "g") == (one.id, one.prompt, one.group) for one in made.values())


def test_of_a_story_the_description_is_changed():
    story = Story(id="s", title="Add a card", description="Users pay. They leave.", acceptance_criteria=["one"])
    made = probed("shuffled_sentences", Item.of(story, group="g"))
    assert made.story is not None
    assert ("Add a card", "They leave. Users pay.", ["one"]) == (
        made.story.title,
        made.story.description,
        made.story.acceptance_criteria,
    )
    assert "Add a card\nThey leave. Users pay.\none" == made.text


def test_where_there_is_nothing_to_change_or_to_score_nothing_is_said():
    bare = [Item("a", "word"), Item("b", "")]
    found = {one.name: one for one in probe(bare, lambda item: 3.0 if item.text else None).results}
    assert 0 == found["stuffing"].items == found["shuffled_words"].items
    assert found["stuffing"].passed
    assert 1 == found["negation"].items
    assert None is found["negation"].interval


def card(*patterns: dict[str, object], unit: float = 1.0) -> PatternSet:
    """A hand-made scorecard of good patterns."""
    given = {"type": "good", "keywords": [], "source": "test", "discovered_at": MADE, "status": "active"}
    made = [
        PatternV2.model_validate({**given, "id": f"p{at}", "description": f"p{at}", **one}) for at, one in enumerate(patterns)
    ]
    line = {"x": [1.0, 5.0], "y": [1.0, 5.0]}
    document = {"format": 1, "kind": "scorecard", "rubric": "text", "base": 2.5, "unit": unit, "curve": line}
    return PatternSet(version="2.0", patterns=made, calibration=document)


def failures(patterns: PatternSet) -> dict[str, float]:
    asked = [Item(one.id, one.text, prompt="How does one pay?", group=one.group) for one in ITEMS]
    return {one.name: one.most for one in probe_set(patterns, asked, "text").results if not one.passed}


def test_many_light_phrases_are_stuffed_together_too():
    words = [f"w{number}x" for number in range(400)]
    found = failures(card(*({"phrases": [word], "weight": 0.0049} for word in words)))
    assert found["stuffing"] == pytest.approx(1.96, abs=0.01)


def test_phrases_are_stuffed_all_at_once_the_heaviest_first_and_in_chunks():
    words = tuple(f"w{number}" for number in range(50))
    made = stuffings(words)
    assert words in made.values()
    assert {words[:20], words[:40], words[20:40], words[40:]} <= set(made.values())
    assert {} == stuffings(())
    assert {"all 20 phrases": words[:CHUNK]} == stuffings(words[:CHUNK])

    def score(item: Item) -> float:  # too many are no good: what a guard does
        count = sum(word in item.text.split() or f"{word}," in item.text or f"{word}." in item.text for word in words[20:40])
        return 4.0 if count == 20 and "w41" not in item.text and "w1," not in item.text else 3.0

    (found,) = (one for one in probe(ITEMS, score, Cheat(phrases=words)).results if one.name == "stuffing")
    assert ("phrases 21 to 40", False) == (found.how, found.passed)


def test_expressions_are_written_down_and_one_that_cannot_be_is_not_passed_over():
    regexes = [rf"\bterm{number}\w+ (?:is|was) [0-9]{{2,4}}\b" for number in range(30)]
    found = failures(card(*({"regex": one, "weight": 0.2} for one in regexes)))
    assert found["stuffing"] == pytest.approx(2.5, abs=0.01)
    unknown = card({"regex": r"^It pays\z", "weight": 0.3})
    assert {"p0": pytest.approx(0.3)} == cheat_of(unknown).unprobed
    (tried,) = (one for one in probe_set(unknown, ITEMS, "text").results if one.name == "stuffing")
    assert (0, 0.3, False) == (tried.items, pytest.approx(tried.unprobed), tried.passed)
    assert "stuffing" not in failures(card({"regex": r"^It pays\z", "weight": 0.05}))  # within the bound


@pytest.mark.parametrize(
    "regex", [r"a|b", r"(?:saves?|wins) \d+%", r"[^a-z ]{3}", r"(?i)because\s+of", r"x{2,5}y*z+?", r"\w+ly\b", r".\.\d", "ß"]
)
def test_a_text_is_made_on_which_an_expression_fires(regex):
    (pattern,) = card({"regex": regex}).patterns
    made = text_that_fires(pattern)
    assert made is not None
    assert [0] == list(PatternMatcher([pattern]).fired(f"We pay. {made}."))


@pytest.mark.parametrize(
    ("feature", "at_least"),
    [
        ("list_entries", 10),
        ("numbers", 10),
        ("digits", 10),
        ("code", 2),
        ("questions", 3),
        ("quotes", 4),
        ("paragraphs", 10),
        ("names", 12),
        ("commas", 60),
        ("prompt_covered", 1),
        ("prompt_opening", 1),
        ("prompt_longest_copy", 4),
    ],
)
def test_a_good_pattern_of_anything_that_can_be_appended_is_found_out(feature, at_least):
    found = failures(card({"feature": feature, "at_least": at_least, "weight": 1.5}))
    print(feature, found)
    assert max(found.values()) == pytest.approx(1.5)
    assert len(ATTACKS) > len(found)  # not whatever is done
