"""``select_batch``: the same choice for many queries at once; and the tools of the strategies' rules for many, ``keep_many``.

Tables are (items, queries): a column a query, descending, finite, so that every row is contiguous. Where a comparison hangs on
the last bits of a logarithm or a sum, the rule for one query decides, so that one and many always agree. Needs numpy
(``jumar[topk]``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from jumar.core.lazy import need_extra
from jumar.errors import ScoreError
from jumar.topk.base import RuleStrategy, SelectionStrategy, unusual
from jumar.topk.contract import LARGEST, check_limits, check_modes, raise_unsorted, read_scores, too_large
from jumar.topk.result import OnInvalid, ScoredItem, Ties
from jumar.topk.strategies import DEFAULT_STRATEGY, create_selection_strategy

need_extra("topk", "select_batch, as everything that works on many queries,", "numpy")

import numpy as np  # noqa: E402 - after the check that says how to get it
from numpy.typing import NDArray  # noqa: E402

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Counts = NDArray[np.intp]


class BatchCuts(NamedTuple):
    """How many each query keeps, and which of these numbers are not sure (None: all are)."""

    counts: Counts
    unsure: Bools | None = None


def tally(flags: Bools) -> Counts:
    """Return how many of each column are true; ``flags`` (items, queries)."""
    # bytes add up several times faster than booleans that are counted into integers
    if len(flags) < 256:
        return np.add.reduce(flags.view(np.uint8), axis=0, dtype=np.uint8).astype(np.intp)
    return flags.sum(axis=0, dtype=np.intp)


def leading(hits: Bools) -> Counts:
    """Return how many of each column come before the first true one; all of them when there is none."""
    alive = np.ones(hits.shape[1], np.bool_)
    bytes_of_alive = alive.view(np.uint8)
    small = len(hits) < 256
    counts = np.zeros(hits.shape[1], np.uint8 if small else np.intp)
    for row in hits:
        np.greater(alive, row, out=alive)
        np.add(counts, bytes_of_alive if small else alive, out=counts)
    return counts.astype(np.intp)


def at_least(table: Floats, floor: float | None) -> Counts:
    """Return how many scores of each query are at least ``floor``."""
    if floor is None:
        return np.zeros(table.shape[1], np.intp) + len(table)
    flags: Bools = table >= floor
    return tally(flags)


def pick(table: Floats, rows: Counts) -> Floats:
    """Return one value a column, that of ``rows``."""
    return np.take_along_axis(table, rows[None, :], axis=0)[0]


# ------------------------------------------------------------------------------------------------------ select_batch


CELLS = 1 << 17
"""Scores worked on at once: 1 MB of them, so that a kernel's steps find them in the processor's cache."""


@overload
def select_batch(
    scores: ArrayLike | Sequence[Sequence[float]],
    strategy: object = DEFAULT_STRATEGY,
    max_k: int = 20,
    min_k: int = 1,
    *,
    return_mask: Literal[False] = False,
    assume_sorted: bool = True,
    on_invalid: OnInvalid = "raise",
    ties: Ties = "split",
    **params: Any,
) -> Counts: ...
@overload
def select_batch(
    scores: ArrayLike | Sequence[Sequence[float]],
    strategy: object = DEFAULT_STRATEGY,
    max_k: int = 20,
    min_k: int = 1,
    *,
    return_mask: Literal[True],
    assume_sorted: bool = True,
    on_invalid: OnInvalid = "raise",
    ties: Ties = "split",
    **params: Any,
) -> Bools: ...
def select_batch(
    scores: ArrayLike | Sequence[Sequence[float]],
    strategy: object = DEFAULT_STRATEGY,
    max_k: int = 20,
    min_k: int = 1,
    *,
    return_mask: bool = False,
    assume_sorted: bool = True,
    on_invalid: OnInvalid = "raise",
    ties: Ties = "split",
    **params: Any,
) -> Counts | Bools:
    """Return how many items each query keeps (queries); with ``return_mask`` which ones, as booleans (queries × items).

    ``scores`` (queries, items) descend in every row; rows of different lengths may come as a list, whose mask is as wide as the
    longest. ``strategy`` is a name, a configuration or a strategy, ``entropy_normalized`` when absent; ``params`` are its
    parameters. What is kept is what :meth:`jumar.topk.SelectionStrategy.select` keeps of each row. Only the mask says which
    items ``clustering`` keeps, since they need not be the first ones. Errors: as ``select``, with the number of the query.
    """
    max_k, min_k = check_limits(max_k, min_k)
    check_modes(ties, on_invalid)
    chosen = create_selection_strategy(strategy, **params)
    job = _Job(chosen, _kernel(chosen), max_k, min_k, ties, return_mask, not assume_sorted)
    table = _table(scores)
    if isinstance(table, list) or (on_invalid == "drop" and not np.isfinite(table).all()):
        return _uneven(job, table, drop=on_invalid == "drop")
    return job.run(table)


@dataclass(frozen=True)
class _Job:
    """What is the same for all queries."""

    strategy: SelectionStrategy
    kernel: Callable[..., Any] | None
    max_k: int
    min_k: int
    ties: Ties
    mask: bool
    sort: bool

    def run(self, table: Floats, queries: list[int] | None = None) -> Counts | Bools:
        """Return the counts or the mask of a table without gaps; ``queries`` are its rows' numbers, for errors."""
        rows, size = table.shape
        out = np.zeros((rows, size), np.bool_) if self.mask else np.zeros(rows, np.intp)
        if size:
            step = max(CELLS // (size if self._whole else min(size, self.max_k)), 1)
            for start in range(0, rows, step):
                numbers = range(start, min(start + step, rows)) if queries is None else queries[start : start + step]
                out[start : start + step] = self._block(table[start : start + step], numbers)
        return out

    @property
    def _whole(self) -> bool:
        return isinstance(self.strategy, RuleStrategy) and self.strategy.WHOLE

    def _block(self, block: Floats, numbers: Sequence[int]) -> Counts | Bools:
        if self.strategy.scale == "distance":
            block = np.negative(block)
        order = None
        if self.sort:
            _check_finite(block, numbers)
            order = np.argsort(-block, axis=1, kind="stable")
            block = np.take_along_axis(block, order, axis=1)
        else:
            _check(block, numbers, negated=self.strategy.scale == "distance")
        counts, flags = self._chosen(block)
        if not self.mask:
            return counts
        if flags is None:
            size: int = block.shape[1]
            flags = np.arange(size) < counts.reshape(-1, 1)
        if order is None:
            return flags
        scattered = np.empty(block.shape, np.bool_)
        np.put_along_axis(scattered, order, flags, axis=1)
        return scattered

    def _chosen(self, block: Floats) -> tuple[Counts, Bools | None]:
        """Return how many are kept, and which, unless they are the first ones."""
        strategy, size = self.strategy, block.shape[1]
        prefixes = isinstance(strategy, RuleStrategy) and strategy.prefix
        if self.kernel is None or (self.ties == "keep" and not prefixes):
            flags = np.array([self._one(row) for row in block.tolist()], np.bool_).reshape(block.shape)
            return flags.sum(axis=1, dtype=np.intp), flags
        table = np.ascontiguousarray((block if self._whole else block[:, : self.max_k]).T)
        if not prefixes:
            picked: Bools = self.kernel(table, self.max_k, self.min_k)
            return tally(picked), picked.T
        kept: BatchCuts = self.kernel(table, self.max_k, self.min_k)
        counts = kept.counts
        if kept.unsure is not None and isinstance(strategy, RuleStrategy):
            for query in np.flatnonzero(kept.unsure).tolist():
                counts[query] = strategy.cut(block[query].tolist(), self.max_k, self.min_k)[0]
        most, least = min(self.max_k, size), min(self.min_k, size)
        counts = np.clip(counts, least, most)
        return (_with_ties(block, counts, most) if self.ties == "keep" else counts), None

    def _one(self, row: list[float]) -> list[bool]:
        """Ask the strategy about one query; distances are given back their sign."""
        sign = -1 if self.strategy.scale == "distance" else 1
        items = [ScoredItem(position, sign * score) for position, score in enumerate(row)]
        result = self.strategy.select(items, self.max_k, self.min_k, **unusual(ties=self.ties))
        flags = [False] * len(row)
        for one in result.selected:
            flags[one.item] = True
        return flags


def _kernel(strategy: SelectionStrategy) -> Callable[..., Any] | None:
    """Return the rule for many queries, None where the class has none itself: one that it inherits may belong to another rule."""
    rule: Any = strategy
    return rule.keep_many if "keep_many" in vars(type(strategy)) else None


def _table(scores: Any) -> Floats | list[Floats]:
    """Return an array (queries, items) of float64, or a list of rows where they differ in length."""
    if hasattr(scores, "__array__"):
        array: NDArray[Any] = np.asarray(scores)
        if array.ndim != 2:
            raise ScoreError(f"scores have {array.ndim} dimension{'s' * (array.ndim != 1)}: give an array of queries × items")
        if array.dtype.kind in "fiub":
            return np.ascontiguousarray(array, dtype=np.float64)
    rows: list[Floats] = []
    for query, row in enumerate(scores):
        if not hasattr(row, "__len__") or isinstance(row, (str, bytes, dict)):
            raise ScoreError(f"query {query} is no list of scores: give queries × items")
        try:
            rows.append(np.array(read_scores(row), dtype=np.float64))
        except ScoreError as error:
            raise ScoreError(f"query {query}: {error}") from error
    if len({len(row) for row in rows}) <= 1:
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(rows[0]) if rows else 0)
    return rows


