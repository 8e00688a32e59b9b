"""The chosen iteration as a git branch, a commit or a patch. Plumbing only: no hook runs, nothing but the named ref is moved."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jumar.core.files import as_write_error
from jumar.core.text import escape, percent
from jumar.errors import UsageError
from jumar.loop.decisions.apply import apply, refuse_unfinished
from jumar.loop.decisions.git_tree import (
    GITLINK,
    Entry,
    Layout,
    Replaced,
    ignored_entries,
    index_entries,
    index_lines,
    replace_part,
)
from jumar.loop.decisions.moves import Change
from jumar.loop.decisions.plan import plan_apply, snapshot_of, strangers_among
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.loop_store import LoopStore
from jumar.model import Decision
from jumar.model.records import ArtifactDetail
from jumar.processes.git import Git, find_repository

_HEADER = re.compile(rb"^diff --git a/(.+) b/\1$", re.MULTILINE)
_NAME = "jumar"
_EMAIL = "jumar@localhost"
_OPERATIONS = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """What git holds now.

    ``commit`` is the id that ``ref`` points at. ``created`` is False when the base held the snapshot already: then ``commit``
    is the base. ``left_out`` are paths of the snapshot that lie in a submodule or in another repository, ``left_alone`` those of
    the base, and of the working directory where it is applied, that no iteration has. ``filtered`` are files of which git keeps
    other bytes than the iteration has, by a filter or in other line endings. ``decision`` is the apply that came before a commit,
    None for a branch.
    """

    commit: str
    ref: str
    created: bool
    left_out: tuple[str, ...] = ()
    left_alone: tuple[str, ...] = ()
    filtered: tuple[str, ...] = ()
    decision: Decision | None = None


def make_branch(
    store: LoopStore,
    iteration: int,
    workdir: Path,
    name: str,
    *,
    rules: ArtifactRules,
    by: str,
    at: str,
    message: str | None = None,
) -> CommitResult:
    """Create the branch ``name`` with one commit on HEAD: its tree, with the part that ``rules`` match replaced by the snapshot.

    HEAD, the index and the work tree stay as they are. A repository without a commit gets a first one, on that branch alone.
    Errors: :class:`UsageError` for a branch that exists, a name that git refuses, no repository, no git.
    """
    with store.lock():
        git = _repository(workdir)
        ref = f"refs/heads/{name}"
        if name.startswith("-") or name == "HEAD" or git.attempt("check-ref-format", ref).returncode != 0:
            raise UsageError(f"'{escape(name)}' cannot be the name of a branch; see `git help check-ref-format`")
        if git.attempt("show-ref", "--verify", "--quiet", ref).returncode == 0:
            raise UsageError(f"the branch '{escape(name)}' exists; choose another name, or delete it with `git branch -D`")
        base = _head(git)
        with _scratch() as scratch:
            layout = Layout.create(git, scratch)
            text = message or _message(store, iteration, by)
            commit, made = _commit(store, iteration, workdir, layout, base, rules, at, text)
        # an empty old value makes git refuse a ref that appeared meanwhile
        git.run("update-ref", "-m", f"jumar: iteration {iteration} of {store.loop_id}", ref, commit, "")
        return CommitResult(
            commit=commit,
            ref=ref,
            created=commit != base,
            left_out=made.left_out,
            left_alone=made.left_alone,
            filtered=made.filtered,
        )


def make_commit(
    store: LoopStore,
    iteration: int,
    workdir: Path,
    *,
    rules: ArtifactRules,
    by: str,
    at: str,
    reason: str = "",
    message: str | None = None,
) -> CommitResult:
    """Apply the iteration to the working directory and commit it, and nothing else, on the current branch.

    What else is staged stays staged, what else is changed stays changed. ``jumar apply --undo`` takes back the work tree, git the
    commit. Errors, before anything is written: those of :func:`make_branch` and :func:`jumar.loop.decisions.apply.apply`, and
    :class:`UsageError` while a merge or rebase is going on. A branch that moves meanwhile is left alone; then the snapshot is
    applied and staged, and not committed.
    """
    with store.lock():
        git = _repository(workdir)
        _refuse_operations(git)
        plan = plan_apply(store, iteration, workdir, rules)
        refuse_unfinished(store)
        base = _head(git)
        with _scratch() as scratch:
            layout = Layout.create(git, scratch)
            text = message or _message(store, iteration, by, reason)
            commit, made = _commit(store, iteration, workdir, layout, base, rules, at, text)
        decision = apply(store, plan, by=by, at=at, reason=reason)
        _stage(store, git, made.entries, rules)
        git.run("update-ref", "-m", f"jumar: iteration {iteration} of {store.loop_id}", "HEAD", commit, base or "")
        found = git.attempt("symbolic-ref", "--quiet", "HEAD")
        ref = os.fsdecode(found.stdout.removesuffix(b"\n")) or "HEAD"
        return CommitResult(
            commit=commit,
            ref=ref,
            created=commit != base,
            left_out=made.left_out,
            left_alone=tuple(sorted({*plan.left_alone, *made.left_alone})),
            filtered=made.filtered,
            decision=decision,
        )


def make_patch(store: LoopStore, iteration: int, workdir: Path, *, rules: ArtifactRules) -> bytes:
    """Return the patch that ``git apply`` turns the working directory into the snapshot with; empty when they are equal.

    In a repository the names start at its top, as git wants them; elsewhere at ``workdir``. Binary content, the executable
    bit, links, deletions and odd names are part of it; other permission bits are not, git has no word for them. Nothing is
    written but temporary files. Errors: as for planning an apply, and :class:`UsageError` without git.
    """
    plan = plan_apply(store, iteration, workdir, rules)
    with _scratch() as scratch:
        git = find_repository(plan.workdir) or _empty_repository(scratch)
        trees = [
            _half(git, scratch, "before", plan.workdir, plan.moves.changes, lambda change: change.before),
            _half(git, scratch, "after", store.artifacts(iteration), plan.moves.changes, lambda change: change.after),
        ]
        objects = git.using(GIT_OBJECT_DIRECTORY=scratch / "objects")
        options = ("-r", "--patch", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        return _quoted(objects.run("diff-tree", *options, "--src-prefix=a/", "--dst-prefix=b/", *trees))


@contextlib.contextmanager
def _scratch() -> Generator[Path]:
    """A directory for a temporary index and working directory; what the disk refuses there is said like any refused write."""
    with tempfile.TemporaryDirectory(prefix="jumar-") as directory, as_write_error("prepare git's files in", Path(directory)):
        yield Path(directory)


def _repository(workdir: Path) -> Git:
    git = find_repository(workdir.resolve())
    if git is None:
        raise UsageError(
            f"{escape(str(workdir))} is in no git repository; `jumar apply` writes the files, "
            "`jumar apply --patch` prints a patch, and `git init` makes a repository"
        )
    return git


def _empty_repository(scratch: Path) -> Git:
    """Make a repository for the objects of a patch outside of any; ``git apply`` then takes names from the working directory."""
    directory = scratch / "repository"
    directory.mkdir()
    Git(directory=directory).run("init", "--quiet", "--template=")
    return Git(directory=directory)


def _refuse_operations(git: Git) -> None:
    for name, what in _OPERATIONS.items():
        if os.path.lexists(git.directory / git.text("rev-parse", "--git-path", name)):
            where = escape(str(git.directory))
            raise UsageError(f"{what} is going on in {where}; end it first, or use `jumar apply --branch NAME`")
    lock = git.directory / git.text("rev-parse", "--git-path", "index.lock")
    if os.path.lexists(lock):
        raise UsageError(
            f"another git process works in this repository, or left {escape(str(lock))} behind; wait for it, or remove it"
        )
    if git.run("ls-files", "--unmerged", "-z"):
        raise UsageError(f"the index of {escape(str(git.directory))} has unmerged paths; resolve them first")


def _head(git: Git) -> str | None:
    """Return the commit that HEAD names, or None before the first one."""
    found = git.attempt("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return os.fsdecode(found.stdout.strip()) if found.returncode == 0 else None


def _commit(
    store: LoopStore,
    iteration: int,
    workdir: Path,
    layout: Layout,
    base: str | None,
    rules: ArtifactRules,
    at: str,
    message: str,
) -> tuple[str, Replaced]:
    """Write the commit, move no ref; return its id, ``base`` when nothing differs, and its tree."""
    manifest, artifacts = snapshot_of(store, iteration)
    foreign, strangers = _foreign(workdir.resolve()), partial(strangers_among, store)
    replaced = replace_part(layout, base, manifest.entries, artifacts, rules=rules, foreign=foreign, strangers=strangers)
    git = layout.git
    if base is not None and git.text("rev-parse", f"{base}^{{tree}}") == replaced.tree:
        return base, replaced
    parents = () if base is None else ("-p", base)
    signed = git.using(*_identity(git), GIT_AUTHOR_DATE=at, GIT_COMMITTER_DATE=at)
    made = signed.run("commit-tree", replaced.tree, *parents, "-F", "-", stdin=message.encode("utf-8", "backslashreplace"))
    return os.fsdecode(made.strip()), replaced


def _identity(git: Git) -> tuple[str, ...]:
    """Return settings that fill in what the person never told git."""
    missing: list[str] = []
    if git.attempt("config", "--get", "user.name").returncode != 0:
        missing.append(f"user.name={_NAME}")
    if git.attempt("config", "--get", "user.email").returncode != 0 and not os.environ.get("EMAIL"):
        missing.append(f"user.email={_EMAIL}")
    return tuple(missing)


def _message(store: LoopStore, iteration: int, by: str, reason: str = "") -> str:
    record = store.record(iteration)
    lines = [
        f"Iteration {iteration} of {store.loop_id}",
        "",
        f"Score {percent(record.quality_score)}, verification {record.verification_status}; selected by {escape(by)}.",
    ]
    return "\n".join([*lines, *(["", escape(reason)] if reason else [])]) + "\n"


def _foreign(workdir: Path) -> Callable[[str], bool]:
    """Return whether a path lies in a repository of its own below the working directory."""
    known: dict[str, bool] = {"": False}

    def is_foreign(directory: str) -> bool:
        if directory not in known:
            above = directory.rpartition("/")[0]
            known[directory] = is_foreign(above) or os.path.lexists(workdir / directory / ".git")
        return known[directory]

    return lambda path: is_foreign(path.rpartition("/")[0])


def _stage(store: LoopStore, git: Git, entries: Mapping[str, Entry | None], rules: ArtifactRules) -> None:
    """Put the committed part into the repository's own index, so that it shows no difference; what else is staged stays."""
    present = index_entries(git)
    differing = {path: entry for path, entry in entries.items() if present.get(path) != entry}
    ignored = set[str]() if rules.include else ignored_entries(git)
    inside = {
        path[len(git.prefix) :]: path
        for path, (mode, _) in present.items()
        if path.startswith(git.prefix) and mode != GITLINK and path not in ignored and path not in entries
    }
    going = {path for path in inside if rules.matches(path)}
    differing.update((inside[path], None) for path in going - strangers_among(store, going))
    if differing:
        length = next(len(entry[1]) for entry in (*differing.values(), *entries.values(), *present.values()) if entry)
        git.run("update-index", "-z", "--index-info", stdin=index_lines(differing, length))
    git.attempt("update-index", "-q", "--refresh")  # its exit code says that other files differ


def _quoted(patch: bytes) -> bytes:
    """Quote names with spaces in the headers: of an empty file the header is all there is, and ``git apply`` can't split it.

    No other line can look like a header: content lines are prefixed, and base-85 has no spaces.
    """
    return _HEADER.sub(lambda match: b'diff --git "a/%s" "b/%s"' % (match[1], match[1]) if b" " in match[1] else match[0], patch)


def _half(
    git: Git,
    scratch: Path,
    name: str,
    source: Path,
    changes: tuple[Change, ...],
    side: Callable[[Change], ArtifactDetail | None],
) -> str:
    """Return the tree of one side of a patch: only what changes, as the repository would store it."""
    directory = scratch / name
    directory.mkdir()
    objects = scratch / "objects"
    objects.mkdir(exist_ok=True)
    layout = Layout.create(git, directory, GIT_OBJECT_DIRECTORY=objects)
    details = {change.path: detail for change in changes if (detail := side(change)) is not None and detail.kind != "special"}
    for path, detail in details.items():
        layout.lay(git.prefix + path, source / path, detail)
    paths = [git.prefix + path for path in details]
    layout.lay_attributes_from(git.directory, paths, {git.prefix + change.path for change in changes})
    layout.add(paths)
    return layout.write_tree()
