"""Seed 2's output analyzer: what a generator run was, from how it ended, what it printed and what it changed.

Its verdict is about the *run*. Whether the candidate is any good is for checks and scorers to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from jumar.core.text import without_escapes
from jumar.model.attempts import AttemptEnd
from jumar.model.records import Analysis
from jumar.processes.process import describe_exit

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
