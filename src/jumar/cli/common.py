"""What the commands share: options, finding a loop, and the two ways of answering (text or one JSON document)."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from jumar.errors import LockedError, NotFoundError, StoreDamagedError, StoreWriteError
from jumar.store.layout import list_loops, loops_directory
from jumar.text import escape, escape_block, nearest

if TYPE_CHECKING:
    from jumar.store.loop_store import LoopStore

__all__ = [
    "DEFAULT_ROOT",
    "colour_wanted",
    "command_for",
    "complete_loop",
    "find_loop",
    "json_option",
    "loop_argument",
    "open_loop",
    "print_json",
    "print_text",
    "quiet_option",
    "refresh_if_free",
    "root_option",
    "shown_path",
    "warned",
    "writable",
]

DEFAULT_ROOT = ".jumar"

F = TypeVar("F", bound=Callable[..., Any])


def root_option(function: F) -> F:
    """Add ``--root``: the folder that holds ``loops/``."""
    option = click.option(
        "--root",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="JUMAR_ROOT",
        default=DEFAULT_ROOT,
        show_default=True,
        help="Folder that holds the loops.",
    )
    return option(function)


def json_option(function: F) -> F:
    """Add ``--json``: stdout is one JSON document."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")(function)


def quiet_option(function: F) -> F:
    """Add ``--quiet``: nothing but errors and results that were asked for."""
    return click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors and what was asked for.")(function)


def loop_argument(function: F) -> F:
    """Add the ``LOOP`` argument, completed from the loops that exist."""
    return click.argument("loop", shell_complete=complete_loop)(function)


def complete_loop(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the loops of the root that the command line names so far."""
    root = ctx.params.get("root") or os.environ.get("JUMAR_ROOT") or DEFAULT_ROOT
    return [name for name in list_loops(Path(root)) if name.startswith(incomplete)]


def open_loop(root: Path, loop: str) -> LoopStore:
    """Open the loop called ``loop`` below ``root``; the beginning of one name, or a path to its directory, is taken too.

    From then on this process takes for a secret what the loop's own ``[redact]`` says. Errors: :class:`NotFoundError` that lists
    what there is.
    """
    from jumar.store.loop_store import LoopStore

    store = LoopStore.open(find_loop(root, loop))
    _take_up_redaction(store)
    return store


def _take_up_redaction(store: LoopStore) -> None:
    from jumar.decide.recorded import config_now
    from jumar.redaction import install

    try:
        run = config_now(store).get("run")
    except StoreDamagedError:  # of a decision; whoever needs that one will say so
        run = store.config.get("run")
    section = cast("Mapping[str, Any]", run).get("redact") if isinstance(run, Mapping) else None
    if isinstance(section, Mapping):
        from jumar.app.redact_config import install_recorded

        install_recorded(cast("Mapping[str, Any]", section))
    else:
        install(None)


def find_loop(root: Path, loop: str) -> Path:
    """Return the directory of the loop that ``loop`` names, as :func:`open_loop` does, without opening it."""
    directory = loops_directory(root) / loop
    if "/" in loop:
        directory = Path(loop)
        if not directory.is_dir():
            raise NotFoundError(f"there is no directory {escape(loop)}; `jumar list` shows the loops of a --root by name")
    elif loop in {"", ".", ".."} or not directory.is_dir():
        known = list_loops(root)
        begins = [name for name in known if loop not in {"", ".", ".."} and name.startswith(loop)]
        if len(begins) == 1:
            return loops_directory(root) / begins[0]
        if (root / DEFAULT_ROOT / "loops").is_dir():
            raise NotFoundError(
                f"{escape(str(root))} holds no loops, but {escape(str(root / DEFAULT_ROOT))} does: name that as --root"
            )
        where = escape(str(root))
        shown = f"there are: {', '.join(map(escape, known[:10]))}" if known else f"{where} holds no loops; `jumar run` makes one"
        raise NotFoundError(f"no loop called '{escape(loop)}' in {where}{nearest(loop, known)}; {shown}")
    return directory


def command_for(command: str, loop: str, options: str = "") -> str:
    """Return a command that can be typed as it stands: ``jumar apply LOOP --root R``, loop and root as they were named here."""
    context = click.get_current_context(silent=True)
    named = loop if context is None else context.params.get("loop") or loop
    words = f"jumar {command} {shlex.quote(escape(named))}"
    if context is not None and context.get_parameter_source("root") is click.core.ParameterSource.COMMANDLINE:
        words += f" --root {shlex.quote(escape(str(context.params['root'])))}"
    return f"{words} {options}".rstrip()


def refresh_if_free(store: LoopStore) -> None:
    """Bring the loop's views up to date, unless somebody is writing it or the disk refuses.

    What the command shows is computed from the records all the same, so that neither matters to the person.
    """
    from jumar.loop.clock import SystemClock
    from jumar.report.views import refresh_views
    from jumar.store.lock import who_holds

    if who_holds(store.paths.lock) is not None:
        return
    try:
        with store.lock():
            refresh_views(store, at=SystemClock().now())
    except (LockedError, StoreWriteError, StoreDamagedError):
        return


def shown_path(path: Path) -> str:
    """Return ``path`` for a person: relative when it lies below the current directory, control characters shown."""
    here = Path.cwd()
    inside = path.is_absolute() and path != here and path.is_relative_to(here)
    return escape(str(path.relative_to(here) if inside else path))


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document on stdout. Numbers are finite, undecodable names are escaped."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def print_text(text: str, *, err: bool = False) -> None:
    """Print text of ours that may hold names or output of others: control characters are shown, not obeyed."""
    stream = sys.stderr if err else sys.stdout
    stream.write(writable(escape_block(text), stream.encoding) + "\n")


def writable(text: str, encoding: str | None) -> str:
    """Return ``text`` with what ``encoding`` cannot say written as escapes, so that printing it never fails."""
    known = encoding or "utf-8"
    return text.encode(known, "backslashreplace").decode(known)


def colour_wanted() -> bool:
    """Whether stdout is a terminal that knows colours and the person did not ask for none (NO_COLOR)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextlib.contextmanager
def warned() -> Generator[None]:
    """Print the warnings of the body as ours, one line each, as they come: some are reasons not to go on."""

    def show(message: Warning | str, *_: object) -> None:
        print_text(f"jumar: warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
