"""A pattern's increment and its p-value, against permutations that are enumerated or drawn; the ledger against its definition."""

from __future__ import annotations

import itertools
import json
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, false_discovery_control

from jumar.errors import FormatTooNewError, StoreDamagedError
from jumar.learning.proof.support import Firing, ledger_entries, support
from jumar.learning.state import LedgerEntry, ProposalLedger

KINDS: list[Literal["good", "bad"]] = ["good", "bad"]


def enumerated(scores, groups, fired, sign):
    """How often, of all ways to have the pattern on as many items of each group, the sum is as large; lengths are equal."""
    left = np.asarray(scores, dtype=float)
    names = np.asarray(groups)
    has = np.zeros(left.size, dtype=bool)
    has[fired] = True
    sums = np.zeros(1)
    reached = 0.0
    for name in np.unique(names):
        own = sign * (left[names == name] - left[names == name].mean())
        taken = has[names == name]
        reached += own[taken].sum()
        more = np.asarray([sum(one) for one in itertools.combinations(own, int(taken.sum()))])
        sums = (sums[:, None] + more[None, :]).ravel()
    return float((sums >= reached - 1e-9).mean())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_p_value_covers_that_of_all_permutations_and_is_not_far_from_it(data):
    sizes = data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=6))
    groups = [f"g{number}" for number, size in enumerate(sizes) for _ in range(size)]
    scores = data.draw(st.lists(st.sampled_from([1.0, 2.0, 3.0, 3.5, 4.0, 5.0]), min_size=len(groups), max_size=len(groups)))
    fired = sorted(data.draw(st.sets(st.integers(0, len(groups) - 1))))
    kind = data.draw(st.sampled_from(KINDS))
    rows = [[0] if number in fired else [] for number in range(len(groups))]
    (found,) = support(scores, lengths=[10] * len(groups), groups=groups, firing=Firing.of_items(rows, 1), types=[kind])
    truth = enumerated(scores, groups, fired, 1 if kind == "good" else -1)
    assert len(fired) == found.fired
    assert 0 < found.p_value <= 1
    if truth < 0.1:  # where it decides anything
        assert truth * 0.8 <= found.p_value <= min(1.0, 6 * truth)


def test_with_many_groups_it_is_some_twice_the_share_of_drawn_permutations():
    draw = np.random.default_rng(8)
    groups = [f"g{number // 5}" for number in range(300)]
    scores = draw.choice([1.0, 3.0, 4.0, 5.0], 300, p=[0.1, 0.2, 0.4, 0.3])
    has = draw.random(300) < np.where(scores > 4, 0.35, 0.2)
    left = scores - np.repeat(scores.reshape(60, 5).mean(axis=1), 5)
    drawn = draw.permuted(np.repeat(left.reshape(1, 60, 5), 40_000, axis=0), axis=2).reshape(40_000, 300) @ has
    share = float((drawn >= left @ has - 1e-9).mean())
    rows = [[0] if one else [] for one in has]
    (found,) = support(scores.tolist(), lengths=[7] * 300, groups=groups, firing=Firing.of_items(rows, 1), types=["good"])
    assert 0.0005 < share < 0.05
    assert 1.1 * share < found.p_value < 2.6 * share  # integers: half of the tail's last step


def test_of_items_that_are_groups_by_themselves_it_is_that_of_permuting_them_all():
    draw = np.random.default_rng(9)
    scores = draw.choice([1.0, 3.0, 4.0, 5.0], 400, p=[0.1, 0.2, 0.4, 0.3])
    has = draw.random(400) < np.where(scores > 4, 0.2, 0.09)
    left = scores - scores.mean()
    drawn = draw.permuted(np.repeat(left[None, :], 20_000, axis=0), axis=1) @ has
    share = float((drawn >= left @ has - 1e-9).mean())
    rows = [[0] if one else [] for one in has]
    (found,) = support(scores.tolist(), lengths=[7] * 400, groups=[None] * 400, firing=Firing.of_items(rows, 1), types=["good"])
    assert 0.0005 < share < 0.1
    assert 1.1 * share < found.p_value < 2.6 * share


def test_p_values_of_patterns_without_an_effect_are_below_any_level_no_more_often_than_that():
    draw = np.random.default_rng(5)
    items, patterns = 240, 1500
    groups = [f"g{number // 4}" for number in range(items)]
    lengths = draw.integers(100, 3000, items)
    scores = np.clip(np.round(3 + 0.5 * np.log(lengths / 500) + draw.normal(0, 1, 60).repeat(4) + draw.normal(0, 1, items)), 1, 5)
    shares = draw.choice([0.03, 0.1, 0.4], patterns)
    longer = draw.random(patterns) < 0.5  # half of them fire on long texts rather: what length explains is no support
    chance = shares[None, :] * np.where(longer[None, :], lengths[:, None] / 1550, 1.0)
    rows = [np.flatnonzero(row).tolist() for row in draw.random((items, patterns)) < chance]
    found = support(
        scores.tolist(), lengths=lengths.tolist(), groups=groups, firing=Firing.of_items(rows, patterns), types=KINDS * 750
    )
    for level in (0.1, 0.05, 0.01, 0.001):
        count = sum(one.p_value <= level for one in found)
        print(f"p ≤ {level}: {count} of {patterns}, expected at most {level * patterns:.1f}")
        assert count <= binom.ppf(0.999, patterns, level)
    assert frozenset() == ProposalLedger().added(ledger_entries(list(map(str, range(patterns))), found, 1)).supported()


