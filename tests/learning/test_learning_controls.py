"""Nothing is found in noise, and what was planted is found; the full tables are `make controls`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from learning_controls import Planted, control_run, most_by_chance, planted_targets, shuffled, words_apart
from learning_kit import ridge_of_words

from jumar.judging import Item
from jumar.learning.material import Target


@pytest.mark.parametrize("how", ["across", "within"])
def test_in_shuffled_scores_nothing_tracks_and_nothing_is_supported(how):
    runs = []
    for seed in range(6):
        targets = shuffled(planted_targets(Planted(effect=0.8), seed), how, seed)
        runs.append(control_run(targets, ridge_of_words, seed=seed))
    tracked = sum(one.evidence.verdict == "tracks" for one in runs)
    false = sum(bool(one.supported) for one in runs)
    print(f"{how}: {tracked} of {len(runs)} track, {false} support something, {sum(one.proposed for one in runs)} words tested")
    assert tracked <= most_by_chance(6, 0.025)
    assert false <= most_by_chance(6, 0.05)
    assert min(one.proposed for one in runs) >= 40


def test_what_was_planted_is_found_and_nothing_else():
    planted = Planted(effect=1.1)
    runs = [control_run(planted_targets(planted, seed), ridge_of_words, seed=seed) for seed in range(4)]
    verdicts = [one.evidence.verdict for one in runs]
    found = [len(one.supported & set(planted.phrases)) for one in runs]
    false = sum(len(one.supported - set(planted.phrases)) for one in runs)
    print(f"verdicts {verdicts}, planted words supported {found} of {len(planted.phrases)}, {false} others")
    assert ["tracks"] * 4 == verdicts
    assert sum(found) >= 12
    assert false <= 1
    assert {"verdict", "proposed", "supported"} == set(runs[0].to_json())


def test_an_effect_of_nothing_is_a_null_too():
    planted = Planted(effect=0.0, by_length=0.3)
    runs = [control_run(planted_targets(planted, seed), ridge_of_words, seed=seed) for seed in range(4)]
    assert 0 == sum(one.evidence.verdict == "tracks" for one in runs)  # the length is found, and beaten by nothing
    assert 0 == sum(len(one.supported) for one in runs)


def test_shuffling_keeps_the_verdicts_and_the_items_and_inside_of_groups_the_groups():
    targets = planted_targets(Planted(groups=12), 1)
    across, within = shuffled(targets, "across", 3), shuffled(targets, "within", 3)
    for made in (across, within):
        assert [one.item for one in targets] == [one.item for one in made]
        assert sorted(one.readings for one in targets) == sorted(one.readings for one in made)
        assert made != targets
    groups = {one.group for one in targets}
    by_group = [{name: sorted(one.score for one in made if one.group == name) for name in groups} for made in (targets, within)]
    assert by_group[0] == by_group[1]
    assert across == shuffled(targets, "across", 3)


def test_generated_items_are_what_they_are_said_to_be():
    planted = Planted(groups=200, effect=1.0, noise=0.1, between=0.1)
    targets = planted_targets(planted, 5)
    assert targets == planted_targets(planted, 5)
    assert {one.score for one in targets} <= {1.0, 2.0, 3.0, 4.0, 5.0}
    with_it = [one.score for one in targets if "good0" in one.item.text.split()]
    without = [one.score for one in targets if "good0" not in one.item.text.split()]
    assert float(np.mean(with_it) - np.mean(without)) == pytest.approx(1.0, abs=0.25)
    assert len(with_it) / len(targets) == pytest.approx(0.3, abs=0.05)
    proposed = dict(words_apart(targets))
    assert {"good0": "good", "bad1": "bad"}.items() <= proposed.items()


@pytest.mark.parametrize("name", ["vicuna", "topical_chat", "newsroom"])
def test_in_shuffled_scores_of_recorded_sets_nothing_is_found(name, recorded_data):
    rows = [json.loads(line) for line in (recorded_data / "judged" / f"{name}.jsonl").read_text("utf-8").splitlines()]
    targets = [
        Target(
            Item(one["id"], one["text"], group=one["group"]), float(np.median(one["judge_scores"])), tuple(one["judge_scores"])
        )
        for one in rows
    ]
    runs = [control_run(shuffled(targets, how, 0), ridge_of_words, seed=0) for how in ("across", "within")]
    print(f"{name}: {[one.evidence.verdict for one in runs]}, supported {[sorted(one.supported) for one in runs]}")
    assert all(one.evidence.verdict != "tracks" for one in runs)
    assert all(not one.supported for one in runs)
