"""``jumar cases show``: a run's cases and their iterations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jumar.cli.cases.common import open_run, run_argument
from jumar.cli.common import json_option, print_json, print_line, print_text, quiet_option, root_option, shown_path
from jumar.cli.terminal.tabular import print_title
from jumar.core.text import escape, plural

if TYPE_CHECKING:
    from jumar.cases.report.read import ChainReport

__all__ = ["show_command"]

_EPILOG = """\b
Examples:
  jumar cases show nightly
  jumar cases show .jumar/runs/run_nightly --json

RUN is an id below --root, its unique beginning, or a run's directory."""


@click.command("show", epilog=_EPILOG)
@run_argument
@root_option
@json_option
@quiet_option
def show_command(run: str, root: Path, *, as_json: bool, quiet: bool) -> int:
    """Show a run's cases: the score of each iteration, the best (★), what was carried (→), and how each case ended.

    An iteration that was never made is a dot; one that failed says so.
    """
    from jumar.cases.report.read import load_run

    report = load_run(open_run(root, run))
    if as_json:
        print_json(_document(report))
    else:
        _print(report, quiet=quiet)
    return 0


def _document(report: ChainReport) -> dict[str, Any]:
    from jumar.cases.report.document import to_json

    whole = to_json(report)
    return {
        name: whole[name] for name in ("run_id", "run_dir", "created_at", "order", "tie_breaks", "max_iters", "spend", "cases")
    }


def _print(report: ChainReport, *, quiet: bool) -> None:
    from jumar.cases.report.words import case_lines, cost_text, failure_lines, handover_sentence
    from jumar.cli.cases.rows import print_cases
    from jumar.core.rendering.figures import UNKNOWN, duration

    if not quiet:
        made = sum(len(case.iterations) for case in report.cases)
        spent = [plural(len(report.cases), "case"), plural(made, "iteration"), duration(report.paid.seconds)]
        cost = cost_text(report.paid)
        print_title(f"jumar cases show · {report.run_id}", " · ".join([*spent, *([] if cost == UNKNOWN else [cost])]))
    print_cases(report)
    if quiet:
        return
    print_text("")
    for case in report.cases:
        print_line(f"case {case.number}", f"{escape(case_lines(report, case)[0])}.")
        for number, said in failure_lines(case):
            print_line("", f"iteration {number}: {escape(said)}")
    for handed in report.handovers:
        print_line("carried", escape(handover_sentence(report, handed)))
    print_line("run", shown_path(Path(report.directory)))
