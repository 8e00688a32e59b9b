"""What the commands share: options and their numbers, finding a loop, and two ways of answering (text or one JSON document)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import sys
import warnings
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jumar.core.given import as_given
from jumar.core.text import escape, escape_block, in_ascii, nearest, wrapped
from jumar.errors import LockedError, NotFoundError, NothingEvaluatedError, StoreDamagedError, StoreWriteError, UsageError
from jumar.loop.store.layout import list_loops, loops_directory, root_of
from jumar.loop.store.running import newest_loop
from jumar.model.selection import refuse_percent

if TYPE_CHECKING:
    import socket

    from jumar.loop.report.observer import LoopObserver
    from jumar.loop.store.loop_reader import LoopReader
    from jumar.loop.store.loop_store import LoopStore
    from jumar.model import Decision

DEFAULT_ROOT = ".jumar"
DEMO = "jumar-demo"
"""Where `jumar demo` puts its folder, below the current directory; its loop counts where there is no other."""

_WIDEST = 100
_LABEL = 10
_COMMAND = re.compile(r"`[^`\n]+`|pip install '[^'\n]+'")

_TYPED = click.core.ParameterSource.COMMANDLINE

F = TypeVar("F", bound=Callable[..., Any])


def root_option(function: F) -> F:
    """Add ``--root``: the folder that holds ``loops/``."""
    option = click.option(
        "--root",
        type=click.Path(path_type=Path, file_okay=False, readable=False),  # one that was closed is opened
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


def standard_options(function: F) -> F:
    """Add ``--root``, ``--json`` and ``--quiet``, which nearly every command on loops has."""
    return root_option(json_option(quiet_option(function)))


def loop_argument(function: F) -> F:
    """Add the ``LOOP`` argument, which may be left out; completed from the loops that exist."""
    return click.argument("loop", required=False, shell_complete=complete_loop)(function)


def iteration_argument(function: F) -> F:
    """Add ``-i N`` and the argument ``N``, which says the same; see :func:`loop_or_iteration`."""
    option = click.option("-i", "--iteration", type=click.IntRange(min=0), metavar="N", help="This iteration; 0 is the start.")
    return loop_argument(click.argument("number", metavar="[N]", required=False, type=click.IntRange(min=0))(option(function)))


def loop_or_iteration(root: Path, loop: str | None, number: int | None, iteration: int | None) -> tuple[str | None, int | None]:
    """Return the loop and the iteration that are meant: a number that is no loop's name is an iteration of the newest one."""
    if number is not None and iteration is not None:
        raise click.UsageError(f"{number} and -i {iteration} are two iterations; give one of them")
    chosen = iteration if number is None else number
    if chosen is None and loop is not None and loop.isdecimal():
        try:
            find_loop(root, loop)
        except NotFoundError:
            return None, int(loop)
    return loop, chosen


def chosen_iteration(store: LoopStore) -> int:
    """Return the iteration that is selected. Errors: :class:`NothingEvaluatedError` where there is none."""
    from jumar.loop.report.read import load_report

    chosen = load_report(store).chosen
    if chosen is None:
        raise NothingEvaluatedError(f"loop '{store.loop_id}' has no selected iteration: none has a valid score")
    return chosen


def way_to_apply(number: str) -> str:
    """Return how another iteration than the selected one is applied."""
    return f"iteration {number} is selected with `jumar select --use {number} --reason '…'` and put in place by `jumar apply`"


