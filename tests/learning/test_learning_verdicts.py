"""What the judge said in a learning run: asked once, kept line by line, believed only for the text that was judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jumar.app.config.tables import RedactConfig, install_redaction
from jumar.errors import EvaluationUnreliableError, ItemError, StoreDamagedError
from jumar.judging import Item, builtin_rubric
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.asking.summary import JudgeInterruptedError
from jumar.learning.run.verdicts import JudgeAccess, Verdicts
from jumar.model.protocols import JudgeFailure, JudgeReply, JudgeRequest
from jumar.model.records import Usage


class CountingJudge:
    """Scores every item 4 for a cent; fails for those called ``bad``, and dies after ``lives`` answers."""

    identity = "counting"

    def __init__(self, lives: int = 10**6) -> None:
        self.asked: list[str] = []
        self._lives = lives

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.asked.append(request.item_id)
        if request.item_id.startswith("bad"):
            raise JudgeFailure("refused", "no")
        if len(self.asked) > self._lives:
            raise KeyboardInterrupt
        found = {"reasoning": "well", "strengths": [], "weaknesses": [], "gestalt": 4}
        return JudgeReply(text=json.dumps(found), usage=Usage(token_cost_usd=0.01, input_tokens=10, output_tokens=2))

    async def aclose(self) -> None:
        """Nothing is open."""


def items(count: int, first: int = 0) -> list[Item]:
    return [Item(f"item-{number}", f"text {number}", group=f"g{number % 3}") for number in range(first, first + count)]


def verdicts(path: Path, judge: CountingJudge, stop: Callable[[], bool] = lambda: False) -> Verdicts:
    return Verdicts(path, asking(judge, repeat=1, stop=stop))


def asking(judge: CountingJudge, *, repeat: int | None = None, stop: Callable[[], bool] = lambda: False) -> JudgeAccess:
    settings = JudgeSettings(repeat=repeat, concurrency=1)
    return JudgeAccess(judge=judge, question=builtin_rubric("text").judge, settings=settings, stop=stop)


def test_nobody_is_asked_twice_and_what_was_paid_is_in_the_verdicts(tmp_path: Path) -> None:
    path, judge = tmp_path / "verdicts.jsonl", CountingJudge()
    found = verdicts(path, judge)
    found.ask(items(4))
    assert (4, pytest.approx(0.04)) == (found.calls.calls, found.calls.total_usd)
    found.ask(items(4))
    assert 4 == found.calls.calls
    later = verdicts(path, judge)
    later.ask(items(6))
    assert 2 == later.calls.calls
    assert [f"item-{number}" for number in range(6)] == judge.asked
    assert [4.0] * 6 == [one.score for one in later.targets(items(6))]
    assert 0.06 == pytest.approx(sum(one.cost_usd or 0 for one in later.results(items(6))))


def test_a_line_that_was_cut_off_is_no_verdict_and_nothing_is_appended_to_it(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    verdicts(path, CountingJudge()).ask(items(3))
    whole = path.read_bytes()
    tried = 0
    for cut in range(len(whole) - 1, len(whole) - 120, -7):
        path.write_bytes(whole[:cut])
        judge = CountingJudge()
        again = verdicts(path, judge)
        again.ask(items(3))
        assert ["item-2"] == judge.asked
        assert whole == path.read_bytes()
        tried += 1
    print(f"cuts: {tried}")


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    verdicts(path, CountingJudge()).ask(items(3))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + "{}\n" + lines[2])
    with pytest.raises(StoreDamagedError, match=r"verdicts\.jsonl:2: .*take the line out"):
        verdicts(path, CountingJudge())


def test_the_verdict_of_another_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    found = verdicts(path, CountingJudge())
    found.ask(items(3))
    changed = [replace(one, text="another text") if number == 1 else one for number, one in enumerate(items(3))]
    with pytest.raises(ItemError, match="item-1"):
        found.targets(changed)


def test_what_failed_is_asked_again_and_what_was_answered_before_is_kept(tmp_path: Path) -> None:
    path, judge = tmp_path / "verdicts.jsonl", CountingJudge()
    found = verdicts(path, judge)
    with pytest.raises(EvaluationUnreliableError):
        found.ask([*items(2), *(Item(f"bad-{number}", "x") for number in range(4))])
    assert 2 == len(found.targets(items(2)))
    judge.asked.clear()
    verdicts(path, judge).ask(items(3))
    assert ["item-2"] == judge.asked


def test_somebody_who_stops_keeps_what_was_answered(tmp_path: Path) -> None:
    path, judge = tmp_path / "verdicts.jsonl", CountingJudge()
    stopping = verdicts(path, judge, stop=lambda: len(judge.asked) >= 1)
    with pytest.raises(JudgeInterruptedError):
        stopping.ask(items(20_000))
    kept = verdicts(path, CountingJudge())
    assert 0 < len(kept.targets(items(20_000))) == len(judge.asked) == stopping.calls.calls < 20_000


class TwoMindedJudge(CountingJudge):
    """Says now this and now that of the same item, and dies after so many answers."""

    identity = "two-minded"

    def __init__(self, apart: int, lives: int = 10**9) -> None:
        super().__init__(lives)
        self._apart = apart
        self._said: dict[str, int] = {}

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        reply = await super().judge(request)
        turn = request.repeat
        return replace(reply, text=json.dumps({**json.loads(reply.text), "gestalt": 3 + self._apart * (turn % 2)}))


@pytest.mark.parametrize(("apart", "others"), [(0, 1), (1, 3)], ids=["steady", "noisy"])
def test_an_interrupted_run_reads_each_item_as_often_as_the_whole_one(apart: int, others: int, tmp_path: Path) -> None:
    def asked_by(path: Path, judge: CountingJudge) -> Verdicts:
        return Verdicts(path, asking(judge))

    whole = TwoMindedJudge(apart)
    asked_by(tmp_path / "whole.jsonl", whole).ask(items(12))
    expected = (tmp_path / "whole.jsonl").read_bytes()
    assert 5 * 2 + 7 * others == len(whole.asked)
    kills = 0
    for lives in range(1, len(whole.asked)):
        path = tmp_path / f"{lives}.jsonl"
        with pytest.raises(KeyboardInterrupt):
            asked_by(path, TwoMindedJudge(apart, lives)).ask(items(12))
        asked_by(path, TwoMindedJudge(apart)).ask(items(12))
        assert expected == path.read_bytes()
        kills += 1
    print(f"kills survived: {kills}")


def test_the_budget_holds_over_the_first_items_and_the_others(tmp_path: Path) -> None:
    paid = Verdicts(tmp_path / "verdicts.jsonl", asking(CountingJudge()))
    paid.ask(items(40), max_cost=0.2)
    assert (20, pytest.approx(0.2)) == (paid.calls.calls, paid.calls.total_usd)
    assert "the limit of $0.2 is reached: $0.2000 spent" in str(paid.stopped)
    few = Verdicts(tmp_path / "few.jsonl", asking(CountingJudge()))
    few.ask(items(40), items(40, 50), max_cost=0.03)
    assert 3 == few.calls.calls
    assert "the limit of $0.03 is reached: $0.0300 spent" in str(few.stopped)


def test_a_judge_that_fails_on_all_of_the_first_is_not_asked_about_the_others(tmp_path: Path) -> None:
    judge = CountingJudge()
    found = Verdicts(tmp_path / "verdicts.jsonl", asking(judge))
    with pytest.raises(EvaluationUnreliableError):
        found.ask([*(Item(f"bad-{number}", "x") for number in range(5)), *items(30)])
    assert {f"bad-{number}" for number in range(5)} == set(judge.asked)
    judge.asked.clear()
    found.ask([*(Item(f"bad-{number}", "x") for number in range(3)), *items(30)])
    assert 30 == len(found.targets(items(30)))


def test_names_that_look_like_secrets_are_not_paid_for_twice(tmp_path: Path) -> None:
    install_redaction(RedactConfig())
    named = [replace(one, id=f"ghp_{number:036d}") for number, one in enumerate(items(6))]
    judge = CountingJudge()
    asked = verdicts(tmp_path / "verdicts.jsonl", judge)
    asked.ask(named)
    assert "ghp_" not in (tmp_path / "verdicts.jsonl").read_text()
    later = verdicts(tmp_path / "verdicts.jsonl", judge)
    later.ask(named)
    assert 6 == len(judge.asked)
    assert named == [one.item for one in later.targets(named)]


class DearJudge(CountingJudge):
    """Charges for answers that say nothing."""

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        return replace(await super().judge(request), text="no answer")


def test_what_was_paid_for_nothing_counts_and_is_asked_again(tmp_path: Path) -> None:
    dear = asking(DearJudge(), repeat=1)
    with pytest.raises(EvaluationUnreliableError):
        Verdicts(tmp_path / "verdicts.jsonl", dear).ask(items(2))
    assert dear.calls.known_usd >= 0.01
    later = Verdicts(tmp_path / "verdicts.jsonl", replace(asking(CountingJudge(), repeat=1), calls=dear.calls))
    assert items(2) == later.missing(items(2))
    told: list[str] = []
    later.ask(items(30), max_cost=0.05, hear=lambda result, total: told.append(f"{result.story_id} of {total}"))
    assert later.calls.known_usd <= 0.05 + 1e-9
    assert [f"item-{number} of 30" for number in range(len(told))] == told
    assert 0 < len(told) <= 4  # those that nobody asked about are not told of


def test_a_run_that_was_begun_before_calls_were_counted_has_paid_for_its_verdicts(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    verdicts(path, CountingJudge()).ask(items(3))
    line = json.loads(path.read_text().splitlines()[0])
    lost = {name: line[name] for name in ("item", "judge")} | {"id": "item-9", "paid": 0.05}
    path.write_text(path.read_text() + json.dumps(lost) + "\n")
    later = verdicts(path, CountingJudge())
    later.count_before()
    later.count_before()
    assert (4, pytest.approx(0.08), 0.05) == (later.calls.calls, later.calls.total_usd, later.calls.largest)
