"""A scripted model on loopback in four providers' formats: what a coding agent talks to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge_server import Answer, JudgeServer, Seen

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """A tool that the model wants to have called."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Reply:
    """What the model says to one request, with what that used; a ``call`` stands behind the text.

    ``limited`` is 429 with seconds to wait instead.
    """

    text: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    limited: int | None = None
    call: Call | None = None

    def cost(self, per_prompt: float, per_completion: float) -> float:
        """Return dollars at these prices for one token."""
        return self.prompt_tokens * per_prompt + self.completion_tokens * per_completion


class ModelServer(JudgeServer):
    """Gives ``replies`` one after the other, streamed where the request asks for it; anything after them is a server error.

    With ``tools`` a request that offers none is not the conversation (a title, a check of the account): it gets "ok" for no
    tokens and takes no reply. ``turns`` are the requests that took one. What is no model's path is not found.
    """

    def __init__(self, replies: Sequence[Reply], *, tools: bool = False) -> None:
        super().__init__(self._reply)
        self.replies = tuple(replies)
        self.turns: list[Seen] = []
        self._tools = tools

    def asked(self, number: int) -> str:
        """Return all that turn ``number`` said, from 0."""
        said = self.turns[number].json
        return "\n".join(_texts(said.get("messages") or said.get("input") or said.get("contents")))

    def _reply(self, seen: Seen, _number: int) -> Answer:
        path, _, query = seen.path.partition("?")
        streaming = _STREAMS.get(path.rpartition(":" if ":" in path else "/")[2])
        if streaming is None:
            return Answer(status=404, text=f"no model behind {path}")
        number = len(self.turns)
        if self._tools and not seen.json.get("tools"):
            reply = Reply("ok")
        else:
            self.turns.append(seen)
            if number >= len(self.replies):
                return Answer(status=500, text="the script is at its end")
            reply = self.replies[number]
        if reply.limited is not None:
            return Answer(status=429, text="Rate limit reached for requests", headers={"retry-after": str(reply.limited)})
        if not (seen.json.get("stream") or "alt=sse" in query):
            return _whole(reply, path)
        body = "".join(streaming(reply, str(seen.json.get("model", "scripted")), f"call_{number}"))
        return Answer(body=body, headers={"content-type": "text/event-stream"})


def _texts(said: object) -> Iterable[str]:
    """Yield every text anywhere in a conversation, in order."""
    if isinstance(said, str):
        yield said
    for part in said if isinstance(said, list) else said.values() if isinstance(said, dict) else ():
        yield from _texts(part)


def _whole(reply: Reply, path: str) -> Answer:
    if path.endswith("generateContent"):
        return Answer(body=json.dumps(_gemini_chunk([{"text": reply.text}], reply, "STOP")))
    return Answer(text=reply.text, usage={"in": reply.prompt_tokens, "out": reply.completion_tokens})


def _named(events: Iterable[Event]) -> Iterable[str]:
    """Server-sent events whose name is their type."""
    return (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def chat_completions(reply: Reply, model: str, identifier: str) -> Iterable[str]:
    """OpenAI's chat completions: text in lines, the call, why it ended, then what it used."""
    total = reply.prompt_tokens + reply.completion_tokens
    usage = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens, "total_tokens": total}
    deltas: list[Event] = [{"content": line} for line in reply.text.splitlines(keepends=True)]
    if reply.call is not None:
        function = {"name": reply.call.tool, "arguments": json.dumps(reply.call.arguments)}
        deltas.append({"tool_calls": [{"index": 0, "id": identifier, "type": "function", "function": function}]})
    end = "stop" if reply.call is None else "tool_calls"
    choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices += [[{"index": 0, "delta": {}, "finish_reason": end}], []]
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}
    events = [{**base, "choices": choice, **({} if choice else {"usage": usage})} for choice in choices]
    return [*(f"data: {json.dumps(event)}\n\n" for event in events), "data: [DONE]\n\n"]


def messages(reply: Reply, model: str, identifier: str) -> Iterable[str]:
    """Anthropic's messages."""
    usage = {"input_tokens": reply.prompt_tokens, "output_tokens": 0}
    message = {"id": f"msg_{identifier}", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
    blocks: list[tuple[Event, Event]] = []
    if reply.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text}))
    if reply.call is not None:
        tool = {"type": "tool_use", "id": f"toolu_{identifier}", "name": reply.call.tool, "input": {}}
        blocks.append((tool, {"type": "input_json_delta", "partial_json": json.dumps(reply.call.arguments)}))
    events: list[Event] = [{"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}]
    for index, (block, delta) in enumerate(blocks):
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": "end_turn" if reply.call is None else "tool_use", "stop_sequence": None}
    used = {"output_tokens": reply.completion_tokens}
    return _named([*events, {"type": "message_delta", "delta": end, "usage": used}, {"type": "message_stop"}])


def responses(reply: Reply, model: str, identifier: str) -> Iterable[str]:
    """OpenAI's responses."""
    content = [{"type": "output_text", "text": reply.text, "annotations": []}]
    items: list[Event] = (
        [{"type": "message", "id": f"msg_{identifier}", "role": "assistant", "content": content}] if reply.text else []
    )
    if reply.call is not None:
        arguments = json.dumps(reply.call.arguments)
        space, mark, name = reply.call.tool.rpartition("__")
        called = {"name": name, "arguments": arguments, "call_id": identifier, "id": f"fc_{identifier}"}
        items.append({"type": "function_call", **called, **({"namespace": space} if mark else {})})
    usage = {
        "input_tokens": reply.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": reply.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }
    base = {"id": f"resp_{identifier}", "object": "response", "model": model}
    events: list[Event] = [{"type": "response.created", "response": {**base, "status": "in_progress"}}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    done = {**base, "status": "completed", "output": items, "usage": usage}
    return _named([*events, {"type": "response.completed", "response": done}])


def generate_content(reply: Reply, _model: str, _identifier: str) -> Iterable[str]:
    """Gemini's content, in one chunk."""
    parts: list[Event] = [{"text": reply.text}] if reply.text else []
    if reply.call is not None:
        parts.append({"functionCall": {"name": reply.call.tool, "args": dict(reply.call.arguments)}})
    return [f"data: {json.dumps(_gemini_chunk(parts, reply, 'STOP'))}\n\n"]


def _gemini_chunk(parts: Sequence[Event], reply: Reply, end: str) -> Event:
    total = reply.prompt_tokens + reply.completion_tokens
    usage = {
        "promptTokenCount": reply.prompt_tokens,
        "candidatesTokenCount": reply.completion_tokens,
        "totalTokenCount": total,
    }
    candidate = {"index": 0, "content": {"role": "model", "parts": list(parts)}, "finishReason": end}
    return {"candidates": [candidate], "usageMetadata": usage}


_STREAMS = {
    "completions": chat_completions,
    "messages": messages,
    "responses": responses,
    "streamGenerateContent": generate_content,
    "generateContent": generate_content,
}
