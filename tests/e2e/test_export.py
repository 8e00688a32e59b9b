"""``jumar export``: what a data frame reads is what the records say, with the same types for every loop."""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import calc
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import call, call_json, record
from finished import finished_loop
from loops import write_loop
from pyarrow import csv as pa_csv

from jumar import BestOutputTracker
from jumar.loop.report.dataframe import COLUMNS

ROOT = Path(__file__).resolve().parents[2]
DIMENSIONS = ("validation", "completeness", "correctness", "readability", "efficiency")
PAYS = """
import json, os, runpy
n = int(os.environ["JUMAR_ITERATION"])
runpy.run_path("calc_agent.py", run_name="__main__")
usage = {"token_cost_usd": 0.25, "input_tokens": 100 * n, "output_tokens": n, "model": "=m"} if n != 2 else {"tokens_used": 7}
open(os.environ["JUMAR_USAGE_FILE"], "w").write(json.dumps(usage))
"""


def table(path: str) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


def counted_loop(here: Path) -> None:
    """Three iterations of which the second says nothing of its cost; the check counts tests."""
    write_loop(
        here,
        (0.6, 0.7, 0.8),
        check=f"{sys.executable} -m pytest -q -p no:cacheprovider",
        extra="[budget]\nreserve_cost_usd = 0.5\n",
    )
    shutil.copy(ROOT / "tests/support/calc.py", here / "calc_agent.py")
    calc.write_project(here)
    (here / "agent.py").write_text(PAYS)
    config = here / "jumar.toml"  # without scorers
    text = config.read_text().replace('"text.md"]', '"text.md", "calc.py"]')
    config.write_text(re.sub(r"\[\[scorers\]\].*?\n\n", "", text, flags=re.DOTALL))
    call("run", check=10)


def test_a_counted_loop_keeps_what_was_reported_apart_from_what_is_estimated(fresh_place: Path):
    counted_loop(fresh_place)
    assert "wrote runs.parquet (parquet, " in call("export", "-o", "runs.parquet", check=0).out
    start, first, second, third = table("runs.parquet")
    assert [3, 9, 10, 11] == [row["tests_passed"] for row in (start, first, second, third)]
    assert {12} == {row["tests_total"] for row in (start, first, second, third)}
    assert [None, 0.25, None, 0.25] == [row["cost_usd"] for row in (start, first, second, third)]
    assert (None, 0.0, 0.5) == tuple(second[f"attempts_{what}_usd"] for what in ("cost", "known_cost", "estimated_cost"))
    assert (0.25, 0.25, 0.0) == tuple(first[f"attempts_{what}_usd"] for what in ("cost", "known_cost", "estimated_cost"))
    assert [None, 101, 7, 303] == [row["tokens"] for row in (start, first, second, third)]
    assert [None, 100, None, 300] == [row["input_tokens"] for row in (start, first, second, third)]
    assert [4, 3, 2, 1] == [row["rank"] for row in (start, first, second, third)]
    assert [3] == [row["iteration"] for row in (start, first, second, third) if row["selected"]]
    assert [None, 0, 1, 2] == [row["parent"] for row in (start, first, second, third)]
    assert (1, 6, 6) == (first["files_changed"], first["lines_added"], first["lines_removed"])
    assert not first["verified"]
    assert first["started_at"] <= first["recorded_at"]
    assert dt.timedelta(0) == first["recorded_at"].utcoffset()
    assert "=m" == first["model"]


def test_every_loop_has_the_same_columns_of_the_same_types_and_then_its_own_dimensions(fresh_place: Path):
    finished_loop(fresh_place)
    call("export", "t", "-o", "one.parquet", check=0)
    record([0.5, {"score": 0.7, "tokens_used": 10**30, "verification_status": "skipped"}], loop="mine")
    call("export", "mine", "-o", "two.parquet", check=0)
    one, two = pq.read_table("one.parquet"), pq.read_table("two.parquet")
    fixed = [(column.name, column.kind) for column in COLUMNS]
    types = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "time": pa.timestamp("us", "UTC")}
    for found in (one, two):
        assert [(name, types[kind]) for name, kind in fixed] == [(each.name, each.type) for each in found.schema][: len(fixed)]
    assert ["dimension_quality"] == one.schema.names[len(fixed) :]
    both = pa.concat_tables([one, two], promote_options="default").to_pylist()
    assert {"t": 5, "mine": 2} == {name: sum(row["loop_id"] == name for row in both) for name in ("t", "mine")}
    last = both[-1]
    assert (None, None, None, None) == (last["tokens"], last["verified"], last["cost_usd"], last["attempts"]), "unknown is null"
    assert 0.7 == last["dimension_validation"]


