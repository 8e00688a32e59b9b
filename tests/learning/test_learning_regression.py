"""Whether a change made things worse: the first design's limits, held against noise; and whose doing a gap is."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.learning import Scored, attribute_gap_change, check_change

ONE_TO_FIVE = st.floats(1, 5)


def scored(count: int = 60, seed: int = 0, *, error: float = 0.3) -> list[Scored]:
    random = Random(seed)
    found: list[Scored] = []
    for number in range(count):
        judge = random.uniform(1, 5)
        cheap = min(5.0, max(1.0, judge + random.gauss(0, error)))
        found.append(Scored(id=f"i{number}", expensive=judge, cheap=cheap, group=f"g{number // 2}"))
    return found


def moved(items: list[Scored], by: float) -> list[Scored]:
    return [replace(one, cheap=one.cheap + by) for one in items]


def test_nothing_changed_is_no_regression() -> None:
    found = check_change(scored(), scored())
    assert (False, None, 60, 30) == (found.regression, found.condition, found.items, found.groups)
    assert [0.0, 0.0, 0.0] == [one.delta for one in found.conditions]


def test_each_condition_is_named_with_its_interval() -> None:
    items = scored()
    shuffled = [replace(one, cheap=other.cheap) for one, other in zip(items, items[7:] + items[:7], strict=True)]
    worse = check_change(items, shuffled)
    assert worse.condition is not None
    assert "gap_increased" == worse.condition.name
    bounds = [worse.condition.low, worse.condition.delta, worse.condition.high]
    assert [0.0, *bounds] == sorted(one for one in [0.0, *bounds] if one is not None)
    assert (True, "gap_increased") == (worse.to_json()["regression"], worse.to_json()["type"])

    generous = moved(items, 0.35)
    lower = check_change(generous, items)
    assert lower.condition is None, "a generous judge that comes closer is no worse for it"
    assert lower.conditions[1].exceeds
    as_designed = check_change(generous, items, profile="seed").condition
    assert as_designed is not None
    assert "cheap_score_dropped" == as_designed.name, "though the gap got smaller: that is the first design's condition"

    tired = [
        replace(one, cheap=3 + (one.cheap - 3) * (1 if number % 3 else -0.04)) for number, one in enumerate(scored(error=0.6))
    ]
    fallen = check_change(scored(error=0.6), tired)
    assert fallen.conditions[2].beyond_noise
    assert fallen.conditions[2].exceeds


def test_noise_alone_does_not_roll_back_and_the_first_designs_profile_does() -> None:
    """One wild item of few moves an average far; it is one item."""
    items = [Scored(id=str(n), expensive=4.0, cheap=4.0 - n % 2 / 2, group=str(n)) for n in range(10)]
    wild = [replace(items[0], cheap=1.0), *items[1:]]
    noisy = check_change(items, wild)
    assert (True, False) == (noisy.conditions[0].exceeds, noisy.conditions[0].beyond_noise)
    assert not noisy.regression
    assert check_change(items, wild, profile="seed").regression


def test_a_lower_average_with_a_narrower_gap_is_no_regression_however_few_the_items() -> None:
    """A set that gave too much: most items come closer, a few good ones further away, and the interval of the gap holds zero."""
    judge = [1.0, 1.5, 2.0, 2.0, 2.5, 3.0, 3.0, 4.5, 4.5, 5.0, 4.0, 4.0]
    before = [Scored(id=str(n), expensive=one, cheap=4.0, group=str(n)) for n, one in enumerate(judge)]
    found = check_change(before, [replace(one, cheap=3.05) for one in before])
    gap, average, _ = found.conditions
    assert gap.delta is not None
    assert gap.high is not None
    assert gap.delta < 0 < gap.high
    assert (True, True) == (average.exceeds, average.beyond_noise)
    assert not found.regression
    assert check_change(before, [replace(one, cheap=1.5) for one in before]).regression, "too low is no better than too high"
    assert check_change(before, [replace(one, cheap=3.05) for one in before], profile="seed").regression


def test_noise_rolls_back_no_more_often_than_its_level_says() -> None:
    """Two cheap judges that differ by luck alone, on 40 items in 20 groups, 100 times; three conditions of 2.5 % each."""
    rolled_back = 0
    for seed in range(100):
        items = scored(40, seed, error=1.2)
        random = Random(1_000 + seed)
        other = [replace(one, cheap=min(5.0, max(1.0, one.expensive + random.gauss(0, 1.2)))) for one in items]
        rolled_back += check_change(items, other, resamples=200).regression
    print(f"rolled back {rolled_back} of 100 changes that were luck")
    assert rolled_back <= 15


def test_groups_are_what_is_resampled() -> None:
    """Twenty copies of two items are two items' evidence."""
    before = [Scored(id=f"{n}", expensive=4.0, cheap=4.0, group=f"g{n % 2}") for n in range(40)]
    after = [replace(one, cheap=3.4 if one.group == "g0" else 4.0) for one in before]
    assert check_change(before, [replace(one, group=None) for one in after]).regression
    assert not check_change(before, after).regression
    assert not check_change(before, [replace(one, group="g") for one in after]).regression, "one group has no interval"


