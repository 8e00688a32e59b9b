"""What a loop goes on from, against a slow obvious reference that compares every iteration with every other one."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.loop.ranking.choose import choose
from jumar.loop.ranking.noise import Evidence, select, student_quantile
from jumar.loop.ranking.ratchet import equals_of_best, latest_best, select_kept
from jumar.model import IterationView, NoiseRules, Reading, ScoreReading, SelectionCriteria
from jumar.model.records import NO_EFFECT, FailureKind, Repeats, Status, Verdict
from jumar.model.selection import MODES

CRITERIA = st.builds(
    SelectionCriteria,
    mode=st.sampled_from(MODES),
    threshold=st.none() | st.sampled_from([0, 50, 70, 100]),
    require_verification=st.booleans(),
)
BAD: tuple[Status, ...] = ("generator_failed", "generator_timeout", "validator_broken", "scorer_broken", "invalid_score")
HIGHEST = SelectionCriteria(mode="highest_quality", threshold=None)
ANSWERS = st.lists(st.sampled_from([0.4, 0.5, 0.52, 0.6, 0.9]), min_size=1, max_size=3).map(tuple)
VERDICTS = st.tuples(
    st.builds(Verdict, st.just("tests"), st.just(False), st.none() | st.integers(0, 2), st.integers(0, 1)),
    st.builds(Verdict, st.sampled_from(["lint", "types"]), st.booleans(), st.none(), st.just(0)),
)
EFFECTS: tuple[FailureKind | None, ...] = (None, None, None, "changed_nothing", "blocked")
SCORES = st.none() | st.sampled_from([0.0, 40.0, 50.0, 50.0, 70.0, 100.0, 101.0, float("nan")])


@st.composite
def loops(draw: st.DrawFn, *, repeats: bool = False) -> tuple[IterationView, ...]:
    """A loop of lone iterations and batches, with scores that are often equal."""
    views: list[IterationView] = []
    for batch in range(draw(st.integers(1, 6))):
        size = draw(st.integers(1, 3)) if batch else 1
        for candidate in range(1, size + 1):
            answers = draw(ANSWERS)
            views.append(
                IterationView(
                    number=len(views),
                    score=round(100 * statistics.fmean(answers), 4) if repeats else draw(SCORES),
                    status="ok" if repeats or draw(st.integers(0, 3)) else draw(st.sampled_from(BAD)),
                    verification=draw(st.sampled_from(["passed", "failed", "skipped"])),
                    dimensions={"worth": statistics.fmean(answers)} if repeats else {},
                    repeats=(Repeats("worth", answers),) if repeats else (),
                    verdicts=draw(VERDICTS | st.just(())),
                    failure=draw(st.sampled_from(EFFECTS)),
                    parent=draw(st.integers(0, len(views) - 1)) if views else None,
                    tampered=batch > 0 and draw(st.integers(0, 5)) == 0,
                    batch=batch if size > 1 else None,
                    candidate=candidate if size > 1 else None,
                )
            )
    return tuple(views)


def usable(view: IterationView) -> bool:
    return view.status == "ok" and view.score is not None and 0 <= view.score <= 100


def rules_broken(view: IterationView, criteria: SelectionCriteria) -> tuple[bool, ...]:
    """What a mode holds against an iteration beside its score, in the order of how much it matters."""
    unverified = view.verification != "passed"
    below = criteria.threshold is not None and (view.score or 0.0) < criteria.threshold
    if criteria.mode == "highest_quality":
        return (below,)
    return (unverified, below) if criteria.mode == "highest_quality_verified" else (unverified and criteria.require_verification,)


def within_noise(views: list[IterationView], best: IterationView, view: IterationView, tie: float) -> bool:
    """Whether one scorer's answers cannot tell the two apart: pooled variance, and one t for the difference of two means."""
    groups = [one.repeats[0].scores for one in views if one.repeats and len(one.repeats[0].scores) > 1]
    degrees = sum(len(group) - 1 for group in groups)
    if not degrees:
        return False
    variance = sum(statistics.variance(group) * (len(group) - 1) for group in groups) / degrees
    counts = [len(one.repeats[0].scores) for one in (best, view)]
    error = 100 * (variance / counts[0] + variance / counts[1]) ** 0.5
    width = student_quantile(statistics.NormalDist().cdf(tie), degrees) * error
    return variance > 0 and (best.score or 0.0) - (view.score or 0.0) <= width + 1e-9