def test_csv_and_json_say_what_parquet_says(fresh_place: Path):
    finished_loop(fresh_place)
    for name in ("r.parquet", "r.csv", "r.json"):
        call("export", "-o", name, check=0)
    rows, document = table("r.parquet"), json.loads(Path("r.json").read_text())
    assert [{**row, "started_at": 0, "recorded_at": 0} for row in rows] == [
        {**row, "started_at": 0, "recorded_at": 0} for row in document
    ]
    assert rows[1]["recorded_at"] == dt.datetime.fromisoformat(document[1]["recorded_at"])
    read = pa_csv.read_csv("r.csv", convert_options=pa_csv.ConvertOptions(strings_can_be_null=True)).to_pylist()
    for name in ("iteration", "score", "verified", "selected", "dimension_quality", "files_changed", "status"):
        assert [row[name] for row in rows] == [row[name] for row in read], name
    assert rows == BestOutputTracker("t").export_rows()


def test_a_cell_that_a_spreadsheet_would_run_is_text(fresh_place: Path):
    record([{"score": 0.5, "reflections": ["=1+1", "two\x1b"]}, {"score": 0.6, "reflections": ["@SUM(A1)"]}])
    call("export", "-o", "r.csv", check=0)
    with Path("r.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert ["'=1+1\\ntwo\\x1b", "'@SUM(A1)"] == [row["note"] for row in rows]
    assert "-10.0" not in {row["score_delta"] for row in rows}
    call("export", "-o", "r.parquet", check=0)
    assert "=1+1\ntwo\x1b" == table("r.parquet")[0]["note"], "where nothing runs it, it is what it was"


def test_names_and_numbers_of_any_kind_keep_the_types(fresh_place: Path):
    weights = {"=cmd": 1.0, "tab\tname": 1.0, "\ud800": 1.0, **dict.fromkeys(DIMENSIONS, 0.0)}
    tracker = BestOutputTracker("odd", quality_weights=weights)
    tracker.record_iteration(iteration_number=1, dimensions={"=cmd": 1, "tab\tname": 0, "\ud800": 1}, token_cost_usd=0)
    tracker.close()
    for name in ("r.parquet", "r.csv", "r.json"):
        call("export", "-o", name, check=0)
    [row] = table("r.parquet")
    assert {"dimension_=cmd": 1.0, "dimension_tab\tname": 0.0, "dimension_\\ud800": 1.0, "cost_usd": 0.0}.items() <= row.items()
    assert ",0.0," in Path("r.csv").read_text(encoding="utf-8")
    assert isinstance(json.loads(Path("r.json").read_text())[0]["cost_usd"], float)


def test_secrets_are_redacted(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    record([{"score": 0.5, "reflections": ["it is hunter2hunter2"]}])
    monkeypatch.setenv("MY_API_KEY", "hunter2hunter2")
    for name in ("r.parquet", "r.csv", "r.json"):
        call("export", "-o", name, check=0)
        assert b"hunter2" not in Path(name).read_bytes()


@pytest.mark.usefixtures("fresh_place")
def test_what_cannot_be_written_is_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch):
    record([0.5])
    told = call("export", "-o", "runs.xlsx", check=2).err
    assert "runs.xlsx: give the file a name that ends in .csv, .parquet, .json" in told
    assert "the folder missing does not exist" in call("export", "-o", "missing/r.csv", check=2).err
    assert "--output" in call("export", check=2).err
    assert "no loop called" in call("export", "nobody", "-o", "r.csv", check=2).err
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("jumar.core.lazy.find_spec", lambda name: None)
    assert "pip install 'jumar[parquet]'" in call("export", "-o", "r.parquet", check=2).err
    assert not Path("r.parquet").exists()
    written = call_json("export", "-o", "r.csv")
    assert {
        "loop_id": "t",
        "format": "csv",
        "output": str(Path("r.csv").absolute()),
        "bytes": Path("r.csv").stat().st_size,
    } == written


def test_the_page_of_files_lists_every_column_with_its_type():
    page = (ROOT / "docs/reference/formats.md").read_text(encoding="utf-8")
    section = page.partition("## The table of jumar export\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (\w+) \|", section, re.MULTILINE)
    documented = [(name, kind) for names, kind in listed for name in re.findall(r"\w+", names)]
    assert [(column.name, column.kind) for column in COLUMNS] == documented
