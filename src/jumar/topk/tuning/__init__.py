"""Labelled queries: what was retrieved, in order, and which of it was relevant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from jumar.core.text import escape
from jumar.errors import ScoreError
from jumar.topk.contract import as_float, read_scores, shown, unsorted_hint
from jumar.topk.result import Scale

_MOST: Final = 2**53
"""Items that are counted exactly: up to here, a float is every whole number."""


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """One query's ranking with its labels.

    ``scores`` are best first, ``relevant`` says of each whether it is relevant, ``relevant_total`` is how many relevant items
    there are at all, also those that were not retrieved. With a total of 0 the query is *out of scope*: the right answer is none.

    Where relevance has grades, ``grades`` holds each item's, above 0 exactly for the relevant ones, and ``missed`` those of the
    relevant items that were not retrieved. Only nDCG looks at them; without them every relevant item has grade 1. Errors:
    :class:`jumar.errors.ScoreError` when the lengths differ, a score or grade is not finite, more is relevant than there is, or
    there is more than 2^53.
    """

    query_id: str
    scores: tuple[float, ...]
    relevant: tuple[bool, ...]
    relevant_total: int
    grades: tuple[float, ...] = ()
    missed: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        where = f"query {escape(self.query_id)}"
        if len(self.scores) != len(self.relevant):
            raise ScoreError(f"{where}: {len(self.scores)} scores and {len(self.relevant)} labels; give one label a score")
        for position, score in enumerate(self.scores):
            if score - score != 0.0:
                raise ScoreError(f"{where}: the score at position {position} is {score!r}; scores are finite")
        found = sum(self.relevant)
        if self.relevant_total < found:
            raise ScoreError(f"{where}: relevant_total is {self.relevant_total}, but {found} retrieved items are relevant")
        if self.relevant_total > _MOST:
            raise ScoreError(
                f"{where}: relevant_total is {shown(self.relevant_total)}; no collection is that large, give its count"
            )
        if self.grades or self.missed:
            self._check_grades(where, self.relevant_total - found)

    def _check_grades(self, where: str, unseen: int) -> None:
        if not all(grade - grade == 0.0 for grade in (*self.grades, *self.missed)):
            raise ScoreError(f"{where}: a grade is not finite; give 0, 1, 2 …")
        if self.grades and self.relevant != tuple(grade > 0 for grade in self.grades):
            raise ScoreError(f"{where}: 'grades' and 'relevant' do not fit: an item is relevant when its grade is above 0")
        if self.missed and (len(self.missed) != unseen or min(self.missed) <= 0):
            raise ScoreError(
                f"{where}: 'missed' has {len(self.missed)} grades, but {unseen} relevant items were not retrieved; give a grade "
                "above 0 for each of them"
            )

    @property
    def in_scope(self) -> bool:
        """Whether anything is relevant to the query at all."""
        return self.relevant_total > 0


def labelled(runs: Iterable[LabelledQuery | Mapping[str, Any]], *, scale: Scale = "similarity") -> tuple[LabelledQuery, ...]:
    """Return ``runs`` as labelled queries, checked.

    A mapping has ``scores`` and ``relevant`` (0/1 or graded: above 0 is relevant), and may have ``query_id`` (default: its
    number), ``relevant_total`` (default: those among the retrieved, which flatters recall) and ``missed``, the grades of the
    relevant items that were not retrieved (default: 1 for each). Lists may be arrays of one dimension, and numbers those of
    numpy. Scores are best first: descending, of scale ``distance`` ascending. Errors: :class:`jumar.errors.ScoreError` that
    names the query.
    """
    found = tuple(one if isinstance(one, LabelledQuery) else _query(one, number) for number, one in enumerate(runs))
    sign = -1.0 if scale == "distance" else 1.0
    for query in found:
        for position in range(1, len(query.scores)):
            if sign * query.scores[position] > sign * query.scores[position - 1]:
                raise ScoreError(
                    f"query {escape(query.query_id)}: the scores are not sorted, best first: position {position} "
                    f"({query.scores[position]!r}) is better than the one before it ({query.scores[position - 1]!r}); "
                    f"{unsorted_hint([sign * score for score in query.scores], negated=scale == 'distance')}sort them"
                )
    return found


def _query(row: Mapping[str, Any], number: int) -> LabelledQuery:
    query_id = str(row.get("query_id", number))
    where = f"query {escape(query_id)}"
    given = {name: _listed(row.get(name)) for name in ("scores", "relevant")}
    for name, values in given.items():
        if values is None:
            raise ScoreError(f"{where}: '{name}' is {shown(row.get(name))}; give a list, one entry an item")
    try:
        scores = tuple(read_scores(given["scores"] or ()))
    except ScoreError as error:
        raise ScoreError(f"{where}: {error}") from error
    missing = row.get("missed")
    grades, missed = _grades(given["relevant"], "relevant", where), _grades(() if missing is None else missing, "missed", where)
    relevant = tuple(grade > 0 for grade in grades)
    total = _plain(row.get("relevant_total"))
    if total is None:
        total = sum(relevant) + len(missed)
    if isinstance(total, bool) or not isinstance(total, int):
        raise ScoreError(f"{where}: 'relevant_total' is {shown(total)}; give a whole number")
    found = LabelledQuery(query_id, scores, relevant, total, (), missed)  # all of them are counted, before they are left out
    grades, missed = graded(grades, missed)
    return replace(found, grades=grades, missed=missed)


def graded(grades: tuple[float, ...], missed: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return both as :class:`LabelledQuery` takes them: what is below 0 is 0, and nothing at all where there is only 0 and 1."""
    return (
        tuple(max(grade, 0.0) for grade in grades) if any(grade > 0 and grade != 1 for grade in grades) else (),
        missed if any(grade != 1 for grade in missed) else (),
    )


def _listed(values: Any) -> Sequence[Any] | None:
    """Return a list, or an array as one; None for what is neither. An array is told by its methods: there may be no numpy."""
    if not isinstance(values, Sequence) and hasattr(values, "tolist"):
        values = values.tolist()
    return values if isinstance(values, Sequence) and not isinstance(values, str) else None  # pyright: ignore[reportUnknownVariableType]


def _plain(value: Any) -> Any:
    """Return the number that is in an array without dimensions, as numpy's numbers are; anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () else value


def _grades(labels: Any, name: str, where: str) -> tuple[float, ...]:
    values = _listed(labels)
    if values is None:
        raise ScoreError(f"{where}: '{name}' is {shown(labels)}; give a list of grades")
    found: list[float] = []
    for position, value in enumerate(values):
        label = _plain(value)
        grade = float(label) if isinstance(label, bool) else as_float(label)
        if grade - grade != 0.0:
            raise ScoreError(f"{where}: '{name}' has {shown(label)} at position {position}; give 0, 1 or a grade")
        found.append(grade)
    return tuple(found)
