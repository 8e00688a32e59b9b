"""What is looked at before a loop is created: whether its agent is there, what it costs, and how much is kept.

``jumar run`` refuses what is red here, and ``jumar doctor`` shows it as a row. What is kept leaves out jumar's own files; what
earlier loops below the same root say of a generator tells what its iterations take.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from jumar.app.agents import AGENTS, cannot_run, installed_agents
from jumar.app.config.config import JumarConfig
from jumar.app.init import AGENT
from jumar.app.machine import Row
from jumar.app.rehearsal import found_by_passes, not_found_by_passes
from jumar.core.copying import copies_share
from jumar.core.files import free_bytes
from jumar.core.rendering.figures import dollars
from jumar.core.text import escape, human_size
from jumar.errors import ArtifactError, ConfigError, JumarError, UsageError
from jumar.loop.settings import IN_PLACE
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.snapshots.objects import SMALL
from jumar.loop.snapshots.tree_size import TreeSize
from jumar.loop.store.layout import OBJECTS, list_loops, loops_directory
from jumar.loop.store.loop_reader import LoopReader
from jumar.model.budget.estimate import PassUse, passes_of
from jumar.processes.command_words import simple_commands
from jumar.processes.environment import build_environment

if TYPE_CHECKING:
    from jumar.app.config.config import JumarConfig

_MANY_FILES: Final = 10_000
_MUCH: Final = 200_000_000
"""Bytes. A directory with more files or bytes is said to be large; beyond the usual limits of a snapshot a person is asked."""

_WRAPPERS: Final = frozenset({"command", "env", "exec", "gtimeout", "nice", "nohup", "timeout"})
_LEAD_IN: Final = frozenset({"cd", "echo", "export", "printf", "set", "true", "umask", ":"})
_BUILTINS: Final = _LEAD_IN | {"command", "eval", "exec", "false", "test", "trap", "."}  # which exist inside of the shell only
_COMPOUND: Final = "if|for|while|until|case|function|time|source|eval|alias"
_UNTELLABLE: Final = re.compile(rf"\|\||\bPATH=|\(\)|`|(?:^|[;&|({{]\s*)(?:{_COMPOUND}|\.)\s")
"""What makes the program of a shell's line uncertain: an alternative, another PATH, a function, a compound command."""

_QUOTED: Final = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*["]""", re.DOTALL)
_PLAIN: Final = re.compile(r"[\w./+@~:][\w./+@~:-]*")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_DURATION: Final = re.compile(r"\d+(?:\.\d+)?[smhd]?")


def refuse_generator(config: JumarConfig, workdir: Path, *, configured: bool, cost_known: Callable[[], bool]) -> None:
    """Refuse, before anything is created, a program that is not there, and a limit that nothing could keep.

    ``configured`` is whether a file says what runs. ``cost_known`` is asked where the configuration does not say what an
    iteration costs: whether earlier ones do. Errors: :class:`ConfigError` that says what to do.
    """
    row = generator_row(config, workdir, configured=configured)
    cost = cost_row(config)
    if row.state != "red" and cost is not None and not cost_known():
        row = cost
    if row.state == "red":
        raise ConfigError(f"{row.detail}; {row.fix}")


# ----------------------------------------------------------------------------------------------------- is the agent there


