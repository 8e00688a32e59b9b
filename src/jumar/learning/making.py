"""From proposals to sets: along every line, and the one that is kept. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jumar.judging.auto import fit_intervals
from jumar.judging.cheap.evaluator import CheapModeEvaluator, RubricChoice
from jumar.judging.items.item import Item
from jumar.judging.models import Unscored
from jumar.judging.patterns.models import PatternProposal, PatternSet, PatternStatus, PatternV2
from jumar.judging.patterns.proposed import as_pattern
from jumar.learning.counting import counted
from jumar.learning.known import Known, Line
from jumar.learning.makers import cheap_scores
from jumar.learning.material import Material, Profile
from jumar.learning.proof.probes import ProbeReport, cheat_of, probe
from jumar.learning.proposals.proposing import Proposed
from jumar.learning.state import LearnState

__all__ = ["final_set", "probe_set", "remade", "with_proposals"]


def with_proposals(known: Known, proposed: Proposed, material: Material, iteration: int) -> tuple[Known, Mapping[str, Any]]:
    """Return what is known once the proposals were tried, and how the set was made."""
    lines = tuple(_extended(line, new, known, material) for line, new in zip(known.lines, proposed.lines, strict=True))
    state = replace(known.state, iteration=iteration, proposals=(*known.state.proposals, *proposed.own))
    if material.profile == "seed":
        state = replace(state, proposals=_by_counters(state.proposals, state))
    ledger = known.ledger.added(proposed.entries)
    return remade(replace(known, state=state, ledger=ledger, lines=lines), material)


def _extended(line: Line, new: Sequence[PatternProposal], known: Known, material: Material) -> Line:
    decided = _by_counters(new, known.state) if material.profile == "seed" else new
    made = (_candidate(one, material.profile).model_copy(update={"learned_iter": one.proposed_at}) for one in decided)
    return replace(
        line,
        candidates=(*line.candidates, *(one for one in made if one.status != "rejected")),
        tried=(*line.tried, *(as_pattern(one).id for one in new)),
    )


def _by_counters(proposals: Sequence[PatternProposal], state: LearnState) -> tuple[PatternProposal, ...]:
    return tuple(state.parameters.validation.decide(one) for one in proposals)


def _candidate(proposal: PatternProposal, profile: Profile) -> PatternV2:
    """Return the pattern of a proposal. Fitting decides about all; the first design adds up those that were validated."""
    statuses: dict[str, PatternStatus] = {"validated": "active", "provisional": "provisional", "rejected": "rejected"}
    return as_pattern(proposal, status="active" if profile == "evidence" else statuses[proposal.status])


def remade(known: Known, material: Material, *, without: Collection[str] = ()) -> tuple[Known, Mapping[str, Any]]:
    """Return what is known once every set was made anew, of candidates that are not in ``without``; and how it was made."""
    rate = known.state.parameters.learning_rate
    lines: list[Line] = []
    tested: dict[str, float] = {}
    report: Mapping[str, Any] = {}
    patterns, own = known.state.patterns, known.own
    for each, line in zip(material.rounds, known.lines, strict=True):
        candidates = [one for one in line.candidates if one.id not in without]
        made = material.maker.make(material.inside(each.learn), line.patterns, candidates, learning_rate=rate)
        tested |= cheap_scores(made.patterns, material.inside(each.test), material.rubric)
        known_ids = {one.id for one in made.patterns.patterns}
        kept = tuple(one for one in candidates if one.id in known_ids)
        lines.append(replace(line, patterns=made.patterns, candidates=kept, predictions=made.predictions))
        patterns, own, report = made.patterns, made.predictions, made.report
    if material.split.cross_fitted:
        candidates = [one for one in _own_candidates(known.state, material.profile) if one.id not in without]
        made = material.maker.make(material.targets, known.state.patterns, candidates, learning_rate=rate)
        patterns, own, report = made.patterns, made.predictions, made.report
    state = replace(known.state, patterns=patterns, proposals=_decided(known.state.proposals, _live(patterns), material))
    return replace(known, state=state, lines=tuple(lines), own=own, tested=tested), report


def _own_candidates(state: LearnState, profile: Profile) -> list[PatternV2]:
    return [_candidate(one, profile) for one in state.proposals if one.status != "rejected"]


def _live(patterns: PatternSet) -> frozenset[str]:
    return frozenset(one.id for one in patterns.patterns if one.status == "active" and one.weight > 0)


def _decided(proposals: Sequence[PatternProposal], live: Collection[str], material: Material) -> tuple[PatternProposal, ...]:
    """Return proposals with their status: under ``evidence`` what got points is in the set, and what got none is out of it."""
    if material.profile == "seed":
        return tuple(proposals)
    return tuple(
        one.model_copy(update={"status": "validated" if as_pattern(one).id in live else "rejected"}) for one in proposals
    )


def probe_set(patterns: PatternSet, items: Sequence[Item], rubric: RubricChoice, *, seed: int = 0) -> ProbeReport:
    """Return what the probes against gaming do to a set's scores of real items."""
    evaluator = CheapModeEvaluator(patterns, rubric=rubric)

    def score(item: Item) -> float | None:
        reading = evaluator.read(item)
        return None if isinstance(reading, Unscored) else reading.gestalt

    return probe(items, score, cheat_of(patterns), seed=seed)


def final_set(known: Known, material: Material) -> PatternSet:
    """Return the set of what is known, made of all open items, as boldly as the last one: what is learned in the end.

    Where it is calibrated, it carries the intervals for mode ``auto``: of the errors of the test items, each by a set that saw
    neither it nor a proposal that came from it.
    """
    candidates = _own_candidates(known.state, material.profile)
    rate = known.state.parameters.learning_rate
    made = material.maker.make(material.targets, known.state.patterns, candidates, learning_rate=rate).patterns
    patterns = counted(made, material).model_copy(update={"calibration_history": known.state.patterns.calibration_history})
    tested = [one for one in material.tested if one.item.id in known.tested]
    if patterns.calibration is None or not tested:
        return patterns
    intervals = fit_intervals(
        [known.tested[one.item.id] for one in tested], [one.score for one in tested], [one.group for one in tested]
    )
    return patterns.model_copy(update={"calibration": {**patterns.calibration, "interval": intervals.model_dump(mode="json")}})
