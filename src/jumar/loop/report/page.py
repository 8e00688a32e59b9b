"""The report for people: markdown with seed 2's headings, columns and order, and one self-contained page with the plot.

The templates hold the headings and their order, this module what stands below them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any, Final

from jumar.core import __version__
from jumar.core.given import sides
from jumar.core.rendering.figures import (
    UNKNOWN,
    count,
    delta_percent,
    dollars,
    duration,
    iteration_label,
    moment,
    point_text,
    relaxed_text,
)
from jumar.core.rendering.html import DOCUMENT, Layout, block, render_page, render_text
from jumar.core.rendering.plot import NARROW, WIDE
from jumar.core.text import escape, percent, plural, short_dollars, signed_points
from jumar.loop.report.advice import causes, checklist, recommendations
from jumar.loop.report.changes import IterationChanges
from jumar.loop.report.diff import artifact_lines, artifacts_sentence
from jumar.loop.report.ending import why_chosen
from jumar.loop.report.judged import DECIDED_COLUMNS, LEARNED_COLUMNS, decided_notes, decided_rows, learned_rows, take_over
from jumar.loop.report.plot import MOST_MARKS, sparklines, trajectory_plot
from jumar.loop.report.read import LoopReport, is_run, setting
from jumar.loop.report.reasons import (
    COMPARED_COLUMNS,
    FINALIST_COLUMNS,
    capital,
    certainty_sentences,
    checks_sentence,
    compared_rows,
    degradation_sentence,
    finalist_rows,
    kind_of,
    kind_words,
    mean_text,
    rationale,
    reason_of,
    score_text,
    stopped_text,
)
from jumar.loop.report.rows import VERIFIED, change, changes, started_from, tests_of, trajectory_rows
from jumar.loop.report.spending import TOOK_COLUMNS, passes_text, spent_money, spent_tokens, took_rows, took_sentences
from jumar.loop.store.in_force import TrailEntry
from jumar.model import CheckResult, IterationRecord, Spend
from jumar.model.budget.pricing import DEFAULT_MAX_ITERATIONS

MOST_BARS: Final = 200
_BAR_WIDTH: Final = 36
_KEPT_BARS: Final = 60
_MOST_DETAILS: Final = 200
_TAIL: Final = 4000
_PACKAGE: Final = "jumar.loop.report"
_CHECKED: Final = {"passed": "✓", "failed": "✗", "skipped": "skipped"}
_LEGEND: Final = (*VERIFIED.items(), ("invalid", "no valid score"))


def render_markdown(report: LoopReport) -> str:
    """Return the whole report, ending with a line feed. Names inside cannot change its structure."""
    bars = _bars_shown(report)
    some = "" if len(bars) == len(report.records) else f"{len(bars)} of {len(report.records):,} iterations are drawn"
    command = take_over(report.records, report.storage_path)
    page = _page(report) | {
        "passes": report.passes,
        "selected": UNKNOWN if report.chosen is None else iteration_label(report.chosen),
        "summary": _summary(report),
        "scores": _scores(report),
        "bars": _bars(report, bars),
        "bars_left_out": some and f"{some}; the table above has all of them.",
        "learned_columns": LEARNED_COLUMNS,
        "learned": learned_rows(report.records),
        "take_over": command and escape(command),
    }
    return render_text("report.md.j2", page, package=_PACKAGE)


def render_html(report: LoopReport, layout: Layout = DOCUMENT, changes: Sequence[IterationChanges] = ()) -> str:
    """Return the page as HTML, with what the iterations changed where ``changes`` are given."""
    details, left_out = _details(report)
    wide = trajectory_plot(report, WIDE)
    kinds = set[str]() if wide is None else {mark.kind for mark in wide.panels[0].marks}
    legend = [(kind, words) for kind, words in _LEGEND if kind in kinds] + [("stair", "running best")]
    page = _page(report) | {
        "reason": why_chosen(report),
        "decisions": [_decision(entry) | {"at": moment(entry.decision.at), "kind": kind_words(entry)} for entry in report.trail],
        "number": report.chosen,
        "lead": _lead(report),
        "objective": report.objective,
        "stopped": "" if report.stop is None else report.stop.detail.rstrip("."),
        "facts": _facts(report),
        "wide": wide,
        "narrow": trajectory_plot(report, NARROW),
        "plot_summary": _plot_summary(report),
        "legend": legend + ([] if report.criteria.threshold is None else [("gate", "threshold")]),
        "all_marked": len(report.records) <= MOST_MARKS,
        "sparklines": sparklines(report),
        "rows": _rows(report),
        "block": block,
        "changes": [(each, f"Iteration {each.number}", iteration_label(each.against)) for each in changes],
        "details": details,
        "details_left_out": f"{left_out:,}" if left_out else "",
        "footer": _footer(report),
    }
    return render_page("report.html.j2", page, package=_PACKAGE, layout=layout)


def _page(report: LoopReport) -> dict[str, Any]:
    """Return what both forms show."""
    artifacts, artifacts_left_out = artifact_lines(report)
    return {
        "loop_id": report.loop_id,
        "chosen": report.chosen is not None,
        "reason": reason_of(report),
        "decline": degradation_sentence(report),
        "degraded": report.degraded,
        "causes": [{name: capital(text) for name, text in asdict(cause).items()} for cause in causes(report)],
        "rationale": rationale(report),
        "certainty": certainty_sentences(report),
        "certainty_tables": [
            (columns, rows)
            for columns, rows in ((FINALIST_COLUMNS, finalist_rows(report)), (COMPARED_COLUMNS, compared_rows(report)))
            if rows
        ],
        "took_columns": TOOK_COLUMNS,
        "took": took_rows(report.took, report.spend, report.budget),
        "took_lines": took_sentences(report.took),
        "decided_columns": DECIDED_COLUMNS,
        "decided": decided_rows(report.records),
        "decided_notes": decided_notes(report.records),
        "recommendations": recommendations(report),
        "table_notes": [capital(note) for note in changes(report)],
        "artifacts": artifacts,
        "artifacts_sentence": artifacts_sentence(report),
        "artifacts_left_out": f"{artifacts_left_out:,}" if artifacts_left_out else "",
        "decisions": [_decision(entry) for entry in report.trail],
        "checklist": checklist(report),
    }


def _decision(entry: TrailEntry) -> dict[str, str]:
    decision = entry.decision
    return {
        "number": str(decision.number),
        "at": decision.at,
        "kind": kind_of(entry),
        "iteration": UNKNOWN if decision.best_iteration is None else iteration_label(decision.best_iteration),
        "replaced": UNKNOWN if decision.replaced is None else iteration_label(decision.replaced),
        "by": decision.by or UNKNOWN,
        "reason": decision.reason or UNKNOWN,
    }


# ------------------------------------------------------------------------------------------------------------- in markdown


def _summary(report: LoopReport) -> list[tuple[str, str]]:
    chosen, final, measured = report.chosen_record, report.final, report.measured
    lines = [
        ("Selected Iteration", UNKNOWN if report.chosen is None else iteration_label(report.chosen)),
        *([] if measured is None else [("Metric", f"{measured.metric}, {measured.better}")]),
        ("Selected Quality", UNKNOWN if chosen is None else score_text(report, chosen.iteration_number)),
        ("Final Iteration", UNKNOWN if final is None else iteration_label(final.iteration_number)),
        ("Final Quality", percent(report.final_quality) + ("" if final is None else _mean(report, final, chosen))),
        ("Degradation Detected", _degraded(report)),
    ]
    if report.criteria.threshold is not None and chosen is not None:
        lines.append(("Meets Threshold", _meets(report, chosen)))
    if report.stop is not None:
        lines.append(("Stopped", stopped_text(report.stop)))
    return [*lines, ("Spent", _spent(report))]


def _degraded(report: LoopReport) -> str:
    selection = report.selection
    if report.degraded:
        return "Yes"
    if selection is None or not selection.degradation_detected or selection.final_quality is None:
        return "No"
    return f"No ({point_text(selection.quality_score - selection.final_quality)}, {report.excuse})"


def _mean(report: LoopReport, final: IterationRecord, chosen: IterationRecord | None) -> str:
    readings = report.readings_of(final.iteration_number)
    return f" (mean of {readings} readings)" if readings > 1 and final is not chosen else ""


def _meets(report: LoopReport, chosen: IterationRecord) -> str:
    threshold = report.criteria.threshold
    score = report.chosen_quality
    if threshold is None or score is None:
        return UNKNOWN
    if score < threshold:
        return f"No ({percent(threshold)} wanted)"
    selection = report.selection
    if selection is not None and selection.stands == chosen.iteration_number and selection.fallback is not None:
        return f"{percent(threshold)} reached, but {relaxed_text(selection.fallback)}"
    return f"Yes ({percent(threshold)} wanted)"


def _spent(report: LoopReport) -> str:
    """Return the loop's total as one line; what is unknown says so. Where attempts were written, their section has the rest."""
    spend = report.spend
    parts = [passes_text(report.passes, spend.iterations), _time(spend), _tokens(report)]
    return ", ".join([*(part for part in parts if part), spent_money(spend, report.budget, places=4)])


