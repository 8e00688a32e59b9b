"""Does a selection strategy keep the contract? Call :func:`check_strategy` from your own tests.

It runs the strategy on random lists of many kinds: smooth, tied, rounded, negative, all the same, far apart, long, short and
empty, with items that raise when they are compared or hashed. It raises ``AssertionError`` with a sentence that says
what was broken.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from random import Random
from typing import Any, NoReturn

from jumar.topk.base import SelectionStrategy
from jumar.topk.result import ScoredItem, SelectionResult

LIMITS = ((20, 1), (5, 3), (20, 0), (1, 1), (1, 0), (10, 10), (50, 2))
"""``max_k`` and ``min_k`` that every list is tried with."""


class Untouchable:
    """An item that must not be looked at: comparing, hashing or asking whether it is true raises, as with arrays."""

    def _refuse(self, *_: object) -> NoReturn:
        raise AssertionError("an item was compared, hashed or asked for its truth")

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __hash__ = _refuse


def score_lists(seed: int, count: int, *, scale: str = "similarity") -> Iterator[list[float]]:
    """Yield ``count`` lists of scores, best first, of every kind that strategies are known to stumble over."""
    for number in range(count):
        random = Random(f"{seed} {number}")  # noqa: S311 - reproducible, not secret
        size = random.choice((0, 1, 2, 3, 4, 5, 8, 13, 20, 21, 30, 60))
        scores = _scores(random, size)
        if scale in {"bm25", "rrf", "distance"}:
            scores = [abs(score) for score in scores]
        digits = random.choice((None, None, None, 1, 2, 3))
        rounded = scores if digits is None else [round(score, digits) for score in scores]
        yield sorted(rounded, reverse=scale != "distance")


def _scores(random: Random, size: int) -> list[float]:
    kind = random.randrange(8)
    if kind == 0:
        return [random.choice((0.0, 0.3, 0.4, 0.5, 0.71, 1.0))] * size
    if kind == 1:
        good = random.randrange(size + 1)
        return [random.uniform(0.7, 0.95) if k < good else random.uniform(0.1, 0.5) for k in range(size)]
    if kind == 2:
        return [random.uniform(-1, 1) for _ in range(size)]
    if kind == 3:
        return [0.9 - 0.4 * k / max(size, 1) for k in range(size)]
    if kind == 4:
        return [1.0000001 - random.choice((0, 0, 0.1, 0.2)) for _ in range(size)]
    if kind == 5:
        return [random.choice((0.0, -0.0, 1e-300, 0.4, 0.5, 0.9)) for _ in range(size)]
    if kind == 6:
        return [random.choice((0.9, 0.88, 0.86, 0.5, 0.45, 0.41, 0.2)) for _ in range(size)]
    return [random.random() for _ in range(size)]


def check_strategy(strategy: SelectionStrategy, *, count: int = 300, seed: int = 0) -> int:
    """Check ``strategy`` on ``count`` lists with several limits each; return how many selections were checked.

    The batch is compared with the single calls where numpy is installed. Errors: ``AssertionError`` that says what was broken.
    """
    checked = 0
    _check_refusals(strategy)
    for scores in score_lists(seed, count, scale=strategy.scale):
        items = [ScoredItem(Untouchable(), score) for score in scores]
        for max_k, min_k in LIMITS:
            check_selection(strategy, items, max_k, min_k)
            checked += 1
        _check_input(strategy, items)
    _check_batch(strategy, count, seed)
    return checked


def check_selection(strategy: SelectionStrategy, items: list[ScoredItem[Any]], max_k: int, min_k: int) -> SelectionResult[Any]:
    """Select once and check the result: size, order, rank 1, prefix, cutoff, metadata, ties, and the same once more."""
    what = f"{strategy.name} of {[item.score for item in items]} with max_k={max_k}, min_k={min_k}"
    before = list(items)
    result = strategy.select(items, max_k, min_k)
    assert all(one is other for one, other in zip(items, before, strict=True)), f"{what} changed its input"
    kept = _positions(items, result, what)
    least, most = min(min_k, len(items)), min(max_k, len(items))
    assert least <= len(kept) <= most, f"{what} keeps {len(kept)}, not {least} to {most}"
    assert kept == sorted(set(kept)), f"{what} is not in the order of the ranking, or keeps an item twice: {kept}"
    assert not kept or kept[0] == 0, f"{what} keeps {kept} without rank 1"
    assert not strategy.prefix or kept == list(range(len(kept))), f"{what} says that it keeps a prefix, and keeps {kept}"
    cutoff = items[kept[-1]].score if kept else 0.0
    assert result.cutoff_score == cutoff, f"{what}: cutoff_score is {result.cutoff_score!r}, the worst kept score {cutoff!r}"
    assert type(result.cutoff_score) is float, f"{what}: cutoff_score is a {type(result.cutoff_score).__name__}"
    assert result.method == strategy.name, f"{what}: method is {result.method!r}"
    assert result.abstained == (not kept), f"{what}: abstained is {result.abstained}"
    assert json.loads(_dumped(result.metadata, what)) == result.metadata, f"{what}: metadata is no plain JSON: {result.metadata}"
    again = strategy.select(items, max_k, min_k)
    assert (kept, result.metadata) == (_positions(items, again, what), again.metadata), f"{what} gives two answers"
    _check_ties(strategy, items, (max_k, min_k), kept, what)
    return result


def _positions(items: list[ScoredItem[Any]], result: SelectionResult[Any], what: str) -> list[int]:
    places = {id(one): position for position, one in enumerate(items)}
    assert all(id(one) in places for one in result.selected), f"{what} returns items that it was not given"
    return [places[id(one)] for one in result.selected]


def _dumped(metadata: dict[str, Any], what: str) -> str:
    try:
        return json.dumps(metadata, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{what}: metadata is no plain JSON: {metadata}") from error


def _check_ties(
    strategy: SelectionStrategy, items: list[ScoredItem[Any]], limits: tuple[int, int], kept: list[int], what: str
) -> None:
    tied = _positions(items, strategy.select(items, *limits, ties="keep"), what)
    assert set(kept) <= set(tied) or len(tied) == limits[0], f"{what}: ties='keep' drops items: {kept} becomes {tied}"
    assert len(tied) <= limits[0], f"{what}: ties='keep' keeps {len(tied)}, more than max_k"
    if len(tied) < limits[0]:
        values = [items[position].score for position in kept]
        missing = [position for position, one in enumerate(items) if one.score in values and position not in tied]
        assert not missing, f"{what}: ties='keep' leaves out {missing}"


def _check_input(strategy: SelectionStrategy, items: list[ScoredItem[Any]]) -> None:
    """Another order, another kind of sequence and dropped scores make no difference."""
    what = f"{strategy.name} of {[item.score for item in items]}"
    expected = [id(one) for one in strategy.select(items).selected]
    assert expected == [id(one) for one in strategy.select(tuple(items)).selected], f"{what}: a tuple gives another answer"
    back = sorted(items, key=lambda item: item.score, reverse=strategy.scale != "distance")
    found = strategy.select(list(reversed(back)), assume_sorted=False).selected
    scores = [one.score for one in strategy.select(items).selected]
    assert scores == [one.score for one in found], f"{what}: assume_sorted=False gives another answer"
    holed = [ScoredItem(Untouchable(), math.nan), *items, ScoredItem(Untouchable(), -math.inf)]
    dropped = strategy.select(holed, on_invalid="drop")
    assert expected == [id(one) for one in dropped.selected], f"{what}: on_invalid='drop' gives another answer"


def _check_refusals(strategy: SelectionStrategy) -> None:
    """What must be a ValueError."""
    worst = 0.6 if strategy.scale == "distance" else 0.4
    fine = [ScoredItem("a", 0.5), ScoredItem("b", worst)]
    refused: tuple[tuple[str, list[ScoredItem[str]], tuple[Any, int]], ...] = (
        ("min_k above max_k", fine, (1, 2)),
        ("a negative min_k", fine, (5, -1)),
        ("a max_k of 0", fine, (0, 0)),
        ("a max_k that is no whole number", fine, (2.5, 1)),
        ("unsorted scores", fine[::-1], (5, 1)),
        ("NaN", [fine[0], ScoredItem("c", math.nan)], (5, 1)),
        ("an infinite score", [ScoredItem("c", math.inf), fine[0]], (5, 1)),
    )
    take: Any = strategy.select
    for what, items, limits in refused:
        try:
            take(items, *limits)
        except ValueError:
            continue
        raise AssertionError(f"{strategy.name} takes {what} without a ValueError")


def _check_batch(strategy: SelectionStrategy, count: int, seed: int) -> None:
    """``select_batch`` keeps what ``select`` keeps."""
    try:
        from jumar.topk.batch import select_batch
    except ImportError:
        return
    lists = list(score_lists(seed, count, scale=strategy.scale))
    for max_k, min_k in LIMITS:
        mask = select_batch(lists, strategy, max_k, min_k, return_mask=True)
        counts = select_batch(lists, strategy, max_k, min_k)
        for query, scores in enumerate(lists):
            items = [ScoredItem(position, score) for position, score in enumerate(scores)]
            kept = [one.item for one in strategy.select(items, max_k, min_k).selected]
            what = f"{strategy.name} of {scores} with max_k={max_k}, min_k={min_k}"
            many = [position for position, flag in enumerate(mask[query].tolist()) if flag]
            assert kept == many, f"{what} keeps {kept} alone and {many} in a batch"
            assert len(kept) == counts[query], f"{what} keeps {len(kept)} alone and {counts[query]} in a batch"
