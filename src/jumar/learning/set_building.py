"""From items, what the judge said of them and candidates to a set of patterns, with predictions that can be believed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

from jumar.judging.auto.intervals import fit_intervals
from jumar.judging.cheap.evaluator import CheapModeEvaluator, RubricChoice
from jumar.judging.cheap.offload import scores_of
from jumar.judging.items.item import Item
from jumar.judging.models import IterationMetrics, Unscored
from jumar.judging.patterns.models import PatternProposal, PatternSet, PatternStatus, PatternV2
from jumar.judging.patterns.proposed import GOOD_FROM, as_pattern
from jumar.judging.patterns.storage import update_calibration_history
from jumar.learning.material import BuiltSet, Material, Profile, Target
from jumar.learning.proof.probes import MOST_ITEMS, ProbeReport, cheat_of, probe_all
from jumar.learning.proposals.proposing import IterationProposals
from jumar.learning.state import Checkpoint, LearnState, Line


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveBuilder:
    """The first design's way: a rubric, and patterns that each add their weight. Nothing is fitted, and no extra is needed.

    Nor is anything guarded, so that what it makes is not robust, whatever it began with.
    """

    rubric: RubricChoice = None

    def build(
        self, targets: Sequence[Target], base: PatternSet, candidates: Sequence[PatternV2], *, learning_rate: float = 1.0
    ) -> BuiltSet:
        """Return ``base`` with the candidates, as active as they are.

        What is in ``base`` keeps its weight; what is new gets its own times ``learning_rate``: that is the change.
        """
        new = {candidate.id: candidate for candidate in candidates}
        kept = [
            pattern if (other := new.pop(pattern.id, None)) is None else other.model_copy(update={"weight": pattern.weight})
            for pattern in base.patterns
        ]
        added = [one.model_copy(update={"weight": one.weight * learning_rate}) for one in new.values()]
        patterns = base.model_copy(update={"patterns": [*kept, *added], "robust": False})
        return BuiltSet(patterns=patterns, predictions=cheap_scores(patterns, targets, self.rubric))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorecardBuilder:
    """Points fitted to what the judge said; needs the extra ``learn``. ``made`` is the date on new patterns.

    Words and pairs of words of the items are candidates beside those that are handed in. ``robust``: with the guard.
    """

    made: datetime
    rubric: Literal["story", "text"]
    seed: int = 0
    robust: bool = False

    def build(
        self, targets: Sequence[Target], base: PatternSet, candidates: Sequence[PatternV2], *, learning_rate: float = 1.0
    ) -> BuiltSet:
        """Return a fitted set; below a ``learning_rate`` of 1 its weights go only part of the way from those of ``base``.

        Errors: those of :func:`jumar.learning.scorecard.fit.fit_scorecard`.
        """
        from jumar.learning.scorecard.fit import fit_scorecard
        from jumar.learning.scorecard.pool import FitSettings

        found = fit_scorecard(
            [target.item for target in targets],
            [target.score for target in targets],
            groups=[target.group for target in targets],
            made=self.made,
            proposals=candidates,
            previous=base if base.calibration is not None and learning_rate < 1.0 else None,
            learning_rate=learning_rate,
            seed=self.seed,
            rubric=self.rubric,
            settings=FitSettings(guard=self.robust),
        )
        predictions = dict(zip((target.item.id for target in targets), found.predictions, strict=True))
        return BuiltSet(patterns=found.patterns, predictions=predictions, report=found.report.to_json())


def cheap_scores(patterns: PatternSet, targets: Sequence[Target], rubric: RubricChoice) -> dict[str, float]:
    """Return the scores of a set as it is, by the id of the item; items that the rubric abstains from are left out."""
    if not targets:
        return {}
    evaluator = CheapModeEvaluator(patterns, rubric=rubric)
    found = ((target.item.id, evaluator.read(target.item)) for target in targets)
    return {name: reading.gestalt for name, reading in found if not isinstance(reading, Unscored)}


def build_with_proposals(
    checkpoint: Checkpoint, proposed: IterationProposals, material: Material, iteration: int
) -> tuple[Checkpoint, Mapping[str, Any]]:
    """Return what is known once the proposals were tried, and how the set was made."""
    lines = tuple(_extended(line, new, checkpoint, material) for line, new in zip(checkpoint.lines, proposed.lines, strict=True))
    state = replace(checkpoint.state, iteration=iteration, proposals=(*checkpoint.state.proposals, *proposed.own))
    if material.profile == "seed":
        state = replace(state, proposals=_by_counters(state.proposals, state))
    ledger = checkpoint.ledger.added(proposed.entries)
    return rebuild_sets(replace(checkpoint, state=state, ledger=ledger, lines=lines), material)


def _extended(line: Line, new: Sequence[PatternProposal], checkpoint: Checkpoint, material: Material) -> Line:
    decided = _by_counters(new, checkpoint.state) if material.profile == "seed" else new
    made = (_candidate(one, material.profile).model_copy(update={"learned_iter": one.proposed_at}) for one in decided)
    return replace(
        line,
        candidates=(*line.candidates, *(one for one in made if one.status != "rejected")),
        tried=(*line.tried, *(as_pattern(one).id for one in new)),
    )


def _by_counters(proposals: Sequence[PatternProposal], state: LearnState) -> tuple[PatternProposal, ...]:
    return tuple(state.parameters.validation.decide(proposal) for proposal in proposals)


def _candidate(proposal: PatternProposal, profile: Profile) -> PatternV2:
    """Return the pattern of a proposal. Fitting decides about all; the first design adds up those that were validated."""
    statuses: dict[str, PatternStatus] = {"validated": "active", "provisional": "provisional", "rejected": "rejected"}
    return as_pattern(proposal, status="active" if profile == "evidence" else statuses[proposal.status])


def rebuild_sets(
    checkpoint: Checkpoint, material: Material, *, without: Collection[str] = ()
) -> tuple[Checkpoint, Mapping[str, Any]]:
    """Return what is known once every set was made anew, of candidates that are not in ``without``; and how it was made."""
    rate = checkpoint.state.parameters.learning_rate
    lines: list[Line] = []
    tested: dict[str, float] = {}
    report: Mapping[str, Any] = {}
    patterns, own = checkpoint.state.patterns, checkpoint.own
    for each, line in zip(material.rounds, checkpoint.lines, strict=True):
        candidates = [candidate for candidate in line.candidates if candidate.id not in without]
        made = material.builder.build(material.inside(each.learn), line.patterns, candidates, learning_rate=rate)
        tested |= cheap_scores(made.patterns, material.inside(each.test), material.rubric)
        known_ids = {pattern.id for pattern in made.patterns.patterns}
        kept = tuple(candidate for candidate in candidates if candidate.id in known_ids)
        lines.append(replace(line, patterns=made.patterns, candidates=kept, predictions=made.predictions))
        patterns, own, report = made.patterns, made.predictions, made.report
    if material.split.cross_fitted:
        candidates = [one for one in _own_candidates(checkpoint.state, material.profile) if one.id not in without]
        made = material.builder.build(material.targets, checkpoint.state.patterns, candidates, learning_rate=rate)
        patterns, own, report = made.patterns, made.predictions, made.report
    patterns = _dated(patterns, checkpoint.state.iteration, material)
    state = replace(checkpoint.state, patterns=patterns, proposals=_decided(checkpoint.state, patterns, material))
    return replace(checkpoint, state=state, lines=tuple(lines), own=own, tested=tested), report


def _dated(patterns: PatternSet, iteration: int, material: Material) -> PatternSet:
    return patterns.model_copy(update={"last_updated": material.made, "iteration_learned": iteration})


def _own_candidates(state: LearnState, profile: Profile) -> list[PatternV2]:
    return [
        _candidate(proposal, profile)
        for proposal in state.proposals
        if proposal.status != "rejected" and proposal.provenance.get("by") != MINED
    ]


MINED: Final = "fit"
"""Where phrases are from that nobody proposed: the fit found them in the items."""


def _decided(state: LearnState, patterns: PatternSet, material: Material) -> tuple[PatternProposal, ...]:
    """Return the proposals with their status: under ``evidence`` what got points is in the set, and what got none is out of it.

    What the fit found by itself in the items is a proposal like any other, so that it is told, and tested on the held-out items.
    """
    if not material.fits:
        return state.proposals
    live = {pattern.id: pattern for pattern in patterns.patterns if pattern.status == "active" and pattern.weight > 0}
    decided: list[PatternProposal] = []
    for proposal in state.proposals:
        own = live.pop(as_pattern(proposal).id, None)
        changes: dict[str, Any] = {"status": "rejected" if own is None else "validated"}
        if own is not None and proposal.provenance.get("by") == MINED:
            changes["pattern"] = own.model_dump(mode="json")  # it claims nothing: the fit may have turned its sign
        decided.append(proposal.model_copy(update=changes))
    return (*decided, *(_mined(pattern, state.iteration) for pattern in live.values() if pattern.feature is None))


def _mined(pattern: PatternV2, iteration: int) -> PatternProposal:
    return PatternProposal(
        pattern=pattern.model_dump(mode="json"),
        proposed_at=iteration,
        status="validated",
        category=pattern.category,
        rationale="it stands in the items, and the fit gave it points",
        provenance={"by": MINED},
    )


_FEW_PROBED: Final = 48
"""Items of a set that was not made to withstand: enough to say what an attack gains, for a fifth of a run's time at most."""


