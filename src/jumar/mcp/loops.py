"""What the tools do with loops: start, record, look, choose, apply. Documents are short, because an agent pays for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jumar.app.config.config import DEFAULT_NAME
from jumar.app.decide import apply_selected, ask_to_stop, select_iteration, undo_apply, workdir_for
from jumar.core.clock import current_user
from jumar.core.redaction import current
from jumar.core.text import cut, escape, escape_block
from jumar.errors import NotFoundError, UsageError
from jumar.loop.decisions.plan import plan_apply
from jumar.loop.generators.workdir import LONGEST_NOTE, WORKDIR
from jumar.loop.ranking.repairs import repairs
from jumar.loop.report.diff import diff_snapshots, render_diff
from jumar.loop.report.observer import LoopObserver
from jumar.loop.report.read import LoopReport, load_report, setting
from jumar.loop.report.reasons import degradation_sentence, rationale, reason_of
from jumar.loop.store.in_force import artifact_rules, config_now
from jumar.loop.store.loop_store import LoopStore
from jumar.mcp.places import Places
from jumar.mcp.running import Run, begin
from jumar.model import CheckResult, IterationRecord
from jumar.model.budget.gate import budget_left
from jumar.processes.control import stop_file

_LONGEST_WORD: Final = 30_000
_TAKEN_BACK: Final = "a person takes that back: jumar stop --undo"
_STOPPED: Final = f"nothing more is recorded; apply puts the best into the working directory; {_TAKEN_BACK}"
Document = dict[str, Any]
Within = tuple[Path, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a client gives to start a loop with."""

    objective: str
    directory: Path
    checks: Sequence[str] = ()
    scorers: Sequence[str] = ()
    max_iterations: int | None = None
    max_cost_usd: float | None = None
    agent: str | None = None

    def options(self) -> list[str]:
        """Return the options of `jumar run`. Errors: :class:`UsageError` for what the directory's ``jumar.toml`` has to say."""
        self._refuse_what_a_file_says()
        refuse_unusable((self.objective, self.agent or "", *self.checks, *self.scorers))
        given = [("--check", check) for check in self.checks] + [("--score", scorer) for scorer in self.scorers]
        limits = (("--max-iterations", self.max_iterations), ("--max-cost", self.max_cost_usd))
        given += [(option, str(value)) for option, value in limits if value is not None]
        words = [f"{option}={value}" for option, value in (*given, ("--agent", self.agent or WORKDIR))]
        return [*words, f"--objective={self.objective.lstrip('@')}", "--given-by=agent", "--new"]

    def _refuse_what_a_file_says(self) -> None:
        if not self.objective.strip():
            raise UsageError("say what is to be done: objective")
        if (self.directory / DEFAULT_NAME).is_file():
            if self.checks or self.scorers or self.max_cost_usd is not None or self.max_iterations is not None:
                raise UsageError(
                    f"the {DEFAULT_NAME} in {self.directory} says what is checked, scored and spent: call start_loop "
                    "with objective and directory alone"
                )
        elif not self.checks and not self.scorers:
            raise UsageError("give checks, such as ['pytest -q'], or scorers: without them nothing says which iteration is best")
        if self.agent is None and self.max_cost_usd is not None:
            raise UsageError("max_cost_usd goes with agent: what you spend yourself, jumar does not see")


def _refuse_inside_of_a_step() -> None:
    """Refuse what jumar does by itself: an agent that it runs begins no loop inside of the loop, with money of its own."""
    loop = os.environ.get("JUMAR_LOOP_ID")
    if loop:
        raise UsageError(f"loop '{escape(loop)}' runs you, and records what you do when you end: only do the work")


def refuse_unusable(texts: Iterable[str]) -> None:
    """Refuse what cannot be a word of a command. Errors: :class:`UsageError`."""
    for text in texts:
        if "\0" in text or len(text) > _LONGEST_WORD:
            raise UsageError(
                f"a text with a NUL, or of more than {_LONGEST_WORD:,} characters, cannot be passed on: {cut(text, 40)!r}"
            )


