"""Why an iteration was selected, in one sentence that is true of every iteration that it speaks of; and what comes next to it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from jumar.core.rendering.figures import point_text
from jumar.core.text import points
from jumar.loop.report.read import LoopReport
from jumar.model import SelectionResult, StopDecision
from jumar.model.records import NO_EFFECT
from jumar.model.views import valid_score

__all__ = ["REASONS", "runner_up", "stopped_text", "why_selected"]

REASONS: Final = MappingProxyType(
    {
        "alone": "There is no iteration beside the start",
        "no score": "No iteration has a valid score, so the start stays",
        "all equal": "Every iteration scored as the start did; the latest that is as good is kept",
        "equal": "No iteration scored higher than the start; the latest that is as good is kept",
        "all lower": "Every iteration scored lower than the start",
        "none higher": "No iteration scored higher than the start",
        "higher not verified": "No iteration that passes all checks scored higher than the start",
        "verified": "Highest score of those that pass all checks",
        "highest": "Highest score",
        "not verified": "No iteration passed all checks; selected by score alone",
        "not verified, reached": "No iteration passed all checks; selected by score alone, which reaches {required}",
        "not verified, below": "No iteration reached {required} or passed all checks; selected by score alone",
        "unchecked": "No iteration was verified; selected by score alone",
        "unchecked, reached": "No iteration was verified; selected by score alone, which reaches {required}",
        "unchecked, below": "No iteration reached {required} or was verified; selected by score alone",
        "below": "No iteration reached {required}; selected without it",
        "verified, below": "No iteration that passes all checks reached {required}; selected without it",
        "latest": "Latest iteration",
        "latest, verified": "Latest iteration that passes all checks",
        "latest, reached": "Latest iteration that reaches {required}",
        "latest, reached, verified": "Latest iteration that reaches {required} and passes all checks",
        "latest, reached, not verified": "No iteration that reaches {required} passed all checks; selected is the latest of them",
        "latest, not verified": "No iteration passed all checks; selected is the latest",
        "latest, below": "No iteration reached {required}; selected is the latest",
    }
)
"""Every sentence that there is, by the case that it is for; ``{required}`` is the required score."""


def why_selected(report: LoopReport, selection: SelectionResult) -> str:
    """Return the sentence for what the rules selected, without its full stop."""
    threshold = report.criteria.threshold
    return REASONS[_case(report, selection)].format(required=f"the required score of {points(threshold or 0)}")


def _case(report: LoopReport, selection: SelectionResult) -> str:
    relaxed, threshold = selection.fallback or "", report.criteria.threshold
    latest = report.criteria.mode == "most_recent_above_threshold"
    if selection.selected_iteration == 0 and (selection.runner_up is None or not latest):
        return _start(report, selection)
    if latest:
        return _latest(report, relaxed)
    chosen = report.record(selection.selected_iteration)
    how_far = "" if threshold is None else ", reached" if selection.quality_score >= threshold else ", below"
    if "verification" in relaxed:
        checked = any(view.verification != "skipped" for view in report.views)
        return f"{'not verified' if checked else 'unchecked'}{how_far}"
    verified = report.criteria.mode == "highest_quality_verified" and chosen.verification_status == "passed"
    if relaxed:
        somebody = threshold is not None and any(score >= threshold for score in _scores(report).values())
        return "verified, below" if somebody else "below"
    return "verified" if verified and any(view.verification != "passed" for view in report.views) else "highest"


def _latest(report: LoopReport, relaxed: str) -> str:
    threshold = report.criteria.threshold
    if "threshold" in relaxed:
        return "latest, below"
    if relaxed:
        return "latest, not verified" if threshold is None else "latest, reached, not verified"
    parts = [
        "latest",
        *([] if threshold is None else ["reached"]),
        *(["verified"] if report.criteria.require_verification else []),
    ]
    return ", ".join(parts)


def _start(report: LoopReport, selection: SelectionResult) -> str:
    """Compare as the selection did: within the noise a score is neither higher nor lower."""
    start, scores = selection.quality_score, {number: score for number, score in _scores(report).items() if number}
    if not scores:
        return "no score" if report.passes else "alone"
    apart = [score for number, score in scores.items() if not report.is_noise(number)]
    if any(score > start for score in apart):
        return "higher not verified"
    lower = sum(score < start for score in apart)
    if selection.kept is not None:
        return "equal" if lower else "all equal"
    return "all lower" if lower == len(scores) else "none higher"


def _scores(report: LoopReport) -> dict[int, float]:
    """Return the valid scores that the selection went by: where finalists were scored again, the means of theirs alone."""
    known = report.certainty
    finalists = (
        None if known is None or not known.rescored else {one.iteration for one in known.finalists if one.mean is not None}
    )
    valid = (view.number for view in report.views if valid_score(view) is not None)
    scores = {number: report.score_of(number) for number in valid if finalists is None or number in finalists}
    return {number: score for number, score in scores.items() if score is not None}


def runner_up(report: LoopReport, selection: SelectionResult, name: str) -> str:
    """Return how far the next best, called ``name``, is from the selected one: ``iteration 1 is next, 5 points lower``."""
    number, margin = selection.runner_up, selection.margin
    if number is None or margin is None or selection.kept is not None:
        return ""
    tied = report.certainty is not None and number in report.certainty.tied
    if selection.selected_iteration == 0 and margin == 0:
        return f"{name} is next, with the same score{_not_kept(report, number)}"
    if points(margin) == "0":
        how = "as good" if margin == 0 or tied else "less than 0.1 points away"
    else:
        how = f"{point_text(margin)} {'lower' if margin > 0 else 'higher'}"
        how += ", which is within the noise" if tied else _unqualified(report, number) if margin < 0 else ""
    return f"{name} is next, {how}"


def _not_kept(report: LoopReport, number: int) -> str:
    """Return why an iteration that scores as the start does is not kept in its place."""
    record = report.record(number)
    if record.failure in NO_EFFECT:
        return ", and changed nothing"
    if record.tampering:
        return ", but is not trusted"
    return ", but its checks found it worse" if record.checks else ""


def _unqualified(report: LoopReport, number: int) -> str:
    """Return why one that scores higher was not selected."""
    if report.criteria.mode == "most_recent_above_threshold":
        return ", but older"
    failed = report.record(number).verification_status == "failed"
    return ", but does not pass all checks" if failed else ", but is not verified"


def stopped_text(stop: StopDecision) -> str:
    """Return why a loop ended: its reason and the detail, which often says the reason itself."""
    if not stop.detail:
        return stop.reason
    return stop.detail if stop.detail.startswith(stop.reason.replace("_", " ")) else f"{stop.reason}: {stop.detail}"
