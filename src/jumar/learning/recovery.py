"""What is done about a divergence: the first design's actions, one function each, and how one of them is selected.

An action takes a state and gives another one. It says what it did, or that there was nothing for it to do; nothing here writes
a file, asks a judge or draws a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final, Literal

from jumar.core.text import plural
from jumar.judging.patterns.matcher import MATCHED, PatternMatcher
from jumar.judging.patterns.merging import merge_patterns
from jumar.judging.patterns.models import PatternSet, PatternV2
from jumar.learning.state import MOST_DIVERSITY, LearnState, pattern_hash

Evaluate = Callable[[LearnState], float]
"""The mean absolute gap of a state's patterns on the test split; less is better."""

_LEAST_RATE: Final = 1 / 64
_STRICT: Final = 0.8
_EQUAL: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryMeans:
    """What actions may look at. ``texts`` are those of the learn items, ``scores`` the expensive judge's scores of them.

    ``refit`` returns a set with weights fitted anew; without it weights follow the correlation of firing with ``scores``.
    """

    texts: Sequence[str] = ()
    scores: Sequence[float] = ()
    refit: Callable[[PatternSet], PatternSet] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What an action made of a state; ``changed`` is False where there was nothing to do. ``note`` says what, or why not."""

    state: LearnState
    changed: bool
    note: str


Action = Callable[[LearnState, RecoveryMeans], Applied]
"""What is done to a state."""


def rollback_patterns(state: LearnState, _means: RecoveryMeans) -> Applied:
    """Go back to the newest good set that differs; proposals that were committed since then are provisional no more: rejected."""
    found = state.last_good()
    if found is None:
        return _nothing(state, "there is no other good set to go back to")
    there = {pattern.id for pattern in found.patterns.patterns if pattern.status == "active"}
    added = {pattern.id for pattern in state.patterns.patterns if pattern.status == "active"} - there
    proposals = tuple(
        proposal.model_copy(update={"status": "rejected"})
        if proposal.status == "validated" and proposal.pattern.get("id") in added
        else proposal
        for proposal in state.proposals
    )
    out = f"without {plural(len(added), 'pattern')} added since" if added else "which holds the same patterns with other points"
    note = f"back to the set of iteration {found.iteration}, {out}"
    return _changed(state, note, patterns=found.patterns, proposals=proposals)


def reduce_learning_rate(state: LearnState, _means: RecoveryMeans) -> Applied:
    """Halve the learning rate, down to 1/64."""
    rate = max(_LEAST_RATE, state.parameters.learning_rate / 2)
    if rate >= state.parameters.learning_rate:
        return _nothing(state, f"the learning rate is {state.parameters.learning_rate:g} already")
    before = state.parameters.learning_rate
    note = f"from the next iteration on points move {rate:.3g} of the way to the fitted ones; before it was {before:.3g}"
    return _changed(state, note, parameters=replace(state.parameters, learning_rate=rate))


def increase_validation_threshold(state: LearnState, _means: RecoveryMeans) -> Applied:
    """Ask for 80 % accuracy before a pattern is committed."""
    rule = state.parameters.validation
    if rule.commit_accuracy >= _STRICT:
        return _nothing(state, f"{rule.commit_accuracy:.0%} accuracy is asked for already")
    parameters = replace(state.parameters, validation=replace(rule, commit_accuracy=_STRICT))
    note = f"under profile seed {_STRICT:.0%} of a proposal's tests have to agree from now on, not {rule.commit_accuracy:.0%}"
    return _changed(state, note, parameters=parameters)


def increase_proposal_diversity(state: LearnState, _means: RecoveryMeans) -> Applied:
    """Widen what is proposed by one step."""
    now = state.parameters.diversity
    if now >= MOST_DIVERSITY:
        return _nothing(state, "proposals are as diverse as they get")
    parameters = replace(state.parameters, diversity=now + 1)
    note = f"from the next iteration on proposals are more varied, step {now + 1} of {MOST_DIVERSITY}"
    return _changed(state, note, parameters=parameters)


def prune_low_weight_patterns(state: LearnState, _means: RecoveryMeans) -> Applied:
    """Set active patterns with a weight below 0.3 (a parameter) to ``pruned``."""
    least = state.parameters.prune_below
    return _pruned(state, lambda one: one.status == "active" and one.weight < least, f"with a weight below {least:g}")


def reset_provisional(state: LearnState, _means: RecoveryMeans) -> Applied:
    """Drop what is provisional, so that proposals start afresh: proposals become ``rejected``, patterns ``pruned``."""
    waiting = sum(proposal.status == "provisional" for proposal in state.proposals)
    patterns = [pattern for pattern in state.patterns.patterns if pattern.status == "provisional"]
    if not waiting and not patterns:
        return _nothing(state, "nothing is provisional")
    proposals = tuple(
        proposal.model_copy(update={"status": "rejected"}) if proposal.status == "provisional" else proposal
        for proposal in state.proposals
    )
    found = _with(
        state.patterns, [_prune(pattern) if pattern.status == "provisional" else pattern for pattern in state.patterns.patterns]
    )
    note = f"{plural(waiting, 'provisional proposal')} and {plural(len(patterns), 'provisional pattern')} dropped"
    return _changed(state, note, patterns=found, proposals=proposals)


def recalibrate_weights(state: LearnState, means: RecoveryMeans) -> Applied:
    """Fit the weights again: by ``refit`` where it is given, else by how firing correlates with the judge's scores."""
    if means.refit is not None:
        found = means.refit(state.patterns)
    elif means.texts and len(means.texts) == len(means.scores):
        found = correlated(state.patterns, means.texts, means.scores, rate=state.parameters.learning_rate)
    else:
        return _nothing(state, "there are no scored texts to fit weights on")
    if pattern_hash(found) == pattern_hash(state.patterns):
        return _nothing(state, "the weights are as they would be fitted")
    before = {pattern.id: pattern.weight for pattern in state.patterns.patterns}
    moved = [
        abs(pattern.weight - before[pattern.id])
        for pattern in found.patterns
        if pattern.id in before and pattern.weight != before[pattern.id]
    ]
    note = f"{plural(len(moved), 'weight')} changed, by {max(moved, default=0.0):.2f} at most"
    return _changed(state, note, patterns=found)


