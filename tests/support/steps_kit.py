"""Contexts for steps without an engine, and a slow look at every process of the machine."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil

from jumar.model import StepContext
from jumar.processes.environment import build_environment, step_variables

# without site-packages: it is not what coverage measures, and starts in a tenth of the time
WILD = [sys.executable, "-S", str(Path(__file__).with_name("wild_agent.py"))]


def wild(*actions: str) -> list[str]:
    return [*WILD, *actions]


def context(workdir: Path, *, base: dict[str, str] | None = None, prompt: str = "do it\n", **fields) -> StepContext:
    """A context whose files lie beside ``workdir``."""
    logs = workdir.parent / f"{workdir.name}.step"
    logs.mkdir(exist_ok=True)
    files = {name: logs / name for name in ("prompt.md", "feedback.json", "usage.json")}
    files["prompt.md"].write_text(prompt, encoding="utf-8")
    files["feedback.json"].write_text("{}")
    values = {"loop_id": "loop", "iteration": 1} | fields
    variables = step_variables(
        loop_id=str(values["loop_id"]),
        iteration=int(values["iteration"]),
        prompt_file=files["prompt.md"],
        feedback_file=files["feedback.json"],
        usage_file=files["usage.json"],
    )
    if base is None:  # the steps' own allow-list would keep coverage from measuring what runs in a child
        variables |= {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    return StepContext(
        workdir=workdir,
        prompt_file=files["prompt.md"],
        feedback_file=files["feedback.json"],
        usage_file=files["usage.json"],
        log_directory=logs,
        environment=build_environment(dict(os.environ) if base is None else base, (), variables),
        **values,
    )


def carriers(nonce: str) -> list[int]:
    """Every living process whose environment holds ``nonce``, found the slow way."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and nonce in process.environ().get("JUMAR_STEP", ""):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def sleepers(marker: str) -> list[int]:
    """Every living process with ``marker`` among its arguments."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and marker in process.cmdline():
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def is_gone(pid: int, seconds: float = 20.0) -> bool:
    """Whether a process that was killed ends; one that nobody has reaped has ended."""

    def ended() -> bool:
        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    return wait_for(ended, seconds)


def wait_for(condition, seconds: float = 5.0):
    """Return the first true value of ``condition()``; the last value when the time is over."""
    deadline = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return value
