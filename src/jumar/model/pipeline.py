"""What a chain of cases is made of: roles (files of an iteration) and steps (programs that read and write them)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from jumar.core.codec import Fields, is_finite
from jumar.core.record import Record, nothing, stored
from jumar.errors import ConfigError
from jumar.model.budget.pricing import Budget
from jumar.model.records import Usage

GIVEN: Final[tuple[str, ...]] = ("report", "prompt")
"""What a step may read beside the roles: the expert's report and the agent's query of its case."""

DEFAULT_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "accuracy": "dimensions[?name=='Root Cause Accuracy'].score | [0]",
        "overall": "composite_score",
        "chain": "dimensions[?name=='Causal Chain Completeness'].score | [0]",
    }
)
"""Where the judge's file has the seed's three scores, as JMESPath expressions."""

DEFAULT_ORDER: Final[tuple[str, ...]] = ("accuracy", "overall", "chain")

DEFAULT_DIFF: Final[tuple[str, ...]] = ("length(added_entities)", "length(added_relations)")
"""The size of an augmentation: entities and relations that it added, as JMESPath expressions whose sum it is."""

DEFAULT_MAX_ITERS: Final = 5
"""Iterations of a case, at most."""

DEFAULT_FAILURES: Final = 3
"""Iterations in a row without a usable score after which a case ends."""

DEFAULT_MAX_FILE_MB: Final = 1_000
"""Millions of bytes that a file which a step writes may have."""

DEFAULT_TIMEOUT: Final = 1800.0
"""Seconds that a step may take."""

ContinueFrom = Literal["previous", "best"]
"""What the next iteration of a case builds on."""

Word = str | tuple[str, ...]
"""A word of an argv, or a group of words that is left out when an optional input in it is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role(Record):
    """A file of each iteration.

    ``file`` is its name there, with ``{iter}`` and ``{case}`` for ``iter_0001`` and ``case_01``; ``best`` its name in the best
    bundle. ``carry`` hands it to the next case; ``snapshot`` is then its name below ``inputs/``, and ``empty`` its content
    when there is nothing yet (None: the role is missing then).
    """

    name: str
    folder: str
    file: str
    best: str
    carry: bool = False
    snapshot: str = ""
    empty: str | None = None

    def file_name(self, case: int, iteration: int) -> str:
        """Return the file's name in an iteration: ``candidate_ckg_iter_0001_case_02.json``."""
        return self.file.replace("{iter}", f"iter_{iteration:04d}").replace("{case}", f"case_{case:02d}")

    def path(self, case: int, iteration: int) -> str:
        """Return the file's path in an iteration's directory."""
        return f"{self.folder}/{self.file_name(case, iteration)}"

    def snapshot_name(self, case: int | None) -> str:
        """Return the name below ``inputs/``: of what the run starts from (None), or of what was carried into ``case``."""
        if case is None:
            return self.snapshot
        stem, dot, suffix = self.snapshot.rpartition(".")
        return f"{stem}_case_{case:02d}.{suffix}" if dot else f"{self.snapshot}_case_{case:02d}"


def _role(name: str, folder: str, stem: str, suffix: str, best: str, **carried: Any) -> Role:
    return Role(name=name, folder=folder, file=f"{stem}_{{iter}}_{{case}}.{suffix}", best=f"{best}.{suffix}", **carried)


