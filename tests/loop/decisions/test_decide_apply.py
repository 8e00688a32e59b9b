"""Apply, finish and undo on real directories."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from decide_kit import AT, BY, RULES, File, Link, directories, new_loop, put, read_tree, record, write_tree
from dying import Killed, changing_calls, dying, not_waiting

from jumar.errors import ArtifactError, ConflictError, LockedError, NotFoundError, StoreDamagedError, StoreWriteError, UsageError
from jumar.loop.decisions.apply import apply, finish, plan_undo, refuse_unfinished, undo, workdir_of
from jumar.loop.decisions.plan import plan_apply, strangers_among
from jumar.loop.snapshots import tree
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.snapshots.restore import plan_restore
from jumar.loop.snapshots.snapshot import take_snapshot
from jumar.loop.store.in_force import trail, unfinished
from jumar.loop.store.loop_store import LoopStore
from jumar.model import Decision

START = {"a.txt": File(b"start"), "src/run.sh": File(b"#!/bin/sh\n", 0o755), "notes": Link("a.txt")}
BETTER = {"a.txt": File(b"better", 0o600), "src/run.sh": File(b"#!/bin/sh\n", 0o700), "src/new/n.txt": File(b"new")}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture
def store(work: Path) -> LoopStore:
    """A working directory that holds START, and a loop with START as iteration 0 and BETTER as iteration 1."""
    store = new_loop(work)
    record(store, 0, START, score=50)
    record(store, 1, BETTER, score=80)
    write_tree(work, START)
    return store


@pytest.fixture(autouse=True)
def quick_disk():
    with not_waiting():
        yield


def put_in(store: LoopStore, iteration: int = 1, rules: ArtifactRules = RULES) -> Decision:
    assert store.workdir is not None
    return apply(store, plan_apply(store, iteration, store.workdir, rules), by=BY, at=AT, reason="best")


def everything(work: Path) -> dict[str, bytes | str]:
    """Everything below ``work``, the store included."""
    found: dict[str, bytes | str] = {}
    for directory, names, files in os.walk(work):
        for name in [*names, *files]:
            path = Path(directory, name)
            found[str(path)] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
    return found


# --------------------------------------------------------------------------------------------------------------- apply


def test_apply_makes_the_tree_equal_to_the_snapshot(store, work):
    decision = put_in(store)
    assert BETTER == read_tree(work)
    assert {"src": 0o755, "src/new": 0o755} == directories(work)
    assert ("apply", 1, 1, -30.0 + 30.0) == (decision.kind, decision.best_iteration, decision.final_iteration, decision.delta)
    assert (BY, AT, "best") == (decision.by, decision.at, decision.reason)
    assert ["apply", "apply-end"] == [one.kind for one in store.decisions()]
    assert unfinished(store) is None


def test_a_file_that_is_put_in_has_another_time_than_the_one_it_replaces(store, work):
    before = int((work / "a.txt").stat().st_mtime)
    put_in(store)
    assert before < int((work / "a.txt").stat().st_mtime)


def test_the_plan_says_what_happens_and_writes_nothing(store, work):
    (work / "more.txt").write_text("mine")
    record(store, 2, {"more.txt": File(b"of the loop")})
    before = everything(work)
    plan = plan_apply(store, 1, work, RULES)
    assert before == everything(work)
    assert plan.to_json() == {
        "iteration": 1,
        "workdir": str(work),
        "changes": [
            {"path": "a.txt", "change": "replace"},
            {"path": "more.txt", "change": "remove"},
            {"path": "notes", "change": "remove"},
            {"path": "src/new/n.txt", "change": "add"},
            {"path": "src/run.sh", "change": "replace"},
        ],
        "unchanged": 0,
        "skipped": [],
        "left_alone": [],
    }
    assert ["a.txt", "src/new/n.txt", "src/run.sh"] == [change.path for change in plan.write]
    assert ["more.txt", "notes"] == [change.path for change in plan.delete]
    assert not plan.empty


def test_what_the_rules_do_not_match_is_left_alone(store, work):
    rules = ArtifactRules(exclude=("mine/", "*.log"))
    mine = {"mine/a": File(b"1"), "x.log": File(b"2"), ".env": File(b"SECRET=1")}
    write_tree(work, {**START, **mine})
    put_in(store, rules=rules)
    assert {**BETTER, **mine} == read_tree(work)


def test_what_no_iteration_has_by_its_path_is_nobodys_of_the_loop(store, work):
    record(store, 2, {"late/known.txt": File(b"2")})
    strangers = {"report.html": File(b"mine"), "late/notes": Link("known.txt"), "src/new/o.txt": File(b"mine")}
    write_tree(work, {**START, **strangers, "late/known.txt": File(b"edited")})
    plan = plan_apply(store, 1, work, RULES)
    assert ("late/notes", "report.html", "src/new/o.txt") == plan.left_alone
    apply(store, plan, by=BY, at=AT)
    assert {**BETTER, **strangers} == read_tree(work), "a directory that holds one stays"
    assert plan_apply(store, 1, work, RULES).empty
    undo(store, by=BY, at=AT)
    assert {**START, **strangers, "late/known.txt": File(b"edited")} == read_tree(work)
    exact = plan_apply(store, 1, work, RULES, exact=True)
    assert ((), {*strangers}) == (exact.left_alone, {*strangers}.intersection(change.path for change in exact.delete))


def test_a_stranger_in_the_way_of_a_directory_is_replaced_and_one_below_a_file_to_be_is_refused(store, work):
    write_tree(work, {"src": File(b"mine")})
    plan = plan_apply(store, 1, work, RULES)
    assert ((), ["src"]) == (plan.left_alone, [change.path for change in plan.delete])
    apply(store, plan, by=BY, at=AT)
    undo(store, by=BY, at=AT)
    write_tree(work, {"a.txt/mine": File(b"mine")})
    with pytest.raises(ConflictError, match=r"a\.txt/mine\): move that elsewhere"):
        plan_apply(store, 1, work, RULES)


def test_manifests_say_what_is_known_whether_or_not_their_snapshot_is_there_or_can_be_read(store, work):
    record(store, 2, {"two.txt": File(b"2")})
    record(store, 3, {"three.txt": File(b"3")})
    shutil.rmtree(store.artifacts(2))
    (store.paths.iteration(3) / "manifest.json").write_text("{")
    write_tree(work, {"two.txt": File(b"2"), "three.txt": File(b"3")})
    plan = plan_apply(LoopStore.open(store.paths.directory), 1, work, RULES)
    assert (("three.txt",), ["two.txt"]) == (plan.left_alone, [change.path for change in plan.delete])


def test_paths_of_differences_and_of_what_waits_to_be_scored_are_known(store, work):
    many = {f"many/{number}": File(b"x") for number in range(300)}
    record(store, 2, many)
    record(store, 3, {**many, "later": File(b"3")})
    assert 2 == store.manifest(3).base
    source = write_tree(work.parent / "waits", {"waits": File(b"4")})
    with store.lock():
        store.stage(4, source=source, paths=("waits",), nonce="n", attempt=None, stage={}, logs=None)
    assert {"mine"} == strangers_among(store, ["many/7", "later", "waits", "mine", "a.txt"])


def test_the_store_is_never_part_of_it_wherever_it_lies(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    store = LoopStore.create(work / "kept" / "loops" / "x", "x", {}, workdir=work, created_at=AT)
    record(store, 0, {"a": File(b"1")})
    (work / "b").write_text("2")
    plan = plan_apply(store, 0, work, RULES)
    assert (["a"], ("b",)) == ([change.path for change in plan.moves.changes], plan.left_alone)


@pytest.mark.parametrize("planted", ["an empty copy", "another copy", "a link"])
def test_what_lies_where_an_apply_keeps_its_copy_is_not_taken_for_one(store, work, tmp_path, planted):
    (tmp_path / "persons").mkdir()
    for number in range(1, 4):
        place = store.paths.undo_of(number)
        place.parent.mkdir(exist_ok=True)
        if planted == "a link":
            place.symlink_to(tmp_path / "persons")
        else:
            (place / "artifacts").mkdir(parents=True)
        if planted == "another copy":
            (place / "artifacts/a.txt").write_bytes(b"evil")
        (store.paths.scratch / f"apply-{number:04d}").symlink_to(tmp_path / "persons")
    (work / "a.txt").write_bytes(b"my own")
    put_in(store)
    assert b"better" == (work / "a.txt").read_bytes()
    undo(store, by=BY, at=AT)
    assert b"my own" == (work / "a.txt").read_bytes()
    assert [] == list((tmp_path / "persons").iterdir())


def test_leftovers_are_not_removed_through_a_link(store, tmp_path):
    (tmp_path / ".tmp-mine").touch()
    store.paths.undo.mkdir(exist_ok=True)
    for place in (store.paths.undo_of(3), store.paths.checks, store.paths.recheck):
        place.symlink_to(tmp_path)
    store.discard_leftovers()
    assert (tmp_path / ".tmp-mine").exists()


def test_an_apply_that_changes_nothing_is_written_down_and_undone_without_effect(store, work):
    put_in(store)
    assert plan_apply(store, 1, work, RULES).empty
    put_in(store)
    undo(store, by=BY, at=AT)
    assert BETTER == read_tree(work)
    undo(store, by=BY, at=AT)
    assert START == read_tree(work)


def test_a_decision_about_many_files_is_one_line_and_a_small_one_is_for_reading(store, work):
    record(store, 2, {f"{number}.txt": File(b"1") for number in range(100)})
    small, large = put_in(store, 1), put_in(store, 2)
    lines = [len((store.paths.decisions / f"{made.number:04d}-apply.json").read_text().splitlines()) for made in (small, large)]
    assert lines[0] > 10
    assert 1 == lines[1]
    reopened = LoopStore.open(store.paths.directory)
    assert large.data == next(made.data for made in reopened.decisions() if made.number == large.number)


def test_a_link_to_a_directory_in_the_way_is_replaced_and_never_followed(store, work, tmp_path):
    elsewhere = write_tree(tmp_path / "elsewhere", {"run.sh": File(b"do not touch")})
    for name in ("src/run.sh", "src"):
        path = work / name
        path.unlink() if path.is_file() else path.rmdir()
    (work / "src").symlink_to(elsewhere)
    before = read_tree(work)
    put_in(store)
    assert BETTER == read_tree(work)
    assert {"run.sh": File(b"do not touch")} == read_tree(elsewhere)
    undo(store, by=BY, at=AT)
    assert before == read_tree(work)
    assert {"run.sh": File(b"do not touch")} == read_tree(elsewhere)


def test_a_link_in_the_way_is_replaced_even_when_no_rule_names_it(work, tmp_path):
    rules = ArtifactRules(include=("src/*.sh",))
    store = new_loop(work)
    record(store, 0, {"src/run.sh": File(b"echo")}, rules=rules)
    elsewhere = write_tree(tmp_path / "elsewhere", {"run.sh": File(b"do not touch")})
    (work / "src").symlink_to(elsewhere)
    put_in(store, 0, rules)
    assert {"src/run.sh": File(b"echo")} == read_tree(work)
    assert {"run.sh": File(b"do not touch")} == read_tree(elsewhere)
    undo(store, by=BY, at=AT)
    assert {"src": Link(str(elsewhere))} == read_tree(work)


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "src/../../x"])
def test_a_link_that_leads_out_is_refused_unless_it_is_there_already(store, work, target):
    record(store, 2, {"src/a": File(b"1"), "out": Link(target)})
    before = read_tree(work)
    with pytest.raises(ArtifactError, match="out"):
        plan_apply(store, 2, work, RULES)
    assert before == read_tree(work)
    put(work, "out", Link(target))
    put_in(store, 2)
    assert {"src/a": File(b"1"), "out": Link(target)} == read_tree(work)


def test_files_that_no_rule_matches_are_not_lost_to_a_file_that_needs_their_directory(work):
    rules = ArtifactRules(exclude=("*.log",))
    store = new_loop(work)
    record(store, 0, {"d": File(b"a file")}, rules=rules)
    write_tree(work, {"d/x": File(b"1"), "d/keep.log": File(b"mine")})
    with pytest.raises(UsageError, match=r"d/keep\.log"):
        plan_apply(store, 0, work, rules)


def test_special_files_are_left_alone_and_refused_where_they_are_in_the_way(store, work):
    os.mkfifo(work / "pipe")
    plan = plan_apply(store, 1, work, RULES)
    assert ("pipe",) == plan.left_alone
    apply(store, plan, by=BY, at=AT)
    assert {*BETTER, "pipe"} == set(read_tree(work))
    (work / "a.txt").unlink()
    os.mkfifo(work / "a.txt")
    with pytest.raises(UsageError, match=r"a\.txt"):
        plan_apply(store, 0, work, RULES)


def test_a_special_file_of_the_snapshot_is_not_made(work):
    store = new_loop(work)
    source = work.parent / "given"
    write_tree(source, {"a": File(b"1")})
    os.mkfifo(source / "pipe")
    with store.lock():
        from jumar.model import IterationRecord

        pending = store.stage(0, source=source, paths=("a", "pipe"), nonce="n", attempt=None, stage={}, logs=None)
        store.commit(pending, IterationRecord(iteration_number=0, timestamp=AT, quality_score=1))
    plan = plan_apply(store, 0, work, RULES)
    assert ("pipe",) == plan.skipped
    apply(store, plan, by=BY, at=AT)
    assert {"a": File(b"1")} == read_tree(work)


def test_odd_names_modes_and_contents_come_back(work):
    odd = {
        "-rf": File(b"1", 0o444),
        "line\nfeed": File(b"2", 0o1600),
        "esc\x1b[31m": File(b"3", 0o4755),
        os.fsdecode(b"\xff\xfe"): File(b"4", 0o000),
        "n" * 255: File(b"\x00" * 70_000, 0o777),
        "d " + "é" * 100 + "/ x ": Link(os.fsdecode(b"\xffnowhere")),
        "\\": File(b"", 0o640),
    }
    store = new_loop(work)
    record(store, 0, odd)
    put_in(store, 0)
    assert odd == read_tree(work)
    undo(store, by=BY, at=AT)
    assert {} == read_tree(work)


def test_deep_paths_beyond_the_system_limit(tmp_path):
    work = tmp_path / "work"
    store = new_loop(work)
    deep = "/".join(["d" * 200] * 12) + "/file"
    record(store, 0, {deep: File(b"far down")})
    put_in(store, 0)
    assert {deep: File(b"far down")} == read_tree(work)
    undo(store, by=BY, at=AT)
    assert ({}, {}) == (read_tree(work), directories(work))


def test_snapshots_are_neither_linked_to_nor_changed_by_the_tree(store, work):
    put_in(store)
    (work / "a.txt").write_bytes(b"scribbled over")
    assert b"better" == (store.artifacts(1) / "a.txt").read_bytes()
    assert 1 == (work / "a.txt").stat().st_nlink


def test_missing_iterations_and_directories_are_refused(store, work):
    with pytest.raises(NotFoundError, match="there is no iteration 7"):
        plan_apply(store, 7, work, RULES)
    with pytest.raises(UsageError, match="cannot be opened"):
        plan_apply(store, 1, work / "nowhere", RULES)


def test_a_snapshot_that_holds_git_or_store_files_is_refused(store, work, monkeypatch):
    manifest = store.manifest(1)
    entries = dict(manifest.entries)
    entries[".git/hooks/pre-commit"] = replace(entries["a.txt"], path=".git/hooks/pre-commit")
    monkeypatch.setattr(store, "manifest", lambda number: type(manifest)(entries))
    with pytest.raises(UsageError, match="belongs to git or to jumar"):
        plan_apply(store, 1, work, RULES)


def test_another_process_that_writes_is_waited_for_and_named(store, work):
    plan = plan_apply(store, 1, work, RULES)
    other = LoopStore.open(store.paths.directory)
    with other.lock(), pytest.raises(LockedError):
        apply(store, plan, by=BY, at=AT)
    assert START == read_tree(work)


def test_what_changes_while_the_plan_is_made_is_seen_as_it_is_then(store, work, monkeypatch):
    put(work, "more.txt", File(b"goes"))

    def plan_restore_then_change(*arguments: Any, **named: Any) -> object:
        found = plan_restore(*arguments, **named)
        (work / "more.txt").unlink()
        put(work, "src/new/n.txt", File(b"new"))
        return found

    monkeypatch.setattr("jumar.loop.decisions.plan.plan_restore", plan_restore_then_change)
    plan = plan_apply(store, 1, work, RULES)
    assert ["a.txt", "notes", "src/run.sh"] == [change.path for change in plan.moves.changes]
    apply(store, plan, by=BY, at=AT)
    assert BETTER == read_tree(work)


@pytest.mark.parametrize("denied", ["a.txt", "src"])
def test_what_cannot_be_read_is_named(store, work, monkeypatch, denied):
    real = os.open

    def refuse(path: Any, *arguments: Any, **named: Any) -> int:
        if path == denied and "dir_fd" in named:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(UsageError, match=f"cannot read {denied}.*: Permission denied"):
        plan_apply(store, 1, work, RULES)


# ----------------------------------------------------------------------------------------------------------- conflicts


CHANGES = {
    "changed": lambda work: (work / "a.txt").write_bytes(b"by somebody else"),
    "same content, other mode": lambda work: (work / "a.txt").chmod(0o640),
    "removed": lambda work: (work / "notes").unlink(),
    "now a link": lambda work: ((work / "a.txt").unlink(), (work / "a.txt").symlink_to("src/run.sh")),
    "link leads elsewhere": lambda work: ((work / "notes").unlink(), (work / "notes").symlink_to("src")),
    "appeared": lambda work: put(work, "src/new/n.txt", File(b"mine")),
    "appeared, and equals the snapshot": lambda work: put(work, "src/new/n.txt", File(b"new")),
    "a file where a directory is needed": lambda work: put(work, "src/new", File(b"mine")),
    "a directory where a file goes": lambda work: ((work / "a.txt").unlink(), put(work, "a.txt/mine", File(b"mine"))),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_target_that_changed_since_the_plan_is_a_conflict_and_nothing_is_written(store, work, how):
    plan = plan_apply(store, 1, work, RULES)
    CHANGES[how](work)
    before = everything(work)
    with pytest.raises(ConflictError, match="nothing was written"):
        apply(store, plan, by=BY, at=AT)
    after = everything(work)
    after.pop(str(store.paths.lock), None)
    before.pop(str(store.paths.lock), None)
    assert before == after
    assert unfinished(store) is None


def test_a_conflict_names_every_path(store, work):
    plan = plan_apply(store, 1, work, RULES)
    (work / "a.txt").write_bytes(b"1\x1b")
    (work / "src/run.sh").unlink()
    with pytest.raises(ConflictError, match=r"2 paths changed since the plan was made: a\.txt, src/run\.sh"):
        apply(store, plan, by=BY, at=AT)


def test_a_target_that_changes_while_the_copy_is_made_is_a_conflict(store, work, monkeypatch):
    plan = plan_apply(store, 1, work, RULES)
    real = take_snapshot

    def take(*arguments: Any, **named: Any) -> object:
        (work / "a.txt").write_bytes(b"at this very moment")
        return real(*arguments, **named)

    monkeypatch.setattr("jumar.loop.decisions.moves.take_snapshot", take)
    with pytest.raises(ConflictError, match=r"a\.txt"):
        apply(store, plan, by=BY, at=AT)
    assert {**START, "a.txt": File(b"at this very moment")} == read_tree(work)
    assert unfinished(store) is None
    assert ["apply", "undo", "undo-end"] == [one.kind for one in store.decisions()]


def test_a_target_that_changes_in_the_middle_stops_the_rest(store, work, monkeypatch):
    plan = plan_apply(store, 1, work, RULES)
    real = tree.Tree.place

    def place(self: tree.Tree, path: str, *rest: Any) -> None:
        if path == "src/new/n.txt":
            put(work, path, File(b"mine"))
        real(self, path, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(tree.Tree, "place", place)
        with pytest.raises(ConflictError, match=r"src/new/n\.txt changed at this moment.*--undo"):
            apply(store, plan, by=BY, at=AT)
    assert b"#!/bin/sh\n" == (work / "src/run.sh").read_bytes()
    assert 0o755 == (work / "src/run.sh").stat().st_mode & 0o777  # what comes after is as it was
    assert b"mine" == (work / "src/new/n.txt").read_bytes()
    with pytest.raises(UsageError, match="was interrupted"):
        refuse_unfinished(store)
    with pytest.raises(ConflictError, match=r"src/new/n\.txt"):
        finish(store, by=BY, at=AT)
    with pytest.raises(ConflictError, match=r"src/new/n\.txt"):
        undo(store, by=BY, at=AT)
    decision = undo(store, by=BY, at=AT, force=True)
    assert START == read_tree(work)
    aside = store.paths.directory / decision.data["set_aside"]
    assert b"mine" == (aside / "artifacts" / "src/new/n.txt").read_bytes()
    assert unfinished(store) is None


def test_a_directory_that_appears_in_the_middle_is_a_conflict(store, work, monkeypatch):
    plan = plan_apply(store, 1, work, RULES)
    real = tree.Tree.make_directory

    def make(self: tree.Tree, path: str) -> None:
        real(self, path)
        put(work, "src/new/n.txt/mine", File(b"mine"))

    with monkeypatch.context() as patched:
        patched.setattr(tree.Tree, "make_directory", make)
        with pytest.raises(ConflictError, match=r"src/new/n\.txt"):
            apply(store, plan, by=BY, at=AT)
    assert b"mine" == (work / "src/new/n.txt/mine").read_bytes()


def test_a_link_that_takes_a_parents_place_in_the_middle_is_not_followed(store, work, tmp_path, monkeypatch):
    elsewhere = write_tree(tmp_path / "elsewhere", {"x": File(b"do not touch")})
    plan = plan_apply(store, 1, work, RULES)
    real = tree.Tree.make_directory

    def make(self: tree.Tree, path: str) -> None:
        real(self, path)
        (work / path).rmdir()
        (work / path).symlink_to(elsewhere)

    with monkeypatch.context() as patched:
        patched.setattr(tree.Tree, "make_directory", make)
        with pytest.raises(ConflictError, match=r"the way to src/new/n\.txt changed"):
            apply(store, plan, by=BY, at=AT)
    assert {"x": File(b"do not touch")} == read_tree(elsewhere)


def test_a_damaged_snapshot_never_reaches_the_tree(store, work):
    plan = plan_apply(store, 1, work, RULES)
    stored = store.artifacts(1) / "src/new/n.txt"
    stored.chmod(0o600)
    stored.write_bytes(b"bit rot")
    with pytest.raises(StoreDamagedError, match="has another content than was recorded"):
        apply(store, plan, by=BY, at=AT)
    stored.unlink()
    with pytest.raises(StoreDamagedError, match="the snapshot lacks"):
        apply(store, plan, by=BY, at=AT)
    assert START == read_tree(work)
    assert unfinished(store) is None


def test_a_full_disk_leaves_the_tree_alone_while_copies_are_made(store, work):
    plan = plan_apply(store, 1, work, RULES)
    total = changing_calls(lambda: apply(store, plan, by=BY, at=AT))
    undo(store, by=BY, at=AT)
    untouched = 0
    for at in range(1, total // 2):
        plan = plan_apply(store, 1, work, RULES)
        with dying(at, "error", errno.ENOSPC):
            said = "the disk is full"
            try:
                apply(store, plan, by=BY, at=AT)
            except StoreWriteError as error:
                said = str(error)
        assert "the disk is full" in said
        if unfinished(store) is not None or read_tree(work) == BETTER:
            undo(store, by=BY, at=AT)
        else:
            untouched += 1
            assert list(store.paths.scratch.iterdir()) == []
        assert START == read_tree(work)
    print(f"disk full at {total // 2 - 1} calls: {untouched} left nothing to do")
    assert untouched > 10


# ---------------------------------------------------------------------------------------------------------------- undo


def test_undo_restores_the_state_just_before(store, work):
    state = {**START, "mine.txt": File(b"kept by nobody else", 0o640), "more/deep/er": File(b"x")}
    record(store, 2, state)
    write_tree(work, state)
    (work / "more").chmod(0o700)
    (work / "more/deep").chmod(0o2750)
    before = (read_tree(work), directories(work))
    put_in(store)
    assert BETTER == read_tree(work)
    decision = undo(store, by="grace", at=AT, reason="not yet")
    assert before == (read_tree(work), directories(work))
    assert ("undo", 1, "grace", "not yet") == (decision.kind, decision.best_iteration, decision.by, decision.reason)


def test_a_directory_that_was_empty_before_is_there_after_the_undo(store, work):
    (work / "src/new").mkdir(mode=0o711)
    before = directories(work)
    put_in(store)
    undo(store, by=BY, at=AT)
    assert before == directories(work)


def test_empty_directories_that_a_file_replaced_come_back(work):
    store = new_loop(work)
    record(store, 0, {"d": File(b"1")})
    (work / "d/e/f").mkdir(parents=True)
    (work / "d/e").chmod(0o700)
    before = directories(work)
    put_in(store, 0)
    assert {"d": File(b"1")} == read_tree(work)
    undo(store, by=BY, at=AT)
    assert (before, {}) == (directories(work), read_tree(work))


def test_each_undo_goes_one_apply_further_back_and_an_apply_starts_again(store, work):
    record(store, 2, {"z": File(b"third")})
    put_in(store, 1)
    put_in(store, 2)
    undo(store, by=BY, at=AT)
    assert BETTER == read_tree(work)
    undo(store, by=BY, at=AT)
    assert START == read_tree(work)
    with pytest.raises(NotFoundError, match="no apply to take back"):
        undo(store, by=BY, at=AT)
    put_in(store, 2)
    assert {"z": File(b"third")} == read_tree(work)
    undo(store, by=BY, at=AT)
    assert START == read_tree(work)
    states = [(entry.decision.kind, entry.state) for entry in trail(store)]
    assert [
        ("apply", "undone"),
        ("apply", "undone"),
        ("undo", "done"),
        ("undo", "done"),
        ("apply", "undone"),
        ("undo", "done"),
    ] == states


def test_undo_without_any_apply(store):
    with pytest.raises(NotFoundError):
        plan_undo(store)


def test_the_plan_of_an_undo_writes_nothing(store, work):
    put_in(store)
    before = everything(work)
    plan = plan_undo(store)
    assert before == everything(work)
    assert plan.to_json() == {
        "undo_of": 1,
        "iteration": 1,
        "workdir": str(work),
        "changes": [
            {"path": "a.txt", "change": "replace"},
            {"path": "notes", "change": "add"},
            {"path": "src/new/n.txt", "change": "remove"},
            {"path": "src/run.sh", "change": "replace"},
        ],
        "conflicts": [],
        "left_alone": [],
    }


def test_files_that_changed_since_the_apply_are_conflicts_and_set_aside_by_force(store, work):
    put_in(store)
    (work / "a.txt").write_bytes(b"edited since")
    (work / "src/run.sh").unlink()
    put(work, "notes", File(b"not a link any more"))
    before = everything(work)
    with pytest.raises(ConflictError, match=r"3 paths changed since iteration 1 was applied: a\.txt, notes, src/run\.sh"):
        undo(store, by=BY, at=AT)
    assert set(before) == set(everything(work))
    decision = undo(store, by=BY, at=AT, force=True)
    assert START == read_tree(work)
    aside = store.paths.directory / decision.data["set_aside"] / "artifacts"
    assert {"a.txt": b"edited since", "notes": b"not a link any more"} == {
        path.name: path.read_bytes() for path in aside.iterdir()
    }


def test_new_files_beside_what_the_apply_wrote_stay(store, work):
    put_in(store)
    put(work, "src/new/mine", File(b"mine"))
    undo(store, by=BY, at=AT)
    assert {**START, "src/new/mine": File(b"mine")} == read_tree(work)


def test_what_appeared_where_an_undo_needs_the_place_is_a_conflict(work):
    store = new_loop(work)
    record(store, 0, {"swap/below": File(b"1")})
    write_tree(work, {"swap": File(b"a file")})
    put_in(store, 0)
    put(work, "swap/mine/deep", File(b"mine"))
    with pytest.raises(ConflictError, match="swap/mine/deep"):
        undo(store, by=BY, at=AT)
    decision = undo(store, by=BY, at=AT, force=True)
    assert {"swap": File(b"a file")} == read_tree(work)
    assert b"mine" == (store.paths.directory / decision.data["set_aside"] / "artifacts/swap/mine/deep").read_bytes()


def test_a_file_that_took_a_directorys_place_is_a_conflict(store, work):
    record(store, 2, state := {**START, "only/here": File(b"1")})
    write_tree(work, state)
    put_in(store)
    put(work, "only", File(b"mine"))
    with pytest.raises(ConflictError, match="only"):
        undo(store, by=BY, at=AT)
    undo(store, by=BY, at=AT, force=True)
    assert state == read_tree(work)


def test_a_fifo_in_the_way_of_an_undo_is_refused_even_by_force(store, work):
    put_in(store)
    os.mkfifo(work / "notes")
    for force in (False, True):
        with pytest.raises(UsageError, match="FIFO"):
            undo(store, by=BY, at=AT, force=force)


def test_what_is_already_back_is_no_conflict(store, work):
    put_in(store)
    put(work, "a.txt", START["a.txt"])
    assert () == plan_undo(store).conflicts
    undo(store, by=BY, at=AT)
    assert START == read_tree(work)


def test_an_apply_cut_off_before_its_copy_was_there_is_taken_back_without_touching_anything(store, work):
    plan = plan_apply(store, 1, work, RULES)
    with dying(14, "killed before"), pytest.raises(Killed):
        apply(store, plan, by=BY, at=AT)
    later = LoopStore.open(store.paths.directory)
    found = unfinished(later)
    assert found is not None
    assert not later.paths.undo_of(found.number).exists()
    (work / "a.txt").write_bytes(b"edited after the crash")
    with pytest.raises(ConflictError):
        finish(later, by=BY, at=AT)
    undo(later, by=BY, at=AT)
    assert {**START, "a.txt": File(b"edited after the crash")} == read_tree(work)
    assert unfinished(later) is None


def test_nothing_else_is_applied_while_an_apply_is_unfinished(store, work):
    plan = plan_apply(store, 1, work, RULES)
    with dying(14, "killed before"), pytest.raises(Killed):
        apply(store, plan, by=BY, at=AT)
    later = LoopStore.open(store.paths.directory)
    with pytest.raises(UsageError, match="`jumar apply polish` finishes it, with --undo it is taken back"):
        put_in(later, 0)
    assert [("apply", "unfinished")] == [(entry.decision.kind, entry.state) for entry in trail(later)]
    assert "apply" == finish(later, by=BY, at=AT).kind
    assert BETTER == read_tree(work)


def test_an_undo_that_was_cut_off_and_tried_again_is_done(store, work):
    put_in(store)
    total = changing_calls(lambda: undo(store, by=BY, at=AT))
    put_in(store)
    with dying(total - 3, "killed before"), pytest.raises(Killed):
        undo(store, by=BY, at=AT)
    later = LoopStore.open(store.paths.directory)
    assert "unfinished" == trail(later)[-1].state
    found = unfinished(later)
    assert found is not None
    assert ("undo", 1, work) == (found.kind, found.best_iteration, workdir_of(later, found))
    with pytest.raises(UsageError, match=r"the undo of iteration 1 .* `jumar apply polish` finishes it$"):
        refuse_unfinished(later)
    undo(later, by=BY, at=AT)
    assert START == read_tree(work)
    states = [(entry.decision.kind, entry.state) for entry in trail(later)[2:]]
    assert [("apply", "undone"), ("undo", "done"), ("undo", "done")] == states
    with pytest.raises(NotFoundError):
        undo(later, by=BY, at=AT)


def test_finish_without_anything_to_finish(store):
    with pytest.raises(UsageError, match="no interrupted apply"):
        finish(store, by=BY, at=AT)


def test_the_undo_still_works_when_the_whole_tree_was_moved(store, work, tmp_path):
    put_in(store)
    moved = tmp_path / "elsewhere" / "moved"
    moved.parent.mkdir()
    work.rename(moved)
    undo(LoopStore.open(moved / ".jumar/loops/polish"), by=BY, at=AT)
    assert START == read_tree(moved)


def test_an_undo_finds_another_work_directory_by_its_absolute_path(store, tmp_path):
    other = write_tree(tmp_path / "other", {"a.txt": File(b"theirs")})
    apply(store, plan_apply(store, 1, other, RULES), by=BY, at=AT)
    assert BETTER == read_tree(other)
    undo(LoopStore.open(store.paths.directory), by=BY, at=AT)
    assert {"a.txt": File(b"theirs")} == read_tree(other)


# ---------------------------------------------------------------------------------------------------- file systems


@pytest.fixture
def other_file_system(monkeypatch):
    """Renames out of the store's scratch are refused, as between two file systems."""
    real = os.rename

    def rename(source: Any, target: Any, **named: Any) -> None:
        if "scratch" in str(source):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        real(source, target, **named)

    monkeypatch.setattr(os, "rename", rename)


