"""Small real programs to loop over, shared by the end-to-end tests."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from commands import unwrapped
from forks import run_forked

AGENT = """
import os, sys, time
scores = {scores!r}
n = int(os.environ["JUMAR_ITERATION"])
value = scores[min(n, len(scores)) - 1]
open("calls.log", "a").write(f"{{n}}\\n")
if value == "fail":
    open("score.txt", "w").write("0.99")
    sys.exit(3)
if value == "hang":
    time.sleep(600)
open("score.txt", "w").write(str(value))
open("text.md", "w").write(f"pass {{n}}\\n")
"""


def write_loop(
    directory: Path,
    scores: Sequence[float | str],
    *,
    start: float | str = 0.5,
    check: str | None = "grep -q pass text.md",
    extra: str = "",
    loop: str = "",
    generator: str = "",
) -> Path:
    """Write a loop whose generator sets ``score.txt`` to ``scores[iteration - 1]``; return the configuration's path."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "score.txt").write_text(str(start))
    (directory / "text.md").write_text("pass 0\n")
    (directory / "agent.py").write_text(AGENT.format(scores=list(scores)))
    validators = f"[[checks]]\nname = 'text'\ncommand = {json.dumps(check)}\n" if check else ""
    config = directory / "jumar.toml"
    config.write_text(
        f"""
[loop]
id = "t"
objective = "make it better"
max_iterations = {len(scores)}
{loop}

[artifacts]
include = ["score.txt", "text.md"]

[generator]
command = [{json.dumps(sys.executable)}, "agent.py"]
{generator}

{validators}
[[scorers]]
dimension = "quality"
command = "cat score.txt"

{extra}
"""
    )
    return config


def jumar(
    directory: Path, *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 60, check: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the real command line in ``directory``."""
    done = run_forked(arguments, directory, {**os.environ, **(env or {})}, timeout)
    if check is not None:
        assert check == done.returncode, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    done.stdout, done.stderr = unwrapped(done.stdout), unwrapped(done.stderr)
    return done


def jumar_json(directory: Path, *arguments: str, check: int = 0, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run with ``--json`` and return the one document on stdout."""
    command, *rest = arguments
    done = jumar(directory, command, "--json", *rest, check=check, env=env)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def deaf(command: Sequence[str]) -> list[str]:
    """Return ``command`` so that it ignores the signals that jumar has handlers for, as under ``nohup`` or in a script."""
    ignore = "import os, signal, sys\nfor number in (1, 2, 15):\n    signal.signal(number, signal.SIG_IGN)\n"
    return [sys.executable, "-c", f"{ignore}os.execvp(sys.argv[1], sys.argv[1:])", *command]


def calls(directory: Path) -> list[int]:
    """Return the iteration numbers that the generator was called with, in order."""
    log = directory / "calls.log"
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def started_on_a_terminal(
    directory: Path, *arguments: str, term: str = "xterm", env: Mapping[str, str] | None = None, columns: int = 80
) -> tuple[subprocess.Popen[bytes], int]:
    """Start jumar on a terminal of its own; return the process and our end of the terminal, to be closed by the caller."""
    ours, theirs = pty.openpty()
    resize(ours, columns)
    process = subprocess.Popen(
        [sys.executable, "-m", "jumar.cli.entry", *arguments],
        cwd=directory,
        env={**{name: value for name, value in os.environ.items() if name != "COLUMNS"}, "TERM": term, **(env or {})},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    return process, ours


def resize(terminal: int, columns: int) -> None:
    """Make a terminal so many columns wide."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))


def read_terminal(terminal: int, process: subprocess.Popen[bytes], *, until: str | None = None, seconds: float = 60) -> str:
    """Return what is written until ``until`` stands there, or, without it, until the process has ended; then it is closed."""
    written, deadline = b"", time.monotonic() + seconds
    while until is None or until.encode() not in written:
        assert time.monotonic() < deadline, written
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # everybody on the other side has closed it
                data = b""
            if not data:
                break
            written += data
    if until is None:
        os.close(terminal)
        process.wait(timeout=seconds)
    return written.decode("utf-8", "replace")
