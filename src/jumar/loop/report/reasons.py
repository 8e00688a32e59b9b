"""Why this iteration: sentences, each of them computed from the records and true of every iteration that it speaks of.

They are plain text, as markdown, HTML and JSON need it; whoever renders them escapes the names inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from jumar.core.given import extreme, sides, superlative
from jumar.core.rendering.figures import UNKNOWN, iteration_label, listing, missed_percent, point_text, relaxed_text
from jumar.core.text import percent, plural, points
from jumar.loop.ranking.confirmed import Certainty
from jumar.loop.ranking.degradation import NOTICEABLE
from jumar.loop.report.read import LoopReport, setting
from jumar.loop.store.in_force import TrailEntry
from jumar.model import CheckResult, IterationRecord, SelectionResult, StopDecision
from jumar.model.decisions import Rechecked
from jumar.model.ordering import valid_score
from jumar.model.records import NO_EFFECT

_NAMED = 6  # checks that a sentence names before it only counts them


def why_selected(report: LoopReport, selection: SelectionResult) -> str:
    """Return the sentence for what the rules selected, without its full stop; it is true of every iteration that it speaks of."""
    criteria, relaxed, threshold = report.criteria, selection.fallback or "", report.criteria.threshold
    latest = criteria.mode == "most_recent_above_threshold"
    required = f"the required score of {points(threshold or 0)}"
    if selection.selected_iteration == 0 and (selection.runner_up is None or not latest):
        return _why_the_start(report, selection)
    if latest and "threshold" in relaxed:
        return f"No iteration reached {required}; selected is the latest"
    if latest and relaxed:
        which, of_them = ("", "") if threshold is None else (f"that reaches {required} ", " of them")
        return f"No iteration {which}passed all checks; selected is the latest{of_them}"
    if latest:
        rules = [*([] if threshold is None else [f"reaches {required}"]), *["passes all checks"] * criteria.require_verification]
        return f"Latest iteration{' that ' * bool(rules)}{' and '.join(rules)}"
    reached = threshold is not None and selection.quality_score >= threshold
    if "verification" in relaxed:
        missed = "was verified" if all(view.verification == "skipped" for view in report.views) else "passed all checks"
        missed = missed if threshold is None or reached else f"reached {required} or {missed}"
        return f"No iteration {missed}; selected by score alone{f', which reaches {required}' if reached else ''}"
    if relaxed:
        others = threshold is not None and any(score >= threshold for score in _scores(report).values())
        return f"No iteration{' that passes all checks' if others else ''} reached {required}; selected without it"
    only = (
        criteria.mode == "highest_quality_verified"
        and report.record(selection.selected_iteration).verification_status == "passed"
    )
    some = only and any(view.verification != "passed" for view in report.views)
    return f"{superlative(selection.quality_score, 'score')}{' of those that pass all checks' if some else ''}"


def _why_the_start(report: LoopReport, selection: SelectionResult) -> str:
    """Compare as the selection did: within the noise a score is neither higher nor lower."""
    start, scores = selection.quality_score, {number: score for number, score in _scores(report).items() if number}
    if not scores:
        return "No iteration has a valid score, so the start stays" if report.passes else "There is no iteration beside the start"
    apart = [score for number, score in scores.items() if not report.is_noise(number)]
    if any(score > start for score in apart):
        return "No iteration that passes all checks scored higher than the start"
    lower = sum(score < start for score in apart)
    if selection.kept is None:
        return (
            "Every iteration scored lower than the start" if lower == len(scores) else "No iteration scored higher than the start"
        )
    how = "No iteration scored higher than the start" if lower else "Every iteration scored as the start did"
    return f"{how}; the latest that is as good is kept"


def _scores(report: LoopReport) -> dict[int, float]:
    """Return the valid scores that the selection went by: where finalists were scored again, the means of theirs alone."""
    known = report.certainty
    if known is not None and known.rescored:
        return {finalist.iteration: finalist.mean for finalist in known.finalists if finalist.mean is not None}
    return {view.number: score for view in report.views if (score := valid_score(view)) is not None}


def runner_up(report: LoopReport, selection: SelectionResult, name: str) -> str:
    """Return how far the next best, called ``name``, is from the selected one: ``iteration 1 is next, 5 points lower``."""
    number, margin = selection.runner_up, selection.margin
    if number is None or margin is None or selection.kept is not None:
        return ""
    if selection.selected_iteration == 0 and margin == 0:
        return f"{name} is next, with the same score{_not_kept(report, number)}"
    tied = _tied(report, number)
    if points(margin) == "0":
        how = "as good" if margin == 0 or tied else "less than 0.1 points away"
    else:
        how = f"{point_text(margin)} {sides(margin, 'lower', 'higher')[margin < 0]}"
        how += _unqualified(report, number) if margin < 0 or tied else ""
    return f"{name} is next, {how}"


def _tied(report: LoopReport, number: int) -> bool:
    return report.certainty is not None and number in report.certainty.tied


def _not_kept(report: LoopReport, number: int) -> str:
    """Return why an iteration that scores as the start does is not kept in its place."""
    record = report.record(number)
    if record.failure in NO_EFFECT:
        return ", and changed nothing"
    if record.tampering:
        return ", but is not trusted"
    return ", but its checks found it worse" if record.checks else ""


def _unqualified(report: LoopReport, number: int) -> str:
    """Return why one that scores higher, or may, was not selected."""
    if _tied(report, number):
        return ", which is within the noise"
    if report.criteria.mode == "most_recent_above_threshold":
        return ", but older"
    failed = report.record(number).verification_status == "failed"
    return ", but does not pass all checks" if failed else ", but is not verified"


def stopped_text(stop: StopDecision) -> str:
    """Return why a loop ended: its reason and the detail, which often says the reason itself."""
    if not stop.detail:
        return stop.reason
    return stop.detail if stop.detail.startswith(stop.reason.replace("_", " ")) else f"{stop.reason}: {stop.detail}"


# -------------------------------------------------------------------------------------------------------- for the report


def reason_of(report: LoopReport) -> str:
    """Return why the selected iteration stands, in one sentence; an override's reason names who gave it."""
    if report.override is not None and report.chosen == report.override.best_iteration:
        decision = report.override
        return f"Override ({decision.decision or 'use_specific'}) by {decision.by}: {decision.reason}"
    if report.selection is None:
        return "No iteration has a valid score"
    return report.selection.reason