class Loops:
    """The tools on the loops of one server; ``session`` says whose default loop is meant."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._recording: dict[str, threading.Lock] = {}

    def start(self, asked: Asked, session: str | None, run: Callable[[Run], Document]) -> Document:
        """Begin a loop: by its own agent in the background, else with the directory as it is now as iteration 0."""
        _refuse_inside_of_a_step()
        options = [*asked.options(), f"--root={self.places.root}"]
        if asked.agent is not None:
            loop, pid = begin(options, cwd=asked.directory, root=self.places.root)
            self.places.started(loop, session)
            return {
                "loop": loop,
                "pid": pid,
                "next": "it runs in the background: status says where it is, stop ends it, best has its result",
            }
        outcome = run(Run([*options, "--steps=0"], asked.directory))
        self.places.started(outcome["loop_id"], session)
        with self.places.reading(outcome["loop_id"]) as store:
            return _recorded(store, outcome, 0)

    def record(
        self, loop: str | None, note: str, session: str | None, run: Callable[[Run], Document], within: Within = None
    ) -> Document:
        """Snapshot the working directory, check and score it; where nothing changed since the last iteration, say so instead."""
        _refuse_inside_of_a_step()
        name = self.places.find(loop, session).name
        with self._recording.setdefault(name, threading.Lock()):  # a call that is sent twice finds that nothing changed
            return self._record(name, note, run, within)

    def _record(self, loop: str, note: str, run: Callable[[Run], Document], within: Within) -> Document:
        with self.places.reading(loop, within=within) as store:
            if not _is_recorded(store):
                raise UsageError(f"jumar's own agent works in loop '{store.loop_id}': status says where it is")
            workdir, root, before = workdir_for(store), store.paths.root, store.iteration_numbers()
            same = bool(before) and plan_apply(store, before[-1], workdir, artifact_rules(store), exact=True).empty
        outcome: Document = {}
        if not same:
            words = [f"--id={loop}", f"--root={root}", "--steps=1", "--resume=require"]
            outcome = run(Run(words, workdir, cut(note.replace("\0", ""), LONGEST_NOTE)))
        with self.places.reading(loop) as store:
            numbers = store.iteration_numbers()
            if not numbers:
                raise NotFoundError(f"nothing was recorded: {outcome.get('stop_detail')}")
            found = _recorded(store, outcome, numbers[-1])
            if same:
                found["note"] = f"nothing changed since iteration {numbers[-1]}: nothing was recorded"
            elif len(numbers) == len(before):
                found["note"] = f"nothing was recorded: {outcome['stop_detail']}"
            return found

    def best(self, loop: str | None, session: str | None, *, detail: bool) -> Document:
        """Say which iteration is selected, or would be, and why."""
        with self.places.reading(loop, session) as store:
            report = load_report(store)
            chosen, final = report.chosen_record, report.records[-1] if report.records else None
            found: Document = {"loop": store.loop_id, "iteration": report.chosen, "score": _score_of(report, report.chosen)}
            found |= {
                "verified": None if chosen is None or not chosen.checks else chosen.verification_status == "passed",
                "reason": reason_of(report),
                "last": None if final is None else {"iteration": final.iteration_number, "score": final.quality_score},
                "decline": degradation_sentence(report),
                "given_by": setting(report.config, "loop", "given_by"),
                "next": "apply puts it into the working directory; diff shows what it changed",
            }
            return found | ({"rationale": list(rationale(report))} if detail else {})

    def status(self, loop: str | None, session: str | None, *, detail: bool) -> Document:
        """Say where a loop is: what runs, the best so far, what is spent and left."""
        with self.places.reading(loop, session) as store:
            status = LoopObserver(store.paths.directory).look()
            waits = status.stop is None and not status.live and _is_recorded(store)
            stopped = f"stopped: {_STOPPED}" if _is_stopped(store) else "waiting for record_iteration"
            report = load_report(store)  # which one stands is said as `best` says it
            document: Document = {
                "loop": status.loop_id,
                "state": stopped if waits else status.state_text,
                "now": status.now_text or None,
                "iterations": status.done,
                "iterations_left": status.passes_left,
                "best": _brief(report.chosen_record),
                "last": _brief(status.last),
                "ended": None if status.stop is None else f"{status.stop.reason}: {status.stop.detail}",
                "cost_usd": status.spend.cost_usd,
                "left": {name: value for name, value in budget_left(status.spend, status.budget).items() if value is not None},
                "problems": list(status.problems),
            }
            return document | ({"log": list(status.log), "rows": [_brief(row) for row in status.rows]} if detail else {})

    def diff(self, loop: str | None, iteration: int | None, against: int | None, session: str | None) -> Document:
        """Return a unified diff: of the selected iteration against the start where no number is given."""
        with self.places.reading(loop, session) as store:
            number = load_report(store).chosen if iteration is None else iteration
            if number is None:
                raise NotFoundError("no iteration has a valid score: name one")
            found = diff_snapshots(store, 0 if against is None else against, number)
            text = current().redact(render_diff(found))
            return {"loop": store.loop_id, "iteration": number, "against": found.a, "diff": text}

    def select(self, loop: str | None, iteration: int, reason: str, session: str | None) -> Document:
        """Choose an iteration whatever the rules say; the reason goes on record."""
        with self.places.reading(loop, session) as store:
            decision = select_iteration(store, iteration, reason=reason, by=_agent())
            held = decision.kind == "held"
            told = "it waits until a person confirms it: jumar select" if held else "apply puts it into the working directory"
            return {"loop": store.loop_id, "iteration": iteration, "held": held, "next": told}

    def apply(self, loop: str | None, session: str | None, within: Within = None) -> Document:
        """Put the selected iteration into the working directory."""
        with self.places.reading(loop, session, within=within) as store:
            done = apply_selected(store, by=_agent())
            changes = [] if done.plan is None else [f"{change.verb} {change.path}" for change in done.plan.moves.changes]
            return {
                "loop": store.loop_id,
                "iteration": done.iteration if done.decision is None else done.decision.best_iteration,
                "changed": len(changes),
                "files": changes,
                "next": "undo takes it back" if changes else "it was there already",
            }

    def undo(self, loop: str | None, session: str | None, within: Within = None) -> Document:
        """Take back the last apply."""
        with self.places.reading(loop, session, within=within) as store:
            decision = undo_apply(store, by=_agent())
            return {"loop": store.loop_id, "undone": decision.best_iteration}

    def stop(self, loop: str | None, session: str | None) -> Document:
        """Ask a loop to end after its step."""
        with self.places.reading(loop, session) as store:
            new = ask_to_stop(store.paths.stop_files()[-1])  # its own, not the one that stops all of the root
            return {
                "loop": store.loop_id,
                "asked": new,
                "next": _STOPPED if _is_recorded(store) else f"it ends when its step is recorded; {_TAKEN_BACK}",
            }


def _agent() -> str:
    """Who decides, as the trail says it: a program, and for whom."""
    return f"an agent of {current_user()}"


def _is_recorded(store: LoopStore) -> bool:
    """Whether somebody else works in the loop, and jumar records it."""
    return setting(config_now(store), "generator", "builtin") == WORKDIR


def _recorded(store: LoopStore, outcome: Document, number: int) -> Document:
    """Return what came of an iteration, for whoever made it: what fails first."""
    record = store.record(number, listed=False)
    report = load_report(store)
    made = repairs(record, None if record.parent is None else store.record(record.parent, listed=False))
    ended = store.end() is not None
    passed = [check.name for check in record.checks if check.passed]
    document: Document = {
        "loop": store.loop_id,
        "iteration": number,
        "score": record.quality_score,
        "delta": record.quality_delta,
        "status": record.status if not record.status_reason else f"{record.status}: {record.status_reason}",
        "verification": record.verification_status,
        "passed": passed,
        "failing": [_failing(check) for check in record.checks if not check.passed],
        "changes": str(made) or None,
        "reasons": list(record.reasons),
        "best": {"iteration": report.chosen, "score": _score_of(report, report.chosen)},
        "ended": f"{outcome['stop_reason']}: {outcome['stop_detail']}" if ended and outcome else None,
        "given_by": setting(report.config, "loop", "given_by"),
    }
    if _is_stopped(store) and not ended:
        return document | {"next": _STOPPED}
    return document | {"next": _advice(ended=ended, is_best=report.chosen == number)}


def _is_stopped(store: LoopStore) -> bool:
    return stop_file(store.paths.stop_files()) is not None


def _advice(*, ended: bool, is_best: bool) -> str:
    if ended:
        return "the loop has ended: " + ("this is the best" if is_best else "apply puts the best back")
    return "improve it and record the next iteration" + ("" if is_best else "; apply goes back to the best first")


def _failing(check: CheckResult) -> Document:
    tests = None if check.tests is None else str(check.tests)
    said = check.broken or check.note or escape_block(check.output_tail)
    return {"check": check.name, "tests": tests, "failing_tests": list(check.failures), "output": said}


def _brief(record: IterationRecord | None) -> Document | None:
    if record is None:
        return None
    return {"iteration": record.iteration_number, "score": record.quality_score, "verification": record.verification_status}


def _score_of(report: LoopReport, number: int | None) -> float | None:
    return None if number is None else report.score_of(number)
