"""What every ranking sees first, iterations by number and their valid scores, and a lexicographic order over named values.

The first key decides, the next one only between equals, and so on. Nothing depends on the order in which iterations come in.

The order is total: the earlier iteration is the last tie-break whatever was asked for, and no two iterations have the same
number. An iteration that lacks a value has no place in it; it is reported instead, and never best.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeGuard

from jumar.core.text import escape, nearest
from jumar.errors import ConfigError, ScoreError
from jumar.model.records import IterationView


def is_finite(value: object) -> TypeGuard[float]:
    """Return whether ``value`` is an int or a float other than NaN and the infinities. A bool is not a number here."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def shown(value: object) -> str:
    """Return ``value`` for an error message: one line, at most 60 characters."""
    try:
        return f"{escape(repr(value)):.60}"
    except ValueError:  # Python refuses to print integers of more than some thousand digits
        return "a number of thousands of digits"


def invalid_reason(view: IterationView) -> str | None:
    """Return why ``view`` can be neither selected nor best, or None when it can.

    Valid is: ``status`` is "ok" and ``score`` is a finite number of 0–100, both included.
    """
    if valid_score(view) is not None:
        return None
    if view.status != "ok":
        return view.status
    return "no score" if view.score is None else f"the score is {shown(view.score)}, not a number of 0–100"


def valid_score(view: IterationView) -> float | None:
    """Return the score of ``view``, as it is, or None when the view is invalid; see :func:`invalid_reason`."""
    score = view.score
    return score if view.status == "ok" and is_finite(score) and 0 <= score <= 100 else None


class Point(NamedTuple):
    """A valid view and its score, of which a type checker then knows that it is a number."""

    view: IterationView
    score: float


def best_of_batches(history: Iterable[IterationView]) -> tuple[IterationView, ...]:
    """Return ``history`` with one view for each batch of parallel candidates: its best, the earliest of equals.

    Of a batch without a valid score that is its last. Trends go from batch to batch: siblings did not follow one another.
    """
    found: list[IterationView] = []
    for view in history:
        if not found or view.batch is None or found[-1].batch != view.batch:
            found.append(view)
            continue
        best, score = valid_score(found[-1]), valid_score(view)
        if best is None or (score is not None and score > best):
            found[-1] = view
    return tuple(found)


def valid_points(views: Iterable[IterationView]) -> list[Point]:
    """Return the valid ones of ``views`` in the order given."""
    return [Point(view, score) for view in views if (score := valid_score(view)) is not None]


def in_order(views: Iterable[IterationView]) -> tuple[IterationView, ...]:
    """Return ``views`` sorted by number. Errors: :class:`jumar.errors.ScoreError` when a number is there twice."""
    ordered = tuple(sorted(views, key=attrgetter("number")))
    numbers = [view.number for view in ordered]
    if len(set(numbers)) < len(numbers):
        twice = next(after for before, after in pairwise(numbers) if before == after)
        raise ScoreError(f"iteration {twice} is there twice: every iteration needs a number of its own")
    return ordered


def difference(after: float, before: float) -> float:
    """Return ``after − before`` in points, rounded to 4 decimals like the scores themselves.

    Without the rounding 64.4 − 59.4 would be a little more than 5, and a rule with a size of 5 points would depend on binary
    noise.
    """
    return round(after - before, 4)


Direction = Literal["max", "min"]

TIE_BREAKS: Final[tuple[str, ...]] = ("earlier_iter", "smaller_diff")
"""``earlier_iter``: the smaller number wins. ``smaller_diff``: the smaller ``keys["diff"]`` wins; one that is unknown loses."""

DEFAULT_TIE_BREAKS: Final[tuple[str, ...]] = ("earlier_iter",)


