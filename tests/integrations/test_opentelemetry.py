"""The listener for OpenTelemetry: names of the conventions, parents that fit, and nothing that a program wrote unless asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loops import jumar, write_loop

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from jumar.integrations.opentelemetry import OpenTelemetryListener
from jumar.loop.events import events
from jumar.model import CheckResult, IterationRecord, ScoreReading, StopRules, Usage
from jumar.model.attempts import Spend

SECRET = "the answer of the judge"
RECORD = IterationRecord(
    iteration_number=1,
    timestamp="2026-01-01T00:00:00Z",
    quality_score=81.5,
    quality_delta=None,
    dimensions={"quality": 0.815},
    tokens_used=None,
    token_cost_usd=None,
    execution_time_ms=None,
    verification_status="passed",
    readings=(
        ScoreReading(dimension="quality", score=0.815, reason=SECRET),
        ScoreReading(dimension="style", score=None, broken=SECRET),
    ),
    checks=(CheckResult(name="tests", passed=False, exit_code=1, seconds=0.1, output_tail=SECRET),),
)
STORY = (
    events.LoopStarted(loop_id="t", resumed=False, rules=StopRules(), recorded=0, weights={}),
    events.AttemptStarted(attempt=1, iteration=1),
    events.AttemptEnded(
        attempt=1,
        iteration=1,
        outcome="ok",
        usage=Usage(input_tokens=40, output_tokens=2, token_cost_usd=0.05, model="m-1", session_id="s"),
        detail=SECRET,
    ),
    events.AttemptStarted(attempt=2, iteration=1, purpose="score"),
    events.AttemptEnded(attempt=2, iteration=1, purpose="score", outcome="ok"),
    events.IterationRecorded(record=RECORD, best=1, spend=Spend()),
    events.Waiting(why="rate_limited", seconds=3.0),
    events.Notice(message=SECRET),
    events.AttemptStarted(attempt=3, iteration=2, candidate=2),
    events.AttemptEnded(attempt=3, iteration=2, candidate=2, outcome="timeout", failure="generator_timeout"),
    events.IterationRecorded(
        record=replace(RECORD, iteration_number=2, quality_score=None, readings=(), checks=()), best=1, spend=Spend()
    ),
    events.AttemptStarted(attempt=4, iteration=3),
    events.StopDecided(reason="target"),
    events.LoopEnded(outcome={"stop_reason": "target", "quality_score": 81.5, "spend": {"cost_usd": None}, "exit_code": 0}),
)


class Told:
    def __init__(self, **options: Any) -> None:
        self._spans, self._logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
        tracers, loggers = TracerProvider(), LoggerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self._logs))
        listener = OpenTelemetryListener(tracers, loggers, **options)
        for event in STORY:
            listener(event)
        self.spans = self._spans.get_finished_spans()
        self.records = [data.log_record for data in self._logs.get_finished_logs()]

    def span(self, attempt: int) -> ReadableSpan:
        return next(span for span in self.spans if (span.attributes or {}).get("jumar.attempt") == attempt)


@pytest.fixture
def told() -> Told:
    return Told(agent="coder", provider="anthropic")


def test_the_loop_is_a_workflow_with_its_steps_below(told: Told) -> None:
    loop = next(span for span in told.spans if span.name == "invoke_workflow t")
    assert loop.attributes is not None
    assert ("invoke_workflow", "t", "target", 81.5, 0) == tuple(
        loop.attributes[key]
        for key in (
            *("gen_ai.operation.name", "gen_ai.workflow.name", "jumar.stop_reason", "jumar.quality_score", "jumar.exit_code"),
        )
    )
    assert "jumar.cost_usd" not in loop.attributes, "unknown is left out, never 0"
    below = [span for span in told.spans if span is not loop]
    assert ["invoke_agent coder", "jumar.score", "invoke_agent coder", "invoke_agent coder"] == [span.name for span in below]
    assert {loop.context.span_id if loop.context else None} == {span.parent.span_id if span.parent else None for span in below}


def test_a_run_of_the_generator_has_the_names_of_the_conventions(told: Told) -> None:
    expected = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "coder",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.response.model": "m-1",
        "gen_ai.conversation.id": "s",
        "gen_ai.usage.input_tokens": 40,
        "gen_ai.usage.output_tokens": 2,
        "jumar.loop_id": "t",
        "jumar.attempt": 1,
        "jumar.iteration": 1,
        "jumar.purpose": "generate",
        "jumar.outcome": "ok",
        "jumar.tokens": 42,
        "jumar.cost_usd": 0.05,
    }
    assert expected == dict(told.span(1).attributes or {})


def test_a_failure_is_an_error_of_its_kind(told: Told) -> None:
    span = told.span(3)
    assert not span.status.is_ok
    assert ("generator_timeout", 2) == tuple((span.attributes or {})[key] for key in ("error.type", "jumar.candidate"))
    assert told.span(1).status.is_unset


def test_every_reading_and_check_is_an_evaluation_of_the_run_that_it_judges(told: Told) -> None:
    common = {"jumar.loop_id": "t", "jumar.iteration": 1}
    expected = [
        {**common, "gen_ai.evaluation.name": "quality", "gen_ai.evaluation.score.value": 0.815},
        {**common, "gen_ai.evaluation.name": "style", "error.type": "scorer_broken"},
        {
            **common,
            "gen_ai.evaluation.name": "tests",
            "gen_ai.evaluation.score.value": 0.0,
            "gen_ai.evaluation.score.label": "fail",
        },
        {
            **common,
            "gen_ai.evaluation.name": "quality_score",
            "gen_ai.evaluation.score.value": 81.5,
            "gen_ai.evaluation.score.label": "new_best",
        },
    ]
    assert expected == [dict(record.attributes or {}) for record in told.records[:4]]
    assert {"gen_ai.evaluation.result"} == {record.event_name for record in told.records}
    span = told.span(1)
    assert span.context is not None
    assert {(span.context.trace_id, span.context.span_id)} == {(one.trace_id, one.span_id) for one in told.records[:4]}


def test_content_is_sent_only_when_it_is_asked_for(told: Told) -> None:
    def everything(told: Told) -> str:
        spans = [json.loads(span.to_json() or "{}") for span in told.spans]
        return json.dumps([spans, [dict(record.attributes or {}) for record in told.records]])

    assert SECRET not in everything(told)
    asked = everything(Told(content=True))
    for name in ("gen_ai.evaluation.explanation", "jumar.detail", "jumar.message"):
        assert f'"{name}": "{SECRET}"' in asked


def test_the_listener_keeps_nothing_that_is_over() -> None:
    listener = OpenTelemetryListener(TracerProvider(), LoggerProvider())
    listener(STORY[0])
    for number in range(1, 3000):
        listener(events.AttemptStarted(attempt=number, iteration=number))
        listener(events.AttemptEnded(attempt=number, iteration=number, outcome="ok"))
        listener(events.IterationRecorded(record=replace(RECORD, iteration_number=number), best=None, spend=Spend()))
    assert 0 == len(listener._attempts) + len(listener._generated)


def test_a_real_loop_sends_and_hooks_hear(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def tell(event):\n    open('heard.txt', 'a').write(event.type + '\\n')\ndef bad(event):\n    raise ValueError('no')\n"
    )
    config = write_loop(tmp_path, [0.6, 0.7], extra="[hooks]\npython = ['mine:tell', 'mine:bad']\n[telemetry]\notel = true\n")
    done = jumar(tmp_path, "run", env={"OTEL_TRACES_EXPORTER": "console", "OTEL_LOGS_EXPORTER": "console"}, check=0)
    heard = (tmp_path / "heard.txt").read_text().split()
    assert "loop_started" == heard[0]
    assert 3 == heard.count("iteration_recorded")
    assert 1 == done.stdout.count("the hook mine:bad failed and is passed over: ValueError: no")
    assert 3 == done.stderr.count('"gen_ai.evaluation.name": "quality_score"')
    config.write_text(config.read_text().replace("otel = true", "otel = false").replace("= 2", "= 3").replace(", 'mine:bad'", ""))
    jumar(tmp_path, "run", check=0)


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("[hooks]\npython = ['nothing:f']", r"[hooks] python 'nothing:f' cannot be loaded: ModuleNotFoundError"),
        ("[hooks]\npython = ['json:__doc__']", "is no function: it takes one event"),
        ("[hooks]\npython = ['json']", "hooks.python"),
        ("[telemetry]\notel = true", "OTEL_TRACES_EXPORTER=zipkin: jumar exports to otlp, console or none"),
        ("[telemetry]\notl = true", "did you mean 'otel'"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_made(tmp_path: Path, extra: str, said: str) -> None:
    write_loop(tmp_path, [0.6], extra=extra)
    refused = jumar(tmp_path, "run", env={"OTEL_TRACES_EXPORTER": "zipkin"}, check=2)
    assert said in refused.stderr
    assert not (tmp_path / ".jumar").exists()


def test_a_collector_that_is_away_is_told_of_in_one_line(fresh_place: Path) -> None:
    write_loop(fresh_place, [0.6, 0.7], extra="[telemetry]\notel = true\n")
    ended = jumar(fresh_place, "run", env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, check=0)
    (line,) = ended.stderr.splitlines()
    assert line.startswith("note      OpenTelemetry: ")
