"""The snapshot of an iteration; where none can be taken of what its generator left, the iteration failed and the loop goes on.

What is over the quota, too deep or not to be read cannot be kept. Such an iteration is recorded with the tree that it began with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jumar.errors import JumarError
from jumar.loop.engine.run_context import LoopRun
from jumar.loop.store.staging import Pending
from jumar.loop.workspace.clearing import why_of_the_tree
from jumar.loop.workspace.disk_space import with_room
from jumar.loop.workspace.guard import Finding
from jumar.loop.workspace.workspace import Workspace
from jumar.model.attempts import AttemptEnd, AttemptStart

FAILED: Final = "snapshot_failed"
"""Key of a stage with the reason why there is no snapshot of what the generator left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """What the snapshot of one iteration is taken of, and what is kept with it; see ``LoopStore.stage``."""

    run: LoopRun
    workspace: Workspace
    number: int
    nonce: str
    attempt: int | None
    logs: Path | None

    def take(self, stage: Mapping[str, Any]) -> Pending:
        """Take the snapshot of the tree as it lies. Errors: as ``LoopStore.stage``."""

        def stage_it() -> Pending:
            return self.run.store.stage(
                self.number,
                source=self.workspace.directory,
                paths=self.workspace.paths_since(stage.get("parent")),
                nonce=self.nonce,
                attempt=self.attempt,
                stage=stage,
                logs=self.logs,
                quota=self.run.settings.artifacts,
                cache=self.workspace.cache,
            )

        return with_room(self.run.space, stage_it)

    def take_failed(self, stage: Mapping[str, Any], why: str) -> Pending:
        """Bring the tree back to the parent and take that, for an iteration that failed.

        Errors: as before, and of a tree that cannot be brought back.
        """
        self.run.notice(f"iteration {self.number} failed: {why}")
        self.workspace.bring_back(stage["parent"])
        return self.take({**stage, FAILED: why})


def take_ended(
    run: LoopRun,
    workspace: Workspace,
    start: AttemptStart,
    ended: AttemptEnd,
    scratch: Path | None,
    *,
    since: int | None = None,
    found: tuple[Finding, ...] = (),
    lost: str | None = None,
) -> Pending:
    """Snapshot the working directory after an attempt that has ended, with the checks as they were at the start.

    ``since`` is the wall clock when it began, if that is known; ``found`` is what the guard found of it. ``lost`` says why the
    tree is not what the attempt left: then, and where that cannot be kept, it is a failed iteration's. Errors: as of
    :class:`Taking`.
    """
    taking = Taking(run=run, workspace=workspace, number=start.iteration, nonce=start.nonce, attempt=start.number, logs=scratch)
    lost = lost or workspace.gone()
    if lost is None:
        try:
            found = (*found, *run.found(start.iteration, run.guard.put_back(workspace, scratch)))
            return taking.take(_stage(start, ended, since, found))
        except (JumarError, OSError, RecursionError) as error:
            lost = why_of_the_tree(error)
            if lost is None or start.parent is None:
                raise
    return taking.take_failed(_stage(start, ended, since, found), lost)


def _stage(start: AttemptStart, ended: AttemptEnd, since: int | None, found: tuple[Finding, ...]) -> dict[str, Any]:
    return {
        "parent": start.parent,
        "batch": start.batch,
        "candidate": start.candidate,
        "since_ns": since,
        "ended": ended.to_json(),
        "guard": [finding.to_json() for finding in found],
    }