def generator_row(config: JumarConfig, workdir: Path, *, configured: bool = True) -> Row:
    """Return whether the generator's program can be found, without running it."""
    generator = config.generator
    if generator.python is not None:
        return Row(name="generator", state="green", detail=f"the Python function {generator.python}")
    if generator.builtin is not None:
        if config.loop.isolation in IN_PLACE or config.loop.candidates > 1:
            what = f'[generator] builtin = "{generator.builtin}" records the working directory while somebody else changes it'
            fix = 'set [loop] isolation = "copy" or "worktree", and one candidate'
            return Row(name="generator", state="red", detail=what, fix=fix)
        return Row(name="generator", state="green", detail="what lies in the working directory")
    command = generator.command or ""
    shown = command if isinstance(command, str) else shlex.join(command)
    path = build_environment(os.environ, config.loop.env, {}).get("PATH")
    seen = ""
    for word in _programs(command):
        seen = word
        if _found(word, workdir, path, in_shell=isinstance(command, str)):
            if "/" in word and not found_by_passes(word, workdir, config):
                detail = f"{word} is there, and not where iterations run"
                return Row(name="generator", state="red", detail=detail, fix=not_found_by_passes(word))
        elif "/" not in word or config.loop.hook("setup") is None:  # which may make what is to be run
            return _missing_row(word, workdir, configured=configured)
    return Row(name="generator", state="green", detail=f"{seen} is there" if seen else f"a shell script: {shown:.60}")


def _missing_row(word: str, workdir: Path, *, configured: bool) -> Row:
    if word == AGENT:
        detail = f"the placeholder '{AGENT}' still stands in [generator] command"
        return Row(name="generator", state="red", detail=detail, fix=f"write your agent's command there; {_installed()}")
    instead = "edit `command` in [generator]" if configured else "name another with --agent"
    fix = f"install {word}, or {instead}; {_installed()}"
    problem = cannot_run(word, workdir)
    if problem is not None and ": " in problem:
        problem, fix = problem.split(": ", 1)
    what = problem or "is not installed: it is not on PATH"
    return Row(name="generator", state="red", detail=f"'{word}' {what}", fix=fix)


def _installed() -> str:
    installed = installed_agents()
    if installed:
        return f"on this machine there is: {', '.join(installed)} (--agent {installed[0]})"
    return f"none of the agents that jumar knows is installed here ({', '.join(agent.program for agent in AGENTS)})"


def _programs(command: str | list[str]) -> Iterator[str]:
    """Yield the programs that a command begins with, as far as its words tell: ``cd`` and ``claude`` of ``cd x && claude``.

    Nothing where only a shell can tell. A wrapper such as ``timeout 60`` is followed by what it runs.
    """
    if isinstance(command, str):
        try:
            shlex.split(command)
        except ValueError:
            return
        if _UNTELLABLE.search(_QUOTED.sub("''", command)):
            return
    elsewhere = False  # after a `cd` a relative path leads nobody knows where
    for line in simple_commands(command):
        words: list[str] = [word for word in line if not (isinstance(command, str) and _ASSIGNMENT.match(word))]
        if not words:
            continue
        while words and _PLAIN.fullmatch(words[0]) and not (elsewhere and re.match(r"[^/]+/", words[0])):
            yield words[0]
            if words[0] not in _WRAPPERS:
                break
            words = [word for word in words[1:] if not _ASSIGNMENT.match(word)]
            words = words[1:] if words and _DURATION.fullmatch(words[0]) else words
        if not words or words[0] not in _LEAD_IN:
            return
        elsewhere = elsewhere or words[0] == "cd"


def _found(word: str, workdir: Path, path: str | None, *, in_shell: bool) -> bool:
    if "/" in word:
        return os.access((workdir / Path(word).expanduser()), os.X_OK)
    return shutil.which(word, path=path) is not None or (in_shell and word in _BUILTINS)


# --------------------------------------------------------------------------------------------------- is its cost known


def cost_row(config: JumarConfig) -> Row | None:
    """Return why a limit in dollars could not be kept: nothing says beforehand what an iteration costs. None where it can."""
    budget, usage = config.budget, config.generator.usage
    if budget.max_cost_usd is None or budget.reserve_cost_usd is not None or budget.on_unknown_cost != "charge_reserve":
        return None
    priced = budget.model is not None or budget.prices is not None or bool(budget.price)
    if "cost" in usage or priced or {"input", "output", "model"} <= usage.keys():
        return None
    what = f"a limit of {dollars(budget.max_cost_usd, places=2)} cannot be kept: nothing says beforehand what an iteration costs"
    fix = (
        "give one of\n"
        "  --reserve-cost USD     the most that an iteration may cost ([budget] reserve_cost_usd)\n"
        f"  --agent NAME           an agent whose report jumar knows: {', '.join(agent.program for agent in AGENTS)}\n"
        '  [generator] usage      where its JSON output has the cost, as in usage = {cost = "total_cost_usd"}'
    )
    return Row(name="budget", state="red", detail=what, fix=fix)


