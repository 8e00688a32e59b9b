"""``jumar import``: a history becomes a loop, its scores stay as they were given, and every command goes on from there."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from commands import call, call_json
from recorded import LOGS
from visits import visit

from jumar.dashboard.app import create_app
from jumar.dashboard.guard import Access, local_hosts
from jumar.dashboard.library import Library
from jumar.loop.store.loop_store import LoopStore

LOWER = "commit\tval_x\tstatus\tdescription\n" + "".join(
    f"abc{number:04}\t{value}\t{status}\ttry {number}\n"
    for number, (value, status) in enumerate(
        [("0.99", "keep"), ("0.9752", "keep"), ("1.02", "discard"), ("0", "crash"), ("0.9753", "keep"), ("0.98", "???")]
    )
)


def imported_json(*arguments: object) -> Any:
    return call("import", *arguments, "--json", check=0).document


@pytest.fixture
def imported(fresh_place: Path) -> str:
    (fresh_place / "results.tsv").write_text(LOWER)
    return str(imported_json("autoresearch", "results.tsv")["loop_id"])


def test_the_outcome_names_best_and_last_as_they_were_given(fresh_place: Path) -> None:
    (fresh_place / "results.tsv").write_text(LOWER)
    before = (fresh_place / "results.tsv").read_bytes()
    found = imported_json("autoresearch", "results.tsv")
    assert {key: value for key, value in found.items() if key != "loop_id"} == {
        "metric": "val_x",
        "direction": "min",
        "iterations": 6,
        "best_iteration": 1,
        "best_score": 0.9752,
        "last_iteration": 5,
        "last_score": None,
        "kept_by_agent": 3,
        "crashes": 1,
        "skipped_rows": 0,
    }
    assert (fresh_place / "results.tsv").read_bytes() == before
    assert imported_json("autoresearch", "results.tsv") == found  # the same file twice is one loop
    assert [loop["loop_id"] for loop in call_json("list")["loops"]] == [found["loop_id"]]


def test_a_link_to_a_file_is_followed(fresh_place: Path) -> None:
    (fresh_place / "run.tsv").write_text(LOWER)
    (fresh_place / "results.tsv").symlink_to("run.tsv")
    found = imported_json("autoresearch", "results.tsv")
    assert found["best_iteration"] == 1
    assert imported_json("autoresearch", "run.tsv") == found  # the bytes that were read say which loop it is


def test_what_was_taken_for_what_is_said(fresh_place: Path) -> None:
    (fresh_place / "results.tsv").write_text(LOWER)
    out = " ".join(call("import", "autoresearch", "results.tsv", check=0).out.split())
    assert "metric val_x; lower is better (2 of 3 decisions to keep or discard agree); status in status" in out
    assert "best 0.9752 val_x (lower is better), iteration 1" in out
    assert "kept 0.9753, iteration 4: what the loop itself ended with" in out
    assert "1 row crashed, 1 row without a value or with an unknown status" in out
    assert "which it was already" in call("import", "autoresearch", "results.tsv", check=0).out


def test_every_command_shows_the_scores_as_they_were_given(imported: str, fresh_place: Path) -> None:
    report = call("report", check=0).out
    assert "| Metric | val_x, lower is better |" in report
    assert "**Reason**: Lowest val_x: 0.9752" in report
    assert "Runner-up: iteration 4 (0.9753), 0.0001 behind" in report
    assert "%" not in report
    assert "Imported without its files" in report
    document = json.loads(call("report", "--format", "json", check=0).out)
    assert (document["metric"], document["direction"], document["config"]["origin"]["kind"]) == ("val_x", "min", "autoresearch")
    assert [record["quality_score"] for record in document["records"]] == [0.99, 0.9752, 1.02, None, 0.9753, None]
    assert [record["status"] for record in document["records"]] == ["ok", "ok", "ok", "crashed", "ok", "unranked"]
    assert document["selection"]["margin"] == -0.0001  # as the values differ
    rows = list(csv.DictReader(call("report", "--format", "csv", check=0).out.splitlines()))
    assert [row["quality_score"] for row in rows][:3] == ["0.99", "0.9752", "1.02"]
    assert "0.9752" in call("list", check=0).out
    status = call("status", imported, check=0).out
    assert "imported (from" in status
    assert "best      0.9752 (it 1)" in status
    assert call_json("status", imported)["best"]["quality_score"] == 0.9752
    assert "runner-up iteration 4, 0.0001 worse" in call("select", check=0).out
    html = call("report", "--format", "html", check=0).out
    assert "val_x, lower is better" in html
    assert "★ 0.9752" in html
    call("export", "-o", "rows.json", check=0)
    exported = json.loads((fresh_place / "rows.json").read_text())
    assert [row["score"] for row in exported] == [0.99, 0.9752, 1.02, None, 0.9753, None]
    assert [row["kept_by_agent"] for row in exported] == [True, True, False, None, True, None]
    assert exported[0]["cost_usd"] is None


def test_each_row_says_what_was_tried(fresh_place: Path) -> None:
    (fresh_place / "trials.csv").write_text("number,lr,loss,state\n0,1e-3,0.9,COMPLETE\n1,1e-4,0.8,FAIL\n")
    imported_json("table", "trials.csv", "--metric", "loss")
    assert "number=0, lr=1e-3" in call("show", check=0).out
    assert "crashed · number=1, lr=1e-4" in call("report", "--format", "html", check=0).out


def test_another_one_is_selected_and_nothing_is_applied(imported: str) -> None:
    call("select", "--use", "4", "--reason", "it is simpler", check=0)
    assert json.loads(call("report", "--format", "json", check=0).out)["selected_iteration"] == 4
    assert "was imported without its files" in call("apply", check=2).err
    assert "status    crashed: its status is 'crash'" in call("show", "3", check=0).out
    assert "unknown status" not in call("select", "--use", "5", "--reason", "x", check=2).out
    call("verify", check=0)


def test_where_lower_is_better_no_view_says_the_opposite(imported: str) -> None:
    assert "the lowest of 4 valid scores is 0.9752" in call("report", check=0).out
    assert "on a scale of 0 to 100" not in call("report", "--format", "html", check=0).out
    watched = call("watch", imported, check=0).out
    assert "0.975 ┤" in watched or "0.9752 ┤" in watched
    assert "1.02 ┤" in watched
    assert "100 ┤" not in watched
    call("select", "--use", "4", "--reason", "it is simpler", check=0)
    assert "best score" in call("show", check=0).out
    assert "lowest    " in call("watch", imported, check=0).out
    assert imported_json("autoresearch", "results.tsv")["best_iteration"] == 1  # by the metric, whatever was selected since


def test_what_comes_after_the_lowest_does_not_rise_again_but_is_not_better(fresh_place: Path) -> None:
    (fresh_place / "runs.csv").write_text("run,loss\n1,0.9\n2,0.5\n3,0.7\n4,0.8\n")
    call("import", "table", "runs.csv", "--metric", "loss", "--direction", "min", check=0)
    assert "Nothing after iteration 1 (0.5) is better" in call("report", check=0).out


def test_of_what_is_as_good_as_the_start_the_start_is_the_best(fresh_place: Path) -> None:
    (fresh_place / "runs.csv").write_text("run,acc,status\n1,0.5,keep\n2,0.4,discard\n3,0.5,discard\n")
    assert imported_json("table", "runs.csv", "--metric", "acc", "--direction", "max")["best_iteration"] == 0
    assert "**Selected Iteration**: 0" in call("report", check=0).out


def page(address: str) -> str:
    app = create_app(Library([Path(".jumar")], Path()), Access(hosts=local_hosts(8400)))
    return visit(app, address, host="127.0.0.1:8400")[2]


def test_documents_and_pages_hold_no_position(fresh_place: Path) -> None:
    (fresh_place / "runs.csv").write_text("run,latency_ms\n1,1500.5\n2,1200\n3,900\n4,1100\n")
    name = imported_json("table", "runs.csv", "--metric", "latency_ms", "--direction", "min")["loop_id"]
    assert "200 better than the runner-up" in page(f"/loops/{name}/decide")
    call("select", "--use", "1", "--reason", "it is simpler", check=0)
    assert "300 worse than iteration 2, which the rules select" in page(f"/loops/{name}/decide")
    assert "0 to 100, of each loop" in page(f"/compare?loop={name}")
    document = json.loads(call("report", "--format", "json", check=0).out)
    assert document["override"]["delta"] == document["decisions"][-1]["delta"] == -100
    assert document["summary"]["average_quality"] == pytest.approx((1200 + 900 + 1100) / 3)


def test_a_table_needs_its_metric_and_tells_a_typo(fresh_place: Path) -> None:
    (fresh_place / "runs.csv").write_text("run,accuracy,seconds\n1,0.5,3\n2,0.75,4\n3,0.7,5\n")
    assert "--metric" in call("import", "table", "runs.csv", check=2).err
    assert "did you mean 'accuracy'?" in call("import", "table", "runs.csv", "--metric", "acuracy", check=2).err
    found = imported_json("table", "runs.csv", "--metric", "accuracy", "--direction", "max")
    assert (found["best_iteration"], found["best_score"], found["last_score"], found["kept_by_agent"]) == (1, 0.75, 0.7, 0)
    other = imported_json("table", "runs.csv", "--metric", "seconds", "--direction", "min")
    assert (other["best_iteration"], other["loop_id"] != found["loop_id"]) == (0, True)


def test_a_worst_that_is_far_off_hides_no_difference(fresh_place: Path) -> None:
    (fresh_place / "runs.csv").write_text("run,loss\n1,1e18\n2,0.9752\n3,0.9751\n4,0.9753\n")
    found = imported_json("table", "runs.csv", "--metric", "loss")
    assert (found["best_iteration"], found["best_score"]) == (2, 0.9751)


@pytest.mark.skipif(not LOGS.is_dir(), reason="the recorded loops are not here")
def test_every_recorded_loop_becomes_one(fresh_place: Path) -> None:
    known = {loop["id"]: loop for loop in map(json.loads, (LOGS / "loops.jsonl").read_text().splitlines())}
    rows = 0
    for path in sorted((LOGS / "logs").iterdir()):
        loop = known[path.stem]
        options = ("--metric", loop["metric"], "--direction", loop["direction"])
        found = imported_json("autoresearch", str(path), *options)
        rows += found["iterations"]
        ranked = [
            each["score"] for each in loop["iterations"] if each["status"] in {"keep", "discard"} and each["score"] is not None
        ]
        masked = "xx" in path.read_text().splitlines()[1].split("\t")[0]  # the header's own words: its statuses are, too
        wanted = max(ranked) if loop["direction"] == "max" else min(ranked)
        assert found["best_score"] == wanted or masked, path.name
        store = LoopStore.open(fresh_place / ".jumar" / "loops" / found["loop_id"])
        assert len(store.iteration_numbers()) == found["iterations"]
    print(f"{len(known)} recorded loops imported, {rows} iterations")
    assert "damaged" not in call("list", check=0).out


def test_a_file_without_a_command_is_answered_with_the_commands():
    Path("results.tsv").write_text("commit\tval_bpb\n", encoding="utf-8")
    said = call("import", "results.tsv", check=2).err
    assert "say what to do with the file: `jumar import autoresearch|git|table results.tsv`" in said
