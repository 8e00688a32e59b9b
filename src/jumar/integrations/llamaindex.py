"""A LlamaIndex node postprocessor that keeps as many nodes as their scores speak for (``jumar[llamaindex]``).

index.as_query_engine(similarity_top_k=30, node_postprocessors=[TopkPostprocessor(max_k=10)])
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

try:
    from llama_index.core.bridge.pydantic import (
        ConfigDict,
        Field,
        ValidationInfo,
        field_serializer,
        field_validator,
        model_validator,
    )
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
except ImportError as error:
    raise ImportError("jumar.integrations.llamaindex needs the extra: pip install 'jumar[llamaindex]'") from error

from jumar.integrations._selection import check_pair, keep, refuse_parameters, scored, written_strategy
from jumar.topk.base import SelectionStrategy
from jumar.topk.strategies import DEFAULT_STRATEGY, create_selection_strategy

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle


class TopkPostprocessor(BaseNodePostprocessor):
    """Keeps ``min_k`` … ``max_k`` of the nodes, best first, by a strategy of :mod:`jumar.topk`.

    ``strategy`` is a name, ``{"strategy": "adaptive_k", "alpha": 3}``, a configuration or a strategy; ``entropy_normalized``
    when absent.

    Errors, in :meth:`postprocess_nodes`: :class:`jumar.errors.ScoreError`,
    a ValueError, for a node without a score.

    What is built or set is checked at once: pydantic's ``ValidationError``, a ValueError. ``from_dict`` of ``to_dict``, and the
    same as JSON, gives the same again; a strategy of your own, which has no name to be found by, cannot be written.

    Each selection is logged as ``jumar.topk_selected`` (:mod:`jumar.topk.retrieval`), its kind ``log_as``;
    LlamaIndex does not say whose turn it is.
    """

    model_config = ConfigDict(validate_assignment=True)

    strategy: Any = Field(default=DEFAULT_STRATEGY, validate_default=True)
    max_k: int = Field(default=20, ge=1)
    min_k: int = Field(default=1, ge=0)
    log_as: str = "nodes"

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

    @field_validator("max_k", "min_k")
    @classmethod
    def _fits(cls, value: int, info: ValidationInfo) -> int:
        return check_pair(info.field_name, value, info.data)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex knows the class."""
        return "TopkPostprocessor"

    def _postprocess_nodes(
        self,
        nodes: list[NodeWithScore],
        query_bundle: QueryBundle | None = None,  # noqa: ARG002
    ) -> list[NodeWithScore]:
        """Return the nodes to keep; none from none."""
        items = scored(nodes, attrgetter("score"), "node", "postprocessor behind a retriever that scores")
        return keep(self.strategy, items, self.max_k, self.min_k, self.log_as)
