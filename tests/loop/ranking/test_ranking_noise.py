"""Noise: who is within it, who is selected among those, and that nothing changes where nothing is known of it."""

from __future__ import annotations

import math

import pytest
from noise_kit import HIGHEST, NOISY, later, view

from jumar.errors import NothingEvaluatedError
from jumar.loop.ranking.choose import choose, peers
from jumar.loop.ranking.confirmed import seen
from jumar.loop.ranking.noise import (
    MOST_DEGREES,
    Evidence,
    finalists,
    finals,
    loop_noise,
    measure,
    merged,
    ranked,
    select,
    student_cdf,
    student_quantile,
)
from jumar.model import IterationView, NoiseRules, ScoreReading, SelectionCriteria
from jumar.model.records import Repeats

VERIFIED = SelectionCriteria(threshold=None)


# ------------------------------------------------------------------------------------------------------------- Student's t


def test_the_quantiles_of_the_tables() -> None:
    table = {
        (0.95, 1): 6.3138,
        (0.95, 2): 2.9200,
        (0.975, 5): 2.5706,
        (0.99, 10): 2.7638,
        (0.95, 30): 1.6973,
        (0.995, 120): 2.6174,
    }
    for (probability, degrees), value in table.items():
        assert value == pytest.approx(student_quantile(probability, degrees), abs=1e-4)
    assert 0.0 == pytest.approx(student_quantile(0.5, 7), abs=1e-9)
    assert student_quantile(0.95, MOST_DEGREES) == student_quantile(0.95, 10**9)


def test_what_is_no_probability_and_no_degree() -> None:
    for probability in (0.49, 1.0, math.nan):
        with pytest.raises(ValueError, match="probability"):
            student_quantile(probability, 3)
    with pytest.raises(ValueError, match="degrees"):
        student_cdf(1.0, 0)


# ------------------------------------------------------------------------------------------------------------------ noise


def test_the_variance_is_pooled_within_iterations_and_never_between_them() -> None:
    noise = measure([(Repeats("worth", (0.1, 0.3)),), (Repeats("worth", (0.7, 0.7, 1.0)),)], {})
    assert noise is not None
    variance, degrees = noise.sources["worth", 0]
    assert (pytest.approx((0.02 + 0.06) / 3), 3) == (variance, degrees)
    assert math.sqrt(variance / 4) * 100 == pytest.approx(noise.standard_error((Repeats("worth", (0.5,) * 4),)))


def test_weights_and_shared_dimensions_make_the_noise_of_a_score() -> None:
    noise = measure([(Repeats("a", (0.2, 0.4)), Repeats("a", (0.5, 0.5)), Repeats("b", (0.5, 0.6)), Repeats("c", (0.5,)))], {})
    assert noise is not None
    assert {("a", 0): 1, ("a", 1): 1, ("b", 0): 1} == {key: source.degrees for key, source in noise.sources.items()}
    answers = (Repeats("a", (0.2, 0.4)), Repeats("a", (0.5, 0.5)), Repeats("b", (0.5, 0.6)), Repeats("c", (0.5,)))
    # a counts a third, and its two scorers half of that each
    assert (100 / 6) ** 2 * 0.02 / 2 + (100 / 3) ** 2 * 0.005 / 2 == pytest.approx(noise.variance(answers)[0])
    weighted = measure([answers], {"a": 0.0, "b": 1.0, "c": 1.0, "gone": 5.0})
    assert weighted is not None
    assert (pytest.approx(50**2 * 0.005 / 2), 1) == weighted.variance(answers)
    unweighted = measure([answers], {"gone": 5.0})
    assert unweighted is not None
    assert noise.variance(answers) == unweighted.variance(answers)


def test_nothing_asked_twice_is_unknown_and_equal_answers_are_no_noise() -> None:
    assert None is measure([(Repeats("worth", (0.5,)),)], {})
    noise = measure([(Repeats("worth", (0.5, 0.5)),)], {})
    assert noise is not None
    assert (0.0, 1) == noise.variance((Repeats("worth", (0.5,)),))
    assert 0.0 == noise.width(0.99, (Repeats("worth", (0.5,)),))
    assert 0.0 == noise.standard_error((Repeats("other", (0.5,)),))


def test_readings_of_one_candidate_are_merged_scorer_by_scorer() -> None:
    first = (Repeats("a", (0.1, 0.2)), Repeats("b", (0.5,)), Repeats("a", (0.9,)))
    assert (Repeats("a", (0.1, 0.2, 0.3)), Repeats("a", (0.9,)), Repeats("b", (0.5, 0.4))) == merged(
        [first, (Repeats("a", (0.3,)), Repeats("b", (0.4,)))]
    )
    assert () == merged([])


# -------------------------------------------------------------------------------------------------------------- finalists


