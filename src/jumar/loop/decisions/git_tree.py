"""Turning files into git trees as ``git add`` would, without the repository's own index or working directory.

The files that differ are laid out in a temporary work tree beside a temporary index, and git itself adds them: with the clean
filters and line endings that the attributes ask for, the executable bit and links as they are. Everything else of the base tree
stays as it was.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jumar.core.files import copy_file
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.snapshots.scan import parents_of
from jumar.model.records import ArtifactDetail
from jumar.processes.git import Git, records

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
    def create(cls, repository: Git, directory: Path, **environment: str | Path) -> Layout:
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
            **environment,
        )
        return cls(directory=tree, git=git, top=repository.directory)

    def lay(self, path: str, source: Path, detail: ArtifactDetail) -> None:
        """Copy one file or link into the working directory, at ``path`` from the top."""
        target = self.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if detail.kind == "symlink":
            os.symlink(detail.target or "", target)
        else:
            copy_file(source, target, 0o755 if detail.mode & 0o100 else 0o644)

    def add(self, paths: Iterable[str]) -> None:
        """Put files of the working directory into the index, as ``git add`` would."""
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        if names:
            self.git.run("update-index", "--add", "--replace", "-z", "--stdin", stdin=names)

    def lay_attributes_from(self, top: Path, paths: Iterable[str], known: set[str]) -> None:
        """Copy the attribute files above ``paths`` out of a work tree, but those that are ``known``; they are not added."""
        for folder in {""} | {parent + "/" for path in paths for parent in parents_of(path)}:
            name = folder + _ATTRIBUTES
            source = top / name
            if name not in known and source.is_file() and not source.is_symlink():
                target = self.directory / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)

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
    artifacts: Path,
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
    raw = {full: _raw_entry(artifacts / full[len(prefix) :], detail, algorithm) for full, detail in wanted.items()}
    changed = [full for full in wanted if full in gone or present.get(full) != raw[full]]
    for full in changed:
        layout.lay(full, artifacts / full[len(prefix) :], wanted[full])
    _lay_attributes(layout, changed, wanted, artifacts, {path for path in present if path not in gone})
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


def _raw_entry(source: Path, detail: ArtifactDetail, algorithm: str) -> Entry:
    """Return the entry that the bytes have without any filter: equal to the base's, there is nothing to add."""
    if detail.kind == "symlink":
        target = os.fsencode(detail.target or "")
        digest = hashlib.new(algorithm, b"blob %d\0" % len(target) + target, usedforsecurity=False)
        return _LINK, digest.hexdigest().encode("ascii")
    with open(source, "rb") as file:
        digest = hashlib.new(algorithm, b"blob %d\0" % os.fstat(file.fileno()).st_size, usedforsecurity=False)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return _EXECUTABLE if detail.mode & 0o100 else _REGULAR, digest.hexdigest().encode("ascii")


def _lay_attributes(
    layout: Layout, changed: Iterable[str], wanted: Mapping[str, ArtifactDetail], artifacts: Path, present: set[str]
) -> None:
    """Lay out the attribute files above the changed files: they say which filters and line endings apply."""
    prefix = layout.git.prefix
    folders = {""} | {parent + "/" for path in changed for parent in parents_of(path)}
    names = {folder + _ATTRIBUTES for folder in folders} - set(changed)
    from_base: list[str] = []
    for name in sorted(names):
        if name in wanted:
            layout.lay(name, artifacts / name[len(prefix) :], wanted[name])
        elif name in present:
            from_base.append(name)
    if from_base:
        stdin = b"".join(os.fsencode(name) + b"\0" for name in from_base)
        layout.git.run("checkout-index", "--force", "-z", "--stdin", stdin=stdin)
