"""The mean difference over all pairs, in time that grows with the readings and not with their square."""

from __future__ import annotations

import itertools
import math
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.judging.asking.summary import mean_abs_difference


def of_all_pairs(readings: list[float]) -> float:
    return fmean(abs(one - other) for one, other in itertools.combinations(readings, 2))


@given(st.lists(st.floats(1, 5), min_size=2, max_size=40))
def test_it_is_the_mean_over_all_pairs(readings: list[float]):
    assert of_all_pairs(readings) == pytest.approx(mean_abs_difference(readings), rel=1e-12, abs=1e-300)


@given(st.lists(st.integers(64, 320).map(lambda whole: whole / 64), min_size=2, max_size=40))
def test_it_is_so_to_the_last_bit_where_differences_are_exact(readings: list[float]):
    assert of_all_pairs(readings) == mean_abs_difference(readings)


@given(st.floats(1, 5), st.integers(2, 9))
def test_equal_readings_differ_by_nothing(reading: float, count: int):
    assert 0 == mean_abs_difference([reading] * count)


def test_a_hundred_thousand_readings_are_no_matter():
    assert 4 / 3 == pytest.approx(
        mean_abs_difference([1 + 4 * math.modf(each * 0.6180339887)[0] for each in range(100_000)]), rel=1e-3
    )
