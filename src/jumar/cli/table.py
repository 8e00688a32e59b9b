"""The commands: where each one lives and what it does in one line.

``jumar --help``, ``jumar cases --help`` and ``jumar --version`` are answered from here without importing the command-line
library; a test keeps the help text equal to what that library would print.
"""

from __future__ import annotations

Commands = dict[str, tuple[str, str]]

COMMANDS: Commands = {
    "agree": ("jumar.cli.judging.agree:agree_command", "Say how far raters, people or models, agree on the same items."),
    "apply": ("jumar.cli.loop.apply:apply_command", "Put the selected iteration into the working directory, or take it back."),
    "cleanup": ("jumar.cli.loop.cleanup:cleanup_command", "Delete snapshots that are no longer needed; records stay."),
    "completion": ("jumar.cli.completion:completion_command", "Print the completion script for a shell."),
    "dashboard": ("jumar.cli.dashboard:dashboard_command", "Look at all runs as a local page; choose, apply and undo."),
    "demo": ("jumar.cli.demo:demo_command", "Watch a real loop condense a text, offline, in seconds."),
    "diff": ("jumar.cli.loop.diff:diff_command", "Compare the artifacts of two iterations."),
    "doctor": ("jumar.cli.doctor:doctor_command", "Check this machine and configuration before a run."),
    "evaluate": ("jumar.cli.judging.evaluate:evaluate_command", "Score items: stories, answers, summaries, anything."),
    "export": ("jumar.cli.loop.export:export_command", "Write a loop as a table for pandas or Polars."),
    "files": ("jumar.cli.loop.files:files_command", "List an iteration's files, or write them to a directory."),
    "hook": ("jumar.cli.mcp:hook_command", "Answer a hook of Claude Code; the plugin calls it."),
    "init": ("jumar.cli.init:init_command", "Write a commented jumar.toml to start from."),
    "list": ("jumar.cli.loop.list:list_command", "List the loops."),
    "logs": ("jumar.cli.loop.logs:logs_command", "Print what the programs of a step printed."),
    "mcp": ("jumar.cli.mcp:mcp_command", "Let a coding agent record, choose and apply: an MCP server."),
    "prove": ("jumar.cli.learn.prove:prove_command", "Prove that a learned set tracks its judge, or verify a proof."),
    "repair": ("jumar.cli.loop.repair:repair_command", "Set right what is damaged in a loop, or set it aside."),
    "report": ("jumar.cli.loop.report:report_command", "Print a loop's report as markdown, JSON, CSV, HTML or JUnit."),
    "rm": ("jumar.cli.loop.rm:rm_command", "Remove a whole loop."),
    "run": ("jumar.cli.loop.run:run_command", "Run a loop, or resume one that was interrupted."),
    "select": ("jumar.cli.loop.select:select_command", "Show what would be selected, or choose yourself."),
    "show": ("jumar.cli.loop.show:show_command", "Show a loop's iterations."),
    "status": ("jumar.cli.loop.status:status_command", "Say where a loop is: running since when, spent, left."),
    "stop": ("jumar.cli.loop.stop:stop_command", "Ask a running loop to end after its step."),
    "verify": ("jumar.cli.loop.verify:verify_command", "Re-hash everything that a loop stored."),
    "watch": ("jumar.cli.loop.watch:watch_command", "Show a loop as it runs."),
}


class Group:
    """Commands below a command: ``summary`` is its line in the list above, ``intro`` the first sentence of its own help.

    ``rooted`` says that they work below ``--root``. ``default`` is the command that is meant where none of them is named.
    """

    __slots__ = ("commands", "default", "intro", "rooted", "summary")

    def __init__(self, summary: str, intro: str, commands: Commands, *, rooted: bool = True, default: str | None = None) -> None:
        self.summary, self.intro, self.commands, self.rooted, self.default = summary, intro, commands, rooted, default


