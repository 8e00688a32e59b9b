"""Whether a cheap score can be had for nothing."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from learning_kit import planted_targets, set_of

from jumar.judging import CheapModeEvaluator, Item, Story, Unscored, builtin_rubric
from jumar.learning.probes import PROBES, ProbeReport, good_phrases, probe, probed

TEXT = "The user can pay by card. It saves a minute! Nobody has to wait?"
ITEMS = [Item(f"i{number}", f"{TEXT} Number {number} is last.", group=f"g{number // 2}") for number in range(60)]


def results(report: ProbeReport) -> dict[str, bool]:
    return {one.name: one.passed for one in report.results}


def test_an_honest_score_passes_and_nothing_depends_on_the_order_of_the_items():
    report = probe(ITEMS, lambda item: 3.0, ["saves time"])
    assert report.passed
    assert () == report.failed
    assert [(60, 0.0)] * 5 == [(one.items, one.mean_change) for one in report.results]
    again = probe(ITEMS[::-1], lambda item: 3.0, ["saves time"])
    assert report.to_json() == again.to_json() == json.loads(json.dumps(report.to_json()))


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
    found = probe(ITEMS, score, ["saves time"])
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

    (found,) = (one for one in probe(ITEMS, score, ()).results if one.name == "padding")
    assert found.mean_change == pytest.approx(0.1)
    assert not found.passed  # the mean is 0.1, but by groups it may well be 0.2
    (wider,) = (one for one in probe(ITEMS, score, (), tolerance=0.3).results if one.name == "padding")
    assert wider.passed


def test_additive_patterns_are_caught_by_stuffing():
    patterns = set_of({"velvet": 1.0, "silk": 1.0, "rust": -1.0}, 2.0)
    patterns.patterns[1].weight = 1.0
    assert ("velvet", "silk") == good_phrases(patterns)
    assert ("velvet",) == good_phrases(patterns, most=1)
    evaluator = CheapModeEvaluator(patterns, rubric=builtin_rubric("text"))

    def score(item: Item) -> float | None:
        reading = evaluator.read(item)
        return None if isinstance(reading, Unscored) else reading.gestalt

    items = [one.item for one in planted_targets(30, 2, {"rust": -1.0})]
    assert "stuffing" in probe(items, score, good_phrases(patterns)).failed


def test_probes_change_what_they_say_and_nothing_else():
    item = Item("a", TEXT, prompt="p", group="g")
    made = {name: probed(name, item, ["saves time", "can pay"]) for name in PROBES}
    assert made == {name: probed(name, item, ["saves time", "can pay"]) for name in PROBES}
    assert f"{TEXT} saves time." == made["stuffing"].text
    assert made["padding"].text.startswith(TEXT)
    assert 2 * len(TEXT) <= len(made["padding"].text) < 4 * len(TEXT)
    assert (
        Counter(TEXT.split()) == Counter(made["shuffled_words"].text.split()) == Counter(made["shuffled_sentences"].text.split())
    )
    assert len({one.text for one in made.values()} | {TEXT}) == 6
    assert "The user can not pay by card. It is not true that it saves a minute! Nobody has not to wait?" == made["negation"].text
    assert all(("a", "p", "g") == (one.id, one.prompt, one.group) for one in made.values())


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
    found = {one.name: one for one in probe(bare, lambda item: 3.0 if item.text else None, ()).results}
    assert 0 == found["stuffing"].items == found["shuffled_words"].items
    assert found["stuffing"].passed
    assert 1 == found["negation"].items
    assert None is found["negation"].interval
