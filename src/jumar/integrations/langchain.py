"""A LangChain document compressor that keeps as many documents as their scores speak for (``jumar[langchain]``).

from langchain.retrievers import ContextualCompressionRetriever
ContextualCompressionRetriever(base_compressor=TopkCompressor(embeddings=model), base_retriever=retriever)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import TYPE_CHECKING, Any

try:
    from langchain_core.documents.compressor import BaseDocumentCompressor
    from langchain_core.embeddings import Embeddings  # noqa: TC002 - the type of a field
except ImportError as error:
    raise ImportError("jumar.integrations.langchain needs the extra: pip install 'jumar[langchain]'") from error
from pydantic import ConfigDict, Field, ValidationInfo, field_serializer, field_validator, model_validator

from jumar.core.text import escape
from jumar.errors import ScoreError, StrategyError
from jumar.integrations._selection import check_pair, keep, refuse_parameters, written_strategy
from jumar.topk.base import SelectionStrategy
from jumar.topk.contract import shown
from jumar.topk.result import ScoredItem
from jumar.topk.strategies import DEFAULT_STRATEGY, create_selection_strategy

if TYPE_CHECKING:
    from langchain_core.callbacks import Callbacks
    from langchain_core.documents import Document


class TopkCompressor(BaseDocumentCompressor):
    """Keeps ``min_k`` … ``max_k`` of the documents, best first, by a strategy of :mod:`jumar.topk`.

    ``strategy`` is a name, ``{"strategy": "adaptive_k", "alpha": 3}``, a configuration or a strategy; ``entropy_normalized``
    when absent.

    Scores are read from ``document.metadata[score_key]``, where rerankers
    put them; with ``embeddings`` they are the cosine similarities of query and documents instead, and are put there. Errors, in
    :meth:`compress_documents`: :class:`jumar.errors.ScoreError`, a ValueError, for a document without a score, and for embeddings
    that are not finite numbers, not as many as the documents or not of the query's dimensions.

    What is built or set is checked at once: pydantic's ``ValidationError``, a ValueError. ``model_validate_json`` of
    ``model_dump_json`` gives the same again; embeddings cannot be written, nor a strategy of your own, which has no name to be
    found by.

    Each selection is logged as ``jumar.topk_selected`` (:mod:`jumar.topk.retrieval`), its kind ``log_as``, its
    ``logical_turn_id`` the id of the run that the callbacks belong to, if there is one.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", validate_assignment=True)

    strategy: Any = Field(default=DEFAULT_STRATEGY, validate_default=True)
    max_k: int = Field(default=20, ge=1)
    min_k: int = Field(default=1, ge=0)
    score_key: str = "relevance_score"
    embeddings: Embeddings | None = None
    log_as: str = "documents"

    @model_validator(mode="before")
    @classmethod
    def _no_parameters(cls, given: Any) -> Any:
        return refuse_parameters(given, cls.model_fields)

    @field_validator("strategy")
    @classmethod
    def _as_strategy(cls, value: object) -> SelectionStrategy:
        return create_selection_strategy(value)

    @field_serializer("strategy")
    def _as_data(self, strategy: SelectionStrategy) -> dict[str, Any]:
        return written_strategy(strategy)

    @field_serializer("embeddings")
    def _no_data(self, embeddings: Embeddings | None) -> None:
        if embeddings is not None:  # left out without a word, the same compressor would look for scores in the metadata
            raise StrategyError("embeddings cannot be written: exclude={'embeddings'}, and give them again where it is read")

    @field_validator("max_k", "min_k")
    @classmethod
    def _fits(cls, value: int, info: ValidationInfo) -> int:
        return check_pair(info.field_name, value, info.data)

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> Sequence[Document]:
        """Return the documents to keep; none from none."""
        if not documents:
            return []
        if self.embeddings is None:
            return self._kept([self._scored(place, one) for place, one in enumerate(documents)], callbacks)
        texts = [document.page_content for document in documents]
        asked = self.embeddings.embed_query(query)
        return self._kept(self._compared(documents, asked, self.embeddings.embed_documents(texts)), callbacks)

    async def acompress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> Sequence[Document]:
        """Return as :meth:`compress_documents`, with the embeddings awaited."""
        if not documents or self.embeddings is None:
            return self.compress_documents(documents, query, callbacks)
        texts = [document.page_content for document in documents]
        asked = await self.embeddings.aembed_query(query)
        return self._kept(self._compared(documents, asked, await self.embeddings.aembed_documents(texts)), callbacks)

    def _kept(self, items: list[ScoredItem[Document]], callbacks: Callbacks | None) -> list[Document]:
        run = getattr(callbacks, "parent_run_id", None)
        return keep(self.strategy, items, self.max_k, self.min_k, self.log_as, turn=None if run is None else str(run))

    def _scored(self, place: int, document: Document) -> ScoredItem[Document]:
        metadata: dict[str, Any] = document.metadata
        if metadata.get(self.score_key) is None:
            raise ScoreError(
                f"the document at position {place} has no metadata['{escape(self.score_key)}']: give score_key the name under "
                "which your retriever or reranker puts the score, or give embeddings to compare the texts"
            )
        return ScoredItem(document, metadata[self.score_key])

    def _compared(
        self, documents: Sequence[Document], asked: list[float], vectors: list[list[float]]
    ) -> list[ScoredItem[Document]]:
        if len(vectors) != len(documents):
            raise ScoreError(f"the embeddings gave {len(vectors)} vectors for {len(documents)} documents: they give one a text")
        query = _direction(asked, "query")
        items: list[ScoredItem[Document]] = []
        for place, (document, vector) in enumerate(zip(documents, vectors, strict=True)):
            found = _direction(vector, f"document at position {place}")
            if len(found) != len(query):
                raise ScoreError(
                    f"the embedding of the document at position {place} has {len(found)} dimensions and that of the query "
                    f"{len(query)}: use one model for both"
                )
            score = math.fsum(map(mul, query, found))
            metadata: dict[str, Any] = document.metadata
            items.append(ScoredItem(document.model_copy(update={"metadata": {**metadata, self.score_key: score}}), score))
        return items


def _direction(vector: Sequence[float], whose: str) -> list[float]:
    """Return the vector of length 1, or zeros for zeros: what has no direction is like nothing."""
    try:
        found = list(map(float, vector))
    except (TypeError, ValueError, OverflowError):
        found = [math.nan]
    if not all(map(math.isfinite, found)):
        raise ScoreError(f"the embedding of the {whose} is {shown(vector)}: give finite numbers")
    largest = max(map(abs, found), default=0.0)
    if not largest:
        return found
    scaled = [one / largest for one in found]  # so that squares neither overflow nor vanish
    length = math.hypot(*scaled)
    return [one / length for one in scaled]
