"""A language model behind an OpenAI-compatible endpoint as a judge (``jumar[openai]``): that provider, or any other server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from jumar.core.lazy import LazyPackage, need_extra
from jumar.core.text import escape
from jumar.errors import ConfigError
from jumar.judging.asking.settings import MAX_TOKENS
from jumar.judging.judges import JudgeSpec
from jumar.judging.judges._clients import ModelJudge, amount_of, count_of
from jumar.model.protocols import JudgeFailure, JudgeReply, JudgeRequest
from jumar.model.records import Usage

KEY_VARIABLE: Final = "JUMAR_JUDGE_API_KEY"
"""Holds the key for an endpoint that is given by its address: the provider's own key is never sent to anybody else."""

FORM: Final = "openai:MODEL"
LISTED: Final = True


def judge_of(spec: JudgeSpec) -> OpenAIJudge:
    """Return a model at its provider. Errors: :class:`jumar.errors.ConfigError` without a model, the extra or a key."""
    return OpenAIJudge(spec.rest, max_tokens=spec.max_tokens)


class OpenAIJudge(ModelJudge):
    """Asks ``model``; without ``base_url`` at the provider itself, with the key in ``OPENAI_API_KEY``.

    ``max_tokens`` bounds an answer. ``structured=False`` never asks for structured output; otherwise a server that refuses it is
    asked without, as it is for ``temperature`` and ``seed``. Errors: :class:`jumar.errors.ConfigError` without a key.
    """

    library = LazyPackage("openai")
    answer = "chat completion"
    error = "OpenAIError"
    optional: ClassVar = {
        "response_format": ("response_format", "json_schema", "structured output", "guided", "grammar"),
        "temperature": ("temperature",),
        "seed": ("seed",),
        "max_tokens": ("max_tokens", "max_completion_tokens"),
    }

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_tokens: int | None = MAX_TOKENS,
        structured: bool = True,
    ) -> None:
        need_extra("openai", "a judge behind an OpenAI-compatible endpoint", "openai")
        if not model:
            raise ConfigError("a judge needs the name of a model: openai:MODEL, or http://HOST:PORT/v1#MODEL")
        key = api_key or os.environ.get("OPENAI_API_KEY" if base_url is None else KEY_VARIABLE) or ""
        if base_url is None and not key:
            raise ConfigError(f"openai:{escape(model)} needs a key: put it into the environment variable OPENAI_API_KEY")
        self._address = os.environ.get("OPENAI_BASE_URL") if base_url is None else base_url
        self._at_provider = base_url is None
        where = f"@{_place(self._address)}" if self._address else ""
        unstructured = None if structured else "response_format"
        super().__init__(model, key, max_tokens, structured=unstructured, where=f"openai:{model}{where}")

    def connect(self) -> Any:
        # a server of one's own wants no key, but the client does
        client = self.library.AsyncOpenAI(api_key=self._key or "none", base_url=self._address, max_retries=0, timeout=None)
        if not self._at_provider:  # who somebody is there is told to nobody but the provider
            client.organization = client.project = None
        return client

    def wanted(self, request: JudgeRequest) -> dict[str, Any]:
        form = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": dict(request.schema)}}
        asked = {"response_format": form, "temperature": request.temperature, "seed": request.seed}
        return {**asked, "max_tokens": self._max_tokens}

    async def create(self, client: Any, request: JudgeRequest, wanted: dict[str, Any]) -> Any:
        limit = "max_tokens" if self._address else "max_completion_tokens"
        return await client.chat.completions.create(
            model=self._model,
            messages=[{"role": "system", "content": request.system}, {"role": "user", "content": request.user}],
            **{(limit if name == "max_tokens" else name): value for name, value in wanted.items()},
        )

    def reply(self, answer: Any) -> JudgeReply:
        try:
            choice = answer.choices[0]
            text, refusal, reason = choice.message.content, getattr(choice.message, "refusal", None), choice.finish_reason
        except (AttributeError, IndexError, TypeError):
            raise self.no_answer() from None
        usage = _usage(answer, cut=reason == "length")
        if refusal or reason == "content_filter":
            said = escape(self.scrubbed(str(refusal or "the provider's filter stopped the answer")))
            raise JudgeFailure("refused", f"the judge declines: {said[:300]}", usage=usage)
        return JudgeReply(text=self.scrubbed(text) if isinstance(text, str) else "", usage=usage)


def _place(address: str) -> str:
    """Return host, port and path: what decides who answers, and nothing that could be a key."""
    parts = urlsplit(address)
    return f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}"


def _usage(completion: Any, *, cut: bool) -> Usage:
    """Return tokens, and the cost where the server says it (some do, as ``usage.cost``)."""
    usage = getattr(completion, "usage", None)
    model = getattr(completion, "model", None)
    extra: Mapping[str, Any] = getattr(usage, "model_extra", None) or {}
    cost = amount_of(extra.get("cost"))
    return Usage(
        input_tokens=count_of(getattr(usage, "prompt_tokens", None)),
        output_tokens=count_of(getattr(usage, "completion_tokens", None)),
        token_cost_usd=cost if cost is not None and cost < 1e9 else None,
        model=model if isinstance(model, str) else None,
        completed=not cut,
    )
