"""What a default means on scores of another kind: nothing, and nobody is told a number that says nothing."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import call

from jumar.errors import ConfigError, StrategyError
from jumar.topk import (
    STRATEGIES,
    ScoredItem,
    SelectionStrategy,
    StagedSelection,
    compare,
    create_selection_strategy,
    select_batch,
)
from jumar.topk.config import CONFIGS
from jumar.topk.contract import SCALES
from jumar.topk.result import SelectionResult
from jumar.topk.selection_file import read_selection, render_selection
from jumar.topk.settings import Selection, load_retrieval, plain_value

FUSED = [0.0328, 0.0323, 0.0164, 0.0161, 0.0159]
OTHERS = [scale for scale in SCALES if scale != "similarity"]
NEEDED = {"clustering": ["eps"], "expected_f1": ["slope", "intercept"], "score_threshold": ["threshold"]}


def items(scores: Any) -> list[ScoredItem[int]]:
    return [ScoredItem(position, score) for position, score in enumerate(scores)]


@pytest.fixture(autouse=True)
def _here(fresh_place: Path):
    return fresh_place


def scores_file(*rows: dict[str, Any]) -> Path:
    path = Path("in.jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@pytest.mark.parametrize("scale", OTHERS)
def test_without_a_minimum_of_ones_own_there_is_none_on_another_scale(name: str, scale: Any):
    known: Any = STRATEGIES[name]
    if scale not in known.SCALES:
        return
    if name in NEEDED:
        words = " and ".join(NEEDED[name])
        for build in (lambda: create_selection_strategy(name, scale=scale), lambda: CONFIGS[name](scale=scale)):
            with pytest.raises(ValueError, match=f"{name} has no default {words} for scale '{scale}', only for similarities"):
                build()
        return
    strategy = create_selection_strategy(name, scale=scale)
    assert strategy.params().get("min_score") is None
    assert strategy == create_selection_strategy(CONFIGS[name](scale=scale))
    assert strategy == create_selection_strategy(create_selection_strategy(name), scale=scale)


def test_what_is_said_holds_on_any_scale():
    assert 7.5 == create_selection_strategy("adaptive_k", scale="bm25", min_score=7.5).params()["min_score"]
    config: Any = CONFIGS["adaptive_k"]
    assert 7.5 == config(scale="bm25", min_score=7.5).min_score
    assert 0.3 == create_selection_strategy(create_selection_strategy("otsu", min_score=0.3), scale="rrf").params()["min_score"]
    with pytest.raises(StrategyError, match=r"0\.5 would take more than 30 lists"):
        create_selection_strategy("adaptive_k", scale="rrf", min_score=0.5)
    assert create_selection_strategy("adaptive_k", scale="rrf", min_score=0.49)


def test_fused_scores_are_cut_where_they_break():
    path = scores_file({"query_id": "a", "scores": FUSED})
    silent = call("topk", "select", path, "--scale", "rrf", "--strategy", "adaptive_k", "--json", check=0)
    assert (2, "") == (json.loads(silent.out)["kept"], silent.err)
    assert "jumar: note: no score is above 0.033: if they are fused ranks, say --scale rrf" in call("topk", "select", path).err
    refused = call("topk", "select", path, "--scale", "rrf", "--strategy", "score_threshold", check=2)
    assert "score_threshold has no default threshold for scale 'rrf'" in refused.err


def test_comparing_leaves_out_what_has_no_default_and_says_so():
    rows = [{"query_id": "a", "scores": FUSED, "relevant": [1, 1, 0, 0, 0]}]
    found = compare(rows, scale="rrf")
    assert sorted(NEEDED) == sorted(found.refused)
    said = " ".join(call("topk", "compare", scores_file(*rows), "--scale", "rrf", check=0).out.split())
    assert "without score_threshold: score_threshold has no default threshold" in said
    with pytest.raises(StrategyError, match="no default threshold for scale 'rrf'"):
        compare(rows, ["score_threshold"], scale="rrf")
    with pytest.raises(StrategyError, match="there are no strategies to compare"):
        compare(rows, [])


def test_settings_of_another_scale_lose_the_built_in_minimum_and_nothing_that_is_said():
    start = "[pipeline.retrieval.scenario_selection]\n"
    Path("a.toml").write_text(start + 'scale = "rrf"')
    Path("b.toml").write_text(start + 'scale = "rrf"\nmin_score = 0.02')
    Path("c.toml").write_text('[pipeline.retrieval.memory_selection]\nscale = "bm25"')
    assert (None, 3) == (
        (found := load_retrieval("a.toml", environ={}).scenario_selection).min_score,
        found.high_entropy_k,
    )
    assert 0.02 == load_retrieval("b.toml", environ={}).scenario_selection.min_score
    with pytest.raises(ConfigError, match="clustering has no default eps for scale 'bm25'"):
        load_retrieval("c.toml", environ={})


# ------------------------------------------------------------------------------------------------------------- none


@pytest.mark.parametrize(("value", "expected"), [("none", None), (" Null ", None), ("score", "score"), (0.4, 0.4)])
def test_none_can_be_written(value: Any, expected: Any):
    assert expected == plain_value(value)


def test_no_minimum_can_be_asked_for_everywhere():
    low = [0.3, 0.29, 0.28, 0.1]
    path = scores_file({"query_id": "a", "scores": low})

    def kept(*options: object) -> int:
        return json.loads(call("topk", "select", path, "--json", "--strategy", "adaptive_k", *options, check=0).out)["kept"]

    def configured(path_of_settings: str) -> int:
        return json.loads(call("topk", "select", path, "--json", "--config", path_of_settings, check=0).out)["kept"]

    assert (1, 3) == (kept(), kept("--param", "min_score=none"))
    Path("topk.toml").write_text('[selection]\nstrategy = "adaptive_k"\nmin_score = "none"\n')
    assert 3 == configured("topk.toml")
    Path("settings.toml").write_text('[pipeline.retrieval.rule_selection]\nstrategy = "adaptive_k"\nmin_score = "none"\n')
    assert 3 == configured("settings.toml")
    place = "JUMAR_PIPELINE__RETRIEVAL__RULE_SELECTION__MIN_SCORE"
    assert load_retrieval(environ={place: "none"}).rule_selection.min_score is None


@pytest.mark.parametrize("table", [None, "rule_selection"])
def test_none_that_is_no_default_is_written_and_read_again(table: str | None):
    for params in ({"min_score": None}, {"scale": "bm25"}, {"scale": "bm25", "min_score": 2.0}):
        strategy = create_selection_strategy("adaptive_k", **params)
        text = render_selection(Selection(strategy=strategy, max_k=20, min_k=1), {}, table=table)
        Path("topk.toml").write_text(text)
        assert strategy == read_selection(Path("topk.toml")).strategy
        assert ('min_score = "none"' in text) == (params == {"min_score": None})


# ------------------------------------------------------------------------------------------- odd items, odd numbers


def test_what_has_no_score_is_named():
    with pytest.raises(TypeError, match=r"the item at position 1 is 0\.5: give ScoredItem\(item, score\)"):
        create_selection_strategy("otsu").select([ScoredItem("a", 0.9), 0.5])  # pyright: ignore[reportArgumentType]


def test_items_may_come_one_after_the_other():
    for strategy in ("adaptive_k", "clustering"):
        chosen = create_selection_strategy(strategy)
        some: Any = (one for one in items([0.92, 0.89, 0.1]))
        assert [0, 1] == [one.item for one in chosen.select(some).selected]
        assert [0, 1] == [one.item for one in StagedSelection(chosen).select(iter(items([0.92, 0.89, 0.1]))).selected]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("score", ["0.9", b"0.9", 1j, None, pytest.param(10**5000, id="huge")])
def test_what_is_no_number_is_no_score(score: Any):
    for scores in ([score], [0.95, score]):
        with pytest.raises(ValueError, match=f"the score at position {len(scores) - 1} is "):
            create_selection_strategy("otsu").select(items(scores))
        with pytest.raises(ValueError, match=f"query 0: the score at position {len(scores) - 1} is "):
            select_batch([scores], "otsu")


def test_numbers_of_other_libraries_leave_no_trace():
    strategy = create_selection_strategy("adaptive_k", alpha=np.float32(1.5), min_score=Fraction(2, 5))
    assert {"alpha": float, "min_score": float} == {name: type(value) for name, value in strategy.params().items()}
    assert int is type(create_selection_strategy("fixed_k", k=np.int64(2)).params()["k"])
    for name in STRATEGIES:
        result = create_selection_strategy(name).select(items([0.9, Fraction(4, 5), 0.5, 0.45]))
        assert result.metadata == json.loads(json.dumps(result.metadata))


def test_the_position_of_a_score_out_of_order_is_that_before_others_were_dropped():
    with pytest.raises(ValueError, match=r"position 3 \(0\.9\) is better than position 1 \(0\.8\)"):
        create_selection_strategy("otsu").select(items([float("nan"), 0.8, float("nan"), 0.9, 0.1]), on_invalid="drop")


def test_words_that_are_none():
    with pytest.raises(StrategyError, match="on is \\[1\\]"):
        create_selection_strategy("conformal", on=[1])
    with pytest.raises(StrategyError, match="ties is array"):
        create_selection_strategy("otsu").select(items([0.9]), ties=np.array(["split", "keep"]))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("scores", [[0.0, 0.0, -5e-324], [5e-324, 0.0, 0.0], [1e-310, 5e-324, 0.0], [1e150, 0.0, -1e150]])
def test_at_the_ends_of_the_range_one_and_many_agree(scores: list[float]):
    for name in STRATEGIES:
        for params in ({}, {"min_score": None} if "min_score" in CONFIGS[name].model_fields else {}):
            strategy = create_selection_strategy(name, **params)
            alone = strategy.select(items(scores), 20, 0)
            assert json.dumps(alone.metadata, allow_nan=False)
            assert len(alone.selected) == select_batch([scores], strategy, 20, 0).tolist()[0], name


# ------------------------------------------------------------------------------------------- strategies of your own


class FirstTwo(SelectionStrategy):
    """As it was written before there were ties and dropping."""

    @property
    def name(self) -> str:
        return "first_two"

    def select(self, items: Any, max_k: int = 20, min_k: int = 1) -> SelectionResult[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]  # noqa: ARG002
        chosen = list(items)[: min(2, max_k)]
        return SelectionResult(chosen, chosen[-1].score if chosen else 0.0, self.name, {})


def test_a_strategy_that_knows_only_limits_works_in_a_batch_in_stages_and_is_compared():
    assert [2, 2] == select_batch([[0.9, 0.8, 0.1]] * 2, FirstTwo()).tolist()
    assert 2 == len(StagedSelection(FirstTwo()).select(items([0.9, 0.8, 0.1])).selected)
    row = {"scores": [0.9, 0.8, 0.1], "relevant": [1, 1, 0]}
    assert 1.0 == compare([row], [FirstTwo()]).rows[0].f1.value
    explained = FirstTwo().select(items([0.9, 0.8, 0.1])).explain()
    assert (2, None, (0.9, 0.8)) == (explained.kept, explained.by_rule, explained.scores)
    assert "first_two keeps 2: the strategy says no more; what was left out is not known" in str(explained)


@pytest.mark.parametrize("other", [SimpleNamespace(select=print, name="x"), StagedSelection("otsu")])
def test_what_only_looks_like_a_strategy_is_told_what_to_derive_from(other: object):
    with pytest.raises(StrategyError, match=r"has a select, but is no strategy: derive it from jumar\.topk\.SelectionStrategy"):
        select_batch([[0.9]], other)
