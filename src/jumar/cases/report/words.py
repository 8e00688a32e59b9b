"""Sentences about a chain of cases, the same in every rendering; plain text, with names as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from jumar.cases.records import CaseIteration
from jumar.cases.report import CaseReport, ChainReport, Handover, Origin, Paid
from jumar.core.rendering.figures import UNKNOWN, dollars
from jumar.core.text import plural

CellState = Literal["ok", "invalid", "failed", "pending", "absent"]

STATE_WORDS: Final[Mapping[CellState, str]] = {
    "ok": "evaluated",
    "invalid": "no usable score",
    "failed": "failed",
    "pending": "being made",
    "absent": "not evaluated",
}
_SIGNS: Final[Mapping[CellState, str]] = {"invalid": "!", "failed": "✗", "pending": "…"}


class Cell(NamedTuple):
    """What the matrix of a report has of one iteration; ``iteration`` is None where there is no record.

    ``best`` says that it is the best of its case, ``handovers`` are those that carried it into a later case.
    """

    number: int
    state: CellState
    iteration: CaseIteration | None
    best: bool
    handovers: Sequence[Handover]

    @property
    def values(self) -> Mapping[str, float | None]:
        """Its scores, empty where there are none."""
        return {} if self.iteration is None else self.iteration.values

    @property
    def word(self) -> str:
        """What became of it, in words."""
        return STATE_WORDS[self.state]

    @property
    def sign(self) -> str:
        """What became of it, in one sign; empty for an iteration with a score, or none at all."""
        return _SIGNS.get(self.state, "")


def matrix(report: ChainReport) -> list[tuple[CaseReport, list[Cell]]]:
    """Return the cells of every case, as many as the report has columns."""
    carried: dict[tuple[int, int], list[Handover]] = {}
    for handover in report.handovers:
        carried.setdefault((handover.source, handover.carried), []).append(handover)

    def cell(case: CaseReport, number: int) -> Cell:
        best = case.best is not None and case.best.number == number
        return Cell(number, cell_state(case, number), case.iteration(number), best, carried.get((case.number, number), ()))

    return [(case, [cell(case, number) for number in range(1, report.columns + 1)]) for case in report.cases]


def value_text(value: float | None) -> str:
    """Return a score on whatever scale as ``9``, ``8.75`` or ``0.3333``; ``—`` when there is none."""
    if value is None:
        return UNKNOWN
    if isinstance(value, int):
        return f"{value}"
    shown = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if shown == "-0" else shown


def signed_text(value: float | None) -> str:
    """Return a difference as ``+6``, ``−0.05`` or ``0``; ``—`` when it is unknown."""
    shown = value_text(value)
    if value is None or shown == "0":
        return shown
    return "\N{MINUS SIGN}" + shown[1:] if shown.startswith("-") else f"+{shown}"


def values_text(values: Mapping[str, float | None], keys: Sequence[str]) -> str:
    """Return ``accuracy 9, overall 8.75, chain 8``."""
    return ", ".join(f"{name} {value_text(values.get(name))}" for name in keys)


def cell_state(case: CaseReport, number: int) -> CellState:
    """Return what became of iteration ``number`` of a case; one that was never made is ``absent``, which is no failure."""
    iteration = case.iteration(number)
    if iteration is None:
        return "pending" if number == case.pending else "absent"
    return "ok" if iteration.status == "ok" else "invalid" if iteration.status == "invalid_score" else "failed"


def report_name(report: ChainReport) -> str:
    """Return what a report is about: a run by its id, a recording by its directory."""
    return f"recording {Path(report.directory).name}" if report.run_id is None else f"run {report.run_id}"


def lead(report: ChainReport) -> str:
    """Return the first sentence of a report: what is best in each case, or how many cases have a best."""
    with_best = [case for case in report.cases if case.best is not None]
    if not with_best:
        return (
            "No iteration has a usable score." if any(case.iterations for case in report.cases) else "Nothing is evaluated yet."
        )
    if len(report.cases) == 1:
        return f"Iteration {with_best[0].best.number if with_best[0].best else 0} is the best."
    if len(report.cases) <= 6 and len(with_best) == len(report.cases):
        numbers = [str(case.best.number) for case in with_best if case.best is not None]
        return f"The best iterations of {plural(len(numbers), 'case')} are {', '.join(numbers[:-1])} and {numbers[-1]}."
    return f"{len(with_best):,} of {plural(len(report.cases), 'case')} have a best iteration."


def warning(report: ChainReport) -> str:
    """Return how many cases started from something worse than the best that was there; empty when none did."""
    count = len(report.poisoned)
    return f"{plural(count, 'case')} started from something worse than what was there." if count else ""


def stopped_text(case: CaseReport) -> str:
    """Return how a case ended, in one word where there is one."""
    if case.end is not None:
        return case.end.stopped_by.replace("_", " ")
    if case.pending is not None:
        return "under way"
    if case.origin.kind == "not_begun":
        return "not begun"
    return UNKNOWN


def origin_text(origin: Origin) -> str:
    """Return what a case started from, in few words."""
    match origin.kind:
        case "carried":
            which = {"best": " (its best)", "last": " (its last)", None: ""}[origin.selected_by]
            return f"iteration {origin.iteration} of case {origin.case}{which}"
        case "base":
            return "a base of its own" if origin.by_hash else "the run's start"
        case "unknown":
            return "not recorded"
        case _:
            return UNKNOWN


def cost_text(paid: Paid) -> str:
    """Return ``$0.0500``, with how many runs of steps reported it when not all did; ``—`` when none did."""
    if paid.cost_usd is None or paid.cost_reported == paid.step_runs:
        return dollars(paid.cost_usd)
    return f"{dollars(paid.cost_usd)} (reported by {paid.cost_reported:,} of {plural(paid.step_runs, 'step run')})"


# ---------------------------------------------------------------------------------------------------------- carrying


def handover_sentence(report: ChainReport, handed: Handover) -> str:
    """Return what one case handed to another, and what it would have been by the other rule."""
    source, keys = report.case(handed.source), report.keys
    carried, best, last = source.iteration(handed.carried), source.best, source.last
    begun = f"Case {handed.target} started from iteration {handed.carried} of case {handed.source}"
    if best is None:
        return f"{begun}; no iteration of that case has a usable score."
    if handed.poisoned:
        lost = _instead(carried.values if carried else {}, best.values, keys)
        return f"{begun}, not from its best, iteration {best.number}: {lost}."
    if handed.carried != best.number:
        return f"{begun}, which scored as its best, iteration {best.number}, did."
    if last is None or last.number == handed.carried:
        return f"{begun}, its best; the last one is the same."
    if last.status != "ok":
        return f"{begun}, its best; the last, iteration {last.number}, has no usable score."
    if all(last.values.get(name) == best.values.get(name) for name in keys):
        return f"{begun}, its best; the last, iteration {last.number}, scored the same."
    scored, instead = values_text(best.values, keys), values_text(last.values, keys)
    return f"{begun}, its best ({scored}); the last, iteration {last.number}, would have brought {instead}."


def _instead(given: Mapping[str, float | None], wanted: Mapping[str, float | None], keys: Sequence[str]) -> str:
    differing = [name for name in keys if given.get(name) != wanted.get(name)]
    if all(given.get(name) is None for name in keys):
        return f"it has no usable score, the best has {values_text(wanted, keys)}"
    return ", ".join(f"{name} {value_text(given.get(name))} instead of {value_text(wanted.get(name))}" for name in differing)


# ------------------------------------------------------------------------------------------------------ one case in full


def case_lines(report: ChainReport, case: CaseReport) -> list[str]:
    """Return why this iteration is the best of its case, what else there was, and why the case ended."""
    lines = _choice(report, case)
    if case.record is not None and case.record.selected_by == "last":
        lines.append(_carried_last(report, case))
    if case.record is not None and case.record.not_carried is not None:
        lines.append(f"Not carried: {case.record.not_carried}")
    lines += [f"Iteration {view.number} has no place in the order: {view.reason}" for view in case.ranking.invalid]
    if case.origin.kind == "carried":
        roles, has = ", ".join(case.origin.roles), "has" if len(case.origin.roles) == 1 else "have"
        lines.append(
            f"Started from {origin_text(case.origin)}{f': {roles} {has} the same SHA-256' if case.origin.by_hash else ''}"
        )
    elif case.origin.kind == "unknown":
        lines.append("What it started from is not recorded")
    if case.end is not None:
        lines.append(f"Stopped: {case.end.detail or case.end.stopped_by}")
    elif case.pending is not None:
        lines.append(f"Iteration {case.pending} is being made, or waits to be resumed")
    return lines


def _choice(report: ChainReport, case: CaseReport) -> list[str]:
    best, last, ranking = case.best, case.last, case.ranking
    if best is None:
        return ["No iteration is valid, so there is no best" if case.iterations else "Nothing is evaluated yet"]
    lines = [f"Iteration {best.number} is best: {values_text(best.values, report.keys)}"]
    if ranking.runner_up is None:
        lines.append("No runner-up: it is the only valid iteration")
    else:
        second = case.iteration(ranking.runner_up)
        scored = values_text(second.values if second else {}, report.keys)
        behind = f", {value_text(ranking.margin)} behind in {ranking.decided_by}" if ranking.margin else ""
        lines += [
            f"Runner-up: iteration {ranking.runner_up} ({scored}){behind}",
            f"{ranking.explanation[:1].upper()}{ranking.explanation[1:]}",
        ]
    if last is None or last.number == best.number:
        return [*lines, "The last iteration is the best"]
    if last.status != "ok":
        return [*lines, f"The last, iteration {last.number}, has no usable score"]
    if all(best.values.get(name) == last.values.get(name) for name in report.keys):
        return [*lines, f"The last, iteration {last.number}, scored the same"]
    return [*lines, f"The last, iteration {last.number}, is worse: {_instead(last.values, best.values, report.keys)}"]


def _carried_last(report: ChainReport, case: CaseReport) -> str:
    chosen = f"The last, iteration {case.chosen}, was kept, as was asked for"
    if case.best is None or case.best.number == case.chosen:
        return chosen
    return f"{chosen}; the best would have been iteration {case.best.number} ({values_text(case.best.values, report.keys)})"


def failure_lines(case: CaseReport) -> list[tuple[int, str]]:
    """Return what went wrong in a case, by iteration: its own reason, then runs of steps that a later run made good."""
    failures: list[tuple[int, str]] = []
    for iteration in case.iterations:
        if iteration.status != "ok":
            failures.append((iteration.number, f"{iteration.status.replace('_', ' ')}: {iteration.reason}".rstrip(": ")))
        for step in iteration.steps:
            if step.outcome != "ok" and (iteration.status == "ok" or step.detail not in iteration.reason):
                outcome = f"{step.outcome.replace('_', ' ')}: {step.detail}".rstrip(": ")
                failures.append((iteration.number, f"step {step.step}, run {step.attempt}, {outcome}"))
    return failures
