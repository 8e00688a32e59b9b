"""How a loop ended, or where it is, in sentences for the terminal: what came of it, and why. What to do next is the caller's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from jumar.core.rendering.figures import duration
from jumar.core.text import cut, escape, plural, points, signed_points
from jumar.loop.ranking.confirmed import Certainty
from jumar.loop.ranking.repairs import repairs
from jumar.loop.report.judged import decided_document, decided_words, learned_document, unconverged_sentence
from jumar.loop.report.read import LoopReport, setting
from jumar.loop.report.reasons import capital, reason_of, recheck_sentence, runner_up, why_selected
from jumar.loop.report.rows import failing_checks, tests_of
from jumar.loop.report.spending import failures_text, spent_money
from jumar.model import IterationRecord, SelectionResult, StopDecision
from jumar.model.selection import REQUESTED_REASONS

State = Literal["new", "running", "interrupted", "finished", "again", "tracked"]
Place = Literal["applied", "holds", "gone", "refused", "apart", "later", "nowhere"]
"""Where the selected iteration is: put into the working directory, there without that, no more there, refused, not applied
because the loop works elsewhere, not applied yet, or nobody knows a working directory."""

_CHECKS: Final = ("validation", "checks")  # dimension and scorer of a score that the checks alone make
_SAID: Final = 160
KEPT: Final = "\N{NO-BREAK SPACE}"
"""A blank at which no line is broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the records alone do not say of a loop.

    ``state`` is that of ``jumar show``; "again" is a loop that had ended before it was run once more, so that nothing was done.
    ``stop`` is why it ended, None while it runs. ``directory`` is the working directory as people read it, empty for the current
    one. ``to_start`` is whether an undo puts the start back. ``problem`` says why an apply was refused, ``writer`` who writes a
    loop that runs.
    """

    state: State
    place: Place
    stop: StopDecision | None = None
    directory: str = ""
    to_start: bool = False
    problem: str = ""
    writer: str = ""


def result(report: LoopReport, situation: Situation) -> tuple[str, ...]:
    """Return what came of the loop: from where to where, verified, applied, cost and time; then what failed on the way."""
    chosen = report.chosen_record
    nothing = "nothing selected: no iteration has a valid score" if report.records else "no iteration is recorded yet"
    parts = [nothing if chosen is None else _achieved(report, chosen, situation)]
    paid = bool(report.spend.iterations) or report.spend.cost_usd != 0
    parts += [spent_money(report.spend, report.budget) if paid else "nothing paid"] if report.records else []
    parts += [duration(report.spend.seconds)] if report.spend.seconds else []
    lines = ["Nothing was run: this loop has ended before."] if situation.state == "again" else []
    lines.append(f"{KEPT}· ".join([parts[0], *(part.replace(" ", KEPT) for part in parts[1:])]))
    if chosen is not None and _cut_short(report):
        lines.append(_uncounted(chosen))
    if situation.problem:
        lines.append(f"Not applied: {escape(situation.problem)}")
    if report.took.failures and situation.state != "again":
        lines.append(f"Failures: {failures_text(report.took.failures)}")
    return tuple(lines)


def _achieved(report: LoopReport, chosen: IterationRecord, situation: Situation) -> str:
    number = chosen.iteration_number
    at = ", the start" if number == 0 else f" at iteration {number}"
    at = f", as good as the start: iteration {number} is kept" if report.kept else at
    so_far = " so far" if situation.state in {"running", "interrupted"} and number else ""
    failed_again = report.recheck is not None and report.recheck.rechecked is False
    passed = "all checks passed, but not once more" if failed_again else "all checks pass"
    checks = {"passed": f" ({passed})", "failed": f" ({_not_verified(chosen)})", "skipped": ""}[chosen.verification_status]
    place = _place(situation, number)
    return f"{_measured(report, chosen)}{at}{so_far}{checks}{f', {place}' if place else ''}"


def _not_verified(chosen: IterationRecord) -> str:
    if all(check.passed for check in chosen.checks):
        return "not verified"
    failing = failing_checks(chosen)
    return f"{', '.join(failing)} fail{'s' if len(failing) == 1 else ''}" if failing else "not all checks pass"


def _place(situation: Situation, number: int) -> str:
    to, within = (f" {word} {situation.directory}" if situation.directory else "" for word in ("to", "in"))
    return {
        "applied": f"applied{to or ' here'}" if number else f"put back{within or ' here'}",
        "holds": f"already in place{within}",
        "gone": f"not {within.strip() or 'in the directory'} any more",
        "later": "not applied yet",
        "nowhere": "",
    }.get(situation.place, "not applied")


def _measured(report: LoopReport, chosen: IterationRecord) -> str:
    """Return ``3/12 → 11/12 tests`` where the checks alone make the score, else the scores, with the tests behind them."""
    start = report.start
    first = start if start is not None and chosen.iteration_number != 0 and not report.kept else None
    tests = _change("" if first is None else tests_of(first), tests_of(chosen))
    before, after = None if first is None else report.score_of(first.iteration_number), report.chosen_quality
    unscored = first is not None and before is None
    dimension, scorer = _CHECKS
    by_checks = set(chosen.dimensions) <= {dimension} and all(reading.scorer == scorer for reading in chosen.readings)
    if tests and by_checks:
        return f"{'start not scored → ' * unscored}{tests} {'counted ' * _cut_short(report)}tests"
    scores = _change(
        "not scored" if unscored else "" if before is None else points(before), "none" if after is None else points(after)
    )
    return f"score {scores}{f' and {tests} tests' if tests else ''}"


def _cut_short(report: LoopReport) -> bool:
    """Whether a check stopped at its first failure at the start, so that only the tests that ran by then are counted."""
    return report.start is not None and any(check.tests is not None and check.tests.cut_short for check in report.start.checks)


def _uncounted(chosen: IterationRecord) -> str:
    more = sum(check.tests.new_passing for check in chosen.checks if check.tests is not None)
    told = f"; {plural(more, 'other')} {'passes' if more == 1 else 'pass'}" if more else ""
    return f"Only tests that ran at the start are counted, which stopped at its first failure{told}."


def _change(before: str, after: str) -> str:
    return f"{before} → {after}" if before and after else after


# ------------------------------------------------------------------------------------------------------------------- why


def why(report: LoopReport, situation: Situation) -> tuple[str, ...]:
    """Return the rule that selected, the runner-up with its margin and what was relaxed; why it ended; how sure that is."""
    ended = _ended(situation)
    last = report.records[-1] if report.records else None
    asked = bool(setting(report.config, "stop", "converged"))
    missing = unconverged_sentence(learned_document(last), situation.stop, asked=asked)
    cut_off = _cut_off(report) if situation.state == "interrupted" else ""
    known = (
        [f"Ended: {ended}.{f' {cut_off}' if cut_off else ''}"]
        if ended
        else [f"Running: {situation.writer}."]
        if situation.writer
        else []
    )
    known += [escape(missing)] if missing else []
    selection, override = report.selection, report.override
    if override is not None and report.chosen == override.best_iteration:
        return (_overridden(report), *known)
    if selection is None or report.chosen is None:
        return (*_invalid(report), *known)
    parts = [" ".join(f"{capital(one)}." for one in _selected(report, selection) if one), *known]
    if selection.below_start:
        parts.insert(1, "It scores below the start, which does not pass the checks.")
    parts[1:1] = [] if report.chosen_record is None else _tests(report, report.chosen_record)
    decided = decided_document(report.chosen_record)
    parts += [] if decided is None else [f"{capital(escape(decided_words(decided)))}."]
    parts += [f"{escape(sentence)}." for sentence in recheck_sentence(report.recheck)]
    return (*parts, *_sure(report.certainty))


def _tests(report: LoopReport, chosen: IterationRecord) -> Iterable[str]:
    """Yield what the tests say against the selected iteration: those that are missing, and those that chance decided."""
    lost = repairs(chosen, report.start).missing
    if lost:
        count = len(lost.names) + lost.unnamed
        yield f"{plural(count, 'test')} missing{f': {lost}' if lost.names else ''}."
    parent = next((record for record in report.records if record.iteration_number == chosen.parent), None)
    flaky = repairs(chosen, parent).flaky
    if parent is not None and flaky:
        yield f"Its files are those of {_name(parent.iteration_number)}, so what differs is chance: {flaky}."


def _ended(situation: Situation) -> str:
    stop = situation.stop
    if situation.state == "running":
        return ""
    if stop is None:
        return "interrupted" if situation.state == "interrupted" else ""
    detail = escape(stop.detail)
    if stop.reason in REQUESTED_REASONS:  # what to type stands below
        detail = detail.partition(";")[0]
    return (detail or stop.reason.replace("_", " ")).rstrip(".")


def _cut_off(report: LoopReport) -> str:
    """Return which iteration was cut off, and what becomes of what it did; empty where none was."""
    number = report.took.cut_off
    if number is None:
        return ""
    return f"Iteration {number} was cut off and has no row; what it changed is set aside when the loop is resumed."


def why_chosen(report: LoopReport) -> str:
    """Return why the selected iteration stands, for a page: the rule's reason, or who chose it and what the rules would."""
    override = report.override
    return _overridden(report) if override is not None and report.chosen == override.best_iteration else reason_of(report)


