"""The contract that every strategy keeps, in one place: limits, scores, parameters.

A selection keeps at least ``min(min_k, n)`` and at most ``max_k`` of ``n`` items; rank 1 is kept whenever anything is. Scores are
finite and sorted, best first. Inside the strategies nothing is checked again.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Final, TypeVar, get_args

from jumar.core.text import escape
from jumar.errors import ScoreError, StrategyError
from jumar.topk.result import OnInvalid, Scale, Ties

T = TypeVar("T")

SCALES: Final[tuple[Scale, ...]] = get_args(Scale)

_THRESHOLDS: Final[dict[Scale, tuple[float, float, str]]] = {
    "similarity": (-1.0, 1.0, "similarities are about 0 to 1; for other scores say scale='bm25', 'rrf', 'logit' or 'distance'"),
    "distance": (0.0, math.inf, "it is the largest distance that is kept"),
    "bm25": (0.0, math.inf, "BM25 scores are 0 or more"),
    "rrf": (0.0, 0.5, "fused scores are sums of 1/(60 + rank): 0.5 would take more than 30 lists; none is no minimum"),
    "logit": (-math.inf, math.inf, "give a finite number"),
}
"""Lowest and highest threshold that can mean something on a scale, and what to say of others; 0.5 is too high for ``rrf``."""


LARGEST: Final = 1e150
"""The largest size of a score: squares and sums of larger ones are no longer finite, and no search engine gives any."""


class SimilarityDefault(float):
    """A default in the unit of similarities. Scores of another scale have another unit, and there it is no default at all."""

    __slots__ = ()


def shown(value: object) -> str:
    """Return ``value`` for a message: short, on one line, without control characters."""
    try:
        text = escape(repr(value))
    except ValueError:  # a number of more digits than Python writes
        text = f"a number of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "…"


def check_limits(max_k: object, min_k: object) -> tuple[int, int]:
    """Return both limits as ``int``.

    Errors: :class:`jumar.errors.StrategyError` (a ValueError) unless they are whole numbers with 0 ≤ ``min_k`` ≤ ``max_k`` and
    1 ≤ ``max_k``.
    """
    most, least = check_size("max_k", max_k), check_size("min_k", min_k, least=0)
    if least > most:
        raise StrategyError(f"min_k is {least} and max_k {most}: at least min_k and at most max_k are kept, so min_k ≤ max_k")
    return most, least


def check_modes(ties: object, on_invalid: object) -> None:
    """Refuse unknown words. Errors: :class:`jumar.errors.StrategyError`."""
    for name, value, known in (("ties", ties, get_args(Ties)), ("on_invalid", on_invalid, get_args(OnInvalid))):
        if not isinstance(value, str) or value not in known:
            raise StrategyError(f"{name} is {shown(value)}: choose {' or '.join(map(repr, known))}")


def check_size(name: str, value: object, *, least: int = 1) -> int:
    """Return ``value`` as ``int``.

    Errors: :class:`jumar.errors.StrategyError` unless it is a whole number of at least ``least``.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise StrategyError(f"{name} is {shown(value)}: give a whole number, {least} or more")
    number = int(value.__index__())  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
    if number < least:
        raise StrategyError(f"{name} is {number}: give {least} or more")
    return number


def check_number(name: str, value: object, *, above: float = -math.inf, below: float = math.inf, closed: bool = False) -> None:
    """Refuse a parameter that is not a finite number between the bounds; ``closed`` means that they themselves are allowed.

    Errors: :class:`jumar.errors.StrategyError`.
    """
    number = as_float(value)
    inside = above <= number <= below if closed else above < number < below
    if inside and math.isfinite(number):
        return
    bounds = (("from" if closed else "above", above), ("at most" if closed else "below", below))
    words = [f"{word} {bound:g}" for word, bound in bounds if math.isfinite(bound)]
    raise StrategyError(f"{name} is {shown(value)}: give a number{' ' if words else ''}{' and '.join(words)}")


