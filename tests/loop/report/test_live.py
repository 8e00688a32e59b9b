"""The frame of `jumar watch`: figures that are right, lines that fit, whatever is unknown, odd, long or large."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.lock import LoopLock, holder_of
from jumar.loop.events.events import Notice
from jumar.loop.events.log import EventLog, EventTail, rotated
from jumar.loop.report.frame import chart, frame_lines, glyphs
from jumar.loop.report.observer import LoopObserver
from jumar.loop.report.status import LoopStatus, Running, Timeline
from jumar.loop.store.loop_store import LoopStore
from jumar.model import CheckResult, IterationRecord, IterationView
from jumar.model.attempts import Spend
from jumar.model.budget.pricing import Budget


def views(scores: Sequence[float | None]) -> tuple[IterationView, ...]:
    return tuple(
        IterationView(number=number, score=score, status="ok" if score is not None else "generator_failed")
        for number, score in enumerate(scores)
    )


def record(number: int, score: float | None, **fields: object) -> IterationRecord:
    plain = IterationRecord(
        iteration_number=number,
        timestamp="2026-01-01T00:00:00Z",
        quality_score=score,
        quality_delta=None,
        dimensions={"quality": (score or 0) / 100, "a very long name of a dimension": 0.004},
        tokens_used=None,
        token_cost_usd=None,
        execution_time_ms=1500.0,
        verification_status="passed",
        checks=(CheckResult(name="tests", passed=True, exit_code=0, seconds=0.1, output_tail=""),),
    )
    return replace(plain, **fields)


def text_of(view: LoopStatus, **options: object) -> list[str]:
    lines = frame_lines(view, **options)  # pyright: ignore[reportArgumentType]
    return ["".join(text for text, _ in line) for line in lines]


VIEW = LoopStatus(
    loop_id="t",
    state="running",
    detail="process 7",
    objective="first line\nsecond",
    views=views([50.0, 60.0, None, 80.0, 70.0]),
    rows=(record(3, 80.0), record(4, 70.0, status="scorer_broken", status_reason="boom\x1b[2J")),
    best=record(3, 80.0),
    last=record(4, 70.0),
    running=((Running(phase="generate", iteration=5, candidate=None, since="2026-01-01T00:00:00Z"), 12.0),),
    spend=Spend(
        iterations=5, seconds=91.0, tokens=None, cost_usd=None, known_cost_usd=1.25, assumed_cost_usd=0.75, unknown_costs=2
    ),
    budget=Budget(max_cost_usd=10.0, max_seconds=3600.0),
    passes=20,
    reserved_cost_usd=0.25,
    phase_seconds={"generate": 75.0, "verify": 5.0, "score": 10.0, "wait": 10.0},
    failures={"rate_limited": 2},
    log_name="generator.log",
    log=("working", "still \\x1b[31m working"),
    problems=("a file\x07 asks",),
)


def test_a_frame_says_what_is_so() -> None:
    shown = "\n".join(text_of(VIEW))
    for expected in (
        "t   running: process 7",
        "now       generating iteration 5 for 12s",
        "best      ◆ 80 (iteration 3)  +30 to the start",
        "objective first line",
        "iterations ██░░░░░░░░ 4 of 20",
        "time       █░░░░░░░░░ 1m 31s of 1h 00m",
        "cost       ██░░░░░░░░ $1.75 of $10.00\n             ($0.25 reserved, $0.50 estimated, 2 not reported)",
        "tokens     not reported",
        "generate 1m 15s 75% · verify 5.0s 5% · score 10s 10% · wait 10s 10%",
        "2 rate limited",
        "✓ tests",
        r"scorer broken: boom\x1b[2J",
        r"a file\x07 asks",
    ):
        assert expected in shown
    assert "\x1b" not in shown
    assert "second" not in shown


def test_a_new_loop_has_a_frame_too() -> None:
    assert ["x   new", "", "budget", "  iterations 0", "  time       0.0s", "  tokens     0", "  cost       $0.00"] == text_of(
        LoopStatus(loop_id="x", state="new")
    )


@pytest.mark.parametrize("height", [5, 10, 18, 24, 30, 50])
@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_a_frame_fits(width: int, height: int) -> None:
    lines = text_of(VIEW, width=width, height=height)
    assert height >= len(lines)
    assert width >= max(len(line) for line in lines)
    assert "running" in lines[0]
    if height >= 24 and width >= 80:
        assert any("$1.75" in line for line in lines)


def test_ascii_is_ascii() -> None:
    shown = "\n".join(text_of(VIEW, ascii_only=True))
    assert shown.isascii()
    assert "* 80 (iteration 3)" in shown
    assert " +/- " in shown
    rich = text_of(VIEW)
    plain = text_of(VIEW, ascii_only=True)
    head = next(index for index, line in enumerate(rich) if "Δ" in line)
    assert rich[head].index("checks") == plain[head].index("checks"), "the columns stay where they are"


@given(
    scores=st.lists(st.one_of(st.none(), st.floats(0, 100)), min_size=1, max_size=300),
    width=st.integers(40, 160),
    height=st.integers(3, 12),
    plain=st.booleans(),
)
def test_any_scores_are_drawn_within_the_frame(scores: list[float | None], width: int, height: int, plain: bool) -> None:
    lines = chart(views(scores), width=width, height=height, signs=glyphs(ascii_only=plain))
    texts = ["".join(text for text, _ in line) for line in lines]
    assert width >= max(len(text) for text in texts)
    if any(score is not None for score in scores):
        assert height + 2 == len(texts)
        assert any(glyphs(ascii_only=plain).best in text for text in texts)


def test_the_stair_never_goes_down_and_stands_at_the_best() -> None:
    lines = chart(views([40.0, 20.0, 60.0, 55.0, 90.0, 30.0]), width=13, height=7, signs=glyphs(ascii_only=False))
    area = [[text for text, _ in line] for line in lines]
    drawn = ["".join(row)[7:].ljust(6) for row in area[:7]]
    heights = [sum(drawn[row][column] != " " for row in range(7)) for column in range(6)]
    assert sorted(heights) == heights
    assert [3, 3, 5, 5, 7, 7] == heights


def event(seq: int, kind: str, monotonic: float, run: str = "a", **fields: object) -> dict[str, object]:
    return {"seq": seq, "type": kind, "monotonic": monotonic, "run": run, "at": "2026-01-01T00:00:00Z", **fields}


def test_the_time_goes_to_the_phases() -> None:
    timeline = Timeline()
    timeline.add(
        [
            event(1, "loop_started", 0.0, rules={"max_iterations": 3}),
            event(2, "phase_started", 1.0, iteration=1, phase="generate"),
            event(3, "notice", 2.0, message="look"),
            event(4, "attempt_ended", 5.0, iteration=1),
            event(5, "phase_started", 6.0, iteration=1, phase="verify"),
            event(6, "phase_started", 6.5, iteration=1, phase="score"),
            event(7, "iteration_recorded", 8.5, iteration=1),
            event(8, "waiting", 9.0, why="rate_limited", seconds=30.0),
            event(9, "phase_started", 19.0, iteration=2, phase="generate"),
            event(10, "phase_started", 20.0, iteration=3, phase="generate", candidate=2),
        ]
    )
    assert {"generate": 4.0, "verify": 0.5, "score": 2.0, "wait": 10.0} == timeline.seconds
    assert [(2, None), (3, 2)] == [(one.iteration, one.candidate) for one in timeline.running()]
    timeline.add(
        [event(11, "loop_started", 3.0, run="b"), event(12, "phase_started", 4.0, run="b", iteration=2, phase="generate")]
    )
    assert {"generate": 4.0, "verify": 0.5, "score": 2.0, "wait": 10.0} == timeline.seconds, "two runs' clocks don't compare"
    timeline.add([event(13, "loop_ended", 9.0, run="b", outcome={"exit_code": 0})])
    assert () == timeline.running()


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["phase_started", "waiting", "iteration_recorded", "loop_started", "notice", "new"])},
            optional={
                name: st.one_of(st.none(), st.integers(), st.text(max_size=3), st.floats(allow_nan=False), st.lists(st.none()))
                for name in (
                    "seq",
                    "run",
                    "at",
                    "monotonic",
                    "iteration",
                    "phase",
                    "candidate",
                    "rules",
                    "seconds",
                    "why",
                    "message",
                )
            },
        )
    )
)
def test_odd_events_do_no_harm(events: list[dict[str, object]]) -> None:
    timeline = Timeline()
    timeline.add(events)
    assert all(seconds >= 0 for seconds in timeline.seconds.values())


def test_the_tail_follows_rotation_mending_and_deletion(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = EventTail(path)
    seen: list[int] = []
    assert [] == tail.news()
    for run in range(6):
        log = EventLog(path, limit=3000)
        for _ in range(40):
            log.hear(Notice(message="x" * 40))
            if run % 2:
                seen += [one["seq"] for one in tail.news()]
        log.close()
        seen += [one["seq"] for one in tail.news()] if run % 2 else []
        with path.open("ab") as stream:
            stream.write(b'{"seq": 9999, "type": "no')
        seen += [one["seq"] for one in tail.news()] if run % 2 else []
    assert rotated(path).exists()
    assert sorted(set(seen)) == seen
    assert 240 == seen[-1]
    path.unlink()
    assert [] == tail.news()
    EventLog(path).hear(Notice(message="again"))
    assert 1 == len(tail.news())


def test_the_holder_is_told_by_number_and_start(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert None is holder_of(path)
    with LoopLock(path):
        holder = holder_of(path)
        assert holder is not None
        assert (os.getpid(), True, True) == (holder.pid, holder.held, holder.alive)
    holder = holder_of(path)
    assert holder is not None
    assert (False, True) == (holder.held, holder.alive)
    code = f"import sys; from jumar.core.lock import LoopLock; LoopLock({str(path)!r}).acquire()"
    code = code.replace(f"LoopLock({str(path)!r})", f"LoopLock(__import__('pathlib').Path({str(path)!r}))")
    subprocess.run([sys.executable, "-c", code], check=True)
    holder = holder_of(path)
    assert holder is not None
    assert (False, False) == (holder.held, holder.alive)
    text = path.read_text()
    path.write_text(text.replace(str(holder.pid), str(os.getpid())))
    holder = holder_of(path)
    assert holder is not None
    assert (os.getpid(), False) == (holder.pid, holder.alive), "this number belongs to somebody else now"


def test_a_wait_is_counted_from_its_event(tmp_path: Path) -> None:
    store = LoopStore.create(tmp_path / "loops" / "t", "t", {"run": {}}, workdir=tmp_path, created_at="2026-01-01T00:00:00Z")
    line = (
        b'{"seq":1,"at":"2026-01-01T00:00:00Z","monotonic":5.0,"run":"a","type":"waiting","why":"rate_limited","seconds":60.0,'
        b'"iteration":2,"detail":"as told"}\n'
    )
    store.paths.events.write_bytes(line)
    now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=7)
    with store.lock():
        status = LoopObserver(store.paths.directory, now=lambda: now).look()
    assert ("waiting", "wait", 2, 7.0) == tuple(status.to_json()[key] for key in ("state", "phase", "iteration", "seconds"))
    assert "now       waiting iteration 2 for 7.0s of 1m 00s: rate limited as told" in text_of(status)


def test_a_frame_of_ten_thousand_iterations_is_cheap() -> None:
    many = views([50 + number % 41 for number in range(10_000)])
    view = replace(VIEW, views=many)
    began = time.perf_counter()
    frames = [frame_lines(view, width=120, height=40) for _ in range(5)]
    print(f"a frame of 10,000 iterations: {(time.perf_counter() - began) / 5 * 1e3:.1f} ms")
    assert 40 >= len(frames[0])
