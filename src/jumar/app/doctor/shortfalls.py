"""What wastes a night although every program starts: a module that is not installed, no limit, tests that nobody guards."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from jumar.app.config.config import JumarConfig
from jumar.app.config.guard import guard_rules
from jumar.app.config.telemetry import load_listeners
from jumar.app.doctor.machine import Row
from jumar.core.rendering.figures import duration
from jumar.core.text import escape
from jumar.errors import JumarError

__all__ = ["found_by_passes", "limit_rows", "listener_rows", "not_found_by_passes", "of_the_copy", "protect_rows"]

_OUTSIDE: Final = re.compile(r"""(?:^|[\s='"(;&|<>])((?:\./)*\.\./[^\s'";&|<>()]*)""")


def of_the_copy(row: Row, command: str | Sequence[str] | None, workdir: Path, config: JumarConfig) -> Row:
    """Return ``row`` with a hint when it is not green and ``command`` names a file outside of ``workdir`` by a relative path.

    Such a path leads elsewhere from the copy in which the program was tried, while a run in place finds it: yellow. Where
    iterations run in trees of their own, they don't find it either, and the row stays what it is.
    """
    if row.state == "green" or command is None:
        return row
    words = _OUTSIDE.findall(command) if isinstance(command, str) else [word for word in command if _OUTSIDE.match(word)]
    path = next((word for word in words if (workdir / word).exists()), None)
    if path is None:
        return row
    if not found_by_passes(path, workdir, config):
        return replace(row, fix=not_found_by_passes(path))
    fix = (
        f"{escape(path)} leaves the working directory and leads elsewhere from the copy that is tried here; a run finds the "
        "file. An absolute path is found in both"
    )
    return replace(row, state="yellow", fix=fix)


def found_by_passes(path: str, workdir: Path, config: JumarConfig) -> bool:
    """Whether ``path``, seen from ``workdir``, is the same file where iterations run: in place, or in trees of their own."""
    in_place = config.loop.isolation not in {"copy", "worktree"} and config.loop.candidates == 1
    if in_place or Path(path).expanduser().is_absolute():
        return True
    top = workdir.resolve()
    if config.loop.isolation == "worktree":  # which is one of the whole repository
        top = next((place for place in (top, *top.parents) if (place / ".git").exists()), top)
    return Path(os.path.normpath(workdir.resolve() / path)).is_relative_to(top)


def not_found_by_passes(path: str) -> str:
    """Return what to do about a path that :func:`found_by_passes` refuses."""
    return (
        f"{escape(path)} leaves the working directory and leads elsewhere from the trees below .jumar/work, where iterations "
        "run: give its absolute path"
    )


def limit_rows(config: JumarConfig) -> Iterator[Row]:
    """Warn of a generator that may spend what it likes. A Python function is the person's own code and not warned of."""
    budget, generator = config.budget, config.generator
    limits = (budget.max_cost_usd, budget.max_tokens, budget.max_seconds, config.stop.max_seconds)
    if generator.command is None or any(limit is not None for limit in limits):
        return
    most = f"only max_iterations ends it: {config.max_iterations} iterations of up to {duration(generator.timeout)}"
    fix = "set [budget] max_cost_usd (and reserve_cost_usd where the agent doesn't say what it costs), or max_seconds"
    yield Row(name="budget", state="yellow", detail=f"no limit on money, tokens or time; {most}", fix=fix)


def protect_rows(config: JumarConfig, base: Path, workdir: Path, path: Path) -> Iterator[Row]:
    """Warn of tests that the generator may weaken, as a run does, and find what that refuses about the files of the checks."""
    try:
        notices = guard_rules(config, workdir=workdir, base=base, path=path).notices
    except (JumarError, OSError) as error:
        yield Row(name="protect", state="red", detail=str(error), fix="edit files of the check as the message says")
        return
    for notice in notices:
        detail, _, fix = notice.partition("; ")
        yield Row(name="protect", state="yellow", detail=detail, fix=fix)


def listener_rows(config: JumarConfig, base: Path) -> Iterator[Row]:
    """Load what ``[hooks]`` and ``[telemetry]`` name, as a run does before it begins."""
    names = [*config.hooks.python, *(["OpenTelemetry"] if config.telemetry.otel else [])]
    if not names:
        return
    try:
        load_listeners(config.hooks, config.telemetry, base)
    except JumarError as error:
        fix = "mend it, or take it out of [hooks] or [telemetry]: `jumar run` refuses to begin"
        yield Row(name="hooks", state="red", detail=str(error), fix=fix)
        return
    yield Row(name="hooks", state="green", detail=f"can be loaded: {escape(', '.join(names))}")
