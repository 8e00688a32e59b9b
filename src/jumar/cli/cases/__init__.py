"""What the commands for cases share: finding a run or a recording, and the options that say how to rank one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from jumar.cases.judgement import check_expression
from jumar.cases.layout import list_runs
from jumar.cases.records import CaseIteration
from jumar.cases.report import ChainReport, load_recording, run_order
from jumar.cases.run_store import RunReader
from jumar.cli.common import DEFAULT_ROOT, print_text
from jumar.core.rendering.figures import UNKNOWN
from jumar.core.text import escape, nearest
from jumar.errors import ConfigError, NotFoundError
from jumar.loop.store.layout import runs_directory
from jumar.model.ordering import TIE_BREAKS, parse_order
from jumar.model.pipeline import RunPlan

F = TypeVar("F", bound=Callable[..., Any])

_SHOWN = 10


def complete_run(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the runs of the root that the command line names so far."""
    root = ctx.params.get("root") or os.environ.get("JUMAR_ROOT") or DEFAULT_ROOT
    return [name for name in list_runs(runs_directory(Path(root))) if name.startswith(incomplete)]


def complete_directory(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the runs that exist, and leave directories to the shell."""
    return [*map(CompletionItem, complete_run(ctx, param, incomplete)), CompletionItem(incomplete, type="dir")]


def run_argument(function: F) -> F:
    """Add the ``RUN`` argument, completed from the runs that exist."""
    return click.argument("run", shell_complete=complete_run)(function)


def run_directory(root: Path, run: str) -> Path:
    """Return the directory of the run that ``run`` names: an id, ``run_ID``, the beginning of one id, or a directory.

    An id comes before a directory of the same name; ``./NAME`` is always a directory. Errors: :class:`NotFoundError` that lists
    what there is.
    """
    directory = runs_directory(root)
    run_ids = list_runs(directory)
    run_id = run.removeprefix("run_")
    if run_id in run_ids:
        return directory / f"run_{run_id}"
    if run and Path(run).is_dir():
        return Path(run)
    begins = [name for name in run_ids if run_id and name.startswith(run_id)]
    if len(begins) == 1:
        return directory / f"run_{begins[0]}"
    if "/" in run:
        raise NotFoundError(f"there is no directory {escape(run)}")
    where = escape(str(directory))
    if begins:
        shown = f"{len(begins):,} begin like that: {_listed(begins)}"
    else:
        shown = f"there are: {_listed(run_ids)}" if run_ids else "it holds no runs; `jumar cases run` makes one"
    raise NotFoundError(f"no run called '{escape(run)}' in {where}{nearest(run, run_ids)}; {shown}")


def _listed(names: list[str] | tuple[str, ...]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(map(escape, names[:_SHOWN])) + (f" and {rest:,} more" if rest > 0 else "")


def open_run(root: Path, run: str) -> RunReader:
    """Open the run that ``run`` names. Errors: :class:`NotFoundError`, :class:`jumar.errors.StoreDamagedError`."""
    return RunReader(run_directory(root, run))


def iteration_number(iteration: CaseIteration | None) -> str:
    """Return the number of an iteration as a table has it, ``—`` when there is none."""
    return UNKNOWN if iteration is None else str(iteration.number)


# ------------------------------------------------------------------------------------------------------- recordings


def order_options(function: F) -> F:
    """Add the options that say how iterations are ranked."""
    options = (
        click.option(
            "--best-order",
            metavar="KEYS",
            help="Keys in the order of their weight; -KEY where less is better.  [default: accuracy,overall,chain]",
        ),
        click.option(
            "--best-tiebreak",
            metavar="RULES",
            help=f"What decides between equals: {', '.join(TIE_BREAKS)}.  [default: earlier_iter]",
        ),
        click.option(
            "--key",
            "keys",
            multiple=True,
            type=click.STRING,
            metavar="NAME=JMESPATH",
            help="Where a score is in the judge's file; repeatable.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def selection(
    directory: Path, best_order: str | None, best_tiebreak: str | None, keys: tuple[str, ...]
) -> Callable[[], ChainReport]:
    """Check the options and return what reads the recording in ``directory`` by them.

    Of a run of ours the order and the keys are those that it was made with, where the options say nothing else. A tie-break that
    can never decide is said on stderr. Errors: :class:`jumar.errors.ConfigError`.
    """
    reader = RunReader(directory) if (directory / "run.json").exists() else None
    plan = RunPlan() if reader is None else reader.plan
    expressions = _keys(keys, plan.keys)
    order = parse_order(plan.order, plan.tie_breaks) if reader is None else run_order(reader)
    if best_order is not None or best_tiebreak is not None:
        order = parse_order(
            order.words if best_order is None else best_order,
            order.tie_breaks if best_tiebreak is None else best_tiebreak,
            known=expressions,
        )
    for warning in order.warnings:
        print_text(f"jumar: warning: {warning}", err=True)
    return lambda: load_recording(directory, order=order, keys=expressions, roles=plan.roles, diff=plan.diff, scales=plan.scales)


def _keys(given: tuple[str, ...], before: Mapping[str, str]) -> Mapping[str, str]:
    keys = dict(before)
    for item in given:
        name, equals, expression = item.partition("=")
        if not equals or not name.strip() or not expression.strip():
            raise ConfigError(
                f"--key {escape(item)}: write NAME=JMESPATH, such as chain=\"dimensions[?name=='Chain'].score | [0]\""
            )
        keys[name.strip()] = check_expression(expression.strip(), where=f"--key {escape(name.strip())}")
    return keys
