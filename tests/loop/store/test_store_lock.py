"""One writer at a time, in one process and in several."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from store_kit import new_store, put, record

from jumar.core.lock import LoopLock, who_holds
from jumar.errors import LockedError, StoreWriteError
from jumar.loop.store.loop_store import LoopStore

HOLD = """
import sys
from jumar.core.lock import LoopLock
with LoopLock(__import__("pathlib").Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""

RACE = """
import sys, time
from pathlib import Path
from jumar.errors import DuplicateIterationError, LockedError
from jumar.model import IterationRecord
from jumar.loop.store.loop_store import LoopStore
store = LoopStore.open("loop")
store.views()
print("ready", flush=True)
sys.stdin.readline()
for number in range(1, 13):
    try:
        record = IterationRecord(iteration_number=number, timestamp="t", quality_score=float(sys.argv[1]))
        store.add(record, source=Path("work"), paths=["a.txt"])
        print("won", number)
    except DuplicateIterationError:
        print("duplicate", number)
    except LockedError:
        print("locked", number)
"""


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def path(fresh_place: Path) -> Path:
    return fresh_place / "locks" / "demo"


def test_the_lock_names_its_holder(path: Path) -> None:
    assert who_holds(path) is None
    with start(HOLD, str(path)) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(
            LockedError,
            match=rf"^loop 'demo' is being written by process {holder.pid} \(-c .*\) since \d{{4}}-\S+Z; wait for it to end",
        ):
            LoopLock(path, patience=0.05).acquire()
        found = who_holds(path)
        assert found is not None
        assert found["pid"] == holder.pid
        holder.stdin.close()
    assert who_holds(path) is None
    LoopLock(path).acquire()


def test_a_holder_that_is_killed_lets_go(path: Path) -> None:
    with start(HOLD, str(path)) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
        holder.wait()
        with LoopLock(path) as lock:
            assert lock.held


def test_one_object_may_take_it_again_and_two_exclude_each_other(path: Path) -> None:
    one, other = LoopLock(path), LoopLock(path, patience=0)
    with one, one:
        with pytest.raises(LockedError, match="by this process through another object"):
            other.acquire()
        one.release()
        with pytest.raises(LockedError):
            other.acquire()
        one.acquire()
    assert not one.held
    with other:
        assert other.held
    other.release()
    assert not other.held


def test_patience_waits_for_a_short_holder(path: Path) -> None:
    holder, waiting = LoopLock(path), LoopLock(path, patience=10)
    holder.acquire()
    timer = threading.Timer(0.1, holder.release)
    timer.start()
    with waiting:
        assert not holder.held
    timer.join()


def test_the_generation_tells_whether_somebody_else_wrote(path: Path) -> None:
    one, other = LoopLock(path), LoopLock(path)
    assert not one.last_holder_was_me()
    seen: list[bool] = []
    for lock in (one, one, other, one, one):
        with lock:
            seen.append(lock.unchanged_since_mine)
    assert seen == [False, True, False, False, True]
    assert (one.last_holder_was_me(), other.last_holder_was_me()) == (True, False)


def test_the_file_is_rewritten_in_place_and_never_deleted(path: Path) -> None:
    with LoopLock(path):
        inode = path.stat().st_ino
    path.write_bytes(b'{"pid": ' + b"x" * 3000)  # as where its holder was killed while it wrote
    with LoopLock(path):
        content = json.loads(path.read_bytes())
    assert path.stat().st_ino == inode
    assert sorted(content) == ["command", "nonce", "pid", "process_start", "since"]
    assert content["pid"] == os.getpid()


def test_a_file_that_was_deleted_is_locked_anew(path: Path) -> None:
    with LoopLock(path) as lock:
        assert not lock.regain()
        path.unlink()
        assert who_holds(path) is None
        assert lock.regain()
        assert not lock.regain()
        with pytest.raises(LockedError, match="by this process"):
            LoopLock(path, patience=0).acquire()
    with LoopLock(path, patience=0) as other:
        assert other.held
    assert not lock.regain()


def test_a_file_that_was_deleted_and_locked_by_another_is_the_other_s(path: Path) -> None:
    with LoopLock(path, patience=0) as lock:
        path.unlink()
        with LoopLock(path), pytest.raises(LockedError):
            lock.regain()


def test_a_forked_child_does_not_hold_what_its_parent_holds(path: Path) -> None:
    lock = LoopLock(path, patience=0)
    with lock:
        child = os.fork()
        if child == 0:
            code = 0
            try:
                if lock.held or lock.last_holder_was_me():
                    code = 1
                lock.release()
                lock.acquire()
                code = 2
            except LockedError:
                code = code or 42
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
        with pytest.raises(LockedError):
            LoopLock(path, patience=0).acquire()
    # A child that outlives the parent's release does not keep the lock, although it has the descriptor.
    lock.acquire()
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(ready, 1)
        os._exit(0)
    lock.release()
    with LoopLock(path, patience=0) as other:
        assert other.held
    os.write(go, b"x")
    os.waitpid(child, 0)
    os.close(ready)
    os.close(go)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is being written by another process"),
        (b"not json", "is being written by another process"),
        (b"[1]", "is being written by another process"),
        (
            b'{"pid": 1, "process_start": -1, "command": "jumar run"}',
            r"locked by a process that was started by process 1 \(jumar run\)",
        ),
    ],
)
def test_a_holder_that_did_not_sign_is_still_a_holder(path: Path, content: bytes, message: str) -> None:
    with LoopLock(path):
        path.write_bytes(content)
        with pytest.raises(LockedError, match=message):
            LoopLock(path, patience=0).acquire()