@pytest.mark.parametrize("kind", KINDS)
def test_an_effect_has_its_size_its_sign_and_a_small_p_value_and_the_other_direction_none(kind: Literal["good", "bad"]):
    draw = np.random.default_rng(6)
    groups = [f"g{number // 5}" for number in range(500)]
    has = draw.random(500) < 0.3
    effect = 0.8 if kind == "good" else -0.8
    scores = 3 + effect * has + draw.normal(0, 0.5, 500)
    rows: list[list[int]] = [[0, 1] if one else [] for one in has]
    other: Literal["good", "bad"] = "bad" if kind == "good" else "good"
    lengths = draw.integers(50, 900, 500)
    one, wrong = support(
        scores.tolist(), lengths=lengths.tolist(), groups=groups, firing=Firing.of_items(rows, 2), types=(kind, other)
    )
    assert one.increment == wrong.increment == pytest.approx(effect, abs=0.1)
    assert one.p_value < 1e-20
    assert wrong.p_value == 1.0
    assert one.precision is not None
    assert wrong.precision == pytest.approx(1 - one.precision)
    assert one.precision > 0.6
    assert one.coverage == pytest.approx(has.mean())


CURVES = {
    "as long as possible": (lambda z: 3 + 0.6 * z, lambda z: 0.3 * (z > 0) + 0.05),
    "neither short nor long": (lambda z: 3.5 - 0.5 * z**2, lambda z: 0.5 * (np.abs(z) < 0.5) + 0.03),
    "long enough": (lambda z: 3 + 0.8 * (z > 0.5), lambda z: 0.4 * (z > 0.5) + 0.02),
    "more of less use": (lambda z: 2 + 1.5 / (1 + np.exp(-4 * z)), lambda z: 0.4 / (1 + np.exp(-4 * z))),
}


@pytest.mark.parametrize("each", [1, 4])
@pytest.mark.parametrize("name", CURVES)
def test_however_a_judge_likes_its_texts_long_what_fires_by_length_alone_is_not_supported(name, each):
    draw = np.random.default_rng(12)
    liked, chance = CURVES[name]
    runs, items, patterns = 4, 200, 200
    wrong, low = 0, 0
    for _ in range(runs):
        lengths = np.exp(draw.normal(6, 0.8, items)).astype(int) + 5
        z = (np.log1p(lengths) - 6) / 0.8
        scores = np.clip(liked(z) + draw.normal(0, 0.5, items) + draw.normal(0, 0.3, items // each).repeat(each), 1, 5)
        rows = [np.flatnonzero(row).tolist() for row in draw.random((items, patterns)) < chance(z)[:, None]]
        groups = [None if each == 1 else f"g{number // each}" for number in range(items)]
        firing = Firing.of_items(rows, patterns)
        found = support(scores.tolist(), lengths=lengths.tolist(), groups=groups, firing=firing, types=KINDS * 100)
        wrong += len(ProposalLedger().added(ledger_entries(list(map(str, range(patterns))), found, 1)).supported())
        low += sum(one.p_value <= 0.05 for one in found)
    print(f"{name}, groups of {each}: {wrong} of {runs * patterns} supported, {low} with p ≤ 0.05")
    assert wrong <= 1
    assert low <= binom.ppf(0.999, runs * patterns, 0.05)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_of_few_items_the_p_value_is_that_of_all_permutations_and_never_below_it(data):
    size = data.draw(st.integers(9, 24))
    scores = data.draw(st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.5, 5.0]), min_size=2 * size, max_size=2 * size))
    groups = [f"g{number // size}" for number in range(2 * size)]
    best = sorted(range(size), key=lambda place: -scores[place])
    fired = sorted({*best[: data.draw(st.integers(1, 3))], data.draw(st.integers(0, 2 * size - 1))})
    rows = [[0] if number in fired else [] for number in range(2 * size)]
    (found,) = support(scores, lengths=[10] * 2 * size, groups=groups, firing=Firing.of_items(rows, 1), types=["good"])
    truth = enumerated(scores, groups, fired, 1)
    if truth < 0.1:
        assert truth * (1 - 1e-9) <= found.p_value <= 1.2 * truth


