"""Proposals without a model: from large gaps only, from given texts only, the same every time."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.judging import Item
from jumar.judging.patterns import PatternMatcher, PatternProposal, PatternSet, PatternV2
from jumar.judging.patterns.matcher import folded
from jumar.judging.patterns.proposed import as_pattern
from jumar.learning import GapItem, gap_items, learn_from_gap, propose
from jumar.learning.material import Target
from jumar.learning.proposals.terms import Contrast, find_terms, phrases_of, says_something

FILLER = ["report", "lists", "several", "figures", "region", "month", "tables", "notes", "charts", "dates", "totals", "names"]


def planted(items: int = 120, seed: int = 0) -> list[GapItem]:
    """Items of which a third say 'saves time' (the judge likes them) and another third 'quick hack' (it does not)."""
    random = Random(seed)
    found: list[GapItem] = []
    for number in range(items):
        words = random.choices(FILLER, k=25)
        kind = number % 3
        if kind:
            words[12:12] = ["saves", "time"] if kind == 1 else ["quick", "hack"]
        score = (3.0, 4.5, 1.5)[kind]
        found.append(GapItem(id=f"i{number}", text=" ".join(words), expensive=score, cheap=3.0, group=f"g{number // 2}"))
    return found


def said(found: list[PatternProposal]) -> dict[str, str]:
    return {one.pattern["phrases"][0]: one.pattern["type"] for one in found}


def test_what_was_planted_is_proposed_first_with_its_sign() -> None:
    found = propose(planted())
    assert {"saves time": "good", "quick hack": "bad"} == said(found[:2]), "of phrases on the same texts the one that says most"
    statistic = next(one for one in found if one.pattern["phrases"] == ["saves time"]).provenance["statistic"]
    assert (40, 40, 0, 80) == tuple(statistic[name] for name in ("with_gap", "of_gap", "elsewhere", "of_others"))
    assert 120.0 == statistic["chi_square"], "of a perfect table of four it is the number of items"
    assert statistic["z"] > 3


@pytest.mark.parametrize("level", [1.6, -1.6])
@pytest.mark.parametrize("effect", [0.3, 1.0])
def test_what_was_planted_is_proposed_where_every_item_is_off_to_one_side(level: float, effect: float) -> None:
    """A wrong level is no matter of words: what sets items apart is how far they are from the middle of the gaps."""
    off = [replace(one, expensive=3 + level + effect / 1.5 * (one.expensive - 3), cheap=3.0) for one in planted()]
    assert all(one.is_large(0.5) for one in off)
    found = propose(off)
    assert {"saves time": "good", "quick hack": "bad"} == said(found[:2])
    assert f"beyond the 1.60 that most are too {'low' if level > 0 else 'high'}," in found[0].rationale
    assert propose(planted())[0].rationale.count("beyond") == 0


def test_where_all_items_are_off_alike_the_judges_words_are_what_there_is() -> None:
    alike = [replace(one, expensive=4.6, reasoning='It says "saves time".') for one in planted()]
    assert {"judge_words"} == {str(one.provenance["by"]) for one in propose(alike)}
    noisy = [replace(one, expensive=one.expensive + 3.0, noise=2.0) for one in planted()]
    assert not any("beyond" in one.rationale for one in propose(noisy)), "what is within the judge's noise sets nothing apart"


def test_a_gap_within_the_threshold_or_the_judges_noise_teaches_nothing() -> None:
    assert [] == propose(planted(), threshold=1.5)
    assert [] == propose([replace(one, noise=2.0) for one in planted()])
    assert [] == propose([])
    assert propose([replace(one, noise=1.4) for one in planted()])


def test_log_odds_are_those_of_the_formula() -> None:
    """One term in 3 of 4 and 1 of 6 texts, by hand; the prior is ten texts' worth of its share."""
    contrast = Contrast.of([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], [None] * 10)
    assert contrast is not None
    import numpy as np

    (found,) = contrast.strengths([np.asarray([0, 1, 2, 9])])
    prior = 10 * 4.5 / 11
    one, other = 3 + prior, 1 + prior
    log_odds = math.log(one / (14 - one)) - math.log(other / (16 - other))
    assert found.log_odds == pytest.approx(log_odds)
    assert found.z == pytest.approx(log_odds / math.sqrt(1 / one + 1 / (14 - one) + 1 / other + 1 / (16 - other)))
    assert found.chi_square == pytest.approx(10 * (3 * 5 - 1 * 1) ** 2 / (4 * 6 * 4 * 6))
    assert ("good", 3, 4, 1, 6) == (found.kind, found.with_gap, found.of_gap, found.elsewhere, found.of_others)