def test_a_system_without_locks_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(StoreWriteError, match=r"could not lock .*No locks available"):
        LoopLock(path).acquire()


def test_a_holder_is_named_without_proc_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumar.core.lock._process_start", lambda _: None)
    with LoopLock(path), pytest.raises(LockedError, match="through another object"):
        LoopLock(path, patience=0).acquire()


def test_a_long_command_is_cut_and_escaped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/jumar", "run", "\x1b[31m" + "x" * 500])
    with LoopLock(path), pytest.raises(LockedError) as caught:
        LoopLock(path, patience=0).acquire()
    assert "\x1b" not in str(caught.value)
    monkeypatch.setattr(sys, "argv", [])
    with LoopLock(path):
        assert json.loads(path.read_bytes())["command"] == "python"


def test_a_lock_that_cannot_be_written_is_an_error_of_the_disk(path: Path) -> None:
    path.parent.parent.rmdir()
    path.parent.parent.write_text("a file")
    with pytest.raises(StoreWriteError, match=r"could not lock .*demo"):
        LoopLock(path).acquire()
    assert who_holds(path) is None


@pytest.mark.parametrize(
    "what", ["a hard link", "a FIFO", "a link", "a directory", "a text", "a file for its directory", "a link for its directory"]
)
def test_what_stands_in_its_place_is_neither_written_nor_waited_for(path: Path, what: str) -> None:
    mine = path.parent.parent / "mine.txt"
    mine.write_text("a person's")
    path.parent.mkdir()
    {
        "a hard link": lambda: os.link(mine, path),
        "a FIFO": lambda: os.mkfifo(path),
        "a link": lambda: path.symlink_to(mine),
        "a directory": lambda: (path / "x").mkdir(parents=True),
        "a text": lambda: path.write_text("words"),
        "a file for its directory": lambda: (path.parent.rmdir(), path.parent.write_text("words")),
        "a link for its directory": lambda: (path.parent.rmdir(), path.parent.symlink_to(mine.parent)),
    }[what]()
    assert (who_holds(path), LoopLock(path).last_holder_was_me()) == (None, False)
    with LoopLock(path) as lock:
        assert (who_holds(path) or {})["pid"] == os.getpid()
        assert lock.last_holder_was_me()
    assert mine.read_text() == "a person's"
    assert 1 == len([*mine.parent.rglob("*.set-aside-*"), *mine.parent.glob("quarantine/0001-*")])
    with LoopLock(path):
        os.link(path, mine.with_name("another name"))
        with pytest.raises(LockedError):
            LoopLock(path).acquire()


def test_the_message_names_the_loop_of_a_tracker(fresh_place: Path) -> None:
    store = new_store("my-loop")
    assert store.paths.lock == fresh_place / "my-loop" / ".lock"
    with store.lock(), pytest.raises(LockedError, match=r"^loop 'my-loop' is"):
        LoopLock(store.paths.lock, patience=0).acquire()


def test_every_way_to_a_loop_finds_the_same_lock(fresh_place: Path) -> None:
    store = LoopStore.create(".jumar/loops/x", "x", {}, workdir=None, created_at="t")
    os.symlink(".jumar/loops/x", "link")
    os.symlink(".jumar/loops", "many")
    assert LoopStore.open("link").paths.lock == LoopStore.open("many/x").paths.lock == store.paths.lock


def test_two_processes_race_for_the_lock_and_for_one_number(fresh_place: Path) -> None:
    put(fresh_place / "work", {"a.txt": b"a"})
    store = new_store("loop")
    racers = [start(RACE, "40"), start(RACE, "60")]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    outcomes = [line.split() for racer in racers for line in racer.communicate()[0].splitlines()]
    assert [racer.returncode for racer in racers] == [0, 0]
    won = Counter(number for what, number in outcomes if what == "won")
    lost = Counter(number for what, number in outcomes if what != "won")
    assert won == {str(number): 1 for number in range(1, 13)}
    assert lost == {str(number): 1 for number in range(1, 13)}
    assert [view.number for view in store.views()] == list(range(1, 13))
    print(f"numbers raced for: {len(won)}, lost as {Counter(what for what, _ in outcomes if what != 'won')}")


def test_while_one_holds_it_the_other_is_refused_and_reads_on(fresh_place: Path) -> None:
    put(fresh_place / "work", {"a.txt": b"a"})
    store, other = new_store("loop"), LoopStore.open("loop")
    with store.lock():
        record(store, 1, ("a.txt",), fresh_place / "work")
        with pytest.raises(LockedError):
            record(other, 2, ("a.txt",), fresh_place / "work")
        assert other.iteration_numbers() == (1,)
    record(other, 2, ("a.txt",), fresh_place / "work")
    assert store.iteration_numbers() == (1, 2)
