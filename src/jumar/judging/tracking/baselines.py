"""What needs no judge: the median of the other groups' scores, and the length of the text.

Whatever does not beat them knows nothing. Both are fitted on the groups outside of the item's own fold, so that they are
predictions, as the cheap score is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jumar.judging.tracking.intervals import folds_by_group

__all__ = ["BASELINES", "predict_baselines"]

Scores = NDArray[np.float64]

BASELINES: Final = ("constant", "length_only")


def predict_baselines(expensive: Scores, lengths: Sequence[int], groups: Sequence[str | None]) -> dict[str, Scores]:
    """Return for each of :data:`BASELINES` its ``(items,)`` scores, clipped to the range of the scale.

    ``lengths`` are in characters. With fewer than two groups there is nothing outside: the fit is on the items themselves,
    which flatters
    the baselines, never the judge.
    """
    folds = folds_by_group(groups)
    length = np.log1p(np.asarray(lengths, dtype=np.float64))
    constant, by_length = np.empty_like(expensive), np.empty_like(expensive)
    for fold in np.unique(folds):
        inside = folds == fold
        fitted = ~inside if (~inside).any() else inside
        constant[inside] = np.median(expensive[fitted])
        by_length[inside] = _line(length[fitted], expensive[fitted], length[inside])
    return {"constant": constant, "length_only": np.clip(by_length, 1.0, 5.0)}


def _line(x: Scores, y: Scores, at: Scores) -> Scores:
    """Return the least-squares line through (x, y) at ``at``; the mean of y where x does not vary."""
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread if spread > 0 else 0.0
    return y.mean() + slope * (at - x.mean())
