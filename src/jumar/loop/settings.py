"""What one loop is told to do: plain frozen values, already checked, and the parts it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from jumar.loop.generators.memory import Memory
from jumar.loop.hooks import Hooks
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.model import SelectionCriteria, StopRules
from jumar.model.attempts import MOST_KILLED
from jumar.model.budget.pricing import Budget
from jumar.model.protocols import Generator, Scorer, Validator
from jumar.processes.check_files import CheckFile

ContinueFrom = Literal["previous", "best"]
Isolation = Literal["none", "copy", "worktree", "sandbox"]
IN_PLACE: Final = frozenset({"none", "sandbox"})
ApplyPolicy = Literal["auto", "never"]
RecheckMode = Literal["clean", "strict", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRules:
    """What a loop guards: ``protect`` in gitignore syntax, the files of its checks, and the configuration in use.

    ``kept`` are files that stay as they are when a run begins, ``ran`` those that no program of a step changes, each with what it
    is.
    ``absent`` are relative paths that must not appear: Python would take them for the module that a check runs. ``installed`` are
    the names of modules that are installed where the checks run. ``unasked`` says of some of ``absent`` what else they would do.
    """

    protect: tuple[str, ...] = ()
    files: tuple[CheckFile, ...] = ()
    kept: tuple[tuple[Path, str], ...] = ()
    ran: tuple[tuple[Path, str], ...] = ()
    at_base: frozenset[str] = frozenset()
    notices: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    unasked: Mapping[str, str] = field(default_factory=lambda: MappingProxyType(dict[str, str]()))
    installed: frozenset[str] = frozenset()

    def recorded(self) -> dict[str, dict[str, str]]:
        """Return the files of the checks as ``loop.json`` keeps them."""
        return {file.path: {"sha256": file.digest, "used_by": file.used_by} for file in self.files}


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often a step is made again before its failure counts, by kind.

    ``generator_failed`` and ``generator_timeout``: further runs for the same iteration; the failed ones are attempts and are
    paid, not iterations. ``rate_limited``: refusals in a row after which the loop stops. ``broken``: further evaluations of a
    snapshot whose checks or scorers could not answer. ``killed``: runs in a row that ended with jumar itself,
    after which they are held against the iteration; None where the steps are jumar's own.
    """

    generator_failed: int = 0
    generator_timeout: int = 0
    rate_limited: int = 20
    broken: int = 1
    killed: int | None = MOST_KILLED

    def killed_too_often(self, times: int) -> bool:
        """Return whether so many runs in a row that ended with jumar are held against the iteration."""
        return self.killed is not None and times >= self.killed


def achievable(criteria: SelectionCriteria, *, has_validators: bool) -> SelectionCriteria:
    """Return ``criteria`` without the wish for verification where nothing can verify: a gate that nothing can pass is none."""
    if has_validators:
        return criteria
    mode = "highest_quality" if criteria.mode == "highest_quality_verified" else criteria.mode
    return replace(criteria, mode=mode, require_verification=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """One loop, without its programs.

    ``workdir`` is the person's own directory; with ``isolation`` the loop works in a copy or git worktree of it. ``weights`` is
    empty when all dimensions count the same. ``environment`` are further patterns for the allow-list. ``recorded`` is the
    configuration as it is kept in ``loop.json``, as far as it differs from ``defaults``; a resume with another one is refused.
    ``guard`` is what decides
    about candidates. ``candidates`` iterations are made side by side from one parent, by ``workers`` threads.
    ``seed`` is what the steps' own seeds are made from.
    ``holdout_weights`` are those of the hold-out's dimensions, empty as ``weights``. ``notices`` are told when the run begins.
    ``recheck`` says whether the checks of what is selected run once more at the end.
    ``own`` are patterns of jumar's own files in the working directory.
    ``allow_broken_start``: go on although a check or scorer can say nothing of the start.
    """

    loop_id: str
    workdir: Path
    objective: str = ""
    continue_from: ContinueFrom = "best"
    isolation: Isolation = "none"
    apply: ApplyPolicy = "auto"
    artifacts: ArtifactRules = field(default_factory=ArtifactRules)
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    criteria: SelectionCriteria = field(default_factory=lambda: SelectionCriteria(threshold=None))
    stop: StopRules = field(default_factory=StopRules)
    environment: tuple[str, ...] = ()
    prompt_template: str | None = None
    completion_promise: str | None = None
    resume_session: bool = False
    recorded: Mapping[str, Any] = field(default_factory=dict[str, Any])
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    guard: GuardRules = field(default_factory=GuardRules)
    candidates: int = 1
    workers: int = 1
    seed: int = 0
    retries: Retries = field(default_factory=Retries)
    budget: Budget = field(default_factory=Budget)
    holdout_weights: Mapping[str, float] = field(default_factory=dict[str, float])
    notices: tuple[str, ...] = ()
    allow_broken_start: bool = False
    own: tuple[str, ...] = ()
    recheck: RecheckMode = "clean"

    @property
    def in_place(self) -> bool:
        """Whether the loop's own tree is the person's directory."""
        return self.isolation in IN_PLACE


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """The programs of one loop: what generates, verifies and scores, what finds earlier reflections, what is run around them.

    ``holdout`` are scorers that no iteration hears of: they confirm the choice at the end. ``generator_timeout`` is how many
    seconds a run of the generator may take, ``evaluation_timeout`` about how many an evaluation, None when nobody knows. With
    ``output_tells`` the generator's output says what it used, so that its usage file alone is not believed.
    """

    generator: Generator
    validators: tuple[Validator, ...] = ()
    scorers: tuple[Scorer, ...] = ()
    memory: Memory | None = None
    hooks: Hooks = field(default_factory=Hooks)
    holdout: tuple[Scorer, ...] = ()
    generator_timeout: float | None = None
    evaluation_timeout: float | None = None
    output_tells: bool = False
