"""What a file of items could prove, before anything is learned."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import call
from hypothesis import given
from hypothesis import strategies as st
from learn_items import judged_items, write_items

from jumar.cli.learn.display import LearningDisplay
from jumar.judging.items.item import Item
from jumar.judging.tracking import FEWEST_GROUPS, FEWEST_ITEMS
from jumar.learning.material import Target
from jumar.learning.plan import EFFECTS, INTRACLASS, Plan, make_plan
from jumar.learning.proof.evidence import FEWEST_AGAIN, Baselines, compare_with_judge, noise_ceiling
from jumar.learning.proof.split import FEWEST_TO_SPLIT


def items(groups: int, each: int = 1) -> list[Item]:
    return [Item(f"i{number}", f"text {number}", group=f"g{number // each}") for number in range(groups * each)]


def judged(scores: Any, groups: list[str | None], readings: Any = None) -> list[Target]:
    return [
        Target(
            Item(f"i{place}", "x" * (50 + 7 * (place % 90)), group=group),
            float(score),
            tuple(readings[place]) if readings is not None else (float(score),),
        )
        for place, (score, group) in enumerate(zip(scores, groups, strict=True))
    ]


def shown(plan: Plan, effect: float, times: int = 30) -> float:
    """Return in which share of simulated files with as many held-out groups as the plan asks for a verdict is ``tracks``."""
    groups = next(one.heldout_groups for one in plan.effects if one.effect == effect)
    each = plan.items // plan.groups
    draw = np.random.default_rng(7)
    numbers = np.repeat(np.arange(groups), each)

    def values() -> Any:
        between = draw.standard_normal(groups)[numbers]
        return np.sqrt(plan.intraclass) * between + np.sqrt(1 - plan.intraclass) * draw.standard_normal(numbers.size)

    tracked = 0
    for time in range(times):
        judge, other = values(), values()
        guess = effect * (effect * judge + np.sqrt(1 - effect**2) * other)
        scored = judged(np.clip(3 + 0.4 * judge, 1, 5), [f"g{number}" for number in numbers])
        found = compare_with_judge(
            scored, (3 + 0.4 * guess).tolist(), Baselines(constant=3.0, intercept=3.0, slope=0.0), seed=time
        )
        tracked += found.verdict == "tracks"
    return tracked / times


@pytest.mark.parametrize(("effect", "each"), [(0.4, 3), (0.6, 1)])
def test_as_many_groups_as_a_plan_asks_for_prove_the_effect_in_four_of_five_simulated_files(effect: float, each: int) -> None:
    plan = make_plan(items(50, each), heldout=0.4)
    assert 0.6 <= shown(plan, effect) <= 1.0
    fewer = make_plan(items(50, each), heldout=0.4)
    needed = [one.heldout_groups for one in fewer.effects]
    assert needed == sorted(needed, reverse=True), "what is larger is seen on fewer"


@given(st.integers(0, 200), st.integers(1, 6), st.sampled_from([0.1, 0.25, 0.4, 0.7, 0.9]))
def test_what_a_plan_says_adds_up(groups: int, each: int, heldout: float) -> None:
    plan = make_plan(items(groups, each), heldout=heldout)
    assert (groups * each, groups) == (plan.items, plan.groups)
    assert plan.heldout_items == plan.heldout_groups * each
    assert (plan.heldout_groups == 0) == (groups < FEWEST_TO_SPLIT)
    enough = plan.heldout_groups >= FEWEST_GROUPS and plan.heldout_items >= FEWEST_ITEMS
    assert enough or plan.smallest is None
    assert ("cannot prove anything" in plan.says) == (plan.smallest is None)
    for one in plan.effects:
        assert one.groups * heldout >= one.heldout_groups >= FEWEST_GROUPS
        assert (plan.smallest is not None and plan.smallest <= one.effect) == (
            enough and plan.heldout_groups >= one.heldout_groups
        )
    json.dumps(plan.to_json(), allow_nan=False)
    assert all(len(label) < 10 for label, _ in plan.lines())


@given(st.integers(1, 6), st.sampled_from([0.1, 0.25, 0.4, 0.7, 0.9]))
def test_as_many_groups_as_are_asked_for_could_prove_something(each: int, heldout: float) -> None:
    fewest = make_plan(items(FEWEST_TO_SPLIT, each), heldout=heldout).fewest_groups
    assert make_plan(items(fewest, each), heldout=heldout).smallest is not None


def test_items_of_a_group_that_the_judge_scores_alike_count_for_less() -> None:
    draw = np.random.default_rng(0)
    level = draw.normal(3, 0.6, 60).repeat(4)
    groups = [f"g{number}" for number in range(60) for _ in range(4)]
    alike = judged(level + draw.normal(0, 0.2, 240), list(groups))
    apart = judged(draw.normal(3, 0.6, 240), list(groups))
    constant = judged(np.full(240, 3.0), list(groups))
    alone = judged(draw.normal(3, 0.6, 240), [None] * 240)
    plans = [make_plan(items(100, 4), heldout=0.4, judged=one) for one in (alike, apart, constant, alone, alone[:1])]
    assert 0.85 < plans[0].intraclass < 0.95, "the variance between groups is nine times that inside"
    assert [INTRACLASS] * 4 == [one.intraclass for one in plans[1:]]
    assert all(one.heldout_groups > other.heldout_groups for one, other in zip(plans[0].effects, plans[1].effects, strict=True))


@pytest.mark.parametrize(("noise", "readings"), [(0.2, 1), (0.4, 1), (0.6, 3), (0.8, 2), (0.8, 5), (0.8, 15)])
def test_the_ceiling_is_what_the_true_scores_themselves_attain(noise: float, readings: int) -> None:
    draw = np.random.default_rng(3)
    true = draw.normal(3, 0.7, 4000)
    read = true[:, None] + draw.normal(0, noise, (4000, readings))
    again = true[:, None] + draw.normal(0, noise, (4000, 2))
    groups: list[str | None] = [None] * 4000
    scores = np.median(read, axis=1)  # that is what counts of several readings
    found = noise_ceiling(judged(scores, groups, read), judged(true, groups, again))
    assert found is not None
    assert found.reliability == pytest.approx(float(np.corrcoef(true, scores)[0, 1]) ** 2, abs=0.03)
    assert found.spearman == pytest.approx(float(np.corrcoef(true, scores)[0, 1]), abs=0.015)
    assert found.mae == pytest.approx(float(np.abs(true - scores).mean()), abs=0.015)
    assert found.attained is None
    attained = noise_ceiling(judged(scores, groups, read), judged(true, groups, again), found.spearman / 2)
    assert attained is not None
    assert attained.attained == pytest.approx(0.5)


def test_no_ceiling_is_known_from_few_repeats_or_scores_that_are_only_noise() -> None:
    draw = np.random.default_rng(3)
    groups: list[str | None] = [None] * 40
    read = draw.normal(3, 0.7, (40, 2))
    noisy = judged(np.full(40, 3.0), groups, read)
    assert noise_ceiling(noisy, noisy) is None
    several = judged(read.mean(axis=1), groups, np.stack([read.mean(axis=1)] * 2, axis=1))
    assert noise_ceiling(several, several[: FEWEST_AGAIN - 1]) is None
    assert noise_ceiling(several[:1], several) is None
    found = noise_ceiling(several, several, -0.3)
    assert found is not None
    assert (1.0, 0.0, 0.0) == (found.spearman, found.mae, found.attained)


def test_an_effect_above_the_judges_own_ceiling_is_said_to_be_out_of_reach() -> None:
    draw = np.random.default_rng(5)
    read = draw.normal(3, 0.35, 100)[:, None] + draw.normal(0, 0.6, (100, 2))
    plan = make_plan(items(50), heldout=0.4, judged=judged(read.mean(axis=1), [None] * 100, read))
    assert plan.smallest is None, "20 items are too few"
    plan = make_plan(items(50, 2), heldout=0.4, judged=judged(read.mean(axis=1), [None] * 100, read))
    assert plan.smallest is not None
    assert plan.ceiling is not None
    assert plan.ceiling.spearman < plan.smallest
    assert "which the judge's own noise does not allow" in plan.says
    assert "no set can rank better than" in dict(plan.lines())["judge"]


# ------------------------------------------------------------------------------------------------------ as it is printed


def test_a_plan_asks_nobody_and_writes_nothing(tmp_path: Path) -> None:
    path = write_items(tmp_path / "items.jsonl", judged_items(60, 2, seed=1))
    told = " ".join(call("learn", str(path), "--plan", check=0).out.split())
    assert "items 120 items in 60 groups" in told
    assert "held out 40% of the groups: 48 held-out items in 24 groups" in told
    assert "its own noise is not known" in told
    assert "0.4 needs" in told
    assert "could prove a rank correlation with the judge of about" in told
    recorded = json.loads(call("learn", str(path), "--plan", "--judge", f"replay:{path}", "--json", check=0).out)
    assert recorded["ceiling"]["reliability"] > 0.5
    assert list(EFFECTS) == [one["effect"] for one in recorded["effects"]]
    paid = call("learn", str(path), "--plan", "--judge", "openai:a-model", "-o", str(tmp_path / "out"), check=0)
    assert "its own noise is not known" in " ".join(paid.out.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda score: 3.0, "it gave all open items the score 3.00: there is nothing to learn from it"),
        (lambda score: score, "too few of its recorded scores have repeats"),
        (lambda score: (score - 1) * 25, "no recorded scores were read"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*out_of_range")
def test_a_plan_says_why_the_judges_noise_is_not_known(change: Callable[[float], float], says: str, tmp_path: Path) -> None:
    records = [{**one, "judge_scores": [change(one["judge_scores"][0])]} for one in judged_items(20, 2, readings=1)]
    path = write_items(tmp_path / "items.jsonl", records)
    assert says in " ".join(call("learn", str(path), "--plan", "--judge", f"replay:{path}", check=0).out.split())


def test_a_plan_for_a_judge_on_another_scale_warns_of_what_gets_no_score(tmp_path: Path) -> None:
    records = [{**one, "judge_scores": [score - 1 for score in one["judge_scores"]]} for one in judged_items(40, 2)]
    path = write_items(tmp_path / "items.jsonl", records)
    told = call("learn", str(path), "--plan", "--judge", f"replay:{path}", check=0).err
    assert "48 open items got no score (" in told
    assert "--judge-scale LO,HI" in told
    right = call("learn", str(path), "--plan", "--judge", f"replay:{path}", "--judge-scale", "0,4", check=0)
    assert "got no score" not in right.err


def test_a_plan_for_five_items_says_that_they_are_too_few_and_how_many_are_enough(tmp_path: Path) -> None:
    path = write_items(tmp_path / "items.jsonl", judged_items(1, 5, seed=1))
    told = " ".join(call("learn", str(path), "--plan", "--judge", f"replay:{path}", check=0).out.split())
    assert "needs 10 groups or more, and there is 1" in told
    assert "0 held-out items in 0 groups cannot prove anything: 30 in 20 are the least, so give 50 groups or more" in told


def test_without_plan_a_folder_and_a_judge_are_needed(tmp_path: Path) -> None:
    path = write_items(tmp_path / "items.jsonl", judged_items(12, 2, seed=1))
    assert "'-o'" in call("learn", str(path), "--judge", f"replay:{path}", check=2).err
    assert "give --judge" in call("learn", str(path), "-o", str(tmp_path / "out"), check=2).err


def test_the_first_lines_of_a_run_say_what_the_items_could_prove() -> None:
    for groups, lines in ((60, 2), (12, 1)):
        stream = io.StringIO()
        LearningDisplay(stream, lambda _: None).planned(make_plan(items(groups, 2), heldout=0.4))
        told = stream.getvalue().splitlines()
        assert lines == len(told), "that items are too few is a warning of its own"
        assert f"items     {groups * 2} items in {groups} groups, {round(0.4 * groups) * 2} held-out items" in told[0]
        assert lines == 1 or "could prove a rank correlation" in told[1]
