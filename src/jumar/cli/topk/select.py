"""``jumar topk select``: how many items of each ranking to keep."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from jumar.cli.common import print_line, print_text, quiet_option
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.cli.topk import (
    as_options,
    limit_options,
    parameters,
    print_note,
    say_unlikely_scale,
    say_unread_variables,
    scale_option,
)
from jumar.core.text import plural
from jumar.errors import ScoreError, StrategyError, UsageError
from jumar.topk.contract import shown
from jumar.topk.selection_file import read_selection
from jumar.topk.settings import SELECTIONS, Selection
from jumar.topk.strategies import DEFAULT_STRATEGY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumar.topk.base import SelectionStrategy
    from jumar.topk.rankings import RankedList
    from jumar.topk.result import SelectionResult
    from jumar.topk.stages import StagedSelection

_EPILOG = """\b
Examples:
  jumar topk select scores.jsonl
  jumar topk select scores.jsonl --strategy adaptive_k --explain
  jumar topk select scores.jsonl --strategy elbow --param drop_threshold=0.2 --json
  jumar topk select scores.jsonl --config topk.toml --explain
  jumar topk select scores.jsonl --config settings.toml --use rule_selection
  jumar topk select scores.jsonl --gate 0.5 --token-budget 4000 --explain

FILE has one JSON object a line: {"query_id": "q1", "scores": [0.92, 0.89, 0.71], "items": [...]}; items are optional,
- is stdin. --json prints one object a line, in the order of the input."""


@click.command("select", epilog=_EPILOG)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE")
@click.option("--strategy", metavar="NAME", help=f"How to choose.  [default: {DEFAULT_STRATEGY}]")
@click.option(
    "--param",
    "params",
    multiple=True,
    type=click.STRING,
    metavar="NAME=VALUE",
    help="A parameter of the strategy, such as alpha=2 or min_score=none; repeatable.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="What `jumar topk tune -o FILE` wrote, or settings with [pipeline.retrieval].",
)
@click.option("--use", type=click.Choice(SELECTIONS), help="Which selection of the settings, where there are several.")
@limit_options
@scale_option
@click.option("--gate", type=float, metavar="S", help="Keep nothing of a ranking whose best score does not reach S.")
@click.option(
    "--token-budget",
    type=click.IntRange(min=0),
    metavar="N",
    help="Keep the best items while their tokens fit into N: a quarter of an item's bytes, or its 'tokens'.",
)
@click.option("--ties", type=click.Choice(["split", "keep"]), default="split", show_default=True, help="Equal scores at the cut.")
@click.option(
    "--on-invalid",
    type=click.Choice(["raise", "drop"]),
    default="raise",
    show_default=True,
    help="Scores that are NaN or infinite.",
)
@click.option("--sort", is_flag=True, help="Sort the scores first; unsorted ones are an error otherwise.")
@click.option("--explain", is_flag=True, help="Say why the cut is where it is.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each ranking, one a line.")
@quiet_option
def select_command(
    file: Path,
    strategy: str | None,
    params: tuple[str, ...],
    config: Path | None,
    use: str | None,
    max_k: int | None,
    min_k: int | None,
    *,
    scale: str | None,
    gate: float | None,
    token_budget: int | None,
    ties: Literal["split", "keep"],
    on_invalid: Literal["raise", "drop"],
    sort: bool,
    explain: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Say how many items of each ranking to keep.

    The default strategy, entropy_normalized, is the best of them where nothing is labelled: some 3 to 12 items, by how even the
    scores are. With 20 to 50 labelled queries, let `jumar topk tune` choose. Nothing is printed unless every ranking can be read
    and decided.
    """
    if explain and as_json:
        raise UsageError("--explain is for people and --json for programs: choose one; metadata has what the rule found")
    from jumar.topk.rankings import read_rankings
    from jumar.topk.result import ScoredItem

    say_unread_variables()
    given = {**parameters(params), **({} if scale is None else {"scale": scale})}
    chosen = _selection(strategy, given, config, use, max_k, min_k)
    for warning in chosen.warnings:
        print_text(f"jumar: warning: {warning}", err=True)
    rankings = read_rankings(file)
    results: list[SelectionResult[int]] = []
    for ranking in rankings:
        items = [ScoredItem(position, score) for position, score in enumerate(ranking.scores)]
        try:
            with as_options():
                selector = _staged(chosen.strategy, gate, token_budget, ranking)
                found = selector.select(
                    items, chosen.max_k, chosen.min_k, assume_sorted=not sort, on_invalid=on_invalid, ties=ties
                )
        except ScoreError as error:
            raise ScoreError(f"{ranking.where}: {error}") from error
        results.append(found)
    say_unlikely_scale((ranking.scores for ranking in rankings), chosen.strategy.scale)
    _say_of_all(results, gate)
    if as_json:
        for ranking, result in zip(rankings, results, strict=True):
            sys.stdout.write(json.dumps(_document(ranking, result), allow_nan=False) + "\n")
    else:
        _print(rankings, results, chosen, explain=explain, quiet=quiet)
    return 0


