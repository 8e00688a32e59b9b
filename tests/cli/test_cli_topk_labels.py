"""``jumar topk compare`` and ``tune`` on labels that fit badly, with promises that limits break, beside files not to be lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import call

from jumar.topk.rankings import read_runs
from jumar.topk.tuning.calibrate import calibrate_conformal, realised_recall
from jumar.topk.tuning.tune import tune


@pytest.fixture(autouse=True)
def _here(fresh_place: Path):
    return fresh_place


def lines(*rows: dict[str, Any], name: str = "runs.jsonl") -> Path:
    path = Path(name)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def smooth(count: int = 12, size: int = 30) -> list[dict[str, Any]]:
    """Long lists that fall evenly; what is relevant lies all over them."""
    return [
        {
            "query_id": f"q{number}",
            "scores": [0.9 - 0.01 * place - 0.001 * number for place in range(size)],
            "relevant": [int((place + number) % 3 == 0) for place in range(size)],
        }
        for number in range(count)
    ]


def some_out_of_scope() -> list[dict[str, Any]]:
    rows = [
        {"query_id": number, "scores": [0.9, 0.8, 0.75 - 0.01 * number, 0.2], "relevant": [1, 1, 0, 0], "relevant_total": 2}
        for number in range(6)
    ]
    beyond = {"scores": [0.3, 0.25, 0.2, 0.1], "relevant": [0, 0, 0, 0], "relevant_total": 0}
    return rows + [{"query_id": 10 + number, **beyond} for number in range(3)]


# ---------------------------------------------------------------------------------------------- files not to be lost


@pytest.mark.parametrize("text", ["", "hello", "[selection]\nstrategy = 'otsu'", "format = 1\n[tool]\nx = 1", "format = 1"])
def test_only_what_tune_wrote_is_replaced(text: str):
    path = lines(*smooth(5))
    Path("mine.toml").write_text(text)
    called = call("topk", "tune", path, "-o", "mine.toml", check=2)
    assert "-o mine.toml: exists already, and is no file that `jumar topk tune` wrote" in called.err
    assert text == Path("mine.toml").read_text()
    for _ in range(2):
        call("topk", "tune", path, "-o", "topk.toml", check=0)
    assert Path("topk.toml").read_text().startswith("# jumar topk tune: tuned on runs.jsonl\n")


def test_what_is_read_is_never_written():
    path = lines(*smooth(5))
    before = path.read_bytes()
    Path("link.jsonl").symlink_to(path)
    for output in (path, Path("link.jsonl")):
        assert "this is what is read, and would be lost" in call("topk", "tune", path, "-o", output, check=2).err
    assert "this is what is read" in call("topk", "tune", "a.run", "--qrels", path, "-o", path, check=2).err
    assert before == path.read_bytes()


def test_links_and_protected_files_stay_what_they_are():
    path = lines(*smooth(5))
    call("topk", "tune", path, "-o", "topk.toml", check=0)
    Path("link.toml").symlink_to("topk.toml")
    assert "link.toml: exists already" in call("topk", "tune", path, "-o", "link.toml", check=2).err
    Path("topk.toml").chmod(0o444)
    assert "topk.toml: exists already" in call("topk", "tune", path, "-o", "topk.toml", check=2).err


# ------------------------------------------------------------------------------------------------ promised recall


def test_a_promise_that_max_k_breaks_is_told_with_the_way_out():
    path = lines(*smooth())
    found = call("topk", "tune", path, "--recall", "0.9", "--max-k", "10", "-o", "topk.toml", "--json", check=0).document
    assert (12, 12) == (found["queries"], found["truncated"])
    assert found["realised_recall"] < 0.5
    enough = found["max_k_needed"]
    said = call("topk", "tune", path, "--recall", "0.9", "--max-k", "10", check=0).words
    assert "max_k 10 cuts 12 of them off. The promise does not hold so" in said
    assert f"--max-k {enough} is enough for it" in said
    assert f"truncated = 12\nmax_k_needed = {enough}\n" in Path("topk.toml").read_text()
    wider = call("topk", "tune", path, "--recall", "0.9", "--max-k", str(enough), "--json", check=0).document
    assert wider["realised_recall"] >= 0.9 > realised(enough - 1)
    assert enough == wider["max_k_needed"]
    kept = call("topk", "tune", path, "--recall", "0.9", "--max-k", str(enough), "-q", check=0)
    assert ("keep ", True) == (kept.words[:5], kept.words.endswith("where max_k lets it"))


def realised(max_k: int) -> float:
    rows = smooth()
    return realised_recall(calibrate_conformal(rows, recall=0.9), rows, max_k=max_k).recall


def test_the_realised_recall_of_distances_and_of_a_minimum():
    rows = [{**row, "scores": [1.0 - score for score in row["scores"]]} for row in smooth()]
    fitted = calibrate_conformal(rows, recall=0.9, scale="distance")
    assert realised(10) == pytest.approx(realised_recall(fitted, rows, max_k=10).recall)
    assert 1.0 == realised_recall(fitted, rows, max_k=30, min_k=30).recall
    with pytest.raises(ValueError, match="no query with anything relevant retrieved"):
        realised_recall(fitted, [{"scores": [0.1], "relevant": [0]}])


def test_a_promise_and_a_search_do_not_go_together():
    assert "choose one" in call("topk", "tune", lines(*smooth(5)), "--recall", "0.5", "--metric", "f1", check=2).err


# ------------------------------------------------------------------------------------------------- judgements


def trec(run: str, qrels: str) -> tuple[str, ...]:
    Path("a.run").write_text(run)
    Path("a.qrels").write_text(qrels)
    return ("topk", "compare", "a.run", "--qrels", "a.qrels", "--scale", "bm25")


RUN = "1 Q0 d1 1 9 x\n1 Q0 d2 2 8 x\n2 Q0 d1 1 9 x\n3 Q0 d7 1 9 x\n"


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ("q1 0 d1 1\n", "a.qrels judges no query of a.run: queries are called '1' in the run and 'q1' in the judgements"),
        ("1 0 doc-1 1\n2 0 doc-2 1\n", "documents are called 'd1' in the run and 'doc-1' in the judgements"),
        ("", "a.qrels: there is no judgement in it"),
    ],
)
def test_judgements_of_something_else_are_an_error(qrels: str, message: str):
    assert message in call(*trec(RUN, qrels), check=2).err


def test_what_only_one_of_both_files_has_is_told():
    called = call(*trec(RUN, "1 0 d1 1\n8 0 d1 1\n9 0 d1 1\n"), check=0)
    assert "jumar: note: 2 queries of a.run without any judgement: left out" in called.err
    assert "jumar: note: 2 judged queries not in a.run: counted as if nothing had been retrieved" in called.err
    assert 3 == len(read_runs(Path("a.run"), qrels=Path("a.qrels")))
    assert "note" not in call(*trec(RUN, "1 0 d1 1\n2 0 d1 1\n3 0 d1 0\n"), check=0).err


# ------------------------------------------------------------------------------------- one meaning of a figure


def test_a_figure_means_the_same_in_both_and_what_is_out_of_scope_is_told():
    path = lines(*some_out_of_scope())
    found = call("topk", "tune", path, "--json", check=0).document
    compared = call("topk", "compare", path, "--json", check=0).document
    assert (6, 3, 1.0) == (found["in_scope"], found["queries"] - found["in_scope"], found["wrongly_answered"])
    assert found["quality"] == pytest.approx(found["in_scope_quality"] * 6 / 9)
    best = max(row["f1"] for row in compared["rows"])
    assert best <= found["in_scope_quality"] <= compared["oracle_f1"]
    out = call("topk", "tune", path, check=0).out
    assert "3 of 9 queries are out of scope, and 100.0% of these got something" in out
    assert out.count("--min-k 0 allows an empty answer") == 1
    assert "with min_k 1 every query gets something: --min-k 0" in call("topk", "compare", path, check=0).out
    empty = call("topk", "tune", path, "--min-k", "0", check=0).out
    assert "3 of 9 queries are out of scope, and 100.0% of these" not in empty
    assert "3 of 9 queries are out of scope, and " in empty
    assert "--min-k 0 allows" not in empty


def test_without_queries_out_of_scope_there_is_one_figure():
    found = tune(smooth(8), resamples=20)
    assert (found.quality, None) == (found.in_scope_quality, found.wrongly_answered.value)
    assert "score" not in call("topk", "tune", lines(*smooth(8)), check=0).out.splitlines()[2]


def test_where_a_number_is_as_good_it_is_there_to_be_copied(recorded_data: Path):
    path = recorded_data / "retrieval" / "cranfield_minilm.jsonl"
    called = call("topk", "tune", path, "-o", "topk.toml", check=0)
    chosen = called.out.partition("(")[0].removeprefix("keep").strip()
    assert f"Use {chosen}: it is ahead by more than one standard error." in called.out
    text = Path("topk.toml").read_text()
    for shown in (called.out, text.replace("# ", "").replace("#", "")):
        assert '    strategy = "fixed_k"\n    k = 8\n' in shown


def test_no_number_above_the_limit_is_kept():
    flat = [{"query_id": number, "scores": [0.9] * 6, "relevant": [1] * 6} for number in range(6)]
    assert "keep      fixed_k(k=2" in call("topk", "tune", lines(*flat), "--max-k", "2", check=0).out


# ------------------------------------------------------------------------------------------------ what is wrong


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"id": "a", "score": [1]}', "'query_id' is missing; the line has id, score (did you mean 'id'?)"),
        (
            "a.jsonl",
            '{"query_id": "a", "score": [1]}',
            "'scores' is missing; the line has query_id, score (did you mean 'score'?)",
        ),
        ("a.jsonl", "{}", "'query_id' is missing; the line has no keys"),
        ("a.run", "1 Q0 d1 1 9 x\n", "It looks like a TREC run: `jumar topk compare` and `tune` take one together with"),
        ("a.txt", "query_id,score\na,1\n", "It looks like a table: `jumar topk compare` and `tune` take one from a file"),
        ("a.jsonl", "hello\n", "not JSON (Expecting value: line 1 column 1 (char 0)); one JSON object a line\n"),
        ("a.jsonl", '{"query_id": 1, "scores": [0.5], "items": [NaN]}', "'items' holds NaN, an infinity or too deep a nest"),
        (
            "a.jsonl",
            '{"query_id": 1, "scores": [0.1, 0.2]}',
            "they ascend throughout: are these distances? pass --scale distance",
        ),
    ],
)
def test_a_ranking_that_is_none_says_what_it_is(name: str, text: str, message: str):
    Path(name).write_text(text)
    called = call("topk", "select", name, check=2)
    assert message in called.err
    assert "" == called.out


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        (
            "a.csv",
            "query_id;score;relevant\na;1;1\n",
            (),
            "separated by commas, as in any .csv, its columns are query_id;score;relev",
        ),
        (
            "a.tsv",
            "query_id,score,relevant\na,1,1\n",
            (),
            "separated by tabs, as in any .tsv, its columns are query_id,score,relevan",
        ),
        ("a.csv", "query_id,score,relevant\na,0.1,1\na,0.2,1\n", (), "sort the rows; are these distances? pass --scale distance"),
        ("a.csv", "query_id,score,relevant\na,3,1\na,2,1\na,2.5,1\n", ("--scale", "bm25"), "sort the rows\n"),
        ("a.csv", "query_id,score,relevant\na,2,1\na,1,1\n", ("--scale", "distance"), "larger is better, leave out --scale dis"),
        (
            "a.jsonl",
            '{"scores": [2, 1], "relevant": [1, 1]}',
            ("--scale", "distance"),
            "they descend throughout: if larger is better",
        ),
        (
            "a.jsonl",
            '{"query_id": "a", "scores": [1], "relevant": [1]}\n' * 2,
            (),
            "a.jsonl, line 2: query a is there already, on line 1; keep one of the two",
        ),
        ("a.jsonl", '{"scores": ["0.5"], "relevant": [1]}', (), "the score at position 0 is '0.5': give a number"),
    ],
)
def test_labels_that_are_none_say_what_they_are(name: str, text: str, options: tuple[str, ...], message: str):
    Path(name).write_text(text)
    assert message in call("topk", "compare", name, *options, check=2).err


def test_scores_that_cannot_be_similarities_are_told():
    row = {"query_id": "a", "scores": [27.3, 4.0], "relevant": [1, 0]}
    note = "jumar: note: a score of 27.3 is no similarity: say what the scores are with --scale bm25, logit or distance"
    assert note in call("topk", "compare", lines(row), check=0).err
    assert note in call("topk", "select", lines(row), check=0).err
    assert "" == call("topk", "compare", lines(row), "--scale", "bm25", check=0).err
    assert "" == call("topk", "select", lines({"query_id": "a", "scores": []}), check=0).err
    assert "a score of -4 is no similarity" in call("topk", "select", lines({"query_id": "a", "scores": [3, -4]}), check=0).err


def test_a_variable_that_sets_nothing_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JUMAR_TOPK_SELECT_STRATGY", "otsu")
    monkeypatch.setenv("JUMAR_TOPK_SELECT_MAX_K", "1")
    called = call("topk", "select", lines({"query_id": "a", "scores": [0.9, 0.8]}), "--json", check=0)
    assert "JUMAR_TOPK_SELECT_STRATGY sets no option of this command (did you mean 'JUMAR_TOPK_SELECT_STRATEGY'?)" in called.err
    assert "MAX_K" not in called.err
    assert 1 == json.loads(called.out)["kept"]


def test_a_pipe_is_as_wide_as_it_is_told(monkeypatch: pytest.MonkeyPatch):
    path = lines(*smooth(5))
    monkeypatch.delenv("COLUMNS", raising=False)
    assert 1 == call("topk", "compare", path, check=0).out.count("  strategy ")
    monkeypatch.setenv("COLUMNS", "80")
    narrow = call("topk", "compare", path, check=0).out
    assert 2 == narrow.count("  strategy ")
