"""Contents that several loops share: what is there twice, damaged, collected, or in the way."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import call
from store_kit import AT, kept, kept_tree, put, record, stored_tree

from jumar.app.removal import look_at, remove_loop
from jumar.core import files
from jumar.core.copying import copies_share, copy_alike
from jumar.core.files import sha256_bytes
from jumar.errors import StoreDamagedError, StoreWriteError
from jumar.loop.decisions.apply import apply, undo
from jumar.loop.decisions.cleanup import cleanup
from jumar.loop.decisions.plan import plan_apply
from jumar.loop.snapshots import objects as objects_module
from jumar.loop.snapshots import snapshot
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.snapshots.objects import Objects
from jumar.loop.snapshots.restore import plan_restore, restore
from jumar.loop.store.collect import collect
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.repair import repair
from jumar.loop.store.verify import verify

NAMES = ("one", "two")


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "PLAIN_FILES", 2)


@pytest.fixture
def work(fresh_place: Path) -> Path:
    put(fresh_place / "work", {"a.txt": b"a", "b.txt": b"b", "c.txt": b"c", "large": b"0" * 2_000_000, "link": "a.txt"})
    return fresh_place / "work"


@pytest.fixture
def root(work: Path) -> Path:
    return work / ".jumar"


@pytest.fixture
def loops(root: Path, work: Path) -> tuple[LoopStore, LoopStore]:
    one, two = (LoopStore.create(root / "loops" / name, name, {"run": {}}, workdir=work, created_at=AT) for name in NAMES)
    return one, two


def files_of(root: Path) -> list[Path]:
    return sorted(path for path in (root / "objects").iterdir() if path.name != ".lock")


def altered(path: Path, at: int) -> None:
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def problems(store: LoopStore) -> set[tuple[str, str]]:
    return {(problem.path, problem.what) for problem in verify(store).problems}


def test_what_two_loops_hold_is_stored_once(loops: tuple[LoopStore, LoopStore], root: Path, work: Path) -> None:
    for store in loops:
        record(store, 1, (".",), work)
    assert sorted(path.stat().st_size for path in files_of(root)) == [3 + 3 * 40 + 16, 2_000_000]
    assert all(path.stat().st_mode & 0o777 == 0o444 for path in files_of(root))
    tree = {path: content for path, content in stored_tree(work).items() if not path.startswith(".jumar")}
    assert kept(loops[0], 1) == kept(loops[1], 1) == tree
    assert verify(loops[0]).problems == verify(loops[1]).problems == ()
    assert verify(loops[0]).bytes == 2_000_003


def test_the_work_tree_shares_nothing_with_the_store(loops: tuple[LoopStore, LoopStore], root: Path, work: Path) -> None:
    record(loops[0], 1, (".",), work)
    (work / "large").write_bytes(b"1" * 2_000_000)
    assert kept(loops[0], 1)["large"] == b"0" * 2_000_000
    inodes = {path.stat().st_ino for path in files_of(root)}
    assert not inodes & {path.lstat().st_ino for path in work.iterdir()}


def test_a_cleanup_frees_what_no_loop_names(loops: tuple[LoopStore, LoopStore], root: Path, work: Path) -> None:
    one, two = loops
    for number in range(1, 6):
        put(work, {"a.txt": b"a%d" % number, "large": bytes([number]) * 2_000_000})
        record(one, number, (".",), work, quality=float(number))
        if number == 2:
            record(two, 1, (".",), work)
    result = cleanup(one, keep=0, by="ada", at=AT)
    assert result.removed == (1, 2, 3, 4)[: len(result.removed)]
    assert 2_000_000 * (len(result.removed) - 1) < result.freed < 2_000_000 * (len(result.removed) - 1) + 1_000
    assert kept(two, 1)["large"] == b"\x02" * 2_000_000
    assert verify(one).problems == verify(two).problems == ()
    found = look_at(two.paths.directory)
    assert 2_000_000 < found.size < 2_100_000  # what only it holds goes with it
    remove_loop(found)
    assert len([path for path in files_of(root) if path.stat().st_size == 2_000_000]) == 5 - len(result.removed)
    assert kept(one, 5)["a.txt"] == b"a5"


def test_an_unreadable_loop_and_a_quarantine_keep_contents(loops: tuple[LoopStore, LoopStore], root: Path, work: Path) -> None:
    one, two = loops
    record(one, 1, (".",), work)
    put(work, {"large": b"1" * 2_000_000})
    record(two, 1, (".",), work)
    before = files_of(root)
    (two.paths.iteration(1) / "metrics.json").unlink()
    two.paths.loop_json.write_bytes(b"{")
    shutil.rmtree(one.paths.directory / "quarantine", ignore_errors=True)
    one.quarantine(one.paths.iteration(1))
    assert collect(root) == 0
    assert files_of(root) == before
    shutil.rmtree(one.paths.directory / "quarantine")
    assert collect(root) == 2_000_000
    shutil.rmtree(two.paths.directory)
    collect(root)
    assert files_of(root) == []


@pytest.mark.parametrize("how", ["disk", "unreadable", "cut off", "flipped", "gone", "elsewhere", "set aside"])
def test_what_a_loop_needs_that_cannot_be_read_stays(
    loops: tuple[LoopStore, LoopStore], root: Path, work: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = loops
    record(one, 1, (".",), work)
    loop, manifest = one.paths.directory, one.paths.iteration(1) / "manifest.json"
    data = manifest.read_bytes()
    if how == "disk":
        loop.rename(root.parent / "disk")
        loop.symlink_to(root.parent / "not there")
    elif how == "unreadable":
        (loop / "loop.json").unlink()
        monkeypatch.setattr(files, "names_in", refused)
    elif how == "cut off":
        manifest.write_bytes(data[:-9])
    elif how == "flipped":
        manifest.write_bytes(data.replace(b'"content_hash":"', b'"content_hash":"0', 1))
    elif how == "gone":
        manifest.unlink()
    else:
        place = root / ("node_modules/loops/one" if how == "elsewhere" else "quarantine/0001-one")
        place.parent.mkdir(parents=True)
        loop.rename(place)
    before = files_of(root)
    assert (collect(root), files_of(root)) == (0, before)
    monkeypatch.undo()
    look_at(two.paths.directory)


def test_nothing_is_collected_while_a_snapshot_is_taken(loops: tuple[LoopStore, LoopStore], root: Path, work: Path) -> None:
    one, two = loops
    record(one, 1, (".",), work)
    with two.objects.adding() as adding:
        adding.begin()
        shutil.rmtree(one.paths.iteration(1))
        assert collect(root) == 0
        assert adding.holds(sha256_bytes(b"a"), 1)
    assert collect(root) > 2_000_000


@pytest.mark.parametrize("put_there", [Path.mkdir, lambda path: path.symlink_to("/dev/null"), os.mkfifo])
def test_what_stands_in_the_place_of_the_lock_is_set_aside(fresh_place: Path, put_there: Callable[[Path], object]) -> None:
    directory = fresh_place / "objects"
    directory.mkdir()
    put_there(directory / ".lock")
    objects = Objects(directory)
    with objects.adding() as adding:
        adding.begin()
        adding.add(sha256_bytes(b"one"), b"one")
        adding.finish()
    assert objects.holds(sha256_bytes(b"one"), 3)


def test_a_store_that_is_locked_for_long_is_an_error(
    loops: tuple[LoopStore, LoopStore], root: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects_module, "_PATIENCE", 0.1)
    record(loops[0], 1, (".",), work)
    with (root / "objects/.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreWriteError, match="locked by another jumar"):
            record(loops[1], 1, (".",), work)
        (root / "objects/.lock").unlink()  # who removes it takes it from nobody
        record(loops[1], 1, (".",), work)
    assert loops[1].iteration_numbers() == (1,)


@pytest.fixture
def damaged(loops: tuple[LoopStore, LoopStore], root: Path, work: Path) -> LoopStore:
    store = loops[0]
    record(store, 1, (".",), work)
    put(work, {"d.txt": b"d"})
    record(store, 2, (".",), work)
    return store


@pytest.mark.parametrize("how", ["altered", "gone", "cut off"])
@pytest.mark.parametrize("there", [True, False])
def test_damage_is_told_and_taken_from_the_working_directory(
    damaged: LoopStore, root: Path, work: Path, how: str, there: bool
) -> None:
    pack = max((path for path in files_of(root) if path.suffix), key=lambda path: path.stat().st_size)
    if how == "altered":
        altered(pack, 1)  # of a, b and c the second
    elif how == "gone":
        pack.unlink()
    else:
        pack.chmod(0o644)
        os.truncate(pack, pack.stat().st_size - 1)
    what = "has another content than was recorded" if how == "altered" else "its content is missing in objects/"
    wrong = {"b.txt"} if how == "altered" else {"a.txt", "b.txt", "c.txt"}
    expected = {(f"iterations/iteration-00{number}/artifacts/{path}", what) for number in (1, 2) for path in wrong}
    assert problems(LoopStore.open(damaged.paths.directory)) == expected
    assert verify(damaged, quick=True).problems == () if how == "altered" else problems(damaged) == expected
    fresh = LoopStore.open(damaged.paths.directory)
    target = work.parent / "out"
    target.mkdir()
    with pytest.raises(StoreDamagedError, match=r"b\.txt|a\.txt"):
        restore(plan_restore(fresh.manifest(1), fresh.content(1), target, ()))
    if not there:
        put(work, dict.fromkeys(wrong, b"changed"))
    done, left = repair(fresh, by="ada", at=AT)
    assert left == ()
    assert {mending.does for mending in done} == (
        {"is stored again, from the working directory"}
        if there
        else {"is moved to quarantine/ with its snapshot; the record stays, and nothing starts from it any more"}
        | ({"is moved to quarantine/"} if not any(map(fresh.has_snapshot, (1, 2))) else set())
    )
    if there:
        again = LoopStore.open(damaged.paths.directory)
        assert problems(again) == set()
        assert kept(again, 1)["b.txt"] == b"b"
        assert kept(again, 2)["d.txt"] == b"d"


def test_many_files_of_one_snapshot_are_told_as_one(loops: tuple[LoopStore, LoopStore], root: Path, work: Path) -> None:
    put(work, {f"new/{number}.txt": f"{number}".encode() for number in range(9)})
    record(loops[0], 1, (".",), work)
    record(loops[0], 2, (".",), work)
    for path in (path for path in files_of(root) if path.suffix):
        path.unlink()
    shown = call("verify", "one", "--root", root, check=14).out.splitlines()
    assert [line.partition(": iterations/")[2].partition(": ")[0] for line in shown[:-1:2]] == [
        f"iteration-00{number}/artifacts/a.txt (and 11 more files there)" for number in (1, 2)
    ]
    assert "restore objects/ from a backup; else `jumar repair` takes it from a copy that is left" in shown[1]
    assert "one: 24 problems (2 iterations, 1 stored file" in shown[-1]
    assert len(call("verify", "one", "--root", root, "--json", check=14).document["loops"][0]["problems"]) == 24
    shown = call("repair", "one", "-y", "--root", root).out.splitlines()
    assert [line for line in shown if "(and 11 more files there)" in line and "missing in objects/" in line]
    assert shown[-1] == "one: whole again, 24 repairs"


@pytest.mark.parametrize("gone", ["content", "snapshot"])
def test_an_undo_keeps_what_only_the_working_directory_has_and_a_repair_finds_it(
    damaged: LoopStore, root: Path, work: Path, gone: str
) -> None:
    put(work, {"a.txt": b"better"})
    before = set(files_of(root))
    record(damaged, 3, (".",), work)
    put(work, {"a.txt": b"a"})
    apply(damaged, plan_apply(damaged, 3, work, ArtifactRules()), by="ada", at=AT)
    (pack,) = set(files_of(root)) - before
    pack.unlink()
    if gone == "snapshot":
        shutil.move(damaged.artifacts(3), work.parent / "elsewhere")
    undone = undo(LoopStore.open(damaged.paths.directory), by="ada", at=AT)
    assert (work / "a.txt").read_bytes() == b"a"
    assert undone.data["set_aside"] == "set-aside/0001"
    assert stored_tree(damaged.paths.set_aside)["0001/artifacts/a.txt"] == b"better"
    if gone == "snapshot":
        shutil.move(work.parent / "elsewhere", damaged.artifacts(3))
    done, left = repair(LoopStore.open(damaged.paths.directory), by="ada", at=AT)
    assert [mending.does for mending in done] == ["is stored again, from set-aside/0001/artifacts"]
    assert left == ()
    assert kept(LoopStore.open(damaged.paths.directory), 3)["a.txt"] == b"better"


@pytest.mark.parametrize(("what", "code"), [("altered", 0), ("gone", 14)])
def test_a_quick_verify_looks_whether_contents_are_there(damaged: LoopStore, root: Path, what: str, code: int) -> None:
    pack = max((path for path in files_of(root) if path.suffix), key=lambda path: path.stat().st_size)
    altered(pack, 1) if what == "altered" else pack.unlink()
    called = call("verify", "one", "--quick", "--root", root, check=code)
    verdict = "ok" if what == "altered" else "6 problems"
    assert called.out.endswith(f"one: {verdict} (2 iterations, contents not re-hashed)\n")
    document = call("verify", "one", "--quick", "--root", root, "--json", check=code).document
    assert (document["quick"], document["loops"][0]["files"], document["loops"][0]["bytes"]) == (True, 0, 0)
    assert "quick" not in call("verify", "one", "--root", root, "--json", check=14).document


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("how", ["altered", "gone"])
def test_what_a_program_did_to_contents_is_mended_by_the_next_snapshot(
    damaged: LoopStore, root: Path, work: Path, how: str, opened: bool
) -> None:
    for path in files_of(root):
        if how == "gone":
            path.unlink()
        else:
            altered(path, 0)
    (work / "c.txt").write_bytes(b"other")
    damaged = LoopStore.open(damaged.paths.directory) if opened else damaged
    record(damaged, 3, (".",), work)
    tree = {path: content for path, content in stored_tree(work).items() if not path.startswith(".jumar")}
    assert kept(LoopStore.open(damaged.paths.directory), 3) == tree
    assert all(sha256_bytes(path.read_bytes()) == path.name for path in files_of(root) if not path.suffix)
    wrong = {path for path, _ in problems(LoopStore.open(damaged.paths.directory))}
    assert wrong == {f"iterations/iteration-00{number}/artifacts/c.txt" for number in ((1, 2) if how == "gone" else ())}


@pytest.mark.parametrize("what", ["nothing", "a file", "a link"])
def test_objects_that_are_gone_are_made_anew_by_a_repair(damaged: LoopStore, root: Path, work: Path, what: str) -> None:
    shutil.move(root / "objects", work.parent / "elsewhere")
    if what == "a file":
        (root / "objects").write_bytes(b"?")
    elif what == "a link":
        (root / "objects").symlink_to(work.parent / "elsewhere")
    store = LoopStore.open(damaged.paths.directory)
    assert repair(store, by="ada", at=AT)[1] == ()
    assert kept(store, 2)["d.txt"] == b"d"


def test_contents_that_somebody_else_put_there_are_not_relied_on(damaged: LoopStore, root: Path, work: Path) -> None:
    """An agent knows what it will write; were its word taken, the best iteration could not be restored."""
    pack = objects_module._Pack(root / "objects" / "planted")
    for data, claimed in ((b"fooled", b"future"), (b"honest", b"honest")):
        pack.add(sha256_bytes(claimed), data)
    name, _ = pack.close()
    pack.path.rename(root / "objects" / name)
    (root / "objects" / sha256_bytes(b"1" * 2_000_000)).write_bytes(b"2" * 2_000_000)
    put(work, {"future": b"future", "honest": b"honest", "large": b"1" * 2_000_000})
    store = LoopStore.open(damaged.paths.directory)
    record(store, 3, (".",), work)
    fresh = LoopStore.open(damaged.paths.directory)
    assert verify(fresh).problems == ()
    assert (kept(fresh, 3)["future"], kept(fresh, 3)["large"]) == (b"future", b"1" * 2_000_000)


def planted(root: Path, contents: dict[str, int], first: str) -> Path:
    """Put a pack there that says that it holds these contents, and holds zeros; its name begins with ``first``."""
    for salt in range(10_000):
        entries = [(bytes.fromhex(digest), size) for digest, size in contents.items()] + [(salt.to_bytes(32, "big"), 1)]
        index = b"".join(objects_module._ENTRY.pack(*entry) for entry in entries)
        path = root / "objects" / f"{sha256_bytes(index)}.pack"
        if path.name.startswith(first):
            tail = objects_module._TAIL.pack(len(entries), b"jumarpk1")
            path.write_bytes(b"0" * (sum(contents.values()) + 1) + index + tail)
            return path
    raise AssertionError


@pytest.mark.parametrize("first", ["0", "f"])
@pytest.mark.parametrize("anew", [True, False])
def test_what_a_program_puts_beside_contents_takes_the_place_of_none(
    damaged: LoopStore, root: Path, work: Path, first: str, *, anew: bool
) -> None:
    held = damaged.manifest(1).entries
    planted(root, {held[name].content_hash or "": held[name].size for name in ("a.txt", "b.txt", "c.txt")}, first)
    if not (root / "objects" / sha256_bytes(b"a")).exists():
        (root / "objects" / sha256_bytes(b"a")).write_bytes(b"b" * 99)
    store = LoopStore.open(damaged.paths.directory) if anew else damaged
    put(work, {"a.txt": b"other", "b.txt": b"other", "c.txt": b"other"})
    restore(plan_restore(store.manifest(1), store.content(1), work, ()))
    assert [(work / name).read_bytes() for name in ("a.txt", "b.txt", "c.txt")] == [b"a", b"b", b"c"]
    assert verify(store).problems == ()


def test_a_content_that_a_program_made_huge_is_not_read(damaged: LoopStore, root: Path, work: Path) -> None:
    digest = damaged.manifest(1).entries["large"].content_hash or ""
    large = root / "objects" / digest
    large.chmod(0o600)
    os.truncate(large, 1 << 43)  # all of it a hole
    put(work, {"new": b"new"})
    record(damaged, 3, (".",), work)
    assert not damaged.objects.holds(digest, 1 << 43)
    assert kept(damaged, 3)["new"] == b"new"


def test_a_link_in_the_place_of_the_objects_is_moved_away(damaged: LoopStore, root: Path, work: Path) -> None:
    elsewhere = work.parent / "elsewhere"
    (root / "objects").rename(elsewhere)
    (root / "objects").symlink_to(elsewhere)
    assert {what for _, what in problems(LoopStore.open(damaged.paths.directory))} == {"its content is missing in objects/"}
    put(work, {"e.txt": b"e"})
    store = LoopStore.open(damaged.paths.directory)
    record(store, 3, (".",), work)
    assert not (root / "objects").is_symlink()
    assert kept(store, 3)["a.txt"] == b"a"
    assert sorted(elsewhere.iterdir())


def test_leftovers_and_strangers_are_no_contents(damaged: LoopStore, root: Path, work: Path) -> None:
    put(root / "objects", {"ab" * 32: b"not what its name says", f"{'cd' * 32}.pack": b"no pack", "README": b"?"})
    (root / "objects" / f"{'ef' * 32}.pack").mkdir()
    assert verify(LoopStore.open(damaged.paths.directory)).problems == ()
    put(work, {"e.txt": b"e"})
    record(damaged, 3, (".",), work)
    assert kept(damaged, 3)["e.txt"] == b"e"
    collect(root)
    assert (root / "objects" / f"{'cd' * 32}.pack").exists()  # nobody knows what it held


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_holds_nothing_and_is_in_nobodys_way(
    damaged: LoopStore, root: Path, work: Path, make: Callable[[Path], None]
) -> None:
    make(root / "objects" / ("ab" * 32))
    large = root / "objects" / sha256_bytes(b"0" * 2_000_000)
    large.unlink()
    make(large)
    assert cleanup(damaged, by="ada", at=AT).removed == ()  # a FIFO is not waited for
    store = LoopStore.open(damaged.paths.directory)
    assert {what for _, what in problems(store)} == {"its content is missing in objects/"}
    assert repair(store, by="ada", at=AT)[1] == ()
    assert kept(store, 1)["large"] == b"0" * 2_000_000


def test_a_content_that_lies_in_two_files_outlives_one_of_them(root: Path) -> None:
    root.mkdir()
    with Objects(root / "objects").adding() as one, Objects(root / "objects").adding() as two:
        for adding, own in ((one, b"1"), (two, b"2")):
            adding.begin()
            for content in (b"both", own):
                adding.add(sha256_bytes(content), content)
        one.finish()
        two.finish()
    for path in files_of(root):
        seen = Objects(root / "objects")
        seen.refresh()
        data = path.read_bytes()
        path.unlink()
        seen.refresh()
        assert seen.holds(sha256_bytes(b"both"), 4)
        path.write_bytes(data)


def test_what_is_put_elsewhere_between_two_looks_is_not_missing(
    damaged: LoopStore, root: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, before = files.names_in, [path.name for path in files_of(root)]
    put(work, {"b.txt": b"", "c.txt": b"c" * 99})
    record(damaged, 3, (".",), work)
    for number in (1, 2):
        shutil.rmtree(damaged.paths.iteration(number))
    assert collect(root)
    looks = iter([before])  # the first shows what was there before somebody collected
    monkeypatch.setattr(files, "names_in", lambda place: next(looks, None) or names(place))
    seen = Objects(root / "objects")
    seen.refresh()
    assert seen.holds(sha256_bytes(b"a"), 1)


def test_a_full_disk_frees_what_needs_no_room(damaged: LoopStore, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(damaged.paths.iteration(2))
    put(root / "objects", {"ab" * 32: b"named by nobody"})
    monkeypatch.setattr(objects_module.Adding, "leave", refused)
    with Objects(root / "objects").adding() as adding:
        adding.begin()
        for content in (b"a" * 99, b"b" * 99):  # half of it is named
            adding.add(sha256_bytes(content), content)
        adding.finish()
    objects = Objects(root / "objects")
    with objects.alone(1), pytest.raises(StoreWriteError, match="the disk is full"):
        objects.collect({sha256_bytes(b"a" * 99)})
    assert len(files_of(root)) == 1


def refused(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_sparse_files_stay_sparse(loops: tuple[LoopStore, LoopStore], root: Path, work: Path) -> None:
    with (work / "holes").open("wb") as file:
        file.seek(300_000)
        file.write(b"end")
    assert (work / "holes").stat().st_blocks * 512 < 100_000
    record(loops[0], 1, (".",), work)
    (stored,) = [path for path in files_of(root) if path.stat().st_size == 300_003]
    target = work.parent / "out"
    target.mkdir()
    restore(plan_restore(loops[0].manifest(1), loops[0].content(1), target, ()))
    assert all(path.stat().st_blocks * 512 < 100_000 for path in (stored, target / "holes"))
    assert (target / "holes").read_bytes() == (work / "holes").read_bytes()


def test_many_contents_go_into_several_packs(
    loops: tuple[LoopStore, LoopStore], root: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects_module, "_PACK", 10_000)
    put(work, {f"f{number}": os.urandom(1_000) for number in range(100)})
    record(loops[0], 1, (".",), work)
    assert len(files_of(root)) == 11
    pending = loops[0].stage(2, source=work, paths=["."], nonce="n", attempt=None, stage={}, logs=None)
    assert kept_tree(pending.content, pending.manifest) == kept(loops[0], 1)
    assert len(files_of(root)) == 11
    for number in range(60):
        (work / f"f{number}").unlink()
    shutil.rmtree(pending.directory)
    record(loops[0], 2, (".",), work)
    loops[0].add_decision("cleanup", data={"iterations": [1]})
    shutil.rmtree(loops[0].artifacts(1))
    assert 40_000 < collect(root) < 70_000
    assert verify(loops[0]).problems == ()


ADD = """
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from jumar.loop.snapshots import snapshot
from jumar.loop.store.collect import collect
from jumar.loop.store.loop_store import LoopStore
from jumar.model import IterationRecord
snapshot.PLAIN_FILES = 2
root, name, work = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
store = LoopStore.open(root / "loops" / name)
for number in range(1, 16):
    for each in range(4):
        (work / f"{each}.txt").write_text(f"{each} of {number}\\n")
    pending = store.stage(number, source=work, paths=["."], nonce="n", attempt=None, stage={}, logs=None)
    store.commit(pending, IterationRecord(iteration_number=number, timestamp="2026-01-25T10:00:00Z", quality_score=1.0))
    if number % 3 == 0:
        store.add_decision("cleanup", data={"iterations": [number - 1]})
        import shutil
        shutil.rmtree(store.artifacts(number - 1))
        collect(root)
