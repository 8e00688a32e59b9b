"""``jumar run``: the loop."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import click

from jumar.cli.common import DEFAULT_ROOT, colour_wanted, json_option, print_json, print_text, quiet_option
from jumar.cli.display import Display, LiveDisplay, PlainDisplay, SilentDisplay
from jumar.cli.numbers import DecimalRange
from jumar.loop.control import StopSwitch
from jumar.loop.outcome import LoopOutcome

__all__ = ["RunCommand", "choose_display", "run_command", "run_loop", "signals_handled"]

_EPILOG = """\b
Examples:
  jumar run -n 5 --check 'pytest -q' -- agent -p 'make the tests pass'
  jumar run                       the loop of ./jumar.toml, or on with it when it was interrupted
  jumar run --new -n 20           the same configuration as a new loop

Ctrl-C once finishes the running step and stops; twice stops now. Both can be resumed.
Exit codes: 0 gate met, 1 failure, 2 usage, 10 below the threshold, 11 limit, 12 nothing was evaluated, 13 locked,
14 store damaged, 130/143 interrupted."""


class RunCommand(click.Command):
    """Takes everything after ``--`` as the generator's command, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            cut = args.index("--")
            ctx.meta["jumar.command"] = args[cut + 1 :]
            args = args[:cut]
            if not ctx.meta["jumar.command"]:
                raise click.UsageError("after -- there is no command", ctx)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if "jumar.command" in ctx.meta or not any(not word.startswith("-") for word in args):
                raise
            hint = "if these are your agent's words, put -- before its command: jumar run -n 5 --check 'CMD' -- AGENT ..."
            raise click.UsageError(f"{error.format_message()} {hint}", ctx) from None

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


