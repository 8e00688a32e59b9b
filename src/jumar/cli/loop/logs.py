"""``jumar logs``: what the programs of a step printed, as it comes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from jumar.cli.common import (
    find_loop,
    iteration_argument,
    loop_or_iteration,
    observe,
    print_json,
    print_text,
    standard_options,
    writable,
)
from jumar.core.files import read_bytes, read_from
from jumar.core.text import escape, escape_block
from jumar.errors import NotFoundError, UsageError
from jumar.loop.report.observer import LoopObserver, log_files

_EPILOG = """\b
Examples:
  jumar logs -f                   follow the loop that runs
  jumar logs readme-polish -i 7 --which check
  jumar logs readme-polish --json"""

_PAUSE = 0.25  # seconds between two looks


@click.command("logs", epilog=_EPILOG)
@iteration_argument
@click.option("-f", "--follow", is_flag=True, help="Follow what comes, across iterations, until the loop ends.")
@click.option(
    "--which", type=click.Choice(["generator", "check", "score", "all"]), default="all", show_default=True, help="Whose output."
)
@standard_options
def logs_command(
    loop: str | None,
    number: int | None,
    iteration: int | None,
    root: Path,
    *,
    follow: bool,
    which: str,
    as_json: bool,
    quiet: bool,
) -> int:
    """Print what the generator, the checks and the scorers of a step printed.

    Of iteration N, else of the step that runs, else of the last one. Control characters are shown, not obeyed. --quiet leaves out
    the headings.
    """
    loop, iteration = loop_or_iteration(root, loop, number, iteration)
    if follow and (as_json or iteration is not None):
        raise UsageError(f"--follow resumes what comes, so it takes no {'--json' if as_json else '--iteration'}")
    observer = observe(find_loop(root, loop))
    if follow:
        _follow(observer, which, quiet=quiet)
        return 0
    reader = observer.reader
    if iteration is not None and iteration not in {*reader.iteration_numbers(), *(a.start.iteration for a in reader.attempts())}:
        raise NotFoundError(f"loop '{escape(reader.loop_id)}' has no iteration {iteration}")
    number, files = _files(observer, iteration, which)
    if as_json:
        logs = [{"name": path.name, "path": str(path), "text": escape_block(_text(path))} for path in files]
        print_json({"loop_id": reader.loop_id, "iteration": number, "logs": logs})
        return 0
    if not files and not quiet:
        print_text("there are no logs yet" if number is None else f"iteration {number} has no such logs", err=True)
    printer = _Printer(quiet=quiet)
    for path in files:
        printer.show((number, 0, path.name), path, whole=True)
    return 0


def _files(observer: LoopObserver, iteration: int | None, which: str) -> tuple[int | None, tuple[Path, ...]]:
    """Return the iteration that is meant, and its logs in the order of the steps: generator, checks, scores."""
    reader = observer.reader
    attempts, numbers = reader.attempts(), reader.iteration_numbers()
    if iteration is None:
        newest = [*(one.start.iteration for one in attempts[-1:]), *numbers[-1:]]
        iteration = max(newest, default=None)
    if iteration is None:
        return None, ()
    order = {"generator": 0, "check": 1, "score": 2}
    kinds = [(path.name.partition("-")[0].removesuffix(".log"), path) for path in log_files(reader, attempts, iteration)]
    chosen = [(kind, path) for kind, path in kinds if which in {"all", kind}]
    return iteration, tuple(path for _, path in sorted(chosen, key=lambda pair: (order.get(pair[0], 3), pair[1].name)))


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8", "backslashreplace")
    except OSError:
        return ""


class _Printer:
    """Prints what is new of each log; a log is known by iteration, attempt and name, since its file moves with its snapshot."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._printed: dict[tuple[int | None, int, str], int] = {}
        self._current: tuple[int | None, int, str] | None = None
        self._midline = False

    def show(self, key: tuple[int | None, int, str], path: Path, *, whole: bool) -> None:
        """Print what is new: up to the last line feed, or with ``whole`` all of it."""
        try:
            data = read_from(path, self._printed.get(key, 0))
        except OSError:
            return
        if not whole:
            data = data[: data.rfind(b"\n") + 1]
        if not data:
            return
        self._heading(key)
        self._printed[key] = self._printed.get(key, 0) + len(data)
        self._write(escape_block(data.decode("utf-8", "backslashreplace")))
        self._midline = not data.endswith(b"\n")

    def _heading(self, key: tuple[int | None, int, str]) -> None:
        if key == self._current:
            return
        if self._midline:
            self._write("\n")
        if not self._quiet:
            self._write(f"==> iteration {key[0]}, {escape(key[2])} <==\n")
        self._current = key

    def _write(self, text: str) -> None:
        sys.stdout.write(writable(text, sys.stdout.encoding))
        sys.stdout.flush()

    def end(self) -> None:
        """End a last line that has no line feed."""
        if self._midline:
            self._write("\n")


def _follow(observer: LoopObserver, which: str, *, quiet: bool) -> None:
    """Print until nobody runs the loop any more, then what is left."""
    printer = _Printer(quiet=quiet)
    recorded, open_ones = _looked(observer)
    done = (recorded[-1] if recorded else -1) - (not open_ones)  # without a running step: what the last one said
    try:
        while True:
            alive = observer.running  # first: what is written after this look is read after it too
            recorded, open_ones = _looked(observer)
            fresh = [number for number in recorded if number > done]
            for iteration in (*fresh, *open_ones):
                attempts = observer.reader.attempts()
                runs = sum(one.start.iteration == iteration and one.start.purpose == "generate" for one in attempts)
                for path in _files(observer, iteration, which)[1]:
                    printer.show((iteration, runs, path.name), path, whole=iteration in fresh or not alive)
            done = max([done, *fresh])
            if not alive:
                break
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        pass
    printer.end()
    if not quiet:
        status = observer.look()
        print_text(f"{status.state_text}{': ' + status.detail if status.detail else ''}", err=True)


def _looked(observer: LoopObserver) -> tuple[tuple[int, ...], list[int]]:
    """Return the iterations that are recorded, and those that were begun and are not, both ascending."""
    observer.reader.refresh()
    attempts = observer.reader.attempts()  # before the iterations: one that is recorded in between counts as recorded
    recorded = observer.reader.iteration_numbers()
    known = set(recorded[-200:])
    return recorded, sorted({one.start.iteration for one in attempts[-64:]} - known)
