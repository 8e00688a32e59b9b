"""Loops, evaluations and cases for Python programs: what the commands do, with their options as keywords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from jumar.learning.calls import AnyPath, Asking, judge_config, named_fields

if TYPE_CHECKING:
    from jumar.app.config.config import RunOptions
    from jumar.app.evaluate import CheapEvaluation
    from jumar.app.run_cases import CasesResult
    from jumar.cases.records import CaseListener
    from jumar.judging.expensive import JudgedEvaluation
    from jumar.loop.engine.outcome import LoopOutcome
    from jumar.loop.events.events import Listener
    from jumar.processes.control import StopSwitch


def run(
    config: AnyPath | None = None,
    *,
    agent: str | None = None,
    command: Sequence[str] | None = None,
    objective: str | None = None,
    checks: Sequence[str] = (),
    scores: Sequence[str] = (),
    root: AnyPath | None = None,
    switch: StopSwitch | None = None,
    listener: Listener | None = None,
    **options: Unpack[RunOptions],
) -> LoopOutcome:
    """Run a loop, or resume one that was interrupted, as ``jumar run`` does; return how it ended.

    ``config`` is a ``jumar.toml`` or its folder (default: the one here); without one, an ``agent`` (``claude``, or a shell
    command that reads its prompt from stdin) or the generator's ``command`` stands for it. ``checks`` are shell commands that
    must pass, ``scores`` shell commands that print 0 to 1, each perhaps as ``dimension=command``; ``root`` holds the loops
    (default: ``.jumar`` beside the configuration). ``switch`` stops the loop from another thread, ``listener`` hears its events.
    No signal is handled: Ctrl-C is a ``KeyboardInterrupt``, and the loop can be resumed.

    Errors: :class:`jumar.errors.ConfigError` and :class:`jumar.errors.UsageError` before anything is run,
    :class:`jumar.errors.LockedError` while another process runs the loop. That nothing was good enough is no error: see
    ``selection``, ``gate_met`` and ``exit_code`` of the result.
    """
    from jumar.app.config.config import OPTIONS_NOT_GIVEN
    from jumar.app.run.request import request_of
    from jumar.app.run.run import run as run_request

    _refuse_unknown(options, OPTIONS_NOT_GIVEN)
    given: dict[str, Any] = {
        **OPTIONS_NOT_GIVEN,
        **{
            name: value if isinstance(value, str) or not isinstance(value, Sequence) else (*value,)
            for name, value in options.items()
        },
        "config": None if config is None else Path(config),
        "agent": agent,
        "objective": objective,
        "checks": tuple(checks),
        "scores": tuple(scores),
        "root": None if root is None else Path(root),
    }
    return run_request(request_of(given, command), switch=switch, listener=listener)


@overload
def evaluate(
    items: AnyPath,
    judge: None = None,
    *,
    mode: Literal["cheap"],
    patterns: AnyPath | None = None,
    rubric: str | None = None,
    fields: Mapping[str, str] | None = None,
    per_item: AnyPath | None = None,
    output: AnyPath | None = None,
    jobs: int = 1,
    executor: str | None = None,
) -> CheapEvaluation: ...
@overload
def evaluate(
    items: AnyPath,
    judge: str,
    *,
    mode: Literal["expensive", "dual"] = "dual",
    patterns: AnyPath | None = None,
    rubric: str | None = None,
    fields: Mapping[str, str] | None = None,
    per_item: AnyPath | None = None,
    output: AnyPath | None = None,
    **asking: Unpack[Asking],
) -> JudgedEvaluation: ...
def evaluate(
    items: AnyPath,
    judge: str | None = None,
    *,
    mode: Literal["cheap", "expensive", "dual"] = "dual",
    patterns: AnyPath | None = None,
    rubric: str | None = None,
    fields: Mapping[str, str] | None = None,
    per_item: AnyPath | None = None,
    output: AnyPath | None = None,
    jobs: int = 1,
    executor: str | None = None,
    **asking: Unpack[Asking],
) -> CheapEvaluation | JudgedEvaluation:
    """Score every item of a file from 1 to 5, as ``jumar evaluate`` does; ``document()`` of the result is what ``--json`` prints.

    ``judge`` is a spec such as ``openai:MODEL`` (none in mode ``cheap``), ``fields`` our names to the records' keys; ``jobs``
    processes or ``executor`` are for the cheap judge alone. Mode ``auto`` is
    :func:`jumar.learning.evaluate_auto`. Not to be called where an event loop is running.

    Errors: :class:`jumar.errors.ConfigError`, :class:`jumar.errors.ItemError` for a record that cannot be read,
    :class:`jumar.errors.EvaluationUnreliableError` where too few items have a score.
    """
    from jumar.app.evaluate import CheapRequest, check_mode, evaluate_cheaply
    from jumar.judging.expensive import JudgedRequest, evaluate_judged

    check_mode(mode, judge)
    shared: dict[str, Any] = {
        "items": Path(items),
        "fields": named_fields(fields),
        "patterns": None if patterns is None else Path(patterns),
        "rubric": rubric,
        "per_item": None if per_item is None else Path(per_item),
        "output": None if output is None else Path(output),
    }
    if mode == "cheap" or judge is None:
        _refuse_unknown(asking, ())
        return evaluate_cheaply(CheapRequest(**shared, jobs=jobs, executor=executor))
    return evaluate_judged(JudgedRequest(**shared, mode=mode, judge=judge_config(judge, asking)))


def run_cases(
    config: AnyPath | None = None,
    *,
    output_root: AnyPath | None = None,
    root: AnyPath | None = None,
    run_id: str | None = None,
    resume: bool = False,
    cases: Sequence[int] = (),
    base: Mapping[str, AnyPath] | None = None,
    start_from_scratch: bool = False,
    max_iters: int | None = None,
    max_seconds: float | None = None,
    thresholds: Mapping[str, float] | None = None,
    select_best: bool | None = None,
    carry_forward: bool | None = None,
    dry_run: bool = False,
    executor: str | None = None,
    switch: StopSwitch | None = None,
    listener: CaseListener | None = None,
) -> CasesResult:
    """Run all cases of a ``cases.toml`` in order, as ``jumar cases run`` does, and return the best iteration of each.

    ``cases`` are the numbers of those to run (default: all), ``base`` the files to start from, by role, ``thresholds`` the scores
    that end a case, by key; what is None is as the file says. Runs go below ``output_root``, else ``root`` (default: ``.jumar``
    beside the configuration). Steps that are Python functions are for :func:`jumar.cases.run_case_loop`.

    Errors: :class:`jumar.errors.ConfigError` for a file that cannot work, :class:`jumar.errors.ExistsError` for a run that is
    there, :class:`jumar.errors.NotFoundError` where there is none to resume.
    """
    from jumar.app.run_cases import cases_request, chain_of
    from jumar.app.run_cases import run_cases as run_chain_of

    request = cases_request(
        None if config is None else Path(config),
        output_root=None if output_root is None else Path(output_root),
        root=None if root is None else Path(root),
        run_id=run_id,
        resume=resume,
        cases=tuple(sorted(set(cases))),
        base_paths={role: Path(file) for role, file in (base or {}).items()},
        start_from_scratch=start_from_scratch,
        max_iters=max_iters,
        max_seconds=max_seconds,
        thresholds=thresholds,
        select_best=select_best,
        carry_forward=carry_forward,
        dry_run=dry_run,
    )
    return run_chain_of(chain_of(request), resume=resume, executor=executor, switch=switch, listener=listener)


def _refuse_unknown(given: Mapping[str, object], known: Sequence[str] | Mapping[str, object]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise TypeError(f"there is no keyword '{unknown[0]}' here{f'; there are {chr(44).join(known)}' if known else ''}")
