"""One iteration of a case: its steps one after the other, each reserved before and recorded after, and one commit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jumar.cases.accounting import CaseAccounting, stop_of
from jumar.cases.case_store import CaseStore
from jumar.cases.judgement import BUILTINS, diff_size, read_judgement
from jumar.cases.recorded import unusable
from jumar.cases.records import (
    CaseInputs,
    CaseIteration,
    CaseListener,
    CaseNotice,
    CaseStatus,
    CaseStepStarted,
    RoleFile,
    StepOutcome,
    StepRecord,
    StepStart,
    tell,
)
from jumar.cases.role_files import copy_as_recorded, is_as_recorded, role_file
from jumar.cases.settings import JUDGE, ChainSettings, input_name
from jumar.cases.steps import dry_keys, run_dry, run_program, step_environment
from jumar.core.files import as_write_error, make_directory
from jumar.core.leftovers import remove_any
from jumar.core.redaction import current
from jumar.core.text import escape, human_size, last_line
from jumar.model.attempts import MOST_KILLED
from jumar.model.budget import Stop
from jumar.model.pipeline import GIVEN, CaseStepContext, Step, StepResult
from jumar.model.protocols import Clock
from jumar.processes.control import StopSwitch, beating, lost_seconds
from jumar.processes.process_tree import end_strays

_BEAT: Final = "logs/heartbeat"
_STATUS: Final[Mapping[str, CaseStatus]] = MappingProxyType(
    {"failed": "step_failed", "timeout": "step_timeout", "missing_output": "missing_output"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationRunner:
    """Makes single iterations of one case; holds no state between them but the store's."""

    store: CaseStore
    settings: ChainSettings
    inputs: CaseInputs
    clock: Clock
    switch: StopSwitch
    listener: CaseListener | None = None
    accounting: CaseAccounting | None = None

    def make(self, number: int, parent: CaseIteration | None, *, left: float | None = None) -> CaseIteration | None:
        """Make iteration ``number``, or resume it where an interruption left it; acknowledge and return it.

        One that was interrupted runs no further step once its steps took the ``left`` seconds (None: no limit): it has failed.
        None when it was stopped before its last step: what is done is kept, and the next run resumes there. Errors:
        :class:`jumar.errors.StoreWriteError`, :class:`jumar.errors.StoreDamagedError`.
        """
        directory = self.store.begin_iteration(number)
        earlier = self._earlier(directory)
        began = self.clock.now()
        outputs: dict[str, RoleFile] = {}
        failed: StepRecord | None = None
        for step in self.settings.steps:
            done = _done(directory, step, earlier)
            if done is None:
                if self.switch.requested:
                    return None
                if left is not None and earlier and sum(end.seconds or 0.0 for end in earlier) >= left:
                    failed = _not_run(step, "not run again: the seconds of the run are used up", "timeout")
                    break
                if _killed(step, earlier) >= MOST_KILLED:
                    failed = _not_run(step, f"jumar was killed {MOST_KILLED} times while it ran")
                    break
                done = self._run(step, directory, number, outputs, parent)
                if done.outcome == "interrupted":
                    return None
            if done.outcome != "ok":
                failed = done
                break
            outputs |= done.outputs
        with as_write_error("read what the steps wrote in", directory):
            record = self._record(number, parent, directory, outputs, failed)
        return self.store.commit(replace(record, started_at=began, ended_at=self.clock.now()))

    def _earlier(self, directory: Path) -> tuple[StepRecord, ...]:
        """Return how steps of an earlier run ended; those that never did are recorded as lost, and what they left is ended."""
        ended: list[StepRecord] = []
        timeouts = {step.name: step.timeout for step in self.settings.steps}
        for start, end in self.store.steps(directory):
            if end is not None:
                ended.append(end)
            else:
                end_strays(start.nonce)
                detail = "its process died before it ended"
                most = timeouts.get(start.step)
                seconds = lost_seconds(directory / _BEAT, start.started_at, most=most)
                lost = StepRecord(
                    attempt=start.attempt,
                    step=start.step,
                    outcome="lost",
                    seconds=seconds,
                    detail=detail,
                    reserve_cost_usd=start.reserve_cost_usd,
                    reserve_tokens=start.reserve_tokens,
                )
                self.store.end_step(directory, lost)
                ended.append(lost)
                message = f"step {start.step} of iteration {directory.name} was lost ({detail}); it is on record and runs again"
                tell(CaseNotice(message=message), self.listener)
        return tuple(ended)

    def _run(
        self,
        step: Step,
        directory: Path,
        number: int,
        outputs: Mapping[str, RoleFile],
        parent: CaseIteration | None,
    ) -> StepRecord:
        tell(CaseStepStarted(case=self.store.number, iteration=number, step=step.name), self.listener)
        targets = {role: directory / self.settings.roles[role].path(self.store.number, number) for role in step.outputs}
        scratch = self.store.paths.scratch / step.name
        with as_write_error("prepare a step in", directory):
            remove_any(scratch)
            make_directory(scratch)
            for target in targets.values():
                make_directory(target.parent)
                remove_any(target)
            given, recorded, changed = self._bring(step, scratch, directory, outputs, parent)
            remove_any(directory / _BEAT)
            if JUDGE in step.outputs and self.settings.dry_run is None:
                self.store.given.clear_bytecode()
        if changed:
            return _not_run(step, f"not run: {', '.join(changed)} is not what it was")
        begun = self._begin(step, directory)
        if isinstance(begun, StepRecord):
            return begun
        context = CaseStepContext(
            run_id=self.settings.run_id,
            case_id=self.inputs.case_id,
            case_num=self.store.number,
            iteration=number,
            workdir=self.settings.workdir,
            inputs=MappingProxyType(given),
            outputs=MappingProxyType(targets),
            usage_file=scratch / "usage.json",
            log=directory / "logs" / f"{step.name}.log",
            nonce=begun.nonce,
        )
        # steps of other cases may run beside it then
        watched = recorded if JUDGE in step.outputs and not self.settings.carry_forward else {}
        with beating(directory / _BEAT, self.clock):
            result = self._result(
                step, replace(context, environment=step_environment(context, self.settings.environment, self.store.trust.nonce))
            )
        self.store.tidy_up()
        touched = tell_told(self.store, self.listener)
        record = self._ended(step, result, begun, directory, targets)
        spoilt = [
            name for name, file in watched.items() if not is_as_recorded(given[name].parent, replace(file, path=given[name].name))
        ]
        if spoilt and record.outcome == "ok":
            record = replace(record, outcome="failed", detail=f"{', '.join(spoilt)}, which it was given, changed while it ran")
        if touched and record.outcome == "ok":
            record = replace(record, outcome="failed", detail=f"it changed what is not its own: {touched[0]}")
        self.store.end_step(directory, record)
        with as_write_error("remove", scratch):
            remove_any(scratch)
            remove_any(directory / _BEAT)
        return record

    def _begin(self, step: Step, directory: Path) -> StepStart | StepRecord:
        """Reserve a run of ``step``; where the budget has no room for it, return how it ended."""
        if self.accounting is None or step.builtin is not None:
            return self.store.begin_step(directory, step.name, self.clock.now())
        with self.accounting.lock:
            gate = self.accounting.ask(step.name)
            if isinstance(gate, Stop):
                return _not_run(step, f"not run: {stop_of(gate).detail}")
            return self.store.begin_step(directory, step.name, self.clock.now(), gate.reservation)

    def _bring(
        self,
        step: Step,
        scratch: Path,
        directory: Path,
        outputs: Mapping[str, RoleFile],
        parent: CaseIteration | None,
    ) -> tuple[dict[str, Path], dict[str, RoleFile], list[str]]:
        """Copy the step's inputs into ``scratch``: what is recorded stays as it is, whatever a program does to its copy.

        Return them, what they are by the records, and what cannot be given because it is not that, the judge's files included.
        """
        given: dict[str, Path] = {}
        recorded: dict[str, RoleFile] = {}
        changed = [escape(each.path) for each in self.store.given.judge_changed()] if JUDGE in step.outputs else []
        for declared in step.inputs:
            name, _ = input_name(declared)
            if name in outputs:
                place, file = directory, outputs[name]
            elif name not in GIVEN and parent is not None and name in parent.outputs:
                place, file = self.store.paths.iteration(parent.number), parent.outputs[name]
            elif name in self.inputs.files:
                place, file = self.store.paths.run, self.inputs.files[name]
            else:
                continue
            folder = scratch / "in" / name
            make_directory(folder)
            given[name], recorded[name] = folder / Path(file.path).name, file
            if not copy_as_recorded(place / file.path, given[name], file):
                changed.append(escape(file.path))
        return given, recorded, changed

    def _result(self, step: Step, context: CaseStepContext) -> StepResult:
        if self.settings.dry_run is not None:
            with as_write_error("write the outputs of a step in", context.log.parent):
                return run_dry(context, self.settings)
        if step.builtin is not None:
            began = self.clock.monotonic()
            with as_write_error("write the outputs of a step in", context.log.parent):
                BUILTINS[step.builtin].write(context, self.settings.limits, self.settings.keys)
            return StepResult(seconds=self.clock.monotonic() - began)
        return run_program(step, context, search=self.settings.search, stop=self.switch.immediate)

    def _ended(
        self, step: Step, result: StepResult, begun: StepStart, directory: Path, targets: Mapping[str, Path]
    ) -> StepRecord:
        large = {role: path.lstat().st_size for role, path in targets.items() if os.path.lexists(path)}
        large = {role: size for role, size in large.items() if size > self.settings.max_file_bytes}
        for role in large:
            remove_any(targets[role])
        with as_write_error("read what the steps wrote in", directory):
            written = {role: role_file(path, path.relative_to(directory).as_posix()) for role, path in targets.items()}
        there = {role: file for role, file in written.items() if file is not None}
        outcome: StepOutcome = "ok"
        detail = ""
        if result.interrupted:
            outcome, detail = "interrupted", result.failure or "stopped on request"
        elif result.failure is not None:
            last = last_line(result.output_tail)
            outcome, detail = "timeout" if result.timed_out else "failed", result.failure
            detail += f": {escape(last)[:200]}" if last and last not in detail else ""
        elif large:
            names = ", ".join(f"{role} ({human_size(size)})" for role, size in large.items())
            most = human_size(self.settings.max_file_bytes)
            outcome, detail = "failed", f"it wrote {names}, and a file may have {most}; [run] max_file_mb allows more"
        elif missing := {role: target for role, target in sorted(targets.items()) if role not in there}:
            odd = {role: ", which is no regular file" if os.path.lexists(target) else "" for role, target in missing.items()}
            names = ", ".join(f"{role} ({target.name}{odd[role]})" for role, target in missing.items())
            outcome, detail = "missing_output", f"it did not write {names}"
        return StepRecord(
            attempt=begun.attempt,
            step=step.name,
            reserve_cost_usd=begun.reserve_cost_usd,
            reserve_tokens=begun.reserve_tokens,
            outcome=outcome,
            detail=detail,
            seconds=round(result.seconds, 6),
            exit_code=result.exit_code,
            output_tail=result.output_tail,
            usage=result.usage,
            notes=result.notes,
            outputs=MappingProxyType(there),
        )

    def _record(
        self,
        number: int,
        parent: CaseIteration | None,
        directory: Path,
        outputs: Mapping[str, RoleFile],
        failed: StepRecord | None,
    ) -> CaseIteration:
        changed = [role for role, file in outputs.items() if not is_as_recorded(directory, file)]
        outputs = {role: file for role, file in outputs.items() if role not in changed}
        recorded = self.store.steps(directory)
        values: Mapping[str, float | None] = MappingProxyType(dict.fromkeys(self.settings.keys))
        status: CaseStatus = "step_failed"
        if failed is not None:
            status, reason = _STATUS[failed.outcome], f"step {failed.step}: {failed.detail}"
        elif changed:
            reason = f"{', '.join(changed)} was changed by a later step; a step writes its own outputs only"
        else:
            keys = self.settings.keys if self.settings.dry_run is None else dry_keys(self.settings.keys)
            judgement = read_judgement(directory / outputs[JUDGE].path, keys, self.settings.limits.scales)
            reason = unusable(judgement, [key.name for key in self.settings.order.keys])
            status, values = "invalid_score" if reason else "ok", judgement.values
        return CaseIteration(
            case=self.store.number,
            number=number,
            status=status,
            reason=reason,
            values=values,
            parent=None if parent is None else parent.number,
            outputs=MappingProxyType(outputs),
            steps=tuple(end for _, end in recorded if end is not None),
            nonce=recorded[0][0].nonce if recorded else "",
            diff=diff_size(directory / outputs["ckg_diff"].path, self.settings.diff) if "ckg_diff" in outputs else None,
        )


def _not_run(step: Step, why: str, outcome: StepOutcome = "failed") -> StepRecord:
    return StepRecord(attempt=0, step=step.name, outcome=outcome, seconds=None, detail=why)


def _killed(step: Step, earlier: Sequence[StepRecord]) -> int:
    """Return how many runs of a step, the last ones, ended with jumar killed: what it runs may kill it."""
    ends = (end.outcome for end in reversed(earlier) if end.step == step.name)
    return sum(1 for _ in takewhile(lambda outcome: outcome == "lost", ends))


def tell_told(store: CaseStore, listener: CaseListener | None) -> list[str]:
    """Tell what the store set aside or put back since the last time, and return it."""
    told, store.told = list(map(current().redact, store.told)), []
    for message in told:
        tell(CaseNotice(message=message), listener)
    return told


def _done(directory: Path, step: Step, earlier: Sequence[StepRecord]) -> StepRecord | None:
    """Return the step's end from an earlier run, when what it wrote is still there as it was."""
    last = next((end for end in reversed(earlier) if end.step == step.name), None)
    if last is None or last.outcome in {"interrupted", "lost"}:
        return None
    as_written = all(is_as_recorded(directory, file) for file in last.outputs.values())
    return last if as_written else None
