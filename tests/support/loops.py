"""Small real programs to loop over, shared by the end-to-end tests."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
    validators = f"[[validators]]\nname = 'text'\ncommand = {json.dumps(check)}\n" if check else ""
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
    done = subprocess.run(
        [sys.executable, "-m", "jumar.cli.entry", *arguments],
        cwd=directory,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if check is not None:
        assert check == done.returncode, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def jumar_json(directory: Path, *arguments: str, check: int = 0, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run with ``--json`` and return the one document on stdout."""
    command, *rest = arguments
    done = jumar(directory, command, "--json", *rest, check=check, env=env)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def calls(directory: Path) -> list[int]:
    """Return the iteration numbers that the generator was called with, in order."""
    log = directory / "calls.log"
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def started_on_a_terminal(directory: Path, *arguments: str, term: str = "xterm") -> tuple[subprocess.Popen[bytes], int]:
    """Start jumar on a terminal of its own; return the process and our end of the terminal, to be closed by the caller."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "jumar.cli.entry", *arguments],
        cwd=directory,
        env={**os.environ, "TERM": term},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    return process, ours
