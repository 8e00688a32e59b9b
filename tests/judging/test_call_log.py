"""The file of calls: what was begun is never forgotten, whatever ends the process or damages the file."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.core.files import write_all
from jumar.errors import FormatTooNewError, LockedError, StoreWriteError
from jumar.judging import CallLog, Item, JudgeSettings, builtin_rubric, judge_items
from jumar.model.protocols import JudgeReply, JudgeRequest
from jumar.model.records import Usage

CALLS = "jumar.judging.asking.call_log"


def figures(calls: CallLog) -> tuple[int, int, float, float, float | None]:
    return calls.calls, calls.lost, calls.known_usd, calls.assumed_usd, calls.total_usd


def a_few(path: Path) -> None:
    """Three calls: one for 2 cents, one that was free, one that is in flight when the process dies."""
    with CallLog(path) as calls:
        calls.end(calls.begin(), 0.02)
        calls.end(calls.begin(), 0.0, "unavailable")
        calls.begin()


def test_a_call_in_flight_is_charged_what_the_dearest_took(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    a_few(path)
    with CallLog(path) as calls:
        assert (3, 1, 0.02, 0.02, 0.04) == figures(calls)
        calls.end(calls.begin(), 0.05)
        assert (4, 1, 0.07, 0.05, pytest.approx(0.12)) == figures(calls)
    with CallLog(path, reserve=0.5) as calls:
        assert (4, 1, 0.07, 0.5, pytest.approx(0.57)) == figures(calls)


def test_what_nobody_knows_is_not_nothing(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with CallLog(path) as calls:
        calls.begin()
    with CallLog(path) as calls:
        assert (1, 1, 0.0, 0.0, None) == figures(calls)
        assert 1 == calls.uncharged
    with CallLog(path, reserve=0.1) as calls:
        assert (0.1, 0) == (calls.total_usd, calls.uncharged)
        calls.end(calls.begin(), None)
        assert (None, pytest.approx(0.2)) == (calls.total_usd, calls.assumed_usd)


def test_each_purpose_counts_by_itself_until_it_is_done(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    for purpose in ("learn", "prove", "learn"):
        with CallLog(path, purpose) as calls:
            calls.end(calls.begin(), 0.01)
            calls.begin()
    with CallLog(path, "prove") as calls:
        assert (2, 1, 0.01) == figures(calls)[:3]
        calls.done()
        assert 0 == calls.calls
        calls.done()
    with CallLog(path, "prove") as proving:
        assert (0, 0, 0.0, 0.0, 0.0) == figures(proving)
    with CallLog(path, "learn") as learning:
        assert (4, 2, 0.02) == figures(learning)[:3]


def test_cut_off_anywhere_no_call_is_forgotten_and_the_next_line_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    a_few(path)
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        begun = sum("cost_usd" not in line and '"call"' in line for line in whole[:cut].decode().split("\n")[:-1])
        with CallLog(path) as calls:
            told = calls.calls
            assert begun <= told <= begun + 1
            calls.end(calls.begin(), 0.01)
        with CallLog(path) as calls:
            assert told + 1 == calls.calls
            assert 0.01 <= calls.known_usd
    print(f"cuts: {len(whole) + 1}")


@pytest.mark.parametrize(
    "line", ["gar", "{}", "[]", "null", '{"call": 2}', '{"call": 7, "cost_usd": 1, "was": "ok"}', '{"call": 3, "cost_usd": -1}']
)
def test_a_damaged_line_is_charged_and_named(line: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "calls.jsonl"
    with CallLog(path) as calls:
        calls.end(calls.begin(), 0.02)
        calls.begin()
    path.write_text(path.read_text() + line + "\n")
    with caplog.at_level(logging.WARNING), CallLog(path) as calls:
        assert (3, 2, 0.02, 0.04) == figures(calls)[:4]
    assert [f"jumar.calls_damaged: {path}:5: "] == [
        message[: len(f"jumar.calls_damaged: {path}:5: ")] for message in caplog.messages
    ]


@pytest.mark.parametrize(
    "line", ['{"done": "2026-01-01T00:00:00+00:00"}', '{"call": 2, "cost_usd": 0, "was": "ok"}', "again", "other"]
)
def test_what_another_program_writes_takes_nothing_off_the_limit(line: str, tmp_path: Path) -> None:
    path, other = tmp_path / "calls.jsonl", tmp_path / "other.jsonl"
    for place in (path, other):
        with CallLog(place) as calls:
            calls.end(calls.begin(), 0.01)
            calls.done()
    with CallLog(path) as calls:
        calls.end(calls.begin(), 0.02)
        calls.begin()
    earlier = {"again": path, "other": other}.get(line)
    forged = line.encode() if earlier is None else earlier.read_bytes().split(b"\n")[3]
    assert forged.startswith((b'{"done"', b'{"call": 2'))
    path.write_bytes(path.read_bytes() + forged + b"\n")
    with CallLog(path) as calls:
        assert (3, 2, 0.02) == figures(calls)[:3]


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text('{"format": 2, "for": "evaluate"}\n')
    with pytest.raises(FormatTooNewError):
        CallLog(path)
    path.write_text("")
    CallLog(path).close()  # it was let go of


@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: os.symlink("elsewhere", path)], ids=["fifo", "folder", "link"]
)
def test_what_is_no_file_is_neither_read_nor_waited_for(make: Callable[[Path], object], tmp_path: Path) -> None:
    make(tmp_path / "calls.jsonl")
    with pytest.raises(StoreWriteError, match=r"could not open .*calls\.jsonl"):
        CallLog(tmp_path / "calls.jsonl")
    assert not (tmp_path / "elsewhere").exists()


def test_one_process_at_a_time_counts(tmp_path: Path) -> None:
    with CallLog(tmp_path / "calls.jsonl"), pytest.raises(LockedError, match=r"calls\.jsonl: another process"):
        CallLog(tmp_path / "calls.jsonl")


def test_a_full_disk_keeps_a_call_from_being_made_and_breaks_no_line_after_it(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"

    def half(fd: int, data: bytes) -> None:
        write_all(fd, data[: len(data) - 5])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with CallLog(path) as calls:
        calls.end(calls.begin(), 0.02)
        with mock.patch(f"{CALLS}.write_all", half), pytest.raises(StoreWriteError, match="the disk is full"):
            calls.begin()
        calls.end(calls.begin(), 0.03)
        assert (2, 0, 0.05) == figures(calls)[:3]
    with CallLog(path) as calls:
        assert (3, 1, 0.05) == figures(calls)[:3]  # what was cut off may have been one


STEPS = st.lists(
    st.one_of(
        st.just(("begin", None)),
        st.tuples(st.just("end"), st.sampled_from([None, 0.0, 0.01, 0.25])),
        st.sampled_from([("killed", None), ("done", None)]),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_it_is_what_a_plain_list_of_calls_says(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, float | None]]
) -> None:
    path = tmp_path_factory.mktemp("calls") / "calls.jsonl"
    calls, known, flying = CallLog(path), list[tuple[str, float | None]](), list[int]()
    for what, cost in steps:
        if what == "begin":
            flying.append(calls.begin())
        elif what == "end" and flying:
            calls.end(flying.pop(), cost)
            known.append(("ended", cost))
        elif what == "done" and not flying:
            calls.done()
            known = []
        elif what == "killed":
            calls.close()
            known += [("lost", None)] * len(flying)
            flying, calls = [], CallLog(path)
    costs = [cost for _, cost in known if cost is not None]
    lost = sum(how == "lost" for how, _ in known)
    unknown = len(known) - len(costs) - lost
    dearest = max(costs, default=None)
    assert len(known) + len(flying) == calls.calls
    assert (lost, len(flying), pytest.approx(sum(costs)), dearest) == (
        calls.lost,
        calls.in_flight,
        calls.known_usd,
        calls.largest,
    )
    assert (lost + unknown) * (dearest or 0.0) == pytest.approx(calls.assumed_usd)
    assert (calls.total_usd is None) == bool(unknown or (lost and dearest is None))
    calls.close()


class Looking:
    """A judge for a cent that looks around before it answers."""

    identity = "looking"

    def __init__(self, look: Callable[[JudgeRequest], object]) -> None:
        self._look = look

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self._look(request)
        await asyncio.sleep(0)
        return JudgeReply(text=json.dumps({"gestalt": 3}), usage=Usage(token_cost_usd=0.01))

    async def aclose(self) -> None: ...


def test_a_call_is_on_the_disk_before_it_is_made(tmp_path: Path) -> None:
    path, on_disk, seen = tmp_path / "calls.jsonl", b"", 0

    reading = threading.Lock()  # syncs of several calls overlap: an earlier reading must not replace a later one

    def synced(_: int) -> None:
        nonlocal on_disk
        with reading:
            on_disk = path.read_bytes()

    def look(_: JudgeRequest) -> None:
        nonlocal seen
        seen += 1
        assert on_disk.count(b'{"call": %d, "line"' % seen) == 1

    async def run() -> None:
        with CallLog(path) as calls:
            items = [Item(f"i{number}", f"text {number}") for number in range(30)]
            await judge_items(items, Looking(look), builtin_rubric("text").judge, JudgeSettings(concurrency=5), calls=calls)

    with mock.patch(f"{CALLS}.os.fsync", synced):
        asyncio.run(run())
    assert 30 == seen


def test_thousands_of_calls_from_many_workers_are_all_there(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"

    async def run() -> None:
        with CallLog(path) as calls:
            items = [Item(f"i{number}", f"text {number}") for number in range(3_000)]
            settings = JudgeSettings(concurrency=64)
            found = await judge_items(items, Looking(lambda _: None), builtin_rubric("text").judge, settings, calls=calls)
            assert (3_000, 0, pytest.approx(30.0)) == (found.calls, found.lost_calls, found.cost_usd)

    asyncio.run(run())
    assert 1 + 2 * 3_000 == path.read_bytes().count(b"\n")
    with CallLog(path) as calls:
        assert (3_000, 0, pytest.approx(30.0)) == figures(calls)[:3]
