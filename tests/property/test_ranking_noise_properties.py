"""The noise arithmetic against a slow obvious reference, and what holds for every loop whatever its numbers."""

from __future__ import annotations

import math
import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.loop.ranking.choose import choose
from jumar.loop.ranking.confirmed import certainty, seen
from jumar.loop.ranking.noise import Evidence, finalists, finals, measure, ranked, select, student_cdf, student_quantile
from jumar.loop.ranking.score import weighted_score
from jumar.model import IterationView, NoiseRules, Reading, ScoreReading, SelectionCriteria
from jumar.model.records import Repeats, Verification

VERIFICATIONS: tuple[Verification, ...] = ("passed", "failed")
SCORES = st.floats(0, 1).map(lambda value: round(value, 3))
ANSWERS = st.lists(SCORES, min_size=1, max_size=4).map(tuple)
MODES = st.sampled_from(["highest_quality", "highest_quality_verified", "most_recent_above_threshold"])


@st.composite
def loops(draw: st.DrawFn) -> tuple[IterationView, ...]:
    found = []
    for number in range(draw(st.integers(1, 6))):
        repeats = (Repeats("a", draw(ANSWERS)), Repeats("b", draw(ANSWERS)))
        dimensions = {each.dimension: statistics.fmean(each.scores) for each in repeats}
        score = weighted_score(dimensions, {"a": 2.0, "b": 1.0})
        verification: Verification = draw(st.sampled_from(VERIFICATIONS))
        found.append(IterationView(number=number, score=score, dimensions=dimensions, repeats=repeats, verification=verification))
    return tuple(found)


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    views = draw(loops())
    readings = []
    for number in range(draw(st.integers(0, 8))):
        a, b = draw(ANSWERS), draw(ANSWERS)
        made = tuple(ScoreReading(dimension=name, score=statistics.fmean(x), repeats=x) for name, x in (("a", a), ("b", b)))
        iteration = draw(st.integers(0, len(views) - 1))
        broken = draw(st.booleans()) and draw(st.booleans())
        readings.append(
            Reading(
                number=number + 1,
                kind=draw(st.sampled_from(["rescore", "rescore", "confirm", "holdout"])),
                iteration=iteration,
                at="",
                attempt=None,
                score=None if broken else 50.0,
                status="scorer_broken" if broken else "ok",
                readings=() if broken else made,
            )
        )
    rules = NoiseRules(finalists=draw(st.integers(1, 6)), tie=draw(st.sampled_from([0.0, 1.0, 2.0])))
    return Evidence(views=views, readings=tuple(readings), weights={"a": 2.0, "b": 1.0}, rules=rules)


CRITERIA = st.builds(SelectionCriteria, mode=MODES, threshold=st.sampled_from([None, 0, 50, 100]))


@given(loops())
def test_the_pooled_variance_is_that_of_the_slow_reference(views: tuple[IterationView, ...]) -> None:
    noise = measure([view.repeats for view in views], {"a": 2.0, "b": 1.0})
    expected = {}
    for place, name in enumerate("ab"):
        groups = [view.repeats[place].scores for view in views if len(view.repeats[place].scores) > 1]
        degrees = sum(len(group) - 1 for group in groups)
        if degrees:
            expected[name] = sum(statistics.variance(group) * (len(group) - 1) for group in groups) / degrees, degrees
    assert bool(expected) == (noise is not None)
    if noise is None:
        return
    assert {(name, 0): (pytest.approx(value, abs=1e-15), degrees) for name, (value, degrees) in expected.items()} == noise.sources
    first = views[0].repeats
    weight = {"a": 200 / 3, "b": 100 / 3}
    parts = [
        (weight[each.dimension] ** 2 * expected[each.dimension][0] / len(each.scores), expected[each.dimension][1])
        for each in first
        if each.dimension in expected
    ]
    total = sum(part for part, _ in parts)
    variance, degrees = noise.variance(first)
    assert total == pytest.approx(variance, abs=1e-12)
    if total > 1e-12:
        exact = total**2 / sum(part**2 / behind for part, behind in parts)  # at a whole number the last bits decide
        assert degrees in {max(1, math.floor(exact + 1e-6)), max(1, math.floor(exact - 1e-6))}


