"""Whether a cheap score can be had for nothing: real items made worse, or just longer, must not score higher. Pure.

A measure that becomes a target is gamed (Goodhart). Each probe makes of an item one that says less or the same: it is stuffed
with the set's own good phrases, padded with sentences about nothing, its sentences or its words are shuffled, its statements are
negated. The mean change of the score may be zero or less; a small bound is allowed, and the whole interval by groups has to
respect it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

import numpy as np

from jumar.judging.items import Item
from jumar.judging.tracking.intervals import Interval, bootstrap
from jumar.judging.tracking.track import pair
from jumar.patterns.matcher import literals
from jumar.patterns.models import PatternSet

__all__ = ["PROBES", "TOLERANCE", "ProbeReport", "ProbeResult", "good_phrases", "probe", "probed", "with_text"]

TOLERANCE: Final = 0.1
"""Points of the scale from 1 to 5 that a probe may raise the mean score by: a fifth of the gap that convergence allows."""

MOST_PHRASES: Final = 20
_WORST: Final = 3

_FILLER: Final = (
    "There is more to say about this.",
    "This goes on for a while.",
    "Other things could be mentioned here as well.",
    "It is as it is, and so it goes.",
    "All of this has been said before in one way or another.",
)
_SENTENCE: Final = re.compile(r"(?<=[.!?…])\s+")
_AUXILIARY: Final = re.compile(
    r"\b(is|are|was|were|am|can|could|will|would|should|must|may|might|has|have|had|do|does|did)\b(?!\s+not\b)", re.IGNORECASE
)


def good_phrases(patterns: PatternSet, most: int = MOST_PHRASES) -> tuple[str, ...]:
    """Return the phrases of active good patterns, those of the largest weight first: what a cheat would write down."""
    good = sorted(
        (one for one in patterns.patterns if one.type == "good" and one.status == "active"), key=lambda one: -one.weight
    )
    return tuple(dict.fromkeys(phrase for one in good for phrase in literals(one)))[:most]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What one probe did to the scores of ``items`` items that it changed; 0 where there was nothing to change.

    ``mean_change`` is in points, with its 95 % interval by groups; ``raised`` the share of items that scored higher. ``worst``
    are the ids of those that gained most, at most three.
    """

    name: str
    items: int
    mean_change: float | None
    interval: Interval | None
    raised: float | None
    tolerance: float
    worst: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the whole interval, or the mean where there is none, is within the tolerance."""
        most = self.mean_change if self.interval is None else self.interval.high
        return most is None or most <= self.tolerance

    def to_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "items": self.items,
            "mean_change": self.mean_change,
            "interval": pair(self.interval),
            "raised": self.raised,
            "tolerance": self.tolerance,
            "worst": list(self.worst),
        }


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """All probes of one set. A set that fails one is not converged."""

    results: tuple[ProbeResult, ...]

    @property
    def passed(self) -> bool:
        return all(one.passed for one in self.results)

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the probes that raise the score."""
        return tuple(one.name for one in self.results if not one.passed)

    def to_json(self) -> dict[str, Any]:
        return {"passed": self.passed, "probes": {one.name: one.to_json() for one in self.results}}


def probe(
    items: Sequence[Item],
    score: Callable[[Item], float | None],
    phrases: Sequence[str],
    *,
    seed: int = 0,
    tolerance: float = TOLERANCE,
) -> ProbeReport:
    """Return what the probes do to real items. ``score`` is the cheap score from 1 to 5, None where it abstains.

    ``phrases`` are those of :func:`good_phrases`. The same seed gives the same probes, whatever the order of the items.
    """
    before = [score(item) for item in items]
    return ProbeReport(tuple(_result(name, items, before, score, phrases, seed, tolerance) for name in PROBES))


