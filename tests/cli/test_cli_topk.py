"""``jumar topk``: what it reads, prints and refuses."""

from __future__ import annotations

import errno
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import CONTROL, call

from jumar.cli.table import GROUPS, render_help
from jumar.topk.settings import load_retrieval
from jumar.topk.strategies import STRATEGIES, create_selection_strategy

PROBLEM = {"query_id": "return", "scores": [0.92, 0.89, 0.71, 0.45, 0.42]}


def lines(*rows: dict[str, Any], name: str = "in.jsonl") -> Path:
    path = Path(name)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def documents(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(autouse=True)
def _here(fresh_place: Path):
    return fresh_place


@pytest.mark.parametrize("name", GROUPS["topk"].commands)
def test_help(name: str):
    assert f"jumar topk {name}" in call("topk", name, "--help", check=0).out.partition("Examples:")[2]
    assert render_help("topk") == call("topk", "--help", check=0).out
    assert "JUMAR_ROOT" not in render_help("topk")


# ---------------------------------------------------------------------------------------------------------- select


def test_one_line_for_each_in_their_order():
    path = lines(PROBLEM, {"query_id": 7, "scores": []}, {"query_id": "i", "scores": [0.9, 0.1], "items": [{"id": 1}, "b"]})
    found = documents(call("topk", "select", path, "--strategy", "adaptive_k", "--json", check=0).out)
    assert ["return", 7, "i"] == [row["query_id"] for row in found]
    first = found[0]
    assert (3, [0, 1, 2], 0.71, "adaptive_k", False) == (
        first["kept"],
        first["positions"],
        first["cutoff_score"],
        first["method"],
        first["abstained"],
    )
    assert {"query_id", "kept", "positions", "cutoff_score", "method", "metadata", "abstained"} == set(first)
    assert (0, [], 0.0, True) == tuple(found[1][name] for name in ("kept", "positions", "cutoff_score", "abstained"))
    assert [{"id": 1}] == found[2]["items"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_answers(strategy: str):
    row = documents(call("topk", "select", lines(PROBLEM), "--strategy", strategy, "--json", check=0).out)[0]
    assert (strategy, 0) == (row["method"], row["positions"][0])
    assert strategy in call("topk", "select", lines(PROBLEM), "--strategy", strategy, check=0).out


def test_limits_parameters_and_orders():
    path = lines({"query_id": 1, "scores": [0.2, 0.9, 0.9, float("nan")]})
    chosen = ("topk", "select", path, "--strategy", "fixed_k", "--json", "--sort", "--on-invalid", "drop")
    assert [1, 2] == documents(call(*chosen, "--param", "k=1", "--ties", "keep").out)[0]["positions"]
    assert [1] == documents(call(*chosen, "--max-k", "1").out)[0]["positions"]
    assert [] == documents(call(*chosen, "--min-k", "0", "--param", "min_score=0.95").out)[0]["positions"]


def test_distances():
    path = lines({"query_id": 1, "scores": [0.1, 0.12, 0.9]})
    assert (
        2 == documents(call("topk", "select", path, "--scale", "distance", "--strategy", "largest_gap", "--json").out)[0]["kept"]
    )


def test_a_configuration_that_options_beat():
    Path("topk.toml").write_text('max_k = 2\nmin_k = 0\n[selection]\nstrategy = "elbow"\ndrop_threshold = 0.5\n')
    first = ("topk", "select", lines(PROBLEM), "--config", "topk.toml", "--json")
    row = documents(call(*first, check=0).out)[0]
    assert ("elbow", 2, 0.5) == (row["method"], row["kept"], row["metadata"]["drop_threshold"])
    assert 3 == documents(call(*first, "--max-k", "4", check=0).out)[0]["kept"]
    assert 1 == documents(call(*first, "--param", "drop_threshold=0.01", check=0).out)[0]["kept"]


SETTINGS = """[pipeline.retrieval]
max_k = 4
[pipeline.retrieval.rule_selection]
strategy = "fixed_k"
k = 2
[pipeline.retrieval.memory_selection]
strategy = "elbow"
"""


def test_settings_of_a_pipeline_are_a_configuration_too(monkeypatch: pytest.MonkeyPatch):
    Path("settings.toml").write_text(SETTINGS)
    first = ("topk", "select", lines(PROBLEM), "--config", "settings.toml", "--json")

    def chosen(*options: str) -> tuple[str, int]:
        called = call(*first, *options, check=0)
        assert not called.err
        row = documents(called.out)[0]
        return row["method"], row["kept"]

    assert ("fixed_k", 2) == chosen("--use", "rule_selection")
    assert ("elbow", 2) == chosen("--use", "memory_selection")
    assert ("entropy", 2) == chosen("--use", "scenario_selection"), "the built-in one"
    assert ("fixed_k", 1) == chosen("--use", "rule_selection", "--max-k", "1")
    monkeypatch.setenv("JUMAR_PIPELINE__RETRIEVAL__RULE_SELECTION__K", "3")
    assert ("fixed_k", 3) == chosen("--use", "rule_selection")
    monkeypatch.setenv("JUMAR_PIPELINE__RETRIEVAL__RULE_SELECTION__STRATEGY", "otsu")
    called = call(*first, "--use", "rule_selection", check=0)
    assert "otsu" == documents(called.out)[0]["method"]
    assert "jumar: warning: JUMAR_PIPELINE__RETRIEVAL__RULE_SELECTION__K is ignored" in called.err
    monkeypatch.setenv("JUMAR_PIPELINE__RETRIEVAL__RULE_SELECTION__STRATEGY", "elbwo")
    assert "did you mean 'elbow'" in call(*first, "--use", "rule_selection", check=2).document["error"]["message"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            SETTINGS,
            (),
            "settings.toml: [pipeline.retrieval] has 2 selections: say which with --use rule_selection or --use memory_",
        ),
        (
            "[pipeline.retrieval]\nmax_k = 2",
            (),
            "has no selection: say which with --use rule_selection or --use scenario_selection",
        ),
        (
            SETTINGS.replace("k = 2", "k = 0"),
            ("--use", "rule_selection"),
            "settings.toml:5: pipeline.retrieval.rule_selection.k is 0",
        ),
        (
            '[selection]\nstrategy = "elbow"',
            ("--use", "rule_selection"),
            "--use chooses among the selections of [pipeline.retrieval]",
        ),
        (SETTINGS, ("--use", "tool_selection"), "'tool_selection' is not one of 'rule_selection', 'scenario_selection'"),
    ],
)
def test_settings_that_do_not_say_which(text: str, options: tuple[str, ...], message: str):
    Path("settings.toml").write_text(text)
    assert message in call("topk", "select", lines(PROBLEM), "--config", "settings.toml", *options, check=2).err


