"""docs/reference/cli.md says what the commands' own help says: every command, every option, every variable, and no other."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from commands import call

from jumar.cli.application import application
from jumar.cli.table import every_command

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
SECTIONS = {
    heading.removeprefix("jumar "): body
    for heading, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
}
COMMANDS = every_command()
SHARED = "Options that commands share"


def rows(section: str) -> dict[frozenset[str], str]:
    """The option tables of a section: spellings → variable."""
    found = re.findall(r"^\| (`-[^|]+?) \| *`?([A-Z_]*)`? *\|", SECTIONS[section], re.MULTILINE)
    return {frozenset(re.findall(r"`(-[^`]+)`", spelled)): variable for spelled, variable in found}


PARENT = click.Context(application, info_name="jumar", help_option_names=["-h", "--help"])


def command(name: str) -> click.Command:
    """A command as it is typed: ``show``, ``cases show``."""
    found: click.Command | None = application
    for word in name.split():
        assert isinstance(found, click.Group)
        found = found.get_command(PARENT, word)
    assert found is not None
    return found


def in_help(name: str) -> dict[frozenset[str], str]:
    """The options that `jumar NAME --help` prints, parsed from its text, with the variables that set them."""
    text = call(*name.split(), "--help", check=0).out.partition("\nOptions:\n")[2].partition("\n\n")[0]
    spelled = re.findall(r"^  ((?:-\w, )?--[\w-]+(?:, --[\w-]+)*(?: / --[\w-]+)?)", text, re.MULTILINE)
    printed = {frozenset(re.findall(r"-[\w-]*\w", each)) for each in spelled}
    variables = {
        frozenset([*option.opts, *option.secondary_opts]): str(option.envvar)
        for option in command(name).params
        if isinstance(option, click.Option)
    }
    assert printed == {*variables, frozenset({"-h", "--help"})}
    return variables


def test_every_command_has_a_section_and_every_section_a_command():
    assert sorted(COMMANDS) == sorted(set(SECTIONS) - {SHARED})


@pytest.mark.parametrize("name", COMMANDS)
def test_options_and_variables_of_the_page_are_those_of_the_help(name: str):
    shared = set(rows(SHARED))
    own = {spelled: variable for spelled, variable in in_help(name).items() if spelled not in shared}
    assert own == rows(name)


def test_shared_options_are_shared():
    shared = rows(SHARED)
    assert {frozenset({"--root"}), frozenset({"--json"}), frozenset({"-q", "--quiet"}), frozenset({"-h", "--help"})} == set(
        shared
    )
    for name in COMMANDS:
        found = in_help(name)
        assert shared[frozenset({"--root"})] == found.get(frozenset({"--root"}), "JUMAR_ROOT")
        if name in {"hook", "mcp"}:  # what they print is a protocol's
            continue
        assert f"JUMAR_{name.upper().replace(' ', '_')}_JSON" == found[frozenset({"--json"})]
        assert f"JUMAR_{name.upper().replace(' ', '_')}_QUIET" == found[frozenset({"-q", "--quiet"})]


def test_usage_lines_name_the_arguments():
    for name in COMMANDS:
        context = click.Context(command(name), info_name=name, parent=PARENT)
        words = command(name).collect_usage_pieces(context)
        usage = re.findall(rf"^    (jumar {name} \[OPTIONS\].*)$", SECTIONS[name], re.MULTILINE)
        assert usage, name
        for word in words:
            assert any(word.strip("[]").rstrip(".") in line for line in usage), (name, word)


def test_examples_of_the_page_parse():
    tried = 0
    for name in COMMANDS:
        for line in re.findall(rf"^    jumar {name}( [^\[\n]*)?$", SECTIONS[name], re.MULTILINE):
            shell = re.split(r"\s+[|>#]", line)[0]
            if re.search(r"\b[A-Z]{2,}\b", shell):
                continue  # the usage line
            command(name).make_context(name, shlex.split(shell), parent=PARENT)
            tried += 1
    print(f"examples tried: {tried}")
    assert tried >= 25
