"""Bringing a working directory back: copies, real modes, never through a link."""

from __future__ import annotations

import errno
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from store_kit import put, stored_tree

from jumar.core import file_cache
from jumar.errors import ArtifactError, ConflictError, StoreDamagedError, StoreWriteError
from jumar.loop.snapshots.content import PlainFiles
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.snapshots.restore import RestorePlan, plan_restore, refuse_leading_out, restore
from jumar.loop.snapshots.snapshot import StatCache, take_snapshot

RULES = ArtifactRules()
TREE: dict[str, bytes | str] = {"a.txt": b"one", "sub/b.txt": b"two", "sub/deep/c.txt": b"three", "link": "sub"}


@pytest.fixture
def target(fresh_place: Path) -> Path:
    return fresh_place / "work"


@pytest.fixture
def manifest(fresh_place: Path) -> Manifest:
    """A snapshot in ``s`` of :data:`TREE` with an executable file."""
    put(fresh_place / "origin", TREE)
    (fresh_place / "origin" / "a.txt").chmod(0o755)
    (fresh_place / "s").mkdir()
    return take_snapshot(fresh_place / "origin", ["."], fresh_place / "s")


def planned(manifest: Manifest, target: Path, **options: Any) -> RestorePlan:
    target.mkdir(exist_ok=True)
    return plan_restore(manifest, PlainFiles(Path("s").resolve()), target, RULES.list(target), **options)


def paths(plan: RestorePlan) -> tuple[list[str], list[str], list[str]]:
    return [item.path for item in plan.write], list(plan.delete), list(plan.unchanged)


def test_an_empty_tree_becomes_the_snapshot(manifest: Manifest, target: Path) -> None:
    plan = planned(manifest, target)
    assert paths(plan) == (["a.txt", "link", "sub/b.txt", "sub/deep/c.txt"], [], [])
    restore(plan)
    assert stored_tree(target) == TREE
    assert stat.S_IMODE((target / "a.txt").stat().st_mode) == 0o755
    assert stat.S_IMODE((target / "sub/b.txt").stat().st_mode) == 0o644
    assert (target / "a.txt").stat().st_ino != Path("s/a.txt").stat().st_ino
    again = planned(manifest, target)
    assert paths(again) == ([], [], ["a.txt", "link", "sub/b.txt", "sub/deep/c.txt"])
    restore(again)
    assert stored_tree(target) == TREE


def test_only_what_differs_is_touched(manifest: Manifest, target: Path) -> None:
    restore(planned(manifest, target))
    before = (target / "sub/b.txt").stat()
    (target / "a.txt").chmod(0o644)
    put(target, {"sub/deep/c.txt": b"THREE", "link": "elsewhere", "new/x/y.txt": b"", "new.txt": b"", ".env": b"secret"})
    plan = planned(manifest, target)
    assert paths(plan) == (["a.txt", "link", "sub/deep/c.txt"], ["new.txt", "new/x/y.txt"], ["sub/b.txt"])
    restore(plan)
    assert stored_tree(target) == {**TREE, ".env": b"secret"}
    assert not (target / "new").exists()
    assert (target / "sub/b.txt").stat().st_mtime_ns == before.st_mtime_ns
    assert stat.S_IMODE((target / "a.txt").stat().st_mode) == 0o755


def test_a_directory_that_holds_something_else_stays(manifest: Manifest, target: Path) -> None:
    put(target, {"new/x/y.txt": b"", "new/.env": b"", "other/empty.txt": b""})
    (target / "mine").mkdir()
    restore(planned(manifest, target))
    assert stored_tree(target) == {**TREE, "new/.env": b""}
    assert sorted(path.name for path in target.iterdir() if path.is_dir()) == ["link", "mine", "new", "sub"]


def test_a_parent_that_became_a_link_is_replaced_and_not_followed(manifest: Manifest, target: Path, fresh_place: Path) -> None:
    put(fresh_place / "outside", {"b.txt": b"untouched", "deep/c.txt": b"untouched"})
    put(target, {"sub": str(fresh_place / "outside"), "a.txt": b"one"})
    plan = planned(manifest, target)
    assert plan.delete == ("sub",)
    restore(plan)
    assert stored_tree(target) == TREE
    assert stored_tree(fresh_place / "outside") == {"b.txt": b"untouched", "deep/c.txt": b"untouched"}
    assert not (target / "sub").is_symlink()