def test_stdin():
    done = subprocess.run(
        [sys.executable, "-m", "jumar.cli.entry", "topk", "select", "-", "--strategy", "adaptive_k", "--json"],
        input=json.dumps(PROBLEM),
        capture_output=True,
        text=True,
        check=True,
    )
    assert 3 == json.loads(done.stdout)["kept"]


def test_select_loads_no_numpy():
    lines(PROBLEM)
    code = (
        "import sys\nsys.argv[1:] = ['topk', 'select', 'in.jsonl', '--json']\nfrom jumar.cli.entry import main\n"
        "try: main()\nfinally: print({'numpy', 'pydantic'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "set()" == done.stderr.strip()


def test_explained():
    out = call("topk", "select", lines(PROBLEM), "--explain", check=0).out
    assert "return" in out
    assert "entropy_normalized" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--strategy", "elbwo"), "did you mean 'elbow'"),
        (("--min-k", "3", "--max-k", "2"), "min_k is 3 and max_k 2"),
        (("--param", "alpha"), "--param alpha: write NAME=VALUE"),
        (("--param", "lwo=0.2"), "did you mean 'low'"),
        (("--param", "low=big"), "low is 'big'"),
        (("--explain", "--json"), "choose one"),
        (("--config", "x.toml", "--strategy", "elbow"), "both name a strategy"),
        (("--config", "x.toml"), "there is no file x.toml"),
        (("--use", "rule_selection"), "--use chooses among the selections of --config FILE: give both"),
        (("--strategy", "elbow", "--scale", "logit"), "logit"),
        (("--gate", "5"), "--gate is 5.0, which means nothing for scale 'similarity'"),
        (("--gate", "nan"), "--gate is nan, which means nothing"),
        (("--token-budget", "-1"), "--token-budget"),
        (("--token-budget", "9"), "in.jsonl, line 1: --token-budget counts the tokens of 'items', and here are none"),
    ],
)
def test_what_cannot_be_asked_for(arguments: tuple[str, ...], message: str):
    called = call("topk", "select", lines(PROBLEM), *arguments, check=2)
    assert message in called.err


