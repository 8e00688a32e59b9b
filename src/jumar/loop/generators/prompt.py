"""What the next iteration is told: a Markdown prompt for agents, and the same facts as JSON for programs.

Pure functions of the records. Output of checks is the work of programs that nobody vetted: it stands in fences longer than any
inside, with control characters shown, and everything is capped, so that a prompt does not grow with the loop.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from jumar.core.codec import FORMAT, encode
from jumar.core.text import escape, escape_block, nearest, points
from jumar.errors import ConfigError
from jumar.loop.generators.evaluation_protocol import render_protocol
from jumar.loop.generators.memory import Note
from jumar.loop.ranking.repairs import NamedTests, Repairs
from jumar.model.checks import CheckResult
from jumar.model.records import IterationRecord, IterationView, ScoreReading
from jumar.processes.process import describe_exit, tail

PROMPT_FIELDS: Final = (
    "objective",
    "iteration",
    "max_iterations",
    "standing",
    "scores",
    "dimensions",
    "checks",
    "scorers",
    "evaluation",
    "reflections",
    "memory",
    "budget",
)
"""What a template of one's own may name: ``$objective``, or ``${objective}`` before a letter; ``$$`` is a dollar sign."""

_ROWS: Final = 20  # iterations in the table
_ITEMS: Final = 20  # reflections, tests, errors, scorers
_OUTPUT: Final = 4_000  # characters of one check's output
_CHECKS: Final = 10
_LINE: Final = 500  # characters of a reason or reflection
_HISTORY: Final = 100  # iterations in the JSON