@click.command("run", cls=RunCommand, epilog=_EPILOG)
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("-n", "--max-iterations", type=click.IntRange(min=1), help="Passes at most (default 10).")
@click.option("--max-cost", type=DecimalRange(min=0), metavar="USD", help="Dollars at most, over all resumes.")
@click.option("--max-tokens", type=click.IntRange(min=0), metavar="N", help="Tokens at most, over all resumes.")
@click.option("--max-seconds", type=DecimalRange(min=0, min_open=True), metavar="S", help="Time of all passes at most.")
@click.option("--estimate", is_flag=True, help="Say how many passes the budget buys; runs and pays nothing.")
@click.option("--check", "checks", multiple=True, metavar="CMD", help="A shell command that must pass; may be repeated.")
@click.option("--include", multiple=True, metavar="GLOB", help="What to keep of the directory, in gitignore syntax; repeatable.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="What to leave out; repeatable.")
@click.option("--objective", help="What the generator is told to do (JUMAR_PROMPT_FILE).")
@click.option("--threshold", type=DecimalRange(0, 100), help="The gate: the score that counts as done.")
@click.option(
    "--mode",
    type=click.Choice(["highest_quality", "highest_quality_verified", "most_recent_above_threshold"]),
    help="How to choose.",
)
@click.option("--isolation", type=click.Choice(["none", "copy", "worktree", "sandbox"]), help="Work in place, or elsewhere.")
@click.option("--candidates", type=click.IntRange(1, 64), help="Passes made side by side; the best goes on.")
@click.option("--workers", type=click.IntRange(min=1), help="How many of them run at once.")
@click.option("--protect", multiple=True, metavar="GLOB", help="What checks need as it was at the start; repeatable.")
@click.option("--continue-from", type=click.Choice(["previous", "best"]), help="What the next pass starts from.")
@click.option("--timeout", type=DecimalRange(min=0, min_open=True), metavar="SECONDS", help="For one run of the generator.")
@click.option("--env", "environment", multiple=True, metavar="NAME", help="Let the programs see this variable; repeatable.")
@click.option("--id", "loop_id", help="The loop's name.")
@click.option("--new", is_flag=True, help="Start a new loop even if there is one to go on with.")
@click.option(
    "--resume",
    type=click.Choice(["auto", "never", "require"]),
    default="auto",
    show_default=True,
    help="Go on with a loop that is there, or insist that there is none, or one.",
)
@click.option("--no-input", is_flag=True, help="Promise that nobody is there: plain lines, also on a terminal.")
@click.option("--accept-changes", is_flag=True, help="Go on although the configuration has changed.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="JUMAR_ROOT",
    help="Folder that holds the loops (default: .jumar beside the configuration).",
)
@json_option
@quiet_option
@click.pass_context
def run_command(ctx: click.Context, **given: Any) -> int:
    """Run a loop, or go on with one that was interrupted.

    CONFIG is a jumar.toml (default: the one in this directory). Without one, give the generator after --.
    """
    command: Sequence[str] | None = ctx.meta.get("jumar.command")
    if given["new"] and given["resume"] == "require":
        raise click.UsageError("--new starts a loop and --resume require goes on with one; give one of them", ctx)
    from jumar.app.prepare import RunRequest
    from jumar.app.request import command_line_config, configured, given_limits

    if any(not check.strip() for check in given["checks"]):
        raise click.UsageError("--check is empty: give it a shell command", ctx)
    if command is not None:
        if given["config"] is not None:
            raise click.UsageError("give a configuration file or a command after --, not both", ctx)
        if Path("jumar.toml").is_file() and not given["quiet"]:
            print_text("note      jumar.toml is not used, because a command is given", err=True)
        path, base = None, Path.cwd()
        config = command_line_config(command, given)
    else:
        config, path = configured(given)
        base = path.parent
    request = RunRequest(
        config=config,
        base=base,
        root=given["root"] or base / DEFAULT_ROOT,
        path=path,
        named=command is None or given["loop_id"] is not None,
        exact=given["loop_id"] is not None,
        new=given["new"],
        accept_changes=given["accept_changes"],
        resume=given["resume"],
        limits=given_limits(given, path),
    )
    if given["estimate"]:
        from jumar.cli.estimate import show_estimate

        return show_estimate(request, as_json=given["as_json"])
    return run_loop(request, as_json=given["as_json"], quiet=given["quiet"], live=not given["no_input"])


def run_loop(request: Any, *, as_json: bool, quiet: bool, live: bool = True) -> int:
    """Run the loop of ``request`` with a display and signal handling; return the exit code."""
    from jumar.app.on_stop import tell_of_end
    from jumar.app.prepare import prepare

    def ended(outcome: LoopOutcome | BaseException) -> None:
        failure = tell_of_end(request, loop, outcome)
        if failure is not None and not quiet:
            print_text(f"note      {failure}; its output is in {loop.store.paths.directory / 'logs' / 'on_stop.log'}", err=True)

    switch = StopSwitch()
    display = choose_display(as_json=as_json, quiet=quiet, live=live)
    loop = prepare(request, switch=switch, listener=display.hear)
    try:
        with signals_handled(switch, quiet=quiet), display:
            outcome = loop.run()
            display.end(outcome)
    except BaseException as error:
        ended(error)
        raise
    if as_json:
        print_json(outcome.to_json())
    if outcome.already_finished:
        _say_finished(outcome)
    ended(outcome)
    return outcome.exit_code


def choose_display(*, as_json: bool, quiet: bool, live: bool = True) -> Display:
    """Return the display for this call: silent, plain on stderr beside JSON, live on a terminal where it may be, else plain."""
    if quiet:
        return SilentDisplay()
    if as_json:
        return PlainDisplay(sys.stderr)
    if live and sys.stdout.isatty():
        return LiveDisplay(colour=colour_wanted())
    return PlainDisplay(sys.stdout)


def _say_finished(outcome: LoopOutcome) -> None:
    print_text(
        f"jumar: loop '{outcome.loop_id}' has ended ({outcome.stop.detail}); nothing was run. "
        f"Start another one with --new, or go on with {_way_on(outcome.stop.reason)}.",
        err=True,
    )


def _way_on(reason: str) -> str:
    ways = {
        "max_iterations": "a higher limit (-n)",
        "max_seconds": "a higher limit (--max-seconds)",
        "max_cost": "a higher limit (--max-cost)",
        "max_tokens": "a higher limit (--max-tokens)",
        "max_attempts": "a higher [budget] max_iterations",
        "unknown_cost": "[budget] reserve_cost_usd (or reserve_tokens): what such an attempt is to count",
        "disk_full": "some space freed",
        "consecutive_failures": (
            "the cause mended (`jumar show` and `jumar logs` name it): a changed [generator] and --accept-changes, "
            "or a higher [stop] consecutive_failures (3 where none is written)"
        ),
    }
    return ways.get(reason, "another [stop] rule: take out or change the one that ended it")


@contextlib.contextmanager
def signals_handled(switch: StopSwitch, *, quiet: bool) -> Generator[None]:
    """Ctrl-C once: finish this step; twice: stop now. SIGTERM and SIGHUP: stop now."""

    def on_interrupt(_number: int, _frame: object) -> None:
        if switch.requested:
            switch.now()
            return
        switch.finish()
        if not quiet:
            sys.stderr.write("\nfinishing this step; press Ctrl-C again to stop now\n")

    def on_terminate(_number: int, _frame: object) -> None:
        switch.now("terminated")

    handlers = {signal.SIGINT: on_interrupt, signal.SIGTERM: on_terminate, signal.SIGHUP: on_terminate}
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
