"""The evaluator of a loop on what lies in a work directory: scores, reasons, what is broken, invalid or missing, what it cost."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from prompted import render_prompt
from steps_kit import context

from jumar.app.config.evaluator import EvaluatorConfig
from jumar.app.run.evaluator import Evaluators, Place
from jumar.core.codec import Fields
from jumar.errors import ConfigError, ItemError, StoreWriteError
from jumar.loop.engine.verdict import verdict
from jumar.loop.scorers import JudgeScorer
from jumar.model import IterationRecord, JudgedItem, Judgement, ScoreReading

GOOD = {"title": "Add export", "description": "The user can keep what was counted.", "acceptance_criteria": ["a", "b", "c"]}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def stories(work: Path, *given: dict[str, Any], name: str = "s.jsonl") -> None:
    rows = [{"id": f"s{number}", **GOOD, **one} for number, one in enumerate(given, 1)]
    (work / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def judged(work: Path, scores: dict[str, Any]) -> str:
    """Record verdicts; a score, or a mapping of further keys."""
    rows = [{"id": name, **(one if isinstance(one, dict) else {"judge_scores": one})} for name, one in scores.items()]
    (work.parent / "judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "replay:judged.jsonl"


def scorers(work: Path, **options: Any) -> list[JudgeScorer]:
    stop = options.pop("stop", None)
    config = EvaluatorConfig.model_validate({"items": "s.jsonl", **options})
    return Evaluators(Place(base=work.parent, root=work.parent / "root", stop=stop)).scorers(config)


def read(work: Path, **options: Any) -> tuple[ScoreReading, ...]:
    where = context(work)
    return tuple(scorer.score(where) for scorer in scorers(work, **options))


def judgement(readings: tuple[ScoreReading, ...]) -> Judgement:
    found = readings[0].judgement
    assert found is not None
    return found


# ------------------------------------------------------------------------------------------------------------ scores


def test_the_mean_gestalt_becomes_the_score(work: Path):
    stories(work, {}, {})
    (reading,) = read(work, mode="expensive", judge=judged(work, {"s1": 2, "s2": 4}))
    assert 0.5 == reading.score
    assert "correctness" == reading.dimension
    assert reading.reason.startswith("overall score 3.00 of 5 over 2 items (expensive: replay:judged.jsonl@")
    found = judgement((reading,))
    assert (2, 2, 3.0, 0.0, {}) == (found.items, found.scored, found.gestalt, found.cost_usd, dict(found.unscored))
    assert (None, None, None) == (found.cheap, found.gap, found.tracks)


def test_in_dual_mode_the_expensive_judge_counts_and_the_cheap_one_stands_beside_it(work: Path):
    stories(work, {}, {"acceptance_criteria": []})
    judge = judged(work, {"s1": 5, "s2": {"judge_scores": 1, "weaknesses": ["Nobody can say when it is done."]}})
    readings = read(work, judge=judge, dimensions={"correctness": "gestalt", "ready": "story_quality", "small": "invest_small"})
    assert [0.5, pytest.approx(5 / 6), 1.0] == [one.score for one in readings]
    assert [True, False, False] == [one.judgement is not None for one in readings]
    found = judgement(readings)
    assert found.cheap is not None
    assert found.gap == pytest.approx(3.0 - found.cheap)
    assert found.tracks is None  # two items prove nothing
    worst = found.worst[0]
    assert ("s2", 1.0, ("Nobody can say when it is done.",)) == (worst.id, worst.gestalt, worst.weaknesses)
    assert worst.cheap is not None
    assert ("s2: Nobody can say when it is done.",) == found.weaknesses
    assert any("Nobody can say when it is done." in line for line in found.missing)
    folder = context(work).log_directory / "evaluation"
    assert {
        "cheap_eval.json",
        "dashboard.txt",
        "expensive_eval.json",
        "gap_analysis.json",
        "gap_report.md",
        "verdicts.jsonl",
    } == {path.name for path in folder.iterdir()}
    assert "logs/evaluation" == found.details
    assert [1.0] == [
        one["gestalt"]
        for one in json.loads((folder / "expensive_eval.json").read_text())["individual_scores"]
        if one["story_id"] == "s2"
    ]


def test_cheap_mode_asks_nobody_and_says_what_is_missing(work: Path):
    stories(work, {}, {"acceptance_criteria": [], "title": "Exports"})
    (reading,) = read(work, mode="cheap")
    assert reading.score is not None
    assert 0.0 < reading.score < 1.0
    found = judgement((reading,))
    assert (0.0, 0, None) == (found.cost_usd, found.calls, found.judge)
    assert "s2" == found.worst[0].id
    assert any(text.startswith("lacks good_ac (3 to 7 acceptance criteria)") for text in found.worst[0].weaknesses)
    assert "good_ac: 3 to 7 acceptance criteria – lacking in 1 of 2 items (s2)" in found.weaknesses
    assert not any(line.startswith("clear_user_value") for line in found.weaknesses)


def test_texts_are_items_of_their_own(work: Path):
    (work / "docs").mkdir()
    (work / "docs" / "a.md").write_text("# A\n\nSome text, for example this one, because it is short.\n")
    (work / "docs" / "b.txt").write_text("one\ntwo\n")
    (work / "docs" / "left.md").write_text("not an artifact\n")
    where = context(work, artifacts=("docs/a.md", "docs/b.txt"))
    (scorer,) = scorers(work, items=["docs/*.md", "docs/*.txt"], mode="cheap", dimensions={"structure": "structure"})
    reading = scorer.score(where)
    assert reading.judgement is not None
    assert {"docs/a.md", "docs/b.txt"} == {one.id for one in reading.judgement.worst}
    assert "mean structure of the items, by the cheap judge" == reading.reason


def test_records_without_ids_in_several_files_are_told_apart(work: Path):
    for name in ("a.jsonl", "b.jsonl"):
        (work / name).write_text('{"answer": "Some text."}\n')
    found = judgement(read(work, items="*.jsonl", mode="cheap", fields={"text": "answer"}))
    assert {"a.jsonl:line-1", "b.jsonl:line-1"} == {one.id for one in found.worst}


def test_a_text_is_a_story_where_the_rubric_is_for_stories(work: Path):
    (work / "a.md").write_text("The user can keep what was counted, which saves time at the end of a month.\n")
    readings = read(work, items="*.md", mode="cheap", rubric="story", dimensions={"value": "invest_valuable"})
    assert 1.0 == readings[0].score
    assert "a.md" == judgement(readings).worst[0].id


def test_bad_patterns_are_weaknesses(work: Path):
    stories(work, {"description": "The user can keep what was counted, somehow."})
    pattern = {"id": "vague", "type": "bad", "description": "Says somehow", "keywords": [], "phrases": ["somehow"], "weight": 1.0}
    known = {"source": "t", "discovered_at": "2026-01-01T00:00:00", "accuracy": 0.5, "times_fired": 0, "status": "active"}
    (work.parent / "p.json").write_text(json.dumps({"version": "2.0", "patterns": [{**pattern, **known}]}))
    found = judgement(read(work, mode="cheap", patterns="p.json"))
    assert "shows vague (Says somehow)" == found.worst[0].weaknesses[0]
    assert found.patterns is not None


def test_options_that_nobody_checked_before_are_checked(work: Path):
    made = Evaluators(Place(base=work))
    assert made.of_options({"items": "s", "mode": "cheap"}) is made.of_options({"items": "s", "mode": "cheap"})
    with pytest.raises(ConfigError, match="scorer 'judge': mode: "):
        made.of_options({"items": "s", "mode": "cheep"})


# ------------------------------------------------------------------------------------- what is no score, and what it means


def test_no_file_scores_0_and_asks_nobody(work: Path):
    readings = read(work, judge="mock:", dimensions={"correctness": "gestalt", "quality": "invest"})
    assert [(0.0, "missing: s.jsonl")] * 2 == [(one.score, one.reason) for one in readings]
    assert readings[0].judgement is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "s.jsonl: there are no items in it"),
        ("{]\n", "s.jsonl, line 1"),
        ('{"id": "a", "title": "t", "acceptance_criteria": []}\n', "'description' is missing"),
        ('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n', "the id 'a' was there before"),
    ],
)
def test_items_that_cannot_be_read_are_invalid(content: str, why: str, work: Path):
    (work / "s.jsonl").write_text(content)
    (reading,) = read(work, mode="cheap")
    assert reading.score is None
    assert reading.broken is None
    assert why in (reading.invalid or "")


def test_two_files_with_one_id_are_invalid(work: Path):
    for name in ("a.jsonl", "b.jsonl"):
        stories(work, {}, name=name)
    (reading,) = read(work, items="*.jsonl", mode="cheap")
    assert "two items have the id 's1'" in (reading.invalid or "")


def test_a_link_that_leads_out_and_a_fifo_are_not_read(work: Path):
    (work.parent / "secret.jsonl").write_text('{"id": "a", "text": "key"}\n')
    (work / "s.jsonl").symlink_to("../secret.jsonl")
    assert "leads out of the working directory" in (read(work, mode="cheap")[0].invalid or "")
    (work / "s.jsonl").unlink()
    os.mkfifo(work / "s.jsonl")
    assert "'s.jsonl' cannot be read: it is not a regular file" == read(work, mode="cheap")[0].invalid


def test_emptying_the_worst_item_does_not_help(work: Path):
    empty = {"title": "", "description": " ", "acceptance_criteria": []}
    judge = judged(work, {"s1": 5, "s2": 2})
    stories(work, {}, {})
    before = read(work, mode="expensive", judge=judge)[0].score
    stories(work, {}, empty)
    (after,) = read(work, mode="expensive", judge=judge)
    assert 0.625 == before
    assert 0.5 == after.score
    assert "1 empty, counted as 1" in after.reason
    assert {"abstained": 1} == dict(judgement((after,)).unscored)
    stories(work, empty)
    assert 0.0 == read(work, mode="expensive", judge=judge)[0].score


@pytest.mark.parametrize(
    ("judge", "options", "why"),
    [
        ("mock:fail=1", {"max_retries": 0}, "unavailable), 3 in a row without an answer"),
        ("mock:fail=1,kind=rejected", {}, "the judge rejects the questions"),
        ("mock:prose=1", {}, "(5 unparseable)"),
        ("mock:cost=0.4", {"max_cost": 1, "repeat": 1}, "the judge was not asked about every item: the limit of $1 is reached"),
    ],
)
def test_an_unreliable_judge_says_nothing_about_the_candidate(judge: str, options: dict[str, Any], why: str, work: Path):
    stories(work, *({} for _ in range(5)))
    (reading,) = read(work, mode="expensive", judge=judge, **options)
    assert (None, None) == (reading.score, reading.invalid)
    assert why in (reading.broken or "")
    assert reading.judgement is not None  # it was asked, and may have to be paid
    assert "scorer_broken" == verdict((), (reading,), {"correctness": 1.0}).status


def test_a_recorded_judge_that_lacks_too_many_items_is_broken(work: Path):
    stories(work, {}, {}, {}, {}, {})
    four = {f"s{number}": 4 for number in range(1, 5)}
    (reading,) = read(work, mode="expensive", judge=judged(work, four))
    assert 0.75 == reading.score
    assert "1 not scored" in reading.reason
    (reading,) = read(work, mode="expensive", judge=judged(work, {"s1": 4}))
    assert "4 of 5 items could not be judged (4 missing), more than 20%" in (reading.broken or "")


def test_a_part_that_the_items_do_not_have_is_broken(work: Path):
    (work / "s.jsonl").write_text('{"id": "a", "text": "Some text."}\n')
    (reading,) = read(work, mode="cheap", dimensions={"quality": "invest"})
    assert "these items have no 'invest'; they have gestalt, length" in (reading.broken or "")


def test_a_judge_that_raises_is_broken_and_its_traceback_is_in_the_log(work: Path, monkeypatch):
    async def fails(*_: object) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr("jumar.judging.judges.mock.MockJudge.judge", fails)
    stories(work, {})
    (reading,) = read(work, mode="expensive", judge="mock:")
    assert "RuntimeError: no such luck" == reading.broken
    assert "Traceback" in (context(work).log_directory / "score-evaluation.log").read_text()


def test_a_request_to_stop_ends_the_waiting(work: Path):
    stop = threading.Event()
    stories(work, *({} for _ in range(4)))
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    (reading,) = read(work, mode="expensive", judge="mock:latency=60", stop=stop)
    assert "stopped before every item was judged" == reading.broken
    assert time.monotonic() - began < 30


# ------------------------------------------------------------------------------------------------------- cost and cache


def test_what_did_not_change_is_not_paid_for_twice(work: Path):
    options = {"mode": "expensive", "judge": "mock:cost=0.25", "repeat": 1}
    stories(work, {}, {"title": "Add b"}, {"title": "Add c"})
    first = judgement(read(work, **options))
    assert (0.75, 3, 0) == (first.cost_usd, first.calls, first.cached)
    stories(work, {}, {"title": "Add b"}, {"title": "Add d"})
    (context(work).log_directory / "evaluation" / "calls.jsonl").unlink()  # the next iteration has logs of its own
    second = judgement(read(work, **options))
    assert (0.25, 1, 2) == (second.cost_usd, second.calls, second.cached)
    assert "*\n" == (work.parent / "root" / "replies" / ".gitignore").read_text()


def test_a_try_that_was_cut_off_was_paid_for_too(work: Path):
    options = {"mode": "expensive", "judge": "mock:cost=0.25", "repeat": 1}
    stories(work, {}, {"title": "Add b"})
    read(work, **options)
    again = judgement(read(work, **options))
    assert (0.5, 0.5, 2) == (again.cost_usd, again.known_cost_usd, again.calls)
    assert 2 == again.cached


def test_a_disk_that_refuses_ends_the_run_and_blames_no_judge(work: Path):
    (work.parent / "root").write_text("no directory")
    stories(work, {})
    with pytest.raises(StoreWriteError, match="replies"):
        read(work, mode="expensive", judge="mock:")


def test_no_cache_asks_again(work: Path):
    stories(work, {})
    for tries in (1, 2):
        assert tries == judgement(read(work, mode="expensive", judge="mock:", repeat=1, cache=False)).calls
    assert not (work.parent / "root").exists()


def test_an_unknown_cost_is_unknown(work: Path):
    (work.parent / "judge.py").write_text('print(\'{"gestalt": 4, "weaknesses": []}\')\n')
    stories(work, {})
    found = judgement(read(work, mode="expensive", judge="command:python3 judge.py", repeat=1))
    assert found.cost_usd is None
    assert 4.0 == found.gestalt


def test_looking_asks_nobody(work: Path, monkeypatch):
    monkeypatch.setattr("jumar.judging.judges.mock.MockJudge.judge", None)
    (scorer,) = scorers(work, judge="mock:")
    assert scorer.shared.evaluator.asks
    assert 0 == scorer.shared.evaluator.look(context(work))
    stories(work, {}, {})
    assert 2 == scorer.shared.evaluator.look(context(work))
    (work / "s.jsonl").write_text("{]")
    with pytest.raises(ItemError, match=r"s\.jsonl, line 1"):
        scorer.shared.evaluator.look(context(work))
    (scorer,) = scorers(work, mode="cheap")
    assert not scorer.shared.evaluator.asks


# ------------------------------------------------------------------------------------------------- records and the prompt


def test_a_judgement_survives_its_record(work: Path):
    stories(work, {}, {"acceptance_criteria": []})
    (reading,) = read(work, judge="mock:")
    assert ScoreReading.from_json(Fields(json.loads(json.dumps(reading.to_json())), "x")) == reading
    old = {name: value for name, value in reading.to_json().items() if name != "judgement"}
    assert ScoreReading.from_json(Fields(old, "x")).judgement is None


def test_weaknesses_are_the_reflections_of_the_iteration(work: Path):
    stories(work, {})
    judge = judged(work, {"s1": {"judge_scores": 3, "weaknesses": ["No\x1b[31m number.", "No end."]}})
    (reading,) = read(work, mode="expensive", judge=judge)
    found = verdict((), (reading,), {"correctness": 1.0})
    assert found.reflections[1:] == ("No\\x1b[31m number.", "No end.")


def last(*readings: ScoreReading) -> IterationRecord:
    return IterationRecord(iteration_number=1, timestamp="t", quality_score=50.0, readings=readings)


def test_what_may_be_unknown_is_shown_as_unknown():
    item = JudgedItem(id="a`b", gestalt=None)
    unknown = Judgement(mode="dual", items=1, scored=0, gestalt=None, unscored={"refused": 1}, worst=(item,))
    shown = render_prompt(objective="x", iteration=2, last=last(ScoreReading(dimension="d", score=0.5, judgement=unknown)))
    assert "- 1 item, 0 scored (1 refused)\n- expensive average: — (target: at least —)\n- cheap average: —\n- gap: — (" in shown
    assert "\n- `a'b` not scored\n" in shown


def test_a_short_protocol_has_the_figures_and_what_is_odd_about_the_judge():
    judged = Judgement(mode="expensive", items=2, scored=2, gestalt=3.0, flags=("all_same_score",), targets={"gestalt": 4.0})
    shown = render_prompt(objective="x", iteration=2, last=last(ScoreReading(dimension="d", score=0.5, judgement=judged)))
    assert shown.endswith(
        "A judge reads every item and gives the score.\n\n"
        "- 2 items, 2 scored\n- expensive average: 3.00 (target: at least 4.00)\n- about the judge: all same score\n"
    )


def test_the_next_prompt_has_the_evaluation_protocol(work: Path):
    stories(work, {}, {"acceptance_criteria": []})
    judge = judged(work, {"s1": 5, "s2": {"judge_scores": 1, "weaknesses": ["Nobody can say\n# when it is done."]}})
    prompt = render_prompt(objective="x", iteration=2, last=last(*read(work, judge=judge)))
    section = prompt.partition("## Evaluation protocol\n")[2].partition("\n## ")[0]
    assert "evaluated in DUAL MODE" in section
    assert "- 2 items, 2 scored\n- expensive average: 3.00 (target: at least 4.00)\n- cheap average: " in section
    assert "(target: at most 0.50)" in section
    assert "\n- `s2` 1.00, cheap " in section
    assert ": Nobody can say # when it is done.\n" in section
    assert "What the judge saw and the rules did not:\n\n- s2, gap -" in section


def test_the_protocol_does_not_grow_with_the_items(work: Path):
    long = "word " * 2_000
    stories(work, *({"title": f"Add {number}"} for number in range(300)))
    verdicts = {f"s{n}": {"judge_scores": 1 + n % 4, "weaknesses": [f"{n} {long}"] * 20} for n in range(1, 301)}
    readings = read(work, judge=judged(work, verdicts), learn=False)
    assert len(json.dumps(readings[0].to_json())) < 30_000
    plain = render_prompt(objective="x", iteration=2, last=last())
    assert len(render_prompt(objective="x", iteration=2, last=last(*readings))) - len(plain) < 8_000


def test_without_an_evaluator_there_is_no_protocol():
    assert "protocol" not in render_prompt(objective="x", iteration=2, last=last(ScoreReading(dimension="d", score=0.5)))
    assert "e: ." == render_prompt(objective="x", iteration=2, last=last(), template="e: $evaluation.")