def test_finalists_are_those_within_the_noise_of_the_leader_the_leader_first() -> None:
    assert (3, 1, 4) == finalists(Evidence(views=NOISY), HIGHEST)
    assert (3, 1) == finalists(Evidence(views=NOISY, rules=NoiseRules(finalists=2)), HIGHEST)
    assert (3,) == finalists(Evidence(views=NOISY, rules=NoiseRules(finalists=1)), HIGHEST)
    assert (3, 1) == finalists(Evidence(views=NOISY, rules=NoiseRules(level=0.5)), HIGHEST)


def test_only_peers_are_finalists() -> None:
    """One that lacks what the leader has (verification, the threshold) cannot be selected instead of it, noise or not."""
    checked = [
        view(0, 0.70, 0.80, verification="passed"),
        view(1, 0.72, 0.82, verification="failed"),
        view(2, 0.60, 0.76, verification="passed"),
    ]
    assert (0, 2) == finalists(Evidence(views=tuple(checked)), VERIFIED)
    assert [1, 0, 2] == [one.number for one in peers(checked, HIGHEST)]
    assert (0,) == finalists(Evidence(views=tuple(checked)), SelectionCriteria(threshold=70))
    recent = SelectionCriteria(mode="most_recent_above_threshold", threshold=70)
    assert (0,) == finalists(Evidence(views=tuple(checked)), recent)


def test_degenerate_loops() -> None:
    assert () == finalists(Evidence(views=()), HIGHEST)
    assert None is finals(Evidence(views=()), HIGHEST)
    invalid = IterationView(number=0, score=None, status="scorer_broken")
    assert None is finals(Evidence(views=(invalid,)), HIGHEST)
    with pytest.raises(NothingEvaluatedError):
        select(Evidence(views=(invalid,), readings=(later(1, 0, 0.5, 0.6),)), HIGHEST)
    alone = finals(Evidence(views=(view(0, 0.5, 0.6),)), HIGHEST)
    assert alone is not None
    assert ((0,), (0,), 0.0, "", 0) == (alone.finalists, alone.tied, alone.width, alone.note, alone.chosen)


def test_without_repeats_the_choice_is_the_plain_one() -> None:
    plain = (view(0, 0.5), view(1, 0.5), view(2, 0.6))
    assert choose(plain, HIGHEST) == select(Evidence(views=plain), HIGHEST)
    assert (2,) == finalists(Evidence(views=plain), HIGHEST)
    found = finals(Evidence(views=plain, readings=(later(1, 2, 0.1),)), HIGHEST)
    assert found is not None
    assert (None, False, (2,)) == (found.noise, found.rescored, found.tied)
    assert 2 == select(Evidence(views=plain, readings=(later(1, 2, 0.1),)), HIGHEST).selected_iteration


def test_equal_answers_make_no_ties_but_real_ones() -> None:
    exact = (view(0, 0.5, 0.5), view(1, 0.6, 0.6), view(2, 0.6, 0.6), view(3, 0.61, 0.61))
    assert (3,) == finalists(Evidence(views=exact), HIGHEST)
    assert choose(exact, HIGHEST) == select(Evidence(views=exact), HIGHEST)


def test_an_iteration_without_a_valid_score_has_no_error_and_no_rank() -> None:
    broken = IterationView(number=5, score=None)
    views = (*NOISY, broken)
    among = seen(Evidence(views=views), HIGHEST)
    assert {0, 1, 2, 3, 4} == set(among.chance.errors)
    assert broken == among.views[5]
    assert {0, 1, 2, 3, 4} == set(ranked(Evidence(views=views), HIGHEST))
    assert () == ranked(Evidence(views=(broken,)), HIGHEST)


# ----------------------------------------------------------------------------------------------------------------- choice


def test_a_tie_goes_to_the_earlier_and_the_reason_says_so() -> None:
    # pairs 0.06 apart: one answer varies by 4.24 points, the difference of two means of two by as much, and t is 1.14
    tied = (view(0, 0.2, 0.26), view(1, 0.79, 0.85), view(2, 0.2, 0.26), view(3, 0.80, 0.86))
    found = select(Evidence(views=tied), HIGHEST)
    assert (1, 82.0, 3, -1.0) == (found.selected_iteration, found.quality_score, found.runner_up, found.margin)
    assert "Iterations 1 and 3 are within the noise (±4.8): the earlier is kept, 82%" == found.reason
    assert not found.degradation_detected
    never = select(Evidence(views=tied, rules=NoiseRules(tie=0)), HIGHEST)
    assert choose(tied, HIGHEST) == never


def test_a_tie_that_the_earlier_wins_anyway_is_told_all_the_same() -> None:
    tied = (view(0, 0.81, 0.87), view(1, 0.80, 0.86), view(2, 0.79, 0.85))
    found = select(Evidence(views=tied), HIGHEST)
    assert 0 == found.selected_iteration
    assert "Highest quality score: 84%; iterations 0, 1 and 2 are within the noise (±5.1): the earliest is kept" == found.reason


