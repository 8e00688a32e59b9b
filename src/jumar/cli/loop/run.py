"""``jumar run``: the loop."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from jumar.app.agents import AGENTS
from jumar.app.config.config import OPTIONS_NOT_GIVEN, run_flags
from jumar.cli.common import DecimalRange, json_option, print_error, print_json, print_line, print_text, quiet_option
from jumar.cli.terminal.display import agent_name, choose_display
from jumar.cli.terminal.ending import ending_of_run, way_to_resume
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.core.rendering.figures import UNKNOWN, dollars
from jumar.core.text import escape, plural
from jumar.loop.engine.outcome import LoopOutcome
from jumar.model.budget.estimate import Range
from jumar.processes.control import StopSwitch, signals_handled

if TYPE_CHECKING:
    from jumar.app.run.request import RunRequest
    from jumar.app.run.run import RunEstimate
    from jumar.loop.engine.engine import Loop
    from jumar.model.budget.estimate import Estimate, EstimateRow

_AGENTS = ", ".join(agent.program for agent in AGENTS)
_EPILOG = """\b
Examples:
  jumar run --agent claude -p 'make the tests pass' --check 'pytest -q'
  jumar run -n 5 -p @PROMPT.md --check 'pytest -q' --agent 'my-agent --yes'
  jumar run -n 5 --check 'pytest -q' -- my-agent --task 'make the tests pass'
  jumar run                       the loop of ./jumar.toml; one that was interrupted is resumed
  jumar run --new -n 20           the same configuration as a new loop

Ctrl-C once finishes the running step and stops; twice stops now. Both can be resumed.
Exit codes: 0 threshold met, 1 failure, 2 usage, 10 below the threshold, 11 limit, 12 nothing was evaluated, 13 locked,
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
            hint = "If these are your agent's words, put -- before its command: jumar run -n 5 --check 'CMD' -- AGENT ..."
            raise click.UsageError(f"{error.format_message()} {hint}", ctx) from None

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


