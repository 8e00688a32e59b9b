"""pytest: the closing line of each session, ``== 1 failed, 2 passed in 0.05s ==``, or without ``=`` under ``-q``.

A session that a test of a plugin runs inside prints a closing line too, shown among the captured output of the failing test; so
may any test. They are told from the outer one by the order of pytest's own headings: a session that began later ends earlier.
What cannot be told apart is an output that imitates a whole session, or ``-q -s``, under which the tests' output stands between
the closing lines: then the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from jumar.loop.checks.runners.suite import SuiteRun

_WORDS: Final = r"\d{1,9} [a-z]+(?: [a-z]+)?"
_CLOSING: Final = re.compile(
    rf"(?:=+ )?(no tests ran|{_WORDS}(?:, {_WORDS}){{0,15}}) in \d{{1,9}}\.\d\ds(?: \([\d:, days]+\))?(?: =+)?"
)
_COUNT: Final = re.compile(r"(\d{1,9}) ([a-z]+(?: [a-z]+)?)")
_KINDS: Final = {
    "passed": "passed",
    "xpassed": "passed",
    "failed": "failed",
    "error": "errors",
    "errors": "errors",
    "skipped": "skipped",
    "xfailed": "skipped",
    "deselected": "",
    "warning": "",
    "warnings": "",
}
_START: Final = "test session starts"
_SUMMARY: Final = "short test summary info"
_HEADING: Final = re.compile(rf"=+ ({_START}|PASSES|FAILURES|ERRORS|{_SUMMARY}) =+")
_PROGRESS: Final = re.compile(r"\[ {0,2}\d{1,3}%\]$")
_SUMMED_UP: Final = re.compile(r"(?:FAILED|ERROR|PASSED|XFAIL|XPASS|SKIPPED|SUBFAILED)\b")
_ABORTED: Final = re.compile(r"!+ (?:Interrupted: (\d{1,9}) errors? during collection|.*) !+")


class _Session:
    """What is known of a session that ``began`` at a line, before its closing line."""

    def __init__(self, began: int = 0) -> None:
        self.began = began
        self.headings: list[str] = []
        self.unloaded = 0
        self.cut_short = False

    @property
    def quotes(self) -> bool:
        """Whether captured output may follow: after it comes the summary, and the session's own closing line."""
        return bool(self.headings) and self.headings[-1] not in {_START, _SUMMARY}

    def closed(self, closing: str) -> SuiteRun:
        counts: dict[str, int] = dict.fromkeys(("passed", "failed", "errors", "skipped", ""), 0)
        for number, word in _COUNT.findall(closing):
            counts[_KINDS.get(word, "")] += int(number)
        unloaded = min(counts["errors"], self.unloaded)
        return SuiteRun(
            runner="pytest",
            passed=counts["passed"],
            failed=counts["failed"] + counts["errors"] - unloaded,
            skipped=counts["skipped"],
            cut_short=self.cut_short,
            collection_errors=unloaded,
        )


def read_pytest(lines: Sequence[str]) -> tuple[list[SuiteRun], list[str]]:
    """Return each session, in order, and the lines around them: within one, what a runner seems to say is a test's.

    A test that passes and then fails to be torn down counts as both. Of a session without any heading or progress
    (``-q -s``) only the closing line is known.
    """
    runs: list[SuiteRun] = []
    around: list[str] = []
    stack: list[_Session] = []
    latest: SuiteRun | None = None
    bare = False  # whether the latest came without any heading or progress
    after = 0  # the lines before are told apart
    for index, line in enumerate(lines):
        closing = _closing(line)
        if closing is None:
            _follow(stack, line, index)
            continue
        session = stack[-1] if stack else _Session(index)
        latest = session.closed(closing)
        if session.quotes:
            continue
        if len(stack) < 2:  # others ran inside of a test
            if bare and session.headings in ([], [_SUMMARY]):  # nothing began since: the one before was a test's
                del runs[-1:]
            runs.append(latest)
            bare = not session.headings
            around += lines[after : session.began]
            after = index + 1
        del stack[-1:]
    if stack and latest is not None:  # sessions without a summary, or headings of one that never ended
        runs.append(latest)
    if stack and stack[0].headings != [_START]:
        around += lines[after : stack[0].began]
        summed_up = (index + 1 for index in range(len(lines) - 1, after, -1) if _SUMMED_UP.match(lines[index]))
        after = next(summed_up, len(lines))
    return runs, around + list(lines[after:])


def _closing(line: str) -> str | None:
    found = _CLOSING.fullmatch(line) if line[:1] in {*"=n0123456789"} else None
    if found is None or (found[1][0] != "n" and not any(word in _KINDS for _, word in _COUNT.findall(found[1]))):
        return None
    return found[1]


def _follow(stack: list[_Session], line: str, index: int) -> None:
    """Take one line that closes nothing: a heading that cannot come now begins another session inside."""
    if line.startswith("="):
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            if not stack or heading[1] in {*stack[-1].headings, _START}:
                stack.append(_Session(index))
            stack[-1].headings.append(heading[1])
    elif line.startswith("!"):
        aborted = _ABORTED.fullmatch(line)
        if aborted is not None and stack:
            stack[-1].unloaded = max(stack[-1].unloaded, int(aborted[1] or 0))
            stack[-1].cut_short |= aborted[1] is None
    elif line.startswith("ERROR "):
        if stack and stack[-1].headings[-1:] == [_SUMMARY] and "::" not in line.partition(" - ")[0]:
            stack[-1].unloaded += 1
    elif _PROGRESS.search(line[-6:]) and (not stack or stack[-1].headings[-1] != _START):
        stack.append(_Session(index))
        stack[-1].headings.append(_START)
