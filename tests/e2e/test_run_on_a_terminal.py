"""`jumar run` in front of a person: lines that stay, a status that follows, whatever the terminal is."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
from loops import read_terminal, resize, started_on_a_terminal, write_loop
from screens import screen_of

from jumar.core.text import cell_width

TALKS = """
import time
for step in range(4):
    print(f"\\x1b[36mreading\\x1b[0m file {step} of iteration {n}", flush=True)
    time.sleep(0.2)
"""


def talking_loop(directory: Path, *, passes: int = 2, pause: float = 0.2) -> None:
    write_loop(directory, [0.6, 0.9, 0.7][:passes], extra="[budget]\nmax_seconds = 3600\n")
    agent = directory / "agent.py"
    agent.write_text(agent.read_text() + TALKS.replace("0.2", str(pause)))


def run_in(directory: Path, *, columns: int = 80, term: str = "xterm", env: Mapping[str, str] | None = None) -> str:
    process, ours = started_on_a_terminal(directory, "run", term=term, columns=columns, env=env)
    shown = read_terminal(ours, process)
    assert 0 == process.returncode, shown
    return shown


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_the_status_says_what_is_done_and_is_gone_at_the_end(tmp_path: Path, columns: int) -> None:
    talking_loop(tmp_path)
    written = run_in(tmp_path, columns=columns)
    if columns > 40:
        assert re.search(r"iteration 1 of 2 · agent \d+s · \d+s of 1h 00m", written)
    assert re.search(r"> reading file \d of iteration \d", written)
    assert r"\x1b" not in written
    screen = screen_of(written, columns)
    assert columns >= max(map(cell_width, screen))
    shown = "\n".join(screen)
    assert "jumar · t · agent.py · up to 2 iterations" in " ".join(shown.split())
    assert ["0", "1", "2"] == [line.split()[0] for line in screen if re.match(r" +\d+ +\d+\.\d", line)]
    assert "★ best" in shown
    assert "agent 0s" not in shown
    assert "reading file" not in shown
    assert 3 < written.count("\x1b[J") < 120, "drawn again when something changed, and only then"


def test_no_colour_dumb_terminals_and_other_encodings(tmp_path: Path) -> None:
    talking_loop(tmp_path / "a", passes=1)
    assert not re.search(r"\x1b\[[0-9;]*m", run_in(tmp_path / "a", env={"NO_COLOR": "1"}))
    talking_loop(tmp_path / "b", passes=1)
    dumb = run_in(tmp_path / "b", term="dumb")
    assert "\x1b" not in dumb
    assert "reading file" not in dumb
    assert 80 >= max(map(len, dumb.splitlines()))
    talking_loop(tmp_path / "c", passes=1)
    plain = run_in(tmp_path / "c", env={"PYTHONIOENCODING": "ascii"})
    assert plain.isascii()
    assert "jumar | t | agent.py" in plain
    assert "* best" in plain


def test_a_window_that_changes_its_width_and_ctrl_c(tmp_path: Path) -> None:
    talking_loop(tmp_path, passes=3, pause=0.5)
    process, ours = started_on_a_terminal(tmp_path, "run", columns=120)
    written = read_terminal(ours, process, until="> reading file 1 of iteration 1")
    resize(ours, 30)
    written += read_terminal(ours, process, until="> reading file 2 of itera")
    process.send_signal(signal.SIGINT)
    written += read_terminal(ours, process)
    assert 130 == process.returncode
    screen = screen_of(written)
    assert "finishing this step; press Ctrl-C again to stop now" in screen
    assert ["0", "1"] == [line.split()[0] for line in screen if re.match(r" +\d+ +\d+\.\d", line)]
    assert not [line for line in screen if "agent 0s" in line or line.startswith("  > ")]