def probe_set(patterns: PatternSet, items: Sequence[Item], rubric: RubricChoice, *, seed: int = 0) -> ProbeReport:
    """Return what the probes against gaming do to a set's scores of real items."""

    def scores(asked: Sequence[Item]) -> list[float | None]:
        return scores_of(asked, patterns, rubric)

    return probe_all(items, scores, cheat_of(patterns), seed=seed, most=MOST_ITEMS if patterns.is_robust else _FEW_PROBED)


def final_set(checkpoint: Checkpoint, material: Material) -> PatternSet:
    """Return the set of what is known, made of all open items, as boldly as the last one: what is learned in the end.

    Where groups are cross-fitted, a fitted set was made of all of them already. Where it is calibrated, it carries the intervals
    for mode ``auto``: of the errors of the test items, each by a set that saw neither it nor a proposal that came from it.
    """
    made = checkpoint.state.patterns
    if not (material.fits and material.split.cross_fitted):
        candidates = _own_candidates(checkpoint.state, material.profile)
        rate = checkpoint.state.parameters.learning_rate
        made = material.builder.build(material.targets, made, candidates, learning_rate=rate).patterns
        made = _dated(made, checkpoint.state.iteration, material)
    patterns = count_firing(made, material).model_copy(
        update={"calibration_history": checkpoint.state.patterns.calibration_history}
    )
    tested = [one for one in material.tested if one.item.id in checkpoint.tested]
    if patterns.calibration is None or not tested:
        return patterns
    intervals = fit_intervals(
        [checkpoint.tested[one.item.id] for one in tested], [one.score for one in tested], [one.group for one in tested]
    )
    return patterns.model_copy(update={"calibration": {**patterns.calibration, "interval": intervals.model_dump(mode="json")}})


