"""What a learning run works with in every iteration: judged items, their split, how sets are made, who proposes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, Protocol

from jumar.judging.cheap.evaluator import RubricChoice
from jumar.judging.cheap.features import FeatureMemo
from jumar.judging.history import FEWEST_ITERATIONS
from jumar.judging.patterns.models import PatternProposal, PatternSet, PatternV2
from jumar.learning.proof.split import Round, Split, group_key
from jumar.learning.state import Checkpoint
from jumar.learning.targets import GapItem, Target, noise_of

Profile = Literal["evidence", "seed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRequest:
    """What a proposer is asked: items with their gaps, what is known, and what was tried before (ids).

    ``whole``: the proposals are for the set that is kept, and not only for a line that says what such a set is worth.
    """

    items: Sequence[GapItem]
    known: PatternSet
    tried: frozenset[str]
    iteration: int
    diversity: int
    threshold: float
    seed: int
    at: datetime
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalReply:
    """What a proposer gave: proposals, what there is to tell, and what a model was paid (None: it did not say)."""

    proposals: tuple[PatternProposal, ...]
    told: tuple[str, ...] = ()
    cost_usd: float | None = 0.0


class Proposer(Protocol):
    """Proposes patterns for large gaps, from the items that it is given and nothing else."""

    def __call__(self, asked: ProposalRequest) -> ProposalReply: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltSet:
    """A set, and a prediction of each item that it was made from, by its id: out of fold where something was fitted.

    ``report`` says how it was fitted, empty where nothing was.
    """

    patterns: PatternSet
    predictions: Mapping[str, float]
    report: Mapping[str, Any] = field(default_factory=dict[str, Any])


class SetBuilder(Protocol):
    """Makes a set from ``targets``. ``base`` is the set so far; ``candidates`` have to earn their weight."""

    def build(
        self, targets: Sequence[Target], base: PatternSet, candidates: Sequence[PatternV2], *, learning_rate: float = 1.0
    ) -> BuiltSet: ...


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a run learns from, the same in every iteration: the open items that were judged, in their order, and how."""

    targets: tuple[Target, ...]
    split: Split
    builder: SetBuilder
    proposer: Proposer
    made: datetime
    rubric: RubricChoice = None
    profile: Profile = "evidence"
    seed: int = 0
    threshold: float = 0.5
    min_iterations: int = FEWEST_ITERATIONS

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        return self.split.rounds()

    @cached_property
    def features(self) -> FeatureMemo:
        """What is counted of the items; an iteration that uses it counts nothing twice."""
        return FeatureMemo()

    @cached_property
    def begun(self) -> dict[str, Checkpoint]:
        """What is known of a set before anything is learned, by the hash of the set: it is asked for several times."""
        return {}

    @cached_property
    def noise(self) -> float:
        """The judge's own noise, in points; 0 where every item was read once."""
        found = noise_of(self.targets)
        return 0.0 if found is None else found.mean_abs_difference

    def inside(self, keys: frozenset[str]) -> list[Target]:
        """Return the targets of these groups, in their order."""
        return [target for target in self.targets if group_key(target.item) in keys]

    @cached_property
    def tested(self) -> tuple[Target, ...]:
        """The targets that test a set: each of them in exactly one round."""
        return tuple(self.inside(frozenset(key for round_ in self.rounds for key in round_.test)))
