"""What a learning run works with in every iteration: judged items, their split, how sets are made, who proposes."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, Protocol

from jumar.core.text import escape
from jumar.errors import ItemError
from jumar.judging.asking.summary import JudgeNoise, Result, judge_noise, mean_abs_difference
from jumar.judging.cheap.evaluator import RubricChoice
from jumar.judging.cheap.features import FeatureMemo
from jumar.judging.history import FEWEST_ITERATIONS
from jumar.judging.items.item import Item
from jumar.judging.models import ExpensiveModeResult
from jumar.judging.patterns.models import PatternProposal, PatternSet, PatternV2
from jumar.learning.proof.split import Round, Split, group_key
from jumar.learning.state import Checkpoint


@dataclass(frozen=True, slots=True)
class Target:
    """An item that the judge scored.

    ``score`` is the median of ``readings``, of which there is at least one, from 1 to 5. ``reasoning``, ``strengths`` and
    ``weaknesses`` are the judge's words: they may suggest what to look for in texts, and are never matched against.
    """

    item: Item
    score: float
    readings: tuple[float, ...]
    reasoning: str = ""
    strengths: tuple[str, ...] = field(default=())
    weaknesses: tuple[str, ...] = field(default=())

    @property
    def group(self) -> str | None:
        return self.item.group

    @property
    def length(self) -> int:
        """Length of the item's text in characters."""
        return len(self.item.text)

    @property
    def words(self) -> tuple[str, ...]:
        """All that the judge said, the reasoning first; empty texts are left out."""
        return tuple(text for text in (self.reasoning, *self.strengths, *self.weaknesses) if text.strip())

    @property
    def noise(self) -> float | None:
        """Mean absolute difference of two readings of this item, in points; None of a single reading, which tells nothing."""
        return mean_abs_difference(self.readings) if len(self.readings) > 1 else None


def target_of(item: Item, result: ExpensiveModeResult) -> Target:
    """Return an item with the judge's result of it."""
    readings = tuple(result.readings) or (result.gestalt,)
    return Target(
        item, statistics.median(readings), readings, result.reasoning, tuple(result.strengths), tuple(result.weaknesses)
    )


def targets_of(items: Sequence[Item], results: Iterable[Result]) -> list[Target]:
    """Return the items that the judge scored, in the items' order; the others are left out.

    Errors: :class:`jumar.errors.ItemError` for a result of an item that is not there.
    """
    known = {item.id for item in items}
    found: dict[str, ExpensiveModeResult] = {}
    for result in results:
        if result.story_id not in known:
            raise ItemError(f"the judge's result of {escape(result.story_id)} belongs to none of the items")
        if isinstance(result, ExpensiveModeResult):
            found[result.story_id] = result
    return [target_of(item, found[item.id]) for item in items if item.id in found]


def noise_of(targets: Iterable[Target]) -> JudgeNoise | None:
    """Return the judge's own repeat noise over targets; None where every item was read once."""
    return judge_noise(target.readings for target in targets)


@dataclass(frozen=True, slots=True, kw_only=True)
class GapItem:
    """A learn item with both judges' scores, from 1 to 5. ``noise`` is how far two readings of the judge differ, in points."""

    id: str
    text: str
    expensive: float
    cheap: float
    noise: float = 0.0
    strengths: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()
    reasoning: str = ""
    group: str | None = None

    @property
    def gap(self) -> float:
        """Expensive - cheap: above 0 where the cheap judge was too strict."""
        return self.expensive - self.cheap

    def is_large(self, threshold: float) -> bool:
        """Return whether the gap is over the threshold and over the judge's own noise."""
        return abs(self.gap) > max(threshold, self.noise)


def gap_items(targets: Iterable[Target], cheap: Mapping[str, float], *, noise: float = 0.0) -> list[GapItem]:
    """Return the targets that the cheap judge scored too, ``cheap`` by id, in their order.

    ``noise`` is the judge's noise over all items; of an item that was read several times its own counts where it is larger.
    """
    return [
        GapItem(
            id=target.item.id,
            text=target.item.text,
            expensive=target.score,
            cheap=cheap[target.item.id],
            noise=max(noise, target.noise or 0.0),
            strengths=target.strengths,
            weaknesses=target.weaknesses,
            reasoning=target.reasoning,
            group=target.group,
        )
        for target in targets
        if target.item.id in cheap
    ]


Profile = Literal["evidence", "seed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRequest:
    """What a proposer is asked: items with their gaps, what is known, and what was tried before (ids).

    ``fewest``: what stands in fewer items can decide nothing, 0 where it can.
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
    fewest: int = 0


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
    """What a run learns from: the open items that were judged, in their order, and how.

    It is the same in every iteration unless it is ``growing``, as in a loop. ``robust``: a set that a probe raises is no end.
    """

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
    robust: bool = False
    growing: bool = False

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

    @property
    def fits(self) -> bool:
        """Whether sets are fitted, so that the fit of what stands in the items is where learning begins."""
        return self.profile == "evidence"

    def inside(self, keys: frozenset[str]) -> list[Target]:
        """Return the targets of these groups, in their order."""
        return [target for target in self.targets if group_key(target.item) in keys]

    @cached_property
    def tested(self) -> tuple[Target, ...]:
        """The targets that test a set: each of them in exactly one round."""
        return tuple(self.inside(frozenset(key for round_ in self.rounds for key in round_.test)))