def kind_of(entry: TrailEntry) -> str:
    """Return what kind of decision this is: ``select (use_best)``, ``apply``, ``apply, undone``, ``apply, unfinished``."""
    made = entry.decision
    name = made.kind if made.decision is None else f"{made.kind} ({made.decision})"
    return name if entry.state == "done" else f"{name}, {entry.state}"


def kind_words(entry: TrailEntry) -> str:
    """Return it without the words of files: ``select: the best``, ``override: this one``."""
    kind = kind_of(entry)
    for name, words in (("use_best", "the best"), ("use_final", "the last"), ("use_specific", "this one")):
        kind = kind.replace(f" ({name})", f": {words}")
    return kind


def rationale(report: LoopReport) -> tuple[str, ...]:
    """Return the bullets: override, score, later decline, checks, runner-up, what was relaxed, start, threshold."""
    chosen = report.chosen_record
    if chosen is None:
        return (_nothing_chosen(report),)
    bullets: list[str] = []
    selection = report.selection
    if report.override is not None:
        bullets.append(_override_sentence(report))
    if selection is not None and selection.stands == chosen.iteration_number:
        bullets.append(_score_sentence(report, selection, chosen))
    bullets += _declined_after(report, chosen)
    bullets.append(checks_sentence(chosen))
    bullets += recheck_sentence(report.recheck)
    if setting(report.config, "loop", "given_by") == "agent":
        bullets.append("given_by: agent: an agent chose what was asked for and how it was judged, as far as no file says so")
    if _allows_gameable(report.config.get("run")):
        bullets.append("allow_gameable = true: a learned set that was not made to be optimised against may score")
    if selection is not None and selection.stands == chosen.iteration_number:
        bullets += _runner_up(report, selection)
        if selection.fallback is not None:
            bullets.append(f"{capital(relaxed_text(selection.fallback))} ({report.criteria.mode})")
        bullets += _start_sentence(report, chosen)
        bullets += _threshold_sentence(report, chosen)
    return tuple(bullets)


def _allows_gameable(config: object) -> bool:
    """Return whether anything in a configuration lets a set score that was learned without the guard."""
    if isinstance(config, Mapping):
        found = cast("Mapping[str, object]", config)
        return found.get("allow_gameable") is True or any(map(_allows_gameable, found.values()))
    return isinstance(config, list | tuple) and any(map(_allows_gameable, cast("Sequence[object]", config)))