GROUPS: dict[str, Group] = {
    "cases": Group(
        "Refine case by case, and carry the best of each forward.",
        "Refine what an agent works with case by case; the best of each case goes into the next one.",
        {
            "list": ("jumar.cli.cases.list:list_command", "List the runs of cases."),
            "replay": ("jumar.cli.cases.replay:replay_command", "Say what would have been selected, from recorded judge files."),
            "report": ("jumar.cli.cases.report:report_command", "Print a run's report as markdown, HTML or JSON."),
            "run": ("jumar.cli.cases.run:run_command", "Run all cases in order, or resume an interrupted run."),
            "show": ("jumar.cli.cases.show:show_command", "Show a run's cases and their iterations."),
            "verify": ("jumar.cli.cases.verify:verify_command", "Re-hash everything that a run stored."),
        },
    ),
    "import": Group(
        "Read a loop that was run without jumar: a log, a table, git.",
        "Read a loop that was run without jumar, and show what would have been kept.",
        {
            "autoresearch": ("jumar.cli.imports:autoresearch_command", "Read the log of an autoresearch loop."),
            "git": ("jumar.cli.imports:git_command", "Check every commit of a branch as an iteration."),
            "table": ("jumar.cli.imports:table_command", "Read any table with a row an experiment."),
        },
    ),
    "learn": Group(
        "Learn a cheap judge from an expensive one, and prove it.",
        "Learn a cheap judge from what an expensive one says: `jumar learn ITEMS --judge SPEC -o DIR`.",
        {
            "report": ("jumar.cli.learn.status:report_command", "Print a learning run's report as markdown, HTML or JSON."),
            "run": ("jumar.cli.learn.run:run_command", "Learn, or resume learning; the name `run` may be left out."),
            "status": ("jumar.cli.learn.status:status_command", "Say where a learning run is, and what it found so far."),
        },
        rooted=False,
        default="run",
    ),
    "patterns": Group(
        "Migrate, check and version what the cheap judge knows.",
        "Look after what the cheap judge knows: patterns that fire on texts.",
        {
            "check": ("jumar.cli.patterns:check_command", "Say whether a patterns file is valid."),
            "diff": ("jumar.cli.patterns:diff_command", "Say what differs between two versions."),
            "list": ("jumar.cli.patterns:list_command", "List the patterns of a file."),
            "log": ("jumar.cli.patterns:log_command", "List every recorded save of a patterns file."),
            "migrate": (
                "jumar.cli.patterns:migrate_command",
                "Turn narrative patterns of format 1 into ones that can fire.",
            ),
            "rollback": ("jumar.cli.patterns:rollback_command", "Save a recorded version again."),
            "show": ("jumar.cli.patterns:show_command", "Show everything about one pattern."),
            "stats": ("jumar.cli.patterns:stats_command", "Count the patterns; say what fires on given items."),
        },
        rooted=False,
    ),
    "topk": Group(
        "Choose how many retrieved items to keep.",
        "Choose how many retrieved items to keep, from their scores.",
        {
            "compare": ("jumar.cli.topk.compare:compare_command", "Compare every strategy on labelled queries."),
            "drift": ("jumar.cli.topk.drift:drift_command", "Say whether logged selections changed, and since when."),
            "select": ("jumar.cli.topk.select:select_command", "Say how many items of each ranking to keep."),
            "tune": ("jumar.cli.topk.tune:tune_command", "Find strategy and parameters from labelled queries."),
        },
        rooted=False,
    ),
}

GLOBAL_OPTIONS: tuple[tuple[str, str], ...] = (
    ("--version", "Show the version and exit."),
    ("-h, --help", "Show this message and exit."),
)

_INTRO = "Run an agent again and again, score every iteration, and keep the best one instead of the last."

_CLOSING = (
    "`jumar COMMAND --help` shows options and examples. The environment sets options",
    "too: JUMAR_SELECT_MODE is `jumar select --mode`, JUMAR_ROOT is --root.",
)


def every_command() -> list[str]:
    """Return the commands as they are typed, ``show`` and ``cases show``, sorted."""
    inside = (f"{group} {name}" for group, found in GROUPS.items() for name in found.commands)
    return sorted([*COMMANDS, *inside])


def render_help(group: str | None = None) -> str:
    """Return the text of ``jumar --help``, or of ``jumar GROUP --help``."""
    if group is None:
        rows = sorted([*((name, text) for name, (_, text) in COMMANDS.items()), *((n, g.summary) for n, g in GROUPS.items())])
        return _render("jumar", _INTRO, GLOBAL_OPTIONS, rows, _CLOSING)
    found = GROUPS[group]
    first = next(iter(found.commands))
    variable = f"JUMAR_{group}_{first}_JSON".upper()
    closing = (
        f"`jumar {group} COMMAND --help` shows options and examples. The environment sets options",
        f"too: {variable} is `jumar {group} {first} --json`{', JUMAR_ROOT is --root' * found.rooted}.",
    )
    rows = [(name, text) for name, (_, text) in found.commands.items()]
    return _render(f"jumar {group}", found.intro, GLOBAL_OPTIONS[1:], rows, closing)


def _render(
    name: str, intro: str, options: tuple[tuple[str, str], ...], commands: list[tuple[str, str]], closing: tuple[str, ...]
) -> str:
    lines = [f"Usage: {name} [OPTIONS] COMMAND [ARGS]...", "", f"  {intro}", "", "Options:", *_rows(options)]
    lines += ["", "Commands:", *_rows(commands), "", *closing]
    return "\n".join(lines) + "\n"


def _rows(rows: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"  {name:<{width}}  {text}" for name, text in rows]