def deduplicate_patterns(state: LearnState, means: RecoveryMeans) -> Applied:
    """Merge patterns that say the same, by words and by the texts on which they fire."""
    scores = means.scores if len(means.scores) == len(means.texts) else None
    found = merge_patterns(state.patterns.patterns, means.texts, scores=scores)
    if not found.merges:
        return _nothing(state, "no two patterns say the same")
    first = found.merges[0]
    merged = plural(len(found.merges), "pattern")
    note = f"{merged} merged into others, such as {first.merged} into {first.into}: {first.explanation}"
    return _changed(state, note, patterns=_with(state.patterns, found.patterns))


def prune_by_coverage(state: LearnState, means: RecoveryMeans) -> Applied:
    """Set patterns that fire on none of the texts to ``pruned``; those of features are no matter of words, and stay."""
    if not means.texts:
        return _nothing(state, "there are no texts to fire on")
    matcher = PatternMatcher(state.patterns)
    fired = {index for text in means.texts for index in matcher.fired(text)}
    seen = {matcher.ids[index] for index in fired}
    can = {pattern.id for pattern in state.patterns.patterns if pattern.status in MATCHED and pattern.feature is None}
    return _pruned(state, lambda one: one.id in can and one.id not in seen, f"that fire on none of {len(means.texts)} texts")


ACTIONS: Final[Mapping[str, Action]] = MappingProxyType(
    {
        one.__name__: one
        for one in (
            rollback_patterns,
            reduce_learning_rate,
            increase_validation_threshold,
            increase_proposal_diversity,
            prune_low_weight_patterns,
            reset_provisional,
            recalibrate_weights,
            deduplicate_patterns,
            prune_by_coverage,
        )
    }
)
"""Every action by its name."""

