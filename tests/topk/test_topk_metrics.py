"""Quality against labels: by hand, against a library that others trust, and against all shuffles where there are few."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.errors import ScoreError, StrategyError
from jumar.topk.strategies.clustering import ClusterSelectionStrategy
from jumar.topk.strategies.fixed_k import FixedKSelectionStrategy
from jumar.topk.tuning import LabelledQuery, labelled
from jumar.topk.tuning.metrics import METRICS, Estimate, Labels, Resamples, check_metric, choose, compare


def query(relevant: str, total: int | None = None, *, name: str = "q", scores: tuple[float, ...] | None = None) -> LabelledQuery:
    labels = tuple(sign == "+" for sign in relevant)
    given_scores = scores or tuple(1 - 0.01 * rank for rank in range(len(labels)))
    return LabelledQuery(name, given_scores, labels, sum(labels) if total is None else total)


def one(metric: str, relevant: str, kept: int, total: int | None = None, max_k: int = 5) -> float:
    return float(Labels.of([query(relevant, total)], max_k).prefix_quality(metric)[0, kept])


def test_by_hand():
    assert 2 / 3 == one("precision", "+-+--", 3)
    assert 2 / 4 == one("recall", "+-+--", 3, total=4)
    assert pytest.approx(4 / 7) == one("f1", "+-+--", 3, total=4)
    assert pytest.approx((1 + 1 / 2) / (1 + 1 / math.log2(3))) == one("ndcg", "+-+--", 3)
    assert [0, 0, 0, 0] == [one(metric, "+-", 0) for metric in METRICS]
    assert [0, 0, 0, 0] == [one(metric, "--", 2) for metric in METRICS]


def test_beyond_the_end_of_a_list_it_keeps_all():
    table = Labels.of([query("+-"), query("+-+-+")], 5).prefix_quality("f1")
    assert [2 / 3] * 4 == table[0, 2:].tolist()


def test_what_skips_is_counted_as_what_it_keeps():
    scores = (0.9, 0.89, 0.88, 0.87, 0.6, 0.59, 0.2)
    labels = Labels.of([query("+--++--", scores=scores)], 20)
    mask = choose(labels, ClusterSelectionStrategy(top_per_cluster=1))
    assert [0, 4] == np.flatnonzero(mask[0]).tolist()
    assert [1.0, 2 / 3, 0.8] == [labels.mask_quality(metric, mask)[0] for metric in ("precision", "recall", "f1")]
    gains = 1 + 1 / math.log2(3)
    assert pytest.approx(gains / (gains + 1 / 2)) == labels.mask_quality("ndcg", mask)[0]


@given(st.lists(st.tuples(st.text("+-", max_size=12), st.integers(0, 5)), min_size=1, max_size=6), st.integers(1, 9))
def test_a_prefix_and_its_mask_agree(rows: list[tuple[str, int]], k: int):
    labels = Labels.of([query(text, text.count("+") + more) for text, more in rows], 9)
    mask = choose(labels, FixedKSelectionStrategy(k))
    for metric in METRICS:
        assert np.allclose(labels.prefix_quality(metric)[:, k], labels.mask_quality(metric, mask))
        assert ((labels.prefix_quality(metric) >= 0) & (labels.prefix_quality(metric) <= 1 + 1e-12)).all()


def slow_ndcg(each: LabelledQuery, kept: int, max_k: int) -> float:
    grades = each.grades or tuple(map(float, each.relevant))
    missed = each.missed or (1.0,) * (each.relevant_total - sum(each.relevant))

    def gain(found: list[float]) -> float:
        return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(found, 1))

    return gain(list(grades[:kept])) / (gain(sorted([*grades, *missed], reverse=True)[:max_k]) or 1.0)


@given(
    st.lists(
        st.tuples(st.lists(st.integers(-1, 3), max_size=12), st.lists(st.integers(1, 3), max_size=4)), min_size=1, max_size=5
    ),
    st.integers(1, 9),
)
def test_grades_count_for_ndcg_and_only_there(rows: list[tuple[list[int], list[int]]], k: int):
    given_rows = [
        {"scores": [1 - 0.01 * rank for rank in range(len(row))], "relevant": row, "missed": more} for row, more in rows
    ]
    queries = labelled(given_rows)
    flat = labelled(
        [{**row, "relevant": [int(g > 0) for g in row["relevant"]], "missed": [1 for _ in row["missed"]]} for row in given_rows]
    )
    labels, binary = Labels.of(queries, 9), Labels.of(flat, 9)
    mask = choose(labels, FixedKSelectionStrategy(k))
    expected = [slow_ndcg(each, k, 9) for each in queries]
    assert np.allclose(expected, labels.prefix_quality("ndcg")[:, k], rtol=1e-12, atol=0)
    assert np.allclose(expected, labels.mask_quality("ndcg", mask), rtol=1e-12, atol=0)
    for metric in ("f1", "precision", "recall"):
        assert (binary.mask_quality(metric, mask) == labels.mask_quality(metric, mask)).all()


@pytest.mark.parametrize("best", [1, 3])
def test_the_same_figures_as_ir_measures(best: int):
    ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is not installed")
    draw = random.Random(5)
    queries = labelled(
        {
            "query_id": f"q{number}",
            "scores": [1 - 0.01 * rank for rank in range(15)],
            "relevant": [draw.choice((0, 0, draw.randint(1, best))) for _ in range(15)],
            "missed": [draw.randint(1, best) for _ in range(2)],
        }
        for number in range(30)
    )
    assert (best > 1) == any(each.grades for each in queries)
    labels = Labels.of(queries, 10)
    kept = {each.query_id: draw.randint(1, 10) for each in queries}
    judged = [
        ir_measures.Qrel(each.query_id, f"d{place}", int(grade))
        for each in queries
        for place, grade in enumerate(each.grades or each.relevant)
        if grade
    ]
    judged += [
        ir_measures.Qrel(each.query_id, f"missing{place}", int(grade))
        for each in queries
        for place, grade in enumerate(each.missed or (1, 1))
    ]
    run = [
        ir_measures.ScoredDoc(each.query_id, f"d{place}", score)
        for each in queries
        for place, score in enumerate(each.scores[: kept[each.query_id]])
    ]
    measures = {"precision": "SetP", "recall": "SetR", "f1": "SetF", "ndcg": "nDCG@10"}
    parsed = {name: ir_measures.parse_measure(text) for name, text in measures.items()}
    found = {(row.query_id, str(row.measure)): row.value for row in ir_measures.iter_calc(parsed.values(), judged, run)}
    for name, measure in parsed.items():
        table = labels.prefix_quality(name)
        ours = [table[row, kept[each.query_id]] for row, each in enumerate(queries)]
        assert pytest.approx(ours) == [found[each.query_id, str(measure)] for each in queries], name


# ----------------------------------------------------------------------------------------------------------- skill


def test_skill_is_what_all_shuffles_together_leave():
    table = Labels.of([query("+--+"), query("++--", 3), query("---+"), query("+---")], 4).prefix_quality("f1")
    kept = np.array([4, 2, 4, 1])
    quality = table[np.arange(4), kept]
    shuffled = [
        np.mean([table[row, kept[other]] for row, other in enumerate(order)]) for order in itertools.permutations(range(4))
    ]
    assert pytest.approx(quality.mean() - np.mean(shuffled)) == Resamples(4, resamples=10).skill(quality, kept, table).value


def test_a_fixed_number_has_no_skill_and_the_best_in_hindsight_has_all():
    rows = [query("+" * good + "-" * (9 - good), name=str(good)) for good in range(1, 9)]
    found = compare(rows, [FixedKSelectionStrategy(3)], max_k=9)
    assert (0, 0, 0) == found.rows[0].skill
    assert (1, 1, 1) == found.oracle_f1
    assert pytest.approx(1.0) == sum(value for value in (found.rows[0].f1.value, found.rows[0].oracle_gap.value) if value)


# ------------------------------------------------------------------------------------------------------- intervals


def bounds(estimate: Estimate) -> tuple[float, float, float]:
    value, low, high = estimate
    assert value is not None
    assert low is not None
    assert high is not None
    return low, value, high


def test_intervals_are_the_same_again_and_hold_the_figure():
    draw = random.Random(1)
    rows = [query("".join(draw.choices("+-", k=8))) for _ in range(40)]
    found, again = compare(rows, max_k=8), compare(rows, max_k=8)
    assert found == again
    for row in found.rows:
        for figure in (row.f1, row.precision, row.recall, row.ndcg, row.mean_k, row.oracle_gap):
            low, value, high = bounds(figure)
            assert low <= value <= high


def test_intervals_cover_what_they_should():
    draw = np.random.default_rng(0)
    inside = 0
    for seed in range(200):
        values = draw.beta(2, 3, size=60)
        low, _, high = bounds(Resamples(60, resamples=400, seed=seed).means(values[:, None])[0])
        inside += low <= 0.4 <= high
    print(f"intervals that hold the true mean: {inside} of 200")
    assert 180 <= inside


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch):
    columns = np.random.default_rng(0).random((50, 2))
    whole = Resamples(50, resamples=100).means(columns)
    monkeypatch.setattr("jumar.topk.tuning.metrics._CELLS", 50 * 7)
    assert whole == Resamples(50, resamples=100).means(columns)


# ------------------------------------------------------------------------------------------------------ comparison


def test_abstention_is_counted_on_both_sides():
    rows = [
        query("+-", scores=(0.9, 0.2), name="answered"),
        query("+-", scores=(0.3, 0.2), name="wrongly empty"),
        query("--", scores=(0.8, 0.2), name="wrongly answered"),
        query("--", scores=(0.3, 0.2), name="rightly empty"),
    ]
    found = compare(rows, ["elbow"], min_k=0)
    row = found.rows[0]
    assert (4, 2) == (found.queries, found.in_scope)
    assert (0.5, 0.5, 0.5, 0.5) == (row.f1.value, row.wrongly_empty.value, row.wrongly_answered.value, row.mean_k.value)
    assert 1.0 == compare(rows, ["elbow"], min_k=1).rows[0].wrongly_answered.value


def test_without_queries_in_scope_there_are_no_figures():
    found = compare([query("--")], ["fixed_k"])
    row = found.rows[0]
    assert (None, None, None) == row.f1 == row.skill == found.oracle_f1
    assert 2.0 == row.mean_k.value
    assert (None, None, None) == compare([query("+")], ["fixed_k"]).rows[0].wrongly_answered


def test_a_strategy_that_a_scale_makes_meaningless_has_a_reason():
    found = compare([query("+-", scores=(3.0, -1.0))], ["elbow", "fixed_k"], scale="logit")
    assert ["fixed_k"] == [row.strategy for row in found.rows]
    assert "logit" in found.refused["elbow"]


def test_empty_rankings_are_fine():
    found = compare([LabelledQuery("none", (), (), 3), query("+")], ["fixed_k"])
    assert (0.5, 0.5) == (found.rows[0].f1.value, found.rows[0].mean_k.value)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], {}, "no queries"),
        ([query("+")], {"min_k": 3, "max_k": 2}, "min_k is 3 and max_k 2"),
        ([query("+")], {"strategies": ["elbwo"]}, "elbow"),
        ([query("++", scores=(0.1, 0.2))], {}, "query q: the scores are not sorted"),
        ([query("++", scores=(0.2, 0.1))], {"scale": "distance"}, "query q: the scores are not sorted"),
        ([{"scores": [0.2]}], {}, "query 0: 'relevant' is None"),
        ([{"scores": [0.2, 0.1], "relevant": [1]}], {}, "query 0: 2 scores and 1 labels"),
        ([{"query_id": "\x1b", "scores": [0.2], "relevant": [1], "relevant_total": 0}], {}, "query \\x1b: relevant_total is 0"),
        ([{"scores": [float("nan")], "relevant": [1]}], {}, "position 0 is nan"),
        ([{"scores": ["a"], "relevant": [1]}], {}, "query 0: the score at position 0 is 'a'"),
        ([{"scores": [0.2], "relevant": [1], "relevant_total": 1.5}], {}, "'relevant_total' is 1.5"),
        ([{"scores": [0.2], "relevant": [1], "relevant_total": np.bool_(True)}], {}, "'relevant_total' is True"),
        (
            [{"scores": [0.2], "relevant": [1], "relevant_total": 10**20}],
            {},
            "query 0: relevant_total is 100000000000000000000; no",
        ),
        ([{"scores": np.array(0.2), "relevant": [1]}], {}, "query 0: 'scores' is array(0.2); give a list"),
        ([{"scores": np.array([[0.2]]), "relevant": [1]}], {}, "query 0: the score at position 0 is [0.2]: give a number"),
        ([{"scores": [0.2], "relevant": "1"}], {}, "query 0: 'relevant' is '1'; give a list"),
        ([{"scores": [0.2], "relevant": [1], "missed": 1}], {}, "query 0: 'missed' is 1; give a list of grades"),
        ([query("+")], {"resamples": 0}, "resamples is 0: give 1 or more"),
        ([query("+")], {"seed": -1}, "seed is -1: give 0 or more"),
    ],
)
def test_errors_name_the_query(rows: list[Any], options: dict[str, Any], message: str):
    with pytest.raises(ValueError) as caught:
        compare(rows, **options)
    assert message in str(caught.value)
    assert isinstance(caught.value, ScoreError | StrategyError)


def test_mappings_and_grades():
    found = labelled([{"scores": [0.2, 0.1], "relevant": [2, 0]}, {"query_id": 7, "scores": [], "relevant": []}])
    assert (LabelledQuery("0", (0.2, 0.1), (True, False), 1, (2.0, 0.0)), LabelledQuery("7", (), (), 0)) == found
    assert [True, False] == [each.in_scope for each in found]
    plain, missing, below = labelled(
        [
            {"scores": [0.2, 0.1], "relevant": [True, 0], "missed": [1]},
            {"scores": [0.2], "relevant": [0], "missed": [3, 0.5]},
            {"scores": [0.2, 0.1], "relevant": [3, -2]},
        ]
    )
    assert LabelledQuery("0", (0.2, 0.1), (True, False), 2) == plain
    assert LabelledQuery("1", (0.2,), (False,), 2, (), (3.0, 0.5)) == missing
    assert ((True, False), (3.0, 0.0)) == (below.relevant, below.grades)
    with pytest.raises(ScoreError, match="'grades' and 'relevant' do not fit"):
        LabelledQuery("q", (0.2,), (True,), 1, (0.0,))
    with pytest.raises(ScoreError, match="a grade is not finite"):
        LabelledQuery("q", (0.2,), (True,), 2, (), (math.inf,))


def test_arrays_and_their_numbers_are_lists_and_numbers():
    plain = [{"scores": [0.5, 0.25], "relevant": [2, 0], "relevant_total": 2, "missed": [3]}]
    arrays = [
        {
            "scores": np.array([0.5, 0.25], dtype=np.float32),
            "relevant": np.array([2, 0]),
            "relevant_total": np.int64(2),
            "missed": np.array([3.0]),
        }
    ]
    assert labelled(plain) == labelled(arrays)
    signs = [{"scores": np.array([0.5, 0.25]), "relevant": labels} for labels in (np.array([True, False]), [np.True_, np.False_])]
    assert [LabelledQuery("0", (0.5, 0.25), (True, False), 1), LabelledQuery("1", (0.5, 0.25), (True, False), 1)] == list(
        labelled(signs)
    )
    assert (LabelledQuery("0", (), (), 0),) == labelled(
        [{"scores": np.array([]), "relevant": np.array([]), "missed": np.array([])}]
    )
    assert compare(plain, ["fixed_k"]) == compare(arrays, ["fixed_k"])


@pytest.mark.parametrize("total", [10**12, 2**53])
@pytest.mark.parametrize("relevant", [[1, 0], [2, 0]])
def test_as_many_relevant_items_as_one_likes_take_no_room(total: int, relevant: list[int]):
    few, many = ([{"scores": [0.9, 0.8], "relevant": relevant, "relevant_total": count}] for count in (20, total))
    expected, found = (Labels.of(labelled(rows), 5) for rows in (few, many))

    assert (expected.prefix_quality("ndcg") == found.prefix_quality("ndcg")).all()
    assert pytest.approx(2 / (1 + total)) == found.prefix_quality("f1")[0, 1]


@pytest.mark.parametrize("options", [{"resamples": 0}, {"resamples": 1.5}, {"seed": -1}, {"level": 1.0}])
def test_what_cannot_be_drawn_is_refused(options: dict[str, Any]):
    with pytest.raises(StrategyError, match=next(iter(options))):
        Resamples(4, **options)


def test_metrics_have_names():
    with pytest.raises(StrategyError, match="choose one of f1, precision, recall, ndcg"):
        check_metric("map")
