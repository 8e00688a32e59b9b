"""What a fit is asked for and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from jumar.judging.patterns.models import PatternSet

__all__ = ["BLOCKS", "FitReport", "FitSettings", "ScorecardFit"]

BLOCKS: Final = ("surface", "relation", "phrases", "all")
"""What is fitted by itself and then combined: three kinds of patterns, and all of them together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSettings:
    """How a scorecard is fitted.

    ``folds`` are by group. A feature gets up to ``edges`` patterns, a phrase takes part from ``least_items`` items on that it
    fires on, ``most_patterns`` are all patterns of the set. ``mine_phrases``: whether words and pairs of words of the items are
    candidates beside the proposals, at most ``most_mined``, the most frequent ones. ``guard``: whether points are fitted so that
    making an item worse or just longer raises no score, and good phrases are bounded
    (:mod:`jumar.learning.scorecard.gaming`).
    Errors: ValueError for a number that is too small.
    """

    folds: int = 5
    edges: int = 4
    least_items: int = 6
    most_patterns: int = 500
    mine_phrases: bool = True
    most_mined: int = 4_000
    guard: bool = True

    def __post_init__(self) -> None:
        if self.folds < 3 or min(self.edges, self.least_items, self.most_patterns) < 1 or self.most_mined < 0:
            raise ValueError("folds are at least 3; edges, least_items and most_patterns at least 1; most_mined is not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class FitReport:
    """How the set came to be.

    ``strengths`` of the ridge and ``blocks``, the factor of each, are by :data:`BLOCKS`; ``candidates`` and ``patterns`` are
    numbers by category. ``guard`` is that of the settings, ``calibration`` the kind of the curve. ``oof_mae`` and
    ``oof_spearman`` are of the out-of-fold predictions; the latter is None where scores or predictions are all the same.
    """

    items: int
    groups: int
    folds: int
    seed: int
    learning_rate: float
    guard: bool = True
    strengths: Mapping[str, float] = field(default_factory=dict[str, float])
    blocks: Mapping[str, float] = field(default_factory=dict[str, float])
    candidates: Mapping[str, int] = field(default_factory=dict[str, int])
    patterns: Mapping[str, int] = field(default_factory=dict[str, int])
    calibration: str = ""
    oof_mae: float = 0.0
    oof_spearman: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorecardFit:
    """A fitted set and what it predicts.

    ``patterns`` are all active, with their calibration: `evaluate --mode cheap --patterns` gives ``fitted`` with them.
    ``predictions`` are the ``(items,)`` scores of each item by a set that was fitted without its fold: what can be believed.
    ``fitted`` are those of the set itself, which saw them: what cannot.
    """

    patterns: PatternSet
    predictions: tuple[float, ...]
    fitted: tuple[float, ...]
    report: FitReport
