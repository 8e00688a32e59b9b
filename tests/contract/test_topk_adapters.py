"""The adapters inside the real libraries: LangChain's compressors, LlamaIndex's postprocessors and Haystack's components."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import uuid
import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from jumar.errors import ScoreError
from jumar.topk import STRATEGIES, create_selection_strategy
from jumar.topk.base import RuleStrategy
from jumar.topk.config import ElbowSelectionConfig

PROBLEM = [
    ("Customer wants refund", 0.92),
    ("Customer asks about return", 0.89),
    ("Order status inquiry", 0.71),
    ("Shipping question", 0.45),
    ("General greeting", 0.42),
]
KEPT = [name for name, _ in PROBLEM[:3]]
DIRECTIONS = {"ask": [1.0, 0.0], "same": [2.0, 0.0], "near": [0.9, 0.1], "far": [0.0, 1.0], "empty": [0.0, 0.0]}


def loaded(name: str) -> Any:
    """The adapter; the libraries' own deprecations are not what is tested."""
    library = {"langchain": "langchain_core", "llamaindex": "llama_index.core", "haystack": "haystack"}[name]
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when it is imported; a test tells nobody
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(library, reason=f"needs the extra: jumar[{name}]")
        return __import__(f"jumar.integrations.{name}", fromlist=["*"])


@dataclass(frozen=True)
class Own(RuleStrategy):
    """A strategy that jumar does not know by name."""

    NAME: ClassVar[str] = "own"
    count: int = 1

    def cut(self, scores, max_k, min_k):  # noqa: ARG002
        return self.count, {}


CHOICES = [
    *sorted(STRATEGIES),
    {"strategy": "elbow", "scale": "bm25", "drop_threshold": 0.3, "min_score": 2.5},
    {"strategy": "largest_gap", "scale": "distance"},
]


def check_settings(made):
    with pytest.raises(ValueError, match="min_k is 2 and max_k 1"):
        made(max_k=1, min_k=2)
    with pytest.raises(ValueError, match="min_k is 30 and max_k 20"):
        made(min_k=30)
    one = made(max_k=4, min_k=2)
    for name, value in (("max_k", 1), ("min_k", 5), ("max_k", 0), ("strategy", "elbo"), ("strategy", None)):
        with pytest.raises(ValueError):
            setattr(one, name, value)
    assert (4, 2, create_selection_strategy()) == (one.max_k, one.min_k, one.strategy), "nothing was set"
    one.strategy, one.max_k, one.min_k = "elbow", 9, 9
    assert (create_selection_strategy("elbow"), 9, 9) == (one.strategy, one.max_k, one.min_k)


# ---------------------------------------------------------------------------------------------------------- LangChain


@pytest.fixture(scope="module")
def langchain() -> Any:
    return loaded("langchain")


def documents(langchain, key="relevance_score"):
    from langchain_core.documents import Document

    return [Document(page_content=name, metadata={key: score, "source": "x"}) for name, score in PROBLEM]


def embeddings(langchain):
    from langchain_core.embeddings import Embeddings

    class Directions(Embeddings):
        def embed_documents(self, texts):
            return [DIRECTIONS[text] for text in texts]

        def embed_query(self, text):
            return DIRECTIONS[text]

    return Directions()


def compared(langchain, asked, vectors) -> list[float]:
    """The scores that documents with these embeddings get, in their order."""
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    class Given(Embeddings):
        def embed_documents(self, texts):  # noqa: ARG002
            return vectors

        def embed_query(self, text):  # noqa: ARG002
            return asked

    compressor = langchain.TopkCompressor(embeddings=Given(), strategy="fixed_k", min_k=max(2, len(vectors)))
    given = [Document(page_content=str(place)) for place in range(compressor.min_k)]
    kept = {one.page_content: one.metadata["relevance_score"] for one in compressor.compress_documents(given, "q")}
    return [kept[one.page_content] for one in given]