def count_firing(patterns: PatternSet, material: Material) -> PatternSet:
    """Return the set with ``times_fired`` and ``accuracy`` of each pattern that can fire, over the test items.

    The accuracy is that of proposals: the share of the items on which firing and the judge agree, which finds an item good from
    4.0 on. It says as little about one phrase as it does there, and decides nothing. Patterns that are rejected or pruned keep
    what they had; so do all where there is nothing to count on.
    """
    evaluator = CheapModeEvaluator(patterns, rubric=material.rubric)
    if evaluator.evidence is None:
        return patterns
    size = len(evaluator.evidence.ids)
    fired, fired_good = [0] * size, [0] * size
    items = good = 0
    for one in material.tested:
        reading = evaluator.read(one.item)
        if isinstance(reading, Unscored):
            continue
        found_good = one.score >= GOOD_FROM
        items += 1
        good += found_good
        for place in reading.fired:
            fired[place] += 1
            fired_good[place] += found_good
    if not items:
        return patterns
    places = {id(one): place for place, one in enumerate(evaluator.evidence.live)}
    made = list(patterns.patterns)
    for number, one in enumerate(made):
        place = places.get(id(one))
        if place is None:
            continue
        # as a good pattern: fired on good ones, and did not on the others
        right = fired_good[place] + (items - good) - (fired[place] - fired_good[place])
        accuracy = (right if one.type == "good" else items - right) / items
        made[number] = one.model_copy(update={"times_fired": fired[place], "accuracy": accuracy})
    return patterns.model_copy(update={"patterns": made})


def add_metrics(patterns: PatternSet, history: Sequence[Mapping[str, Any]], metrics: IterationMetrics) -> PatternSet:
    """Return the set with an iteration's metrics at the end of ``history``, its date and its items apart."""
    entry = metrics.model_dump(mode="json", exclude={"timestamp", "story_ids"})
    return patterns.model_copy(update={"calibration_history": update_calibration_history(history, entry)})
