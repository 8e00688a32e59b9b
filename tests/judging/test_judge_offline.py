"""Judges that need no library: on record, any program, and the mock; and what names them."""

from __future__ import annotations

import asyncio
import json
import logging
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from steps_kit import is_gone

from jumar.errors import ConfigError, ItemError, NotFoundError
from jumar.judging.asking.evaluate import judge_items
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.asking.summary import Evaluation, JudgeRejectedError
from jumar.judging.items.item import Item
from jumar.judging.judges import forms, make_judge
from jumar.judging.judges.command import CommandJudge
from jumar.judging.judges.mock import MockJudge
from jumar.judging.judges.replay import ReplayJudge
from jumar.judging.models import ExpensiveModeResult, Unscored
from jumar.judging.rubric import JudgeRubric
from jumar.model.protocols import Judge, JudgeFailure, JudgeRequest

RUBRIC = JudgeRubric(task="Judge.", criteria=("It is right.",))
REQUEST = JudgeRequest(item_id="a", item={"id": "a", "text": "x"}, system="s", user="u", schema={"type": "object"}, seed=3)


def run(judge: Judge, *names: str, **settings: Any) -> Evaluation:
    given = [Item(name, f"text of {name}") for name in names]
    return asyncio.run(judge_items(given, judge, RUBRIC, JudgeSettings(max_wait=0.0, **{"max_unscored": 1.0, **settings})))


def written(tmp_path: Path, *rows: object) -> Path:
    path = tmp_path / "judged.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


# ---------------------------------------------------------------------------------------------------------- replay


def test_recorded_verdicts_several_are_readings_and_the_median_counts(tmp_path: Path):
    path = written(
        tmp_path,
        {"id": "a", "judge_scores": [5, 2, 4], "judge_feedback": ["five", "two", "four"], "text": "ignored"},
        {"id": "b", "judge_scores": 3, "judge_feedback": "three"},
        "",
        {"id": 7, "judge_scores": [1], "strengths": ["s"], "weaknesses": "w"},
    )

    evaluation = run(ReplayJudge(path), "a", "b", "7", "c")

    a, b, seven, c = evaluation.results
    assert isinstance(a, ExpensiveModeResult)
    assert (4.0, [5.0, 2.0, 4.0], "four") == (a.gestalt, a.readings, a.reasoning)
    assert isinstance(b, ExpensiveModeResult)
    assert (3.0, "three") == (b.gestalt, b.reasoning)
    assert isinstance(seven, ExpensiveModeResult)
    assert (["s"], ["w"]) == (seven.strengths, seven.weaknesses)
    assert isinstance(c, Unscored)
    assert "missing" == c.kind
    assert 0.0 == evaluation.cost_usd
    assert evaluation.noise is not None
    assert 1 == evaluation.noise.items


def test_one_text_of_feedback_is_about_whatever_reading_counts(tmp_path: Path):
    path = written(tmp_path, {"id": "a", "judge_scores": [5, 2, 2], "judge_feedback": "nobody is told when"})
    [found] = run(ReplayJudge(path), "a").results
    assert isinstance(found, ExpensiveModeResult)
    assert (2.0, "nobody is told when") == (found.gestalt, found.reasoning)


def test_a_file_in_the_place_of_a_judge_is_told_how_it_is_read(tmp_path: Path):
    path = written(tmp_path, {"id": "a", "judge_scores": 3})
    with pytest.raises(ConfigError, match="replay: before its name"):
        make_judge(str(path))
    with pytest.raises(ConfigError, match=r"replay:FILE$"):
        make_judge("x" * 5000)


def test_a_recorded_line_without_scores_is_missing(tmp_path: Path):
    path = written(tmp_path, {"id": "a", "judge_scores": []}, {"id": "b", "judge_scores": None}, {"id": "c", "judge_scores": 4})

    assert {"missing": 2} == run(ReplayJudge(path), "a", "b", "c").unscored_kinds


