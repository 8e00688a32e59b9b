"""Agreement of two judges: against the libraries, against the obvious, and on data where a mean hides everything."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from jumar.judging.agreement import (
    RankPairs,
    Ranks,
    agreement,
    bootstrap,
    folds_by_group,
    group_numbers,
    kendall,
    quadratic_kappa,
    rank_correlation,
    resamples,
    spearman,
    times_drawn,
)
from jumar.judging.tracking import predict_baselines, track

GESTALTS = st.lists(st.sampled_from([1.0, 1.5, 2.0, 2.25, 3.0, 3.5, 4.0, 4.75, 5.0]), min_size=2, max_size=40)


@st.composite
def two_judges(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    one = draw(GESTALTS)
    other = draw(st.lists(st.floats(1, 5), min_size=len(one), max_size=len(one)))
    return np.array(one), np.array(other)


@given(two_judges())
def test_ranks_and_kappa_are_those_of_the_libraries(pair: tuple[Any, Any]) -> None:
    one, other = pair
    found = agreement(one, other)
    assert found.mae == pytest.approx(sum(abs(a - b) for a, b in zip(one, other, strict=True)) / len(one))
    assert found.bias == pytest.approx(float(np.mean(other)) - float(np.mean(one)), abs=1e-12)
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert (None, None) == (found.spearman, found.kendall)
        return
    library: Any = stats
    assert found.spearman == pytest.approx(library.spearmanr(one, other).statistic, abs=1e-9)
    assert found.kendall == pytest.approx(library.kendalltau(one, other).statistic, abs=1e-9)
    whole = [[math.floor(score + 0.5) for score in scores] for scores in (one, other)]
    if len({*whole[0], *whole[1]}) > 1:
        expected = cohen_kappa_score(*whole, weights="quadratic", labels=[1, 2, 3, 4, 5])
        assert found.quadratic_kappa == pytest.approx(expected, abs=1e-9)


@given(two_judges(), st.integers(0, 1000))
def test_ranks_of_a_resample_are_those_of_the_items_that_were_drawn(pair: tuple[Any, Any], seed: int) -> None:
    one, other = pair
    at = np.random.default_rng(seed).integers(0, one.size, one.size)
    drawn = times_drawn(at, one.size)
    found = rank_correlation(Ranks(one).of(drawn), Ranks(other).of(drawn), drawn)
    expected = spearman(one[at], other[at])
    assert (found is None) == (expected is None)
    assert found is None or found == pytest.approx(expected, abs=1e-9)
    by_pairs, by_library = RankPairs(one, other).kendall(drawn), kendall(one[at], other[at])
    assert (by_pairs is None) == (by_library is None)
    assert by_pairs is None or by_pairs == pytest.approx(by_library, abs=1e-9)


def test_kappa_does_not_exist_where_both_say_one_thing() -> None:
    assert quadratic_kappa(np.array([4.0, 4.1]), np.array([3.9, 4.0])) is None
    assert quadratic_kappa(np.array([4.0, 4.0]), np.array([2.0, 3.0])) == 0.0


def test_half_a_point_is_not_more_than_half_a_point() -> None:
    # 4.1 - 3.6 is 0.49999999999999956, 4.6 - 4.1 is 0.5, 3.6 - 3.1 is 0.5000000000000004… whichever way it was rounded
    exact = agreement(np.array([4.1, 4.6, 3.6]), np.array([3.6, 4.1, 3.1]))
    assert 0.0 == exact.off_by_more_than_half
    assert 1.0 == agreement(np.array([4.11]), np.array([3.6])).off_by_more_than_half


def test_one_item_has_an_error_and_no_rank() -> None:
    found = track([4.0], [3.0], lengths=[10], groups=[None])
    assert (1.0, -1.0, None, "not_proven") == (found.agreement.mae, found.agreement.bias, found.agreement.spearman, found.verdict)
    assert set(found.intervals.values()) == {None}


@pytest.mark.parametrize(
    ("expensive", "cheap", "lengths"),
    [([], [], []), ([1.0], [1.0, 2.0], [3]), ([math.nan], [1.0], [3]), ([1.0], [math.inf], [3])],
)
def test_what_cannot_be_compared_is_refused(expensive: list[float], cheap: list[float], lengths: list[int]) -> None:
    with pytest.raises(ValueError, match=r"finite|scores"):
        track(expensive, cheap, lengths=lengths, groups=[None] * len(expensive))


@given(st.lists(st.sampled_from([None, "a", "b", "c", "d"]), min_size=1, max_size=60), st.integers(1, 12))
def test_folds_keep_groups_whole_and_sizes_even(groups: list[str | None], count: int) -> None:
    numbers, folds = group_numbers(groups), folds_by_group(groups, count)
    assert all(len({folds[i] for i in np.flatnonzero(numbers == one)}) == 1 for one in set(numbers.tolist()))
    assert all(
        (numbers[i] == numbers[j]) == (i == j or (a is not None and a == b))
        for (i, a), (j, b) in product(enumerate(groups), repeat=2)
    )
    sizes = np.bincount([folds[np.flatnonzero(numbers == one)[0]] for one in sorted(set(numbers.tolist()))])
    assert sizes.max() - sizes.min() <= 1


def test_a_group_has_the_same_fold_wherever_it_stands() -> None:
    names: list[str | None] = [f"q{number}" for number in range(30)]
    there = dict(zip(names, folds_by_group(names), strict=True))
    back = dict(zip(reversed(names), folds_by_group(list(reversed(names))), strict=True))
    assert there == back


def test_a_baseline_never_saw_the_item_it_is_for() -> None:
    """With one outlier a group of its own, its prediction is what all the others are."""
    scores = np.array([2.0] * 19 + [5.0])
    predicted = predict_baselines(scores, [100] * 20, [f"g{number}" for number in range(20)])
    assert (2.0, 2.0) == (predicted["constant"][19], predicted["length_only"][19])


def test_length_alone_is_found_where_length_is_all() -> None:
    lengths = [10 * (number + 1) for number in range(100)]
    scores = [1.0 + 4.0 * math.log1p(one) / math.log1p(1000) for one in lengths]
    found = track(scores, scores, lengths=lengths, groups=[None] * 100)
    assert found.baselines["length_only"].mae < 1e-9
    assert found.baselines["constant"].mae > 0.1
    # as good as length is not better than length: a perfect judge of such items has proven nothing
    assert "not_proven" == found.verdict


def test_the_interval_of_a_mean_is_that_of_the_textbook() -> None:
    random = np.random.default_rng(1)
    values = random.normal(0, 1, 400)
    found = bootstrap([None] * 400, lambda at: {"mean": float(values[at].mean())}, count=2000)["mean"]
    assert found is not None
    half = 1.96 * values.std() / 20
    assert found.low == pytest.approx(values.mean() - half, abs=0.015)
    assert found.high == pytest.approx(values.mean() + half, abs=0.015)


def test_items_of_one_group_are_one_piece_of_evidence() -> None:
    random = np.random.default_rng(2)
    each = random.normal(0, 1, 40)
    values = np.repeat(each, 10)
    groups: list[str | None] = [f"g{number // 10}" for number in range(400)]
    whole = bootstrap(groups, lambda at: {"mean": float(values[at].mean())})["mean"]
    single = bootstrap([None] * 400, lambda at: {"mean": float(values[at].mean())})["mean"]
    assert whole is not None
    assert single is not None
    assert whole.high - whole.low > 2.5 * (single.high - single.low)


def test_intervals_repeat_and_many_items_have_fewer_resamples() -> None:
    values = np.arange(50.0)
    once, again = (bootstrap([None] * 50, lambda at: {"mean": float(values[at].mean())}) for _ in range(2))
    assert once == again
    assert (1000, 1000, 200) == (resamples(1), resamples(20_000), resamples(1_000_000))


def test_a_figure_that_seldom_exists_has_no_interval() -> None:
    found = bootstrap([None] * 10, lambda at: {"seldom": 1.0 if int(at[0]) == 3 else None, "always": 1.0})
    assert (None, (1.0, 1.0)) == (found["seldom"], found["always"])


def good_judge(count: int = 200) -> tuple[list[float], list[float], list[int], list[str | None]]:
    random = np.random.default_rng(3)
    truth = random.choice([1.0, 2.0, 3.0, 4.0, 5.0], count)
    return (
        truth.tolist(),
        np.clip(truth + random.normal(0, 0.2, count), 1, 5).tolist(),
        random.integers(50, 500, count).tolist(),
        [None] * count,
    )


def test_a_judge_that_tracks_is_told_from_one_that_does_not_and_from_too_few_items() -> None:
    truth, guess, lengths, groups = good_judge()
    assert "tracks" == track(truth, guess, lengths=lengths, groups=groups).verdict
    assert "not_proven" == track(truth[:29], guess[:29], lengths=lengths[:29], groups=groups[:29]).verdict
    few = [f"g{number % 19}" for number in range(200)]
    assert "not_proven" == track(truth, guess, lengths=lengths, groups=few).verdict
    assert "tracks" == track(truth, guess, lengths=lengths, groups=[f"g{number % 40}" for number in range(200)]).verdict
    shuffled = np.random.default_rng(4).permutation(guess).tolist()
    found = track(truth, shuffled, lengths=lengths, groups=groups)
    assert ("does_not_track", False) == (found.verdict, {one.name: one.held for one in found.checks}["abs_gap"])


def test_a_saturated_judge_proves_nothing_and_nothing_is_nan() -> None:
    _, guess, lengths, groups = good_judge()
    found = track([4.0] * 200, [4.0 + (score - 3) / 100 for score in guess], lengths=lengths, groups=groups)
    assert found.agreement.spearman is None
    assert found.verdict != "tracks"
    assert "NaN" not in json.dumps(found.to_json(), allow_nan=False)


@settings(max_examples=30)
@given(st.integers(0, 1000))
def test_the_order_of_the_items_decides_nothing_about_the_figures(seed: int) -> None:
    truth, guess, lengths, _ = good_judge(60)
    order = np.random.default_rng(seed).permutation(60)
    one = agreement(np.array(truth), np.array(guess))
    other = agreement(np.array(truth)[order], np.array(guess)[order])
    for name, value in one.to_json().items():
        assert other.to_json()[name] == pytest.approx(value, abs=1e-12)
    assert len(lengths) == 60


def test_the_constant_of_gap_zero_is_found_out(recorded_data: Path) -> None:
    """vicuna: the constant 4.15 has a mean gap of 0.006, and 47 % of its items are off by more than half a point."""
    rows = [json.loads(line) for line in (recorded_data / "judged" / "vicuna.jsonl").read_text("utf-8").splitlines()]
    truth = [median(row["judge_scores"]) for row in rows]
    found = track(
        truth,
        [4.15] * len(rows),
        lengths=[len(row["text"]) for row in rows],
        groups=[row["group"] for row in rows],
        readings=[row["judge_scores"] for row in rows],
    )
    assert abs(found.agreement.bias) < 0.01
    assert 0.46 < found.agreement.off_by_more_than_half < 0.48
    assert "does_not_track" == found.verdict
    assert found.noise is not None
    assert 0.2 < found.noise.mean_abs_difference < 0.5
