"""What to do next: recommendations, likely causes of a decline, and what helps against each.

Each follows from the records of this loop: nothing is advised that the loop has set already, nothing is found in a difference
below :data:`jumar.loop.ranking.degradation.NOTICEABLE` or within the noise, and one run is no evidence of a best number of
iterations.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from jumar.core.given import extreme
from jumar.core.record import Record
from jumar.core.rendering.figures import iteration_label, listing, point_text
from jumar.core.text import escape, percent, plural, points, short_dollars
from jumar.loop.ranking.degradation import NOTICEABLE, Cause, likely_causes
from jumar.loop.report.read import LoopReport, is_run, setting
from jumar.loop.report.rows import learned_in
from jumar.loop.report.spending import going_on
from jumar.model.ordering import best_of_batches, valid_score

_NOTHING: Final = "None: nothing in these records asks for a change"
_HIGHEST: Final = 100
_FLAT: Final = 5.0
"""Points: what :func:`jumar.loop.ranking.degradation.detect_diminishing_returns` calls a small step."""


def causes(report: LoopReport) -> tuple[Cause, ...]:
    """Return the likely causes of the decline after the selected iteration, or one that was made up for; () for none."""
    selection = report.selection
    if learned_in(report) is not None:  # sets differ by what a fold of items happens to be, and no agent refined anything
        return ()
    found: tuple[Cause, ...] = ()
    if selection is not None and report.degraded:
        found = likely_causes(report.seen, selection.selected_iteration, chance=report.chance)
    elif report.degradation.detected and report.degradation.best_before is not None:
        last = max(report.degradation.iterations)
        before = [view for view in report.seen if view.number <= last]
        # quality did rise again, or this iteration would not be the choice
        all_found = likely_causes(before, report.degradation.best_before, chance=report.chance)
        found = tuple(cause for cause in all_found if cause.pattern != "over-refinement")
    return tuple(_unset(report, cause) for cause in found)


def _unset(report: LoopReport, cause: Cause) -> Cause:
    """Leave out of what helps against over-refinement what the loop has set already."""
    if cause.pattern != "over-refinement" or not is_run(report.config):
        return cause
    ways = _against_falls(report)
    return replace(cause, mitigation=f"set {' or '.join(ways)}" if ways else "fewer iterations")


def recommendations(report: LoopReport) -> tuple[str, ...]:
    """Return at least one line: what the trajectory says first, then what stands in the way of a better selection."""
    if report.selection is None:
        if not report.records:
            return ("Record at least one iteration",)
        return ("Make one iteration scoreable before running again: the table above says why each score is missing",)
    learned = learned_in(report)
    if learned is not None:
        command = f"jumar learn report {shlex.quote(escape(learned))}"
        return (f"For the verdict, which is about held-out items that no score here is of: {command}",)
    return (*_trajectory(report), *_obstacles(report)) or (_NOTHING,)


# ------------------------------------------------------------------------------------------------------ the trajectory


def _trajectory(report: LoopReport) -> list[str]:
    selection = report.selection
    if selection is None:
        return []
    best, final = selection.selected_iteration, selection.final_quality
    if selection.quality_score >= _HIGHEST and report.measured is None:
        return _finished(report, selection.stands)
    if best == 0:
        return _not_better(report)
    if report.degraded and final is not None:
        return [_fell(report, best, selection.quality_score - final)]
    flat = _flat_since(report)
    if flat is not None:
        return [flat]
    return _rising(report)


def _fell(report: LoopReport, best: int, by: float) -> str:
    after = [record.iteration_number for record in report.records if record.iteration_number > best]
    if setting(report.config, "loop", "continue_from") == "best":  # nothing was built on what fell
        return f"{listing(after).capitalize()} did not improve on iteration {best}{_paid(report, after)}"
    ways = _against_falls(report) if is_run(report.config) else ["a limit on the number of iterations"]
    fell = f"Quality fell by {point_text(by)} after iteration {best}{_paid(report, after)}"
    return f"{fell}: set {' or '.join(ways)}" if ways else fell


def _against_falls(report: LoopReport) -> list[str]:
    """What the loop has not set of what ends or mends a decline."""
    ways: list[str] = []
    if setting(report.config, "loop", "continue_from") != "best":
        ways.append('[loop] continue_from = "best" (each iteration starts from the best one)')
    if not any(setting(report.config, "stop", rule) for rule in ("decline", "plateau", "diminishing_returns")):
        ways.append("[stop] decline = true (ends a loop that only falls)")
    return ways


def _paid(report: LoopReport, numbers: list[int]) -> str:
    """Return ``, at a cost of $0.12``; empty when one is not known, or all are zero. Of judges nobody knows which iteration."""
    costs = [report.record(number).token_cost_usd for number in numbers]
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs) or not sum(known):
        return ""
    judged = any(part.kind == "scoring" and part.spend.charged_cost_usd for part in report.took.parts)
    return f", at a cost of {short_dollars(sum(known))}{' for the generator' if judged else ''}"


def _not_better(report: LoopReport) -> list[str]:
    """The start is selected, and iterations that were scored are not better."""
    scored = {view.number: score for view in report.seen if view.number > 0 and (score := valid_score(view)) is not None}
    start = report.start and report.score_of(0)
    if not scored or start is None:
        return []
    cost = _paid(report, list(scored))
    if all(abs(score - start) < NOTICEABLE for score in scored.values()):
        return [f"{plural(len(scored), 'iteration')} scored as the start did{cost}: measure what tells them apart"]
    what = "change the objective, the prompt or the generator"
    return [f"None of {plural(len(scored), 'scored iteration')} is better than the start{cost}: {what} before running again"]


def _finished(report: LoopReport, best: int) -> list[str]:
    """The selected one has the highest score that there is: what came after it could not improve on that."""
    batch = report.record(best).batch
    after = [
        one.iteration_number for one in report.records if one.iteration_number > best and (batch is None or one.batch != batch)
    ]
    if not after:
        return []
    could = f"{listing(after).capitalize()} could not improve on iteration {iteration_label(best)}, which has {_HIGHEST}"
    unset = is_run(report.config) and not any(setting(report.config, "stop", key) for key in ("target", "keep_going"))
    return [f"{could}{_paid(report, after)}" + (f": set [stop] target = {_HIGHEST} (ends the loop there)" if unset else "")]


def _flat_since(report: LoopReport) -> str | None:
    """Return where going on stopped paying: nothing noticeable was gained from there to the end; None where something was."""
    first, selection = report.diminishing.iteration, report.selection
    if first is None or selection is None or report.degraded:
        return None
    before = [score for view in report.seen if view.number < first and (score := valid_score(view)) is not None]
    since = [view.number for view in report.views if view.number >= first]
    if not before or len(since) < 2:
        return None
    gain = selection.quality_score - max(before)
    if gain >= _FLAT:
        return None
    gained = "nothing" if gain < NOTICEABLE else f"{point_text(gain)} together"
    unset = not any(setting(report.config, "stop", rule) for rule in ("plateau", "diminishing_returns"))
    way = ": set [stop] diminishing_returns = true (ends the loop there)" if is_run(report.config) and unset else ""
    return f"{listing(since).capitalize()} gained {gained}{_paid(report, since)}{way}"


def _rising(report: LoopReport) -> list[str]:
    """The last one is the best by a noticeable step, and a limit ended the loop: more of them may help."""
    selection = report.selection
    if selection is None or report.degraded:
        return []
    if report.stop is not None and report.stop.reason != "max_iterations":
        return []
    best = selection.selected_iteration
    steps = [view for view in best_of_batches(report.seen) if valid_score(view) is not None]
    if len(steps) < 2 or steps[-1].number != best:
        return []
    gain = selection.quality_score - (steps[-2].score or 0)
    if gain < max(NOTICEABLE, report.chance.width(steps[-2].number, best)):
        return []
    way = ": a higher -n resumes the loop" if is_run(report.config) else ""
    rising = f"Quality was still rising at iteration {best}, the last with a score ({point_text(gain)} up)"
    return [f"{rising}; more iterations may improve it{way}"]


# ------------------------------------------------------------------------------------------- what stands in the way


def _obstacles(report: LoopReport) -> list[str]:
    found: list[str] = []
    threshold = report.criteria.threshold
    valid = [view for view in report.views if valid_score(view) is not None]
    if threshold is not None and not any((view.score or 0) >= threshold for view in valid):
        top = max(valid, key=lambda view: view.score or 0)
        short = point_text(threshold - (top.score or 0))
        nearest = f"iteration {iteration_label(top.number)} is {short} short"
        found.append(f"No iteration reaches the threshold of {points(threshold)}; {nearest}")
    if all(view.verification == "skipped" for view in valid):
        if report.criteria.mode == "highest_quality_verified":
            found.append("No iteration was verified: add a check, so that a high score alone cannot win")
    elif not any(view.verification == "passed" for view in valid):
        found.append(f"No iteration passes every check; most often failing: {_most_failing(report)}")
    invalid = [view for view in report.views if valid_score(view) is None]
    if invalid:
        why = ", ".join(dict.fromkeys(view.status.replace("_", " ") for view in invalid))
        see = f"jumar logs {shlex.quote(escape(report.loop_id))} --iteration {invalid[-1].number}"
        numbers = listing([view.number for view in invalid])
        found.append(f"Without a valid score: {numbers} ({why})" + (f"; {see} shows the last" if is_run(report.config) else ""))
    return [*found, *_money(report)]


def _money(report: LoopReport) -> list[str]:
    """A cost that was not reported matters where dollars are limited; what it takes to resume where a limit ended the loop."""
    spend, found = report.spend, list[str]()
    if spend.cost_usd is None and report.budget.max_cost_usd is not None:
        silent = plural(spend.unknown_costs, "attempt") if spend.unknown_costs else "some attempts"
        found.append(f"The cost of {silent} was not reported and is estimated: max_cost_usd holds only as well as that")
    way = None if report.stop is None else going_on(report.stop.reason, spend, report.passes)
    return [*found, *([] if way is None else [f"To resume: {way}"])]


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


# ---------------------------------------------------------------------------------------------- seed 1's validation checklist


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine(Record):
    """One line: what should be true, whether it is, and the fact behind the answer."""

    text: str
    done: bool
    fact: str


def checklist(report: LoopReport) -> tuple[CheckLine, ...]:
    """Return the seven lines, in seed 1's order."""
    answers = ((text, answer(report)) for text, answer in _LINES)
    return tuple(CheckLine(text=text, done=done, fact=fact) for text, (done, fact) in answers)


