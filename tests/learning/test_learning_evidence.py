"""What held-out items say about a set of patterns."""

from __future__ import annotations

import json
from statistics import fmean, median

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from jumar.judging import Item
from jumar.learning.material import Target
from jumar.learning.proof.evidence import Baselines, compare_with_judge, fit_baselines


def targets(scores, lengths, groups, readings=None) -> list[Target]:
    return [
        Target(
            Item(f"i{number}", "x" * int(length), group=group),
            float(score),
            (float(score),) if readings is None else readings[number],
        )
        for number, (score, length, group) in enumerate(zip(scores, lengths, groups, strict=True))
    ]


def sample(seed: int, groups: int = 40, each: int = 5, *, between: float = 0.5):
    draw = np.random.default_rng(seed)
    names = np.repeat([f"g{number}" for number in range(groups)], each)
    quality = draw.normal(0, between, groups).repeat(each) + draw.normal(0, 0.9, groups * each)
    lengths = np.exp(draw.normal(5, 0.5, groups * each)).astype(int) + 1
    scores = np.clip(3.2 + quality + 0.3 * np.log(lengths / 150), 1, 5)
    return scores, lengths, names.tolist(), quality, draw


def test_a_score_that_follows_the_judge_tracks_and_the_figures_are_what_they_are_called():
    scores, lengths, groups, _, draw = sample(1)
    judged = targets(scores, lengths, groups)
    cheap = np.clip(scores + draw.normal(0, 0.4, scores.size), 1, 5)
    baselines = Baselines(constant=3.0, intercept=1.5, slope=0.3)
    found = compare_with_judge(judged, cheap.tolist(), baselines)
    line = [min(5.0, max(1.0, 1.5 + 0.3 * np.log1p(one.length))) for one in judged]
    assert "tracks" == found.verdict
    assert (200, 40) == (found.items, found.groups)
    assert found.figures["mae"] == pytest.approx(fmean(abs(a - b) for a, b in zip(cheap, scores, strict=True)))
    assert found.figures["constant_mae"] == pytest.approx(fmean(abs(3.0 - one) for one in scores))
    assert found.figures["length_mae"] == pytest.approx(fmean(abs(a - b) for a, b in zip(line, scores, strict=True)))
    assert found.figures["spearman"] == pytest.approx(spearmanr(cheap, scores)[0])
    assert found.figures["length_spearman"] == pytest.approx(spearmanr(line, scores)[0])
    ranks = [np.concatenate([rankdata(one) for one in np.split(values, 40)]) - 3.0 for values in (scores, cheap)]
    within = (ranks[0] @ ranks[1]) / np.sqrt((ranks[0] @ ranks[0]) * (ranks[1] @ ranks[1]))
    assert found.figures["within_spearman"] == pytest.approx(within)
    assert {"mae", "spearman", "interval", "constant_mae", "length_mae", "length_spearman"} <= set(found.heldout)
    low, high = found.heldout["interval"]
    assert low < found.heldout["mae"] < high
    assert found.gap.held is True
    assert json.loads(json.dumps(found.to_json())) == found.to_json()
    assert compare_with_judge(judged, cheap.tolist(), baselines).to_json() == found.to_json()


def test_scores_that_know_the_group_and_nothing_of_the_item_do_not_track():
    scores, lengths, groups, _, draw = sample(2, between=1.0)
    means = scores.reshape(40, 5).mean(axis=1).repeat(5)
    judged = targets(scores, lengths, groups)
    found = compare_with_judge(judged, np.clip(means + draw.normal(0, 0.05, 200), 1, 5).tolist(), fit_baselines(judged))
    held = {one.name: one.held for one in found.checks}
    assert held["better_than_constant"] is True
    assert held["better_than_length"] is True
    assert held["ranks_better_than_length"] is True
    assert held["ranks_within_groups"] is not True
    assert "not_proven" == found.verdict


def test_a_score_that_is_worse_than_a_constant_fails():
    scores, lengths, groups, _, _ = sample(3)
    judged = targets(scores, lengths, groups)
    found = compare_with_judge(judged, (6 - scores).tolist(), fit_baselines(judged))
    assert "fails" == found.verdict


@pytest.mark.parametrize("cheap", [[3.0] * 200, None])
def test_a_constant_and_the_length_itself_prove_nothing(cheap):
    scores, lengths, groups, _, _ = sample(4)
    judged = targets(scores, lengths, groups)
    baselines = fit_baselines(judged)
    found = compare_with_judge(judged, cheap or baselines.predict(lengths.tolist())["length"].tolist(), baselines)
    assert "tracks" != found.verdict


@pytest.mark.parametrize(("groups", "each"), [(19, 5), (29, 1)])
def test_few_groups_or_items_prove_nothing_however_good_the_score(groups, each):
    scores, lengths, names, _, _ = sample(5, groups, each)
    judged = targets(scores, lengths, names)
    assert "not_proven" == compare_with_judge(judged, scores.tolist(), fit_baselines(judged)).verdict


def test_items_that_are_groups_by_themselves_are_asked_for_no_ranks_inside_of_groups():
    scores, lengths, _, _, _ = sample(6)
    judged = targets(scores, lengths, [None] * 200)
    found = compare_with_judge(judged, scores.tolist(), fit_baselines(judged))
    assert "ranks_within_groups" not in {one.name for one in found.checks}
    assert "tracks" == found.verdict


def test_a_large_but_faithful_error_tracks_and_does_not_meet_the_gap():
    draw = np.random.default_rng(7)
    scores = draw.choice([1.0, 5.0], 200)
    judged = targets(scores, [100] * 200, [f"g{number // 5}" for number in range(200)])
    found = compare_with_judge(judged, (3 + 0.6 * (scores - 3) / 2).tolist(), fit_baselines(judged))
    assert "tracks" == found.verdict
    assert found.gap.held is False


def test_of_open_items_the_baselines_are_out_of_fold():
    scores, lengths, groups, _, _ = sample(8)
    judged = targets(scores, lengths, groups)
    inside = compare_with_judge(judged, scores.tolist(), fit_baselines(judged)).figures
    outside = compare_with_judge(judged, scores.tolist(), None).figures
    assert (outside["length_mae"] or 0) > (inside["length_mae"] or 0)


def test_baselines_are_the_median_and_the_least_squares_line():
    scores, lengths, groups, _, _ = sample(9)
    found = fit_baselines(targets(scores, lengths, groups))
    slope, intercept = np.polyfit(np.log1p(lengths), scores, 1)
    assert median(scores) == found.constant
    assert (slope, intercept) == (pytest.approx(found.slope), pytest.approx(found.intercept))
    assert 0.0 == fit_baselines(targets([1, 5], [10, 10], [None, None])).slope
    with pytest.raises(ValueError, match="no open items"):
        fit_baselines([])


def test_the_judge_s_own_noise_stands_beside():
    judged = targets([3, 4], [10, 20], ["a", "b"], [(2.0, 4.0), (4.0, 4.0)])
    noise = compare_with_judge(judged, [3, 4], fit_baselines(judged)).noise
    assert noise is not None
    assert 1.0 == noise.mean_abs_difference


def test_sizes_that_differ_and_scores_that_are_none_are_refused():
    judged = targets([3, 4], [10, 20], ["a", "b"])
    for cheap in ([3.0], [3.0, float("nan")]):
        with pytest.raises(ValueError, match="as many of both"):
            compare_with_judge(judged, cheap, None)
