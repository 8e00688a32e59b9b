"""``jumar evaluate`` with an expensive judge: its options, its progress, what it prints."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from jumar.cli.common import DecimalRange, print_json, print_line, print_text, shown_path, warned
from jumar.errors import NothingEvaluatedError
from jumar.judging.asking.settings import DEFAULTS, MAX_TOKENS

if TYPE_CHECKING:
    from jumar.judging.asking.settings import JudgeConfig
    from jumar.judging.asking.summary import Result
    from jumar.judging.expensive import JudgedRequest

REPLIES = Path(".jumar/replies")

F = TypeVar("F", bound=Callable[..., Any])


class _Pair(click.ParamType[tuple[float, float]]):
    """Two finite numbers with a comma between them; ``ordered``: the first one is smaller."""

    def __init__(self, name: str, example: str, *, ordered: bool) -> None:
        self.name = name
        self._example = example
        self._ordered = ordered

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        if isinstance(value, tuple):
            return value  # pyright: ignore[reportUnknownVariableType]
        try:
            one, other = (float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"write {self.name}, such as {self._example}", param, ctx)
        if one - one != 0.0 or other - other != 0.0 or (self._ordered and not one < other):
            order = ", the smaller one first" if self._ordered else ""
            self.fail(f"write two finite numbers{order}, such as {self._example}", param, ctx)
        return one, other


SCALE: Final = _Pair("LO,HI", "0,100", ordered=True)
"""Where a scale of scores begins and ends."""


def judge_options(function: F) -> F:
    """Add the options of the expensive judge."""
    options = (
        click.option("--judge", metavar="SPEC", help="The expensive judge, such as openai:MODEL or replay:FILE."),
        click.option(
            "--repeat",
            type=click.IntRange(1, 99),
            metavar="N",
            help="Ask so often; the median counts.  [default: once, 3 times a noisy judge]",
        ),
        click.option(
            "--max-cost", type=DecimalRange(0), metavar="USD", help="Stop asking the judge at this cost, over all starts."
        ),
        click.option(
            "--reserve-cost",
            type=DecimalRange(0),
            metavar="USD",
            help="Charge a call that tells no cost.  [default: the dearest]",
        ),
        click.option(
            "--price",
            type=_Pair("IN,OUT", "0.15,0.60", ordered=False),
            metavar="IN,OUT",
            help="USD for a million tokens, where the judge tells no cost.",
        ),
        click.option(
            "--concurrency",
            type=click.IntRange(1, 1024),
            default=DEFAULTS.concurrency,
            show_default=True,
            help="Questions to the judge at once.",
        ),
        click.option(
            "--timeout", type=DecimalRange(0, min_open=True), default=DEFAULTS.timeout, show_default=True, help="Seconds a call."
        ),
        click.option(
            "--max-retries",
            type=click.IntRange(0, 100),
            default=DEFAULTS.max_retries,
            show_default=True,
            help="For a judge that is busy.",
        ),
        click.option(
            "--backoff-base",
            type=DecimalRange(0, min_open=True),
            default=DEFAULTS.backoff_base,
            show_default=True,
            help="Base of the waits between retries.",
        ),
    )
    function = _answer_options(function)
    for option in reversed(options):
        function = option(function)
    return function


def _answer_options(function: F) -> F:
    """Add the options about answers: their scale, how long they may be, and where they are kept."""
    options = (
        click.option(
            "--judge-scale",
            type=SCALE,
            metavar="LO,HI",
            help="The judge's scale, mapped to 1 to 5.",
        ),
        click.option(
            "--max-tokens",
            type=click.IntRange(1),
            metavar="N",
            default=MAX_TOKENS,
            show_default=True,
            help="Of a language model's answer.",
        ),
        click.option("--no-reasons", is_flag=True, help="Ask for the score alone: fewer tokens, nothing to learn from."),
        click.option(
            "--cache",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            default=REPLIES,
            show_default=True,
            help="Replies of the judge: the same question is asked once.",
        ),
        click.option("--no-cache", is_flag=True, help="Ask again, and keep no reply."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def run_judged(
    items: Path, mode: str, fields: Mapping[str, str], options: Mapping[str, Any], *, as_json: bool, quiet: bool
) -> int:
    """Evaluate in expensive or dual mode, print what came of it, and return the exit code."""
    from jumar.judging.expensive import evaluate_judged
    from jumar.judging.files import learned_from_words

    request = judged_request(items, mode, fields, options)
    with warned(), judge_progress(shown=not (as_json or quiet)) as hear:
        found = evaluate_judged(request, hear)
    if found.learned_from:
        print_text(f"jumar: warning: {learned_from_words(found.learned_from, len(found.items))}", err=True)
    if as_json:
        print_json(found.document())
    elif not quiet:
        from jumar.cli.judging.evaluated import show_judged

        show_judged(found)
        for path in (request.per_item, found.directory):
            if path is not None:
                print_line("wrote", shown_path(path))
    return 0 if found.scored else NothingEvaluatedError.exit_code


def given(name: str) -> bool:
    """Whether a person gave the option of the command that runs, by word or by variable."""
    source = click.get_current_context().get_parameter_source(name)
    return source not in {ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP}


def recalled(known: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options, those of the judge that nobody gave as a run of learning recorded them in ``known``."""
    from jumar.learning.run.request import recorded_options

    return {**options, **{name: value for name, value in recorded_options(known).items() if not given(name)}}


def judge_config(options: Mapping[str, Any], cache: Path | str | None) -> JudgeConfig:
    """Return the judge that the options name; ``cache`` unless they say that there is none."""
    from jumar.judging.asking.settings import JudgeConfig

    cache = None if options["no_cache"] else cache
    return JudgeConfig.of(options["judge"], options, explain=not options["no_reasons"], cache=cache)


def judged_request(items: Path, mode: str, fields: Mapping[str, str], options: Mapping[str, Any]) -> JudgedRequest:
    """Return what is to be evaluated, from the options."""
    from jumar.judging.expensive import JudgedRequest

    return JudgedRequest(
        items=items,
        mode="dual" if mode == "dual" else "expensive",
        judge=judge_config(options, options["cache"]),
        fields=fields,
        patterns=options["patterns"],
        rubric=options["rubric"],
        per_item=options["per_item"],
        output=options["output"],
    )


@contextlib.contextmanager
def judge_progress(*, shown: bool) -> Generator[Callable[[Result, int], None] | None]:
    """Give what is told of each result; a bar on stderr where that is a terminal, else nothing."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    spent = TextColumn("{task.fields[spent]}")
    bar = Progress(BarColumn(), MofNCompleteColumn(), spent, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    with bar:
        task = bar.add_task("", total=None, spent="")
        cost: list[float] = []

        def hear(result: Result, total: int) -> None:
            if result.cost_usd is not None:
                cost.append(result.cost_usd)
            bar.update(task, advance=1, total=total, spent=f"${sum(cost):.4f}" if cost else "")

        yield hear
