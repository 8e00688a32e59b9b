"""What is learned from while it grows: each text, id and group stays on one side, through all iterations."""

from __future__ import annotations

import random

import pytest

from jumar.judging.items.item import Item
from jumar.judging.models import ExpensiveModeResult
from jumar.learning.online import GatheredItems, SeenItem, gather, shorten_verdict
from jumar.learning.proof.split import FOLDS, group_key


def seen(iteration: int, name: str, text: str, group: str | None = None, score: float = 3.0) -> SeenItem:
    result = ExpensiveModeResult(story_id=name, gestalt=score, reasoning="", strengths=[], weaknesses=[])
    return SeenItem(iteration, Item(name, text, group=group), result)


def fold(found: GatheredItems, place: int) -> str | int:
    return found.split.groups[group_key(found.targets[place].item)]


def test_a_text_counts_once_and_its_first_verdict_counts() -> None:
    found = gather([seen(0, "a", "x", score=2.0), seen(1, "a", "x", score=5.0), seen(1, "b", "x")], {})
    assert [("a@0", 2.0)] == [(one.item.id, one.score) for one in found.targets]
    assert {(0, "a"): "a@0", (1, "a"): "a@0", (1, "b"): "a@0"} == dict(found.names)


def test_other_texts_of_one_id_are_on_one_side_and_so_are_groups() -> None:
    rows = [seen(0, "a", "x"), seen(0, "b", "y", "g"), seen(1, "a", "z"), seen(1, "c", "w", "g"), seen(1, "b", "v", "g")]
    found = gather(rows, {})
    assert fold(found, 0) == fold(found, 2)
    assert fold(found, 1) == fold(found, 3) == fold(found, 4)
    assert fold(found, 0) != fold(found, 1)
    assert 2 == found.groups


def test_what_belongs_to_two_sides_is_left_out_and_told() -> None:
    found = gather([seen(0, "a", "x", "g"), seen(0, "b", "y", "h"), seen(1, "a", "z", "h")], {})
    assert frozenset({(1, "a")}) == found.left_out
    assert ["a@0", "b@0"] == [one.item.id for one in found.targets]


def test_of_many_texts_those_that_were_seen_last_are_taken() -> None:
    rows = [seen(0, f"i{n}", f"text {n}") for n in range(8)]
    found = gather([*rows, seen(1, "i0", "text 0")], {}, most=3)
    assert ["i0@0", "i6@0", "i7@0"] == [one.item.id for one in found.targets]
    large = [seen(0, f"i{n}", str(n) * 300_000) for n in range(3)]
    assert ["i2@0"] == [one.item.id for one in gather(large, {}).targets]


def test_a_judge_that_never_ends_is_cut() -> None:
    result = ExpensiveModeResult(story_id="a", gestalt=3, reasoning="r" * 10_000, strengths=["s" * 999] * 99, weaknesses=[])
    found = shorten_verdict(result)
    assert (3_000, 10, 300) == (len(found.reasoning), len(found.strengths), len(found.strengths[0]))


def test_it_waits_for_ten_groups() -> None:
    few = gather([seen(0, f"i{n}", f"text {n}") for n in range(9)], {})
    assert few.too_few.startswith("9 texts in 9 groups so far")
    assert "" == gather([seen(0, f"i{n}", f"text {n}") for n in range(10)], {}).too_few


@pytest.mark.parametrize("seed", range(20))
def test_nothing_changes_its_side_whatever_comes(seed: int) -> None:
    """Texts, ids and groups at random, from call to call: no two targets that share one of them are on two sides."""
    draw = random.Random(seed)
    homes: dict[str, int] = {}
    sides: dict[tuple[str, str], set[str | int]] = {}
    rows: list[SeenItem] = []
    for iteration in range(6):
        for name in draw.sample(range(30), 12):
            group = draw.choice([None, None, f"g{draw.randrange(8)}"])
            rows.append(seen(iteration, f"i{name}", f"text {draw.randrange(40)}", group))
        found = gather(rows[-30:], homes)
        assert homes.items() <= found.homes.items()
        homes = dict(found.homes)
        for place, target in enumerate(found.targets):
            name, _, _ = target.item.id.rpartition("@")
            for key in (("id", name), ("text", target.item.text), ("group", group_key(target.item))):
                sides.setdefault(key, set()).add(fold(found, place))
        own = {one.item.id for one in found.targets}
        assert set(found.names.values()) <= own
        assert all(home in range(FOLDS) for home in homes.values())
    assert all(1 == len(places) for places in sides.values())
