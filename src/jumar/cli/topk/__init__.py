"""What the commands for selection share: limits, scales, parameters, labelled queries, figures with their intervals."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from jumar.cli.common import print_text
from jumar.core.lazy import need_extra
from jumar.core.text import escape, nearest
from jumar.errors import ConfigError, ScoreError, UsageError
from jumar.topk.contract import SCALES, check_limits
from jumar.topk.settings import plain_value

if TYPE_CHECKING:
    from jumar.topk.result import Scale
    from jumar.topk.tuning import LabelledQuery
    from jumar.topk.tuning.metrics import Estimate

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

    What was left out, and scores that cannot be what ``scale`` says, are told on stderr. Errors:
    :class:`jumar.errors.ConfigError` without numpy, those of ``check_limits`` and ``read_runs``.
    """
    say_unread_variables()
    need_extra("topk", f"`jumar topk {command}`", "numpy")
    from jumar.topk.rankings import read_runs

    most, least = check_limits(20 if max_k is None else max_k, 1 if min_k is None else min_k)
    known: Scale = scale or "similarity"
    notes: list[str] = []
    with as_options():
        queries = read_runs(runs, qrels=qrels, grade=grade, scale=known, notes=notes)
    for note in notes:
        print_note(note)
    say_unlikely_scale((query.scores for query in queries), known)
    return Labelled(queries, most, least, known)


def print_note(text: str) -> None:
    """Print what a person should know on stderr, where it is in nobody's way."""
    print_text(f"jumar: note: {text}", err=True)


@contextmanager
def as_options() -> Generator[None]:
    """Have what is raised about scores name options of the command line in place of arguments of a function."""
    words = {
        "pass assume_sorted=False": "pass --sort",
        "on_invalid='drop'": "--on-invalid drop",
        "pass scale='distance'": "pass --scale distance",
        "leave out scale='distance'": "leave out --scale distance",
    }
    try:
        yield
    except ScoreError as error:
        message = str(error)
        for word, option in words.items():
            message = message.replace(word, option)
        raise ScoreError(message) from error


def say_unlikely_scale(scores: Iterable[Iterable[float]], scale: Scale) -> None:
    """Tell the person when scores that are said to be similarities are far outside −1 to 1, or all next to nothing."""
    if scale != "similarity":
        return
    most = max((score for row in scores for score in row if score - score == 0.0), default=1.0, key=abs)
    if abs(most) > _FAR:
        print_note(f"a score of {most:.4g} is no similarity: say what the scores are with --scale bm25, logit or distance")
    elif 0 < abs(most) < _NEAR:
        print_note(f"no score is above {abs(most):.2g}: if they are fused ranks, say --scale rrf")


_FAR = 1.5
_NEAR = 0.1


def say_unread_variables() -> None:
    """Tell the person of variables that begin as those of this command and set none of its options."""
    context = click.get_current_context(silent=True)
    start = None if context is None else context.auto_envvar_prefix
    if context is None or start is None:
        return
    known = [f"{start}_{one.name}".upper() for one in context.command.params if one.name]
    for name in sorted(os.environ):
        if name.startswith(f"{start}_") and name not in known:
            print_text(f"jumar: warning: {escape(name)} sets no option of this command{nearest(name, known)}", err=True)


def parameters(given: tuple[str, ...]) -> dict[str, Any]:
    """Return ``NAME=VALUE`` options as parameters; a value is ``none``, JSON, else text.

    Errors: :class:`jumar.errors.ConfigError`.
    """
    found: dict[str, Any] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--param {escape(item)}: write NAME=VALUE, such as alpha=2.0")
        try:
            found[name.strip()] = json.loads(text)
        except ValueError:
            found[name.strip()] = plain_value(text)
    return found


def check_output(output: Path | None, *read: Path | None) -> None:
    """Refuse a file whose folder does not exist, or that is one of those to be ``read``, before any work.

    Errors: :class:`jumar.errors.UsageError`.
    """
    if output is None:
        return
    if not output.absolute().parent.is_dir():
        raise UsageError(f"-o {escape(str(output))}: the folder {escape(str(output.parent))} does not exist")
    for one in read:
        if one is not None and one.exists() and output.exists() and output.samefile(one):
            raise UsageError(f"-o {escape(str(output))}: this is what is read, and would be lost; write to another file")


# ----------------------------------------------------------------------------------------- figures with their intervals


def estimated(name: str, estimate: Estimate) -> dict[str, Any]:
    """Return a figure and its interval as ``NAME`` and ``NAME_interval``; both null without queries to take it from."""
    interval = None if estimate.value is None else [estimate.low, estimate.high]
    return {name: estimate.value, f"{name}_interval": interval}


def document(record: object, *names: str) -> dict[str, Any]:
    """Return the fields ``names`` of a record, figures with their intervals as :func:`estimated` has them."""
    from jumar.topk.tuning.metrics import Estimate

    shown: dict[str, Any] = {}
    for name in names:
        value = getattr(record, name)
        shown.update(estimated(name, value) if isinstance(value, Estimate) else {name: value})
    return shown
