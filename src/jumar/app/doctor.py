"""The checks of ``jumar doctor``: this machine, the configuration, and every program of it, before a run is paid for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jumar.app.agents import installed_agents
from jumar.app.config.config import JumarConfig, find_config, load_config
from jumar.app.machine import Row, disk_row, likely_check, machine_rows
from jumar.app.rehearsal import limit_rows, listener_rows, protect_rows, rehearse, throw_away_copy
from jumar.app.run.parts import sandbox_of
from jumar.app.run.preflight import cost_row, generator_row, size_row
from jumar.core.files import read_named
from jumar.core.lock import who_holds
from jumar.core.text import escape
from jumar.errors import ConfigError, JumarError
from jumar.loop.snapshots.tree_size import TreeSize
from jumar.loop.workspace.worktrees import check_repository

DEFAULT_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What is to be checked. ``root`` None is ``.jumar`` beside the configuration; ``timeout`` is the generator's, in seconds."""

    config: Path | None = None
    root: Path | None = None
    run: bool = True
    timeout: float = DEFAULT_TIMEOUT
    encoding: str | None = "utf-8"

    def where(self) -> Path:
        """Return the root that is looked at."""
        if self.root is not None:
            return self.root
        found = find_config(self.config)
        return (Path() if found is None else found.parent) / ".jumar"


def examine(examination: Examination) -> Iterator[Row]:
    """Yield one row after the other, as they are known. Nothing that was there is changed; what is tried is cleaned up."""
    root = examination.where()
    yield from machine_rows(root, encoding=examination.encoding)
    path = find_config(examination.config)
    if path is None:
        yield disk_row(root)
        name = next(iter(installed_agents()), "NAME")
        run = f"jumar run --agent {name} -p '…' --check {likely_check(Path())}"
        fix = f"`jumar init --agent {name}` writes one; or run without: {run}"
        yield Row(name="configuration", state="yellow", detail="there is no jumar.toml here", fix=fix)
        return
    try:
        config = load_config(path)
    except JumarError as error:
        yield disk_row(root)
        yield Row(
            name="configuration",
            state="red",
            detail=str(error),
            fix=f"edit {path} as the message says; `jumar init` writes a new one",
        )
        return
    yield Row(name="configuration", state="green", detail=str(path))
    yield from _with_config(examination, config, path.parent, root)


def _with_config(examination: Examination, config: JumarConfig, base: Path, root: Path) -> Iterator[Row]:
    workdir = config.directory(base)
    if not workdir.is_dir():
        yield disk_row(root)
        fix = "create it, or edit workdir in [loop]"
        yield Row(name="working directory", state="red", detail=f"{workdir} does not exist", fix=fix)
        return
    yield from _objective_rows(config, base)
    cost = cost_row(config)
    yield from limit_rows(config) if cost is None else (cost,)
    yield from protect_rows(config, base, workdir, find_config(examination.config) or base / "jumar.toml")
    yield from listener_rows(config, base)
    yield from _lock_rows(root, workdir, config)
    try:
        kept = _size(config, workdir, root)
    except (JumarError, OSError) as error:
        yield disk_row(root)
        yield Row(name="snapshot", state="red", detail=str(error), fix="leave it out with [artifacts] exclude")
        return
    yield disk_row(root, kept.room)
    snapshot = size_row(config, kept)
    yield snapshot
    if snapshot.state == "red":
        return
    yield generator_row(config, workdir)
    yield from _isolation_rows(config, base, root, workdir)
    try:
        with throw_away_copy(workdir, root, tuple(kept.sizes), config) as rehearsal:
            runnable = generator_row(config, workdir).state != "red"
            yield from rehearse(rehearsal, base, run=examination.run and runnable, timeout=examination.timeout)
    except OSError as error:
        detail = f"the working directory could not be copied: {error}"
        yield Row(name="rehearsal", state="red", detail=detail, fix="free some space in TMPDIR, or set it to a larger disk")


def _isolation_rows(config: JumarConfig, base: Path, root: Path, workdir: Path) -> Iterator[Row]:
    """Say whether the place that the loop asks for can be made."""
    isolation = config.loop.isolation
    try:
        sandbox = sandbox_of(config, base, root)
        if sandbox is not None:
            sandbox.check(workdir)
            reach = "with the network" if sandbox.network else "without network"
            yield Row(name="sandbox", state="green", detail=f"bubblewrap works here; the generator runs {reach}")
        elif isolation == "worktree":
            yield Row(name="worktree", state="green", detail=f"of the repository {check_repository(workdir).directory}")
    except ConfigError as error:
        problem, _, way_out = str(error).partition(": ")
        if way_out:
            yield Row(name=isolation, state="red", detail=problem, fix=way_out)
        else:
            yield Row(name=isolation, state="red", detail=problem, fix='use isolation = "copy"')


def _objective_rows(config: JumarConfig, base: Path) -> Iterator[Row]:
    named = config.loop.objective_file
    if named is not None:
        try:
            read_named(base / named)
        except (OSError, UnicodeDecodeError) as error:
            fix = "create it, or edit objective_file in [loop]"
            yield Row(name="objective", state="red", detail=f"{base / named} cannot be read: {error}", fix=fix)
    elif not config.loop.objective:
        fix = "say in [loop] objective what is to be done; without it the prompt holds only scores and failing checks"
        yield Row(name="objective", state="yellow", detail="is empty", fix=fix)


def _lock_rows(root: Path, workdir: Path, config: JumarConfig) -> Iterator[Row]:
    """Say who is writing what below this root; a loop of this configuration that is being written is in the way of a run."""
    name = config.loop.id or re.sub(r"[^A-Za-z0-9._]+", "-", workdir.name).strip("-.")[:60] or "loop"
    directory = root / "locks"
    try:
        locks = sorted(entry.name for entry in directory.iterdir() if not entry.name.startswith("workdir-"))
    except (FileNotFoundError, NotADirectoryError):
        locks = []
    held = {lock: holder for lock in locks if (holder := who_holds(directory / lock)) is not None}
    own = [lock for lock in held if re.fullmatch(re.escape(name) + r"(?:-\d+)?", lock)]
    if own:
        holder = held[own[0]]
        detail = f"loop '{escape(own[0])}' is being written by process {holder.get('pid')} ({escape(str(holder.get('command')))})"
        yield Row(name="lock", state="red", detail=detail, fix="wait for it to end, or stop it with Ctrl-C where it runs")
        return
    others = f"; being written: {', '.join(map(escape, held))}" if held else ""
    yield Row(name="lock", state="green", detail=f"nobody writes loop '{escape(name)}'{others}")


def _size(config: JumarConfig, workdir: Path, root: Path) -> TreeSize:
    """Return the size of the first snapshot. Errors: :class:`JumarError`, ``OSError``."""
    return TreeSize.of(workdir, config.artifacts.rules().list(workdir, never=(root,)))
