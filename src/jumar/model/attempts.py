"""Attempts: every paid step leaves a reservation before it begins and an outcome after it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from jumar.core.record import FileRecord, Record, stored
from jumar.model.records import FailureKind, Usage

Outcome = Literal["ok", "failed", "timeout", "rate_limited", "blocked", "broken", "interrupted", "lost"]
OUTCOMES: Final[tuple[str, ...]] = get_args(Outcome)

LEFT_NOTHING: Final[frozenset[Outcome]] = frozenset({"interrupted", "lost", "rate_limited"})
"""How a run of the generator ends that is no iteration: nothing is recorded of it, and the iteration is made again."""

MOST_KILLED: Final = 5
"""So many runs of one iteration's generator in a row, or evaluations of one snapshot, may end with jumar killed, and no more."""

Purpose = Literal["generate", "score", "confirm"]
"""What is paid for: a run of the generator, an evaluation of one snapshot, or one that confirms the choice at the end."""

PURPOSES: Final[tuple[str, ...]] = get_args(Purpose)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStart(FileRecord):
    """Durable before the step is paid for. ``nonce`` ties attempt, pending snapshot and iteration together.

    ``reserve_cost_usd`` and ``reserve_tokens`` are what was set aside for it, None when nothing was known: a lost attempt is
    charged that. ``batch`` and ``candidate`` (from 1) are those of a parallel candidate.
    """

    number: int
    iteration: int
    parent: int | None
    nonce: str
    started_at: str
    purpose: Purpose = "generate"
    pid: int = 0
    batch: int | None = None
    candidate: int | None = None
    reserve_cost_usd: float | None = None
    reserve_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd(FileRecord):
    """How the step ended. ``lost`` was written later by somebody else: the process died and nothing is known.

    ``seconds`` is monotonic time; of a lost attempt it is the time up to its last heartbeat, None when there was none. ``notes``
    say what of its usage report was not usable. ``known_cost_usd`` is what is known of a cost that is not known whole (a judge
    of which one call did not say). ``wait_seconds`` is how long a rate-limited one was told to wait, None when it was not told.
    ``printed`` is whether it printed anything (None: nobody looked). ``failure`` is what went wrong, by kind. ``answers`` are
    what checks and scorers said in an evaluation that came to its end: they were paid for. ``tree`` is a digest of the working
    directory as a generator left it, None where it could not be read. ``said`` is a summary of what it printed, None where
    nobody was asked for one.
    """

    outcome: Outcome
    seconds: float | None
    ended_at: str
    exit_code: int | None = None
    detail: str = ""
    output_tail: str = ""
    usage: Usage = field(default_factory=Usage)
    commits: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    known_cost_usd: float | None = None
    wait_seconds: float | None = None
    printed: bool | None = None
    failure: FailureKind | None = None
    answers: Mapping[str, Any] | None = field(default=None, hash=False, metadata=stored(omit=True))
    tree: str | None = field(default=None, metadata=stored(omit=True))
    said: tuple[str, ...] | None = field(default=None, metadata=stored(omit=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A start with its end; ``end`` is None while it runs, or when its process died and nobody noticed yet."""

    start: AttemptStart
    end: AttemptEnd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend(Record):
    """What a loop used over all its resumes.

    ``iterations`` counts the runs of the generator that began. ``tokens`` and ``cost_usd`` are None when an attempt that ended
    did not say. ``known_…`` are the sums of what is known, ``assumed_…`` what lost and silent attempts are charged by their
    reservation; ``unknown_…`` count the attempts that ended without saying, ``uncharged_…`` those of them, and of the lost ones,
    that could be charged nothing in its place. Limits are compared with ``charged_…``. ``calls`` counts the attempts of every
    purpose that began.
    """

    iterations: int = 0
    seconds: float = 0.0
    tokens: int | None = 0
    cost_usd: float | None = 0.0
    known_tokens: int = 0
    assumed_tokens: int = 0
    known_cost_usd: float = 0.0
    assumed_cost_usd: float = 0.0
    unknown_costs: int = 0
    unknown_tokens: int = 0
    uncharged_costs: int = 0
    uncharged_tokens: int = 0
    calls: int = 0

    @property
    def charged_cost_usd(self) -> float:
        """Dollars that count against a limit: known and assumed."""
        return self.known_cost_usd + self.assumed_cost_usd

    @property
    def charged_tokens(self) -> int:
        """Tokens that count against a limit: known and assumed."""
        return self.known_tokens + self.assumed_tokens