def _scores(report: LoopReport) -> Iterator[tuple[str, ...]]:
    for record in report.records:
        invalid = record.quality_score is None or record.status != "ok"
        quality, origin = percent(record.quality_score), started_from(record)
        label = iteration_label(record.iteration_number) + (f" ({origin})" if origin else "")
        yield (
            label + (" ✓" if record.iteration_number == report.chosen else ""),
            f"{quality} ({record.status.replace('_', ' ')})" if invalid else quality,
            UNKNOWN if invalid else delta_percent(change(record, report.compared_with(record))),
            UNKNOWN if record.tokens_used is None else str(record.tokens_used),
            dollars(record.token_cost_usd),
            _CHECKED[record.verification_status],
        )


def _bars(report: LoopReport, shown: list[IterationRecord]) -> list[str]:
    scores = [record.quality_score for record in report.records if record.quality_score is not None]
    scale = max(scores, default=0) or 1
    name_width = 0 if report.final is None else len(f"Iteration {report.final.iteration_number}:")
    value_width = max((len(percent(score)) for score in scores), default=1)
    return [_bar(record, report, scale, name_width, value_width) for record in shown]


def _bar(record: IterationRecord, report: LoopReport, scale: float, name_width: int, value_width: int) -> str:
    name = f"Iteration {record.iteration_number}:".ljust(name_width)
    value = percent(record.quality_score).rjust(value_width)
    filled = "" if record.quality_score is None else "█" * round(_BAR_WIDTH * record.quality_score / scale)
    notes = ["(start)"] if record.iteration_number == 0 else []
    if record.status != "ok":
        notes.append(f"({record.status.replace('_', ' ')})")
    if record.iteration_number == report.chosen:
        notes.append("← SELECTED")
    return " ".join([name, filled.ljust(_BAR_WIDTH), value, *notes])


