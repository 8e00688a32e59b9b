"""events.jsonl: appended, numbered on through every run, mended after a cut, bounded, and never a reason to end a loop."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path

import pytest

from jumar.loop.events.events import Notice
from jumar.loop.events.log import EventLog, EventTail, rotated
from jumar.testing import ManualClock


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def told(path: Path, *messages: str, limit: int = 1 << 20) -> EventLog:
    log = EventLog(path, clock=ManualClock(), limit=limit)
    for message in messages:
        log.hear(Notice(message=message))
    log.close()
    return log


def test_a_line_has_its_number_times_run_and_event(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = told(path, "one")
    expected = {"seq": 1, "at": "2026-01-01T00:00:00.000Z", "monotonic": 0.0, "run": log.run, "type": "notice", "message": "one"}
    assert [expected] == lines(path)


def test_the_next_run_goes_on_counting_under_a_name_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    first, second = told(path, "one", "two"), told(path, "three")
    assert [1, 2, 3] == [line["seq"] for line in lines(path)]
    assert [first.run, first.run, second.run] == [line["run"] for line in lines(path)]


@pytest.mark.parametrize("cut", [1, 2, 30, -1])
def test_a_torn_last_line_is_passed_over_and_mended_by_the_next_run(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "events.jsonl"
    told(path, "one", "two")
    whole = path.read_bytes()
    begin = whole.index(b"\n") + 1
    path.write_bytes(whole[: begin + cut] if cut > 0 else whole[:-1])
    assert ["one"] == [event["message"] for event in EventTail(path).news()]
    told(path, "again")
    assert [(1, "one"), (2, "again")] == [(line["seq"], line["message"]) for line in lines(path)]


def test_a_file_that_was_linked_there_is_a_persons_and_stays_as_it_is(tmp_path: Path) -> None:
    path, mine = tmp_path / "events.jsonl", tmp_path / "notes.txt"
    mine.write_text("mine, and no line feed")
    path.hardlink_to(mine)
    told(path, "one")
    assert mine.read_text() == "mine, and no line feed"
    assert ["one"] == [line["message"] for line in lines(path)]


def test_a_file_of_zeros_and_rubbish_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\0" * 5000 + b'\nnull\n[1]\n{"seq": "x", "type": "notice"}\n\xff\xfe\n')
    told(path, "one")
    assert [(1, "one")] == [(event["seq"], event["message"]) for event in EventTail(path).news()]


def test_it_rotates_and_the_numbers_go_on_over_it(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    told(path, *(f"message {number}" for number in range(400)), limit=4000)
    sizes = [path.stat().st_size, rotated(path).stat().st_size]
    assert 4200 > max(sizes), sizes
    numbers = [event["seq"] for event in EventTail(path).news()]
    assert list(range(numbers[0], 401)) == numbers
    older = EventTail(rotated(path)).news()[-1]["seq"]
    path.unlink()
    after = told(path, "next")
    assert [older + 1] == [event["seq"] for event in EventTail(path).news() if event["run"] == after.run]


def test_only_newer_events_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    told(path, "one", "two")
    tail = EventTail(path)
    assert 2 == len(tail.news())
    told(path, "three")
    assert ["three"] == [event["message"] for event in tail.news()]
    assert [] == EventTail(tmp_path / "nothing.jsonl").news()


def test_a_disk_that_refuses_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told(tmp_path / "missing" / "events.jsonl", "one")
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.hear(Notice(message="one"))
    write = os.write

    def full(fd: int, data: bytes) -> int:
        if b'"two"' in data:
            return write(fd, data[:10])
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        log.hear(Notice(message="two"))
        log.hear(Notice(message="three"))
    log.close()
    told(path, "four")
    assert ["one", "four"] == [line["message"] for line in lines(path)]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "events.jsonl").symlink_to(tmp_path / "mine")
    told(tmp_path / "events.jsonl", "one")
    assert "mine" == (tmp_path / "mine").read_text()


def test_a_flood_in_one_event_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    told(path, "x" * 5_000_000, "two")
    assert 70_000 > path.stat().st_size
    assert ["x" * 500 + "…", "two"] == [line["message"] for line in lines(path)]


def test_an_event_costs_microseconds(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    began = time.perf_counter()
    for number in range(5000):
        log.hear(Notice(message=f"message {number}"))
    print(f"one event: {(time.perf_counter() - began) / 5000 * 1e6:.1f} µs")
    log.close()
    assert 5000 == len(lines(tmp_path / "events.jsonl"))
