"""Many items, one judge: order, bounds, retries, money, noise, and when enough is enough."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from random import Random
from typing import Any

import pytest

from jumar.errors import ConfigError, EvaluationUnreliableError, ItemError
from jumar.judging import evaluate_expensive
from jumar.judging.asking.evaluate import JudgeRun, judge_items
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.asking.summary import Evaluation, JudgeRejectedError
from jumar.judging.items.item import Item
from jumar.judging.judges.mock import MockJudge
from jumar.judging.models import ExpensiveModeResult, Story, Unscored
from jumar.judging.rubric import JudgeRubric
from jumar.model.budget.pricing import Prices
from jumar.model.protocols import JudgeFailure, JudgeReply, JudgeRequest
from jumar.model.records import Usage

RUBRIC = JudgeRubric(task="Judge.", criteria=("It is right.",))
FREE = Usage(input_tokens=10, output_tokens=5, token_cost_usd=0.0)


def items(count: int) -> list[Item]:
    return [Item(f"i{number}", f"text {number}") for number in range(count)]


class Scripted:
    """Calls ``answer(request, number of calls so far)``, which returns a score or text, or raises."""

    identity = "scripted"

    def __init__(self, answer: Callable[[JudgeRequest, int], Any], usage: Usage = FREE, latency: float = 0.0) -> None:
        self.answer = answer
        self.usage = usage
        self.latency = latency
        self.requests: list[JudgeRequest] = []
        self.closed = 0
        self.recorded = False

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.requests.append(request)
        number = len(self.requests)
        await asyncio.sleep(self.latency)
        found = self.answer(request, number)
        return JudgeReply(text=found if isinstance(found, str) else json.dumps({"gestalt": found}), usage=self.usage)

    async def aclose(self) -> None:
        self.closed += 1


def failing(kind: Any, **options: Any) -> JudgeFailure:
    return JudgeFailure(kind, f"it is {kind}", **options)


WAITS: list[float] = []


def run(given: Any, judge: Any, *, options: dict[str, Any] | None = None, **settings: Any) -> Evaluation:
    WAITS.clear()

    async def pause(seconds: float) -> None:
        WAITS.append(seconds)
        await asyncio.sleep(0)

    chosen = {"pause": pause, "random": Random(1), **(options or {})}
    return asyncio.run(judge_items(given, judge, RUBRIC, JudgeSettings(**settings), **chosen))


def scores(evaluation: Evaluation) -> list[float | str]:
    return [one.gestalt if isinstance(one, ExpensiveModeResult) else one.kind for one in evaluation.results]


# ----------------------------------------------------------------------------------------------------------- order


def test_results_are_in_the_items_order_whoever_is_done_first():
    given = items(40)

    class Uneven(MockJudge):
        async def judge(self, request: JudgeRequest) -> JudgeReply:
            await asyncio.sleep(0.02 if request.item_id in {"i0", "i13"} else 0)
            return await super().judge(request)

    seen: list[str] = []
    evaluation = run(given, Uneven(), options={"on_result": lambda one: seen.append(one.story_id)}, concurrency=7)

    assert [one.id for one in given] == [one.story_id for one in evaluation.results] == seen
    assert 40 == evaluation.scored == evaluation.calls


def test_there_are_never_more_calls_in_flight_than_allowed():
    judge = MockJudge(latency=0.002)

    run(items(60), judge, concurrency=9, repeat=2)

    assert 9 == judge.in_flight_most
    assert 120 == judge.calls


def test_of_a_stream_only_a_window_is_in_memory():
    taken = 0
    most = 0
    done = 0

    async def stream() -> AsyncIterator[Item]:
        nonlocal taken
        for item in items(2_000):
            taken += 1
            yield item

    def on_result(_: object) -> None:
        nonlocal done, most
        done += 1
        most = max(most, taken - done)

    evaluation = run(stream(), MockJudge(), options={"on_result": on_result, "keep": False}, concurrency=4)

    assert 2_000 == evaluation.story_count
    assert () == evaluation.results
    assert most <= 4 * 4 + 1


def test_a_reader_that_stops_early_leaves_nothing_running():
    judge = MockJudge(latency=0.001)

    async def work() -> int:
        judging = JudgeRun(items(500), judge, RUBRIC, JudgeSettings(concurrency=3))
        results = judging.results()
        async for _ in results:
            break
        await results.aclose()
        return len(asyncio.all_tasks())

    assert 1 == asyncio.run(work())
    assert judge.calls < 30


def test_no_items_are_no_error():
    evaluation = run([], MockJudge())

    assert (0, None, 0.0, None) == (evaluation.story_count, evaluation.gestalt_avg, evaluation.cost_usd, evaluation.noise)


# --------------------------------------------------------------------------------------------------------- retries


@pytest.mark.parametrize("kind", ["rate_limited", "timed_out", "unavailable"])
def test_what_may_pass_is_tried_again(kind: str):
    judge = Scripted(lambda _request, number: 4 if number > 3 else (_ for _ in ()).throw(failing(kind)))

    evaluation = run(items(1), judge, max_retries=3)

    assert [4.0] == scores(evaluation)
    assert (4, 3) == (evaluation.calls, evaluation.retries)


def test_waits_grow_exponentially_with_full_jitter():
    judge = Scripted(lambda *_: (_ for _ in ()).throw(failing("rate_limited")))
    drawn = Random(1)

    with pytest.raises(EvaluationUnreliableError):
        run(items(1), judge, max_retries=4, backoff_base=3.0, max_wait=20.0)
    assert 5 == len(judge.requests)

    evaluation = run(items(1), judge, max_retries=4, backoff_base=3.0, max_wait=20.0, max_unscored=1.0)
    assert 4 == evaluation.retries
    assert [drawn.uniform(0, most) for most in (1, 3, 9, 20)] == WAITS


def test_the_judges_own_time_to_wait_is_honoured_up_to_a_cap(caplog: pytest.LogCaptureFixture):
    def answer(_request: JudgeRequest, number: int) -> Any:
        if number == 1:
            raise failing("rate_limited", retry_after=7.0)
        if number == 2:
            raise failing("rate_limited", retry_after=3600.0)
        return 3

    with caplog.at_level(logging.WARNING, "jumar.judging.expensive"):
        assert [3.0] == scores(run(items(1), Scripted(answer), max_wait=30.0))

    own = [one for one in WAITS if one > 5]
    assert 7.0 <= own[0] <= 8.0
    assert 30.0 in own
    assert "asks to wait 3600 s; waiting 30 s" in caplog.text


def test_a_call_that_hangs_is_timed_out():
    judge = Scripted(lambda *_: 4, latency=5)

    evaluation = run(items(1), judge, timeout=0.01, max_retries=1, max_unscored=1.0)

    assert ["timed_out"] == scores(evaluation)
    result = evaluation.results[0]
    assert isinstance(result, Unscored)
    assert "no answer within 0.01 s (2 times)" == result.message
    assert evaluation.cost_usd is None, "who was asked may charge for it"


@pytest.mark.parametrize("kind", ["refused", "missing"])
def test_what_will_not_pass_is_not_tried_again(kind: str):
    judge = Scripted(lambda *_: (_ for _ in ()).throw(failing(kind)))

    assert [kind] == scores(run(items(1), judge, max_unscored=1.0))
    assert 1 == len(judge.requests)


def test_an_answer_without_a_verdict_is_unscored_with_its_text():
    evaluation = run(items(10), Scripted(lambda _request, number: "about 4/5" if number == 1 else 11 if number == 2 else 4))

    assert ["unparseable", "out_of_range", 4.0] == scores(evaluation)[:3]
    raws = [one.raw for one in evaluation.results if isinstance(one, Unscored)]
    assert ["about 4/5", '{"gestalt": 11}'] == raws
    assert {"unparseable": 1, "out_of_range": 1} == evaluation.unscored_kinds
    assert 4.0 == evaluation.gestalt_avg


# -------------------------------------------------------------------------------------------------- when it is over


def every(share: int) -> Callable[[JudgeRequest, int], Any]:
    return lambda request, _number: "no" if int(request.item_id[1:]) % share == 0 else 4


def test_a_fifth_may_fail():
    assert 80 == run(items(100), Scripted(every(5))).scored


def test_more_than_a_fifth_is_an_error_that_holds_the_results():
    with pytest.raises(
        EvaluationUnreliableError, match=r"of 100 items could not be judged \(\d+ unparseable\), more than 20%"
    ) as raised:
        run(items(100), Scripted(every(4)))

    evaluation = raised.value.evaluation
    assert evaluation.scored > 0
    assert evaluation.story_count == len(evaluation.results)


def test_what_cannot_become_reliable_ends_early_but_not_before():
    judge = Scripted(lambda *_: "no")

    with pytest.raises(EvaluationUnreliableError) as raised:
        run(items(1_000), judge, concurrency=4)

    assert 201 <= raised.value.evaluation.story_count <= 201 + 16 + 1
    assert len(judge.requests) <= 201 + 16 + 1


def test_of_a_stream_of_unknown_length_nothing_is_certain_before_its_end():
    def stream() -> Iterator[Item]:
        yield from items(50)

    judge = Scripted(lambda request, _: "no" if int(request.item_id[1:]) < 10 else 4)
    assert 40 == run(stream(), judge).scored


def test_a_record_that_lacks_more_than_the_share_is_unreliable_and_is_read_to_its_end():
    judge = Scripted(lambda request, _: 4 if request.item_id == "i9" else (_ for _ in ()).throw(failing("missing")))
    judge.recorded = True

    with pytest.raises(EvaluationUnreliableError, match=r"9 of 10 .*\(9 missing\), more than 20%.*--max-unscored 1\.0") as raised:
        run(items(10), judge)

    assert raised.value.evaluation is not None
    assert [*(["missing"] * 9), 4.0] == scores(raised.value.evaluation)
    assert {"missing": 9} == run(items(10), judge, max_unscored=1.0).unscored_kinds
    assert {"missing": 9} == run(items(10), judge, max_unscored=0.9).unscored_kinds


def test_a_rejected_key_ends_everything_at_once():
    judge = Scripted(lambda *_: (_ for _ in ()).throw(failing("rejected")), latency=0.001)

    with pytest.raises(JudgeRejectedError, match="it is rejected; check the key") as raised:
        run(items(1_000), judge, concurrency=4)

    assert len(judge.requests) <= 4
    assert isinstance(raised.value, ConfigError)
    assert raised.value.evaluation is not None
    assert "rejected" in raised.value.evaluation.unscored_kinds


def test_an_exception_that_is_no_failure_ends_the_evaluation():
    with pytest.raises(ZeroDivisionError):
        run(items(10), Scripted(lambda *_: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        run(items(10), Scripted(lambda *_: 1 / 0), repeat=None)


# ----------------------------------------------------------------------------------------------------------- money


def test_cost_and_tokens_are_added_up():
    evaluation = run(items(3), Scripted(lambda *_: 4, Usage(input_tokens=10, output_tokens=5, token_cost_usd=0.25)), repeat=2)

    assert 1.5 == evaluation.cost_usd
    assert (60, 30) == (evaluation.input_tokens, evaluation.output_tokens)
    result = evaluation.results[0]
    assert isinstance(result, ExpensiveModeResult)
    assert (0.5, 20, 10) == (result.cost_usd, result.input_tokens, result.output_tokens)


def test_an_unknown_cost_makes_the_sum_unknown_and_never_zero():
    evaluation = run(items(3), Scripted(lambda *_: 4, Usage()))

    assert evaluation.cost_usd is None
    assert (None, None) == (evaluation.input_tokens, evaluation.output_tokens)


def test_prices_turn_tokens_into_cost():
    prices = Prices(input_per_million=2.0, output_per_million=10.0)

    evaluation = run(items(2), Scripted(lambda *_: 4, Usage(input_tokens=1000, output_tokens=100)), options={"prices": prices})

    assert evaluation.cost_usd == pytest.approx(2 * 0.003)
    with pytest.raises(ConfigError, match="input_per_million"):
        Prices(input_per_million=float("nan"), output_per_million=1)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_the_limit_is_kept_with_many_calls_in_flight(concurrency: int):
    judge = Scripted(lambda *_: 4, Usage(token_cost_usd=0.3), latency=0.001)

    evaluation = run(items(20), judge, max_cost=1.0, concurrency=concurrency)

    assert 3 == len(judge.requests)
    assert Counter({4.0: 3, "budget": 17}) == Counter(scores(evaluation))  # which of those in flight are refused is not fixed
    assert evaluation.cost_usd == pytest.approx(0.9)
    assert evaluation.stopped is not None
    assert "the limit of $1 is reached" in evaluation.stopped


def test_a_limit_that_nobody_can_keep_stops_after_one_call_and_says_so():
    judge = Scripted(lambda *_: 4, Usage())

    evaluation = run(items(5), judge, max_cost=1.0)

    assert 1 == len(judge.requests)
    assert evaluation.stopped is not None
    assert "does not say what a call costs" in evaluation.stopped
    assert {"budget": 4} == evaluation.unscored_kinds


def test_nothing_is_asked_for_nothing():
    judge = Scripted(lambda *_: 4)

    assert {"budget": 3} == run(items(3), judge, max_cost=0.0).unscored_kinds
    assert [] == judge.requests


def test_free_calls_never_reach_a_limit():
    assert 30 == run(items(30), MockJudge(), max_cost=0.01).scored


def test_prices_without_tokens_leave_the_cost_unknown():
    prices = Prices(input_per_million=2.0, output_per_million=10.0)

    assert run(items(1), Scripted(lambda *_: 4, Usage()), options={"prices": prices}).cost_usd is None


def test_failed_calls_are_charged_when_they_say_so():
    def answer(_request: JudgeRequest, number: int) -> Any:
        if number == 1:
            raise failing("unavailable", usage=Usage(token_cost_usd=0.5))
        return 4

    assert 0.75 == run(items(1), Scripted(answer, Usage(token_cost_usd=0.25))).cost_usd


# ----------------------------------------------------------------------------------------------------------- noise


def test_several_readings_give_the_median_and_the_judges_noise():
    given = [5, 1, 3]
    judge = Scripted(lambda request, _: given[request.repeat])

    evaluation = run(items(2), judge, repeat=3)

    result = evaluation.results[0]
    assert isinstance(result, ExpensiveModeResult)
    assert (3.0, [5.0, 1.0, 3.0]) == (result.gestalt, result.readings)
    assert [0, 1, 2] == sorted({one.seed for one in judge.requests if one.seed is not None})
    noise = evaluation.noise
    assert noise is not None
    assert (2, 3.0, 2.0, 4.0, 4.0, 0.0) == (
        noise.items,
        noise.readings,
        noise.mean_sd,
        noise.mean_range,
        noise.max_range,
        noise.identical_share,
    )
    assert noise.mean_abs_difference == pytest.approx((4 + 2 + 2) / 3)
    assert evaluation.high_variance


def test_a_reading_that_failed_does_not_spoil_the_others():
    judge = Scripted(lambda request, _: ["no", 2, 4][request.repeat])

    result = run(items(1), judge, repeat=3).results[0]

    assert isinstance(result, ExpensiveModeResult)
    assert (3.0, [2.0, 4.0]) == (result.gestalt, result.readings)


def test_one_reading_says_nothing_about_noise():
    assert run(items(3), MockJudge()).noise is None


@pytest.mark.parametrize(("noise", "repeat", "calls"), [(2.0, 3, 60), (0.1, 1, 25)])
def test_a_noisy_judge_is_asked_three_times_when_nobody_says_how_often(noise: float, repeat: int, calls: int):
    judge = MockJudge(score=3.0, noise=noise)

    evaluation = run(items(20), judge, repeat=None)

    assert (repeat, calls) == (evaluation.repeat, judge.calls)
    assert 20 == evaluation.scored
    assert (noise > 1) == evaluation.high_variance


def test_a_judge_on_record_is_asked_once():
    judge = Scripted(lambda *_: '{"readings": [{"gestalt": 1}, {"gestalt": 2}]}')
    judge.recorded = True

    result = run(items(1), judge, repeat=3).results[0]

    assert 1 == len(judge.requests)
    assert isinstance(result, ExpensiveModeResult)
    assert (1.5, [1.0, 2.0]) == (result.gestalt, result.readings)


# -------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": 0},
        {"max_retries": -1},
        {"backoff_base": 0},
        {"backoff_base": float("nan")},
        {"max_wait": float("inf")},
        {"timeout": 0},
        {"repeat": 0},
        {"max_cost": -1},
        {"scale": (5, 1)},
        {"scale": (0, float("inf"))},
        {"temperature": -1},
        {"max_unscored": 2},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]):
    with pytest.raises(ConfigError):
        JudgeSettings(**wrong)


# ---------------------------------------------------------------------------------------------------- synchronously

STORY = {"id": "s1", "title": "Add export", "description": "Users can export.", "acceptance_criteria": ["a file"]}


def test_the_sync_form_gives_the_first_designs_keys():
    judge = Scripted(lambda *_: 4)

    found = evaluate_expensive([STORY, Story.model_validate({**STORY, "id": "s2"}), {"text": "hello"}], judge=judge)

    assert ("expensive", 4.0, 3, 3, 0) == tuple(
        found[key] for key in ("mode", "gestalt_avg", "story_count", "scored", "unscored")
    )
    assert ["s1", "s2", "item-3"] == [one["story_id"] for one in found["individual_scores"]]
    assert (0.0, 0) == (found["temperature"], found["seed"])
    assert 1 == judge.closed
    json.dumps(found, allow_nan=False)


def test_the_sync_form_works_inside_a_running_loop():
    async def work() -> dict[str, Any]:
        return evaluate_expensive([STORY], judge=MockJudge(score=3))

    assert 3.0 == asyncio.run(work())["gestalt_avg"]


def test_errors_cross_the_thread():
    async def work() -> None:
        evaluate_expensive([STORY], judge=Scripted(lambda *_: "no"))

    with pytest.raises(EvaluationUnreliableError):
        asyncio.run(work())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"id": "a"}, "item 1: it has no 'text', and none of a story's"),
        ({"text": 7}, "item 1: text: give a text, not int"),
        ({**STORY, "acceptance_criteria": "one"}, "item 1: acceptance_criteria: input should be a valid list"),
        (7, "item 1 is a int"),
    ],
)
def test_a_record_that_is_none_names_its_place_and_field(wrong: Any, message: str):
    with pytest.raises(ItemError, match=message):
        evaluate_expensive([wrong], judge=MockJudge())


def test_items_and_rubrics_of_any_kind_are_taken():
    from jumar.judging.rubric import builtin_rubric

    asked = Scripted(lambda *_: 4)
    whole = builtin_rubric("story")
    evaluate_expensive([Item("a", "x")], judge=asked, rubric=whole)
    evaluate_expensive([{"id": 7, "text": "x", "prompt": "y", "group": "g"}], judge=asked, rubric=RUBRIC)
    evaluate_expensive([STORY], judge=asked)

    assert asked.requests[0].system.startswith(whole.judge.task)
    assert asked.requests[1].system.startswith("Judge.")
    assert ("7", {"id": "7", "prompt": "y", "text": "x"}) == (asked.requests[1].item_id, asked.requests[1].item)
    assert asked.requests[2].system.startswith(whole.judge.task)


def test_settings_are_given_once():
    with pytest.raises(TypeError, match="repeat"):
        evaluate_expensive([STORY], judge=MockJudge(), settings=JudgeSettings(), repeat=2)
