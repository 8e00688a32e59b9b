"""A judge that is a program, and writes down what it charges in the moment in which it is asked."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

COST = 0.01
_PROGRAM = """#!/bin/sh
echo {cost} >> '{log}'
length=$(wc -c)
sleep {delay}
if [ -e '{broken}' ]; then exit 1; fi
echo '{{"reasoning": "", "strengths": [], "weaknesses": [], "gestalt": '$((length % 5 + 1))'{usage}}}'
"""


class PaidJudge:
    """Answers after ``delay`` seconds, for :data:`COST` USD; ``tells``: its answers say so. With ``broken`` it exits 1."""

    def __init__(self, directory: Path, *, delay: float = 0.02, tells: bool = True) -> None:
        self.program, self.log, self.broken = (directory / name for name in ("judge.sh", "charged.log", "broken"))
        usage = f', "usage": {{"cost_usd": {COST}}}' if tells else ""
        self.program.write_text(_PROGRAM.format(cost=COST, log=self.log, delay=delay, broken=self.broken, usage=usage))
        self.program.chmod(0o755)

    @property
    def spec(self) -> str:
        return f"command:{self.program}"

    @property
    def calls(self) -> int:
        """How often it was asked."""
        return len(self.log.read_text().split()) if self.log.exists() else 0

    @property
    def paid(self) -> float:
        """What it has charged, USD."""
        return self.calls * COST


def jumar(*words: object) -> list[str]:
    """The command line of a real process."""
    return [sys.executable, "-m", "jumar.cli.entry", *map(str, words)]


def kill_while_paying(words: Sequence[str], judge: PaidJudge, rng: random.Random, after: Callable[[], object]) -> bool:
    """Start ``words``, kill it when it has asked a few times, and look with ``after``; return False when it ended before."""
    wanted, deadline = judge.calls + rng.randint(1, 9), time.monotonic() + 120
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and judge.calls < wanted:
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.002)
    time.sleep(rng.random() * 0.03)
    process.send_signal(signal.SIGKILL)
    killed = process.wait() == -signal.SIGKILL
    time.sleep(0.1)  # what was started by then has charged by now
    after()
    return killed