def _say_of_all(results: Sequence[SelectionResult[int]], gate: float | None) -> None:
    gates = [stage for result in results for stage in result.metadata.get("stages", ()) if stage["name"] == "gate"]
    if gate is not None and gates and not any(stage["kept"] for stage in gates):
        print_note(f"no ranking reaches the gate of {gate:g}, so that nothing is kept: give a lower --gate if there are answers")
    if any(result.metadata.get("calibrated") is False for result in results):
        print_note(
            "conformal has no threshold, so that all up to --max-k are kept: `jumar topk tune` fits one to labelled queries"
        )


def _selection(
    strategy: str | None, given: dict[str, Any], config: Path | None, use: str | None, max_k: int | None, min_k: int | None
) -> Selection:
    """Return the strategy and the limits: options before the configuration, that before the defaults."""
    from jumar.topk.contract import check_limits
    from jumar.topk.strategies import create_selection_strategy

    if config is not None and strategy is not None:
        raise UsageError("--strategy and --config both name a strategy: choose one")
    if config is None and use is not None:
        raise UsageError("--use chooses among the selections of --config FILE: give both")
    known = None if config is None else read_selection(config, use)
    base: Any = (strategy or DEFAULT_STRATEGY) if known is None else known.strategy
    most, least = (20, 1) if known is None else (known.max_k, known.min_k)
    most, least = check_limits(most if max_k is None else max_k, least if min_k is None else min_k)
    warnings = () if known is None else known.warnings
    return Selection(strategy=create_selection_strategy(base, **given), max_k=most, min_k=least, warnings=warnings)


def _staged(
    strategy: SelectionStrategy, gate: float | None, tokens: int | None, ranking: RankedList
) -> SelectionStrategy | StagedSelection:
    """Return the strategy for a ranking, with a gate before it and a budget behind it where they are asked for."""
    from jumar.topk.stages import Gate, StagedSelection, TokenBudget

    if gate is None and tokens is None:
        return strategy
    if tokens is not None and ranking.scores and ranking.items is None:
        raise ScoreError("--token-budget counts the tokens of 'items', and here are none: give one for each score")
    budget = None if tokens is None else TokenBudget(tokens, count=lambda position: _tokens((ranking.items or [])[position]))
    try:
        return StagedSelection(strategy, gate=None if gate is None else Gate(gate, strategy.scale), budget=budget)
    except StrategyError as error:
        raise StrategyError(str(error).replace("min_top is", "--gate is", 1)) from error


def _tokens(item: Any) -> int:
    """Return an item's own ``tokens``, else about how many its text has."""
    from jumar.topk.stages import about_tokens

    if not isinstance(item, dict) or "tokens" not in item:
        return about_tokens(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False))
    count = cast("dict[str, object]", item)["tokens"]
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ScoreError(f"an item has 'tokens': {shown(count)}; give a whole number of 0 or more, or leave it out")
    return count


def _document(ranking: RankedList, result: SelectionResult[int]) -> dict[str, Any]:
    positions = [one.item for one in result.selected]
    document = {
        "query_id": ranking.query_id,
        "kept": len(positions),
        "positions": positions,
        "cutoff_score": result.cutoff_score,
        "method": result.method,
        "metadata": result.metadata,
        "abstained": result.abstained,
    }
    return document if ranking.items is None else {**document, "items": [ranking.items[position] for position in positions]}


def _print(
    rankings: list[RankedList], results: list[SelectionResult[int]], chosen: Selection, *, explain: bool, quiet: bool
) -> None:
    if explain:
        for ranking, result in zip(rankings, results, strict=True):
            print_text(f"{ranking.query_id}\n{result.explain()}\n")
        return
    columns = (Column(name="query", fold=True), Column(name="kept", right=True), Column(name="of", right=True))
    columns = (*columns, Column(name="cutoff", right=True), Column(name=""))
    print_table(
        columns,
        [
            TableRow(
                cells=(
                    str(ranking.query_id),
                    str(len(result.selected)),
                    str(len(ranking.scores)),
                    "—" if result.abstained else f"{result.cutoff_score:.4g}",
                    "abstained" if result.abstained else "",
                )
            )
            for ranking, result in zip(rankings, results, strict=True)
        ],
    )
    if not quiet:
        kept = sum(len(result.selected) for result in results)
        limits = f"max_k {chosen.max_k}, min_k {chosen.min_k}"
        print_line("kept", f"{plural(kept, 'item')} of {plural(len(results), 'ranking')} by {chosen.strategy.name} ({limits})")
