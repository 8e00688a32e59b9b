"""``jumar show``: a loop's iterations, or one of them in full."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jumar.cli.common import (
    command_for,
    json_option,
    loop_argument,
    open_loop,
    print_json,
    print_text,
    quiet_option,
    refresh_if_free,
    root_option,
    shown_path,
)
from jumar.cli.state import LoopState, loop_state, report_of
from jumar.cli.tabular import Column, Row, print_table, print_title
from jumar.text import escape, escape_block, plural, points

if TYPE_CHECKING:
    from jumar.model import IterationRecord
    from jumar.report.read import LoopReport
    from jumar.report.rows import TrajectoryRow
    from jumar.store.loop_store import LoopStore

__all__ = ["show_command"]

_EPILOG = """\b
Examples:
  jumar show readme-polish
  jumar show readme-polish --iteration 3   one pass in full
  jumar show readme-polish --json"""

_COLUMNS = (
    Column(name="it", right=True),
    Column(name="score", right=True),
    Column(name="Δ", right=True),
    Column(name="checks"),
    Column(name="cost", right=True),
    Column(name="time", right=True),
    Column(name="", fold=True),
)
_MOST_FILES = 20
_TAIL_LINES = 12


@click.command("show", epilog=_EPILOG)
@loop_argument
@click.option("--iteration", type=click.IntRange(min=0), metavar="N", help="Show this one in full; 0 is the start state.")
@root_option
@json_option
@quiet_option
def show_command(loop: str, iteration: int | None, root: Path, *, as_json: bool, quiet: bool) -> int:
    """Show a loop's iterations: scores, checks, cost, time, which one is chosen and why the loop ended."""
    store = open_loop(root, loop)
    if iteration is not None:
        record = store.record(iteration)
        if as_json:
            print_json({"loop_id": store.loop_id, "iterations": [record.to_json()]})
        else:
            _print_one(report_of(store), record, store)
        return 0
    report = report_of(store, all_artifacts=as_json)
    state = loop_state(store)
    refresh_if_free(store)
    if as_json:
        print_json(_document(report, state, store))
    else:
        _print_all(report, state, store, quiet=quiet)
    return 0


def _document(report: LoopReport, state: LoopState, store: LoopStore) -> dict[str, object]:
    return {
        "loop_id": report.loop_id,
        **state.to_json(),
        "iterations": [record.to_json() for record in report.records],
        "selection": report.selection and report.selection.to_json(),
        "override": report.override and report.override.to_json(),
        "chosen": report.chosen,
        "stop": report.stop and {"reason": report.stop.reason, "detail": report.stop.detail},
        "spend": report.spend.to_json(),
        "created_at": report.created_at,
        "directory": str(store.paths.directory),
        "workdir": None if store.workdir is None else str(store.workdir),
    }


# ---------------------------------------------------------------------------------------------------------- the table


def _print_all(report: LoopReport, state: LoopState, store: LoopStore, *, quiet: bool) -> None:
    from jumar.report.figures import duration
    from jumar.report.money import spent_money
    from jumar.report.notes import table_notes
    from jumar.report.rows import trajectory_rows

    spend = report.spend
    spent = [plural(report.passes, "iteration")]
    if spend.cost_usd != 0:
        spent.append(spent_money(spend, report.budget))
    spent.append(duration(spend.seconds))
    if not quiet:
        print_title(f"jumar show · {report.loop_id}", " · ".join(spent))
    if report.records:
        rows = trajectory_rows(report)
        print_table(_COLUMNS, [Row(cells=row.cells, style=_style(row)) for row in rows])
        for note in () if quiet else table_notes(report):
            print_text(f"      {escape(note)}")
    else:
        print_text("no iteration is recorded yet")
    if not quiet:
        for line in _closing(report, state, store):
            print_text(line)


def _style(row: TrajectoryRow) -> str:
    if row.chosen:
        return "bold green"
    if row.invalid:
        return "red"
    return "yellow" if row.failed else ""


def _closing(report: LoopReport, state: LoopState, store: LoopStore) -> list[str]:
    from jumar.report.figures import listing

    lines: list[str] = []
    if state.name == "running":
        holder = state.holder or {}
        who = f"process {holder.get('pid')} ({escape(str(holder.get('command')))})" if holder.get("pid") else "another process"
        lines.append(f"running   {who} is writing this loop since {escape(str(holder.get('since', 'an unknown time')))}")
    elif state.stop is not None:
        reason = state.stop.reason.replace("_", " ")
        lead = "" if state.stop.detail.startswith(reason) else f"{reason}: "
        lines.append(f"stopped   {lead}{escape(state.stop.detail)}")
    elif state.name == "interrupted":
        lines.append("stopped   interrupted; the `jumar run` that started it goes on with it")
    lines.append(f"chosen    {_chosen(report)}")
    if report.certainty is not None:
        from jumar.cli.rows import sure_lines

        lines += sure_lines(report.certainty)
    if report.degradation.detected and report.degradation.best_before is not None:
        at = listing(report.degradation.iterations)
        lines.append(f"fell      at {at}; best before that: {report.degradation.best_before}")
    if report.chosen is not None and store.workdir is not None and state.name != "running":
        lines.append(_whereabouts(store, report.chosen, store.workdir))
    lines.append(f"report    {shown_path(store.paths.report_view)}")
    return lines


def _whereabouts(store: LoopStore, chosen: int, workdir: Path) -> str:
    from jumar.decide.operation import last_applied

    applied = last_applied(store)
    if applied is not None and applied.best_iteration == chosen:
        return f"applied   to {shown_path(workdir)} (undo: {command_for('apply', store.loop_id, '--undo')})"
    return f"apply     {command_for('apply', store.loop_id)} puts it into {shown_path(workdir)}"


