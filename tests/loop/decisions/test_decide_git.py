"""Branch and commit in real repositories."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from decide_kit import AT, BY, RULES, File, Link, Tree, new_loop, put, read_tree, record, write_tree

from jumar.errors import ConflictError, StoreWriteError, UsageError
from jumar.loop.decisions.apply import undo
from jumar.loop.decisions.git import make_branch, make_commit
from jumar.loop.decisions.plan import plan_apply
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.loop_store import LoopStore
from jumar.processes.git import find_repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

START = {"a.txt": File(b"start\n"), "bin/run": File(b"#!/bin/sh\n", 0o755), "old.txt": File(b"goes\n"), "l": Link("a.txt")}
BETTER = {
    "a.txt": File(b"better\n"),
    "bin/run": File(b"#!/bin/sh\n"),
    "l": Link("bin/run"),
    "new/line\nfeed": File(b"\x00\xff binary \x01" * 30, 0o755),
    os.fsdecode(b'\xff-rf " \\ \t'): File(b"odd\n"),
    "n" * 255: File(b""),
}


def git(directory: Path, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
    done = subprocess.run(
        ["git", *arguments], cwd=directory, input=stdin, capture_output=True, check=False, env={**os.environ, **(env or {})}
    )
    assert 0 == done.returncode, done.stderr.decode()
    return done.stdout


def line(directory: Path, *arguments: str) -> str:
    return git(directory, *arguments).decode().strip()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository whose one commit holds START."""
    top = tmp_path / "repository"
    write_tree(top, START)
    git(top, "init", "-q", "-b", "main")
    git(top, "config", "user.name", "Ada L")
    git(top, "config", "user.email", "ada@example.org")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "first")
    return top


def loop_in(work: Path, tree: Tree = BETTER, rules: ArtifactRules = RULES) -> LoopStore:
    """Return a loop that began with what ``work`` holds, and whose iteration 1 is ``tree``."""
    store = new_loop(work)
    record(store, 0, read_tree(work), rules=rules)
    record(store, 1, tree, score=85.25, rules=rules)
    return store


def holds(top: Path, ref: str) -> dict[str, tuple[str, bytes]]:
    """Return mode and content of everything in a commit."""
    found: dict[str, tuple[str, bytes]] = {}
    for entry in git(top, "ls-tree", "-r", "-z", ref).split(b"\0")[:-1]:
        head, _, name = entry.partition(b"\t")
        mode, kind, oid = head.decode().split()
        found[os.fsdecode(name)] = (mode, git(top, "cat-file", "blob", oid) if kind == "blob" else oid.encode())
    return found


def as_git(tree: Tree, prefix: str = "") -> dict[str, tuple[str, bytes]]:
    """What git should hold of a tree without filters."""
    return {
        prefix + path: ("120000", os.fsencode(item.target))
        if isinstance(item, Link)
        else ("100755" if item.mode & 0o100 else "100644", item.content)
        for path, item in tree.items()
    }


def untouched(top: Path) -> tuple[object, ...]:
    """HEAD, the index and the working directory."""
    index = top / ".git/index"
    return (
        (top / ".git/HEAD").read_bytes(),
        line(top, "rev-parse", "HEAD"),
        index.read_bytes() if index.exists() else None,
        read_tree(top),
    )


def branch(store: LoopStore, work: Path, name: str = "best", rules: ArtifactRules = RULES, **more: str):
    return make_branch(store, 1, work, name, rules=rules, by=BY, at=AT, **more)


# ------------------------------------------------------------------------------------------------------------- branch


def test_a_branch_holds_the_snapshot_and_nothing_else_moves(top):
    store = loop_in(top)
    before = untouched(top)
    made = branch(store, top)
    assert before == untouched(top)
    assert as_git(BETTER) == holds(top, "best")
    assert (made.ref, made.created, made.left_out) == ("refs/heads/best", True, ())
    assert made.commit == line(top, "rev-parse", "best")
    assert line(top, "rev-parse", "best^") == line(top, "rev-parse", "main")
    assert "" == line(top, "status", "--porcelain")
    assert "" == line(top, "fsck", "--no-dangling")


