"""``jumar import``: a loop that somebody's script already ran becomes a loop here, and what would have been kept is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from jumar.cli.common import command_for, print_json, print_line, print_text, standard_options
from jumar.cli.loop.run import run_loop
from jumar.core.given import better_words
from jumar.core.text import escape, percent, plural, points
from jumar.errors import UsageError
from jumar.loop.store.layout import loops_directory

if TYPE_CHECKING:
    from jumar.app.imports.git import Branch
    from jumar.app.imports.load import Imported
    from jumar.loop.report.read import LoopReport

_COMPLETE = {0, 10, 11, 12}  # how a run ends that has nothing more to do
_ENDED = {1, 2}  # how one that was given up on ends, and what says that it has
F = TypeVar("F", bound=Callable[..., Any])


def _direction_option(function: F) -> F:
    option = click.option("--direction", type=click.Choice(["min", "max"]), help="Whether lower or higher is better.")
    return option(function)


def _file_argument(function: F) -> F:
    return click.argument("path", type=click.Path(path_type=Path), metavar="FILE")(function)


@click.command(
    "autoresearch",
    epilog="""\b
Examples:
  jumar import autoresearch results.tsv
  jumar import autoresearch log.tsv --metric val_bpb --direction min
  jumar import autoresearch autoresearch.jsonl --json""",
)
@_file_argument
@click.option("--metric", metavar="NAME", help="The column that decides.  [default: found]")
@_direction_option
@standard_options
def autoresearch_command(path: Path, metric: str | None, direction: str | None, root: Path, *, as_json: bool, quiet: bool) -> int:
    """Import the log of an autoresearch loop: results.tsv, or JSON lines.

    Metric, direction and status are found where the file or what was kept tells them; what was taken for what is said.
    """
    return _import("autoresearch", path, metric, direction, root, as_json=as_json, quiet=quiet)


@click.command(
    "table",
    epilog="""\b
Examples:
  jumar import table runs.csv --metric accuracy --direction max
  jumar import table trials.tsv --metric loss --direction min --quiet""",
)
@_file_argument
@click.option("--metric", metavar="NAME", required=True, help="The column that decides.")
@_direction_option
@standard_options
def table_command(path: Path, metric: str, direction: str | None, root: Path, *, as_json: bool, quiet: bool) -> int:
    """Import any table with a row an experiment: tabs, commas, spaces or JSON.

    A column that is called status, or says in most rows what was kept, is taken as one.
    """
    return _import("table", path, metric, direction, root, as_json=as_json, quiet=quiet)


@click.command(
    "git",
    epilog="""\b