RECOVERY_ACTIONS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = MappingProxyType(
    {
        "gap_increasing": (
            ("rollback_patterns", "Revert to last known good pattern set"),
            ("reduce_learning_rate", "Make smaller pattern changes"),
            ("increase_validation_threshold", "Require 80% accuracy to commit"),
        ),
        "gap_plateau": (
            ("increase_proposal_diversity", "Try more varied pattern types"),
            ("prune_low_weight_patterns", "Remove patterns with < 0.3 weight"),
            ("reset_provisional", "Clear provisional patterns, start fresh proposals"),
        ),
        "cheap_mode_degraded": (
            ("rollback_patterns", "Revert pattern changes"),
            ("recalibrate_weights", "Re-run weight optimization"),
        ),
        "expensive_mode_shifted": (("recalibrate_weights", "Re-run weight optimization"),),
        "pattern_explosion": (
            ("deduplicate_patterns", "Merge semantically similar patterns"),
            ("prune_by_coverage", "Remove patterns that never fire"),
        ),
    }
)
"""Action and description, in order, by the diagnosis before its colon."""


NOT_OFFERED: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "evidence": {
            "increase_validation_threshold": "profile evidence commits what the fit gives points, whatever its accuracy",
            "prune_low_weight_patterns": "profile evidence weighs all phrases at once, and what has little weight moves little",
            "reset_provisional": "under profile evidence nothing stays provisional: the fit decides at once",
        },
        "seed": {},
    }
)
"""Why an action is not offered under a profile, where nothing that it changes would decide anything there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The state afterwards, an entry an action that was tried (also at the end of the state's log), and what was kept."""

    state: LearnState
    entries: tuple[dict[str, Any], ...] = field(default=())
    kept: tuple[str, ...] = ()


def recovery_key(diagnosis: str | Mapping[str, Any]) -> str:
    """Return the key of :data:`RECOVERY_ACTIONS` for a diagnosis, or for what ``detect_divergence`` returns.

    That is what stands before the colon of the diagnosis; where nobody knows the reason of a divergence, what it looks like.
    """
    if isinstance(diagnosis, str):
        return diagnosis.partition(":")[0].strip()
    for name in (str(diagnosis.get("diagnosis") or ""), str(diagnosis.get("reason") or "")):
        key = name.partition(":")[0].strip()
        if key in RECOVERY_ACTIONS:
            return key
    return str(diagnosis.get("reason") or "")


def execute_recovery(
    diagnosis: str | Mapping[str, Any],
    state: LearnState,
    evaluate: Evaluate | None = None,
    profile: Literal["seed", "evidence"] = "evidence",
    means: RecoveryMeans | None = None,
) -> Recovery:
    """Return the state after the actions for ``diagnosis``, each of which is logged with the gap before and after.

    Profile ``seed`` runs all of them, one after the other. Profile ``evidence`` tries each on ``state`` and keeps the one with
    the smallest gap on the test split (``evaluate``), the earlier of equals, and none where every one makes it larger. An action
    that only changes parameters leaves the gap as it is; so it is kept where those that change patterns do harm. What
    decides nothing under a profile is not offered there (:data:`NOT_OFFERED`), and its entry says so. An unknown diagnosis has no
    actions. Errors: ValueError for ``evidence`` without ``evaluate``, and for a gap that is not finite.
    """
    actions = RECOVERY_ACTIONS.get(recovery_key(diagnosis), ())
    if profile == "evidence" and evaluate is None and actions:
        raise ValueError("profile evidence needs evaluate, which measures the gap on the test split; profile seed does not")
    key, given, able = recovery_key(diagnosis), means or RecoveryMeans(), list[tuple[float, int, LearnState]]()
    entries: list[dict[str, Any]] = []
    now, gap = state, _measured(evaluate, state) if actions else None
    for name, description in actions:
        why = NOT_OFFERED[profile].get(name)
        done = ACTIONS[name](now, given) if why is None else _nothing(now, f"not offered: {why}")
        after = _measured(evaluate, done.state) if done.changed else gap
        entry = {"action": "recovery", "recovery": name, "description": description, "diagnosis": key}
        entry |= {"iteration": state.iteration, "changed": done.changed, "note": done.note, "before": gap, "after": after}
        entries.append({**entry, "kept": done.changed and profile == "seed"})
        if profile == "seed":
            now, gap = done.state, after
        elif done.changed and gap is not None and after is not None and after <= gap + _EQUAL:
            able.append((after, len(entries) - 1, done.state))
    if able:
        _, place, now = min(able, key=lambda tried: tried[:2])
        entries[place]["kept"] = True
    kept = tuple(str(entry["recovery"]) for entry in entries if entry["kept"])
    return Recovery(state=now.logged(*entries), entries=tuple(entries), kept=kept)


