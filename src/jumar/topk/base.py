"""What a selection strategy is, and what those of jumar share: reading, the clamp, ties, the result.

A strategy of your own derives from :class:`SelectionStrategy` and has a ``name`` and a ``select``; or, shorter, from
:class:`RuleStrategy`, and has only the rule. ``jumar.testing.topk.check_strategy`` says whether it keeps the contract.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any, ClassVar, NamedTuple, TypeVar

from jumar.errors import ScoreError, StrategyError
from jumar.topk.contract import (
    LARGEST,
    SCALES,
    SimilarityDefault,
    check_limits,
    check_modes,
    check_scale,
    check_sizes,
    plain_number,
    raise_unsorted,
    read_scores,
    shown,
)
from jumar.topk.result import CutEvidence, OnInvalid, Scale, ScoredItem, SelectionResult, Ties

T = TypeVar("T")


@cache
def parameters(strategy: type[SelectionStrategy]) -> tuple[str, ...]:
    """Return the names of the constructor's parameters, in order; none for a strategy that is no dataclass."""
    if not is_dataclass(strategy):
        return ()
    return tuple(parameter.name for parameter in fields(strategy) if parameter.init)


@cache
def similarity_defaults(strategy: type[SelectionStrategy]) -> dict[str, SimilarityDefault]:
    """Return the defaults that hold for similarities only, by the names of their parameters."""
    declared = fields(strategy) if is_dataclass(strategy) else ()
    return {one.name: one.default for one in declared if isinstance(one.default, SimilarityDefault)}


def unusual(**options: str | bool) -> dict[str, Any]:
    """Return the options of ``select`` that are not the default ones, so that a strategy need not know what nobody asks of it."""
    usual = {"assume_sorted": True, "on_invalid": "raise", "ties": "split"}
    return {name: value for name, value in options.items() if value != usual[name]}


def refuse_untold(strategy: str, names: Sequence[str], scale: object) -> None:
    """Do nothing without ``names``, else raise: these have no default on ``scale``. Errors: :class:`StrategyError`."""
    if names:
        known = " and ".join(names)
        raise StrategyError(
            f"{strategy} has no default {known} for scale {shown(scale)}, only for similarities: give {known}, or let "
            "`jumar topk tune` find what fits your labelled queries"
        )


class SeenScores(NamedTuple):
    """The scores of labelled queries, from which ``tune`` takes the parameters worth a look: quantiles, never labels."""

    floors: tuple[float, ...]  # the first one drops nothing
    tops: tuple[float, ...]
    max_k: int
    unit: float  # 1 for similarities; elsewhere how far the scores reach from the best to the worst

    @property
    def sizes(self) -> list[int]:
        """The numbers of items worth a look."""
        return sorted({size for size in (1, 2, 3, 5, 8, 10, 12, 15, 20, 30, self.max_k) if size <= self.max_k})


def grid(**axes: Iterable[Any]) -> list[dict[str, Any]]:
    """Return every combination of the values of ``axes``, the last one changing fastest."""
    return [dict(zip(axes, row, strict=True)) for row in product(*axes.values())]


def three_digits(values: Iterable[float]) -> tuple[float, ...]:
    """Return ``values`` with three digits that count: what a person can read, and finer than any of this can be told apart."""
    return tuple(float(f"{value:.3g}") for value in values)


class SelectionStrategy(ABC):
    """How many of the retrieved items to keep.

    ``select`` returns at least ``min(min_k, n)`` and at most ``max_k`` items, best first, rank 1 among them whenever there are
    any; the same input always gives the same result. ``prefix`` says that the kept items are the first ones of the ranking;
    ``scale`` says what the scores are. One that breaks this is found by the conformance suite, not by the callers.
    """

    prefix: ClassVar[bool] = True
    scale: Scale = "similarity"

    @property
    @abstractmethod
    def name(self) -> str:
        """The strategy's name in results, configurations and logs."""

    @abstractmethod
    def select(
        self,
        items: Sequence[ScoredItem[T]],
        max_k: int = 20,
        min_k: int = 1,
        *,
        assume_sorted: bool = True,
        on_invalid: OnInvalid = "raise",
        ties: Ties = "split",
    ) -> SelectionResult[T]:
        """Return the items to keep.

        ``items``, a list or anything to go through once, are sorted, best first; with ``assume_sorted=False`` a copy is sorted,
        items of the same score in the given order. No items give an empty result. Errors: TypeError for what has no score;
        :class:`jumar.errors.ScoreError` for scores that are no numbers, not finite (unless ``on_invalid="drop"``), beyond ±1e150
        or not sorted; :class:`jumar.errors.StrategyError` for limits with ``min_k`` above ``max_k``, below 0 or, for ``max_k``,
        below 1. Both are ValueErrors.
        """

    def params(self) -> dict[str, Any]:
        """Return the constructor's parameters as plain JSON values, to build the same strategy again."""
        return {}