Examples:
  jumar import git main..HEAD --check 'pytest -q'
  jumar import git v1.0..work --check 'make test' --score 'speed=./bench.sh'""",
)
@click.argument("commits", metavar="RANGE")
@click.option("--check", "checks", multiple=True, metavar="CMD", help="A shell command that must pass; may be repeated.")
@click.option("--score", "scores", multiple=True, metavar="[DIMENSION=]CMD", help="A shell command that prints 0 to 1.")
@standard_options
def git_command(commits: str, checks: tuple[str, ...], scores: tuple[str, ...], root: Path, *, as_json: bool, quiet: bool) -> int:
    """Import a git branch: every commit of RANGE is an iteration, checked in a worktree of its own.

    The start is what the branch began from. Your working directory is not touched. What was cut off goes on where it was.
    """
    if not checks and not scores:
        raise click.UsageError("nothing says how good a commit is: give --check CMD, or --score CMD")
    from jumar.app.imports.git import checked_out, loop_of, read_range, request_for
    from jumar.app.run.request import scorer_of

    branch, root = read_range(commits), root.absolute()
    scorers = [scorer_of(score) for score in dict.fromkeys(scores)]
    what = {"checks": list(checks), "scorers": scorers}
    name, complete = loop_of(branch, root, what)
    if not complete:
        with checked_out(branch, root, what) as tree:
            request = request_for(branch, tree, name, root, checks, scorers)
            code = run_loop(request, as_json=False, quiet=as_json or quiet, told=False)
            if code not in _COMPLETE:
                _give_up(code, loops_directory(root) / name)
    _show_branch(branch, loops_directory(root) / name, as_json=as_json, quiet=quiet)
    return 0


def _give_up(code: int, directory: Path) -> NoReturn:
    if code not in _ENDED:
        raise SystemExit(code)
    raise UsageError(
        f"not every commit could be checked: `{command_for('show', directory)}` says why; "
        f"after `{command_for('rm', directory)}` the import begins anew"
    )


def _show_branch(branch: Branch, directory: Path, *, as_json: bool, quiet: bool) -> None:
    from jumar.loop.report.read import load_report
    from jumar.loop.store.loop_store import LoopStore

    report = load_report(LoopStore.open(directory))
    best, last = report.chosen, len(branch.commits)
    if as_json:
        print_json(_document_of(branch, report))
    elif quiet:
        print_text(escape(report.loop_id))
    else:
        print_line("imported", f"{plural(last, 'commit')} of {escape(branch.name)} as {escape(report.loop_id)}")
        if branch.merged:
            print_line("note", f"not followed: {plural(branch.merged, 'commit')} that merges brought")
        if best is not None:
            print_line("best", f"{percent(report.score_of(best))}, iteration {best}: {branch.said_of(best)}")
        if best != last:
            print_line("last", f"{percent(report.score_of(last))}, iteration {last}: {branch.said_of(last)}")
        print_line("next", f"{command_for('report', directory)} · git switch --detach {branch.commit_of(best or 0)[:12]}")


def _document_of(branch: Branch, report: LoopReport) -> dict[str, Any]:
    best, last = report.chosen, len(branch.commits)
    return {
        "loop_id": report.loop_id,
        "metric": "score",
        "direction": "max",
        "iterations": len(report.records),
        "best_iteration": best,
        "best_score": None if best is None else report.score_of(best),
        "last_iteration": last,
        "last_score": report.score_of(last),
        "kept_by_agent": last,
        "crashes": sum(view.score is None for view in report.views),
        "skipped_rows": branch.merged,
        "best_commit": None if best is None else branch.commit_of(best),
        "last_commit": branch.tip,
    }


def _import(kind: str, path: Path, metric: str | None, direction: Any, root: Path, *, as_json: bool, quiet: bool) -> int:
    from jumar.app.imports.history import history_of
    from jumar.app.imports.load import load_history
    from jumar.app.imports.tables import read_table

    found = load_history(history_of(read_table(path), metric=metric, direction=direction), path, kind, root)
    if as_json:
        print_json(found.to_json())
    elif quiet:
        print_text(escape(found.store.loop_id))
    else:
        _show(found)
    return 0


def _show(found: Imported) -> None:
    history, report = found.history, found.report
    better = better_words(history.direction)
    print_line("imported", f"{plural(len(report.records), 'iteration')} as {escape(found.store.loop_id)}{_before(found)}")
    print_line("found", "; ".join(history.found))
    best, last = found.best, report.final
    if best is not None and last is not None:
        metric = escape(history.metric)
        print_line("best", f"{points(report.score_of(best) or 0)} {metric} ({better}), iteration {best}")
        if last.iteration_number != best:
            print_line("last", f"{_score(found, last.iteration_number)}, iteration {last.iteration_number}")
    if found.last_kept is not None and best is not None and report.score_of(found.last_kept) != report.score_of(best):
        print_line("kept", f"{_score(found, found.last_kept)}, iteration {found.last_kept}: what the loop itself ended with")
    left = [
        f"{plural(count, noun)} {what}"
        for count, noun, what in (
            (found.crashes, "row", "crashed"),
            (found.unranked, "row", "without a value or with an unknown status"),
            (len(history.skipped), "line", "skipped"),
        )
        if count
    ]
    if left:
        print_line("no rank", ", ".join(left) + _first_skipped(found))
    print_line("next", f"{command_for('report', found.store.paths.directory)} · jumar dashboard")


def _before(found: Imported) -> str:
    return ", which it was already" if found.again else ""


def _score(found: Imported, number: int) -> str:
    score = found.report.score_of(number)
    return "no score" if score is None else points(score)


def _first_skipped(found: Imported) -> str:
    if not found.history.skipped:
        return ""
    line, why = found.history.skipped[0]
    return f" (the first: line {line}, {escape(why)})"
