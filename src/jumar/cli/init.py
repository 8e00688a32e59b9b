"""``jumar init``: a commented jumar.toml to start from."""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jumar.app.agents import AGENTS, Agent, agent_called, installed_agents
from jumar.cli.common import json_option, print_json, print_line, print_text, quiet_option
from jumar.core.files import as_write_error, make_directory, replace_file, write_once
from jumar.core.text import escape
from jumar.errors import UsageError

if TYPE_CHECKING:
    from jumar.app.init import Template
    from jumar.app.machine import Suite

_FOR_AGENTS = "coding-agent"
_CONFIGURATIONS = ("document", "coding-agent", "prompt", "autoresearch", "cases")
_DATA = ("topk", "judge", "learn")
NAMES = (*_CONFIGURATIONS, *_DATA)

_EPILOG = """\b
Examples:
  jumar init --agent claude       your tests, run by Claude Code until they pass
  jumar init --template document
  jumar init --template coding-agent path/to/repository

\b
Templates:
  document        improve a text: sections, readability, length
  coding-agent    run a coding agent until the tests pass
  prompt          improve a prompt against an evaluation that prints a number
  autoresearch    lower a metric of a training run, one experiment after the other
  cases           refine a knowledge base case by case, the best carried forward (cases.toml)
  topk            sample data for jumar topk: 30 labelled searches
  judge           sample data for jumar evaluate: 36 answers, and what a judge said of them
  learn           sample data for jumar learn: 80 answers with verdicts"""


@click.command("init", epilog=_EPILOG)
@click.argument("directory", default=".", type=click.Path(path_type=Path, file_okay=False), metavar="[DIR]")
@click.option("-t", "--template", "name", type=click.Choice(NAMES), help="What it is for (default document).")
@click.option(
    "--agent",
    type=click.Choice([agent.program for agent in AGENTS]),
    help="Run this agent on the tests found here (template coding-agent).",
)
@click.option("--force", is_flag=True, help="Overwrite an existing configuration.")
@json_option
@quiet_option
def init_command(directory: Path, name: str | None, agent: str | None, *, force: bool, as_json: bool, quiet: bool) -> int:
    """Write a commented jumar.toml, and the example files that let it run, into DIR (default: here).

    With --agent it runs as it stands, and the agent finds jumar's MCP server here: a section of AGENTS.md (or what it reads) and
    the server are added to what is there. The template cases writes a cases.toml; topk, judge and learn write sample data and no
    configuration. An existing configuration is left alone without --force; an existing example file always is.
    """
    from jumar.app.agent_files import plan_agent_files
    from jumar.app.init import TEMPLATES, agent_template, template_text

    known = agent_called(agent or "")
    if known is not None and name not in {None, _FOR_AGENTS}:
        raise UsageError(f"--agent goes with the template {_FOR_AGENTS}; in another one, edit the line that names the agent")
    name = name or ("document" if known is None else _FOR_AGENTS)
    if name in _DATA:
        return _write_sample(name, directory, as_json=as_json, quiet=quiet)
    template = TEMPLATES[name]
    text, suites = (template_text(template.source), []) if known is None else agent_template(template.source, known, directory)
    config = directory / template.target
    planned = [] if known is None else plan_agent_files(known, directory)
    kept = [each.path for each in planned if each.text is None]
    if not config.exists() or force:
        written = _write_template(template, config, text)
    elif planned:
        written, kept = [], [config, *kept]
    else:
        raise UsageError(f"{escape(str(config))} exists; --force overwrites it")
    for each in planned:
        with as_write_error("write", each.path):
            written += [each.path] if each.write() else []
    line = template.agent_line() if known is None else None
    check = suites[0].command if suites else None
    if as_json:
        names, others = ([str(path.absolute()) for path in paths] for paths in (written, kept))
        document = {"template": name, "config": str(config.absolute()), "written": names, "kept": others, "agent_line": line}
        print_json({**document, "agent": agent, "check": check})
    elif not quiet:
        todo, steps = [] if line is None else [f"edit line {line} of {escape(str(config))}: name your agent"], template.next_steps
        if known is not None:
            todo = _told_of_agent(known, config, suites if config in written else None)
            steps = steps if config in written else ((known.unattended, f"in place of the agent of {template.target}"),)
        _say(written, config, todo, steps, kept)
        _tell_of_server(known, directory)
    return 0