def test_a_gate_and_a_token_budget_around_the_strategy():
    sized = {**PROBLEM, "items": ["x" * 40, {"text": "y", "tokens": 7}, "z" * 8, "d", "e"]}
    path = lines(sized, {"query_id": "far", "scores": [0.4, 0.39], "items": ["a", "b"]}, {"query_id": "none", "scores": []})
    options = ("--strategy", "adaptive_k", "--gate", "0.5", "--token-budget", "18", "--json")
    answer, far, empty = documents(call("topk", "select", path, *options, check=0).out)

    assert ([0, 1], 0.89, False) == (answer["positions"], answer["cutoff_score"], answer["abstained"])
    assert sized["items"][:2] == answer["items"]
    stages = [(stage["name"], stage["given"], stage["kept"]) for stage in answer["metadata"]["stages"]]
    assert [("gate", 5, 5), ("selector", 5, 3), ("budget", 3, 2)] == stages
    assert "17 of 18 tokens" == answer["metadata"]["stages"][-1]["reason"]
    assert (0, True, 0, True) == (far["kept"], far["abstained"], empty["kept"], empty["abstained"])
    assert (
        "gate: 2 → 0, the best score 0.4 is not at least 0.5"
        in call("topk", "select", path, *options[:-1], "--explain", check=0).out
    )
    without = documents(call("topk", "select", path, "--json", check=0).out)
    assert all("stages" not in each["metadata"] for each in without)


def test_a_gate_above_every_score_keeps_nothing_and_says_so():
    path = lines(PROBLEM, {"query_id": "b", "scores": [0.3]})
    called = call("topk", "select", path, "--gate", "0.95", "--min-k", "1", "--json", check=0)
    assert [True, True] == [each["abstained"] for each in documents(called.out)]
    assert "note: no ranking reaches the gate of 0.95, so that nothing is kept: give a lower --gate" in called.err
    assert "" == call("topk", "select", path, "--gate", "0.9", check=0).err
    near = lines({"query_id": "b", "scores": [0.1, 0.3]}, name="near.jsonl")
    assert "" == call("topk", "select", near, "--gate", "0.2", "--scale", "distance", check=0).err
    assert "no ranking reaches" in call("topk", "select", near, "--gate", "0.05", "--scale", "distance", check=0).err


def test_conformal_without_a_threshold_keeps_all_and_says_so():
    path = lines(PROBLEM)
    for gate in ((), ("--gate", "0.1")):
        called = call("topk", "select", path, "--strategy", "conformal", *gate, check=0)
        assert "note: conformal has no threshold, so that all up to --max-k are kept: `jumar topk tune` fits one" in called.err
    assert "" == call("topk", "select", path, "--strategy", "conformal", "--param", "threshold=0.5", check=0).err


def test_nothing_is_printed_unless_all_can_be_decided():
    called = call("topk", "select", lines(PROBLEM, {"query_id": "\x1b[2J", "scores": [0.1, 0.2]}), check=2)
    assert "" == called.out
    assert "in.jsonl, line 2: the scores are not sorted" in called.err
    assert "pass --sort" in called.err


def test_names_are_harmless():
    called = call("topk", "select", lines({"query_id": "\x1b[2J", "scores": [0.3]}), terminal=True, check=0)
    assert CONTROL.isdisjoint(called.out.replace("\x1b[2m", "").replace("\x1b[0m", ""))


# --------------------------------------------------------------------------------------------------------- compare


def labelled_file(**more: Any) -> Path:
    rows = [
        {"query_id": "a", "scores": [0.9, 0.85, 0.3], "relevant": [1, 1, 0], "relevant_total": 2},
        {"query_id": "b", "scores": [0.8, 0.6, 0.55], "relevant": [1, 0, 0], "relevant_total": 1},
        {"query_id": "c", "scores": [0.2, 0.1, 0.1], "relevant": [0, 0, 0], "relevant_total": 0},
    ]
    return lines(*({**row, **more} for row in rows), name="runs.jsonl")


def test_a_row_for_every_strategy():
    found = call("topk", "compare", labelled_file(), "--json", "--min-k", "0", check=0).document
    assert sorted(STRATEGIES) == sorted(row["strategy"] for row in found["rows"])
    assert (3, 2, 1.0) == (found["queries"], found["in_scope"], found["oracle_f1"])
    for row in found["rows"]:
        for name in ("f1", "mean_k", "skill", "oracle_f1", "wrongly_answered"):
            low, high = row[f"{name}_interval"]
            assert low <= high
            assert isinstance(row[name], float)
    elbow = next(row for row in found["rows"] if row["strategy"] == "elbow")
    assert (1.0, 1.0, 0.0, 0.0) == (elbow["f1"], elbow["mean_k"], elbow["oracle_gap"], elbow["wrongly_answered"])
    best_first = [row["f1"] for row in found["rows"]]
    assert sorted(best_first, reverse=True) == best_first


