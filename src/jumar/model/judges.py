"""The Protocols of who judges: a judge is asked about one item, an evaluator about all items of a candidate at once.

A judge answers with text or fails in a way that has a name; what to ask, how often, what an answer means and when to give up is
not its business. An evaluator answers with a number for each of its parts, which the loop's scorer ``judge`` turns into
dimensions; what judges, and what an item is, is not the loop's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol

from jumar.model.judgement import Judgement
from jumar.model.protocols import StepContext
from jumar.model.records import Usage

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


def _nothing() -> Mapping[str, float]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """An evaluator's answer: ``parts`` from 0 to 1 by name, ``gestalt`` among them, with a reason in words.

    Without parts one of three says why: ``missing``, there is nothing to judge, which is the candidate's doing and scores 0;
    ``invalid``, what there is cannot be read as items; ``broken``, the judge could not answer, which says nothing about the
    candidate. ``judgement`` is there whenever somebody was asked, so that what it cost is on record. ``forged`` are replies that
    somebody else had written, and that were not taken.
    """

    parts: Mapping[str, float] = field(default_factory=_nothing)
    reason: str = ""
    missing: str | None = None
    invalid: str | None = None
    broken: str | None = None
    seconds: float = 0.0
    judgement: Judgement | None = None
    forged: tuple[str, ...] = ()


class Evaluator(Protocol):
    """Judges the items in a working directory. Same items, same answer: a killed step is evaluated again.

    ``name`` says what it is, in readings. ``asks`` is whether :meth:`evaluate` asks a judge that may have to be
    paid. An evaluator may have ``warnings`` too, texts for a person before a run begins: each what is so, a semicolon, and what
    to do about it.
    """

    @property
    def name(self) -> str: ...

    @property
    def asks(self) -> bool: ...

    def evaluate(self, context: StepContext) -> Evaluated:
        """Judge what is in ``context.workdir``; details go below ``context.log_directory``."""
        ...

    def look(self, context: StepContext) -> int:
        """Return how many items there are, without asking anybody. Errors: :class:`jumar.errors.JumarError`."""
        ...
