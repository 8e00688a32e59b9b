"""The programs of a configuration, each tried once in a throw-away copy of the tree before a night is spent on them.

Beside it what wastes a night although every program starts: a module that is not installed, no limit, tests that nobody guards.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from jumar.app.agents import AGENTS
from jumar.app.config.config import JumarConfig
from jumar.app.config.guard import guard_rules
from jumar.app.config.tables import load_listeners, load_notifier
from jumar.app.machine import Row
from jumar.app.run.parts import build_parts, evaluator_warnings
from jumar.core.copying import copy_alike
from jumar.core.leftovers import folders_of, remove_tree
from jumar.core.rendering.figures import dollars, duration
from jumar.core.text import escape, last_line, plural, points
from jumar.errors import JumarError
from jumar.loop.checks.broken import trouble_of_check, trouble_of_scorer
from jumar.loop.engine.verdict import verdict
from jumar.loop.ranking.score import resolve_weights
from jumar.loop.scorers import JudgeScorer, SharedEvaluation
from jumar.loop.settings import LoopParts
from jumar.model import CheckResult, Evaluator, GenerateOutcome, ScoreReading, StepContext
from jumar.processes.control import StopSwitch
from jumar.processes.environment import build_environment, left_out, step_variables

PROMPT: Final = "Hello\n"
"""What the generator is asked: one word, so that trying costs next to nothing."""

_COPY_LIMIT: Final = 2_000_000_000
_LAST_LINE: Final = 80
_START: Final = "start state"
_QUESTIONS: Final = (
    r"\(y/n\)|\[y/n\]|\(yes/no\)|press (?:enter|any key)|do you trust|enter your (?:choice|answer)",
    r"do you want to (?:proceed|continue|allow|trust|make this edit)|approve (?:this|the)",
    r"waiting for (?:your )?(?:approval|confirmation|permission|input)|permission (?:to|prompt|request)",
    r"(?:requires?|needs?|awaiting|ask(?:s|ing)? for|grant(?:ed)?) (?:your |manual )?(?:approval|permission)",
    r"not a (?:tty|terminal)|stdin is not|raw mode is not supported|input is not a terminal",
)
_REFUSALS: Final = (
    r"not logged in|please (?:log ?in|sign ?in|authenticate)|/login\b|authentication",
    r"api[ _-]?key|unauthori[sz]ed|\b401\b|credential",
)
_WAITING: Final = re.compile("|".join(_QUESTIONS), re.IGNORECASE)
_LOGIN: Final = re.compile("|".join(_REFUSALS), re.IGNORECASE)
_WORDS_OF_SECRETS: Final = re.compile(r"KEY|TOKEN|SECRET|AUTH", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """Where the programs are tried: a copy of the working directory, and a directory for their prompt and logs."""

    workdir: Path
    scratch: Path
    artifacts: tuple[str, ...]
    config: JumarConfig

    def context(self, iteration: int) -> StepContext:
        """Return what a step would get, with the one-word prompt."""
        files = {name: self.scratch / name for name in ("prompt.md", "feedback.json", "usage.json")}
        files["prompt.md"].write_text(PROMPT, encoding="utf-8")
        files["feedback.json"].write_text("{}\n", encoding="utf-8")
        variables = step_variables(
            loop_id="doctor",
            iteration=iteration,
            prompt_file=files["prompt.md"],
            feedback_file=files["feedback.json"],
            usage_file=files["usage.json"],
        )
        return StepContext(
            loop_id="doctor",
            iteration=iteration,
            workdir=self.workdir,
            prompt_file=files["prompt.md"],
            feedback_file=files["feedback.json"],
            usage_file=files["usage.json"],
            log_directory=self.scratch,
            environment=build_environment(os.environ, self.config.loop.env, variables),
            objective=PROMPT.strip(),
            artifacts=self.artifacts,
        )


@contextlib.contextmanager
def throw_away_copy(workdir: Path, root: Path, artifacts: tuple[str, ...], config: JumarConfig) -> Generator[Rehearsal]:
    """Copy ``workdir`` (without the store) to a temporary directory; only the artifacts of it where the whole is over 2 GB."""
    with contextlib.ExitStack() as stack:
        place = Path(tempfile.mkdtemp(prefix="jumar-doctor-"))
        stack.callback(remove_tree, place)
        copy, scratch = place / workdir.name, place / ".scratch"
        scratch.mkdir()
        if _tree_size(workdir) <= _COPY_LIMIT:
            shutil.copytree(
                workdir,
                copy,
                symlinks=True,
                ignore=lambda at, names: _not_copied(Path(at), names, root),
                copy_function=copy_alike,
            )
        else:
            for path in artifacts:
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                copy_alike(workdir / path, copy / path, follow_symlinks=False)
        yield Rehearsal(workdir=copy, scratch=scratch, artifacts=artifacts, config=config)


def _not_copied(directory: Path, names: list[str], root: Path) -> set[str]:
    left: set[str] = set()
    for name in names:
        path = directory / name
        mode = path.lstat().st_mode
        kept = stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
        if not kept or path.absolute() == root.absolute():
            left.add(name)
    return left


def _tree_size(workdir: Path) -> int:
    total = 0
    for directory, _, names in folders_of(workdir):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{directory}/{name}").st_size
        if total > _COPY_LIMIT:
            break
    return total


# ----------------------------------------------------------------------------------------------------------- trying it


def rehearse(rehearsal: Rehearsal, base: Path, *, run: bool, timeout: float) -> Iterator[Row]:
    """Yield a row for each check and scorer on the start state, then for one run of the generator.

    ``run`` False leaves the generator out. ``timeout`` is in seconds and only shortens the generator's own.
    """
    states: set[str] = set()
    for row in _rehearsed(rehearsal, base, run=run, timeout=timeout):
        if row.name == _START and row.state == "red" and "red" not in states:
            fix = "the yellow rows above say what a run finds and the copy that is tried here lacks"
            yield replace(row, state="yellow", fix=fix)
        else:
            yield row
        states.add(row.state)


def _rehearsed(rehearsal: Rehearsal, base: Path, *, run: bool, timeout: float) -> Iterator[Row]:
    config = rehearsal.config
    limited = config.generator.model_copy(update={"timeout": min(timeout, config.generator.timeout)})
    try:
        parts = build_parts(config.model_copy(update={"generator": limited}), base, StopSwitch())
        weights = resolve_weights([scorer.dimension for scorer in parts.scorers], config.weights or None)
    except JumarError as error:
        yield Row(name="programs", state="red", detail=str(error), fix="edit jumar.toml as the message says")
        return
    context = rehearsal.context(0)
    checks: list[CheckResult] = []
    for validator in parts.validators:
        checks.append(validator.validate(context))
        command = next((validator.command for validator in config.validators if validator.name == checks[-1].name), None)
        yield of_the_copy(_validator_row(checks[-1]), command, config.directory(base), config)
    readings: list[ScoreReading] = []
    scored = replace(context, checks=tuple(checks))
    looked: list[SharedEvaluation] = []
    for scorer in parts.scorers:
        if isinstance(scorer, JudgeScorer) and scorer.shared.evaluator.asks:
            if scorer.shared not in looked:
                looked.append(scorer.shared)
                yield _judge_row(scorer.shared.evaluator, scored)
            continue
        readings.append(scorer.score(scored))
        named = readings[-1].dimension
        commands = (
            scorer.command
            for scorer in config.scorers
            if named in {scorer.dimension, scorer.builtin} and scorer.builtin != "judge"
        )
        yield of_the_copy(_scorer_row(readings[-1]), next(commands, None), config.directory(base), config)
    for warning in evaluator_warnings(parts):
        detail, _, fix = warning.partition("; ")
        yield Row(name="evaluator", state="yellow", detail=detail, fix=fix)
    if looked:
        yield Row(name=_START, state="green", detail="not scored here: no judge is asked, because that may cost")
    else:
        yield _start_row(checks, readings, weights)
    if run:
        yield from _run_generator(parts, rehearsal, config.directory(base), timeout=limited.timeout)


def _validator_row(check: CheckResult) -> Row:
    name = f"check: {check.name}"
    trouble = trouble_of_check(check)
    if trouble is not None:
        return Row(name=name, state="red" if trouble.sure else "yellow", detail=trouble.what, fix=trouble.fix)
    if check.passed:
        return Row(name=name, state="green", detail=f"runs, passes, {duration(check.seconds)}")
    # red is what a start may be; whether it is red for the right reason, a person sees from its last line
    last = last_line(check.output_tail) or "it prints nothing"
    verdict_now = f"is red on the start state (exit code {check.exit_code}: {escape(last)[:_LAST_LINE]})"
    return Row(name=name, state="green", detail=f"runs, {verdict_now}, {duration(check.seconds)}")


def _scorer_row(reading: ScoreReading) -> Row:
    name, trouble = f"scorer: {reading.dimension}", trouble_of_scorer(reading)
    if trouble is not None:
        return Row(name=name, state="red", detail=trouble.what, fix=trouble.fix)
    return Row(name=name, state="green", detail=f"{reading.score:.2f} on the start state, {duration(reading.seconds)}")


def _judge_row(evaluator: Evaluator, context: StepContext) -> Row:
    """Return whether there is something to judge and somebody who could; nobody is asked."""
    name = "evaluator"
    try:
        items = evaluator.look(context)
    except JumarError as error:
        return Row(name=name, state="red", detail=str(error), fix="mend the file, or edit items in [evaluator]")
    who = f"the judge is configured ({escape(str(getattr(evaluator, 'judge', evaluator.name)))}) and not asked here"
    if not items:
        fix = "right where the first iteration makes them; else edit items in [evaluator]"
        return Row(name=name, state="yellow", detail=f"there are no items on the start state, which scores 0; {who}", fix=fix)
    return Row(name=name, state="green", detail=f"{plural(items, 'item')} on the start state; {who}")


def _start_row(checks: list[CheckResult], readings: list[ScoreReading], weights: Mapping[str, float]) -> Row:
    found = verdict(checks, readings, weights)
    if found.quality is None:
        detail = f"has no valid score ({found.status_reason or found.status.replace('_', ' ')})"
        return Row(
            name=_START,
            state="red",
            detail=detail,
            fix="mend the red rows above; the loop would choose from the others only",
        )
    return Row(name=_START, state="green", detail=f"scores {points(found.quality)}, verification {found.verification}")


def _run_generator(parts: LoopParts, rehearsal: Rehearsal, workdir: Path, *, timeout: float) -> Iterator[Row]:
    outcome = parts.generator.generate(rehearsal.context(1))
    row = of_the_copy(
        _outcome_row(outcome, rehearsal.config, timeout),
        rehearsal.config.generator.command,
        workdir,
        rehearsal.config,
    )
    yield row
    if outcome.failure is None and not outcome.timed_out:
        yield _usage_row(outcome, rehearsal.config)


def _outcome_row(outcome: GenerateOutcome, config: JumarConfig, timeout: float) -> Row:
    name = "generator run"
    said = _last_lines(outcome.output_tail)
    waiting = _WAITING.search(outcome.output_tail)
    if outcome.timed_out:
        why = "it waits for somebody to answer" if waiting else "it may wait for an answer, or need longer"
        detail = f"did not end within {duration(timeout)} on a one-word prompt; {why}{said}"
        return Row(name=name, state="red", detail=detail, fix=f"{_unattended(config)}; or allow more time with --timeout")
    if outcome.failure is not None:
        if waiting:
            return Row(name=name, state="red", detail=f"asks for an answer that nobody gives{said}", fix=_unattended(config))
        fix = "run it by hand in the working directory"
        if _LOGIN.search(outcome.output_tail):
            fix = f"log the agent in, or give it its key{_withheld(config)}"
        return Row(name=name, state="red", detail=f"{outcome.failure}{said}", fix=fix)
    if waiting:
        detail = f"ended, but seems to have asked for a permission{said}"
        return Row(name=name, state="yellow", detail=detail, fix=_unattended(config))
    return Row(name=name, state="green", detail=f"answered a one-word prompt in {duration(outcome.seconds)}")


def _last_lines(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if any(char.isalnum() for char in line)]
    return f"; it said: {' / '.join(lines[-2:])[-200:]}" if lines else "; it said nothing"


def _unattended(config: JumarConfig) -> str:
    """Return how this agent is told not to ask."""
    command = config.generator.command or ""
    words = re.findall(r"[\w-]+", command if isinstance(command, str) else " ".join(command))
    known = next((agent.unattended for word in words for agent in AGENTS if agent.program == word), None)
    if known is not None:
        return f"run it unattended, as in `{known}`"
    return "give it the option that makes it run without asking (print, non-interactive, yes to all)"


def _withheld(config: JumarConfig) -> str:
    names = [name for name in left_out(os.environ, config.loop.env) if _WORDS_OF_SECRETS.search(name)]
    if not names:
        return ""
    return f"; not passed on to it are {', '.join(names[:5])}: name what it needs in [loop] env"


def _usage_row(outcome: GenerateOutcome, config: JumarConfig) -> Row:
    usage = outcome.usage
    known = [dollars(usage.token_cost_usd)] if usage.token_cost_usd is not None else []
    if usage.tokens_used is not None:
        known.append(f"{usage.tokens_used:,} tokens")
    if known:
        return Row(name="usage", state="green", detail=f"reported: {', '.join(known)}")
    if config.generator.usage:
        detail = "; ".join(outcome.notes) or "nothing of [generator] usage was found in the output"
        return Row(
            name="usage", state="yellow", detail=detail, fix="make the agent print JSON, and check the paths in [generator] usage"
        )
    fix = "say where in its JSON output the cost is, [generator] usage, or let it write JUMAR_USAGE_FILE"
    return Row(name="usage", state="yellow", detail="not reported: what an iteration costs stays unknown", fix=fix)


_OUTSIDE: Final = re.compile(r"""(?:^|[\s='"(;&|<>])((?:\./)*\.\./[^\s'";&|<>()]*)""")


def of_the_copy(row: Row, command: str | Sequence[str] | None, workdir: Path, config: JumarConfig) -> Row:
    """Return ``row`` with a hint when it is not green and ``command`` names a file outside of ``workdir`` by a relative path.

    Such a path leads elsewhere from the copy in which the program was tried, while a run in place finds it: yellow. Where
    iterations run in trees of their own, they don't find it either, and the row stays what it is.
    """
    if row.state == "green" or command is None:
        return row
    words = _OUTSIDE.findall(command) if isinstance(command, str) else [word for word in command if _OUTSIDE.match(word)]
    path = next((word for word in words if (workdir / word).exists()), None)
    if path is None:
        return row
    if not found_by_passes(path, workdir, config):
        return replace(row, fix=not_found_by_passes(path))
    fix = (
        f"{escape(path)} leaves the working directory and leads elsewhere from the copy that is tried here; a run finds the "
        "file. An absolute path is found in both"
    )
    return replace(row, state="yellow", fix=fix)


def found_by_passes(path: str, workdir: Path, config: JumarConfig) -> bool:
    """Whether ``path``, seen from ``workdir``, is the same file where iterations run: in place, or in trees of their own."""
    in_place = config.loop.isolation not in {"copy", "worktree"} and config.loop.candidates == 1
    if in_place or Path(path).expanduser().is_absolute():
        return True
    top = workdir.resolve()
    if config.loop.isolation == "worktree":  # which is one of the whole repository
        top = next((place for place in (top, *top.parents) if (place / ".git").exists()), top)
    return Path(os.path.normpath(workdir.resolve() / path)).is_relative_to(top)


def not_found_by_passes(path: str) -> str:
    """Return what to do about a path that :func:`found_by_passes` refuses."""
    return (
        f"{escape(path)} leaves the working directory and leads elsewhere from the trees below .jumar/work, where iterations "
        "run: give its absolute path"
    )


def limit_rows(config: JumarConfig) -> Iterator[Row]:
    """Warn of a generator that may spend what it likes. A Python function is the person's own code and not warned of."""
    budget, generator = config.budget, config.generator
    limits = (budget.max_cost_usd, budget.max_tokens, budget.max_seconds, config.stop_rules().max_seconds)
    if generator.command is None or any(limit is not None for limit in limits):
        return
    most = f"only max_iterations ends it: {config.max_iterations} iterations of up to {duration(generator.timeout)}"
    fix = "set [budget] max_cost_usd (and reserve_cost_usd where the agent doesn't say what it costs), or max_seconds"
    yield Row(name="budget", state="yellow", detail=f"no limit on money, tokens or time; {most}", fix=fix)


def protect_rows(config: JumarConfig, base: Path, workdir: Path, path: Path) -> Iterator[Row]:
    """Warn of tests that the generator may weaken, as a run does, and find what that refuses about the files of the checks."""
    try:
        notices = guard_rules(config, workdir=workdir, base=base, path=path).notices
    except (JumarError, OSError) as error:
        yield Row(name="protect", state="red", detail=str(error), fix="edit files of the check as the message says")
        return
    for notice in notices:
        detail, _, fix = notice.partition("; ")
        yield Row(name="protect", state="yellow", detail=detail, fix=fix)


def listener_rows(config: JumarConfig, base: Path) -> Iterator[Row]:
    """Load what the tables of listeners and ``[notify]`` name, as a run does before it begins; nothing is sent."""
    listening = {"OpenTelemetry": config.telemetry.otel, "MLflow": config.mlflow.enabled}
    names = [*config.hooks.python, *(name for name, wanted in listening.items() if wanted)]
    if not names and not config.notify.urls:
        return
    try:
        load_listeners(config.hooks, config.telemetry, base)
        config.mlflow.listeners(base, {})
        notifier = load_notifier(config.notify)
        names += [] if notifier is None else notifier.names
    except JumarError as error:
        fix = "mend it, or take it out of [hooks], [telemetry], [mlflow] or [notify]: `jumar run` refuses to begin"
        yield Row(name="hooks", state="red", detail=str(error), fix=fix)
        return
    yield Row(name="hooks", state="green", detail=f"can be loaded: {escape(', '.join(names))}")
