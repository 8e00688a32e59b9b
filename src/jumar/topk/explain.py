"""Why a selection kept what it kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """The rule, the cut and what came near it."""

    method: str
    kept: int
    rule: str


def explain(result: Any, basis: Any) -> Explanation:
    """Return the explanation of ``result``."""
    return Explanation(result.method, len(result.selected), "" if basis is None else basis[0].name)
