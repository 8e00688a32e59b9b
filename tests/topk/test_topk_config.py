"""The models of the strategies' parameters: the seed's names, defaults and bounds, and the strategies' own parameters."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from jumar.topk import STRATEGIES, create_selection_strategy
from jumar.topk.base import parameters
from jumar.topk.config import (
    CONFIGS,
    AdaptiveKSelectionConfig,
    ClusterSelectionConfig,
    ElbowSelectionConfig,
    EntropySelectionConfig,
    FixedKSelectionConfig,
    RetrievalConfig,
    SelectionStrategyConfig,
)

ANY = TypeAdapter[Any](SelectionStrategyConfig)

REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("elbow", {"drop_threshold": 0}),
    ("elbow", {"drop_threshold": 1}),
    ("elbow", {"scale": "logit"}),
    ("elbow", {"min_score": 1.1}),
    ("elbow", {"min_score": -0.1}),
    ("adaptive_k", {"alpha": 0.49}),
    ("adaptive_k", {"alpha": 5.01}),
    ("adaptive_k", {"alpha": float("nan")}),
    ("adaptive_k", {"alpha": True}),
    ("adaptive_k", {"alpha": "2"}),
    ("adaptive_k", {"min_score": 2, "scale": "rrf"}),
    ("adaptive_k", {"alhpa": 2.0}),
    ("entropy", {"low_entropy_k": 0}),
    ("entropy", {"low_entropy_k": 6}),
    ("entropy", {"high_entropy_k": 4}),
    ("entropy", {"medium_entropy_k": 2.0}),
    ("clustering", {"eps": 0}),
    ("clustering", {"eps": float("inf")}),
    ("clustering", {"min_cluster_size": 0}),
    ("clustering", {"top_per_cluster": 0}),
    ("fixed_k", {"k": 0}),
    ("fixed_k", {"k": True}),
    ("otsu", {"min_score": 1.5}),
    ("largest_gap", {"min_top": 2}),
    ("ratio_to_top", {"ratio": 1}),
    ("score_threshold", {"threshold": None}),
    ("score_threshold", {"threshold": 7.5}),
    ("entropy_normalized", {"low": 0.95}),
    ("entropy_normalized", {"high": 1.1}),
    ("conformal", {"recall": 1}),
    ("conformal", {"on": "rank"}),
    ("conformal", {"on": "ratio", "scale": "logit"}),
    ("expected_f1", {"unseen": -1}),
    ("expected_f1", {"beta": 0}),
]


def test_every_strategy_has_a_configuration_with_the_same_parameters_and_defaults():
    expected = {name: create_selection_strategy(name) for name in STRATEGIES}

    assert {name: {**one.params(), "scale": one.scale} for name, one in expected.items()} == {
        name: model().model_dump(exclude={"strategy"}) for name, model in CONFIGS.items()
    }
    assert {name: {*parameters(one), "strategy"} for name, one in STRATEGIES.items()} == {
        name: set(model.model_fields) for name, model in CONFIGS.items()
    }


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_a_configuration_builds_its_strategy_and_the_key_strategy_finds_it_again(name):
    config = CONFIGS[name]()

    assert create_selection_strategy(name) == create_selection_strategy(config)
    assert config == ANY.validate_python({"strategy": name})
    assert config == ANY.validate_json(config.model_dump_json())


def test_the_fields_of_the_seed():
    assert {"strategy": "elbow", "drop_threshold": 0.15, "min_score": 0.5, "scale": "similarity"} == (
        ElbowSelectionConfig().model_dump()
    )
    assert {"strategy": "adaptive_k", "alpha": 2.0, "min_score": 0.4, "scale": "similarity"} == (
        AdaptiveKSelectionConfig(alpha=2).model_dump()
    )
    assert [3, 5, 10, 0.3] == [
        getattr(EntropySelectionConfig(), key) for key in ("low_entropy_k", "medium_entropy_k", "high_entropy_k", "min_score")
    ]
    assert [0.1, 2, 3, 0.4] == [
        getattr(ClusterSelectionConfig(), key) for key in ("eps", "min_cluster_size", "top_per_cluster", "min_score")
    ]
    assert [5, None] == [FixedKSelectionConfig().k, FixedKSelectionConfig().min_score]


@pytest.mark.parametrize(("name", "given"), REFUSED)
def test_what_is_out_of_range_of_another_type_or_unknown_is_refused(name, given):
    with pytest.raises(ValidationError) as caught:
        ANY.validate_python({"strategy": name, **given})

    assert 1 == caught.value.error_count()


def test_bounds_are_bounds():
    assert [0.5, 5.0] == [AdaptiveKSelectionConfig(alpha=alpha).alpha for alpha in (0.5, 5.0)]
    assert [0.0, 1.0] == [AdaptiveKSelectionConfig(min_score=score).min_score for score in (0.0, 1.0)]
    assert 12.5 == AdaptiveKSelectionConfig(min_score=12.5, scale="bm25").min_score
    assert AdaptiveKSelectionConfig(min_score=None).min_score is None


def test_a_configuration_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        AdaptiveKSelectionConfig().alpha = 2.0


def test_retrieval_without_settings():
    config = RetrievalConfig()

    assert {
        "embedding_provider": "default",
        "max_k": 20,
        "min_k": 1,
        "candidate_k": 20,
        "rule_selection": {"scale": "similarity", "strategy": "adaptive_k", "alpha": 1.5, "min_score": 0.4},
        "scenario_selection": {
            "scale": "similarity",
            "strategy": "entropy",
            "low_entropy_k": 1,
            "medium_entropy_k": 2,
            "high_entropy_k": 3,
            "min_score": 0.6,
        },
        "memory_selection": {
            "scale": "similarity",
            "strategy": "clustering",
            "eps": 0.1,
            "min_cluster_size": 2,
            "top_per_cluster": 3,
            "min_score": 0.4,
        },
    } == config.model_dump()


@pytest.mark.parametrize(
    ("given", "expected"), [({"max_k": 30}, 30), ({"max_k": 30, "candidate_k": 100}, 100), ({"candidate_k": 3}, 3)]
)
def test_as_many_candidates_as_may_be_kept_unless_it_says_otherwise(given, expected):
    assert expected == RetrievalConfig(**given).candidate_k


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"max_k": 0}, "max_k"),
        ({"min_k": 21}, "min_k"),
        ({"min_k": -1}, "min_k"),
        ({"min_k": 5, "candidate_k": 4}, "candidate_k"),
        ({"max_kk": 4}, "max_kk"),
    ],
)
def test_limits_that_contradict_one_another_are_refused_at_their_key(given, key):
    with pytest.raises(ValidationError) as caught:
        RetrievalConfig(**given)

    assert (key,) == caught.value.errors()[0]["loc"]