def _overridden(report: LoopReport) -> str:
    override, selection = report.override, report.selection
    if override is None:
        return ""
    said = f"Selected by {escape(override.by)}: {escape(cut(override.reason, _SAID)).rstrip('.')}"
    if selection is None or selection.stands == report.chosen:
        return f"{said}."
    return f"{said}; the rules would select {_name(selection.stands)} ({points(selection.quality_score)})."


def _invalid(report: LoopReport) -> list[str]:
    if not report.records:
        return []
    last = report.records[-1]
    said = f": {escape(cut(last.status_reason, _SAID)).rstrip('.')}" if last.status_reason else ""
    return [f"{capital(_name(last.iteration_number))} is the last: {last.status.replace('_', ' ')}{said}."]


def _selected(report: LoopReport, selection: SelectionResult) -> Iterable[str]:
    """Yield the sentences on what the rules selected, without their full stops; some are empty."""
    threshold, next_best = report.criteria.threshold, selection.runner_up
    yield why_selected(report, selection)
    if selection.selected_iteration == 0 and threshold is not None and selection.quality_score < threshold:
        yield f"The start does not reach the required score of {points(threshold)}"
    if next_best is not None:
        yield runner_up(report, selection, _name(next_best))
    elif len(report.views) > 1 and selection.selected_iteration:
        yield "No other one has a valid score"


def _sure(certainty: Certainty | None) -> Iterable[str]:
    """Say what confirmed the selection, or why nothing did; nothing where nothing was tried."""
    if certainty is None:
        return
    if certainty.confirmed is not None:
        by = "The held-out scorers give" if certainty.confirmed.by == "holdout" else "Scored once more, it has"
        bias = ""
        if certainty.optimism is not None:
            interval = "" if certainty.optimism_width is None else f" ± {points(certainty.optimism_width)}"
            bias = f": selection bias {signed_points(certainty.optimism)}{interval} points"
        yield f"{by} {points(certainty.confirmed.score)}{bias}."
    for problem in certainty.problems:
        yield f"Not confirmed: {escape(problem).rstrip('.')}."


def _name(number: int) -> str:
    return "the start" if number == 0 else f"iteration {number}"
