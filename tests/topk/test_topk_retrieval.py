"""Rules, scenarios and memory through a store: what is fetched, what is kept, what is logged; exact search in memory."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.errors import ConfigError, ScoreError, StrategyError, UsageError
from jumar.topk import OtsuSelectionStrategy, ScoredItem, embed_texts, embeddings, load_retrieval, register_embeddings
from jumar.topk.config import ElbowSelectionConfig, FixedKSelectionConfig, RetrievalConfig
from jumar.topk.embeddings import Embed
from jumar.topk.retrieval import (
    AsyncVectorStore,
    JsonFormatter,
    TurnLog,
    VectorStore,
    log_selection,
    retrieve,
    retrieve_memory,
    retrieve_memory_sync,
    retrieve_rules,
    retrieve_rules_sync,
    retrieve_scenarios,
    retrieve_scenarios_sync,
    retrieve_sync,
    select_candidates,
)
from jumar.topk.vector_store import NumpyVectorStore

PROBLEM = [
    ("Customer wants refund", 0.92),
    ("Customer asks about return", 0.89),
    ("Order status inquiry", 0.71),
    ("Shipping question", 0.45),
    ("General greeting", 0.42),
]
QUERY = [1.0, 0.0]


@dataclass(frozen=True)
class Session:
    tenant_id: str | None = "t1"
    agent_id: str | None = "a1"


@dataclass
class FakeStore:
    """Gives what it was told to, up to the limit, and remembers how it was asked."""

    found: list[tuple[str, float]] = field(default_factory=lambda: list(PROBLEM))
    asked: list[dict[str, Any]] = field(default_factory=list)

    def search(self, query_embedding, *, limit, tenant_id=None, agent_id=None, group_id=None):
        self.asked.append(
            {"query": list(query_embedding), "limit": limit, "tenant": tenant_id, "agent": agent_id, "group": group_id}
        )
        return [ScoredItem(name, score) for name, score in self.found[:limit]]


class AsyncFakeStore(FakeStore):
    async def search(self, query_embedding, **how):  # pyright: ignore[reportIncompatibleMethodOverride]
        await asyncio.sleep(0)
        return FakeStore.search(self, query_embedding, **how)


@pytest.fixture
def events():
    """What is logged, as the documents that a file of JSON lines would have, without the time."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("jumar.topk")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)

    def read():
        found = [json.loads(line) for line in stream.getvalue().splitlines()]
        assert all(isinstance(one.pop("time"), float) for one in found)
        return found

    yield read
    logger.removeHandler(handler)
    logger.setLevel(level)


# ----------------------------------------------------------------------------------------------------------- pipeline


def test_the_problem_of_the_seed_keeps_three_rules_and_asks_for_those_of_the_session():
    store = FakeStore()

    assert ["Customer wants refund", "Customer asks about return", "Order status inquiry"] == retrieve_rules_sync(
        QUERY, Session(), store
    )
    assert [{"query": QUERY, "limit": 20, "tenant": "t1", "agent": "a1", "group": None}] == store.asked


@pytest.mark.parametrize("make", [FakeStore, AsyncFakeStore])
def test_the_forms_that_are_awaited_do_the_same_with_either_kind_of_store(make):
    async def all_three(store):
        return [
            await retrieve_rules(QUERY, Session(), store),
            await retrieve_scenarios(QUERY, Session(), store),
            await retrieve_memory(QUERY, "g1", store),
        ]

    plain, given_store = FakeStore(), make()

    assert [
        retrieve_rules_sync(QUERY, Session(), plain),
        retrieve_scenarios_sync(QUERY, Session(), plain),
        retrieve_memory_sync(QUERY, "g1", plain),
    ] == asyncio.run(all_three(given_store))
    assert plain.asked == given_store.asked
    assert {"query": QUERY, "limit": 20, "tenant": None, "agent": None, "group": "g1"} == plain.asked[-1]


def test_a_store_that_must_be_awaited_is_refused_where_nobody_awaits():
    with pytest.raises(TypeError, match=r"AsyncFakeStore\.search must be awaited: use the form without _sync"):
        retrieve_rules_sync(QUERY, Session(), AsyncFakeStore())  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("wait", "now"), [(retrieve_rules, retrieve_rules_sync), (retrieve_scenarios, retrieve_scenarios_sync)])
