"""``jumar show``: a loop's iterations, or one of them in full."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from jumar.cli.common import (
    iteration_argument,
    loop_or_iteration,
    open_loop,
    print_json,
    print_text,
    refresh_if_free,
    shown_path,
    standard_options,
)
from jumar.cli.terminal.display import agent_name, head_line, heading, row_lines
from jumar.cli.terminal.ending import ending_of_show
from jumar.cli.terminal.output import Column, TableRow, print_table, print_title
from jumar.cli.terminal.screen import LinesDisplay
from jumar.core.redaction import current
from jumar.core.rendering.figures import UNKNOWN, count, dollars, duration
from jumar.core.text import escape, escape_block, plural, points
from jumar.loop.ranking.repairs import repairs
from jumar.loop.report.ending import State
from jumar.loop.report.observer import LoopState, loop_state
from jumar.loop.report.read import LoopReport, load_report
from jumar.loop.report.rows import TrajectoryRow, change, table_notes, trajectory_rows
from jumar.loop.store.loop_store import LoopStore
from jumar.model import IterationRecord

if TYPE_CHECKING:
    from collections.abc import Mapping


_EPILOG = """\b
Examples:
  jumar show                      the loop that runs, else the newest
  jumar show 3                    one iteration in full
  jumar show readme-polish
  jumar show readme-polish --json"""

_MOST_FILES = 20
_TAIL_LINES = 12


@click.command("show", epilog=_EPILOG)
@iteration_argument
@standard_options
def show_command(loop: str | None, number: int | None, iteration: int | None, root: Path, *, as_json: bool, quiet: bool) -> int:
    """Show a loop's iterations: scores, checks, cost, time, which one is selected and why the loop ended.

    With N one iteration in full, of LOOP or of the newest loop.
    """
    loop, iteration = loop_or_iteration(root, loop, number, iteration)
    store = open_loop(root, loop)
    if iteration is not None:
        record = store.record(iteration)
        if as_json:
            print_json({"loop_id": store.loop_id, "iterations": [record.to_json()]})
        else:
            _print_one(load_report(store), record, store)
        return 0
    report = load_report(store, all_artifacts=as_json)
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
    out = LinesDisplay(sys.stdout)
    if not quiet:
        run: Mapping[str, Any] = store.config.get("run") or {}
        agent = agent_name(run.get("generator", {}).get("command"))
        out.say(f"{head_line(report.loop_id, agent, most=None)} · {plural(report.passes, 'iteration')}", "bold")
    lines = [(heading(report.records), "dim")] if report.records else []
    for cells, style in [*lines, *((row.cells, _style(row)) for row in trajectory_rows(report))]:
        for line in row_lines([out.spelled(cell) for cell in cells], out.width):
            out.print(line, style)
    if quiet:
        return
    for note in table_notes(report):
        out.say(f"       {escape(note)}", "dim", indent=7)
    name = cast("State", state.name)  # of a loop that was opened: none of another tool, none that is damaged
    out.end(lambda width: ending_of_show(report, store, name, stop=state.stop, writer=_writer(state), width=width))


def _style(row: TrajectoryRow) -> str:
    if row.chosen:
        return "good"
    if row.invalid:
        return "bad"
    return "warn" if row.failed else ""


def _writer(state: LoopState) -> str:
    holder = state.holder
    if holder is None:
        return ""
    who = "another process" if holder.pid is None else f"process {holder.pid} ({escape(holder.command)})"
    return f"{who} writes this loop since {escape(holder.since or 'an unknown time')}"


# -------------------------------------------------------------------------------------------------------- one in full


def _print_one(report: LoopReport, record: IterationRecord, store: LoopStore) -> None:
    points_up = change(record, report.compared_with(record))
    delta = "" if points_up is None else f" ({points(points_up, sign=True)})".replace("-", "\N{MINUS SIGN}")
    score = f"{'no score' if record.quality_score is None else points(record.quality_score)}{delta}"
    print_title(f"iteration {record.iteration_number} of {report.loop_id}", f"{score} · {record.verification_status}")
    facts = [("recorded", record.timestamp or UNKNOWN)]
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
    gone = store.without_snapshot(record.iteration_number)
    if gone is not None:
        facts.append(("snapshot", gone.removeprefix("was ").removeprefix("is ")))
    for name, value in facts:
        print_text(f"  {name:<10}{escape(value)}")
    _print_dimensions(report, record)
    _print_checks(record, report)
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
        TableRow(
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


def _print_checks(record: IterationRecord, report: LoopReport) -> None:
    if not record.checks:
        return
    print_text("")
    changes = repairs(record, report.find(record.parent))
    if changes:
        print_text(f"  tests     {changes} since iteration {record.parent}")
    for check in record.checks:
        verdict = f"could not run: {check.broken}" if check.broken is not None else "passed" if check.passed else "FAILED"
        extra = "" if check.tests is None else f", {check.tests}{f' ({check.tests.note})' if check.tests.note else ''}"
        extra += f", {plural(len(check.new_failures), 'new failure')}" if check.new_failures else ""
        print_text(f"  check     {escape(check.name)}: {escape(verdict)}{extra} ({duration(check.seconds)})")
        if not check.passed and check.output_tail.strip():
            for line in escape_block(check.output_tail).rstrip().split("\n")[-_TAIL_LINES:]:
                print_text(f"            | {line}")


def _print_files(record: IterationRecord) -> None:
    changed = record.analysis.artifacts_modified
    print_text("")
    print_text(f"  files     {plural(len(record.artifacts_detail), 'path')} kept, {len(changed):,} changed by this iteration")
    for path in changed[:_MOST_FILES]:
        print_text(f"            {current().redact(escape(path))}")
    if len(changed) > _MOST_FILES:
        print_text(f"            … and {len(changed) - _MOST_FILES:,} more")
    for detail in record.artifacts_detail:
        if detail.skipped is not None:
            print_text(f"            {current().redact(escape(detail.path))}: not stored ({escape(detail.skipped)})")