"""


def test_two_processes_store_the_same_contents_and_collect(
    loops: tuple[LoopStore, LoopStore], root: Path, work: Path, tmp_path: Path
) -> None:
    places = [tmp_path / name for name in NAMES]
    for place in places:
        place.mkdir()
    running = [
        subprocess.Popen([sys.executable, "-c", ADD, str(root), name, str(place)], cwd=work.parent)
        for name, place in zip(NAMES, places, strict=True)
    ]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    for store in loops:
        fresh = LoopStore.open(store.paths.directory)
        assert verify(fresh).problems == ()
        there = [number for number in range(1, 16) if number % 3 != 2]
        assert all(kept(fresh, number)["3.txt"] == b"3 of %d\n" % number for number in there)
    collect(root)
    objects = Objects(root / "objects")
    objects.refresh()
    assert 4 * 10 <= len(objects) <= 4 * 15


@pytest.fixture
def xfs(tmp_path: Path) -> Iterator[Path]:
    """A file system that shares blocks."""
    image, place = tmp_path / "image", tmp_path / "xfs"
    place.mkdir()
    if os.geteuid() or not shutil.which("mkfs.xfs"):
        pytest.skip("only root may mount, and xfs has to be installed")
    with image.open("wb") as file:
        file.truncate(400 << 20)
    subprocess.run(["mkfs.xfs", "-q", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, place], check=False, capture_output=True).returncode:
        pytest.skip("nothing may be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)


def test_blocks_are_shared_where_the_file_system_can(xfs: Path) -> None:
    work = xfs / "work"
    put(work, {"large": os.urandom(40_000_000), "a": b"a"})
    os.sync()
    before = os.statvfs(xfs)
    store = LoopStore.create(work / ".jumar/loops/one", "one", {"run": {}}, workdir=work, created_at=AT)
    record(store, 1, (".",), work)
    (xfs / "out").mkdir()
    restore(plan_restore(store.manifest(1), store.content(1), xfs / "out", ()))
    copy_alike(work / "large", xfs / "copy")
    os.sync()
    after = os.statvfs(xfs)
    assert (before.f_bfree - after.f_bfree) * before.f_bsize < 4_000_000
    assert copies_share(work, xfs / "not/there")
    assert not copies_share(work, xfs.parent)
    with (work / "large").open("r+b") as file:
        file.write(b"changed")
    assert (
        kept(store, 1)["large"]
        == (xfs / "out/large").read_bytes()
        == (xfs / "copy").read_bytes()
        != (work / "large").read_bytes()
    )
