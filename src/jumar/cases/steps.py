"""Running one step of a case: a command, a Python function in a child process, a callable in this one; or a dry one.

A dry run replaces every step by synthetic files: no program, no network, the same bytes every time.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from jumar.cases.judgement import BUILTINS
from jumar.cases.settings import ChainSettings, DryRun
from jumar.core.files import as_write_error, read_bytes
from jumar.core.text import escape, once
from jumar.errors import ConfigError, ScoreError
from jumar.model.ordering import is_finite, shown
from jumar.model.pipeline import DEFAULT_KEYS, CaseStepContext, Step, StepResult, Word
from jumar.processes.captured_output import DEFAULT_OUTPUT_CAP, create_anew
from jumar.processes.environment import build_environment
from jumar.processes.functions import ask, describe_exception, described
from jumar.processes.process import ProcessResult, run_command
from jumar.processes.process_tree import MARKER, within
from jumar.processes.usage import UsageReading, as_usage, join_readings, parse_usage, read_usage_file

_PLACEHOLDER: Final = re.compile(r"\{((?:in|out)\.[a-z][a-z0-9_]*|case_id|case_num|iteration|run_id|usage_file)\}")


def step_environment(context: CaseStepContext, allow: Sequence[str], run_nonce: str = "") -> dict[str, str]:
    """Return the environment of a step: what every step may see, where its files are, and the nonce of its run."""
    paths = {f"JUMAR_IN_{name.upper()}": path for name, path in context.inputs.items()}
    paths |= {f"JUMAR_OUT_{name.upper()}": path for name, path in context.outputs.items()}
    variables = {name: str(path.absolute()) for name, path in paths.items()}
    variables |= {
        "JUMAR_CASES_RUN_ID": context.run_id,
        "JUMAR_CASE_ID": context.case_id,
        "JUMAR_CASE_NUM": str(context.case_num),
        "JUMAR_ITERATION": str(context.iteration),
        "JUMAR_USAGE_FILE": str(context.usage_file.absolute()),
        MARKER: within(run_nonce),
    }
    return build_environment(os.environ, allow, variables)


def fill_words(words: Sequence[Word], context: CaseStepContext) -> list[str]:
    """Return the argv: placeholders replaced, and groups left out whose input is missing. Other braces are left alone.

    A word outside of a group whose input is missing becomes empty; :func:`jumar.cases.settings.check_chain` has made sure
    that only optional inputs are.
    """
    values = {f"in.{name}": str(path.absolute()) for name, path in context.inputs.items()}
    values |= {f"out.{name}": str(path.absolute()) for name, path in context.outputs.items()}
    values |= {
        "case_id": context.case_id,
        "case_num": str(context.case_num),
        "iteration": str(context.iteration),
        "run_id": context.run_id,
        "usage_file": str(context.usage_file.absolute()),
    }
    filled: list[str] = []
    for word in words:
        group = (word,) if isinstance(word, str) else word
        missing = any(name not in values for part in group for name in _PLACEHOLDER.findall(part))
        if missing and not isinstance(word, str):
            continue
        filled += [_PLACEHOLDER.sub(lambda match: values.get(match[1], ""), part) for part in group]
    return filled


def run_program(step: Step, context: CaseStepContext, *, search: Sequence[Path], stop: threading.Event | None) -> StepResult:
    """Run ``step`` once. Every way in which its program can fail is a result. Errors: as :func:`run_command`."""
    if step.call is not None:
        return _call(step, context)
    if step.python is not None:
        answer = ask(
            "step",
            step.python,
            context,
            search=search,
            timeout=step.timeout,
            log=context.log,
            output_cap=DEFAULT_OUTPUT_CAP,
            stop=stop,
        )
        reading = read_usage_file(context.usage_file)
        if answer.value is not None:
            returned = parse_usage(answer.value["usage"], where="returned usage")
            reading = join_readings(UsageReading(usage=returned.usage, notes=(*returned.notes, *answer.value["notes"])), reading)
        return _result(answer.process, reading, failure=answer.error, output=answer.process.stderr_tail)
    command = step.command or ""
    result = run_command(
        command if isinstance(command, str) else fill_words(command, context),
        cwd=context.workdir,
        env=context.environment,
        timeout=step.timeout,
        log=context.log,
        stop=stop,
        marker=context.nonce or None,
    )
    return _result(result, read_usage_file(context.usage_file), failure=result.failure, output=result.output_tail)


def _result(result: ProcessResult, reading: UsageReading, *, failure: str | None, output: str) -> StepResult:
    return StepResult(
        seconds=result.seconds,
        exit_code=result.exit_code,
        failure=failure or result.failure,
        timed_out=result.timed_out,
        interrupted=result.interrupted,
        output_tail=output,
        usage=reading.usage,
        notes=reading.notes if result.log_error is None else (*reading.notes, result.log_error),
    )


def _call(step: Step, context: CaseStepContext) -> StepResult:
    """Call a function in this process. An exception is a failed step; its traceback goes to the log only."""
    began = time.monotonic()
    try:
        returned = as_usage(None if step.call is None else step.call(context))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever somebody's function may raise
        with as_write_error("write", context.log), os.fdopen(create_anew(context.log), "wb") as log:
            log.write(described(error).encode(errors="backslashreplace"))
        failure = describe_exception(error)
        usage = read_usage_file(context.usage_file).usage
        return StepResult(seconds=time.monotonic() - began, failure=failure, output_tail=failure, usage=usage)
    reading = join_readings(returned, read_usage_file(context.usage_file))
    return StepResult(seconds=time.monotonic() - began, usage=reading.usage, notes=reading.notes)


# --------------------------------------------------------------------------------------------------------- dry runs

DRY_STEPS: Final[tuple[Step, ...]] = (
    Step(
        name="augment",
        inputs=("report", "ckg", "fix_db", "feedback?"),
        outputs=("ckg", "ckg_diff", "fix_db", "fix_db_diff"),
    ),
    Step(name="agent", inputs=("prompt", "ckg", "fix_db"), outputs=("agent_report",)),
    Step(name="judge", inputs=("report", "agent_report"), outputs=("judge",)),
    Step(name="feedback", inputs=("judge",), outputs=("feedback",)),
)
"""Seed 3's pipeline, for a dry run of which nothing but the cases is known."""

