"""The adapters inside the real libraries: LangChain's compressors and LlamaIndex's postprocessors."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
import warnings
from typing import Any

import pytest

from jumar.errors import ScoreError
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
    library = {"langchain": "langchain_core", "llamaindex": "llama_index.core"}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(library, reason=f"needs the extra: jumar[{name}]")
        return __import__(f"jumar.adapters.{name}", fromlist=["*"])


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


def test_langchain_keeps_the_documents_that_the_scores_of_a_reranker_speak_for(langchain):
    given = documents(langchain)
    kept = langchain.TopkCompressor().compress_documents(given[::-1], "I want to return my order")

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
    compressor = langchain.TopkCompressor(score_key="score")

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
        lambda found: langchain.TopkCompressor().compress_documents(found, "q")
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
        langchain.TopkCompressor().compress_documents(documents(langchain), "q")
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


# --------------------------------------------------------------------------------------------------------- LlamaIndex


@pytest.fixture(scope="module")
def llamaindex() -> Any:
    return loaded("llamaindex")


def nodes(llamaindex):
    from llama_index.core.schema import NodeWithScore, TextNode

    return [NodeWithScore(node=TextNode(text=name), score=score) for name, score in PROBLEM]


def test_llamaindex_keeps_the_nodes_that_the_scores_speak_for_awaited_too(llamaindex):
    processor = llamaindex.TopkPostprocessor()
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
        llamaindex.TopkPostprocessor().postprocess_nodes(nodes(llamaindex))
        llamaindex.TopkPostprocessor().postprocess_nodes([])

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
        llamaindex.TopkPostprocessor().postprocess_nodes(given)


@pytest.mark.parametrize("options", [{"strategy": "elbo"}, {"max_k": 0}, {"min_k": -1}])
def test_llamaindex_refuses_what_it_does_not_know_at_once(llamaindex, options):
    with pytest.raises(ValueError):
        llamaindex.TopkPostprocessor(**options)


def test_llamaindex_runs_it_in_a_retriever_query_engine(llamaindex):
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import BaseRetriever

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle):  # noqa: ARG002
            return nodes(llamaindex)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = RetrieverQueryEngine.from_args(Fixed(), llm=MockLLM(), node_postprocessors=[llamaindex.TopkPostprocessor()])
        answer = engine.query("I want to return my order")

    assert KEPT == [one.node.get_content() for one in answer.source_nodes]


# ------------------------------------------------------------------------------------------------- without the extras


@pytest.mark.parametrize(("name", "library"), [("langchain", "langchain_core"), ("llamaindex", "llama_index")])
def test_without_the_library_the_import_names_the_extra(name, library):
    code = f"import sys; sys.modules[{library!r}] = None; import jumar.adapters.{name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert f"ImportError: jumar.adapters.{name} needs the extra: pip install 'jumar[{name}]'" == done.stderr.splitlines()[-1]