DEFAULT_ROLES: Final[Mapping[str, Role]] = MappingProxyType(
    {
        role.name: role
        for role in (
            _role(
                *("ckg", "ckg", "candidate_ckg", "json", "best_ckg"),
                carry=True,
                snapshot="base_ckg_snapshot.json",
                empty='{"entities": [], "relations": [], "metadata": {}}\n',
            ),
            _role("ckg_diff", "ckg", "augmentation_diff", "json", "best_augmentation_diff"),
            _role(*("fix_db", "fix", "fixes", "db", "best_fixdb"), carry=True, snapshot="base_fix_db_snapshot.db", empty=""),
            _role("fix_db_diff", "fix", "fix_db_diff", "json", "best_fixdb_diff"),
            _role("agent_report", "agent", "agent_report", "md", "best_agent_report"),
            _role("judge", "judge", "judge_result", "json", "best_judge"),
            _role("feedback", "feedback", "feedback", "json", "best_feedback"),
        )
    }
)
"""Seed 3's seven roles, with its names of folders and files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale(Record):
    """What a key's scores may be, both ends included; None where an end is open. Errors: :class:`jumar.errors.ConfigError`."""

    min: float | None = None
    max: float | None = None

    def __post_init__(self) -> None:
        ends = [end for end in (self.min, self.max) if end is not None]
        if not ends or not all(map(is_finite, ends)) or ends != sorted(set(ends)):
            raise ConfigError(f"a scale from {self.min} to {self.max}: give min, max or both, as finite numbers, min below max")

    def __contains__(self, score: float) -> bool:
        return (self.min is None or score >= self.min) and (self.max is None or score <= self.max)

    def __str__(self) -> str:
        if self.min is None or self.max is None:
            return f"at most {self.max:g}" if self.min is None else f"at least {self.min:g}"
        return f"{self.min:g} to {self.max:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStepContext:
    """What a step of a case gets. ``inputs`` are copies that it may do with as it likes; ``outputs`` it must write.

    ``inputs`` has ``report`` and ``prompt`` beside the roles, each only where the step asks for it; an optional input that
    does not exist is not there. ``nonce`` marks the step's processes.
    """

    run_id: str
    case_id: str
    case_num: int
    iteration: int
    workdir: Path
    inputs: Mapping[str, Path]
    outputs: Mapping[str, Path]
    usage_file: Path
    log: Path
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType(dict[str, str]()))
    nonce: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """How a step ended. ``failure`` is None for success, else a sentence."""

    seconds: float
    exit_code: int | None = None
    failure: str | None = None
    timed_out: bool = False
    interrupted: bool = False
    output_tail: str = ""
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One program of the pipeline: exactly one of ``command``, ``python``, ``builtin`` and ``call`` is set.

    ``command`` is a string for the shell or an argv; ``python`` is ``module:function``, called in a child process with a
    :class:`CaseStepContext`; ``call`` is a Python callable in this process. ``inputs`` are names of roles, ``report`` or
    ``prompt``; one that ends in ``?`` may be missing. ``outputs`` are the roles that it must write. ``timeout`` is in seconds;
    a ``call`` cannot be timed out. ``files`` are patterns of what must stay as it is, beside or in the place of what the judge's
    command names (None: only that).
    """

    name: str
    command: str | tuple[Word, ...] | None = None
    python: str | None = None
    builtin: str | None = None
    call: Callable[[CaseStepContext], object] | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    files: tuple[str, ...] | None = None
    timeout: float | None = DEFAULT_TIMEOUT


def _listed(roles: Mapping[str, Role]) -> list[dict[str, Any]]:
    return [role.to_json() for role in roles.values()]


def _by_name(fields: Fields, key: str) -> Mapping[str, Role]:
    roles = (Role.from_json(item) for item in fields.sections(key))
    return MappingProxyType({role.name: role for role in roles})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan(Record):
    """What a reader of a run has to know of its configuration: how it ranks, where scores and files are.

    ``order`` and ``tie_breaks`` are as they are typed (``-cost`` where less is better); ``scales`` are those of the judge's
    scores. ``max_iters``, ``max_seconds`` and ``max_file_bytes`` are the limits that the run was started with, None when unknown;
    a resume may have raised them.
    """

    order: tuple[str, ...] = DEFAULT_ORDER
    tie_breaks: tuple[str, ...] = ("earlier_iter",)
    keys: Mapping[str, str] = field(default_factory=lambda: DEFAULT_KEYS)
    diff: tuple[str, ...] = DEFAULT_DIFF
    roles: Mapping[str, Role] = field(default_factory=lambda: DEFAULT_ROLES, metadata=stored(write=_listed, read=_by_name))
    scales: Mapping[str, Scale] = field(default_factory=nothing)
    budget: Budget | None = field(default=None, metadata=stored(omit=True))
    max_iters: int | None = None
    max_seconds: float | None = None
    max_file_bytes: int | None = None