def test_recorded_scores_on_another_scale(tmp_path: Path):
    path = written(tmp_path, {"id": "a", "judge_scores": [0, 10]}, {"id": "b", "judge_scores": 11})

    evaluation = run(ReplayJudge(path), "a", "b", scale=(0.0, 10.0))

    a, b = evaluation.results
    assert isinstance(a, ExpensiveModeResult)
    assert (3.0, [1.0, 5.0]) == (a.gestalt, a.readings)
    assert isinstance(b, Unscored)
    assert "out_of_range" == b.kind


def test_a_recorded_judge_is_known_by_its_content(tmp_path: Path):
    one = ReplayJudge(written(tmp_path, {"id": "a", "judge_scores": 4})).identity
    other = ReplayJudge(written(tmp_path, {"id": "a", "judge_scores": 5})).identity

    assert one.startswith("replay:judged.jsonl@")
    assert one != other


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (['{"id": "a"'], "judged.jsonl:1: not JSON"),
        (["[1]"], "judged.jsonl:1: a line should be a JSON object"),
        ([{"id": "a", "judge_scores": 4}, {"judge_scores": 4}], "judged.jsonl:2: 'id' should be a text"),
        ([{"id": "a", "judge_scores": "4/5"}], "judged.jsonl:1: 'judge_scores' holds '4/5'"),
        ([{"id": "a", "judge_scores": [True]}], "judged.jsonl:1: 'judge_scores' holds True"),
        (['{"id": "a", "judge_scores": [NaN]}'], "judged.jsonl:1: 'judge_scores' holds nan"),
        ([{"id": "a", "judge_scores": 4}, {"id": "a", "judge_scores": 5}], "judged.jsonl:2: the id 'a' is in the file twice"),
        ([{"id": "a", "judge_scores": 4, "judge_feedback": [7]}], "judged.jsonl:1: 'judge_feedback' should be a text"),
        ([{"id": "a", "score": 4}], "no line has 'judge_scores'"),
        ([], "no line has 'judge_scores'"),
        (["[" * 100_000], "judged.jsonl:1: not JSON"),
    ],
)
def test_a_recorded_file_that_is_none_names_line_and_field(tmp_path: Path, rows: list[object], message: str):
    with pytest.raises(ItemError, match=message):
        ReplayJudge(written(tmp_path, *rows))


def test_a_recorded_file_has_to_be_there(tmp_path: Path):
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(NotFoundError, match="there is no file"):
            ReplayJudge(path)


# --------------------------------------------------------------------------------------------------------- command


def program(tmp_path: Path, body: str) -> CommandJudge:
    path = tmp_path / "judge.sh"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return CommandJudge([str(path)])


def test_a_program_gets_one_request_and_gives_one_answer(tmp_path: Path):
    judge = program(tmp_path, f'cat > {tmp_path}/request.json; echo \'{{"gestalt": 4, "reasoning": "fine"}}\'')

    reply = asyncio.run(judge.judge(REQUEST))

    assert {"gestalt": 4, "reasoning": "fine"} == json.loads(reply.text)
    assert json.loads((tmp_path / "request.json").read_text()) == {
        "format": 1,
        "id": "a",
        "item": {"id": "a", "text": "x"},
        "system": "s",
        "user": "u",
        "schema": {"type": "object"},
        "repeat": 0,
        "temperature": None,
        "seed": 3,
    }


def test_a_program_may_say_what_it_used(tmp_path: Path):
    usage = {"input_tokens": 7, "output_tokens": 3, "cost_usd": 0.25, "model": "m", "more": 1}
    judge = program(tmp_path, f"echo '{json.dumps({'gestalt': 4, 'usage': usage})}'")

    evaluation = run(judge, "a")

    assert (0.25, 7, 3) == (evaluation.cost_usd, evaluation.input_tokens, evaluation.output_tokens)


@pytest.mark.parametrize("usage", [7, {"cost_usd": -1}, {"cost_usd": True}, {"cost_usd": "free"}, {"input_tokens": -3}])
def test_a_programs_nonsense_about_its_cost_is_unknown(tmp_path: Path, usage: object):
    assert run(program(tmp_path, f"echo '{json.dumps({'gestalt': 4, 'usage': usage})}'"), "a").cost_usd is None


