"""``jumar evaluate`` with an expensive judge: what it prints and writes, what is paid for, what is refused before that."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from commands import call

from jumar.judging import IterationLog

STORIES = [
    {
        "id": f"s{number}",
        "title": f"Add export {number}" if number % 2 else f"Thing {number}",
        "description": "Users will export tables, which saves time in every monthly report that they write.",
        "acceptance_criteria": ["It is there"] * (number % 5),
    }
    for number in range(12)
]


@pytest.fixture(autouse=True)
def _here(fresh_place: Path) -> Path:
    return fresh_place


def rows(*records: Any, name: str = "in.jsonl") -> Path:
    path = Path(name)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def judged(**scores: Any) -> str:
    rows(*({"id": one, "judge_scores": value} for one, value in scores.items()), name="judged.jsonl")
    return "replay:judged.jsonl"


def evaluate(*options: object, check: int = 0) -> Any:
    return call("evaluate", "in.jsonl", *options, "--json", check=check).document


def lines_of(name: str | Path) -> list[Any]:
    return [json.loads(line) for line in Path(name).read_text("utf-8").splitlines()]


def read(path: str) -> Any:
    return json.loads(Path(path).read_text("utf-8"))


def test_dual_is_the_default_and_covers_what_both_scored() -> None:
    rows(*STORIES)
    found = evaluate("--judge", judged(**{f"s{n}": [3, 4, 5] for n in range(11)}))
    assert ("dual", 12, 11, 1) == tuple(found[name] for name in ("mode", "story_count", "scored", "unscored"))
    assert {"missing": 1} == found["expensive"]["unscored_kinds"]
    assert 4.0 == found["expensive"]["gestalt_avg"]
    assert {"mae", "bias", "spearman", "kendall", "off_by_more_than_half", "baselines", "judge_noise"} <= set(found["tracking"])
    assert found["tracking"]["spearman"] is None
    assert ["all_same_score", "high_variance"] == found["health"]["expensive_evaluator"]["flags"]
    assert "individual_scores" not in found["cheap"]


def test_expensive_alone_has_no_gap() -> None:
    rows(*STORIES)
    found = evaluate("--mode", "expensive", "--judge", "mock:cost=0.01", "--repeat", 1)
    assert ("expensive", 12) == (found["mode"], found["scored"])
    assert found["expensive"]["cost_usd"] == pytest.approx(0.12)
    assert {None} == {found[name] for name in ("gap", "abs_gap_mean", "cheap", "tracking", "quality")}


def test_the_same_question_is_paid_for_once() -> None:
    rows(*STORIES)
    options = ("--mode", "expensive", "--judge", "mock:cost=0.01", "--repeat", 1, "--per-item")
    first, second = evaluate(*options, "a.jsonl"), evaluate(*options, "b.jsonl")
    assert [12, 0] == [one["expensive"]["calls"] for one in (first, second)]
    assert 0.0 == second["expensive"]["cost_usd"]
    assert [one["expensive"] for one in lines_of("a.jsonl")] == [one["expensive"] for one in lines_of("b.jsonl")]
    assert "*\n" == Path(".jumar/replies/.gitignore").read_text()
    assert 12 == evaluate(*options[:-1], "--no-cache")["expensive"]["calls"]


def test_a_noisy_judge_is_asked_three_times_unless_told_otherwise() -> None:
    rows(*STORIES)
    noisy = ("--mode", "expensive", "--judge", "mock:noise=1.5", "--no-cache")
    assert (3, 36) == ((found := evaluate(*noisy)["expensive"])["repeat"], found["calls"])
    assert (1, 12) == ((found := evaluate(*noisy, "--repeat", 1)["expensive"])["repeat"], found["calls"])
    assert (1, 17) == ((found := evaluate(*noisy[:2], "--judge", "mock:", "--no-cache")["expensive"])["repeat"], found["calls"])


def test_the_limit_of_cost_leaves_items_unasked() -> None:
    rows(*STORIES)
    found = evaluate("--mode", "expensive", "--judge", "mock:cost=0.01", "--max-cost", 0.05, "--repeat", 1)
    assert (5, {"budget": 7}) == (found["scored"], found["expensive"]["unscored_kinds"])
    assert found["expensive"]["cost_usd"] <= 0.05
    assert found["expensive"]["stopped"]


def test_another_scale_is_mapped() -> None:
    rows(*STORIES[:2])
    found = evaluate("--mode", "expensive", "--judge", judged(s0=0, s1=75), "--judge-scale", "0,100", "--per-item", "o.jsonl")
    assert [1.0, 4.0] == [one["expensive"] for one in lines_of("o.jsonl")]
    assert 2.5 == found["expensive"]["gestalt_avg"]


def test_an_iteration_is_written_whole_and_the_next_knows_it() -> None:
    rows(*STORIES)
    call("evaluate", "in.jsonl", "--judge", "mock:", "-o", "outputs", check=0)
    called = call("evaluate", "in.jsonl", "--judge", "mock:", "-o", "outputs", check=0)
    assert "\niteration 2: " in called.out
    assert {
        "stories.json",
        "expensive_eval.json",
        "cheap_eval.json",
        "gap_analysis.json",
        "iteration_log.json",
        "manifest.json",
        "dashboard.txt",
        "gap_report.md",
    } == {one.name for one in Path("outputs/iteration_2").iterdir()}
    assert ["calls.jsonl", "iteration_1", "iteration_2"] == sorted(one.name for one in Path("outputs").iterdir())
    assert [story["id"] for story in STORIES] == [one["id"] for one in read("outputs/iteration_1/stories.json")]
    log = IterationLog.model_validate(read("outputs/iteration_2/iteration_log.json"))
    assert (2, 0.0) == (log.iteration, log.metrics.gap_delta)
    assert {"diverging": False, "reason": "insufficient_data"} == log.divergence_check
    assert log.convergence_check["checks"]["same_items"]
    assert "tracks" in log.convergence_check["proof"] or not log.convergence_check["converged"]
    manifest = read("outputs/iteration_2/manifest.json")
    assert ["in.jsonl"] == [one["path"] for one in manifest["sources"]]
    assert manifest["judge"].startswith("mock:")
    assert Path("outputs/iteration_2/gap_report.md").read_text("utf-8").startswith("# Iteration 2: the gap between two judges\n")


def test_per_item_has_both_scores_and_their_reasons() -> None:
    rows(*STORIES[:3])
    call("evaluate", "in.jsonl", "--judge", judged(s0=3, s1=5), "--per-item", "o.jsonl", "--max-unscored", 0.5, check=0)
    first, second, third = lines_of("o.jsonl")
    assert first["gap"] == pytest.approx(first["expensive"] - first["cheap"])
    assert "good_title" in second["reasons"]
    assert (None, None, "missing") == (third["expensive"], third["gap"], third["unscored"]["expensive"]["kind"])


def test_an_unreliable_judge_ends_with_1_and_loses_nothing() -> None:
    rows(*STORIES)
    options = ("--judge", "mock:fail=0.5", "--max-retries", 0, "--no-cache", "--per-item", "o.jsonl", "-o", "outputs")
    called = call("evaluate", "in.jsonl", *options, check=1)
    assert "could not be judged" in called.err
    assert any(one["unscored"] for one in lines_of("o.jsonl"))
    assert ["calls.jsonl"] == [one.name for one in Path("outputs").iterdir()]


def test_nothing_scored_ends_with_12() -> None:
    rows(*STORIES)
    assert 0 == evaluate("--judge", judged(other=3), "--max-unscored", 1, check=12)["scored"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--judge", "replay:nowhere.jsonl"], "there is no file nowhere.jsonl"),
        (["--judge", "opnai:gpt"], "there is no judge 'opnai' (did you mean 'openai'?)"),
        (["--judge", "mock:", "--patterns", "nowhere.json"], "nowhere.json"),
        (["--judge", "mock:", "--per-item", "no/such.jsonl"], "its folder does not exist"),
        (["--judge", "mock:", "--per-item", "in.jsonl"], "would replace what is read from"),
        (["--judge", "mock:", "--per-item", "link.jsonl"], "would replace what is read from"),
        (["--judge", "mock:", "--per-item", "pipe"], "is no regular file"),
        (["--judge", "replay:own.jsonl", "--per-item", "own.jsonl"], "would replace what is read from"),
        (["--judge", "mock:", "--per-item", "."], "is a directory"),
        (["--judge", "mock:", "--price", "1"], "write IN,OUT"),
        (["--judge", "mock:", "--price=-1,2"], "should be 0 or more"),
        (["--judge", "mock:", "--judge-scale", "5,1"], "the smaller one first"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_paid_for(options: list[str], message: str) -> None:
    rows(*STORIES)
    rows({"id": "s1", "judge_scores": 3}, name="own.jsonl")
    Path("link.jsonl").symlink_to("in.jsonl")
    os.mkfifo("pipe")
    called = call("evaluate", "in.jsonl", *options, check=2)
    assert message in called.err
    assert not Path(".jumar").exists()
    assert len(STORIES) == len(lines_of("in.jsonl"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("in.csv", "id,answer\n1,yes\n", "'text' is missing"),
        ("in.csv", "id;text\n1;yes\n", "columns are separated by commas in .csv"),
        ("in.tsv", "id\ttitle\n1\tyes\n", "name the key of the text: --field text=KEY. There are: id, title"),
    ],
)
def test_a_table_without_the_text_is_refused_before_anything_is_paid_for(name: str, text: str, message: str) -> None:
    Path(name).write_text(text)
    for mode in ("cheap", "expensive", "dual"):
        assert message in call("evaluate", name, "--mode", mode, "--judge", "mock:", check=2).err
    assert not Path(".jumar").exists()


def test_a_source_that_cannot_be_read_twice_has_no_hash() -> None:
    os.mkfifo("pipe")
    text = "".join(json.dumps(record) + "\n" for record in STORIES)
    writer = threading.Thread(target=lambda: Path("pipe").write_text(text))
    writer.start()
    call("evaluate", "pipe", "--judge", "mock:", "-o", "outputs", check=0)
    writer.join()
    assert [{"path": "pipe", "sha256": None, "bytes": None}] == read("outputs/iteration_1/manifest.json")["sources"]


def test_patterns_from_the_backup_are_told_in_one_line() -> None:
    rows(*STORIES)
    Path("p.json.backup").write_text('{"version": "2.0", "patterns": []}')
    Path("p.json").write_text('{"version"')
    for options in (["--mode", "cheap"], ["--judge", "mock:"]):
        lines = call("evaluate", "in.jsonl", "--patterns", "p.json", "-q", *options, check=0).err.splitlines()
        assert 1 == sum("backup" in line for line in lines)
        assert all(".py:" not in line for line in lines)


@pytest.mark.parametrize("mode", ["dual", "expensive"])
def test_quiet_says_nothing_unless_json_is_asked_for(mode: str) -> None:
    rows(*STORIES)
    told = call("evaluate", "in.jsonl", "--mode", mode, "--judge", "mock:cost=0.001", "-q", "-o", "out", check=0)
    assert (told.out, told.err) == ("", "")
    assert call("evaluate", "in.jsonl", "--mode", mode, "--judge", "mock:", "-q", "--json", check=0).document["mode"] == mode


def test_scores_out_of_range_among_others_name_the_option_for_the_scale(tmp_path: Path) -> None:
    items, judged = tmp_path / "items.jsonl", tmp_path / "judged.jsonl"
    items.write_text("".join(json.dumps({"id": f"i{number}", "text": f"text {number}"}) + "\n" for number in range(10)))
    rows = [json.dumps({"id": f"i{number}", "judge_scores": number}) for number in range(5)]
    rows += [json.dumps({"id": f"i{number}", "judge_scores": 3}) for number in range(5, 10)]
    judged.write_text("\n".join(rows) + "\n")
    told = call("evaluate", str(items), "--mode", "expensive", "--judge", f"replay:{judged}", check=0).out
    assert "unscored  1 out_of_range; --judge-scale LO,HI" in told


def test_a_score_out_of_range_names_the_option_for_the_scale(tmp_path: Path) -> None:
    rows(*STORIES)
    (tmp_path / "ten.py").write_text('print(\'{"gestalt": 6.6, "reasoning": "good"}\')\n')
    judge = f"command:{sys.executable} {tmp_path / 'ten.py'}"
    told = call("evaluate", "in.jsonl", "--mode", "expensive", "--judge", judge, "--no-cache", check=1)
    assert "'6.6' is not from 1 to 5" in told.err
    assert "Give the judge's own scale with --judge-scale LO,HI" in told.err
    call("evaluate", "in.jsonl", "--mode", "expensive", "--judge", judge, "--no-cache", "--judge-scale", "1,10", check=0)


def test_what_stopped_or_scattered_is_told() -> None:
    rows(*STORIES)
    out = call(
        "evaluate",
        "in.jsonl",
        "--mode",
        "expensive",
        "--judge",
        "mock:noise=1.5,cost=0.01",
        "--max-cost",
        0.2,
        "--concurrency",
        1,
        check=0,
    ).out
    for word in ("unscored  ", "stopped   ", "health    high_variance"):
        assert any(line.startswith(word) for line in out.splitlines())


def test_up_to_fifty_items_are_shown_each() -> None:
    texts = [f"The answer number {number} says something." for number in range(51)]
    items = [{"id": f"i{number}", "text": text, "judge_scores": [1 + number % 5]} for number, text in enumerate(texts)]
    for mode, names in (("dual", "judge cheap gap"), ("expensive", "judge"), ("cheap", "cheap")):
        judge = () if mode == "cheap" else ("--judge", "replay:in.jsonl")
        rows(*items[:50])
        shown = call("evaluate", "in.jsonl", "--mode", mode, *judge, check=0).out.splitlines()
        assert ["item", *names.split(), "text"] == shown[0].split()
        assert [f"i{number}" for number in range(50)] == [line.split()[0] for line in shown[1:51]]
        assert shown[50].endswith(texts[49])
        rows(*items)
        assert not [
            line for line in call("evaluate", "in.jsonl", "--mode", mode, *judge, check=0).out.splitlines() if "i49" in line
        ]
    assert "2.00" == call("evaluate", rows(*items[1:2]), "--mode", "expensive", "--judge", "replay:in.jsonl").out.split()[4]


def test_an_item_without_a_score_is_shown_with_a_dash() -> None:
    rows({"id": "a", "text": "One that is scored."}, {"id": "b", "text": "One that\nis not."})
    shown = call("evaluate", "in.jsonl", "--judge", judged(a=4), "--max-unscored", 1, check=None).out.splitlines()
    assert ["b", "—"] == shown[2].split()[:2]
    assert shown[2].endswith("One that is not.")


def test_each_advice_is_true_of_the_items(recorded_data: Path) -> None:
    """Counted again, with nothing but the texts: who has the phrase, and what both judges say of those."""
    path, records = Path("judged.jsonl"), lines_of(recorded_data / "judged" / "vicuna.jsonl")
    marked = set(sorted({one["group"] for one in records})[::3])
    for one in records:
        if one["group"] in marked:
            one["text"] += " Ask your doctor first."
            one["judge_scores"] = [max(1, score - 2) for score in one["judge_scores"]]
            one["judge_feedback"] = ['It ends with "Ask your doctor first", which helps nobody.' for _ in one["judge_scores"]]
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    call("evaluate", path, "--judge", f"replay:{path}", "-o", "outputs", "--per-item", "o.jsonl", check=0)
    items = {one["id"]: one for one in records}
    scores = {one["id"]: one for one in lines_of("o.jsonl")}
    advised = {
        one["support"]["phrase"]: one for one in read("outputs/iteration_1/gap_analysis.json")["large_gaps"] if one["support"]
    }
    assert advised
    for phrase, one in advised.items():
        has = re.compile(rf"\b{re.escape(phrase)}\b", re.IGNORECASE)
        inside = [scores[name] for name, item in items.items() if has.search(item["text"])]
        outside = [scores[name] for name, item in items.items() if not has.search(item["text"])]
        means = [sum(row["expensive"] for row in some) / len(some) for some in (inside, outside)]
        assert (len(inside), len(outside)) == (one["support"]["items"], one["support"]["others"])
        assert ("good" if means[0] > means[1] else "bad") == one["support"]["kind"] == ("good" if one["gap"] > 0 else "bad")
        assert (
            f"{means[0]:.2f} to the {len(inside)} items with it and {means[1]:.2f} to the {len(outside)} others" in one["action"]
        )
        assert (sum(row["gap"] for row in inside) > 0) == (one["gap"] > 0)


def test_a_record_without_more_than_the_permitted_share_is_an_error_that_loses_nothing() -> None:
    rows(*STORIES)
    judge = ("--judge", judged(s0=3, s11=5), "--mode", "expensive", "--per-item", "o.jsonl")
    message = call("evaluate", "in.jsonl", *judge, check=1).err
    assert "10 of 12 items could not be judged (10 missing), more than 20%" in " ".join(message.split())
    assert [3.0, *[None] * 10, 5.0] == [line["expensive"] for line in lines_of("o.jsonl")]
    assert (2, 10) == tuple(evaluate(*judge, "--max-unscored", "1.0")[name] for name in ("scored", "unscored"))
    call("evaluate", "in.jsonl", *judge, "--max-unscored", "1.5", check=2)
