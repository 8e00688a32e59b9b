"""Whether the expensive judge works: what its results alone can tell."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from jumar.judging.asking.noise import judge_noise
from jumar.judging.asking.settings import MAX_UNSCORED
from jumar.judging.asking.summary import NOT_THE_JUDGES, Result
from jumar.judging.models import ComponentHealthStatus, ExpensiveModeResult, Unscored

__all__ = ["check_expensive_evaluator"]


def check_expensive_evaluator(results: Sequence[Result]) -> ComponentHealthStatus:
    """Return the health of the judge behind ``results``.

    Flags: ``judge_failures`` (an item it was asked about has no verdict), ``scores_out_of_range``, ``nothing_scored``,
    ``all_same_score`` (at least two verdicts and no variance: a saturated judge, whose ranks mean nothing), ``high_variance``
    (its own readings of one item differ by more than half a point on average: nothing can be shown against such a judge). It is
    healthy without ``nothing_scored``, ``all_same_score`` and ``high_variance``, and with at most a fifth of failures.
    ``details``: ``scored``, ``unscored`` by kind, ``score_range`` and ``variance`` (None without scores; variance with n − 1, 0
    for one), ``noise``. No results are healthy: nothing was asked.
    """
    scored = [one for one in results if isinstance(one, ExpensiveModeResult)]
    kinds = Counter(one.kind for one in results if isinstance(one, Unscored))
    scores = [one.gestalt for one in scored]
    noise = judge_noise([one.readings for one in scored])
    failures = sum(count for kind, count in kinds.items() if kind not in NOT_THE_JUDGES)
    grave = {
        "nothing_scored": bool(results) and not scores,
        "all_same_score": len(scores) > 1 and len(set(scores)) == 1,
        "high_variance": noise is not None and noise.high_variance,
    }
    flags = {
        "judge_failures": failures > 0,
        "scores_out_of_range": kinds["out_of_range"] > 0,
        **grave,
    }
    return ComponentHealthStatus(
        healthy=not any(grave.values()) and failures <= MAX_UNSCORED * (failures + len(scores)),
        flags=[name for name, raised in flags.items() if raised],
        details={
            "scored": len(scores),
            "unscored": dict(kinds),
            "score_range": [min(scores), max(scores)] if scores else None,
            "variance": (statistics.variance(scores) if len(scores) > 1 else 0.0) if scores else None,
            "noise": None if noise is None else noise.to_json(),
        },
    )