def test_a_session_without_a_tenant_is_refused_unless_the_store_has_only_one(wait, now):
    session, store = Session(tenant_id=None), FakeStore()
    with pytest.raises(UsageError, match=r"no tenant_id.* say single_tenant=True"):
        now(QUERY, session, store)
    with pytest.raises(UsageError, match=r"no tenant_id.* say single_tenant=True"):
        asyncio.run(wait(QUERY, session, store))
    assert [] == store.asked, "nothing was asked for"

    assert now(QUERY, session, store, single_tenant=True) == asyncio.run(wait(QUERY, session, store, single_tenant=True)) != []
    assert [(None, "a1")] * 2 == [(one["tenant"], one["agent"]) for one in store.asked]
    now(QUERY, Session(), store, single_tenant=True)
    assert "t1" == store.asked[-1]["tenant"], "a tenant that is given is asked for"


def test_the_memory_of_no_group_is_not_that_of_all():
    for form in (retrieve_memory_sync, lambda *how: asyncio.run(retrieve_memory(*how))):
        with pytest.raises(UsageError, match="group_id is None"):
            form(QUERY, None, FakeStore())  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("kind", "message"),
    [("rule", r"kind is 'rule' \(did you mean 'rules'\?\): choose rules, scenarios, memory"), ([], r"kind is \[\]: choose")],
)
def test_a_kind_that_there_is_not_names_those_that_there_are(kind, message):
    store = FakeStore()
    for form in (retrieve_sync, lambda *how: asyncio.run(retrieve(*how))):
        with pytest.raises(StrategyError, match=message):
            form(kind, QUERY, store)
    with pytest.raises(StrategyError, match=message):
        select_candidates(kind, [])
    assert [] == store.asked


def test_each_kind_has_its_own_selection_and_the_limits_are_the_settings():
    config = RetrievalConfig(
        max_k=4,
        min_k=2,
        candidate_k=50,
        rule_selection=FixedKSelectionConfig(k=1),
        scenario_selection=FixedKSelectionConfig(k=3),
        memory_selection=FixedKSelectionConfig(k=9),
    )
    store = FakeStore()
    kept = {kind: len(retrieve_sync(kind, QUERY, store, config).selected) for kind in ("rules", "scenarios", "memory")}

    assert {"rules": 2, "scenarios": 3, "memory": 4} == kept
    assert {50} == {one["limit"] for one in store.asked}


def test_candidates_may_come_in_any_order():
    shuffled = [ScoredItem(name, score) for name, score in PROBLEM[::-1]]

    assert [0.92, 0.89, 0.71] == [one.score for one in select_candidates("rules", shuffled).selected]


def test_no_candidates_are_an_empty_answer():
    result = retrieve_sync("memory", QUERY, FakeStore(found=[]))

    assert ([], True, 0.0) == (result.selected, result.abstained, result.cutoff_score)


def test_a_score_that_is_no_number_is_an_error():
    with pytest.raises(ScoreError, match="position 1"):
        retrieve_sync("rules", QUERY, FakeStore(found=[("a", 0.9), ("b", float("nan"))]))


def test_with_a_real_embedding_model_the_rules_that_match_are_kept_and_those_of_others_never_seen():
    model = pytest.importorskip("static_model", reason="a real embedding model: tokenlearn-static-model")
    store = NumpyVectorStore[str]()
    names = [name for name, _ in PROBLEM]
    store.add(names[::-1], model.get_embeddings(names[::-1]), tenant_id="t1", agent_id="a1")
    store.add(["I want to return my order"], model.get_embeddings(["I want to return my order"]), tenant_id="t2", agent_id="a1")
    query = model.get_embeddings("I want to return my order")

    assert names == [one.item for one in store.search(query, limit=5, tenant_id="t1")], "in the order of the seed's list"
    assert names[:2] == asyncio.run(retrieve_rules(query, Session(), store))
    assert ["I want to return my order"] == retrieve_rules_sync(query, Session(tenant_id="t2"), store)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Registers the provider ``corner``, and returns what was asked of it: a text's vector is its length and 1."""
    asked: list[str] = []

    def make() -> Embed:
        asked.append("made")

        def embed(texts: Sequence[str]) -> list[list[float]]:
            asked.extend(texts)
            return [[float(len(text)), 1.0] for text in texts if text != "lost"]

        return embed

    monkeypatch.setattr(embeddings, "_FACTORIES", {})
    register_embeddings("corner", make)
    return asked


