"""What keeps a generator in a sandbox from leaving programs to a git that the person calls later: mounts over a repository.

A file below a directory is out of reach only when neither it nor a directory above it can be renamed. A mount point cannot be, so
each of them is bound onto itself, down to what is read-only.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from jumar.core.files import content_of
from jumar.core.text import escape
from jumar.errors import ConfigError
from jumar.processes.git import run_git

_GIT: Final = ".git"
_TIMEOUT: Final = 20
_NO_PROMPT: Final = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


def git_mounts(work: str, *, create: bool) -> list[str]:
    """Return the options of bwrap that keep git's hooks and settings below ``work`` (a real path) as they are.

    They follow the bind of ``work`` itself. ``create``: what is missing and could be added inside is made first, empty, because
    nothing can be mounted over what is not there; else it is left out. Nothing is done about a place that is a link
    (:func:`refuse_links`). Without a repository: an empty list.
    """
    fixed: dict[str, None] = {}
    for path, directory in _fixed(work):
        if path == work or not path.startswith(f"{work}/"):
            continue
        if create and not os.path.lexists(path):
            _make(path, directory=directory)
        if os.path.exists(path) and os.path.realpath(path) == path:
            fixed[path] = None
    # what lies in a read-only place stays out: bound onto itself it would be writable again
    above = {parent: None for path in fixed for parent in _between(work, path) if not _lies_in(parent, fixed)}
    options: list[str] = []
    for path in sorted((*above, *fixed)):  # a directory comes before what is in it
        options += ["--ro-bind" if path in fixed else "--bind", path, path]
    return options


def refuse_links(work: str) -> None:
    """Look for links where nothing can be mounted.

    Errors: :class:`ConfigError` when ``.git``, its ``hooks`` or its ``config`` is a symbolic link.
    """
    git = f"{work}/{_GIT}"
    for path in (git, f"{git}/hooks", f"{git}/config"):
        if os.path.islink(path):
            way_out = {
                _GIT: "replace it by a file .git with the line 'gitdir: DIRECTORY'",
                "hooks": "remove it, and name its directory with `git config core.hooksPath DIRECTORY`",
                "config": "replace it by the file itself",
            }[os.path.basename(path)]
            raise ConfigError(
                f'isolation = "sandbox": {escape(path)} is a symbolic link, which a generator could replace by what git runs '
                f"later: {way_out}"
            )


def _fixed(work: str) -> Iterator[tuple[str, bool]]:
    """Yield the real paths that stay as they are, and whether each is a directory; some may not exist, or lie elsewhere."""
    git = f"{work}/{_GIT}"
    if os.path.isfile(git):
        yield git, False
        pointed = _pointed(git)
        repositories = () if pointed is None else (pointed, os.path.realpath(_common(pointed)))
    else:
        repositories = (git,) if os.path.isdir(git) else ()
    for repository in dict.fromkeys(repositories):
        yield f"{repository}/hooks", True
        yield f"{repository}/config", False
        for name in ("config.worktree", "commondir", "gitdir"):
            if os.path.exists(f"{repository}/{name}"):
                yield f"{repository}/{name}", False
        for name in ("modules", "worktrees"):  # repositories of their own, each with hooks and settings
            if os.path.isdir(f"{repository}/{name}"):
                yield f"{repository}/{name}", True
    yield from _configured(work)


def _configured(work: str) -> Iterator[tuple[str, bool]]:
    """Yield what git's settings name: files that are included or were read, and the directory of the hooks."""
    top = _top(work)
    if top is None:
        return
    try:
        command = ["git", "config", "--null", "--show-origin", "--includes", "--list"]
        done = run_git(command, cwd=Path(work), environment={**os.environ, **_NO_PROMPT}, timeout=_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired):
        return
    parts = os.fsdecode(done.stdout).split("\0")
    for origin, setting in zip(parts[::2], parts[1::2], strict=False):
        source = os.path.join(work, origin.removeprefix("file:")) if origin.startswith("file:") else None
        key, _, value = setting.partition("\n")
        key = key.lower()
        if source is not None:
            yield os.path.realpath(source), False
        if key == "core.hookspath" and value:
            yield _resolved(value, top), True
        elif source is not None and value and (key == "include.path" or (key.startswith("includeif.") and key.endswith(".path"))):
            yield _resolved(value, os.path.dirname(os.path.realpath(source))), False
        elif key == "extensions.worktreeconfig" and os.path.isdir(f"{work}/{_GIT}"):
            yield f"{work}/{_GIT}/config.worktree", False


def _resolved(value: str, base: str) -> str:
    return os.path.realpath(os.path.join(base, os.path.expanduser(value)))


def _pointed(file: str) -> str | None:
    """Return the directory that a file ``.git`` points to."""
    text = os.fsdecode(content_of(file) or b"")
    return _resolved(text.removeprefix("gitdir:").strip(), os.path.dirname(file)) if text.startswith("gitdir:") else None


def _common(repository: str) -> str:
    return os.path.join(repository, os.fsdecode(content_of(f"{repository}/commondir") or b"").strip())


def _top(work: str) -> str | None:
    """Return the directory of the working directory that ``work`` lies in."""
    return next((os.fspath(place) for place in (Path(work), *Path(work).parents) if os.path.lexists(place / _GIT)), None)


def _make(path: str, *, directory: bool) -> None:
    with contextlib.suppress(OSError):
        os.makedirs(path if directory else os.path.dirname(path), exist_ok=True)
        if not directory:
            Path(path).touch()


def _lies_in(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _between(work: str, path: str) -> Iterator[str]:
    """Yield the directories below ``work`` on the way to ``path``."""
    parent = os.path.dirname(path)
    while parent != work:
        yield parent
        parent = os.path.dirname(parent)
