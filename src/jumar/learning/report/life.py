"""The life of one pattern: when it came and why, on which items it fires, and what the judge says of these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from jumar.core.text import escape
from jumar.errors import NotFoundError
from jumar.judging.cheap.evidence import PatternEvidence
from jumar.judging.items.item import Item
from jumar.judging.patterns.models import PatternSet
from jumar.judging.report.read import EvaluationReport, ItemScores
from jumar.learning.report.course import merges
from jumar.learning.report.view import LearningReport, points_text

_WORDS: Final = {"committed_pattern": "committed", "rejected_pattern": "rejected", "proposed_pattern": "proposed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeEvent:
    """What an iteration decided of the pattern, and why; ``points`` of the scale, empty where it got none."""

    iteration: int
    what: str
    reason: str
    points: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternLife:
    """One pattern. ``pattern`` is what the set has of it, None where it is not in the set.

    ``points`` is what it gives where it fires, ``held_out`` what the held-out items say of it. ``fired`` are the open items that
    it fires on, ``items`` how many there are; ``judge_where`` and ``judge_elsewhere`` are the means of the judge there and on the
    others.
    """

    id: str
    says: str
    pattern: dict[str, Any] | None
    points: str
    held_out: str
    events: tuple[LifeEvent, ...]
    fired: tuple[ItemScores, ...]
    items: int
    judge_where: float | None
    judge_elsewhere: float | None


def life_of(report: LearningReport, pattern_id: str, evaluation: EvaluationReport, items: Iterable[Item]) -> PatternLife:
    """Return the life of a pattern; ``items`` are those of ``evaluation``. Errors: :class:`NotFoundError` for an unknown id."""
    pattern = next((dict(each) for each in report.patterns if str(each["id"]) == pattern_id), None)
    actions = [(int(log["iteration"]), action) for log in report.logs for action in log["actions_taken"]]
    told = [
        (number, action)
        for number, action in actions
        if action.get("pattern_id") == pattern_id and action.get("action") in _WORDS
    ]
    if pattern is None and not told:
        raise NotFoundError(f"this run knows no pattern '{escape(pattern_id)}'")
    fires = set[str]() if pattern is None else _fires(pattern, items)
    fired = tuple(item for item in evaluation.items if item.id in fires)
    where = [item.expensive for item in fired if item.expensive is not None]
    elsewhere = [item.expensive for item in evaluation.items if item.id not in fires and item.expensive is not None]
    described = pattern if pattern is not None else told[-1][1]
    return PatternLife(
        id=pattern_id,
        says=str(described.get("description") or pattern_id),
        pattern=pattern,
        points=_points(report, pattern),
        held_out=_held_out(report, pattern_id),
        events=tuple(_events(report, pattern_id, told)),
        fired=tuple(sorted(fired, key=lambda item: -(item.expensive or 0.0))),
        items=len(evaluation.items),
        judge_where=fmean(where) if where else None,
        judge_elsewhere=fmean(elsewhere) if elsewhere else None,
    )


def _fires(pattern: dict[str, Any], items: Iterable[Item]) -> set[str]:
    evidence = PatternEvidence(PatternSet.model_validate({"version": "2.0", "patterns": [{**pattern, "status": "active"}]}))
    return {item.id for item in items if evidence.fired(item, None)}


def _points(report: LearningReport, pattern: dict[str, Any] | None) -> str:
    if pattern is None or report.unit is None:
        return ""
    return points_text(float(pattern["weight"]) * report.unit * (1 if pattern["type"] == "good" else -1))


def _held_out(report: LearningReport, pattern_id: str) -> str:
    known = report.members.get(pattern_id)
    if known is None:
        return ""
    right = "" if known["precision"] is None else f", {known['precision']:.0%} of these on its side"
    return f"fires on {known['coverage']:.0%} of the held-out items{right}; {known['role']}"


def _events(report: LearningReport, pattern_id: str, told: list[tuple[int, Any]]) -> Iterable[LifeEvent]:
    for number, action in told:
        points = action.get("points")
        yield LifeEvent(
            iteration=number,
            what=_WORDS[str(action["action"])],
            reason=str(action.get("reason") or ""),
            points="" if points is None else points_text(float(points)),
        )
    for merge in merges(report):
        if pattern_id in {merge["merged"], merge["into"]}:
            yield LifeEvent(iteration=int(merge["iteration"]), what="merged", reason=str(merge["explanation"]), points="")