_MOST_ADDED: Final = 100_000
_DEFAULT_TOP: Final[Mapping[str, float]] = MappingProxyType({"accuracy": 9.0, "overall": 8.0, "chain": 8.0})


def dry_keys(keys: Mapping[str, str]) -> dict[str, str]:
    """Return where the synthetic judge writes each key: the seed's three as ever, others under ``scores``."""
    return {name: DEFAULT_KEYS.get(name, f'scores."{name}"') for name in keys}


def dry_run_of(scores: Sequence[Mapping[str, Any]] | str | os.PathLike[str] | None, stop_iter: int) -> DryRun:
    """Return a dry run by rows, by a file of them, or rising to the thresholds. Errors: :class:`jumar.errors.ConfigError`."""
    if stop_iter < 1:
        raise ConfigError(f"dry_run_stop_iter is {stop_iter}: iterations start at 1")
    if scores is None:
        return DryRun(stop_iter=stop_iter)
    if isinstance(scores, str | os.PathLike):
        return DryRun(stop_iter=stop_iter, scores=_read_scores(Path(scores)))
    return DryRun(stop_iter=stop_iter, scores=parse_scores(list(scores), where="dry_run_judge_scores"))


def _read_scores(path: Path) -> Mapping[int | None, tuple[Mapping[str, Any], ...]]:
    name = escape(os.fspath(path))
    try:
        data: object = json.loads(read_bytes(path, links=True), object_pairs_hook=once)
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {os.strerror(error.errno or 0)}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: not JSON: {error}") from None
    return parse_scores(data, where=name)


