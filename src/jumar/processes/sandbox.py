"""Running the generator under bubblewrap: it may change the working directory and nothing else.

Inside, the file system is the real one, read-only. Writable are the working directory, the step's scratch directory and what the
person names. Private and empty: ``/tmp``, ``/var/tmp``, ``/dev/shm``, and ``/run`` with its sockets, through which a container
engine or the session manager would run anything outside. Hidden: the store, and the usual places of secrets. Processes live in a
namespace of their own and die with the step.

Checks and scorers run outside: the checks are the person's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumar.core.marks import state_directory
from jumar.core.text import escape, last_line
from jumar.errors import ConfigError
from jumar.model.protocols import StepContext
from jumar.processes.git_mounts import git_mounts, refuse_links

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
        return [shutil.which("bwrap") or "bwrap", *options, "--", *command]

    def check(self, workdir: Path) -> None:
        """Try it.

        Errors: :class:`ConfigError` without bubblewrap, where it may not run, for a path that does not exist, and where git's
        hooks or settings are links (:func:`jumar.processes.git_mounts.refuse_links`).
        """
        refuse_links(os.path.realpath(workdir))
        for path in self.writable:
            if not path.exists():
                shown = escape(str(path))
                raise ConfigError(f"[loop] sandbox_writable: {shown} does not exist; create it, or leave it out")
        program = shutil.which("bwrap")
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
