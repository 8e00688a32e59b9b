"""The start, once it is judged and before anything is paid for: whether the loop may begin, and what is to be said of it."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Final

from jumar.core.lock import who_holds
from jumar.core.redaction import current
from jumar.core.text import cut, points, without_escapes
from jumar.errors import BrokenStartError
from jumar.loop.checks.broken import Trouble, troubles
from jumar.loop.engine.run_context import Answers
from jumar.loop.store.loop_reader import LoopReader
from jumar.model import IterationRecord
from jumar.model.stopping import StopRules

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
            text = "" if newest is None else newest.read_bytes()[-_LOG:].decode(errors="backslashreplace")
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
