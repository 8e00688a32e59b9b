"""The adapters of language models against a real server through the real clients: well, and in every way badly."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judge_server import GOOD, Answer, JudgeServer, Seen, serving

from jumar.errors import ConfigError, EvaluationUnreliableError, JumarError
from jumar.judging import evaluate_expensive
from jumar.judging.asking.cache import ReplyCache
from jumar.judging.asking.evaluate import judge_items
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.asking.summary import Evaluation, JudgeRejectedError
from jumar.judging.items.item import Item
from jumar.judging.judges import make_judge
from jumar.judging.judges._clients import Features, kind_of_status, retry_after_seconds
from jumar.judging.judges.anthropic import AnthropicJudge
from jumar.judging.judges.openai import OpenAIJudge
from jumar.judging.models import ExpensiveModeResult, Unscored
from jumar.judging.rubric import JudgeRubric
from jumar.model.budget.pricing import Prices
from jumar.model.protocols import Judge

RUBRIC = JudgeRubric(task="Judge.", criteria=("It is right.",))
KEY = "canary-4f1d2a9b7c"  # never to be seen again

Make = Callable[[JudgeServer], Judge]


def openai_judge(server: JudgeServer) -> Judge:
    return OpenAIJudge("small", base_url=f"{server.base}/v1", api_key=KEY)


def anthropic_judge(server: JudgeServer) -> Judge:
    return AnthropicJudge("small", base_url=server.base, api_key=KEY)


both = pytest.mark.parametrize("make", [openai_judge, anthropic_judge])


def run(judge: Judge, count: int = 1, **settings: Any) -> Evaluation:
    async def work() -> Evaluation:
        given = [Item(f"i{number}", f"text {number}") for number in range(count)]
        chosen = JudgeSettings(**{"max_wait": 0.01, "max_unscored": 1.0, **settings})
        try:
            return await judge_items(given, judge, RUBRIC, chosen)
        finally:
            await judge.aclose()

    return asyncio.run(work())


def only(evaluation: Evaluation) -> ExpensiveModeResult | Unscored:
    assert 1 == len(evaluation.results)
    return evaluation.results[0]


# ------------------------------------------------------------------------------------------------------------ well


@both
def test_a_verdict_with_its_tokens(make: Make):
    with serving(Answer()) as server:
        evaluation = run(make(server))

    result = only(evaluation)
    assert isinstance(result, ExpensiveModeResult)
    assert (4.0, "clear", ["short"], ["vague"], "small") == (
        result.gestalt,
        result.reasoning,
        result.strengths,
        result.weaknesses,
        result.model,
    )
    assert (100, 20, None) == (evaluation.input_tokens, evaluation.output_tokens, evaluation.cost_usd)


def test_what_an_openai_compatible_server_is_asked():
    with serving(Answer()) as server:
        run(openai_judge(server), temperature=0.3, seed=11)

    asked = server.seen[0]
    assert "/v1/chat/completions" == asked.path
    assert f"Bearer {KEY}" == asked.headers["authorization"]
    assert ["system", "user"] == [one["role"] for one in asked.json["messages"]]
    assert (0.3, 11, 2000) == (asked.json["temperature"], asked.json["seed"], asked.json["max_tokens"])
    form = asked.json["response_format"]
    assert ("json_schema", True) == (form["type"], form["json_schema"]["strict"])
    assert "gestalt" in form["json_schema"]["schema"]["required"]


def test_what_anthropics_server_is_asked():
    with serving(Answer()) as server:
        run(anthropic_judge(server), temperature=0.3)

    asked = server.seen[0]
    assert "/v1/messages" == asked.path
    assert KEY in {asked.headers.get("x-api-key"), asked.headers.get("authorization", "").removeprefix("Bearer ")}
    assert (0.3, 2000) == (asked.json["temperature"], asked.json["max_tokens"])
    assert "Judge." in asked.json["system"]
    assert ["user"] == [one["role"] for one in asked.json["messages"]]
    assert "gestalt" in asked.json["output_config"]["format"]["schema"]["properties"]


def test_a_cost_that_the_server_says_and_one_from_prices():
    with serving(Answer(usage={"in": 1000, "out": 100, "cost": 0.125})) as server:
        assert 0.125 == run(openai_judge(server)).cost_usd
    with serving(Answer(usage={"in": 1000, "out": 100})) as server:
        found = evaluate_expensive(
            [{"text": "x"}], judge=anthropic_judge(server), prices=Prices(input_per_million=3, output_per_million=15)
        )
        assert found["cost_usd"] == pytest.approx(0.0045)


def test_an_answer_without_usage_has_unknown_cost_and_tokens():
    with serving(Answer(usage=None)) as server:
        evaluation = run(openai_judge(server))
    assert (None, None) == (evaluation.cost_usd, evaluation.input_tokens)


@both
def test_a_judge_is_used_in_several_event_loops_and_concurrently(make: Make):
    with serving(Answer(delay=0.02)) as server:
        judge = make(server)
        assert [12, 12] == [run(judge, 12, concurrency=6).scored for _ in range(2)]
        assert 1 < server.in_flight_most <= 6


def test_a_server_by_its_address(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "the-providers-own-key")
    monkeypatch.delenv("JUMAR_JUDGE_API_KEY", raising=False)
    with serving(Answer()) as server:
        assert 1 == run(make_judge(f"{server.base}/v1#tiny")).scored
        monkeypatch.setenv("JUMAR_JUDGE_API_KEY", KEY)
        assert 1 == run(make_judge(f"{server.base}/v1#tiny")).scored

    assert ["Bearer none", f"Bearer {KEY}"] == [one.headers["authorization"] for one in server.seen]
    assert "tiny" == server.seen[0].json["model"]


# ----------------------------------------------------------------------------------------------------------- badly


@both
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I would say 4.", "unparseable"),
        ('{"gestalt": "4/5"}', "unparseable"),
        ('{"gestalt": 11}', "out_of_range"),
        ("", "unparseable"),
        (None, "unparseable"),
        ("I'm sorry, but I can't.", "refused"),
    ],
)
def test_answers_without_a_verdict(make: Make, text: str | None, kind: str):
    with serving(Answer(text=text)) as server:
        result = only(run(make(server)))

    assert isinstance(result, Unscored)
    assert (kind, text or "", 100) == (result.kind, result.raw, result.input_tokens)


@both
def test_prose_around_a_fenced_verdict_is_read(make: Make):
    with serving(Answer(text=f"Sure!\n```json\n{GOOD}\n```")) as server:
        assert 1 == run(make(server)).scored


@both
def test_a_refusal_is_not_asked_again_and_its_tokens_count(make: Make):
    with serving(Answer(text=None, refusal="I won't")) as server:
        evaluation = run(make(server))

    assert {"refused": 1} == evaluation.unscored_kinds
    assert (1, 100) == (len(server.seen), evaluation.input_tokens)


@both
@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_or_model_ends_at_once(make: Make, status: int):
    with serving(Answer(text="no such luck", status=status)) as server, pytest.raises(JudgeRejectedError, match=f"HTTP {status}"):
        run(make(server), 500, concurrency=4)

    assert len(server.seen) <= 4


@both
def test_too_many_requests_for_ever(make: Make):
    with (
        serving(Answer(text="slow down", status=429)) as server,
        pytest.raises(EvaluationUnreliableError, match="rate_limited"),
    ):
        run(make(server), 100, max_retries=2, max_unscored=0.2, concurrency=1)

    assert len(server.seen) <= 3 * (21 + 4 + 1), "after 21 of 100 nothing can be saved any more"


@both
def test_too_many_requests_now_and_then_with_a_time_to_wait(make: Make):
    slow = Answer(text="slow down", status=429, headers={"retry-after": "0.2"})
    with serving(slow, Answer()) as server:
        began = time.monotonic()
        evaluation = run(make(server), max_wait=5.0, backoff_base=0.01)

    assert (1, 2, 1) == (evaluation.scored, evaluation.calls, evaluation.retries)
    assert time.monotonic() - began >= 0.2


@both
def test_an_empty_account_is_not_waited_for(make: Make):
    body = json.dumps({"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}})
    with serving(Answer(status=429, body=body)) as server, pytest.raises(JudgeRejectedError):
        run(make(server))
    assert 1 == len(server.seen)


@both
def test_errors_of_the_server_now_and_then(make: Make):
    def behave(_seen: Seen, number: int) -> Answer:
        return Answer(text="oops", status=500 if number % 6 else 503) if number % 3 == 0 else Answer()

    with JudgeServer(behave) as server:
        evaluation = run(make(server), 30, concurrency=3, max_retries=20)

    assert 30 == evaluation.scored
    assert evaluation.retries >= 10


@both
def test_a_slow_server_is_timed_out(make: Make):
    with serving(Answer(delay=30)) as server:
        assert {"timed_out": 1} == run(make(server), timeout=0.2, max_retries=0).unscored_kinds


@both
def test_a_server_that_is_not_there(make: Make):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = JudgeServer()
        server.port = taken.getsockname()[1]
        result = only(run(make(server), max_retries=1))

    assert isinstance(result, Unscored)
    assert "unavailable" == result.kind
    assert "cannot reach the judge" in result.message


@both
@pytest.mark.parametrize(
    "answer",
    [
        Answer(body="<html>hello</html>", headers={"content-type": "text/html"}),
        Answer(body="hello", headers={"content-type": "text/plain"}),
        Answer(body="{"),
        Answer(body="[]"),
        Answer(body="{}"),
        Answer(body='{"choices": []}'),
        Answer(body='{"choices": [{"message": null}], "content": 7}'),
    ],
)
def test_a_server_that_speaks_something_else(make: Make, answer: Answer):
    with serving(answer) as server:
        assert {"unavailable": 1} == run(make(server), max_retries=1).unscored_kinds


@both
def test_one_item_that_is_too_long_is_that_items_failure(make: Make):
    def behave(seen: Seen, _number: int) -> Answer:
        return Answer(text="the context is too long", status=400) if "text 3" in json.dumps(seen.json) else Answer()

    with JudgeServer(behave) as server:
        evaluation = run(make(server), 6)

    assert (5, {"refused": 1}) == (evaluation.scored, evaluation.unscored_kinds)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (openai_judge, "response_format"),
        (openai_judge, "temperature"),
        (openai_judge, "seed"),
        (anthropic_judge, "output_config"),
        (anthropic_judge, "temperature"),
    ],
)
@pytest.mark.parametrize(
    "shape",
    [
        lambda name: {"error": {"message": f"Unsupported parameter: {name}"}},
        lambda name: {"error": f"Unsupported parameter: {name}"},
        lambda name: {"detail": [{"loc": ["body", name], "msg": "Extra inputs are not permitted", "input": "max_tokens"}]},
        lambda name: {"object": "error", "message": {"detail": [{"loc": ["body", name], "msg": "Extra inputs"}]}, "code": 3051},
    ],
    ids=["a message", "a text", "a list", "a nested message"],
)
def test_a_parameter_that_the_server_refuses_is_left_out(
    shape: Callable[[str], Any], make: Make, name: str, caplog: pytest.LogCaptureFixture
):
    def behave(seen: Seen, _number: int) -> Answer:
        return Answer(body=json.dumps(shape(name)), status=422) if name in seen.json else Answer()

    with JudgeServer(behave) as server, caplog.at_level(logging.WARNING, "jumar.judging.expensive"):
        evaluation = run(make(server), 3, concurrency=1)

    assert 3 == evaluation.scored
    assert 4 == len(server.seen), "it is learned once"
    if name in {"temperature", "seed"}:
        assert None is evaluation.to_json()[name], "what was asked for in vain is not what was sent"
    with JudgeServer(behave) as server:
        assert 8 == run(make(server), 8, concurrency=8).scored, "several find out at once"
    assert f"does not take '{name}'" in caplog.text


def test_a_filter_that_stops_the_answer_is_a_refusal():
    with serving(Answer(text="", finish="content_filter")) as server:
        assert {"refused": 1} == run(openai_judge(server)).unscored_kinds


# ------------------------------------------------------------------------------------------------------------ keys


def everything(error: BaseException | None) -> str:
    """What an exception, its causes and contexts would print, with their attributes."""
    parts: list[str] = []
    while error is not None:
        parts += [repr(error), str(error), repr(vars(error))]
        error = error.__cause__ or error.__context__
    return "\n".join(parts)


@both
@pytest.mark.parametrize(
    "answer",
    [
        Answer(text=f"Incorrect API key provided: {KEY}", status=401),
        Answer(text=f"slow down, {KEY}", status=429, headers={"retry-after": "0"}),
        Answer(text=f"oops {KEY}", status=500),
        Answer(text=f"too long {KEY}", status=400),
        Answer(text=f"your key is {KEY}"),
        Answer(text=json.dumps({"gestalt": 11, "reasoning": KEY})),
        Answer(text=json.dumps({"gestalt": 4, "reasoning": KEY})),
        Answer(text=None, refusal=f"not with {KEY}"),
        Answer(body=f"<html>{KEY}</html>", headers={"content-type": "text/html"}),
        Answer(delay=30),
    ],
)
def test_a_key_never_reaches_logs_files_results_or_errors(
    make: Make, answer: Answer, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    # a key that is handed over is hidden where the adapter knows it; one of the environment in every answer, too
    monkeypatch.setenv("SOME_PROVIDER_API_KEY", KEY)
    said = ""
    with serving(answer) as server, caplog.at_level(logging.DEBUG):
        try:
            found = evaluate_expensive(
                [{"text": "x"}], judge=make(server), cache=ReplyCache(tmp_path), timeout=0.3, max_retries=1, max_wait=0.01
            )
            said = json.dumps(found)
        except JumarError as error:
            said = everything(error) + repr(getattr(error, "evaluation", None))

    assert said
    assert KEY not in said
    assert KEY not in "\n".join(record.getMessage() + repr(record.exc_info) for record in caplog.records)
    assert KEY not in "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())


@both
def test_a_key_handed_over_in_python_is_hidden_in_answers_that_quote_it(make: Make, tmp_path: Path):
    quoted = json.dumps({"gestalt": 4, "reasoning": f"the key is {KEY}", "strengths": [KEY], "weaknesses": []})
    with serving(Answer(text=quoted)) as server:
        found = evaluate_expensive([{"text": "x"}], judge=make(server), cache=ReplyCache(tmp_path))
    assert (1, 4.0) == (found["scored"], found["gestalt_avg"])
    assert KEY not in json.dumps(found)
    assert KEY not in "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_who_pays_is_told_to_nobody_but_the_provider(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-canary")
    with serving(Answer()) as server:
        run(openai_judge(server))
        (asked,) = server.seen
    assert "canary" not in "".join(value for name, value in asked.headers.items() if name != "authorization")


def test_a_judges_name_says_what_decides_about_its_answers():
    assert "openai:m@h:1/v1" == OpenAIJudge("m", base_url="http://h:1/v1").identity
    assert "openai:m@h:1/v1,max_tokens=9" == OpenAIJudge("m", base_url="http://h:1/v1", max_tokens=9).identity
    assert "anthropic:m,unstructured" == AnthropicJudge("m", api_key=KEY, structured=False).identity


def test_a_judge_may_be_asked_without_structured_output():
    with serving(Answer()) as server:
        assert 1 == run(OpenAIJudge("m", base_url=f"{server.base}/v1", structured=False)).scored
        assert 1 == run(AnthropicJudge("m", base_url=server.base, api_key=KEY, structured=False)).scored

    assert not any("response_format" in one.json or "output_config" in one.json for one in server.seen)


@pytest.mark.parametrize(("module", "extra"), [("openai", "openai"), ("anthropic", "anthropic")])
def test_a_missing_extra_says_how_to_get_it(module: str, extra: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, extra, None)

    with pytest.raises(ConfigError, match=rf"pip install 'jumar\[{extra}\]'"):
        make_judge(f"{module}:some-model")


@both
def test_a_judges_name_holds_no_key(make: Make):
    with serving(Answer()) as server:
        assert KEY not in make(server).identity


# -------------------------------------------------------------------------------------------------------- endpoints


def test_how_long_a_server_asks_to_wait():
    now = 1_700_000_000.0
    assert 2.0 == retry_after_seconds({"retry-after": "2"})
    assert 0.25 == retry_after_seconds({"retry-after-ms": "250", "retry-after": "9"})
    assert 30.0 == retry_after_seconds({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, now)
    assert 0.0 == retry_after_seconds({"retry-after": "Tue, 14 Nov 2023 22:13:00 GMT"}, now)
    assert [None] * 4 == [retry_after_seconds(one) for one in ({}, {"retry-after": "soon"}, {"retry-after": "nan"}, {"x": "1"})]
    assert 0.0 == retry_after_seconds({"retry-after": "-5"})


def test_what_a_status_means():
    expected = {401: "rejected", 404: "rejected", 400: "refused", 413: "refused", 408: "timed_out", 429: "rate_limited"}
    assert expected == {status: kind_of_status(status) for status in expected}
    assert {"unavailable"} == {kind_of_status(status) for status in (500, 502, 503, 504)}
    assert "rate_limited" == kind_of_status(529)


@pytest.mark.parametrize(
    ("param", "left_out"),
    [
        (None, {"temperature", "seed"}),
        ("other", {"temperature", "seed"}),
        ("seed", {"seed"}),
        ("messages[1].content", set[str]()),
    ],
)
def test_the_field_that_a_server_names_counts_more_than_its_words(param: str | None, left_out: set[str]) -> None:
    features = Features({"temperature": ("temperature",), "seed": ("seed",)})
    dropped = features.drop("the item says: temperature, seed", {"temperature", "seed"}, param)
    assert (bool(left_out), left_out) == (dropped, features.left_out)
