"""The chosen iteration as a git branch or a commit. Plumbing only: no hook runs, nothing but the named ref is moved.

The files that differ are laid out in a temporary work tree beside a temporary index, and git itself adds them: with the clean
filters and line endings that the attributes ask for, the executable bit and links as they are. Everything else of the base tree
stays as it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jumar.core.files import as_write_error
from jumar.core.text import escape, percent
from jumar.errors import UsageError
from jumar.loop.decisions.apply import apply, refuse_unfinished
from jumar.loop.decisions.plan import plan_apply, snapshot_of, strangers_among
from jumar.loop.snapshots.content import Content, lay_out
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.snapshots.scan import parents_of
from jumar.loop.store.loop_store import LoopStore
from jumar.model import Decision
from jumar.model.records import ArtifactDetail
from jumar.processes.git import Git, find_repository, records

GITLINK = b"160000"
_LINK = b"120000"
_EXECUTABLE = b"100755"
_REGULAR = b"100644"
_ATTRIBUTES = ".gitattributes"
_CHUNK = 1 << 20

Entry = tuple[bytes, bytes]  # mode and object id, as git writes them


def index_entries(git: Git) -> dict[str, Entry]:
    """Return the index's merged entries by path from the repository's top."""
    found: dict[str, Entry] = {}
    for record in records(git.run("ls-files", "--stage", "-z")):
        fields, _, path = record.partition(b"\t")
        mode, oid, _stage = fields.split(b" ")
        found[os.fsdecode(path)] = (mode, oid)
    return found


def ignored_entries(git: Git) -> set[str]:
    """Return the index's paths that ``.gitignore`` files name: no part of a loop that does not name them itself."""
    listed = git.run("ls-files", "--cached", "--ignored", "--exclude-per-directory=.gitignore", "-z")
    return {os.fsdecode(path) for path in records(listed)}


