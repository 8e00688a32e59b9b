"""``jumar topk tune``: a strategy and its parameters from labelled queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from jumar.app.topk_file import SELECTIONS, Selection, check_replaceable, render_selection
from jumar.cli.common import json_option, print_json, print_text, quiet_option
from jumar.cli.tabular import Column, Row, print_table
from jumar.cli.topk.common import check_output, labelled_options, read_labelled, runs_argument
from jumar.cli.topk.figures import estimated, figure, interval
from jumar.errors import StoreWriteError, UsageError
from jumar.text import escape

if TYPE_CHECKING:
    from jumar.topk.base import SelectionStrategy
    from jumar.topk.tuning import Tuning
    from jumar.topk.types import Scale

__all__ = ["tune_command"]

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
    default="f1",
    show_default=True,
    help="What to make as large as possible.",
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
    metric: str,
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

    The figures are of held-out queries: everything is chosen again in each fold of a cross-validation. A fixed number is taken
    unless another strategy is better by more than chance.
    """
    check_output(output)
    if table is not None:
        if output is None:
            raise UsageError("--table says how -o FILE is written: give both, or neither")
        check_replaceable(output, table)
    given = read_labelled("tune", runs, max_k=max_k, min_k=min_k, scale=scale, qrels=qrels, grade=grade)
    target = _Target(output, table, given.max_k, given.min_k)
    if recall is not None:
        from jumar.topk.calibrate import calibrate_conformal

        fitted = calibrate_conformal(given.queries, recall=recall, scale=given.scale)
        target.write(fitted, {"queries": fitted.queries}, f"fitted on {runs}, for a mean recall of {recall:g}")
        if as_json:
            limits = {"max_k": given.max_k, "min_k": given.min_k}
            print_json({"strategy": fitted.name, "params": fitted.params(), **limits, "output": target.shown()})
        else:
            print_text(f"keep {_described(fitted)}: a recall of {recall:g} on queries of the same kind, where max_k lets it")
            _say_where(output, quiet=quiet)
        return 0
    from jumar.topk.tuning import tune

    found = tune(given.queries, metric, given.max_k, given.min_k, scale=given.scale, seed=seed)
    target.write(found.strategy, _evidence(found), f"tuned on {runs}\n{_verdict(found)}")
    if as_json:
        print_json({**_document(found), "output": target.shown()})
    else:
        _print(found, quiet=quiet)
        _say_where(output, quiet=quiet)
    return 0


class _Target(NamedTuple):
    """Where the answer is written, and as what."""

    output: Path | None
    table: str | None
    max_k: int
    min_k: int

    def write(self, strategy: SelectionStrategy, evidence: dict[str, Any], comment: str) -> None:
        if self.output is None:
            return
        from jumar.files import replace_file

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
        print_text(f"wrote {name}; use it with: jumar topk select FILE --config {name}")


def _described(strategy: SelectionStrategy) -> str:
    values = (f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in strategy.params().items())
    return f"{strategy.name}({', '.join(values)})"


def _evidence(found: Tuning) -> dict[str, Any]:
    """Return the figures for the file: what a person asks who finds it a year later."""
    document = _document(found)
    names = ("metric", "queries", "quality", "quality_interval", "fixed_k", "gain_over_fixed_k", "gain_over_fixed_k_interval")
    return {name: document[name] for name in (*names, "fixed_k_as_good", "best_default")}


def _document(found: Tuning) -> dict[str, Any]:
    return {
        "strategy": found.strategy.name,
        "params": found.params,
        "metric": found.metric,
        "max_k": found.max_k,
        "min_k": found.min_k,
        "scale": found.scale,
        "queries": found.queries,
        "in_scope": found.in_scope,
        "folds": found.folds,
        "repeats": found.repeats,
        **estimated("quality", found.quality),
        "fixed_k": found.fixed_k.strategy.params()["k"],
        **estimated("fixed_k_quality", found.fixed_k.quality),
        **estimated("gain_over_fixed_k", found.gain),
        "fixed_k_as_good": found.fixed_k_as_good,
        "best_default": found.default.strategy.name,
        **estimated("best_default_quality", found.default.quality),
        **estimated("gain_over_best_default", found.over_default),
        **estimated("oracle", found.oracle),
        "alternatives": [
            {"strategy": one.strategy.name, "params": one.strategy.params(), **estimated("quality", one.quality)}
            for one in found.alternatives
        ],
    }


def _verdict(found: Tuning) -> str:
    fixed = found.fixed_k.strategy.params()["k"]
    if found.strategy.name == "fixed_k":
        return f"a fixed number, {fixed}, is as good as anything that looks at the scores, as far as {found.queries} queries tell"
    change = f"{figure(found.gain, '{:+.3f}')} ({interval(found.gain, '{:+.3f}')})"
    if found.fixed_k_as_good:
        return f"{found.strategy.name} over a fixed number, {fixed}: {change}, which may be chance: the fixed number is as good"
    return f"{found.strategy.name} over a fixed number, {fixed}: {change}"


def _print(found: Tuning, *, quiet: bool) -> None:
    print_text(f"keep {_described(found.strategy)}")
    print_text(_verdict(found))
    if quiet:
        return
    columns = (
        Column(name=""),
        Column(name=found.metric, right=True),
        Column(name="95 %", right=True),
        Column(name="", fold=True),
    )
    lines = [
        ("chosen so, held out", found.quality, f"{found.folds} folds, {found.repeats}×"),
        ("best fixed number, held out", found.fixed_k.quality, ""),
        ("best default, in hindsight", found.default.quality, found.default.strategy.name),
        ("best number for each query", found.oracle, "nobody reaches it"),
    ]
    print_table(columns, [Row(cells=(name, figure(one), interval(one), remark)) for name, one, remark in lines])
    print_text("each strategy tuned, held out:")
    print_table(
        columns,
        [
            Row(cells=(one.strategy.name, figure(one.quality), interval(one.quality), _described(one.strategy)))
            for one in found.alternatives
        ],
    )
