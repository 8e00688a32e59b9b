"""The same question is asked once, ever, and the answer is the same."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jumar.errors import StoreWriteError
from jumar.judging.asking.cache import ReplyCache, cache_key
from jumar.judging.asking.evaluate import judge_items
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.asking.summary import Evaluation
from jumar.judging.items.item import Item
from jumar.judging.judges.mock import MockJudge
from jumar.judging.models import ExpensiveModeResult
from jumar.judging.rubric import JudgeRubric
from jumar.model.protocols import JudgeReply, JudgeRequest
from jumar.model.records import Usage

RUBRIC = JudgeRubric(task="Judge.", criteria=("It is right.",))
ITEMS = [Item(f"i{number}", f"text {number}") for number in range(6)]
REPLY = JudgeReply(text='{"gestalt": 4}', usage=Usage(input_tokens=7, output_tokens=3, token_cost_usd=0.5, model="m"))


def run(cache: Path, judge: MockJudge, rubric: JudgeRubric = RUBRIC, **settings: Any) -> Evaluation:
    return asyncio.run(judge_items(ITEMS, judge, rubric, JudgeSettings(**settings), cache=ReplyCache(cache)))


def test_a_second_run_is_free_and_exact(tmp_path: Path):
    first, again = MockJudge(noise=1.0, cost=0.1), MockJudge(noise=1.0, cost=0.1)

    one = run(tmp_path, first, repeat=2)
    other = run(tmp_path, again, repeat=2)

    assert (12, 0) == (first.calls, again.calls)
    assert one.cost_usd == pytest.approx(1.2)
    assert (0.0, 12, 0) == (other.cost_usd, other.cached, other.calls)
    assert (one.input_tokens, one.output_tokens) == (other.input_tokens, other.output_tokens)
    for before, after in zip(one.results, other.results, strict=True):
        assert isinstance(after, ExpensiveModeResult)
        assert after.cached
        assert before == after.model_copy(update={"cached": False, "cost_usd": before.cost_usd})


def test_whatever_decides_about_the_answer_is_another_question(tmp_path: Path):
    run(tmp_path, MockJudge())
    changes: list[tuple[MockJudge, JudgeRubric, dict[str, Any]]] = [
        (MockJudge(seed=1), RUBRIC, {}),
        (MockJudge(), RUBRIC.model_copy(update={"task": "Judge well."}), {}),
        (MockJudge(), RUBRIC, {"temperature": 0.7}),
        (MockJudge(), RUBRIC, {"seed": 9}),
        (MockJudge(), RUBRIC, {"scale": (1.0, 10.0)}),
    ]
    for judge, rubric, settings in changes:
        run(tmp_path, judge, rubric, **settings)
        assert 6 == judge.calls


def test_the_nonce_and_the_items_id_do_not_count():
    request = JudgeRequest(item_id="a", item={"id": "a", "text": "x"}, system="s", user="u", schema={})
    renamed = replace(request, item_id="b", item={"id": "b", "text": "x"})

    assert cache_key("j", request, 1) == cache_key("j", renamed, 1)
    assert cache_key("j", request, 1) != cache_key("k", request, 1)
    assert cache_key("j", request, 1) != cache_key("j", request, 2)
    assert cache_key("j", request, 1) != cache_key("j", replace(request, repeat=1), 1)


def test_equal_texts_share_an_answer(tmp_path: Path):
    judge = MockJudge()
    cache = ReplyCache(tmp_path)

    for name in ("a", "b"):
        evaluation = asyncio.run(judge_items([Item(name, "same")], judge, RUBRIC, cache=cache))
        assert [name] == [one.story_id for one in evaluation.results]

    assert 1 == judge.calls


def test_answers_without_a_verdict_are_kept_but_asked_again_and_failures_are_not(tmp_path: Path):
    run(tmp_path, MockJudge(prose=1.0), max_unscored=1.0)
    kept = [json.loads(path.read_bytes())["text"] for path in tmp_path.rglob("*.json")]
    assert 6 == len(kept)
    assert all("I would give this about" in text for text in kept)

    mended = MockJudge()
    mended.identity = MockJudge(prose=1.0).identity
    assert (6, 0) == (run(tmp_path, mended).scored, run(tmp_path, mended).calls)
    assert 6 == mended.calls

    run(tmp_path / "other", MockJudge(fail=1.0, kind="refused"), max_unscored=1.0)
    assert [] == list((tmp_path / "other").rglob("*.json"))


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"format": 99}',
        b'{"format": 1, "key": "another", "text": "x", "usage": {}}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_entry_is_asked_again_and_mended(tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture):
    run(tmp_path, MockJudge())
    victim = min(tmp_path.rglob("*.json"))
    victim.write_bytes(damage)
    judge = MockJudge()

    with caplog.at_level(logging.WARNING, "jumar.judging.expensive"):
        assert 6 == run(tmp_path, judge).scored

    assert 1 == judge.calls
    assert "jumar.judge_cache_damaged" in caplog.text
    assert json.loads(victim.read_bytes())["format"] == 1


@pytest.mark.parametrize("wrong", [{"text": 7}, {"usage": []}, {"usage": {"input_tokens": -1}}, {"usage": {"input_tokens": "7"}}])
def test_an_entry_with_wrong_types_is_none(tmp_path: Path, wrong: dict[str, Any]):
    cache = ReplyCache(tmp_path)
    cache.put("ab12", REPLY, {})
    path = cache.path("ab12")
    path.write_text(json.dumps({**json.loads(path.read_text()), **wrong}))

    assert cache.get("ab12") is None


def test_an_entry_cut_off_anywhere_is_none_or_whole(tmp_path: Path):
    cache = ReplyCache(tmp_path)
    cache.put("ab12", REPLY, {"judge": "j"})
    whole = cache.path("ab12").read_bytes()

    for length in range(len(whole) - 1):  # the last byte is a line feed
        cache.path("ab12").write_bytes(whole[:length])
        assert cache.get("ab12") is None, length


@pytest.mark.parametrize("way", ["edited", "edited without its mark", "of another question"])
def test_a_reply_that_somebody_else_wrote_is_not_taken_but_one_that_was_there_is(tmp_path: Path, way: str):
    cache = ReplyCache(tmp_path)
    cache.put("ab12", REPLY, {})
    cache.put("ab34", JudgeReply(text='{"gestalt": 5}', usage=Usage()), {})
    path, data = cache.path("ab12"), cache.path("ab12").read_bytes()
    if way == "of another question":
        path.write_bytes(cache.path("ab34").read_bytes().replace(b'"ab34"', b'"ab12"'))
    else:
        data = re.sub(rb',\s*"mark": "[^"]*"', b"", data) if "without" in way else data
        path.write_bytes(data.replace(b'gestalt\\": 4', b'gestalt\\": 5'))
    forged: list[str] = []

    assert ReplyCache(tmp_path, since=cache_start(path) - 1, forged=forged.append).get("ab12") is None
    assert forged == [path.name]
    found = ReplyCache(tmp_path, since=cache_start(path) + 1).get("ab12")
    assert (found is not None) is (way == "edited without its mark"), "one of an older jumar, when the run began"


def cache_start(path: Path) -> int:
    return path.stat().st_ctime_ns


def test_what_is_read_has_no_cost_of_its_own(tmp_path: Path):
    cache = ReplyCache(tmp_path)
    cache.put("ab12", REPLY, {})

    assert JudgeReply(text=REPLY.text, usage=Usage(input_tokens=7, output_tokens=3, model="m")) == cache.get("ab12")


def test_a_directory_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path):
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreWriteError, match="file"):
        ReplyCache(tmp_path / "file" / "below")


def test_a_reply_that_cannot_be_kept_is_an_error_and_leaves_nothing_behind(tmp_path: Path):
    cache = ReplyCache(tmp_path / "cache")
    cache.path("ab12").mkdir(parents=True)

    with pytest.raises(StoreWriteError, match="keep a reply"):
        cache.put("ab12", REPLY, {})

    assert ["12.json"] == os.listdir(tmp_path / "cache" / "ab")


def test_an_unreadable_entry_is_asked_again(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    cache = ReplyCache(tmp_path)
    cache.path("ab12").mkdir(parents=True)

    assert cache.get("ab12") is None
    assert "jumar.judge_cache_unreadable" in caplog.text


WRITER = """
import sys
from pathlib import Path
from jumar.judging.asking.cache import ReplyCache
from jumar.model.protocols import JudgeReply
cache = ReplyCache(Path(sys.argv[1]))
for number in range(300):
    cache.put("ab12", JudgeReply(text=sys.argv[2] * 500), {})
    found = cache.get("ab12")
    assert found is not None and len(set(found.text)) == 1, found
"""


def test_two_processes_at_once_do_no_harm(tmp_path: Path):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "cache"), letter]) for letter in "ab"]

    assert [0, 0] == [writer.wait(60) for writer in writers]
    assert ["ab"] == os.listdir(tmp_path / "cache")
    assert 1 == len(os.listdir(tmp_path / "cache" / "ab"))
    assert stat.S_ISREG(os.lstat(ReplyCache(tmp_path / "cache").path("ab12")).st_mode)


@pytest.mark.parametrize("which", ["replies", "replies/ab"])
def test_nothing_is_kept_through_a_link_that_takes_its_place(tmp_path: Path, which: str):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "a person's").symlink_to(tmp_path / "replies")
    (tmp_path / "replies").mkdir()
    cache = ReplyCache(tmp_path / "a person's")
    cache.put("ab11", REPLY, {})
    (tmp_path / which).rename(tmp_path / "was")
    (tmp_path / which).symlink_to(outside)

    cache.put("ab12", REPLY, {})

    assert [] == [*outside.iterdir()]
    kept = cache.get("ab12")
    assert kept is not None
    assert kept.text == REPLY.text
    assert (tmp_path / which).parent.joinpath("quarantine").is_dir()
