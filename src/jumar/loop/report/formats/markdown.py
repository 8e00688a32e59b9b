"""The selection report as markdown: seed 2's headings, columns and order, with seed 1's rationale, causes and checklist."""

from __future__ import annotations

from collections.abc import Iterator

from jumar.core.rendering.figures import UNKNOWN, delta_percent, dollars, duration, iteration_label, point_text, relaxed_text
from jumar.core.rendering.markdown import inline, row
from jumar.core.text import escape, percent
from jumar.loop.ranking.degradation import Cause
from jumar.loop.report.advice import causes, recommendations
from jumar.loop.report.artifacts import artifact_lines, artifacts_sentence
from jumar.loop.report.certainty import (
    COMPARED_COLUMNS,
    FINALIST_COLUMNS,
    certainty_sentences,
    compared_rows,
    finalist_rows,
    score_text,
)
from jumar.loop.report.checklist import checklist
from jumar.loop.report.decided import DECIDED_COLUMNS, decided_notes, decided_rows
from jumar.loop.report.learned import LEARNED_COLUMNS, learned_rows, take_over
from jumar.loop.report.money import spent_money, spent_tokens
from jumar.loop.report.notes import changes
from jumar.loop.report.rationale import degradation_sentence, kind_of, rationale, reason_of
from jumar.loop.report.read import LoopReport
from jumar.loop.report.reasons import stopped_text
from jumar.loop.report.rows import change, compared_with, started_from
from jumar.loop.report.spending import TOOK_COLUMNS, passes_text, took_rows, took_sentences
from jumar.loop.store.current_selection import TrailEntry
from jumar.model import IterationRecord

__all__ = ["BAR_WIDTH", "MOST_BARS", "render_markdown"]

BAR_WIDTH = 36
MOST_BARS = 200
_KEPT_BARS = 60
_VERIFIED = {"passed": "✓", "failed": "✗", "skipped": "skipped"}


