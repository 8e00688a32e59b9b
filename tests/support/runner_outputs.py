"""What test runners printed: ``runner_outputs/*.txt``, in sections headed ``#### NAME: RUNNER, recorded: COMMAND (exit N)``.

Recorded ones are the standard output and then the standard error of the real runner, with the paths of the machine replaced,
below the command, as a check gives it; the others say after what they were written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from jumar.loop.checks.runners import SuiteRun, joined, read_runs

__all__ = ["OUTPUTS", "RunnerOutput", "counts", "read_output", "spoken"]


@dataclass(frozen=True)
class RunnerOutput:
    about: str
    text: str

    @property
    def recorded(self) -> bool:
        return ", recorded: " in self.about


def _read() -> dict[str, RunnerOutput]:
    found: dict[str, RunnerOutput] = {}
    for path in sorted(Path(__file__).with_suffix("").glob("*.txt")):
        for section in path.read_text(encoding="utf-8").removeprefix("#### ").split("\n#### "):
            head, _, text = section.partition("\n")
            name, _, about = head.partition(": ")
            assert name not in found, name
            command = re.search(r", recorded: (.+) \(exit \d+\)$", about)
            found[name] = RunnerOutput(about, f"> {command[1]}\n{text}" if command is not None else text)
    return found


OUTPUTS = _read()


def read_output(text: str) -> SuiteRun | None:
    """Return what all runners together said in ``text``; None when none spoke."""
    return joined(read_runs(text))


def spoken(text: str) -> SuiteRun:
    run = read_output(text)
    assert run is not None
    return run


def counts(run: SuiteRun) -> tuple[int, int, int]:
    return run.passed, run.failed, run.skipped
