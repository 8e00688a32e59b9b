"""A scripted model behind the chat completions of an OpenAI-compatible server on loopback: what a coding agent talks to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judge_server import Answer, JudgeServer, Seen


@dataclass(frozen=True)
class Reply:
    """What the model says to one request, with what that used. ``limited`` is 429 with seconds to wait instead."""

    text: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    limited: int | None = None

    def cost(self, per_prompt: float, per_completion: float) -> float:
        """Return dollars at these prices for one token."""
        return self.prompt_tokens * per_prompt + self.completion_tokens * per_completion


class ModelServer(JudgeServer):
    """Gives ``replies`` one after the other, streamed where the request asks for it; anything after them is a server error."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        super().__init__(self._reply)
        self.replies = tuple(replies)

    def asked(self, number: int) -> str:
        """Return all that request ``number`` said, from 0."""
        return "\n".join(str(message["content"]) for message in self.seen[number].json["messages"])

    def _reply(self, seen: Seen, number: int) -> Answer:
        if number > len(self.replies):
            return Answer(status=500, text="the script is at its end")
        reply = self.replies[number - 1]
        if reply.limited is not None:
            return Answer(status=429, text="Rate limit reached for requests", headers={"retry-after": str(reply.limited)})
        usage = {"in": reply.prompt_tokens, "out": reply.completion_tokens}
        if not seen.json.get("stream"):
            return Answer(text=reply.text, usage=usage)
        return Answer(body=streamed(reply, str(seen.json["model"])), headers={"content-type": "text/event-stream"})


def streamed(reply: Reply, model: str) -> str:
    """Return the reply as server-sent events: its text in lines, why it ended, then what it used."""
    total = reply.prompt_tokens + reply.completion_tokens
    usage = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens, "total_tokens": total}
    choices: list[list[dict[str, Any]]] = [
        [{"index": 0, "delta": {"content": line}, "finish_reason": None}] for line in reply.text.splitlines(keepends=True)
    ]
    choices += [[{"index": 0, "delta": {}, "finish_reason": "stop"}], []]
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}
    events = [{**base, "choices": choice, **({} if choice else {"usage": usage})} for choice in choices]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
