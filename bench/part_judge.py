"""The expensive judge: 64 calls in flight against a judge that takes 200 ms, in process and behind a real server on loopback."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from judge_server import Answer, JudgeServer

from jumar.judging import JudgeRubric, JudgeSettings, ReplyCache, judge_items
from jumar.judging.items.item import Item
from jumar.judging.judges.mock import MockJudge
from jumar.model.protocols import Judge

if TYPE_CHECKING:
    from timing import Row

LATENCY, CONCURRENCY, ITEMS = 0.2, 64, 1920
RUBRIC = JudgeRubric(task="Judge.", criteria=("It is right.",))


def measure(directory: Path) -> Iterator[Row]:
    ideal = ITEMS / CONCURRENCY * LATENCY
    yield _row("in process", _seconds(MockJudge(latency=LATENCY)), ideal)
    yield _row("in process, replies kept", _seconds(MockJudge(latency=LATENCY), ReplyCache(directory / "replies")), ideal)
    try:
        from jumar.judging.judges.openai import OpenAIJudge
    except ImportError:
        return
    with JudgeServer(lambda _seen, _number: Answer(delay=LATENCY)) as server:
        # server and client share this process, and its one interpreter: what is measured is both of them
        seconds = _seconds(OpenAIJudge("m", base_url=f"{server.base}/v1", api_key="none"))
    yield _row("the openai client, server in the same process", seconds, ideal, "")


def _row(how: str, seconds: float, ideal: float, aim: str = "≥ 90 %") -> Row:
    return (
        f"{ITEMS:,} items, {CONCURRENCY} at once, {LATENCY * 1000:.0f} ms a call, {how}",
        f"{seconds:.2f} s",
        f"ideal {ideal:.2f} s: {ideal / seconds:.1%} of its throughput",
        aim,
    )


def _seconds(judge: Judge, cache: ReplyCache | None = None) -> float:
    items = [Item(f"i{number}", f"text {number}: {'word ' * 150}") for number in range(ITEMS)]

    async def work() -> float:
        began = time.perf_counter()
        done = await judge_items(items, judge, RUBRIC, JudgeSettings(concurrency=CONCURRENCY), cache=cache)
        seconds = time.perf_counter() - began
        await judge.aclose()
        if done.scored != ITEMS:
            raise RuntimeError(f"{done.scored} of {ITEMS} were scored")
        return seconds

    return asyncio.run(work())
