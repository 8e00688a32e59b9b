"""Where candidates come from: anything that finds the items nearest to an embedding.

Two Protocols with the same one method, one of them asynchronous. :class:`jumar.topk.NumpyVectorStore` is one that
works without a server; an adapter to another store is a few lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from jumar.topk.result import ScoredItem

__all__ = ["AsyncVectorStore", "VectorStore"]

T = TypeVar("T")


class VectorStore(Protocol[T]):
    """Finds items by embedding."""

    def search(
        self,
        query_embedding: Sequence[float],
        *,
        limit: int,
        tenant_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
    ) -> Sequence[ScoredItem[T]]:
        """Return at most ``limit`` items with their scores, best first.

        Only items that were stored with the same ``tenant_id``, ``agent_id`` and ``group_id`` are looked at; None does not
        filter, so that None for all of them finds the items of every tenant. Nothing that fits is an empty sequence.
        """
        ...


class AsyncVectorStore(Protocol[T]):
    """Finds items by embedding, and is awaited."""

    async def search(
        self,
        query_embedding: Sequence[float],
        *,
        limit: int,
        tenant_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
    ) -> Sequence[ScoredItem[T]]:
        """Return as :meth:`VectorStore.search`."""
        ...