def capital(text: str) -> str:
    """Return ``text`` with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def _nothing_chosen(report: LoopReport) -> str:
    if not report.records:
        return "No iteration is recorded"
    invalid = [f"{iteration_label(record.iteration_number)}: {_status(record)}" for record in report.records[:_NAMED]]
    return f"None of {plural(len(report.records), 'iteration')} has a valid score ({'; '.join(invalid)})"


def _status(record: IterationRecord) -> str:
    words = record.status.replace("_", " ")
    return f"{words}: {record.status_reason}" if record.status_reason else words


def _score_sentence(report: LoopReport, selection: SelectionResult, chosen: IterationRecord) -> str:
    score, final = percent(selection.quality_score), report.final
    verified = chosen.verification_status == "passed"
    above = [
        record
        for record in report.records
        if (score_of := valid_score(record.view())) is not None and score_of > selection.quality_score
    ]
    if report.within_noise:
        what, above = "Quality score, by all that is known of the noise", []
    elif report.criteria.mode == "most_recent_above_threshold":
        what = "Most recent iteration that qualifies"
    elif above:
        what = "Highest verified quality score" if verified else "Highest quality score of those that qualify"
    else:
        what = superlative(selection.quality_score, "quality score")
    if final is None or final.iteration_number == chosen.iteration_number:
        sentence = f"{what} ({score}), and the final iteration"
    elif selection.final_quality is None:
        sentence = f"{what} ({score}; the final iteration {final.iteration_number} has none: {final.status.replace('_', ' ')})"
    else:
        sentence = f"{what} ({score} vs {percent(selection.final_quality)} final)"
    if above:
        top = max(above, key=lambda record: (record.quality_score or 0, -record.iteration_number))
        why = {"passed": "", "failed": ", which failed verification", "skipped": ", which is not verified"}[
            top.verification_status
        ]
        which = extreme(top.quality_score or 0.0)
        sentence += f"; the {which} of all is iteration {top.iteration_number} with {percent(top.quality_score)}{why}"
    return sentence


def _declined_after(report: LoopReport, chosen: IterationRecord) -> list[str]:
    score = report.chosen_quality
    if score is None:
        return []
    later = [record for record in report.records if record.iteration_number > chosen.iteration_number]
    later = [record for record in later if record.batch is None or record.batch != chosen.batch]  # made at the same time
    scores = {record.iteration_number: report.score_of(record.iteration_number) for record in later}
    known = {number: one for number, one in scores.items() if one is not None and one < score}
    lower = {number: one for number, one in known.items() if not report.is_noise(number)}
    if not lower:
        return [f"Lower in {listing(list(known))}, but within the noise"] if known else []
    if report.measured is None and score - min(lower.values()) < NOTICEABLE:
        return [f"Lower in {listing(list(lower))}, by less than {point_text(NOTICEABLE)}"]
    worst = min(lower.values())
    size = f"by {'up to ' if len(lower) > 1 else ''}{point_text(score - worst)}"
    return [f"Quality degraded in {listing(list(lower))} ({size})"]


def checks_sentence(record: IterationRecord) -> str:
    """Return which validation checks of one iteration passed."""
    if not record.checks:
        said = {
            "passed": "All validation checks passed",
            "failed": "Validation checks failed",
            "skipped": "Not verified: no validation checks were run",
        }
        return said[record.verification_status]
    failed = [check for check in record.checks if not check.passed]
    if not failed:
        return f"All validation checks passed ({len(record.checks)} of {len(record.checks)}: {_names(record.checks)})"
    passed = len(record.checks) - len(failed)
    return f"{passed} of {len(record.checks)} validation checks passed; not: {_names(failed)}"


def _name(check: CheckResult) -> str:
    said = "could not run" if check.broken is not None else "" if check.tests is None else str(check.tests)
    return f"{check.name} ({said})" if said else check.name


def recheck_sentence(found: Rechecked | None) -> tuple[str, ...]:
    """Return what came of running the checks once more, in a sentence without its stop; nothing where that was known before."""
    if found is None or not found.ran:
        return ()
    once_more = (
        "Not known whether the snapshot alone passes" if found.rechecked is None else "Checked once more, the snapshot alone"
    )
    return (f"{once_more}: {found.because}",)


def _names(checks: tuple[CheckResult, ...] | list[CheckResult]) -> str:
    shown = [_name(check) for check in checks[:_NAMED]]
    rest = len(checks) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _runner_up(report: LoopReport, selection: SelectionResult) -> list[str]:
    if selection.kept is not None:
        return ["Nothing is better than the start; of what is as good, the latest iteration is kept"]
    if selection.runner_up is None or selection.margin is None:
        return ["No runner-up: it is the only iteration with a valid score"]
    name = f"iteration {iteration_label(selection.runner_up)}"
    if selection.margin == 0:
        return [f"Runner-up: {name}, equal at {percent(selection.quality_score)}; {_tie_break(report, selection)}"]
    where = f"Runner-up: {name} ({percent(selection.quality_score - selection.margin)})"
    if selection.margin > 0:
        return [f"{where}, {point_text(selection.margin)} behind"]
    return [f"{where}, {point_text(selection.margin)} ahead{_unqualified(report, selection.runner_up)}"]


def _tie_break(report: LoopReport, selection: SelectionResult) -> str:
    chosen = report.record(selection.selected_iteration)
    second = report.record(selection.runner_up or 0)
    if report.criteria.mode == "most_recent_above_threshold":
        return "the more recent one is selected"
    if report.criteria.mode == "highest_quality_verified" and chosen.verification_status != second.verification_status:
        return "the verified one is selected"
    return "the earlier one is selected"


def _start_sentence(report: LoopReport, chosen: IterationRecord) -> list[str]:
    start = report.start
    score = report.score_of(chosen.iteration_number)
    first = None if start is None else report.score_of(start.iteration_number)
    if first is None or score is None:
        return []
    if chosen.iteration_number == 0:
        return ["No iteration improved on the start"]
    gain = score - first
    if gain == 0 or report.kept:
        return [f"As good as the start state ({percent(first)})"]
    if gain > 0:
        return [f"{point_text(gain)} better than the start state ({percent(first)})"]
    return [f"{point_text(gain)} worse than the start state ({percent(first)}), which does not qualify"]


def _threshold_sentence(report: LoopReport, chosen: IterationRecord) -> list[str]:
    threshold = report.criteria.threshold
    score = report.score_of(chosen.iteration_number)
    if threshold is None or score is None:
        return []
    if score >= threshold:
        return [f"Reaches the threshold ({percent(score)} ≥ {percent(threshold)})"]
    return [f"Below the threshold ({missed_percent(score, threshold)} < {percent(threshold)})"]


def _override_sentence(report: LoopReport) -> str:
    decision = report.override
    if decision is None:
        return ""
    who = f"Selected by {decision.by} on {decision.at} ({decision.decision or 'use_specific'})"
    if decision.replaced is not None:
        who += f", in place of iteration {iteration_label(decision.replaced)}"
    selection = report.selection
    if selection is None:
        return who
    if selection.stands == report.chosen:
        return f"{who}; the automatic choice would be the same"
    automatic = f"iteration {iteration_label(selection.stands)} ({percent(selection.quality_score)})"
    return f"{who}; the automatic choice would be {automatic}"


def degradation_sentence(report: LoopReport) -> str | None:
    """Return how quality fell after its peak, or that a trigger fired on the way; None when neither happened."""
    selection = report.selection
    if selection is not None and report.degraded:
        fell = (
            f"Quality degraded from iteration {selection.selected_iteration} ({percent(selection.quality_score)}) to final "
            f"iteration {selection.final_iteration} ({percent(selection.final_quality)})."
        )
        if report.chosen == selection.selected_iteration:
            return f"{fell} Selected best output instead of final."
        return f"{fell} The override keeps iteration {report.chosen}."
    if report.degradation.detected:
        checks, triggers = "validation_failures_increased", report.degradation.triggers
        what = "More checks failed than before at" if set(triggers) == {checks} else "Quality fell on the way, at"
        if checks in triggers and len(set(triggers)) > 1:
            what = "Quality fell or more checks failed on the way, at"
        return f"{what} {listing(report.degradation.iterations)}; {_how_it_ended(report)}."
    return None


def _how_it_ended(report: LoopReport) -> str:
    selection, final = report.selection, report.final
    if selection is None or final is None or selection.final_quality is None:
        return "the final iteration has no valid score"
    if final.verification_status == "failed" and final.iteration_number != selection.selected_iteration:
        return "the final iteration fails its checks"
    if selection.degradation_detected:
        lost = point_text(selection.quality_score - selection.final_quality)
        return f"the final iteration is {lost} below the best choice, {report.excuse}"
    if selection.selected_iteration == selection.final_iteration:
        return "the final iteration is the best choice again"
    return "the final iteration is not worse than the best choice"


# ------------------------------------------------------------------------------------------------------------- how sure it is


FINALIST_COLUMNS = ("Iteration", "In the loop", "Scored again", "Mean of all", "Standard error")
COMPARED_COLUMNS = ("For the same spend", "Iteration", "In the loop", "Fair score", "By")
_BY = {"holdout": "the hold-out", "confirm": "one more reading", "loop": "its own, which nothing was selected by", None: UNKNOWN}


def certainty_sentences(report: LoopReport) -> tuple[str, ...]:
    """Return what is known of the noise, and what follows from it; empty when nothing is."""
    certainty = report.certainty
    if certainty is None or not certainty.known:
        return ()
    sentences = [*_noise(certainty), *_finals(certainty), *_tie(certainty), *_optimism(certainty)]
    if report.chosen != certainty.chosen:
        sentences.append(
            f"All this is about iteration {iteration_label(certainty.chosen)}, which the rules choose; a person chose another"
        )
    return (*sentences, *certainty.problems)


def mean_text(report: LoopReport, number: int) -> str:
    """Return ``mean of 3 readings; 72.3% as recorded``; empty where the score is the recorded one."""
    readings = report.readings_of(number)
    return "" if readings == 1 else f"mean of {readings} readings; {percent(report.record(number).quality_score)} as recorded"


def score_text(report: LoopReport, number: int) -> str:
    """Return the score of one iteration by all its readings, with what it is: ``70.1% (mean of 3 readings; …)``."""
    told = mean_text(report, number)
    return f"{percent(report.score_of(number))}{f' ({told})' if told else ''}"


def _noise(certainty: Certainty) -> list[str]:
    if certainty.standard_error is None:
        return ["How noisy the scores are is not known: no scorer was asked twice about one iteration"]
    if certainty.standard_error == 0:
        return ["The scorers gave the same answer every time: a difference between two scores is no chance"]
    how = f"one standard error, {certainty.degrees} degrees of freedom"
    return [f"Chance alone moves a score by {point_text(certainty.standard_error)} ({how})"]


def _finals(certainty: Certainty) -> list[str]:
    numbers = [finalist.iteration for finalist in certainty.finalists]
    if len(numbers) < 2:
        alone = f"No other iteration is within the noise of iteration {iteration_label(numbers[0])}"
        return [alone] if certainty.standard_error else []
    if certainty.rescored:
        return [f"{_iterations(numbers)} were too close to call and were scored again; the mean of all readings decided"]
    return [f"{_iterations(numbers)} are too close to call, and were not all scored again"]


def _tie(certainty: Certainty) -> list[str]:
    if len(certainty.tied) < 2:
        return []
    kept = f"iteration {iteration_label(certainty.chosen)}, the earliest, is kept"
    return [f"{_iterations(list(certainty.tied))} differ by no more than the noise (±{points(certainty.width)}): {kept}"]


def _optimism(certainty: Certainty) -> list[str]:
    confirmed = certainty.confirmed
    if confirmed is None:
        lucky = "Nothing confirmed the score that won; the best of several is as a rule a little lucky"
        return [lucky] if certainty.standard_error else []
    by = "the hold-out gives" if confirmed.by == "holdout" else "read once more, it is"
    told = f"The score that won is {percent(certainty.won)}; {by} {percent(confirmed.score)}"
    if certainty.optimism is None:
        return [f"{told}, on other dimensions: they don't compare"]
    interval = "" if certainty.optimism_width is None else f", give or take {points(certainty.optimism_width)}"
    return [f"{told}: optimism of the selection {points(certainty.optimism, sign=True)} points{interval}"]


def _iterations(numbers: list[int]) -> str:
    return f"I{listing(sorted(numbers))[1:]}"


def finalist_rows(report: LoopReport) -> tuple[tuple[str, ...], ...]:
    """Return the rows under :data:`FINALIST_COLUMNS`; empty with fewer than two finalists."""
    certainty = report.certainty
    if certainty is None or len(certainty.finalists) < 2:
        return ()
    return tuple(
        (
            iteration_label(finalist.iteration) + (" ✓" if finalist.iteration == certainty.chosen else ""),
            percent(finalist.score),
            ", ".join(percent(score) for score in finalist.later) or UNKNOWN,
            percent(finalist.mean),
            points(finalist.standard_error),
        )
        for finalist in certainty.finalists
    )


def compared_rows(report: LoopReport) -> tuple[tuple[str, ...], ...]:
    """Return the rows under :data:`COMPARED_COLUMNS`; empty when nothing is known of the noise."""
    certainty = report.certainty
    if certainty is None or not certainty.known:
        return ()
    return tuple(
        (capital(each.which), iteration_label(each.iteration), percent(each.score), percent(each.fair), _BY[each.by])
        for each in certainty.compared
    )
