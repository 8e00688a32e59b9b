"""What type checkers know about jumar's public names. Not run: `make check` reads it with pyright in strict mode."""

from __future__ import annotations

from typing import assert_type

import jumar


def errors_have_exit_codes(error: jumar.JumarError) -> None:
    assert_type(error.exit_code, int)
    assert_type(jumar.ScoreError.exit_code, int)


def a_score_error_is_a_value_error() -> None:
    try:
        raise jumar.ScoreError("quality: nan")
    except ValueError as error:
        assert_type(error, ValueError)


def records_are_read(record: jumar.IterationRecord) -> None:
    assert_type(record.iteration_number, int)
    assert_type(record.quality_score, float | None)
    assert_type(record.artifacts, tuple[str, ...])
    assert_type(record.view(), jumar.IterationView)


def results_are_read(result: jumar.SelectionResult) -> None:
    assert_type(result.selected_iteration, int)
    assert_type(result.fallback, str | None)
    assert_type(result.meets_threshold, bool | None)


class Condense:
    """A generator that a user writes: no base class, only the method."""

    def generate(self, context: jumar.StepContext) -> jumar.GenerateOutcome:
        (context.workdir / "text.md").write_text(context.objective)
        return jumar.GenerateOutcome(exit_code=0, seconds=0.0)


class Short:
    """A scorer that a user writes."""

    dimension = "efficiency"

    def score(self, context: jumar.StepContext) -> jumar.ScoreReading:
        return jumar.ScoreReading(dimension="efficiency", score=1.0 if len(context.objective) < 80 else 0.0)


class NotAScorer:
    """Its score is a number, not a reading."""

    dimension = "efficiency"

    def score(self, context: jumar.StepContext) -> float:
        return len(context.objective) / 80


def parts_fit_the_protocols() -> tuple[jumar.Generator, jumar.Scorer]:
    return Condense(), Short()


def a_part_that_returns_something_else_does_not_fit() -> jumar.Scorer:
    return NotAScorer()  # pyright: ignore[reportReturnType]


def a_name_that_does_not_exist_is_an_error() -> None:
    print(jumar.Nothing)  # pyright: ignore[reportUnknownArgumentType, reportAttributeAccessIssue, reportUnknownMemberType]  # noqa: T201


assert_type(jumar.__version__, str)
