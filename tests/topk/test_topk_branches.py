"""Corners of `jumar.topk` that no example comes near: odd strategies, odd tables, numbers at the end of their range."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import jumar.topk.tuning.calibrate as calibration
from jumar.errors import ScoreError
from jumar.testing.topk import check_strategy
from jumar.topk import ScoredItem, SelectionStrategy, create_selection_strategy, select_batch
from jumar.topk.base import RuleStrategy, parameters
from jumar.topk.batch import BatchCuts
from jumar.topk.retrieval import JsonFormatter, retrieve_sync
from jumar.topk.strategies.clustering import ClusterSelectionStrategy
from jumar.topk.strategies.conformal import ConformalSelectionStrategy
from jumar.topk.tuning import LabelledQuery
from jumar.topk.tuning.calibrate import fit_probabilities
from jumar.topk.tuning.tune import space
from jumar.topk.vector_store import NumpyVectorStore


@dataclass(frozen=True)
class EveryOther(RuleStrategy):
    """Half of the ranking; says nothing about why."""

    NAME: ClassVar[str] = "every_other"

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        return len(scores) // 2, {}


class Loose(EveryOther):
    """Names no positions and still says that it may keep others than the first ones."""

    prefix: ClassVar[bool] = False


def items(scores: list[float]) -> list[ScoredItem[int]]:
    return [ScoredItem(position, score) for position, score in enumerate(scores)]


def kept(strategy: SelectionStrategy, scores: list[float]) -> list[int]:
    return [one.item for one in strategy.select(items(scores)).selected]


# ----------------------------------------------------------------------------------------------- strategies of others


@pytest.mark.parametrize("strategy", [EveryOther(), Loose()])
def test_a_rule_of_ones_own_keeps_the_contract_whatever_it_says_about_prefixes(strategy: RuleStrategy):
    assert [0, 1] == kept(strategy, [0.9, 0.8, 0.7, 0.6])
    assert 0 < check_strategy(strategy, count=40)


class Quick(EveryOther):
    """Half of the ranking, for many queries at once too."""

    asked: ClassVar[list[int]] = []

    def keep_many(self, table: Any, max_k: int, min_k: int) -> BatchCuts:  # noqa: ARG002
        self.asked.append(table.shape[1])
        return BatchCuts(np.full(table.shape[1], len(table) // 2))


class Quarter(Quick):
    """Another rule, which is not that of the class it derives from for many queries."""

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        return len(scores) // 4, {}


def test_a_rule_for_many_queries_is_asked_once_and_is_not_inherited():
    Quick.asked.clear()
    table = [[0.9, 0.8, 0.7, 0.6]] * 3
    assert [2, 2, 2] == select_batch(table, Quick()).tolist()
    assert [3] == Quick.asked
    assert [1, 1, 1] == select_batch(table, Quarter()).tolist()
    assert [3] == Quick.asked


def test_without_a_fitted_share_of_the_best_score_everything_is_kept():
    strategy = ConformalSelectionStrategy(on="ratio")
    assert [0, 1, 2] == kept(strategy, [0.9, 0.2, 0.1])
    assert [3] == select_batch([[0.9, 0.2, 0.1]], strategy).tolist()


def test_without_evidence_the_explanation_has_the_cut_and_no_runner_up():
    explained = EveryOther().select(items([0.9, 0.8, 0.7, 0.6])).explain()
    assert (2, None, None) == (explained.kept, explained.runner_up, explained.margin)
    assert "every_other keeps 2 of 4 items" in str(explained)


def test_a_strategy_that_is_no_dataclass_has_no_parameters():
    class Plain(SelectionStrategy):
        @property
        def name(self) -> str:
            return "plain"

        def select(self, *_: Any, **__: Any) -> Any:
            raise AssertionError

    assert () == parameters(Plain)
    assert ("eps", "min_cluster_size", "top_per_cluster", "min_score", "scale") == parameters(ClusterSelectionStrategy)
    assert {} == Plain().params()


@pytest.mark.parametrize("scores", [[0.9], [0.9, 0.89, 0.88, 0.87, 0.5], [0.9, 0.7, 0.69, 0.5, 0.49, 0.1]])
def test_the_number_of_a_strategy_of_positions_is_how_many_it_keeps(scores: list[float]):
    strategy = ClusterSelectionStrategy()
    number, metadata = strategy.cut(scores, 20, 1)
    result = strategy.select(items(scores))
    assert (len(result.selected), result.metadata) == (number, metadata)


# ------------------------------------------------------------------------------------------------------- odd numbers


def test_a_floor_below_zero_ends_the_elbow():
    strategy = create_selection_strategy("elbow", min_score=-0.5)
    assert [0, 1] == kept(strategy, [-0.1, -0.2, -0.6])
    assert [0, 1, 2] == kept(strategy, [-0.1, -0.2, -0.5])
    assert [2, 3] == select_batch([[-0.1, -0.2, -0.6], [-0.1, -0.2, -0.5]], strategy).tolist()


@pytest.mark.parametrize("top", [1e140, 1e-150])
def test_scores_that_vanish_beside_the_best_have_no_share_of_the_entropy(top: float):
    strategy = create_selection_strategy("entropy", min_score=None, scale="bm25")
    scores = [top, top * 1e-10, *[top * 1e-150 * 1e-150] * 3, *[0.0] * 5]
    result = strategy.select(items(scores))
    share = 1e-10 / (1 + 1e-10)
    assert pytest.approx(-share * np.log(share) + share, rel=1e-3) == result.metadata["entropy"]
    assert ([0, 1, 2], "high") == ([one.item for one in result.selected], result.metadata["confidence"])
    assert [3] == select_batch([scores], strategy).tolist()
    lone = strategy.select(items([1e140, 1e-200, 1e-200]))
    assert (0.0, 3) == (lone.metadata["entropy"], len(lone.selected))


# -------------------------------------------------------------------------------------------------------- odd tables


def test_arrays_of_objects_are_read_row_by_row():
    table = np.array([[0.9, 0.8, 0.1], [0.9, 0.2, 0.1]], dtype=object)
    strategy = create_selection_strategy("score_threshold")
    assert [2, 1] == select_batch(table, strategy).tolist()
    with pytest.raises(ScoreError, match="query 1: the score at position 0 is 'a'"):
        select_batch(np.array([[0.9, 0.8], ["a", 0.2]], dtype=object), strategy)


def test_candidates_that_a_scale_refuses_are_left_out_and_the_others_stay():
    below = [LabelledQuery(str(n), (3.0, 1.0, -2.0), (True, False, False), 1) for n in range(3)]
    above = [LabelledQuery(each.query_id, (3.0, 2.0, 1.0), each.relevant, 1) for each in below]
    some, every = (space("elbow", queries, max_k=5, scale="bm25") for queries in (below, above))
    assert 0 < len(some) < len(every)
    assert all(one.params()["min_score"] is None or one.params()["min_score"] >= 0 for one in some)
    assert [] == space("elbow", above, max_k=5, scale="logit")


# ------------------------------------------------------------------------------------------------------------- a fit


def test_a_fit_that_is_cut_short_is_finite_and_on_the_right_side(monkeypatch: pytest.MonkeyPatch):
    features = np.array([(0.9, 0.0), (0.8, 0.7), (0.2, 1.1), (0.1, 1.4)])
    relevant = np.array([1.0, 1.0, 0.0, 0.0])
    whole = fit_probabilities(features, relevant)
    monkeypatch.setattr(calibration, "_STEPS", 1)
    short = fit_probabilities(features, relevant)
    assert np.isfinite(short).all()
    assert 0 < short[0] < whole[0]


# --------------------------------------------------------------------------------------------------------- retrieval


def test_a_store_that_grows_again_and_again_finds_what_came_first():
    store: NumpyVectorStore[int] = NumpyVectorStore()
    angles = np.linspace(0.0, 1.5, 200)
    for number, angle in enumerate(angles):
        store.add([number], [[np.cos(angle), np.sin(angle)]], tenant_id="even" if number % 2 == 0 else "odd")
    assert [0, 1, 2] == [one.item for one in store.search([1.0, 0.0], limit=3)]
    assert [199, 197] == [one.item for one in store.search([0.0, 1.0], limit=2, tenant_id="odd")]


def test_a_record_of_something_else_is_a_line_without_a_selection():
    record = logging.LogRecord("jumar.topk", logging.INFO, __file__, 1, "started %s", ("up",), None)
    assert {"event": "started up", "time": record.created} == json.loads(JsonFormatter().format(record))


def test_a_store_whose_answer_must_be_awaited_is_refused_whatever_it_answers_with():
    class Promise:
        def __await__(self) -> Any:
            raise AssertionError

    class Promising:
        def search(self, *_: Any, **__: Any) -> Any:
            return Promise()

    with pytest.raises(TypeError, match=r"Promising\.search must be awaited"):
        retrieve_sync("rules", [1.0], Promising())


def test_a_recall_where_nothing_relevant_was_retrieved_does_not_exist():
    strategy = ConformalSelectionStrategy()
    missed = {"query_id": "q", "scores": [0.9, 0.8], "relevant": [0, 0], "relevant_total": 2}
    with pytest.raises(ScoreError, match="no query with anything relevant retrieved"):
        calibration.realised_recall(strategy, [missed])
