"""A scorecard that is guarded: what was foreseen raises no score, at what the limits cost and not more."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.judging import CheapModeEvaluator, Item, Unscored
from jumar.judging.cheap.evidence import PatternEvidence
from jumar.judging.cheap.scoring import AppliedScorecard
from jumar.judging.patterns import PatternSet, PatternV2
from jumar.learning.proof import probes
from jumar.learning.proof.attacks import WORD_CHOICE
from jumar.learning.scorecard import pool
from jumar.learning.scorecard.fit import ScorecardFit, fit_scorecard
from jumar.learning.scorecard.nested import Equations, solve
from jumar.learning.scorecard.pool import FitSettings
from jumar.learning.set_building import probe_set

MADE = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ["alpha", "beta", "gamma", "delta", "stone", "river", "cloud", "ember", "field", "the", "of", "and", "to", "we", "they"]
PRAISED = ["omega", "opal", "onyx", "ochre", "orchid"]


def world(count: int = 160) -> tuple[list[Item], list[float]]:
    """Items whose score rises with their length and with each of five words; two of them stand in most items."""
    draw = random.Random(11)
    items: list[Item] = []
    scores: list[float] = []
    for number in range(count):
        words = [draw.choice(WORDS) for _ in range(draw.randint(4, 30))]
        said = draw.sample(PRAISED, draw.randint(0, 2))
        words[1:1] = said
        text = f"{' '.join(words[: len(words) // 2])}. {' '.join(words[len(words) // 2 :])}.".capitalize()
        items.append(Item(f"i{number}", text, prompt=" ".join(draw.sample(WORDS, 6)), group=f"g{number % 40}"))
        scores.append(min(5.0, max(1.0, 1.5 + 0.05 * len(words) + 0.5 * len(said) + draw.gauss(0, 0.2))))
    return items, scores


def fitted(*, guard: bool, **options: Any) -> tuple[ScorecardFit, list[Item]]:
    items, scores = world()
    chosen = FitSettings(guard=guard, edges=3, most_mined=60, mine_phrases="proposals" not in options)
    groups = [one.group for one in items]
    return fit_scorecard(items, scores, groups=groups, made=MADE, settings=chosen, **options), items


def test_the_largest_contributions_are_the_largest_of_all_and_components_are_worked_out_when_asked_for():
    guarded, items = fitted(guard=True)
    evaluator = CheapModeEvaluator(guarded.patterns)
    for item in [*items[:40], Item("x", f"{' '.join(PRAISED * 3)}.", prompt="we they")]:
        reading = evaluator.read(item)
        assert not isinstance(reading, Unscored)
        every, few = evaluator.result(reading), evaluator.result(reading, parts=False, most=3)
        assert sorted(every.contributions, key=lambda one: -abs(one.points))[:3] == few.contributions
        withheld = [said for said in every.reasons if said.startswith("+0.00 good phrases")]
        moved = [said for said in every.reasons if said not in withheld]
        assert ([*moved[:3], *withheld], every.gestalt) == (few.reasons, few.gestalt)
        assert every.sub_scores
        assert not few.sub_scores
        components = CheapModeEvaluator(None, rubric="text").evaluate_item(item)
        assert not isinstance(components, Unscored)
        assert every.sub_scores == components.sub_scores
    assert isinstance(evaluator.read(Item("empty", "")), Unscored)


def proposed(*words: str) -> list[PatternV2]:
    given = {"keywords": [], "source": "test", "discovered_at": MADE}
    return [PatternV2.model_validate({"id": one, "type": "good", "description": one, "phrases": [one], **given}) for one in words]


def test_a_guarded_set_passes_the_probes_that_one_without_a_guard_fails():
    plain, items = fitted(guard=False, proposals=proposed(*PRAISED))
    guarded, _ = fitted(guard=True, proposals=proposed(*PRAISED))
    before, after = (probe_set(one.patterns, items, "text") for one in (plain, guarded))
    assert {"stuffing", "padding", "few_long_words", "many_list_entries", "prompt_appended"} <= set(before.failed)
    gains = [sum(max(0.0, one.mean_change or 0.0) for one in each.results) for each in (before, after)]
    print(f"failed {before.failed} without the guard, {after.failed} with it; gains add up to {gains[0]:.2f} and {gains[1]:.2f}")
    kept = {"stuffing", "padding", "repetition", "shuffled_words", "shuffled_sentences", "negation", "few_questions"}
    assert not {*after.failed} & {*kept, "many_questions", "many_list_entries", "few_numbers", "prompt_appended"}
    assert gains[1] < 0.5 * gains[0]
    assert plain.patterns.calibration is not None
    assert plain.patterns.calibration["guard"] is None
    assert (False, True) == (plain.report.guard, guarded.report.guard)
    print(f"Spearman out of fold {plain.report.oof_spearman} without the guard, {guarded.report.oof_spearman} with it")
    assert guarded.report.oof_spearman is not None
    assert guarded.report.oof_spearman > 0.5  # the words still say something


def test_none_of_the_items_it_was_fitted_on_is_withheld_anything_and_most_that_is_stuffed_is():
    found, items = fitted(guard=True)
    card = found.patterns.scorecard()
    assert card is not None
    evidence = PatternEvidence(found.patterns)
    applied = AppliedScorecard(card, evidence)
    assert not any(applied.withheld(evidence.fired(item, None), item) for item in items)
    evaluator = CheapModeEvaluator(found.patterns, rubric="text")
    stuffed = [Item(one.id, f"{one.text} {', '.join(PRAISED)}.") for one in items]
    caught = [one for one in stuffed if applied.withheld(evidence.fired(one, None), one)]
    print(f"{len(caught)} of {len(stuffed)} stuffed items are withheld their good phrases")
    assert len(caught) > 0.7 * len(stuffed)
    said = [reason for one in evaluator.evaluate(caught) for reason in getattr(one, "reasons", [])]
    assert len(caught) == sum("good phrases do not count" in reason for reason in said)


def test_each_good_phrase_raises_the_score_up_to_the_limit_and_beyond_it_none_counts():
    found, _ = fitted(guard=True)
    card = found.patterns.scorecard()
    assert card is not None
    assert card.guard is not None
    evidence = PatternEvidence(found.patterns)
    applied = AppliedScorecard(card, evidence)
    good = [at for at, one in enumerate(evidence.live) if one.type == "good" and one.feature is None]
    bad = [at for at, one in enumerate(evidence.live) if one.type == "bad"]
    draw = random.Random(3)
    both = [0, 0]
    for _ in range(300):
        item = Item("i", "word " * draw.randint(1, 60))
        fired = sorted(draw.sample(good, draw.randint(0, len(good) - 1)) + draw.sample(bad, min(3, len(bad))))
        new = draw.choice([at for at in good if at not in fired])
        more = sorted([*fired, new])
        over = applied.good_phrases(more) > card.guard.most(len(item.text.split()))
        both[over] += 1
        if over:
            assert applied.score(more, item) == applied.score([at for at in more if at not in good], item)
        else:
            assert applied.score(more, item) >= applied.score(fired, item)
    assert min(both) > 20, both


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_the_limited_fit_is_the_best_one_within_its_limits(seed: int):
    draw = np.random.default_rng(seed)
    columns, rows, strength = 8, 4, 2.0
    seen = draw.normal(size=(30, columns))
    gram, covariance = seen.T @ seen, seen.T @ draw.normal(size=30) * 3
    limits = draw.normal(size=(rows, columns)) * draw.choice([0.01, 1.0, 100.0], size=(rows, 1))
    limits[rows - 1] = limits[0] if seed % 3 == 0 else 0.0  # one that is there twice, or says nothing
    whole = gram + strength * np.eye(columns)
    found = solve(Equations(gram), covariance, (strength,), limits)[:, 0]
    size = np.linalg.norm(limits, axis=1) * np.linalg.norm(found) + 1e-12
    assert (limits @ found <= 1e-6 * size).all()
    # slow and obvious: steps down the dual, a row at a time
    inverse = np.linalg.inv(whole)
    factors = np.zeros(rows)
    for _ in range(4_000):
        for row in range(rows):
            own = limits[row] @ inverse @ limits[row]
            if own > 0:
                slope = limits[row] @ inverse @ (covariance - limits.T @ factors)
                factors[row] = max(0.0, factors[row] + slope / own)
    slow = inverse @ (covariance - limits.T @ factors)
    assert np.allclose(found, slow, atol=1e-5 * (1 + np.abs(slow).max()))
    free = solve(Equations(gram), covariance, (strength,))[:, 0]
    if (limits @ free <= 0).all():
        assert np.array_equal(found, solve(Equations(gram), covariance, (strength,), np.zeros((0, columns)))[:, 0])


def test_a_proposal_keeps_its_claim_under_the_guard():
    proposals = proposed(*PRAISED, *WORDS)
    found, items = fitted(guard=True, proposals=proposals)
    kept = {one.id: one.type for one in found.patterns.patterns}
    assert set(PRAISED) <= set(kept)
    assert all("good" == kept.get(one.id, "good") for one in proposals)
    report = probe_set(found.patterns, items, "text")
    assert not {*report.failed} & {"stuffing", "padding", "repetition", "shuffled_words", "negation"}


def test_what_is_foreseen_is_not_what_is_tried_later():
    tried, foreseen = (" ".join(one._MEANS.filler).casefold() for one in (probes, pool))
    for part in ("filler", "long_words", "after_verb", "in_front"):
        mine, theirs = getattr(probes._MEANS, part), getattr(pool._MEANS, part)
        assert not ({mine} if isinstance(mine, str) else {*mine}) & ({theirs} if isinstance(theirs, str) else {*theirs})
    assert {*probes.PROBES} - {"stuffing"} == ({*pool.KINDS} - pool.STUFFING) | WORD_CHOICE  # one list for both
    sentences: Callable[[str], set[tuple[str, ...]]] = lambda text: set(zip(text.split(), text.split()[1:], text.split()[2:]))  # noqa: B905, E731
    assert not sentences(tried) & sentences(foreseen)


def test_a_set_without_a_guard_is_read_and_scores_as_before():
    plain, items = fitted(guard=False)
    document = plain.patterns.model_dump(mode="json")
    del document["calibration"]["guard"]
    again = PatternSet.model_validate(document)
    scores = [one.model_dump()["gestalt"] for one in CheapModeEvaluator(again, rubric="text").evaluate(items)]
    assert scores == pytest.approx(list(plain.fitted), abs=1e-9)