def test_the_commit_says_what_it_is_and_carries_the_persons_name_and_the_callers_time(top):
    branch(loop_in(top), top)
    shown = line(top, "show", "-s", "--format=%an <%ae>%n%cn <%ce>%n%aI%n%cI%n%B", "best")
    assert shown.splitlines() == [
        "Ada L <ada@example.org>",
        "Ada L <ada@example.org>",
        "2026-01-25T10:00:00+00:00",
        "2026-01-25T10:00:00+00:00",
        "Iteration 1 of polish",
        "",
        "Score 85.2%, verification passed; committed by ada.",
    ]


def test_a_message_of_ones_own(top):
    branch(loop_in(top), top, message="Mine\n")
    assert "Mine" == line(top, "show", "-s", "--format=%B", "best")


def test_without_an_identity_the_commit_is_jumars(top):
    git(top, "config", "--unset", "user.name")
    git(top, "config", "--unset", "user.email")
    branch(loop_in(top), top)
    assert "jumar <jumar@localhost>" == line(top, "show", "-s", "--format=%an <%ae>", "best")


def test_identity_from_the_environment_holds(top, monkeypatch):
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Grace")
    monkeypatch.setenv("EMAIL", "grace@example.org")
    git(top, "config", "--unset", "user.email")
    branch(loop_in(top), top)
    assert "Grace <grace@example.org> Ada L" == line(top, "show", "-s", "--format=%an <%ae> %cn", "best")


@pytest.mark.parametrize("at", ["2026-01-25T10:00:00Z", "2026-01-25T10:00:00.123456Z", "2026-01-25T10:00:00.123456+00:00"])
def test_timestamps_of_any_clock(top, at):
    make_branch(loop_in(top), 1, top, "best", rules=RULES, by=BY, at=at)
    assert "2026-01-25T10:00:00+00:00" == line(top, "show", "-s", "--format=%aI", "best")


def test_what_the_rules_do_not_match_stays_as_it_is_in_head(top):
    rules = ArtifactRules(include=("*.txt",))
    branch(loop_in(top, {"a.txt": File(b"better\n")}, rules), top, rules=rules)
    expected = {**as_git(START), "a.txt": ("100644", b"better\n")}
    del expected["old.txt"]
    assert expected == holds(top, "best")


def test_tracked_files_that_are_ignored_are_no_part_of_a_loop_without_include(top):
    put(top, ".gitignore", File(b"*.gen\n"))
    put(top, "x.gen", File(b"added by force\n"))
    put(top, "sub/y.gen", File(b"added by force\n"))
    git(top, "add", "-f", ".")
    git(top, "commit", "-q", "-m", "forced")
    tree = {**BETTER, ".gitignore": File(b"*.gen\n")}
    branch(loop_in(top, tree), top)
    forced = dict.fromkeys(("x.gen", "sub/y.gen"), ("100644", b"added by force\n"))
    assert {**as_git(tree), **forced} == holds(top, "best")
    make_commit(LoopStore.open(top / ".jumar/loops/polish"), 1, top, rules=RULES, by=BY, at=AT)
    assert {**as_git(tree), **forced} == holds(top, "HEAD")
    assert "" == line(top, "status", "--porcelain")


def test_ignored_files_that_an_include_names_are_part_of_it(top):
    rules = ArtifactRules(include=("*.gen",))
    put(top, ".gitignore", File(b"*.gen\n"))
    put(top, "old.gen", File(b"added by force\n"))
    git(top, "add", "-f", ".")
    git(top, "commit", "-q", "-m", "forced")
    branch(loop_in(top, {"new.gen": File(b"new\n")}, rules), top, rules=rules)
    expected = {**as_git(START), ".gitignore": ("100644", b"*.gen\n"), "new.gen": ("100644", b"new\n")}
    assert expected == holds(top, "best")


