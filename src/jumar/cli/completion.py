"""``jumar completion``: the script that makes a shell complete jumar's commands, options and loops."""

from __future__ import annotations

import sys

import click

from jumar.cli.common import json_option, print_json, quiet_option

_EPILOG = """\b
Examples:
  jumar completion bash >> ~/.bashrc
  jumar completion zsh >> ~/.zshrc
  jumar completion fish > ~/.config/fish/completions/jumar.fish"""

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion", epilog=_EPILOG)
@click.argument("shell", type=click.Choice(_SHELLS))
@json_option
@quiet_option
@click.pass_context
def completion_command(ctx: click.Context, shell: str, *, as_json: bool, quiet: bool) -> int:  # noqa: ARG001 - there is nothing to leave out
    """Print the completion script for SHELL, to be read when the shell starts."""
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"there is no completion for {shell}", ctx)
    root = ctx.find_root()
    # the script alone: source() would first start the shell to ask for its version
    maker = completion(root.command, {}, "jumar", "_JUMAR_COMPLETE")
    script = maker.source_template % maker.source_vars()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        sys.stdout.write(script + "\n")
    return 0
