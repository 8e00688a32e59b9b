"""What an evaluator said about all items of an iteration: figures and the worst items, bounded in size, part of a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, cast

from jumar.model.codec import Fields

__all__ = ["EvaluatorMode", "JudgedItem", "Judgement"]

EvaluatorMode = Literal["cheap", "expensive", "dual", "auto"]
_MODES = ("cheap", "expensive", "dual", "auto")


def _no_counts() -> Mapping[str, int]:
    return MappingProxyType({})


def _no_targets() -> Mapping[str, float]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedItem:
    """One item that scored low, or on which the judges differ. Both scores are from 1 to 5, None where there is none.

    ``gestalt`` is that of the judge that counts; ``cheap`` that of the cheap one beside it. ``weaknesses`` are in words.
    """

    id: str
    gestalt: float | None
    cheap: float | None = None
    weaknesses: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "gestalt": self.gestalt, "cheap": self.cheap, "weaknesses": list(self.weaknesses)}

    @classmethod
    def from_json(cls, fields: Fields) -> JudgedItem:
        return cls(
            id=fields.text("id"),
            gestalt=fields.number_or_none("gestalt"),
            cheap=fields.number_or_none("cheap"),
            weaknesses=fields.texts("weaknesses"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One evaluation. Averages are from 1 to 5 and None where nothing was scored.

    ``gestalt`` is the mean that became the score, in dual mode the expensive judge's, in mode auto what that one's
    would be. ``cheap``, ``gap`` (expensive − cheap,
    signed), ``abs_gap`` and ``tracks`` are of dual mode, over the items that both scored; ``tracks`` is None where it is not
    proven either way. ``unscored`` counts the items without a score by kind. ``cost_usd`` is what the judge was paid for this
    evaluation, None when a call did not say; then ``known_cost_usd`` is what the others cost. Replies from the cache cost
    nothing. ``weaknesses`` are the reflections of the iteration, ``missing`` what the cheap judge did not find or see.
    ``flags`` say what is odd about the judge; ``targets`` what ``gestalt`` and ``gap`` should reach. ``rubric`` is its digest,
    ``patterns`` the SHA-256 of the file, ``details`` the folder with every item's result, below the iteration's own.
    """

    mode: EvaluatorMode
    items: int
    scored: int
    gestalt: float | None
    cheap: float | None = None
    gap: float | None = None
    abs_gap: float | None = None
    tracks: bool | None = None
    unscored: Mapping[str, int] = field(default_factory=_no_counts)
    judge: str | None = None
    rubric: str | None = None
    patterns: str | None = None
    cost_usd: float | None = None
    known_cost_usd: float = 0.0
    input_tokens: int | None = None
    output_tokens: int | None = None
    calls: int = 0
    cached: int = 0
    flags: tuple[str, ...] = ()
    targets: Mapping[str, float] = field(default_factory=_no_targets)
    worst: tuple[JudgedItem, ...] = ()
    missing: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()
    details: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "mode": self.mode,
            "items": self.items,
            "scored": self.scored,
            "gestalt": self.gestalt,
            "cheap": self.cheap,
            "gap": self.gap,
            "abs_gap": self.abs_gap,
            "tracks": self.tracks,
            "unscored": dict(self.unscored),
            "judge": self.judge,
            "rubric": self.rubric,
            "patterns": self.patterns,
            "cost_usd": self.cost_usd,
            "known_cost_usd": self.known_cost_usd,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "calls": self.calls,
            "cached": self.cached,
            "flags": list(self.flags),
            "targets": dict(self.targets),
            "worst": [one.to_json() for one in self.worst],
            "missing": list(self.missing),
            "weaknesses": list(self.weaknesses),
            "details": self.details,
        }

    @classmethod
    def from_json(cls, fields: Fields) -> Judgement:
        """Read what :meth:`to_json` gave. Errors: :class:`jumar.errors.StoreDamagedError` that names the field."""
        counts = fields.section("unscored")
        return cls(
            mode=cast("EvaluatorMode", fields.choice("mode", _MODES)),
            items=fields.integer("items"),
            scored=fields.integer("scored"),
            gestalt=fields.number_or_none("gestalt"),
            cheap=fields.number_or_none("cheap"),
            gap=fields.number_or_none("gap"),
            abs_gap=fields.number_or_none("abs_gap"),
            tracks=fields.boolean_or_none("tracks"),
            unscored=MappingProxyType({kind: counts.integer(kind) for kind in counts.data}),
            judge=fields.text_or_none("judge"),
            rubric=fields.text_or_none("rubric"),
            patterns=fields.text_or_none("patterns"),
            cost_usd=fields.number_or_none("cost_usd"),
            known_cost_usd=fields.number("known_cost_usd"),
            input_tokens=fields.integer_or_none("input_tokens"),
            output_tokens=fields.integer_or_none("output_tokens"),
            calls=fields.integer("calls"),
            cached=fields.integer("cached"),
            flags=fields.texts("flags"),
            targets=MappingProxyType(fields.numbers("targets")),
            worst=tuple(JudgedItem.from_json(one) for one in fields.sections("worst")),
            missing=fields.texts("missing"),
            weaknesses=fields.texts("weaknesses"),
            details=fields.text_or_none("details"),
        )