def test_files_and_directories_change_places(top):
    tree = {"a.txt/below": File(b"1\n"), "bin": File(b"2\n")}
    branch(loop_in(top, tree), top)
    assert as_git(tree) == holds(top, "best")


def test_a_file_in_the_way_goes_even_where_no_rule_matches_it(top):
    rules = ArtifactRules(include=("a.txt/",))
    branch(loop_in(top, {"a.txt/below": File(b"1\n")}, rules), top, rules=rules)
    expected = {**as_git(START), "a.txt/below": ("100644", b"1\n")}
    del expected["a.txt"]
    assert expected == holds(top, "best")


def test_a_work_directory_below_the_top(top):
    put(top, "part/inside.txt", File(b"old\n"))
    put(top, "part/gone.txt", File(b"old\n"))
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "part")
    tree = {"inside.txt": File(b"new\n"), "d/x": File(b"x\n", 0o755)}
    branch(loop_in(top / "part", tree), top / "part")
    assert {**as_git(START), **as_git(tree, "part/")} == holds(top, "best")


def test_a_repository_without_a_commit_gets_one_on_the_branch_alone(tmp_path):
    top = write_tree(tmp_path / "fresh", START)
    git(top, "init", "-q", "-b", "main")
    store = loop_in(top)
    made = branch(store, top)
    assert as_git(BETTER) == holds(top, "best")
    assert made.created
    assert "1" == line(top, "rev-list", "--count", "best")
    assert "refs/heads/best" == line(top, "for-each-ref", "--format=%(refname)")


def test_a_bare_repository_has_no_working_directory(tmp_path):
    bare = tmp_path / "bare"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    assert find_repository(bare) is None


def test_a_repository_with_sha256(tmp_path):
    top = write_tree(tmp_path / "fresh", START)
    git(top, "init", "-q", "-b", "main", "--object-format=sha256")
    git(top, "add", "-A")
    git(top, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "first")
    branch(loop_in(top), top)
    assert as_git(BETTER) == holds(top, "best")


def test_a_linked_worktree(top, tmp_path):
    other = tmp_path / "other"
    git(top, "worktree", "add", "-q", "-b", "side", str(other))
    branch(loop_in(other), other)
    assert as_git(BETTER) == holds(top, "best")
    assert line(top, "rev-parse", "best^") == line(top, "rev-parse", "side")


def test_nothing_differs_so_the_branch_points_at_head(top):
    made = branch(loop_in(top, START), top)
    assert (made.created, made.commit) == (False, line(top, "rev-parse", "main"))
    assert line(top, "rev-parse", "best") == made.commit


@pytest.mark.parametrize("name", ["main", "taken/name"])
def test_a_branch_that_exists_is_refused(top, name):
    git(top, "branch", "taken/name")
    before = untouched(top)
    with pytest.raises(UsageError, match=f"the branch '{name}' exists; choose another name"):
        branch(loop_in(top), top, name)
    assert before == untouched(top)


def test_a_branch_below_another_is_refused_with_what_git_says(top):
    git(top, "branch", "taken")
    with pytest.raises(UsageError, match="git update-ref failed"):
        branch(loop_in(top), top, "taken/below")


@pytest.mark.parametrize("name", ["", "-x", "a..b", "a b", "HEAD", "x.lock", "a\x1b"])
def test_a_name_that_is_none_is_refused(top, name):
    with pytest.raises(UsageError, match="cannot be the name of a branch"):
        branch(loop_in(top), top, name)


def test_outside_of_a_repository_the_way_out_is_said(tmp_path):
    work = tmp_path / "plain"
    store = loop_in(work)
    with pytest.raises(UsageError, match=r"is in no git repository; `jumar apply` writes the files, and `git init`"):
        branch(store, work)


def test_without_git_the_way_out_is_said(top, monkeypatch, tmp_path):
    store = loop_in(top)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="git was not found on PATH"):
        branch(store, top)