def test_a_text_is_embedded_by_the_registered_provider_that_the_settings_name(tmp_path: Path, registered: list[str]):
    (tmp_path / "s.toml").write_text('[pipeline.retrieval]\nembedding_provider = "corner"\n')
    config = load_retrieval(tmp_path / "s.toml", environ={})
    store = NumpyVectorStore[str]()
    store.add(["long", "short"], embed_texts(["a" * 50, ""], config), tenant_id="t1", agent_id="a1")

    assert ["short"] == retrieve_rules_sync("", Session(), store, config)
    assert ["long"] == asyncio.run(retrieve_rules("b" * 40, Session(), store, config))
    assert ["made", "a" * 50, "", "", "b" * 40] == registered, "made once"
    with pytest.raises(ScoreError, match="'corner' returned 1 embeddings for 2 texts"):
        embed_texts(["lost", "found"], config)


def test_what_is_no_provider_is_refused(registered: list[str]):
    with pytest.raises(ValueError, match=r"did you mean 'corner'.*known are: corner, default; others are registered with"):
        RetrievalConfig(embedding_provider="cornre")
    with pytest.raises(ConfigError, match="no embedding provider is registered: pass an embedding in place of a text"):
        retrieve_rules_sync("a text", Session(), NumpyVectorStore[str]())
    register_embeddings("default", lambda: lambda texts: [[1.0] for _ in texts])
    assert [[1.0]] == embed_texts(["a text"])
    with pytest.raises(ScoreError, match=r"texts should be a list of texts, is 'abc'; write \['abc'\]"):
        embed_texts("abc")
    for name, factory in (("", list), ("a:b", list), (None, list), ("x", 5)):
        bad: Any = (name, factory)
        with pytest.raises(ConfigError, match="is no "):
            register_embeddings(*bad)
    assert [] == registered


def test_a_real_model_is_named_in_the_settings_alone(tmp_path: Path):
    pytest.importorskip("static_model", reason="a real embedding model: tokenlearn-static-model")
    (tmp_path / "s.toml").write_text('[pipeline.retrieval]\nembedding_provider = "static_model:get_embeddings"\n')
    config = load_retrieval(tmp_path / "s.toml", environ={})
    names = [name for name, _ in PROBLEM]
    store = NumpyVectorStore[str]()
    store.add(names, embed_texts(names, config), tenant_id="t1", agent_id="a1")
    assert names[:2] == retrieve_rules_sync("I want to return my order", Session(), store, config)


# ---------------------------------------------------------------------------------------------------------------- log


def test_a_turn_is_one_event_nested_as_in_the_seed(events):
    config = RetrievalConfig(rule_selection=ElbowSelectionConfig())
    with TurnLog("abc123") as turn:
        retrieve_rules_sync(QUERY, Session(), FakeStore(), config, turn=turn)
        asyncio.run(retrieve("memory", QUERY, AsyncFakeStore(found=PROBLEM[:2]), config, turn=turn))

    assert [
        {
            "event": "jumar.topk_selected",
            "logical_turn_id": "abc123",
            "retrieval": {
                "rules": {
                    "strategy": "elbow",
                    "input_count": 5,
                    "output_count": 2,
                    "cutoff_score": 0.89,
                    "metadata": {"drop_threshold": 0.15, "min_score": 0.5},
                },
                "memory": {
                    "strategy": "clustering",
                    "input_count": 2,
                    "output_count": 2,
                    "cutoff_score": 0.89,
                    "metadata": {"clusters": 1, "num_clusters": 1, "reason": "too_few_items"},
                },
            },
        }
    ] == events()