WORDS = ["time", "time-zone", "don't", "saves", "a", "x", "É", "\n", ",", "of"]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=8)


@settings(deadline=None)
@given(texts, st.integers(1, 3), st.integers(1, 3))
def test_terms_stand_where_the_matcher_fires(given_: list[str], words: int, least: int) -> None:
    found = find_terms(given_, words=words, least=least, largest_share=1.0)
    made = [PatternV2.model_validate({"id": phrase, **BARE, "phrases": [phrase]}) for phrase in found.phrases]
    fired = [PatternMatcher(made).fired_ids(text) for text in given_]
    for phrase, where in zip(found.phrases, found.where, strict=True):
        assert where.tolist() == [number for number, ids in enumerate(fired) if phrase in ids]
    expected = {
        word
        for word, count in Counter(w for text in given_ for w in set(folded(text).replace("-", " ").split())).items()
        if count >= least and word.isalpha() and says_something(word)
    }
    assert expected == {phrase for phrase in found.phrases if phrase.isalpha()}


BARE: dict[str, Any] = {"type": "good", "description": "", "keywords": [], "source": "", "discovered_at": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("diversity", [0, 1, 2, 3])
def test_the_same_arguments_give_the_same_proposals_and_not_too_many(diversity: int) -> None:
    items = planted()
    found = propose(items, diversity=diversity, limit=10, seed=3)
    assert found == propose(items, diversity=diversity, limit=10, seed=3)
    assert len(found) <= 10 * (1 + diversity)
    assert len({one.pattern["id"] for one in found}) == len(found)


def test_diversity_widens_kinds_lengths_and_number() -> None:
    forms = ["improves", "improve", "improved"]
    items = [
        replace(one, text=one.text.replace("saves time", f"{forms[n % 7 % 3]} a lot of things"))
        for n, one in enumerate(planted(240))
    ]
    narrow, wide = propose(items, limit=30), propose(items, limit=30, diversity=3)
    assert "word_family" in {one.provenance["by"] for one in wide} - {one.provenance["by"] for one in narrow}
    assert len(narrow) < len(wide)
    family = next(one for one in wide if one.provenance["by"] == "word_family")
    assert {"improve", "improves", "improved"} == set(family.pattern["phrases"])


def test_what_is_known_or_was_tried_is_not_proposed_again() -> None:
    first = propose(planted())
    known = PatternSet(version="2.0", patterns=[as_pattern(first[0])])
    again = propose(planted(), known=known, tried=[one.pattern["id"] for one in first[1:]])
    assert {one.pattern["id"] for one in first}.isdisjoint(one.pattern["id"] for one in again)


def test_a_topic_of_one_group_is_no_signal() -> None:
    items = [replace(one, text=one.text + (" zeppelin" if one.group == "g3" else ""), group="g3" if n < 20 else one.group)
             for n, one in enumerate(planted())]  # fmt: skip
    items = [replace(one, text=one.text + " zeppelin") if one.group == "g3" else one for one in items]
    assert "zeppelin" not in said(propose(items, limit=1_000, diversity=3))


def test_the_judges_words_are_looked_up_in_texts_and_never_proposed_by_themselves() -> None:
    items = [
        GapItem(
            id=str(n),
            text=f"Item {n}: users are frustrated when waiting for exports, see docs/guide.md",
            expensive=4.5,
            cheap=3.0,
            strengths=("names a pain point: 'frustrated when X happens'", "excellent structure"),
            weaknesses=("no budget for exports",),
        )
        for n in range(3)
    ]
    found = propose(items)
    phrases = set(said(found))
    assert "frustrated when" in phrases
    assert all(any(phrase in folded(one.text) for one in items) for phrase in phrases)
    assert not {"excellent structure", "excellent", "pain point", "exports"} & phrases
    quoted = next(one for one in found if one.pattern["phrases"] == ["frustrated when"])
    assert ("value_phrases", "judge_words") == (quoted.category, quoted.provenance["by"])
    assert ["names a pain point: 'frustrated when X happens'"] == quoted.provenance["judge_words"]
    assert ["0", "1", "2"] == quoted.provenance["items"]


def test_what_a_judge_denies_is_not_there() -> None:
    assert "concrete examples" not in phrases_of("It lacks concrete examples.")
    assert "concrete examples" in phrases_of("It lacks depth. It has concrete examples.")


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_may_be_proposed_from(text: str, reason: str) -> None:
    items = [
        GapItem(id="a", text=text, expensive=5.0, cheap=1.0, reasoning=reason),
        GapItem(id="b", text=reason, expensive=1.0, cheap=5.0, strengths=(text,), weaknesses=(reason,)),
    ]
    for one in propose(items):
        assert any(PatternMatcher([as_pattern(one)]).fired(item.text) for item in items)


def test_targets_with_both_scores_become_gap_items() -> None:
    target = Target(Item("a", "text", group="g"), 4.0, (4.0, 5.0, 3.0), "why", ("short",), ())
    (found,) = gap_items([target, Target(Item("b", "other"), 2.0, (2.0,))], {"a": 3.0}, noise=0.4)
    assert ("a", "text", 4.0, 3.0, "g", ("short",)) == (
        found.id,
        found.text,
        found.expensive,
        found.cheap,
        found.group,
        found.strengths,
    )
    assert found.noise == pytest.approx(4 / 3), "of the item's own three pairs of readings, which is more than the judge's"
    assert found.gap == 1.0


def test_bad_options_are_told() -> None:
    with pytest.raises(ValueError, match="diversity = 4 should be from 0 to 3"):
        propose(planted(), diversity=4)
    with pytest.raises(ValueError, match="limit = 0 should be at least 1"):
        propose(planted(), limit=0)


STORY = {
    "id": "a",
    "title": "Fix the export",
    "description": "Users are frustrated when exporting",
    "acceptance_criteria": ["works"],
}
JUDGED = {"story_id": "a", "gestalt": 4.5, "reasoning": "A pain point, expressed as 'frustrated when X happens'"}


@pytest.mark.parametrize("patterns", [None, [], {"version": "2.0", "patterns": []}])
def test_learn_from_gap_takes_what_the_first_design_hands_in(patterns: Any) -> None:
    cheap = {"gestalt": 3.0, "reasons": ["good_title"]}
    found = learn_from_gap([JUDGED], [cheap], patterns, [STORY], iteration=4)
    assert {"frustrated when": "good"} == said(found)
    assert (4, "provisional") == (found[0].proposed_at, found[0].status)
    assert [] == learn_from_gap([{**JUDGED, "gestalt": 0.0}], [cheap], patterns, [STORY]), "0 is the sign of a judge that failed"
    assert [] == learn_from_gap([{**JUDGED, "gestalt": 3.5}], [cheap], patterns, [STORY])
    assert [] == learn_from_gap([JUDGED], [cheap], [as_pattern({"phrase": "frustrated"})], [STORY]), "subsumed by what is known"


def test_learn_from_gap_goes_by_id_where_there_is_one() -> None:
    other = {**STORY, "id": "b", "description": "Something else"}
    cheap = [{"story_id": "b", "gestalt": 3.0}, {"story_id": "a", "gestalt": 3.0}]
    found = learn_from_gap([{**JUDGED, "story_id": "b", "gestalt": 3.0, "reasoning": ""}, JUDGED], cheap, None, [STORY, other])
    assert {"frustrated when": "good"} == said(found)
    assert ["a"] == found[0].provenance["items"]
