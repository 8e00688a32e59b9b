"""Where a step runs: copies and git worktrees of a loop and of its candidates, made whole, left by kills, removed."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from jumar.errors import ConfigError, StoreDamagedError
from jumar.loop.settings import Isolation, LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.workspace.trees import discard_slots
from jumar.loop.workspace.workspace import Workspace
from jumar.loop.workspace.worktrees import check_repository, place_in_repository

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(where: Path, *arguments: str) -> str:
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@x", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@x"}
    done = subprocess.run(
        ["git", *arguments], cwd=where, check=True, capture_output=True, text=True, env={**os.environ, **identity}
    )
    return done.stdout.strip()


@pytest.fixture
def project(fresh_place: Path) -> Path:
    """A directory with files, a link, an executable, and something that is ignored."""
    (fresh_place / "src").mkdir()
    (fresh_place / "src" / "a.py").write_text("one\n")
    (fresh_place / "run.sh").write_text("#!/bin/sh\n")
    (fresh_place / "run.sh").chmod(0o755)
    os.symlink("src/a.py", fresh_place / "link")
    (fresh_place / ".gitignore").write_text("ignored/\n")
    (fresh_place / "ignored").mkdir()
    (fresh_place / "ignored" / "big").write_text("cache")
    return fresh_place


@pytest.fixture
def repository(project: Path) -> Path:
    """The same with a history, and with what a person has not committed: changed, staged, deleted, new."""
    git(project, "init", "-q", "-b", "main")
    (project / "gone.txt").write_text("x")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "first")
    (project / "src" / "a.py").write_text("two\n")
    (project / "staged.txt").write_text("staged")
    git(project, "add", "staged.txt")
    (project / "gone.txt").unlink()
    (project / "new.txt").write_text("new")
    return project


def settings_of(workdir: Path, isolation: Isolation, loop_id: str = "t", rules: ArtifactRules | None = None) -> LoopSettings:
    return LoopSettings(loop_id=loop_id, workdir=workdir, isolation=isolation, artifacts=rules or ArtifactRules())


def store_of(workdir: Path, root: Path | None = None, loop_id: str = "t") -> LoopStore:
    root = root or workdir / ".jumar"
    prepare_root(root)
    return LoopStore.create(root / "loops" / loop_id, loop_id, {}, workdir=workdir, created_at="2026-01-01T00:00:00Z")


def state(directory: Path, paths: tuple[str, ...]) -> dict[str, tuple[str, int]]:
    """Return content (or target) and mode of every path."""
    found: dict[str, tuple[str, int]] = {}
    for path in paths:
        place = directory / path
        content = f"-> {os.readlink(place)}" if place.is_symlink() else place.read_text()
        found[path] = (content, place.lstat().st_mode)
    return found


def kept(workdir: Path) -> tuple[str, ...]:
    return ArtifactRules().list(workdir, never=(workdir / ".jumar",))


@needs_git
def test_a_worktree_equals_the_tree_as_it_lies(repository: Path) -> None:
    workspace = Workspace(store_of(repository), settings_of(repository, "worktree"))
    before = git(repository, "status", "--porcelain")
    workspace.prepare()

    assert state(repository, kept(repository)) == state(workspace.directory, workspace.paths())
    assert not (workspace.directory / "ignored").exists()
    assert not (workspace.directory / ".jumar").exists()
    assert "HEAD" == git(workspace.directory, "rev-parse", "--abbrev-ref", "HEAD")
    assert git(repository, "rev-parse", "main") == workspace.head()
    assert before == git(repository, "status", "--porcelain")


@needs_git
@pytest.mark.parametrize("setting", [("core.bare", "true"), ("core.worktree", "/elsewhere")])
def test_settings_that_take_the_working_directory_from_git_are_named(repository: Path, setting: tuple[str, str]) -> None:
    git(repository, "config", *setting)
    assert place_in_repository(repository) == "."
    with pytest.raises(ConfigError, match=rf"by core.bare or core.worktree .*{setting[0]}"):
        check_repository(repository)


@needs_git
@pytest.mark.parametrize("most", [3, 4])
def test_a_large_tree_is_not_made_in_silence(project: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    git(project, "init", "-q")
    git(project, "-c", "user.name=a", "-c", "user.email=a@x", "commit", "-q", "--allow-empty", "-m", "first")
    monkeypatch.setattr("jumar.loop.workspace.workspace._MANY", most)
    told: list[str] = []
    isolations: tuple[Isolation, ...] = ("copy", "worktree", "none")
    for isolation in isolations:
        Workspace(store_of(project, loop_id=isolation), settings_of(project, isolation, isolation), tell=told.append).prepare()
    kinds = ["copy", "worktree"] if most == 3 else []
    assert [f"the {kind} of 4 files that the loop works in is being made" for kind in kinds] == told


@needs_git
def test_what_the_loop_keeps_comes_along_although_git_ignores_it(repository: Path) -> None:
    rules = ArtifactRules(include=("ignored/big",))
    workspace = Workspace(store_of(repository), settings_of(repository, "worktree", rules=rules))
    workspace.prepare()

    assert ("ignored/big",) == workspace.paths()


@needs_git
def test_commits_stay_in_the_worktree_and_the_branch_where_it_was(repository: Path) -> None:
    workspace = Workspace(store_of(repository), settings_of(repository, "worktree"))
    workspace.prepare()
    main, head = git(repository, "rev-parse", "main"), workspace.head()
    git(workspace.directory, "add", "-A")
    git(workspace.directory, "commit", "-q", "-m", "agent")
    made = workspace.commits_since(head)

    assert 1 == len(made)
    assert main == git(repository, "rev-parse", "main") == git(repository, "rev-parse", "HEAD")
    kept_as = workspace.discard()
    assert kept_as is not None
    assert kept_as == f"refs/jumar/t/main-{made[0][:12]}"
    assert made[0] == git(repository, "rev-parse", kept_as)
    assert not workspace.tree.exists()
    assert 1 == len(git(repository, "worktree", "list").splitlines())


@needs_git
def test_a_work_directory_below_the_top_of_the_repository(repository: Path) -> None:
    below = repository / "src"
    workspace = Workspace(store_of(below), settings_of(below, "worktree"))
    workspace.prepare()

    assert ("a.py",) == workspace.paths()
    assert "two\n" == (workspace.directory / "a.py").read_text()
    assert workspace.directory == workspace.tree / "src"
    assert (workspace.tree / "run.sh").exists()


@needs_git
@pytest.mark.parametrize("cut", ["before the files", "entry only", "tree only", "not git's any more"])
def test_a_worktree_that_was_cut_off_is_made_anew(repository: Path, cut: str) -> None:
    store, settings = store_of(repository), settings_of(repository, "worktree")
    workspace = Workspace(store, settings)
    workspace.prepare()
    own = Path(git(workspace.tree, "rev-parse", "--absolute-git-dir"))
    if cut == "before the files":
        (own / "jumar").unlink()
        (workspace.tree / "run.sh").unlink()
    elif cut == "entry only":
        shutil.rmtree(workspace.tree)
    elif cut == "tree only":
        shutil.rmtree(own)
    else:
        (workspace.tree / ".git").unlink()
    Workspace(store, settings).prepare()

    assert state(repository, kept(repository)) == state(workspace.directory, workspace.paths())
    assert 2 == len(git(repository, "worktree", "list").splitlines())


@needs_git
@pytest.mark.parametrize("isolation", ["copy", "worktree"])
def test_a_lock_of_a_git_that_was_killed_in_our_tree_is_in_nobodys_way(repository: Path, isolation: Isolation) -> None:
    workspace = Workspace(store_of(repository), settings_of(repository, isolation))
    workspace.prepare()
    own = Path(git(workspace.tree, "rev-parse", "--absolute-git-dir"))
    (own / "index.lock").touch()
    (repository / ".git" / "index.lock").touch()
    workspace.prepare()
    git(workspace.directory, "add", "-A")

    assert (repository / ".git" / "index.lock").exists()


@needs_git
def test_a_tree_stays_what_the_steps_made_of_it(repository: Path) -> None:
    store, settings = store_of(repository), settings_of(repository, "worktree")
    Workspace(store, settings).prepare()
    made = Workspace(store, settings).directory / "made.txt"
    made.write_text("by an agent")
    Workspace(store, settings).prepare()

    assert "by an agent" == made.read_text()


@needs_git
def test_what_a_worktree_cannot_stand_for_is_refused_with_the_way_out(repository: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    empty = tmp_path / "empty"
    git(tmp_path, "init", "-q", str(empty))
    outer = tmp_path / "outer"
    git(tmp_path, "init", "-q", str(outer))
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository), "sub")
    git(outer, "commit", "-q", "-m", "with a submodule")
    git(repository, "sparse-checkout", "set", "src")
    said: dict[str, str] = {}
    for place in (plain, empty, outer, repository):
        with pytest.raises(ConfigError) as refused:
            Workspace(store_of(place), settings_of(place, "worktree")).prepare()
        said[place.name] = str(refused.value)

    assert 'is in none: use isolation = "copy"' in said["plain"]
    assert "has none: commit something first" in said["empty"]
    assert 'the submodule sub along: use isolation = "copy"' in said["outer"]
    assert "git sparse-checkout disable" in said["here"]


@needs_git
@pytest.mark.parametrize("isolation", ["none", "copy", "worktree"])
def test_candidates_have_trees_of_their_own_made_by_threads_at_once(repository: Path, isolation: Isolation) -> None:
    store, settings = store_of(repository), settings_of(repository, isolation)
    slots = [Workspace(store, settings, slot) for slot in range(1, 7)]
    rules = settings.artifacts
    with store.lock():
        store.stage(0, source=repository, paths=kept(repository), nonce="n", attempt=None, stage={}, logs=None, quota=rules)
    pending = store.pending()
    assert pending is not None

    def work(workspace: Workspace) -> tuple[str, ...]:
        workspace.prepare()
        (workspace.directory / "new.txt").write_text(f"by {workspace.slot}")
        (workspace.directory / f"only{workspace.slot}.txt").write_text("x")
        (workspace.directory / "run.sh").unlink()
        head = workspace.head()
        git(workspace.directory, "add", "-A")
        git(workspace.directory, "commit", "-q", "-m", "agent")
        made = workspace.commits_since(head)
        workspace.carry_out(workspace.difference(pending))
        return made

    before = state(repository, kept(repository))
    with ThreadPoolExecutor(6) as pool:
        commits = list(pool.map(work, slots))

    assert [1] * 6 == [len(made) for made in commits]
    assert all(before == state(slot.directory, slot.paths()) for slot in slots)
    assert before == state(repository, kept(repository))
    assert 6 == len({slot.directory for slot in slots})
    refs = discard_slots(store, settings)
    assert (6 if isolation == "worktree" else 0) == len(refs)
    assert not any(slot.tree.exists() for slot in slots)
    assert 1 == len(git(repository, "worktree", "list").splitlines())


def test_slots_that_a_killed_run_left_are_found_whatever_their_number(project: Path) -> None:
    store, settings = store_of(project), settings_of(project, "copy")
    loops = [Workspace(store, settings, slot) for slot in (None, 1, 12)]
    neighbour = Workspace(store_of(project, loop_id="t.2"), replace(settings, loop_id="t.2"), 1)
    for workspace in (*loops, neighbour):
        workspace.prepare()
    (project / ".jumar" / "work" / ".tmp-t@c03").mkdir()
    discard_slots(store, settings)

    assert ["t", "t.2@c01"] == sorted(os.listdir(project / ".jumar" / "work"))


@needs_git
def test_a_copy_of_a_worktree_of_the_persons_does_not_move_its_branch(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(repository, "worktree", "add", "-q", "-b", "theirs", str(other))
    workspace = Workspace(store_of(other), settings_of(other, "copy"))
    workspace.prepare()

    assert not (workspace.directory / ".git").exists()
    assert workspace.head() is None


@needs_git
def test_git_finds_no_repository_above_a_copy(repository: Path) -> None:
    below = repository / "src"
    workspace = Workspace(store_of(below), settings_of(below, "copy"))
    workspace.prepare()
    environment = {**os.environ, **workspace.variables()}
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=workspace.directory, env=environment, capture_output=True, check=False
    )

    assert 128 == asked.returncode
    assert workspace.head() is None


def test_a_snapshot_that_is_gone_is_damage_with_a_way_out(project: Path) -> None:
    workspace = Workspace(store_of(project), settings_of(project, "copy"))
    workspace.prepare()

    with pytest.raises(StoreDamagedError, match=r"iteration 1 of loop 't' is gone.*`jumar repair`.*`jumar run --new`"):
        workspace.difference(1)


def test_the_folder_of_the_trees_may_appear_while_it_is_looked_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(store_of(project), settings_of(project, "copy"), 1)
    parent, is_dir = workspace.tree.parent, Path.is_dir

    def made_by_a_neighbour(path: Path) -> bool:
        found = is_dir(path)
        if path == parent and not found:
            parent.mkdir()
        return found

    monkeypatch.setattr(Path, "is_dir", made_by_a_neighbour)
    workspace.prepare()

    assert state(project, kept(project)) == state(workspace.directory, workspace.paths())


@pytest.mark.parametrize("isolation", ["copy", "worktree"])
def test_a_link_is_no_tree_although_it_has_the_inode_of_the_one_that_was_there(
    repository: Path, tmp_path: Path, isolation: Isolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(store_of(repository), settings_of(repository, isolation))
    workspace.prepare()
    shutil.rmtree(workspace.tree)
    workspace.tree.symlink_to(tmp_path)
    monkeypatch.setattr("jumar.loop.workspace.workspace._identity", lambda path: workspace._identity)

    assert workspace.gone() == f"the {isolation} that it worked in was replaced by a link or a file"
