"""What the commands for selection share: limits, scales, parameters, and numpy where it is needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import click

from jumar.errors import ConfigError, UsageError
from jumar.text import escape
from jumar.topk.contract import SCALES

__all__ = ["check_output", "input_options", "limit_options", "need_numpy", "parameters", "runs_argument", "scale_option"]

F = TypeVar("F", bound=Callable[..., Any])


def limit_options(function: F) -> F:
    """Add ``--max-k`` and ``--min-k``; both are None when not given."""
    least = click.option("--min-k", type=int, help="Keep at least so many; 0 allows an empty answer.  [default: 1]")
    most = click.option("--max-k", type=int, help="Keep at most so many.  [default: 20]")
    return most(least(function))


def scale_option(function: F) -> F:
    """Add ``--scale``: what the scores are."""
    return click.option("--scale", type=click.Choice(SCALES), help="What the scores are.  [default: similarity]")(function)


def runs_argument(function: F) -> F:
    """Add the ``RUNS`` argument: a file of labelled queries."""
    return click.argument("runs", type=click.Path(path_type=Path, allow_dash=True), metavar="RUNS")(function)


def input_options(function: F) -> F:
    """Add the options that say what the file of labelled queries is."""
    options = (
        click.option(
            "--qrels",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Judgements in TREC's format; RUNS is then a TREC run.",
        ),
        click.option(
            "--grade", type=click.IntRange(min=1), default=1, show_default=True, help="Relevant is what has at least this grade."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def parameters(given: tuple[str, ...]) -> dict[str, Any]:
    """Return ``NAME=VALUE`` options as parameters; a value is JSON, else text. Errors: :class:`jumar.errors.ConfigError`."""
    found: dict[str, Any] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--param {escape(item)}: write NAME=VALUE, such as alpha=2.0")
        try:
            found[name.strip()] = json.loads(text)
        except ValueError:
            found[name.strip()] = text
    return found


def need_numpy(command: str) -> None:
    """Refuse to start without numpy, and say how to get it. Errors: :class:`jumar.errors.ConfigError`."""
    if find_spec("numpy") is None:
        raise ConfigError(f"`jumar topk {command}` needs numpy, which is not installed: pip install 'jumar[topk]'")


def check_output(output: Path | None) -> None:
    """Refuse a file whose folder does not exist, before any work. Errors: :class:`jumar.errors.UsageError`."""
    if output is not None and not output.absolute().parent.is_dir():
        raise UsageError(f"-o {escape(str(output))}: the folder {escape(str(output.parent))} does not exist")
