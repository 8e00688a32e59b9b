"""Exact search in memory: every stored embedding is compared with the query. Needs numpy (``jumar[topk]``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from jumar.core.lazy import need_extra
from jumar.core.text import escape
from jumar.errors import ScoreError
from jumar.topk.contract import shown
from jumar.topk.result import ScoredItem

need_extra("topk", "NumpyVectorStore", "numpy")

import numpy as np  # noqa: E402 - after the check that says how to get it

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

_FILTERS = ("tenant_id", "agent_id", "group_id")
_FIRST_ROOM = 64


class NumpyVectorStore(Generic[T]):
    """A vector store in memory, by cosine similarity; a :class:`jumar.topk.retrieval.VectorStore`.

    Exact, and fast enough up to some 100,000 embeddings; nothing is persisted. Equal scores keep the order in which the items
    were added. Items are never looked at. Not for several threads that add at the same time.
    """

    def __init__(self) -> None:
        self._items: list[T] = []
        self._rows: NDArray[np.float32] = np.empty((0, 0), dtype=np.float32)
        self._codes: NDArray[np.int64] = np.empty((0, len(_FILTERS)), dtype=np.int64)
        self._names: dict[tuple[int, str | None], int] = {}

    def __len__(self) -> int:
        return len(self._items)

    def add(
        self,
        items: Sequence[T],
        embeddings: ArrayLike,
        *,
        tenant_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
    ) -> None:
        """Store ``items`` with one embedding each (items × dimensions); all of them, or none when there is an error.

        Errors: :class:`jumar.errors.ScoreError`, a ValueError, when the numbers of both or of the dimensions differ, and for an
        embedding that is not numbers, not finite or all zeros: it has no direction; TypeError for an id that is no text.
        """
        new_items = list(items)
        rows = self._unit_rows(embeddings, len(new_items))
        names = _filters(tenant_id, agent_id, group_id)
        if not new_items:
            return
        size, new = len(self._items), len(self._items) + len(new_items)
        if new > len(self._rows):
            room = max(new, 2 * len(self._rows), _FIRST_ROOM)
            grown = _grown(self._rows, (room, rows.shape[1]), size), _grown(self._codes, (room, len(_FILTERS)), size)
            self._rows, self._codes = grown  # both or none, where memory is short
        self._rows[size:new] = rows
        for column, value in enumerate(names):
            self._codes[size:new, column] = self._names.setdefault((column, value), len(self._names))
        self._items.extend(new_items)

    def search(
        self,
        query_embedding: ArrayLike,
        *,
        limit: int,
        tenant_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
    ) -> list[ScoredItem[T]]:
        """Return at most ``limit`` items with their cosine similarity, best first; those of the given filters only.

        An empty store, a filter that nothing fits and a ``limit`` of 0 or less give an empty list. Errors:
        :class:`jumar.errors.ScoreError` and TypeError, as :meth:`add`, for the query and the ids.
        """
        wanted = _filters(tenant_id, agent_id, group_id)
        if not self._items or limit <= 0:
            return []
        query = self._unit_rows([query_embedding], 1)[0]  # pyright: ignore[reportArgumentType]
        where = self._fitting(wanted)
        if where is not None and not len(where):
            return []
        rows = self._rows[: len(self._items)]
        scores: NDArray[np.float32] = (rows if where is None else rows[where]) @ query
        best = _best(scores, limit)
        places = best if where is None else where[best]
        kept: list[tuple[int, float]] = list(zip(places.tolist(), scores[best].tolist(), strict=True))
        return [ScoredItem(self._items[place], score) for place, score in kept]

    def _fitting(self, wanted: tuple[str | None, ...]) -> NDArray[np.intp] | None:
        """Return the places of the items that fit; None for all of them."""
        if all(value is None for value in wanted):
            return None
        fits = np.ones(len(self._items), dtype=np.bool_)
        for column, value in enumerate(wanted):
            if value is not None:
                fits &= self._codes[: len(self._items), column] == self._names.get((column, value), -1)
        return np.flatnonzero(fits)

    def _unit_rows(self, embeddings: ArrayLike, count: int) -> NDArray[np.float32]:
        try:
            rows: NDArray[Any] = np.asarray(embeddings, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ScoreError(f"the embeddings are no table of numbers ({escape(str(error))}): give each item one row") from error
        if not count and not rows.size:
            return np.empty((0, self._rows.shape[1]), dtype=np.float32)
        if rows.ndim != 2 or len(rows) != count:
            raise ScoreError(f"embeddings of the shape {rows.shape} for {count} items: give one row of numbers for each item")
        if self._items and rows.shape[1] != self._rows.shape[1]:
            raise ScoreError(
                f"an embedding has {rows.shape[1]} dimensions and those in the store {self._rows.shape[1]}: "
                "use the same model for everything in a store"
            )
        largest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
        bad = np.flatnonzero(~(np.isfinite(largest) & (largest > 0)))
        if len(bad):
            raise ScoreError(f"the embedding at position {bad[0]} is not finite or all zeros; it has no direction")
        rows = rows / largest  # so that squares neither overflow nor vanish
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def _filters(*ids: str | None) -> tuple[str | None, ...]:
    for name, value in zip(_FILTERS, ids, strict=True):
        if value is not None and not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{name} is {shown(value)}: give a text, or None")
    return ids


def _grown(old: NDArray[Any], shape: tuple[int, int], size: int) -> NDArray[Any]:
    new = np.zeros(shape, dtype=old.dtype)
    if size:
        new[:size] = old[:size]
    return new


def _best(scores: NDArray[np.float32], limit: int) -> NDArray[np.intp]:
    """Return the places of the ``limit`` largest scores, largest first, equal ones in their order."""
    if limit >= len(scores):
        return np.argsort(-scores, kind="stable")
    worst = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    places = np.flatnonzero(scores >= worst)
    return places[np.argsort(-scores[places], kind="stable")][:limit]
