"""Rules, scenarios and memory for a prompt: fetch candidates, keep as many as the scores speak for, log what was decided.

Each in an asynchronous form, as an agent's turn has it, and in one that blocks (``…_sync``). Settings come from
``jumar.topk.settings.load_retrieval``; without any, the built-in ones hold. One event a retrieval goes to the logger
``jumar.topk``, or one a turn, with a :class:`TurnLog`::

    with TurnLog("abc123") as turn:
        rules = await retrieve_rules(embedding, session, rule_store, config, turn=turn)
        episodes = await retrieve_memory(embedding, "group-1", memory_store, config, turn=turn)
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Sequence
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypedDict, TypeVar, Unpack

from jumar.core.text import nearest
from jumar.errors import StrategyError, UsageError
from jumar.topk.base import SelectionStrategy
from jumar.topk.contract import shown
from jumar.topk.embeddings import embed_texts
from jumar.topk.result import ScoredItem, SelectionResult
from jumar.topk.strategies import create_selection_strategy

if TYPE_CHECKING:
    from jumar.topk.config import RetrievalConfig

T = TypeVar("T")

Kind = Literal["rules", "scenarios", "memory"]
"""What is retrieved: it says which selection of the settings decides, and where it stands in the log."""

EVENT: Final = "jumar.topk_selected"

_SELECTION: Final[dict[Kind, str]] = {
    "rules": "rule_selection",
    "scenarios": "scenario_selection",
    "memory": "memory_selection",
}
_log = logging.getLogger("jumar.topk")


# ---------------------------------------------------------------------------------------------- where candidates come from


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


class Session(Protocol):
    """Whose turn it is: what rules and scenarios are filtered by."""

    @property
    def tenant_id(self) -> str | None: ...

    @property
    def agent_id(self) -> str | None: ...


# ------------------------------------------------------------------------------------------------------------- the log


class TurnLog:
    """Gathers the selections of one turn and logs them as one event when it is left, also by an error; no event without any.

    The record's message is ``jumar.topk_selected``; it carries ``logical_turn_id`` and ``retrieval``, by kind: ``strategy``,
    ``input_count``, ``output_count``, ``cutoff_score`` and ``metadata``. A second selection of a kind replaces the first.
    """

    def __init__(self, logical_turn_id: str | None = None) -> None:
        self.logical_turn_id = logical_turn_id
        self.retrieval: dict[str, dict[str, Any]] = {}

    def add(self, kind: str, input_count: int, result: SelectionResult[Any]) -> None:
        """Take note of a selection from ``input_count`` candidates."""
        self.retrieval[kind] = {
            "strategy": result.method,
            "input_count": input_count,
            "output_count": len(result.selected),
            "cutoff_score": result.cutoff_score,
            "metadata": result.metadata,
        }

    def emit(self) -> None:
        """Log what was gathered, and forget it."""
        if self.retrieval:
            _log.info(EVENT, extra={"logical_turn_id": self.logical_turn_id, "retrieval": self.retrieval})
            self.retrieval = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.emit()


class JsonFormatter(logging.Formatter):
    """One JSON document a line: what ``jumar topk drift`` reads. Put it on a handler of the logger ``jumar.topk``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's event, its ``time`` in seconds since 1970, and the fields of a selection if it has them."""
        line: dict[str, Any] = {"event": record.getMessage(), "time": record.created}
        for name in ("logical_turn_id", "retrieval"):
            if hasattr(record, name):
                line[name] = getattr(record, name)
        return json.dumps(line, ensure_ascii=False)


# ------------------------------------------------------------------------------------------------------- the pipeline


class Ids(TypedDict, total=False):
    """Whose items are looked for; an id that is None or not given does not filter."""

    tenant_id: str | None
    agent_id: str | None
    group_id: str | None


def _all(ids: Ids) -> Ids:
    return {"tenant_id": None, "agent_id": None, "group_id": None, **ids}