Progress = Sequence[tuple[int, Repairs]]
_TOLD: Final = {"missing": "removed or skipped", "flaky": "changed nothing, and by chance another result came of"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLeft:
    """What is left to spend, this iteration included; None where there is no limit."""

    iterations: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    cost_usd: float | None = None


def fenced(text: str, info: str = "") -> str:
    """Return ``text`` in a code fence that nothing inside can close, control characters shown."""
    shown = escape_block(text.replace("\r\n", "\n")).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{info}\n{shown}\n{fence}"


def _line(text: str) -> str:
    shown = escape(" ".join(text.split()))
    return shown if len(shown) <= _LINE else f"{shown[: _LINE - 1]}…"


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def _name(text: str) -> str:
    return f"`{_line(text).replace('`', chr(39))}`"


def render_prompt(
    *,
    objective: str,
    iteration: int,
    max_iterations: int | None = None,
    history: Sequence[IterationView] = (),
    last: IterationRecord | None = None,
    best: IterationView | None = None,
    reflections: Sequence[tuple[int, Sequence[str]]] = (),
    memory: Sequence[Note] = (),
    budget: BudgetLeft | None = None,
    completion_promise: str | None = None,
    template: str | None = None,
    progress: Progress = (),
) -> str:
    """Return the prompt of an iteration.

    ``last`` is the iteration whose state the iteration starts from; its failing checks are shown. ``progress`` is what iterations
    repaired and broke, each with its number. ``reflections`` are those of earlier
    iterations, each with its number, oldest first; ``memory`` holds notes that were found to fit, best first. ``template`` stands
    in for the built-in order; its placeholders are :data:`PROMPT_FIELDS`. Errors: :class:`jumar.errors.ConfigError` for a
    template with others.
    """
    values = {
        "objective": escape_block(objective.replace("\r\n", "\n")).strip() or "(none was given)",
        "iteration": str(iteration),
        "max_iterations": "no limit" if max_iterations is None else str(max_iterations),
        "standing": _standing(iteration, max_iterations, last, best, completion_promise, history) + _progress(progress),
        "scores": _scores(history, best),
        "dimensions": _dimensions(last, best),
        "checks": _checks(last),
        "scorers": _scorers(last),
        "evaluation": _evaluation(last),
        "reflections": _reflections([*reflections, *([(last.iteration_number, last.reflections)] if last else [])]),
        "memory": _memory(memory),
        "budget": _budget(budget),
    }
    if template is not None:
        return check_template(template).substitute(values)
    titles = {
        "scores": "Scores so far",
        "dimensions": "By dimension",
        "checks": "Failing checks",
        "scorers": "What the scorers said",
        "evaluation": "Evaluation protocol",
        "reflections": "Reflections so far",
        "memory": "From earlier iterations, what fits best first",
        "budget": "Budget left",
    }
    parts = [f"# Objective\n\n{values['objective']}", f"# This iteration\n\n{values['standing']}"]
    parts += [f"## {title}\n\n{values[name]}" for name, title in titles.items() if values[name]]
    return "\n\n".join(parts) + "\n"


def check_template(template: str, *, where: str = "prompt template") -> string.Template:
    """Return the template. Errors: :class:`jumar.errors.ConfigError` naming an unknown placeholder or a stray dollar sign."""
    parsed = string.Template(template)
    for name in parsed.get_identifiers():
        if name not in PROMPT_FIELDS:
            raise ConfigError(
                f"{where}: unknown placeholder '${name}'{nearest(name, PROMPT_FIELDS)}; known are {', '.join(PROMPT_FIELDS)}"
            )
    if not parsed.is_valid():
        stray = next(match for match in parsed.pattern.finditer(template) if match["invalid"] is not None)
        line = template.count("\n", 0, stray.start()) + 1
        raise ConfigError(f"{where}: line {line} has a '$' that begins no placeholder; write '$$' for a dollar sign")
    return parsed


def _standing(
    iteration: int,
    max_iterations: int | None,
    last: IterationRecord | None,
    best: IterationView | None,
    completion_promise: str | None,
    history: Sequence[IterationView],
) -> str:
    limit = "" if max_iterations is None else f" of at most {max_iterations}"
    sentences = [f"This is iteration {iteration}{limit}." if iteration else "This is the state before the first iteration."]
    if last is not None:
        sentences.append(f"It starts from iteration {last.iteration_number}: {_outcome(last)}.")
        after = [view.number for view in history if view.number > last.iteration_number]
        if after:
            to = "and" if len(after) == 2 else "to"
            which = f"Iteration {after[0]} was" if len(after) == 1 else f"Iterations {after[0]} {to} {after[-1]} were"
            sentences.append(f"{which} not kept: what was changed there is undone.")
    if best is not None and best.score is not None and (last is None or best.score != last.quality_score):
        sentences.append(f"The best so far is iteration {best.number} with {points(best.score)} of 100.")
    if completion_promise:
        sentences.append(f"When nothing is left to do, print {_name(completion_promise)}, alone on a line.")
    return " ".join(sentences)


def _progress(progress: Progress) -> str:
    sentences: list[str] = []
    for number, changes in progress:
        parts = [f"{_TOLD.get(verb, verb)} {_name(str(tests))}" for verb, tests in changes.parts]
        sentences += [f" Iteration {number} {' and '.join(parts)}."] if parts else []
    return "".join(sentences)


def _outcome(record: IterationRecord) -> str:
    if record.quality_score is not None:
        return f"{points(record.quality_score)} of 100"
    reason = f", {_line(record.status_reason)}" if record.status_reason else ""
    return f"no score ({record.status.replace('_', ' ')}{reason})"


def _scores(history: Sequence[IterationView], best: IterationView | None) -> str:
    shown = list(history[-_ROWS:])
    if not shown:
        return ""
    rows = ["| iteration | score | change | checks | |", "|---:|---:|---:|---|---|"]
    before = history[-_ROWS - 1].score if len(history) > _ROWS else None
    if len(history) > _ROWS:
        rows.append(f"| … | | | | {len(history) - _ROWS} earlier |")
    for view in shown:
        change = "" if view.score is None or before is None else points(view.score - before, sign=True)
        score = view.status.replace("_", " ") if view.score is None else points(view.score)
        note = "start" if view.number == 0 else ""
        if best is not None and view.number == best.number:
            note = f"{note}, best".removeprefix(", ")
        rows.append(f"| {view.number} | {score} | {change} | {view.verification} | {note} |")
        before = view.score
    return "\n".join(rows)


def _dimensions(last: IterationRecord | None, best: IterationView | None) -> str:
    of_last = {} if last is None else dict(last.dimensions)
    of_best = {} if best is None or (last is not None and best.number == last.iteration_number) else dict(best.dimensions)
    names = list(dict.fromkeys([*of_last, *of_best]))
    if not names:
        return ""
    heads = [f"iteration {last.iteration_number}"] if last is not None and of_last else []
    heads += [f"best ({best.number})"] if best is not None and of_best else []
    rows = [f"| dimension | {' | '.join(heads)} |", "|---" + "|---:" * len(heads) + "|"]
    for name in names[:_ITEMS]:
        cells = [f"{values[name]:.2f}" if name in values else "—" for values in (of_last, of_best) if values]
        rows.append(f"| {_cell(name)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _checks(last: IterationRecord | None) -> str:
    if last is None:
        return ""
    failing = [check for check in last.checks if not check.passed or check.share < 1]
    parts = [_check(check) for check in failing[:_CHECKS]]
    if len(failing) > _CHECKS:
        parts.append(
            f"…and {len(failing) - _CHECKS} more: {', '.join(_name(check.name) for check in failing[_CHECKS:][:_ITEMS])}"
        )
    if last.status in {"generator_failed", "generator_timeout"} and last.analysis.errors:
        parts.append("The last iteration itself failed:\n\n" + fenced("\n".join(last.analysis.errors[:_ITEMS])))
    return "\n\n".join(parts)


def _check(check: CheckResult) -> str:
    if check.broken is not None:
        return f"{_name(check.name)} could not run: {_line(check.broken)}"
    why = "it said no" if check.exit_code is None else describe_exit(check.exit_code) or "exit code 0"
    parts = [f"{_name(check.name)} failed: {why}"]
    if check.tests is not None:
        parts = [f"{_name(check.name)}: {check.tests} ({why})"]
    failing = len(check.failures) if check.tests is None else max(check.tests.failed, len(check.failures))
    if check.new_failures:
        parts.append(_tests("New failing tests", check.new_failures, len(check.new_failures)))
    elif check.failures:
        parts.append(_tests("Failing tests", check.failures, failing))
    if check.missing and check.tests is not None:
        parts.append(_tests("Known tests that were skipped or did not run", check.missing, check.tests.missing))
    output = tail(check.output_tail, _OUTPUT).strip("\n")
    return "\n\n".join([*parts, *([fenced(output)] if output else [])])


def _tests(what: str, names: Sequence[str], count: int) -> str:
    shown = names[:_ITEMS]
    more = f", and {count - len(shown):,} more" if count > len(shown) else ""
    return f"{what}: {', '.join(_name(name) for name in shown)}{more}"


def _scorers(last: IterationRecord | None) -> str:
    if last is None:
        return ""
    return "\n".join(f"- {_reading(reading)}" for reading in last.readings[:_ITEMS] if reading.reason or reading.score is None)


def _evaluation(last: IterationRecord | None) -> str:
    readings = () if last is None else last.readings[:_ITEMS]
    return render_protocol([reading.judgement for reading in readings if reading.judgement is not None])


def _reading(reading: ScoreReading) -> str:
    name = _line(reading.dimension)
    if reading.score is None:
        return f"{name}: no score, {_line(reading.broken or reading.invalid or 'for an unknown reason')}"
    return f"{name} {reading.score:.2f}: {_line(reading.reason)}"


def _reflections(earlier: Sequence[tuple[int, Sequence[str]]]) -> str:
    lines = [f"- iteration {number}: {_line(text)}" for number, texts in earlier for text in texts]
    return "\n".join(lines[-_ITEMS:])


def _memory(notes: Sequence[Note]) -> str:
    return "\n".join(f"- {_line(note.text)} (loop {_name(note.loop_id)}, iteration {note.iteration})" for note in notes[:_ITEMS])


def _budget(budget: BudgetLeft | None) -> str:
    if budget is None:
        return ""
    parts = [
        None if budget.iterations is None else f"{budget.iterations} iterations, this one included",
        None if budget.seconds is None else f"{budget.seconds / 60:.0f} minutes",
        None if budget.tokens is None else f"{budget.tokens:,} tokens",
        None if budget.cost_usd is None else f"${budget.cost_usd:.2f}",
    ]
    return "\n".join(f"- {part}" for part in parts if part is not None)


def render_feedback(
    *,
    loop_id: str,
    iteration: int,
    objective: str = "",
    max_iterations: int | None = None,
    history: Sequence[IterationView] = (),
    last: IterationRecord | None = None,
    best: IterationView | None = None,
    reflections: Sequence[tuple[int, Sequence[str]]] = (),
    memory: Sequence[Note] = (),
    budget: BudgetLeft | None = None,
    progress: Progress = (),
) -> str:
    """Return the same facts as a JSON document, ASCII only; scores are not rounded, output is not escaped.

    ``history`` holds the last 100 iterations, ``recorded`` says how many there are. ``progress`` has the first 100 names of what
    was repaired and broken, and how many there are. What is unknown is null.
    """
    document = {
        "format": FORMAT,
        "loop_id": loop_id,
        "iteration": iteration,
        "max_iterations": max_iterations,
        "objective": objective,
        "recorded": len(history),
        "history": [_view(view) for view in history[-_HISTORY:]],
        "last": None if last is None else _record(last),
        "best": None if best is None else _view(best),
        "progress": [
            {"iteration": number, **{verb: _named(tests) for verb, tests in changes.all}} for number, changes in progress
        ],
        "reflections": [{"iteration": number, "text": text} for number, texts in reflections for text in texts][-_HISTORY:],
        "memory": [
            {"loop": note.loop_id, "iteration": note.iteration, "score": _finite(note.score), "text": note.text}
            for note in memory[:_HISTORY]
        ],
        "budget": None
        if budget is None
        else {
            "iterations": budget.iterations,
            "seconds": budget.seconds,
            "tokens": budget.tokens,
            "cost_usd": budget.cost_usd,
        },
    }
    return encode(document, compact=True).decode("ascii")


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _numbers(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: _finite(value) for name, value in values.items()}


def _named(tests: NamedTests) -> dict[str, Any]:
    return {"count": len(tests.names) + tests.unnamed, "names": list(tests.names[:_HISTORY])}


def _view(view: IterationView) -> dict[str, Any]:
    return {
        "iteration": view.number,
        "score": _finite(view.score),
        "verification": view.verification,
        "status": view.status,
        "dimensions": _numbers(view.dimensions),
        "failed_checks": view.failed_checks,
    }


def _record(record: IterationRecord) -> dict[str, Any]:
    return {
        "iteration": record.iteration_number,
        "score": _finite(record.quality_score),
        "delta": _finite(record.quality_delta),
        "verification": record.verification_status,
        "status": record.status,
        "status_reason": record.status_reason,
        "dimensions": _numbers(record.dimensions),
        "checks": [replace(check, known=()).to_json() for check in record.checks],
        "readings": [{**reading.to_json(), "score": _finite(reading.score)} for reading in record.readings],
        "reflections": list(record.reflections),
        "errors": list(record.analysis.errors),
    }
