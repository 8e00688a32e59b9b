"""``jumar list``: the loops below a root."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click

from jumar.app.machine import likely_check
from jumar.cli.common import listed_root, print_json, print_text, standard_options
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.core.rendering.figures import UNKNOWN
from jumar.core.text import escape, points
from jumar.errors import JumarError, NotFoundError
from jumar.loop.ranking.choose import leader
from jumar.loop.report.observer import LoopState, loop_state
from jumar.loop.report.status import elapsed
from jumar.loop.store.creation import is_foreign
from jumar.loop.store.in_force import config_now, criteria_of, standing
from jumar.loop.store.layout import loop_folders, runs_directory
from jumar.loop.store.loop_store import LoopStore

_EPILOG = """\b
Examples:
  jumar list
  jumar list --quiet              only the names, one a line
  jumar list --json --root /srv/loops"""

_COLUMNS = (
    Column(name="loop"),
    Column(name="iterations", right=True),
    Column(name="best", right=True),
    Column(name="selected", right=True),
    Column(name="state", fold=True),
    Column(name="age", right=True),
)
_STYLES = {"running": "cyan", "finished": "green", "interrupted": "yellow", "damaged": "bold red"}


class LoopSummary(NamedTuple):
    """A loop below a root: where it is, its state, and what a list says of it besides; unknown is None."""

    directory: Path
    state: LoopState
    facts: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return it with its age. Scores are 0-100; ``iterations`` counts them, the start state not included."""
        age = elapsed(self.facts["updated_at"], datetime.now(UTC))
        rounded = {"age_seconds": None if age is None else round(age, 3)}
        where, problem = {"directory": str(self.directory)}, {"problem": self.facts["problem"]}
        facts = {name: value for name, value in self.facts.items() if name != "problem"}
        return {"loop_id": self.directory.name, **self.state.to_json(), **facts, **rounded, **where, **problem}


_UNREAD = {
    "iterations": 0,
    **dict.fromkeys(("best_iteration", "best_score", "chosen", "created_at", "updated_at", "problem")),
}


@click.command("list", epilog=_EPILOG)
@standard_options
def list_command(root: Path, *, as_json: bool, quiet: bool) -> int:
    """List the loops, each with its best score and how it ended.

    A loop that cannot be read is listed as damaged.
    """
    root = listed_root(root)
    loops = summaries(root)
    if as_json:
        print_json({"root": str(root.absolute()), "loops": [loop.to_json() for loop in loops]})
    elif quiet:
        for loop in loops:
            print_text(escape(loop.directory.name))
    elif not loops:
        if runs_directory(root).is_dir():
            print_text("there are runs of cases here: jumar cases list")
        print_text(f"no loops in {escape(str(root))} yet; these make one:")
        line = f"jumar run --agent claude -p 'make the tests pass' --check {likely_check(Path())}"
        print_text(f"  {'jumar demo':<{len(line)}}  watch one, offline")
        print_text(f"  {'jumar init --template document && jumar run':<{len(line)}}  one with a configuration")
        print_text(f"  {line}  one without")
    else:
        print_table(_COLUMNS, [_row(loop) for loop in loops])
        for loop in loops:
            if loop.facts["problem"] is not None:
                print_text(f"damaged: {escape(loop.facts['problem'])}")
    return 0


def summaries(root: Path) -> list[LoopSummary]:
    """Return every loop below ``root`` by name; what cannot be read is among them as damaged."""
    return [summary for folder in loop_folders(root) if (summary := _summary(folder)) is not None]


def _summary(directory: Path) -> LoopSummary | None:
    if is_foreign(directory):  # opening it would import it: not what looking at a list should do
        return LoopSummary(directory, LoopState(name="foreign"), _UNREAD)
    if not (directory / "loop.json").exists():
        if not (directory / "iterations").is_dir():
            return None
        return _damaged(directory, f"{directory / 'loop.json'} is missing, but iterations are there")
    try:
        return _read(LoopStore.open(directory), directory)
    except NotFoundError:
        return None
    except (JumarError, OSError) as error:
        return _damaged(directory, str(error))


def _damaged(directory: Path, problem: str) -> LoopSummary:
    return LoopSummary(directory, LoopState(name="damaged"), _UNREAD | {"problem": problem})


def _read(store: LoopStore, directory: Path) -> LoopSummary:
    views = store.views()
    best = leader(views, criteria_of(config_now(store)))
    times = [store.created_at, *(decision.at for decision in store.decisions())]
    if views:
        times.append(store.record(views[-1].number).timestamp)
    facts = {
        "iterations": sum(view.number > 0 for view in views),
        "best_iteration": best and best.number,
        "best_score": best and best.score,
        "chosen": standing(store).iteration,
        "created_at": store.created_at,
        "updated_at": max(times),
    }
    return LoopSummary(directory, loop_state(store), _UNREAD | facts)


def _row(loop: LoopSummary) -> TableRow:
    facts, unknown = loop.facts, loop.state.name in {"damaged", "foreign"}
    cells = (
        loop.directory.name,  # what the other commands find it by, also when it was copied under another name
        UNKNOWN if unknown else str(facts["iterations"]),
        UNKNOWN if facts["best_score"] is None else f"{points(facts['best_score'])} (it {facts['best_iteration']})",
        UNKNOWN if facts["chosen"] is None else str(facts["chosen"]),
        loop.state.text,
        age_text(elapsed(facts["updated_at"], datetime.now(UTC))),
    )
    return TableRow(cells=cells, style=_STYLES.get(loop.state.name, ""))


def age_text(seconds: float | None) -> str:
    """Return ``<1m``, ``5m``, ``3h``, ``12d``; ``—`` when unknown."""
    if seconds is None:
        return UNKNOWN
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "<1m"
