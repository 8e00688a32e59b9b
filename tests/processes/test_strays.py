"""A process is found while it becomes another program, when its environment looks empty."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator

import pytest

from jumar.processes import process_tree as strays
from jumar.processes.process_tree import MARKER, Family

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="there is no /proc here")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, MARKER: "a1b2"}, start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("times", [0, 1, 3])
def test_an_environment_that_looks_empty_is_looked_at_again(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    real, looks = strays._environment_from_proc, Counter[int]()

    def empty_at_first(pid: int) -> list[bytes]:
        looks[pid] += 1
        return [b""] if pid == sleeper.pid and looks[pid] <= times else real(pid)

    monkeypatch.setattr(strays, "_environment_from_proc", empty_at_first)
    assert (sleeper.pid,) == Family("a1b2").living()
    assert () == Family("c3d4").living()


def test_one_that_stays_empty_is_waited_for_once(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    real, looks = strays._environment_from_proc, Counter[int]()

    def empty(pid: int) -> list[bytes]:
        looks[pid] += 1
        return [b""] if pid == sleeper.pid else real(pid)

    monkeypatch.setattr(strays, "_environment_from_proc", empty)
    family = Family("a1b2")
    for _ in range(3):
        assert sleeper.pid not in family.living()
    assert 3 + len(strays._LOOK_AGAIN) == looks[sleeper.pid]
