"""The table of iterations: a row each as the terminal and the page show it, what stands under it, and seed 2's totals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from jumar.core.given import Given
from jumar.core.rendering.figures import UNKNOWN, dollars, duration
from jumar.core.text import cut, escape, signed_points
from jumar.loop.ranking.repairs import Repairs, repairs
from jumar.loop.report.read import LoopReport
from jumar.loop.report.spending import without_row_text
from jumar.loop.store.layout import root_of
from jumar.model import Decision, IterationRecord, IterationView
from jumar.model.ordering import difference, valid_score
from jumar.model.records import NO_EFFECT, NO_TESTS, NOT_COLLECTED

VERIFIED: Final = MappingProxyType({"passed": "verified", "failed": "verification failed", "skipped": "not verified"})
"""What the checks said of an iteration, in words."""

_MINUS = "−"
_NAME = 40  # characters of a check's
_SAID = 120  # characters of what somebody said in a remark
_SCORING = re.compile(r"(?:^|; )(?:scorers|validators|checks|quality|weights|judge|evaluator|check|noise|repeat)")
_SHOWN = 200
_LEARNED = (
    "this is the loop of jumar learn: quality is the mean of closeness (1 − gap / 4) and ranking ((1 + rank correlation) / 2) on "
    "open items, each scored by a set that did not see it; it says which set was kept, not whether that set tracks the judge"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryRow:
    """The columns ``it, score, Δ, checks, cost, time, note`` as text safe for a terminal; the flags are for colours.

    ``remarks`` are what else is to be known of the iteration: without effect, refused, not verified. They stand behind the note.
    """

    number: int
    score: str
    delta: str
    checks: str
    cost: str
    time: str
    note: str
    remarks: tuple[str, ...] = ()
    chosen: bool = False
    best: bool = False
    invalid: bool = False
    failed: bool = False

    @property
    def cells(self) -> tuple[str, str, str, str, str, str, str]:
        """The seven columns in order."""
        return (str(self.number), self.score, self.delta, self.checks, self.cost, self.time, self.said())

    def said(self, why: str = "") -> str:
        """Return the last column, with why the iteration failed behind the note."""
        lead = f"{self.note}: {why}" if why and self.note else why or self.note
        return " · ".join(part for part in (lead, *self.remarks) if part)


def trajectory_rows(report: LoopReport) -> tuple[TrajectoryRow, ...]:
    """Return a row for every record, iteration 0 first. The selected one is marked, and the best one where they differ."""
    best = report.leaders[-1] if report.leaders and not report.kept else None
    return tuple(
        trajectory_row(
            record,
            report.compared_with(record),
            best=best,
            chosen=report.chosen,
            weights=report.weights,
            refused=report.took.refused.get(record.iteration_number, 0),
        )
        for record in report.records
    )


def compared_with(
    record: IterationRecord, before: IterationRecord | None, known: Mapping[int, IterationRecord]
) -> IterationRecord | None:
    """Return the iteration that ``record`` started from, None when it is not among ``known``.

    In the records of a program of a person's own nobody knows that, and it is the one ``before``.
    """
    return before if record.parent is None else known.get(record.parent)


def change(record: IterationRecord, parent: IterationRecord | None) -> float | None:
    """Return by how many points ``record`` is above what :func:`compared_with` returns; None where one of them has no score."""
    if parent is None or record.quality_score is None or parent.quality_score is None:
        return None
    return difference(record.quality_score, parent.quality_score)


def started_from(record: IterationRecord) -> str:
    """Return ``from 3`` where an iteration, or its batch, did not start from the one before it; else nothing."""
    before = record.iteration_number - (record.candidate or 1)
    if record.parent is None or record.parent == before:
        return ""
    return f"from {record.parent}" if record.parent else "from the start"


def trajectory_row(
    record: IterationRecord,
    parent: IterationRecord | None,
    *,
    best: int | None,
    chosen: int | None = None,
    weights: Mapping[str, float] | None = None,
    refused: int = 0,
) -> TrajectoryRow:
    """Return one row. ``best`` is the running best, ``chosen`` None while the loop still runs.

    ``parent`` is what :func:`compared_with` returns: the change of the score, and what was repaired and broken, is told against
    it. ``weights`` decide which dimension's fall is named when the score fell; none: all count the same. ``refused`` is how often
    its provider refused it.
    """
    number = record.iteration_number
    delta, origin = change(record, parent), started_from(record)
    changes = repairs(record, None if record.parent is None else parent)
    told = (
        bool(changes.broke or changes.missing) and len(record.dimensions) == 1
    )  # then the fall of the one dimension says no more
    invalid = record.quality_score is None or record.status != "ok"
    return TrajectoryRow(
        number=number,
        score=UNKNOWN if record.quality_score is None else _score(record.quality_score),
        delta="" if delta is None else _signed(delta),
        checks=checks_cell(record),
        cost=dollars(record.token_cost_usd, places=2),
        time=duration(None if record.execution_time_ms is None else record.execution_time_ms / 1000),
        note=_note(record, None if told else parent, best=best, chosen=chosen, weights=weights or {}),
        remarks=(
            *((origin,) if origin else ()),
            *((str(changes),) if changes else ()),
            *_silent(record, changes),
            *_remarks(record, refused),
        ),
        chosen=number == chosen,
        best=number == best,
        invalid=invalid,
        failed=record.verification_status == "failed",
    )


def _score(value: float) -> str:
    return value.text() if isinstance(value, Given) else f"{value:.1f}"


def _signed(value: float) -> str:
    if isinstance(value, Given):
        return signed_points(value)
    shown = f"{value:+.1f}".replace("-", _MINUS)
    return "0.0" if shown in {"+0.0", f"{_MINUS}0.0"} else shown


def checks_head(records: Iterable[IterationRecord]) -> str:
    """Return the head of the column of checks: those that count tests are called by them."""
    return "tests" if any(check.tests is not None for record in records for check in record.checks) else "checks"


def failing_checks(record: IterationRecord) -> tuple[str, ...]:
    """Return the checks that fail and count no tests, where others do: the counts do not tell of them. Safe for a terminal."""
    if len(record.checks) < 2 or not tests_of(record):
        return ()
    return tuple(
        escape(cut(check.name, _NAME))
        for check in record.checks
        if check.tests is None and not check.passed and check.broken is None
    )


def _silent(record: IterationRecord, changes: Repairs) -> Iterable[str]:
    """Yield which check fails that neither the counts nor the ``changes`` tell of, and why a check came to no test."""
    failing = () if any(check.name in changes.broke.names for check in record.checks) else failing_checks(record)
    if failing:
        yield f"{', '.join(failing)} fail{'s' if len(failing) == 1 else ''}"
    for check in record.checks:
        if check.tests is None and check.note.startswith((NO_TESTS, NOT_COLLECTED)):
            yield escape(check.note)


def checks_cell(record: IterationRecord) -> str:
    """Return ``11/12`` tests of the checks that count them, else ``2/3`` checks, with `` ✓`` where all passed.

    Where only the verdict is known: ``✓``, ``✗`` or ``—``.
    """
    if not record.checks:
        return {"passed": "✓", "failed": "✗", "skipped": UNKNOWN}[record.verification_status]
    mark = " ✓" if record.verification_status == "passed" else ""
    if counted := tests_of(record):
        return f"{counted}{mark}"
    passed = sum(check.passed and check.broken is None for check in record.checks)
    return f"{passed}/{len(record.checks)}{mark}"


def tests_of(record: IterationRecord) -> str:
    """Return how many tests pass of those that count, over all checks that count tests: ``11/12``; empty where none does."""
    counts = [check.tests for check in record.checks if check.tests is not None and check.broken is None]
    return f"{sum(tests.passed for tests in counts)}/{sum(tests.total for tests in counts)}" if counts else ""


def _note(
    record: IterationRecord,
    parent: IterationRecord | None,
    *,
    best: int | None,
    chosen: int | None,
    weights: Mapping[str, float],
) -> str:
    number = record.iteration_number
    parts = ["start"] if number == 0 else []
    if number == best and chosen in {None, number}:
        parts.append("★ best")
    elif number == chosen:
        parts.append("★ selected")
    elif number == best:
        parts.append("highest score" if record.measured is None else "best score")
    if record.status != "ok":
        parts.append(record.status.replace("_", " "))
    elif len(parts) == 0 and parent is not None and (change(record, parent) or 0) < 0:
        parts += _largest_fall(record, parent, weights)
    return escape(" · ".join(parts))


def _remarks(record: IterationRecord, refused: int) -> tuple[str, ...]:
    """What a person should know of the iteration besides its score."""
    found: list[str] = []
    if record.failure is not None and record.failure in NO_EFFECT:
        found.append(record.failure.replace("_", " "))
    elif record.failure == "blocked":
        why = record.usage.blocked or ""
        found.append(f"blocked: {cut(why, _SAID)}" if why and why not in record.status_reason else "blocked")
    if refused:
        found.append(f"rate-limited {refused}×")
    if len(record.tampering) > 0:
        more = f" (and {len(record.tampering) - 1} more)" if len(record.tampering) > 1 else ""
        found.append(f"not verified: {cut(record.tampering[0], _SAID)}{more}")
    elif record.analysis.completed and record.verification_status == "failed":
        found.append("says it is done; the checks disagree")
    if record.measured is not None:  # what was tried, by the table that it was imported from
        found += [cut(said, _SAID) for said in record.reflections[:1]]
    return tuple(escape(remark) for remark in found)


def _largest_fall(record: IterationRecord, parent: IterationRecord, weights: Mapping[str, float]) -> list[str]:
    """The dimension that took most from the score, with its own change on 0–100."""
    falls = [
        (weights.get(name, 1.0) * (value - parent.dimensions[name]), value - parent.dimensions[name], name)
        for name, value in record.dimensions.items()
        if name in parent.dimensions
    ]
    if not falls:
        return []
    weighted, change, name = min(falls, key=lambda fall: fall[0])
    return [f"{name} {_signed(change * 100)}"] if weighted < 0 else []


# ---------------------------------------------------------------------------------------------------------- under the table


def table_notes(report: LoopReport) -> tuple[str, ...]:
    """Return the sentences, each without a full stop; none where every attempt has a row and nothing changed."""
    line = without_row_text(report.took)
    return (*(() if line is None else (line,)), *changes(report))


def learned_in(report: LoopReport) -> str | None:
    """Return the folder of the learning run whose loop this is, None for a loop of another kind."""
    run = report.config.get("run")
    if not isinstance(run, Mapping) or not {"heldout", "profile", "propose"} <= set(cast("Mapping[str, Any]", run)):
        return None
    place = Path(report.storage_path)
    return str(root_of(place).parent)


def changes(report: LoopReport) -> tuple[str, ...]:
    """Return a sentence for each time that a changed configuration was accepted; before them, of a learning run, what is scored.

    Each without a full stop.
    """
    changed = tuple(_change(decision) for decision in report.decisions if decision.kind == "accept")
    return changed if learned_in(report) is None else (_LEARNED, *changed)


def _change(decision: Decision) -> str:
    first = 0 if decision.final_iteration is None else decision.final_iteration + 1
    compared = "; scores before and after are not comparable" if _SCORING.search(decision.reason) else ""
    return f"from iteration {first} on with another configuration ({cut(decision.reason, _SHOWN)}){compared}"


# ------------------------------------------------------------------------------------------------------------ seed 2's totals


class _Named(dict[str, Any]):
    """A plain dictionary (JSON takes it, ``==`` works) whose keys are attributes as well."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {', '.join(self)}") from None