def _uneven(job: _Job, table: Floats | list[Floats], *, drop: bool) -> Counts | Bools:
    """Return the result for rows of different lengths, or with scores to be dropped: those of one length at a time."""
    places = [np.flatnonzero(np.isfinite(row)) if drop else np.arange(len(row)) for row in table]
    lengths = np.array([len(place) for place in places])
    width = max((len(row) for row in table), default=0)
    out = np.zeros((len(places), width), np.bool_) if job.mask else np.zeros(len(places), np.intp)
    for length in np.unique(lengths):
        queries = np.flatnonzero(lengths == length)
        positions = np.array([places[query] for query in queries], np.intp).reshape(len(queries), length)
        rows = np.array([table[query][places[query]] for query in queries]).reshape(len(queries), length)
        found = job.run(rows, queries.tolist())
        if job.mask:
            out[queries[:, None], positions] = found
        else:
            out[queries] = found
    return out


def _check(block: Floats, numbers: Sequence[int], *, negated: bool) -> None:
    """Raise unless all scores are finite and every row descends: one comparison of neighbours in the flat array.

    NaN compares false, and in a row that descends an infinity can only be at an end.
    """
    size: int = block.shape[1]
    flat = block.reshape(-1)
    fine = np.empty(flat.size, np.bool_)
    np.greater_equal(flat[:-1], flat[1:], out=fine[:-1])
    fine[size - 1 :: size] = True  # the last of a row and the first of the next
    if fine.all() and (np.abs(block[:, 0]) <= LARGEST).all() and (np.abs(block[:, -1]) <= LARGEST).all():
        return
    _check_finite(block, numbers)
    query = int(np.argmin(fine)) // size
    raise_unsorted(block[query].tolist(), negated=negated, query=numbers[query])


def _check_finite(block: Floats, numbers: Sequence[int]) -> None:
    bad = np.argwhere(~(np.abs(block) <= LARGEST))
    if len(bad):
        query, position = bad[0].tolist()
        score = float(block[query, position])
        what = f"the score at position {position} is {score!r}: scores are finite, or pass on_invalid='drop'"
        raise ScoreError(f"query {numbers[query]}: {too_large(position, score) if np.isfinite(score) else what}")


def _with_ties(block: Floats, counts: Counts, most: int) -> Counts:
    """Return the counts with those that tie with the last one, up to ``most``."""
    for position in range(1, most):
        counts = counts + ((counts == position) & (block[:, position] == block[:, position - 1]))
    return counts
