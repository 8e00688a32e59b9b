"""A dashboard that runs over a loop whose program writes hostile files."""

from __future__ import annotations

import http.client
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOSTILE = '<img src=x onerror="window.__pwned=1">.md'
AGENT = f"""
import os, pathlib
number = int(os.environ["JUMAR_ITERATION"])
pathlib.Path("text.md").write_text(f"words {{number}}\\n<script>window.__pwned={{number}}</script>\\n")
pathlib.Path({HOSTILE!r}).write_text("'\\"><svg onload=window.__pwned=1>\\n")
print("</pre><script>window.__pwned=1</script>\\x1b[2J")
"""


@dataclass
class Served:
    """A dashboard that runs: its address and process."""

    address: str
    process: subprocess.Popen[str]

    @property
    def place(self) -> tuple[str, int]:
        found = re.match(r"http://([\d.]+):(\d+)/", self.address)
        assert found is not None
        return found[1], int(found[2])

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(*self.place, timeout=20)
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        try:
            return answer.status, answer.read().decode()
        finally:
            connection.close()


@contextmanager
def serving(directory: Path, *options: str) -> Generator[Served]:
    command = [sys.executable, "-m", "jumar.cli.entry", "dashboard", "--no-open", *options]
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Served(process.stdout.readline().strip(), process)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)


def project(place: Path, passes: int = 3) -> Path:
    (place / "agent.py").write_text(AGENT)
    (place / "text.md").write_text("words 0\n")
    (place / "jumar.toml").write_text(
        f'[loop]\nid = "t"\nobjective = "{{{{ 7 * 7 }}}} <b>bold</b>"\nmax_iterations = {passes}\n[stop]\nkeep_going = true\n'
        f'[generator]\ncommand = ["{sys.executable}", "agent.py"]\n'
        '[[checks]]\nname = "words <i>"\ncommand = "grep -q words text.md"\n'
        '[[scorers]]\ndimension = "quality"\ncommand = "case $(head -1 text.md) in *2) echo 0.9;; *) echo 0.5;; esac"\n'
    )
    return place


def root_of(served: Served) -> str:
    """Return the address without its path."""
    return "/".join(served.address.split("/")[:3])


def hidden_fields(served: Served) -> dict[str, str]:
    """Return the hidden fields of the forms of a loop's page."""
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]+)"', served.ask("GET", "/loops/t/decide")[1]))
