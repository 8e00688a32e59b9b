"""``jumar learn status``: where a learning run is."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from jumar.cli.common import json_option, print_json, print_line, print_text, quiet_option, shown_path
from jumar.cli.terminal.output import choose_format, write_document
from jumar.core.text import escape, plural, signed
from jumar.learning.report.view import LearningReport
from jumar.learning.run.request import LearnResult

_GAMED: Final = 5  # probes that are named
_VERDICTS: Final = {
    "tracks": "tracks: agrees with the judge beyond chance, a constant and the length of the text",
    "not_proven": "not proven: the held-out items leave open whether it agrees with the judge",
    "fails": "fails: it does not agree with the judge",
}


def show_result(found: LearnResult, *, quiet: bool) -> None:
    """Print how a run ended: the verdict and its figures, or how to go on."""
    if found.summary is None:
        cut = "while the held-out items were judged; run the same command again to resume: it is the same evaluation"
        print_line("stopped", cut if found.cut_off else found.outcome.stop.detail)
        return
    if quiet:
        print_line("verdict", str(found.summary["verdict"]))
        return
    from jumar.learning.run.read import read_report

    show_summary(read_report(found.output))
    path = found.output / "patterns.json"
    print_line("wrote", shown_path(path))
    print_line("next", f"jumar learn report {shlex.quote(escape(str(found.output)))}")


def show_summary(report: LearningReport) -> None:
    """Print the verdict of a run that ended, and the figures that it rests on."""
    from jumar.judging.tracking import FEWEST_GROUPS, FEWEST_ITEMS
    from jumar.learning.report.course import Totals, converged_text
    from jumar.learning.report.verdict import unscored_text

    summary = report.summary
    if summary is None:
        return
    held, iterations = summary["heldout"], plural(int(summary["iterations"]), "iteration")
    equal = report.best is not None and report.scores.get(report.best) == report.scores.get(0)
    best = "the start: none scored higher" if report.best == 0 else f"{report.best}{', as good as the start' if equal else ''}"
    print_line("learned", f"{iterations}, best is {best}; {Totals.of(report.logs).text}, {summary['rolled_back']:,} rolled back")
    print_line("set", _set(report))
    told = list(dict.fromkeys(str(note) for proposal in report.proposals.values() for note in proposal.get("told", ())))
    if told:
        more = f"; and {len(told) - 1:,} more in the report" if len(told) > 1 else ""
        print_line("proposals", f"{escape(told[0])}{more}")
    print_line("verdict", _VERDICTS[str(summary["verdict"])])
    if held is not None and (int(held["items"]) < FEWEST_ITEMS or int(held["groups"]) < FEWEST_GROUPS):
        print_line("", f"too few to prove anything: {FEWEST_ITEMS} held-out items in {FEWEST_GROUPS} groups are the least")
    if held is not None:
        more = f" ({unscored})" if (unscored := unscored_text(report)) else ""
        print_line(
            "held-out",
            f"{plural(int(held['items']), 'item')} in {plural(int(held['groups']), 'group')}{more}: MAE "
            f"{_number(held['mae'])} {_interval(held['interval'])}; baselines: constant {_number(held['constant_mae'])}, "
            f"length only {_number(held['length_mae'])}",
        )
        print_line(
            "ranks",
            f"Spearman {_number(held['spearman'])} {_interval(held['spearman_interval'])}; "
            f"baseline: length only {_number(held['length_spearman'])}{_ceiling(summary)}",
        )
    failed = {name: one["mean_change"] or 0.0 for name, one in summary["probes"]["probes"].items() if not one["passed"]}
    if failed:
        most = sorted(failed, key=lambda name: -failed[name])[:_GAMED]
        more = f", and {len(failed) - len(most):,} more" if len(failed) > len(most) else ""
        gained = ", ".join(f"{name.replace('_', ' ')} {signed(failed[name])}" for name in most)
        print_line("gamed", f"real items that were made worse score higher, or may: {gained}{more}")
    print_line("quality", _quality(report, summary))
    print_line("converged", converged_text(summary))
    if summary["verdict"] == "tracks" and not summary.get("converged"):
        print_line("", "the verdict is about the set that is kept, on held-out items, and holds")
    print_line("judge", _paid(report, summary))


def _ceiling(summary: Mapping[str, Any]) -> str:
    """Return how much of what the judge's own noise allows was attained, where that is known."""
    found = summary.get("noise_ceiling")
    if found is None or found["attained"] is None:
        return ""
    return f"; {found['attained']:.0%} of the {found['spearman']:.2f} that the judge's own noise allows"


