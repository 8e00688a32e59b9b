"""What every display of something that runs is made of: lines on a stream, or one picture that is drawn again in place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from jumar.cli.common import writable
from jumar.loop.events import Event
from jumar.loop.outcome import LoopOutcome

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

__all__ = ["LinesDisplay", "PictureDisplay", "SilentDisplay", "aligned"]


class SilentDisplay:
    """For ``--quiet``: notices go to stderr unless they are silenced too, nothing else is said."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        return

    def hear(self, event: Event) -> None:
        """Say nothing."""

    def end(self, outcome: LoopOutcome) -> None:
        """Say nothing."""


class LinesDisplay(SilentDisplay):
    """Says what there is to say in lines, as it happens; for logs, pipes and ``--json`` (on stderr)."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def say(self, text: str) -> None:
        """Print one line; what the stream's encoding cannot say is escaped."""
        self._stream.write(writable(text, self._stream.encoding) + "\n")
        self._stream.flush()


class PictureDisplay(SilentDisplay, ABC):
    """A picture that is drawn again in place; only on a terminal. ``phase`` is what is being done, empty when nothing is."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour
        self._live: Live | None = None
        self.phase = ""

    @abstractmethod
    def render(self) -> RenderableType:
        """Return the picture as it is now."""

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live

        console = Console(no_color=not self._colour, highlight=False)
        self._live = Live(console=console, refresh_per_second=8, get_renderable=self.render)
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Draw the picture a last time, with nothing being done, and leave it where it stands; once is enough."""
        if self._live is not None:
            self.phase = ""
            self._live.stop()
            self._live = None


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return the cells as a line of a table, right-aligned in their widths; one of width 0 stands as it is, after a space."""
    shown = "".join(f"{cell:>{width}}" if width else f"   {cell}" for cell, width in zip(cells, widths, strict=True))
    return shown.rstrip()
