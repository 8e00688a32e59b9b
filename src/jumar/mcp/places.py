"""Which directories and loops a client may name, and which loop it means where it names none."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jumar.app.config.tables import take_up_redaction
from jumar.app.decide import workdir_for
from jumar.core.text import escape, nearest
from jumar.errors import NotFoundError, UsageError
from jumar.loop.store.layout import list_loops, loops_directory
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.running import newest_loop

_LISTED = 10


def directories_of(uris: Iterable[str]) -> tuple[Path, ...]:
    """Return the directories that a client's roots name; what is no ``file://`` address is none. Errors: :class:`UsageError`."""
    split = [urlsplit(uri) for uri in uris]
    paths = [unquote(uri.path) for uri in split if uri.scheme == "file" and uri.netloc in {"", "localhost"}]
    if any("\0" in path for path in paths):
        raise UsageError("a root with a NUL is no directory: name others")
    return tuple(Path(path).resolve() for path in paths)


@dataclass
class Places:
    """One server's: ``top`` is the directory that it serves, ``root`` holds the loops.

    ``mine`` maps a client's session to the loop that it started last: two agents that share a repository, and even a server, do
    not record into each other's loop.
    """

    top: Path
    root: Path
    mine: dict[str, str] = field(default_factory=dict[str, str])
    _reading: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def inside(self, path: str, allowed: tuple[Path, ...]) -> Path:
        """Return ``path``, relative to the first of ``allowed`` directories (none: the server's own), links followed.

        Errors: :class:`UsageError` where it leads out of all of them.
        """
        roots = allowed or (self.top,)
        try:
            found = (roots[0] / path).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise UsageError(f"{escape(path)} is no path: {error}") from None
        if not any(found == root or root in found.parents for root in roots):
            raise UsageError(
                f"{escape(path)} lies outside of {', '.join(escape(str(root)) for root in roots)}: name a path in there"
            )
        return found

    def directory(self, path: str, allowed: tuple[Path, ...]) -> Path:
        """Return a directory :meth:`inside`. Errors: :class:`UsageError`."""
        found = self.inside(path, allowed)
        if not found.is_dir():
            raise UsageError(f"{escape(path)} is no directory")
        return found

    def file(self, path: str, allowed: tuple[Path, ...]) -> Path:
        """Return a regular file :meth:`inside`: a pipe might never end. Errors: :class:`UsageError`."""
        found = self.inside(path, allowed)
        if not found.is_file():
            raise UsageError(f"{escape(path)} is no file")
        return found

    def started(self, loop: str, session: str | None) -> None:
        """Remember which loop a session started last."""
        if session is not None:
            self.mine[session] = loop

    def find(self, loop: str | None, session: str | None = "") -> Path:
        """Return the directory of ``loop``; of none, that which ``session`` started last, else the newest.

        ``session`` None is a client that cannot be told from others: where there are several loops it has to name one. Errors:
        :class:`NotFoundError` that lists what there is.
        """
        known = list_loops(self.root)
        name = loop or (None if session is None else self.mine.get(session))
        if name is None and session is None and len(known) > 1:
            raise NotFoundError(f"say which loop: {', '.join(map(escape, known[-_LISTED:]))}")
        if name is None:
            newest = newest_loop([self.root])
            if newest is None:
                raise NotFoundError("there is no loop yet: begin with start_loop")
            return newest
        if name not in known:
            there = f"there are: {', '.join(map(escape, known[-_LISTED:]))}" if known else "begin with start_loop"
            raise NotFoundError(f"no loop is called '{escape(name)}'{nearest(name, known)}; {there}")
        return loops_directory(self.root) / name

    @contextlib.contextmanager
    def reading(
        self, loop: str | None, session: str | None = "", *, within: tuple[Path, ...] | None = None
    ) -> Generator[LoopStore]:
        """Open a loop, with its own ``[redact]`` in force; one at a time, because that holds for the whole process.

        ``within`` are the roots that its working directory has to lie in, None for a call that leaves that alone.
        """
        with self._reading:
            store = LoopStore.open(self.find(loop, session))
            if within is not None:
                self.inside(str(workdir_for(store)), within)
            take_up_redaction(store)
            yield store
