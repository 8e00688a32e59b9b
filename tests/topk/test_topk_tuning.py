"""Tuning and fitting: they find what is there, promise nothing that is not, and say when a fixed number does as well."""

from __future__ import annotations

import functools
import importlib
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jumar.topk
from jumar.errors import ScoreError, StrategyError
from jumar.topk.result import Scale
from jumar.topk.selection_file import read_selection, render_selection
from jumar.topk.settings import Selection
from jumar.topk.strategies import STRATEGIES
from jumar.topk.tuning import LabelledQuery
from jumar.topk.tuning.calibrate import calibrate_conformal, calibrate_expected_f1, fit_probabilities
from jumar.topk.tuning.metrics import Labels
from jumar.topk.tuning.tune import SIMPLEST_FIRST, Tuning, space, tune

DATA = Path(os.environ.get("JUMAR_DATA", Path(__file__).resolve().parents[2].parent / "shared" / "data"))


def clear(count: int, seed: int = 0) -> list[LabelledQuery]:
    """Queries with 1–12 relevant items above .7 and noise below .4: any look at the scores beats a number."""
    draw = np.random.default_rng(seed)
    found: list[LabelledQuery] = []
    for number in range(count):
        good = int(draw.integers(1, 13))
        scores = sorted([*draw.uniform(0.7, 0.9, good), *draw.uniform(0.1, 0.4, 20 - good)], reverse=True)
        found.append(LabelledQuery(f"q{number}", tuple(scores), tuple(place < good for place in range(20)), good))
    return found


def noise(count: int, seed: int = 0) -> list[LabelledQuery]:
    """Queries whose scores say nothing about how many are relevant."""
    draw = np.random.default_rng(seed)
    found: list[LabelledQuery] = []
    for number in range(count):
        scores = tuple(sorted(draw.uniform(0, 1, 20), reverse=True))
        labels = tuple(bool(draw.random() < (0.9 if place < 5 else 0.05)) for place in range(20))
        found.append(LabelledQuery(f"q{number}", scores, labels, sum(labels)))
    return found


@functools.cache
def tuned_on_few() -> Tuning:
    return tune(clear(8), resamples=20)


def value(figure: Any) -> float:
    assert figure.value is not None
    return figure.value


# ------------------------------------------------------------------------------------------------------------ tune


def test_what_is_there_is_found():
    found = tune(clear(30), resamples=300)
    assert value(found.quality) > 0.99
    assert found.strategy.name != "fixed_k"
    assert not found.fixed_k_as_good
    assert value(found.gain) > 0.1
    assert value(found.oracle) == 1.0


def test_where_scores_say_nothing_a_fixed_number_is_named():
    names = [tune(noise(30, seed), resamples=200) for seed in range(6)]
    assert all(found.fixed_k_as_good for found in names)
    assert [5] * 5 <= sorted(found.strategy.params().get("k", 0) for found in names)[1:]


def test_the_same_again_and_another_order_of_draws():
    assert tuned_on_few() == tune(clear(8), resamples=20)
    assert isinstance(tune(clear(8), resamples=20, seed=3), Tuning)


def test_held_out_figures_do_not_flatter():
    """Labels that are coin flips: the best of a thousand candidates looks good on what it was selected on, not on the rest."""
    draw = np.random.default_rng(4)
    gaps: list[float] = []
    for _ in range(8):
        rows = [
            LabelledQuery("q", tuple(sorted(draw.random(20), reverse=True)), tuple(draw.random(20) < 0.3), 20) for _ in range(12)
        ]
        found = tune(rows, "precision", resamples=100)
        labels = Labels.of(rows, 20)
        in_sample = max(labels.prefix_quality("precision").mean(axis=0))
        gaps.append(in_sample - value(found.quality))
    assert np.mean(gaps) > 0.02


@pytest.mark.parametrize("scale", ["similarity", "distance", "bm25", "rrf", "logit"])
def test_every_scale_is_tuned(scale: Scale):
    factor = {"similarity": 1.0, "distance": -1.0, "bm25": 20.0, "rrf": 0.03, "logit": 8.0}[scale]
    shift = {"distance": 1.0, "logit": -4.0}.get(scale, 0.0)
    rows = [
        LabelledQuery(each.query_id, tuple(factor * score + shift for score in each.scores), each.relevant, each.relevant_total)
        for each in clear(20)
    ]
    found = tune(rows, scale=scale, resamples=50)
    assert value(found.quality) > 0.97, found.strategy
    assert found.strategy.scale == scale


def test_abstaining_is_learned_when_it_is_allowed():
    outside = [
        LabelledQuery(f"o{number}", tuple(0.5 - 0.01 * (number + place) for place in range(20)), (False,) * 20, 0)
        for number in range(15)
    ]
    answered = tune([*clear(15), *outside], min_k=0, resamples=100)
    assert value(answered.quality) > 0.95
    assert value(tune([*clear(15), *outside], resamples=100).quality) < 0.6


@pytest.mark.parametrize("name", SIMPLEST_FIRST)
def test_every_alternative_can_be_written_and_read(name: str, fresh_place: Path):
    tuned = next(one.strategy for one in tuned_on_few().alternatives if one.strategy.name == name)
    Path("topk.toml").write_text(render_selection(Selection(strategy=tuned, max_k=20, min_k=1), {}))
    assert tuned == read_selection(Path("topk.toml")).strategy


