"""What to do next: recommendations, likely causes of a decline, and what mitigates each."""

from __future__ import annotations

import shlex

from jumar.ranking.degradation import Cause, likely_causes
from jumar.ranking.views import valid_score
from jumar.report.figures import iteration_label, listing, point_text
from jumar.report.notes import learned_in
from jumar.report.read import LoopReport
from jumar.report.spending import going_on
from jumar.text import escape, percent, plural

__all__ = ["causes", "recommendations"]


def causes(report: LoopReport) -> tuple[Cause, ...]:
    """Return the likely causes of the decline after the selected iteration, or one that was made up for; () for none."""
    selection = report.selection
    if learned_in(report) is not None:  # sets differ by what a fold of items happens to be, and no agent refined anything
        return ()
    if selection is not None and report.degraded:
        return likely_causes(report.seen, selection.selected_iteration, chance=report.chance)
    if report.degradation.detected and report.degradation.best_before is not None:
        last = max(report.degradation.iterations)
        before = [view for view in report.seen if view.number <= last]
        found = likely_causes(before, report.degradation.best_before, chance=report.chance)
        # quality did rise again, or this iteration would not be the choice
        return tuple(cause for cause in found if cause.pattern != "over-refinement")
    return ()


def recommendations(report: LoopReport) -> tuple[str, ...]:
    """Return at least one recommendation: what the trajectory says first, then what stands in the way of a better choice."""
    if report.selection is None:
        if not report.records:
            return ("Record at least one iteration",)
        return ("Make one iteration scoreable before running again: the table above says why each score is missing",)
    learned = learned_in(report)
    if learned is not None:
        command = f"jumar learn report {shlex.quote(escape(learned))}"
        return (f"For the verdict, which is about sealed items that no score here is of: {command}",)
    return (*_trajectory(report), *_obstacles(report))


def _trajectory(report: LoopReport) -> list[str]:
    selection = report.selection
    if selection is None:
        return []
    best, final = selection.selected_iteration, selection.final_quality
    if report.degraded and final is not None:
        lost = selection.quality_score - final
        return [
            # the sentence is the original report's; its percentages are points of 0–100, not a share of the best score
            f"Quality degraded by {percent(lost)} in later iterations ({point_text(lost)})",
            "Consider setting max iterations to avoid over-refinement",
            _optimum(best),
        ]
    if report.diminishing.detected and report.diminishing.iteration is not None:
        first = report.diminishing.iteration
        return [
            f"Diminishing returns from iteration {first} on: at least two changes in a row of less than 5 points",
            "Consider stopping at that point: [stop] diminishing_returns",
            _optimum(best),
        ]
    if best == selection.final_iteration and best > 0:
        delta = report.record(best).quality_delta
        if delta is not None and delta > 0:
            return [
                f"Quality was still rising at the final iteration ({point_text(delta)} up); further iterations may improve it",
                f"Optimal iteration count for this task: {best} or more",
            ]
    if best == 0:
        return ["No pass improved on the start state: change the objective, the prompt or the generator before running again"]
    return [_optimum(best)]


def _optimum(best: int) -> str:
    if best == 0:
        return "No pass improved on the start state: change the objective, the prompt or the generator before running again"
    return f"Optimal iteration count for this task: ~{best}"


def _obstacles(report: LoopReport) -> list[str]:
    found: list[str] = []
    threshold = report.criteria.threshold
    valid = [view for view in report.views if valid_score(view) is not None]
    if threshold is not None and not any((view.score or 0) >= threshold for view in valid):
        top = max(valid, key=lambda view: view.score or 0)
        short = point_text(threshold - (top.score or 0))
        nearest = f"iteration {iteration_label(top.number)} is {short} short"
        found.append(f"No iteration reaches the threshold of {percent(threshold)}; {nearest}")
    if all(view.verification == "skipped" for view in valid):
        if report.criteria.mode == "highest_quality_verified":
            found.append("No iteration was verified: add a check, so that a high score alone cannot win")
    elif not any(view.verification == "passed" for view in valid):
        found.append(f"No iteration passes every check; most often failing: {_most_failing(report)}")
    invalid = [view.number for view in report.views if valid_score(view) is None]
    if invalid:
        found.append(f"Without a valid score: {listing(invalid)}; the table gives the status of each")
    return [*found, *_money(report)]


def _money(report: LoopReport) -> list[str]:
    spend, found = report.spend, list[str]()
    if spend.cost_usd is None and not spend.known_cost_usd:
        found.append("The cost is unknown: have the generator report it, so that a budget can hold")
    elif spend.cost_usd is None:
        silent = plural(spend.unknown_costs, "attempt") if spend.unknown_costs else "Some attempts"
        found.append(f"The cost is not wholly known: {silent} did not report it, so a budget holds only as well as the guess")
    way = None if report.stop is None else going_on(report.stop.reason, spend, report.passes)
    return [*found, *([] if way is None else [f"To go on: {way}"])]


def _most_failing(report: LoopReport) -> str:
    fails: dict[str, int] = {}
    for record in report.records:
        for check in record.checks:
            if not check.passed:
                fails[check.name] = fails.get(check.name, 0) + 1
    if not fails:
        return "no check is named"
    name = max(fails, key=lambda name: (fails[name], name))
    return f"{name} ({fails[name]} of {plural(len(report.records), 'iteration')})"
