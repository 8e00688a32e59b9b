"""The Protocol of an evaluator: it judges all items of a candidate at once, and answers with a number for each of its parts.

The loop's scorer ``judge`` turns parts into dimensions. What judges, and what an item is, is not the loop's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from jumar.model.judgement import Judgement
from jumar.model.protocols import StepContext

__all__ = ["Evaluated", "Evaluator"]


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