def test_langchain_keeps_the_documents_that_the_scores_of_a_reranker_speak_for(langchain):
    given = documents(langchain)
    kept = langchain.TopkCompressor(strategy="adaptive_k").compress_documents(given[::-1], "I want to return my order")

    assert KEPT == [one.page_content for one in kept]
    assert all(one is given[place] for place, one in enumerate(kept))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"strategy": "fixed_k", "max_k": 4}, 4),
        ({"strategy": ElbowSelectionConfig()}, 2),
        ({"strategy": ElbowSelectionConfig(), "min_k": 4}, 4),
        ({"strategy": {"strategy": "fixed_k", "k": 1}}, 1),
    ],
)
def test_langchain_takes_any_strategy_and_the_limits(langchain, options, expected):
    assert expected == len(langchain.TopkCompressor(**options).compress_documents(documents(langchain), "q"))


def test_langchain_reads_the_score_from_another_key(langchain):
    compressor = langchain.TopkCompressor(strategy="adaptive_k", score_key="score")

    assert KEPT == [one.page_content for one in compressor.compress_documents(documents(langchain, "score"), "q")]
    with pytest.raises(ScoreError, match=r"position 0 has no metadata\['score'\]: give score_key"):
        compressor.compress_documents(documents(langchain), "q")


def test_langchain_compares_texts_when_it_has_embeddings_awaited_too(langchain):
    compressor = langchain.TopkCompressor(embeddings=embeddings(langchain), strategy="score_threshold")
    from langchain_core.documents import Document

    given = [Document(page_content=name, metadata={"source": name}) for name in ("far", "near", "empty", "same")]
    kept = compressor.compress_documents(given, "ask")

    assert [("same", 1.0), ("near", 0.9939)] == [(one.page_content, round(one.metadata["relevance_score"], 4)) for one in kept]
    assert ["same", "near"] == [one.metadata["source"] for one in kept]
    assert "relevance_score" not in given[0].metadata, "what was given is left alone"
    assert kept == asyncio.run(compressor.acompress_documents(given, "ask"))


def test_langchain_chains_it_as_any_other_runnable(langchain):
    from langchain_core.runnables import RunnableLambda

    chain = RunnableLambda(lambda query: documents(langchain)) | RunnableLambda(
        lambda found: langchain.TopkCompressor(strategy="adaptive_k").compress_documents(found, "q")
    )

    assert KEPT == [one.page_content for one in chain.invoke("q")]


def test_langchain_with_its_own_vector_store_and_no_documents(langchain):
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(embeddings(langchain))
    store.add_texts(["far", "same", "near"])
    compressor = langchain.TopkCompressor(embeddings=store.embeddings, strategy="score_threshold")

    assert ["same", "near"] == [
        one.page_content for one in compressor.compress_documents(store.similarity_search("ask", k=3), "ask")
    ]
    assert [[], []] == [compressor.compress_documents([], "ask"), asyncio.run(compressor.acompress_documents([], "ask"))]


def logged(caplog) -> list[tuple[str, Any, dict[str, Any]]]:
    return [(one.getMessage(), one.__dict__["logical_turn_id"], one.__dict__["retrieval"]) for one in caplog.records]


def test_langchain_logs_what_was_kept_and_whose_run_it_was(langchain, caplog):
    from langchain_core.callbacks import CallbackManager

    run = uuid.uuid4()
    with caplog.at_level("INFO", logger="jumar.topk"):
        langchain.TopkCompressor(strategy="adaptive_k").compress_documents(documents(langchain), "q")
        langchain.TopkCompressor(log_as="tools").compress_documents(
            documents(langchain), "q", CallbackManager([], parent_run_id=run)
        )

    (event, turn, first), (_, second_turn, second) = logged(caplog)
    assert ("jumar.topk_selected", None, str(run), ["tools"]) == (event, turn, second_turn, list(second))
    assert {"strategy": "adaptive_k", "input_count": 5, "output_count": 3, "cutoff_score": 0.71} == {
        name: value for name, value in first["documents"].items() if name != "metadata"
    }


@pytest.mark.parametrize("options", [{"strategy": "elbo"}, {"max_k": 0}, {"min_k": -1}, {"alpha": 2}])
def test_langchain_refuses_what_it_does_not_know_at_once(langchain, options):
    with pytest.raises(ValueError):
        langchain.TopkCompressor(**options)


def test_langchain_refuses_limits_and_strategies_when_they_are_set(langchain):
    check_settings(langchain.TopkCompressor)