def _preserved(report: LoopReport) -> Answer:
    if not report.records:
        return False, "no iteration is recorded"
    if report.snapshots is None:
        return False, "not looked at: this report was made from records alone"
    missing = [record.iteration_number for record in report.records if record.iteration_number not in report.snapshots]
    if not missing:
        return True, f"{plural(len(report.records), 'snapshot')} stored"
    if report.measured is not None:
        return False, "imported without its files"
    cleaned = [decision.number for decision in report.decisions if decision.kind == "cleanup"]
    why = f"removed by cleanup (decision {cleaned[-1]})" if cleaned else "missing, and no cleanup removed them"
    return False, f"{listing(missing)} {why}; {len(report.records) - len(missing)} of {len(report.records)} stored"


def _scored(report: LoopReport) -> Answer:
    invalid = [view.number for view in report.views if valid_score(view) is None]
    valid = len(report.views) - len(invalid)
    if not report.views:
        return False, "no iteration is recorded"
    if not invalid:
        return True, f"{valid} of {valid}"
    return False, f"{valid} of {len(report.views)}; no valid score: {listing(invalid)}"


def _tracked(report: LoopReport) -> Answer:
    if not report.leaders:
        return False, "no iteration has a valid score"
    path = _path(report.leaders)
    best = report.record(report.leaders[-1])
    return True, f"running best: {path} ({percent(best.quality_score)})"