def test_only_items_of_both_count_and_the_judge_of_now() -> None:
    assert (False, 0) == ((found := check_change(scored(), [])).regression, found.items)
    before = scored(20)
    after = [replace(one, expensive=1.0, cheap=one.cheap) for one in before] + [Scored(id="new", expensive=5, cheap=1)]
    found = check_change(before, after)
    assert (20, 0.0) == (found.items, found.conditions[0].delta), "a judge that changed its mind is no fault of the patterns"


def test_a_constant_judge_has_no_ranks() -> None:
    flat = [Scored(id=str(n), expensive=3.0, cheap=3.0, group=str(n)) for n in range(6)]
    found = check_change(flat, flat).conditions[2]
    assert (None, None, False) == (found.delta, found.low, found.exceeds)


@pytest.mark.parametrize("profile", ["seed", "evidence"])
def test_the_same_seed_gives_the_same_answer(profile: Literal["seed", "evidence"]) -> None:
    one, other = scored(seed=1), [replace(a, cheap=b.cheap) for a, b in zip(scored(seed=1), scored(seed=2), strict=True)]
    assert check_change(one, other, seed=5, profile=profile) == check_change(one, other, seed=5, profile=profile)


def record(expensive: float, cheap: float, name: str = "a", **more: Any) -> Scored:
    return Scored(id=name, expensive=expensive, cheap=cheap, **more)


def test_a_gap_is_put_down_to_whoever_changed() -> None:
    base = [record(4, 3), record(3, 3, "b")]
    judge = attribute_gap_change(base, [record(5, 3), record(3, 3, "b")])
    assert ("judge", 0.5, 0.0, 0.0) == (judge.largest, judge.judge, judge.items, judge.patterns)
    cheap = attribute_gap_change(base, [record(4, 2), record(3, 3, "b")])
    assert ("patterns", 0.5) == (cheap.largest, cheap.patterns)
    items = attribute_gap_change(base, [record(4, 3), record(5, 1, "c")])
    assert ("items", 2.0, 1) == (items.largest, items.items, items.common)
    same_name = attribute_gap_change([record(4, 3, content="x")], [record(4, 1, content="y")])
    assert ("items", 0) == (same_name.largest, same_name.common), "another text is another item"
    assert None is attribute_gap_change(base, base).largest


SCORES = st.lists(st.tuples(ONE_TO_FIVE, ONE_TO_FIVE, ONE_TO_FIVE, ONE_TO_FIVE), min_size=1, max_size=6)


@given(SCORES, st.integers(0, 3), st.integers(0, 3))
def test_the_parts_add_up_and_silence_earns_nothing(scores: list[tuple[float, ...]], left: int, right: int) -> None:
    before = [record(a, b, str(n)) for n, (a, b, _, _) in enumerate(scores)] + [record(1, 5, f"l{n}") for n in range(left)]
    after = [record(c, d, str(n)) for n, (_, _, c, d) in enumerate(scores)] + [record(4, 5, f"r{n}") for n in range(right)]
    found = attribute_gap_change(before, after)
    assert found.total == pytest.approx(found.items + found.judge + found.patterns)
    assert found.total == pytest.approx(gap(after) - gap(before))
    same_cheap = [replace(one, cheap=other.cheap) for one, other in zip(after[: len(scores)], before, strict=False)]
    quiet = attribute_gap_change(before, same_cheap)
    assert quiet.patterns == pytest.approx(0, abs=1e-9)


def gap(items: list[Scored]) -> float:
    return sum(abs(one.expensive - one.cheap) for one in items) / len(items)


def test_there_is_no_gap_without_items() -> None:
    with pytest.raises(ValueError, match="no items before or after"):
        attribute_gap_change([], [record(1, 1)])
