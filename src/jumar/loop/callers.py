"""Who calls a command that is a person's to give: a person, or a program of the very loop that it is about.

A program of a loop is told where it is by its environment, and so are those that it starts. One that wiped its environment, left
its parents and waits until nothing else of the loop runs cannot be told from a person.
"""

from __future__ import annotations

import os

from jumar.core.text import escape
from jumar.errors import UsageError
from jumar.loop.store.loop_reader import LoopReader
from jumar.processes.process_tree import Family, environments_above


def calling_program(loop_id: str) -> str | None:
    """Return which program of the loop this process is, or was started by, as words; None for a person."""
    above = ({name: value for name, _, value in (entry.partition(b"=") for entry in each)} for each in environments_above())
    for environment in (os.environb, *above):
        iteration = environment.get(b"JUMAR_ITERATION")
        if iteration is not None and environment.get(b"JUMAR_LOOP_ID") == loop_id.encode():
            return f"a program of iteration {escape(os.fsdecode(iteration))}"
    return None


def running_program(store: LoopReader) -> str | None:
    """Return which program of a step that never ended still runs, as words; None when there is none."""
    for attempt in store.attempts():
        if attempt.end is None and (left := Family(attempt.start.nonce).living()):
            return f"process {left[0]} of iteration {attempt.start.iteration}, which still runs,"
    return None


def refuse_program(loop_id: str, what: str) -> None:
    """Raise :class:`UsageError` where a program of the loop calls ``what``, which is for a person to do."""
    who = calling_program(loop_id)
    if who is not None:
        raise UsageError(
            f"{who} of loop '{escape(loop_id)}' called `jumar {what}`, which is for a person to do; nothing was changed"
        )
