"""What is done when a change made things worse, or the gap does not shrink: rolled back, or recovered from. Pure.

An action works on the state's set. What it does to a pattern there is done to the same pattern on every line, so that the figures
stay those of the whole way from items to set.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from jumar.judging.patterns.models import PatternProposal, PatternSet, PatternV2
from jumar.judging.patterns.proposed import as_pattern
from jumar.learning.material import Material
from jumar.learning.recovery import RecoveryMeans, execute_recovery
from jumar.learning.regression import Regression, Scored, check_change
from jumar.learning.set_building import cheap_scores, rebuild_sets
from jumar.learning.state import Checkpoint, LearnState, Line, pattern_hash

Entry = dict[str, Any]


def gap_of(checkpoint: Checkpoint, material: Material) -> float:
    """Return the mean absolute gap over the test items that have a score; at least one has."""
    return fmean(abs(one.score - checkpoint.tested[one.item.id]) for one in material.tested if one.item.id in checkpoint.tested)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOutcome:
    """What stays of a change: the change, or what was before it. ``entries`` are for the log."""

    checkpoint: Checkpoint
    regression: Regression
    entries: tuple[Entry, ...] = ()


def check_or_roll_back(before: Checkpoint, after: Checkpoint, material: Material) -> ChangeOutcome:
    """Return ``after``, or what was before it where the change is a regression: rolled back, and evaluated again.

    The proposals of the change are rejected then, and stay on record with their tests.
    """
    found = check_change(_scored(before, material), _scored(after, material), profile=material.profile, seed=material.seed)
    if not found.regression or found.condition is None:
        return ChangeOutcome(checkpoint=after, regression=found)
    back = _before(before, after)
    again = _scored_anew(back, material)
    condition = found.condition
    entry = {
        "action": "rolled_back",
        "iteration": after.state.iteration,
        "description": f"{condition.name.replace('_', ' ')} by {abs(condition.delta or 0.0):.3f}",
        "type": condition.name,
        "delta": condition.delta,
        "interval": None if condition.low is None else [condition.low, condition.high],
        "before": gap_of(before, material),
        "after": gap_of(after, material),
        "confirmed": gap_of(again, material),
    }
    return ChangeOutcome(checkpoint=again, regression=found, entries=(entry,))


def _scored_anew(checkpoint: Checkpoint, material: Material) -> Checkpoint:
    """Return what is known with the test items scored again by the sets of the lines: what a rollback is confirmed by."""
    tested: dict[str, float] = {}
    for each, line in zip(material.rounds, checkpoint.lines, strict=True):
        tested |= cheap_scores(line.patterns, material.inside(each.test), material.rubric)
    return replace(checkpoint, tested=tested)


def _scored(checkpoint: Checkpoint, material: Material) -> list[Scored]:
    return [
        # scores that differ in their last bits only are equal: as ranks they would not be
        Scored(id=one.item.id, expensive=one.score, cheap=round(checkpoint.tested[one.item.id], 9), group=one.group)
        for one in material.tested
        if one.item.id in checkpoint.tested
    ]


def _before(before: Checkpoint, after: Checkpoint) -> Checkpoint:
    """Return what was before a change, with the change's proposals as rejected."""
    there = {as_pattern(proposal).id: proposal for proposal in before.state.proposals}
    proposals = tuple(there.get(as_pattern(proposal).id) or _rejected(proposal) for proposal in after.state.proposals)
    lines = tuple(replace(old, tried=new.tried) for old, new in zip(before.lines, after.lines, strict=True))
    state = replace(before.state, iteration=after.state.iteration, proposals=proposals)
    return replace(before, state=state, ledger=after.ledger, lines=lines)


def _rejected(proposal: PatternProposal) -> PatternProposal:
    return proposal.model_copy(update={"status": "rejected"})