def _path(leaders: tuple[int, ...]) -> str:
    shown = [str(number) for number in leaders]
    if len(shown) > 8:
        shown = [*shown[:3], "…", *shown[-4:]]
    return " → ".join(shown)


def _by_quality(report: LoopReport) -> Answer:
    if report.selection is None:
        return False, "nothing could be selected"
    if report.override is not None:
        return False, f"overridden by {report.override.by} (decision {report.override.number})"
    if report.criteria.mode == "most_recent_above_threshold":
        return False, "the mode most_recent_above_threshold prefers the most recent one that qualifies"
    chosen = report.selection.selected_iteration
    score = report.selection.quality_score
    if report.within_noise:
        how = "by all readings of the finalists" if report.certainty is not None and report.certainty.rescored else "and a tie"
        return True, f"iteration {iteration_label(chosen)} has {percent(score)}, {how}; see how sure this is"
    pool = _pool(report, chosen)
    highest = max(pool.values())
    which = "verified score" if _only_verified(report, chosen) else "valid score"
    top = f"the {extreme(highest)} of {plural(len(pool), which)} is {percent(highest)}"
    return score == highest, f"iteration {iteration_label(chosen)} has {percent(score)}, {top}"


def _only_verified(report: LoopReport, chosen: int) -> bool:
    wanted = report.criteria.mode == "highest_quality_verified"
    return wanted and report.record(chosen).verification_status == "passed"