@given(st.floats(0.5, 0.9999), st.integers(1, 200))
def test_quantiles_against_the_integral_of_the_density(probability: float, degrees: int) -> None:
    value = student_quantile(probability, degrees)
    assert probability == pytest.approx(student_cdf(value, degrees), abs=1e-9)
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)
    end = min(value, 40.0)
    steps = 2000
    density = [scale * (1 + (end * i / steps) ** 2 / degrees) ** (-(degrees + 1) / 2) for i in range(steps + 1)]
    area = math.fsum((a + b) / 2 for a, b in pairwise(density)) * end / steps
    assert student_cdf(end, degrees) == pytest.approx(0.5 + area, abs=1e-3)


@given(evidences(), CRITERIA)
def test_the_ranking_agrees_with_the_choice_and_knows_the_errors(evidence: Evidence, criteria: SelectionCriteria) -> None:
    order, chosen, found = ranked(evidence, criteria), select(evidence, criteria), finals(evidence, criteria)
    assert found is not None
    assert sorted(order) == [view.number for view in evidence.views]
    assert order[0] == chosen.selected_iteration
    if chosen.runner_up is not None:
        assert order[1] == chosen.runner_up
    views, chance = seen(evidence, criteria)
    assert {view.number: found.means.get(view.number, view.score) for view in evidence.views} == {
        view.number: view.score for view in views
    }
    for finalist in certainty(evidence, criteria, chosen).finalists if evidence.noisy else ():  # pyright: ignore[reportOptionalMemberAccess]
        alone = chance.width(finalist.iteration, -1)
        assert alone == pytest.approx(2 * finalist.standard_error, abs=1e-9)


@given(evidences(), CRITERIA)
def test_a_choice_is_always_one_of_the_peers_and_never_depends_on_the_order_of_views(
    evidence: Evidence, criteria: SelectionCriteria
) -> None:
    found = finals(evidence, criteria)
    assert found is not None
    result = select(evidence, criteria)
    assert found.chosen == result.selected_iteration
    assert result.selected_iteration in found.among
    assert result.selected_iteration == min(found.tied)
    assert found.leader in found.tied
    assert set(found.tied) <= set(found.among)
    assert result == select(
        Evidence(views=evidence.views[::-1], readings=evidence.readings, weights=evidence.weights, rules=evidence.rules), criteria
    )
    if found.rescored:
        assert set(found.among) <= set(found.finalists)
        assert result.quality_score == found.means[result.selected_iteration]
    else:
        assert result.quality_score == evidence.views[result.selected_iteration].score
    # noise relaxes nothing that the plain choice did not
    plain = choose(evidence.views, criteria)
    if not found.rescored:
        assert plain.fallback == result.fallback


@given(evidences(), CRITERIA)
def test_finalists_do_not_change_while_they_are_scored_again(evidence: Evidence, criteria: SelectionCriteria) -> None:
    before = finalists(Evidence(views=evidence.views, weights=evidence.weights, rules=evidence.rules), criteria)
    assert before == finalists(evidence, criteria)
    assert 1 <= len(before) <= evidence.rules.finalists
    assert choose(evidence.views, criteria).selected_iteration == before[0]
    wider = NoiseRules(finalists=evidence.rules.finalists, level=0.99)
    assert set(before) <= set(finalists(Evidence(views=evidence.views, weights=evidence.weights, rules=wider), criteria))


@given(loops(), CRITERIA)
def test_one_answer_each_is_the_plain_choice(views: tuple[IterationView, ...], criteria: SelectionCriteria) -> None:
    plain = tuple(
        IterationView(number=view.number, score=view.score, verification=view.verification, dimensions=view.dimensions)
        for view in views
    )
    assert choose(plain, criteria) == select(Evidence(views=plain), criteria)