# ---------------------------------------------------------------------------------------------------------- recovery


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryOutcome:
    """What is known after a recovery. ``entries`` are for the log, with the gap before and after; ``kept`` what stayed.

    ``gone`` are the ids of the patterns that the actions which stayed took out of the set, before it was made anew.
    """

    checkpoint: Checkpoint
    entries: tuple[Entry, ...] = ()
    kept: tuple[str, ...] = ()
    gone: frozenset[str] = frozenset()


def recover(checkpoint: Checkpoint, divergence: Mapping[str, Any], material: Material) -> RecoveryOutcome:
    """Return what is known after the actions for ``divergence``."""
    state = checkpoint.state
    tried: dict[str, Checkpoint] = {}

    def of(changed: LearnState) -> Checkpoint:
        if changed.patterns == state.patterns:
            return replace(checkpoint, state=changed)
        key = changed.patterns.model_dump_json()
        if key not in tried:
            tried[key] = _applied(checkpoint, changed, material)
        found = tried[key]
        return replace(found, state=replace(changed, patterns=found.state.patterns, proposals=found.state.proposals))

    means = RecoveryMeans(
        texts=[target.item.text for target in material.targets],
        scores=[target.score for target in material.targets],
        refit=(lambda patterns: _refitted(checkpoint, patterns, material)) if material.profile == "evidence" else None,
    )
    found = execute_recovery(divergence, state, lambda one: gap_of(of(one), material), material.profile, means)
    if not found.kept:
        return RecoveryOutcome(checkpoint=replace(checkpoint, state=found.state), entries=found.entries)
    gone = _gone(state.patterns, found.state.patterns)
    return RecoveryOutcome(checkpoint=of(found.state), entries=found.entries, kept=found.kept, gone=gone)


def _gone(before: PatternSet, after: PatternSet) -> frozenset[str]:
    """Return the ids of patterns that are active before, and not after."""
    there = {pattern.id for pattern in after.patterns if pattern.status == "active"}
    return frozenset(pattern.id for pattern in before.patterns if pattern.status == "active") - there


def _refitted(checkpoint: Checkpoint, patterns: PatternSet, material: Material) -> PatternSet:
    whole = replace(checkpoint.state, parameters=replace(checkpoint.state.parameters, learning_rate=1.0))
    found, _ = rebuild_sets(replace(checkpoint, state=whole), material)
    return patterns if pattern_hash(found.state.patterns) == pattern_hash(patterns) else found.state.patterns


def _applied(checkpoint: Checkpoint, changed: LearnState, material: Material) -> Checkpoint:
    """Return what is known once a change of the set is made on every line, too, and the sets are made anew."""
    before = {pattern.id: pattern for pattern in checkpoint.state.patterns.patterns}
    after = {pattern.id: pattern for pattern in changed.patterns.patterns}
    gone = _gone(checkpoint.state.patterns, changed.patterns)
    # what is out of the set is no candidate for the next one either
    proposals = tuple(
        _rejected(proposal) if proposal.status == "validated" and as_pattern(proposal).id in gone else proposal
        for proposal in changed.proposals
    )
    changed = replace(changed, proposals=proposals)
    lines = tuple(_transferred(line, before, after, gone) for line in checkpoint.lines)
    found, _ = rebuild_sets(replace(checkpoint, state=changed, lines=lines), material, without=gone)
    return found


def _transferred(line: Line, before: Mapping[str, PatternV2], after: Mapping[str, PatternV2], gone: Collection[str]) -> Line:
    """Return a line with the same done to its patterns as was done to those of the state."""

    def moved(one: PatternV2) -> PatternV2:
        old, new = before.get(one.id), after.get(one.id)
        if one.id in gone:
            return one.model_copy(update={"status": "pruned"})
        if old is None or new is None or (old.weight == new.weight and old.status == new.status):
            return one
        return one.model_copy(update={"weight": new.weight, "status": new.status})

    patterns = line.patterns.model_copy(update={"patterns": [moved(pattern) for pattern in line.patterns.patterns]})
    return replace(
        line, patterns=patterns, candidates=tuple(moved(candidate) for candidate in line.candidates if candidate.id not in gone)
    )