def _set(report: LearningReport) -> str:
    """Return what the set is made of; where nothing was learned, that."""
    steps = len(report.steps)
    said = plural(len(report.patterns) - steps, "phrase")
    supported = 0 if report.summary is None else int(report.summary["supported"])
    if not report.patterns:
        return f"empty: nothing was learned; {report.empty_means}"
    if report.orders_only:
        return f"{said} and {plural(steps, 'step')} of measured features that order items, and give all about the same score"
    members = f"{said}, {supported:,} supported one by one" if steps < len(report.patterns) else "no phrase"
    fitted = f"; {plural(steps, 'step')} of measured features, which the fit sets and nothing proposes"
    return members + (fitted if steps else "")


def _quality(report: LearningReport, summary: Mapping[str, Any]) -> str:
    """Return whether the items are good; the judge's own average stands beside the set's, which may be off."""
    bias = None if report.proof is None else report.proof["statistics"]["figures"].get("bias")
    average = float(summary["cheap_avg"])
    own = "" if bias is None else f" (by the judge {_number(average - bias)})"
    met = "met" if summary["quality_met"] else "not met"
    return f"the items' cheap average is {_number(average)}{own}; the target of 4.0 is {met}"


def _paid(report: LearningReport, summary: Mapping[str, Any]) -> str:
    from jumar.learning.report.verdict import cost_text

    calls = int(summary["judge_calls"])
    if report.replayed:
        return f"{plural(calls, 'recorded answer')} read; nobody was asked"
    return f"{plural(calls, 'call')}, {cost_text(summary['cost_usd'])}"


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}"


def _interval(pair: list[float] | None) -> str:
    return "(no interval)" if pair is None else f"[{pair[0]:.2f}, {pair[1]:.2f}]"


_EPILOG = """\b
Examples:
  jumar learn status outputs/
  jumar learn status outputs/ --json | jq .verdict"""

output_argument = click.argument("output", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")


@click.command("status", epilog=_EPILOG)
@output_argument
@json_option
@quiet_option
def status_command(output: Path, *, as_json: bool, quiet: bool) -> int:
    """Say where a learning run is, and what it found so far.

    DIR is the --output of `jumar learn`.
    """
    from jumar.cli.learn.status import show_summary
    from jumar.learning.report.view import render_progress
    from jumar.learning.run.read import read_report, read_run

    found = read_run(output)
    if as_json:
        print_json(found.document())
        return 0
    print_text(f"run       {found.state}; {plural(len(found.iterations), 'iteration')}")
    if found.iterations and not quiet:
        before = found.iterations[-2] if len(found.iterations) > 1 else None
        print_text(render_progress(found.iterations[-1:], before).rstrip("\n"))
    if found.summary is not None:
        show_summary(read_report(output))
    return 0


FORMATS = ("markdown", "json", "html")
_SUFFIXES = {".md": "markdown", ".json": "json", ".html": "html", ".htm": "html"}

_REPORT_EPILOG = """\b
Examples:
  jumar learn report outputs/
  jumar learn report outputs/ -o report.html        the format follows the name"""


@click.command("report", epilog=_REPORT_EPILOG)
@output_argument
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: the file's suffix with -o, else markdown.")
@click.option(
    "-o", "--output", "target", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write here, not to stdout."
)
@json_option
@quiet_option
def report_command(output: Path, form: str | None, target: Path | None, *, as_json: bool, quiet: bool) -> int:
    """Print a learning run's report: the verdict, the course of the figures, every decision with its reason, the set.

    DIR is the --output of `jumar learn`. --json is --format json; with -o, stdout then says in JSON what was written.
    """
    from jumar.learning.report.render import render_html, render_json, render_markdown
    from jumar.learning.run.read import read_report

    chosen = choose_format(form, target, _SUFFIXES, default="markdown", as_json=as_json)
    text = {"json": render_json, "html": render_html, "markdown": render_markdown}[chosen](read_report(output))
    write_document(text, target, chosen, of={"run": str(output)}, for_people="markdown", as_json=as_json, quiet=quiet)
    return 0