class Summary(_Named):
    """Seed 2's totals over all iterations; iteration 0 is the start state and not counted.

    ``total_iterations``; ``average_quality, best_quality, worst_quality`` (0–100, over valid scores, the average rounded to 4
    decimals); ``total_tokens, total_cost_usd, total_time_ms``. A total is None when any iteration did not report it, a quality is
    None when no score is valid; with no iteration at all everything is 0. Keys are attributes too.
    """


class TrajectoryPoint(_Named):
    """``iteration`` and ``quality`` (0–100, None when the score is invalid), as keys and as attributes."""


def _mean(scores: Sequence[float]) -> float:
    """Return the mean, rounded to 4 decimals; on a scale of its own that of the values, as it is."""
    mean = math.fsum(scores) / len(scores)
    return Given(mean, scores[0].scale.at(mean), scores[0].scale) if isinstance(scores[0], Given) else round(mean, 4)


def summary(records: Iterable[IterationRecord]) -> Summary:
    """Return the totals of ``records``; see :class:`Summary`."""
    passes = [record for record in records if record.iteration_number > 0]
    scores = [score for record in passes if (score := valid_score(record.view())) is not None]
    average, best, worst = (None, None, None) if passes else (0, 0, 0)
    if scores:
        average, best, worst = _mean(scores), max(scores), min(scores)
    return Summary(
        total_iterations=len(passes),
        average_quality=average,
        best_quality=best,
        worst_quality=worst,
        total_tokens=_total([record.tokens_used for record in passes]),
        total_cost_usd=_total([record.token_cost_usd for record in passes]),
        total_time_ms=_total([record.execution_time_ms for record in passes]),
    )


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return sum(known) if all(isinstance(value, int) for value in known) else math.fsum(known)


def quality_trajectory(iterations: Iterable[IterationRecord | IterationView]) -> list[TrajectoryPoint]:
    """Return ``[{"iteration": 1, "quality": 72}, …]`` in the order of ``iterations``, which may be records or views."""
    views = (item.view() if isinstance(item, IterationRecord) else item for item in iterations)
    return [TrajectoryPoint(iteration=view.number, quality=valid_score(view)) for view in views]
