"""How many of the retrieved items to keep, chosen from their scores.

Everything named here is loaded when it is first used: ``import jumar.topk`` loads neither numpy nor pydantic, nor any strategy.
"""

from __future__ import annotations

from jumar.core.lazy import loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jumar.topk.base import RuleStrategy, SelectionStrategy
    from jumar.topk.batch import select_batch
    from jumar.topk.embeddings import embed_texts, register_embeddings
    from jumar.topk.result import Explanation, ScoredItem, SelectionResult
    from jumar.topk.retrieval import (
        AsyncVectorStore,
        JsonFormatter,
        Session,
        TurnLog,
        VectorStore,
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
    from jumar.topk.settings import load_retrieval
    from jumar.topk.stages import Gate, StagedSelection, TokenBudget
    from jumar.topk.strategies import STRATEGIES, create_selection_strategy
    from jumar.topk.strategies.adaptive_k import AdaptiveKSelectionStrategy
    from jumar.topk.strategies.clustering import ClusterSelectionStrategy
    from jumar.topk.strategies.conformal import ConformalSelectionStrategy
    from jumar.topk.strategies.elbow import ElbowSelectionStrategy
    from jumar.topk.strategies.entropy import EntropySelectionStrategy
    from jumar.topk.strategies.entropy_normalized import NormalizedEntropySelectionStrategy
    from jumar.topk.strategies.expected_f1 import ExpectedF1SelectionStrategy
    from jumar.topk.strategies.fixed_k import FixedKSelectionStrategy
    from jumar.topk.strategies.largest_gap import LargestGapSelectionStrategy
    from jumar.topk.strategies.otsu import OtsuSelectionStrategy
    from jumar.topk.strategies.ratio_to_top import RatioToTopSelectionStrategy
    from jumar.topk.strategies.score_threshold import ScoreThresholdSelectionStrategy
    from jumar.topk.tuning.metrics import compare
    from jumar.topk.tuning.tune import tune
    from jumar.topk.vector_store import NumpyVectorStore

__all__ = [
    "STRATEGIES",
    "AdaptiveKSelectionStrategy",
    "AsyncVectorStore",
    "ClusterSelectionStrategy",
    "ConformalSelectionStrategy",
    "ElbowSelectionStrategy",
    "EntropySelectionStrategy",
    "ExpectedF1SelectionStrategy",
    "Explanation",
    "FixedKSelectionStrategy",
    "Gate",
    "JsonFormatter",
    "LargestGapSelectionStrategy",
    "NormalizedEntropySelectionStrategy",
    "NumpyVectorStore",
    "OtsuSelectionStrategy",
    "RatioToTopSelectionStrategy",
    "RuleStrategy",
    "ScoreThresholdSelectionStrategy",
    "ScoredItem",
    "SelectionResult",
    "SelectionStrategy",
    "Session",
    "StagedSelection",
    "TokenBudget",
    "TurnLog",
    "VectorStore",
    "compare",
    "create_selection_strategy",
    "embed_texts",
    "load_retrieval",
    "register_embeddings",
    "retrieve",
    "retrieve_memory",
    "retrieve_memory_sync",
    "retrieve_rules",
    "retrieve_rules_sync",
    "retrieve_scenarios",
    "retrieve_scenarios_sync",
    "retrieve_sync",
    "select_batch",
    "select_candidates",
    "tune",
]

_HOMES = {
    "base": "RuleStrategy SelectionStrategy",
    "batch": "select_batch",
    "embeddings": "embed_texts register_embeddings",
    "result": "Explanation ScoredItem SelectionResult",
    "retrieval": "AsyncVectorStore JsonFormatter Session TurnLog VectorStore retrieve retrieve_memory retrieve_memory_sync "
    "retrieve_rules retrieve_rules_sync retrieve_scenarios retrieve_scenarios_sync retrieve_sync select_candidates",
    "settings": "load_retrieval",
    "stages": "Gate StagedSelection TokenBudget",
    "strategies": "STRATEGIES create_selection_strategy",
    "strategies.adaptive_k": "AdaptiveKSelectionStrategy",
    "strategies.clustering": "ClusterSelectionStrategy",
    "strategies.conformal": "ConformalSelectionStrategy",
    "strategies.elbow": "ElbowSelectionStrategy",
    "strategies.entropy": "EntropySelectionStrategy",
    "strategies.entropy_normalized": "NormalizedEntropySelectionStrategy",
    "strategies.expected_f1": "ExpectedF1SelectionStrategy",
    "strategies.fixed_k": "FixedKSelectionStrategy",
    "strategies.largest_gap": "LargestGapSelectionStrategy",
    "strategies.otsu": "OtsuSelectionStrategy",
    "strategies.ratio_to_top": "RatioToTopSelectionStrategy",
    "strategies.score_threshold": "ScoreThresholdSelectionStrategy",
    "tuning.metrics": "compare",
    "tuning.tune": "tune",
    "vector_store": "NumpyVectorStore",
}
_ELSEWHERE = {name: module for module, names in _HOMES.items() for name in names.split()}
"""Where a name is defined, below this package."""

if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name
    __getattr__ = loader(globals(), _ELSEWHERE)


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
