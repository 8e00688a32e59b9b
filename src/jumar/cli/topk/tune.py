"""``jumar topk tune``: a strategy and its parameters from labelled queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from jumar.cli.common import json_option, print_json, print_line, print_text, quiet_option
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.cli.topk import (
    Labelled,
    check_output,
    document,
    estimated,
    labelled_options,
    read_labelled,
    runs_argument,
)
from jumar.core.text import escape
from jumar.errors import StoreWriteError, UsageError
from jumar.topk.report.cuts import figure, interval
from jumar.topk.selection_file import check_replaceable, render_selection
from jumar.topk.settings import SELECTIONS, Selection

if TYPE_CHECKING:
    from jumar.topk.base import SelectionStrategy
    from jumar.topk.result import Scale
    from jumar.topk.tuning.metrics import Estimate
    from jumar.topk.tuning.tune import Tuning

_EPILOG = """\b
Examples:
  jumar topk tune runs.jsonl -o topk.toml
  jumar topk tune runs.jsonl --max-k 10 --min-k 0 --json
  jumar topk tune bm25.run --qrels judged.qrels --scale bm25 -o topk.toml
  jumar topk tune runs.jsonl -o settings.toml --table rule_selection
  jumar topk tune runs.jsonl --recall 0.9 -o topk.toml     a promised recall, not the best F1

