"""The weighted score, for any dimensions and weights: against exact fractions, and what must never matter."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from jumar.loop.ranking import merge_weights, resolve_weights, weighted_score

NAMES = st.text("abcdef", min_size=1, max_size=3)
FRACTIONS = st.floats(0, 1) | st.sampled_from([0, 1, 0.5])
WEIGHTS = st.floats(0, 10) | st.sampled_from([0, 1, 5e-324, 1.7e308])
SCORED = st.dictionaries(NAMES, st.tuples(FRACTIONS, WEIGHTS), min_size=1, max_size=6).filter(
    lambda scored: any(weight > 0 for _, weight in scored.values())
)


def halves(scored):
    return {name: value for name, (value, _) in scored.items()}, {name: weight for name, (_, weight) in scored.items()}


def exact(dimensions, weights):
    total = sum(Fraction(weight) for weight in weights.values())
    return sum(Fraction(weights[name]) * Fraction(value) for name, value in dimensions.items()) / total * 100


@given(scored=SCORED)
def test_score_against_exact_fractions(scored):
    dimensions, weights = halves(scored)
    assert abs(Fraction(weighted_score(dimensions, weights)) - exact(dimensions, weights)) <= Fraction("0.00005000001")


@given(scored=SCORED)
def test_score_lies_between_the_worst_and_the_best_dimension_that_counts(scored):
    dimensions, weights = halves(scored)
    counting = [dimensions[name] for name, weight in weights.items() if weight > 0]
    score = weighted_score(dimensions, weights)
    assert round(min(counting) * 100, 4) <= score <= round(max(counting) * 100, 4)


@given(scored=SCORED, data=st.data())
def test_the_order_of_dimensions_never_matters(scored, data):
    dimensions, weights = halves(scored)
    expected = weighted_score(dimensions, weights)
    names = data.draw(st.permutations(list(dimensions)))
    assert expected == weighted_score(
        {name: dimensions[name] for name in names}, {name: weights[name] for name in reversed(names)}
    )


@given(scored=SCORED, data=st.data())
def test_a_better_dimension_never_lowers_the_score(scored, data):
    dimensions, weights = halves(scored)
    name = data.draw(st.sampled_from(sorted(dimensions)))
    better = {**dimensions, name: data.draw(st.floats(dimensions[name], 1))}
    assert weighted_score(better, weights) >= weighted_score(dimensions, weights)


@given(scored=SCORED, power=st.integers(-200, 200))
def test_the_unit_of_the_weights_never_matters(scored, power):
    dimensions, weights = halves(scored)
    plain = {name: min(max(float(weight), 0.0), 1.0) and round(min(weight, 10), 3) for name, weight in weights.items()}
    if any(plain.values()):
        assert weighted_score(dimensions, plain) == weighted_score(dimensions, {n: w * 2.0**power for n, w in plain.items()})


@given(scored=SCORED)
def test_resolved_weights_cover_the_scored_dimensions_and_keep_the_given_ones(scored):
    dimensions, weights = halves(scored)
    some = dict(list(weights.items())[::2])
    if not any(some.values()):
        return
    resolved = resolve_weights(dimensions, some)
    assert list(dimensions) == list(resolved)
    assert some == {name: resolved[name] for name in some}
    rest = {resolved[name] for name in dimensions if name not in some}
    assert len(rest) <= 1
    for mean in rest:
        one_digit = 1 + 1e-15  # the sum of three equal weights, divided by three, may differ in the last digit
        assert min(some.values()) / one_digit <= mean <= min(max(some.values()) * one_digit, 1.7e308)


@given(partial=st.dictionaries(NAMES, st.floats(0, 10)))
def test_merged_weights_hold_the_defaults_and_the_given_ones(partial):
    merged = merge_weights(partial)
    assert {**merge_weights({}), **partial} == merged
