"""From readings and checks to one verdict: verification, status, score, and the reasons for each. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from jumar.core.text import escape
from jumar.errors import ScoreError
from jumar.loop.ranking.score import weighted_score
from jumar.loop.workspace.guard import Finding
from jumar.model import CheckResult, ScoreReading
from jumar.model.records import Status, Verification

_REFLECTED = 0.999  # a dimension this good leaves nothing to reflect on
_WEAKNESSES = 10  # of one evaluation: notes are for later iterations, and their prompts stay short
_LONGEST = 500  # characters of one


def _nothing() -> Mapping[str, float]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What checks and scorers said of one candidate. ``quality`` is 0–100, or None with ``status`` saying why."""

    verification: Verification
    status: Status
    status_reason: str = ""
    quality: float | None = None
    dimensions: Mapping[str, float] = field(default_factory=_nothing)
    reasons: tuple[str, ...] = ()
    reflections: tuple[str, ...] = ()


def verdict(checks: Sequence[CheckResult], readings: Sequence[ScoreReading], weights: Mapping[str, float]) -> Verdict:
    """Combine ``checks`` and ``readings``. Scorers that share a dimension are averaged.

    A broken part (one that could not answer) makes the iteration invalid and says nothing about the candidate; so does an
    unusable number. Neither is 0, and neither can be selected.
    """
    verification = _verification(checks)
    reasons = tuple(f"{reading.dimension}: {escape(reading.reason)}" for reading in readings if reading.reason)
    reflections = _reflections(checks, readings)
    for check in checks:
        if check.broken is not None:
            reason = why_broken(check.name, check.broken)
            return Verdict(verification="failed", status="validator_broken", status_reason=reason, reasons=reasons)
    for reading in readings:
        if reading.broken is not None:
            reason = f"scorer of '{reading.dimension}' could not run: {reading.broken}"
            return Verdict(verification=verification, status="scorer_broken", status_reason=reason, reasons=reasons)
    try:
        dimensions = _dimensions(readings)
        quality = weighted_score(dimensions, weights)
    except ScoreError as error:
        return Verdict(verification=verification, status="invalid_score", status_reason=str(error), reasons=reasons)
    return Verdict(
        verification=verification,
        status="ok",
        quality=quality,
        dimensions=MappingProxyType(dimensions),
        reasons=reasons,
        reflections=reflections,
    )


def why_broken(name: str, why: str) -> str:
    """Return why the check ``name`` gave no answer, for people. What the person's own ``reset`` says names itself."""
    return why if why.startswith("[loop] ") else f"check '{name}' could not run: {why}"


def with_findings(judged: Verdict, findings: Sequence[Finding]) -> Verdict:
    """Return the verdict on a candidate of which ``findings`` are known: not verified when one of them is held against it.

    Where a check could not be put back, its answer means nothing, and there is no score.
    """
    if not findings:
        return judged
    messages = tuple(finding.message for finding in findings)
    judged = replace(judged, reasons=(*judged.reasons, *messages), reflections=(*judged.reflections, *messages))
    if any(finding.fails for finding in findings):
        judged = replace(judged, verification="failed")
    distrusted = next((finding.message for finding in findings if finding.distrust), None)
    if distrusted is not None and judged.status == "ok":
        judged = replace(judged, status="invalid_score", status_reason=distrusted, quality=None)
    return judged


def _verification(checks: Sequence[CheckResult]) -> Verification:
    if not checks:
        return "skipped"
    return "passed" if all(check.passed for check in checks) else "failed"


def _dimensions(readings: Sequence[ScoreReading]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for reading in readings:
        if reading.score is None:
            raise ScoreError(f"dimension '{reading.dimension}': {reading.invalid or 'no usable number'}")
        found.setdefault(reading.dimension, []).append(reading.score)
    return {dimension: math.fsum(scores) / len(scores) for dimension, scores in found.items()}


def _reflections(checks: Sequence[CheckResult], readings: Sequence[ScoreReading]) -> tuple[str, ...]:
    failing = [
        f"check '{check.name}' fails{'' if check.tests is None else f': {check.tests}'}" for check in checks if not check.passed
    ]
    weak = [
        f"{reading.dimension} {reading.score:.2f}: {escape(reading.reason)}"
        for reading in readings
        if reading.score is not None and reading.score < _REFLECTED and reading.reason
    ]
    judged = [
        escape(text)[:_LONGEST]
        for reading in readings
        if reading.judgement is not None
        for text in reading.judgement.weaknesses[:_WEAKNESSES]
    ]
    return tuple(failing + weak + judged)
