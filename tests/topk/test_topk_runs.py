"""Rankings and labels from files: what is read, and which line an error names."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.errors import ConfigError, ExistsError, FormatTooNewError, NotFoundError, ScoreError
from jumar.topk.rankings import read_rankings, read_runs
from jumar.topk.selection_file import check_replaceable, read_selection, render_selection
from jumar.topk.settings import SELECTIONS, Selection, load_retrieval
from jumar.topk.strategies import STRATEGIES, create_selection_strategy
from jumar.topk.tuning import LabelledQuery

LINE = '{"query_id": "a", "scores": [0.9, 0.5], "relevant": [1, 0], "relevant_total": 3}\n'
RUN = "a Q0 d1 1 0.9 x\na Q0 d2 2 0.5 x\na Q0 d3 3 0.5 x\nb Q0 d1 1 0.7 x\nunjudged Q0 d1 1 0.7 x\n"
QRELS = "a 0 d3 2\na 0 d1 1\na 0 d9 1\nb 0 d1 0\nc 0 d4 1\n"


@pytest.fixture
def here(fresh_place: Path) -> Path:
    return fresh_place


def written(name: str, text: str | bytes) -> Path:
    path = Path(name)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_json_lines(here: Path):
    assert (LabelledQuery("a", (0.9, 0.5), (True, False), 3),) == read_runs(written("r.jsonl", f"\ufeff{LINE}\n \n"))


def test_trec_orders_as_trec_eval_does(here: Path):
    found = read_runs(written("a.run", RUN), qrels=written("a.qrels", QRELS))
    expected = (
        # of the same score the last document first; a grade that was judged and not retrieved is missed
        LabelledQuery("a", (0.9, 0.5, 0.5), (True, True, False), 3, (1.0, 2.0, 0.0)),
        LabelledQuery("b", (0.7,), (False,), 0),
        LabelledQuery("c", (), (), 1),
    )
    assert expected == found
    strict = read_runs(Path("a.run"), qrels=Path("a.qrels"), grade=2)
    assert [(1, (0.0, 2.0, 0.0)), (0, ()), (0, ())] == [(query.relevant_total, query.grades) for query in strict]
    missed = read_runs(Path("a.run"), qrels=written("b.qrels", QRELS + "a 0 d8 3\na 0 d7 -2\na 0 d9 1\n"))[0]
    assert (4, (1.0, 2.0, 0.0), (1.0, 3.0)) == (missed.relevant_total, missed.grades, missed.missed)


def test_tables(here: Path):
    table = "Query_ID,score,relevant,relevant_total,note\na,0.9,1,4,x\nb,0.8,0,,y\na,0.5,2,4,\n"
    expected = (LabelledQuery("a", (0.9, 0.5), (True, True), 4, (1.0, 2.0)), LabelledQuery("b", (0.8,), (False,), 0))
    assert expected == read_runs(written("r.csv", table))
    assert expected == read_runs(written("r.tsv", table.replace(",", "\t")))
    row = '{"scores": [0.9, 0.8], "relevant": [3, 1], "relevant_total": 4, "missed": [2, 1]}'
    assert [(4, (3.0, 1.0), (2.0, 1.0)), (2, (3.0, 0.0), (2.0,)), (1, (3.0, 0.0), ())] == [
        (one.relevant_total, one.grades, one.missed)
        for grade in (1, 2, 3)
        for one in read_runs(written("m.jsonl", row), grade=grade)
    ]
    assert (True, True, False) == (
        *read_runs(Path("r.csv"), grade=1)[0].relevant,
        read_runs(Path("r.csv"), grade=2)[0].relevant[0],
    )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.jsonl", LINE + "{", "r.jsonl, line 2: not JSON"),
        ("r.jsonl", LINE + "[1]", "r.jsonl, line 2: [1] is no object"),
        ("r.jsonl", LINE + '\n{"scores": [0.1, 0.2], "relevant": [0, 0]}', "r.jsonl, line 3: query 1: the scores are not sorted"),
        ("r.jsonl", LINE + '{"query_id": "z", "scores": [0.1]}', "line 2: 'relevant' is missing; the line has query_id, scores"),
        ("r.jsonl", LINE + '{"query_id": [1], "scores": [], "relevant": []}', "r.jsonl, line 2: 'query_id' is [1]"),
        (
            "r.jsonl",
            LINE + '{"scores": [0.1], "relevant": ["yes"]}',
            "r.jsonl, line 2: query 1: 'relevant' has 'yes' at position 0; give 0, 1 or a grade",
        ),
        ("r.jsonl", LINE + '{"scores": [0.1], "relevant": [NaN]}', "r.jsonl, line 2: query 1: 'relevant' has nan at position 0"),
        (
            "r.jsonl",
            LINE + '{"scores": [0.1], "relevant": [1], "relevant_totl": 3}',
            "r.jsonl, line 2: no 'relevant_total' (did you mean 'relevant_totl'?)",
        ),
        (
            "r.jsonl",
            LINE + '{"scores": [0.1], "relevant": [1], "relevant_total": 3, "missed": [1]}',
            "line 2: query 1: 'missed' has 1 grades, but 2 relevant items were not retrieved",
        ),
        ("r.jsonl", LINE + '{"scores": [0.1], "relevant": [1], "missed": 2}', "line 2: query 1: 'missed' is 2; give a list"),
        ("r.jsonl", "\n", "r.jsonl: there are no queries in it"),
        ("r.csv", "query_id,score,relevant\n", "r.csv: there are no queries in it"),
        ("r.csv", "query_id,score,relevant\na,0.5,1\na,nan,1\n", "r.csv, line 3: 'score' is 'nan'; give a finite number"),
        (
            "r.csv",
            "query_id,score,relevant\na,0.5,1\nb,0.9,1\na,0.7,1\n",
            "r.csv, line 4: the scores of query a are not sorted, best first: 0.7 is better than 0.5",
        ),
        (
            "r.csv",
            "query_id,score,relevant,relevant_total\na,0.5,1,1.5\n",
            "r.csv, line 2: 'relevant_total' is '1.5'; give a whole",
        ),
        (
            "r.csv",
            "query_id,score,relevant,relevant_total\na,0.5,1,2\na,0.4,1,3\n",
            "r.csv, line 3: 'relevant_total' is '3'; give a whole number, the same in all rows",
        ),
        ("r.csv", 'query_id,score,relevant\n"a\nb",0.5,1\n"c,0.4,1\n', "r.csv, line 4: not a table"),
        ("r.csv", 'query_id,score,relevant\n"a\nb",0.5,1\nc,x,1\n', "r.csv, line 4: 'score' is 'x'"),
        ("r.jsonl", LINE.encode() + b"\xff", "r.jsonl, line 2: not UTF-8"),
        ("r.csv", "query_id,score\na,1\n", "r.csv, line 1: no column 'relevant'"),
        ("r.csv", "query_id,score,relevent\na,1,1\n", "no column 'relevant' (did you mean 'relevent'?)"),
        ("r.csv", "query_id,score,relevant\na,x,1\n", "r.csv, line 2: 'score' is 'x'"),
        ("r.csv", "query_id,score,relevant\na,1\n", "r.csv, line 2: 2 cells below 3 columns"),
    ],
)
def test_errors_name_the_line(here: Path, name: str, text: str | bytes, message: str):
    with pytest.raises(ScoreError) as caught:
        read_runs(written(name, text))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        ("a Q0 d1 1 0.9\n", QRELS, "a.run, line 1: 5 fields; a TREC run has 6 a line"),
        (RUN, "a d1 1\n", "a.qrels, line 1: 3 fields; a TREC qrels file has 4 a line"),
        (RUN + "a Q0 d1 1 0.9 x\n", QRELS, "a.run, line 6: query a has document d1 twice"),
        (RUN, "a 0 d1 yes\n", "a.qrels, line 1: 'grade' is 'yes'"),
        (RUN, QRELS + "a 0 d1 0\n", "a.qrels, line 6: query a has document d1 with another grade before"),
        (RUN + "zz Q0 d1 1 inf x\n", QRELS, "a.run, line 6: 'score' is 'inf'; give a finite number"),
        (RUN, "", "a.qrels: there is no judgement in it"),
    ],
)
def test_errors_of_trec_files(here: Path, run: str, qrels: str, message: str):
    with pytest.raises(ScoreError) as caught:
        read_runs(written("a.run", run), qrels=written("a.qrels", qrels))
    assert message in str(caught.value)


def test_files_that_are_not_there(here: Path):
    with pytest.raises(NotFoundError, match="there is no file x\\.jsonl"):
        read_runs(Path("x.jsonl"))
    with pytest.raises(NotFoundError, match="is a directory"):
        read_rankings(here)
    Path("endless").symlink_to("endless")
    for read in (read_runs, read_rankings, read_selection):
        with pytest.raises(NotFoundError, match=r"endless cannot be read \(Too many levels"):
            read(Path("endless"))
    with pytest.raises(ConfigError, match="--qrels"):
        read_runs(Path("x.run"), form="trec")
    with pytest.raises(NotFoundError, match=r"jumar topk tune RUNS -o topk\.toml"):
        read_selection(Path("topk.toml"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"scores": [1]}', "'query_id' is missing; the line has scores"),
        ('{"query_id": true, "scores": [1]}', "'query_id' is True"),
        ('{"query_id": 1}', "'scores' is missing; the line has query_id"),
        ('{"query_id": 1, "scores": ["1"]}', "the score at position 0 is '1'"),
        ('{"query_id": 1, "scores": [1, null]}', "the score at position 1 is None"),
        ('{"query_id": 1, "scores": [1], "items": []}', "'items' is []; give a list with one entry for each of the 1 scores"),
    ],
)
def test_rankings_that_are_none(here: Path, line: str, message: str):
    with pytest.raises(ScoreError) as caught:
        read_rankings(written("s.jsonl", f"\n{line}"))
    assert f"s.jsonl, line 2: {message}" in str(caught.value)


# ------------------------------------------------------------------------------------------------------- topk.toml


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_selection_is_read_as_it_was_written(here: Path, name: str):
    selection = Selection(strategy=create_selection_strategy(name), max_k=7, min_k=0)
    text = render_selection(selection, {"metric": "f1", "quality": 0.25, "interval": [0.1, 0.4]}, "one\ntwo\x1b")
    assert text.startswith("# one\n# two\\x1b\nformat = 1\n")
    assert selection == read_selection(written("topk.toml", text))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("x", ConfigError, "topk.toml: not TOML"),
        ("format = 2", FormatTooNewError, "format 2 was written by a newer jumar"),
        ("max_kk = 2", ConfigError, "unknown key 'max_kk' (did you mean 'max_k'?)"),
        ("[pipline.retrieval]", ConfigError, "unknown key 'pipline' (did you mean 'pipeline'?)"),
        ("[selection]\n[pipeline.retrieval]", ConfigError, "both [selection] and [pipeline] in one file"),
        ("max_k = 2", ConfigError, "a table [selection] with a key 'strategy'"),
        ("[selection]\nk = 2", ConfigError, "a table [selection] with a key 'strategy'"),
        ('[selection]\nstrategy = "elbwo"', ConfigError, "did you mean 'elbow'"),
        ('[selection]\nstrategy = "fixed_k"\nk = 0', ConfigError, "topk.toml: k is 0"),
        ('max_k = 0\n[selection]\nstrategy = "fixed_k"', ConfigError, "topk.toml: max_k is 0"),
    ],
)
def test_a_selection_that_is_none(here: Path, text: str, error: type[Exception], message: str):
    with pytest.raises(error) as caught:
        read_selection(written("topk.toml", text))
    assert message in str(caught.value)


@pytest.mark.parametrize("table", SELECTIONS)
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_selection_that_is_written_for_settings_is_read_by_all_who_read_settings(here: Path, name: str, table: str):
    selection = Selection(strategy=create_selection_strategy(name), max_k=7, min_k=0)
    path = written("settings.toml", render_selection(selection, {"quality": 0.25, "interval": [0.1, 0.4]}, "one", table=table))

    assert selection == read_selection(path) == read_selection(path, table)
    loaded = load_retrieval(path, environ={})
    assert (7, 0) == (loaded.max_k, loaded.min_k)
    assert selection.strategy == create_selection_strategy(getattr(loaded, table))


def test_what_settings_cannot_hold_is_not_written_for_them():
    selection = Selection(strategy=create_selection_strategy("otsu", min_score=-0.5), max_k=7, min_k=0)
    with pytest.raises(ConfigError, match=r"memory_selection\] cannot hold what was found: min_score is -0.5.*without --table"):
        render_selection(selection, {}, table="memory_selection")


def test_only_a_file_that_loses_nothing_is_replaced(here: Path):
    check_replaceable(Path("none.toml"), "rule_selection")
    text = render_selection(
        Selection(strategy=create_selection_strategy("otsu"), max_k=7, min_k=0), {"a": 1}, table=SELECTIONS[0]
    )
    check_replaceable(written("mine.toml", text), "rule_selection")
    for path, table, message in (
        (Path("mine.toml"), "memory_selection", "mine.toml: exists already and holds pipeline.retrieval.rule_selection, which"),
        (
            written("a.toml", "[pipeline.retrieval]\ncandidate_k = 3\n[other]\n"),
            SELECTIONS[0],
            "holds other, pipeline.retrieval.ca",
        ),
        (written("b.toml", "not toml"), SELECTIONS[0], "b.toml: exists already, which would be lost"),
    ):
        with pytest.raises(ExistsError) as caught:
            check_replaceable(path, table)
        assert message in str(caught.value)
