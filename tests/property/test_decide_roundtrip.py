"""Apply and undo over random trees: equal afterwards, exactly as before after the undo, wherever it is interrupted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from decide_kit import AT, BY, RULES, File, Link, directories, new_loop, put, read_tree, record, write_tree
from dying import Killed, Way, changing_calls, dying, not_waiting
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jumar.errors import ConflictError, JumarError
from jumar.loop.decisions.apply import apply, finish, plan_undo, undo
from jumar.loop.decisions.plan import plan_apply
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.in_force import trail, unfinished
from jumar.loop.store.loop_store import LoopStore

RULES_WITH_EXCLUDES = ArtifactRules(exclude=("*.log",))

names = st.sampled_from(["a", "b", "c", "-rf", "x\ny", "z\x1b[2J", os.fsdecode(b"\xff"), "é", " ", "n" * 255, "run.sh"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
plain = st.builds(File, st.binary(max_size=40), st.sampled_from([0o644, 0o755, 0o600, 0o444, 0o4711, 0o000]))
links = st.sampled_from(["a", "b/c", "./nowhere", "a//b", ".", "é"]).map(Link)
items = st.one_of(plain, plain, links)


@st.composite
def trees(draw: st.DrawFn, contents: Any = items) -> dict[str, File | Link]:
    """A few paths, none of which is the parent of another."""
    found: dict[str, File | Link] = {}
    for path, item in draw(st.dictionaries(paths, contents, max_size=7)).items():
        if not any(path.startswith(other + "/") or other.startswith(path + "/") for other in found):
            found[path] = item
    return found


@contextmanager
def loop_of(
    before: Mapping[str, File | Link], after: Mapping[str, File | Link], empty: Any = ()
) -> Iterator[tuple[LoopStore, Path]]:
    """A working directory that holds ``before``, the start of a loop whose iteration 1 is ``after``; no sync is waited for."""
    with tempfile.TemporaryDirectory() as place, not_waiting():
        work = Path(place) / "work"
        store = new_loop(work)
        record(store, 0, before)
        record(store, 1, after)
        write_tree(work, before)
        for directory, mode in empty:
            try:
                os.makedirs(work / directory)
            except OSError:  # a file or a link is in the way
                continue
            os.chmod(work / directory, mode)
        yield store, work


def state(work: Path) -> tuple[object, object]:
    return read_tree(work), directories(work)


def put_in(store: LoopStore, work: Path, rules: ArtifactRules = RULES) -> None:
    apply(store, plan_apply(store, 1, work, rules), by=BY, at=AT)


empties = st.lists(st.tuples(paths, st.sampled_from([0o755, 0o700, 0o2775])), max_size=3)


@given(
    before=trees(),
    after=trees(),
    empty=empties,
    logs=st.dictionaries(st.sampled_from(["1.log", "a.log", "é.log"]), plain, max_size=2),
)
def test_apply_makes_equal_and_undo_restores_exactly(before, after, empty, logs):
    with loop_of({**before, **logs}, after, empty) as (store, work):
        first = state(work)
        plan = plan_apply(store, 1, work, RULES_WITH_EXCLUDES)
        assert first == state(work)
        assert (before == after) <= plan.empty
        apply(store, plan, by=BY, at=AT)
        assert {**after, **logs} == read_tree(work)
        assert plan_apply(store, 1, work, RULES_WITH_EXCLUDES).empty
        applied = state(work)
        assert () == plan_undo(store).conflicts
        assert applied == state(work)
        undo(store, by=BY, at=AT)
        assert first == state(work)
        put_in(store, work, RULES_WITH_EXCLUDES)
        assert applied == state(work)


@given(
    before=trees(),
    after=trees(),
    empty=empties,
    where=st.floats(0, 1),
    way=st.sampled_from(["killed before", "killed after", "error", "answer lost"]),
    undoing=st.booleans(),
    then_undo=st.booleans(),
)
def test_interrupted_anywhere_there_is_a_way_to_either_state(before, after, empty, where: float, way: Way, undoing, then_undo):
    with loop_of(before, after, empty) as (store, work):
        first = state(work)
        put_in(store, work)
        applied = state(work)
        undo(store, by=BY, at=AT)
        total = changing_calls(lambda: put_in(store, work))
        if undoing:
            total = changing_calls(lambda: undo(store, by=BY, at=AT))
            put_in(store, work)
        else:
            undo(store, by=BY, at=AT)
        with dying(1 + int(where * (total - 1)), way), suppress(Killed, JumarError):
            undo(store, by=BY, at=AT) if undoing else put_in(store, work)
        later = LoopStore.open(store.paths.directory)
        left = unfinished(later)
        event("whole" if left is None else f"unfinished {left.kind}")
        if left is None:
            assert state(work) in (first, applied)
        elif then_undo or left.kind == "undo":
            undo(later, by=BY, at=AT) if then_undo else finish(later, by=BY, at=AT)
            assert first == state(work)
        else:
            finish(later, by=BY, at=AT)
            assert applied == state(work)
            undo(later, by=BY, at=AT)
            assert first == state(work)


@given(before=trees(), after=trees(), data=st.data())
def test_a_target_that_changed_is_always_a_conflict(before, after, data):
    with loop_of(before, after) as (store, work):
        plan = plan_apply(store, 1, work, RULES)
        if plan.empty:
            return
        change = data.draw(st.sampled_from(plan.moves.changes))
        path = work / change.path
        if change.before is None:
            if not path.parent.is_dir() or os.path.realpath(path.parent) != str(path.parent):
                return
            path.write_bytes(b"appeared") if not path.is_dir() else put(work, f"{change.path}/new", File())
        elif change.before.kind == "symlink":
            path.unlink()
        else:
            path.chmod(change.before.mode ^ 0o040)
        now = state(work)
        with pytest.raises(ConflictError):
            apply(store, plan, by=BY, at=AT)
        assert now == state(work)
        assert unfinished(store) is None


small = st.dictionaries(
    st.sampled_from("abcd"), st.one_of(st.builds(File, st.binary(max_size=2)), st.just(Link("a"))), max_size=4
)


class ApplyAndUndo(RuleBasedStateMachine):
    """Applies, undos and a person's edits in any order, against a dictionary and a stack."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.patches = ExitStack()
        self.patches.enter_context(not_waiting())
        self.work = Path(self.place.name) / "work"
        self.store = new_loop(self.work)
        self.snapshots: list[dict[str, File | Link]] = []
        self.tree: dict[str, File | Link] = {}
        self.stack: list[dict[str, tuple[File | Link | None, File | Link | None]]] = []

    def teardown(self) -> None:
        self.patches.close()
        self.place.cleanup()

    @rule(tree=small)
    def record_an_iteration(self, tree: dict[str, File | Link]) -> None:
        record(self.store, len(self.snapshots), tree)
        self.snapshots.append(tree)

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def apply_one(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.snapshots) - 1))
        known = {path for snapshot in self.snapshots for path in snapshot}
        strangers = {path: item for path, item in self.tree.items() if path not in known}
        wanted = {**strangers, **self.snapshots[number]}
        plan = plan_apply(self.store, number, self.work, RULES)
        assert tuple(sorted(strangers)) == plan.left_alone
        apply(self.store, plan, by=BY, at=AT)
        changed = {path for path in {*self.tree, *wanted} if self.tree.get(path) != wanted.get(path)}
        assert changed == {change.path for change in plan.moves.changes}
        self.stack.append({path: (self.tree.get(path), wanted.get(path)) for path in changed})
        self.tree = dict(wanted)

    @rule(path=st.sampled_from("abcde"), item=st.one_of(st.none(), st.builds(File, st.binary(max_size=2))))
    def edit(self, path: str, item: File | None) -> None:
        if item is not None:
            put(self.work, path, item)
            self.tree[path] = item
        elif self.tree.pop(path, None) is not None:
            (self.work / path).unlink()

    @precondition(lambda self: self.stack)
    @rule(force=st.booleans())
    def take_back(self, force: bool) -> None:
        changes = self.stack[-1]
        changed = {path for path, (before, after) in changes.items() if self.tree.get(path) not in (before, after)}
        if changed and not force:
            with pytest.raises(ConflictError) as caught:
                undo(self.store, by=BY, at=AT)
            assert all(path in str(caught.value) for path in changed)
            return
        decision = undo(self.store, by=BY, at=AT, force=force)
        kept = {path: self.tree[path] for path in changed if path in self.tree}
        aside = decision.data["set_aside"]
        assert bool(kept) == (aside is not None)
        if aside is not None:
            found = read_tree(self.store.paths.directory / aside / "artifacts")
            assert {path: item.content for path, item in kept.items() if isinstance(item, File)} == {
                path: item.content for path, item in found.items() if isinstance(item, File)
            }
        for path, (before, _) in self.stack.pop().items():
            self.tree.pop(path, None)
            if before is not None:
                self.tree[path] = before

    @rule()
    def go_on_in_another_process(self) -> None:
        self.store = LoopStore.open(self.store.paths.directory)

    @invariant()
    def tree_and_trail_are_as_expected(self) -> None:
        assert self.tree == read_tree(self.work)
        states = [entry.state for entry in trail(self.store) if entry.decision.kind == "apply"]
        assert len(self.stack) == states.count("done")
        assert "unfinished" not in states


TestApplyAndUndo = ApplyAndUndo.TestCase
TestApplyAndUndo.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
