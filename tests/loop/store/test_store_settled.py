"""Attempts kept in one file are those that their own files say, whatever was killed, altered or full."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from dying import Killed, Way, changing_calls, dying, not_waiting
from store_kit import AT, end, new_store, put, unmarked

from jumar.core.marks import digest
from jumar.errors import ForgedError, StoreWriteError, UsageError
from jumar.loop.store import settled
from jumar.loop.store.integrity.tamper_check import StoreWatch
from jumar.loop.store.integrity.trust import place_of
from jumar.loop.store.integrity.verify import verify
from jumar.loop.store.loop_store import LoopStore
from jumar.model.attempts import Attempt, AttemptEnd
from jumar.model.records import Usage

COUNTS = {"compared": 0, "kills": 0, "alterations": 0}
ENDS = (
    end(),
    replace(end(), usage=Usage(token_cost_usd=0.25, tokens_used=7, model="m"), output_tail="printed"),
    replace(end(), outcome="failed", failure="generator_failed", detail="é\n", exit_code=3, seconds=0.5, printed=True),
    replace(end(), commits=("c1", "c2"), notes=("note",), errors=("E",), known_cost_usd=0.125, seconds=None),
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line for every three attempts, and files that were just written count as settled: nobody changes them meanwhile."""
    monkeypatch.setattr(settled, "AT_ONCE", 3)
    monkeypatch.setattr(settled, "_SETTLED_NS", -(10**10))


@pytest.fixture
def store(fresh_place: Path) -> LoopStore:
    put(fresh_place / "work", {"a.txt": b"1"})
    return new_store("loop", fresh_place / "work")


def add(store: LoopStore, count: int) -> None:
    for _ in range(count):
        number = store.begin_attempt(1, 0, "n", AT, reserve_cost_usd=0.5).start.number
        store.end_attempt(number, ENDS[number % len(ENDS)])


def read(directory: Path) -> tuple[Attempt, ...]:
    return LoopStore.open(directory).attempts()


def by_their_files(directory: Path) -> tuple[Attempt, ...]:
    """Return the attempts as they are read without the one file."""
    COUNTS["compared"] += 1
    store = LoopStore.open(directory)
    store.settled.at_once = 10**9
    return store.attempts()


def believed(directory: Path) -> int:
    return len(LoopStore.open(directory).settled.read())


def test_what_is_read_is_what_the_files_say(store: LoopStore):
    directory = store.paths.directory
    for count in (2, 1, 2, 4):
        add(store, count)
        assert read(directory) == by_their_files(directory)
    assert believed(directory) == 9
    again = LoopStore.open(directory)
    add(again, 2)
    number = again.begin_attempt(1, 0, "n", AT).start.number
    assert read(directory) == by_their_files(directory)
    assert believed(directory) == 9, "one that has not ended is not settled"
    again.end_attempt(number, end())
    assert believed(directory) == 12
    assert read(directory) == by_their_files(directory)
    assert told(again) == []


def test_files_that_changed_lately_are_not_taken_in(store: LoopStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(settled, "_SETTLED_NS", 60 * 10**9)
    add(store, 9)
    assert not store.settled.path.exists()


def test_it_is_made_anew_when_it_is_missing(store: LoopStore):
    directory = store.paths.directory
    add(store, 9)
    store.settled.path.unlink()
    assert read(directory) == by_their_files(directory)
    for _ in range(5):
        add(LoopStore.open(directory), 1)
    assert believed(directory) >= 12
    assert read(directory) == by_their_files(directory)


@pytest.mark.parametrize("part", ["start", "end"])
def test_an_attempt_that_was_altered_is_read_from_its_own_file(store: LoopStore, part: str):
    directory = store.paths.directory
    add(store, 9)
    path = directory / "attempts" / f"000005.{part}.json"
    data = json.loads(path.read_bytes())
    data["nonce" if part == "start" else "detail"] = "altered, and longer than it was before"
    path.chmod(0o644)
    path.write_text(json.dumps(data))
    with pytest.raises(ForgedError):
        read(directory)
    unmarked(directory)
    assert believed(directory) == 6
    assert read(directory) == by_their_files(directory)
    assert "altered" in str(read(directory)[4])


def test_a_copy_of_the_loop_reads_the_files(store: LoopStore, fresh_place: Path):
    add(store, 9)
    copy = fresh_place / "copy"
    shutil.copytree(store.paths.directory, copy)
    assert believed(copy) == 0, "other files, which somebody may have changed on the way"
    assert read(copy) == by_their_files(copy)
    for _ in range(4):
        add(LoopStore.open(copy), 1)
    assert believed(copy) == 12


def test_whatever_is_altered_in_it(store: LoopStore):
    directory, path = store.paths.directory, store.settled.path
    add(store, 9)
    expected, whole = by_their_files(directory), path.read_bytes()
    lines = whole.splitlines(keepends=True)
    chance = random.Random(7)
    altered = [b"", b"\n", lines[0] * 2, lines[1] + lines[0], whole[:-1], whole[: len(lines[0]) + 40], b"\x00" * 500, b"7 {}\n"]
    for _ in range(60):
        place = chance.randrange(len(whole))
        altered.append(whole[:place] + bytes([whole[place] ^ (1 << chance.randrange(8))]) + whole[place + 1 :])
        altered.append(whole[:place] + whole[chance.randrange(place, len(whole)) :])
    for content in altered:
        COUNTS["alterations"] += 1
        path.write_bytes(content)
        assert read(directory) == expected
    assert [note for note in verify(store).notes if path.name in note], "the last of them is a note"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("pid", "7"),
        ("outcome", "splendid"),
        ("seconds", float("inf")),
        ("failure", 3),
        ("purpose", "theft"),
        ("number", 7),
        ("printed", 1),
    ],
)
def test_values_that_no_attempt_has_are_not_believed_though_the_digest_holds(store: LoopStore, column: str, value: object):
    add(store, 3)
    path = store.settled.path
    document = json.loads(path.read_bytes().partition(b" ")[2])
    for part in ("start", "end"):
        if column in document[part]:
            document[part][column][1] = value
    forge(store, document)
    assert believed(store.paths.directory) == 0
    assert read(store.paths.directory) == by_their_files(store.paths.directory)


