"""``jumar topk compare``: every strategy on labelled queries."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jumar.cli.common import json_option, print_json, print_line, print_text, quiet_option
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.cli.topk import document, estimated, labelled_options, read_labelled, runs_argument
from jumar.core.text import cell_width
from jumar.topk.report.cuts import comparison_cells, comparison_heads, figure, interval

if TYPE_CHECKING:
    from jumar.topk.result import Scale
    from jumar.topk.tuning.metrics import Comparison

_EPILOG = """\b
Examples:
  jumar topk compare runs.jsonl
  jumar topk compare runs.jsonl --max-k 10 --min-k 0 --json
  jumar topk compare bm25.run --qrels judged.qrels --scale bm25
  jumar topk compare runs.csv --strategy elbow --strategy fixed_k

RUNS is JSON Lines ({"query_id", "scores": [...], "relevant": [0, 1, ...], "relevant_total"}), a TREC run with --qrels, or a
.csv or .tsv with the columns query_id, score, relevant."""

_FIGURES = ("f1", "precision", "recall", "ndcg", "mean_k", "skill", "oracle_gap", "wrongly_empty", "wrongly_answered")


@click.command("compare", epilog=_EPILOG)
@runs_argument
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    type=click.STRING,
    metavar="NAME",
    help="Only this one; repeatable.  [default: all]",
)
@labelled_options("Of the resamples behind the intervals.")
@json_option
@quiet_option
def compare_command(
    runs: Path,
    strategies: tuple[str, ...],
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
    """Compare every strategy, with its defaults, on labelled queries.

    Skill is F1 minus F1 with the same numbers dealt out among the queries: what choosing for each query adds. The gap is what
    the best number for each query, known in hindsight, would add to F1.
    """
    given = read_labelled("compare", runs, max_k=max_k, min_k=min_k, scale=scale, qrels=qrels, grade=grade)
    from jumar.topk.tuning.metrics import compare

    comparison = compare(given.queries, strategies or None, max_k=given.max_k, min_k=given.min_k, scale=given.scale, seed=seed)
    if as_json:
        print_json(_document(comparison))
    else:
        _print(comparison, quiet=quiet)
    return 0


def _document(comparison: Comparison) -> dict[str, Any]:
    oracle = estimated("oracle_f1", comparison.oracle_f1)
    rows = [
        {"strategy": row.strategy, "params": dict(row.params), **oracle, **document(row, *_FIGURES)} for row in comparison.rows
    ]
    shared = document(comparison, "queries", "in_scope", "max_k", "min_k", "scale", "oracle_f1")
    return {**shared, "rows": rows, "refused": dict(comparison.refused)}


def _print(comparison: Comparison, *, quiet: bool) -> None:
    names = comparison_heads(comparison)
    columns = [Column(name=name, right=bool(place), fold=name.startswith("wrongly")) for place, name in enumerate(names)]
    _print_parts(columns, [comparison_cells(comparison, row) for row in comparison.rows])
    if quiet:
        return
    outside = comparison.queries - comparison.in_scope
    beside = f", {outside:,} of them out of scope" if outside else ""
    print_line("queries", f"{comparison.queries:,}{beside}; max_k {comparison.max_k}, min_k {comparison.min_k}")
    if outside:
        print_line("", "F1, precision, recall, nDCG, skill and gap are of the others, `wrongly answered` of those")
    if outside and comparison.min_k:
        print_line("note", f"with min_k {comparison.min_k} every query gets something: --min-k 0 allows an empty answer")
    if comparison.oracle_f1.value is not None:
        best = f"F1 {figure(comparison.oracle_f1)} {interval(comparison.oracle_f1)}"
        print_line("oracle", f"{best}: the best number for each query, in hindsight")
    for name, reason in comparison.refused.items():
        print_line("without", f"{name}: {reason}")


def _print_parts(columns: list[Column], rows: list[tuple[str, ...]]) -> None:
    """Print the table, in two parts where the window is too narrow for it: how good, and how it compares."""
    cut = len(columns)
    narrow = sys.stdout.isatty() or os.environ.get("COLUMNS")  # in a pipe only a width that somebody asked for counts
    if narrow and shutil.get_terminal_size().columns < _width(columns, rows):
        cut = [column.name for column in columns].index("skill")
    print_table(columns[:cut], [TableRow(cells=row[:cut]) for row in rows])
    if cut < len(columns):
        print_text("")
        print_table([columns[0], *columns[cut:]], [TableRow(cells=(row[0], *row[cut:])) for row in rows])


def _width(columns: list[Column], rows: list[tuple[str, ...]]) -> int:
    names = tuple(column.name for column in columns)
    return sum(2 + max(map(cell_width, cells)) for cells in zip(names, *rows, strict=True))
