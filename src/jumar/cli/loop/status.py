"""``jumar status``: where a loop is, in one document."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from jumar.cli.common import (
    find_loop,
    listed_root,
    loop_argument,
    observe,
    print_json,
    print_text,
    room,
    standard_options,
)
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.core.given import Given
from jumar.core.rendering.figures import UNKNOWN, count, dollars, duration
from jumar.core.text import escape, plural, points, wrapped
from jumar.errors import JumarError
from jumar.loop.report.judged import decided_document, decided_words, learned_document, learned_words
from jumar.loop.report.spending import failures_text, spent_money, spent_tokens
from jumar.loop.report.status import Chosen, LoopStatus
from jumar.loop.store.layout import loop_folders
from jumar.model import IterationRecord
from jumar.model.attempts import Spend
from jumar.model.budget import budget_left

_EPILOG = """\b
Examples:
  jumar status                    every loop of the root
  jumar status readme-polish
  jumar status readme-polish --json | jq .budget_left.cost_usd"""

_STYLES = {
    "running": "cyan",
    "waiting": "cyan",
    "finished": "green",
    "interrupted": "yellow",
    "dead": "red",
    "damaged": "bold red",
}
_COLUMNS = (
    Column(name="loop"),
    Column(name="state"),
    Column(name="now", fold=True),
    Column(name="iterations", right=True),
    Column(name="best", right=True),
    Column(name="selected", right=True),
    Column(name="time", right=True),
    Column(name="cost", right=True),
)


@click.command("status", epilog=_EPILOG)
@loop_argument
@standard_options
def status_command(loop: str | None, root: Path, *, as_json: bool, quiet: bool) -> int:
    """Say where a loop is: what runs since when, the best so far, what is spent and left, what went wrong.

    Without LOOP: all loops of the root. Takes no lock and writes nothing. --quiet prints the state alone.
    """
    if loop is not None:
        status = observe(find_loop(root, loop)).look()
        if as_json:
            print_json(status.to_json())
        elif quiet:
            print_text(status.state)
        else:
            print_text("\n".join(part for line in _lines(status) for part in wrapped(line, room(), 10)))
        return 0
    root = listed_root(root)
    loops = [_look_at(folder) for folder in loop_folders(root) if (folder / "loop.json").exists()]
    if as_json:
        print_json({"root": str(root.absolute()), "loops": [status.to_json() for status in loops]})
    elif quiet:
        for status in loops:
            print_text(f"{escape(status.loop_id)} {status.state}")
    elif not loops:
        print_text(f"no loops in {escape(str(root))}")
    else:
        print_table(_COLUMNS, [_row(status) for status in loops])
    return 0


def _look_at(directory: Path) -> LoopStatus:
    try:
        return observe(directory).look()
    except JumarError as error:
        return LoopStatus(loop_id=directory.name, directory=str(directory), state="damaged", problems=(str(error),))


def _row(status: LoopStatus) -> TableRow:
    known, spend, stop = status.state != "damaged", status.spend, status.stop
    now = status.now_text or (stop.reason.replace("_", " ") if stop is not None else "; ".join(status.problems))
    cells = (
        status.loop_id,
        status.state_text,
        now,
        str(status.done) if known else "",
        _score(status.best),
        UNKNOWN if status.chosen is None else str(status.chosen.record.iteration_number),
        duration((spend.seconds or None) if known else None),
        _about(spend) if known else UNKNOWN,
    )
    return TableRow(cells=cells, style=_STYLES.get(status.state, ""))


def _about(spend: Spend) -> str:
    """Return the cost, with ``~`` where a part of it was not reported."""
    if spend.cost_usd is not None or not spend.charged_cost_usd:
        return _money(spend.cost_usd)
    return f"~{_money(spend.charged_cost_usd)}"


def _score(best: IterationRecord | None) -> str:
    return UNKNOWN if best is None else f"{points(best.quality_score or 0)} (it {best.iteration_number})"


def _best(best: IterationRecord | None, chosen: Chosen | None) -> list[str]:
    if chosen is None:
        return [f"best      {_score(best)}"]
    number = chosen.record.iteration_number
    score = UNKNOWN if chosen.score is None else points(chosen.score)
    lines = [f"selected  {score} ({', '.join([f'it {number}', *chosen.notes])})"]
    if best is not None and best.iteration_number != number:
        word = "best" if isinstance(best.quality_score, Given) else "highest"
        lines.append(f"{word:<10}{_score(best)}{f', {chosen.highest}' if chosen.highest else ''}")
    return lines


def _lines(status: LoopStatus) -> list[str]:
    spend, budget, last = status.spend, status.budget, status.last
    left = budget_left(spend, budget)
    detail = f" ({status.detail})" if status.detail else ""
    lines = [f"loop      {status.loop_id}", f"state     {status.state_text}{detail}"]
    if now := status.now_text:
        lines.append(f"{'last step' if status.state == 'dead' else 'now      '} {now}")
    lines.append(f"done      {plural(status.done, 'iteration')}{_left(status.passes_left, str)}")
    lines += _best(status.best, status.chosen)
    if last is not None:
        shown = UNKNOWN if last.quality_score is None else points(last.quality_score)
        lines.append(f"last      {shown} (it {last.iteration_number}, {last.status.replace('_', ' ')})")
    if (learned := learned_document(last)) is not None:
        lines.append(f"learned   {escape(learned_words(learned))}")
    if (decided := decided_document(last)) is not None:
        lines.append(f"auto      {escape(decided_words(decided))}")
    lines.append(f"time      {duration(spend.seconds or None)}{_left(left['seconds'], duration)}")
    lines.append(f"tokens    {spent_tokens(spend, budget)}{_left(left['tokens'], count)}")
    lines.append(f"cost      {spent_money(spend, budget).removeprefix('cost ')}{_left(left['cost_usd'], _money)}")
    if status.failures:
        lines.append(f"failures  {failures_text(status.failures)}")
    return [*lines, *(f"note      {problem}" for problem in status.problems)]


def _money(value: float | None) -> str:
    return dollars(value, places=2)


def _left(value: Any, show: Callable[[Any], str]) -> str:
    return "" if value is None else f", {show(value)} left"
