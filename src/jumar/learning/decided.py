"""What became of each proposal in an iteration, and why, in words. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from jumar.core.text import plural
from jumar.judging.patterns.models import PatternProposal
from jumar.judging.patterns.proposed import as_pattern
from jumar.learning.known import Known
from jumar.learning.material import Profile
from jumar.learning.steering import Checked, Recovered

__all__ = ["decisions"]

_ACTIONS: Final = {"validated": "committed_pattern", "rejected": "rejected_pattern", "provisional": "proposed_pattern"}
_TAKES_OUT: Final = {
    "rollback_patterns": "the recovery went back to an earlier set, which is without it",
    "prune_low_weight_patterns": "the recovery pruned patterns of little weight, and it was one",
    "reset_provisional": "the recovery dropped all that was provisional",
    "recalibrate_weights": "the recovery fitted all weights again and gave it none",
    "deduplicate_patterns": "the recovery merged it into one that says the same",
    "prune_by_coverage": "the recovery pruned patterns that fire on no text",
}
_FITTED_AFTER: Final = "the fit that followed the recovery gave it {}"


def decisions(before: Known, change: Checked, after: Known, recovery: Recovered | None, profile: Profile) -> list[dict[str, Any]]:
    """Return an entry of the log for every proposal whose status changed from ``before`` to ``after``.

    ``change`` is what the iteration itself came to, ``recovery`` what was done about it then, None where nothing was.
    """
    known = _statuses(before)
    settled = _statuses(change.known)
    latest = after.ledger.latest()
    card = after.state.patterns.scorecard()
    weights = {one.id: one.weight * (1 if one.type == "good" else -1) for one in after.state.patterns.patterns}
    actions: list[dict[str, Any]] = []
    for one in after.state.proposals:
        pattern = as_pattern(one)
        was = known.get(pattern.id)
        if was == one.status:
            continue
        entry = latest.get(pattern.id)
        if recovery is not None and settled.get(pattern.id) != one.status:
            reason = _recovered(one, pattern.id, recovery, settled.get(pattern.id))
        elif change.regression.regression and was is None:
            reason = "the change that it was part of was rolled back"
        else:
            reason = _why(one, after, profile, was)
        live = one.status == "validated" and card is not None
        actions.append(
            {
                "action": _ACTIONS[one.status],
                "pattern_id": pattern.id,
                "description": pattern.description,
                "iteration": after.state.iteration,
                "tested": one.stories_tested,
                "accuracy": one.accuracy,
                "p_value": None if entry is None else entry.p_value,
                "points": weights.get(pattern.id, 0.0) * card.unit if live and card is not None else None,
                "reason": reason,
            }
        )
    return actions


def _statuses(known: Known) -> dict[str, str]:
    return {as_pattern(one).id: one.status for one in known.state.proposals}


def _recovered(proposal: PatternProposal, name: str, recovery: Recovered, settled: str | None) -> str:
    """Return why the recovery, or the fit after it, gave a proposal another status than the iteration had."""
    if proposal.status == "validated":
        return _FITTED_AFTER.format("points")
    if proposal.status == "rejected" and (name in recovery.gone or settled == "provisional"):
        able = _able(recovery.kept, settled)
        if able:
            return "; or ".join(_TAKES_OUT[one] for one in able)
    return _FITTED_AFTER.format("no points")


def _able(kept: Collection[str], settled: str | None) -> list[str]:
    """Return the actions that were kept and can take a proposal of this status out: what is provisional only the reset can."""
    if settled == "provisional":
        return [one for one in kept if one == "reset_provisional"]
    return [one for one in kept if one in _TAKES_OUT and one != "reset_provisional"]


def _why(proposal: PatternProposal, known: Known, profile: Profile, before: str | None) -> str:
    """Return why the iteration itself gave a proposal the status that it has now."""
    if profile == "seed":
        rule = known.state.parameters.validation
        agreed = f"agreed with the judge on {proposal.correct_predictions:,} of {plural(proposal.stories_tested, 'item')}"
        needed = {
            "validated": f"{rule.commit_accuracy:.0%} of {rule.commit_tested} were needed",
            "rejected": f"below {rule.reject_accuracy:.0%} of {rule.reject_tested} or more",
            "provisional": f"neither {rule.commit_accuracy:.0%} of {rule.commit_tested} nor below {rule.reject_accuracy:.0%}",
        }
        if not proposal.stories_tested:
            return f"no test item could try it yet; {rule.commit_tested} are needed"
        return f"{agreed}; {needed[proposal.status]}"
    if proposal.status == "validated":
        return "the fit gave it points" if before is None else "the new fit gave it points again"
    return "the fit gave it no points" if before is None else "it had points, and the new fit gave it none"
