"""Every action of the first design's table, and how one of them is selected."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from jumar.judging.patterns import PatternProposal, PatternSet, PatternV2
from jumar.learning import RECOVERY_ACTIONS, LearnParameters, LearnState, RecoveryMeans, detect_divergence, execute_recovery
from jumar.learning.recovery import ACTIONS, NOT_OFFERED, correlated, recovery_key

DAY = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = ["saves time", "saves money", "quick hack", "nothing"]
MEANS = RecoveryMeans(texts=TEXTS, scores=[5.0, 4.0, 1.0, 2.0])


def pattern(name: str, **fields: Any) -> PatternV2:
    known = {"type": "good", "description": name, "keywords": [name], "source": "test", "discovered_at": DAY}
    return PatternV2.model_validate({"id": name, **known, **fields})


def state(*patterns: PatternV2, **fields: Any) -> LearnState:
    return LearnState(patterns=PatternSet(version="2.0", patterns=list(patterns)), **fields)


def after(action: str, before: LearnState, means: RecoveryMeans = MEANS) -> LearnState:
    done = ACTIONS[action](before, means)
    assert done.changed
    assert done.note
    again = ACTIONS[action](before, means)
    assert again == done, "the same state gives the same result"
    return done.state


def statuses(found: LearnState) -> dict[str, str]:
    return {one.id: one.status for one in found.patterns.patterns}


def test_every_action_of_the_table_works_and_none_is_missing() -> None:
    named = {name for actions in RECOVERY_ACTIONS.values() for name, _ in actions}
    assert named == set(ACTIONS)
    assert (("recalibrate_weights", "Re-run weight optimization"),) == RECOVERY_ACTIONS["expensive_mode_shifted"]


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_an_action_with_nothing_to_do_says_so_and_changes_nothing(action: str) -> None:
    parameters = LearnParameters(learning_rate=1 / 64, diversity=3)
    rule = replace(parameters.validation, commit_accuracy=0.8)
    before = state(parameters=replace(parameters, validation=rule))
    done = ACTIONS[action](before, RecoveryMeans())
    assert (False, before) == (done.changed, done.state)
    assert done.note


def test_rollback_goes_back_to_the_last_good_set_and_its_proposals_are_out() -> None:
    good = state(pattern("a")).remembered(abs_gap=0.4)
    proposal = PatternProposal(pattern={"id": "b", "phrases": ["b"]}, proposed_at=1, status="validated")
    worse = replace(good, iteration=1, patterns=state(pattern("a"), pattern("b")).patterns, proposals=(proposal,))
    found = after("rollback_patterns", worse)
    assert {"a": "active"} == statuses(found)
    assert "rejected" == found.proposals[0].status


def test_parameters_move_one_step_up_to_their_bounds() -> None:
    before = state()
    assert 0.5 == after("reduce_learning_rate", before).parameters.learning_rate
    assert 0.8 == after("increase_validation_threshold", before).parameters.validation.commit_accuracy
    assert 1 == after("increase_proposal_diversity", before).parameters.diversity


def test_light_patterns_are_pruned_below_the_threshold_only() -> None:
    found = after("prune_low_weight_patterns", state(pattern("a", weight=0.3), pattern("b", weight=0.29), pattern("c")))
    assert {"a": "active", "b": "pruned", "c": "active"} == statuses(found)


def test_provisional_ones_are_reset() -> None:
    waiting = PatternProposal(pattern={"phrases": ["x"]}, proposed_at=1)
    before = state(pattern("a"), pattern("b", status="provisional"), proposals=(waiting,))
    found = after("reset_provisional", before)
    assert {"a": "active", "b": "pruned"} == statuses(found)
    assert ["rejected"] == [one.status for one in found.proposals]


def test_duplicates_are_merged_and_what_never_fires_goes() -> None:
    before = state(pattern("saves"), pattern("saves time"), pattern("unheard of"), pattern("x", feature="words", at_least=3.0))
    merged = after("deduplicate_patterns", before)
    assert "pruned" == statuses(merged)["saves time"]
    pruned = after("prune_by_coverage", before)
    assert {"saves": "active", "saves time": "active", "unheard of": "pruned", "x": "active"} == statuses(pruned)


def test_weights_follow_the_correlation_of_firing_with_the_scores() -> None:
    before = state(pattern("saves"), pattern("hack", type="bad"), pattern("nothing", type="good"), pattern("never"))
    found = {one.id: one.weight for one in after("recalibrate_weights", before).patterns.patterns}
    assert found["saves"] == pytest.approx(1 + 3 / 10**0.5), "Pearson's r of (1, 1, 0, 0) with (5, 4, 1, 2)"
    assert found["hack"] > 1 > found["nothing"]
    assert 1.0 == found["never"]
    slower = replace(before, parameters=LearnParameters(learning_rate=0.5))
    half = {one.id: one.weight for one in after("recalibrate_weights", slower).patterns.patterns}
    assert half["saves"] == pytest.approx((1 + found["saves"]) / 2)


def test_a_given_refit_is_used() -> None:
    other = state(pattern("z")).patterns
    assert other == after("recalibrate_weights", state(pattern("a")), RecoveryMeans(refit=lambda _: other)).patterns


def test_weights_stay_where_the_judge_says_the_same_of_everything() -> None:
    patterns = state(pattern("saves")).patterns
    assert patterns == correlated(patterns, TEXTS, [3.0] * 4)
    with pytest.raises(ValueError, match="4 texts and 1 scores"):
        correlated(patterns, TEXTS, [3.0])


def test_the_profile_seed_runs_all_in_order() -> None:
    good = state(pattern("a")).remembered(abs_gap=0.4)
    worse = replace(good, iteration=3, patterns=state(pattern("a"), pattern("b")).patterns)
    found = execute_recovery("gap_increasing", worse, lambda one: 0.4 + 0.1 * len(one.patterns.patterns), "seed")
    assert [name for name, _ in RECOVERY_ACTIONS["gap_increasing"]] == list(found.kept)
    assert (["a"], 0.5, 0.8) == (
        [one.id for one in found.state.patterns.patterns],
        found.state.parameters.learning_rate,
        found.state.parameters.validation.commit_accuracy,
    )
    measured = [(round(one["before"], 9), round(one["after"], 9)) for one in found.entries]
    assert [(0.6, 0.5), (0.5, 0.5), (0.5, 0.5)] == measured
    assert found.entries == found.state.actions
    assert 3 == found.entries[0]["iteration"]
    assert found.kept == execute_recovery("gap_increasing", worse, profile="seed").kept, "it needs no test split"


def test_the_profile_evidence_keeps_the_best_of_those_tried() -> None:
    before = state(pattern("saves"), pattern("saves time"), pattern("never"))
    gaps = {"deduplicate_patterns": 0.3, "prune_by_coverage": 0.2, "": 0.4}

    def evaluate(one: LearnState) -> float:
        pruned = [other.id for other in one.patterns.patterns if other.status == "pruned"]
        return gaps["prune_by_coverage" if pruned == ["never"] else "deduplicate_patterns" if pruned else ""]

    found = execute_recovery("pattern_explosion: too many conflicting patterns", before, evaluate, means=MEANS)
    assert ("prune_by_coverage",) == found.kept
    assert {"saves": "active", "saves time": "active", "never": "pruned"} == statuses(found.state)
    tried = [(one["recovery"], one["before"], one["after"], one["kept"]) for one in found.state.actions]
    assert [("deduplicate_patterns", 0.4, 0.3, False), ("prune_by_coverage", 0.4, 0.2, True)] == tried


def test_what_decides_nothing_under_a_profile_is_not_offered_there_and_says_so() -> None:
    before = state(pattern("a"), pattern("b", status="provisional"))
    waiting = replace(before, proposals=(PatternProposal(pattern={"phrases": ["b"]}, proposed_at=1),))
    for key, name in (("gap_plateau", "reset_provisional"), ("gap_increasing", "increase_validation_threshold")):
        found = execute_recovery(key, waiting, lambda _: 0.4)
        (entry,) = [one for one in found.entries if one["recovery"] == name]
        assert (False, False, 0.4, 0.4) == tuple(entry[one] for one in ("changed", "kept", "before", "after"))
        assert entry["note"].startswith("not offered: ")
        assert "profile evidence" in entry["note"]
        kept = {one["recovery"]: one["kept"] for one in execute_recovery(key, waiting, profile="seed").entries}
        assert kept[name], "the first design's own profile has it"
    for key in RECOVERY_ACTIONS:
        for entry in execute_recovery(key, waiting, lambda _: 0.4, means=MEANS).entries:
            assert not (entry["changed"] and entry["recovery"] in NOT_OFFERED["evidence"])


def test_what_does_harm_is_not_kept() -> None:
    before = state(pattern("a", weight=0.1), pattern("b", status="provisional"))
    harm = execute_recovery("gap_plateau", before, lambda one: 0.4 if one.patterns == before.patterns else 0.9)
    assert ("increase_proposal_diversity",) == harm.kept, "it leaves the gap as it is"
    heavier = state(pattern("saves"))
    none = execute_recovery("expensive_mode_shifted", heavier, lambda one: one.patterns.patterns[0].weight, means=MEANS)
    assert ((), [False]) == (none.kept, [one["kept"] for one in none.entries])


def test_a_diagnosis_is_what_stands_before_the_colon_or_else_what_it_looks_like() -> None:
    assert "cheap_mode_degraded" == recovery_key("cheap_mode_degraded: new patterns hurt scoring")
    plateau = detect_divergence([{"iteration": n, "gap": 0.8} for n in range(3)])
    assert "gap_plateau" == recovery_key(plateau)
    record = {"expensive_avg": 4.0, "cheap_avg": 4.0, "pattern_count": 9}
    assert "gap_increasing" == recovery_key(detect_divergence([{"iteration": n, "gap": n / 10, **record} for n in range(3)]))
    unknown = execute_recovery("unknown: review iteration logs", state())
    assert ((), ()) == (unknown.entries, unknown.kept)


def test_a_gap_that_is_no_number_and_a_missing_split_are_told() -> None:
    with pytest.raises(ValueError, match="needs evaluate"):
        execute_recovery("gap_plateau", state())
    with pytest.raises(ValueError, match="should be a finite number"):
        execute_recovery("gap_plateau", state(), lambda _: float("nan"))
