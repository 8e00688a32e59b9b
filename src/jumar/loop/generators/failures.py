"""What kind of failure a step was: rate-limited, blocked, failed, without effect.

A generator can say that it must wait or cannot go on: with an exit code, with its usage file, or, where it knows nothing of us,
in what a failed run printed last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from jumar.core.text import cut, last_line, without_escapes
from jumar.model import Usage
from jumar.model.attempts import AttemptEnd
from jumar.model.records import Analysis, FailureKind
from jumar.processes.process import describe_exit

EXIT_RATE_LIMITED: Final = 75
"""EX_TEMPFAIL of ``sysexits.h``: try again later."""

EXIT_BLOCKED: Final = 77
"""EX_NOPERM of ``sysexits.h``: a person is needed."""

FIRST_WAIT: Final = 60.0  # seconds, doubled with every further refusal in a row
LONGEST_WAIT: Final = 900.0
_LOOKED_AT: Final = 4_000  # characters of the end of the output

_LIMITED = re.compile(
    # a bare 429 may be milliseconds, tokens or cents: it counts where something says that it is a status
    r"(?:status|code|error|http\S*|rejected|got|returned)\W{0,6}[45]29\b|^\W*[45]29\b|rate[- ]?limit|too many requests"
    r"|(?:usage|request|token) limit (?:reached|exceeded)|hit your (?:\w+ )?limit|quota exceeded"
    r"|\boverloaded(?:_error)?\b|resource[_ ]exhausted",
    re.IGNORECASE | re.MULTILINE,
)
_UNIT = r"(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)(?![a-z])"
_RETRY = re.compile(
    r"(?:retry[- _]?after|try again in|retry in|wait|resets? in)\W{0,4}"
    rf"(\d{{1,7}}(?:\.\d+)?(?:\s*{_UNIT}(?:[\s,]*(?:and\s+)?\d{{1,7}}\s*{_UNIT})*|\b))",
    re.IGNORECASE,
)
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_UNITS: Final = (("ms", 0.001), ("milli", 0.001), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0))
"""Seconds by how the unit begins, the first that fits; anything else is seconds."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A provider refused for now. ``retry_after`` is how many seconds it asked to wait, None when it did not say."""

    retry_after: float | None


def rate_limit(exit_code: int | None, output_tail: str, usage: Usage) -> RateLimit | None:
    """Return the rate limit that a *failed* run met, or None when it failed for another reason.

    What it says itself counts first: the usage file, then exit code 75; then what the end of its output looks like.
    """
    end = output_tail[-_LOOKED_AT:]
    said = usage.rate_limited is True or exit_code == EXIT_RATE_LIMITED
    if usage.rate_limited is False or not (said or _LIMITED.search(end)):
        return None
    return RateLimit(usage.retry_after if usage.retry_after is not None else _told(end))


def _told(text: str) -> float | None:
    found = list(_RETRY.finditer(text))
    if not found:
        return None
    return sum(float(number) * _seconds(unit.lower()) for number, unit in _AMOUNT.findall(found[-1][1]))


def _seconds(unit: str) -> float:
    return next((scale for beginning, scale in _UNITS if unit.startswith(beginning)), 1.0)


def blocked_by_exit(exit_code: int | None, output_tail: str) -> str | None:
    """Return why a run that ended with exit code 77 is blocked, in its own last words; None for any other."""
    if exit_code != EXIT_BLOCKED:
        return None
    return cut(last_line(output_tail), 500) or "the generator says that it is blocked (exit code 77)"


def last_words(output: str) -> str:
    """Return the line that says best why a run failed: its last one; empty when it printed nothing.

    Where that is a JSON document, as agents print at their end: what its ``error``, ``message`` or ``result`` says, else the last
    line that is none, else the document.
    """
    last = last_line(output)
    document = _document(last)
    if document is None:
        return last
    said = next((text for key in ("error", "message", "result") if (text := _text(document.get(key)))), "")
    plain = (line.strip() for line in reversed(output.splitlines()) if line.strip() and _document(line) is None)
    return said or next(plain, last)


