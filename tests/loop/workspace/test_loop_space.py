"""Room on the disk: looked at before an iteration, and a ballast that makes the end of an attempt writable on a full one."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from store_kit import new_store, put, record

from jumar.errors import StoreWriteError
from jumar.loop.snapshots import snapshot
from jumar.loop.store.verify import verify
from jumar.loop.workspace.disk_space import BALLAST, Room, Space, disk_is_full, room_of

MEGABYTE = 1_000_000


@pytest.fixture
def work(fresh_place: Path) -> Path:
    directory = fresh_place / "work"
    put(directory, {"a.txt": b"x" * 1000, "b.txt": b"y" * 500})
    return directory


def disk(free: int, files: int | None = 10**6, *, device: int = 1):
    return lambda _path: Room(device=device, bytes=free, files=files)


def test_the_room_of_a_real_disk(fresh_place: Path):
    found = room_of(fresh_place)
    assert found.bytes > 0
    assert found.device == fresh_place.stat().st_dev


def test_an_empty_loop_needs_the_margin(work: Path):
    store = new_store("x", work)
    assert Space(store, work, margin_bytes=100, room=disk(100)).check() is None
    short = Space(store, work, margin_bytes=100, room=disk(99)).check()
    assert short is not None
    assert "the disk is full; free some space, and run the same command again" in short
    assert str(store.paths.directory) in short


def test_a_pass_needs_twice_the_largest_snapshot_so_far(work: Path):
    store = new_store("x", work)
    space = Space(store, work, margin_bytes=100, room=disk(3100))
    record(store, 0, ("a.txt", "b.txt"), work)
    assert space.check() is None
    put(work, {"b.txt": b"y" * 501})
    record(store, 1, ("a.txt", "b.txt"), work)
    assert space.check() is not None
    put(work, {"b.txt": b"y"})
    record(store, 2, ("a.txt", "b.txt"), work)
    assert space.check() is not None, "the largest one, not the last"
    assert Space(store, work, margin_bytes=100, room=disk(3100)).check() is None, "measured when opened: the first and the newest"


def test_of_what_is_kept_by_its_contents_only_new_ones_count(work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(snapshot, "PLAIN_FILES", 1)
    store = new_store("x", work)
    space = Space(store, work, margin_bytes=100, room=disk(250, files=64))
    record(store, 0, ("a.txt", "b.txt"), work)
    assert space.check() is None
    put(work, {"b.txt": b"z" * 75})
    record(store, 1, ("a.txt", "b.txt"), work)
    assert space.check() is None
    put(work, {"b.txt": b"y" * 76})
    record(store, 2, ("a.txt", "b.txt"), work)
    assert space.check() is not None
    opened = Space(store, work, margin_bytes=100, room=disk(250, files=64))
    assert opened.check() is not None, "what changed since the first"


def test_names_run_out_too(work: Path):
    store = new_store("x", work)
    record(store, 0, ("a.txt", "b.txt"), work)
    assert Space(store, work, room=disk(10**9, files=68)).check() is None
    short = Space(store, work, room=disk(10**9, files=67)).check()
    assert short is not None
    assert "only 67 more files" in short
    assert Space(store, work, room=disk(10**9, files=None)).check() is None, "a file system that does not count them"


def test_the_work_tree_may_lie_elsewhere(work: Path):
    store = new_store("x", work)
    record(store, 0, ("a.txt", "b.txt"), work)

    def room(path: Path) -> Room:
        return Room(device=2, bytes=1599, files=None) if path == work else Room(device=1, bytes=10**9, files=None)

    short = Space(store, work, margin_bytes=100, room=room).check()
    assert short is not None
    assert str(work) in short
    assert Space(store, work, margin_bytes=99, room=room).check() is None


def test_a_file_system_that_cannot_be_asked_has_room(work: Path):
    def refuses(_path: Path) -> Room:
        raise OSError(errno.ENOSYS, "no")

    assert Space(new_store("x", work), work, room=refuses).check() is None


def test_the_ballast_is_laid_in_once_and_given_up_once(work: Path):
    store = new_store("x", work)
    space = Space(store, work, ballast_bytes=4096)
    ballast = store.paths.directory / BALLAST
    assert space.rebuild()
    before = ballast.stat()
    assert before.st_size == 4096
    assert space.rebuild()
    assert ballast.stat().st_ino == before.st_ino, "it is there: nothing to do"
    assert not verify(store).problems
    assert space.release()
    assert not ballast.exists()
    assert not space.release()
    ballast.write_bytes(b"cut off")
    assert space.rebuild()
    assert ballast.stat().st_size == 4096
    ballast.unlink()
    ballast.symlink_to(work / "a.txt")
    assert space.rebuild()
    assert not ballast.is_symlink()
    assert (work / "a.txt").read_bytes() == b"x" * 1000, "a link in its place is not written through"


def test_a_ballast_that_does_not_fit_leaves_nothing_behind(work: Path, monkeypatch: pytest.MonkeyPatch):
    def full(_fd: int, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "full")

    store = new_store("x", work)
    monkeypatch.setattr("jumar.loop.workspace.disk_space.write_all", full)
    assert not Space(store, work).rebuild()
    assert not (store.paths.directory / BALLAST).exists()


def test_a_full_disk_is_told_from_other_errors():
    def raised(number: int) -> BaseException:
        error = StoreWriteError("could not write")
        error.__cause__ = OSError(number, "no")
        return error

    assert [disk_is_full(raised(number)) for number in (errno.ENOSPC, errno.EDQUOT, errno.EIO)] == [True, True, False]
    assert disk_is_full(OSError(errno.ENOSPC, "full"))
    assert not disk_is_full(StoreWriteError("without a cause"))
    assert not disk_is_full(None)


ON_A_SMALL_DISK = """
import json, sys
from pathlib import Path
from store_kit import AT, end, new_store, put
from jumar.errors import StoreWriteError
from jumar.loop.workspace.disk_space import Space, disk_is_full
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.snapshots import snapshot
from jumar.loop.store.verify import verify

