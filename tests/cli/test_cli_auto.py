"""``jumar evaluate --mode auto``: who decides, what is saved, what is refused before anything is paid for."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from auto_kit import EFFECTS, calibrated, proven_folder
from commands import call
from learning_kit import set_of

from jumar.judging.auto.escalation import AutoRules
from jumar.judging.auto.intervals import fit_intervals
from jumar.judging.patterns.storage import serialised
from jumar.judging.proofs import read_proof
from jumar.learning.run.auto import Basis, trust_of


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return proven_folder(tmp_path_factory.mktemp("auto"))


@pytest.fixture
def here(proven: Path, fresh_place: Path) -> Path:
    for one in proven.iterdir():
        if one.is_file():
            shutil.copy(one, fresh_place / one.name)
    return fresh_place


def auto(*options: object, items: str = "new.jsonl", check: int = 0, line: object = 3.5) -> Any:
    shared = ("--patterns", "patterns.json", "--proof", "proof.json", "--judge", f"replay:{items}", "--repeat", 1)
    return call("evaluate", items, "--mode", "auto", *shared, "--decision-line", line, *options, "--json", check=check).document


def lines_of(name: str) -> list[Any]:
    return [json.loads(line) for line in Path(name).read_text("utf-8").splitlines()]


def test_cheap_where_it_is_certain_and_expensive_where_not(here: Path) -> None:
    found = auto("--per-item", "scores.jsonl", "--audit", 0.2, "-o", "out")
    own, rows = found["auto"], lines_of("scores.jsonl")
    print({name: own[name] for name in ("cheap", "audited", "escalated", "calls_saved", "guarantee", "average")})

    assert (found["mode"], found["story_count"], found["scored"], found["unscored"]) == ("auto", 180, 180, 0)
    assert own["cheap"] + own["audited"] + own["escalated"] == 180
    assert 0 < own["cheap"] == own["calls_saved"] == 180 - found["expensive"]["story_count"]
    assert own["saved_share"] == own["cheap"] / 180
    assert own["cost_saved_usd"] == 0.0  # recorded verdicts are free
    assert own["proof"]["trusted"] is True
    assert own["above"] + own["below"] == 180
    assert found["expensive"]["calls"] == own["audited"] + own["escalated"]
    judge = {row["id"]: sum(row["judge_scores"]) / len(row["judge_scores"]) for row in lines_of("new.jsonl")}
    for row in rows:
        low, high = row["interval"]
        crossed = low < 3.5 <= high
        assert row["why"] == ("uncertain" if crossed else "audited" if row["decided_by"] == "expensive" else "certain")
        assert (row["expensive"] is None) == (row["why"] == "certain")
        assert row["score"] == pytest.approx(row["cheap"] if row["why"] == "certain" else judge[row["id"]])
        assert row["decision"] == ("above" if row["score"] >= 3.5 else "below")
        assert row["unscored"] is None
    assert own["guarantee"]["audited"] == own["audited"] == sum(row["why"] == "audited" for row in rows)
    assert own["guarantee"]["wrong"] == sum(row["cheap_was_wrong"] is True for row in rows)
    truth = sum(judge.values()) / len(judge)
    low, high = own["average"]["interval"]
    assert low <= truth <= high
    assert own["average"]["cheap"] == pytest.approx(found["cheap"]["gestalt_avg"])
    written = sorted(path.name for path in Path("out/iteration_1").iterdir())
    assert written == ["auto_eval.json", "cheap_eval.json", "expensive_eval.json", "manifest.json", "stories.json"]
    assert [one["id"] for one in json.loads(Path("out/iteration_1/auto_eval.json").read_text())["items"]] == list(judge)


def test_the_same_again_is_the_same_and_another_seed_audits_others(here: Path) -> None:
    options = ("--audit", 0.1, "--per-item")
    first, again = auto(*options, "a.jsonl"), auto(*options, "b.jsonl")
    auto(*options, "c.jsonl", "--audit-seed", 1)

    assert first == again
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()
    assert {row["id"] for row in lines_of("a.jsonl") if row["why"] == "audited"} != {
        row["id"] for row in lines_of("c.jsonl") if row["why"] == "audited"
    }


def test_more_confidence_saves_less_and_what_it_saves_is_right_more_often(here: Path) -> None:
    saved = [auto("--confidence", one, "--audit", 0, line=4)["auto"]["calls_saved"] for one in (0.5, 0.8, 0.98)]
    print(f"calls saved at 50, 80 and 98 %: {saved}")

    assert saved == sorted(saved, reverse=True)
    assert saved[0] > saved[-1]


def test_a_judge_that_changed_is_found_by_the_audits_and_asked_about_the_rest(here: Path) -> None:
    told = call(
        *("evaluate", "new.jsonl", "--mode", "auto", "--patterns", "patterns.json", "--proof", "proof.json", "--repeat", 1),
        *("--judge", "replay:shifted.jsonl", "--decision-line", 3.5, "--audit", 0.3, "--json", "--per-item", "rows.jsonl"),
        check=0,
    )
    own = told.document["auto"]

    assert own["audits"]["rest_asked"] is True
    assert own["audits"]["evidence"] >= 100
    assert (own["cheap"], own["calls_saved"], told.document["expensive"]["story_count"]) == (0, 0, 180)
    assert {row["decided_by"] for row in lines_of("rows.jsonl")} == {"expensive"}
    assert {row["why"] for row in lines_of("rows.jsonl")} == {"uncertain", "audited", "audits_failed"}
    assert own["guarantee"]["held"] is False
    assert "asked about the rest, too: the proof is stale: audited items" in told.err


def changed_proof(**fields: Any) -> None:
    """The same proof with other content and a hash that fits."""
    proof = read_proof(Path("proof.json"))
    Path("proof.json").write_bytes(proof.model_copy(update=fields).hashed().to_bytes())


def test_an_old_proof_lets_the_cheap_judge_decide_nothing(here: Path) -> None:
    changed_proof(created_at=read_proof(Path("proof.json")).created_at - timedelta(days=91))
    told = call(
        *("evaluate", "new.jsonl", "--mode", "auto", "--patterns", "patterns.json", "--proof", "proof.json"),
        *("--judge", "replay:new.jsonl", "--decision-line", 3.5),
        check=0,
    )

    assert "warning: the cheap judge decided nothing: the proof is stale: it is 91 days old" in told.err
    assert "by        cheap judge 0 · expensive judge 180 · audited 0" in told.out
    assert "saved     0 calls (0% of the items) · $0.00" in told.out
    assert "asked     180 calls, 0 cached · $0.00" in told.out
    assert "guarantee" not in told.out  # the cheap judge decided nothing
    assert "it would decide" in told.out
    assert told.out.splitlines()[0].startswith("auto  ")
    assert "[" in told.out.splitlines()[0]


def said(*options: object) -> str:
    shared = ("--patterns", "patterns.json", "--proof", "proof.json", "--judge", "replay:new.jsonl", "--decision-line", 3.5)
    return call("evaluate", "new.jsonl", "--mode", "auto", *shared, "--repeat", 1, *options, check=0).out


def test_what_was_asked_and_paid_for_stands_beside_what_was_saved(here: Path) -> None:
    own = auto("--audit", 0.2)
    told = said("--audit", 0.2)
    low, high = own["auto"]["average"]["interval"]

    assert f"[{low:.2f}, {high:.2f}] · 180 items scored" in told.splitlines()[0]
    assert f"asked     {own['expensive']['calls']} calls, 0 cached · $0.00\nsaved     {own['auto']['calls_saved']} calls" in told
    assert "interval  none" not in told
    promise = own["auto"]["guarantee"]
    known = f"{promise['wrong']} of {promise['audited']} audits wrong"
    assert (
        f"guarantee at most 10% of what the cheap judge decides is wrong: too few audits to say; {known}, so it may be up to"
        in " ".join(told.split())
    )
    assert said("-q") == ""


def test_items_that_were_learned_from_are_told_by_their_number(here: Path) -> None:
    opened = {row.id for row in read_proof(Path("proof.json")).opened}
    both = [*Path("items.jsonl").read_text().splitlines(), *Path("new.jsonl").read_text().splitlines()[:20]]
    Path("mixed.jsonl").write_text("\n".join(both) + "\n")
    bare = [{name: value for name, value in json.loads(line).items() if name != "group"} for line in both]
    Path("bare.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bare))
    wanted = f"warning: the set was learned from {len(opened)} of the {len(both)} items, and follows the judge better on these"
    shared = ("--patterns", "patterns.json", "--judge", "replay:mixed.jsonl")
    print(f"{len(opened)} of {len(both)} items were learned from")

    assert 0 < len(opened) < len(both) - 20
    auto_said = ("--mode", "auto", "--proof", "proof.json", "--decision-line", 3.5, "--repeat", 1)
    told = call("evaluate", "mixed.jsonl", *shared, *auto_said, check=0)
    assert wanted in told.err
    dual = call("evaluate", "bare.jsonl", *shared, "-o", "out", "--json", check=0)
    assert wanted in dual.err
    assert dual.document["learned_from"] == len(opened)
    assert f"the set was learned from {len(opened)} of" in Path("out/iteration_1/gap_report.md").read_text()
    assert auto()["learned_from"] == 0
    Path("proof.json").unlink()  # nobody knows
    dual = call("evaluate", "bare.jsonl", *shared, "--json", check=0)
    assert (dual.err, dual.document["learned_from"]) == ("", None)


@pytest.mark.parametrize("options", [("--mode", "cheap"), ("--mode", "dual"), ("--mode", "expensive"), ("--mode", "auto")])
def test_the_folder_of_a_learning_run_is_refused_before_anything_is_asked(here: Path, options: tuple[str, ...]) -> None:
    (here / "learned").mkdir()
    shutil.copy(here / "request.json", here / "learned" / "request.json")
    shared = ("--patterns", "patterns.json", "--judge", "command:false", "-o", "learned")
    own = ("--proof", "proof.json", "--decision-line", 3.5) if "auto" in options else ()
    if "auto" in options:
        shared = ("--patterns", "patterns.json", "--judge", "replay:new.jsonl", "-o", "learned")
    told = call("evaluate", "new.jsonl", *options, *shared, *own, check=2)

    assert "-o learned: is the folder of `jumar learn`" in told.err
    assert [path.name for path in (here / "learned").iterdir()] == ["request.json"]


def test_without_an_interval_it_says_why_and_what_draws_enough(here: Path) -> None:
    told = said("--audit", 0.02)
    line = next(line for line in told.splitlines() if line.startswith("interval  none"))
    share = line.partition("--audit ")[2].split()[0]

    assert "and fewer than 10 don't say how far the cheap judge errs" in line
    assert "[" not in told.splitlines()[0]
    assert "interval  none" not in said("--audit", share)
    assert "guarantee at most 10% of what the cheap judge decides is wrong: nobody knows, because nothing was" in said(
        "--audit", 0
    )


def test_a_line_on_another_scale_is_refused_with_how_it_is_mapped(here: Path) -> None:
    shared = ("--patterns", "patterns.json", "--proof", "proof.json", "--judge", "replay:new.jsonl", "--decision-line", 7)
    told = call("evaluate", "new.jsonl", "--mode", "auto", *shared, check=2)
    assert "scores are mapped to 1–5, also those of a judge with another --judge-scale" in told.err


def test_without_proof_patterns_or_line_nothing_is_asked(here: Path) -> None:
    common = ("evaluate", "new.jsonl", "--mode", "auto", "--judge", "command:false")
    proof, patterns, line = ("--proof", "proof.json"), ("--patterns", "patterns.json"), ("--decision-line", "3.5")

    assert "--decision-line SCORE" in call(*common, *proof, *patterns, check=2).err
    assert "needs --proof FILE" in call(*common, *line, *patterns, check=2).err
    Path("moved").mkdir()
    Path("moved/proof.json").write_bytes(Path("proof.json").read_bytes())
    assert "needs --patterns FILE" in call(*common, "--proof", "moved/proof.json", *line, check=2).err
    assert "needs a judge" in call("evaluate", "new.jsonl", "--mode", "auto", *proof, *patterns, *line, check=2).err
    assert "nothing.json cannot be read" in call(*common, *patterns, *line, "--proof", "nothing.json", check=2).err
    assert "--jobs" in call(*common, *proof, *patterns, *line, "--jobs", 2, check=2).err
    wrong = call("evaluate", "new.jsonl", "--mode", "cheap", "--decision-line", 3, check=2)
    assert "--decision-line is for --mode auto" in wrong.err
    call(*common, *proof, *patterns, "--decision-line", 6, check=2)


def test_the_set_and_the_judge_are_those_of_the_run_that_the_proof_lies_in(here: Path) -> None:
    Path("said.py").write_text('print(\'{"gestalt": 4, "reasoning": "", "strengths": [], "weaknesses": []}\')\n')
    asked = {"items": "x", "fields": {}, "rubric": None, "judge_scale": [1, 5], "explain": True, "max_tokens": 9, "cache": None}
    recorded = {"format": 1, "judge": f"command:{sys.executable} said.py", "repeat": 1, **asked}
    Path("request.json").write_text(json.dumps(recorded))
    words = ("evaluate", "new.jsonl", "--mode", "auto", "--proof", "proof.json", "--decision-line", 3.5, "--no-cache", "--json")
    found = json.loads(call(*words, check=0).out)
    assert found["expensive"]["judge"].startswith("command:")
    Path("request.json").write_text(json.dumps({**recorded, "judge": "replay:old.jsonl"}))
    assert "needs a judge" in call(*words, check=2).err  # it has no verdict of new items
    assert json.loads(call(*words, "--judge", "replay:new.jsonl", check=0).out)["scored"] == found["scored"]


def test_a_proof_of_something_else_is_refused_and_a_changed_one_is_damaged(here: Path) -> None:
    other = set_of(EFFECTS, 1.9)
    Path("other.json").write_bytes(serialised(other, Path("other.json")))
    common = ("evaluate", "new.jsonl", "--mode", "auto", "--decision-line", 3.5, "--proof", "proof.json")
    patterns, judge = ("--patterns", "patterns.json"), ("--judge", "replay:new.jsonl")

    assert "proves another set of patterns" in call(*common, *judge, "--patterns", "other.json", check=2).err
    Path("mine.toml").write_text('kind = "text"\nname = "mine"\n[judge]\ntask = "Judge."\ncriteria = ["good"]\n')
    refused = call(*common, *judge, *patterns, "--rubric", "mine.toml", check=2).err
    assert "made with the rubric 'text'" in refused
    proof = read_proof(Path("proof.json"))
    changed_proof(judge=proof.judge.model_copy(update={"identity": "openai:other"}))
    assert "it is openai:other, and this is" in call(*common, "--judge", "mock:", *patterns, check=2).err
    changed_proof(verdict="fails")
    assert "does not hold: verdict" in call(*common, *judge, *patterns, check=14).err


def test_intervals_of_the_set_are_taken_and_held_against_the_sealed_items(here: Path) -> None:
    """Narrow intervals that the held-out items contradict let the cheap judge decide nothing."""

    proof = read_proof(Path("proof.json"))
    rows = proof.rows
    narrow = fit_intervals([row.cheap for row in rows], [row.cheap for row in rows], [row.group for row in rows])
    basis = Basis(patterns=calibrated(), proof=proof, intervals=narrow, source="open")
    lines = [trust_of(basis, AutoRules(line=line / 10), datetime.now(UTC), judge_known=False) for line in range(25, 45)]

    assert all(one.check is not None and one.check.escalated == 0 for one in lines)
    assert any("on the wrong side of the line" in reason for one in lines for reason in one.reasons)


def test_what_the_judge_does_not_answer_is_undecided_and_no_score_at_all_ends_with_12(here: Path) -> None:
    rows = Path("new.jsonl").read_text().splitlines(keepends=True)
    Path("half.jsonl").write_text("".join(rows[::2]))
    common = ("evaluate", "new.jsonl", "--mode", "auto", "--patterns", "patterns.json", "--proof", "proof.json", "--repeat", 1)
    options = ("--decision-line", 3.5, "--audit", 0.2, "--json", "--per-item", "rows.jsonl", "--max-unscored", 1)
    found = call(*common, *options, "--judge", "replay:half.jsonl", check=0).document
    own = found["auto"]
    by_why: dict[str, int] = {}
    for row in lines_of("rows.jsonl"):
        by_why[row["why"]] = by_why.get(row["why"], 0) + 1
        assert (row["score"] is None) == (row["decided_by"] is None) == (row["why"] == "unscored")
        assert row["why"] == "certain" or (row["expensive"] is None) == (row["unscored"] is not None)

    assert found["unscored"] == own["undecided"] == by_why["unscored"] > 0
    assert own["average"]["items"] < 180  # what was asked in vain is not in it
    assert own["cheap"] == by_why["certain"]
    none = [{"id": f"e{number}", "text": ""} for number in range(3)]
    Path("empty.jsonl").write_text("".join(json.dumps(row) + "\n" for row in none))
    call("evaluate", "empty.jsonl", *common[2:], *options, "--judge", "replay:half.jsonl", check=12)


def test_money_that_runs_out_leaves_items_undecided_and_the_others_decided(here: Path) -> None:
    answer = json.dumps({"gestalt": 4, "reasoning": "r", "strengths": [], "weaknesses": []})
    Path("judge.sh").write_text(f"#!/bin/sh\ncat > /dev/null\necho '{answer}'\n")
    Path("judge.sh").chmod(0o755)
    common = ("evaluate", "new.jsonl", "--mode", "auto", "--patterns", "patterns.json", "--proof", "proof.json", "--repeat", 1)
    found = call(
        *common, "--decision-line", 3.5, "--audit", 0, "--json", "--judge", "command:./judge.sh", "--max-cost", 0, check=0
    )
    own = found.document["auto"]

    assert found.document["expensive"]["stopped"] is not None
    assert own["undecided"] > 80
    assert own["cheap"] == own["calls_saved"] > 80
    assert own["cost_saved_usd"] is None  # nobody knows what a call of that program costs


def test_audits_of_several_evaluations_add_up_and_the_same_items_again_do_not(here: Path) -> None:
    lines = Path("new.jsonl").read_text().splitlines(keepends=True)
    shifted = Path("shifted.jsonl").read_text().splitlines(keepends=True)
    seen: list[tuple[int, bool]] = []
    for part in (0, 0, 1, 2, 3, 4):
        Path("part.jsonl").write_text("".join(shifted[9 * part : 9 * part + 9]))
        own = auto("--audit", 0.15, "--audits", "audits.jsonl", "--audit-seed", 2, items="part.jsonl")["auto"]
        seen.append((own["audits"]["of_all_evaluations"], own["proof"]["trusted"]))
    print(f"audits so far, and whether the proof is trusted: {seen}")

    assert seen[0] == seen[1]
    assert [count for count, _ in seen] == sorted(count for count, _ in seen)
    assert (seen[0][1], seen[-1][1]) == (True, False)  # each alone would have been too few
    assert len(lines_of("audits.jsonl")) == seen[-1][0]
    Path("part.jsonl").write_text("".join(lines[:10]))
    stale = auto("--audits", "audits.jsonl", items="part.jsonl")["auto"]
    assert stale["calls_saved"] == 0
    assert "audited items" in stale["proof"]["reasons"][0]
    Path("audits.jsonl").write_text('{"id": "x"}\n')
    common = ("evaluate", "new.jsonl", "--mode", "auto", "--patterns", "patterns.json", "--proof", "proof.json")
    told = call(*common, "--judge", "replay:new.jsonl", "--decision-line", 3.5, "--audits", "audits.jsonl", check=14)
    assert "audits.jsonl:1: not an audit" in told.err
