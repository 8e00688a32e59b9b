"""Keep enough for a promised recall, with a threshold that labelled queries were asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from jumar.errors import StrategyError
from jumar.topk.base import RuleStrategy
from jumar.topk.contract import check_number, check_threshold, count_valid, number_field, plain_field, shown, size_field
from jumar.topk.result import CutEvidence, Scale

if TYPE_CHECKING:
    from jumar.topk.batch import BatchCuts, Floats


@dataclass(frozen=True)
class ConformalSelectionStrategy(RuleStrategy):
    """Keep the scores of at least ``threshold``, which was fitted for a mean recall of ``recall`` on new queries of the kind.

    ``on="ratio"`` compares score ÷ best score instead of the score. ``queries`` says how many labelled queries it was fitted on.
    Without a ``threshold`` nothing is known and up to ``max_k`` are kept, the only choice that cannot miss what another one
    finds. The promise is about the mean over queries, and only as long as ``max_k`` does not cut it off (metadata:
    ``truncated``). Errors: :class:`jumar.errors.StrategyError` unless 0 < ``recall`` < 1. Source: Angelopoulos et al.,
    "Conformal Risk Control", ICLR 2024 (arXiv 2208.02814).
    """

    NAME: ClassVar[str] = "conformal"

    threshold: float | None = plain_field(None, "The fitted threshold; up to max_k are kept without one")
    recall: float = number_field(0.9, "Mean recall that the threshold was fitted for", above=0, below=1)
    on: Literal["score", "ratio"] = plain_field("score", "What is compared: the score, or its share of the best")
    queries: int = size_field(0, "Labelled queries it was fitted on", least=0)
    scale: Scale = "similarity"

    def _check(self) -> None:
        if self.on not in ("score", "ratio"):
            raise StrategyError(f"on is {shown(self.on)}: choose 'score' or 'ratio'")
        if self.on == "ratio":
            if self.scale not in {"similarity", "bm25", "rrf"}:
                raise StrategyError(f"on='ratio' needs scores that are 0 or more, not {self.scale}: choose on='score'")
            if self.threshold is not None:
                check_number("threshold", self.threshold, above=0, below=1, closed=True)
        else:
            check_threshold("threshold", self.threshold, self.scale)

    def limit(self, top: float) -> float | None:
        """Return the lowest score that is kept when ``top`` is the best; distances come negated. None: every score."""
        if self.threshold is None:
            return None
        if self.on == "ratio":
            return self.threshold * top if top > 0 else None
        return -self.threshold if self.scale == "distance" else self.threshold

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        """Return how many reach the threshold; ``calibrated`` and ``truncated`` say what the promise is worth."""
        kept = count_valid(scores, self.limit(scores[0]))
        fitted = {"threshold": self.threshold, "recall": self.recall, "calibrated": self.threshold is not None}
        return kept, {**fitted, "truncated": kept > max_k}

    def keep_many(self, table: Floats, max_k: int, min_k: int) -> BatchCuts:  # noqa: ARG002
        """Return how many reach the threshold, of each query; all where there is none."""
        import numpy as np

        from jumar.topk.batch import BatchCuts, at_least, tally

        if self.on == "score" or self.threshold is None:
            return BatchCuts(at_least(table, self.limit(1.0)))
        top = table[0]
        return BatchCuts(tally(table >= np.where(top > 0, self.threshold * top, -np.inf)))

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> CutEvidence:  # noqa: ARG002
        """Return the score of the last kept item, for each cut."""
        if self.threshold is None:
            return CutEvidence("not calibrated: everything up to max_k")
        rule = f"scores of at least {self.threshold:g}{' × the best' * (self.on == 'ratio')}, for a recall of {self.recall:g}"
        return CutEvidence(rule, "score", dict(enumerate(scores[:max_k], 1)), self.limit(scores[0]), at_least=True)