place = Path(sys.argv[1])
work = place / "work"
put(work, {"a.txt": b"x" * 1000})
store = new_store(place / "loop", work)
space = Space(store, work, ballast_bytes=64 * 1024, margin_bytes=200_000)
seen = {"room": space.check(), "laid_in": space.rebuild()}
number = store.begin_attempt(1, 0, "n", AT).start.number
with open(work / "flood", "wb", buffering=0) as flood:  # the generator fills the disk in the middle of its iteration
    try:
        while True:
            flood.write(b"z" * 1000)
    except OSError:
        pass
try:
    store.end_attempt(number, end())
    seen["first"] = "written"
except StoreWriteError as error:
    seen["first"] = "full" if disk_is_full(error) else str(error)
seen["given_up"] = space.release()
store.end_attempt(number, end())
seen["ended"] = LoopStore.open(place / "loop").attempt(number).end is not None
seen["refused"] = space.check()
(work / "flood").unlink()
seen["again"] = [space.check(), space.rebuild()]
seen["verified"] = not verify(LoopStore.open(place / "loop")).problems
print(json.dumps(seen))
"""


def test_on_a_disk_that_fills_up_in_the_middle_of_a_pass(fresh_place: Path):
    if shutil.which("unshare") is None:
        pytest.skip("this machine does not let a process have mounts of its own")
    small = fresh_place / "small"
    small.mkdir()
    (fresh_place / "night.py").write_text(ON_A_SMALL_DISK)
    support = Path(__file__).resolve().parents[2] / "support"
    program = f"PYTHONPATH='{support}' exec '{sys.executable}' night.py '{small}'"
    mounted = f"mount -t tmpfs -o size=600k tmpfs '{small}' || exit 99; {program}"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", mounted], capture_output=True, text=True, check=False, cwd=fresh_place)
    if done.returncode == 99:
        pytest.skip("this machine does not let a process have mounts of its own")
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    refused = seen.pop("refused")
    assert seen == {
        "room": None,
        "laid_in": True,
        "first": "full",
        "given_up": True,
        "ended": True,
        "again": [None, True],
        "verified": True,
    }
    assert "the disk is full" in refused