def _measured(evaluate: Evaluate | None, state: LearnState) -> float | None:
    if evaluate is None:
        return None
    gap = evaluate(state)
    if not math.isfinite(gap):
        raise ValueError(f"the gap on the test split is {gap}; it should be a finite number")
    return gap


def _changed(state: LearnState, note: str, **changes: Any) -> Applied:
    return Applied(state=replace(state, **changes), changed=True, note=note)


def _nothing(state: LearnState, note: str) -> Applied:
    return Applied(state=state, changed=False, note=note)


def _pruned(state: LearnState, wanted: Callable[[PatternV2], bool], which: str) -> Applied:
    gone = {pattern.id for pattern in state.patterns.patterns if wanted(pattern)}
    if not gone:
        return _nothing(state, f"there are no patterns {which}")
    found = _with(state.patterns, [_prune(pattern) if pattern.id in gone else pattern for pattern in state.patterns.patterns])
    return _changed(state, f"{plural(len(gone), 'pattern')} {which} pruned", patterns=found)


def _prune(pattern: PatternV2) -> PatternV2:
    return pattern.model_copy(update={"status": "pruned"})


def _with(patterns: PatternSet, found: Sequence[PatternV2]) -> PatternSet:
    return patterns.model_copy(update={"patterns": list(found)})


def correlated(patterns: PatternSet, texts: Sequence[str], scores: Sequence[float], *, rate: float = 1.0) -> PatternSet:
    """Return the set with the weights of its active patterns moved by ``rate`` (0 to 1) towards 1 ± r.

    r is the correlation of firing (0 or 1) with ``scores``, counted the way the pattern's type says: 2 for one that fires exactly
    where the judge finds an item as the pattern says, 0 for the opposite, 1 where nothing is to be seen. A pattern that fires on
    none or all of ``texts`` stays as it is; so do all where the scores do not differ. Errors: ValueError when the lengths differ.
    """
    if len(texts) != len(scores):
        raise ValueError(f"{len(texts)} texts and {len(scores)} scores do not belong together")
    mean = fmean(scores) if scores else 0.0
    spread = math.sqrt(math.fsum((score - mean) ** 2 for score in scores))
    if not spread:
        return patterns
    count = [0] * len(patterns.patterns)
    total = [0.0] * len(patterns.patterns)
    matcher = PatternMatcher(patterns)
    for text, score in zip(texts, scores, strict=True):
        for index in matcher.fired(text):
            count[index] += 1
            total[index] += score - mean
    found = list(patterns.patterns)
    for index, pattern in enumerate(found):
        fired = count[index]
        if pattern.status != "active" or not 0 < fired < len(texts):
            continue
        r = total[index] / (spread * math.sqrt(fired * (1 - fired / len(texts))))
        target = 1.0 + (r if pattern.type == "good" else -r)
        weight = pattern.weight + rate * (target - pattern.weight)
        found[index] = pattern.model_copy(update={"weight": min(2.0, max(0.0, weight))})
    return patterns.model_copy(update={"patterns": found})
