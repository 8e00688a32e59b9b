"""What final-output/ holds, and what the report says of it: real loops that change, add and delete files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import call, call_json

from jumar.loop.report import diff
from jumar.loop.report.views import refresh_views
from jumar.loop.snapshots import snapshot
from jumar.loop.store.loop_store import LoopStore

AGENT = """
import os, pathlib
n = int(os.environ["JUMAR_ITERATION"])
pathlib.Path("score.txt").write_text(["0.9", "0.3"][n - 1])
pathlib.Path("tool.sh").chmod(0o755)
if n == 1:
    pathlib.Path("docs/old.md").unlink()
    pathlib.Path("docs/new.md").write_text("new")
"""
CHANGED = {"score.txt": "0.9", "tool.sh": "exit 0", "docs/new.md": "new"}
WHOLE = {**CHANGED, "docs/kept.md": "kept"}


def run(here: Path, loop: str, *, start: str = "0.5", extra: str = "") -> dict[str, Any]:
    (here / "docs").mkdir()
    for path, text in {"docs/old.md": "old", "docs/kept.md": "kept", "tool.sh": "exit 0", "score.txt": start}.items():
        (here / path).write_text(text)
    (here / "agent.py").write_text(AGENT)
    (here / "jumar.toml").write_text(
        f"""
[loop]
id = "t"
max_iterations = 2
{loop}
[artifacts]
include = ["docs", "tool.sh", "score.txt"]
[generator]
command = [{json.dumps(sys.executable)}, "agent.py"]
[[scorers]]
dimension = "quality"
command = "cat score.txt"
{extra}
"""
    )
    document: dict[str, Any] = call_json("run")
    return document


def held(here: Path) -> dict[str, str]:
    top = here / ".jumar/loops/t/final-output"
    return {str(path.relative_to(top)): path.read_text() for path in top.rglob("*") if path.is_file()}


def best_view(here: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((here / ".jumar/loops/t/best-tracker.json").read_text())
    return {key.removeprefix("final_output").lstrip("_"): value for key, value in found.items() if "final_output" in key}


def section(here: Path) -> list[str]:
    text = (here / ".jumar/loops/t/selection-report.md").read_text()
    lines = text.partition("## Artifacts Applied\n\n")[2].partition("\n## ")[0].splitlines()
    return [line for line in lines if line]


def test_in_place_it_holds_what_differs_from_the_start(fresh_place: Path):
    assert "changed" == run(fresh_place, "")["output_holds"]
    assert CHANGED == held(fresh_place)
    assert 0o755 == (fresh_place / ".jumar/loops/t/final-output/tool.sh").stat().st_mode & 0o777
    assert {"": 1, "holds": "changed", "deleted": ["docs/old.md"]} == best_view(fresh_place)
    where = (fresh_place / ".jumar/loops/t/iterations/iteration-001/artifacts").resolve()
    assert WHOLE == {str(path.relative_to(where)): path.read_text() for path in where.rglob("*") if path.is_file()}
    counts = "Against the start: 2 changed, 1 added, 1 deleted, 1 file as before."
    assert [
        f"{counts} final-output/ holds what is changed or added; the whole is in {where}",
        "- changed: score.txt",
        "- changed: tool.sh",
        "- added: docs/new.md",
        "- deleted: docs/old.md",
    ] == section(fresh_place)


def test_in_a_copy_it_holds_the_whole(fresh_place: Path):
    assert "full" == run(fresh_place, 'isolation = "copy"')["output_holds"]
    assert WHOLE == held(fresh_place)
    assert {"": 1, "holds": "full", "deleted": []} == best_view(fresh_place)
    assert "1 file as before. final-output/ holds the whole." in section(fresh_place)[0]


@pytest.mark.parametrize(
    ("loop", "holds"),
    [
        ('final_output = "full"', "full"),
        ('apply = "never"', "full"),
        ('isolation = "copy"\nfinal_output = "changed"', "changed"),
    ],
)
def test_the_configuration_says_what_it_holds(fresh_place: Path, loop: str, holds: str):
    assert holds == run(fresh_place, loop)["output_holds"]
    assert (WHOLE if holds == "full" else CHANGED) == held(fresh_place)


@pytest.mark.parametrize(("limit", "most"), [("_LARGE", sum(map(len, WHOLE.values())) - 1), ("_MANY", len(WHOLE) - 1)])
def test_a_large_one_holds_what_differs(fresh_place: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int):
    monkeypatch.setattr(diff, limit, most)
    assert "changed" == run(fresh_place, 'isolation = "copy"')["output_holds"]
    assert CHANGED == held(fresh_place)


def test_of_what_lies_among_the_objects_the_report_says_how_to_get_it(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(snapshot, "PLAIN_FILES", 1)
    run(fresh_place, "")
    line = section(fresh_place)[0]
    assert "holds what is changed or added; `jumar files t 1 -o DIR` writes the whole" in line.replace("\\", "")


def test_where_the_start_is_best_it_is_empty(fresh_place: Path):
    assert "changed" == run(fresh_place, "", start="1.0")["output_holds"]
    assert {} == held(fresh_place)
    assert (fresh_place / ".jumar/loops/t/final-output").is_dir()
    line = section(fresh_place)[0]
    assert line.startswith("Against the start: nothing differs, 4 files as before. final-output/ holds nothing; the whole is in ")


def test_it_follows_an_override_and_back(fresh_place: Path):
    run(fresh_place, "")
    call("select", "t", "--use", "2", "--reason", "x", check=0)
    assert {**CHANGED, "score.txt": "0.3"} == held(fresh_place)
    call("select", "t", "--use", "0", "--reason", "x", check=0)
    assert ({}, []) == (held(fresh_place), best_view(fresh_place)["deleted"])
    call("select", "t", "--use", "best", "--reason", "x", check=0)
    assert CHANGED == held(fresh_place)


def test_a_loop_from_before_there_was_a_choice_holds_the_whole(fresh_place: Path):
    run(fresh_place, "")
    path = fresh_place / ".jumar/loops/t/loop.json"
    recorded = json.loads(path.read_text())
    del recorded["config"]["final_output"], recorded["seal"], recorded["mark"]
    path.chmod(0o644)
    path.write_text(json.dumps(recorded))
    assert refresh_views(LoopStore.open(path.parent), at="2026-01-01T00:00:00.000Z", force=True)
    assert WHOLE == held(fresh_place)


def test_of_many_changes_the_report_names_the_first(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(diff, "MOST_LISTED", 2)
    run(fresh_place, "")
    assert ["- changed: score.txt", "- changed: tool.sh"] == section(fresh_place)[1:3]
    assert "- … and 2 more; `jumar diff` and the JSON report name all of them" == section(fresh_place)[3]
