"""A loop as OpenTelemetry spans and events, by the conventions for generative AI. Needs the extra ``otel``.

One span for the loop (``invoke_workflow``), one below it for each run of the generator (``invoke_agent``), one for each other
paid step (``jumar.score``, ``jumar.confirm``); an event ``gen_ai.evaluation.result`` for every reading and check, with the span
of the run that it judges as its context. The conventions have the status *development*, so their names may still change.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import _logs, trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.trace import SpanKind, Status, StatusCode

from jumar.core import __version__
from jumar.core.redaction import current
from jumar.core.text import escape, last_line
from jumar.errors import ConfigError
from jumar.loop.events.events import (
    AttemptEnded,
    AttemptStarted,
    Event,
    IterationRecorded,
    LoopEnded,
    LoopStarted,
    Notice,
    StopDecided,
    Waiting,
)

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.context import Context
    from opentelemetry.sdk._logs import LoggerProvider as SdkLoggerProvider
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
    from opentelemetry.trace import Span, TracerProvider

_EVALUATION: Final = "gen_ai.evaluation.result"
_FLUSH: Final = 3000  # milliseconds at the end of a loop; a collector that is away holds up nothing longer
_LONGEST: Final = 300  # characters of what an exporter logs
_ENDED_WELL: Final = frozenset({"ok", "interrupted"})


class OpenTelemetryListener:
    """A listener that makes spans and events; it holds only the spans that are open.

    ``agent`` and ``provider`` are what ``gen_ai.agent.name`` and ``gen_ai.provider.name`` say. Without ``content`` nothing that a
    program printed or a judge wrote leaves the machine: no reasons, no last lines, no notices. With it, known secrets are taken
    out of them.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider,
        logger_provider: LoggerProvider,
        *,
        agent: str = "generator",
        provider: str = "unknown",
        content: bool = False,
    ) -> None:
        self._providers: tuple[Any, Any] = (tracer_provider, logger_provider)
        self._tracer = tracer_provider.get_tracer("jumar", __version__)
        self._logger = logger_provider.get_logger("jumar", __version__)
        self._agent, self._provider, self._content = agent, provider, content
        self._loop: Span | None = None
        self._loop_id = ""
        self._attempts: dict[int, Span] = {}
        self._generated: dict[int, Span] = {}

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, LoopStarted):
            self._start_loop(event)
        elif isinstance(event, AttemptStarted):
            self._start_attempt(event)
        elif isinstance(event, AttemptEnded):
            self._end_attempt(event)
        elif isinstance(event, IterationRecorded):
            self._evaluate(event)
        elif isinstance(event, Waiting) and self._loop is not None:
            self._loop.add_event("jumar.waiting", {"jumar.why": event.why, "jumar.seconds": event.seconds})
        elif isinstance(event, Notice) and self._loop is not None and self._content:
            self._loop.add_event("jumar.notice", {"jumar.message": current().redact(event.message)})
        elif isinstance(event, StopDecided) and self._loop is not None:
            self._loop.set_attribute("jumar.stop_reason", event.reason)
        elif isinstance(event, LoopEnded):
            self._end_loop(event.outcome)

    def _start_loop(self, event: LoopStarted) -> None:
        self._loop_id = event.loop_id
        attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": event.loop_id,
            "jumar.loop_id": event.loop_id,
            "jumar.resumed": event.resumed,
        }
        self._loop = self._tracer.start_span(f"invoke_workflow {event.loop_id}", kind=SpanKind.INTERNAL, attributes=attributes)

    def _start_attempt(self, event: AttemptStarted) -> None:
        attributes: dict[str, str | int] = {
            "jumar.loop_id": self._loop_id,
            "jumar.attempt": event.attempt,
            "jumar.iteration": event.iteration,
            "jumar.purpose": event.purpose,
        }
        if event.candidate is not None:
            attributes["jumar.candidate"] = event.candidate
        name = f"jumar.{event.purpose}"
        if event.purpose == "generate":
            name = f"invoke_agent {self._agent}"
            attributes |= {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": self._agent,
                "gen_ai.provider.name": self._provider,
            }
        self._attempts[event.attempt] = self._tracer.start_span(
            name, context=_inside(self._loop), kind=SpanKind.INTERNAL, attributes=attributes
        )

    def _end_attempt(self, event: AttemptEnded) -> None:
        span = self._attempts.pop(event.attempt, None)
        if span is None:
            return
        usage = event.usage
        found: Mapping[str, str | int | float | None] = {
            "gen_ai.response.model": usage.model,
            "gen_ai.conversation.id": usage.session_id,
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "jumar.tokens": event.tokens,
            "jumar.cost_usd": usage.token_cost_usd,
            "jumar.outcome": event.outcome,
            "jumar.exit_code": event.exit_code,
            "jumar.detail": current().redact(event.detail) if self._content and event.detail else None,
        }
        span.set_attributes({key: value for key, value in found.items() if value is not None})
        if event.outcome not in _ENDED_WELL or event.failure is not None:
            span.set_attribute("error.type", event.failure or event.outcome)
            span.set_status(Status(StatusCode.ERROR))
        span.end()
        if event.purpose == "generate":
            self._generated[event.iteration] = span

    def _evaluate(self, event: IterationRecorded) -> None:
        record = event.record
        context = _inside(self._generated.pop(record.iteration_number, None) or self._loop)
        common: dict[str, str | int | float] = {"jumar.loop_id": self._loop_id, "jumar.iteration": record.iteration_number}
        for reading in record.readings:
            problem = "scorer_broken" if reading.broken is not None else "invalid_score" if reading.invalid is not None else None
            self._result(context, common, reading.dimension, reading.score, explanation=reading.reason, error=problem)
        for check in record.checks:
            error = None if check.broken is None else "validator_broken"
            value = None if error else float(check.passed)
            self._result(context, common, check.name, value, label="pass" if check.passed else "fail", error=error)
        label = "new_best" if event.best == record.iteration_number else "not_best"
        error = None if record.status == "ok" else record.status
        self._result(context, common, "quality_score", record.quality_score, label=label, error=error)

    def _result(
        self,
        context: Context | None,
        common: Mapping[str, str | int | float],
        name: str,
        value: float | None,
        *,
        label: str | None = None,
        explanation: str = "",
        error: str | None = None,
    ) -> None:
        attributes = {**common, "gen_ai.evaluation.name": name}
        if value is not None:
            attributes["gen_ai.evaluation.score.value"] = value
        if label is not None and error is None:
            attributes["gen_ai.evaluation.score.label"] = label
        if explanation and self._content:
            attributes["gen_ai.evaluation.explanation"] = current().redact(explanation)
        if error is not None:
            attributes["error.type"] = error
        record = LogRecord(context=context, severity_number=SeverityNumber.INFO, event_name=_EVALUATION, attributes=attributes)
        self._logger.emit(record)

    def _end_loop(self, outcome: Mapping[str, Any]) -> None:
        for span in (*self._attempts.values(), *([] if self._loop is None else [self._loop])):
            span.set_attributes(_of_outcome(outcome) if span is self._loop else {})
            span.end()
        self._loop = None
        self._attempts.clear()
        self._generated.clear()
        for provider in self._providers:
            flush = getattr(provider, "force_flush", None)
            if flush is not None:
                flush(_FLUSH)