@pytest.mark.parametrize("strategy", CHOICES)
def test_langchain_reads_again_what_it_wrote(langchain, strategy):
    compressor = langchain.TopkCompressor(strategy=strategy, max_k=9, min_k=2, score_key="s", log_as="tools")

    for again in (
        langchain.TopkCompressor.model_validate_json(compressor.model_dump_json()),
        langchain.TopkCompressor.model_validate(compressor.model_dump()),
        compressor.model_copy(deep=True),
        pickle.loads(pickle.dumps(compressor)),
    ):
        assert (compressor.strategy, 9, 2, "s", "tools") == (
            again.strategy,
            again.max_k,
            again.min_k,
            again.score_key,
            again.log_as,
        )


def test_langchain_uses_a_strategy_of_ones_own_but_does_not_write_it_without_its_name(langchain):
    compressor = langchain.TopkCompressor(strategy=Own(2))

    assert 2 == len(compressor.compress_documents(documents(langchain), "q"))
    assert Own(2) == compressor.model_copy().strategy == pickle.loads(pickle.dumps(compressor)).strategy
    for write in (compressor.model_dump, compressor.model_dump_json):
        with pytest.raises(ValueError, match="Own is a strategy of your own, which has no name to be found by"):
            write()


def test_langchain_does_not_lose_its_embeddings_without_a_word(langchain):
    compressor = langchain.TopkCompressor(embeddings=embeddings(langchain), max_k=3)
    for write in (compressor.model_dump, compressor.model_dump_json):
        with pytest.raises(ValueError, match="embeddings cannot be written: exclude="):
            write()
    again = langchain.TopkCompressor(**compressor.model_dump(exclude={"embeddings"}), embeddings=compressor.embeddings)

    assert compressor == again


@pytest.mark.parametrize(
    ("asked", "vectors", "message"),
    [
        ([1.0, 0.0], [[1.0, 0.0], [1.0, 0.0, 0.0]], "document at position 1 has 3 dimensions and that of the query 2"),
        ([1.0, 0.0], [[1.0, 0.0], [1.0]], "document at position 1 has 1 dimensions"),
        ([1.0, 0.0], [[1.0, 0.0]], "gave 1 vectors for 2 documents"),
        ([float("nan"), 0.0], [[1.0, 0.0]] * 2, "embedding of the query is"),
        ([1.0, 0.0], [[1.0, 0.0], [float("inf"), 0.0]], "document at position 1 is"),
        ([1.0, 0.0], [None, [1.0, 0.0]], "document at position 0 is None: give finite numbers"),
    ],
)
def test_langchain_refuses_embeddings_that_cannot_be_compared(langchain, asked, vectors, message):
    with pytest.raises(ScoreError, match=message):
        compared(langchain, asked, vectors)


def test_langchain_compares_numbers_of_any_size(langchain):
    vectors = [[1e200, 1e200], [1e-200, 1e-200], [5e-324, 0.0], [-1e308, -1e308], [0.0, 0.0]]

    for asked in ([1e200, 1e200], [1e-200, 1e-200], [1.0, 1.0]):
        assert pytest.approx([1.0, 1.0, 0.5**0.5, -1.0, 0.0]) == compared(langchain, asked, vectors)


# --------------------------------------------------------------------------------------------------------- LlamaIndex


@pytest.fixture(scope="module")
def llamaindex() -> Any:
    return loaded("llamaindex")


def nodes(llamaindex):
    from llama_index.core.schema import NodeWithScore, TextNode

    return [NodeWithScore(node=TextNode(text=name), score=score) for name, score in PROBLEM]


def test_llamaindex_keeps_the_nodes_that_the_scores_speak_for_awaited_too(llamaindex):
    processor = llamaindex.TopkPostprocessor(strategy="adaptive_k")
    given = nodes(llamaindex)
    kept = processor.postprocess_nodes(given[::-1], query_str="I want to return my order")

    assert KEPT == [one.node.get_content() for one in kept]
    assert all(one is given[place] for place, one in enumerate(kept))
    assert kept == asyncio.run(processor.apostprocess_nodes(given, query_str="q"))
    assert [] == processor.postprocess_nodes([])
    assert "TopkPostprocessor" == processor.class_name()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"strategy": "fixed_k", "max_k": 4}, 4),
        ({"strategy": ElbowSelectionConfig(), "min_k": 4}, 4),
        ({"strategy": {"strategy": "fixed_k", "k": 1}}, 1),
    ],
)
def test_llamaindex_takes_any_strategy_and_the_limits(llamaindex, options, expected):
    assert expected == len(llamaindex.TopkPostprocessor(**options).postprocess_nodes(nodes(llamaindex)))


