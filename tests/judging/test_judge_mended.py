"""What happens around an expensive judge that misbehaves: what is said about it, what is kept, what it cannot break."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest
from commands import call

from jumar.errors import EvaluationUnreliableError
from jumar.judging.asking.cache import ReplyCache
from jumar.judging.asking.evaluate import JudgeRun, judge_items
from jumar.judging.asking.prompt import NoReading, parse_reply
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.asking.summary import Evaluation, JudgeInterruptedError
from jumar.judging.items.item import Item
from jumar.judging.judges._clients import scrub
from jumar.judging.judges.command import CommandJudge
from jumar.judging.models import ExpensiveModeResult, Unscored
from jumar.judging.rubric import JudgeRubric
from jumar.model.protocols import FailureKind, JudgeFailure, JudgeReply, JudgeRequest
from jumar.model.records import Usage

RUBRIC = JudgeRubric(task="Judge.", criteria=("It is right.",))


class Told:
    """Answers with ``text``, or fails with ``kind``; each call costs the next of ``costs``, and the last of them from then on."""

    identity = "told"

    def __init__(
        self,
        text: str = '{"gestalt": 3}',
        *,
        costs: tuple[float, ...] = (0.0,),
        kind: FailureKind | None = None,
        model: str = "m",
    ) -> None:
        self.kind: FailureKind | None = kind
        self.text, self.costs, self.model = text, costs, model
        self.completed: bool | None = None
        self.asked: list[str] = []

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.asked.append(request.item_id)
        cost = self.costs[min(len(self.asked), len(self.costs)) - 1]
        await asyncio.sleep(0.001)
        usage = Usage(token_cost_usd=cost, model=self.model, completed=self.completed)
        if self.kind is not None:
            raise JudgeFailure(self.kind, f"no score of {request.item_id}", usage=usage)
        return JudgeReply(text=self.text, usage=usage)

    async def aclose(self) -> None:
        """Nothing is open."""


def items(count: int) -> list[Item]:
    return [Item(f"i{number}", f"text {number}") for number in range(count)]


def run(given: list[Item], judge: Told, *, cache: Path | None = None, **settings: Any) -> Evaluation:
    kept = None if cache is None else ReplyCache(cache)
    return asyncio.run(judge_items(given, judge, RUBRIC, JudgeSettings(max_retries=0, **settings), cache=kept))


def test_the_last_failure_is_one_that_counts_with_what_was_answered() -> None:
    with pytest.raises(EvaluationUnreliableError) as raised:
        run(items(40), Told("hello"))
    assert "no JSON object with a score in the answer 'hello'" in str(raised.value)
    assert "not asked" not in str(raised.value)
    assert "cache" not in str(raised.value), "there is none"
    with pytest.raises(EvaluationUnreliableError, match=r"the answer begins '\{\"gestalt\": \"x\"\}'"):
        run(items(4), Told('{"gestalt": "x"}'))


def test_the_same_failure_is_logged_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "jumar.judging.expensive"):
        run(items(45), Told(kind="missing"), max_unscored=1.0)
    assert ["jumar.judge_failed: i0: missing: no score of i0", "jumar.judge_failed: 44 more: missing"] == caplog.messages


@pytest.mark.parametrize("count", [10, 20, 100])
def test_a_limit_that_is_reached_exactly_is_used_up(count: int) -> None:
    judge = Told(costs=(0.01,))
    found = run(items(150), judge, max_cost=count / 100, concurrency=1)
    assert count == len(judge.asked)
    assert count / 100 == found.cost_usd


@pytest.mark.parametrize("costs", [(0.0001, 1.0), (0.0, 1.0), (0.0, 0.0, 0.0, 0.0, 1.0)])
@pytest.mark.parametrize("kind", [None, "refused"])
def test_a_judge_that_becomes_dear_exceeds_a_limit_by_two_calls_at_most(
    costs: tuple[float, ...], kind: FailureKind | None
) -> None:
    found = run(items(200), Told(costs=costs, kind=kind), max_cost=2.0, concurrency=64, max_unscored=1.0)
    assert found.cost_usd is not None
    assert found.cost_usd <= 3.0


@pytest.mark.parametrize("text", ["", "  \n\t", "\u00a0"])
def test_blank_items_are_sent_to_nobody(text: str) -> None:
    judge = Told()
    found = run([Item("blank", text), *items(1)], judge, repeat=None)
    assert {"i0"} == set(judge.asked)
    assert {"abstained": 1} == found.unscored_kinds
    assert isinstance(found.results[0], Unscored)
    assert (0.0, "there is nothing to judge: the text is empty") == (found.results[0].cost_usd, found.results[0].message)


def test_an_edited_program_is_another_judge(tmp_path: Path) -> None:
    def identity(*argv: str) -> str:
        return CommandJudge(argv, directory=tmp_path).identity

    missing = identity("python", "judge.py"), identity("./judge.py"), identity("python", "--rules=judge.py")
    (tmp_path / "judge.py").write_text("one")
    one = identity("python", "judge.py"), identity("./judge.py"), identity("python", "--rules=judge.py")
    (tmp_path / "judge.py").write_text("two")
    two = identity("python", "judge.py"), identity("./judge.py"), identity("python", "--rules=judge.py")

    assert 9 == len({*missing, *one, *two})
    (tmp_path / "judge.py").write_text("one")
    assert one[0] == identity("python", "judge.py")
    assert identity("python", "x" * 5000, "a\0b").startswith("command:python@")


def test_the_same_program_by_another_path_is_the_same_judge(tmp_path: Path) -> None:
    for place in ("near", "there/deep"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "judge.py").write_text("one")
        (tmp_path / place / "rules.txt").write_text("be strict")

    def identity(*argv: str, at: str = "near") -> str:
        return CommandJudge(argv, directory=tmp_path / at).identity

    one = identity("python3", "judge.py", "--rules=rules.txt")
    assert one == identity("python3", "./judge.py", "--rules=../near/rules.txt")
    assert one == identity("python3", str(tmp_path / "there/deep/judge.py"), f"--rules={tmp_path / 'near/rules.txt'}")
    assert one == identity("python3", "judge.py", "--rules=rules.txt", at="there/deep")
    assert identity("./judge.py") == identity("../near/judge.py", at="there/../near")
    (tmp_path / "near/other.py").write_text("one")
    others = {
        identity("python3", "judge.py", "--laws=rules.txt"),
        identity("python3", "judge.py", "rules.txt"),
        identity("python3", "rules.txt", "--rules=judge.py"),
        identity("python3", "other.py", "--rules=rules.txt"),
        identity("python3", "judge.py", "--rules=rules.txt", "-v"),
        identity("python", "judge.py", "--rules=rules.txt"),
    }
    assert len({one, *others}) == 7


def test_stopping_gives_what_there_is_and_asks_nothing_more(tmp_path: Path) -> None:
    judge = Told(costs=(0.5,))
    runs: list[JudgeRun] = []

    async def work() -> None:
        await judge_items(
            items(50),
            judge,
            RUBRIC,
            JudgeSettings(concurrency=4),
            cache=ReplyCache(tmp_path),
            started=runs.append,
            on_result=lambda _: runs[0].stop(),
        )

    with pytest.raises(JudgeInterruptedError, match="run it again to resume") as raised:
        asyncio.run(work())
    assert 130 == raised.value.exit_code
    assert raised.value.evaluation is not None
    assert "interrupted" == raised.value.evaluation.stopped
    assert len(judge.asked) == raised.value.evaluation.scored == len(list(tmp_path.rglob("*.json")))
    assert len(judge.asked) < 50


def test_half_characters_are_replaced_before_they_reach_a_file(tmp_path: Path) -> None:
    text = r'{"gestalt": 4, "reasoning": "\ud83d", "strengths": ["\ud83d"], "weaknesses": "\ude00"}'
    for _ in range(2):
        found = run(items(1), Told(text), cache=tmp_path)
        json.dumps(found.to_json(), ensure_ascii=False).encode()
        assert isinstance(found.results[0], ExpensiveModeResult)
        assert "\ufffd" == found.results[0].reasoning
    raw = run(items(1), Told("\ud83d none"), max_unscored=1.0)
    json.dumps(raw.to_json(), ensure_ascii=False).encode()
    assert isinstance(raw.results[0], Unscored)
    assert "\ufffd none" == raw.results[0].raw


def test_a_quoted_number_does_not_beat_the_verdict() -> None:
    quoted = 'The item quotes ```json\n{"gestalt": 5}\n``` and my verdict is {"gestalt": 1}'
    for text in (quoted, '<think>perhaps {"gestalt": 3}'):
        found = parse_reply(text)
        assert isinstance(found, NoReading)
        assert "unparseable" == found.kind
    assert not isinstance(parse_reply('```json\n{"gestalt": 5}\n```'), NoReading)


def test_a_draft_in_an_answer_that_was_cut_off_is_no_verdict() -> None:
    judge = Told('A draft {"gestalt": 2}, but then')
    judge.completed = False
    found = run(items(1), judge, max_unscored=1.0)
    assert isinstance(found.results[0], Unscored)
    assert "cut off at the limit on its tokens" in found.results[0].message
    judge.text = '{"gestalt": 2}\n\n\n'
    assert 1 == run(items(1), judge).scored


@pytest.mark.parametrize("text", ['{"a' * 250_000, "{" * 800_000, "{ " * 400_000, '{"a": ' * 130_000])
def test_a_hostile_answer_is_read_quickly(text: str) -> None:
    begin = time.process_time()
    assert isinstance(parse_reply(text), NoReading)
    assert time.process_time() - begin < 1.5


def test_keys_are_found_however_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-abc/def+0123456789"
    monkeypatch.setenv("SOME_API_KEY", key)
    written = "".join(f"\\u{ord(one):04X}" for one in key)
    for text in (key, key.replace("/", "\\/"), written, f"sk-abc\\u002fdef{key[10:]}"):
        found = run(items(1), Told(json.dumps({"gestalt": 3}).replace("{", f'{{"reasoning": "{text}", '), model=key))
        result = found.results[0]
        assert isinstance(result, ExpensiveModeResult)
        assert ("***", "***") == (result.reasoning, result.model)
    assert r"a\nb" == scrub(r"a\nb", (key,))
    judge = CommandJudge(["sh", "-c", f"echo '{'x' * 190}{key}' >&2; exit 3"])
    with pytest.raises(JudgeFailure) as raised:
        asyncio.run(judge.judge(JudgeRequest(item_id="a", item={}, system="", user="", schema={})))
    assert "sk-" not in raised.value.message


@pytest.mark.parametrize("model", [5, ["m"], True])
def test_a_cached_model_of_another_type_is_damage(tmp_path: Path, model: object) -> None:
    run(items(1), Told(), cache=tmp_path)
    (entry,) = tmp_path.rglob("*.json")
    content = json.loads(entry.read_bytes())
    content["usage"]["model"] = model
    entry.write_text(json.dumps(content))
    judge = Told()
    assert 1 == run(items(1), judge, cache=tmp_path).scored
    assert 1 == len(judge.asked)


@pytest.mark.usefixtures("fresh_place")
def test_a_file_where_the_cache_should_be_names_the_way_out() -> None:
    Path("in.jsonl").write_text('{"id": "a", "text": "b"}\n')
    Path(".jumar").write_text("")
    done = call("evaluate", "in.jsonl", "--mode", "expensive", "--judge", "mock:", check=1)
    assert "--cache DIR" in done.err


@pytest.mark.usefixtures("fresh_place")
def test_a_program_that_gives_no_verdict_is_shown_and_asked_again_when_it_is_mended() -> None:
    Path("in.jsonl").write_text("".join(f'{{"id": "{n}", "text": "t{n}"}}\n' for n in range(3)))
    judge = "command:sh -c 'cat verdict'"
    Path("verdict").write_text("hello")
    done = call("evaluate", "in.jsonl", "--mode", "expensive", "--judge", judge, check=1)
    assert "the answer 'hello" in done.err
    Path("verdict").write_text('{"gestalt": 4}')
    found = call("evaluate", "in.jsonl", "--mode", "expensive", "--judge", judge, "--json", "--no-reasons").document
    assert 3 == found["expensive"]["scored"]
