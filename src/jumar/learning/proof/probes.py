"""Whether a cheap score can be had for nothing: real items made worse, or just longer, must not score higher. Pure.

A measure that becomes a target is gamed (Goodhart). Each probe makes of an item one that says less or the same: it is stuffed
with the set's own good phrases, and attacked in every other way of :mod:`jumar.learning.proof.attacks`. The mean change of the
score may be zero or less; a small bound is allowed, and the whole interval by groups has to respect it.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from itertools import islice, product
from random import Random
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jumar.judging.agreement import Interval, bootstrap
from jumar.judging.items.item import Item
from jumar.judging.patterns.matcher import PatternMatcher, literals
from jumar.judging.patterns.models import Curve, PatternSet, PatternV2
from jumar.judging.tracking import pair
from jumar.learning.proof.attacks import ATTACKS, MANY, AttackMeans, stuffed, stuffings

Floats = NDArray[np.float64]

TOLERANCE: Final = 0.1
"""Points of the scale from 1 to 5 that a probe may raise the mean score by: a fifth of the gap that convergence allows."""

MOST_ITEMS: Final = 240
"""Items that are probed, drawn by their ids: each is scored in dozens of versions, and a mean needs no more."""

_MOST_APPENDED: Final = 200
_WORST: Final = 3
STUFFING: Final = "stuffing"
PROBES: Final = (STUFFING, *ATTACKS)
"""The names of the probes."""

_MEANS: Final = AttackMeans(
    filler=(
        "There is more to say about this.",
        "This goes on for a while.",
        "Other things could be mentioned here as well.",
        "It is as it is, and so it goes.",
        "All of this has been said before in one way or another.",
    ),
    long_words=("responsibility", "understanding", "international", "nevertheless", "straightforward", "approximately"),
    after_verb="not",
    in_front="It is not true that",
)


def _good(patterns: PatternSet) -> list[PatternV2]:
    found = [pattern for pattern in patterns.patterns if pattern.type == "good" and pattern.status == "active"]
    return sorted(found, key=lambda one: -one.weight)


def good_phrases(patterns: PatternSet) -> tuple[str, ...]:
    """Return the phrases of active good patterns, those of the largest weight first."""
    return tuple(dict.fromkeys(phrase for one in _good(patterns) for phrase in literals(one)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheat:
    """What somebody who reads a set would write down.

    ``phrases`` are those of good patterns and texts on which their expressions fire, the heaviest first. ``unprobed`` are the
    points of good patterns of whose expressions no such text could be made, by their ids. ``many`` is how much is appended of
    what features count.
    """

    phrases: tuple[str, ...] = ()
    unprobed: Mapping[str, float] | None = None
    many: int = MANY


def cheat_of(patterns: PatternSet) -> Cheat:
    """Return what would be written down to have a high score by ``patterns``. Points of a set without a curve are its weights."""
    card = patterns.scorecard()
    unit = 1.0 if card is None else card.unit * _steepest(card.curve)
    phrases: list[str] = []
    unprobed: dict[str, float] = {}
    for one in _good(patterns):
        phrases += literals(one)
        if one.regex is not None and not literals(one):
            made = text_that_fires(one)
            if made is None:
                unprobed[one.id] = unit * one.weight
            else:
                phrases.append(made)
    asked = [one.at_least for one in _good(patterns) if one.at_least is not None and one.feature is not None]
    many = max((math.ceil(one) for one in asked if one <= _MOST_APPENDED), default=0)
    return Cheat(phrases=tuple(dict.fromkeys(phrases)), unprobed=unprobed, many=max(MANY, many))


def _steepest(curve: Curve) -> float:
    """Return the largest slope of a curve, 1.0 of one that has none."""
    rises = [
        (high - low) / (right - left) for low, high, left, right in zip(curve.y, curve.y[1:], curve.x, curve.x[1:], strict=False)
    ]
    return max(rises, default=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What one probe did to the scores of ``items`` items that it changed; 0 where there was nothing to change.

    ``mean_change`` is in points, with its 95 % interval by groups; ``raised`` the share of items that scored higher. ``worst``
    are the ids of those that gained most, at most three. ``how`` says of stuffing how much of it gained most, ``unprobed`` are
    points of patterns that could not be tried.
    """

    name: str
    items: int
    mean_change: float | None
    interval: Interval | None
    raised: float | None
    tolerance: float
    worst: tuple[str, ...]
    how: str = ""
    unprobed: float = 0.0

    @property
    def most(self) -> float:
        """The upper end of the interval, or the mean where there is none, in points; 0 where nothing was changed."""
        most = self.mean_change if self.interval is None else self.interval.high
        return 0.0 if most is None else most

    @property
    def passed(self) -> bool:
        """Whether the whole interval, or the mean where there is none, is within the tolerance, and so is what was not tried."""
        return self.most <= self.tolerance and self.unprobed <= self.tolerance

    def to_json(self) -> dict[str, Any]:
        document = {"passed": self.passed, **asdict(self), "interval": pair(self.interval), "worst": list(self.worst)}
        del document["name"]
        return document


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """All probes of one set. A set that fails one is not converged."""

    results: tuple[ProbeResult, ...]

    @property
    def passed(self) -> bool:
        return all(result.passed for result in self.results)

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the probes that raise the score."""
        return tuple(result.name for result in self.results if not result.passed)

    def to_json(self) -> dict[str, Any]:
        return {"passed": self.passed, "probes": {result.name: result.to_json() for result in self.results}}


def probe(
    items: Sequence[Item],
    score: Callable[[Item], float | None],
    cheat: Cheat | None = None,
    *,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    most: int = MOST_ITEMS,
) -> ProbeReport:
    """Return what the probes do to real items. ``score`` is the cheap score from 1 to 5, None where it abstains.

    ``cheat`` is that of :func:`cheat_of`. Of many items ``most`` are probed. The same seed gives the same probes, whatever the
    order of the items.
    """
    return probe_all(items, lambda asked: list(map(score, asked)), cheat, seed=seed, tolerance=tolerance, most=most)


def probe_all(
    items: Sequence[Item],
    scores: Callable[[Sequence[Item]], Sequence[float | None]],
    cheat: Cheat | None = None,
    *,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    most: int = MOST_ITEMS,
) -> ProbeReport:
    """Return :func:`probe`, with the ``scores`` of many items asked for at once."""
    chosen = sorted(items, key=lambda item: (_number(seed, "", item), item.id))[:most]
    used = cheat or Cheat()
    known = [(item, old) for item, old in zip(chosen, scores(chosen), strict=True) if old is not None]
    attacks: dict[tuple[str, str], Attack] = {
        (STUFFING, how): lambda item, draw, own=own: stuffed(item, own, draw) for how, own in stuffings(used.phrases).items()
    }
    attacks |= {(name, ""): _attack(name, used) for name in ATTACKS}
    columns = _changes(known, attacks, scores, seed)
    results = _results([item for item, _ in known], columns, seed, tolerance)
    tried = [result for result in results if result.name == STUFFING] or [_nothing(STUFFING, tolerance)]
    worst = max(tried, key=lambda one: one.most if one.items else -math.inf)
    unprobed = sum((used.unprobed or {}).values())
    return ProbeReport((replace(worst, unprobed=unprobed), *(result for result in results if result.name != STUFFING)))


Attack = Callable[[Item, Random], Item]


def _changes(
    known: Sequence[tuple[Item, float]],
    attacks: Mapping[tuple[str, str], Attack],
    scores: Callable[[Sequence[Item]], Sequence[float | None]],
    seed: int,
) -> dict[tuple[str, str], Floats]:
    """Return for each attack ``(items,)`` changes of the score, not a number where the item stayed what it was."""
    columns = {key: np.full(len(known), np.nan) for key in attacks}
    made: list[Item] = []
    places: list[tuple[Floats, int]] = []
    for key, attack in attacks.items():
        for place, (item, _) in enumerate(known):
            changed = attack(item, Random(_number(seed, key[0], item)))  # noqa: S311 - a shuffle, no secret
            if changed.text != item.text:
                made.append(changed)
                places.append((columns[key], place))
    for (column, place), new in zip(places, scores(made), strict=True):
        column[place] = (1.0 if new is None else new) - known[place][1]
    return columns


def _attack(name: str, cheat: Cheat) -> Attack:
    means = replace(_MEANS, many=cheat.many)
    return lambda item, draw: ATTACKS[name](item, means, draw)


def _number(seed: int, name: str, item: Item) -> int:
    digest = hashlib.sha256(f"{seed}\0{name}\0{item.id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")


def _nothing(name: str, tolerance: float) -> ProbeResult:
    return ProbeResult(name=name, items=0, mean_change=None, interval=None, raised=None, tolerance=tolerance, worst=())


def _results(items: Sequence[Item], columns: Mapping[tuple[str, str], Floats], seed: int, tolerance: float) -> list[ProbeResult]:
    """Return a result for each column of changes; all of them are resampled together."""
    names = list(columns)
    values = np.stack([columns[name] for name in names], axis=1) if items else np.zeros((0, len(names)))
    seen = ~np.isnan(values)
    sums = np.where(seen, values, 0.0)

    def means(at: NDArray[np.int64]) -> dict[str, float | None]:
        counts = seen[at].sum(axis=0)
        found = (sums[at].sum(axis=0) / np.maximum(counts, 1)).tolist()
        return {
            str(place): mean if count else None for place, (mean, count) in enumerate(zip(found, counts.tolist(), strict=True))
        }

    intervals = bootstrap([item.group for item in items], means, seed=seed) if items else {}
    results: list[ProbeResult] = []
    for place, (name, how) in enumerate(names):
        own = np.flatnonzero(seen[:, place])
        if not own.size:
            results.append(_nothing(name, tolerance))
            continue
        changed = values[own, place]
        gained = sorted(
            # what differs in the last bits only is equal, on every machine
            (at for at in own.tolist() if values[at, place] > 0),
            key=lambda at: (-round(values[at, place], 9), items[at].id),
        )
        results.append(
            ProbeResult(
                name=name,
                items=own.size,
                mean_change=float(changed.mean()),
                interval=intervals[str(place)],
                raised=float((changed > 0).mean()),
                tolerance=tolerance,
                worst=tuple(items[at].id for at in gained[:_WORST]),
                how=how,
            )
        )
    return results


def probed(name: str, item: Item, phrases: Sequence[str] = (), *, seed: int = 0) -> Item:
    """Return ``item`` as the probe makes it; of a story the description is changed. Errors: KeyError for an unknown probe."""
    draw = Random(_number(seed, name, item))  # noqa: S311 - a shuffle, no secret
    return stuffed(item, phrases, draw) if name == STUFFING else ATTACKS[name](item, _MEANS, draw)


_TRIES: Final = 16
_CHARACTERS: Final = "a1 .-_,:;!?/()'\"#+*=%&$@<>[]{}|~^`\nA"
_MOST_REPEATS: Final = 200


def text_that_fires(pattern: PatternV2) -> str | None:
    """Return a text on which the expression of ``pattern`` fires, None where none can be made. The matcher itself is asked.

    One that says where a text begins or ends may fire on the text alone and not behind another.
    """
    if pattern.regex is None:
        return None
    parser: Any = import_module("re._parser")
    try:
        parsed = parser.parse(pattern.regex)
    except (re.error, OverflowError, RecursionError):
        return None
    matcher = PatternMatcher([pattern.model_copy(update={"status": "active", "phrases": [], "keywords": []})])
    try:
        return next((one for one in islice(_texts(parsed), _TRIES) if matcher.fired(f"It is so: {one} and")), None)
    except (_UnknownError, RecursionError):
        return None


class _UnknownError(Exception):
    """A part of an expression of which no text can be made."""


def _texts(parts: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    """Yield texts, the first of each alternative first."""
    made = [list(islice(_part(str(kind), value), _TRIES)) for kind, value in parts]
    for one in product(*made):
        yield "".join(one)


def _part(kind: str, value: Any) -> Iterator[str]:
    if kind == "LITERAL":
        yield chr(value)
    elif kind in {"ANY", "AT"}:
        yield "a" if kind == "ANY" else ""
    elif kind == "NOT_LITERAL":
        yield next(one for one in _CHARACTERS if one != chr(value))
    elif kind == "IN":
        yield from _of_class(value)
    elif kind == "BRANCH":
        for alternative in value[1]:
            yield from _texts(alternative)
    elif kind in {"SUBPATTERN", "ATOMIC_GROUP"}:
        yield from _texts(value[-1] if kind == "SUBPATTERN" else value)
    elif kind in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"} and value[0] <= _MOST_REPEATS:
        for one in _texts(value[2]):
            yield one * max(1, value[0]) if value[1] else ""
    else:
        raise _UnknownError(kind)


def _of_class(members: Sequence[tuple[Any, Any]]) -> Iterator[str]:
    """Yield characters of a class."""
    negated = any(str(kind) == "NEGATE" for kind, _ in members)
    if not negated:
        for kind, value in members:
            if str(kind) in {"LITERAL", "RANGE"}:
                yield chr(value if str(kind) == "LITERAL" else value[0])
    for one in _CHARACTERS:
        if any(_inside(str(kind), value, one) for kind, value in members) != negated:
            yield one


def _inside(kind: str, value: Any, one: str) -> bool:
    if kind == "LITERAL":
        return ord(one) == value
    if kind == "RANGE":
        return value[0] <= ord(one) <= value[1]
    if kind != "CATEGORY":
        return False
    name = str(value)
    found = one.isdigit() if "DIGIT" in name else one.isspace() if "SPACE" in name else one.isalnum() or one == "_"
    return found != ("NOT" in name)
