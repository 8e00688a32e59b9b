"""Seed 2's analyzer: what a run was, from how it ended."""

from __future__ import annotations

import time

import pytest

from jumar.core.text import without_escapes
from jumar.loop.generators.failures import MAX_ERRORS, analyze, error_lines, promises_completion
from jumar.model import Analysis, AttemptEnd, Usage

ERRORS = [
    "error: expected ';'",
    "src/x.c:3:5: error: expected",
    "src/x.c:3:5: fatal error: no such header",
    "error[E0425]: cannot find value",
    "Error: something",
    "ERROR: something",
    "ValueError: bad",
    "json.decoder.JSONDecodeError: Expecting value",
    "java.lang.NullPointerException: a",
    "KeyboardInterruptError",
    "2026-01-01 12:00:00 ERROR boo",
    "[ERROR] x",
    "FAILED tests/a.py::b - x",
    "sh: 1: foo: not found",
    "bash: foo: command not found",
    "cat: x: No such file or directory",
    "fatal: not a git repository",
    "thread 'main' panicked at src/main.rs:2:5",
    "npm ERR! code 1",
    "panic: runtime error: index out of range",
    "Segmentation fault (core dumped)",
]
TALK = [
    "Found 0 errors",
    "No errors.",
    "error handling improved",
    "I fixed the error in the parser",
    "This error: something in prose",
    "ERRORS were few",
    '  File "x.py", line 3, in f',
    "Traceback (most recent call last):",
    "an exception was raised",
    "",
]


def test_lines_that_look_like_errors_and_lines_that_talk_about_them():
    assert ERRORS == [line for line in ERRORS if error_lines(line) == (line,)]
    assert [] == [line for line in TALK if error_lines(line)]


def test_errors_are_told_once_without_escapes_and_bounded():
    assert ("Error: red",) == error_lines("\x1b[31mError: red\x1b[0m\nError: red\n", "  Error: red")
    many = error_lines("\n".join(f"Error: {number}" for number in range(100)))
    assert tuple(f"Error: {number}" for number in range(100 - MAX_ERRORS, 100)) == many
    assert 300 == len(error_lines("Error: " + "x" * 10_000)[0])


def test_hostile_lines_take_bounded_time():
    began = time.perf_counter()
    for block in (
        "1:" * 500_000,
        "a:1:" * 250_000,
        ("x: " * 400 + "\n") * 800,
        "[" * 1_000_000,
        "\x1b]" * 500_000,
        " " * 1_000_000,
    ):
        error_lines(block)
    assert time.perf_counter() - began < 20


def test_escapes():
    assert "red link ok" == without_escapes("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x07 ok")


@pytest.mark.parametrize(
    ("stdout", "promise", "expected"),
    [
        ("work\n<promise>COMPLETE</promise>\n", "<promise>COMPLETE</promise>", True),
        ("  DONE  \r\nbye", "DONE", True),
        ("print `DONE`, alone on a line", "DONE", False),
        ("DONE.", "DONE", False),
        ("", "DONE", False),
        ("\n", "", False),
        ("\n", None, False),
    ],
)
def test_a_promise_counts_alone_on_a_line(stdout, promise, expected):
    assert expected is promises_completion(stdout, promise)


def end(**fields) -> AttemptEnd:
    return AttemptEnd(**{"outcome": "ok", "seconds": 1.0, "ended_at": "2026-01-01T00:00:00Z"} | fields)


def test_analysis_of_a_run():
    done = end(usage=Usage(tokens_used=5, completed=True), errors=("Error: small",))
    expected = Analysis(artifacts_modified=("a", "b"), tokens_used=5, success=True, completed=True, errors=("Error: small",))
    assert expected == analyze(done, ["a", "b"])
    assert Analysis(success=False, errors=("exit code 3",)) == analyze(end(outcome="failed", exit_code=3), [])
    assert Analysis(success=False, errors=("timed out after 1 s",)) == analyze(
        end(outcome="timeout", detail="timed out after 1 s"), []
    )
    assert Analysis(completed=False) == analyze(end(usage=Usage(completed=False)), [])
    assert Analysis(artifacts_modified=("x",)) == analyze(None, ["x"])