def test_a_parent_that_became_a_file_is_replaced(manifest: Manifest, target: Path) -> None:
    put(target, {"sub/deep": b"a file now"})
    plan = planned(manifest, target)
    assert plan.delete == ("sub/deep",)
    restore(plan)
    assert stored_tree(target) == TREE


def test_a_link_that_appears_after_the_plan_is_not_followed(manifest: Manifest, target: Path, fresh_place: Path) -> None:
    put(fresh_place / "outside", {"old.txt": b"untouched", "b.txt": b"untouched"})
    put(target, {"sub/old.txt": b"x", "gone/old.txt": b"x"})
    plan = planned(manifest, target)
    for name in ("sub", "gone"):
        (target / name / "old.txt").unlink()
        (target / name).rmdir()
        (target / name).symlink_to(fresh_place / "outside")
    restore(plan)
    assert stored_tree(fresh_place / "outside") == {"old.txt": b"untouched", "b.txt": b"untouched"}
    assert stored_tree(target / "sub") == {"b.txt": b"two", "deep/c.txt": b"three"}
    assert (target / "gone").is_symlink()


def test_a_directory_in_the_place_of_a_file_gives_way_when_all_in_it_is_ours(manifest: Manifest, target: Path) -> None:
    put(target, {"a.txt/x/y.txt": b"", "a.txt/z.txt": b"", "link/x.txt": b""})
    (target / "a.txt" / "empty").mkdir()
    restore(planned(manifest, target))
    assert stored_tree(target) == TREE
    put(target, {"sub/b.txt": b""})
    (target / "a.txt").unlink()
    put(target, {"a.txt/.env": b"mine", "a.txt/z.txt": b""})
    with pytest.raises(ConflictError, match=r"'a.txt' is a directory now .* \(a.txt/.env\): move that elsewhere"):
        planned(manifest, target)
    assert stored_tree(target / "a.txt") == {".env": b"mine", "z.txt": b""}


def test_what_was_skipped_is_left_alone(fresh_place: Path, target: Path) -> None:
    put(fresh_place / "origin", {"a": b""})
    os.mkfifo(fresh_place / "origin" / "pipe")
    (fresh_place / "s").mkdir()
    manifest = take_snapshot(fresh_place / "origin", ["."], fresh_place / "s")
    put(target, {"pipe": b"a file here", "a": b""})
    assert paths(planned(manifest, target)) == ([], [], ["a", "pipe"])