def says_worse(view: IterationView, than: IterationView) -> bool:
    """Whether some check says less for one than for the other: it failed, fewer of its tests pass, or more of them are gone."""
    for now in view.verdicts:
        for then in than.verdicts:
            if now.name == then.name:
                if then.passed and not now.passed:
                    return True
                if (
                    then.tests is not None
                    and (now.tests is None or now.tests < then.tests)
                    and (then.tests, now.tests) != (0, None)
                ):
                    return True
                if now.missing > then.missing:
                    return True
    return False


def equals(views: tuple[IterationView, ...], criteria: SelectionCriteria, tie: float) -> list[IterationView]:
    known = [view for view in views if usable(view)]
    known = [view for view in known if not view.tampered] or known
    if not known:
        return []
    if criteria.mode == "most_recent_above_threshold":
        latest = choose(known, criteria).selected_iteration
        return [view for view in known if view.number == latest]
    best = min(known, key=lambda view: (rules_broken(view, criteria), -(view.score or 0.0), view.number))
    peers = [view for view in known if rules_broken(view, criteria) == rules_broken(best, criteria)]
    same = [view for view in peers if view.score == best.score or within_noise(known, best, view, tie)]
    return [view for view in same if not says_worse(view, same[0])]


def latest_of(views: list[IterationView]) -> int:
    together = [view for view in views if view is views[-1] or (view.batch is not None and view.batch == views[-1].batch)]
    return max(together, key=lambda view: (view.score or 0.0, -view.number)).number


def reference(views: tuple[IterationView, ...], criteria: SelectionCriteria, tie: float) -> int | None:
    found = equals(views, criteria, tie)
    return latest_of(found) if found else None


def kept(views: tuple[IterationView, ...], criteria: SelectionCriteria, tie: float) -> int | None:
    """What stands in the place of the start: the latest equal of it that an iteration made and that changed something."""
    found = [view for view in equals(views, criteria, tie) if view.parent is not None and view.failure not in NO_EFFECT]
    found = [view for view in found if view.batch is None or view.score == views[0].score]
    return latest_of(found) if found else None


@given(loops(), CRITERIA)
def test_it_is_the_latest_of_the_best(views: tuple[IterationView, ...], criteria: SelectionCriteria) -> None:
    assert reference(views, criteria, 1.0) == latest_best(Evidence(views=views), criteria)