def test_every_strategy_but_the_promised_recall_is_tried():
    assert {*STRATEGIES} - {"conformal"} == {one.strategy.name for one in tune(clear(5), resamples=10).alternatives}
    assert {*SIMPLEST_FIRST} <= {*STRATEGIES}
    for name in {*SIMPLEST_FIRST} - {"expected_f1"}:
        candidates = space(name, clear(5), max_k=20, scale="similarity")
        assert candidates[0].params() == type(candidates[0])().params()
        assert all(None not in each.params().values() for each in candidates[1:] if name not in {"fixed_k", "entropy_normalized"})
    assert [] == space("conformal", clear(5), max_k=20, scale="similarity") == space("elbow", clear(5), max_k=20, scale="logit")


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (clear(3), {}, "there are 3 labelled queries: give at least 4"),
        (clear(5), {"metric": "map"}, "metric is 'map'"),
        (clear(5), {"min_k": 5, "max_k": 4}, "min_k is 5 and max_k 4"),
    ],
)
def test_what_cannot_be_tuned(rows: list[LabelledQuery], options: dict[str, Any], message: str):
    with pytest.raises(ValueError) as caught:
        tune(rows, **options)
    assert message in str(caught.value)


def test_all_out_of_scope_or_all_the_same_is_no_accident():
    outside = [LabelledQuery(str(number), (0.5, 0.4), (False, False), 0) for number in range(5)]
    assert value(tune(outside, resamples=10).quality) == 0.0
    assert 0.0 <= value(tune(outside, min_k=0, resamples=10).quality) <= 1.0
    same = [LabelledQuery(str(number), (0.5,) * 5, (True,) * 5, 5) for number in range(5)]
    assert value(tune(same, resamples=10).quality) == 1.0
    assert value(tune([LabelledQuery(str(number), (), (), 2) for number in range(5)], resamples=10).quality) == 0.0


def test_the_functions_are_no_modules_whatever_was_imported():
    for module in ("metrics", "tune"):
        importlib.import_module(f"jumar.topk.tuning.{module}")
    assert callable(jumar.topk.tune)
    assert callable(jumar.topk.compare)


@pytest.mark.skipif(not (DATA / "retrieval").is_dir(), reason="the shared data is not here (JUMAR_DATA)")
@pytest.mark.parametrize("name", ["cranfield", "vaswani", "clinc"])
def test_on_public_runs_tuning_is_no_worse_than_a_tuned_number(name: str):
    from jumar.topk.rankings import read_runs

    found = tune(read_runs(DATA / "retrieval" / f"{name}_minilm.jsonl"), resamples=500)
    print(f"{name}: {found.strategy.name} {found.quality}, gain over fixed_k {found.gain}")
    assert found.gain.high is not None
    assert found.gain.high >= 0.0


# --------------------------------------------------------------------------------------------------- probabilities


def test_a_logistic_regression_is_found_again():
    draw = np.random.default_rng(0)
    features = np.column_stack([draw.normal(0.5, 0.2, 60_000), np.log(draw.integers(1, 50, 60_000))])
    logit = 6.0 * features[:, 0] - 0.8 * features[:, 1] - 1.5
    relevant = (draw.random(60_000) < 1 / (1 + np.exp(-logit))).astype(float)
    assert (6.0, -0.8, -1.5) == pytest.approx(fit_probabilities(features, relevant), abs=0.15)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 20), st.booleans()), max_size=30))
def test_coefficients_are_finite_and_never_against_the_scores(rows: list[tuple[float, int, bool]]):
    features = np.array([(score, math.log(rank)) for score, rank, _ in rows], dtype=float).reshape(len(rows), 2)
    slope, rank_slope, intercept = fit_probabilities(features, np.array([float(good) for *_, good in rows]))
    assert all(map(math.isfinite, (slope, rank_slope, intercept)))
    assert slope >= 0 >= rank_slope


def test_a_fitted_probability_keeps_what_is_relevant():
    strategy = calibrate_expected_f1(clear(30))
    reached = Labels.of(clear(30, seed=9), 20)
    from jumar.topk.tuning.metrics import choose

    assert reached.mask_quality("f1", choose(reached, strategy)).mean() > 0.97
    with pytest.raises(ScoreError, match="no queries to fit to"):
        calibrate_expected_f1([])


# ------------------------------------------------------------------------------------------------------- conformal


@pytest.mark.parametrize("on", ["score", "ratio"])
def test_the_promised_recall_is_kept_on_new_queries(on: Any):
    reached: list[float] = []
    for seed in range(40):
        strategy = calibrate_conformal(noise(30, seed), recall=0.8, on=on)
        new = [each for each in noise(60, seed + 1000) if any(each.relevant)]
        labels = Labels.of(new, 20)
        from jumar.topk.tuning.metrics import choose

        reached.append(float(labels.mask_quality("recall", choose(labels, strategy)).mean()))
    print(f"recall asked for .8, reached {np.mean(reached):.3f}")
    assert 0.795 <= np.mean(reached) <= 0.86


def test_a_threshold_is_the_highest_that_holds():
    rows = [LabelledQuery(str(number), (0.9, 0.5), (True, True), 2) for number in range(9)]
    assert 0.9 == calibrate_conformal(rows, recall=0.4).threshold
    assert 0.5 == calibrate_conformal(rows, recall=0.6).threshold
    assert (9, 0.6) == (calibrate_conformal(rows, recall=0.6).queries, calibrate_conformal(rows, recall=0.6).recall)
    near = [LabelledQuery(each.query_id, (0.1, 0.5), (True, True), 2) for each in rows]
    assert 0.5 == calibrate_conformal(near, recall=0.6, scale="distance").threshold


def test_too_few_queries_promise_nothing():
    with pytest.raises(StrategyError, match=r"at least 9 labelled queries .* there are 8"):
        calibrate_conformal(clear(8), recall=0.9)
    assert calibrate_conformal(clear(9), recall=0.9).threshold is not None
    with pytest.raises(StrategyError, match="recall is 1"):
        calibrate_conformal(clear(8), recall=1.0)