# ------------------------------------------------------------------------------------------------------ how much is kept


def fitting_rules(
    config: JumarConfig, rules: ArtifactRules, size: TreeSize, *, accept: bool, ask: Callable[[str], bool] | None
) -> tuple[ArtifactRules, str | None]:
    """Return ``rules`` with limits that the first snapshot fits, and what to say of its size, None where it is small.

    A limit that the configuration sets holds. Beyond the usual ones a person is asked, or has to ``accept`` it; then there is
    room for twice as much. ``ask`` is None where nobody can answer. Errors: :class:`jumar.errors.ArtifactError`,
    :class:`UsageError` where it is not accepted.
    """
    every = ArtifactRules(max_files=sys.maxsize, max_file_bytes=sys.maxsize, max_total_bytes=sys.maxsize)
    config.artifacts.rules(every).check_size(size)
    usual, exceeded = ArtifactRules(), rules.exceeded_by(size)
    said = _said_of(size, exceeded)
    if exceeded:
        if not accept and ask is None:
            raise UsageError(f"{said}\nnothing was created; --accept-size keeps all of it")
        if not accept and ask is not None and not ask(said):
            raise UsageError("nothing was created")
        wider = replace(
            rules,
            max_files=max(usual.max_files, 2 * size.files),
            max_file_bytes=max(usual.max_file_bytes, 2 * size.largest_file),
            max_total_bytes=max(usual.max_total_bytes, 2 * size.bytes),
        )
        return replace(config.artifacts.rules(wider), exclude=rules.exclude), said
    return rules, said if _is_large(size) else None


def size_row(config: JumarConfig, size: TreeSize) -> Row:
    """Return what the first snapshot would hold: red over a limit of the configuration, yellow where it is large."""
    if not size.files:
        fix = "edit include and exclude in [artifacts]; a new loop in an empty directory is fine"
        return Row(name="snapshot", state="yellow", detail="no file is kept: nothing matches [artifacts]", fix=fix)
    try:
        _, said = fitting_rules(config, config.artifacts.rules(), size, accept=False, ask=None)
    except ArtifactError as error:
        fix = 'say in [artifacts] what the loop is about, for instance include = ["src/", "*.md"]'
        return Row(name="snapshot", state="red", detail=str(error), fix=fix)
    except UsageError as error:
        detail, fix = str(error).rsplit("\n", 1)[0].rsplit("\n", 1)
        detail += "\n`jumar run` asks before it begins, and refuses where nobody can answer"
        return Row(name="snapshot", state="yellow", detail=detail, fix=f"{fix}; or --accept-size")
    if said is not None:
        detail, fix = said.rsplit("\n", 1)
        return Row(name="snapshot", state="yellow", detail=detail, fix=fix)
    detail = f"the first one holds {size.shown()}; later ones share what did not change"
    return Row(name="snapshot", state="green", detail=detail)


def refuse_full_disk(root: Path, workdir: Path, size: TreeSize) -> None:
    """Refuse, before anything is created, a first snapshot that is larger than what is free where ``root`` lies.

    What the contents of that root have already is not counted, nor are large files where a copy shares the blocks of its
    original. Errors: :class:`UsageError`.
    """
    free, needed = free_bytes(root.absolute()), size.room
    if needed > free:
        with contextlib.suppress(OSError), os.scandir(root / OBJECTS) as objects:
            needed -= sum(entry.stat(follow_symlinks=False).st_size for entry in objects)
    if needed > free and copies_share(workdir, root):
        needed = min(needed, sum(each for each in size.sizes.values() if each <= SMALL))
    if needed > free:
        raise UsageError(
            f"the disk has no room for the first snapshot: {human_size(size.bytes)} would be kept, and {human_size(free)} are "
            f"free where {escape(os.fspath(root))} lies: free some space, leave files out with [artifacts] exclude or --exclude, "
            "or choose another disk with --root; nothing was created"
        )


