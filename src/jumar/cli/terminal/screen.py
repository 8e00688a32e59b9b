"""What a person sees of something that runs: lines as things happen and, on a terminal, what is being done below them.

The lines stay where they are printed, so that they scroll and are copied like any other output. Only the few lines of the status
are drawn again, and only when they change. The cursor rests at their beginning: whatever the size of the terminal becomes, what
is erased begins there.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO, cast

from jumar.cli.common import colour_wanted, says_everything, set_lines, writable
from jumar.core.text import cell_width, escape_block, fit, in_ascii, wrapped
from jumar.loop.events.events import Event

if TYPE_CHECKING:
    from jumar.loop.store.layout import LoopPaths

_EVERY: Final = 0.25  # seconds between two looks at what is being done
_NARROWEST: Final = 20
_WIDEST: Final = 100  # of what is read as text
_STYLES: Final = {"bold": "1", "dim": "2", "good": "1;32", "bad": "31", "warn": "33"}

Draw = Callable[[int], Sequence[str]]
"""Returns lines for a width in columns."""


class SilentDisplay:
    """For ``--quiet``: notices go to stderr unless they are silenced too, nothing else is said."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        return

    def introduce(self, *, agent: str, paths: LoopPaths) -> None:
        """Take note of nothing."""

    def hear(self, event: Event) -> None:
        """Say nothing."""

    def end(self, draw: Draw) -> None:
        """Say nothing."""


class LinesDisplay(SilentDisplay):
    """Says what there is to say in lines, as it happens; with ``live``, also what is being done, below them.

    The stream of a live one is a terminal; the lines for others are as long as they are. ``colour`` False asks for none anywhere.
    """

    def __init__(self, stream: TextIO, *, live: bool = False, colour: bool = True) -> None:
        self._stream = stream
        self._live = live
        self._terminal = stream.isatty()
        self._colour = colour and self._terminal and colour_wanted()
        self._plain = not says_everything(stream.encoding)
        self._lock = threading.RLock()  # a signal handler of the main thread may speak while that one does
        self._drawn: tuple[str, ...] = ()
        self._ended = threading.Event()
        self._ticker: threading.Thread | None = None
        self._errors: TextIO | None = None

    @property
    def width(self) -> int | None:
        """The columns of the terminal now; None where lines are as long as they are."""
        if not self._terminal:
            return None
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return max(_NARROWEST, columns or int(os.environ.get("COLUMNS") or 80))

    def status(self, width: int) -> Sequence[str]:
        """Return the lines that say what is being done, none when nothing is; each of at most ``width`` columns."""
        del width
        return ()

    def say(self, text: str, style: str = "", *, indent: int = 0) -> None:
        """Print a line above the status; on a terminal long ones go on below, after ``indent`` columns.

        What the stream's encoding cannot say is replaced or escaped.
        """
        width = self.width
        for line in (text,) if width is None else wrapped(self.spelled(text), width, indent):
            self.print(line, style)

    def note(self, text: str) -> None:
        """Print what a person should know, wrapped at words below itself."""
        width = min(self.width or _WIDEST, _WIDEST)
        for line in set_lines(self.spelled(f"note      {escape_block(text)}"), width, 10):
            self.print(line, "warn")

    def print(self, line: str, style: str = "") -> None:
        """Print one line above the status as it is."""
        with self._lock:
            self._erase()
            shown = writable(line, self._stream.encoding)
            self._stream.write(f"{styled(shown, style) if self._colour else shown}\n")
            self._draw()
            self._stream.flush()

    def end(self, draw: Draw) -> None:
        """Print what ``draw`` returns for the width that there is, with nothing being done any more; words in front are bold."""
        self.stop()
        for line in draw(min(self.width or _WIDEST, _WIDEST)):
            label = line.partition(" ")[0] if self._colour else ""
            self.print(f"{styled(label, 'bold')}{self.spelled(line[len(label) :])}")

    def __enter__(self) -> Self:
        if self._live:
            if sys.stderr.isatty():
                self._errors, sys.stderr = sys.stderr, cast("TextIO", _Above(self, sys.stderr))
            self._ticker = threading.Thread(target=self._tick, name="jumar-status", daemon=True)
            self._ticker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the status away; once is enough."""
        self._ended.set()
        if self._ticker is not None and self._ticker is not threading.current_thread():
            self._ticker.join()
            self._ticker = None
        if self._errors is not None:
            sys.stderr, self._errors = self._errors, None
        with self._lock:
            self._erase()
            self._stream.flush()

    def _tick(self) -> None:
        while not self._ended.wait(_EVERY):
            with self._lock, contextlib.suppress(OSError, ValueError):  # the terminal went away; the loop goes on
                self._draw()
                self._stream.flush()

    def spelled(self, text: str) -> str:
        """Return ``text`` in signs that the stream's encoding has."""
        return in_ascii(text) if self._plain else text

    def _erase(self) -> None:
        if self._drawn:
            self._drawn = ()
            self._stream.write("\r\x1b[J")

    def _draw(self) -> None:
        """Draw the status where it changed, in one write, and go back to its beginning."""
        width = self.width
        if width is None or self._ended.is_set():
            return
        end = self.spelled("…")
        shown = (writable(self.spelled(line), self._stream.encoding) for line in self.status(width - 1))
        lines = tuple(fit(line, width - 1, end) for line in shown)
        if lines == self._drawn:
            return
        if not lines:
            self._erase()
            return
        drawing = "\x1b[K\n".join(styled(line, "dim") if self._colour else line for line in lines)
        back = f"\x1b[{len(lines) - 1}A" if len(lines) > 1 else ""
        self._stream.write(f"\r{drawing}\x1b[J{back}\r")
        self._drawn = lines


class _Above(io.TextIOBase):
    """What others write to stderr meanwhile: whole lines, above the status. Like ``stream`` in everything that is asked of it."""

    def __init__(self, display: LinesDisplay, stream: TextIO) -> None:
        self._display = display
        self._stream = stream
        self._rest = ""

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if line:
                self._display.print(line)
        return len(text)


def is_live(stream: TextIO) -> bool:
    """Whether a status can be drawn on ``stream``: a terminal whose cursor moves."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def styled(text: str, style: str) -> str:
    """Return ``text`` in ``style`` (``bold``, ``dim``, ``good``, ``bad``, ``warn``; empty for none) for a terminal."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if style and text else text


def aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return the cells as a line of a table, right-aligned in their widths; one of width 0 stands as it is, after a space.

    A cell that is too wide takes room from what follows, and keeps a blank before it.
    """
    shown = ""
    for cell, width in zip(row, widths, strict=True):
        blanks = max(width - cell_width(cell), 1 if shown else 0) if width else 3
        shown += " " * blanks + cell
    return shown.rstrip()
