"""A branch as a loop: every commit is an iteration, checked in a worktree of its own; the person's tree is not touched."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jumar.app.config.config import parse_config
from jumar.app.imports.load import imported_loops
from jumar.app.run.naming import new_name
from jumar.app.run.request import RunRequest
from jumar.core.files import make_directory
from jumar.core.leftovers import remove_tree
from jumar.core.text import escape, plural
from jumar.errors import UsageError
from jumar.processes.git import Git, find_repository

MOST_COMMITS: Final = 10_000
_CHECKOUT: Final = (
    'git() { command git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c log.showSignature=false "$@"; }; '
    'export GIT_DIR="$3" GIT_WORK_TREE="$PWD"; '
    'test -e .git || printf "gitdir: %s\\n" "$3" > .git; '
    'commit=$(git rev-list --reverse --first-parent "$1..$2" | sed -n "${JUMAR_ITERATION}p") && test -n "$commit" && '
    'git checkout -q -f --detach "$commit" && git clean -q -f -d && git log -1 --format="%h %s"'
)
"""Puts the commit of an iteration into the tree, never into another: a check may have removed what says whose tree it is.

What git ignores stays, so that a build goes on from the one before.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """``commits`` are those of the branch itself, oldest first, ``base`` what they began from.

    ``merged`` counts those that merges brought, which are no iterations.
    """

    repository: Git
    name: str
    base: str
    commits: tuple[str, ...]
    merged: int

    @property
    def tip(self) -> str:
        """The last commit."""
        return self.commits[-1]

    @property
    def origin(self) -> Mapping[str, Any]:
        """What the loop says of where it came from."""
        place = os.fspath(self.repository.directory)
        return {"kind": "git", "path": place, "range": self.name, "base": self.base, "tip": self.tip}

    def commit_of(self, iteration: int) -> str:
        """Return the commit that an iteration is."""
        return self.commits[iteration - 1] if iteration else self.base

    def said_of(self, iteration: int) -> str:
        """Return a commit as people name it: its short hash and its subject."""
        return escape(self.repository.text("log", "-1", "--format=%h %s", self.commit_of(iteration)))


def read_range(text: str) -> Branch:
    """Return the branch that ``A..B`` or ``A...B`` names; ``A`` or ``B`` left out is HEAD.

    Errors: :class:`UsageError` without git or a repository, for a name that git does not know, and for a range without commits.
    """
    repository = find_repository(Path.cwd())
    if repository is None:
        raise UsageError(f"{escape(str(Path.cwd()))} is in no git repository: run this inside of one")
    first, dots, last = text.replace("...", "..").partition("..")
    if not dots:
        raise UsageError(f"{escape(text)} is no range of commits: give where it began and its end, such as main..HEAD")
    ends = [_commit(repository, name or "HEAD") for name in (first, last)]
    found = repository.attempt("merge-base", *ends)
    if found.returncode != 0:
        raise UsageError(f"{escape(text)}: the two have no commit in common, so there is nothing that the branch began from")
    base = os.fsdecode(found.stdout.strip())
    commits = repository.text("rev-list", "--reverse", "--first-parent", f"{base}..{ends[1]}").split()
    if not commits:
        raise UsageError(f"{escape(text)} holds no commits: its end has none that its beginning lacks")
    if len(commits) > MOST_COMMITS:
        raise UsageError(f"{escape(text)} holds {len(commits):,} commits; the most that are imported are {MOST_COMMITS:,}")
    every = int(repository.text("rev-list", "--count", f"{base}..{ends[1]}"))
    return Branch(repository=repository, name=text, base=base, commits=tuple(commits), merged=every - len(commits))


def _commit(repository: Git, name: str) -> str:
    found = repository.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if found.returncode != 0:
        raise UsageError(f"git knows no commit called {escape(name)} here")
    return os.fsdecode(found.stdout.strip())


@contextlib.contextmanager
def checked_out(branch: Branch, root: Path, what: Mapping[str, Any]) -> Generator[Path]:
    """Give a worktree of the branch's base, for this root, these checks and scorers alone.

    It is there until the body ends well, so that what was cut off can go on.

    Errors: :class:`UsageError` with what git said.
    """
    alone = f"{branch.repository.directory}\n{branch.base}\n{branch.tip}\n{root}\n{json.dumps(what)}"
    key = hashlib.sha256(alone.encode("utf-8", "surrogateescape"))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    tree = cache / "jumar" / "imports" / key.hexdigest()[:24]
    if not (tree / ".git").is_file():
        make_directory(tree.parent)
        remove_tree(tree)
        branch.repository.run("worktree", "prune")
        branch.repository.run("worktree", "add", "--quiet", "--force", "--detach", os.fspath(tree), branch.base)
    yield tree
    remove_tree(tree)  # git refuses to remove one whose .git a check removed
    branch.repository.run("worktree", "prune")


def loop_of(branch: Branch, root: Path, what: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the name of the branch's loop with these checks and scorers, and whether all of its commits are recorded."""
    for reader, origin in imported_loops(root):
        if origin == {**branch.origin, **what}:
            return reader.paths.directory.name, len(reader.iteration_numbers()) > len(branch.commits)
    return new_name(root, Path(f"{branch.repository.directory.name}-git")), False


def request_for(
    branch: Branch, tree: Path, name: str, root: Path, checks: Sequence[str], scores: Sequence[Mapping[str, str]]
) -> RunRequest:
    """Return the run that checks every commit in ``tree``, one after the other; a resume goes on where it was cut off.

    Errors: :class:`jumar.errors.ConfigError`.
    """
    git_dir = Git(directory=tree).text("rev-parse", "--absolute-git-dir")
    config = {
        "loop": {
            "id": name,
            "objective": f"{plural(len(branch.commits), 'commit')} of {branch.name}",
            "max_iterations": len(branch.commits),
            "continue_from": "previous",
            "apply": "never",
        },
        "generator": {"command": ["sh", "-c", _CHECKOUT, "jumar", branch.base, branch.tip, git_dir]},
        "checks": [{"name": check, "command": check} for check in dict.fromkeys(checks)],
        "scorers": list(scores),
        "stop": {"keep_going": True},
    }
    return RunRequest(
        config=parse_config(config, "the command line"),
        base=tree,
        root=root,
        exact=True,
        allow_broken_start=True,
        origin={**branch.origin, "checks": list(checks), "scorers": [dict(score) for score in scores]},
    )