def told(store: LoopStore) -> list[str]:
    return [problem.what for problem in verify(store).problems if problem.path == store.settled.path.name]


def forge(store: LoopStore, document: object) -> None:
    path, text = store.settled.path, json.dumps(document).encode()
    path.write_bytes(digest(text, place_of(store.nonce, path)).encode() + b" " + text + b"\n")


def test_verify_finds_what_would_be_believed_and_is_wrong(store: LoopStore):
    add(store, 3)
    document = json.loads(store.settled.path.read_bytes().partition(b" ")[2])
    document["end"]["known_cost_usd"][2] = 0.0
    forge(store, document)
    assert told(store) == ["says something else of attempt 3 than its own files"]


def test_what_somebody_else_wrote_is_not_believed(store: LoopStore):
    add(store, 4)
    path = store.settled.path
    text = path.read_bytes().partition(b" ")[2][:-1].replace(b"null", b"0.00")
    path.write_bytes(hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n")
    assert believed(store.paths.directory) == 0
    path.unlink()
    path.mkdir()
    assert believed(store.paths.directory) == 0
    assert read(store.paths.directory) == by_their_files(store.paths.directory)


def test_a_file_of_another_process_is_no_fault_of_the_generator(store: LoopStore):
    add(store, 3)
    other = LoopStore.open(store.paths.directory)
    assert len(other.attempts()) == 3
    add(store, 3)
    watch = StoreWatch(other)
    with other.lock():
        watch.arm()
        assert watch.look() == ()


@pytest.mark.parametrize("way", ["killed before", "killed after", "error", "answer lost"])
def test_killed_or_refused_at_any_change_of_the_disk(fresh_place: Path, way: Way):
    put(fresh_place / "work", {"a.txt": b"1"})

    def fresh(name: str) -> LoopStore:
        shutil.rmtree(fresh_place / "copy", ignore_errors=True)
        return new_store(f"copy/{name}", fresh_place / "work")

    with not_waiting():
        first = fresh("loop")
        total = changing_calls(lambda: add(first, 7))
        for at in range(1, total + 1, 2):
            store = fresh("loop")
            directory = store.paths.directory
            try:
                with dying(at, way, errno.ENOSPC):
                    add(store, 7)
            except (Killed, StoreWriteError, UsageError):
                COUNTS["kills"] += 1
            assert read(directory) == by_their_files(directory), at
            again = LoopStore.open(directory)
            for attempt in again.attempts():
                if attempt.end is None:
                    again.end_attempt(attempt.start.number, lost())
            add(again, 7)
            assert read(directory) == by_their_files(directory), at
            assert believed(directory) >= 6, at


def lost() -> AttemptEnd:
    return AttemptEnd(outcome="lost", seconds=None, ended_at=AT)


def test_the_stamp_of_a_file_tells_of_a_change(store: LoopStore):
    """A file that was put back with its old time stamps has another change time, and a replaced one another inode."""
    add(store, 3)
    path = store.paths.attempt_end(2)
    before, data = path.stat(), path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(data.replace(b"10:00", b"11:00"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    while path.stat().st_ctime_ns == before.st_ctime_ns:
        time.sleep(0.001)
        path.chmod(0o644)
    assert believed(store.paths.directory) == 0


def test_counts_are_printed(capsys: pytest.CaptureFixture[str]):
    with capsys.disabled():
        print(
            f"\nsettled attempts: {COUNTS['compared']} comparisons, {COUNTS['kills']} kills, {COUNTS['alterations']} alterations"
        )
