"""Before the selected iteration is called verified: its checks once more, on what its snapshot holds and nothing else.

The iteration is restored. What is in no snapshot and is new or changed since the loop began
(:mod:`jumar.loop.workspace.surroundings`) is out of the way meanwhile (:mod:`jumar.loop.workspace.set_aside`), and the
person's ``setup`` makes anew what it makes. A verdict against the iteration is believed only when nothing was missing that
cannot be made: what was changed in no snapshot cannot be put back.

Nothing is run where the answer is known: the selected iteration was the last thing that ran, the tree still holds its snapshot,
and around that everything is as when the loop began. Then its own checks saw just that.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from jumar.core.clock import current_user
from jumar.core.files import as_write_error, make_directory
from jumar.core.leftovers import remove_tree
from jumar.core.text import named
from jumar.errors import JumarError, NothingEvaluatedError
from jumar.loop.engine.evaluation import Evaluation
from jumar.loop.engine.finalists import context_again
from jumar.loop.engine.run_context import LoopRun
from jumar.loop.engine.step_context import Briefing
from jumar.loop.engine.workspaces import Trees
from jumar.loop.events.events import PhaseStarted
from jumar.loop.hooks import reset_failure
from jumar.loop.store.current_selection import evidence_of, select_from
from jumar.loop.workspace.disk_space import disk_is_full, with_room
from jumar.loop.workspace.set_aside import Aside
from jumar.loop.workspace.surroundings import Differences
from jumar.loop.workspace.workspace import Workspace
from jumar.model import CheckResult, StopDecision
from jumar.model.decisions import Rechecked, rechecks
from jumar.model.stopping import UNENDED_REASONS

_TRIES: Final = 3
_LOGS: Final = "logs"
_MADE_BY: Final = {
    "node_modules": "npm ci",
    ".venv": "pip install -e .",
    "venv": "pip install -e .",
    "vendor": "composer install",
}


def recheck_of(run: LoopRun, number: int | None) -> Rechecked:
    """Return what the recheck of iteration ``number`` came to, and where there was none, why; None is no iteration at all."""
    found = None if number is None else rechecks(run.store.decisions()).get(number)
    if found is not None:
        return found
    why = "its checks were not run once more"
    if not run.parts.validators:
        why = "there are no checks"
    elif run.settings.recheck == "off":
        why = '[loop] recheck = "off"'
    elif number is None or not _passed(run, number):
        why = "no iteration passed all checks"
    return Rechecked(iteration=number or 0, rechecked=None, because=why)


def _passed(run: LoopRun, number: int) -> bool:
    return any(view.number == number and view.verification == "passed" for view in evidence_of(run.store).views)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck:
    """The recheck at the end of one run. The caller holds the loop's lock."""

    run: LoopRun
    trees: Trees

    def go(self, stop: StopDecision) -> StopDecision:
        """Run the checks of what is selected once more, after a loop that ended with ``stop``; return that, or who asked to end.

        With ``recheck = "strict"`` one that fails is not verified, and the next best is tried, three at most. The tree is as
        before afterwards. Errors: as of the store and the working directory; what was set aside is back then too.
        """
        run, mode = self.run, self.run.settings.recheck
        if stop.reason in UNENDED_REASONS or mode == "off" or not run.parts.validators:
            return stop
        for _ in range(_TRIES):
            number = self._selected()
            known = None if number is None else rechecks(run.store.decisions()).get(number)
            answered = known is not None and (
                known.rechecked or (known.rechecked is False and known.strict == (mode == "strict"))
            )
            if number is None or answered:
                return stop
            if run.switch.requested:
                return run.switch.decision()
            began = run.clock.monotonic()
            found = self._answer(number)
            if found is None:
                return run.switch.decision()
            found = replace(found, seconds=round(run.clock.monotonic() - began, 6))
            self._record(found)
            if not found.refused:
                return stop
        return stop

    def _selected(self) -> int | None:
        """Return the number of the iteration that is selected now, if it has passed its checks."""
        with contextlib.suppress(NothingEvaluatedError):
            number = select_from(self.run.store, self.run.criteria).stands
            if _passed(self.run, number):
                return number
        return None

    def _answer(self, number: int) -> Rechecked | None:
        """Return what came of it; None when it was stopped in the middle."""
        run, store = self.run, self.run.store
        limit = run.settings.stop.max_seconds
        if not store.has_snapshot(number):
            return self._of(number, "its snapshot was cleaned up")
        if limit is not None and run.tally.spend().seconds >= limit:
            return self._of(number, "the time is used up ([stop] max_seconds)")
        workspace = self.trees.of(None if run.settings.candidates == 1 else 1)
        before = [each for each in store.iteration_numbers() if store.has_snapshot(each)][-1]
        try:
            workspace.unlock()
            plan = workspace.difference(number)
            workspace.carry_out(plan)
            found = run.surroundings.differences(workspace, (*store.manifest(number).entries, *run.guard.guarded))
            if found is None:
                return self._of(number, "what lay beside its files at the start is not known any more")
            if found.nothing and not plan.write and self._was_last(number):
                because = "nothing ran after its checks, and beside its files everything is as at the start"
                return replace(self._of(number, because, rechecked=True), ran=False)
            return self._checked(number, workspace, found)
        except (JumarError, OSError) as error:
            if disk_is_full(error):
                raise
            return self._of(number, f"they could not be run once more: {error}")
        finally:
            workspace.restore(before)

    def _was_last(self, number: int) -> bool:
        attempts = self.run.store.attempts()
        last = attempts[-1].start if attempts else None
        return self.run.settings.candidates == 1 and last is not None and (last.iteration, last.purpose) == (number, "score")

    def _checked(self, number: int, workspace: Workspace, found: Differences) -> Rechecked | None:
        run, nonce = self.run, secrets.token_hex(8)
        away = found.roots((*found.new, *found.changed))
        logs = self._logs()
        with Aside(run.store, workspace).away(away, nonce):
            run.found(number, run.guard.before_scoring(number, workspace, logs))
            try:
                self.trees.set_up(workspace)
                workspace.restore(number)  # setup may have changed what the snapshot holds
                missing = [path for path in (*found.changed, *found.gone) if not os.path.lexists(workspace.directory / path)]
                problem, failures = self._failures(number, workspace, nonce, logs)
            finally:
                spoilt = run.found(number, run.guard.after_scoring(number, workspace))
        failures += [finding.message for finding in spoilt if finding.fails]
        if run.switch.immediate.is_set():
            return None
        they = "which is" if len(away) == 1 else "which are"
        without = f" without {named(away)}" if away else ""
        why = f", {they} in no snapshot and new or changed since the start" if away else ""
        if problem is not None:
            return self._of(number, f"they could not be run once more: {problem}")
        if not failures:
            return self._of(number, f"all checks pass{without}{why}", rechecked=True)
        which = failures[0] if len(failures) == 1 else f"{len(failures)} checks fail"
        if missing:
            return self._of(number, f"{which}{without}; {_not_as_before(found.roots(missing))}")
        maker = _maker(away)
        made = f'; [loop] setup = "{maker}" would make it' if maker and run.parts.hooks.setup is None else ""
        return self._of(number, f"{which}{without}{why}{made}", rechecked=False)

    def _logs(self) -> Path:
        logs = self.run.store.paths.recheck / _LOGS
        with as_write_error("create", logs):
            remove_tree(logs)
            make_directory(logs)
        return logs

    def _failures(self, number: int, workspace: Workspace, nonce: str, logs: Path) -> tuple[str | None, list[str]]:
        """Run the checks once in a tree that holds the iteration; return why one of them could not answer, and what failed."""
        run = self.run
        record = run.store.record(number)
        brief = Briefing.of(run, number, record.parent, batch=record.batch, candidate=record.candidate)
        context = context_again(run, workspace, brief, logs, nonce=nonce, label="recheck")
        evaluation = Evaluation(run=run, workspace=workspace)
        run.tell(PhaseStarted(iteration=number, candidate=record.candidate, phase="verify"))
        run.found(number, run.guard.put_back(workspace, logs))
        problem = reset_failure(run.parts.hooks, context, "score", tries=1)
        checks: list[CheckResult] = []
        if problem is None:
            checks += (validator.validate(evaluation.cleared(context)) for validator in run.parts.validators)
        problem = next((f"check '{check.name}': {check.broken}" for check in checks if check.broken is not None), problem)
        return problem, [f"check '{check.name}' fails" for check in checks if not check.passed]

    def _of(self, number: int, because: str, *, rechecked: bool | None = None) -> Rechecked:
        return Rechecked(iteration=number, rechecked=rechecked, because=because, strict=self.run.settings.recheck == "strict")

    def _record(self, found: Rechecked) -> None:
        run, store = self.run, self.run.store
        data: dict[str, Any] = {name: getattr(found, name) for name in ("iteration", "rechecked", "ran", "strict", "seconds")}
        fields = {"best_iteration": None, "final_iteration": store.iteration_numbers()[-1], "delta": None, "decision": None}
        at, by = run.clock.now(), current_user()
        with_room(run.space, lambda: store.add_decision("recheck", reason=found.because, by=by, at=at, data=data, **fields))
        if found.rechecked is not True:
            run.notice(f"iteration {found.iteration} was checked once more, from its snapshot alone: {found.because}")


def _not_as_before(folders: Sequence[str]) -> str:
    """Return what to say of directories and files that changed or went and are in no snapshot, and the way out."""
    maker = _maker(folders)
    they, it = ("is", "it") if len(folders) == 1 else ("are", "them")
    way_out = f'[loop] setup = "{maker}" makes {it} anew' if maker else f"name the command that makes {it} in [loop] setup"
    return f"{named(folders)} {they} not as at the start, and no snapshot holds {it}: {way_out}"


def _maker(folders: Sequence[str]) -> str | None:
    """Return the usual command that makes one of the directories; None where nobody knows."""
    return next((_MADE_BY[part] for folder in folders for part in PurePosixPath(folder).parts if part in _MADE_BY), None)
