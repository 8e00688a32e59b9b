"""What of a run's output later prompts get: how it failed, its last error, what it said it would do next; or what a command says.

What an agent prints may hold whatever its files hold: a note is one bounded line, without secrets, and quotes it as code.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jumar.core.redaction import current
from jumar.core.text import cut, escape, last_line, without_escapes
from jumar.loop.generators.failures import document_texts
from jumar.model.attempts import AttemptEnd
from jumar.model.protocols import GenerateOutcome, Generator, StepContext
from jumar.model.records import Usage
from jumar.processes.process import check_command, run_command
from jumar.processes.usage import read_usage_file

_LONGEST: Final = 240  # characters of a quotation
_LOOKED_AT: Final = 40  # lines of the end of the output
_AFTER: Final = 3  # lines of a list that follows "Next steps:"
_HEADING: Final = 2  # words of a line that is one without a colon
_SUMMARY: Final = 4  # lines of a command
_PATIENCE: Final = 300.0  # seconds of a command
_MOST: Final = 2  # statements of what comes next

_NEXT: Final = re.compile(
    r"(?:the\s+)?next(?:\s+(?:steps?|up|thing|iteration|time|i|we)\b|\s*[:,])|to[- ]?dos?\b\s*:|remaining\b"
    r"|still\s+(?:to\s+do|missing|failing|needs?|open)\b|(?:what\s+is\s+|what's\s+)?left\s+to\s+do\b|follow[- ]?ups?\b\s*:"
    r"|(?:i|we)(?:\s+still\s+(?:have|need)\s+to|\s+(?:did|could)\s+not|\s+will\s+(?:then|next)|'ll\s+(?:then|next))\b",
    re.IGNORECASE,
)
_MARKS: Final = re.compile(r"^[\s>#*_\-•]*(?:\d+[.)]\s+)?(?:\[[ xX]\]\s*)?[*_]*|[*_]+$")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")


def carry_over(ended: AttemptEnd | None, *, verified: bool) -> tuple[str, ...]:
    """Return the notes on one run, none for the start; the last error only of one that failed or is not ``verified``."""
    if ended is None:
        return ()
    notes: list[str] = []
    if ended.failure is not None:
        notes.append(f"{ended.failure.replace('_', ' ')}: {_quoted(ended.detail)}" if ended.detail else ended.failure)
    last = ended.errors[-1] if ended.errors else ""
    if last and last not in ended.detail and (ended.failure is not None or not verified):
        notes.append(f"its last error: {_quoted(last)}")
    if ended.said:
        return (*notes, *(f"in short: {_quoted(text)}" for text in ended.said))
    return (*notes, *(f"it said what comes next: {_quoted(text)}" for text in next_steps(ended.output_tail)))


def next_steps(output: str) -> list[str]:
    """Return the last statements in ``output`` of what is left to do, at most two, with a list that follows one."""
    lines = [line for line in _lines(output) if line.strip()][-_LOOKED_AT:]
    found: list[str] = []
    for place, line in enumerate(lines):
        for sentence in _SENTENCE.split(_bare(line)):
            if not _NEXT.match(sentence):
                continue
            heads = sentence.endswith(":") or (":" not in sentence and len(sentence.split()) <= _HEADING)
            listed = _listed(lines[place + 1 :]) if heads else []
            if listed or not heads:
                found.append(" ".join([sentence, "; ".join(listed)]).strip())
    return list(dict.fromkeys(found))[-_MOST:]


def _listed(lines: Sequence[str]) -> list[str]:
    """Return the entries of a list at the beginning of ``lines``; a line of text alone where there is no list."""
    found: list[str] = []
    for line in lines[:_AFTER]:
        if found and not re.match(r"\s*(?:[-*•]|\d+[.)])\s", line):
            break
        found.append(_bare(line))
    return found


def _lines(output: str) -> Iterator[str]:
    """Yield the lines of an output, and in the place of a JSON document the texts that it has."""
    for line in output.splitlines():
        yield from document_texts(line) or (line,)


def _bare(line: str) -> str:
    return _MARKS.sub("", without_escapes(line)).strip()


def _quoted(text: str) -> str:
    """Return a text as one line of code: secrets go before it is cut, so that no part of one is left."""
    shown = escape(" ".join(current().redact(text).split())).replace("`", "'")
    return f"`{cut(shown, _LONGEST)}`"


@dataclass(frozen=True, slots=True)
class SummarisingGenerator:
    """Has a command, a model's perhaps, say what of a run's output later prompts get, in the place of the rules.

    It gets the end of the output, without secrets, on standard input, and prints at most four lines. It is a part of the run: its
    time and what its usage file reports count as the run's, and so its cost is unknown where it reports none. What goes wrong
    with it is a note of the run, and the rules say what they find.
    """

    generator: Generator
    command: str | Sequence[str]
    stop: threading.Event | None = None

    def __post_init__(self) -> None:
        check_command(self.command, where="[memory] summarise")

    def generate(self, context: StepContext) -> GenerateOutcome:
        """Run the generator, then the command on what it printed; not after one that was stopped or refused."""
        outcome = self.generator.generate(context)
        if outcome.interrupted or outcome.rate_limited or not outcome.output_tail.strip():
            return outcome
        usage_file = context.usage_file.with_name("summary-usage.json")
        result = run_command(
            self.command,
            cwd=usage_file.parent,
            env={**context.environment, "JUMAR_USAGE_FILE": str(usage_file.absolute())},
            timeout=_PATIENCE,
            log=context.log_directory / "summarise.log",
            stdin=current().redact(outcome.output_tail).encode(errors="replace"),
            stop=self.stop,
            marker=context.nonce or None,
        )
        reading = read_usage_file(usage_file)
        said = tuple(line for line in map(_bare, result.stdout.splitlines()) if line)[:_SUMMARY]
        last = last_line(result.output_tail)
        why = f"{result.failure}{f': {_quoted(last)}' if last else ''}"
        notes = () if result.failure is None else (f"[memory] summarise failed: {why}",)
        return replace(
            outcome,
            seconds=outcome.seconds + result.seconds,
            usage=_together(outcome.usage, reading.usage),
            said=said if result.failure is None else (),
            notes=(*outcome.notes, *reading.notes, *notes),
        )


def _together(first: Usage, second: Usage) -> Usage:
    """Return the first usage with the second's tokens and dollars in it; what one of them does not tell is not known."""
    cost, more = first.token_cost_usd, second.token_cost_usd
    tokens, others = first.tokens, second.tokens
    return replace(
        first,
        token_cost_usd=None if cost is None or more is None else cost + more,
        tokens_used=None if tokens is None or others is None else tokens + others,
    )