def _of_outcome(outcome: Mapping[str, Any]) -> dict[str, str | int | float]:
    spend: Mapping[str, Any] = outcome.get("spend") or {}
    found = {
        "jumar.stop_reason": outcome.get("stop_reason"),
        "jumar.selected_iteration": outcome.get("selected_iteration"),
        "jumar.quality_score": outcome.get("quality_score"),
        "jumar.cost_usd": spend.get("cost_usd"),
        "jumar.tokens": spend.get("tokens"),
        "jumar.exit_code": outcome.get("exit_code"),
    }
    return {key: value for key, value in found.items() if isinstance(value, str | int | float)}


def _inside(span: Span | None) -> Context | None:
    return None if span is None else trace.set_span_in_context(span)


def environment_providers() -> tuple[TracerProvider, LoggerProvider]:
    """Return the providers that the program has set up, else new ones that export as the ``OTEL_…`` variables say.

    Those are ``OTEL_TRACES_EXPORTER`` and ``OTEL_LOGS_EXPORTER`` (``otlp``, ``console`` or ``none``), ``OTEL_SERVICE_NAME``
    (``jumar``), ``OTEL_EXPORTER_OTLP_ENDPOINT`` and all others that the SDK reads. Errors: :class:`ConfigError`.
    """
    _say_once()
    from opentelemetry.sdk._logs import LoggerProvider as OwnLoggerProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider as OwnTracerProvider

    tracers, loggers = trace.get_tracer_provider(), _logs.get_logger_provider()
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    resource = Resource.create({} if named else {"service.name": "jumar"})
    if not isinstance(tracers, OwnTracerProvider):
        tracers = OwnTracerProvider(resource=resource)
        _export_spans(tracers)
    if not isinstance(loggers, OwnLoggerProvider):
        loggers = OwnLoggerProvider(resource=resource)
        _export_logs(loggers)
    return tracers, loggers


class _Once(logging.Handler):
    """Says the first warning of the exporters in one line on stderr: a collector that is away would be told of at every try."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._said:
            self._said = True
            message = escape(current().redact(last_line(record.getMessage())))
            sys.stderr.write(f"note      OpenTelemetry: {message[:_LONGEST]}\n")


def _say_once() -> None:
    """Keep what the exporters log to one line, unless the program has its own handlers for that."""
    logger = logging.getLogger("opentelemetry")
    if not logger.hasHandlers():
        logger.addHandler(_Once())


def _export_spans(provider: SdkTracerProvider) -> None:
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor

    kind = _exporter("OTEL_TRACES_EXPORTER")
    if kind == "console":
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=_stderr())))
    elif kind == "otlp":
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        except ImportError as error:
            raise _missing() from error
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))


def _export_logs(provider: SdkLoggerProvider) -> None:
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, ConsoleLogRecordExporter, SimpleLogRecordProcessor

    kind = _exporter("OTEL_LOGS_EXPORTER")
    if kind == "console":
        provider.add_log_record_processor(SimpleLogRecordProcessor(ConsoleLogRecordExporter(out=_stderr())))
    elif kind == "otlp":
        try:
            from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        except ImportError as error:
            raise _missing() from error
        provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))


def _stderr() -> Any:
    return sys.stderr


def _exporter(variable: str) -> str:
    kind = os.environ.get(variable, "").strip() or "otlp"
    if kind not in {"otlp", "console", "none"}:
        raise ConfigError(f"{variable}={kind}: jumar exports to otlp, console or none")
    return kind


def _missing() -> ConfigError:
    return ConfigError("[telemetry] otel needs the OTLP exporter: pip install 'jumar[otel]', or set OTEL_TRACES_EXPORTER=console")