def test_the_table_says_what_it_is_of():
    out = call("topk", "compare", labelled_file(), check=0).out
    assert "queries   3, 1 of them out of scope; max_k 20, min_k 1" in out
    assert "wrongly answered" in out
    assert "oracle    F1 1.000" in out
    assert "hindsight" not in call("topk", "compare", labelled_file(), "-q", check=0).out


def test_only_some_of_them_and_those_that_a_scale_refuses():
    found = call("topk", "compare", labelled_file(), "--strategy", "fixed_k", "--json", check=0).document
    assert ["fixed_k"] == [row["strategy"] for row in found["rows"]]
    logits = call("topk", "compare", labelled_file(), "--scale", "logit", check=0).out
    assert "without   elbow: elbow needs scores" in logits


def test_trec_files():
    Path("a.run").write_text("q Q0 d1 1 9.5 x\nq Q0 d2 2 3.5 x\n")
    Path("a.qrels").write_text("q 0 d1 1\n")
    found = call("topk", "compare", "a.run", "--qrels", "a.qrels", "--scale", "bm25", "--json", check=0).document
    assert (1, 1.0) == (found["queries"], found["oracle_f1"])


def test_compare_without_numpy_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jumar.core.lazy.find_spec", lambda _: None)
    called = call("topk", "compare", labelled_file(), "--json", check=2)
    assert "pip install 'jumar[topk]'" in called.document["error"]["message"]


def test_compare_names_what_is_wrong():
    assert "runs.jsonl, line 1: query a: 'relevant' is None" in call("topk", "compare", labelled_file(relevant=None), check=2).err
    Path("empty.jsonl").write_text("")
    assert "empty.jsonl: there are no queries in it" in call("topk", "compare", "empty.jsonl", check=2).err


