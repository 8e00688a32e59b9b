"""The report for programs: one JSON document with everything, a CSV row an iteration, and a JUnit file for CI services."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final, cast
from xml.etree import ElementTree as ET

from jumar.core.codec import FORMAT
from jumar.core.given import as_given
from jumar.core.rendering.figures import relaxed_text
from jumar.core.text import escape, escape_block, percent
from jumar.loop.report.advice import causes, checklist, recommendations
from jumar.loop.report.read import LoopReport, setting
from jumar.loop.report.reasons import degradation_sentence, rationale, reason_of, score_text
from jumar.loop.report.rows import quality_trajectory, summary
from jumar.loop.report.spending import took_document
from jumar.model import CheckResult, Decision, IterationRecord
from jumar.model.ordering import difference

COLUMNS: Final = (
    "iteration",
    "timestamp",
    "quality_score",
    "quality_delta",
    "tokens_used",
    "cost_usd",
    "execution_time_ms",
    "verification_status",
)
_FIELDS: Final = {"iteration": "iteration_number", "cost_usd": "token_cost_usd"}
"""Columns that a record calls by another name."""

# = + - @, tab and carriage return begin a formula; spreadsheets set to Japanese or Chinese take the full-width forms as well.
_FORMULA = re.compile("^[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

# What XML 1.0 has no way to write, beyond the control characters that escape() already shows.
_NOT_XML = re.compile("[\ufffe\uffff]")
_TAIL = 4000


def render_json(report: LoopReport) -> str:
    """Return :func:`report_document` as strict JSON (ASCII, no NaN) that ends with a line feed."""
    return json.dumps(as_given(report_document(report)), allow_nan=False, indent=2) + "\n"


def report_document(report: LoopReport) -> dict[str, Any]:
    """Return the report as plain values. Scores are 0–100, dimensions 0–1, unknown is None."""
    selection, stop = report.selection, report.stop
    return {
        "format": FORMAT,
        "loop_id": report.loop_id,
        "created_at": report.created_at,
        "storage_path": report.storage_path,
        "selected_iteration": report.chosen,
        "reason": reason_of(report),
        "selection": None if selection is None else selection.to_json(),
        "override": None if report.override is None else _decided(report, report.override),
        "order": list(report.order),
        "ranking": [_ranked(report, number) for number in report.order],
        "criteria": report.criteria.to_json(),
        "weights": dict(report.weights),
        "stop": None if stop is None else {"reason": stop.reason, "detail": stop.detail},
        "spend": report.spend.to_json(),
        "budget": report.budget.to_json(),
        "course": took_document(report.took),
        "summary": summary(report.records),
        "trajectory": quality_trajectory(report.records),
        "degradation": {
            **report.degradation.to_json(),
            "final_degraded": report.degraded,
            "sentence": degradation_sentence(report),
            "likely_causes": [asdict(cause) for cause in causes(report)],
        },
        "diminishing_returns": {"detected": report.diminishing.detected, "iteration": report.diminishing.iteration},
        "rationale": list(rationale(report)),
        "given_by": setting(report.config, "loop", "given_by"),
        "rechecked": report.recheck and report.recheck.rechecked,
        "rechecked_because": report.recheck and report.recheck.because,
        "certainty": None if report.certainty is None else report.certainty.to_json(),
        "recommendations": list(recommendations(report)),
        "checklist": [line.to_json() for line in checklist(report)],
        "artifacts_complete": report.artifacts_complete,
        "records": [record.to_json() for record in report.records],
        "decisions": [_decided(report, decision) for decision in report.decisions],
        "config": dict(report.config),
        **({} if report.measured is None else {"metric": report.measured.metric, "direction": report.measured.direction}),
    }


def _decided(report: LoopReport, decision: Decision) -> dict[str, Any]:
    """Return a decision; on a scale of its own its delta is one of values, of which the file has the positions."""
    final, best, document = decision.final_iteration, decision.best_iteration, decision.to_json()
    if report.measured is None or decision.delta is None or final is None or best is None:
        return document
    scores = report.record(final).quality_score, report.record(best).quality_score
    return document if None in scores else {**document, "delta": difference(*cast("tuple[float, float]", scores))}


def _ranked(report: LoopReport, number: int) -> dict[str, Any]:
    """One place in the order: ``score`` is what it was ranked by, the mean of ``readings``; ``loop_score`` the first of these."""
    return {
        "iteration": number,
        "score": report.score_of(number),
        "readings": report.readings_of(number),
        "loop_score": report.record(number).quality_score,
    }


def render_csv(report: LoopReport) -> str:
    """Return all records of the report as CSV; see :func:`export_csv`."""
    return export_csv(report.records)


def export_csv(records: Iterable[IterationRecord]) -> str:
    """Return the header and a row for each record, in their order, quoted as RFC 4180 says, with line feeds as line ends."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        writer.writerow([safe_cell(as_given(getattr(record, _FIELDS.get(column, column)))) for column in COLUMNS])
    return out.getvalue()