@dataclass(frozen=True, slots=True)
class Key:
    """A named value and which way is better. Errors: :class:`jumar.errors.ConfigError` for an empty name or another direction."""

    name: str
    direction: Direction = "max"

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError("a key of the order has no name")
        if self.direction not in {"max", "min"}:
            raise ConfigError(f"the direction of {shown(self.name)} is {shown(self.direction)}: use max or min")


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidView:
    """An iteration that has no place in the order, and why."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Iterations best first, those without a place by number, and what decided between the first two.

    ``decided_by`` is the name of a key or tie-break, and None when fewer than two have a place.
    """

    ordered: tuple[IterationView, ...]
    invalid: tuple[InvalidView, ...]
    decided_by: str | None
    explanation: str

    @property
    def best(self) -> IterationView | None:
        """The first one, or None when no iteration is valid."""
        return self.ordered[0] if self.ordered else None


@dataclass(frozen=True, slots=True)
class LexicographicOrder:
    """Keys in the order of their weight, then tie-breaks in the order given, then the earlier iteration.

    A key's value is looked up in ``view.keys``, then in ``view.dimensions``; the names ``score`` and ``number`` mean the
    view's own when neither has them. Values may be on any scale; only ``score`` must be 0–100. A view whose ``status`` is not
    "ok", or that lacks a finite value for a key, is invalid. Errors: :class:`jumar.errors.ConfigError` for no keys, the same
    key twice and an unknown tie-break.
    """

    keys: tuple[Key, ...]
    tie_breaks: tuple[str, ...] = DEFAULT_TIE_BREAKS

    def __post_init__(self) -> None:
        if not self.keys:
            raise ConfigError("the order has no keys: name at least one, such as accuracy")
        _refuse_repeated("key", [key.name for key in self.keys])
        _refuse_repeated("tie-break", self.tie_breaks)
        for name in self.tie_breaks:
            if name not in TIE_BREAKS:
                raise ConfigError(
                    f"unknown tie-break {shown(name)}{nearest(name, TIE_BREAKS)}; known are: {', '.join(TIE_BREAKS)}"
                )

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence for each tie-break that can never decide; empty when all can."""
        if "earlier_iter" not in self.tie_breaks:
            return ()
        late = self.tie_breaks[self.tie_breaks.index("earlier_iter") + 1 :]
        return tuple(
            f"the tie-break {name} can never decide: earlier_iter stands before it, and no two iterations have the same number"
            for name in late
        )

    @property
    def words(self) -> tuple[str, ...]:
        """The keys as they can be typed: ``accuracy``, ``-cost`` for one of which less is better."""
        return tuple(key.name if key.direction == "max" else f"-{key.name}" for key in self.keys)

    @property
    def falling(self) -> frozenset[str]:
        """The names of the keys of which less is better."""
        return frozenset(key.name for key in self.keys if key.direction == "min")

    def invalid_reason(self, view: IterationView) -> str | None:
        """Return why ``view`` has no place in this order, or None when it has one."""
        values = self._values(view)
        return values if isinstance(values, str) else None

    def sort_key(self, view: IterationView) -> tuple[float, ...]:
        """Return what sorts the best first. Errors: :class:`jumar.errors.ScoreError` when ``view`` is invalid."""
        values = self._values(view)
        if isinstance(values, str):
            raise ScoreError(f"iteration {view.number} cannot be ranked: {values}")
        signed = (value if key.direction == "min" else -value for key, value in zip(self.keys, values, strict=True))
        return (*signed, *(view.number if name == "earlier_iter" else _diff(view) for name in self._last()))

    def _last(self) -> tuple[str, ...]:
        return (*self.tie_breaks, "earlier_iter")

    def _values(self, view: IterationView) -> list[float] | str:
        """Return the value of each key, or why ``view`` is invalid."""
        if view.status != "ok":
            return view.status
        values: list[float] = []
        for key in self.keys:
            value = _value(view, key.name)
            if isinstance(value, str):
                return value
            values.append(value)
        return values

    def rank(self, views: Iterable[IterationView]) -> Ranking:
        """Return ``views`` best first, whatever their order was. Errors: :class:`jumar.errors.ScoreError` for a number twice."""
        reasons = [(view, self.invalid_reason(view)) for view in in_order(views)]
        ordered = tuple(sorted((view for view, reason in reasons if reason is None), key=self.sort_key))
        invalid = tuple(InvalidView(number=view.number, reason=reason) for view, reason in reasons if reason is not None)
        decided_by, explanation = self._explain(ordered)
        return Ranking(ordered=ordered, invalid=invalid, decided_by=decided_by, explanation=explanation)

    def _explain(self, ordered: tuple[IterationView, ...]) -> tuple[str | None, str]:
        if not ordered:
            return None, "no iteration is valid"
        if len(ordered) == 1:
            return None, f"iteration {ordered[0].number} is the only valid one"
        first, second = ordered[:2]
        pairs = zip(self.sort_key(first), self.sort_key(second), strict=True)
        place = next(place for place, (one, other) in enumerate(pairs) if one != other)
        equal = [key.name for key in self.keys[:place]]
        same = f"{_enumerate(equal)} {'is' if len(equal) == 1 else 'are'} equal; " if equal else ""
        if place < len(self.keys):
            key = self.keys[place]
            better = "higher" if key.direction == "max" else "lower"
            values = f"{shown(_value(first, key.name))} against {shown(_value(second, key.name))}"
            return key.name, f"{same}{key.name} decides: {values} ({better} is better)"
        name = self._last()[place - len(self.keys)]
        if name == "earlier_iter":
            return name, f"{same}the earlier iteration wins: {first.number} before {second.number}"
        return name, f"{same}the smaller diff wins: {_shown_diff(first)} against {_shown_diff(second)}"


def _refuse_repeated(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ConfigError(f"the {what} {shown(name)} is there twice: name it once")
        seen.add(name)


def _value(view: IterationView, name: str) -> float | str:
    """Return the value of ``name``, or a sentence that says why there is none."""
    for source in (view.keys, view.dimensions):
        if name in source:
            value = source[name]
            return value if is_finite(value) else f"{shown(name)} is {shown(value)}, not a finite number"
    if name == "number":
        return view.number
    if name == "score":
        return invalid_reason(view) or valid_points([view])[0].score
    return f"{shown(name)} is missing"


def _diff(view: IterationView) -> float:
    value = view.keys.get("diff")
    return value if is_finite(value) else math.inf


def _shown_diff(view: IterationView) -> str:
    return "unknown" if _diff(view) == math.inf else shown(_diff(view))


def _enumerate(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def parse_order(
    keys: str | Iterable[str],
    tie_breaks: str | Iterable[str] = DEFAULT_TIE_BREAKS,
    *,
    known: Collection[str] | None = None,
) -> LexicographicOrder:
    """Read an order as the command line has it: ``"accuracy,overall,chain"``, or a list of the same.

    Higher is better; ``-cost`` or ``cost:min`` says that lower is. ``known`` are the names that can have a value; without it
    any name goes. A tie-break that can never be reached is no error; look at the order's ``warnings``. Errors:
    :class:`jumar.errors.ConfigError`.
    """
    parsed = tuple(_parse_key(item) for item in _items(keys))
    for key in parsed:
        if known is not None and key.name not in known:
            names = tuple(sorted(known))
            raise ConfigError(
                f"unknown key {shown(key.name)} in the order{nearest(key.name, names)}; known are: {', '.join(names)}"
            )
    return LexicographicOrder(parsed, tuple(_items(tie_breaks)))


def _items(given: str | Iterable[str]) -> list[str]:
    if isinstance(given, str):
        given = given.split(",") if given.strip() else ()
    items = [item.strip() for item in given]
    if "" in items:
        raise ConfigError(f"there is an empty name in {shown(','.join(items))}: remove the extra comma")
    return items


def _parse_key(item: str) -> Key:
    name, colon, direction = (part.strip() for part in item.rpartition(":"))
    if not colon:
        name, direction = (item[1:].strip(), "min") if item.startswith("-") else (item, "max")
    elif name.startswith("-"):
        raise ConfigError(
            f"{shown(item)} gives a direction twice: write {shown(name)} or {shown(name[1:].strip() + ':' + direction)}"
        )
    if direction == "max":
        return Key(name)
    if direction == "min":
        return Key(name, "min")
    raise ConfigError(f"unknown direction {shown(direction)} in {shown(item)}: use min or max")
