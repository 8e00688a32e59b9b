"""The command group: loads a command when it is called, and turns errors into messages and exit codes."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from jumar.cli.table import COMMANDS, GROUPS, Group, render_help
from jumar.core import __version__
from jumar.core.lazy import extra_of_command
from jumar.core.text import escape_block, nearest
from jumar.errors import FormatTooNewError, JumarError, StoreDamagedError, StoreWriteError, UsageError

_LOOP_JSON = "loop.json"
_IN_A_LOOP = re.compile(r"(/[^\n]*?)/(loop\.json|(?:attempts|checks|decisions|iterations|pending|readings|set-aside|undo)/)")
_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})


class _Lines(click.types.StringParamType):
    """Text that is a list when it comes from the environment: one value a line, because a command holds spaces."""

    def split_envvar_value(self, rv: str) -> Sequence[str]:
        return [line for line in rv.splitlines() if line.strip()]


def environment_name(command: str, option: click.Option) -> str:
    """Return the variable that sets ``option`` of ``command``.

    ``jumar select --mode`` is ``JUMAR_SELECT_MODE``, ``jumar cases run --max-iters`` is ``JUMAR_CASES_RUN_MAX_ITERS``.
    """
    longest = max(option.opts, key=len)
    return f"JUMAR_{command}_{longest.lstrip('-')}".replace("-", "_").replace(" ", "_").upper()


def _settable_by_environment(name: str, command: click.Command) -> click.Command:
    for option in command.params:
        if isinstance(option, click.Option) and option.envvar is None:
            option.envvar = environment_name(name, option)
            if option.multiple and option.type is click.STRING:
                option.type = _Lines()
    return command


class _ReaderGoneError(Exception):
    """Stdout is a pipe that nobody reads any more. The command-line library would end with 1, as after a failure."""


class LazyGroup(click.Group):
    """A group that imports a command only when it is used: the program itself, or one of the groups below it."""

    def __init__(self, *args: Any, table: str | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._table = table
        self._leaves = COMMANDS if table is None else GROUPS[table].commands
        self._groups = {} if table is not None else {name: _group(name) for name in GROUPS}

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise _ReaderGoneError from error
        return result

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click calls it so
        return sorted([*self._leaves, *self._groups])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click calls it so
        if cmd_name in self._groups:
            return self._groups[cmd_name]
        if cmd_name not in self._leaves:
            return None
        module, _, attribute = self._leaves[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return _settable_by_environment(cmd_name if self._table is None else f"{self._table} {cmd_name}", command)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        default = None if self._table is None else GROUPS[self._table].default
        known = self.list_commands(ctx)
        if default is not None and args and args[0] not in {"-h", "--help", *known}:
            if (meant := nearest(args[0], known)) and not Path(args[0]).exists():
                raise click.UsageError(
                    f"there is no file '{args[0]}', and no command of `jumar {self._table}` either{meant}", ctx
                )
            args = [default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            typed = args[0] if self._table is None else f"{self._table} {args[0]}"
            if self._table is not None and Path(args[0]).is_file():
                raise click.UsageError(f"say what to do with the file: `jumar {self._table} {'|'.join(known)} {args[0]}`", ctx)
            raise click.UsageError(f"no such command '{typed}'{nearest(args[0], known)}", ctx)
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:  # noqa: ARG002 - click calls it so
        return render_help(self._table).rstrip("\n")


def _group(name: str) -> LazyGroup:
    def no_command() -> None:
        """Show what there is when no command is named, as the program itself does."""
        context = click.get_current_context()
        if context.invoked_subcommand is None:
            click.echo(context.get_help())

    return LazyGroup(name=name, table=name, callback=no_command, invoke_without_command=True, help=GROUPS[name].summary)


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # click calls it so
    if value and not ctx.resilient_parsing:
        click.echo(f"jumar {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    name="jumar",
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "JUMAR", "max_content_width": 100},
)
# a pinned JUMAR_VERSION in somebody's environment must not turn every command into `jumar --version`
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, allow_from_autoenv=False)
def application() -> None:
    """Run an agent again and again, score every iteration, and keep the best one instead of the last."""


def run_application(arguments: list[str]) -> int:
    """Run ``jumar ARGUMENTS`` and return the exit code."""
    wants_json = _wants_json(arguments)
    try:
        result: Any = application.main(args=arguments, prog_name="jumar", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _fail("interrupted", 128 + signal.SIGINT, "Interrupted", wants_json=wants_json)
    except click.ClickException as error:
        return _usage(error, wants_json=wants_json)
    except JumarError as error:
        return _fail(_with_way_out(error), error.exit_code, type(error).__name__, wants_json=wants_json)
    except (BrokenPipeError, _ReaderGoneError):
        # whoever read our output went away (`| head`): not an error of ours, and nothing more can be said there
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 128 + signal.SIGPIPE
    except OSError as error:
        where = f": {os.fsdecode(error.filename)}" if isinstance(error.filename, str | bytes) else ""
        message = f"{error.strerror or error}{where}"
        return _fail(message, StoreWriteError.exit_code, type(error).__name__, wants_json=wants_json)
    except MemoryError:
        raise  # the program itself has the words for it
    except Exception as error:
        missing = extra_of_command(error, arguments) if isinstance(error, ModuleNotFoundError) else None
        if missing is not None:
            return _fail(str(missing), missing.exit_code, type(missing).__name__, wants_json=wants_json)
        if not wants_json:
            raise
        # a bug of ours; whoever reads stdout as JSON gets JSON all the same, and the traceback goes to stderr
        sys.excepthook(type(error), error, error.__traceback__)
        message = f"{type(error).__name__}: {error} (this is a bug in jumar)"
        return _fail(message, JumarError.exit_code, "InternalError", wants_json=True)
    return result if isinstance(result, int) else 0


def _wants_json(arguments: list[str]) -> bool:
    """Whether errors shall be JSON too. What follows ``--`` belongs to the generator."""
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--json" in ours or not ours:
        return "--json" in ours
    group = GROUPS.get(ours[0])
    command = ours[0] if group is None else "_".join(_named_in(group, ours[0], ours[1:2]))
    return os.environ.get(f"JUMAR_{command.upper()}_JSON", "").lower() in _TRUE


def _named_in(group: Group, name: str, rest: list[str]) -> list[str]:
    """Return the group's name with that of the command that is meant, where one is."""
    if group.default is not None and rest and rest[0] not in group.commands:
        return [name, group.default]
    return [name, *rest]


def _usage(error: click.ClickException, *, wants_json: bool) -> int:
    context = getattr(error, "ctx", None)
    hint = f"\nTry '{context.command_path} --help'." if context is not None and context.parent is not None else ""
    return _fail(error.format_message() + hint, UsageError.exit_code, "UsageError", wants_json=wants_json)


def _with_way_out(error: JumarError) -> str:
    """Return the message; of damage in a loop with the command that sets it right."""
    message = str(error)
    found = _IN_A_LOOP.search(message)
    if not isinstance(error, StoreDamagedError) or isinstance(error, FormatTooNewError) or found is None:
        return message
    from jumar.cli.common import command_for

    directory = Path(found[1])
    of_a_loop = found[2] == _LOOP_JSON or (directory / _LOOP_JSON).exists()
    return f"{message}; `{command_for('repair', directory, named=True)}` says what can be done" if of_a_loop else message


def _fail(message: str, code: int, kind: str, *, wants_json: bool) -> int:
    safe = escape_block(message)
    if wants_json:
        document = {"error": {"kind": kind, "message": safe, "exit_code": code}}
        click.echo(json.dumps(document, indent=2))
    from jumar.cli.common import print_error

    print_error(message)
    return code
