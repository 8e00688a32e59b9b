"""Scores, orders, the choice, degradation and stopping: pure functions of frozen views, recomputed from the records each time.

from jumar.loop.ranking import choose, weighted_score

weighted_score    several dimensions of 0–1 → one score of 0–100
choose            which iteration, why, and by what margin
parse_order       a lexicographic order over named values
detect_degradation, likely_causes, detect_diminishing_returns
evaluate_stop     whether the loop ends, and why
"""

from __future__ import annotations

from jumar.loop.ranking.choose import check_criteria, choose, ordered, running_best
from jumar.loop.ranking.degradation import PATTERNS, Cause, detect_degradation, detect_diminishing_returns, likely_causes
from jumar.loop.ranking.score import DEFAULT_WEIGHTS, check_weights, merge_weights, resolve_weights, weighted_score
from jumar.loop.ranking.stopping import (
    DEFAULT_DECLINE,
    DEFAULT_DIMINISHING,
    DEFAULT_OSCILLATION,
    DEFAULT_PLATEAU,
    check_rules,
    evaluate_stop,
)
from jumar.model.ordering import (
    DEFAULT_TIE_BREAKS,
    TIE_BREAKS,
    InvalidView,
    Key,
    LexicographicOrder,
    Ranking,
    difference,
    invalid_reason,
    parse_order,
    valid_score,
)

__all__ = [
    "DEFAULT_DECLINE",
    "DEFAULT_DIMINISHING",
    "DEFAULT_OSCILLATION",
    "DEFAULT_PLATEAU",
    "DEFAULT_TIE_BREAKS",
    "DEFAULT_WEIGHTS",
    "PATTERNS",
    "TIE_BREAKS",
    "Cause",
    "InvalidView",
    "Key",
    "LexicographicOrder",
    "Ranking",
    "check_criteria",
    "check_rules",
    "check_weights",
    "choose",
    "detect_degradation",
    "detect_diminishing_returns",
    "difference",
    "evaluate_stop",
    "invalid_reason",
    "likely_causes",
    "merge_weights",
    "ordered",
    "parse_order",
    "resolve_weights",
    "running_best",
    "valid_score",
    "weighted_score",
]