RUNS as for `jumar topk compare`; `jumar topk select --config topk.toml` uses what was found."""


@click.command("tune", epilog=_EPILOG)
@runs_argument
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the configuration here."
)
@click.option(
    "--table",
    type=click.Choice(SELECTIONS),
    help="Write it as this table of [pipeline.retrieval], for a file of settings.",
)
@click.option(
    "--metric",
    type=click.Choice(["f1", "precision", "recall", "ndcg"]),
    help="What to make as large as possible.  [default: f1]",
)
@click.option(
    "--recall", type=float, metavar="SHARE", help="Fit `conformal` to this recall of what was retrieved, instead of searching."
)
@labelled_options("Of the folds and the resamples.")
@json_option
@quiet_option
def tune_command(
    runs: Path,
    output: Path | None,
    table: str | None,
    metric: str | None,
    recall: float | None,
    max_k: int | None,
    min_k: int | None,
    scale: Scale | None,
    *,
    qrels: Path | None,
    grade: int,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> int:
    """Find the strategy and parameters that suit labelled queries best.

    The figures are of held-out queries: everything is selected again in each fold of a cross-validation. A fixed number is taken
    unless another strategy is ahead of it by more than one standard error, in folds inside of these; the interval says whether
    that may be chance. A query with nothing relevant counts 1 when nothing is kept for it.
    """
    if recall is not None and metric is not None:
        raise UsageError("--recall fits a threshold and --metric searches for the best: choose one")
    check_output(output, runs, qrels)
    if table is not None and output is None:
        raise UsageError("--table says how -o FILE is written: give both, or neither")
    if output is not None:
        check_replaceable(output, table)
    given = read_labelled("tune", runs, max_k=max_k, min_k=min_k, scale=scale, qrels=qrels, grade=grade)
    target = _Target(output, table, given.max_k, given.min_k)
    if recall is not None:
        _promise(given, recall, target, runs, as_json=as_json, quiet=quiet)
        return 0
    from jumar.topk.tuning.tune import tune

    tuning = tune(given.queries, metric or "f1", given.max_k, given.min_k, scale=given.scale, seed=seed)
    target.write(tuning.strategy, _evidence(tuning), f"tuned on {runs}\n{_verdict(tuning)}{_beside(tuning)}")
    if as_json:
        print_json({**_document(tuning), "output": target.shown()})
    else:
        _print(tuning, quiet=quiet)
        _say_where(output, quiet=quiet)
    return 0


def _promise(given: Labelled, recall: float, target: _Target, runs: Path, *, as_json: bool, quiet: bool) -> None:
    """Fit ``conformal`` to a recall, write it, and say what it comes to on these queries with ``max_k`` in the way."""
    from jumar.topk.tuning.calibrate import calibrate_conformal, realised_recall

    fitted = calibrate_conformal(given.queries, recall=recall, scale=given.scale)
    reached = realised_recall(fitted, given.queries, max_k=given.max_k, min_k=given.min_k)
    cut = {"realised_recall": reached.recall, "truncated": reached.truncated, "max_k_needed": reached.max_k}
    evidence = {"queries": reached.queries, **cut}
    said = f"on these {reached.queries:,} queries: a recall of {reached.recall:.3f} of what was retrieved"
    if reached.truncated:
        said += f"; max_k {given.max_k} cuts {reached.truncated:,} of them off"
    short = reached.recall < recall - 1e-9
    if short:
        said += f". The promise does not hold so: --max-k {reached.max_k} is enough for it"
    target.write(fitted, evidence, f"fitted on {runs}, for a mean recall of {recall:g}\n{said}")
    if as_json:
        limits = {"max_k": given.max_k, "min_k": given.min_k}
        print_json({"strategy": fitted.name, "params": fitted.params(), **limits, **evidence, "output": target.shown()})
        return
    print_line("keep", f"{_described(fitted)}: a recall of {recall:g} on queries of the same kind, where max_k lets it")
    if not quiet or short:
        print_line("reached", said)
    _say_where(target.output, quiet=quiet)


class _Target(NamedTuple):
    """Where the answer is written, and as what."""

    output: Path | None
    table: str | None
    max_k: int
    min_k: int

    def write(self, strategy: SelectionStrategy, evidence: dict[str, Any], comment: str) -> None:
        if self.output is None:
            return
        from jumar.core.files import replace_file

        selection = Selection(strategy=strategy, max_k=self.max_k, min_k=self.min_k)
        text = render_selection(selection, evidence, f"jumar topk tune: {comment}", table=self.table)
        try:
            replace_file(self.output, text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            reason = escape(f"{self.output} could not be written: {error.strerror or error}")
            raise StoreWriteError(f"{reason}; choose another file with -o") from error

    def shown(self) -> str | None:
        return None if self.output is None else str(self.output.absolute())


def _say_where(output: Path | None, *, quiet: bool) -> None:
    if output is not None and not quiet:
        name = escape(str(output))
        print_line("wrote", name)
        print_line("next", f"jumar topk select FILE --config {name}")


def _described(strategy: SelectionStrategy, *, all_of_it: bool = True) -> str:
    """Return the strategy with its parameters as ``--param`` takes them; without ``all_of_it`` only those that are no default."""
    params = strategy.params()
    if not all_of_it:
        from jumar.topk.tuning.tune import default

        usual = default(strategy.name, strategy.scale)
        known = {} if usual is None else usual.params()
        params = {name: value for name, value in params.items() if name == "k" or (name != "scale" and value != known.get(name))}
    values = (f"{name}={_typed(value)}" for name, value in params.items())
    return f"{strategy.name}({', '.join(values)})" if all_of_it else ", ".join(values)


def _typed(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _evidence(tuning: Tuning) -> dict[str, Any]:
    """Return the figures for the file: what a person asks who finds it a year later."""
    figures = _document(tuning)
    names = ["metric", "queries", "in_scope", "quality", "quality_interval"]
    if tuning.in_scope < tuning.queries:
        names += ["in_scope_quality", "in_scope_quality_interval", "wrongly_answered"]
    names += ["fixed_k", "gain_over_fixed_k", "gain_over_fixed_k_interval", "fixed_k_as_good", "best_default"]
    return {name: figures[name] for name in names}


_SHARED = ("metric", "max_k", "min_k", "scale", "queries", "in_scope", "folds", "repeats")


def _document(tuning: Tuning) -> dict[str, Any]:
    return {
        "strategy": tuning.strategy.name,
        "params": tuning.params,
        **document(tuning, *_SHARED, "quality", "in_scope_quality", "wrongly_answered"),
        "fixed_k": tuning.fixed_k.strategy.params()["k"],
        **estimated("fixed_k_quality", tuning.fixed_k.quality),
        **estimated("gain_over_fixed_k", tuning.gain),
        "fixed_k_as_good": tuning.fixed_k_as_good,
        "best_default": tuning.default.strategy.name,
        **estimated("best_default_quality", tuning.default.quality),
        **estimated("gain_over_best_default", tuning.over_default),
        **estimated("oracle", tuning.oracle),
        "alternatives": [
            {
                "strategy": tuned.strategy.name,
                "params": tuned.strategy.params(),
                **document(tuned, "quality", "in_scope_quality"),
            }
            for tuned in tuning.alternatives
        ],
    }


def _verdict(tuning: Tuning) -> str:
    fixed = tuning.fixed_k.strategy.params()["k"]
    if tuning.strategy.name == "fixed_k":
        return (
            f"a fixed number, {fixed}, is as good as anything that looks at the scores, as far as {tuning.queries} queries tell"
        )
    change = f"{figure(tuning.gain, '{:+.3f}')} ({interval(tuning.gain, '{:+.3f}')})"
    if tuning.fixed_k_as_good:
        return f"{tuning.strategy.name} over a fixed number, {fixed}: {change}, which may be chance"
    return f"{tuning.strategy.name} over a fixed number, {fixed}: {change}"


def _beside(tuning: Tuning) -> str:
    """Return the fixed number as TOML, below the reason to take it or not; empty where there is no choice to be made."""
    if tuning.strategy.name == "fixed_k" or not tuning.fixed_k_as_good:
        return ""
    return (
        f"\nUse {tuning.strategy.name}: it is ahead by more than one standard error. If you would rather have a constant, "
        "nothing in these queries\nspeaks against the fixed number; label more of them to know. In place of the above:\n"
        f'\n    strategy = "fixed_k"\n    k = {tuning.fixed_k.strategy.params()["k"]}'
    )


def _print(tuning: Tuning, *, quiet: bool) -> None:
    print_line("keep", _described(tuning.strategy))
    print_line("gain", _verdict(tuning))
    if quiet:
        return
    outside = tuning.queries - tuning.in_scope
    title = "score" if outside else tuning.metric
    columns = [Column(name=""), Column(name=title, right=True), Column(name="95 %", right=True)]
    columns += [Column(name=tuning.metric, right=True)] if outside else []
    columns += [Column(name="", fold=True)]

    def row(name: str, score: Estimate, inside: Estimate, remark: str) -> TableRow:
        return TableRow(cells=(name, figure(score), interval(score), *([figure(inside)] if outside else []), remark))

    fixed, easiest = tuning.fixed_k, tuning.default
    print_table(
        columns,
        [
            row("chosen so, held out", tuning.quality, tuning.in_scope_quality, f"{tuning.folds} folds, {tuning.repeats}×"),
            row("best fixed number, held out", fixed.quality, fixed.in_scope_quality, ""),
            row("best default, in hindsight", easiest.quality, easiest.in_scope_quality, easiest.strategy.name),
            row("best number for each query", tuning.oracle, tuning.in_scope_oracle, "nobody reaches it"),
        ],
    )
    print_text("")
    others = [(alternative, _described(alternative.strategy, all_of_it=False)) for alternative in tuning.alternatives]
    columns[0] = Column(name="each one tuned, held out")
    print_table(columns, [row(one.strategy.name, one.quality, one.in_scope_quality, what) for one, what in others])
    if outside:
        _print_scope(tuning, outside)
    if beside := _beside(tuning):
        print_text(beside.lstrip("\n").replace("In place of the above", "In place of what is kept"))


def _print_scope(tuning: Tuning, outside: int) -> None:
    share = figure(tuning.wrongly_answered, "{:.1%}")
    print_line(
        "scope",
        f"{outside:,} of {tuning.queries:,} queries are out of scope, and {share} of these got something. {tuning.metric} is of "
        f"the others, as in `jumar topk compare`; score is of all, and is what was tuned: {tuning.metric} in scope, out of "
        "scope 1 for an empty answer and else 0",
    )
    if tuning.min_k:
        print_line("note", f"with min_k {tuning.min_k} every query gets something: --min-k 0 allows an empty answer")