@pytest.mark.parametrize("turn", ["abc123", None])
def test_a_retrieval_without_a_turn_is_an_event_of_its_own(events, turn):
    retrieve_scenarios_sync(QUERY, Session(), FakeStore(), turn=turn)

    assert [(turn, ["scenarios"])] == [(one["logical_turn_id"], list(one["retrieval"])) for one in events()]


def test_a_turn_that_fails_logs_what_it_had_and_one_without_retrievals_logs_nothing(events):
    def fails():
        with TurnLog("failed") as turn:
            retrieve_rules_sync(QUERY, Session(), FakeStore(), turn=turn)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    with TurnLog("empty"):
        pass

    assert ["failed"] == [one["logical_turn_id"] for one in events()]


def test_nobody_who_listens_costs_no_event(caplog):
    with caplog.at_level(logging.WARNING, logger="jumar.topk"):
        retrieve_rules_sync(QUERY, Session(), FakeStore())

    assert [] == caplog.records


# ------------------------------------------------------------------------------------------------------- exact search


def test_the_store_in_memory_is_a_store():
    store: VectorStore[str] = NumpyVectorStore[str]()
    awaited: AsyncVectorStore[str] = AsyncFakeStore()

    assert ([], True) == (store.search(QUERY, limit=3), hasattr(awaited, "search"))


def test_search_is_by_cosine_and_filters_hold():
    store = NumpyVectorStore[str]()
    store.add(["east", "north"], [[2.0, 0.0], [0.0, 5.0]], tenant_id="t1", agent_id="a1")
    store.add(["north-east"], [[1e200, 1e200]], tenant_id="t1", agent_id="a2", group_id="g")
    store.add(["west"], [[-1.0, 0.0]], tenant_id="t2")

    def found(**how):
        return [(one.item, round(one.score, 6)) for one in store.search(QUERY, **{"limit": 10, **how})]

    assert [("east", 1.0), ("north-east", 0.707107), ("north", 0.0), ("west", -1.0)] == found()
    assert [("east", 1.0), ("north-east", 0.707107)] == found(limit=2)
    assert [("east", 1.0), ("north", 0.0)] == found(tenant_id="t1", agent_id="a1")
    assert [("north-east", 0.707107)] == found(group_id="g")
    assert [] == found(tenant_id="t2", agent_id="a1")
    assert [] == found(tenant_id="unknown")
    assert [] == found(limit=0)
    assert 4 == len(store)


def test_a_name_of_one_filter_is_not_that_of_another():
    store = NumpyVectorStore[str]()
    store.add(["x"], [QUERY], tenant_id="same")

    assert [] == store.search(QUERY, limit=1, agent_id="same")


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)).filter(any), min_size=1, max_size=200),
    st.integers(1, 220),
    st.integers(1, 50),
)
def test_search_is_exact_and_equal_scores_keep_their_order(points, limit, batch):
    store = NumpyVectorStore[int]()
    for start in range(0, len(points), batch):
        part = points[start : start + batch]
        store.add(list(range(start, start + len(part))), part)
    query = np.array([0.6, 0.8], dtype=np.float32)
    found = store.search(query, limit=limit)
    slow = sorted(range(len(points)), key=lambda k: (-round(float(np.dot(points[k], query) / np.linalg.norm(points[k])), 5), k))

    assert slow[:limit] == sorted((one.item for one in found), key=slow.index)
    assert len(found) == min(limit, len(points))
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@pytest.mark.parametrize(
    ("embeddings", "message"),
    [
        ([[1.0, 0.0]], r"shape \(1, 2\) for 2 items"),
        ([1.0, 0.0], r"shape \(2,\) for 2 items"),
        ([[1.0], [2.0]], "has 1 dimensions and those in the store 2"),
        ([[1.0, 0.0], [0.0, 0.0]], "position 1 is not finite or all zeros"),
        ([[float("nan"), 0.0], [0.0, 1.0]], "position 0 is not finite or all zeros"),
    ],
)
def test_embeddings_that_cannot_be_compared_are_refused_and_nothing_is_stored(embeddings, message):
    store = NumpyVectorStore[str]()
    store.add(["first"], [QUERY])
    with pytest.raises(ScoreError, match=message):
        store.add(["a", "b"], embeddings)

    assert ["first"] == [one.item for one in store.search(QUERY, limit=9)]


