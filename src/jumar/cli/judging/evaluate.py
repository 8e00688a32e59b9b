"""``jumar evaluate``: a score for every item of a file."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jumar.cli.common import DecimalRange, json_option, print_json, print_text, quiet_option, warned
from jumar.cli.judging.auto import auto_options, refuse_auto_options, run_auto
from jumar.cli.judging.judged import judge_options, run_judged
from jumar.errors import NothingEvaluatedError
from jumar.judging.asking.settings import MAX_UNSCORED

if TYPE_CHECKING:
    from jumar.app.evaluate import Mode

_EPILOG = """\b
Examples:
  jumar evaluate stories.jsonl --mode cheap
  jumar evaluate stories.jsonl --judge openai:gpt-5-mini --patterns patterns.json -o outputs/
  jumar evaluate answers.jsonl --mode expensive --judge http://localhost:8080/v1#model --repeat 3
  jumar evaluate answers.jsonl --judge replay:judged.jsonl
  jumar evaluate stories.jsonl --mode cheap --patterns patterns.json --per-item scores.jsonl
  jumar evaluate new.jsonl --mode auto --proof outputs/proof.json --decision-line 3.5
  jumar evaluate answers.jsonl --mode cheap --field text=answer --field prompt=question
  jumar evaluate backlog.parquet --mode cheap --rubric my-story.toml --jobs 2 --json

ITEMS is JSON Lines, a JSON array, .csv, .tsv, .parquet, or a folder of .txt files with a story a line; - is stdin. A
record with title and acceptance_criteria is a story; of others text is judged, and prompt where there is one."""

_PATH = click.Path(path_type=Path)
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("evaluate", epilog=_EPILOG)
@click.argument("items", type=click.Path(path_type=Path, allow_dash=True), metavar="ITEMS")
@click.option(
    "--mode",
    type=click.Choice(["cheap", "expensive", "dual", "auto"]),
    default="dual",
    show_default=True,
    help="Which judges are asked.",
)
@click.option("--patterns", type=_FILE, metavar="FILE", help="What the cheap judge has learned.")
@click.option("--rubric", metavar="story|text|FILE", help="How to judge.  [default: story for stories, else text]")
@click.option(
    "--field", "fields", multiple=True, type=click.STRING, metavar="NAME=KEY", help="A key that has another name; repeatable."
)
@click.option("--per-item", type=_FILE, metavar="FILE", help="Write a line of JSON for each item here.")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write iteration_N here.")
@click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes for the cheap judge.")
@click.option("--executor", metavar="SPEC", help="Where else the cheap judge works: dask://HOST:PORT.")
@judge_options
@click.option(
    "--max-unscored",
    type=DecimalRange(0, 1),
    metavar="SHARE",
    default=MAX_UNSCORED,
    show_default=True,
    help="Items that may end without a verdict; more is an error.",
)
@auto_options
@json_option
@quiet_option
def evaluate_command(items: Path, mode: Mode, *, as_json: bool, quiet: bool, **options: Any) -> int:
    """Score every item from 1 to 5.

    Ends with 0 when it ran, with 12 when nothing could be scored.
    """
    from jumar.app.evaluate import CheapRequest, check_mode, evaluate_cheaply
    from jumar.judging.items.records import field_map

    if mode == "auto":
        return run_auto(items, field_map(options["fields"]), options, as_json=as_json, quiet=quiet)
    check_mode(mode, options["judge"])
    refuse_auto_options(options)
    if mode != "cheap":
        return run_judged(items, mode, field_map(options["fields"]), options, as_json=as_json, quiet=quiet)
    names = ("patterns", "rubric", "per_item", "output", "jobs", "executor")
    request = CheapRequest(items=items, fields=field_map(options["fields"]), **{name: options[name] for name in names})
    gc.freeze()  # what the start made stays, and need not be looked through again with every few thousand items
    with warned(), _progress(items, shown=not (as_json or quiet)) as hear:
        found = evaluate_cheaply(request, hear)
    for name in found.unused_weights:
        print_text(f"jumar: warning: scoring_weights of the patterns name '{name}', which no component here is called", err=True)
    if as_json:
        print_json(found.document())
    elif not quiet:
        from jumar.cli.judging.judged import show_cheap

        show_cheap(found, options["per_item"])
    return 0 if found.tally.scored else NothingEvaluatedError.exit_code


@contextlib.contextmanager
def _progress(items: Path, *, shown: bool) -> Generator[Callable[[int, int], None] | None]:
    """Give what is told of bytes and items; a bar on stderr where that is a terminal, else nothing."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from jumar.judging.items.sources import size_of

    words = TextColumn("{task.fields[items]:,} items")
    bar = Progress(BarColumn(), TaskProgressColumn(), words, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    with bar:
        task = bar.add_task("", total=size_of(items), items=0)
        yield lambda read, count: bar.update(task, completed=read, items=count)
