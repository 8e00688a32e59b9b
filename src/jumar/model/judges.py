"""The Protocol of an expensive judge: it is asked about one item, and answers with text or fails in a way that has a name.

What to ask, how often, what an answer means and when to give up is not the judge's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from jumar.model.records import Usage

__all__ = ["FailureKind", "Judge", "JudgeFailure", "JudgeReply", "JudgeRequest"]

FailureKind = Literal["rate_limited", "timed_out", "unavailable", "refused", "rejected", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """One question. ``schema`` is the JSON Schema that the answer has to keep; ``repeat`` counts from 0 for one item.

    ``item`` is the record itself, for judges that are no language model; ``seed`` and ``temperature`` are for those that are.
    """

    item_id: str
    item: Mapping[str, Any]
    system: str
    user: str
    schema: Mapping[str, Any]
    repeat: int = 0
    temperature: float | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """The answer, word for word. What it cost may be unknown."""

    text: str
    usage: Usage = field(default_factory=Usage)


class JudgeFailure(Exception):  # noqa: N818 - a failure of a judge is a value that is recorded, not an error of jumar's
    """The judge gave no answer. ``retry_after`` is in seconds, as the judge asked for; None when it did not.

    ``rate_limited``, ``timed_out`` and ``unavailable`` may pass and are tried again; ``refused`` (the model declines),
    ``rejected`` (wrong key,
    unknown model) and ``missing`` (a recorded judge that lacks the item) will not.
    """

    def __init__(self, kind: FailureKind, message: str, *, retry_after: float | None = None, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message
        self.retry_after = retry_after
        self.usage = usage


class Judge(Protocol):
    """``identity`` names what decides about its answers (provider, model, endpoint), without any key: part of the cache's key.

    ``judge`` must be safe to call for several requests at once. Raises :class:`JudgeFailure`; any other exception ends the
    evaluation.
    """

    @property
    def identity(self) -> str: ...

    async def judge(self, request: JudgeRequest) -> JudgeReply: ...

    async def aclose(self) -> None: ...