def test_of_a_group_that_is_too_large_to_count_it_is_approximated_and_covers_the_truth():
    draw = np.random.default_rng(2)
    scores = np.round(np.clip(4.2 + draw.standard_t(3, 3000) * 0.7, 1, 5) * 2) / 2
    has = np.zeros(3000, dtype=bool)
    has[draw.choice(3000, 34, replace=False)] = True
    has[draw.choice(np.flatnonzero(scores >= 4.5), 6, replace=False)] = True
    left = scores - scores.mean()
    drawn = np.asarray([left[draw.choice(3000, int(has.sum()), replace=False)].sum() for _ in range(10_000)])
    share = float((drawn >= left @ has - 1e-9).mean())
    rows = [[0] if one else [] for one in has]
    (found,) = support(scores.tolist(), lengths=[7] * 3000, groups=["a"] * 3000, firing=Firing.of_items(rows, 1), types=["good"])
    assert 0.0001 < share < 0.1
    assert share < found.p_value < 3 * share


def test_where_nothing_can_be_compared_nothing_is_said():
    rows = [[0, 2], [0], [0]]
    never, always, other = (
        support(
            [1, 2, 5], lengths=[5, 5, 5], groups=["a", "a", "b"], firing=Firing.of_items(rows, 3), types=("good", "good", "good")
        )[number]
        for number in (1, 0, 2)
    )
    assert (0, 1.0, None, None) == (never.fired, never.p_value, never.increment, never.precision)
    assert (3, 1.0, None) == (always.fired, always.p_value, always.increment)
    assert other.increment == pytest.approx(-1.0)
    assert [] == support([], lengths=[], groups=[], firing=Firing.of_items([], 0), types=[])
    with pytest.raises(ValueError, match="2 scores, 1 lengths"):
        support([1, 2], lengths=[1], groups=[None, None], firing=Firing.of_items([[], []], 0), types=[])


def test_a_pattern_that_is_the_length_under_another_name_gets_nothing():
    lengths = [10, 1000] * 30
    scores = [1.0 if length == 10 else 5.0 for length in lengths]
    rows = [[0] if length == 1000 else [] for length in lengths]
    groups = [f"g{number // 4}" for number in range(60)]
    (found,) = support(scores, lengths=lengths, groups=groups, firing=Firing.of_items(rows, 1), types=["good"])
    assert (1.0, None) == (found.p_value, found.increment)


# --------------------------------------------------------------------------------------------------------------- ledger


def entry(name: str, p_value: float, iteration: int = 1) -> LedgerEntry:
    return LedgerEntry(id=name, iteration=iteration, p_value=p_value, items=10, fired=3, precision=0.5)


@given(st.lists(st.tuples(st.integers(0, 20).map(str), st.floats(1e-12, 1.0)), max_size=60))
def test_the_ledger_counts_every_test_ever_made_and_survives_json(tests):
    ledger = ProposalLedger()
    for number, (name, p_value) in enumerate(tests):
        ledger = ledger.added([entry(name, p_value, number)])
    values = [p_value for _, p_value in tests]
    expected = (
        set()
        if not values
        else {name for (name, _), one in zip(tests, false_discovery_control(values, method="by"), strict=True) if one <= 0.05}
    )
    assert expected == ledger.supported()
    assert (
        ledger
        == ProposalLedger.from_json(json.loads(json.dumps(ledger.to_json())))
        == ProposalLedger.from_json(json.dumps(ledger.to_json()))
    )
    assert [entry(name, p_value, number) for number, (name, p_value) in enumerate(tests)] == list(ledger.entries)


def test_one_small_p_value_is_support_alone_and_none_among_a_thousand_tests():
    alone = ProposalLedger().added([entry("a", 0.001)])
    assert frozenset({"a"}) == alone.supported()
    assert frozenset() == alone.added(entry(str(number), 0.5) for number in range(1000)).supported()
    assert 0.001 == alone.latest()["a"].p_value
    assert 0.3 == alone.latest()["a"].coverage


@pytest.mark.parametrize("data", ["{", [], {"format": 1}, {"entries": [{"id": "a"}]}, {"entries": [None]}])
def test_a_damaged_ledger_is_named(data):
    with pytest.raises(StoreDamagedError, match=r"state\.json.* is damaged"):
        ProposalLedger.from_json(data, "state.json")


@pytest.mark.parametrize("changed", [{"p_value": 0.0}, {"p_value": float("nan")}, {"fired": 11}, {"precision": 1.5}])
def test_an_entry_out_of_range_is_refused(changed):
    row = {**ProposalLedger().added([entry("a", 0.5)]).to_json()["entries"][0], **changed}
    with pytest.raises(StoreDamagedError, match="entry 1"):
        ProposalLedger.from_json({"format": 1, "entries": [row]})


def test_a_ledger_of_a_newer_format_asks_for_an_update():
    with pytest.raises(FormatTooNewError):
        ProposalLedger.from_json({"format": 2, "entries": []})
