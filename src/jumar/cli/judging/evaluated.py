"""What ``jumar evaluate`` prints for people: single items where they are few, then the figures, a label before each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from jumar.app.evaluate import FEW, CheapEvaluation
from jumar.cli.common import print_line, print_text, shown_path
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.core.text import cut, escape, number, plural, short_dollars, signed
from jumar.judging.component_health import check_expensive_evaluator
from jumar.judging.expensive import JudgedEvaluation, dual_view
from jumar.judging.models import CheapModeResult, ExpensiveModeResult
from jumar.judging.report import render_dashboard
from jumar.judging.tally import BIN_WIDTH

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
        print_line("unscored", kinds)
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
