"""What later prompts get of what an agent printed: what helps, in bounded lines that are quoted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.text import escape
from jumar.loop.generators.carry_over import carry_over, next_steps
from jumar.model.attempts import AttemptEnd

SECRET = "ghp_" + "a1B2" * 9


def ended(output: str = "", **more: object) -> AttemptEnd:
    given: dict[str, object] = {"outcome": "ok", "seconds": 1.0, "ended_at": "", "output_tail": output, **more}
    return AttemptEnd(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("Fixed it.\nNext: write the docs\n", ["Next: write the docs"]),
        ("I parsed it. Next I will fix the lexer.", ["Next I will fix the lexer."]),
        ("## Next steps\n- one\n", ["Next steps one"]),
        ("**Next steps:**\n\n1. one\n2. two\n3. three\n4. four\n", ["Next steps: one; two; three"]),
        ("Next steps:\nfix the lexer and the parser\nall is well\n", ["Next steps: fix the lexer and the parser"]),
        ("TODO: tests for bar.py\nbye", ["TODO: tests for bar.py"]),
        (
            "Remaining work: the lexer.\nStill failing: test_b\nStill to do: docs\n",
            ["Still failing: test_b", "Still to do: docs"],
        ),
        ("I could not reach the database", ["I could not reach the database"]),
        ("\x1b[1mNext:\x1b[0m colours", ["Next: colours"]),
        (json.dumps({"result": "Did much.\nNext: the rest", "cost": 1}), ["Next: the rest"]),
        ("I'll read the files first.\nThe next-gen parser works.\nnextdoor\nAll tests pass.", []),
        ("Next:\n", []),
        ("Next: long ago\n" + "working\n" * 50, []),
        ("", []),
    ],
)
def test_what_comes_next_is_found_where_it_is_said(output: str, found: list[str]):
    assert found == next_steps(output)


def test_a_failure_is_named_with_its_last_error():
    failed = ended("working", outcome="failed", failure="generator_failed", detail="exit code 3: boom", errors=("E: a", "E: b"))
    assert ("generator failed: `exit code 3: boom`", "its last error: `E: b`") == carry_over(failed, verified=False)
    again = ended(outcome="timeout", failure="generator_timeout", detail="after 5 s: E: b", errors=("E: b",))
    assert ("generator timeout: `after 5 s: E: b`",) == carry_over(again, verified=False)
    assert ("its last error: `E: b`",) == carry_over(ended(errors=("E: b",)), verified=False)
    assert () == carry_over(ended(errors=("E: b",)), verified=True) == carry_over(None, verified=False)


def test_a_secret_goes_before_a_line_is_cut():
    (note,) = carry_over(ended(f"Next: {'x' * 210} {SECRET} and more"), verified=True)
    assert "ghp_" not in note
    assert len(note) < 300


@given(st.text(), st.text(alphabet="`~#<>[]()!*_|\\\n\r\t\x1b\x00 aN", max_size=400), st.lists(st.text(), max_size=4))
def test_a_note_is_one_bounded_line_that_quotes(detail: str, text: str, errors: list[str]):
    failed = ended(
        f"Next: {text}\nTodo: {text}\n{text}", outcome="failed", failure="generator_failed", detail=detail, errors=tuple(errors)
    )
    notes = carry_over(failed, verified=False)
    assert len(notes) <= 4
    for note in notes:
        assert len(note) <= 280
        assert escape(note) == note
        assert note.count("`") in {0, 2}
        assert "`" not in note or note.endswith("`")


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("Next steps:\n- [ ] xargs is called without a file\n- [x] done", ["Next steps: xargs is called without a file; done"]),
        ("Next steps:\n1. 3 tests are red", ["Next steps: 3 tests are red"]),
        ("Next steps:\n- [redacted] is to be replaced", ["Next steps: [redacted] is to be replaced"]),
        ("2. **Next:** rename it", ["Next:** rename it"]),
    ],
)
def test_only_the_marks_of_a_list_go_not_letters_and_numbers_of_the_text(output: str, found: list[str]) -> None:
    assert found == next_steps(output)