def test_a_work_directory_that_is_gone_is_said(top, tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        branch(loop_in(top), tmp_path / "nowhere")


def test_a_full_temporary_directory_is_said(top, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("jumar.loop.decisions.git.lay_out", full)
    with pytest.raises(StoreWriteError, match="the disk is full"):
        branch(loop_in(top), top)


def test_a_repository_that_git_refuses_is_said(top, monkeypatch):
    store = loop_in(top)
    (top / ".git/config").write_text("[broken\n")
    with pytest.raises(UsageError, match="git refuses the repository"):
        branch(store, top)


def test_surroundings_do_not_lead_git_elsewhere(top, tmp_path, monkeypatch):
    store = loop_in(top)
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    for name, value in {
        "GIT_DIR": other / ".git",
        "GIT_WORK_TREE": other,
        "GIT_INDEX_FILE": other / "index",
        "GIT_OBJECT_DIRECTORY": other,
    }.items():
        monkeypatch.setenv(name, str(value))
    branch(store, top)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.delenv(name)
    assert as_git(BETTER) == holds(top, "best")
    assert not (other / "index").exists()


def test_no_hook_runs(top, tmp_path):
    witness = tmp_path / "a hook ran"
    hooks = top / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in (
        "pre-commit",
        "commit-msg",
        "post-commit",
        "reference-transaction",
        "post-index-change",
        "post-checkout",
        "pre-auto-gc",
    ):
        put(hooks, name, File(f"#!/bin/sh\ntouch '{witness}'\n".encode(), 0o755))
    store = loop_in(top)
    branch(store, top)
    make_commit(store, 1, top, rules=RULES, by=BY, at=AT)
    assert not witness.exists()
    git(top, "commit", "-q", "--allow-empty", "-m", "they do run otherwise")
    assert witness.exists()


@pytest.mark.parametrize("how", [".gitattributes", "core.autocrlf"])
def test_line_endings_are_stored_as_git_add_would(top, how):
    if how == ".gitattributes":
        put(top, ".gitattributes", File(b"* text=auto eol=crlf\n*.bin -text\n"))
        git(top, "add", "-A")
        git(top, "commit", "-q", "-m", "attributes")
        tree = {
            ".gitattributes": File(b"* text=auto eol=crlf\n*.bin -text\n"),
            "a.txt": File(b"one\r\ntwo\r\n"),
            "x.bin": File(b"\r\n\r\n"),
        }
    else:
        git(top, "config", "core.autocrlf", "true")
        tree = {"a.txt": File(b"one\r\ntwo\r\n"), "x.bin": File(b"\r\n\x00\r\n")}
    branch(loop_in(top, tree), top)
    assert ("100644", b"one\ntwo\n") == holds(top, "best")["a.txt"]
    assert ("100644", tree["x.bin"].content) == holds(top, "best")["x.bin"]
    write_tree(top, tree)
    git(top, "checkout", "-q", "-b", "reference")
    git(top, "add", "-A")
    assert line(top, "write-tree") == line(top, "rev-parse", "best^{tree}")


def test_clean_filters_run_as_git_add_would_run_them(top):
    put(top, ".gitattributes", File(b"*.up filter=up\n"))
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "filter")
    git(top, "config", "filter.up.clean", "tr a-z A-Z")
    tree = {
        ".gitattributes": File(b"*.up filter=up\n"),
        "x.up": File(b"shout\n"),
        "sub/y.up": File(b"again\n"),
        "z": File(b"quiet\n"),
    }
    made = branch(loop_in(top, tree), top)
    assert made.filtered == ("sub/y.up", "x.up")
    found = holds(top, "best")
    assert (b"SHOUT\n", b"AGAIN\n", b"quiet\n") == (found["x.up"][1], found["sub/y.up"][1], found["z"][1])


def test_attributes_outside_of_the_loops_part_count_too(top):
    put(top, ".gitattributes", File(b"*.up filter=up\n"))
    put(top, "part/x.up", File(b"old\n"))
    git(top, "config", "filter.up.clean", "tr a-z A-Z")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "filter")
    branch(loop_in(top / "part", {"x.up": File(b"shout\n")}), top / "part")
    assert b"SHOUT\n" == holds(top, "best")["part/x.up"][1]