def parse_scores(data: object, *, where: str) -> Mapping[int | None, tuple[Mapping[str, Any], ...]]:
    """Read the rows of ``--dry-run-scores``: a list for every case, or an object from case numbers to lists.

    Values may be anything that JSON has (a null or a string makes the iteration invalid, which is worth trying). Errors:
    :class:`jumar.errors.ConfigError`; :class:`jumar.errors.ScoreError` for NaN and infinities, which JSON has not.
    """
    if isinstance(data, list | tuple):
        return MappingProxyType({None: _rows(list(cast("Iterable[object]", data)), where)})
    if not isinstance(data, dict) or not data:
        raise ConfigError(f'{where}: give a list of rows such as {{"accuracy": 7, "overall": 7.5, "chain": 6}}')
    rows_by_case: dict[int | None, tuple[Mapping[str, Any], ...]] = {}
    # "1", "01" and "case1" are one case
    for name, rows in cast("dict[object, object]", data).items():
        digits = str(name).removeprefix("case").lstrip("_")
        if not (digits.isascii() and digits.isdigit()):
            raise ConfigError(f"{where}: '{escape(str(name))}' is no case; write its number, such as \"1\"")
        if int(digits) in rows_by_case:
            raise ConfigError(f"{where}: case {int(digits)} is there twice")
        rows_by_case[int(digits)] = _rows(rows, f"{where}: case {digits}")
    return MappingProxyType(rows_by_case)


def _rows(data: object, where: str) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(data, list) or not data:
        raise ConfigError(f"{where}: there are no rows")
    rows: list[Mapping[str, Any]] = []
    for number, given in enumerate(cast("list[object]", data), start=1):
        if not isinstance(given, Mapping):
            raise ConfigError(f"{where}: row {number} is {shown(given)}, not an object of scores")
        row = cast("Mapping[str, Any]", given)
        added = row.get("diff", 1)
        if not is_finite(added) or not 0 <= added <= _MOST_ADDED or int(added) != added:
            raise ConfigError(f"{where}: row {number}: diff is {shown(added)}, not a number of entities up to {_MOST_ADDED:,}")
        endless = next((name for name, value in row.items() if isinstance(value, float) and not math.isfinite(value)), None)
        if endless is not None:
            raise ScoreError(
                f"{where}: row {number}: {escape(str(endless))} is {shown(row[endless])}, not a finite number; a score that a "
                "judge left out is null (None)"
            )
        odd = next(
            (value for value in row.values() if value is not None and not isinstance(value, bool | int | float | str)), None
        )
        if odd is not None:
            raise ConfigError(
                f"{where}: row {number} holds {shown(odd)}: a score is a number (or, to try it out, null or a text)"
            )
        rows.append(MappingProxyType({str(name): value for name, value in row.items()}))
    return tuple(rows)


def dry_scores(dry: DryRun, settings: ChainSettings, case: int, iteration: int) -> Mapping[str, Any]:
    """Return the row of an iteration: the given one, else scores that rise evenly to the thresholds at ``stop_iter``."""
    rows = dry.scores.get(case, dry.scores.get(None))
    if rows:
        return rows[min(iteration, len(rows)) - 1]
    share = min(1.0, iteration / dry.stop_iter)
    rows_of: dict[str, float] = {}
    for name in settings.keys:
        scale = settings.limits.scales.get(name)
        least, most = (None, None) if scale is None else (scale.min, scale.max)
        top = settings.limits.thresholds.get(name)
        if top is None:
            top = _DEFAULT_TOP.get(name, 1.0) if most is None else most
        least = least or 0.0
        rows_of[name] = top if share >= 1 else round(least + (top - least) * share, 4)
    return rows_of


