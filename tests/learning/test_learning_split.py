"""Groups of items → learn, test, sealed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.errors import FormatTooNewError, ItemError, StoreDamagedError
from jumar.judging import ExpensiveModeResult, Item, Unscored
from jumar.learning.material import noise_of, targets_of
from jumar.learning.proof.split import Split, group_key, split_items, tie_copies


def items_of(groups: Sequence[str | None]) -> list[Item]:
    return [Item(f"i{number}", f"text {number}", group=group) for number, group in enumerate(groups)]


def in_groups(count: int, each: int = 3) -> list[Item]:
    return items_of([f"g{number // each}" for number in range(count * each)])


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 150).map(str)), min_size=10, max_size=300),
    st.integers(0, 5),
    st.floats(0, 0.95),
    st.randoms(use_true_random=False),
)
def test_a_split_keeps_groups_whole_and_depends_on_names_and_seed_alone(groups, seed, heldout, random):
    items = items_of(groups)
    names = {group_key(item) for item in items}
    if len(names) < 10:
        with pytest.raises(ItemError, match="at least 10 groups"):
            split_items(items, seed=seed, heldout=heldout)
        return
    split = split_items(items, seed=seed, heldout=heldout)
    shuffled = list(items)
    random.shuffle(shuffled)
    assert split == split_items(shuffled, seed=seed, heldout=heldout)
    assert names == set(split.groups)
    assert split.counts()["sealed"] == min(round(heldout * len(names)), len(names) - 2)
    sealed, opened = split.part(items, "sealed"), split.part(items, "open")
    assert sorted(item.id for item in items) == sorted(item.id for item in [*sealed, *opened])
    assert {group_key(item) for item in sealed}.isdisjoint(group_key(item) for item in opened)
    assert all(split.is_sealed(item) for item in sealed)
    assert not any(split.is_sealed(item) for item in opened)
    for one in split.rounds():
        assert one.learn
        assert one.test
        assert one.learn.isdisjoint(one.test)
        assert {group_key(item) for item in opened} == one.learn | one.test
    assert split == Split.from_json(json.dumps(split.to_json()))


def test_under_a_hundred_groups_every_open_group_is_tested_once():
    split = split_items(in_groups(80))
    tested = [key for one in split.rounds() for key in one.test]
    assert split.cross_fitted
    assert {"sealed": 32, "open": 48, "learn": 48, "test": 48} == split.counts()
    assert len(tested) == len(set(tested)) == 48
    assert split.part(in_groups(80), "learn") == split.part(in_groups(80), "test") == split.part(in_groups(80), "open")


def test_with_a_hundred_groups_a_third_of_the_open_ones_is_the_test_split():
    items = in_groups(120)
    split = split_items(items)
    assert not split.cross_fitted
    assert {"sealed": 48, "open": 72, "learn": 48, "test": 24} == split.counts()
    assert len(split.part(items, "learn")) == 144
    assert len(split.part(items, "test")) == 72


def test_an_item_without_a_group_is_one_and_never_one_of_the_same_name():
    alone, named = Item("x", "a"), Item("y", "b", group="x")
    assert group_key(alone) != group_key(named)


@given(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 40)), st.integers(0, 60)), min_size=10, max_size=150),
    st.integers(0, 5),
    st.floats(0, 0.95),
)
def test_no_text_and_no_group_is_on_two_sides_of_any_barrier(drawn, seed, heldout):
    """``drawn`` are groups and texts; what hangs together over both is one unit, whoever counts groups."""
    items = [
        Item(f"i{number}", f"{'TEXT' if number % 2 else ' text'} {text}\n", group=None if group is None else str(group))
        for number, (group, text) in enumerate(drawn)
    ]
    tied = tie_copies(items)
    assert tie_copies(tied.items).items == tied.items
    assert tie_copies(tied.items).copies == 0
    assert [item.id for item in items] == [item.id for item in tied.items]
    together = _reached(items)
    assert {frozenset(own) for own in _by(tied.items, group_key).values()} == together
    shared = _by(items, lambda item: item.text.strip().casefold())
    several = [own for own in shared.values() if len({group_key(item) for item in items if item.id in own}) > 1]
    assert sum(len(own) for own in several) == tied.copies
    if len(together) < 10:
        return
    for listed in (items, list(tied.items)):
        split = split_items(listed, seed=seed, heldout=heldout)
        sealed = {item.id for item in split.part(listed, "sealed")}
        assert all(own <= sealed or own.isdisjoint(sealed) for own in together)
        for one in split.rounds():
            for side in (one.learn, one.test):
                inside = {item.id for item in listed if group_key(item) in side}
                assert all(own <= inside or own.isdisjoint(inside) for own in together)
    counts = split_items(tied.items, seed=seed, heldout=heldout).counts()
    assert counts["sealed"] == min(round(heldout * len(together)), len(together) - 2)
    assert counts["sealed"] + counts["open"] == len(together)


def _by(items, key):
    found = defaultdict(set)
    for item in items:
        found[key(item)].add(item.id)
    return found


def _reached(items):
    """The sets of ids that hang together over groups and texts, the slow way."""
    found = [set(own) for own in _by(items, group_key).values()]
    for own in _by(items, lambda item: item.text.strip().casefold()).values():
        touched = [one for one in found if one & own]
        found = [one for one in found if not one & own] + [set().union(*touched)]
    return {frozenset(one) for one in found}


def test_items_without_copies_are_split_as_if_nobody_had_looked_for_any():
    items = [
        *in_groups(30),
        Item("a", "same", prompt="one"),
        Item("b", "same", prompt="other"),
        Item("c", "same", context="third"),
    ]
    tied = tie_copies(items)
    assert (tied.items, tied.copies, tied.warning) == (tuple(items), 0, None)
    more = tie_copies([*items, Item("d", "Same ", prompt="One", group="g1")])
    assert [item.id for item in more.items if item.group == "same text: a"] == ["i3", "i4", "i5", "a", "d"]
    assert "2 items share a text with an item of another group" in (more.warning or "")
    with pytest.raises(ItemError, match="12 items in 1 group: "):
        split_items([Item(f"i{number}", "x") for number in range(12)])


def test_another_seed_is_another_split():
    items = in_groups(80)
    assert split_items(items, seed=1).groups != split_items(items, seed=2).groups


@pytest.mark.parametrize(
    ("options", "names"), [({"heldout": 1.0}, "heldout"), ({"heldout": -0.1}, "heldout"), ({"folds": 1}, "folds")]
)
def test_a_share_or_a_number_of_folds_that_makes_no_sense_is_refused(options, names):
    with pytest.raises(ValueError, match=names):
        split_items(in_groups(20), **options)


def test_other_items_than_those_that_were_split_are_refused():
    items = in_groups(20)
    split = split_items(items)
    split.check(list(reversed(items)))
    with pytest.raises(ItemError, match="such as new, whose group"):
        split.check([*items, Item("new", "text", group="new")])
    with pytest.raises(ItemError, match="not the items of split"):
        split.check([Item("i0", "changed", group="g0"), *items[1:]])


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"format": 1}', json.dumps(split_items(in_groups(20)).to_json()).replace("sealed", "open")]
)
def test_a_damaged_split_is_named_and_never_made_anew(text):
    with pytest.raises(StoreDamagedError, match=r"out/split\.json is damaged"):
        Split.from_json(text, "out/split.json")


def test_a_split_of_a_newer_format_asks_for_an_update():
    with pytest.raises(FormatTooNewError, match="format 2"):
        Split.from_json('{"format": 2}')


def test_targets_are_the_items_that_the_judge_scored_with_its_median_words_and_noise():
    items = items_of(["a", "a", None])
    results = [
        ExpensiveModeResult(
            story_id="i2", gestalt=4, reasoning="clear", strengths=["short"], weaknesses=[" "], readings=[4, 2, 5]
        ),
        Unscored(story_id="i1", kind="timed_out", message="slow"),
        ExpensiveModeResult(story_id="i0", gestalt=3, reasoning="", strengths=[], weaknesses=[]),
    ]
    first, second = targets_of(items, results)
    assert ("i0", 3.0, (3.0,), None, ()) == (first.item.id, first.score, first.readings, first.noise, first.words)
    assert ("i2", 4.0, 2.0, ("clear", "short")) == (second.item.id, second.score, second.noise, second.words)
    assert (6, None) == (second.length, second.group)
    noise = noise_of([first, second])
    assert noise is not None
    assert (1, 2.0) == (noise.items, noise.mean_abs_difference)
    with pytest.raises(ItemError, match="i9 belongs to none"):
        targets_of(items, [Unscored(story_id="i9", kind="missing", message="")])
