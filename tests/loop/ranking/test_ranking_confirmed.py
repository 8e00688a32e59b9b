"""What is read after the last iteration and in which order, what confirms the choice, and what optimism is."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from noise_kit import HIGHEST, NOISY, later, view

from jumar.loop.ranking.confirmed import certainty, next_reading
from jumar.loop.ranking.noise import Evidence, select
from jumar.model import IterationView, NoiseRules, Reading
from jumar.model.records import ReadingKind
from jumar.model.selection import SelectionCriteria


def sure(evidence: Evidence, criteria: SelectionCriteria = HIGHEST):
    found = certainty(evidence, criteria, select(evidence, criteria))
    assert found is not None
    return found


def played(evidence: Evidence, *, held_out: bool, broken: tuple[str, ...] = ()) -> list[tuple[str, int, int]]:
    """Make every reading that is asked for, each like the loop's own, until nothing is asked for."""
    asked = []
    while (wanted := next_reading(evidence, HIGHEST, held_out=held_out)) is not None:
        asked.append(tuple(wanted))
        scores = (
            ()
            if wanted.kind in broken
            else next(one for one in evidence.views if one.number == wanted.iteration).repeats[0].scores
        )
        made = later(len(asked), wanted.iteration, *scores, kind=wanted.kind, dimensions={"worth": 0.5})
        evidence = replace(evidence, readings=(*evidence.readings, made))
        assert len(asked) < 50
    return asked


ROUNDS = [("rescore", number, turn) for turn in (1, 2) for number in (3, 1, 4)]


def test_finalists_in_rounds_then_the_holdout_then_one_more_reading() -> None:
    held_out = [("holdout", number, 1) for number in (3, 0, 4)]  # the chosen, the first, the last
    evidence = Evidence(views=NOISY)
    assert [*ROUNDS, ("confirm", 3, 1)] == played(evidence, held_out=False)
    assert [*ROUNDS, *held_out] == played(evidence, held_out=True)
    assert [*ROUNDS, *held_out, ("confirm", 3, 1)] == played(evidence, held_out=True, broken=("holdout",))
    assert [*ROUNDS, ("confirm", 3, 1)] == played(evidence, held_out=False, broken=("confirm",))  # once, whatever came of it
    assert [("holdout", number, 1) for number in (1, 0, 4)] == played(
        Evidence(views=NOISY, rules=NoiseRules(rescore=0)), held_out=True
    )


def test_what_asks_for_nothing() -> None:
    assert [] == played(Evidence(views=()), held_out=True)
    assert [] == played(Evidence(views=(view(0, 0.5), view(1, 0.6))), held_out=False)
    assert [] == played(Evidence(views=(view(0, 0.5, 0.6),)), held_out=False)  # nothing was selected from
    assert [] == played(Evidence(views=(view(0, 0.5, 0.5), view(1, 0.6, 0.6))), held_out=False)
    assert [] == played(Evidence(views=NOISY, rules=NoiseRules(rescore=0)), held_out=False)
    clear = Evidence(views=(view(0, 0.20, 0.22), view(1, 0.80, 0.82)))
    assert [("confirm", 1, 1)] == played(clear, held_out=False)


def test_one_iteration_that_is_best_first_and_last_is_read_once() -> None:
    assert [("holdout", 0, 1)] == played(Evidence(views=(view(0, 0.5, 0.5),)), held_out=True)


def test_optimism_is_the_score_that_won_minus_the_one_confirmed() -> None:
    views = (view(0, 0.20, 0.22), view(1, 0.80, 0.84))
    evidence = Evidence(views=views, readings=(later(1, 1, 0.74, 0.78, kind="confirm", dimensions={"worth": 0.76}),))
    found = sure(evidence)
    assert found.confirmed is not None
    assert ((1, 76.0, "confirm"), 82.0, 6.0) == ((1, found.confirmed.score, found.confirmed.by), found.won, found.optimism)
    # one answer varies by sqrt((0.0002 + 0.0008) / 2); the mean of two by that over sqrt 2; t(0.975, 2) = 4.3027
    assert pytest.approx(4.3027 * 100 * math.sqrt(0.0005 / 2), abs=1e-3) == found.optimism_width
    assert (pytest.approx(100 * math.sqrt(0.0005 / 2)), 2) == (found.standard_error, found.degrees)
    best, last, first = found.compared
    assert (("best", 1, 82.0, 76.0, "confirm"), ("last", 1, 76.0)) == (
        (best.which, best.iteration, best.score, best.fair, best.by),
        (last.which, last.iteration, last.fair),
    )
    assert ("first", 0, 21.0, "loop") == (first.which, first.iteration, first.fair, first.by)
    assert found.known


