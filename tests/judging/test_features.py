"""Features of items: what they count, that patterns fire by them, and what happens to names that nobody knows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from jumar.errors import PatternLoadError
from jumar.judging import CheapModeEvaluator, CheapModeResult, Item
from jumar.judging.cheap import features
from jumar.judging.cheap.evaluator import measure_items
from jumar.judging.cheap.features import FEATURES, FeatureMemo, FeaturePatterns, Measured, feature_values
from jumar.judging.patterns import PatternSet, PatternV2

MADE = datetime(2026, 1, 1, tzinfo=UTC)
COPY = Item("a", "the red fox ran over 3 hills.", prompt="Tell me:\nthe quick red fox ran over 4 hills", context="foxes run")


def pattern(name: str, **fields: Any) -> PatternV2:
    given = {"type": "good", "description": name, "keywords": [], "source": "test", "discovered_at": MADE, **fields}
    return PatternV2.model_validate({"id": name, **given})


def value(name: str, item: Item) -> float:
    return FEATURES[name].read(Measured(item))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("characters", 29),
        ("words", 7),
        ("distinct_ratio", 1.0),
        ("sentences", 1),
        ("digits", 1),
        ("ends_whole", True),
        ("prompt_overlap", 2 / 2),
        ("prompt_covered", 2 / 4),
        ("prompt_longest_copy", 4),
        ("prompt_copied_triples", 2 / 5),
        ("prompt_novel_numbers", 1),
        ("prompt_opening", 0.0),
        ("prompt_ending", 2 / 3),
        ("context_overlap", 0.0),
        ("context_characters", 9),
    ],
)
def test_what_features_count(name: str, expected: float):
    assert value(name, COPY) == pytest.approx(expected)


@pytest.mark.parametrize("name", FEATURES)
def test_an_empty_item_has_nothing_to_count(name: str):
    assert 0 == value(name, Item("a", ""))
    assert 0 <= value(name, Item("a", " \n…", prompt="?", context="\t"))


def test_a_pattern_fires_from_its_value_on():
    found = FeaturePatterns([pattern(f"p{edge}", feature="words", at_least=edge) for edge in (8, 7, 2)])
    assert [1, 2] == found.fired(COPY)
    assert [2] == found.fired(Item("b", "two words"))
    assert [] == found.fired(Item("b", ""))


def test_rejected_and_pruned_ones_do_not_fire():
    found = FeaturePatterns(
        [pattern(one, feature="words", at_least=0, status=one) for one in ("rejected", "pruned", "provisional")]
    )
    assert [2] == found.fired(COPY)


def test_the_keywords_of_a_feature_are_no_phrases_but_its_phrases_are():
    known = PatternSet(
        version="2.0",
        patterns=[
            pattern("far", keywords=["fox"], feature="words", at_least=100),
            pattern("said", phrases=["red fox"], feature="words", at_least=100),
            pattern("near", keywords=["nothing"], feature="words", at_least=2),
        ],
    )
    result = CheapModeEvaluator(known).evaluate_item(COPY)
    assert isinstance(result, CheapModeResult)
    assert ["said", "near"] == result.patterns_matched
    assert {"far": 0, "said": 1, "near": 1} == measure_items(known, [COPY]).fired


def test_an_unknown_feature_is_kept_and_refused_where_it_is_to_fire():
    known = PatternSet(version="2.0", patterns=[pattern("p", feature="wrods", at_least=1)])
    assert "wrods" == PatternSet.model_validate_json(known.model_dump_json()).patterns[0].feature
    with pytest.raises(PatternLoadError, match=r"pattern p: no feature 'wrods'.*words"):
        CheapModeEvaluator(known)


@pytest.mark.parametrize("fields", [{"feature": "words"}, {"at_least": 1}, {"feature": "words", "at_least": float("nan")}])
def test_feature_and_value_go_together(fields: dict[str, Any]):
    with pytest.raises(ValidationError, match=r"at_least|finite"):
        pattern("p", **fields)


def test_every_feature_is_in_the_reference():
    told = (Path(__file__).parents[2] / "docs/reference/features.md").read_text("utf-8")
    named = [name for name in FEATURES if not name.startswith("context_")]
    assert [] == [name for name in named if f"`{name}`" not in told]
    assert {name.replace("prompt_", "context_", 1) for name in named if name.startswith("prompt_")} <= set(FEATURES)


@pytest.mark.parametrize(
    "item", [COPY, Item("b", COPY.text), Item("c", "", prompt="what", context="that"), Item("d", "Yes: 1, 2.")]
)
def test_what_is_remembered_of_an_item_is_what_would_be_counted_and_counted_once(
    item: Item, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = [pattern(f"p{place}", feature=name, at_least=0.4) for place, name in enumerate(FEATURES)]
    counted: list[str] = []
    plain = features.count_features

    def counting(one: Item) -> Any:
        counted.append(one.id)
        return plain(one)

    monkeypatch.setattr(features, "count_features", counting)
    assert list(feature_values(item)) == [value(name, item) for name in FEATURES]
    fired, memo = FeaturePatterns(every).fired(item), FeatureMemo()
    with memo.used():
        assert [fired] * 3 == [FeaturePatterns(every).fired(item) for _ in range(3)]
        assert list(feature_values(item)) == [value(name, item) for name in FEATURES]
    assert FeaturePatterns(every).fired(item) == fired
    assert [item.id] * 2 == counted
