"""``jumar patterns check``: whether a patterns file is valid, its expressions and features included."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cli.common import json_option, print_json, print_text, quiet_option
from jumar.cli.patterns.common import file_argument
from jumar.core.text import escape, plural
from jumar.errors import PatternLoadError

_EPILOG = """\b
Examples:
  jumar patterns check patterns.json"""


@click.command("check", epilog=_EPILOG)
@file_argument
@json_option
@quiet_option
def check_command(file: Path, *, as_json: bool, quiet: bool) -> int:
    """Say whether a patterns file is valid: exit code 0, or one message that names what is wrong.

    It is the file itself that is checked, never its backup. Names that are nearly known ones, and expressions that
    fire on everything, are warned of.
    """
    from jumar.judging.cheap.features import FeaturePatterns
    from jumar.judging.patterns.matcher import PatternMatcher
    from jumar.judging.patterns.reading import near_misses
    from jumar.judging.patterns.storage import read_pattern_set

    found = read_pattern_set(file)
    try:
        matcher = PatternMatcher(found)
        FeaturePatterns(found.patterns)
    except PatternLoadError as error:
        raise PatternLoadError(f"{escape(str(file))}: {error}") from error
    everything = [name for name in matcher.fired_ids("") if name in matcher.fired_ids("\0\n\0 \0")]
    warnings = near_misses(found) + [f"the regex of pattern {escape(name)} fires on everything" for name in everything]
    for warning in () if as_json else warnings:
        print_text(f"jumar: warning: {escape(str(file))}: {warning}", err=True)
    if as_json:
        print_json({"valid": True, "version": found.version, "patterns": len(found.patterns), "warnings": warnings})
    elif not quiet:
        print_text(f"{escape(str(file))} is valid: {plural(len(found.patterns), 'pattern')}, format {found.version}")
    return 0
