"""``jumar`` alone on a terminal: where the newest loop is, and what to type next."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from jumar.app.machine import likely_check
from jumar.cli.common import DEFAULT_ROOT, command_for, file_of, observe, places, print_text, resume_for, root_above, shown_path
from jumar.core.text import escape, plural, points
from jumar.errors import JumarError
from jumar.loop.store.layout import runs_directory
from jumar.loop.store.running import newest_loop

if TYPE_CHECKING:
    from jumar.loop.report.status import LoopStatus
    from jumar.loop.store.loop_reader import LoopReader

Commands = list[tuple[str, str]]
"""Commands with what each does."""

_WIDEST = 40  # of the commands that have what they do beside them


def show_home() -> int:
    """Print the newest loop in two lines and the commands that fit its state; without a loop, three ways to begin."""
    root = Path(os.environ.get("JUMAR_ROOT") or DEFAULT_ROOT)
    directory = newest_loop(places(root))
    cases = _runs_of_cases(root)
    if directory is None and cases:
        print_text(f"There is no loop here yet, but {plural(len(cases), 'run')} of cases; the newest: {escape(cases[-1].name)}\n")
        newest = shlex.quote(shown_path(cases[-1]))
        _print_commands([(f"jumar cases report {newest}", "what came of it"), ("jumar --help", "all commands")])
        return 0
    above = root_above(root) if directory is None else None
    if above is not None:
        print_text("There is no loop here, but in a directory above:\n")
        _print_commands([(f"jumar show --root {shlex.quote(escape(above))}", "all iterations of its newest loop")])
        return 0
    if directory is None:
        print_text("There is no loop here yet. Three ways to begin:\n")
        init = ("jumar init", "write a commented jumar.toml to start from")
        last = ("jumar run", "run the loop of jumar.toml") if Path("jumar.toml").is_file() else init
        here = f"jumar run --agent claude -p 'make the tests pass' --check {likely_check(Path())}"
        _print_commands([("jumar demo", "watch a loop, offline, in seconds"), (here, "on your repository"), last])
        return 0
    name = escape(directory.name)
    try:
        lines, commands = _of(directory)
    except (JumarError, OSError) as error:
        lines, commands = [f"damaged: {error}"], [(command_for("verify", directory), "list what is damaged")]
    print_text("\n".join([f"{name}   {lines[0]}", *(f"{' ' * len(name)}   {line}" for line in lines[1:])]) + "\n")
    _print_commands([*commands, ("jumar --help", "all commands")])
    return 0


def _runs_of_cases(root: Path) -> list[Path]:
    """Return the runs of ``jumar cases``, the newest last."""
    try:
        runs = [entry for entry in runs_directory(root).iterdir() if entry.name.startswith("run_") and entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(runs, key=lambda run: run.stat().st_mtime_ns)


def _print_commands(commands: Commands) -> None:
    """Print each command with what it does beside it; below it where it is long or the terminal has no room."""
    room = shutil.get_terminal_size().columns
    width = max((len(command) for command, _ in commands if len(command) <= _WIDEST), default=0)
    for command, what in commands:
        beside = len(command) <= width and width + len(what) + 5 <= room
        print_text(f"  {command:<{width}}   {what}" if beside else f"  {command}\n      {what}")


def _of(directory: Path) -> tuple[list[str], Commands]:
    observer = observe(directory)
    status = observer.look()
    return [_state(status), _best(status)], _next(observer.reader, status)


def _state(status: LoopStatus) -> str:
    state = {"tracked": "recorded by a program"}.get(status.state, status.state_text)
    if status.live and status.running:
        state += f": {status.now_text}"
    elif status.stop is not None:
        state += f": {status.stop.reason.replace('_', ' ')}"
    return f"{state} · {plural(status.done, 'iteration')}"


def _best(view: LoopStatus) -> str:
    from jumar.loop.report.rows import tests_of
    from jumar.loop.report.spending import spent_money

    cost = spent_money(view.settled_spend, view.budget)
    record = view.best if view.chosen is None else view.chosen.record
    if record is None:
        return f"no score yet · {cost}"
    score = record.quality_score if view.chosen is None else view.chosen.score
    shown = "—" if score is None else points(score)
    word = "best" if view.chosen is None else "selected"
    counted = tests_of(record)
    tests = [f"{counted} tests"] if counted else []
    return " · ".join([f"{word} {shown} at iteration {record.iteration_number}", *tests, cost])


def _next(reader: LoopReader, view: LoopStatus) -> Commands:
    directory = reader.paths.directory
    if view.live:
        return [
            (command_for("watch", directory), "see it run"),
            (command_for("logs", directory, "-f"), "follow what its programs print"),
            (command_for("stop", directory), "end it after its step"),
        ]
    commands: Commands = []
    if view.resumable:
        commands.append((resume_for(reader, file_of(reader)), "resume it"))
    if not view.views:
        return commands
    commands.append((command_for("show", directory), "all iterations"))
    if view.chosen is not None and view.chosen.record.iteration_number:
        commands.append((command_for("diff", directory), "what changed since the start"))
    commands.append((command_for("report", directory, "--open"), "the whole story as a page"))
    return [*commands, *_applying(reader, view)]


def _applying(reader: LoopReader, view: LoopStatus) -> Commands:
    from jumar.loop.decisions.apply import way_back
    from jumar.loop.store.in_force import works_in_place

    back, undo = way_back(reader), command_for("apply", reader.paths.directory, "--undo")
    if back == "apply":
        return [(undo, "take back what was applied")]
    chosen = None if view.chosen is None else view.chosen.record.iteration_number
    if chosen is None:
        return []
    if works_in_place(reader) and chosen == view.views[-1].number:
        return [(undo, "put the start back")] if back == "start" else []
    return [(command_for("apply", reader.paths.directory), f"put iteration {chosen} into the working directory")]
