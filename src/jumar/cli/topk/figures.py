"""Figures with their intervals, for programs and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumar.topk.tuning.metrics import Estimate

__all__ = ["estimated", "figure", "interval"]


def estimated(name: str, estimate: Estimate) -> dict[str, Any]:
    """Return a figure and its interval as ``NAME`` and ``NAME_interval``; both null without queries to take it from."""
    interval = None if estimate.value is None else [estimate.low, estimate.high]
    return {name: estimate.value, f"{name}_interval": interval}


def figure(estimate: Estimate, form: str = "{:.3f}") -> str:
    """Return a figure for people, a dash when there is none."""
    return "—" if estimate.value is None else form.format(estimate.value)


def interval(estimate: Estimate, form: str = "{:.3f}") -> str:
    """Return an interval for people, nothing when there is none."""
    return "" if estimate.low is None or estimate.high is None else f"{form.format(estimate.low)} to {form.format(estimate.high)}"