def test_a_holdout_on_the_same_dimensions_goes_before_one_more_reading_and_one_on_others_behind_it() -> None:
    views = (view(0, 0.20, 0.22), view(1, 0.80, 0.84))
    same = later(1, 1, kind="holdout", score=70.0, status="ok", dimensions={"worth": 0.7})
    other = replace(same, dimensions={"exam": 0.7})
    own = later(2, 1, 0.74, 0.78, kind="confirm", dimensions={"worth": 0.76})
    by_same, by_own = sure(Evidence(views=views, readings=(same, own))), sure(Evidence(views=views, readings=(other, own)))
    assert ("holdout", 12.0, None) == (by_same.confirmed and by_same.confirmed.by, by_same.optimism, by_same.optimism_width)
    assert ("confirm", 6.0) == (by_own.confirmed and by_own.confirmed.by, by_own.optimism)
    alone = sure(Evidence(views=views, readings=(other,)))
    assert ("holdout", 70.0, None) == (
        alone.confirmed and alone.confirmed.by,
        alone.confirmed and alone.confirmed.score,
        alone.optimism,
    )


def test_all_three_are_compared_by_the_holdout_or_none_is() -> None:
    views = (view(0, 0.20, 0.22), view(1, 0.80, 0.84), view(2, 0.5, 0.54))
    held_out = [later(number + 1, number, kind="holdout", score=10.0 * number, status="ok") for number in (0, 1, 2)]
    by = {
        each.which: (each.iteration, each.fair, each.by)
        for each in sure(Evidence(views=views, readings=tuple(held_out))).compared
    }
    assert {"best": (1, 10.0, "holdout"), "last": (2, 20.0, "holdout"), "first": (0, 0.0, "holdout")} == by
    partly = {each.which: each.by for each in sure(Evidence(views=views, readings=tuple(held_out[:2]))).compared}
    assert {"best": None, "last": "loop", "first": "loop"} == partly


def test_a_reading_without_a_score_is_a_problem_in_words() -> None:
    views = (view(0, 0.20, 0.22), view(1, 0.80, 0.84))
    kinds: list[tuple[ReadingKind, str]] = [
        ("rescore", "scoring iteration 1 again"),
        ("confirm", "confirming iteration 1"),
        ("holdout", "the hold-out of iteration 1"),
    ]
    readings = tuple(later(number, 1, kind=kind, status_reason="gone") for number, (kind, _) in enumerate(kinds, 1))
    found = sure(Evidence(views=views, readings=readings))
    assert [f"{words} gave no score: gone" for _, words in kinds] == list(found.problems)
    assert (None, None) == (found.confirmed, found.optimism)
    bare = Evidence(views=(view(0, 0.5),), readings=(later(1, 0, kind="holdout"),))
    assert ("the hold-out of iteration 0 gave no score: scorer_broken",) == sure(bare).problems


def test_nothing_known_and_nothing_valid() -> None:
    plain = Evidence(views=(view(0, 0.5), view(1, 0.6)))
    found = sure(plain)
    assert (None, None, False) == (found.standard_error, found.degrees, found.known)
    assert None is certainty(
        Evidence(views=(IterationView(number=0, score=None, status="interrupted"),)), HIGHEST, select(plain, HIGHEST)
    )
    exact = sure(Evidence(views=(view(0, 0.5, 0.5), view(1, 0.6, 0.6))))
    assert (0.0, 2, True) == (exact.standard_error, exact.degrees, exact.known)
    assert {"standard_error": 0.0, "finalists": 1, "compared": 3, "confirmed": None} == {
        key: len(value) if isinstance(value, list) else value
        for key, value in exact.to_json().items()
        if key in {"standard_error", "finalists", "compared", "confirmed"}
    }


def test_rescored_finalists_are_shown_with_their_means() -> None:
    readings: tuple[Reading, ...] = (
        later(1, 3, 0.70, 0.74),
        later(2, 1, 0.80, 0.84),
        later(3, 4, 0.70, 0.74),
        later(4, 3, 0.70, 0.72),
    )
    found = sure(Evidence(views=NOISY, readings=readings, rules=NoiseRules(tie=0)))
    assert [(3, (72.0, 71.0)), (1, (82.0,)), (4, (72.0,))] == [(each.iteration, each.later) for each in found.finalists]
    assert (1, 81.0, True) == (found.chosen, found.won, found.rescored)
    assert found.finalists[0].standard_error < found.finalists[2].standard_error  # six answers against four
    shown = found.to_json()["finalists"][1]
    assert (1, 80.0, [82.0], 81.0) == (shown["iteration"], shown["score"], shown["later"], shown["mean"])