@pytest.mark.parametrize("ids", [{"tenant_id": ["t1"]}, {"agent_id": {}}, {"group_id": 3}])
def test_an_id_that_is_no_text_is_refused_before_anything_is_stored(ids):
    store = NumpyVectorStore[str]()
    with pytest.raises(TypeError, match=f"{next(iter(ids))} is .*: give a text, or None"):
        store.add(["x"], [[1.0, 0.0, 0.0]], **ids)
    store.add(["y"], [QUERY])
    with pytest.raises(TypeError, match="give a text"):
        store.search(QUERY, limit=3, **ids)

    assert ["y"] == [one.item for one in store.search(QUERY, limit=3)]


@pytest.mark.parametrize("embeddings", [[["a", "b"]], [[1.0, 0.0], [1.0]], [None], [[10**400, 1]]])
def test_embeddings_that_are_no_numbers_are_refused(embeddings):
    with pytest.raises(ScoreError, match=r"no table of numbers|shape \(1,\) for"):
        NumpyVectorStore[str]().add(["x"] * len(embeddings), embeddings)


def test_nothing_to_add_is_no_error():
    store = NumpyVectorStore[str]()
    store.add([], [])

    assert 0 == len(store)


# ------------------------------------------------------------------------------------------------------ public names


def test_the_pipeline_and_the_store_are_names_of_the_package():
    from jumar import topk

    assert (retrieve_rules, retrieve_memory_sync, TurnLog) == (topk.retrieve_rules, topk.retrieve_memory_sync, topk.TurnLog)
    assert (NumpyVectorStore, VectorStore, AsyncVectorStore) == (topk.NumpyVectorStore, topk.VectorStore, topk.AsyncVectorStore)
    assert {name: getattr(topk, name) for name in topk.__all__}.keys() <= set(dir(topk))


@pytest.mark.parametrize(
    ("use", "what"),
    [
        ("from jumar.topk import NumpyVectorStore", "NumpyVectorStore needs numpy"),
        ("from jumar.topk import select_batch", "select_batch, as everything that works on many queries, needs numpy"),
        ("from jumar.topk import tune; tune([])", "needs numpy"),
        ("from jumar.topk import compare; compare([])", "needs numpy"),
    ],
)
def test_what_needs_numpy_names_the_extra(use: str, what: str):
    code = (
        "import sys; sys.modules['numpy'] = None\nfrom jumar.errors import ConfigError\n"
        f"try:\n    {use}\nexcept (ConfigError, ImportError) as error:\n"
        "    print(isinstance(error, ConfigError) and isinstance(error, ImportError), error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.startswith("True ")
    assert what in done.stdout
    assert "not installed here: pip install 'jumar[topk]'" in done.stdout


def test_the_package_and_one_query_need_no_numpy():
    code = (
        "import sys; sys.modules['numpy'] = None\nfrom jumar.topk import ScoredItem, TurnLog, VectorStore, retrieve_rules_sync\n"
        "from jumar.topk import AdaptiveKSelectionStrategy as A\nprint(len(A().select([ScoredItem(1, 0.9)]).selected))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "1" == done.stdout.strip()


def test_a_selection_made_elsewhere_is_logged_as_one_made_here(events):
    result = OtsuSelectionStrategy().select([ScoredItem(name, score) for name, score in PROBLEM])
    log_selection("tools", 9, result, turn="abc")
    with TurnLog("def") as turn:
        log_selection("tools", 5, result, turn=turn)
        log_selection("rules", 5, result, turn=turn)

    first, second = events()
    assert ("abc", ["tools"], 9, 3) == (
        first["logical_turn_id"],
        list(first["retrieval"]),
        first["retrieval"]["tools"]["input_count"],
        first["retrieval"]["tools"]["output_count"],
    )
    assert ("def", ["tools", "rules"]) == (second["logical_turn_id"], list(second["retrieval"]))
