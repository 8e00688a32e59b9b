"""The work trees of one run: the loop's own, and one for each parallel candidate, made when it is first needed."""

from __future__ import annotations

from jumar.loop.run import LoopRun
from jumar.loop.step import Step
from jumar.loop.workspace import Workspace

__all__ = ["Trees"]


class Trees:
    """Gives each candidate its tree, always the same one, also after a resume."""

    def __init__(self, run: LoopRun) -> None:
        self._run = run
        self._made: dict[int | None, Workspace] = {}

    def of(self, candidate: int | None) -> Workspace:
        """Return the tree of a candidate, ready to be worked in; None is the loop's own. Errors: as ``Workspace.prepare``."""
        if candidate not in self._made:
            workspace = Workspace(self._run.store, self._run.settings, slot=candidate)
            workspace.prepare()
            self._made[candidate] = workspace
        return self._made[candidate]

    def step(self, candidate: int | None) -> Step:
        """Return what runs iterations in the tree of a candidate."""
        return Step(run=self._run, workspace=self.of(candidate))
