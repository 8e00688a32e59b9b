"""What the commands for selection share: limits, scales, parameters, labelled queries."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from jumar.errors import ConfigError, UsageError
from jumar.text import escape
from jumar.topk.contract import SCALES, check_limits
from jumar.topk.extra import need_numpy

if TYPE_CHECKING:
    from jumar.topk.labelled import LabelledQuery
    from jumar.topk.types import Scale

__all__ = [
    "Labelled",
    "check_output",
    "labelled_options",
    "limit_options",
    "parameters",
    "read_labelled",
    "runs_argument",
    "scale_option",
]

F = TypeVar("F", bound=Callable[..., Any])


def limit_options(function: F) -> F:
    """Add ``--max-k`` and ``--min-k``; both are None when not given."""
    least = click.option("--min-k", type=int, help="Keep at least so many; 0 allows an empty answer.  [default: 1]")
    most = click.option("--max-k", type=int, help="Keep at most so many.  [default: 20]")
    return most(least(function))


def scale_option(function: F) -> F:
    """Add ``--scale``: what the scores are."""
    return click.option("--scale", type=click.Choice(SCALES), help="What the scores are.  [default: similarity]")(function)


def labelled_options(seed: str) -> Callable[[F], F]:
    """Add what commands on labelled queries share, below their own options; ``seed`` says what it is the seed of.

    The command gets ``runs``, ``max_k``, ``min_k``, ``scale``, ``qrels`` and ``grade``, which :func:`read_labelled` takes, and
    ``seed``.
    """

    def added(function: F) -> F:
        function = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help=seed)(function)
        function = click.option(
            "--grade",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            help="Relevant is what has at least this grade; lower ones count as 0.",
        )(function)
        function = click.option(
            "--qrels",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Judgements in TREC's format; RUNS is then a TREC run.",
        )(function)
        return limit_options(scale_option(function))

    return added


def runs_argument(function: F) -> F:
    """Add the ``RUNS`` argument: a file of labelled queries."""
    return click.argument("runs", type=click.Path(path_type=Path, allow_dash=True), metavar="RUNS")(function)


class Labelled(NamedTuple):
    """Labelled queries, and the limits and the scale to work on them with."""

    queries: tuple[LabelledQuery, ...]
    max_k: int
    min_k: int
    scale: Scale


def read_labelled(
    command: str, runs: Path, *, max_k: int | None, min_k: int | None, scale: Scale | None, qrels: Path | None, grade: int
) -> Labelled:
    """Return what the options of :func:`labelled_options` say.

    Errors: :class:`jumar.errors.ConfigError` without numpy, those of ``check_limits`` and ``read_runs``.
    """
    need_numpy(f"`jumar topk {command}`")
    from jumar.app.topk_runs import read_runs

    most, least = check_limits(20 if max_k is None else max_k, 1 if min_k is None else min_k)
    known: Scale = scale or "similarity"
    return Labelled(read_runs(runs, qrels=qrels, grade=grade, scale=known), most, least, known)


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


def check_output(output: Path | None) -> None:
    """Refuse a file whose folder does not exist, before any work. Errors: :class:`jumar.errors.UsageError`."""
    if output is not None and not output.absolute().parent.is_dir():
        raise UsageError(f"-o {escape(str(output))}: the folder {escape(str(output.parent))} does not exist")