def retrieve_sync(
    kind: Kind,
    query_embedding: Sequence[float] | str,
    store: VectorStore[T],
    config: RetrievalConfig | None = None,
    *,
    turn: TurnLog | str | None = None,
    **ids: Unpack[Ids],
) -> SelectionResult[T]:
    """Fetch ``candidate_k`` items, keep ``min_k`` … ``max_k`` of them by the selection that ``config`` has for ``kind``.

    A text in place of an embedding is embedded by the ``embedding_provider`` of ``config``.
    ``turn`` is the log of a turn, or the id to log at once. An id of None does not filter: here it is the caller who sees to it
    that nobody gets what is another tenant's. Errors: whatever the store raises; TypeError for one that must be awaited;
    :class:`jumar.errors.StrategyError`, a ValueError, for a ``kind`` that there is not; :class:`jumar.errors.ScoreError` for
    candidates whose scores are no finite numbers.
    """
    _check_kind(kind)
    settings = config or _built_in()
    query = _embedded(query_embedding, settings)
    candidates: Any = store.search(query, limit=settings.candidate_k, **_all(ids))
    if inspect.isawaitable(candidates):
        if inspect.iscoroutine(candidates):
            candidates.close()
        raise TypeError(f"{type(store).__name__}.search must be awaited: use the form without _sync")
    return select_candidates(kind, candidates, settings, turn=turn)


def _embedded(query: Sequence[float] | str, settings: RetrievalConfig) -> Sequence[float]:
    return embed_texts([query], settings)[0] if isinstance(query, str) else query


async def retrieve(
    kind: Kind,
    query_embedding: Sequence[float] | str,
    store: AsyncVectorStore[T] | VectorStore[T],
    config: RetrievalConfig | None = None,
    *,
    turn: TurnLog | str | None = None,
    **ids: Unpack[Ids],
) -> SelectionResult[T]:
    """Do what :func:`retrieve_sync` does, and await the store; a store that blocks may be given, too, and then blocks."""
    _check_kind(kind)
    settings = config or _built_in()
    query = query_embedding
    if isinstance(query, str):
        import asyncio

        query = await asyncio.to_thread(_embedded, query, settings)  # a model takes a while, and other turns go on meanwhile
    candidates: Any = store.search(query, limit=settings.candidate_k, **_all(ids))
    if inspect.isawaitable(candidates):
        candidates = await candidates
    return select_candidates(kind, candidates, settings, turn=turn)


def select_candidates(
    kind: Kind,
    candidates: Sequence[ScoredItem[T]],
    config: RetrievalConfig | None = None,
    *,
    turn: TurnLog | str | None = None,
) -> SelectionResult[T]:
    """Return what is kept of ``candidates``, which may be in any order and from anywhere, and log it.

    Errors: :class:`jumar.errors.StrategyError` and :class:`jumar.errors.ScoreError`, as :func:`retrieve_sync`.
    """
    _check_kind(kind)
    settings = config or _built_in()
    strategy = _strategy(getattr(settings, _SELECTION[kind]))
    result = strategy.select(candidates, max_k=settings.max_k, min_k=settings.min_k, assume_sorted=False)
    log_selection(kind, len(candidates), result, turn=turn)
    return result


def log_selection(kind: str, input_count: int, result: SelectionResult[Any], *, turn: TurnLog | str | None = None) -> None:
    """Log a selection from ``input_count`` candidates that was made elsewhere, as the functions here log theirs.

    ``kind`` is where it stands below ``retrieval``: one of :data:`Kind` or a word of yours. ``turn`` is the log of a turn, or the
    id to log at once.
    """
    if isinstance(turn, TurnLog):
        turn.add(kind, input_count, result)
    elif _log.isEnabledFor(logging.INFO):
        with TurnLog(turn) as alone:
            alone.add(kind, input_count, result)


def _check_kind(kind: object) -> None:
    if not isinstance(kind, str) or kind not in _SELECTION:
        close = nearest(kind, list(_SELECTION)) if isinstance(kind, str) else ""
        raise StrategyError(f"kind is {shown(kind)}{close}: choose {', '.join(_SELECTION)}")


@lru_cache(maxsize=1)
def _built_in() -> RetrievalConfig:
    from jumar.topk.config import RetrievalConfig

    return RetrievalConfig()


@lru_cache(maxsize=64)
def _strategy(selection: object) -> SelectionStrategy:
    """Return the strategy of a configuration; configurations are frozen, so that equal ones have the same."""
    return create_selection_strategy(selection)


