"""The loop as a JUnit file, for the test views of CI services: a suite for the loop, a case for each iteration, and the gate."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from jumar.core.rendering.figures import relaxed_text
from jumar.core.text import escape, escape_block, percent
from jumar.loop.report.certainty import score_text
from jumar.loop.report.read import LoopReport
from jumar.model import CheckResult, IterationRecord

__all__ = ["render_junit"]

# What XML 1.0 has no way to write, beyond the control characters that escape() already shows.
_NOT_XML = re.compile("[\ufffe\uffff]")
_TAIL = 4000


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
