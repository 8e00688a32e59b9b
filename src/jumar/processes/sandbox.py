"""Running the generator under bubblewrap: it may change the working directory and nothing else.

Inside, the file system is the real one, read-only. Writable are the working directory, the step's scratch directory and what the
person names. Private and empty: ``/tmp``, ``/var/tmp``, ``/dev/shm``, and ``/run`` with its sockets, through which a container
engine or the session manager would run anything outside. Hidden: the store, and the usual places of secrets. Processes live in a
namespace of their own and die with the step.

Checks and scorers run outside: the checks are the person's.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumar.core.files import content_of
from jumar.core.marks import state_directory
from jumar.core.text import escape, last_line
from jumar.errors import ConfigError
from jumar.model.protocols import StepContext
from jumar.processes.environment import own_program
from jumar.processes.git import run_git

_GIT: Final = ".git"
_MOUNT_TIMEOUT: Final = 20
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
        done = run_git(command, cwd=Path(work), environment={**os.environ, **_NO_PROMPT}, timeout=_MOUNT_TIMEOUT)
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


SECRET_PLACES: Final = (
    *(".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".password-store"),
    *(".local/share/keyrings", ".netrc", ".git-credentials", ".pypirc"),
)
"""Files and directories of the home directory that are empty inside."""

_PRIVATE: Final = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - named to be hidden, not to be used
_LINKED_FROM_ETC: Final = "/etc/resolv.conf"  # often a link into /run
_SYSTEM_IN_RUN: Final = (
    "/run/current-system",
    "/run/wrappers",
    "/run/opengl-driver",
)  # where programs are on some systems
_OUTSIDE: Final = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "DISPLAY")
_TIMEOUT: Final = 20
_WAY_OUT: Final = 'or use isolation = "copy" (which keeps the working directory apart and nothing else)'


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What a generator may reach.

    ``root`` holds the store and is hidden. ``writable`` are further paths that may be changed, such as an agent's own
    state. ``readable`` are paths that must stay visible where they lie below a private directory. All are absolute.
    """

    root: Path
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    network: bool = True

    def wrap(self, command: Sequence[str], context: StepContext) -> list[str]:
        """Return the argv that runs ``command`` for a step. Nothing is started."""
        options = self._options(context.workdir, context.log_directory, context.environment)
        return [own_program("bwrap", context.workdir) or "bwrap", *options, "--", *command]

    def check(self, workdir: Path) -> None:
        """Try it.

        Errors: :class:`ConfigError` without bubblewrap, where it may not run, for a path that does not exist, and where git's
        hooks or settings are links (:func:`jumar.processes.sandbox.refuse_links`).
        """
        refuse_links(os.path.realpath(workdir))
        for path in self.writable:
            if not path.exists():
                shown = escape(str(path))
                raise ConfigError(f"[loop] sandbox_writable: {shown} does not exist; create it, or leave it out")
        program = own_program("bwrap", workdir)
        if program is None:
            raise ConfigError(
                f'isolation = "sandbox" needs bubblewrap, and bwrap is not on PATH: install the package bubblewrap, {_WAY_OUT}'
            )
        command = [program, *self._options(workdir, None, os.environ), "--", "/bin/sh", "-c", ":"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f'isolation = "sandbox": bwrap cannot be run here ({error}): {_WAY_OUT}') from None
        if done.returncode != 0:
            said = last_line(done.stderr.decode("utf-8", "backslashreplace")) or f"exit code {done.returncode}"
            raise ConfigError(
                f'isolation = "sandbox": bubblewrap cannot make a sandbox here ({escape(said)}): unprivileged user namespaces '
                f"may be off (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or a "
                f"container forbids them; allow them, {_WAY_OUT}"
            )

    def _options(self, workdir: Path, scratch: Path | None, environment: Mapping[str, str]) -> list[str]:
        work, root = os.path.realpath(workdir), os.path.realpath(self.root)
        options = ["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        options += [] if self.network else ["--unshare-net"]
        # a root that keeps its rights could take the mounts away again
        options += ["--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        private = [os.path.realpath(place) for place in _PRIVATE if os.path.isdir(place)]
        for place in private:
            options += ["--tmpfs", place]
        for path in self._seen(private):
            options += ["--ro-bind-try", path, path]
        options += ["--bind", work, work, *_hidden(work, environment)]
        if os.path.isdir(root):
            options += ["--tmpfs", root]
            if _is_below(work, root):
                options += ["--bind", work, work]
        for path in () if scratch is None else (os.path.realpath(scratch),):
            options += ["--bind", path, path]
        options += git_mounts(work, create=scratch is not None)
        for path in map(os.path.realpath, self.writable):
            options += ["--bind", path, path]
        if os.path.isdir(root):
            options += ["--remount-ro", root]
        for name in _OUTSIDE:
            options += ["--unsetenv", name]
        for name in ("TMPDIR", "TMP", "TEMP"):
            options += ["--setenv", name, "/tmp"] if name in environment else []  # noqa: S108 - the private one
        return [*options, "--chdir", work]

    def _seen(self, private: Sequence[str]) -> Iterator[str]:
        """Yield what has to be seen although it lies in a private place."""
        for path in map(os.path.realpath, self.readable):
            if any(_is_below(path, place) for place in (*private, "/dev/shm")):  # noqa: S108 - named to be hidden
                yield path
        names = os.path.realpath(_LINKED_FROM_ETC)
        if self.network and names != _LINKED_FROM_ETC:
            yield os.path.dirname(names)  # it is replaced, not written, when the network changes
        yield from (place for place in _SYSTEM_IN_RUN if os.path.exists(place))


def _hidden(work: str, environment: Mapping[str, str]) -> Iterator[str]:
    home = environment.get("HOME") or os.path.expanduser("~")
    for secret in (os.fspath(state_directory()), *(f"{home}/{name}" for name in SECRET_PLACES)):
        place = os.path.realpath(secret)
        if _is_below(work, place):
            continue
        if os.path.isdir(place):
            yield from ("--tmpfs", place)
        elif os.path.isfile(place):
            yield from ("--ro-bind", os.devnull, place)


def _is_below(path: str, place: str) -> bool:
    return path == place or path.startswith(place.rstrip("/") + "/")