def render_markdown(report: LoopReport) -> str:
    """Return the whole report, ending with a line feed. Names inside cannot change its structure."""
    sections = [
        _head(report),
        _summary(report),
        _scores(report),
        _rationale(report),
        _certainty(report),
        _took(report),
        _trajectory(report),
        _learned(report),
        _decided(report),
        _artifacts(report),
        _list("Recommendations", [inline(line) for line in recommendations(report)]),
        _decisions(report.trail),
        _checklist(report),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _chosen(report: LoopReport) -> str:
    return UNKNOWN if report.chosen is None else iteration_label(report.chosen)


def _head(report: LoopReport) -> list[str]:
    return [
        "# Output Selection Report",
        "",
        f"**Loop ID**: {inline(report.loop_id)}",
        "",
        f"**Total Iterations**: {report.passes}",
        "",
        f"**Selected Iteration**: {_chosen(report)}",
    ]


def _summary(report: LoopReport) -> list[str]:
    chosen, final = report.chosen_record, report.final
    lines = [
        ("Selected Iteration", _chosen(report)),
        ("Selected Quality", UNKNOWN if chosen is None else score_text(report, chosen.iteration_number)),
        ("Final Iteration", UNKNOWN if final is None else iteration_label(final.iteration_number)),
        ("Final Quality", percent(report.final_quality) + ("" if final is None else _mean(report, final, chosen))),
        ("Degradation Detected", _degraded(report)),
    ]
    if report.criteria.threshold is not None and chosen is not None:
        lines.append(("Meets Threshold", _meets(report, chosen)))
    if report.stop is not None:
        lines.append(("Stopped", inline(stopped_text(report.stop))))
    lines.append(("Spent", spent(report)))
    return ["## Summary", "", row(("Metric", "Value")), "|--------|-------|", *(row(line) for line in lines)]


def _learned(report: LoopReport) -> list[str]:
    rows = learned_rows(report.records)
    if not rows:
        return []
    command = take_over(report.records, report.storage_path)
    lines = ["## Learned by the Cheap Judge", "", row(LEARNED_COLUMNS), row("---" for _ in LEARNED_COLUMNS)]
    lines += [row(inline(cell) for cell in cells) for cells in rows]
    if command is not None:
        lines += ["", "The configured patterns are as they were. To take over what was learned:", "", f"    {escape(command)}"]
    return lines


def _decided(report: LoopReport) -> list[str]:
    rows = decided_rows(report.records)
    if not rows:
        return []
    lines = ["## Decided by the Cheap Judge and by the Judge", "", row(DECIDED_COLUMNS), row("---" for _ in DECIDED_COLUMNS)]
    lines += [row(inline(cell) for cell in cells) for cells in rows]
    return [*lines, *(line for note in decided_notes(report.records) for line in ("", f"{inline(note)}."))]


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


def spent(report: LoopReport) -> str:
    """Return the loop's total as one line; what is unknown says so. Where attempts were written, their section has the rest."""
    spend = report.spend
    parts = [passes_text(report.passes, spend.iterations), duration(spend.seconds)]
    if report.took is None:
        parts.append("tokens not reported" if spend.tokens is None else f"{spent_tokens(spend, report.budget)} tokens")
    return ", ".join([*parts, spent_money(spend, report.budget, places=4)])


def _scores(report: LoopReport) -> list[str]:
    columns = ("Iteration", "Quality", "Delta", "Tokens", "Cost", "Verified")
    return [
        "## Quality Scores",
        "",
        row(columns),
        "|-----------|---------|-------|--------|------|----------|",
        *_score_rows(report),
        *(line for note in changes(report) for line in ("", f"{inline(note[:1].upper() + note[1:])}.")),
    ]


def _score_rows(report: LoopReport) -> Iterator[str]:
    known = {record.iteration_number: record for record in report.records}
    before: IterationRecord | None = None
    for record in report.records:
        invalid = record.quality_score is None or record.status != "ok"
        quality, origin = percent(record.quality_score), started_from(record)
        label = iteration_label(record.iteration_number) + (f" ({origin})" if origin else "")
        yield row(
            (
                label + (" ✓" if record.iteration_number == report.chosen else ""),
                f"{quality} ({record.status.replace('_', ' ')})" if invalid else quality,
                UNKNOWN if invalid else delta_percent(change(record, compared_with(record, before, known))),
                UNKNOWN if record.tokens_used is None else str(record.tokens_used),
                dollars(record.token_cost_usd),
                _VERIFIED[record.verification_status],
            )
        )
        before = record


def _rationale(report: LoopReport) -> list[str]:
    lines = ["## Selection Rationale", ""]
    lines += [f"**Selected**: {'nothing' if report.chosen is None else 'Iteration ' + _chosen(report)}", ""]
    lines += [f"**Reason**: {inline(reason_of(report))}", ""]
    lines += [f"- {inline(bullet)}" for bullet in rationale(report)]
    return lines + _degradation(report)


def _degradation(report: LoopReport) -> list[str]:
    sentence = degradation_sentence(report)
    if sentence is None:
        return []
    lines = ["", "### Degradation Detected", "", inline(sentence)]
    if found := causes(report):
        lines += [
            "",
            row(("Pattern", "Likely Cause", "Evidence", "Mitigation")),
            "|---------|--------------|----------|------------|",
        ]
        lines += [row(_cause_cells(cause)) for cause in found]
    return lines


def _cause_cells(cause: Cause) -> tuple[str, ...]:
    name = cause.pattern[:1].upper() + cause.pattern[1:]
    return (name, *(inline(text[:1].upper() + text[1:]) for text in (cause.meaning, cause.evidence, cause.mitigation)))


def _certainty(report: LoopReport) -> list[str]:
    sentences = certainty_sentences(report)
    if not sentences:
        return []
    lines = _list("How Sure Is This", [inline(sentence) for sentence in sentences])
    for columns, rows in ((FINALIST_COLUMNS, finalist_rows(report)), (COMPARED_COLUMNS, compared_rows(report))):
        if rows:
            lines += ["", row(columns), "|---|---|---|---|---|", *(row(cells) for cells in rows)]
    return lines


def _took(report: LoopReport) -> list[str]:
    rows = took_rows(report)
    if not rows:
        return []
    lines = ["## What the Run Took", "", row(TOOK_COLUMNS), "|---|---:|---:|---:|---:|", *(row(cells) for cells in rows)]
    sentences = took_sentences(report)
    return [*lines, *([""] if sentences else []), *(f"- {inline(sentence)}" for sentence in sentences)]


def _trajectory(report: LoopReport) -> list[str]:
    if not report.records:
        return []
    shown = _bars_shown(report)
    lines = ["## Quality Trajectory", ""]
    if len(shown) < len(report.records):
        lines += [f"{len(shown)} of {len(report.records):,} iterations are drawn; the table above has all of them.", ""]
    scores = [record.quality_score for record in report.records if record.quality_score is not None]
    scale = max(scores, default=0) or 1
    name_width = len(f"Iteration {report.records[-1].iteration_number}:")
    value_width = max((len(percent(score)) for score in scores), default=1)
    bars = (_bar(record, report, scale, name_width, value_width) for record in shown)
    return [*lines, "```", *bars, "```"]


def _bar(record: IterationRecord, report: LoopReport, scale: float, name_width: int, value_width: int) -> str:
    name = f"Iteration {record.iteration_number}:".ljust(name_width)
    value = percent(record.quality_score).rjust(value_width)
    filled = "" if record.quality_score is None else "█" * round(BAR_WIDTH * record.quality_score / scale)
    notes = ["(start)"] if record.iteration_number == 0 else []
    if record.status != "ok":
        notes.append(f"({record.status.replace('_', ' ')})")
    if record.iteration_number == report.chosen:
        notes.append("← SELECTED")
    return " ".join([name, filled.ljust(BAR_WIDTH), value, *notes])


def _bars_shown(report: LoopReport) -> list[IterationRecord]:
    """All of them up to ``MOST_BARS``; else every n-th, and always the ends, the chosen, the best and the runner-up."""
    if len(report.records) <= MOST_BARS:
        return list(report.records)
    step = -(-len(report.records) // _KEPT_BARS)
    kept = {report.records[index].iteration_number for index in range(0, len(report.records), step)}
    kept |= {report.records[-1].iteration_number, *report.leaders[-1:]}
    kept |= {number for number in (report.chosen, report.selection and report.selection.runner_up) if number is not None}
    return [record for record in report.records if record.iteration_number in kept]


def _artifacts(report: LoopReport) -> list[str]:
    if report.chosen_record is None:
        return []
    listed, more = artifact_lines(report)
    sentence = artifacts_sentence(report)
    lines = [f"{inline(one.note)}: {inline(one.path)}" if one.note else inline(one.path) for one in listed]
    lines += [f"… and {more:,} more; `jumar diff` and the JSON report name all of them"] if more else []
    if sentence is None:
        return _list("Artifacts Applied", lines or ["none recorded"])
    return ["## Artifacts Applied", "", inline(sentence), *([""] if lines else []), *(f"- {line}" for line in lines)]


def _list(heading: str, lines: list[str]) -> list[str]:
    return [f"## {heading}", "", *(f"- {line}" for line in lines)]


def _decisions(trail: tuple[TrailEntry, ...]) -> list[str]:
    if not trail:
        return ["## Decisions", "", "None recorded yet."]
    columns = ("No.", "When", "Kind", "Iteration", "Replaced", "By", "Reason")
    return ["## Decisions", "", row(columns), "|---|---|---|---|---|---|---|", *(row(_decision_cells(entry)) for entry in trail)]


def _decision_cells(entry: TrailEntry) -> tuple[str, ...]:
    made = entry.decision
    return (
        str(made.number),
        inline(made.at),
        kind_of(entry),
        UNKNOWN if made.best_iteration is None else iteration_label(made.best_iteration),
        UNKNOWN if made.replaced is None else iteration_label(made.replaced),
        inline(made.by) or UNKNOWN,
        inline(made.reason) or UNKNOWN,
    )


def _checklist(report: LoopReport) -> list[str]:
    return [
        "## Validation Checklist",
        "",
        *(f"- [{'x' if line.done else ' '}] {line.text}: {inline(line.fact)}" for line in checklist(report)),
    ]
