"""Patterns that say what others say: each kind, and all of it against a slow and obvious reference."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from statistics import correlation
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Indel

from jumar.judging.patterns import PatternProposal, PatternSet, PatternV2
from jumar.judging.patterns.matcher import folded, literals
from jumar.judging.patterns.merging import LEAST_FIRED, merge_patterns, merge_proposals, opposed, words_of

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def pattern(name: str, *phrases: str, **fields: Any) -> PatternV2:
    said = list(phrases) or [name]
    known = {"type": "good", "description": name, "keywords": said, "phrases": said, "source": "test", "discovered_at": DAY}
    return PatternV2.model_validate({"id": name, **known, **fields})


def proposal(phrase: str, kind: str = "good") -> PatternProposal:
    return PatternProposal(pattern={"id": f"n {phrase}", "type": kind, "phrases": [phrase]}, proposed_at=1)


def gone(patterns: list[PatternV2], texts: list[str] | None = None) -> dict[str, tuple[str, str]]:
    return {one.merged: (one.into, one.by) for one in merge_patterns(patterns, texts or ()).merges}


@pytest.mark.parametrize(
    ("first", "second", "by"),
    [
        (pattern("a", "Saves  Time"), pattern("b", "saves time"), "identical"),
        (pattern("a", "frustrated when"), pattern("b", "frustrated when waiting"), "subsumed"),
        (pattern("a", "clear step by step plan"), pattern("b", "plan step by step clears"), "wording"),
    ],
)
def test_what_is_there_already_is_merged_and_why_is_said(first: PatternV2, second: PatternV2, by: str) -> None:
    found = merge_patterns([first, second])
    assert [("b", "a", by)] == [(one.merged, one.into, one.by) for one in found.merges]
    assert "'" in found.merges[0].explanation
    assert ["active", "pruned"] == [one.status for one in found.patterns], "nothing is deleted"
    assert 2.0 == found.patterns[0].weight, "where both fired the score is as before"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("clear examples given here", "unclear examples given here"),
        ("does handle all the errors", "does not handle all the errors"),
        ("has step 1 of the list", "has step 2 of the list"),
        ("capital", "api"),
        ("saves time", "loses time"),
    ],
)
def test_what_only_looks_alike_stays(one: str, other: str) -> None:
    assert {} == gone([pattern("a", one), pattern("b", other)])


def test_opposite_signs_and_patterns_that_are_out_are_left_alone() -> None:
    others = [pattern("b", "saves time", type="bad"), pattern("c", "saves time", status="rejected")]
    assert {} == gone([pattern("a", "saves time"), *others])


def test_patterns_on_the_same_items_are_one_and_rare_company_proves_nothing() -> None:
    texts = ["hong kong is far", "in hong kong", "hong kong", "something else"]
    assert {"b": ("a", "firing")} == gone([pattern("a", "hong"), pattern("b", "kong")], texts)
    assert {} == gone([pattern("a", "hong"), pattern("b", "kong")], texts[1:])


def test_words_in_another_order_are_another_pattern_where_they_fire_on_other_items() -> None:
    known, new = pattern("a", "orange forest"), proposal("forest orange")
    apart = ["an orange forest", "the orange forest burns", "forest orange is a colour", "a forest orange"]
    kept = merge_proposals([new], [known], apart)
    assert ([new], ()) == (list(kept.kept), kept.merges)
    together = ["orange forest orange", "orange forest orange forest", "an orange forest"]
    (merge,) = merge_proposals([new], [known], together).merges
    assert ("wording", 1.0) == (merge.by, merge.similarity)
    assert merge.explanation == (
        "'forest orange' and 'orange forest' have the same words in another order; "
        "they share 2 of the 3 items on which either fires"
    )
    (unseen,) = merge_patterns([known, pattern("b", "orange forests")]).merges
    assert "have nearly the same words: 96.3% of their letters" in unseen.explanation


def test_a_longer_phrase_that_singles_something_out_stays() -> None:
    common = ["of course not"] * 2 + ["of course"] * 3
    assert {} == gone([pattern("a", "of course"), pattern("b", "of course not")], common)
    assert {"b": ("a", "subsumed")} == gone([pattern("a", "of course"), pattern("b", "of course not")], common[:4])


BETTER = ["make it better"] * 6 + ["they make do"] * 4 + ["something else"] * 10
WORTH = [5.0] * 6 + [3.0] * 14


@pytest.mark.parametrize(
    ("texts", "scores", "gone_"),
    [
        (BETTER, WORTH, {"make": ("make it better", "subsumed")}),
        (BETTER, [5.0] * 10 + [3.0] * 10, {"make it better": ("make", "subsumed")}),
        (BETTER, [3.0] * 20, {"make it better": ("make", "subsumed")}),  # neither is better: the one that fires on more
        (BETTER[:6] + BETTER[10:], WORTH[:16], {"make": ("make it better", "subsumed")}),  # on the same texts: it says more
        (BETTER, None, {"make it better": ("make", "subsumed")}),
        (BETTER[:4] + BETTER[6:], [5.0] * 4 + [3.0] * 14, {"make": ("make it better", "subsumed")}),
        (BETTER[:3] + BETTER[6:], [5.0] * 3 + [3.0] * 14, {}),  # on fewer than half of the items it singles something out
    ],
)
def test_of_near_duplicates_the_one_that_goes_with_the_scores_stays(
    texts: list[str], scores: list[float] | None, gone_: dict[str, tuple[str, str]]
) -> None:
    known = [pattern("make"), pattern("make it better")]
    for order in (known, known[::-1]):
        found = merge_patterns(order, texts, scores=scores)
        assert gone_ == {one.merged: (one.into, one.by) for one in found.merges}
        assert all("wherever 'make it better' stands, 'make' stands too" in one.explanation for one in found.merges)
    against = None if scores is None else [6.0 - score for score in scores]
    bad = [one.model_copy(update={"type": "bad"}) for one in known]
    assert gone_ == {one.merged: (one.into, one.by) for one in merge_patterns(bad, texts, scores=against).merges}


def test_what_goes_better_with_the_scores_is_proposed_beside_a_more_general_one_that_is_known() -> None:
    better = proposal("make it better")
    assert (better,) == merge_proposals([better], [pattern("make")], BETTER, scores=WORTH).kept
    assert () == merge_proposals([better], [pattern("make")], BETTER, scores=[5.0] * 10 + [3.0] * 10).kept
    general = proposal("make")
    assert () == merge_proposals([general], [pattern("make it better")], BETTER, scores=WORTH).kept
    assert (general,) == merge_proposals([general], [pattern("make it better")], BETTER).kept


def test_there_is_a_score_of_each_text() -> None:
    with pytest.raises(ValueError, match="2 texts, 1 scores"):
        merge_patterns([pattern("a")], ["a", "b"], scores=[3.0])


def test_proposals_are_held_against_everything_that_is_known() -> None:
    known = PatternSet(
        version="2.0", patterns=[pattern("a", "saves time", status="rejected"), pattern("b", "so that", type="bad")]
    )
    given_ = [
        proposal("saves time"),
        proposal("saves time", "bad"),
        proposal("user can"),
        proposal("user can"),
        proposal("so that"),
    ]
    found = merge_proposals(given_, known)
    assert [given_[1], given_[2], given_[4]] == list(found.kept)
    assert [("n saves time", "a"), ("n user can", "n user can")] == [(one.merged, one.into) for one in found.merges]


WORDS = ["alpha", "alphas", "beta", "gamma", "no", "delta"]
phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.tuples(st.lists(phrases, min_size=1, max_size=2), st.sampled_from(["good", "bad"]), st.integers(0, 8)), max_size=9
    ),
    st.lists(st.tuples(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), st.integers(1, 5)), max_size=9),
    st.booleans(),
)
def test_the_quick_way_finds_what_the_obvious_way_finds(
    made: list[tuple[list[str], Any, int]], judged: list[tuple[str, int]], with_scores: bool
) -> None:
    patterns = [pattern(f"p{n}", *said, type=kind, weight=weight / 4) for n, (said, kind, weight) in enumerate(made)]
    texts, scores = [text for text, _ in judged], [float(score) for _, score in judged] if with_scores else None
    found = merge_patterns(patterns, texts, scores=scores).merges
    assert reference(patterns, texts, scores) == {one.merged: (one.into, one.by) for one in found}


def reference(patterns: list[PatternV2], texts: list[str], scores: list[float] | None) -> dict[str, tuple[str, str]]:
    """Every pattern against every one that stays, by the letter of the documentation."""
    strengths = {one.id: _strength(one, texts, scores) if texts and scores else 0.0 for one in patterns}

    def right(at: int) -> tuple[Any, ...]:
        one, said = patterns[at], literals(patterns[at])
        if texts and scores:
            says = max(map(_content, said))
            return (-strengths[one.id], -len(_on(one, texts)), *(-much for much in says), -one.weight, at)
        return (max(map(_words, said)), -one.weight, at)

    order = sorted(range(len(patterns)), key=right)
    stays: list[PatternV2] = []
    twins: dict[tuple[str, ...], str] = {}
    into: dict[str, tuple[str, str]] = {}
    for one in (patterns[at] for at in order):
        key = (one.type, *sorted({folded(said) for said in literals(one)}))
        if key in twins:
            first = twins[key]
            into[one.id] = into.get(first, (first, "identical"))
            continue
        twins[key] = one.id
        near = [
            (*how, -place, other)
            for place, other in enumerate(stays)
            if (how := _like(one, other, texts, strengths if texts and scores else None)) is not None
        ]
        if near:
            best = max(near, key=lambda each: each[:3])
            into[one.id] = (best[3].id, ["firing", "wording", "subsumed"][best[0]])
        else:
            stays.append(one)
    return into


def _strength(one: PatternV2, texts: list[str], scores: list[float]) -> float:
    fired = [float(place in _on(one, texts)) for place in range(len(texts))]
    if len(set(fired)) < 2 or len(set(scores)) < 2:
        return 0.0
    return round(correlation(fired, scores) * (1 if one.type == "good" else -1), 2)


def _content(said: str) -> tuple[int, int, int]:
    function = said.split().count("no")
    return _words(said) - function, -function, len(said)


def _like(one: PatternV2, other: PatternV2, texts: list[str], strengths: dict[str, float] | None) -> tuple[int, float] | None:
    if one.type != other.type:
        return None
    mine, theirs = _on(one, texts), _on(other, texts)
    share = len(mine & theirs) / len(mine | theirs) if mine | theirs else 1.0
    narrower = all(any(_in(short, long) for short in literals(other)) for long in literals(one))
    wider = strengths is not None and all(any(_in(short, long) for short in literals(one)) for long in literals(other))
    weaker = strengths is None or strengths[other.id] >= strengths[one.id]
    if (narrower or wider) and weaker and (not texts or share >= 0.5):
        return 2, round(share if texts else 1.0, 4)
    ratio = Indel.normalized_similarity(words_of(one), words_of(other))
    if ratio >= 0.9 and (not texts or share >= 0.5) and not opposed(words_of(one), words_of(other)):
        return 1, round(ratio, 4)
    return (0, round(share, 4)) if min(len(mine), len(theirs)) >= LEAST_FIRED and share >= 0.9 else None


def _words(said: str) -> int:
    return len(said.split())


def _in(short: str, long: str) -> bool:
    return re.search(rf"\b{re.escape(short)}\b", long) is not None


def _on(one: PatternV2, texts: list[str]) -> set[int]:
    return {number for number, text in enumerate(texts) if any(_in(said, text) for said in literals(one))}
