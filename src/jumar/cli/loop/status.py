"""``jumar status``: where a loop is, in one document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from jumar.cli.common import (
    find_loop,
    json_option,
    listed_root,
    loop_argument,
    observe,
    print_json,
    print_text,
    quiet_option,
    room,
    root_option,
)
from jumar.cli.terminal.tabular import Column, Row, print_table
from jumar.core.rendering.figures import count, dollars, duration
from jumar.core.text import escape, plural, points, wrapped
from jumar.errors import JumarError
from jumar.loop.report.judged import decided_words, learned_words
from jumar.loop.report.spending import spent_money, spent_tokens
from jumar.loop.store.layout import loop_folders
from jumar.model.attempts import Spend
from jumar.model.budget.limits import Budget

__all__ = ["status_command"]

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
@root_option
@json_option
@quiet_option
def status_command(loop: str | None, root: Path, *, as_json: bool, quiet: bool) -> int:
    """Say where a loop is: what runs since when, the best so far, what is spent and left, what went wrong.

    Without LOOP: all loops of the root. Takes no lock and writes nothing. --quiet prints the state alone.
    """
    if loop is not None:
        document = observe(find_loop(root, loop)).look().document
        if as_json:
            print_json(document)
        elif quiet:
            print_text(document["state"])
        else:
            print_text("\n".join(part for line in _lines(document) for part in wrapped(line, room(), 10)))
        return 0
    root = listed_root(root)
    documents = [_of(directory) for directory in _directories(root)]
    if as_json:
        print_json({"root": str(root.absolute()), "loops": documents})
    elif quiet:
        for document in documents:
            print_text(f"{escape(document['loop_id'])} {document['state']}")
    elif not documents:
        print_text(f"no loops in {escape(str(root))}")
    else:
        print_table(_COLUMNS, [_row(document) for document in documents])
    return 0


def _directories(root: Path) -> list[Path]:
    return [folder for folder in loop_folders(root) if (folder / "loop.json").exists()]


def _of(directory: Path) -> dict[str, Any]:
    try:
        return dict(observe(directory).look().document)
    except JumarError as error:
        return {"loop_id": directory.name, "directory": str(directory), "state": "damaged", "problems": [str(error)]}


def _row(document: Mapping[str, Any]) -> Row:
    spend, chosen = document.get("spend", {}), document.get("chosen")
    cells = (
        document["loop_id"],
        _state(document),
        _now(document) or (document.get("stop_reason") or "").replace("_", " ") or "; ".join(document["problems"]),
        "" if "iterations" not in document else str(document["iterations"]),
        _score(document.get("best")),
        "—" if chosen is None else str(chosen["iteration"]),
        duration(spend.get("seconds")),
        _about(spend),
    )
    return Row(cells=cells, style=_STYLES.get(document["state"], ""))


def _about(spend: Mapping[str, Any]) -> str:
    """Return the cost, with ``~`` where a part of it was not reported."""
    charged = spend.get("known_cost_usd", 0) + spend.get("assumed_cost_usd", 0)
    if spend.get("cost_usd") is not None or not charged:
        return dollars(spend.get("cost_usd"), places=2)
    return f"~{dollars(charged, places=2)}"


def _state(document: Mapping[str, Any]) -> str:
    """Return the state for people: whoever ended it, a loop that can be resumed is interrupted."""
    state = str(document["state"])
    return "interrupted" if state == "dead" else state


def _score(best: dict[str, Any] | None) -> str:
    return "—" if best is None else f"{points(best['quality_score'])} (it {best['iteration']})"


def _best(document: Mapping[str, Any]) -> list[str]:
    best, chosen = document["best"], document["chosen"]
    if chosen is None:
        return [f"best      {_score(best)}"]
    notes = [f"it {chosen['iteration']}"]
    notes += [f"mean of {chosen['readings']} readings"] if chosen["readings"] > 1 else []
    notes += [f"selected by {escape(chosen['by'])}"] if chosen["by"] else []
    score = "—" if chosen["quality_score"] is None else points(chosen["quality_score"])
    lines = [f"selected  {score} ({', '.join(notes)})"]
    if best is not None and best["iteration"] != chosen["iteration"]:
        why = f", {chosen['highest']}" if chosen["highest"] else ""
        lines.append(f"highest   {_score(best)}{why}")
    return lines


def _now(document: Mapping[str, Any]) -> str:
    if document.get("phase") is None:
        return ""
    dead = document["state"] == "dead"
    since = ", cut off" if dead else "" if document["seconds"] is None else f" for {duration(document['seconds'])}"
    which = "" if document["iteration"] is None else f" iteration {document['iteration']}"
    return f"{document['phase']}{which}{since}"


def _lines(document: Mapping[str, Any]) -> list[str]:
    spend, left, last = document["spend"], document["budget_left"], document["last"]
    detail = f" ({document['detail']})" if document["detail"] else ""
    lines = [f"loop      {document['loop_id']}", f"state     {_state(document)}{detail}"]
    if now := _now(document):
        lines.append(f"{'last step' if document['state'] == 'dead' else 'now      '} {now}")
    lines.append(f"done      {plural(document['iterations'], 'iteration')}{_left(left['passes'], str)}")
    lines += _best(document)
    if last is not None:
        shown = "—" if last["quality_score"] is None else points(last["quality_score"])
        lines.append(f"last      {shown} (it {last['iteration']}, {last['status'].replace('_', ' ')})")
    if document.get("learned") is not None:
        lines.append(f"learned   {escape(learned_words(document['learned']))}")
    if document.get("auto") is not None:
        lines.append(f"auto      {escape(decided_words(document['auto']))}")
    lines.append(f"time      {duration(spend['seconds'])}{_left(left['seconds'], duration)}")
    total, limits = Spend(**spend), Budget.from_recorded(document["budget"])
    lines.append(f"tokens    {spent_tokens(total, limits)}{_left(left['tokens'], count)}")
    lines.append(f"cost      {spent_money(total, limits).removeprefix('cost ')}{_left(left['cost_usd'], _money)}")
    if document["failures"]:
        shown = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in document["failures"].items())
        lines.append(f"failures  {shown}")
    return [*lines, *(f"note      {problem}" for problem in document["problems"])]


def _money(value: float | None) -> str:
    return dollars(value, places=2)


def _left(value: Any, show: Callable[[Any], str]) -> str:
    return "" if value is None else f", {show(value)} left"