def _result(
    name: str,
    items: Sequence[Item],
    before: Sequence[float | None],
    score: Callable[[Item], float | None],
    phrases: Sequence[str],
    seed: int,
    tolerance: float,
) -> ProbeResult:
    changes: list[tuple[Item, float]] = []
    for item, old in zip(items, before, strict=True):
        made = probed(name, item, phrases, seed=seed)
        if old is not None and made.text != item.text:
            new = score(made)
            changes.append((item, (1.0 if new is None else new) - old))
    if not changes:
        return ProbeResult(name=name, items=0, mean_change=None, interval=None, raised=None, tolerance=tolerance, worst=())
    values = np.asarray([change for _, change in changes])
    found = bootstrap([item.group for item, _ in changes], lambda at: {"mean": float(values[at].mean())}, seed=seed)
    gained = sorted((one for one in changes if one[1] > 0), key=lambda one: (-one[1], one[0].id))
    return ProbeResult(
        name=name,
        items=len(changes),
        mean_change=float(values.mean()),
        interval=found["mean"],
        raised=float((values > 0).mean()),
        tolerance=tolerance,
        worst=tuple(item.id for item, _ in gained[:_WORST]),
    )


def probed(name: str, item: Item, phrases: Sequence[str] = (), *, seed: int = 0) -> Item:
    """Return ``item`` as the probe makes it; of a story the description is changed. Errors: KeyError for an unknown probe."""
    own = int.from_bytes(hashlib.sha256(f"{seed}\0{name}\0{item.id}".encode("utf-8", "surrogatepass")).digest()[:8], "big")
    draw = Random(own)  # noqa: S311 - a shuffle, no secret
    return with_text(item, lambda text: PROBES[name](text, phrases, draw))


def with_text(item: Item, change: Callable[[str], str]) -> Item:
    """Return ``item`` with its text changed; of a story the description."""
    if item.story is None:
        return replace(item, text=change(item.text))
    story = item.story.model_copy(update={"description": change(item.story.description)})
    return replace(Item.of(story, group=item.group, source=item.source), prompt=item.prompt, context=item.context)


def _stuffed(text: str, phrases: Sequence[str], draw: Random) -> str:
    """Add the good phrases that are not there, in no sentence that would mean anything."""
    low = text.casefold()
    missing = [phrase for phrase in phrases if phrase.casefold() not in low]
    draw.shuffle(missing)
    return f"{text} {', '.join(missing)}." if missing else text


def _padded(text: str, _phrases: Sequence[str], draw: Random) -> str:
    """Make the text twice as long with sentences about nothing."""
    added: list[str] = []
    while sum(len(one) + 1 for one in added) < len(text):
        added.append(_FILLER[draw.randrange(len(_FILLER))])
    return " ".join((text, *added)) if text.strip() else text


def _other_order(parts: list[str], draw: Random) -> list[str]:
    """Return the parts in another order, where there is one."""
    if len(set(parts)) < 2:
        return parts
    made = list(parts)
    while made == parts:
        draw.shuffle(made)
    return made


def _sentences_shuffled(text: str, _phrases: Sequence[str], draw: Random) -> str:
    return " ".join(_other_order([one for one in _SENTENCE.split(text) if one], draw))


def _words_shuffled(text: str, _phrases: Sequence[str], draw: Random) -> str:
    return " ".join(_other_order(text.split(), draw))


def _negated(text: str, _phrases: Sequence[str], _draw: Random) -> str:
    """Say of each sentence that it is not so. English: after an auxiliary verb, else in front."""
    return "".join(_denied(one) for one in re.split(r"((?<=[.!?…])\s+)", text))


def _denied(sentence: str) -> str:
    if not sentence.strip():
        return sentence
    found = _AUXILIARY.search(sentence)
    if found is not None:
        return f"{sentence[: found.end()]} not{sentence[found.end() :]}"
    return f"It is not true that {sentence[:1].lower()}{sentence[1:]}"


PROBES: Final[Mapping[str, Callable[[str, Sequence[str], Random], str]]] = {
    "stuffing": _stuffed,
    "padding": _padded,
    "shuffled_sentences": _sentences_shuffled,
    "shuffled_words": _words_shuffled,
    "negation": _negated,
}
"""The probes: a text, the good phrases and chance → the text that must not score higher."""
