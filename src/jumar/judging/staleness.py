"""Whether what a proof was made of is still what there is: the spread of the cheap scores, and the errors that audits find.

Items of one group are no independent evidence, so that both count groups.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

DRIFT: Final = 0.25
"""Population stability index from which a distribution of scores is another one, as is usual."""

AUDITS_FAIL: Final = 100.0
"""Evidence from which audits say that the errors have grown: a proof that holds gets there with a chance of 1 in 100."""

_BINS: Final = 10
_SAME: Final = 0.01  # points; a smaller move is none
_CHANCE: Final = 0.001
_FEWEST: Final = 30
_AUDIT_SHARE: Final = 0.1
_OTHERS: Final = tuple(tenth / 10 for tenth in range(2, 10))
_CLOSE: Final = 1e-9


def drift(
    known: Sequence[float],
    new: Sequence[float],
    *,
    known_groups: Sequence[str | None] | None = None,
    new_groups: Sequence[str | None] | None = None,
) -> tuple[float, bool] | None:
    """Return the population stability index of ``new`` against ``known``, and whether it is drift; None below 30 of either.

    The bins are tenths of the known scores; a score that fills more than one of them has its own, and so has what is beyond all
    known ones. It is drift from 0.25 on, and only where chance gives as much in less than one of a thousand samples, which whole
    groups say that are dealt out anew (:mod:`jumar.judging.exchange`; None: an item by itself). With fewer than three groups of
    either that cannot be said, and it is no drift.
    """
    if len(known) < _FEWEST or len(new) < _FEWEST:
        return None
    keys = _keys(len(known), known_groups), _keys(len(new), new_groups)
    cuts = _cuts(known)
    old, now = _shares(known, cuts), _shares(new, cuts)
    index = math.fsum((after - before) * math.log(after / before) for before, after in zip(old, now, strict=True))
    if index < DRIFT:
        return index, False
    from jumar.judging.exchange import beyond_chance  # it takes numpy, which reading a proof does not need

    return index, beyond_chance(known, new, *keys, _cuts([*known, *new]), chance=_CHANCE)


def _keys(count: int, groups: Sequence[str | None] | None) -> list[Any]:
    names = [None] * count if groups is None else groups
    if len(names) != count:
        raise ValueError(f"{count} items and {len(names)} groups: give as many of each")
    return [place if name is None else name for place, name in enumerate(names)]


def _cuts(scores: Sequence[float]) -> list[float]:
    """Return where bins begin, rising: at tenths, around what fills more than one of them, and beyond the lowest and highest."""
    ordered = sorted(scores)
    runs: list[list[float]] = []
    for tenth in range(1, _BINS):
        score = ordered[len(ordered) * tenth // _BINS]
        if runs and score - runs[-1][-1] < _SAME:
            runs[-1].append(score)
        else:
            runs.append([score])
    cuts = {ordered[0] - _SAME, ordered[-1] + _SAME}
    for run in runs:
        cuts.update(run if len(run) == 1 else (run[0] - _SAME, run[-1] + _SAME))
    return sorted(cuts)


def _shares(scores: Sequence[float], cuts: Sequence[float]) -> list[float]:
    counts = [0.5] * (len(cuts) + 1)  # so that an empty bin is no infinity
    for score in scores:
        counts[bisect_right(cuts, score)] += 1
    return [count / (len(scores) + 0.5 * len(counts)) for count in counts]


def audit_evidence(
    errors: Sequence[float],
    audits: Iterable[tuple[float, float]],
    *,
    groups: Sequence[str | None] | None = None,
    audit_groups: Sequence[str | None] | None = None,
) -> float:
    """Return how strongly audits say that errors have grown, at its highest so far: a likelihood ratio, 1 without any.

    ``errors`` are absolute ones of the held-out items, ``groups`` theirs; ``audits`` are pairs of a cheap and an expensive score,
    in their order (None: an item by itself). Each group counts as one, shared by its items. An audit fails when its error is
    larger than those of all but a tenth of the held-out groups. Of ``n`` groups, held out or audited, of which ``k`` failed, a
    new one fails with a chance of (k + 1) / (n + 1) at most while nothing has changed, since its error has the same chance of
    each rank (online conformal prediction: Vovk, Gammerman and Shafer 2005); so it does not matter how few of them there are.

    A group is one bet, at the place of its first audit. The value is an e-process: the mean of the likelihood ratios of higher
    shares of failures against that chance; by Ville's inequality it ever reaches 100 with a chance of 1 in 100. Where a group
    comes back later, its bet is settled anew on all of its audits, and that chance is of each look by itself.
    """
    found = [abs(cheap - expensive) for cheap, expensive in audits]
    by_group: dict[Any, list[float]] = {}
    for name, error in zip(_keys(len(found), audit_groups), found, strict=True):
        by_group.setdefault(name, []).append(error)
    limit, failed, count = _largest_tenth(errors, _keys(len(errors), groups))
    logs = [0.0] * len(_OTHERS)
    highest = 1.0
    for own in by_group.values():
        chance = (failed + 1.0) / (count + 1.0)
        share = sum(error > limit for error in own) / len(own)
        for place, other in enumerate(_OTHERS):
            if other > chance:
                logs[place] += math.log(share * other / chance + (1.0 - share) * (1.0 - other) / (1.0 - chance))
        failed, count = failed + share, count + 1
        highest = max(highest, math.fsum(math.exp(min(log, 600.0)) for log in logs) / len(logs))
    return highest


def _largest_tenth(errors: Sequence[float], keys: Sequence[Any]) -> tuple[float, float, int]:
    """Return an error that at most a tenth of the groups are beyond, how many are, and of how many."""
    sizes = Counter(keys)
    weights: dict[float, float] = {}
    for error, key in zip(errors, keys, strict=True):
        weights[error] = weights.get(error, 0.0) + 1.0 / sizes[key]
    limit, beyond = math.inf, 0.0
    for error in sorted(weights, reverse=True):
        if limit < math.inf:
            if beyond + weights[limit] > _AUDIT_SHARE * len(sizes) + _CLOSE:
                break
            beyond += weights[limit]
        limit = error
    return limit + _CLOSE, beyond, len(sizes)