def _pool(report: LoopReport, chosen: int) -> Mapping[int, float]:
    """The valid scores that the selected one competes with: the verified ones when the mode wants them and it is one."""
    only_verified = _only_verified(report, chosen)
    return {
        view.number: score
        for view in report.views
        if (score := valid_score(view)) is not None and (not only_verified or view.verification == "passed")
    }


def _logged(report: LoopReport) -> Answer:
    choices = [decision for decision in report.decisions if decision.kind in {"select", "override"}]
    standing = [decision for decision in choices if decision.best_iteration == report.chosen]
    if report.override is not None:
        standing = [report.override]
    if not standing:
        return False, "not logged yet" if not choices else "the logged selection is of an earlier state"
    last = standing[-1]
    if not last.reason.strip():
        return False, f"decision {last.number} gives no reason"
    return True, f"decision {last.number} ({last.kind}) by {last.by} at {last.at}: {last.reason}"


def _override_available(report: LoopReport) -> Answer:
    if report.config.get("override_enabled") is False:
        return False, "switched off: [override] enabled = false"
    used = sum(decision.kind == "override" for decision in report.decisions)
    return True, f"available; {'not used' if not used else 'used once' if used == 1 else f'used {used} times'}"


def _degradation_looked_for(report: LoopReport) -> Answer:
    # steps from one valid score to the next, as the detection takes them
    compared = sum(valid_score(view) is not None for view in best_of_batches(report.views)) - 1
    if compared < 1:
        return False, "needs two valid scores to compare"
    found, selection = report.degradation, report.selection
    facts: list[str] = []
    if found.detected:
        facts.append(f"{', '.join(found.triggers).replace('_', ' ')} at {listing(found.iterations)}")
    if selection is not None and selection.degradation_detected and selection.final_quality is not None:
        noise = f", {report.excuse}" if report.excuse else ""
        lost = point_text(selection.quality_score - selection.final_quality)
        facts.append(
            f"the final iteration is {lost} {'below' if report.measured is None else 'worse than'} the best choice{noise}"
        )
    return True, f"looked at {plural(compared, 'change')} of score; {'; '.join(facts) or 'none found'}"


Answer = tuple[bool, str]
_LINES: Final[tuple[tuple[str, Callable[[LoopReport], Answer]], ...]] = (
    ("All iteration outputs preserved", _preserved),
    ("Quality score calculated for each iteration", _scored),
    ("Best tracker maintained throughout", _tracked),
    ("Selection based on quality, not recency", _by_quality),
    ("Selection decision logged with rationale", _logged),
    ("Override option available if needed", _override_available),
    ("Degradation patterns detected", _degradation_looked_for),
)
