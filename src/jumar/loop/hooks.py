"""The person's own commands around the steps: ``setup`` and ``reset`` for what lies outside of files, ``on_stop`` at the end.

A tree can be put back to an iteration; a database, a server or a port cannot. ``setup`` makes them once for each tree, ``reset``
brings them back to a known state before a generator or a check meets them. None of them is the candidate's: what fails here
says nothing about it. What ``setup`` leaves running stays until the run ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jumar.core.files import as_write_error, make_directory
from jumar.core.redaction import current, redacted_json
from jumar.core.text import escape, last_line
from jumar.errors import JumarError
from jumar.model.protocols import StepContext
from jumar.processes.environment import build_environment
from jumar.processes.process import check_command, check_timeout, run_command
from jumar.processes.process_tree import MARKER, end_strays, within

PORTS: Final = 10
"""How many ports a tree has, from ``JUMAR_PORT`` on."""

_FIRST_PORT: Final = 20_000
_BLOCKS: Final = 1_276  # up to 32759: from 32768 on Linux gives ports to whoever asks for any
_LOGS: Final = "logs"
_LAST_LINE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One command: a string for the shell, or a list without one. ``timeout`` is in seconds."""

    name: str
    command: str | Sequence[str]
    timeout: float

    def __post_init__(self) -> None:
        check_command(self.command, where=f"[loop] {self.name}")
        check_timeout(self.timeout, where=f"[loop] {self.name}_timeout")

    def run(
        self,
        *,
        cwd: Path,
        environment: Mapping[str, str],
        log: Path | None,
        stop: threading.Event | None = None,
        marker: str | None = None,
        stdin: bytes | None = None,
        leave: bool = False,
    ) -> str | None:
        """Run it; return why it failed, None when it did not, or was stopped.

        What it started is ended with it, unless ``leave``: then it goes on when the command itself has ended.
        """
        result = run_command(
            self.command,
            cwd=cwd,
            env=environment,
            timeout=self.timeout,
            log=log,
            stop=stop,
            marker=marker,
            stdin=stdin,
            leave=leave,
        )
        if result.failure is None or result.interrupted:
            return None
        said = last_line(result.output_tail)[:_LAST_LINE]
        return f"[loop] {self.name}: {result.failure}{f': {escape(said)}' if said else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What is run around the steps; None where the person has nothing to run. ``stop`` ends them."""

    setup: Hook | None = None
    reset: Hook | None = None
    stop: threading.Event | None = None


def port_of(loop: Path, slot: int | None) -> int:
    """Return the first of the ten ports of a tree: from 20000 to 32750, by the loop's directory and the slot.

    Slots of one loop never share a port; two loops rarely do (a chance of one in 1,276 for each pair of trees).
    """
    digest = hashlib.sha256(os.fsencode(os.path.realpath(loop))).digest()
    return _FIRST_PORT + PORTS * ((int.from_bytes(digest[:8], "big") + (slot or 0)) % _BLOCKS)


def set_up(hooks: Hooks, *, loop: Path, tree: str, cwd: Path, environment: Mapping[str, str]) -> None:
    """Run ``setup`` in a tree; its log is ``logs/setup-<tree>.log`` of the loop. Errors: :class:`JumarError` when it fails.

    What an earlier run's left running, because that was killed, is ended first.
    """
    if hooks.setup is None:
        return
    log = loop / _LOGS / f"setup-{tree}.log"
    with as_write_error("create", log.parent):
        make_directory(log.parent)
    marker = _marker(loop, tree)
    end_strays(marker)
    failure = hooks.setup.run(cwd=cwd, environment=environment, log=log, stop=hooks.stop, marker=marker, leave=True)
    if failure is not None:
        end_strays(marker)
        raise JumarError(f"{failure}; nothing was paid. Its output is in {escape(str(log))}; mend it and run again")


def tear_down(hooks: Hooks, *, loop: Path, tree: str) -> None:
    """End what ``setup`` left running for a tree."""
    if hooks.setup is not None:
        end_strays(_marker(loop, tree))


def _marker(loop: Path, tree: str) -> str:
    """Return the nonce of a tree's setup: the same in every run, so that what a killed one left is found."""
    return hashlib.sha256(os.fsencode(f"setup {os.path.realpath(loop)} {tree}")).hexdigest()[:16]


def reset_failure(hooks: Hooks, context: StepContext, purpose: str, *, tries: int) -> str | None:
    """Run ``reset`` before a step, ``tries`` times while it fails; return why it failed the last time, None when it did not.

    The log is ``reset-<purpose>.log`` among the step's own, and shows the last run.
    """
    if hooks.reset is None:
        return None
    failure: str | None = None
    for _ in range(tries):
        failure = hooks.reset.run(
            cwd=context.workdir,
            environment=context.environment,
            log=context.log_directory / f"reset-{purpose}.log",
            stop=hooks.stop,
            marker=context.nonce or None,
        )
        if failure is None:
            return None
    return failure


def notify(
    hook: Hook, outcome: Mapping[str, Any], *, loop: Path, cwd: Path, allowed: Sequence[str], nonce: str = ""
) -> str | None:
    """Run ``on_stop`` with the final document on its standard input and in ``JUMAR_OUTCOME_FILE``; return why it failed, or None.

    The log is ``logs/on_stop.log`` of the loop. It sees the environment that the steps see: it may be a script that the generator
    can edit, so that it is known for a program of the loop with this ``nonce``. Whatever goes wrong is returned, never raised.
    """
    text = json.dumps(redacted_json(outcome, current().redact), indent=2, ensure_ascii=False)
    document = f"{text}\n".encode("utf-8", "backslashreplace")
    try:
        log = loop / _LOGS / "on_stop.log"
        make_directory(log.parent)
        with tempfile.TemporaryDirectory(prefix="jumar-outcome-") as place:
            file = Path(place) / "outcome.json"
            file.write_bytes(document)
            variables = {"JUMAR_LOOP_ID": str(outcome.get("loop_id", "")), "JUMAR_OUTCOME_FILE": str(file)}
            variables[MARKER] = within(nonce)
            environment = build_environment(os.environ, allowed, variables)
            return hook.run(cwd=cwd, environment=environment, log=log, stdin=document)
    except (OSError, JumarError) as error:
        return f"[loop] {hook.name}: {error}"