def _bars_shown(report: LoopReport) -> list[IterationRecord]:
    """All of them up to ``MOST_BARS``; else every n-th, and always the ends, the chosen, the best and the runner-up."""
    if len(report.records) <= MOST_BARS:
        return list(report.records)
    step = -(-len(report.records) // _KEPT_BARS)
    kept = {report.records[index].iteration_number for index in range(0, len(report.records), step)}
    kept |= {report.records[-1].iteration_number, *report.leaders[-1:]}
    kept |= {number for number in (report.chosen, report.selection and report.selection.runner_up) if number is not None}
    return [record for record in report.records if record.iteration_number in kept]


# ---------------------------------------------------------------------------------------------------------------- the page


def _goes_on(report: LoopReport) -> bool:
    """Whether it has not ended: it runs, or was cut off."""
    return report.stop is None and is_run(report.config)


def _lead(report: LoopReport) -> str:
    if report.chosen is None:
        return "Nothing is selected."
    return f"{_which(report.chosen)} is {'the best so far' if _goes_on(report) and report.override is None else 'selected'}."


def _facts(report: LoopReport) -> list[tuple[str, str, str]]:
    """Return the figures at the top: name, value, and what stands small below it."""
    chosen, final, selection = report.chosen_record, report.final, report.selection
    start = report.start
    begun = "" if start is None or start.quality_score is None or start is chosen else f"from {percent(start.quality_score)}"
    notes = [] if chosen is None else [begun, *_verified(report, chosen), mean_text(report, chosen.iteration_number)]
    first, last = ("Best quality so far", "Latest quality") if _goes_on(report) else ("Selected quality", "Final quality")
    facts = [(first, percent(report.chosen_quality), "; ".join(filter(None, notes)))]
    if final is not None and chosen is not None:
        facts.append((last, percent(report.final_quality), _final_note(report, chosen, final)))
    second, margin = (None, None) if selection is None else (selection.runner_up, selection.margin)
    if selection is not None and second is not None and margin is not None and selection.selected_iteration == report.chosen:
        noise = ", within the noise" if report.is_noise(second) else ""
        shown = signed_points(margin)
        facts.append(("Margin", shown, f"over iteration {iteration_label(second)}{noise}"))
    money, _, rest = spent_money(report.spend, report.budget).partition(" ")
    known = money != "cost"
    cost = ", ".join(filter(None, (rest, _tokens(report)))) if known else "not reported"
    runs = "" if report.spend.iterations == report.passes else passes_text(report.passes, report.spend.iterations)
    return [
        *facts,
        ("Iterations", _passes(report), _stopped(report)),
        ("Cost", money if known else UNKNOWN, cost),
        ("Time", _time(report.spend), runs),
    ]


def _time(spend: Spend) -> str:
    """Return the time that was spent: where nothing took any, nobody measured it."""
    return duration(spend.seconds or None)


def _verified(report: LoopReport, chosen: IterationRecord) -> list[str]:
    """Return from how many tests to how many, where checks count them, and what became of the checks."""
    start = report.start
    before, after = "" if start is None or start is chosen else tests_of(start), tests_of(chosen)
    tests = f"{before} → {after} tests" if before and after else f"{after} tests" if after else ""
    return [tests, VERIFIED[chosen.verification_status]]


def _passes(report: LoopReport) -> str:
    """Return how many iterations were done, and of how many."""
    limits = (setting(report.config, table, "max_iterations") for table in ("loop", "stop"))
    limit = next((limit for limit in limits if isinstance(limit, int)), DEFAULT_MAX_ITERATIONS)
    return f"{report.passes:,} of {limit:,}" if is_run(report.config) and report.passes <= limit else f"{report.passes:,}"


def _final_note(report: LoopReport, chosen: IterationRecord, final: IterationRecord) -> str:
    if final.iteration_number == chosen.iteration_number:
        return "the selected one"
    best, last = report.chosen_quality, report.final_quality
    if best is None or last is None:
        return f"iteration {final.iteration_number}"
    lost = last - best
    if lost == 0:
        return f"iteration {final.iteration_number}, as good"
    noise = ", within the noise" if report.is_noise(final.iteration_number) else ""
    return f"iteration {final.iteration_number}, {point_text(lost)} {sides(lost, 'below', 'above')[lost > 0]}{noise}"


def _which(number: int) -> str:
    return f"Iteration {number}" if number else "The start state"


def _stopped(report: LoopReport) -> str:
    if report.stop is not None:
        return f"stopped: {report.stop.reason.replace('_', ' ')}"
    return "and the start state" if report.start is not None else ""


def _tokens(report: LoopReport) -> str:
    if report.took.parts:  # which has a table of its own
        return ""
    return "tokens not reported" if report.spend.tokens is None else f"{spent_tokens(report.spend, report.budget)} tokens"


def _plot_summary(report: LoopReport) -> str:
    said = f"Scores of {plural(len(report.records), 'iteration')}{'' if report.measured else ' on a scale of 0 to 100'}."
    chosen = report.chosen_record
    if chosen is not None:
        label, score = iteration_label(chosen.iteration_number), score_text(report, chosen.iteration_number)
        said += f" Iteration {label} is selected with {score}."
    if report.final is not None:
        said += f" The last one, {report.final.iteration_number}, has {percent(report.final_quality)}."
    return said + " The table below lists them all."


def _rows(report: LoopReport) -> list[dict[str, Any]]:
    return [
        {
            **{field.name: getattr(row, field.name) for field in fields(row)},
            "it": iteration_label(row.number),
            "note": row.said(),
            "tokens": count(record.tokens_used),
            "cost": UNKNOWN if record.token_cost_usd is None else short_dollars(record.token_cost_usd),
        }
        for row, record in zip(trajectory_rows(report), report.records, strict=True)
    ]


def _details(report: LoopReport) -> tuple[list[dict[str, Any]], int]:
    """What scorers, checks and the generator said, where they said anything; of a long loop only those that matter most."""
    wanted = {record.iteration_number for record in report.records}
    if len(report.records) > _MOST_DETAILS:
        second = None if report.selection is None else report.selection.runner_up
        wanted &= {report.chosen, second, report.records[0].iteration_number, report.records[-1].iteration_number}
    telling = [record for record in report.records if _says(record)]
    shown = [_detail(report, record) for record in telling if record.iteration_number in wanted]
    return shown, len(telling) - len(shown)


def _says(record: IterationRecord) -> bool:
    return bool(record.reasons or record.checks or record.reflections or record.status_reason or record.commits)


def _detail(report: LoopReport, record: IterationRecord) -> dict[str, Any]:
    reasons = [record.status_reason] if record.status_reason else []
    reasons += record.reasons
    if record.commits:
        made = f"The generator made {plural(len(record.commits), 'commit')}" if record.measured is None else "Commit"
        reasons.append(f"{made}: {', '.join(name[:12] for name in record.commits)}")
    return {
        "name": _which(record.iteration_number).removeprefix("The ").capitalize(),
        "short": _short(record),
        "open": record.iteration_number == report.chosen,
        "reasons": reasons,
        "reflections": [line for line in record.reflections if line not in reasons],
        "checks": [
            {
                "name": check.name,
                "passed": check.passed,
                "verdict": f"could not run: {check.broken}" if check.broken else _verdict(check),
                "tail": "" if check.passed else block(check.output_tail[-_TAIL:]),
            }
            for check in record.checks
        ],
    }


def _short(record: IterationRecord) -> str:
    said = [percent(record.quality_score)] if record.quality_score is not None else []
    if record.status != "ok":
        said.append(record.status.replace("_", " "))
    if record.checks:
        said.append(checks_sentence(record))
    return " · ".join(said)


def _verdict(check: CheckResult) -> str:
    word = "passed" if check.passed else "failed" + (f", exit {check.exit_code}" if check.exit_code is not None else "")
    return f"{word} in {duration(check.seconds)}{'' if check.tests is None else f': {check.tests}'}"


def _footer(report: LoopReport) -> str:
    where = f", read from {report.storage_path}" if report.storage_path else ""
    begun = f", begun {report.created_at}" if report.created_at else ""
    return f"jumar {__version__} · {plural(len(report.records), 'record')}{begun}{where}"