def test_a_tie_gives_up_no_rule() -> None:
    """The earlier one misses the threshold, so it is no peer of the later one that reaches it."""
    views = (view(0, 0.66, 0.72), view(1, 0.68, 0.74))
    assert 1 == select(Evidence(views=views), SelectionCriteria(mode="highest_quality", threshold=70)).selected_iteration
    missed = select(Evidence(views=views), SelectionCriteria(mode="highest_quality", threshold=90))
    assert (0, "threshold", False) == (missed.selected_iteration, missed.fallback, missed.meets_threshold)
    assert missed.reason.endswith("the earlier is kept, 69%; relaxed: threshold")


def test_finalists_are_chosen_by_all_their_readings() -> None:
    readings = (later(1, 3, 0.70, 0.74), later(2, 1, 0.80, 0.84), later(3, 4, 0.70, 0.74), later(4, 3, 0.70, 0.72))
    evidence = Evidence(views=NOISY, readings=readings, rules=NoiseRules(tie=0))
    found = finals(evidence, HIGHEST)
    assert found is not None
    assert found.rescored
    assert {1: 81.0, 3: pytest.approx(75.3333), 4: 75.0} == found.means
    assert 1 == found.leader == found.chosen
    chosen = select(evidence, HIGHEST)
    assert (1, 81.0, 3, 5.6667) == (chosen.selected_iteration, chosen.quality_score, chosen.runner_up, chosen.margin)
    assert "Highest quality score: 81%" == chosen.reason
    assert (4, 75.0) == (chosen.final_iteration, chosen.final_quality)  # its mean, too
    noise = loop_noise(evidence, rescored=True)
    assert noise is not None
    assert sum([1, 3, 1, 5, 3]) == noise.sources["worth", 0].degrees


def test_one_that_was_not_scored_again_is_out_however_lucky_its_one_reading() -> None:
    """2 was just outside of the noise, and ends above the means of those that were inside; its score is as lucky as theirs."""
    views = (view(0, 0.40, 0.42), view(1, 0.88, 0.90), view(2, 0.78, 0.80), view(3, 0.87, 0.89))
    readings = (later(1, 1, 0.60, 0.62), later(2, 3, 0.58, 0.60))
    found = select(Evidence(views=views, readings=readings), HIGHEST)
    assert (1, 75.0) == (found.selected_iteration, found.quality_score)


def test_until_every_finalist_was_scored_again_nothing_changes() -> None:
    readings = (later(1, 3, 0.10, 0.12), later(2, 1, 0.10, 0.12))  # 4 is still to come
    evidence = Evidence(views=NOISY, readings=readings, rules=NoiseRules(tie=0))
    assert choose(NOISY, HIGHEST) == select(evidence, HIGHEST)
    found = finals(evidence, HIGHEST)
    assert found is not None
    assert (False, {}) == (found.rescored, dict(found.means))


def test_a_finalist_whose_readings_all_failed_drops_out_unless_all_did() -> None:
    some = (later(1, 3), later(2, 1, 0.80, 0.84), later(3, 4, 0.70, 0.74))
    assert 1 == select(Evidence(views=NOISY, readings=some, rules=NoiseRules(tie=0)), HIGHEST).selected_iteration
    failed = (later(1, 3), later(2, 1), later(3, 4, status="invalid_score"))
    assert 3 == select(Evidence(views=NOISY, readings=failed, rules=NoiseRules(tie=0)), HIGHEST).selected_iteration


def test_only_rescores_take_part_in_the_choice() -> None:
    readings = tuple(later(number, number, 0.1, 0.12, kind="holdout") for number in (1, 3, 4))
    readings += tuple(later(number + 10, number, 0.1, 0.12, kind="confirm") for number in (1, 3, 4))
    evidence = Evidence(views=NOISY, readings=readings, rules=NoiseRules(tie=0))
    assert choose(NOISY, HIGHEST) == select(evidence, HIGHEST)


def test_rounding_beyond_the_scale_keeps_the_loops_score() -> None:
    """A later reading of a dimension that has no weight any more cannot be made into a score."""
    views = (view(0, 0.90, 0.94), view(1, 0.91, 0.95))
    odd = ScoreReading(dimension="worth", score=0.5, repeats=(1.5, 1.6))
    readings = tuple(later(number, number, readings=(odd,), score=50.0, status="ok") for number in (0, 1))
    found = finals(Evidence(views=views, readings=readings), HIGHEST)
    assert found is not None
    assert not found.rescored


def test_recorded_rules_are_read_back_and_unusable_ones_are_the_default() -> None:
    assert NoiseRules(rescore=0, tie=0.5) == NoiseRules.recorded({"rescore": 0, "tie": 0.5, "later": 1})
    assert NoiseRules() == NoiseRules.recorded({"rescore": "two"})
