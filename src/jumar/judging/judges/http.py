"""A language model behind any server with OpenAI's interface as a judge: ``http://HOST:PORT/v1#MODEL``, or ``https``."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from jumar.core.text import escape
from jumar.errors import ConfigError
from jumar.judging.judges import JudgeSpec
from jumar.model.protocols import Judge

FORM: Final = "http://HOST:PORT/v1#MODEL"


def judge_of(spec: JudgeSpec) -> Judge:
    """Return a model at an address. Errors: :class:`jumar.errors.ConfigError`, which shows nothing that could be a key."""
    from jumar.judging.judges.openai import KEY_VARIABLE, OpenAIJudge

    address, _, model = f"{spec.kind}:{spec.rest}".partition("#")
    try:
        parts = urlsplit(address)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
        parts = urlsplit("")
    if not usable:
        raise ConfigError("the judge's address names no host; write http://HOST:PORT/v1#MODEL")
    if parts.username is not None or parts.password is not None or parts.query:
        # not shown: it is most likely a key
        raise ConfigError(f"the judge's address holds a user, a password or a query; a key belongs into {KEY_VARIABLE}")
    if not model:
        raise ConfigError(f"{escape(address)} names no model; write {escape(address)}#MODEL")
    return OpenAIJudge(model, base_url=address, max_tokens=spec.max_tokens)