def _run_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give ``command`` the options that are keywords of ``jumar.run``, in their order."""
    for name, kind, flag in reversed([*run_flags()]):
        typed = flag.typed or (f"--{name.replace('_', '-')}",)
        option = functools.partial(click.option, *typed, name, metavar=flag.metavar, help=flag.help)
        if kind is bool:
            command = option(is_flag=True)(command)
        elif kind == Sequence[str]:
            command = option(multiple=True)(command)
        elif kind in {int, float}:
            ranged: Any = click.IntRange if kind is int else DecimalRange
            command = option(type=ranged(flag.least, flag.most, min_open=flag.above))(command)
        else:
            choices = get_args(kind)
            default = {"default": OPTIONS_NOT_GIVEN[name], "show_default": True} if OPTIONS_NOT_GIVEN[name] else {}
            command = option(type=click.Choice(choices) if choices else str, **default)(command)
    return command


@click.command("run", cls=RunCommand, epilog=_EPILOG)
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--agent", metavar="NAME|CMD", help=f"{_AGENTS}, or a shell command that reads its prompt from stdin.")
@click.option("-p", "--prompt", "--objective", "objective", metavar="TEXT|@FILE", help="The objective: what is to be done.")
@click.option("--check", "checks", multiple=True, metavar="CMD", help="A shell command that must pass; may be repeated.")
@click.option(
    "--score",
    "scores",
    multiple=True,
    metavar="[DIMENSION=]CMD",
    help="A shell command that prints how good it is, 0 to 1; may be repeated. Checks then only verify.",
)
@_run_options
@click.option("--estimate", is_flag=True, help="Say how many iterations the budget buys; runs and pays nothing.")
@click.option("--no-input", is_flag=True, help="Non-interactive mode: plain lines and no question, also on a terminal.")
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
    """Run a loop, or resume one that was interrupted.

    CONFIG is a jumar.toml (default: the one in this directory). Without one, name an agent with --agent, or give the
    generator's command after --.
    """
    command: Sequence[str] | None = ctx.meta.get("jumar.command")
    if given["new"] and given["resume"] == "require":
        raise click.UsageError("--new starts a loop and --resume require resumes one; give one of them", ctx)
    if given["keep_going"] and given["target"] is not None:
        raise click.UsageError("--target ends the loop at a score and --keep-going doesn't; give one of them", ctx)
    if any(not check.strip() for check in given["checks"]):
        raise click.UsageError("--check is empty: give it a shell command", ctx)
    if any(re.fullmatch(r"\s*([a-z][a-z0-9_-]*=)?\s*", score) for score in given["scores"]):
        raise click.UsageError("--score is empty: give it a shell command that prints a number from 0 to 1", ctx)
    _check_sources(ctx, given, command)
    from jumar.app.run.request import request_of

    silent = given["no_input"] or given["as_json"] or given["quiet"]
    asks = not silent and sys.stdin.isatty() and sys.stderr.isatty()
    request = request_of(given, command, ask=_ask if asks else None)
    for notice in () if given["quiet"] else request.notices:
        print_line("note", notice, err=True)
    if given["estimate"]:
        return _show_estimate(request, as_json=given["as_json"])
    return run_loop(request, as_json=given["as_json"], quiet=given["quiet"], live=not given["no_input"])


def _ask(text: str) -> bool:
    print_text(text, err=True)
    return click.confirm("keep all of it?", err=True)


def _check_sources(ctx: click.Context, given: Mapping[str, Any], command: Sequence[str] | None) -> None:
    """Refuse two answers to what runs, and say what becomes of a jumar.toml that nobody named."""
    agent = given["agent"]
    if command is not None and agent is not None:
        raise click.UsageError("give --agent or a command after --, not both", ctx)
    if command is not None and given["config"] is not None:
        raise click.UsageError("give a configuration file or a command after --, not both", ctx)
    if given["config"] is not None or given["quiet"] or not Path("jumar.toml").is_file():
        return
    if command is not None:
        print_line("note", "jumar.toml is not used, because a command is given", err=True)
    elif agent is not None:
        print_line("note", "jumar.toml is used; --agent stands in for its [generator]", err=True)


def run_loop(request: RunRequest, *, as_json: bool, quiet: bool, live: bool = True, told: bool = True) -> int:
    """Run the loop of ``request`` with a display and signal handling; return the exit code.

    ``told`` False: whoever calls says how it ended.
    """
    from jumar.app.run.run import run

    switch = StopSwitch()
    display = choose_display(as_json=as_json, quiet=quiet, live=live)

    def attended(loop: Loop) -> LoopOutcome:
        display.introduce(agent=agent_name(loop.settings.recorded["generator"].get("command")), paths=loop.store.paths)
        with signals_handled(switch, quiet=quiet), display:
            outcome = loop.run()
            if told:
                display.end(lambda width: ending_of_run(outcome, loop.store, config=request.path, width=width))
        return outcome

    def shown(outcome: LoopOutcome) -> None:
        if as_json:
            print_json(outcome.to_json())
        if told and outcome.already_finished and (as_json or quiet):
            _say_finished(outcome)

    warn = None if quiet else functools.partial(print_line, "note", err=True)
    return run(request, switch=switch, listener=display.hear, attended=attended, shown=shown, warn=warn).exit_code


def _say_finished(outcome: LoopOutcome) -> None:
    print_error(
        f"loop '{outcome.loop_id}' has ended ({outcome.stop.detail}); nothing was run. "
        f"Start another one with --new, or resume it {way_to_resume(outcome.stop.reason)}."
    )


# -------------------------------------------------------------------------------------------------------- the estimate


def _show_estimate(request: RunRequest, *, as_json: bool) -> int:
    """Print the estimate for the loop of ``request``, as text or JSON; return the exit code."""
    from jumar.app.run.run import estimate_run

    found = estimate_run(request)
    if as_json:
        print_json(found.to_json())
    else:
        _print_estimate(found)
    return 0


def _print_estimate(found: RunEstimate) -> None:
    state = f"{plural(found.made, 'iteration')} made, {dollars(found.spend.cost_usd)} spent" if found.exists else "not begun"
    print_text(f"loop      {escape(found.loop_id)}: {state}")
    if found.estimate is None:
        print_text("estimate  there is no limit to estimate by: give --max-cost, --max-tokens, --max-seconds or -n")
        return
    columns = (
        Column(name="limit"),
        Column(name="left"),
        Column(name="an iteration"),
        Column(name="iterations"),
        Column(name="from", fold=True),
    )
    rows = [
        TableRow(cells=(row.limit, _amount(row, row.left), _use(row), _count(row.passes), row.source))
        for row in found.estimate.rows
    ]
    print_table(columns, rows)
    print_text(f"estimate  {_verdict(found.estimate) if found.ended is None else _after_the_end(found.ended, found.estimate)}")


def _verdict(found: Estimate) -> str:
    from jumar.app.run.run import SET_ASIDE

    passes, limit = found.passes, found.limited_by
    first = next((row for row in found.rows if row.limit == limit), None)
    assumed = ", if each takes what is set aside for it" if first is not None and first.source == SET_ASIDE else ""
    if passes.typical is not None:
        spread = "" if passes.low == passes.high else f" ({_count(passes)})"
        return f"the budget buys about {plural(round(passes.typical), 'iteration')}{spread}{assumed}; {limit} is reached first"
    most = "about" if assumed else "at most"
    untold = " and ".join(row.limit for row in found.rows if row.passes.typical is None)
    bought = f"{most} {plural(round(passes.high or 0), 'iteration')} by {limit}{assumed}"
    return f"{bought}; what an iteration takes of {untold} is not known before the first one"


def _after_the_end(why: str, found: Estimate) -> str:
    """Say that the loop has ended, and what is left of each limit: nothing runs until one of them, or a rule, is changed."""
    left = [f"{_amount(row, row.left)} of {row.limit}" for row in found.rows]
    most = found.passes.typical if found.passes.typical is not None else found.passes.high
    buys = "" if not most else f", about {plural(round(most), 'iteration')}"
    return f"the loop has ended ({escape(why)}); left are {', '.join(left)}{buys}"


def _amount(row: EstimateRow, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if row.limit == "max_cost_usd":
        return dollars(value)
    return f"{value:,.1f} s" if row.limit == "max_seconds" else f"{round(value):,}"


def _use(row: EstimateRow) -> str:
    use = row.a_pass
    if use.low is None:
        return "1" if row.limit.startswith("max_iterations") else UNKNOWN
    if use.high is None:
        return f"over {_amount(row, use.low)}"
    middle = _amount(row, use.typical)
    return middle if use.low == use.high else f"{middle} ({_amount(row, use.low)} to {_amount(row, use.high)})"


def _count(passes: Range) -> str:
    if passes == Range():
        return UNKNOWN
    if passes.typical is None:
        return f"at most {round(passes.high or 0):,}"
    if passes.low == passes.high:
        return f"{round(passes.typical):,}"
    high = "any number" if passes.high is None else f"{round(passes.high):,}"
    return f"{round(passes.typical):,}, from {round(passes.low or 0):,} to {high}"
