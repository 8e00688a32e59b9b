"""Labelled queries: what was retrieved, in order, and which of it was relevant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jumar.errors import ScoreError
from jumar.text import escape
from jumar.topk.contract import read_scores, shown
from jumar.topk.types import Scale

__all__ = ["LabelledQuery", "labelled"]


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """One query's ranking with its labels.

    ``scores`` are best first, ``relevant`` says of each whether it is relevant, ``relevant_total`` is how many relevant items
    there are at all, also those that were not retrieved. With a total of 0 the query is *out of scope*: the right answer is none.
    Errors: :class:`jumar.errors.ScoreError` when the lengths differ, a score is not finite, or more is relevant than there is.
    """

    query_id: str
    scores: tuple[float, ...]
    relevant: tuple[bool, ...]
    relevant_total: int

    def __post_init__(self) -> None:
        where = f"query {escape(self.query_id)}"
        if len(self.scores) != len(self.relevant):
            raise ScoreError(f"{where}: {len(self.scores)} scores and {len(self.relevant)} labels; give one label a score")
        for position, score in enumerate(self.scores):
            if score - score != 0.0:
                raise ScoreError(f"{where}: the score at position {position} is {score!r}; scores are finite")
        if self.relevant_total < sum(self.relevant):
            raise ScoreError(
                f"{where}: relevant_total is {self.relevant_total}, but {sum(self.relevant)} retrieved items are relevant"
            )

    @property
    def in_scope(self) -> bool:
        """Whether anything is relevant to the query at all."""
        return self.relevant_total > 0


def labelled(runs: Iterable[LabelledQuery | Mapping[str, Any]], *, scale: Scale = "similarity") -> tuple[LabelledQuery, ...]:
    """Return ``runs`` as labelled queries, checked.

    A mapping has ``scores`` and ``relevant`` (0/1 or graded: above 0 is relevant), and may have ``query_id`` (default: its
    number) and ``relevant_total`` (default: those among the retrieved, which flatters recall). Scores are best first: descending,
    of scale ``distance`` ascending. Errors: :class:`jumar.errors.ScoreError` that names the query.
    """
    found = tuple(one if isinstance(one, LabelledQuery) else _query(one, number) for number, one in enumerate(runs))
    sign = -1.0 if scale == "distance" else 1.0
    for query in found:
        for position in range(1, len(query.scores)):
            if sign * query.scores[position] > sign * query.scores[position - 1]:
                raise ScoreError(
                    f"query {escape(query.query_id)}: the scores are not sorted, best first: position {position} "
                    f"({query.scores[position]!r}) is better than the one before it ({query.scores[position - 1]!r})"
                )
    return found


def _query(row: Mapping[str, Any], number: int) -> LabelledQuery:
    query_id = str(row.get("query_id", number))
    where = f"query {escape(query_id)}"
    for name in ("scores", "relevant"):
        if not isinstance(row.get(name), Sequence) or isinstance(row[name], str):
            raise ScoreError(f"{where}: '{name}' is {shown(row.get(name))}; give a list, one entry an item")
    try:
        scores, grades = tuple(read_scores(row["scores"])), read_scores(row["relevant"])
    except ScoreError as error:
        raise ScoreError(f"{where}: {error}") from error
    relevant = tuple(grade > 0 for grade in grades)
    total = row.get("relevant_total")
    if total is None:
        total = sum(relevant)
    if isinstance(total, bool) or not isinstance(total, int):
        raise ScoreError(f"{where}: 'relevant_total' is {shown(total)}; give a whole number")
    return LabelledQuery(query_id, scores, relevant, total)
