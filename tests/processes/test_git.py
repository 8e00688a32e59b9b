"""git has a time limit, and what it started ends with it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import psutil
import pytest

from jumar.errors import UsageError
from jumar.processes import git
from jumar.processes.git import Git


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_filter_that_waits_ends_with_the_git_that_asked_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Git(directory=tmp_path)
    here.run("init", "--quiet")
    here.run("config", "filter.slow.clean", f"sleep 61 & echo $! > '{tmp_path}/pid'; wait; cat")
    (tmp_path / ".gitattributes").write_text("*.txt filter=slow\n")
    (tmp_path / "a.txt").write_text("6\n")
    monkeypatch.setattr(git, "_TIMEOUT", 1)
    with pytest.raises(UsageError, match="git hash-object did not end within 1 s in"):
        here.run("hash-object", "--path", "a.txt", "a.txt")
    waiting = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not psutil.pid_exists(waiting) or psutil.Process(waiting).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.05)
    pytest.fail("the filter goes on")
