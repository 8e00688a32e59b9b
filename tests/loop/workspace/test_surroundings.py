"""What lies beside the snapshots: told by names and stat; taken away for a while, and back whatever call a process dies at."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from dying import Killed, Way, changing_calls, dying, not_waiting
from store_kit import put, stored_tree

from jumar.core.codec import encode
from jumar.errors import StoreWriteError
from jumar.loop.settings import LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.trust import place_of
from jumar.loop.workspace.set_aside import Aside, complete
from jumar.loop.workspace.surroundings import Differences, Surroundings
from jumar.loop.workspace.workspace import Workspace

TREE: dict[str, bytes | str] = {
    "app.py": b"app",
    ".gitignore": b"out/\npackages/\n*.log\n",
    "packages/a/one.js": b"1",
    "packages/a/two.js": b"2",
    "packages/b.js": b"3",
    "out/x": b"x",
    "run.log": b"",
}


@pytest.fixture
def workspace(fresh_place: Path) -> Workspace:
    put(fresh_place, TREE)
    return workspace_of(fresh_place)


def workspace_of(place: Path) -> Workspace:
    prepare_root(place / ".jumar")
    store = LoopStore.create(
        place / ".jumar/loops/t", "t", {"isolation": "none"}, workdir=place, created_at="2026-01-01T00:00:00Z"
    )
    return Workspace(store, LoopSettings(loop_id="t", workdir=place, artifacts=ArtifactRules()))


def store_of(workspace: Workspace) -> LoopStore:
    return LoopStore.open(workspace.directory / ".jumar/loops/t")


def differences(workspace: Workspace, seen: Surroundings) -> Differences:
    found = seen.differences(workspace, workspace.paths())
    assert found is not None
    return found


def begun(workspace: Workspace, own: tuple[str, ...] = ()) -> Surroundings:
    seen = Surroundings(store_of(workspace), own)
    seen.begin(workspace)
    return seen


def told(found: Differences) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    return found.new, found.changed, found.gone


def test_nothing_differs_where_nothing_was_done(workspace: Workspace):
    seen = begun(workspace)
    (workspace.directory / "app.py").write_text("another")  # a snapshot's
    assert differences(workspace, seen).nothing
    assert differences(workspace, begun(workspace)).nothing, "read from the disk"


def test_what_is_new_changed_and_gone(workspace: Workspace):
    seen, place = begun(workspace), workspace.directory
    put(place, {"packages/c/d/new.js": b"", "out/x": b"longer", "top.log": b""})
    (place / "packages/b.js").unlink()

    found = differences(workspace, seen)

    assert told(found) == (("packages/c/d/new.js", "top.log"), ("out/x",), ("packages/b.js",))
    assert found.roots((*found.new, *found.changed)) == ("out/", "packages/c/", "top.log")


def test_an_edit_of_one_size_that_was_given_its_old_time_is_found(workspace: Workspace):
    seen, path = begun(workspace), workspace.directory / "packages/b.js"
    before = path.stat()
    path.write_bytes(b"4")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert differences(workspace, seen).changed == ("packages/b.js",)


def test_another_project_that_shares_a_file_changes_nothing(workspace: Workspace, tmp_path: Path):
    path = workspace.directory / "packages/b.js"
    os.link(path, tmp_path / "store")
    seen = begun(workspace)
    os.link(path, tmp_path / "other-project")

    assert differences(workspace, seen).nothing


def test_a_mode_a_link_and_a_directory_in_the_place_of_a_file_are_changes(workspace: Workspace):
    seen, place = begun(workspace), workspace.directory
    (place / "packages/b.js").chmod(0o600)
    (place / "packages/a/one.js").unlink()
    (place / "packages/a/one.js").symlink_to("two.js")
    (place / "out/x").unlink()
    (place / "out/x").mkdir()
    (place / "out/x/y").touch()

    found = differences(workspace, seen)

    assert told(found) == (("out/x/y",), ("packages/a/one.js", "packages/b.js"), ("out/x",))


def test_bytecode_of_installed_packages_counts_and_other_bytecode_does_not(workspace: Workspace):
    seen = begun(workspace)
    paths = (".venv/lib/site-packages/__pycache__/p.pyc", "__pycache__/app.pyc", "out/__pycache__/x.pyc", "out/alone.pyc")
    told_by_pytest = (".pytest_cache/v/cache/lastfailed", "a/.pytest_cache/README.md")
    put(workspace.directory, dict.fromkeys((*paths, *told_by_pytest), b""))

    assert differences(workspace, seen).new == (".venv/lib/site-packages/__pycache__/p.pyc", "out/alone.pyc")


def test_what_no_snapshot_holds_counts_whatever_it_is_called(workspace: Workspace):
    seen = begun(workspace)
    paths = (".jumar-tmp-x/a.py", ".pytest_cache/a.py", "src/.jumar-tmp-x/a.py", "src/.pytest_cache/v/cache/a.py")
    put(workspace.directory, dict.fromkeys(paths, b""))
    assert differences(workspace, seen).new == paths


def test_jumars_own_files_are_none_of_it(workspace: Workspace):
    seen = begun(workspace, own=("/run.log",))
    (workspace.directory / "run.log").write_text("more")
    (workspace.directory / ".jumar/loops/t/more").touch()
    assert differences(workspace, seen).nothing


def test_a_tree_that_was_moved_is_taken_as_it_lies(workspace: Workspace, tmp_path: Path):
    begun(workspace)
    subprocess.run(["cp", "-r", str(workspace.directory), str(tmp_path / "copy")], check=True)
    store = LoopStore.open(tmp_path / "copy/.jumar/loops/t")
    moved = Workspace(store, LoopSettings(loop_id="t", workdir=tmp_path / "copy"))
    seen = Surroundings(store)
    seen.begin(moved)

    assert differences(moved, seen).nothing


@pytest.mark.parametrize("killed", [True, False])
def test_of_a_tree_that_was_replaced_while_an_agent_ran_only_the_names_are_known(workspace: Workspace, *, killed: bool):
    seen, place = begun(workspace), workspace.directory
    store_of(workspace).begin_attempt(1, 0, "n", "2026-01-01T00:00:00Z")
    place.rename(place.with_name("before"))
    shutil.copytree(place.with_name("before"), place, symlinks=True)
    put(place, {"out/conftest.py": b"new"})
    seen = begun(workspace) if killed else seen
    assert told(differences(workspace, seen))[:2] == (
        ("out/conftest.py",),
        ("out/x", "packages/a/one.js", "packages/a/two.js", "packages/b.js", "run.log"),
    )
    assert seen.had(workspace, "out/x")
    assert not seen.had(workspace, "out/conftest.py")
    assert told(differences(workspace, begun(workspace))) == told(differences(workspace, seen)), "as it is kept on disk"


def test_repositories_stay_and_so_does_what_is_around_them(workspace: Workspace):
    seen = begun(workspace)
    put(workspace.directory, {"out/clone/.git/HEAD": b"", "out/clone/deep/file": b"", "out/clone/file": b""})

    found = differences(workspace, seen)

    assert found.roots(found.new) == ("out/clone/deep/", "out/clone/file")


# --------------------------------------------------------------------------------------------------------------- aside


MOVES = ("out/", "packages/a/one.js", "packages/a/two.js", "run.log", "not there")
MADE: dict[str, bytes | str] = {"out/x": b"made", "packages/a": b"a file now", "run.log": "packages"}


def make_in_their_place(place: Path) -> None:
    """What a ``setup`` may do while things are away."""
    (place / "packages/a").rmdir()
    put(place, MADE)


def everything(place: Path) -> dict[str, bytes | str]:
    return {path: content for path, content in stored_tree(place).items() if not path.startswith(".jumar")}


def test_what_is_away_is_back_in_the_place_of_what_was_made(workspace: Workspace):
    aside = Aside(store_of(workspace), workspace)
    with aside.away(MOVES, "n"):
        assert set(everything(workspace.directory)) == {"app.py", ".gitignore", "packages/b.js"}
        make_in_their_place(workspace.directory)
    assert everything(workspace.directory) == TREE
    assert list((workspace.directory / ".jumar/loops/t/recheck").iterdir()) == []
    assert complete(workspace.root) == ()


@pytest.mark.parametrize("link", ["aside", "aside/packages/a"])
def test_what_lies_behind_a_link_is_not_brought_back(workspace: Workspace, tmp_path: Path, link: str):
    mine = tmp_path / "mine"
    put(mine, {"out/x": b"mine", "packages/a/one.js": b"mine", "one.js": b"mine"})
    before = stored_tree(mine)
    aside = store_of(workspace).paths.recheck / link
    with Aside(store_of(workspace), workspace).away(MOVES, "n"):
        aside.rename(tmp_path / "taken")
        aside.symlink_to(mine)
    assert stored_tree(mine) == before
    assert b"mine" not in everything(workspace.directory).values()


def test_what_cannot_be_taken_away_leaves_everything_where_it_was(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    real = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self.name == "two.js" and "aside" in str(target):
            raise OSError(18, "Invalid cross-device link")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(StoreWriteError), Aside(store_of(workspace), workspace).away(MOVES, "n"):
        raise AssertionError
    assert everything(workspace.directory) == TREE


def away_and_back(place: Path, at: int, way: Way) -> Workspace:
    """Take things away, make others in their place, bring them back; die at the given call that changes the disk."""
    put(place, TREE)
    workspace = workspace_of(place)
    store = store_of(workspace)
    with contextlib.suppress(Killed), dying(at, way), Aside(store, workspace).away(MOVES, "n"):
        make_in_their_place(place)
    return workspace


def check_back(workspace: Workspace, *where: object) -> None:
    assert everything(workspace.directory) == TREE, where
    store, recheck = store_of(workspace), store_of(workspace).paths.recheck
    store.discard_leftovers()
    assert not recheck.exists() or list(recheck.iterdir()) == [], where


@pytest.mark.parametrize("way", ["killed before", "killed after"])
def test_killed_at_any_call_everything_is_back_after_the_next_command(fresh_place: Path, way: Way):
    with not_waiting():
        calls = changing_calls(lambda: away_and_back(fresh_place / "whole", 0, way))
        assert calls > 25
        for at in range(1, calls + 1):
            workspace = away_and_back(fresh_place / f"{at}", at, way)
            complete(workspace.root)
            check_back(workspace, at)


def test_killed_once_more_while_it_is_completed_too(fresh_place: Path):
    with not_waiting():
        for first in (12, 16, 20, 24):
            for second in range(1, 12):
                workspace = away_and_back(fresh_place / f"{first}-{second}", first, "killed before")
                with contextlib.suppress(Killed), dying(second, "killed after"):
                    complete(workspace.root)
                complete(workspace.root)
                check_back(workspace, first, second)


def test_what_belongs_nowhere_any_more_is_kept_and_a_loop_at_work_is_left_alone(workspace: Workspace):
    store = store_of(workspace)
    (store.paths.recheck / "aside/where").mkdir(parents=True)
    (store.paths.recheck / "aside/where/from").write_text("somebody's")
    with Aside(store, workspace).away(["run.log"], "n"):
        with store.lock():
            assert complete(workspace.root) == ()
        assert not (workspace.directory / "run.log").exists()
    assert (store.paths.set_aside / "recheck-n/where/from").read_text() == "somebody's"


def test_a_plan_that_cannot_be_read_is_told(workspace: Workspace):
    store = store_of(workspace)
    plan = {"format": 1, "slot": None, "nonce": "n", "moves": ["../../x"]}
    path = store.paths.recheck / "plan.json"
    put(store.paths.recheck, {"plan.json": encode(plan, place=place_of(store.nonce, path)), "aside/x": b""})

    (message,) = complete(workspace.root)

    assert message.startswith("what a recheck of loop 't' had set aside is still in ")


def test_a_plan_that_a_program_wrote_brings_nothing_back(workspace: Workspace):
    store, before = store_of(workspace), everything(workspace.directory)
    plan = b'{"format": 1, "slot": null, "nonce": "aaaaaaaaaaaaaaaa", "moves": ["run.log"]}'
    put(store.paths.recheck, {"plan.json": plan, "aside/run.log": b"planted"})

    (message,) = complete(workspace.root)

    assert message.startswith("recheck/plan.json was not written by jumar, or was changed since: it lies in quarantine/")
    assert (everything(workspace.directory), complete(workspace.root)) == (before, ())
