"""One iteration of learning: proposals, a set made with them, and whether it is better for it. Pure but for the proposer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import fmean
from typing import Any, Final

from jumar.core.text import plural
from jumar.judging.gap import GAP_TARGET
from jumar.judging.history import FEWEST_ITERATIONS, check_convergence, detect_divergence
from jumar.judging.models import IterationMetrics
from jumar.judging.patterns.models import PatternProposal, PatternSet, PatternV2
from jumar.judging.patterns.proposed import as_pattern
from jumar.learning.convergence import missing_checks
from jumar.learning.material import Material, Profile, Target
from jumar.learning.proof.evidence import ProofEvidence, compare_with_judge
from jumar.learning.proof.probes import ProbeReport
from jumar.learning.proposals.proposing import IterationProposals, propose_all
from jumar.learning.recovery import RecoveryMeans, execute_recovery
from jumar.learning.regression import Regression, Scored, check_change
from jumar.learning.set_building import add_metrics, build_with_proposals, cheap_scores, count_firing, probe_set, rebuild_sets
from jumar.learning.state import Checkpoint, LearnState, Line, pattern_hash

Entry = dict[str, Any]


def gap_of(checkpoint: Checkpoint, material: Material) -> float:
    """Return the mean absolute gap over the test items that have a score; at least one has."""
    return fmean(abs(one.score - checkpoint.tested[one.item.id]) for one in material.tested if one.item.id in checkpoint.tested)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOutcome:
    """What stays of a change: the change, or what was before it. ``entries`` are for the log.

    ``set_aside``: it was no worse, and not better beyond noise either, so that what was before it stays. ``undone`` are the ids
    of what was committed in a change that does not stay.
    """

    checkpoint: Checkpoint
    regression: Regression
    set_aside: bool = False
    undone: frozenset[str] = frozenset()
    entries: tuple[Entry, ...] = ()


def check_or_roll_back(before: Checkpoint, after: Checkpoint, material: Material) -> ChangeOutcome:
    """Return ``after``, or what was before it where the change is a regression: rolled back, and evaluated again.

    Where sets are fitted, the first fit is where learning begins, and a later set has to be better beyond noise, unless there are
    more items than before. What a change that does not stay has committed is rejected, and is on record with its tests.
    """
    found = check_change(_scored(before, material), _scored(after, material), profile=material.profile, seed=material.seed)
    if material.fits and not before.state.iteration:
        return ChangeOutcome(checkpoint=after, regression=replace(found, regression=False, condition=None))
    if not found.regression or found.condition is None:
        if not material.fits or material.growing or found.improved:
            return ChangeOutcome(checkpoint=after, regression=found)
        return ChangeOutcome(
            checkpoint=_before(before, after), regression=found, set_aside=True, undone=_committed(before, after)
        )
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
    return ChangeOutcome(checkpoint=again, regression=found, entries=(entry,), undone=_committed(before, after))


def _committed(before: Checkpoint, after: Checkpoint) -> frozenset[str]:
    was = _statuses(before)
    return frozenset(name for name, status in _statuses(after).items() if status == "validated" != was.get(name))


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
    """Return what was before a change, with what was committed in it as rejected: what is provisional was no part of it."""
    there = {as_pattern(proposal).id: proposal for proposal in before.state.proposals}
    proposals = tuple(_undone(proposal, there.get(as_pattern(proposal).id)) for proposal in after.state.proposals)
    lines = tuple(
        replace(old, tried=new.tried, candidates=(*old.candidates, *_waiting(old, new)))
        for old, new in zip(before.lines, after.lines, strict=True)
    )
    state = replace(before.state, iteration=after.state.iteration, proposals=proposals)
    return replace(before, state=state, ledger=after.ledger, lines=lines)


def _undone(proposal: PatternProposal, before: PatternProposal | None) -> PatternProposal:
    if proposal.status == "provisional":
        return proposal
    return _rejected(proposal) if before is None or before.status == "provisional" else before


def _waiting(old: Line, new: Line) -> list[PatternV2]:
    """Return the candidates of a change that took no part in it: those that are provisional."""
    known = {candidate.id for candidate in old.candidates}
    return [candidate for candidate in new.candidates if candidate.status == "provisional" and candidate.id not in known]


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
            tried[key] = _on_every_line(checkpoint, changed, material)
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


def _on_every_line(checkpoint: Checkpoint, changed: LearnState, material: Material) -> Checkpoint:
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


Action = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationOutcome:
    """What one iteration did. ``actions`` are entries of the log; ``evidence`` is of the test items."""

    checkpoint: Checkpoint
    proposed: IterationProposals
    metrics: IterationMetrics
    evidence: ProofEvidence
    pairs: tuple[tuple[Target, float], ...]
    actions: tuple[Action, ...]
    regression: Mapping[str, Any]
    divergence: Mapping[str, Any]
    convergence: Mapping[str, Any]
    report: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def plan(self) -> dict[str, Any]:
        """What the next iteration is for; ``focus`` in words."""
        if self.checkpoint.stopped:
            return {"focus": "none", "why": self.checkpoint.stopped}
        large = sum(abs(one.score - score) > GAP_TARGET for one, score in self.pairs)
        return {"focus": f"{large:,} of {len(self.pairs):,} test items with a gap over {GAP_TARGET}"}


def begin(patterns: PatternSet, material: Material) -> Checkpoint:
    """Return what is known before anything is learned: a set as it was given, and its scores."""
    own = cheap_scores(patterns, material.targets, material.rubric)

    def of(keys: frozenset[str]) -> dict[str, float]:
        return {one.item.id: own[one.item.id] for one in material.inside(keys) if one.item.id in own}

    lines = tuple(Line(patterns=patterns, predictions=of(each.learn)) for each in material.rounds)
    tested = {name: score for each in material.rounds for name, score in of(each.test).items()}
    return Checkpoint(state=LearnState(patterns=patterns).remembered(), lines=lines, own=own, tested=tested)


def learn_once(checkpoint: Checkpoint, material: Material, *, iteration: int, now: datetime) -> IterationOutcome:
    """Return what is known after iteration ``iteration``. ``now`` only dates its record."""
    proposed = propose_all(checkpoint, material, iteration)
    tried, report = build_sets(checkpoint, proposed, material, iteration)
    change = check_or_roll_back(checkpoint, tried, material)
    after, before = change.checkpoint, checkpoint.state.history
    metrics, found = measure(after, material, iteration=iteration, now=now, before=before)
    divergence = diverging((*before, metrics), material.profile)
    entries, recovery = change.entries, None
    if divergence["diverging"]:
        recovery = recover(after, divergence, material)
        after = recovery.checkpoint
        entries = (*entries, *recovery.entries)
        metrics, found = measure(after, material, iteration=iteration, now=now, before=before)
    metrics = metrics.model_copy(update={"regression_detected": change.regression.regression})
    actions = (*explain_decisions(checkpoint, change, after, recovery, material.profile), *entries)
    history = (*before, metrics)
    good = not change.regression.regression and not divergence["diverging"]
    patterns = add_metrics(count_firing(after.state.patterns, material), checkpoint.state.patterns.calibration_history, metrics)
    state = replace(after.state, patterns=patterns, history=history).remembered(abs_gap=metrics.abs_gap, good=good)
    state = state.logged(*(action for action in actions if action["action"] != "recovery"))
    asked = checkpoint.state.iteration > 0 or not material.fits
    spent = asked and not proposed.own and not material.growing
    convergence, probes = converged(history, after, material, spent=spent)
    convergence |= {} if probes is None else {"probes": probes.to_json()}
    missing = missing_checks(
        {**convergence, "profile": material.profile}, history, found.to_json(), fewest=material.min_iterations
    )
    convergence["missing"] = [one.to_json() for one in missing]
    return IterationOutcome(
        checkpoint=replace(after, state=state, stopped=_why_stopped(convergence, actions, spent=asked and not proposed.own)),
        proposed=proposed,
        metrics=metrics,
        evidence=found,
        pairs=tuple((one, after.tested[one.item.id]) for one in material.tested if one.item.id in after.tested),
        actions=actions,
        regression=change.regression.to_json(),
        divergence=divergence,
        convergence=convergence,
        report=report,
    )


def build_sets(
    checkpoint: Checkpoint, proposed: IterationProposals, material: Material, iteration: int
) -> tuple[Checkpoint, Mapping[str, Any]]:
    """Return what is known with the proposals; where a fit would be that of before, it is not made again."""
    fitted = checkpoint.state.patterns.said_robust is not None  # sets of before were not given what stands in the items
    if material.fits and fitted and checkpoint.state.iteration and not material.growing and not proposed.own:
        return replace(checkpoint, state=replace(checkpoint.state, iteration=iteration)), {}
    return build_with_proposals(checkpoint, proposed, material, iteration)


def diverging(history: Sequence[IterationMetrics], profile: Profile) -> dict[str, Any]:
    """Return :func:`jumar.judging.detect_divergence`; under ``evidence`` a gap has grown where its two decimals have.

    Fits move a gap in its fifth decimal from one iteration to the next. That is no growth that anybody could recover from.
    """
    found = detect_divergence(history)
    if profile == "seed" or found.get("reason") != "gap_increasing":
        return found
    levelled = list(history[-3:])
    for place in (1, 0):
        later, gap = levelled[place + 1], levelled[place].abs_gap
        if gap is not None and later.abs_gap is not None and round(gap, 2) == round(later.abs_gap, 2):
            levelled[place] = levelled[place].model_copy(update={"abs_gap": later.abs_gap})
    return detect_divergence(levelled)


def converged(
    history: Sequence[IterationMetrics], checkpoint: Checkpoint, material: Material, *, spent: bool = False
) -> tuple[dict[str, Any], ProbeReport | None]:
    """Return :func:`jumar.judging.check_convergence`, with one check more of a robust run: that no probe raises the scores.

    The set is probed only where all the others held; None where it was not. ``spent``: nothing is left to propose, so that the
    minimum of iterations counts as met, and another one would be as the last. Where a set is fitted to items that stay the same,
    how good these are is no check: learning cannot change it.
    """
    if spent and len(history) == 1:
        history = (*history, *history)
    found = check_convergence(history, FEWEST_ITERATIONS if spent else material.min_iterations)
    if "checks" in found:
        checks = {**found["checks"], "no_divergence": not diverging(history, material.profile)["diverging"]}
        if material.fits and not material.growing:
            del checks["cheap_threshold"]
        found |= {"checks": checks, "converged": all(checks.values())}
    if not found["converged"] or not material.robust:
        return found, None
    probes = probe_set(checkpoint.state.patterns, [one.item for one in material.tested], material.rubric, seed=material.seed)
    return {**found, "converged": probes.passed, "checks": {**found["checks"], "probes": probes.passed}}, probes


# ------------------------------------------------------------------------------------------------------- the figures


def measure(
    checkpoint: Checkpoint, material: Material, *, iteration: int, now: datetime, before: Sequence[IterationMetrics] = ()
) -> tuple[IterationMetrics, ProofEvidence]:
    """Return the figures of a set, over the test items that it scored."""
    tested = [one for one in material.tested if one.item.id in checkpoint.tested]
    cheap = [checkpoint.tested[one.item.id] for one in tested]
    found = compare_with_judge(tested, cheap, None, seed=material.seed)
    pairs = [(one.item.id, one.score, score) for one, score in zip(tested, cheap, strict=True)]
    counts = [pattern.status for pattern in checkpoint.state.patterns.patterns]
    own = [proposal for proposal in checkpoint.state.proposals if proposal.proposed_at == iteration]
    verdicts = {"tracks": True, "fails": False}
    return (
        IterationMetrics(
            **gap_figures(pairs, iteration=iteration, now=now, before=before),
            pattern_count=counts.count("active"),
            provisional_patterns=sum(proposal.status == "provisional" for proposal in checkpoint.state.proposals),
            patterns_committed=sum(one.status == "validated" for one in own),
            patterns_rejected=sum(one.status == "rejected" for one in own),
            tracks=verdicts.get(found.verdict),
            spearman=found.figures.get("spearman"),
        ),
        found,
    )


def gap_figures(
    pairs: Sequence[tuple[str, float, float]], *, iteration: int, now: datetime, before: Sequence[IterationMetrics]
) -> dict[str, Any]:
    """Return the figures of metrics that follow from ids, expensive and cheap scores of at least one item."""
    expensive, cheap = fmean(score for _, score, _ in pairs), fmean(score for _, _, score in pairs)
    gap = expensive - cheap
    return {
        "iteration": iteration,
        "timestamp": now,
        "expensive_avg": expensive,
        "cheap_avg": cheap,
        "gap": gap,
        "gap_delta": gap - before[-1].gap if before else 0.0,
        "abs_gap": fmean(abs(one - other) for _, one, other in pairs),
        "story_ids": [name for name, _, _ in pairs],
    }


def _why_stopped(convergence: Mapping[str, Any], actions: Sequence[Action], *, spent: bool) -> str:
    if convergence["converged"]:
        return "converged"
    if spent and not any(action["action"] != "recovery" or action["kept"] for action in actions):
        return "nothing more to propose"
    return ""


_ACTIONS: Final = {"validated": "committed_pattern", "rejected": "rejected_pattern", "provisional": "proposed_pattern"}
_TAKES_OUT: Final = {
    "rollback_patterns": "the recovery went back to an earlier set, which is without it",
    "prune_low_weight_patterns": "the recovery pruned patterns of little weight, and it was one",
    "reset_provisional": "the recovery dropped all that was provisional",
    "recalibrate_weights": "the recovery fitted all weights again and gave it none",
    "deduplicate_patterns": "the recovery merged it into one that says the same",
    "prune_by_coverage": "the recovery pruned patterns that fire on no text",
}
_ASIDE: Final = "the set with it was not better beyond noise on items that it was not made from"
_FITTED_AFTER: Final = "the fit that followed the recovery gave it {}"


def explain_decisions(
    before: Checkpoint, change: ChangeOutcome, after: Checkpoint, recovery: RecoveryOutcome | None, profile: Profile
) -> list[dict[str, Any]]:
    """Return an entry of the log for every proposal whose status changed from ``before`` to ``after``.

    ``change`` is what the iteration itself came to, ``recovery`` what was done about it then, None where nothing was.
    """
    statuses_before = _statuses(before)
    statuses_changed = _statuses(change.checkpoint)
    latest = after.ledger.latest()
    card = after.state.patterns.scorecard()
    weights = {pattern.id: pattern.weight * (1 if pattern.type == "good" else -1) for pattern in after.state.patterns.patterns}
    actions: list[dict[str, Any]] = []
    for proposal in after.state.proposals:
        pattern = as_pattern(proposal)
        was = statuses_before.get(pattern.id)
        if was == proposal.status:
            continue
        entry = latest.get(pattern.id)
        if recovery is not None and statuses_changed.get(pattern.id) != proposal.status:
            reason = _recovered(proposal, pattern.id, recovery, statuses_changed.get(pattern.id))
        elif pattern.id in change.undone:
            reason = _ASIDE if change.set_aside else "the change that it was part of was rolled back"
        else:
            reason = _why(proposal, after, profile, was)
        live = proposal.status == "validated" and card is not None
        actions.append(
            {
                "action": _ACTIONS[proposal.status],
                "pattern_id": pattern.id,
                "description": pattern.description,
                "iteration": after.state.iteration,
                "tested": proposal.stories_tested,
                "accuracy": proposal.accuracy,
                "p_value": None if entry is None else entry.p_value,
                "points": weights.get(pattern.id, 0.0) * card.unit if live and card is not None else None,
                "reason": reason,
            }
        )
    return actions


def _statuses(checkpoint: Checkpoint) -> dict[str, str]:
    return {as_pattern(proposal).id: proposal.status for proposal in checkpoint.state.proposals}


def _recovered(proposal: PatternProposal, name: str, recovery: RecoveryOutcome, settled: str | None) -> str:
    """Return why the recovery, or the fit after it, gave a proposal another status than the iteration had."""
    if proposal.status == "validated":
        return _FITTED_AFTER.format("points")
    if proposal.status == "rejected" and (name in recovery.gone or settled == "provisional"):
        able = _able(recovery.kept, settled)
        if able:
            return "; or ".join(_TAKES_OUT[one] for one in able)
    return _FITTED_AFTER.format("no points")


def _able(kept: Collection[str], settled: str | None) -> list[str]:
    """Return the actions that were kept and can take a proposal of this status out: what is provisional only the reset can."""
    if settled == "provisional":
        return [one for one in kept if one == "reset_provisional"]
    return [one for one in kept if one in _TAKES_OUT and one != "reset_provisional"]


def _why(proposal: PatternProposal, checkpoint: Checkpoint, profile: Profile, before: str | None) -> str:
    """Return why the iteration itself gave a proposal the status that it has now."""
    if profile == "seed":
        rule = checkpoint.state.parameters.validation
        agreed = f"agreed with the judge on {proposal.correct_predictions:,} of {plural(proposal.stories_tested, 'item')}"
        needed = {
            "validated": f"{rule.commit_accuracy:.0%} of {rule.commit_tested} were needed",
            "rejected": f"below {rule.reject_accuracy:.0%} of {rule.reject_tested} or more",
            "provisional": f"neither {rule.commit_accuracy:.0%} of {rule.commit_tested} nor below {rule.reject_accuracy:.0%}",
        }
        if not proposal.stories_tested:
            return f"no test item could try it yet; {rule.commit_tested} are needed"
        return f"{agreed}; {needed[proposal.status]}"
    if proposal.status == "validated":
        return "the fit gave it points" if before is None else "the new fit gave it points again"
    return "the fit gave it no points" if before is None else "it had points, and the new fit gave it none"
