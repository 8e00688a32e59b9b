"""Running git so that nothing of the caller's surroundings gets into it: no hooks, no GIT_DIR, no shell, names on stdin."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jumar.core.record import nothing
from jumar.core.text import escape, escape_block
from jumar.errors import UsageError
from jumar.processes.environment import own_program

# What a person says about themselves or their machine stays; what points git at another repository, index or object store goes.
_KEPT = frozenset(
    {
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_NAME",
        "GIT_CEILING_DIRECTORIES",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
        "GIT_EXEC_PATH",
    }
)
# Even plumbing runs hooks (reference-transaction, post-index-change) and programs (fsmonitor) when the repository asks for them.
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.sparseCheckout=false",
    "core.safecrlf=false",
    "index.sparse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.graftFileDeprecated=false",
)
_TAIL = 2000
_TIMEOUT = 120  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """git in one repository. ``directory`` is where it runs; ``prefix`` leads from the repository's top to the working directory.

    ``prefix`` is empty or ends with a slash. ``environment`` is added to what is left of the caller's.
    """

    directory: Path
    prefix: str = ""
    environment: Mapping[str, str] = field(default_factory=nothing)
    settings: tuple[str, ...] = ()

    def run(self, *arguments: str, stdin: bytes = b"", ok: Iterable[int] = (0,)) -> bytes:
        """Return the standard output of a git command. Errors: :class:`UsageError` with what git said, on any other exit code."""
        done = self.attempt(*arguments, stdin=stdin)
        if done.returncode not in set(ok):
            said = escape_block(done.stderr.decode("utf-8", "surrogateescape").strip())[-_TAIL:]
            raise UsageError(f"git {arguments[0]} failed: {said or f'exit code {done.returncode}'}")
        return done.stdout

    def text(self, *arguments: str) -> str:
        """Return what :meth:`run` prints without its final line feed; names may hold undecodable bytes."""
        return os.fsdecode(self.run(*arguments).removesuffix(b"\n"))

    def attempt(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a git command whose exit code is an answer."""
        program = own_program("git", self.directory)
        if program is None:
            raise UsageError("git was not found on PATH; install it, or run `jumar apply` without --branch and --commit")
        options = [part for setting in (*_SETTINGS, *self.settings) for part in ("-c", setting)]
        command = [program, *options, *arguments]
        try:
            return run_git(command, cwd=self.directory, environment=self._surroundings(), timeout=_TIMEOUT, stdin=stdin)
        except subprocess.TimeoutExpired as error:
            raise UsageError(f"git {arguments[0]} did not end within {_TIMEOUT} s in {escape(str(self.directory))}") from error

    def using(self, *settings: str, directory: Path | None = None, **environment: str | Path) -> Git:
        """Return the same repository with further settings and environment variables."""
        return Git(
            directory=self.directory if directory is None else directory,
            prefix=self.prefix,
            environment={**self.environment, **{name: os.fspath(value) for name, value in environment.items()}},
            settings=(*self.settings, *settings),
        )

    def _surroundings(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
        kept |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_LITERAL_PATHSPECS": "1"}
        return kept | dict(self.environment)


def run_git(
    command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], timeout: float, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a command of git's; one that takes longer ends with all that it started, such as a filter that waits.

    Errors: ``subprocess.TimeoutExpired``, ``OSError``.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=cwd, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(stdin, timeout)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def find_repository(workdir: Path) -> Git | None:
    """Return the repository whose working directory holds ``workdir``, or None when there is none.

    Errors: :class:`UsageError` when git is missing, or refuses the repository (its owner is somebody else).
    """
    if not workdir.is_dir():
        raise UsageError(f"the working directory {escape(str(workdir))} does not exist")
    here = Git(directory=workdir)
    found = here.attempt("rev-parse", "--show-toplevel")
    if found.returncode != 0:
        said = found.stderr.decode("utf-8", "surrogateescape")
        if "not a git repository" in said or "must be run in a work tree" in said:
            return None
        raise UsageError(f"git refuses the repository of {escape(str(workdir))}: {escape_block(said.strip())[-_TAIL:]}")
    top = Path(os.fsdecode(found.stdout.removesuffix(b"\n")))
    if not Path(os.path.realpath(workdir)).is_relative_to(os.path.realpath(top)):  # core.worktree says so
        return None
    return Git(directory=top, prefix=here.text("rev-parse", "--show-prefix"))


def records(output: bytes) -> list[bytes]:
    """Split NUL-terminated output."""
    return [record for record in output.split(b"\0") if record]