def run_dry(context: CaseStepContext, settings: ChainSettings) -> StepResult:
    """Write every output that the step declares. Errors: ``OSError`` of the disk."""
    began = time.monotonic()
    row = dry_scores(settings.dry_run or DryRun(), settings, context.case_num, context.iteration)
    for role, target in context.outputs.items():
        able = (each for each in BUILTINS.values() if role in each.outputs and {*each.inputs} <= context.inputs.keys())
        builtin = next(able, None)
        if builtin is not None:
            builtin.write(context, settings.limits, dry_keys(settings.keys))
        else:
            target.write_bytes(_WRITERS.get(role, _other)(role, context, row))
    return StepResult(seconds=time.monotonic() - began, exit_code=0)


def _entities(context: CaseStepContext, row: Mapping[str, Any]) -> list[str]:
    return [f"dry_{context.case_num}_{context.iteration}_{number}" for number in range(1, int(row.get("diff", 1)) + 1)]


def _graph(_role: str, context: CaseStepContext, row: Mapping[str, Any]) -> bytes:
    before = context.inputs.get("ckg")
    try:
        entities: list[Any] = json.loads(read_bytes(before))["entities"] if before is not None else []
    except (ValueError, KeyError, TypeError):
        entities = []
    added = [{"id": name, "type": "Synthetic", "label": name} for name in _entities(context, row)]
    metadata = {"mode": "dry_run", "iteration": context.iteration, "case": context.case_id}
    return _json({"entities": [*entities, *added], "relations": [], "metadata": metadata})


def _diff(_role: str, context: CaseStepContext, row: Mapping[str, Any]) -> bytes:
    return _json({"mode": "dry_run", "added_entities": _entities(context, row), "updated_entities": [], "added_relations": []})


def _database(_role: str, context: CaseStepContext, _row: Mapping[str, Any]) -> bytes:
    """Return the database with one more row; what is there and is none that SQLite can open in memory is handed on as it is."""
    before = context.inputs.get("fix_db")
    content = b"" if before is None else read_bytes(before)
    # in memory, so that a disk that refuses is an OSError of one write of ours, and not something of SQLite's
    with contextlib.suppress(sqlite3.DatabaseError), closing(sqlite3.connect(":memory:")) as connection:
        if content:
            connection.deserialize(content)
        with connection:
            connection.execute("CREATE TABLE IF NOT EXISTS dry_run (case_num INTEGER, iteration INTEGER)")
            connection.execute("INSERT INTO dry_run VALUES (?, ?)", (context.case_num, context.iteration))
        content = connection.serialize()
    return content


def _report(_role: str, context: CaseStepContext, _row: Mapping[str, Any]) -> bytes:
    return f"# Dry run\n\n- case: {context.case_id}\n- iteration: {context.iteration}\n".encode()


def _judge(_role: str, context: CaseStepContext, row: Mapping[str, Any]) -> bytes:
    scores = {name: value for name, value in row.items() if name != "diff"}
    named = (("Root Cause Accuracy", "accuracy", 0.5), ("Causal Chain Completeness", "chain", 0.2))
    document: dict[str, Any] = {
        "case_name": f"{context.case_id}_iter_{context.iteration:04d}",
        **({"composite_score": scores["overall"]} if "overall" in scores else {}),
        "summary": "synthetic",
        "dimensions": [
            {"name": name, "score": scores[key], "weight": weight, "matched_elements": [], "missing_elements": []}
            for name, key, weight in named
            if key in scores
        ],
        "scores": scores,
    }
    return _json(document)


def _other(role: str, context: CaseStepContext, _row: Mapping[str, Any]) -> bytes:
    return _json({"mode": "dry_run", "role": role, "iteration": context.iteration, "case": context.case_id})


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2) + "\n").encode()


_WRITERS: Final[Mapping[str, Callable[[str, CaseStepContext, Mapping[str, Any]], bytes]]] = MappingProxyType(
    {"ckg": _graph, "ckg_diff": _diff, "fix_db": _database, "agent_report": _report, "judge": _judge}
)
