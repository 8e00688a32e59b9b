"""The geometry of plots: what is drawn lies inside, ticks are round and cover the data, gaps interrupt lines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.rendering.plot import (
    NARROW,
    WIDE,
    Frame,
    iteration_ticks,
    linear,
    lines_of,
    range_of,
    round_step,
    stair_of,
)

NUMBERS = st.floats(min_value=-1e6, max_value=1e6)


@given(values=st.lists(NUMBERS, max_size=20), steps=st.integers(1, 9), least=st.floats(0.01, 1000), zero=st.booleans())
def test_an_axis_covers_its_data_in_round_steps(values: list[float], steps: int, least: float, zero: bool):
    axis = range_of(values, steps=steps, least=least, zero=zero)
    assert axis.low < axis.high
    slack = axis.step * 1e-6
    assert all(axis.low - slack <= value <= axis.high + slack for value in values)
    grid = axis.values()
    assert grid == sorted(set(grid))
    assert 2 <= len(grid) <= steps + 3
    assert re.fullmatch(r"[125]e[+-]\d+", f"{axis.step:.0e}")
    assert len({axis.label(value) for value in grid}) == len(grid), "no two grid lines have one label"


@given(values=st.lists(st.floats(0, 100), min_size=1, max_size=20))
def test_an_axis_of_scores_stays_on_their_scale(values: list[float]):
    axis = range_of(values, steps=5, least=10, floor=0, ceiling=100)
    assert 0 <= axis.low <= min(values)
    assert max(values) <= axis.high <= 100


@given(wanted=st.floats(1e-9, 1e9))
def test_a_step_is_round_and_not_much_larger_than_wanted(wanted: float):
    assert wanted * (1 - 1e-6) <= round_step(wanted) <= wanted * 2.5 * (1 + 1e-6)


@pytest.mark.parametrize("frame", [WIDE, NARROW])
@given(numbers=st.lists(st.integers(0, 100_000), min_size=1, unique=True, max_size=60).map(sorted))
def test_iterations_have_few_round_ticks_among_them(frame: Frame, numbers: list[int]):
    x = linear(numbers[0], numbers[-1], frame.left, frame.x_end)
    ticks = iteration_ticks(numbers, frame, x)
    assert 1 <= len(ticks) <= frame.x_ticks
    assert all(frame.left <= tick.at <= frame.x_end for tick in ticks)
    assert len({tick.label for tick in ticks}) == len(ticks)


def test_all_of_the_same_is_drawn_in_the_middle():
    assert linear(5, 5, 0, 100)(5) == 50


def test_a_missing_value_interrupts_the_line_and_is_bridged():
    lines = {line.kind: line.path for line in lines_of([(0, 1), (1, None), (2, 3), (3, 4)])}
    assert lines == {"bridge": "M0 1L2 3", "score": "M0 1M2 3L3 4"}
    assert lines_of([(0, None)]) == ()


def test_a_stair_holds_until_its_next_step():
    assert stair_of([(0, 9), (2, 5)], 4) == "M0 9H2V5H4"
    assert stair_of([], 4) == ""