def document_texts(line: str) -> tuple[str, ...]:
    """Return the lines of what a JSON document in ``line`` says; nothing where the line is none, or says nothing."""
    document = _document(line)
    if document is None:
        return ()
    said = (document.get(key) for key in ("result", "message", "text", "error"))
    return tuple(each for text in said if isinstance(text, str) for each in text.splitlines()[-MAX_ERRORS:])


def _document(line: str) -> Mapping[str, Any] | None:
    if not line.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else None


def _text(value: object) -> str:
    """Return the last line of a text, or of the ``message`` in an object."""
    if isinstance(value, dict):
        value = cast("Mapping[str, object]", value).get("message")
    return last_line(value) if isinstance(value, str) else ""


def next_wait(told: float | None, refused: int) -> float:
    """Return how many seconds to wait after ``refused`` (1 or more) refusals in a row: as told, else 60 s doubling to 15 min."""
    if told is not None:
        return told
    return min(FIRST_WAIT * 2.0 ** (min(refused, 10) - 1), LONGEST_WAIT)


def without_effect(*, modified: bool, printed: bool | None) -> FailureKind | None:
    """Return how a run that ended well had no effect: it changed nothing, or printed nothing either. None when it had one."""
    if modified:
        return None
    return "produced_nothing" if printed is False else "changed_nothing"


# ------------------------------------------------------------------------------------------------------- what the output says


MAX_ERRORS = 20
_LONGEST = 300

_ERROR = re.compile(
    r"""
    \s*(?:
        (?i:(?:[^\s:]+:(?:\d+:)*\s*)?(?:fatal\ error|error|fatal|panic)(?:\[\w+\])?:)   # error: …  src/x.c:3:5: error: …
      | (?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)(?::|$)                               # ValueError: …
      | (?:\[|\d[\d:.,TZ+ -]*\[?)?(?:ERROR|FATAL|CRITICAL|FAILED)\b\]?                # ERROR …  [FATAL] …  12:00:01 ERROR …
      | npm\ (?:ERR!|error)
      | thread\ '.*'\ .*panicked\ at
      | \S+:.*:\ (?:(?:command\ )?not\ found|No\ such\ file\ or\ directory|Permission\ denied)$
      | (?:Segmentation\ fault|Bus\ error|Out\ of\ memory)\b
    )
    """,
    re.VERBOSE,
)


def analyze(end: AttemptEnd | None, artifacts_modified: Sequence[str]) -> Analysis:
    """Return the analysis of a run that ended, with the paths that it added, changed or removed; of None, that nothing ran.

    ``completed`` is the generator's own claim: its usage file's, or the promise that it was asked for.
    """
    if end is None:
        return Analysis(artifacts_modified=tuple(artifacts_modified))
    errors = tuple(end.errors)
    if end.outcome != "ok" and not errors:
        sentence = end.detail or describe_exit(end.exit_code)
        errors = (sentence,) if sentence else ()
    return Analysis(
        artifacts_modified=tuple(artifacts_modified),
        tokens_used=end.usage.tokens_used,
        success=end.outcome == "ok",
        completed=end.usage.completed is True,
        errors=errors,
    )


def error_lines(*outputs: str) -> tuple[str, ...]:
    """Return the lines that look like errors, each once, the last :data:`MAX_ERRORS` of them, without escape sequences.

    A line counts for how it begins, as compilers, interpreters, shells and loggers write them; talk about errors does not.
    """
    found: dict[str, None] = {}
    for line in _lines(outputs):
        if _ERROR.match(line):
            found.setdefault(line.strip()[:_LONGEST])
    return tuple(found)[-MAX_ERRORS:]


def _lines(outputs: Iterable[str]) -> Iterable[str]:
    for output in outputs:
        for line in output.splitlines():
            # longer ones are data; matching them would take time and say nothing
            yield without_escapes(line[: 4 * _LONGEST])


def promises_completion(stdout: str, promise: str | None) -> bool:
    """Return whether the ``promise`` that the prompt asks for stands alone on a line of ``stdout``."""
    wanted = (promise or "").strip()
    return bool(wanted) and any(line.strip() == wanted for line in stdout.splitlines())
