"""`jumar run` as a process of its own: what it runs, and what it takes for a secret, is one loop's alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jumar.app.run.naming import new_name
from jumar.core.lock import own_directory
from jumar.errors import JumarError
from jumar.loop.generators.workdir import NOTE
from jumar.loop.store.layout import LoopPaths, loops_directory

_RUN: Final = (sys.executable, "-P", "-m", "jumar.cli.entry", "run")
_PATIENCE: Final = 20.0  # seconds, for a loop in the background to begin
_LOOK: Final = 0.05
_LAST_WORDS: Final = 1500  # characters


class RunFailedError(JumarError):
    """`jumar run` refused, and said why."""


@dataclass
class Run:
    """One `jumar run`, to be waited for in a thread and ended from another."""

    arguments: Sequence[str]
    cwd: Path
    note: str = ""
    _process: subprocess.Popen[str] | None = field(default=None, init=False)
    _ended: threading.Event = field(default_factory=threading.Event, init=False)

    def outcome(self, hear: Callable[[str], None]) -> dict[str, Any]:
        """Run it, tell ``hear`` the lines that it shows, and return the ``--json``. Errors: :class:`RunFailedError`."""
        command = [*_RUN, *self.arguments, "--json"]
        said: list[str] = []
        with subprocess.Popen(
            command, cwd=self.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", start_new_session=True, env={**os.environ, NOTE: self.note},
        ) as process:  # fmt: skip
            self._process = process
            if self._ended.is_set():
                self.end()
            listening = threading.Thread(target=self._listen, args=(process, said, hear), daemon=True)
            listening.start()
            printed = "" if process.stdout is None else process.stdout.read()
            listening.join()
        try:
            document: dict[str, Any] = json.loads(printed)
        except ValueError:
            document = {}
        if "loop_id" not in document:
            if process.returncode < 0:
                raise RunFailedError(
                    f"`jumar run` was killed (signal {-process.returncode}): nothing recorded is lost, call again"
                )
            error: dict[str, Any] = document.get("error") or {}
            raise RunFailedError(str(error.get("message") or "\n".join(said)[-_LAST_WORDS:] or f"exit code {process.returncode}"))
        return document

    def _listen(self, process: subprocess.Popen[str], said: list[str], hear: Callable[[str], None]) -> None:
        for line in process.stderr or ():
            said.append(line.rstrip())
            del said[:-40]
            hear(said[-1])

    def end(self) -> None:
        """End it as Ctrl-C twice does: what ran is on record as interrupted, and the loop can be resumed."""
        self._ended.set()
        process = self._process
        if process is None or process.poll() is not None:
            return
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(_LOOK)


def begin(arguments: Sequence[str], *, cwd: Path, root: Path) -> tuple[str, int]:
    """Start `jumar run` in the background, where it outlives this server; return the loop once it is there, and its process.

    Errors: :class:`RunFailedError` with its own words where it ended before that.
    """
    loop, log = _reserved(root, cwd)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*_RUN, *arguments, "--id", loop, "--resume", "never", "--quiet"],
            cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    until = time.monotonic() + _PATIENCE
    begun = LoopPaths(loops_directory(root) / loop).loop_json
    while not begun.is_file():
        code = process.poll()
        if code is not None:
            raise RunFailedError(log.read_text("utf-8", "replace").strip()[-_LAST_WORDS:] or f"exit code {code}")
        if time.monotonic() > until:
            raise RunFailedError(f"`jumar run` did not begin within {_PATIENCE:.0f} s; see {log}")
        time.sleep(_LOOK)
    threading.Thread(target=process.wait, daemon=True).start()  # so that no zombie is left of it
    return loop, process.pid


def _reserved(root: Path, directory: Path) -> tuple[str, Path]:
    """Return a name for a new loop, and the file for what it prints, which keeps the name from other servers."""
    logs = root / "mcp"
    own_directory(logs)
    taken = {path.stem for path in logs.glob("*.log")}
    while True:
        loop = new_name(root, directory, taken)
        log = logs / f"{loop}.log"
        try:
            log.touch(exist_ok=False)
        except FileExistsError:
            taken.add(loop)
        else:
            return loop, log