@pytest.mark.parametrize("setting", ["core.fileMode=false", "core.symlinks=false", "core.safecrlf=true", "core.quotePath=false"])
def test_settings_of_other_machines_change_nothing(top, setting):
    git(top, "config", *setting.split("="))
    branch(loop_in(top), top)
    assert as_git(BETTER) == holds(top, "best")


def test_sparse_checkouts_keep_what_is_not_checked_out(top):
    put(top, "far/away", File(b"1\n"))
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "far")
    git(top, "sparse-checkout", "set", "--cone", "bin")
    rules = ArtifactRules(include=("bin/",))
    branch(loop_in(top, {"bin/run": File(b"better\n")}, rules), top, rules=rules)
    assert {**as_git(START), "far/away": ("100644", b"1\n"), "bin/run": ("100644", b"better\n")} == holds(top, "best")


def test_submodules_and_nested_repositories_stay_out(top, tmp_path):
    module = write_tree(tmp_path / "module", {"m": File(b"m\n")})
    git(module, "init", "-q")
    git(module, "add", "-A")
    git(module, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "m")
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(module), "sub")
    git(top, "commit", "-q", "-m", "sub")
    git(top / "bin", "init", "-q", "nested")
    pinned = holds(top, "HEAD")["sub"]
    tree = {
        **BETTER,
        "sub/m": File(b"changed\n"),
        "bin/nested/x": File(b"x\n"),
        ".gitmodules": File((top / ".gitmodules").read_bytes()),
    }
    made = branch(loop_in(top, tree), top)
    assert ("bin/nested/x", "sub/m") == made.left_out
    assert pinned == holds(top, "best")["sub"]
    assert "bin/nested/x" not in holds(top, "best")


# ------------------------------------------------------------------------------------------------------------- commit


def test_a_commit_applies_and_commits_just_the_loops_part(top):
    rules = ArtifactRules(exclude=("mine/", "other.txt"))
    put(top, "mine/staged", File(b"staged\n"))
    git(top, "add", "mine/staged")
    put(top, "other.txt", File(b"not even staged\n"))
    store = loop_in(top, rules=rules)
    made = make_commit(store, 1, top, rules=rules, by=BY, at=AT, reason="it is shorter")
    assert (made.ref, made.commit) == ("refs/heads/main", line(top, "rev-parse", "main"))
    assert as_git(BETTER) == holds(top, "main")
    assert {**BETTER, "mine/staged": File(b"staged\n"), "other.txt": File(b"not even staged\n")} == read_tree(top)
    assert {"A  mine/staged", "?? other.txt"} == set(line(top, "status", "--porcelain").splitlines())
    assert "it is shorter" == line(top, "show", "-s", "--format=%b", "main").splitlines()[-1]
    assert made.decision is not None
    assert ("apply", "it is shorter") == (made.decision.kind, made.decision.reason)
    undo(store, by=BY, at=AT)
    assert {**START, "mine/staged": File(b"staged\n"), "other.txt": File(b"not even staged\n")} == read_tree(top)


def test_a_commit_of_what_the_loop_left_in_place(top):
    store = loop_in(top)
    record(store, 2, {"staged-and-gone": File(b"1\n")})
    write_tree(top, BETTER)
    put(top, "staged-and-gone", File(b"1\n"))
    git(top, "add", "staged-and-gone", "a.txt")
    (top / "staged-and-gone").unlink()
    made = make_commit(store, 1, top, rules=RULES, by=BY, at=AT)
    assert made.created
    assert as_git(BETTER) == holds(top, "HEAD")
    assert "" == line(top, "status", "--porcelain")


