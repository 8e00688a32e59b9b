"""Prompts and feedback of facts that are given by name."""

from __future__ import annotations

from typing import Any

from jumar.loop.generators import prompt
from jumar.loop.generators.prompt import Facts


def render_prompt(*, template: str | None = None, completion_promise: str | None = None, **facts: Any) -> str:
    return prompt.render_prompt(Facts(**facts), template=template, completion_promise=completion_promise)


def render_feedback(*, loop_id: str, **facts: Any) -> str:
    return prompt.render_feedback(Facts(**facts), loop_id=loop_id)