def index_lines(entries: Mapping[str, Entry | None], oid_length: int) -> bytes:
    """Return the input of ``update-index -z --index-info`` that sets entries; None removes one. Removals come first."""
    nothing = (b"0", b"0" * oid_length)
    ordered = sorted(entries.items(), key=lambda item: (item[1] is not None, item[0]))
    return b"".join(
        mode + b" " + oid + b"\t" + os.fsencode(path) + b"\0" for path, entry in ordered for mode, oid in (entry or nothing,)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A temporary working directory and index in ``directory``, with the objects and settings of the repository at ``top``."""

    directory: Path
    git: Git
    top: Path

    @classmethod
    def create(cls, repository: Git, directory: Path) -> Layout:
        """Lay out an empty pair; ``directory`` exists and is empty."""
        tree = directory / "tree"
        tree.mkdir()
        git = repository.using(
            # the temporary tree lies on a file system that has modes and links, whatever the repository's own was like
            "core.fileMode=true",
            "core.symlinks=true",
            directory=tree,
            GIT_DIR=repository.text("rev-parse", "--absolute-git-dir"),
            GIT_WORK_TREE=tree,
            GIT_INDEX_FILE=directory / "index",
        )
        return cls(directory=tree, git=git, top=repository.directory)

    def lay(self, path: str, content: Content, detail: ArtifactDetail) -> None:
        """Copy one file or link into the working directory, at ``path`` from the top."""
        target = self.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if detail.kind == "symlink":
            os.symlink(detail.target or "", target)
        else:
            lay_out(content, detail, target, 0o755 if detail.mode & 0o100 else 0o644)

    def add(self, paths: Iterable[str]) -> None:
        """Put files of the working directory into the index, as ``git add`` would."""
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        if names:
            self.git.run("update-index", "--add", "--replace", "-z", "--stdin", stdin=names)

    def ignored(self) -> set[str]:
        """Return the index's paths that the ``.gitignore`` files of the real working directory name: added once by force."""
        there = self.git.using(directory=self.top, GIT_WORK_TREE=self.top)
        return ignored_entries(there)

    def write_tree(self) -> str:
        """Return the id of the tree that the index describes."""
        return self.git.text("write-tree")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A tree in which the artifact part was replaced.

    ``entries`` are the index entries of the artifact part, None where the base had one that is gone. ``left_out`` are paths
    of the snapshot that lie in a submodule or another repository and cannot be part of this one's tree. ``left_alone`` are paths
    of the base, relative to the working directory, that no iteration has. ``filtered`` are files of which git keeps other bytes,
    by a filter or in other line endings.
    """

    tree: str
    entries: Mapping[str, Entry | None]
    left_out: tuple[str, ...]
    left_alone: tuple[str, ...]
    filtered: tuple[str, ...]


def replace_part(
    layout: Layout,
    base: str | None,
    entries: Mapping[str, ArtifactDetail],
    content: Content,
    *,
    rules: ArtifactRules,
    foreign: Callable[[str], bool],
    strangers: Callable[[Iterable[str]], Collection[str]],
) -> Replaced:
    """Return ``base``'s tree (None: an empty one) with everything that ``rules`` keep replaced by the snapshot's files and links.

    ``foreign`` says of a path relative to the working directory that it lies in another repository, ``strangers`` which of such
    paths no iteration has.
    """
    git, prefix = layout.git, layout.git.prefix
    git.run("read-tree", "--empty") if base is None else git.run("read-tree", base)
    present = index_entries(git)
    modules = {path for path, (mode, _) in present.items() if mode == GITLINK}
    inside_modules = {parent for path in modules for parent in parents_of(path)}
    wanted: dict[str, ArtifactDetail] = {}
    left_out: list[str] = []
    for path, detail in entries.items():
        full = prefix + path
        in_module = full in inside_modules or any(parent in modules for parent in (full, *parents_of(full)))
        if in_module or foreign(path):
            left_out.append(path)
        elif detail.kind != "special":
            wanted[full] = detail
    outside = modules if rules.include else modules | layout.ignored()
    kept = {path for path in present if path.startswith(prefix) and path not in outside and rules.matches(path[len(prefix) :])}
    in_the_way = _in_the_way(present, wanted)
    left_alone = strangers(path[len(prefix) :] for path in kept - in_the_way - set(wanted))
    gone = (in_the_way | kept - set(wanted)).difference(prefix + path for path in left_alone)
    length = len(git.run("hash-object", "-t", "tree", "--stdin").strip())
    git.run("update-index", "-z", "--index-info", stdin=index_lines(dict.fromkeys(gone), length))
    algorithm = "sha256" if length == 64 else "sha1"
    raw = {full: _raw_entry(content, detail, algorithm) for full, detail in wanted.items()}
    changed = [full for full in wanted if full in gone or present.get(full) != raw[full]]
    for full in changed:
        layout.lay(full, content, wanted[full])
    _lay_attributes(layout, changed, wanted, content, {path for path in present if path not in gone})
    layout.add(changed)
    after = index_entries(git)
    part: dict[str, Entry | None] = {full: after[full] for full in wanted}
    part |= {full: None for full in gone if full not in part}
    return Replaced(
        tree=layout.write_tree(),
        entries=part,
        left_out=tuple(sorted(left_out)),
        left_alone=tuple(sorted(left_alone)),
        filtered=tuple(full for full in sorted(changed) if after[full] not in {raw[full], present.get(full)}),
    )


def _in_the_way(present: Mapping[str, Entry], wanted: Mapping[str, ArtifactDetail]) -> set[str]:
    """Return the base's paths that stand where the snapshot has a directory, or below one where it has a file."""
    directories = {parent for path in wanted for parent in parents_of(path)}
    below = {path for path in present if path not in wanted and any(parent in wanted for parent in parents_of(path))}
    return directories.intersection(present) | below


def _raw_entry(content: Content, detail: ArtifactDetail, algorithm: str) -> Entry:
    """Return the entry that the bytes have without any filter: equal to the base's, there is nothing to add."""
    if detail.kind == "symlink":
        target = os.fsencode(detail.target or "")
        digest = hashlib.new(algorithm, b"blob %d\0" % len(target) + target, usedforsecurity=False)
        return _LINK, digest.hexdigest().encode("ascii")
    digest = hashlib.new(algorithm, b"blob %d\0" % detail.size, usedforsecurity=False)
    for chunk in content.chunks(detail):
        digest.update(chunk)
    return _EXECUTABLE if detail.mode & 0o100 else _REGULAR, digest.hexdigest().encode("ascii")


def _lay_attributes(
    layout: Layout, changed: Iterable[str], wanted: Mapping[str, ArtifactDetail], content: Content, present: set[str]
) -> None:
    """Lay out the attribute files above the changed files: they say which filters and line endings apply."""
    folders = {""} | {parent + "/" for path in changed for parent in parents_of(path)}
    names = {folder + _ATTRIBUTES for folder in folders} - set(changed)
    from_base: list[str] = []
    for name in sorted(names):
        if name in wanted:
            layout.lay(name, content, wanted[name])
        elif name in present:
            from_base.append(name)
    if from_base:
        stdin = b"".join(os.fsencode(name) + b"\0" for name in from_base)
        layout.git.run("checkout-index", "--force", "-z", "--stdin", stdin=stdin)


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


@contextlib.contextmanager
def _scratch() -> Generator[Path]:
    """A directory for a temporary index and working directory; what the disk refuses there is said like any refused write."""
    with tempfile.TemporaryDirectory(prefix="jumar-") as directory, as_write_error("prepare git's files in", Path(directory)):
        yield Path(directory)


def _repository(workdir: Path) -> Git:
    git = find_repository(workdir.resolve())
    if git is None:
        raise UsageError(
            f"{escape(str(workdir))} is in no git repository; `jumar apply` writes the files, and `git init` makes a repository"
        )
    return git


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
    manifest, content = snapshot_of(store, iteration)
    foreign, strangers = _foreign(workdir.resolve()), partial(strangers_among, store)
    replaced = replace_part(layout, base, manifest.entries, content, rules=rules, foreign=foreign, strangers=strangers)
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
    record = store.record(iteration, listed=False)
    lines = [
        f"Iteration {iteration} of {store.loop_id}",
        "",
        f"Score {percent(record.quality_score)}, verification {record.verification_status}; committed by {escape(by)}.",
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
