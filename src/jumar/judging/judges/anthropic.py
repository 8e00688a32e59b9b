"""A language model of Anthropic's as a judge (``jumar[anthropic]``).

The client's own retries are turned off: jumar counts them, waits as the server asks, and records them. The interface has no
seed; a repeat differs by the model's own variation.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from jumar.core.extras import LazyPackage, need_extra
from jumar.core.text import escape
from jumar.errors import ConfigError
from jumar.judging.asking.settings import MAX_TOKENS
from jumar.judging.judges import JudgeSpec
from jumar.judging.judges._clients import Clients, Features, describe, failure_of_status, scrub, usage_unless_refused
from jumar.model.judges import JudgeFailure, JudgeReply, JudgeRequest
from jumar.model.records import Usage

if TYPE_CHECKING:
    import anthropic
else:
    anthropic = LazyPackage("anthropic")

FORM: Final = "anthropic:MODEL"
LISTED: Final = True

_OPTIONAL: Final = {"output_config": ("output_config", "output_format", "structured output"), "temperature": ("temperature",)}


def judge_of(spec: JudgeSpec) -> AnthropicJudge:
    """Return a model at its provider. Errors: :class:`jumar.errors.ConfigError` without a model, the extra or a key."""
    return AnthropicJudge(spec.rest, max_tokens=spec.max_tokens)


class AnthropicJudge:
    """Asks ``model`` with the key in ``ANTHROPIC_API_KEY``. ``max_tokens`` bounds an answer.

    A model that refuses structured output or a temperature, as recent ones do, is asked without. Errors:
    :class:`jumar.errors.ConfigError` without a key.
    """

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
        self._key = api_key or os.environ.get("ANTHROPIC_API_KEY") or ""
        if not self._key:
            raise ConfigError(f"anthropic:{escape(model)} needs a key: put it into the environment variable ANTHROPIC_API_KEY")
        self._model = model
        self._max_tokens = max_tokens
        self._features = Features(_OPTIONAL)
        if not structured:
            self._features.left_out.add("output_config")
        self._clients = Clients(
            lambda: anthropic.AsyncAnthropic(api_key=self._key, base_url=base_url, max_retries=0, timeout=None)
        )
        self.identity = f"anthropic:{model}{describe(max_tokens, structured=structured)}"

    @property
    def left_out(self) -> frozenset[str]:
        """Parameters that the model refused or, like a seed, that there are none of."""
        return frozenset({"seed", *self._features.left_out})

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        while True:
            optional = self._optional(request)
            create: Any = self._clients.get().messages.create
            try:
                message: Any = await create(
                    model=self._model,
                    max_tokens=self._max_tokens,
                    system=request.system,
                    messages=[{"role": "user", "content": request.user}],
                    extra_body=optional,  # the client has no parameter for a temperature, which only older models take
                )
            except anthropic.BadRequestError as error:
                if self._features.drop(error.message, optional):
                    continue
                raise self._failure(error) from None
            except anthropic.AnthropicError as error:
                raise self._failure(error) from None
            except ValueError:
                raise JudgeFailure("unavailable", "the answer of the server is no message", usage=Usage()) from None
            return self._reply(message)

    def _optional(self, request: JudgeRequest) -> dict[str, Any]:
        form = {"format": {"type": "json_schema", "schema": anthropic.transform_schema(dict(request.schema))}}
        return self._features.wanted({"output_config": form, "temperature": request.temperature})

    def _reply(self, message: Any) -> JudgeReply:
        try:
            text = "".join(block.text for block in message.content if block.type == "text")
            reason = message.stop_reason
        except (AttributeError, TypeError):
            raise JudgeFailure("unavailable", "the answer of the server is no message", usage=Usage()) from None
        usage = _usage(message, cut=reason == "max_tokens")
        if reason == "refusal":
            raise JudgeFailure("refused", "the judge declines to judge the item", usage=usage)
        return JudgeReply(text=scrub(text, (self._key,)), usage=usage)

    def _failure(self, error: anthropic.AnthropicError) -> JudgeFailure:
        if isinstance(error, anthropic.APITimeoutError):
            return JudgeFailure("timed_out", "no answer in time")
        if isinstance(error, anthropic.APIConnectionError):
            reason = escape(scrub(str(error.__cause__ or error), (self._key,)))[:200]
            return JudgeFailure("unavailable", f"cannot reach the judge: {reason}", usage=usage_unless_refused(error))
        if isinstance(error, anthropic.APIStatusError):
            return failure_of_status(error.status_code, error.body, error.message, error.response.headers, self._key)
        return JudgeFailure("unavailable", "the answer of the server is no message", usage=Usage())

    async def aclose(self) -> None:
        """Close the connections; the judge may be used again."""
        if (client := self._clients.forget()) is not None:
            await client.close()


def _usage(message: Any, *, cut: bool) -> Usage:
    """Return the tokens, those read from and written to the provider's cache among them."""
    found = getattr(message, "usage", None)
    parts = [getattr(found, f"{name}input_tokens", None) for name in ("", "cache_creation_", "cache_read_")]
    sent = sum(part for part in parts if part) if isinstance(parts[0], int) else None
    given = getattr(found, "output_tokens", None)
    return Usage(
        input_tokens=sent,
        output_tokens=given if isinstance(given, int) else None,
        model=getattr(message, "model", None),
        completed=not cut,
    )
