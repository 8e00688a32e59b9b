"""``jumar list``: the loops below a root."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from jumar.app.doctor.machine import likely_check
from jumar.cli.common import listed_root, print_json, print_text, standard_options
from jumar.cli.terminal.tabular import Column, TableRow, print_table
from jumar.core.text import escape, points
from jumar.errors import JumarError, NotFoundError
from jumar.loop.ranking.choose import leader
from jumar.loop.report.observer import LoopState, loop_state
from jumar.loop.store.in_force import config_now, criteria_of, standing
from jumar.loop.store.layout import loop_folders, runs_directory
from jumar.loop.store.legacy_import import is_foreign
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSummary:
    """One loop in the list. Scores are 0–100; ``iterations`` counts them, the start state not included."""

    loop_id: str
    directory: Path
    state: LoopState
    iterations: int = 0
    best_iteration: int | None = None
    best_score: float | None = None
    chosen: int | None = None
    created_at: str | None = None
    updated_at: str | None = None
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        age = seconds_since(self.updated_at)
        return {
            "loop_id": self.loop_id,
            **self.state.to_json(),
            "iterations": self.iterations,
            "best_iteration": self.best_iteration,
            "best_score": self.best_score,
            "chosen": self.chosen,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "age_seconds": None if age is None else round(age, 3),
            "directory": str(self.directory),
            "problem": self.problem,
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
            print_text(escape(loop.loop_id))
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
            if loop.problem is not None:
                print_text(f"damaged: {escape(loop.problem)}")
    return 0


def summaries(root: Path) -> list[LoopSummary]:
    """Return every loop below ``root`` by name; what cannot be read is among them as damaged."""
    return [summary for folder in loop_folders(root) if (summary := _summary(folder)) is not None]


def _summary(directory: Path) -> LoopSummary | None:
    unread = LoopSummary(loop_id=directory.name, directory=directory, state=LoopState(name="damaged"))
    if is_foreign(directory):  # opening it would import it: not what looking at a list should do
        return replace(unread, state=LoopState(name="foreign"))
    if not (directory / "loop.json").exists():
        if not (directory / "iterations").is_dir():
            return None
        return replace(unread, problem=f"{directory / 'loop.json'} is missing, but iterations are there")
    try:
        return _read(LoopStore.open(directory), directory)
    except NotFoundError:
        return None
    except (JumarError, OSError) as error:
        return replace(unread, problem=str(error))


def _read(store: LoopStore, directory: Path) -> LoopSummary:
    views = store.views()
    best = leader(views, criteria_of(config_now(store)))
    times = [store.created_at, *(decision.at for decision in store.decisions())]
    if views:
        times.append(store.record(views[-1].number).timestamp)
    return LoopSummary(
        loop_id=directory.name,  # what the other commands find it by, also when it was copied under another name
        directory=directory,
        state=loop_state(store),
        iterations=sum(view.number > 0 for view in views),
        best_iteration=best and best.number,
        best_score=best and best.score,
        chosen=standing(store).iteration,
        created_at=store.created_at,
        updated_at=max(times),
    )


def _row(loop: LoopSummary) -> TableRow:
    unknown = loop.state.name in {"damaged", "foreign"}
    best = "—" if loop.best_score is None else f"{points(loop.best_score)} (it {loop.best_iteration})"
    cells = (
        loop.loop_id,
        "—" if unknown else str(loop.iterations),
        best,
        "—" if loop.chosen is None else str(loop.chosen),
        loop.state.text,
        age_text(seconds_since(loop.updated_at)),
    )
    return TableRow(cells=cells, style=_STYLES.get(loop.state.name, ""))


def seconds_since(timestamp: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds since an ISO 8601 time, at least 0; None when it is none."""
    if timestamp is None:
        return None
    try:
        then = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, ((now or datetime.now(UTC)) - then).total_seconds())


def age_text(seconds: float | None) -> str:
    """Return ``<1m``, ``5m``, ``3h``, ``12d``; ``—`` when unknown."""
    if seconds is None:
        return "—"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "<1m"