def _write_template(template: Template, config: Path, text: str) -> list[Path]:
    """Write a configuration, and the examples beside it that are not there yet; return what was written."""
    from jumar.app.init import template_text

    with as_write_error("write", config):
        make_directory(config.parent)
        replace_file(config, text.encode())
    written = [config]
    for target, source in template.companions:
        path = config.parent / target
        with as_write_error("write", path):
            make_directory(path.parent)
            try:
                write_once(path, template_text(source).encode())
            except FileExistsError:
                continue
        written.append(path)
    return written


def _write_sample(name: str, directory: Path, *, as_json: bool, quiet: bool) -> int:
    """Write the files of a sample, unless others are there by these names, and say which commands work on them."""
    from jumar.app.init import SAMPLES

    sample = SAMPLES[name]
    written = {directory / target: text.encode() for target, text in sample.files().items()}
    for path, text in written.items():
        if path.exists() and path.read_bytes() != text:
            raise UsageError(f"{escape(str(path))} exists and is left alone; name another folder: jumar init -t {name} FOLDER")
    for path, text in written.items():
        with as_write_error("write", path), contextlib.suppress(FileExistsError):
            make_directory(directory)
            write_once(path, text)
    if as_json:
        names = [str(path.absolute()) for path in written]
        print_json(
            {"template": name, "config": None, "written": names, "kept": [], "agent_line": None, "agent": None, "check": None}
        )
    elif not quiet:
        go_there = [] if directory == Path() else [f"cd {shlex.quote(escape(str(directory)))}"]
        _say([*written], Path(), go_there, sample.next_steps)
    return 0


def _told_of_agent(agent: Agent, config: Path, suites: list[Suite] | None) -> list[str]:
    """Say which tests are the check (None: the configuration was there), and return what is left to be done."""
    print_line("agent", agent.title if suites is None else f"{agent.title}, unattended")
    for suite, what in zip(suites or (), ("tests", *["also"] * len(suites or ())), strict=False):
        print_line(what, f"{escape(suite.command)} (from {escape(suite.because)})")
    todo = [] if agent.program in installed_agents() else [f"install the agent: {agent.install}"]
    if agent.files is not None and (shutil.which("jumar") is None or find_spec("mcp") is None):
        todo.append("have `jumar mcp` on PATH, which the agent starts: pip install 'jumar[mcp]'")
    if suites == []:
        todo.append(f"edit {escape(str(config))}: no tests were found, give [[checks]] the command that runs them")
    return todo


def _tell_of_server(agent: Agent | None, directory: Path) -> None:
    if agent is not None and agent.files is not None:
        where = "here" if directory == Path() else f"in {escape(str(directory))}"
        print_text(f"Or start {agent.program} {where} and {agent.files.then}: it keeps its best through jumar's MCP server.")


def _say(
    written: list[Path], config: Path, todo: list[str], next_steps: tuple[tuple[str, str], ...], kept: Sequence[Path] = ()
) -> None:
    for what, paths in (("wrote", written), ("kept", kept)):
        for path in paths:
            print_line(what, escape(str(path)))
    here = config.parent == Path() or config == Path()
    where = "" if here else f" {escape(str(config))}"
    print_text("")
    for number, what in enumerate(todo, start=1):
        print_text(f"{number}. {what}")
    for number, (command, purpose) in enumerate(next_steps, start=len(todo) + 1):
        print_text(f"{number}. {_with_file(command, where)}     {purpose}".rstrip())


def _with_file(command: str, where: str) -> str:
    """Return the command with the configuration's path before its options."""
    words, dashes, options = command.partition(" --")
    return f"{words}{where}{dashes}{options}"
