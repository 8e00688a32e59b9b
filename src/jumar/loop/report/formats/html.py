"""The report as one self-contained page with the trajectory as a plot; see :mod:`jumar.core.rendering.html`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from jumar.core.rendering.figures import UNKNOWN, count, dollars, duration, iteration_label, point_text
from jumar.core.rendering.html import block, render_page
from jumar.core.text import percent, plural, points
from jumar.core.version import __version__
from jumar.loop.ranking.degradation import Cause
from jumar.loop.report.advice import causes, recommendations
from jumar.loop.report.artifacts import artifact_lines, artifacts_sentence
from jumar.loop.report.certainty import (
    COMPARED_COLUMNS,
    FINALIST_COLUMNS,
    certainty_sentences,
    compared_rows,
    finalist_rows,
    mean_text,
    score_text,
)
from jumar.loop.report.checklist import checklist
from jumar.loop.report.decided import DECIDED_COLUMNS, decided_notes, decided_rows
from jumar.loop.report.formats.plot import NARROW, WIDE, sparklines, trajectory_plot
from jumar.loop.report.money import spent_money, spent_tokens
from jumar.loop.report.notes import changes
from jumar.loop.report.rationale import checks_sentence, degradation_sentence, kind_of, rationale, reason_of
from jumar.loop.report.read import LoopReport
from jumar.loop.report.rows import trajectory_rows
from jumar.loop.report.spending import TOOK_COLUMNS, passes_text, took_rows, took_sentences
from jumar.loop.store.current_selection import TrailEntry
from jumar.model import CheckResult, IterationRecord

__all__ = ["render_html"]

_MOST_DETAILS: Final = 200
_TAIL: Final = 4000
_LEGEND: Final = (
    ("passed", "verified"),
    ("failed", "verification failed"),
    ("skipped", "not verified"),
    ("invalid", "no valid score"),
)


def render_html(report: LoopReport) -> str:
    """Return the page as HTML. It reads the same from a file, a server or an e-mail attachment."""
    return render_page("report.html.j2", _page(report))


def _page(report: LoopReport) -> Mapping[str, Any]:
    details, left_out = _details(report)
    artifacts, artifacts_left_out = artifact_lines(report)
    wide = trajectory_plot(report, WIDE)
    return {
        "loop_id": report.loop_id,
        "chosen": report.chosen is not None,
        "lead": _lead(report),
        "reason": reason_of(report).rstrip("."),
        "stopped": "" if report.stop is None else report.stop.detail.rstrip("."),
        "facts": _facts(report),
        "wide": wide,
        "narrow": trajectory_plot(report, NARROW),
        "plot_summary": _plot_summary(report),
        "legend": _legend(report),
        "sparklines": sparklines(report),
        "decline": degradation_sentence(report),
        "causes": [_cause(cause) for cause in causes(report)],
        "rationale": rationale(report),
        "certainty": certainty_sentences(report),
        "certainty_tables": [
            (columns, rows)
            for columns, rows in ((FINALIST_COLUMNS, finalist_rows(report)), (COMPARED_COLUMNS, compared_rows(report)))
            if rows
        ],
        "took_columns": TOOK_COLUMNS,
        "took": took_rows(report),
        "took_lines": took_sentences(report),
        "decided_columns": DECIDED_COLUMNS,
        "decided": decided_rows(report.records),
        "decided_notes": decided_notes(report.records),
        "recommendations": recommendations(report),
        "rows": _rows(report),
        "table_notes": changes(report),
        "details": details,
        "details_left_out": f"{left_out:,}" if left_out else "",
        "artifacts": artifacts,
        "artifacts_sentence": artifacts_sentence(report),
        "artifacts_left_out": f"{artifacts_left_out:,}" if artifacts_left_out else "",
        "decisions": [_decision(entry) for entry in report.trail],
        "checklist": checklist(report),
        "footer": _footer(report),
    }


def _lead(report: LoopReport) -> str:
    chosen = report.chosen_record
    if chosen is None:
        return "Nothing is selected."
    which = "The start state" if chosen.iteration_number == 0 else f"Iteration {chosen.iteration_number}"
    return f"{which} is selected."


def _facts(report: LoopReport) -> list[dict[str, str]]:
    chosen, final, selection = report.chosen_record, report.final, report.selection
    mean = "" if chosen is None else mean_text(report, chosen.iteration_number)
    facts = [
        _fact("Selected quality", percent(report.chosen_quality), "; ".join(part for part in (_verified(chosen), mean) if part))
    ]
    if final is not None and chosen is not None:
        facts.append(_fact("Final quality", percent(report.final_quality), _final_note(report, chosen, final)))
    if (
        selection is not None
        and selection.runner_up is not None
        and selection.margin is not None
        and selection.selected_iteration == report.chosen
    ):
        facts.append(
            _fact(
                "Margin",
                points(selection.margin, sign=True).replace("-", "−"),
                f"over iteration {iteration_label(selection.runner_up)}"
                + (", within the noise" if report.is_noise(selection.runner_up) else ""),
            )
        )
    facts.append(_fact("Iterations", f"{report.passes:,}", _stopped(report)))
    facts.append(_cost(report))
    runs = report.spend.iterations
    facts.append(_fact("Time", duration(report.spend.seconds), "" if runs == report.passes else passes_text(report.passes, runs)))
    return facts


def _cost(report: LoopReport) -> dict[str, str]:
    money, _, rest = spent_money(report.spend, report.budget, places=4).partition(" ")
    if money == "cost":
        return _fact("Cost", UNKNOWN, "not reported")
    return _fact("Cost", money, ", ".join(part for part in (rest, _tokens(report)) if part))


def _fact(name: str, value: str, small: str = "") -> dict[str, str]:
    return {"name": name, "value": value, "small": small}


def _verified(record: IterationRecord | None) -> str:
    if record is None:
        return ""
    return {"passed": "verified", "failed": "verification failed", "skipped": "not verified"}[record.verification_status]


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
    return f"iteration {final.iteration_number}, {point_text(lost)} {'below' if lost < 0 else 'above'}{noise}"


def _stopped(report: LoopReport) -> str:
    if report.stop is not None:
        return f"stopped: {report.stop.reason.replace('_', ' ')}"
    return "and the start state" if report.start is not None else ""


def _tokens(report: LoopReport) -> str:
    if report.took is not None:  # which has a table of its own
        return ""
    return "tokens not reported" if report.spend.tokens is None else f"{spent_tokens(report.spend, report.budget)} tokens"


def _plot_summary(report: LoopReport) -> str:
    said = f"Scores of {plural(len(report.records), 'iteration')} on a scale of 0 to 100."
    chosen = report.chosen_record
    if chosen is not None:
        label, score = iteration_label(chosen.iteration_number), score_text(report, chosen.iteration_number)
        said += f" Iteration {label} is selected with {score}."
    if report.final is not None:
        said += f" The last one, {report.final.iteration_number}, has {percent(report.final_quality)}."
    return said + " The table below lists them all."


def _legend(report: LoopReport) -> list[tuple[str, str]]:
    plot = trajectory_plot(report, WIDE)
    if plot is None:
        return []
    kinds = {mark.kind for mark in plot.marks}
    entries = [(kind, words) for kind, words in _LEGEND if kind in kinds]
    entries.append(("stair", "running best"))
    if plot.threshold is not None:
        entries.append(("gate", "threshold"))
    return entries


def _cause(cause: Cause) -> dict[str, str]:
    return {name: f"{text[:1].upper()}{text[1:]}" for name, text in asdict(cause).items()}


def _rows(report: LoopReport) -> list[dict[str, Any]]:
    return [
        {
            **asdict(row),
            "it": iteration_label(row.number),
            "note": row.said(),
            "tokens": count(record.tokens_used),
            "cost": dollars(record.token_cost_usd),
        }
        for row, record in zip(trajectory_rows(report), report.records, strict=True)
    ]


def _details(report: LoopReport) -> tuple[list[dict[str, Any]], int]:
    """What scorers, checks and the generator said, where they said anything; of a long loop only those that matter most."""
    wanted = {record.iteration_number for record in report.records}
    if len(report.records) > _MOST_DETAILS:
        second = None if report.selection is None else report.selection.runner_up
        wanted &= {report.chosen, second, report.records[0].iteration_number, report.records[-1].iteration_number}
    shown = [_detail(report, record) for record in report.records if record.iteration_number in wanted and _says(record)]
    return shown, sum(_says(record) for record in report.records) - len(shown)


def _says(record: IterationRecord) -> bool:
    return bool(record.reasons or record.checks or record.reflections or record.status_reason or record.commits)


def _detail(report: LoopReport, record: IterationRecord) -> dict[str, Any]:
    name = "Start state" if record.iteration_number == 0 else f"Iteration {record.iteration_number}"
    reasons = [record.status_reason] if record.status_reason else []
    reasons += record.reasons
    if record.commits:
        reasons.append(
            f"The generator made {plural(len(record.commits), 'commit')}: {', '.join(name[:12] for name in record.commits)}"
        )
    return {
        "name": name,
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


def _footer(report: LoopReport) -> str:
    where = f", read from {report.storage_path}" if report.storage_path else ""
    begun = f", begun {report.created_at}" if report.created_at else ""
    return f"jumar {__version__} · {plural(len(report.records), 'record')}{begun}{where}"