def complete_loop(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the loops of the root that the command line names so far."""
    named = ctx.params.get("root")
    root = Path(named or os.environ.get("JUMAR_ROOT") or DEFAULT_ROOT)
    roots = [root] if named and ctx.get_parameter_source("root") is _TYPED else _with_demo(root)
    return sorted({name for place in roots for name in list_loops(place) if name.startswith(incomplete)})


def open_loop(root: Path, loop: str | None, *, tell: bool = False) -> LoopStore:
    """Open the loop that :func:`find_loop` returns; with ``tell``, say which one it is where nobody named one.

    From then on this process takes for a secret what the loop's own ``[redact]`` says. Errors: :class:`NotFoundError` that lists
    what there is.
    """
    from jumar.app.config.tables import take_up_redaction
    from jumar.loop.store.loop_store import LoopStore

    directory = find_loop(root, loop)
    store = LoopStore.open(directory)
    take_up_redaction(store)
    _tell_held(store)
    if tell and loop is None:
        print_text(f"loop      {escape(directory.name)}, the newest in {shown_path(store.paths.root)}", err=True)
    return store


def _tell_held(store: LoopStore) -> None:
    """Say which override waits for a person, as long as one does."""
    from jumar.loop.store.in_force import held

    with contextlib.suppress(StoreDamagedError):  # whoever needs the decisions will say so
        waiting = held(store.decisions())
        if waiting is not None:
            print_line("note", held_words(waiting, store.paths.directory), err=True)


def held_words(decision: Decision, directory: Path) -> str:
    """Return what to say of an override that waits: who made it, and what makes it stand or go."""
    wanted, who = decision.data.get("wanted"), escape(str(decision.data.get("made_by")))
    says = f"({escape(decision.at)}, reason: {escape(decision.reason)})"
    return (
        f"iteration {wanted} is not selected: {who} was there when that was asked for {says}. A person confirms it with "
        f"{command_for('select', directory, f'--use {wanted} --reason …')}, or keeps the rules' choice with --use best"
    )


def find_loop(root: Path, loop: str | None = None) -> Path:
    """Return the directory of the loop that ``loop`` names: its name, the beginning of one, or a path with a slash.

    Without a name: the loop that runs, else the newest one of the root, else the newest one of the demo. Opens nothing. Errors:
    :class:`NotFoundError` that lists what there is.
    """
    roots = places(root)
    if loop is None:
        newest = newest_loop(roots)
        if newest is None:
            raise NotFoundError(_none_below(root))
        return newest
    if "/" in loop:
        if not Path(loop).is_dir():
            raise NotFoundError(f"there is no directory {escape(loop)}; `jumar list` shows the loops of a --root by name")
        _bring_back(root_of(Path(loop).absolute()))
        return Path(loop)
    allowed = loop and not loop.startswith(".")
    for place in roots if allowed else ():
        if (loops_directory(place) / loop).is_dir():
            return loops_directory(place) / loop
    known = {name: loops_directory(place) / name for place in reversed(roots) for name in list_loops(place)}
    begun = [name for name in known if allowed and _abbreviates(loop, name)]
    if len(begun) == 1:
        return known[begun[0]]
    there = f"there are: {', '.join(map(escape, sorted(known)[:10]))}" if known else _none_below(root)
    if known and loop.isdecimal():
        there += f". `jumar show {loop}` shows iteration {loop} of the newest; {way_to_apply(loop)}"
    raise NotFoundError(f"no loop called '{escape(loop)}' in {escape(str(root))}{nearest(loop, sorted(known))}; {there}")


def _bring_back(root: Path) -> None:
    """Complete the rechecks of the loops of ``root`` that were killed, and say so."""
    if next(loops_directory(root).glob("*/recheck/plan.json"), None) is not None:
        from jumar.loop.workspace.set_aside import complete

        for message in complete(root):
            print_text(f"note      {message}", err=True)


def listed_root(root: Path) -> Path:
    """Return the root whose loops a list shows: ``root``, or the demo's where only that one has loops."""
    return next((place for place in places(root) if list_loops(place)), root)


def listening_on(host: str, port: int) -> socket.socket:
    """Return a socket that listens already: who reads its address may ask at once. Errors: :class:`UsageError`."""
    import socket

    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen()
    except OSError as error:
        made.close()
        raise UsageError(f"cannot listen on {host}, port {port}: {error.strerror}; --port takes another one") from None
    return made


def places(root: Path) -> list[Path]:
    """Return where loops are looked for, in this order; a root that was typed is the only one.

    What a recheck that was killed had set aside comes back first.
    """
    _bring_back(root)
    context = click.get_current_context(silent=True)
    typed = context is not None and context.get_parameter_source("root") is _TYPED
    return [root] if typed else _with_demo(root)


def _with_demo(root: Path) -> list[Path]:
    return [root, Path(DEMO) / DEFAULT_ROOT]


def _abbreviates(typed: str, name: str) -> bool:
    """Whether ``typed`` is the beginning of ``name``, and not another loop's number: ``calc-1`` never means ``calc-12``."""
    rest = name.removeprefix(typed)
    return name.startswith(typed) and not (typed[-1].isdigit() and rest.isdigit())


def _none_below(root: Path) -> str:
    if loops_directory(root / DEFAULT_ROOT).is_dir():
        return f"{escape(str(root))} holds no loops, but {escape(str(root / DEFAULT_ROOT))} does: name that as --root"
    above = root_above(root)
    if above is not None:
        return f"{escape(str(root))} holds no loops, but {escape(above)} does: add `--root {shlex.quote(escape(above))}`"
    return f"{escape(str(root))} holds no loops; `jumar run` makes one, and `jumar demo` shows one"


def root_above(root: Path) -> str | None:
    """Return the ``.jumar`` with loops of the nearest directory above the current one, as it is typed here."""
    if root != Path(DEFAULT_ROOT):
        return None
    steps = ("/".join([".."] * (depth + 1)) for depth in range(len(Path.cwd().parents)))
    return next((f"{step}/{DEFAULT_ROOT}" for step in steps if list_loops(Path(step) / DEFAULT_ROOT)), None)


def command_for(command: str, directory: Path, options: str = "", *, named: bool = False) -> str:
    """Return a command that can be typed as it stands for the loop in ``directory``: ``jumar apply --undo``.

    LOOP is left out where that loop is the one that is meant without, unless it shall be ``named`` for a program that comes back
    to it later. It is called as it was typed, by its name, or outside of the root by its path.
    """
    context = click.get_current_context(silent=True)
    given: Mapping[str, Any] = {} if context is None else context.params
    root = Path(given.get("root") or os.environ.get("JUMAR_ROOT") or DEFAULT_ROOT)
    newest = None if named else newest_loop(places(root), ending=True)
    loop: str | None = None
    if newest is None or newest.resolve() != directory.resolve():
        below = directory.parent.resolve() == loops_directory(root).resolve()
        loop = given.get("loop") or (directory.name if below else shown_path(directory))
    words = ["jumar", command, *([] if loop is None else [shlex.quote(escape(loop))])]
    if context is not None and context.get_parameter_source("root") is _TYPED and (loop is None or "/" not in loop):
        words += ["--root", shlex.quote(escape(str(root)))]
    return " ".join([*words, options]).rstrip()


def file_of(store: LoopReader) -> Path | None:
    """Return the configuration file here that speaks for a loop, None where there is none."""
    from jumar.loop.store.in_force import is_made_up

    file = Path("jumar.toml")
    return file if file.is_file() and not is_made_up(store) else None


def resume_for(store: LoopReader, config: Path | None) -> str:
    """Return the command that resumes a loop: that of its configuration file, or its name where there is none (None)."""
    root = store.paths.root
    words = ["jumar", "run"]
    if config is not None and config.resolve() != Path("jumar.toml").resolve():
        words.append(shlex.quote(shown_path(config)))
    elif config is None or len(list_loops(root)) > 1:
        words += ["--id", shlex.quote(escape(store.loop_id))]
    if config is None and root.resolve() != (Path.cwd() / DEFAULT_ROOT).resolve():
        words += ["--root", shlex.quote(shown_path(root))]
    return " ".join(words)


def observe(directory: Path) -> LoopObserver:
    """Return who looks at the loop in ``directory`` as it is now, and knows the command that resumes it."""
    from jumar.loop.report.observer import LoopObserver

    return LoopObserver(directory, resume=lambda reader: resume_for(reader, file_of(reader)))


def refresh_if_free(store: LoopStore) -> None:
    """Bring the loop's views up to date, unless somebody is writing it or the disk refuses.

    What the command shows is computed from the records all the same, so that neither matters to the person.
    """
    from jumar.core.clock import SystemClock
    from jumar.core.lock import who_holds
    from jumar.loop.report.views import refresh_views

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
    sys.stdout.write(json.dumps(as_given(document), indent=2, allow_nan=False) + "\n")


def print_text(text: str, *, err: bool = False) -> None:
    """Print text of ours that may hold names or output of others: control characters are shown, not obeyed."""
    stream = sys.stderr if err else sys.stdout
    stream.write(writable(escape_block(text), stream.encoding) + "\n")


def print_line(label: str, text: str, *, err: bool = False) -> None:
    """Print ``text`` after its label of at most nine characters, as every command does, wrapped at words below itself."""
    print_text("\n".join(set_lines(f"{label:<{_LABEL}}{text}", room(err=err), _LABEL)), err=err)


def print_error(text: str) -> None:
    """Print what went wrong on stderr, each of its lines wrapped at words; lines after the first keep where they begin."""
    lines = (part for line in f"jumar: {text}".split("\n") for part in set_lines(line, room(err=True), len("jumar: ")))
    print_text("\n".join(lines), err=True)


def set_lines(text: str, width: int, indent: int) -> list[str]:
    """Return ``text`` wrapped as :func:`jumar.core.text.wrapped` does, with each command in it whole: it is to be copied."""
    kept = _COMMAND.sub(lambda found: found[0].replace(" ", "\0"), text)
    return [line.replace("\0", " ") for line in wrapped(kept, width, indent)]


def room(*, err: bool = False) -> int:
    """Return in how many columns text is set: the terminal's, at most 100, and 100 where there is none."""
    stream = sys.stderr if err else sys.stdout
    return min(_WIDEST, shutil.get_terminal_size().columns) if stream.isatty() else _WIDEST


def writable(text: str, encoding: str | None) -> str:
    """Return ``text`` with what ``encoding`` cannot say in plain characters or escapes, so that printing it never fails."""
    known = encoding or "utf-8"
    try:
        return text.encode(known).decode(known)
    except UnicodeError:
        spelled = text if says_everything(known) else in_ascii(text)
        return spelled.encode(known, "backslashreplace").decode(known)


def says_everything(encoding: str | None) -> bool:
    """Whether ``encoding`` has the signs that we draw with; what has no encoding takes any text."""
    try:
        "▁█░•◆×┤└─✓✗★…—−Δ·→".encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def colour_wanted() -> bool:
    """Whether stdout is a terminal that knows colours and the person did not ask for none (NO_COLOR)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextlib.contextmanager
def warned() -> Generator[None]:
    """Print the warnings of the body as ours, one line each, as they come: some are reasons not to go on.

    What is logged of patterns is warned of too, and not printed a second time.
    """
    import logging

    def show(message: Warning | str, *_: object) -> None:
        print_text(f"jumar: warning: {message}", err=True)

    log, nowhere = logging.getLogger("jumar.patterns"), logging.NullHandler()
    log.addHandler(nowhere)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show
            yield
    finally:
        log.removeHandler(nowhere)


class DecimalRange(click.FloatRange):
    """A decimal number in a range, written without a unit. ``why`` is told of one that is outside of the range."""

    def __init__(self, *limits: Any, why: str = "", **options: Any) -> None:
        super().__init__(*limits, **options)
        self._why = why

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Errors: :class:`click.BadParameter` for what is none, or outside of the range."""
        try:
            float(value)
        except ValueError:
            hint = "write it without a unit, as in 2.5"
            try:
                refuse_percent(value if self.max == 100 else "")
            except ValueError as error:
                hint = str(error)
            self.fail(f"'{value}' is not a number; {hint}", param, ctx)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            if self._why:
                self.fail(f"{error.message.rstrip('.')}: {self._why}", param, ctx)
            raise
