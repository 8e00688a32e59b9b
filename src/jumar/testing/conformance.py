"""Does a part of yours keep the contract of its Protocol? Call these from your own tests.

Each check runs the part for real and raises ``AssertionError`` with a sentence that says what was broken.
"""

from __future__ import annotations

import math
from pathlib import Path

from jumar.model import CheckResult, GenerateOutcome, Generator, Scorer, ScoreReading, StepContext, Validator


def make_context(workdir: Path, logs: Path, *, iteration: int = 1) -> StepContext:
    """Return a context like the engine's, with a prompt and a feedback file in ``logs``; both directories must exist."""
    for name, text in (("prompt.md", "Make it better.\n"), ("feedback.json", "{}\n")):
        (logs / name).write_text(text)
    return StepContext(
        loop_id="conformance",
        iteration=iteration,
        workdir=workdir,
        prompt_file=logs / "prompt.md",
        feedback_file=logs / "feedback.json",
        usage_file=logs / "usage.json",
        log_directory=logs,
        nonce="conformance",
    )


def check_generator(generator: Generator, context: StepContext) -> GenerateOutcome:
    """Run ``generator`` once: it returns an outcome, never raises, reports a finite time, and says why it failed."""
    outcome = _outcome_of(generator, context)
    assert isinstance(outcome, GenerateOutcome), f"generate returned {type(outcome).__name__}, not GenerateOutcome"
    assert math.isfinite(outcome.seconds), f"seconds is {outcome.seconds}"
    assert outcome.seconds >= 0, f"seconds is {outcome.seconds}"
    failed = outcome.timed_out or outcome.interrupted or (outcome.exit_code not in {0, None})
    assert not failed or outcome.failure, "a failed run does not say why: set failure"
    for name in ("tokens_used", "token_cost_usd"):
        value = getattr(outcome.usage, name)
        assert value is None or (math.isfinite(value) and value >= 0), f"usage.{name} is {value}; unknown is None"
    return outcome


def _outcome_of(generator: Generator, context: StepContext) -> GenerateOutcome:
    try:
        return generator.generate(context)
    except Exception as error:
        raise AssertionError(f"generate raised {type(error).__name__}: {error}; return an outcome with failure set") from error


def check_validator(validator: Validator, context: StepContext) -> CheckResult:
    """Run ``validator`` twice: it returns a named result, the same both times, and leaves the working directory as it was."""
    before = _tree(context.workdir)
    first, second = validator.validate(context), validator.validate(context)
    assert isinstance(first, CheckResult), f"validate returned {type(first).__name__}, not CheckResult"
    assert first.name == validator.name, f"the result is called {first.name!r}, the check {validator.name!r}"
    assert first.passed == second.passed, "two looks at the same tree give two verdicts"
    assert not (first.passed and first.broken), "a broken check cannot pass"
    assert before == _tree(context.workdir), "the check changed the working directory"
    return first


def check_scorer(scorer: Scorer, context: StepContext) -> ScoreReading:
    """Run ``scorer`` once: a number in [0, 1], or none with the reason why; the working directory stays as it was."""
    before = _tree(context.workdir)
    reading = scorer.score(context)
    assert isinstance(reading, ScoreReading), f"score returned {type(reading).__name__}, not ScoreReading"
    assert reading.dimension == scorer.dimension, f"it scores {reading.dimension!r}, but is called {scorer.dimension!r}"
    if reading.score is None:
        assert reading.broken or reading.invalid, "no score and no reason: set broken or invalid"
    else:
        assert math.isfinite(reading.score), f"the score is {reading.score}"
        assert 0 <= reading.score <= 1, f"the score {reading.score} is not in [0, 1]"
    assert before == _tree(context.workdir), "the scorer changed the working directory"
    return reading


def _tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