def test_llamaindex_logs_what_was_kept(llamaindex, caplog):
    with caplog.at_level("INFO", logger="jumar.topk"):
        llamaindex.TopkPostprocessor(strategy="adaptive_k").postprocess_nodes(nodes(llamaindex))
        llamaindex.TopkPostprocessor(strategy="adaptive_k").postprocess_nodes([])

    ((event, turn, found),) = logged(caplog)
    assert ("jumar.topk_selected", None, 5, 3) == (
        event,
        turn,
        found["nodes"]["input_count"],
        found["nodes"]["output_count"],
    )


def test_llamaindex_says_which_node_has_no_score(llamaindex):
    given = nodes(llamaindex)
    given[2].score = None
    with pytest.raises(ScoreError, match="the node at position 2 has no score"):
        llamaindex.TopkPostprocessor(strategy="adaptive_k").postprocess_nodes(given)


@pytest.mark.parametrize("options", [{"strategy": "elbo"}, {"max_k": 0}, {"min_k": -1}])
def test_llamaindex_refuses_what_it_does_not_know_at_once(llamaindex, options):
    with pytest.raises(ValueError):
        llamaindex.TopkPostprocessor(**options)


def test_llamaindex_refuses_limits_and_strategies_when_they_are_set(llamaindex):
    check_settings(llamaindex.TopkPostprocessor)


@pytest.mark.parametrize("strategy", CHOICES)
def test_llamaindex_reads_again_what_it_wrote(llamaindex, strategy):
    processor = llamaindex.TopkPostprocessor(strategy=strategy, max_k=9, min_k=2, log_as="tools")

    for again in (
        llamaindex.TopkPostprocessor.from_dict(processor.to_dict()),
        llamaindex.TopkPostprocessor.from_json(processor.to_json()),
        pickle.loads(pickle.dumps(processor)),
    ):
        assert (processor.strategy, 9, 2, "tools") == (again.strategy, again.max_k, again.min_k, again.log_as)


def test_llamaindex_uses_a_strategy_of_ones_own_but_does_not_write_it_without_its_name(llamaindex):
    processor = llamaindex.TopkPostprocessor(strategy=Own(2))

    assert 2 == len(processor.postprocess_nodes(nodes(llamaindex)))
    for write in (processor.to_dict, processor.to_json):
        with pytest.raises(ValueError, match="Own is a strategy of your own, which has no name to be found by"):
            write()


def test_llamaindex_runs_it_in_a_retriever_query_engine(llamaindex):
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import BaseRetriever

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle):  # noqa: ARG002
            return nodes(llamaindex)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = RetrieverQueryEngine.from_args(
            Fixed(), llm=MockLLM(), node_postprocessors=[llamaindex.TopkPostprocessor(strategy="adaptive_k")]
        )
        answer = engine.query("I want to return my order")

    assert KEPT == [one.node.get_content() for one in answer.source_nodes]


# ----------------------------------------------------------------------------------------------------------- Haystack


@pytest.fixture(scope="module")
def haystack() -> Any:
    return loaded("haystack")


def scored(haystack):
    from haystack import Document

    return [Document(content=name, score=score) for name, score in PROBLEM]


def alone(component, found) -> list[str]:
    from haystack import Pipeline

    pipeline = Pipeline()
    pipeline.add_component("topk", component)
    return [one.content for one in pipeline.run({"topk": {"documents": found}})["topk"]["documents"]]