def _chosen(report: LoopReport) -> str:
    from jumar.report.figures import relaxed_text, runner_up_text

    selection, record = report.selection, report.chosen_record
    if record is None:
        return "nothing: no iteration has a valid score" if report.records else "nothing yet"
    parts = [f"iteration {record.iteration_number}, {_score(report.chosen_quality)}"]
    override = report.override
    if override is not None and override.best_iteration == record.iteration_number:
        parts.append(f"by {escape(override.by)}: {escape(override.reason)}")
        return " · ".join(parts)
    if selection is None:
        return parts[0]
    if selection.runner_up is not None and selection.margin is not None:
        tied = report.certainty is not None and selection.runner_up in report.certainty.tied
        parts.append(runner_up_text(selection.runner_up, selection.margin, tied=tied))
    if selection.fallback is not None:
        parts.append(relaxed_text(selection.fallback))
    if selection.below_start:
        parts.append("below the start's score, but verified")
    return " · ".join(parts)


def _score(value: float | None) -> str:
    return "no score" if value is None else points(value)


def _signed(value: float) -> str:
    return points(value, sign=True).replace("-", "\N{MINUS SIGN}")


# -------------------------------------------------------------------------------------------------------- one in full


def _print_one(report: LoopReport, record: IterationRecord, store: LoopStore) -> None:
    from jumar.report.figures import count, dollars, duration

    delta = "" if record.quality_delta is None else f" ({_signed(record.quality_delta)})"
    score = f"{_score(record.quality_score)}{delta}"
    print_title(f"iteration {record.iteration_number} of {report.loop_id}", f"{score} · {record.verification_status}")
    facts = [("recorded", record.timestamp)]
    if record.status != "ok":
        facts.append(("status", f"{record.status.replace('_', ' ')}: {record.status_reason}".rstrip(": ")))
    if record.parent is not None:
        facts.append(("from", f"iteration {record.parent}"))
    seconds = None if record.execution_time_ms is None else record.execution_time_ms / 1000
    facts.append(("time", duration(seconds)))
    facts.append(("tokens", count(record.tokens_used)))
    facts.append(("cost", dollars(record.token_cost_usd)))
    if record.usage.model is not None:
        facts.append(("model", record.usage.model))
    if record.commits:
        facts.append(("commits", ", ".join(commit[:12] for commit in record.commits)))
    if report.snapshots is not None and record.iteration_number not in report.snapshots:
        facts.append(("snapshot", "cleaned up"))
    for name, value in facts:
        print_text(f"  {name:<10}{escape(value)}")
    _print_dimensions(report, record)
    _print_checks(record)
    for note in _usage_notes(record, store):
        print_text(f"  usage     {escape(note)}")
    for note in record.reflections:
        print_text(f"  note      {escape(note)}")
    _print_files(record)
    print_text(f"  logs      {shown_path(store.paths.iteration(record.iteration_number) / 'logs')}")


def _usage_notes(record: IterationRecord, store: LoopStore) -> tuple[str, ...]:
    """What the attempt said of its usage that could not be taken as it was, or how it was priced."""
    ends = (attempt.end for attempt in store.attempts() if attempt.start.number == record.attempt)
    return tuple(note for end in ends if end is not None for note in end.notes)


def _print_dimensions(report: LoopReport, record: IterationRecord) -> None:
    reasons: dict[str, list[str]] = {}
    for reading in record.readings:
        said = reading.broken or reading.invalid or reading.reason
        if said:
            reasons.setdefault(reading.dimension, []).append(said)
    names = dict.fromkeys([*record.dimensions, *reasons])
    if not names:
        return
    print_text("")
    columns = (
        Column(name="dimension"),
        Column(name="score", right=True),
        Column(name="weight", right=True),
        Column(name="", fold=True),
    )
    rows = [
        Row(
            cells=(
                name,
                f"{record.dimensions[name]:.3f}" if name in record.dimensions else "—",
                f"{report.weights[name]:g}" if name in report.weights else "—",
                "; ".join(reasons.get(name, [])),
            ),
            style="" if name in record.dimensions else "red",
        )
        for name in names
    ]
    print_table(columns, rows)


def _print_checks(record: IterationRecord) -> None:
    from jumar.report.figures import duration

    if not record.checks:
        return
    print_text("")
    for check in record.checks:
        verdict = f"could not run: {check.broken}" if check.broken is not None else "passed" if check.passed else "FAILED"
        extra = f", {plural(len(check.new_failures), 'new failure')}" if check.new_failures else ""
        print_text(f"  check     {escape(check.name)}: {escape(verdict)}{extra} ({duration(check.seconds)})")
        if not check.passed and check.output_tail.strip():
            for line in escape_block(check.output_tail).rstrip().split("\n")[-_TAIL_LINES:]:
                print_text(f"            | {line}")


def _print_files(record: IterationRecord) -> None:
    changed = record.analysis.artifacts_modified
    print_text("")
    print_text(f"  files     {plural(len(record.artifacts_detail), 'path')} kept, {len(changed):,} changed by this pass")
    for path in changed[:_MOST_FILES]:
        print_text(f"            {escape(path)}")
    if len(changed) > _MOST_FILES:
        print_text(f"            … and {len(changed) - _MOST_FILES:,} more")
    for detail in record.artifacts_detail:
        if detail.skipped is not None:
            print_text(f"            {escape(detail.path)}: not stored ({escape(detail.skipped)})")