def _is_large(size: TreeSize) -> bool:
    return size.files > _MANY_FILES or size.bytes > _MUCH


def _said_of(size: TreeSize, exceeded: str) -> str:
    patterns = size.exclude(ArtifactRules().max_file_bytes)
    written = ", ".join(f'"{pattern}"' for pattern in patterns)
    options = " ".join(f"--exclude {shlex.quote(pattern)}" for pattern in patterns)
    limit = f"; the limit is {exceeded}" if exceeded else ""
    lines = [f"the directory is large: {size.shown()} would be kept{limit}", *size.rows()]
    way = f"exclude = [{written}], or {options}" if patterns else "include or exclude"
    return "\n".join([*lines, f"to leave out what the loop is not about: [artifacts] {way}"])


_LOOKED_AT: Final = 20  # earlier loops, the newest first


def earlier_passes(config: JumarConfig, root: Path, *, besides: str) -> tuple[tuple[PassUse, ...], str]:
    """Return the iterations of the newest loop with the same generator that made any, ``besides`` left out, and that loop's name.

    Nothing and "" where there is none; a loop that cannot be read says nothing.
    """
    generator = config.generator.model_dump(mode="json", exclude_defaults=True)
    found: list[LoopReader] = []
    for name in list_loops(root):
        directory = loops_directory(root) / name
        if name == besides or not (directory / "loop.json").is_file():
            continue
        with contextlib.suppress(JumarError):
            found.append(LoopReader(directory))
    newest_first = sorted(found, key=lambda store: store.created_at, reverse=True)
    for store in [store for store in newest_first if _generator(store) == generator][:_LOOKED_AT]:
        with contextlib.suppress(JumarError):
            used = passes_of(store.attempts())
            if used:
                return used, store.loop_id
    return (), ""


def _generator(store: LoopReader) -> object:
    run = store.config.get("run")
    return cast("Mapping[str, object]", run).get("generator") if isinstance(run, Mapping) else None


_OUTPUTS = (1, 2)


def own_files(workdir: Path, config: Path | None, others: Iterable[Path] = ()) -> tuple[str, ...]:
    """Return sorted patterns, in gitignore syntax, for jumar's own files below ``workdir``.

    They are the configuration in use, ``others`` such as judges' replies, and where output goes. None of them is the work of
    an iteration. Were they artifacts, putting one back would undo an edit of the configuration, and would take away the log
    that ``jumar run > run.log`` is writing at that moment.
    """
    known = [*([] if config is None else [config]), *others]
    found = {_pattern(path, workdir) for path in (*_outputs(workdir), *(path.resolve() for path in known))}
    return tuple(sorted(pattern for pattern in found if pattern is not None))


def _outputs(workdir: Path) -> Iterable[Path]:
    """Yield the regular files that standard output and standard error are, found by identity in the top directory."""
    wanted: set[tuple[int, int]] = set()
    for number in _OUTPUTS:
        try:
            status = os.fstat(number)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            wanted.add((status.st_dev, status.st_ino))
    if not wanted:
        return
    for number in _OUTPUTS:
        try:
            yield Path(f"/proc/self/fd/{number}").readlink()
        except OSError:
            continue
    with os.scandir(workdir) as listing:  # where there is no /proc: the usual place is the directory itself
        for entry in listing:
            status = entry.stat(follow_symlinks=False)
            if (status.st_dev, status.st_ino) in wanted:
                yield Path(entry.path)


def _pattern(path: Path, workdir: Path) -> str | None:
    if not path.is_absolute() or not path.is_relative_to(workdir):
        return None
    return "/" + re.sub(r"([\\*?\[\]!# ])", r"\\\1", path.relative_to(workdir).as_posix())