def test_the_cost_in_an_answer_that_is_refused_is_not_believed(tmp_path: Path):
    twice = '{"gestalt": 3, "usage": {"cost_usd": 0.05, "cost_usd": 0}}'
    evaluation = run(program(tmp_path, f"echo '{twice}'"), "a")

    assert (0, None) == (evaluation.scored, evaluation.cost_usd)


@pytest.mark.parametrize(
    ("body", "kind", "calls"),
    [
        ("exit 1", "unavailable", 3),
        ("exit 65", "refused", 1),
        ("exit 75", "rate_limited", 3),
        ("kill -9 $$", "unavailable", 3),
        ("echo 4 out of 5", "unparseable", 1),
        ("echo '{\"gestalt\": 11}'", "out_of_range", 1),
        ("exec 1>&-", "unparseable", 1),
    ],
)
def test_how_a_program_ends_says_what_became_of_the_item(tmp_path: Path, body: str, kind: str, calls: int):
    evaluation = run(program(tmp_path, body), "a", max_retries=2)

    assert {kind: 1} == evaluation.unscored_kinds
    assert calls == evaluation.calls


@pytest.mark.parametrize("code", [77, 78, 126, 127])
def test_a_program_that_cannot_work_ends_the_evaluation(tmp_path: Path, code: int):
    judge = program(tmp_path, f"echo no such luck >&2; exit {code}")

    with pytest.raises(JudgeRejectedError, match=f"exit code {code}: no such luck"):
        run(judge, "a", "b")


def test_a_program_may_ask_to_wait(tmp_path: Path):
    judge = program(tmp_path, "echo '{\"retry_after\": 2.5}'; exit 75")

    with pytest.raises(JudgeFailure) as raised:
        asyncio.run(judge.judge(REQUEST))

    assert ("rate_limited", 2.5) == (raised.value.kind, raised.value.retry_after)


def test_a_program_that_hangs_is_ended_with_everything_it_started(tmp_path: Path):
    judge = program(tmp_path, f"sleep 300 & echo $! > {tmp_path}/pid; wait")
    began = time.monotonic()

    assert {"timed_out": 1} == run(judge, "a", timeout=3.0, max_retries=0).unscored_kinds

    assert time.monotonic() - began < 30
    pid = int((tmp_path / "pid").read_text())
    assert is_gone(pid)


def test_a_child_that_holds_the_pipe_delays_nothing(tmp_path: Path):
    judge = program(tmp_path, "sleep 300 & echo '{\"gestalt\": 4}'")
    began = time.monotonic()

    assert 1 == run(judge, "a").scored

    assert time.monotonic() - began < 30


def test_a_program_that_reads_nothing_and_one_that_prints_without_end(tmp_path: Path):
    long = Item("a", "x" * 1_000_000)
    judge = program(tmp_path, "exec 0<&-; echo '{\"gestalt\": 4}'")
    assert 1 == asyncio.run(judge_items([long], judge, RUBRIC)).scored

    flood = program(tmp_path, "yes | head -c 5000000")
    reply = asyncio.run(flood.judge(REQUEST))
    assert 1 << 20 == len(reply.text)


def test_a_program_that_is_not_there_cannot_be_run():
    with pytest.raises(JudgeFailure, match="cannot be run: No such file") as raised:
        asyncio.run(CommandJudge(["./not-there"]).judge(REQUEST))
    assert "rejected" == raised.value.kind
    with pytest.raises(JudgeFailure, match="NUL"):
        asyncio.run(CommandJudge(["a\0b"]).judge(REQUEST))