@pytest.mark.parametrize("columns", [80, 160])
def test_tables_fit_the_window(columns: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [
        {
            "time": 1767225600 + 60 * turn,
            "retrieval": {"rules": {"strategy": "entropy_normalized", "output_count": 3 + turn // 30 * 4}},
        }
        for turn in range(60)
    ]
    for row in rows:
        row["retrieval"]["rules"]["cutoff_score"] = 0.8 - 0.1 * row["retrieval"]["rules"]["output_count"]
    for arguments in (
        ("compare", labelled_file(), "--min-k", "0"),
        ("tune", clear_file()),
        ("drift", lines(*rows, name="selections.log")),
        ("select", lines(PROBLEM)),
    ):
        out = re.sub(r"\x1b\[[0-9;]*m", "", call("topk", *arguments, terminal=True, check=0).out)
        assert "…" not in out
        assert all(len(line) <= columns for line in out.splitlines() if "  " in line)
        if arguments[0] == "compare":
            assert (2 if columns == 80 else 1) == len(re.findall("^ *strategy ", out, re.MULTILINE)) == out.count("fixed_k ")
            assert re.search(r"^ *elbow +1\.000  1\.000 to 1\.000 ", out, re.MULTILINE)
        if arguments[0] == "drift":
            assert 2 == out.count("DRIFT")


# ------------------------------------------------------------------------------------------------------------ tune


def clear_file(count: int = 12) -> Path:
    rows: list[dict[str, Any]] = []
    for number in range(count):
        good = 1 + number * 5 % 7
        scores = [0.9 - 0.01 * place - 0.001 * number - 0.5 * (place >= good) for place in range(12)]
        labels = [int(place < good) for place in range(12)]
        rows.append({"query_id": number, "scores": scores, "relevant": labels, "relevant_total": good})
    return lines(*rows, name="clear.jsonl")


def test_what_is_tuned_is_used():
    found = call("topk", "tune", clear_file(), "-o", "topk.toml", "--max-k", "10", "--json", check=0).document
    assert "fixed_k" != found["strategy"]
    assert found["quality"] > 0.95
    assert (10, 1, "f1", 12, False) == tuple(found[name] for name in ("max_k", "min_k", "metric", "queries", "fixed_k_as_good"))
    assert found["gain_over_fixed_k_interval"][0] > 0
    text = Path("topk.toml").read_text()
    assert text.startswith("# jumar topk tune: tuned on clear.jsonl\n")
    kept = documents(call("topk", "select", "clear.jsonl", "--config", "topk.toml", "--json", check=0).out)
    assert [1 + number * 5 % 7 for number in range(12)] == [row["kept"] for row in kept]
    assert found["strategy"] == kept[0]["method"]


def test_what_is_tuned_for_settings_is_a_layer_of_them():
    options = ("-o", "tuned.toml", "--table", "memory_selection")
    found = call("topk", "tune", clear_file(), *options, "--max-k", "10", "--json", check=0).document
    Path("mine.toml").write_text(SETTINGS)
    loaded = load_retrieval("mine.toml", "tuned.toml", environ={})
    assert (10, 1, "fixed_k") == (loaded.max_k, loaded.min_k, loaded.rule_selection.strategy)
    chosen = create_selection_strategy(loaded.memory_selection)
    assert (found["strategy"], found["params"]) == (chosen.name, chosen.params())
    kept = documents(call("topk", "select", "clear.jsonl", "--config", "tuned.toml", "--json", check=0).out)
    assert [(found["strategy"], 1 + number * 5 % 7) for number in range(12)] == [(row["method"], row["kept"]) for row in kept]
    recalled = call("topk", "tune", clear_file(), *options, "--recall", "0.8", check=0)
    assert "wrote     tuned.toml" in recalled.out
    assert (
        "conformal"
        == documents(call("topk", "select", "clear.jsonl", "--config", "tuned.toml", "--json", check=0).out)[0]["method"]
    )
    assert (
        "mine.toml: exists already and holds" in call("topk", "tune", clear_file(), "-o", "mine.toml", *options[2:], check=2).err
    )
    assert SETTINGS == Path("mine.toml").read_text()


def test_negative_scores_are_tuned_to_something_that_settings_can_hold():
    rows = [
        {"query_id": number, "scores": [0.4 - 0.1 * place - 0.01 * number for place in range(9)], "relevant": [1] * 2 + [0] * 7}
        for number in range(8)
    ]
    for metric in ("f1", "recall"):
        options = ("--metric", metric, "-o", "tuned.toml", "--table", "rule_selection")
        call("topk", "tune", lines(*rows), *options, check=0)
        assert load_retrieval("tuned.toml", environ={})


def test_a_person_is_told_when_a_number_does_as_well():
    path = lines(
        *(
            {"query_id": number, "scores": [0.9 - 0.01 * place for place in range(8)], "relevant": [1, 1, 1, 0, 0, 0, 0, 0]}
            for number in range(6)
        )
    )
    called = call("topk", "tune", path, check=0)
    assert "keep      fixed_k(k=3" in called.out
    assert "a fixed number, 3, is as good as anything that looks at the scores, as far as 6 queries tell" in called.words
    assert "  each one tuned, held out " in called.out
    assert call("topk", "tune", path, "-q", check=0).words.endswith("as far as 6 queries tell")


def test_a_recall_can_be_promised():
    called = call("topk", "tune", clear_file(), "--recall", "0.8", "-o", "topk.toml", check=0)
    assert "keep      conformal(threshold=" in called.out
    assert "wrote     topk.toml" in called.out
    row = documents(call("topk", "select", "clear.jsonl", "--config", "topk.toml", "--json", check=0).out)[0]
    assert ("conformal", True) == (row["method"], row["metadata"]["calibrated"])
    assert "conformal" == call("topk", "tune", clear_file(), "--recall", "0.8", "--json", check=0).document["strategy"]
    assert "at least 99 labelled queries" in call("topk", "tune", clear_file(), "--recall", "0.99", check=2).err


def test_an_output_that_cannot_be_written_is_an_error_with_a_way_out(monkeypatch: pytest.MonkeyPatch):
    def full(*_: object):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("jumar.core.files.replace_file", full)
    called = call("topk", "tune", clear_file(), "-o", "topk.toml", check=1)
    assert "topk.toml could not be written: No space left on device; choose another file with -o" in called.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "no/such/topk.toml"), "the folder no/such does not exist"),
        (("--metric", "map"), "map"),
        (("--min-k", "9", "--max-k", "8"), "min_k is 9 and max_k 8"),
        (("--recall", "1.5"), "recall is 1.5"),
        (("--table", "rule_selection"), "--table says how -o FILE is written: give both, or neither"),
        (("--table", "rules", "-o", "x.toml"), "'rules' is not one of 'rule_selection'"),
    ],
)
def test_what_cannot_be_tuned(arguments: tuple[str, ...], message: str):
    assert message in call("topk", "tune", clear_file(), *arguments, check=2).err