def safe_cell(value: str | float | None) -> str:
    """Return one cell: unknown is empty; whole numbers have no decimals; text that a spreadsheet would run begins with ``'``.

    Text that is a plain number, such as ``-2.0``, stays as it is.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        shown = escape(value)
        runs = _FORMULA.match(value) is not None and _NUMBER.fullmatch(value) is None
        return f"'{shown}" if runs else shown
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


def render_junit(report: LoopReport) -> str:
    """Return the XML document.

    An iteration is a failure when its verification failed, an error when it has no valid score (failed generator, broken scorer
    or check), skipped when there was nothing to verify it with. The case ``gate`` fails when the selected one does not meet
    the threshold.
    """
    suite = ET.Element("testsuite", name=_text(f"jumar.{report.loop_id}"))
    for record in report.records:
        _iteration(suite, report, record)
    _gate(suite, report)
    for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(kind) is not None for case in suite)))
    suite.set("tests", str(len(suite)))
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in suite):.3f}")
    if report.created_at:
        suite.set("timestamp", _text(report.created_at))
    root = ET.Element("testsuites", {name: suite.get(name, "0") for name in ("tests", "failures", "errors", "skipped", "time")})
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _iteration(suite: ET.Element, report: LoopReport, record: IterationRecord) -> None:
    seconds = (record.execution_time_ms or 0) / 1000
    name = f"iteration {record.iteration_number}" + (" (start)" if record.iteration_number == 0 else "")
    case = ET.SubElement(suite, "testcase", classname=_text(f"jumar.{report.loop_id}"), name=name, time=f"{seconds:.3f}")
    failed = [check for check in record.checks if not check.passed]
    tails = "\n\n".join(f"{check.name}\n{check.broken or check.output_tail}" for check in failed)
    if record.status != "ok" or record.quality_score is None:
        kind, message = "error", f"{record.status.replace('_', ' ')}: {record.status_reason}".rstrip(": ")
        _outcome(case, kind, record.status, message, tails)
    elif record.verification_status == "failed":
        names = ", ".join(_checked(check) for check in failed) or "verification failed"
        _outcome(case, "failure", "verification", f"{names} ({percent(record.quality_score)})", tails)
    elif record.verification_status == "skipped":
        _outcome(case, "skipped", "", f"no checks ({percent(record.quality_score)})", "")
    out = ET.SubElement(case, "system-out")
    parts = [f"quality {percent(record.quality_score)}"]
    parts += [f"{name} {value:.4g}" for name, value in record.dimensions.items()]
    out.text = _block("\n".join([*parts, *record.reasons]))


def _checked(check: CheckResult) -> str:
    return check.name if check.tests is None else f"{check.name}: {check.tests}"


def _gate(suite: ET.Element, report: LoopReport) -> None:
    case = ET.SubElement(suite, "testcase", classname=_text(f"jumar.{report.loop_id}"), name="gate", time="0.000")
    selection, chosen = report.selection, report.chosen_record
    if chosen is None or selection is None:
        _outcome(case, "error", "nothing_evaluated", "no iteration has a valid score", "")
        return
    overridden = selection.stands != chosen.iteration_number
    threshold = report.criteria.threshold
    if overridden:
        score = report.chosen_quality
        met = score is not None and (threshold is None or score >= threshold) and chosen.verification_status != "failed"
    elif selection.meets_threshold is not None:
        met = selection.meets_threshold
    else:
        met = not selection.below_start and chosen.verification_status != "failed"
    where = f"iteration {chosen.iteration_number}, {score_text(report, chosen.iteration_number)}"
    if not met:
        wanted = f"wanted {percent(threshold)}" if threshold is not None else "wanted at least the start state"
        relaxed = f"; {relaxed_text(selection.fallback)}" if selection.fallback is not None and not overridden else ""
        _outcome(case, "failure", "gate", f"{where}, {wanted}{relaxed}", "")
    ET.SubElement(case, "system-out").text = _block(f"selected: {where}\n{selection.reason}")


def _outcome(case: ET.Element, kind: str, type_name: str, message: str, text: str) -> None:
    element = ET.SubElement(case, kind, message=_text(message))
    if type_name:
        element.set("type", type_name)
    if text:
        element.text = _block(text[-_TAIL:])


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", escape(text))


def _block(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", escape_block(text))