@given(loops(repeats=True), CRITERIA, st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_within_known_noise_a_lower_score_is_an_equal(
    views: tuple[IterationView, ...], criteria: SelectionCriteria, tie: float
) -> None:
    evidence = Evidence(views=views, rules=NoiseRules(tie=tie))
    assert reference(views, criteria, tie) == latest_best(evidence, criteria)


@given(st.lists(VERDICTS, min_size=2, max_size=4))
def test_of_equal_scores_only_the_checks_tell(verdicts: list[tuple[Verdict, ...]]) -> None:
    views = tuple(
        IterationView(number=number, score=50.0, verification="failed", verdicts=one, parent=number - 1 if number else None)
        for number, one in enumerate(verdicts)
    )
    expected = {view.number for view in views if not says_worse(view, views[0])}
    assert expected == {view.number for view in equals_of_best(Evidence(views=views), HIGHEST)}
    assert (max(expected) or None) == select_kept(Evidence(views=views), HIGHEST).kept


@given(loops() | loops(repeats=True), CRITERIA, st.sampled_from([0.0, 1.0]))
def test_where_the_start_is_selected_the_latest_of_its_equals_stands(
    views: tuple[IterationView, ...], criteria: SelectionCriteria, tie: float
) -> None:
    evidence = Evidence(views=views, rules=NoiseRules(tie=tie))
    if not any(map(usable, views)):
        return
    plain, result = select(evidence, criteria), select_kept(evidence, criteria)
    expected = kept(views, criteria, tie) if plain.selected_iteration == 0 else None
    assert (plain.selected_iteration, plain.quality_score, expected) == (
        result.selected_iteration,
        result.quality_score,
        result.kept,
    )
    assert result.stands == (result.selected_iteration if expected is None else expected)
    assert (result == plain) == (expected is None)
    assert select_kept(Evidence(views=tuple(replace(view, parent=None) for view in views)), criteria).kept is None


@given(loops() | loops(repeats=True), CRITERIA)
def test_what_holds_of_every_loop(views: tuple[IterationView, ...], criteria: SelectionCriteria) -> None:
    evidence = Evidence(views=views)
    equals, latest = equals_of_best(evidence, criteria), latest_best(evidence, criteria)
    assert (latest is None) == (not equals) == (not any(map(usable, views)))
    assert equals == equals_of_best(Evidence(views=views[::-1]), criteria)
    if latest is None:
        return
    honest = [view for view in views if usable(view) and not view.tampered]
    if honest:
        assert not any(view.tampered for view in equals)
        selected = select(Evidence(views=tuple(honest)), criteria).selected_iteration
        assert min(view.number for view in equals) == selected  # the selection keeps the earliest of the same equals
    # an iteration that is worse than all never becomes what the next one starts from
    worst = IterationView(number=len(views), score=0.0, verification="failed")
    if honest and criteria.mode != "most_recent_above_threshold" and not evidence.noisy and (equals[0].score or 0.0) > 0:
        assert latest == latest_best(Evidence(views=(*views, worst)), criteria)


def test_where_nothing_is_measured_it_is_the_last() -> None:
    views = tuple(IterationView(number=number, score=100.0) for number in range(5))
    assert 4 == latest_best(Evidence(views=views), HIGHEST)
    assert 0 == select(Evidence(views=views), HIGHEST).selected_iteration


def test_one_that_tampered_is_only_used_where_nothing_else_has_a_score() -> None:
    views = (IterationView(number=0, score=50.0), IterationView(number=1, score=90.0, tampered=True))
    assert 0 == latest_best(Evidence(views=views), HIGHEST)
    assert 1 == latest_best(Evidence(views=(replace(views[0], score=None), views[1])), HIGHEST)


def read_twice(pairs: list[tuple[float, float]]) -> tuple[IterationView, ...]:
    return tuple(
        IterationView(
            number=number,
            score=round(100 * statistics.fmean(pair), 4),
            dimensions={"worth": statistics.fmean(pair)},
            repeats=(Repeats("worth", pair),),
        )
        for number, pair in enumerate(pairs)
    )


def test_small_losses_do_not_add_up() -> None:
    """Each is within the noise of the one before; only those within the noise of the best are equals."""
    answers = [(0.80, 0.82), (0.79, 0.81), (0.78, 0.80), (0.77, 0.79), (0.76, 0.78), (0.70, 0.72)]
    views = read_twice(answers)
    for until in range(1, len(views) + 1):
        assert min(until - 1, 1) == latest_best(Evidence(views=views[:until]), HIGHEST)


@pytest.mark.parametrize(("again", "expected"), [((0.5, 0.5), 0), ((0.9, 0.9), 2)])
def test_scores_that_were_read_again_count(again: tuple[float, float], expected: int) -> None:
    """A loop that ended, scored its finalists again and resumes a higher limit goes on from what won then."""
    pairs = [(0.7, 0.8), (0.2, 0.3), (0.72, 0.82)]
    views = read_twice(pairs)
    assert 2 == latest_best(Evidence(views=views), HIGHEST)
    readings = tuple(
        Reading(
            number=place + 1,
            kind="rescore",
            iteration=number,
            at="",
            attempt=None,
            score=round(100 * statistics.fmean(scores), 4),
            readings=(ScoreReading(dimension="worth", score=statistics.fmean(scores), repeats=scores),),
        )
        for place, (number, scores) in enumerate([(0, (0.8, 0.8)), (2, again)])
    )
    assert expected == latest_best(Evidence(views=views, readings=readings), HIGHEST)