def test_what_no_iteration_has_stays_in_a_branch_a_commit_and_the_index(top):
    store = loop_in(top)
    put(top, "report.html", File(b"committed since\n"))
    git(top, "add", "report.html")
    git(top, "commit", "-q", "-m", "mine")
    put(top, "notes", File(b"staged\n"))
    git(top, "add", "notes")
    put(top, "also", File(b"untracked\n"))
    expected = {**as_git(BETTER), "report.html": ("100644", b"committed since\n")}
    assert ("report.html",) == branch(store, top).left_alone
    assert expected == holds(top, "best")
    made = make_commit(store, 1, top, rules=RULES, by=BY, at=AT)
    assert ("also", "notes", "report.html") == made.left_alone
    assert expected == holds(top, "HEAD")
    assert ["A  notes", "?? also"] == git(top, "status", "--porcelain").decode().splitlines()


def test_nothing_to_commit(top):
    made = make_commit(loop_in(top, START), 1, top, rules=RULES, by=BY, at=AT)
    assert (made.created, made.commit) == (False, line(top, "rev-parse", "HEAD"))
    assert "1" == line(top, "rev-list", "--count", "HEAD")


def test_a_first_commit_and_a_detached_head(tmp_path, top):
    fresh = write_tree(tmp_path / "fresh", START)
    git(fresh, "init", "-q", "-b", "main")
    made = make_commit(loop_in(fresh), 1, fresh, rules=RULES, by=BY, at=AT)
    assert ("refs/heads/main", as_git(BETTER)) == (made.ref, holds(fresh, "main"))
    git(top, "checkout", "-q", "--detach")
    made = make_commit(loop_in(top), 1, top, rules=RULES, by=BY, at=AT)
    assert ("HEAD", as_git(BETTER), as_git(START)) == (made.ref, holds(top, "HEAD"), holds(top, "main"))


@pytest.mark.parametrize("what", ["merge", "rebase", "cherry-pick"])
def test_nothing_is_written_while_git_is_in_the_middle_of_something(top, what):
    git(top, "checkout", "-q", "-b", "side")
    put(top, "a.txt", File(b"side\n"))
    git(top, "commit", "-q", "-a", "-m", "side")
    git(top, "checkout", "-q", "main")
    put(top, "a.txt", File(b"main\n"))
    git(top, "commit", "-q", "-a", "-m", "main")
    subprocess.run(["git", what, "side"], cwd=top, capture_output=True, check=False)
    store = loop_in(top)
    before = untouched(top)
    with pytest.raises(UsageError, match=f"a {what} is going on"):
        make_commit(store, 1, top, rules=RULES, by=BY, at=AT)
    assert before == untouched(top)
    assert () == store.decisions()
    assert branch(store, top).created


def test_a_conflict_while_applying_commits_nothing(top, monkeypatch):
    store = loop_in(top)
    plan = plan_apply(store, 1, top, RULES)
    monkeypatch.setattr("jumar.loop.decisions.git.plan_apply", lambda *_: plan)
    put(top, "a.txt", File(b"changed since\n"))
    with pytest.raises(ConflictError):
        make_commit(store, 1, top, rules=RULES, by=BY, at=AT)
    assert "1" == line(top, "rev-list", "--count", "--all")


def test_nothing_is_written_while_the_index_is_locked_or_unmerged(top):
    store = loop_in(top)
    (top / ".git/index.lock").touch()
    with pytest.raises(UsageError, match=r"another git process works in this repository, or left .*index\.lock behind"):
        make_commit(store, 1, top, rules=RULES, by=BY, at=AT)
    (top / ".git/index.lock").unlink()
    oid = line(top, "rev-parse", "HEAD:a.txt")
    unmerged = "".join(f"100644 {oid} {stage}\tboth\n" for stage in (1, 2, 3))
    git(top, "update-index", "--index-info", stdin=unmerged.encode())
    with pytest.raises(UsageError, match="has unmerged paths"):
        make_commit(store, 1, top, rules=RULES, by=BY, at=AT)
    assert (START, ()) == (read_tree(top), store.decisions())
