"""A real HTTP server on loopback that answers as language models do, well or badly, in both providers' formats."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

GOOD = json.dumps({"reasoning": "clear", "strengths": ["short"], "weaknesses": ["vague"], "gestalt": 4})


@dataclass
class Answer:
    """What the server sends. ``text`` goes into the provider's format; ``body`` is sent as it is."""

    text: str | None = GOOD
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    delay: float = 0.0
    refusal: str | None = None
    finish: str = "stop"
    usage: dict[str, Any] | None = field(default_factory=lambda: {"in": 100, "out": 20})


@dataclass
class Seen:
    """One request: its path, headers and JSON."""

    path: str
    headers: dict[str, str]
    json: dict[str, Any]


class JudgeServer:
    """Listens on a free port while used as a context manager; ``behave(request, number)`` decides about each answer."""

    def __init__(self, behave: Callable[[Seen, int], Answer] = lambda _seen, _number: Answer()) -> None:
        self.behave = behave
        self.seen: list[Seen] = []
        self.in_flight = 0
        self.in_flight_most = 0
        self._ready = threading.Event()
        self.port = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._loop.close()

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        self._open: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while True:
                    await self._one(reader, writer)
        finally:
            self._open.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        seen = Seen(head[0].split()[1], headers, json.loads(body or b"{}"))
        self.seen.append(seen)
        self.in_flight += 1
        self.in_flight_most = max(self.in_flight_most, self.in_flight)
        try:
            answer = self.behave(seen, len(self.seen))
            await asyncio.sleep(answer.delay)
        finally:
            self.in_flight -= 1
        payload = (answer.body if answer.body is not None else json.dumps(_formatted(seen, answer))).encode()
        kind = answer.headers.get("content-type", "application/json")
        lines = [f"HTTP/1.1 {answer.status} X", f"content-length: {len(payload)}", f"content-type: {kind}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items() if name != "content-type"]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + payload)
        await writer.drain()


def _formatted(seen: Seen, answer: Answer) -> dict[str, Any]:
    usage = answer.usage
    if answer.status >= 400:
        return {"error": {"message": answer.text, "type": "error"}}
    if seen.path.endswith("/messages"):
        content = [] if answer.text is None else [{"type": "text", "text": answer.text}]
        return {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": seen.json["model"],
            "content": content,
            "stop_reason": "refusal" if answer.refusal else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": usage["in"], "output_tokens": usage["out"]} if usage else None,
        }
    message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    found: dict[str, Any] = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": seen.json["model"],
        "choices": [{"index": 0, "finish_reason": answer.finish, "message": message}],
    }
    if usage:
        total = usage["in"] + usage["out"]
        found["usage"] = {"prompt_tokens": usage["in"], "completion_tokens": usage["out"], "total_tokens": total}
        if "cost" in usage:
            found["usage"]["cost"] = usage["cost"]
    return found


@contextlib.contextmanager
def serving(*answers: Answer) -> Iterator[JudgeServer]:
    """A server that gives ``answers`` one after the other, and the last one for ever."""
    with JudgeServer(lambda _seen, number: answers[min(number, len(answers)) - 1]) as server:
        yield server
