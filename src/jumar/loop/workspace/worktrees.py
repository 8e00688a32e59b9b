"""A git worktree with a detached HEAD for a loop: the repository's history, a tree and an index of its own.

git only registers the worktree; the files are copied from the person's tree as they lie, uncommitted and untracked ones
included, so that what a filter would make of them (line endings, large files) makes no difference. What git ignores is not
copied, unless the loop keeps it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from jumar.core import copying, files, leftovers
from jumar.core.text import escape
from jumar.errors import ConfigError, UsageError
from jumar.processes.git import Git, find_repository, records

_MARKER: Final = "jumar"  # in the worktree's own git directory: the commit that it began at, written when it is whole
_GIT: Final = ".git"
_GITLINK: Final = b"160000 "
_WAY_OUT: Final = 'use isolation = "copy" instead'


def check_repository(workdir: Path) -> Git:
    """Return the repository of ``workdir`` when a worktree of it can stand for the tree as it is.

    Errors: :class:`ConfigError` without git, a repository or a commit, with a submodule that is checked out, and with a sparse
    checkout; each with the way out.
    """
    if shutil.which("git") is None:
        raise ConfigError(f'isolation = "worktree" needs git, which was not found on PATH: install it, or {_WAY_OUT}')
    repository = find_repository(workdir)
    if repository is None:
        why, way = "is in none", _WAY_OUT
        if Git(directory=workdir).attempt("rev-parse", "--git-dir").returncode == 0:
            why = "is no working directory of its own, by core.bare or core.worktree in the repository's configuration"
            way = f"`git config --unset core.bare` or core.worktree where a program set that, or {way}"
        raise ConfigError(f'isolation = "worktree" needs a git repository, and {escape(str(workdir))} {why}: {way}')
    _entries(repository)
    if repository.attempt("rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode != 0:
        raise ConfigError(
            f'isolation = "worktree" begins at the last commit, and {escape(str(repository.directory))} has none: '
            f"commit something first, or {_WAY_OUT}"
        )
    # our own calls switch it off for themselves, so each of the repository's files is asked
    where = ("--local", "--worktree")
    sparse = [repository.attempt("config", file, "--type=bool", "--get", "core.sparseCheckout").stdout for file in where]
    if b"true\n" in sparse:
        raise ConfigError(
            f'isolation = "worktree" does not work with the sparse checkout of {escape(str(repository.directory))}: '
            f"run `git sparse-checkout disable`, or {_WAY_OUT}"
        )
    _refuse_submodules(repository)
    return repository


def place_in_repository(workdir: Path) -> str:
    """Return the path of ``workdir`` from the top of its repository, ``.`` for the top itself and outside of a repository."""
    repository = find_repository(workdir) if workdir.is_dir() and shutil.which("git") is not None else None
    return "." if repository is None else repository.prefix or "."


def _refuse_submodules(repository: Git) -> None:
    for record in records(repository.run("ls-files", "--stage", "-z")):
        if record.startswith(_GITLINK):
            path = os.fsdecode(record.partition(b"\t")[2])
            if (repository.directory / path / ".git").exists():
                raise ConfigError(f'isolation = "worktree" does not bring the submodule {escape(path)} along: {_WAY_OUT}')


def is_whole(tree: Path) -> bool:
    """Return whether ``tree`` is a worktree that :func:`make_worktree` completed and git still knows."""
    own = _own_directory(tree)
    return own is not None and (own / _MARKER).is_file()


def make_worktree(workdir: Path, tree: Path, kept: Iterable[str], *, never: Path) -> Path:
    """Make ``tree``, which must not exist, a worktree of ``workdir``'s repository; return where the working directory is in it.

    ``kept`` are further paths below ``workdir`` that are copied although git ignores them; nothing below ``never`` is copied.
    Errors: those of :func:`check_repository`, :class:`jumar.errors.UsageError` with what git said,
    :class:`jumar.errors.StoreWriteError`.
    """
    repository = check_repository(workdir)
    base = repository.text("rev-parse", "--verify", "HEAD^{commit}")
    repository.run("worktree", "add", "--quiet", "--detach", "--no-checkout", "--force", os.fspath(tree), base)
    here = Git(directory=tree)
    here.run("read-tree", "HEAD")
    top = repository.directory
    paths = {os.fsdecode(path) for path in records(_listed(repository))} | {repository.prefix + path for path in kept}
    with files.as_write_error("copy the working directory to", tree):
        _copy(top, tree, sorted(paths), never=never)
        directory = tree / repository.prefix
        directory.mkdir(parents=True, exist_ok=True)
        here.run("update-index", "-q", "--refresh", ok=(0, 1))
        files.replace_file(Path(here.text("rev-parse", "--absolute-git-dir")) / _MARKER, f"{base}\n".encode())
    return directory


def _listed(repository: Git) -> bytes:
    return repository.run("ls-files", "-z", "--cached", "--others", "--exclude-standard")


def _copy(top: Path, tree: Path, paths: Iterable[str], *, never: Path) -> None:
    left_out = os.path.realpath(never)
    made: set[str] = set()
    real: dict[str, str] = {}
    for path in paths:
        source, target, folder = top / path, tree / path, path.rpartition("/")[0]
        if folder not in real:
            real[folder] = os.path.realpath(top / folder)
        place = f"{real[folder]}/{source.name}"
        if f"{place}/".startswith(f"{left_out}/") or (source.is_symlink() and os.path.realpath(source) == left_out):
            continue
        if folder not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(folder)
        if files.is_directory(source):  # a submodule that is not checked out, or a repository of its own
            ignored = shutil.ignore_patterns(".git")
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=ignored, copy_function=copying.copy_alike)
        elif source.is_symlink() or source.is_file():
            copying.copy_alike(source, target, follow_symlinks=False)


def unlock(tree: Path) -> None:
    """Remove the locks that a killed git left in the git directory of a tree of ours. Nothing may run in ``tree``.

    What is in the way of that, or is no such directory, is left to whoever made it so.
    """
    own = tree / _GIT if files.is_directory(tree / _GIT) else _own_directory(tree)
    if own is not None:
        for lock in (own / "index.lock", own / "HEAD.lock"):
            with contextlib.suppress(OSError):
                leftovers.remove_any(lock)


def discard_worktree(workdir: Path, tree: Path, ref: str) -> str | None:
    """Remove ``tree`` and what the repository knows of it; half of one, or none, is fine.

    Commits that were made in it stay reachable under ``refs/jumar/<ref>-<commit>``, which is returned. The person's branches
    are not touched.
    """
    kept = _keep_commits(tree, ref)
    own = _own_directory(tree)
    try:
        repository = find_repository(workdir)
    except UsageError:
        repository = None
    if repository is not None and own is not None:
        _entries(repository)
        # twice: also where it is locked
        repository.attempt("worktree", "remove", "--force", "--force", os.fspath(tree))
    with files.as_write_error("remove", tree):
        leftovers.remove_any(tree)
        if repository is not None:
            for entry in _entries_of(repository, tree):
                leftovers.remove_tree(entry)
    return kept


def _keep_commits(tree: Path, ref: str) -> str | None:
    own = _own_directory(tree)
    if own is None:
        return None
    here = Git(directory=tree)
    with contextlib.suppress(UsageError, OSError, UnicodeDecodeError):
        base = (files.content_of(own / _MARKER) or b"").decode().strip()
        head = here.text("rev-parse", "--verify", "HEAD^{commit}")
        if head != base:
            name = f"refs/jumar/{re.sub(r'[^A-Za-z0-9_/-]', '-', ref)}-{head[:12]}"
            here.run("update-ref", name, head)
            return name
    return None


def _own_directory(tree: Path) -> Path | None:
    """Return the worktree's own directory inside the repository's, None where there is none.

    That is one which says so itself: a program may have made ``.git`` point anywhere.
    """
    text = files.content_of(tree / _GIT) or b""
    if not text.startswith(b"gitdir: "):
        return None
    own = tree / os.fsdecode(text.removeprefix(b"gitdir: ").rstrip(b"\n"))
    return own if _tree_of(own) == os.path.realpath(tree) else None


def _tree_of(own: Path) -> str | None:
    """Return the tree that a worktree's own directory is of, by its real path; None where it does not say."""
    text = files.content_of(own / "gitdir")
    return None if not text or b"\0" in text else os.path.realpath((own / os.fsdecode(text.rstrip(b"\n"))).parent)


def _entries_of(repository: Git, tree: Path) -> list[Path]:
    """Return what the repository still has of a worktree at ``tree``; other worktrees are left alone, stale ones too."""
    place = os.path.realpath(tree)
    return [entry for entry in _entries(repository) if _tree_of(entry) == place]


def _entries(repository: Git) -> list[Path]:
    """Return what the repository has of its worktrees. git reads them all, so that a FIFO there goes: it would wait for ever."""
    common = repository.directory / repository.text("rev-parse", "--git-common-dir")
    found: list[Path] = []
    with contextlib.suppress(OSError):
        found += (common / "worktrees").iterdir()
    for entry in found:
        with contextlib.suppress(OSError):
            for path in entry.iterdir():
                if path.is_fifo():
                    path.unlink()
    return found
