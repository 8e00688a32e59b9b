"""A Haystack component that keeps as many documents as their scores speak for (``jumar[haystack]``).

pipeline.add_component("topk", TopkSelector(max_k=10))
pipeline.connect("retriever.documents", "topk.documents")
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

try:
    from haystack import Document, component, default_to_dict
except ImportError as error:
    raise ImportError("jumar.integrations.haystack needs the extra: pip install 'jumar[haystack]'") from error

from jumar.integrations._selection import keep, refuse_parameters, scored, written_strategy
from jumar.topk.contract import check_limits
from jumar.topk.strategies import DEFAULT_STRATEGY, create_selection_strategy


@component
class TopkSelector:
    """Keeps ``min_k`` … ``max_k`` of the documents, best first, by a strategy of :mod:`jumar.topk`.

    ``strategy`` is a name, ``{"strategy": "adaptive_k", "alpha": 3}``, a configuration or a strategy; ``entropy_normalized``
    when absent. What is built is checked at once. Errors: :class:`jumar.errors.StrategyError`, a ValueError.

    A pipeline that is written and read again has the same component; a strategy of your own, which has no name to be found by,
    cannot be written.

    Each selection is logged as ``jumar.topk_selected`` (:mod:`jumar.topk.retrieval`), its kind ``log_as``; Haystack does not say
    whose turn it is.
    """

    def __init__(
        self,
        strategy: Any = DEFAULT_STRATEGY,
        *,
        max_k: int = 20,
        min_k: int = 1,
        log_as: str = "documents",
        **parameters: Any,
    ) -> None:
        refuse_parameters({"strategy": strategy, **parameters}, {"strategy"})
        if parameters:
            raise TypeError(f"TopkSelector has no {', '.join(parameters)}: it takes strategy, max_k, min_k and log_as")
        self.strategy = create_selection_strategy(strategy)
        self.max_k, self.min_k = check_limits(max_k, min_k)
        self.log_as = log_as

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Return the documents to keep; none from none.

        Errors: :class:`jumar.errors.ScoreError`, a ValueError, for a document without a score.
        """
        items = scored(documents, attrgetter("score"), "document", "selector behind a retriever or ranker that scores")
        return {"documents": keep(self.strategy, items, self.max_k, self.min_k, self.log_as)}

    def to_dict(self) -> dict[str, Any]:
        """Return what Haystack writes. Errors: :class:`jumar.errors.StrategyError` for a strategy of your own."""
        return default_to_dict(
            self, strategy=written_strategy(self.strategy), max_k=self.max_k, min_k=self.min_k, log_as=self.log_as
        )