@pytest.mark.usefixtures("other_file_system")
def test_a_work_tree_on_another_file_system(store, work):
    state = {**START, "-l": Link("nowhere")}
    record(store, 2, state)
    write_tree(work, state)
    put_in(store)
    assert BETTER == read_tree(work)
    undo(store, by=BY, at=AT)
    assert state == read_tree(work)


@pytest.mark.usefixtures("other_file_system")
def test_temporary_files_on_another_file_system_are_gone_after_the_recovery(store, work):
    total = changing_calls(lambda: put_in(store))
    undo(store, by=BY, at=AT)
    leftovers = 0
    for at in range(total // 2, total):
        with dying(at, "killed before"), suppress(Killed):
            put_in(LoopStore.open(store.paths.directory))
        leftovers += any(".jumar-tmp" in path for path in read_tree(work))
        later = LoopStore.open(store.paths.directory)
        if unfinished(later) is not None:
            finish(later, by=BY, at=AT)
            assert BETTER == read_tree(work)
            undo(later, by=BY, at=AT)
        elif read_tree(work) == BETTER:
            undo(later, by=BY, at=AT)
        assert START == read_tree(work)
    print(f"died {total - total // 2} times, {leftovers} times with a temporary file in the working directory")
    assert leftovers > 3


def test_a_work_tree_really_on_another_file_system(tmp_path):
    places = (Path(name) for name in ("/dev/shm", "/var/tmp") if os.access(name, os.W_OK))
    others = [each for each in places if each.stat().st_dev != tmp_path.stat().st_dev]
    if not others:
        pytest.skip("needs a second file system: /dev/shm or /var/tmp")
    with tempfile.TemporaryDirectory(dir=others[0]) as place:
        work = Path(place) / "work"
        write_tree(work, START)
        store = LoopStore.create(tmp_path / "root" / "loops" / "x", "x", {}, workdir=work, created_at=AT)
        record(store, 0, START)
        record(store, 1, BETTER)
        put_in(store)
        assert BETTER == read_tree(work)
        undo(store, by=BY, at=AT)
        assert START == read_tree(work)