def test_a_hash_that_is_known_is_not_computed_again(manifest: Manifest, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restore(planned(manifest, target))
    cache = StatCache()
    monkeypatch.setitem(file_cache._TELLS, target.stat().st_dev, True)  # wherever tests run
    for path, detail in manifest.entries.items():
        status = (target / path).lstat()
        cache.put(path, status, status.st_ctime_ns + 3_000_000_000, detail)
    monkeypatch.setattr("jumar.core.files.sha256_file", lambda _: pytest.fail("was hashed"))
    assert paths(planned(manifest, target, cache=cache))[0] == []


def test_what_cannot_be_read_counts_as_different(manifest: Manifest, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restore(planned(manifest, target))

    def refuse(_: object) -> str:
        raise PermissionError(errno.EACCES, "no")

    with monkeypatch.context() as patch:
        patch.setattr("jumar.core.files.sha256_file", refuse)
        assert paths(planned(manifest, target))[0] == ["a.txt", "sub/b.txt", "sub/deep/c.txt"]


def test_a_snapshot_that_was_altered_is_not_restored(manifest: Manifest, target: Path) -> None:
    put(target, {"sub/b.txt": b"mine"})
    plan = planned(manifest, target)
    Path("s/sub/b.txt").unlink()
    Path("s/sub/b.txt").write_bytes(b"tWo")
    with pytest.raises(StoreDamagedError, match=r"sub/b.txt has another content than was recorded; `jumar verify`"):
        restore(plan)
    assert (target / "sub/b.txt").read_bytes() == b"mine"
    Path("s/sub/b.txt").unlink()
    with pytest.raises(StoreDamagedError, match=r"the snapshot lacks .*sub/b.txt"):
        restore(plan)
    assert (target / "sub/b.txt").read_bytes() == b"mine"
    assert [path.name for path in target.iterdir() if path.name.startswith(".jumar-tmp")] == []


def test_an_interrupted_restore_is_swept_up_by_the_next(manifest: Manifest, target: Path) -> None:
    put(target, {".jumar-tmp-00ff/file": b"half", ".jumar-tmp-link": "/etc", "sub/.jumar-tmp-mine": b""})
    assert RULES.list(target) == ()
    plan = planned(manifest, target)
    restore(plan)
    assert stored_tree(target) == {**TREE, "sub/.jumar-tmp-mine": b""}


def test_a_disk_that_refuses_says_so(manifest: Manifest, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(manifest, target)

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreWriteError, match=r"could not restore .*the disk is full"):
        restore(plan)


@pytest.mark.parametrize(
    ("links", "existing", "leads_out"),
    [
        ({"l": "a"}, {}, []),
        ({"l": "sub/../a"}, {}, []),
        ({"l": "../a"}, {}, ["l"]),
        ({"l": "/etc/passwd"}, {}, ["l"]),
        ({"l": "{root}/a"}, {}, []),
        ({"l": "{root}"}, {}, []),
        ({"l": "{root}-other/a"}, {}, ["l"]),
        ({"sub/l": "../a"}, {}, []),
        ({"sub/l": "../../a"}, {}, ["sub/l"]),
        ({"l": "l"}, {}, []),
        ({"one": "two", "two": "one"}, {}, []),
        ({"p/q/d": "../../r", "e": "p/q/d/../../z"}, {}, ["e"]),
        ({"e": "d/../../z"}, {"d": "deep/er"}, []),
        ({"e": "d/../z"}, {"d": ".."}, ["e"]),
        ({"e": "./d/x/.."}, {"d": "/etc"}, ["e"]),
        ({"d": "a", "e": "d/x"}, {"d": "/etc"}, []),
    ],
)
def test_links_that_lead_out_are_found_whatever_way_they_take(
    links: dict[str, str], existing: dict[str, str], leads_out: list[str], fresh_place: Path, target: Path
) -> None:
    root = str(target.resolve())
    target.mkdir()
    put(target, {path: to.format(root=root) for path, to in existing.items()})
    put(fresh_place / "origin", {path: to.format(root=root) for path, to in links.items()})
    (fresh_place / "s").mkdir()
    manifest = take_snapshot(fresh_place / "origin", ["."], fresh_place / "s")
    plan = plan_restore(manifest, PlainFiles(fresh_place / "s"), target, [])
    if not leads_out:
        refuse_leading_out(plan, target)
        return
    with pytest.raises(ArtifactError, match=f"{len(leads_out)} of the snapshot's symbolic links lead out of") as caught:
        refuse_leading_out(plan, target)
    assert all(f"'{path}' → " in str(caught.value) for path in leads_out)


def test_a_link_that_goes_with_the_plan_is_not_asked(fresh_place: Path, target: Path) -> None:
    put(target, {"d": "/etc"})
    put(fresh_place / "origin", {"d/x": b"", "e": "d/x"})
    (fresh_place / "s").mkdir()
    manifest = take_snapshot(fresh_place / "origin", ["."], fresh_place / "s")
    plan = planned(manifest, target)
    assert plan.delete == ("d",)
    refuse_leading_out(plan, target)
    restore(plan)
    assert stored_tree(target) == {"d/x": b"", "e": "d/x"}


@pytest.mark.parametrize("seconds", [0, -100, 100])
def test_a_restored_file_has_another_time_than_the_one_it_replaces(manifest: Manifest, target: Path, seconds: int) -> None:
    restore(planned(manifest, target))
    path = target / "sub/b.txt"
    path.write_bytes(b"owt")  # as long, and written in the same second: bytecode of the one would do for the other
    now = int(time.time()) + seconds
    os.utime(path, (now, now))

    restore(planned(manifest, target))

    assert path.read_bytes() == b"two"
    assert int(path.stat().st_mtime) != now
    assert path.stat().st_mtime >= time.time() - 60