def _owner(session: Session, *, single_tenant: bool) -> Ids:
    if session.tenant_id is None and not single_tenant:
        raise UsageError(
            "the session has no tenant_id, so that those of all tenants would be found: give it one, or say single_tenant=True "
            "if the store has only one tenant"
        )
    return {"tenant_id": session.tenant_id, "agent_id": session.agent_id}


def _check_group(group_id: object) -> None:
    if group_id is None:
        raise UsageError("group_id is None, so that the memory of all groups would be found: give the id of one")


def _items(result: SelectionResult[T]) -> list[T]:
    return [one.item for one in result.selected]


# ----------------------------------------------------------------------------------------------------- the seed's three


async def retrieve_rules(
    query_embedding: Sequence[float] | str,
    session: Session,
    store: AsyncVectorStore[T] | VectorStore[T],
    config: RetrievalConfig | None = None,
    *,
    turn: TurnLog | str | None = None,
    single_tenant: bool = False,
) -> list[T]:
    """Return the rules to apply, best first: those of the session's tenant and agent.

    A session without an agent gets those of all agents of its tenant. One without a tenant is refused, since without a filter
    it would get those of all tenants; ``single_tenant=True`` says that the store has only one. Errors:
    :class:`jumar.errors.UsageError`.
    """
    owner = _owner(session, single_tenant=single_tenant)
    return _items(await retrieve("rules", query_embedding, store, config, turn=turn, **owner))


async def retrieve_scenarios(
    query_embedding: Sequence[float] | str,
    session: Session,
    store: AsyncVectorStore[T] | VectorStore[T],
    config: RetrievalConfig | None = None,
    *,
    turn: TurnLog | str | None = None,
    single_tenant: bool = False,
) -> list[T]:
    """Return the scenarios that the turn may be in, best first: those of the session's tenant and agent.

    A session without an agent gets those of all agents of its tenant. One without a tenant is refused, since without a filter
    it would get those of all tenants; ``single_tenant=True`` says that the store has only one. Errors:
    :class:`jumar.errors.UsageError`.
    """
    owner = _owner(session, single_tenant=single_tenant)
    return _items(await retrieve("scenarios", query_embedding, store, config, turn=turn, **owner))


async def retrieve_memory(
    query_embedding: Sequence[float] | str,
    group_id: str,
    store: AsyncVectorStore[T] | VectorStore[T],
    config: RetrievalConfig | None = None,
    *,
    turn: TurnLog | str | None = None,
) -> list[T]:
    """Return the episodes to remember, best first: those of the group.

    Errors: :class:`jumar.errors.UsageError` for None, which would find those of all groups.
    """
    _check_group(group_id)
    return _items(await retrieve("memory", query_embedding, store, config, group_id=group_id, turn=turn))


def retrieve_rules_sync(
    query_embedding: Sequence[float] | str,
    session: Session,
    store: VectorStore[T],
    config: RetrievalConfig | None = None,
    *,
    turn: TurnLog | str | None = None,
    single_tenant: bool = False,
) -> list[T]:
    """Return as :func:`retrieve_rules`, without awaiting anything."""
    owner = _owner(session, single_tenant=single_tenant)
    return _items(retrieve_sync("rules", query_embedding, store, config, turn=turn, **owner))


def retrieve_scenarios_sync(
    query_embedding: Sequence[float] | str,
    session: Session,
    store: VectorStore[T],
    config: RetrievalConfig | None = None,
    *,
    turn: TurnLog | str | None = None,
    single_tenant: bool = False,
) -> list[T]:
    """Return as :func:`retrieve_scenarios`, without awaiting anything."""
    owner = _owner(session, single_tenant=single_tenant)
    return _items(retrieve_sync("scenarios", query_embedding, store, config, turn=turn, **owner))


def retrieve_memory_sync(
    query_embedding: Sequence[float] | str,
    group_id: str,
    store: VectorStore[T],
    config: RetrievalConfig | None = None,
    *,
    turn: TurnLog | str | None = None,
) -> list[T]:
    """Return as :func:`retrieve_memory`, without awaiting anything."""
    _check_group(group_id)
    return _items(retrieve_sync("memory", query_embedding, store, config, group_id=group_id, turn=turn))
