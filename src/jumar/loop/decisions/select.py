"""Writing down what the rules chose."""

from __future__ import annotations

from jumar.loop.store.current_selection import standing
from jumar.loop.store.loop_store import LoopStore
from jumar.model import Decision, SelectionCriteria, SelectionResult
from jumar.model.views import difference


def record_selection(
    store: LoopStore,
    result: SelectionResult,
    *,
    by: str,
    at: str,
    reason: str | None = None,
    criteria: SelectionCriteria | None = None,
) -> Decision:
    """Write the selection as a decision and return it; the same result as last time writes nothing and returns that one.

    ``reason`` defaults to the result's own; ``criteria`` are kept beside it where they are given. An override that was made
    before still stands afterwards. ``replaced`` is the iteration that stood until now.
    """
    data = {"result": result.to_json(), "criteria": criteria and criteria.to_json()}
    text = result.reason if reason is None else reason
    with store.lock():
        last = next((decision for decision in reversed(store.decisions()) if decision.kind == "select"), None)
        if last is not None and dict(last.data) == data and last.reason == text:
            return last
        return store.add_decision(
            "select",
            best_iteration=result.stands,
            final_iteration=result.final_iteration,
            delta=final_delta(result.final_quality, result.quality_score),
            decision="use_best",
            reason=text,
            by=by,
            at=at,
            replaced=standing(store).iteration,
            data=data,
        )


def final_delta(final: float | None, chosen: float | None) -> float | None:
    """Return the final score minus the selected one, rounded to 4 decimals; None when one of them is unknown."""
    return None if final is None or chosen is None else difference(final, chosen)
