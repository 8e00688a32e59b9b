"""``jumar init``: a commented jumar.toml to start from."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cli.common import json_option, print_json, print_text, quiet_option
from jumar.errors import UsageError
from jumar.text import escape

__all__ = ["NAMES", "init_command"]

NAMES = ("document", "coding-agent", "prompt", "cases")

_EPILOG = """\b
Examples:
  jumar init --template document
  jumar init --template coding-agent path/to/repository

\b
Templates:
  document        improve a text: sections, readability, length
  coding-agent    run a coding agent until the tests pass
  prompt          improve a prompt against an evaluation that prints a number
  cases           refine a knowledge base case by case, the best carried forward (cases.toml)"""


@click.command("init", epilog=_EPILOG)
@click.argument("directory", default=".", type=click.Path(path_type=Path, file_okay=False), metavar="[DIR]")
@click.option("-t", "--template", "name", type=click.Choice(NAMES), default="document", show_default=True, help="What it is for.")
@click.option("--force", is_flag=True, help="Overwrite an existing configuration.")
@json_option
@quiet_option
def init_command(directory: Path, name: str, *, force: bool, as_json: bool, quiet: bool) -> int:
    """Write a commented jumar.toml, and the example files that let it run, into DIR (default: here).

    The template cases writes a cases.toml. An existing configuration is left alone without --force; an existing example file
    always is.
    """
    from jumar.app.templates import TEMPLATES, template_text
    from jumar.files import as_write_error, make_directory, replace_file, write_once

    template = TEMPLATES[name]
    config = directory / template.target
    if config.exists() and not force:
        raise UsageError(f"{escape(str(config))} exists; --force overwrites it")
    with as_write_error("write", config):
        make_directory(directory)
        replace_file(config, template_text(template.source).encode())
    written = [config]
    for target, source in template.companions:
        path = directory / target
        with as_write_error("write", path):
            make_directory(path.parent)
            try:
                write_once(path, template_text(source).encode())
            except FileExistsError:
                continue
        written.append(path)
    line = template.agent_line()
    if as_json:
        names = [str(path.absolute()) for path in written]
        print_json({"template": name, "config": str(config.absolute()), "written": names, "agent_line": line})
    elif not quiet:
        _say(written, config, line, template.next_steps)
    return 0


def _say(written: list[Path], config: Path, line: int, next_steps: tuple[tuple[str, str], ...]) -> None:
    for path in written:
        print_text(f"wrote {escape(str(path))}")
    here = config.parent == Path()
    where = "" if here else f" {escape(str(config))}"
    print_text("")
    print_text(f"1. edit line {line} of {escape(str(config))}: name your agent")
    for number, (command, purpose) in enumerate(next_steps, start=2):
        print_text(f"{number}. {_with_file(command, where)}     {purpose}".rstrip())


def _with_file(command: str, where: str) -> str:
    """Return the command with the configuration's path before its options."""
    words, dashes, options = command.partition(" --")
    return f"{words}{where}{dashes}{options}"
