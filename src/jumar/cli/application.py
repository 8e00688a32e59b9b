"""The command group: loads a command when it is called, and turns errors into messages and exit codes."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from typing import Any, override

import click

from jumar.cli.table import COMMANDS, render_help
from jumar.errors import JumarError, UsageError
from jumar.text import escape_block, nearest
from jumar.version import __version__

__all__ = ["run_application"]


class LazyGroup(click.Group):
    """A group that imports a command only when it is used."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise click.UsageError(f"no such command '{args[0]}'{nearest(args[0], list(COMMANDS))}")
        return super().resolve_command(ctx, args)

    @override
    def get_help(self, ctx: click.Context) -> str:
        return render_help().rstrip("\n")


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click calls it so
    if value and not ctx.resilient_parsing:
        click.echo(f"jumar {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    name="jumar",
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "JUMAR", "max_content_width": 100},
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version)
def application() -> None:
    """Run an agent again and again, score every pass, and keep the best one instead of the last."""


def run_application(arguments: list[str]) -> int:
    """Run ``jumar ARGUMENTS`` and return the exit code."""
    wants_json = "--json" in arguments.copy()[: arguments.index("--")] if "--" in arguments else "--json" in arguments
    try:
        result: Any = application.main(args=arguments, prog_name="jumar", standalone_mode=False)
    except click.exceptions.Abort:
        return 128 + signal.SIGINT
    except click.ClickException as error:
        return _usage(error, wants_json=wants_json)
    except JumarError as error:
        return _fail(str(error), error.exit_code, type(error).__name__, wants_json=wants_json)
    except BrokenPipeError:
        # the reader of our output went away (`| head`): not an error of ours, and nothing more can be said there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return result if isinstance(result, int) else 0


def _usage(error: click.ClickException, *, wants_json: bool) -> int:
    context = getattr(error, "ctx", None)
    hint = f"\nTry 'jumar {context.info_name} --help'." if context is not None and context.parent is not None else ""
    return _fail(error.format_message() + hint, UsageError.exit_code, "UsageError", wants_json=wants_json)


def _fail(message: str, code: int, kind: str, *, wants_json: bool) -> int:
    safe = escape_block(message)
    if wants_json:
        document = {"error": {"kind": kind, "message": safe, "exit_code": code}}
        click.echo(json.dumps(document, indent=2))
    click.echo(f"jumar: {safe}", err=True)
    return code