class RuleStrategy(SelectionStrategy):
    """A strategy that is a frozen dataclass with a rule, :meth:`cut`; everything else of the contract is done here.

    A class may have the same rule for many queries, ``keep_many(table, max_k, min_k)``, of tables as :mod:`jumar.topk.batch` has
    them: it returns :class:`jumar.topk.batch.BatchCuts`, or, if it is a :class:`PositionStrategy`, which items are kept. Without
    it ``select_batch`` asks :meth:`select` about each query. It imports numpy inside, so that one query loads none.
    """

    NAME: ClassVar[str]
    SCALES: ClassVar[tuple[Scale, ...]] = SCALES
    NEEDED: ClassVar[tuple[str, ...]] = ()
    """Parameters that cannot be None: where their default is made for similarities, other scales have to be given one."""
    WHOLE: ClassVar[bool] = False
    """Whether scores beyond ``max_k`` count: then ``keep_many`` is given all of them."""

    @property
    def name(self) -> str:
        """The strategy's name."""
        return self.NAME

    def params(self) -> dict[str, Any]:
        """Return the parameters as plain JSON values; ``scale`` only where it is not ``similarity``."""
        found = {name: getattr(self, name) for name in parameters(type(self))}
        if found.get("scale") == "similarity":
            del found["scale"]
        return found

    def __post_init__(self) -> None:
        check_scale(self.NAME, self.scale, self.SCALES)
        for name in parameters(type(self)):
            object.__setattr__(self, name, plain_number(getattr(self, name)))
        untold = [name for name in similarity_defaults(type(self)) if isinstance(getattr(self, name), SimilarityDefault)]
        if self.scale != "similarity":
            refuse_untold(self.NAME, [name for name in untold if name in self.NEEDED], self.scale)
        for name in untold:
            object.__setattr__(self, name, float(getattr(self, name)) if self.scale == "similarity" else None)
        for parameter in fields(self):  # pyright: ignore[reportArgumentType] - a subclass is a dataclass
            if check := parameter.metadata.get("check"):
                check(parameter.name, getattr(self, parameter.name), self.scale)
        self._check()

    def _check(self) -> None:
        """Refuse parameters that do not fit each other; each alone is checked already."""

    @cached_property
    def floor(self) -> float | None:
        """The lowest score that ``min_score`` lets through, None without one; distances come negated."""
        least: float | None = getattr(self, "min_score", None)
        return -least if self.scale == "distance" and least is not None else least

    @abstractmethod
    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:
        """Return how many of ``scores`` the rule keeps, and the metadata.

        ``scores`` are finite, descending and not empty; distances come negated. The number need not be within the limits: it is
        clamped to ``max_k``, then raised to ``min(min_k, n)``.
        """

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> CutEvidence | None:  # noqa: ARG002
        """Return what the rule looked at, for an explanation; None where there is nothing to say."""
        return None

    @classmethod
    def search_space(cls, seen: SeenScores) -> list[dict[str, Any]] | None:  # noqa: ARG003
        """Return the parameters that ``tune`` tries on such scores, besides the defaults; None where it is not to try any.

        None is never a value of a parameter, since a file of settings cannot say it: no minimum is the lowest that there is.
        """
        return None

    def nothing(self) -> dict[str, Any]:
        """Return the metadata of a selection from no items."""
        return {}

    def select(
        self,
        items: Sequence[ScoredItem[T]],
        max_k: int = 20,
        min_k: int = 1,
        *,
        assume_sorted: bool = True,
        on_invalid: OnInvalid = "raise",
        ties: Ties = "split",
    ) -> SelectionResult[T]:
        """Return the items to keep; see :meth:`SelectionStrategy.select`."""
        if not isinstance(items, list):
            items = list(items)
        try:
            scores = [item.score for item in items]
        except AttributeError as error:
            raise _no_item(items) from error
        try:
            # NaN and infinities stay in a sum; one that overflows, or is of another type, is only looked at again
            total = sum(scores)
            plain = type(total) is float and total - total == 0.0 and scores == sorted(scores, reverse=True)
            plain = plain and scores[-1] >= -LARGEST and scores[0] <= LARGEST
        except (TypeError, OverflowError):
            plain = False
        if (
            plain
            and type(max_k) is type(min_k) is int
            and 0 <= min_k <= max_k != 0
            and assume_sorted
            and type(ties) is str
            and ties == "split"
            and on_invalid == "raise"
            and self.scale != "distance"
        ):
            return self._result(items, scores, max_k, min_k, "split")
        max_k, min_k = check_limits(max_k, min_k)
        check_modes(ties, on_invalid)
        places, values = self._read(scores, assume_sorted=assume_sorted, drop=on_invalid == "drop")
        if places:
            result = self._result([items[place] for place in places], values, max_k, min_k, ties)
        else:
            result = SelectionResult[T]([], 0.0, self.NAME, self.nothing())
        if len(places) < len(scores):
            result.metadata = {**result.metadata, "dropped": len(scores) - len(places)}
        return result

    def _read(self, given: list[Any], *, assume_sorted: bool, drop: bool) -> tuple[list[int], list[float]]:
        """Return the places of the scores that count, in their order, and these scores: finite, descending, distances negated."""
        found = read_scores(given)
        check_sizes(found)
        places = [position for position, score in enumerate(found) if score - score == 0.0]
        if len(places) < len(found) and not drop:
            bad = next(position for position, score in enumerate(found) if score - score != 0.0)
            raise ScoreError(f"the score at position {bad} is {found[bad]!r}: scores are finite, or pass on_invalid='drop'")
        if self.scale == "distance":
            found = [-score for score in found]
        if not assume_sorted:
            places.sort(key=found.__getitem__, reverse=True)
        values = [found[position] for position in places]
        if assume_sorted:
            raise_unsorted(values, negated=self.scale == "distance", positions=places)
        return places, values

    def _result(self, items: list[ScoredItem[T]], scores: list[float], max_k: int, min_k: int, ties: Ties) -> SelectionResult[T]:
        """Return the result where scores and limits are as they should be; there are scores."""
        kept, metadata = self.cut(scores, max_k, min_k)
        if not min_k <= kept <= max_k or kept > len(scores):
            kept = min(max(min(kept, max_k), min_k), len(scores))
        if ties == "keep":
            while 0 < kept < min(max_k, len(scores)) and scores[kept] == scores[kept - 1]:
                kept += 1
        cutoff = self._as_given(scores[kept - 1]) if kept else 0.0
        return SelectionResult(items[:kept], cutoff, self.NAME, metadata, (self, scores, max_k, min_k, ties))

    def _as_given(self, score: float) -> float:
        return float(-score if self.scale == "distance" else score)


