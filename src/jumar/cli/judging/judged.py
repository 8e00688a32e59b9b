"""``jumar evaluate`` with an expensive judge: its options, its progress, what it prints."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from jumar.app.evaluate import FEW, CheapEvaluation
from jumar.cli.common import DecimalRange, print_json, print_line, print_text, shown_path, warned
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.core.text import cut, escape, number, plural, short_dollars, signed
from jumar.errors import NothingEvaluatedError
from jumar.judging.asking.settings import DEFAULTS, MAX_TOKENS, JudgeConfig
from jumar.judging.asking.summary import Result
from jumar.judging.component_health import BIN_WIDTH, check_expensive_evaluator
from jumar.judging.expensive import JudgedEvaluation, JudgedRequest, dual_view
from jumar.judging.models import CheapModeResult, ExpensiveModeResult
from jumar.judging.report.text import render_dashboard

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
        from jumar.cli.judging.judged import show_judged

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


_SHOWN: Final = 10  # patterns of a scorecard
_TEXT: Final = 60  # columns of an item's text that tell people which one it is


def _print_items(names: Sequence[str], rows: Iterable[tuple[str, Sequence[str], str]]) -> None:
    """Print a table of items: id, a cell for each of ``names``, and the beginning of its text."""
    columns = [Column(name="item"), *(Column(name=name, right=True) for name in names), Column(name="text", fold=True)]
    print_table(
        columns, [TableRow(cells=(name, *cells, escape(cut(" ".join(text.split()), _TEXT)))) for name, cells, text in rows]
    )


def show_cheap(found: CheapEvaluation, per_item: Path | None) -> None:
    """Print what the cheap judge said; ``per_item`` is the file that each item was written to."""
    tally = found.tally
    left = tally.items - tally.scored
    mean = "—" if tally.mean is None else f"{tally.mean:.2f}"
    spread = f" · standard deviation {tally.variance**0.5:.2f}" if tally.scored > 1 else ""
    if found.few:
        _print_items(("cheap",), ((one.id, (number(one.score),), one.text) for one in found.few))
    print_line("cheap", f"{mean} · {plural(tally.scored, 'item')} scored{f', {left:,} not' if left else ''}{spread}")
    columns = (Column(name=""), Column(name="items", right=True), Column(name="share", right=True), Column(name=""))

    def table(name: str, rows: list[tuple[str, int]], whole: int) -> None:
        if rows:
            heads = (Column(name=name, fold=True), *columns[1:])
            print_table(
                heads, [TableRow(cells=(label, f"{n:,}", f"{n / whole:.0%}", "█" * round(20 * n / whole))) for label, n in rows]
            )

    bounds = [1.0 + BIN_WIDTH * index for index in range(len(tally.bins))]
    if tally.scored:
        table("score", [(f"{low:.1f}–{low + BIN_WIDTH:.1f}", n) for low, n in zip(bounds, tally.bins, strict=True)], tally.scored)
    if found.card is not None:
        _print_points(found)
    table("reason", tally.most_frequent(tally.reasons), tally.scored)
    fired: list[tuple[str, int]] = [(found.pattern_ids[index], n) for index, n in tally.most_frequent(tally.fired)]
    if found.pattern_ids:
        print_line(
            "patterns",
            f"{len(fired):,} of {len(found.pattern_ids):,} fired, {found.active_patterns:,} are active; "
            f"on {tally.with_pattern:,} of {plural(tally.scored, 'item')}",
        )
    if found.card is None:
        table("pattern", fired[:10], tally.scored)
    table("not scored", tally.most_frequent(tally.unscored), tally.items)
    health = found.health()
    if health.flags:
        print_line("health", ", ".join(health.flags))
    for path in (per_item, found.directory):
        if path is not None:
            print_line("wrote", shown_path(path))


def _print_points(found: CheapEvaluation) -> None:
    """Say what makes the scores of a learned set: where it begins, and which patterns move it most."""
    card, moved = found.card, found.moved()
    if card is None or not found.tally.scored:
        return
    print_line("base", f"{card.base:.2f}, to which each pattern that fires adds its points")
    names = ("items", "share", "points", "mean")
    columns = (Column(name="what moves the score", fold=True), *(Column(name=name, right=True) for name in names))
    rows = [
        TableRow(
            cells=(
                *(escape(one.description) or one.id, f"{one.items:,}", f"{one.items / found.tally.scored:.0%}"),
                *(f"{one.points:+.2f}", f"{one.mean:.3f}"),
            )
        )
        for one in moved[:_SHOWN]
    ]
    if rows:
        print_table(columns, rows)
    if moved[_SHOWN:]:
        print_line("", f"and {plural(len(moved) - _SHOWN, 'other pattern')}, each by {moved[_SHOWN].mean:.3f} or less on average")


def show_judged(found: JudgedEvaluation) -> None:
    """Print what the expensive judge said, in dual mode both."""
    if len(found.items) <= FEW:
        __print_items(found)
    if found.dual is not None:
        _print_dual(found)
    else:
        _print_expensive(found)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.expensive.unscored_kinds.items())
    if kinds:
        other_scale = (
            "; --judge-scale LO,HI names a judge's own scale" if "out_of_range" in found.expensive.unscored_kinds else ""
        )
        print_line("unscored", f"{kinds}{other_scale}")
    if found.dual is None:
        _print_state(found)


def __print_items(found: JudgedEvaluation) -> None:
    """Print every item with what each judge gave it; in dual mode the difference beside them."""
    judged = {result.story_id: result.gestalt for result in found.expensive.results if isinstance(result, ExpensiveModeResult)}
    if found.dual is None:
        _print_items(("judge",), ((item.id, (number(judged.get(item.id)),), item.text) for item in found.items))
        return
    cheap = {one.story_id: one.gestalt for one in found.dual.cheap if isinstance(one, CheapModeResult)}
    rows: list[tuple[str, tuple[str, ...], str]] = []
    for item in found.items:
        one, other = judged.get(item.id), cheap.get(item.id)
        gap = None if one is None or other is None else one - other
        rows.append((item.id, (number(one), number(other), signed(gap)), item.text))
    _print_items(("judge", "cheap", "gap"), rows)


def _print_expensive(found: JudgedEvaluation) -> None:
    expensive = found.expensive
    left = f", {expensive.unscored:,} not" if expensive.unscored else ""
    cost = "cost not reported" if expensive.cost_usd is None else short_dollars(expensive.cost_usd)
    cost += f", {short_dollars(expensive.assumed_cost_usd)} of it estimated" if expensive.assumed_cost_usd else ""
    lost = f" ({expensive.lost_calls:,} lost)" if expensive.lost_calls else ""
    asked = f"{plural(expensive.calls, 'call')}{lost}, {expensive.cached:,} cached"
    scored = f"{plural(expensive.scored, 'item')} scored{left}"
    print_line("judge", f"{number(expensive.gestalt_avg)} · {scored} · {asked} · {cost}")


def _print_state(found: JudgedEvaluation) -> None:
    """Say what the dashboard says in dual mode: why it stopped, and what is odd about the judge."""
    if found.expensive.stopped:
        print_line("stopped", found.expensive.stopped)
    flags = check_expensive_evaluator(found.expensive.results).flags
    if flags:
        print_line("health", ", ".join(flags))


def _print_dual(found: JudgedEvaluation) -> None:
    assert found.dual is not None  # noqa: S101 - the caller looked
    iteration = 1 if found.directory is None else int(found.directory.name.rpartition("_")[2])
    view = dual_view(iteration, found.dual, found.history)
    print_text(render_dashboard(view).rstrip("\n"))
