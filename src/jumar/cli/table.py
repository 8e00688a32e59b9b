"""The commands: where each one lives and what it does in one line.

``jumar --help`` and ``jumar --version`` are answered from here without importing the command-line library; a test keeps the help
text equal to what that library would print.
"""

from __future__ import annotations

__all__ = ["COMMANDS", "GLOBAL_OPTIONS", "render_help"]

COMMANDS: dict[str, tuple[str, str]] = {
    "apply": ("jumar.cli.apply:apply_command", "Put the standing choice into the work directory, or take it back."),
    "cleanup": ("jumar.cli.cleanup:cleanup_command", "Delete snapshots that are no longer needed; records stay."),
    "completion": ("jumar.cli.completion:completion_command", "Print the completion script for a shell."),
    "demo": ("jumar.cli.demo:demo_command", "Watch a real loop condense a text, offline, in seconds."),
    "diff": ("jumar.cli.diff:diff_command", "Compare the artifacts of two iterations."),
    "doctor": ("jumar.cli.doctor:doctor_command", "Check this machine and configuration before a run."),
    "init": ("jumar.cli.init:init_command", "Write a commented jumar.toml to start from."),
    "list": ("jumar.cli.list:list_command", "List the loops."),
    "report": ("jumar.cli.report:report_command", "Print a loop's report as markdown, JSON, CSV, HTML or JUnit."),
    "run": ("jumar.cli.run:run_command", "Run a loop, or go on with one that was interrupted."),
    "select": ("jumar.cli.select:select_command", "Show what would be chosen, or choose yourself."),
    "show": ("jumar.cli.show:show_command", "Show a loop's iterations."),
    "verify": ("jumar.cli.verify:verify_command", "Re-hash everything that a loop stored."),
}

GLOBAL_OPTIONS: tuple[tuple[str, str], ...] = (
    ("--version", "Show the version and exit."),
    ("-h, --help", "Show this message and exit."),
)

_INTRO = "Run an agent again and again, score every pass, and keep the best one instead of the last."

_CLOSING = (
    "`jumar COMMAND --help` shows options and examples. The environment sets options",
    "too: JUMAR_SELECT_MODE is `jumar select --mode`, JUMAR_ROOT is --root.",
)


def render_help() -> str:
    """Return the text of ``jumar --help``."""
    lines = ["Usage: jumar [OPTIONS] COMMAND [ARGS]...", "", f"  {_INTRO}", "", "Options:"]
    lines += _rows(GLOBAL_OPTIONS)
    lines += ["", "Commands:"]
    lines += _rows(tuple((name, text) for name, (_, text) in COMMANDS.items()))
    lines += ["", *_CLOSING]
    return "\n".join(lines) + "\n"


def _rows(rows: tuple[tuple[str, str], ...]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"  {name:<{width}}  {text}" for name, text in rows]