def as_float(value: object) -> float:
    """Return ``value`` as a float, also one of another library; NaN when it is a bool or no number at all."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_scale(strategy: str, scale: object, allowed: Sequence[Scale]) -> None:
    """Refuse a scale that is unknown, or on which ``strategy`` means nothing. Errors: :class:`jumar.errors.StrategyError`."""
    if scale not in SCALES:
        raise StrategyError(f"scale is {shown(scale)}: choose one of {', '.join(SCALES)}")
    if scale not in allowed:
        raise StrategyError(
            f"{strategy} needs scores that are 0 or more with a meaningful zero ({', '.join(allowed)}), not {scale}: "
            "choose a strategy that looks at gaps, such as adaptive_k or largest_gap"
        )


def check_threshold(name: str, value: object, scale: Scale) -> None:
    """Refuse a score threshold that no score of ``scale`` can meet or miss; None is no threshold.

    Errors: :class:`jumar.errors.StrategyError`.
    """
    if value is None:
        return
    number = as_float(value)
    low, high, advice = _THRESHOLDS[scale]
    if not math.isfinite(number) or not low <= number <= high or (scale == "rrf" and number == high):
        raise StrategyError(f"{name} is {shown(value)}, which means nothing for scale {scale!r}: {advice}")


# ------------------------------------------------------------------------------------- how a strategy declares its parameters


def plain_field(
    default: T,
    description: str,
    *,
    check: Callable[[str, Any, Scale], object] | None = None,
    bounds: Mapping[str, float] | None = None,
) -> T:
    """Return a field of a strategy's dataclass. The strategy checks itself by it, and its settings are made from it.

    ``check``, which gets name, value and scale, refuses what the strategy cannot work with. ``bounds`` are what files of settings
    may say, in pydantic's words: ``ge``, ``gt``, ``le``, ``lt``.
    """
    found: Any = field(default=default, metadata={"description": description, "check": check, "bounds": bounds or {}})
    return found


def number_field(
    default: T,
    description: str,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    closed: bool = False,
    in_files: Mapping[str, float] | None = None,
) -> T:
    """Return a field for a finite number between bounds as those of :func:`check_number`; ``in_files`` has others for files."""

    def check(name: str, value: Any, _: Scale) -> None:
        check_number(name, value, above=above, below=below, closed=closed)

    low, high = ("ge", "le") if closed else ("gt", "lt")
    bounds = {word: bound for word, bound in ((low, above), (high, below)) if math.isfinite(bound)}
    return plain_field(default, description, check=check, bounds=bounds if in_files is None else in_files)


def size_field(default: int, description: str, *, least: int = 1) -> int:
    """Return a field for a whole number of at least ``least``."""
    return plain_field(
        default, description, check=lambda name, value, _: check_size(name, value, least=least), bounds={"ge": least}
    )


def score_field(default: T, description: str = "Absolute minimum score; none when absent") -> T:
    """Return a field for a threshold on the scale of the scores; None is none."""
    return plain_field(default, description, check=check_threshold)


# ---------------------------------------------------------------------------------------------------------------- values


def plain_number(value: Any) -> Any:
    """Return numbers of other libraries, fractions too, as Python's own; all else as it is."""
    if isinstance(value, (bool, SimilarityDefault)) or type(value) in {int, float} or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else as_float(value)


def check_sizes(scores: Sequence[float]) -> None:
    """Refuse finite scores beyond ±1e150. Errors: :class:`jumar.errors.ScoreError` with the position of the first."""
    for position, score in enumerate(scores):
        if LARGEST < abs(score) < math.inf:
            raise ScoreError(too_large(position, score))


def too_large(position: int, score: float) -> str:
    """Return the message about a finite score that is too large."""
    return f"the score at position {position} is {score!r}: scores are from -1e150 to 1e150; divide them all by the same number"


def read_scores(scores: Sequence[Any]) -> list[float]:
    """Return ``scores`` as Python floats, NaN and infinities included.

    Errors: :class:`jumar.errors.ScoreError` with the position of the first that is no number.
    """
    found: list[float] = []
    for position, score in enumerate(scores):
        if type(score) is not float and isinstance(score, _NO_NUMBERS):
            raise ScoreError(f"the score at position {position} is {shown(score)}: give a number")
        try:
            found.append(float(score))
        except (TypeError, ValueError, OverflowError) as error:
            raise ScoreError(f"the score at position {position} is {shown(score)}: give a number") from error
    return found


_NO_NUMBERS: Final = (str, bytes, bytearray, complex)
"""What float() would take all the same, or some library's would."""


def raise_unsorted(
    scores: Sequence[float], *, negated: bool = False, query: int | None = None, positions: Sequence[int] | None = None
) -> None:
    """Do nothing when ``scores`` descend, else raise the error that says where they don't.

    ``negated`` distances are shown as they were given; ``positions`` are those before some were dropped. Errors:
    :class:`jumar.errors.ScoreError`.
    """
    for position in range(1, len(scores)):
        if scores[position] > scores[position - 1]:
            where = "" if query is None else f"query {query}: "
            before, after = (-scores[k] if negated else scores[k] for k in (position - 1, position))
            there, here = (position - 1, position) if positions is None else (positions[position - 1], positions[position])
            raise ScoreError(
                f"{where}the scores are not sorted, best first: position {here} ({after!r}) is better than position "
                f"{there} ({before!r}); {unsorted_hint(scores, negated=negated)}sort them, or pass assume_sorted=False"
            )


def unsorted_hint(scores: Sequence[float], *, negated: bool) -> str:
    """Return what to say of a list that is worst first from end to end: another scale is likelier than another order.

    ``negated`` says that these are distances with their sign changed. Empty for any other list.
    """
    if any(after < before for before, after in pairwise(scores)):
        return ""
    if negated:
        return "they descend throughout: if larger is better, leave out scale='distance', else "
    return "they ascend throughout: are these distances? pass scale='distance', else "


def count_valid(scores: list[float], floor: float | None) -> int:
    """Return how many of ``scores``, which descend, are at least ``floor``; all of them when there is no floor."""
    if floor is None or scores[-1] >= floor:
        return len(scores)
    return len(scores) - bisect_left(scores[::-1], floor)
