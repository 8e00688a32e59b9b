"""A language model of Anthropic's as a judge (``jumar[anthropic]``).

The interface has no seed; a repeat differs by the model's own variation.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar, Final

from jumar.core.lazy import LazyPackage, need_extra
from jumar.core.text import escape
from jumar.errors import ConfigError
from jumar.judging.asking.settings import MAX_TOKENS
from jumar.judging.judges import JudgeSpec
from jumar.judging.judges._clients import ModelJudge
from jumar.model.protocols import JudgeFailure, JudgeReply, JudgeRequest
from jumar.model.records import Usage

FORM: Final = "anthropic:MODEL"
LISTED: Final = True


def judge_of(spec: JudgeSpec) -> AnthropicJudge:
    """Return a model at its provider. Errors: :class:`jumar.errors.ConfigError` without a model, the extra or a key."""
    return AnthropicJudge(spec.rest, max_tokens=spec.max_tokens)


class AnthropicJudge(ModelJudge):
    """Asks ``model`` with the key in ``ANTHROPIC_API_KEY``. ``max_tokens`` bounds an answer.

    A model that refuses structured output or a temperature, as recent ones do, is asked without. Errors:
    :class:`jumar.errors.ConfigError` without a key.
    """

    library = LazyPackage("anthropic")
    answer = "message"
    error = "AnthropicError"
    optional: ClassVar = {
        "output_config": ("output_config", "output_format", "structured output"),
        "temperature": ("temperature",),
    }

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_tokens: int = MAX_TOKENS,
        structured: bool = True,
    ) -> None:
        need_extra("anthropic", "a judge of Anthropic's", "anthropic")
        if not model:
            raise ConfigError("a judge needs the name of a model: anthropic:MODEL")
        key = api_key or os.environ.get("ANTHROPIC_API_KEY") or ""
        if not key:
            raise ConfigError(f"anthropic:{escape(model)} needs a key: put it into the environment variable ANTHROPIC_API_KEY")
        self._base_url = base_url
        super().__init__(model, key, max_tokens, structured=None if structured else "output_config", where=f"anthropic:{model}")

    @property
    def left_out(self) -> frozenset[str]:
        """Parameters that the model refused or, like a seed, that there are none of."""
        return super().left_out | {"seed"}

    def connect(self) -> Any:
        return self.library.AsyncAnthropic(api_key=self._key, base_url=self._base_url, max_retries=0, timeout=None)

    def wanted(self, request: JudgeRequest) -> dict[str, Any]:
        form = {"format": {"type": "json_schema", "schema": self.library.transform_schema(dict(request.schema))}}
        return {"output_config": form, "temperature": request.temperature}

    async def create(self, client: Any, request: JudgeRequest, wanted: dict[str, Any]) -> Any:
        return await client.messages.create(
            model=self._model,
            max_tokens=self._max_tokens,
            system=request.system,
            messages=[{"role": "user", "content": request.user}],
            extra_body=wanted,  # the client has no parameter for a temperature, which only older models take
        )

    def reply(self, answer: Any) -> JudgeReply:
        try:
            text = "".join(block.text for block in answer.content if block.type == "text")
            reason = answer.stop_reason
        except (AttributeError, TypeError):
            raise self.no_answer() from None
        usage = _usage(answer, cut=reason == "max_tokens")
        if reason == "refusal":
            raise JudgeFailure("refused", "the judge declines to judge the item", usage=usage)
        return JudgeReply(text=self.scrubbed(text), usage=usage)


def _usage(message: Any, *, cut: bool) -> Usage:
    """Return the tokens, those read from and written to the provider's cache among them."""
    usage = getattr(message, "usage", None)
    parts = [getattr(usage, f"{name}input_tokens", None) for name in ("", "cache_creation_", "cache_read_")]
    sent = sum(part for part in parts if part) if isinstance(parts[0], int) else None
    given = getattr(usage, "output_tokens", None)
    return Usage(
        input_tokens=sent,
        output_tokens=given if isinstance(given, int) else None,
        model=getattr(message, "model", None),
        completed=not cut,
    )