class PositionStrategy(RuleStrategy):
    """A strategy whose kept items need not be the first ones: its rule, :meth:`pick`, names their positions."""

    prefix: ClassVar[bool] = False

    @abstractmethod
    def pick(self, scores: list[float], max_k: int, min_k: int) -> tuple[list[int], dict[str, Any]]:
        """Return the positions to keep, ascending, within the limits, 0 among them whenever there are any; and the metadata."""

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:
        """Return how many :meth:`pick` keeps."""
        positions, metadata = self.pick(scores, max_k, min_k)
        return len(positions), metadata

    def _result(self, items: list[ScoredItem[T]], scores: list[float], max_k: int, min_k: int, ties: Ties) -> SelectionResult[T]:
        positions, metadata = self.pick(scores, max_k, min_k)
        if ties == "keep":
            positions = _positions_with_ties(scores, positions, max_k)
        cutoff = self._as_given(scores[positions[-1]]) if positions else 0.0
        chosen = [items[position] for position in positions]
        return SelectionResult(chosen, cutoff, self.NAME, metadata, (self, scores, max_k, min_k, ties, positions))


def _no_item(items: Sequence[Any]) -> TypeError:
    """Return the error for what has no score."""
    position, found = next((position, one) for position, one in enumerate(items) if not hasattr(one, "score"))
    return TypeError(
        f"the item at position {position} is {shown(found)}: give ScoredItem(item, score), best first; `select_batch` takes "
        "scores without items"
    )


def _positions_with_ties(scores: list[float], positions: list[int], max_k: int) -> list[int]:
    """Return the positions with those of tied items, the best ones first where there is no room for all of them."""
    values = {scores[position] for position in positions}
    chosen = set(positions)
    for position, score in enumerate(scores):
        if len(chosen) >= max_k:
            break
        if score in values:
            chosen.add(position)
    return sorted(chosen)
