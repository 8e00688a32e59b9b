"""The proposals of one iteration, along every line, and the tests that they go through. Pure but for the proposer.

Learning goes along several *lines* at once. A line is a round of the split: proposals are made from its learn items, a set is
made of them there, and its test items say what the set is worth. Where groups are cross-fitted there is a line for each fold,
and one more without a test, of all open items: its set is the one that is kept. So the figures of an iteration are those of the
whole way from items to set, on items that this way never saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jumar.judging.patterns.matcher import literals
from jumar.judging.patterns.merging import Merge, merge_proposals
from jumar.judging.patterns.models import PatternProposal, PatternV2
from jumar.judging.patterns.proposed import as_pattern, validate_provisional_patterns
from jumar.learning.material import Material, ProposalRequest, Target, gap_items
from jumar.learning.proof.support import ledger_entries, support_of
from jumar.learning.state import Checkpoint, LedgerEntry, Line


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationProposals:
    """The proposals of one iteration: of each line, and of the set itself, with the tests that they went through.

    ``merges`` are those for the set that said nothing new, and why.
    """

    lines: tuple[tuple[PatternProposal, ...], ...]
    own: tuple[PatternProposal, ...]
    entries: tuple[LedgerEntry, ...]
    merges: tuple[Merge, ...]
    told: tuple[str, ...]
    cost_usd: float | None


def propose_all(checkpoint: Checkpoint, material: Material, iteration: int) -> IterationProposals:
    """Ask for proposals along each line, and test them on its test items. A set that was given is proposed first, to all.

    Where sets are fitted nobody else is asked in the first iteration: a gap is worth a proposal once it is what a fit has left.
    """
    asking = _Asking(checkpoint, material, iteration)
    given = given_proposals(checkpoint, iteration)
    lines: list[tuple[PatternProposal, ...]] = []
    entries: list[LedgerEntry] = []
    for number, (each, line) in enumerate(zip(material.rounds, checkpoint.lines, strict=True)):
        made = (*given, *asking.about(material.inside(each.learn), line, number))
        tested = material.inside(each.test)
        entries += tests_of([as_pattern(one) for one in made], tested, iteration)
        lines.append(count_agreement(made, tested))
    own, merges = lines[0], asking.merges
    if material.split.cross_fitted:
        whole = Line(patterns=checkpoint.state.patterns, predictions=checkpoint.own, tried=checkpoint.tried)
        asking.merges = []
        asked = asking.about(material.targets, whole, len(lines), earlier=checkpoint.state.proposals)
        own, merges = sum_counts((*given, *asked), [one for line in lines for one in line]), asking.merges
    return IterationProposals(
        lines=tuple(lines),
        own=own,
        merges=tuple(merges),
        entries=tuple(entries),
        told=tuple(dict.fromkeys(asking.told)),
        cost_usd=None if asking.unknown else asking.cost,
    )


class _Asking:
    """Asks the proposer, and adds up what it says."""

    def __init__(self, checkpoint: Checkpoint, material: Material, iteration: int) -> None:
        self._known, self._material, self._iteration = checkpoint, material, iteration
        self.told: list[str] = []
        self.merges: list[Merge] = []
        self.cost = 0.0
        self.unknown = False

    def about(
        self, targets: Sequence[Target], line: Line, number: int, *, earlier: Sequence[PatternProposal] = ()
    ) -> tuple[PatternProposal, ...]:
        """Return what is new of the proposals for ``targets``; ``earlier`` ones are not tried again, nor what says the same."""
        material = self._material
        if material.fits and not self._known.state.iteration:
            return ()
        found = material.proposer(
            ProposalRequest(
                items=gap_items(targets, line.predictions, noise=material.noise),
                known=line.patterns,
                tried=frozenset(line.tried) | self._weighed(targets),
                iteration=self._iteration,
                diversity=self._known.state.parameters.diversity,
                threshold=material.threshold,
                seed=material.seed + 1009 * self._iteration + number,
                at=material.made,
                fewest=self._fewest,
                whole=number == len(material.rounds) or not material.split.cross_fitted,
            )
        )
        self.told += found.told
        self.unknown = self.unknown or found.cost_usd is None
        self.cost += found.cost_usd or 0.0
        there = [*line.patterns.patterns, *line.candidates, *map(as_pattern, earlier)]
        missed = [target.score - line.predictions.get(target.item.id, target.score) for target in targets]
        merged = merge_proposals(found.proposals, there, [target.item.text for target in targets], scores=missed)
        self.merges += merged.merges
        return merged.kept

    @property
    def _fewest(self) -> int:
        if not self._material.fits:
            return 0
        from jumar.learning.scorecard.pool import FitSettings

        return FitSettings().least_items

    def _weighed(self, targets: Sequence[Target]) -> frozenset[str]:
        """Return what every fit to ``targets`` weighs without being asked to, of either sign."""
        if not self._material.fits:
            return frozenset()
        from jumar.learning.scorecard.pool import mined_keys

        return mined_keys([target.item for target in targets])


def given_proposals(checkpoint: Checkpoint, iteration: int) -> tuple[PatternProposal, ...]:
    """Return what a set that was given says, as proposals of the first iteration: it has to earn its place, too."""
    if checkpoint.state.proposals or checkpoint.state.iteration:
        return ()
    return tuple(
        PatternProposal(
            pattern=pattern.model_dump(mode="json"),
            proposed_at=iteration,
            category=pattern.category,
            rationale="it was in the set to begin with",
            provenance={"by": "given", "source": pattern.source},
        )
        for pattern in checkpoint.state.patterns.patterns
        if pattern.status in {"active", "provisional"} and (literals(pattern) or pattern.regex is not None)
    )


def tests_of(patterns: Sequence[PatternV2], tested: Sequence[Target], iteration: int) -> list[LedgerEntry]:
    """Return the ledger's entries of patterns that were not proposed from ``tested``."""
    if not patterns or not tested:
        return []
    return ledger_entries([pattern.id for pattern in patterns], support_of(patterns, tested), iteration)


def count_agreement(proposals: Sequence[PatternProposal], tested: Sequence[Target]) -> tuple[PatternProposal, ...]:
    """Return proposals with the first design's counters over ``tested``; their status is left to the profile."""
    results = [{"story_id": one.item.id, "gestalt": one.score} for one in tested]
    found = validate_provisional_patterns(proposals, [one.item for one in tested], results)
    return tuple(one.model_copy(update={"status": "provisional"}) for one in found)


def sum_counts(own: Sequence[PatternProposal], tried: Sequence[PatternProposal]) -> tuple[PatternProposal, ...]:
    """Return ``own`` with the sums of the counters of the same proposals on the lines, each on other items."""
    sums: dict[str, tuple[int, int]] = {}
    for one in tried:
        name = as_pattern(one).id
        tested, correct = sums.get(name, (0, 0))
        sums[name] = (tested + one.stories_tested, correct + one.correct_predictions)
    made: list[PatternProposal] = []
    for one in own:
        tested, correct = sums.get(as_pattern(one).id, (0, 0))
        made.append(one.model_copy(update={"stories_tested": tested, "correct_predictions": correct}))
    return tuple(made)
