"""What an iteration used, of an agent that reports its whole session each time."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from loops import jumar, jumar_json

from jumar.loop.generators.generators import CumulativeGenerator, charged_before, usage_since
from jumar.model import GenerateOutcome, StepContext, Usage
from jumar.model.attempts import Attempt, AttemptEnd, AttemptStart
from jumar.testing.parts import make_context


def attempt(number: int, usage: Usage | None, purpose: str = "generate") -> Attempt:
    start = AttemptStart(number=number, iteration=number, parent=0, nonce=f"n{number}", started_at="", pid=1, purpose=purpose)  # pyright: ignore[reportArgumentType] - one of the purposes
    end = None if usage is None else AttemptEnd(outcome="ok", seconds=1.0, ended_at="", usage=usage)
    return Attempt(start=start, end=end)


def spent(tokens: int | None, cost: float | None = None, session: str | None = "s") -> Usage:
    return Usage(tokens_used=tokens, input_tokens=tokens, token_cost_usd=cost, session_id=session)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 10**9), st.booleans()), max_size=20))
@example([("a", 1, True), ("a", 2520, True), ("a", 0, True)])  # 0.000001 + 0.00252 is a little more than 0.002521
def test_what_passes_are_charged_adds_up_to_the_last_report_of_each_session(passes: list[tuple[str, int, bool]]) -> None:
    totals = {"a": 0, "b": 0}
    reported: dict[str, int] = {}
    attempts: list[Attempt] = []
    for number, (session, tokens, reports) in enumerate(passes, start=1):
        totals[session] += tokens
        if not reports:  # killed before it said anything
            attempts.append(attempt(number, Usage()))
            continue
        own = usage_since(spent(totals[session], totals[session] / 1e6, session), charged_before(attempts, session))
        attempts.append(attempt(number, own))
        reported[session] = totals[session]
    for session, total in reported.items():
        charged = charged_before(attempts, session)
        assert (total, total, None) == (charged.tokens_used, charged.input_tokens, charged.output_tokens)
        assert charged.token_cost_usd == pytest.approx(total / 1e6)


def test_only_ended_runs_of_the_generator_count_and_unknown_stays_unknown() -> None:
    attempts = [attempt(1, spent(5)), attempt(2, None), attempt(3, spent(7), "score"), attempt(4, spent(9, session=None))]
    assert spent(5) == charged_before(attempts, "s")
    assert Usage(session_id="t") == charged_before(attempts, "t")
    assert Usage(session_id="s") == usage_since(Usage(session_id="s"), spent(5))
    assert spent(3) == usage_since(spent(3), Usage())
    assert 0.2 == usage_since(spent(1, 0.3), spent(0, 0.1)).token_cost_usd


def test_a_counter_that_began_anew_counts_as_it_is() -> None:
    assert spent(4, 0.5) == usage_since(spent(4, 0.7), spent(5, 0.2))


@pytest.mark.parametrize(
    ("session", "before", "reports", "expected"),
    [
        ("s", spent(100), "s", 20),
        ("s", spent(100), None, 20),
        ("s", spent(100), "forked", 120),
        (None, None, "s", 120),
        ("s", Usage(session_id="s"), "s", 120),
    ],
    ids=["goes on", "names none", "another session", "fresh", "nothing said before"],
)
def test_which_reports_are_taken_off(
    tmp_path: Path, session: str | None, before: Usage | None, reports: str | None, expected: int
) -> None:
    class Agent:
        def generate(self, context: StepContext) -> GenerateOutcome:
            assert context.session_id == session
            return GenerateOutcome(exit_code=0, seconds=1.0, usage=spent(120, session=reports))

    context = replace(make_context(tmp_path, tmp_path), session_id=session, session_usage=before)
    usage = CumulativeGenerator(generator=Agent()).generate(context).usage
    assert (expected, expected) == (usage.tokens_used, usage.input_tokens)
    assert usage.session_id == (reports or session)


AGENT = """
import json, os
seen = json.load(open("thread.json")) if os.environ["JUMAR_SESSION_ID"] else {"input": 0, "output": 0}
assert os.environ["JUMAR_SESSION_ID"] in ("", "thread-1")
seen = {"input": seen["input"] + 1000 * int(os.environ["JUMAR_ITERATION"]), "output": seen["output"] + 10}
json.dump(seen, open("thread.json", "w"))
open("out.txt", "w").write("pass " + os.environ["JUMAR_ITERATION"])
print(json.dumps({"type": "thread.started", "thread_id": "thread-1"}))
print(json.dumps({"type": "turn.completed", "usage": {"input_tokens": seen["input"], "output_tokens": seen["output"]}}))
"""


@pytest.mark.parametrize(("usage_is", "expected"), [("cumulative", [1010, 2010, 3010]), ("delta", [1010, 3020, 6030])])
def test_a_loop_charges_each_pass_of_a_session_that_goes_on(fresh_place: Path, usage_is: str, expected: list[int]) -> None:
    (fresh_place / "agent.py").write_text(AGENT)
    (fresh_place / "out.txt").write_text("start")
    (fresh_place / "jumar.toml").write_text(
        f"""
loop = {{ id = "t", max_iterations = 3 }}
artifacts = {{ include = ["out.txt"] }}
checks = [{{ name = "there", command = "test -s out.txt" }}]
stop = {{ plateau = false, keep_going = true }}
[generator]
command = [{json.dumps(sys.executable)}, "agent.py"]
session = "resume"
usage_is = "{usage_is}"
usage = {{ input = "usage.input_tokens", output = "usage.output_tokens", session = "thread_id" }}
"""
    )
    jumar(fresh_place, "run", "--quiet")
    recorded = fresh_place / ".jumar" / "loops" / "t" / "iterations"
    metrics = [json.loads((recorded / f"iteration-{number:03d}" / "metrics.json").read_bytes()) for number in (1, 2, 3)]
    assert expected == [found["tokens_used"] for found in metrics]
    assert sum(expected) == jumar_json(fresh_place, "status", "t")["spend"]["tokens"]


def test_it_needs_a_session_that_goes_on(fresh_place: Path) -> None:
    (fresh_place / "jumar.toml").write_text('[generator]\ncommand = "true"\nusage_is = "cumulative"\n')
    done = jumar(fresh_place, "run", check=2)
    assert 'usage_is = "cumulative" goes with session = "resume"' in done.stderr