@pytest.mark.parametrize("code", [0, 1, 65, 75, 78])
def test_a_program_that_prints_its_environment_does_not_give_away_a_key(
    tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    key = "canary-0b1e5c77d2"
    monkeypatch.setenv("SOME_PROVIDER_API_KEY", key)
    judge = program(tmp_path, f"echo $SOME_PROVIDER_API_KEY; echo key $SOME_PROVIDER_API_KEY >&2; exit {code}")

    with caplog.at_level(logging.DEBUG):
        try:
            said = repr(run(judge, "a", max_retries=1))
        except JudgeRejectedError as error:
            said = f"{error} {error.evaluation!r}"

    assert "***" in said
    assert key not in said + caplog.text


def test_a_commands_arguments_are_not_in_its_name():
    judge = CommandJudge(["/usr/bin/judge", "--key", "hidden-argument"])

    assert judge.identity.startswith("command:judge@")
    assert "hidden" not in judge.identity
    assert judge.identity != CommandJudge(["/usr/bin/judge", "--key", "other"]).identity


# ------------------------------------------------------------------------------------------------------------ mock


def test_the_mock_is_deterministic():
    one, other = (run(MockJudge(noise=1.0, seed=4), "a", "b", "c", repeat=2) for _ in range(2))

    assert one.results == other.results
    assert 3 == len({result.gestalt for result in one.results if isinstance(result, ExpensiveModeResult)})


def test_the_mock_fails_as_often_as_it_is_told_to():
    names = [f"i{number}" for number in range(400)]

    failed = run(MockJudge(fail=0.3, kind="refused"), *names).unscored_kinds["refused"]
    assert 90 <= failed <= 150
    evaluation = run(MockJudge(fail=0.3), *names, max_retries=20)
    assert 400 == evaluation.scored
    assert evaluation.retries > 90
    assert 100 <= run(MockJudge(prose=0.3), *names).unscored_kinds["unparseable"] <= 150


# ------------------------------------------------------------------------------------------------------------ specs


def test_judges_by_what_a_person_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path, {"id": "a", "judge_scores": 4})
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k" * 20)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    assert isinstance(make_judge(f"replay:{path}"), ReplayJudge)
    assert isinstance(make_judge("command:sh -c 'exit 1'"), CommandJudge)
    assert isinstance(make_judge("mock:latency=0.1,fail=0.5,kind=timed_out,seed=3"), MockJudge)
    assert "openai:some-model" == make_judge("openai:some-model").identity
    assert "anthropic:some-model" == make_judge("anthropic:some-model").identity
    assert "openai:small@localhost:8080/v1" == make_judge("http://localhost:8080/v1#small").identity
    assert "openai:org/small@example.org/v1" == make_judge("https://example.org/v1/#org/small").identity


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (None, "no judge is configured; name one with --judge"),
        ("  ", "no judge is configured"),
        ("opnai:x", r"no judge 'opnai' \(did you mean 'openai'\?\)"),
        ("openai:", "needs the name of a model"),
        ("anthropic:", "needs the name of a model"),
        ("replay:", "names no file"),
        ("command:", "names no program"),
        ("command:'", "cannot be split into words"),
        ("command:./not-there --x", "the program './not-there' is not found"),
        ("mock:speed=3", "has no option 'speed'"),
        ("mock:latency=fast", "latency = fast should be a number"),
        ("mock:latency=nan", "latency = nan should be 0 or more"),
        ("mock:kind=odd", "kind = odd should be one of"),
        ("http://localhost:8080/v1", "names no model"),
        ("http://#x", "names no host"),
        ("http://localhost:notaport/v1#m", "names no host"),
        ("http://user:hidden-word@localhost/v1#m", "holds a user, a password or a query"),
        ("http://localhost/v1?key=hidden-word#m", "holds a user, a password or a query"),
        ("openai:some-model", "needs a key: put it into the environment variable OPENAI_API_KEY"),
        ("anthropic:some-model", "needs a key: put it into the environment variable ANTHROPIC_API_KEY"),
    ],
)
def test_what_names_no_judge_says_the_way_out(spec: str | None, message: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    with pytest.raises(ConfigError, match=message) as raised:
        make_judge(spec)

    assert "hidden-word" not in str(raised.value)


def test_the_page_of_judges_has_every_form():
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "judges.md").read_text()

    assert all(f"`{form}`" in page for form in forms())
