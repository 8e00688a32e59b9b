"""A language model behind an OpenAI-compatible endpoint as a judge (``jumar[openai]``): that provider, or any other server.

The client's own retries are turned off: jumar counts them, waits as the server asks, and records them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from jumar.core.extras import LazyPackage, need_extra
from jumar.core.text import escape
from jumar.errors import ConfigError
from jumar.judging.asking.settings import MAX_TOKENS
from jumar.judging.judges import JudgeSpec
from jumar.judging.judges._clients import Clients, Features, describe, failure_of_status, scrub, usage_unless_refused
from jumar.model.judges import JudgeFailure, JudgeReply, JudgeRequest
from jumar.model.records import Usage

if TYPE_CHECKING:
    import openai
else:
    openai = LazyPackage("openai")

KEY_VARIABLE: Final = "JUMAR_JUDGE_API_KEY"
"""Holds the key for an endpoint that is given by its address: the provider's own key is never sent to anybody else."""

FORM: Final = "openai:MODEL"
LISTED: Final = True

_OPTIONAL: Final = {
    "response_format": ("response_format", "json_schema", "structured output", "guided", "grammar"),
    "temperature": ("temperature",),
    "seed": ("seed",),
    "max_tokens": ("max_tokens", "max_completion_tokens"),
}


def judge_of(spec: JudgeSpec) -> OpenAIJudge:
    """Return a model at its provider. Errors: :class:`jumar.errors.ConfigError` without a model, the extra or a key."""
    return OpenAIJudge(spec.rest, max_tokens=spec.max_tokens)


class OpenAIJudge:
    """Asks ``model``; without ``base_url`` at the provider itself, with the key in ``OPENAI_API_KEY``.

    ``max_tokens`` bounds an answer. ``structured=False`` never asks for structured output; otherwise a server that refuses it is
    asked without, as it is for ``temperature`` and ``seed``. Errors: :class:`jumar.errors.ConfigError` without a key.
    """

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
        if base_url is None:
            self._key = api_key or os.environ.get("OPENAI_API_KEY") or ""
            if not self._key:
                raise ConfigError(f"openai:{escape(model)} needs a key: put it into the environment variable OPENAI_API_KEY")
            address = os.environ.get("OPENAI_BASE_URL")
        else:
            self._key = api_key or os.environ.get(KEY_VARIABLE) or ""
            address = base_url
        self._model = model
        self._limit = "max_tokens" if address else "max_completion_tokens"
        self._max_tokens = max_tokens
        self._features = Features(_OPTIONAL)
        if not structured:
            self._features.left_out.add("response_format")
        self._clients = Clients(
            # a server of one's own wants no key, but the client does
            lambda: _client(self._key or "none", address, own=base_url is None)
        )
        where = f"@{_place(address)}" if address else ""
        self.identity = f"openai:{model}{where}{describe(max_tokens, structured=structured)}"

    @property
    def left_out(self) -> frozenset[str]:
        """Parameters that the server refused, and is asked without."""
        return frozenset(self._features.left_out)

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        while True:
            optional = self._optional(request)
            create: Any = self._clients.get().chat.completions.create
            try:
                completion: Any = await create(
                    model=self._model,
                    messages=[{"role": "system", "content": request.system}, {"role": "user", "content": request.user}],
                    **{(self._limit if name == "max_tokens" else name): value for name, value in optional.items()},
                )
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if self._features.drop(error.message, optional, error.param):
                    continue
                raise self._failure(error) from None
            except openai.OpenAIError as error:
                raise self._failure(error) from None
            except ValueError:
                raise JudgeFailure("unavailable", "the answer of the server is no chat completion", usage=Usage()) from None
            return self._reply(completion)

    def _optional(self, request: JudgeRequest) -> dict[str, Any]:
        form = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": dict(request.schema)}}
        return self._features.wanted(
            {
                "response_format": form,
                "temperature": request.temperature,
                "seed": request.seed,
                "max_tokens": self._max_tokens,
            }
        )

    def _reply(self, completion: Any) -> JudgeReply:
        try:
            choice = completion.choices[0]
            text, refusal, reason = choice.message.content, getattr(choice.message, "refusal", None), choice.finish_reason
        except (AttributeError, IndexError, TypeError):
            raise JudgeFailure("unavailable", "the answer of the server is no chat completion", usage=Usage()) from None
        usage = _usage(completion, cut=reason == "length")
        if refusal or reason == "content_filter":
            said = escape(scrub(str(refusal or "the provider's filter stopped the answer"), (self._key,) if self._key else ()))
            raise JudgeFailure("refused", f"the judge declines: {said[:300]}", usage=usage)
        keys = (self._key,) if self._key else ()
        return JudgeReply(text=scrub(text, keys) if isinstance(text, str) else "", usage=usage)

    def _failure(self, error: openai.OpenAIError) -> JudgeFailure:
        if isinstance(error, openai.APITimeoutError):
            return JudgeFailure("timed_out", "no answer in time")
        if isinstance(error, openai.APIConnectionError):
            reason = escape(scrub(str(error.__cause__ or error), (self._key,) if self._key else ()))[:200]
            return JudgeFailure("unavailable", f"cannot reach the judge: {reason}", usage=usage_unless_refused(error))
        if isinstance(error, openai.APIStatusError):
            return failure_of_status(error.status_code, error.body, error.message, error.response.headers, self._key)
        return JudgeFailure("unavailable", "the answer of the server is no chat completion", usage=Usage())

    async def aclose(self) -> None:
        """Close the connections; the judge may be used again."""
        if (client := self._clients.forget()) is not None:
            await client.close()


def _client(key: str, address: str | None, *, own: bool) -> openai.AsyncOpenAI:
    """Return a client; who somebody is at the provider is told to nobody but the provider (``own``)."""
    client = openai.AsyncOpenAI(api_key=key, base_url=address, max_retries=0, timeout=None)
    if not own:
        client.organization = client.project = None
    return client


def _place(address: str) -> str:
    """Return host, port and path: what decides who answers, and nothing that could be a key."""
    parts = urlsplit(address)
    return f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}"


def _usage(completion: Any, *, cut: bool) -> Usage:
    """Return tokens, and the cost where the server says it (some do, as ``usage.cost``)."""
    found = getattr(completion, "usage", None)
    model = getattr(completion, "model", None)
    extra: Mapping[str, Any] = getattr(found, "model_extra", None) or {}
    cost = extra.get("cost")
    return Usage(
        input_tokens=_count(getattr(found, "prompt_tokens", None)),
        output_tokens=_count(getattr(found, "completion_tokens", None)),
        token_cost_usd=float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e9 else None,
        model=model if isinstance(model, str) else None,
        completed=not cut,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
