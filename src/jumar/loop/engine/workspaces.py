"""The working directories of one run: the loop's own, and one for each parallel candidate, made when it is first needed."""

from __future__ import annotations

import os

from jumar.loop.engine.iteration import IterationStep
from jumar.loop.engine.run_context import LoopRun
from jumar.loop.hooks import set_up, tear_down
from jumar.loop.store.layout import is_among_packages
from jumar.loop.workspace.workspace import Workspace, discard_slots
from jumar.processes.environment import build_environment


class Trees:
    """Gives each candidate its tree, always the same one, also after a resume."""

    def __init__(self, run: LoopRun) -> None:
        self._run = run
        self._made: dict[int | None, Workspace] = {}
        self._set_up: dict[int | None, int] = {}

    def of(self, candidate: int | None) -> Workspace:
        """Return the tree of a candidate as it lies; None is the loop's own. Errors: as ``Workspace.prepare``."""
        if candidate not in self._made:
            workspace = Workspace(self._run.store, self._run.settings, slot=candidate, tell=self._run.notice)
            workspace.prepare()
            self._made[candidate] = workspace
        return self._made[candidate]

    def ready(self, candidate: int | None) -> Workspace:
        """Return the tree of a candidate, with the person's ``setup`` done in it, once in this run and each time it is made.

        What the loop keeps of it may have changed by that. Errors: those of :meth:`of`; :class:`JumarError` when ``setup`` fails.
        """
        workspace = self.of(candidate)
        if self._set_up.get(candidate) != workspace.made:
            self._set_up[candidate] = workspace.made
            self.set_up(workspace)
            self._run.surroundings.begin(workspace)
        return workspace

    def set_up(self, workspace: Workspace) -> None:
        """Run the person's ``setup`` in a tree, once more where it was: what it left running is ended first."""
        told = {"JUMAR_LOOP_ID": self._run.settings.loop_id, **workspace.variables()}
        set_up(
            self._run.parts.hooks,
            loop=self._run.store.paths.directory,
            tree=workspace.name,
            cwd=workspace.directory,
            environment=build_environment(os.environ, self._run.settings.environment, told),
        )

    def step(self, candidate: int | None) -> IterationStep:
        """Return what runs iterations in the tree of a candidate."""
        return IterationStep(run=self._run, workspace=self.of(candidate))

    def close(self) -> None:
        """End what ``setup`` left running in any tree. The trees stay."""
        for candidate in sorted(self._set_up, key=lambda slot: slot or 0):
            tear_down(self._run.parts.hooks, loop=self._run.store.paths.directory, tree=self.of(candidate).name)
        self._set_up.clear()

    def discard(self) -> tuple[str, ...]:
        """Remove the trees that go with the end of a loop, those of earlier runs too; return the refs that keep their commits.

        These are the candidates'; beside a ``package.json`` also the loop's own copy or worktree, of which a person's own
        ``npm test`` would run the tests too. In place nothing is removed.
        """
        store, settings = self._run.store, self._run.settings
        own = self._made.get(None) if not settings.in_place and is_among_packages(store.paths.root) else None
        if settings.candidates == 1 and own is None:
            return ()
        self.close()
        self._made = {None: self._made[None]} if own is None and None in self._made else {}
        refs = discard_slots(store, settings) if settings.candidates > 1 else ()
        kept = None if own is None else own.discard()
        return refs if kept is None else (*refs, kept)
