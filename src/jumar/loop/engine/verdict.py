"""From readings and checks to one verdict: verification, status, score, and the reasons for each. Pure."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from jumar.core.files import read_bytes
from jumar.core.lock import who_holds
from jumar.core.redaction import current
from jumar.core.text import cut, escape, points, without_escapes
from jumar.errors import BrokenStartError, ScoreError
from jumar.loop.checks.broken import Trouble, troubles
from jumar.loop.engine.run_context import Answers
from jumar.loop.ranking.score import weighted_score
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.workspace.guard import Finding
from jumar.model import CheckResult, IterationRecord, ScoreReading
from jumar.model.records import Status, Verification
from jumar.model.selection import StopRules

BrokenKind = Literal["validator_broken", "scorer_broken"]
_REFLECTED = 0.999  # a dimension this good leaves nothing to reflect on
_WEAKNESSES = 10  # of one evaluation: notes are for later iterations, and their prompts stay short
_LONGEST = 500  # characters of one
_NAMED = 3  # failing tests of one check
_NAME = 120  # characters of one's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What checks and scorers said of one candidate. ``quality`` is 0–100, or None with ``status`` saying why."""

    verification: Verification
    status: Status
    status_reason: str = ""
    quality: float | None = None
    dimensions: Mapping[str, float] = field(default_factory=dict[str, float])
    reasons: tuple[str, ...] = ()
    reflections: tuple[str, ...] = ()


def verdict(checks: Sequence[CheckResult], readings: Sequence[ScoreReading], weights: Mapping[str, float]) -> Verdict:
    """Combine ``checks`` and ``readings``. Scorers that share a dimension are averaged.

    A broken part (one that could not answer) makes the iteration invalid and says nothing about the candidate; so does an
    unusable number. Neither is 0, and neither can be selected.
    """
    verification: Verification = "passed" if all(check.passed for check in checks) else "failed"
    if not checks:
        verification = "skipped"
    reasons = tuple(f"{reading.dimension}: {escape(reading.reason)}" for reading in readings if reading.reason)
    reflections = _reflections(checks, readings)
    broken = first_broken(checks, readings)
    if broken is not None:
        return Verdict(verification=verification, status=broken[0], status_reason=broken[1], reasons=reasons)
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


def first_broken(checks: Sequence[CheckResult], readings: Sequence[ScoreReading]) -> tuple[BrokenKind, str] | None:
    """Return the kind and the sentence of the first part that could not answer; None when all could.

    What the person's own ``reset`` says names itself.
    """
    for check in checks:
        if check.broken is not None:
            own = check.broken.startswith("[loop] ")
            return "validator_broken", check.broken if own else f"check '{check.name}' could not run: {check.broken}"
    for reading in readings:
        if reading.broken is not None:
            return "scorer_broken", f"scorer of '{reading.dimension}' could not run: {reading.broken}"
    return None


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
    return tuple(failing + [line for line in map(_failing_tests, checks) if line] + weak + judged)


def _failing_tests(check: CheckResult) -> str:
    """Return which tests of a check fail, those alone that did not before where there are some; empty where none has a name."""
    names = check.new_failures or check.failures
    if check.passed or not names:
        return ""
    shown = (cut(escape(" ".join(name.split())).replace("`", "'"), _NAME) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"failing: {', '.join(f'`{name}`' for name in shown)}{more}"


_PERFECT: Final = 100.0
_LINES: Final = 10
_WIDTH: Final = 160
_LOG: Final = 4 << 10  # bytes of a scorer's log that are looked at


def never_begun(store: LoopReader) -> bool:
    """Whether a loop of ``jumar run`` came no further than a start that could not be judged.

    No iteration is recorded, no generator was run, and nobody writes it now: a run takes its start anew, with the
    configuration and the files as they are then. Judges that were asked are attempts, which stay.
    """
    if store.config.get("run") is None or store.iteration_numbers() or who_holds(store.paths.lock) is not None:
        return False
    attempts, waiting = store.attempts(), store.pending_numbers()
    if any(attempt.start.purpose == "generate" for attempt in attempts):
        return False
    broken = any(attempt.end is not None and attempt.end.outcome == "broken" for attempt in attempts)
    return broken and waiting in {(), (0,)}


def refuse_broken_start(answers: Answers, logs: Path) -> None:
    """Raise :class:`BrokenStartError` where checks or scorers can say nothing of the start; ``logs`` holds their output.

    The message has the end of what they printed and how to mend each.
    """
    found = troubles(answers.checks, answers.readings)
    if not found:
        return
    lines = ["the start cannot be judged, so no iteration is paid for:"]
    for trouble in found:
        lines.append(f"{trouble.part} {trouble.what}")
        lines += [f"  | {cut(line, _WIDTH)}" for line in _last_lines(trouble, logs)]
        lines.append(f"  to mend it: {trouble.fix}")
    lines.append("Then run the same command again, which judges the start anew; --allow-broken-start runs the loop all the same.")
    raise BrokenStartError(current().redact("\n".join(lines)))


def _last_lines(trouble: Trouble, logs: Path) -> list[str]:
    text = trouble.output
    if not text and trouble.dimension is not None:
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", trouble.dimension)
        with contextlib.suppress(OSError):
            newest = max(logs.glob(f"score-{name}_*.log"), key=lambda path: path.stat().st_mtime_ns, default=None)
            text = "" if newest is None else read_bytes(newest)[-_LOG:].decode(errors="backslashreplace")
    return [line.rstrip() for line in without_escapes(text).splitlines() if line.strip()][-_LINES:]


def words_on_start(start: IterationRecord, rules: StopRules, *, own_scorers: bool, checks_score: bool) -> tuple[str, ...]:
    """Return what a person should know before iterations are paid for; nothing where the start is as it should be.

    ``own_scorers`` says that something beside the checks makes the score, ``checks_score`` that they have a part in it.
    """
    score, passes = start.quality_score, start.verification_status == "passed"
    if score is None:
        return (f"the start has no valid score: {start.status_reason}",)
    refused = start.verification_status == "failed"
    if rules.target is not None and score >= rules.target and (rules.target_unverified or not refused):
        if passes and score == _PERFECT:
            reached = "every check passes at the start"
            more = "add a check that is red now (--check) or a measure of better (--score), or give --keep-going"
            more += ": new features begin green"
        else:
            reached, more = f"the start reaches the target of {points(rules.target)}", "raise --target, or give --keep-going"
        return (f"{reached}, so nothing is run and nothing is paid; to go on, {more}",)
    said: list[str] = []
    if score == _PERFECT and own_scorers and not refused:
        said.append(
            "the start already has the highest score there is: no iteration can beat it; add a check that is red now (--check), "
            "or a measure that tells good from better (--score)"
        )
    if refused and own_scorers and not checks_score:
        said.append(
            "the checks fail at the start, and they only verify: mending tests does not raise this score. To score both, "
            'add [[scorers]] builtin = "checks" in jumar.toml, and [weights] for how much each counts'
        )
    if refused and own_scorers and rules.target is not None:
        said.append(f"the target of {points(rules.target)} counts once no check fails: they fail at the start")
    return tuple(said)
