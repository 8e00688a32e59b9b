"""Fitting a scorecard: which features and phrases of an item say what the expensive judge will say, in points that add up.

Needs the extra ``learn``. What is named here is loaded when it is first used.
"""

from __future__ import annotations

from jumar.core.lazy import loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jumar.learning.scorecard.fit import fit_scorecard
    from jumar.learning.scorecard.models import FitReport, FitSettings, ScorecardFit

__all__ = ["FitReport", "FitSettings", "ScorecardFit", "fit_scorecard"]

_ELSEWHERE = {
    "FitReport": "models",
    "FitSettings": "models",
    "ScorecardFit": "models",
    "fit_scorecard": "fit",
}
"""Where a name is defined, below this package."""

if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name
    __getattr__ = loader(globals(), _ELSEWHERE)


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