def test_haystack_runs_it_in_a_pipeline_behind_a_retriever_that_is_written_and_read_again(haystack):
    from haystack import Document, Pipeline
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    texts = ["refund of an order", "refund for a broken order", "opening hours", "shipping", "press", "jobs"]
    store = InMemoryDocumentStore()
    store.write_documents([Document(content=text) for text in texts])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(document_store=store, top_k=6))
    pipeline.add_component("topk", haystack.TopkSelector({"strategy": "ratio_to_top", "scale": "bm25", "ratio": 0.4}, max_k=4))
    pipeline.connect("retriever.documents", "topk.documents")
    asked = {"retriever": {"query": "refund my order"}}
    kept = [one.content for one in pipeline.run(asked)["topk"]["documents"]]

    assert set(texts[:2]) == set(kept)
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["jumar.integrations.haystack"])
    assert kept == [one.content for one in again.run(asked)["topk"]["documents"]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"strategy": "adaptive_k"}, 3),
        ({"strategy": "fixed_k", "max_k": 4}, 4),
        ({"strategy": ElbowSelectionConfig(), "min_k": 4}, 4),
        ({"strategy": {"strategy": "fixed_k", "k": 1}}, 1),
        ({"strategy": Own(2)}, 2),
    ],
)
def test_haystack_takes_any_strategy_and_the_limits(haystack, options, expected):
    assert [name for name, _ in PROBLEM[:expected]] == alone(haystack.TopkSelector(**options), scored(haystack)[::-1])


def test_haystack_logs_what_was_kept_and_says_which_document_has_no_score(haystack, caplog):
    given = scored(haystack)
    with caplog.at_level("INFO", logger="jumar.topk"):
        haystack.TopkSelector("adaptive_k", log_as="pages").run(documents=given)
        assert {"documents": []} == haystack.TopkSelector().run(documents=[])
    ((event, turn, found),) = logged(caplog)
    assert ("jumar.topk_selected", None, 5, 3) == (event, turn, found["pages"]["input_count"], found["pages"]["output_count"])
    given[2] = replace(given[2], score=None)
    with pytest.raises(ScoreError, match="the document at position 2 has no score"):
        haystack.TopkSelector().run(documents=given)


@pytest.mark.parametrize("options", [{"strategy": "elbo"}, {"max_k": 0}, {"min_k": -1}, {"max_k": 1, "min_k": 2}, {"alpha": 3}])
def test_haystack_refuses_what_it_does_not_know_at_once(haystack, options):
    with pytest.raises(ValueError):
        haystack.TopkSelector(**options)
    with pytest.raises(TypeError, match="TopkSelector has no top_k: it takes strategy, max_k, min_k and log_as"):
        haystack.TopkSelector(top_k=5)


@pytest.mark.parametrize("strategy", CHOICES)
def test_haystack_reads_again_what_it_wrote(haystack, strategy):
    from haystack import default_from_dict

    written = haystack.TopkSelector(strategy=strategy, max_k=9, min_k=2, log_as="tools")
    again = default_from_dict(haystack.TopkSelector, written.to_dict())
    assert (written.strategy, 9, 2, "tools") == (again.strategy, again.max_k, again.min_k, again.log_as)
    with pytest.raises(ValueError, match="Own is a strategy of your own, which has no name to be found by"):
        haystack.TopkSelector(Own(2)).to_dict()


# ------------------------------------------------------------------------------------------------- without the extras


@pytest.mark.parametrize(
    ("name", "library"), [("langchain", "langchain_core"), ("llamaindex", "llama_index"), ("haystack", "haystack")]
)
def test_without_the_library_the_import_names_the_extra(name, library):
    code = f"import sys; sys.modules[{library!r}] = None; import jumar.integrations.{name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert f"ImportError: jumar.integrations.{name} needs the extra: pip install 'jumar[{name}]'" == done.stderr.splitlines()[-1]


def test_a_parameter_beside_the_strategy_is_told_where_it_belongs():
    for name in ("langchain", "llamaindex"):
        library = loaded(name)
        adapter = library.TopkCompressor if name == "langchain" else library.TopkPostprocessor
        with pytest.raises(
            ValueError, match=r"low is a parameter of the strategy: strategy=\{'strategy': 'entropy_normalized', 'low': 0\.3\}"
        ):
            adapter(low=0.3)
        with pytest.raises(ValueError, match=r"strategy=\{'strategy': 'adaptive_k', 'alpha': 3\}"):
            adapter(alpha=3)
        with pytest.raises(ValueError, match=r"strategy=\{'strategy': 'elbow', 'drop_threshold': 0\.2\}"):
            adapter(strategy="elbow", drop_threshold=0.2)
        assert 3 == adapter(strategy={"strategy": "adaptive_k", "alpha": 3}).strategy.alpha
        with pytest.raises(ValueError, match="model_type"):
            adapter.model_validate("otsu")
