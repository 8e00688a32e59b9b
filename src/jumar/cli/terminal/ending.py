"""The terminal's last word on a loop, in three short blocks: what came of it, why, and what can be typed next.

One function for `jumar run`, `jumar demo` and `jumar show`; the commands of the third block work as they are printed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from jumar.cli.common import command_for, file_of, resume_for, shown_path
from jumar.core.rendering.figures import dollars
from jumar.core.text import cell_width, wrapped
from jumar.errors import JumarError
from jumar.loop.decisions.apply import way_back
from jumar.loop.decisions.plan import plan_apply
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.report.ending import KEPT, Place, Situation, State, result, why
from jumar.loop.report.read import LoopReport, load_report
from jumar.loop.report.spending import ONCE, RAISED, average_of
from jumar.loop.store.in_force import artifact_rules, config_now, imported_commit, last_applied
from jumar.loop.store.loop_store import LoopStore
from jumar.model import StopDecision
from jumar.model.selection import LIMIT_REASONS, REQUESTED_REASONS

_LABEL: Final = 9  # columns of Result, Why and Next
_WIDEST_COMMAND: Final = 40  # a longer one has its explanation below it
_ROOM: Final = 20  # columns that an explanation needs beside the commands

_RAISED: Final = {"max_iterations": "-n", **{reason: option for reason, (_, option) in RAISED.items()}}
_WITH: Final = {
    "target": "with --keep-going, or a higher --target",
    "unknown_cost": "with --reserve-cost (or [budget] reserve_tokens): what such a run is charged",
    "consecutive_failures": (
        "once the cause is mended (`jumar show` and `jumar logs` name it): with a changed [generator] and --accept-changes, "
        "or a higher [stop] consecutive_failures (3 where none is written)"
    ),
}


class Next(NamedTuple):
    """A command that can be typed as it stands, and what it is for."""

    command: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """How the commands for one loop are spelled here: ``of`` takes a command and its options; ``resume`` resumes the loop.

    ``resume`` is None for a loop that no command made; ``in_file`` says that a file configures it.
    """

    of: Callable[[str, str], str]
    resume: str | None
    in_file: bool = False


def ending_of_run(outcome: LoopOutcome, store: LoopStore, *, config: Path | None, width: int) -> list[str]:
    """Return the lines for a run that has just ended; ``config`` is its configuration file, None for a command line."""
    report = load_report(store, stop=outcome.stop)
    requested = outcome.stop.reason in REQUESTED_REASONS or outcome.stop.reason == "disk_full"
    state: State = "again" if outcome.already_finished else "interrupted" if requested else "finished"
    situation = Situation(
        state=state,
        place=place_of(report, store, state, problem=outcome.apply_problem),
        stop=outcome.stop,
        problem=outcome.apply_problem or "",
    )
    return _ending(report, situation, store, outcome.workdir, config, width)


def ending_of_show(
    report: LoopReport, store: LoopStore, state: State, *, stop: StopDecision | None, writer: str, width: int
) -> list[str]:
    """Return the lines for a loop as it stands in its records and its working directory."""
    situation = Situation(state=state, place=place_of(report, store, state), stop=stop, writer=writer)
    return _ending(report, situation, store, store.workdir, file_of(store), width)


def _ending(
    report: LoopReport, situation: Situation, store: LoopStore, workdir: Path | None, config: Path | None, width: int
) -> list[str]:
    """Add what both say: where the working directory is, whether an undo puts the start back, and how commands are spelled."""
    situation = replace(
        situation,
        to_start=situation.state in {"finished", "again"} and way_back(store) == "start",
        directory="" if workdir is None or workdir == Path.cwd() else shown_path(workdir),
    )
    commands = Commands(
        of=lambda command, options: command_for(command, store.paths.directory, options),
        resume=resume_for(store, config) if "run" in store.config and imported_commit(store, 0) is None else None,
        in_file=config is not None,
    )
    return ending_lines(report, situation, commands, width)


def place_of(report: LoopReport, store: LoopStore, state: State, *, problem: str | None = None) -> Place:
    """Return where the selected iteration is, by what `jumar apply` would find: the working directory is compared with it."""
    if store.workdir is None or report.chosen is None or imported_commit(store, report.chosen) is not None:
        return "nowhere"
    if problem is not None:
        return "refused"
    if state == "running":
        return "later"
    applied, holds = last_applied(store), False
    ours = applied if applied is not None and applied.best_iteration == report.chosen else None
    with contextlib.suppress(JumarError, OSError):
        holds = plan_apply(store, report.chosen, store.workdir, artifact_rules(store)).empty
    if holds:
        last = None if report.final is None else report.final.iteration_number
        return "applied" if ours is not None and last in {None, ours.final_iteration} else "holds"
    # a person selected after the last apply, and after the end of the last run, which applies too
    kinds = [decision.kind for decision in store.decisions() if decision.kind in {"override", "apply", "end"}]
    if state in {"interrupted", "new"} or kinds[-1:] == ["override"]:
        return "later"
    return "gone" if ours is not None or config_now(store).get("apply") == "auto" else "apart"


def ending_lines(report: LoopReport, situation: Situation, commands: Commands, width: int) -> list[str]:
    """Return the three blocks in lines of at most ``width`` columns; only a word that is longer than a line goes beyond."""
    lines = ["", *_block("Result", result(report, situation), width), *_block("Why", why(report, situation), width)]
    return [*lines, *_listed(next_steps(report, situation, commands), width)]


def _block(label: str, paragraphs: Iterable[str], width: int) -> list[str]:
    lines = [line.replace(KEPT, " ") for text in paragraphs for line in wrapped(text, width - _LABEL)]
    return [f"{label if first == 0 else '':<{_LABEL}}{line}" for first, line in enumerate(lines)]


def _listed(steps: Sequence[Next], width: int) -> list[str]:
    """Return the commands below each other, each with its explanation beside it, or below it where there is no room."""
    lengths = [cell_width(step.command) for step in steps]
    column = max((length for length in lengths if length <= _WIDEST_COMMAND), default=0)
    beside = _LABEL + column + 2
    lines: list[str] = []
    for step, length in zip(steps, lengths, strict=True):
        if length <= column and width - beside >= _ROOM:
            first, *more = wrapped(step.meaning, width - beside)
            lines += [f"{step.command}{' ' * (column - length)}  {first}", *(" " * (column + 2) + line for line in more)]
        else:
            lines += [step.command, *("  " + line for line in wrapped(step.meaning, width - _LABEL - 2))]
    return [f"{'Next' if first == 0 else '':<{_LABEL}}{line}" for first, line in enumerate(lines)]


# ------------------------------------------------------------------------------------------------------------ what is next


def next_steps(report: LoopReport, situation: Situation, commands: Commands) -> list[Next]:
    """Return what a person may want to type now, the most likely first."""
    if situation.state == "running":
        return [Next(commands.of("watch", ""), "see it as it runs"), Next(commands.of("stop", ""), "end it after its step")]
    going = _going_on(report, situation, commands)
    if report.chosen is None:
        looking = [
            Next(commands.of("show", ""), "the status of each iteration"),
            Next(commands.of("logs", ""), "what the programs of the last one printed"),
        ]
        seen = {step.command for step in looking}
        return [*looking, *(step for step in going if step.command not in seen)] if report.records else going
    stop = situation.stop
    limited = stop is not None and (stop.reason in LIMIT_REASONS or stop.reason == "blocked")
    first = situation.state in {"interrupted", "new"} or limited
    return [
        *(going if first else ()),
        *_looking(report, commands),
        *_applying(report, situation, commands),
        *(() if first else going),
    ]


def _looking(report: LoopReport, commands: Commands) -> list[Next]:
    changed = [Next(commands.of("diff", ""), "what changed since the start")] if report.chosen and report.start else []
    return [*changed, Next(commands.of("report", "--open"), "the whole story as a page")]


def _applying(report: LoopReport, situation: Situation, commands: Commands) -> list[Next]:
    number = report.chosen
    name = "the start" if number == 0 else f"iteration {number}"
    where = situation.directory or "this directory"
    over = situation.state not in {"interrupted", "new"}
    if situation.place == "applied":
        last = report.final
        left = "what was there before"
        if last is not None and last.batch is None:  # candidates have trees of their own
            left = f"what iteration {last.iteration_number} left"
        return [Next(commands.of("apply", "--undo"), f"put back {left}")]
    if situation.place == "holds" and number:
        return [Next(commands.of("apply", "--undo"), "put the start back")] if situation.to_start else []
    if situation.place in {"apart", "refused", "gone"} or (situation.place == "later" and (number or over)):
        return [Next(commands.of("apply", ""), f"put {name} into {where}")]
    return []


def _going_on(report: LoopReport, situation: Situation, commands: Commands) -> list[Next]:
    """Return how to resume, where that makes sense: after an interruption or a limit, or while it was still getting better."""
    resume, stop = commands.resume, situation.stop
    if resume is None:
        return []
    if situation.state in {"interrupted", "new"} and (stop is None or stop.reason in REQUESTED_REASONS):
        undo = (
            [Next(commands.of("stop", "--undo"), "take the request to stop back")] if stop and stop.reason == "stop_file" else []
        )
        return [*undo, Next(resume, "resume")]
    if stop is None:
        return []
    if stop.reason in _RAISED and (stop.reason != "max_iterations" or situation.state == "again" or _unfinished(report)):
        return [Next(f"{resume} {_RAISED[stop.reason]} {_higher(report, stop.reason)}", f"resume{_average(report, stop.reason)}")]
    if stop.reason == "unknown_cost":
        return _charging(report, resume, in_file=commands.in_file)
    if stop.reason in ONCE:
        return [Next(resume, f"resume, {ONCE[stop.reason]}")]
    if stop.reason == "consecutive_failures":
        printed = Next(commands.of("logs", ""), "what the programs of the last iteration printed")
        mended = Next(f"{resume} --accept-changes", "resume, once the [generator] is mended")
        return [printed, mended] if commands.in_file else [printed]
    if stop.reason == "target" and (situation.state == "again" or report.chosen == 0):
        new = [Next(f"{resume} --new", "begin another loop")] if situation.state == "again" else []
        return [Next(f"{resume} --keep-going", "resume although it has arrived"), *new]
    if situation.state == "again":
        return [Next(f"{resume} --new", "begin another loop; this one resumes without the [stop] rule that ended it")]
    return []


def _charging(report: LoopReport, resume: str, *, in_file: bool) -> list[Next]:
    """Return how to resume where a use was not reported: charged so little that three more iterations fit below the limit."""
    spend, budget = report.spend, report.budget
    if not spend.uncharged_costs or budget.max_cost_usd is None or budget.on_unknown_cost != "charge_reserve":
        asked = "once the generator reports what it uses, or [budget] says what is charged where it doesn't"
        return [Next(resume, f"resume, {asked}")] if in_file else []
    left = budget.max_cost_usd - spend.charged_cost_usd
    limit = "" if left > 0 else f" --max-cost {_higher(report, 'max_cost')}"
    charged = float(f"{min(1.0, (left if left > 0 else budget.max_cost_usd or 1.0) / (spend.uncharged_costs + 3)):.2g}")
    return [
        Next(
            f"{resume}{limit} --reserve-cost {charged:g}",
            f"resume, charging {dollars(charged, places=2 if charged >= 0.1 else 4)} where a cost is not reported",
        )
    ]


def way_to_resume(reason: str) -> str:
    """Return on what terms a loop that ended for ``reason`` is resumed: ``with a higher limit (-n)``."""
    if reason in _RAISED:
        return f"with a higher limit ({_RAISED[reason]})"
    return {**ONCE, **_WITH}.get(reason, "with another [stop] rule: take out or change the one that ended it")


def _unfinished(report: LoopReport) -> bool:
    """Whether further iterations may well be better: the last one is the best, or no check says that it is done."""
    chosen = report.chosen_record
    return chosen is not None and (chosen.verification_status == "failed" or chosen is report.final)


def _higher(report: LoopReport, reason: str) -> str:
    """Return twice what ran out."""
    spend, budget = report.spend, report.budget
    limit: float | None = {
        "max_iterations": report.passes,
        "max_cost": budget.max_cost_usd or spend.charged_cost_usd,
        "max_tokens": budget.max_tokens or spend.charged_tokens,
        "max_seconds": budget.max_seconds or spend.seconds,
    }[reason]
    return f"{2 * (limit or 1):.6g}" if reason == "max_cost" else f"{max(1, round(2 * (limit or 1)))}"


def _average(report: LoopReport, reason: str) -> str:
    used = average_of(reason, report.spend, report.passes)
    return f" with a higher limit; an iteration took {used} on average" if used else " with a higher limit"
