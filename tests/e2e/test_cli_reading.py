"""The commands that only look: list, show, report, diff, select without --use."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from commands import CONTROL, call, call_json, record
from finished import SCORES, finished_loop
from loops import write_loop
from store_kit import unmarked

from jumar.core.lock import LoopLock
from jumar.errors import JumarError, LockedError, StoreDamagedError, StoreWriteError
from jumar.loop.store.loop_store import LoopStore


@pytest.fixture
def here(fresh_place: Path) -> Path:
    return finished_loop(fresh_place)


def contents(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Everything below a directory, with the time of its last change."""
    return {
        str(path.relative_to(directory)): (path.read_bytes() if path.is_file() else b"", path.lstat().st_mtime_ns)
        for path in sorted(directory.rglob("*"))
    }


# ---------------------------------------------------------------------------------------------------------------- list


def test_list_of_nothing_says_how_to_begin():
    called = call("list", check=0)
    assert "no loops in .jumar yet" in called.out
    assert "jumar demo" in called.out
    assert [] == call_json("list")["loops"]
    assert "" == call("list", "--quiet", check=0).out


def test_list_tells_finished_interrupted_tracked_and_damaged_apart(here: Path):
    record([0.5, 0.8], loop="tracker")
    for name in ("cut", "broken", "headless", "odd"):
        shutil.copytree(here / ".jumar/loops/t", here / ".jumar/loops" / name)
    for end in (here / ".jumar/loops/cut/decisions").glob("*-end.json"):
        end.unlink()
    (here / ".jumar/loops/broken/loop.json").write_text("{")
    (here / ".jumar/loops/headless/loop.json").unlink()
    (here / ".jumar/loops/odd/iterations/iteration-002/metrics.json").write_text("[]")
    (here / ".jumar/loops/empty").mkdir()
    (here / ".jumar/loops/.tmp-x").mkdir()
    called = datetime.now(UTC)
    found = {Path(loop["directory"]).name: loop for loop in call_json("list")["loops"]}
    states = {name: loop["state"] for name, loop in found.items()}
    expected = {
        "broken": "damaged",
        "cut": "interrupted",
        "headless": "damaged",
        "odd": "damaged",
        "t": "finished",
        "tracker": "tracked",
    }
    assert expected == states
    assert "max_iterations" == found["t"]["stop_reason"]
    assert (4, 2, 90.0, 2) == tuple(found["t"][key] for key in ("iterations", "best_iteration", "best_score", "chosen"))
    written = (called - datetime.fromisoformat(found["t"]["updated_at"])).total_seconds()
    assert 0 < written - 0.001 <= found["t"]["age_seconds"] <= (datetime.now(UTC) - called).total_seconds() + written + 0.001
    assert "loop.json" in found["headless"]["problem"]
    assert "iteration-002" in found["odd"]["problem"]
    shown = call("list", check=0).out
    assert re.search(r"^  t +4 +90 \(it 2\) +2  finished: max iterations +(<1m|\d+[mh])$", shown, re.MULTILINE)
    assert 3 == shown.count("\ndamaged: ")
    assert sorted(expected) == sorted(call("list", "-q").out.split())


def test_list_shows_who_is_writing_and_takes_no_lock(here: Path):
    lock = LoopLock(LoopStore.open(here / ".jumar/loops/t").paths.lock)
    lock.acquire()
    before = lock.path.read_bytes()
    try:
        (loop,) = call_json("list")["loops"]
        assert ("running", os.getpid()) == (loop["state"], loop["running"]["pid"])
        assert f"running (process {os.getpid()})" in call("list").out
        assert before == lock.path.read_bytes()
    finally:
        lock.release()
    assert "finished" == call_json("list")["loops"][0]["state"]


def test_list_shows_a_directory_with_a_dangerous_name_harmlessly(here: Path):
    (here / ".jumar/loops/\x1b[31mred\nnew" / "iterations").mkdir(parents=True)
    called = call("list", check=0)
    assert CONTROL.isdisjoint(called.out)
    assert "\\x1b[31mred\\nnew" in called.out


# ---------------------------------------------------------------------------------------------------------------- show


def test_show_json_holds_every_record_in_the_seeds_names(here: Path):
    document = call_json("show", "t")
    assert "t" == document["loop_id"]
    assert [0, 1, 2, 3, 4] == [each["iteration_number"] for each in document["iterations"]]
    assert [50, *(100 * score for score in SCORES)] == pytest.approx([each["quality_score"] for each in document["iterations"]])
    assert {
        *("iteration_number", "timestamp", "quality_score", "quality_delta", "dimensions", "tokens_used", "token_cost_usd"),
        *("execution_time_ms", "verification_status", "snapshot_path", "artifacts", "reflections"),
    } <= set(document["iterations"][2])
    for artifact in document["iterations"][2]["artifacts"]:
        assert Path(artifact).is_file()
    assert ("finished", 2, 4) == (document["state"], document["chosen"], document["spend"]["iterations"])
    assert {"reason": "max_iterations", "detail": document["stop"]["detail"]} == document["stop"]
    assert 2 == document["selection"]["selected_iteration"]


def test_show_draws_the_table_of_the_design(here: Path):
    lines = call("show", "t", check=0).out.splitlines()
    assert "jumar · t · agent.py · 4 iterations" == lines[0]
    assert ["it", "score", "Δ", "checks", "cost", "time"] == lines[1].split()
    assert re.fullmatch(r"   0 +50\.0 +1/1 ✓ +— +\S+   start", lines[2])
    assert re.fullmatch(r"   2 +90\.0 +\+30\.0 +1/1 ✓ +— +\S+   ★ best", lines[4])
    assert re.fullmatch(r"   3 +70\.0 +−20\.0 +0/1 +— +\S+   broke text", lines[5])
    closing = "\n".join(lines[7:])
    assert "Result   score 50 → 90 at iteration 2 (all checks pass), not applied · cost not reported · " in closing
    assert "Iteration 4 is next, 25 points lower." in closing
    assert "Ended: 4 of 4 iterations done." in closing
    assert "jumar apply          put iteration 2 into this directory" in closing
    assert [*lines[1:7]] == call("show", "t", "--quiet").out.splitlines()


def test_show_one_iteration_in_full(here: Path):
    assert [3] == [each["iteration_number"] for each in call_json("show", "t", "--iteration", "3")["iterations"]]
    shown = call("show", "t", "--iteration", "3", check=0).out
    for part in ("iteration 3 of t", "70 (−20) · failed", "from      iteration 2", "check     text: FAILED", "new-3.md", "logs"):
        assert part in shown
    assert "start" not in call("show", "t", "--iteration", "0", check=0).out.splitlines()[0]


@pytest.mark.parametrize("error", [StoreWriteError("read-only"), LockedError("taken"), StoreDamagedError("a view")])
def test_show_does_not_depend_on_its_views(here: Path, monkeypatch: pytest.MonkeyPatch, error: JumarError):
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("jumar.loop.report.views.refresh_views", refuse)
    assert 2 == call_json("show", "t")["chosen"]
    assert 0 == call("report", "t").code


def test_show_works_while_a_run_writes(here: Path):
    lock = LoopLock(LoopStore.open(here / ".jumar/loops/t").paths.lock)
    lock.acquire()
    try:
        assert "Running: process" in call("show", "t", check=0).out
        assert "running" == call_json("show", "t")["state"]
    finally:
        lock.release()


def test_show_of_an_empty_loop():
    record([])
    shown = call("show", "t", check=0).out
    assert "no iteration is recorded yet" in shown
    assert [] == call_json("show", "t")["iterations"]


def test_show_brings_the_views_up_to_date(here: Path):
    report = here / ".jumar/loops/t/selection-report.md"
    report.unlink()
    call("show", "t", check=0)
    assert "# Output Selection Report" in report.read_text()


def test_a_loop_is_found_by_its_directory_too(here: Path):
    assert call_json("show", "t")["chosen"] == call_json("show", here / ".jumar/loops/t")["chosen"]
    assert 2 == call("show", here / ".jumar/loops/none").code


# -------------------------------------------------------------------------------------------------------------- report


def test_report_in_every_format(here: Path):
    markdown = call("report", "t", check=0).out
    assert markdown.startswith("# Output Selection Report\n")
    assert markdown == call("report", "t", "--format", "md").out
    document = call_json("report", "t")
    assert document == json.loads(call("report", "t", "--format", "json").out)
    assert 2 == document["selected_iteration"]
    table = list(csv.reader(io.StringIO(call("report", "t", "--format", "csv").out)))
    assert ["iteration", "timestamp", "quality_score"] == table[0][:3]
    assert ["0", "1", "2", "3", "4"] == [row[0] for row in table[1:]]
    page = call("report", "t", "--format", "html").out
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    suite = ET.fromstring(call("report", "t", "--format", "junit").out).find("testsuite")
    assert suite is not None
    assert 5 <= len(suite.findall("testcase"))


def test_report_into_a_file_takes_its_format_from_the_name(here: Path):
    for name, start in (
        ("r.md", "# Output"),
        ("r.json", "{"),
        ("r.csv", "iteration,"),
        ("r.HTML", "<!"),
        ("r.xml", "<?xml"),
        ("r", "#"),
    ):
        called = call("report", "t", "-o", name, check=0)
        assert (here / name).read_text().lstrip()[: len(start)].lower() == start.lower()
        assert f"wrote {name} (" in called.out
    assert "" == call("report", "t", "-o", "q.md", "--quiet", check=0).out
    written = call_json("report", "t", "-o", "x.csv")
    expected = {"loop_id": "t", "format": "csv", "output": str(here / "x.csv"), "bytes": (here / "x.csv").stat().st_size}
    assert expected == written


def test_report_refuses_two_documents_on_one_stdout(here: Path):
    assert "UsageError" == call_json("report", "t", "--format", "csv", check=2)["error"]["kind"]


def test_report_that_cannot_be_written_says_why(here: Path):
    called = call("report", "t", "-o", "missing/r.md", check=2)
    assert "missing/r.md" in called.err
    assert "the folder missing does not exist" in called.err
    assert "--format" in call("report", "t", "-o", "r.pdf", check=2).err
    assert "Traceback" not in called.err


# ---------------------------------------------------------------------------------------------------------------- diff


def test_diff_of_two_iterations(here: Path):
    shown = call("diff", "t", "1", "2", check=0).out
    for line in ("--- 1/text.md", "+++ 2/text.md", "-pass 1", "+pass 2", "--- /dev/null", "+++ 2/new-2.md", "A new-2.md"):
        assert line in shown.splitlines()
    backwards = call("diff", "t", "2", "1", check=0).out.splitlines()
    assert "D new-2.md" in backwards
    assert "no difference" in call("diff", "t", "2", "2", check=0).out


def test_diff_best_goes_from_the_start_to_what_stands(here: Path):
    document = call_json("diff", "t", "--best")
    assert (0, 2, 40.0) == (document["a"], document["b"], document["quality_delta"])
    call("select", "t", "--use", "4", "--reason", "newest", check=0)
    assert 4 == call_json("diff", "t", "--best")["b"]


def test_diff_stat_counts_lines(here: Path):
    document = call_json("diff", "t", "0", "2", "--stat")
    counted = {each["path"]: (each["added_lines"], each["removed_lines"]) for each in document["stat"]}
    assert {"new-1.md": (1, 0), "new-2.md": (1, 0), "score.txt": (1, 1), "text.md": (1, 1)} == counted
    assert all("text" not in change for change in document["added"])
    shown = call("diff", "t", "0", "2", "--stat", check=0).out
    assert re.search(r"^  M  text\.md +\+1 +-1$", shown, re.MULTILINE)
    assert "4 files changed, 0 unchanged; 4 lines added, 2 removed" in shown


def test_diff_wants_two_iterations_or_best(here: Path):
    for arguments in (("1",), ("1", "2", "--best"), ("1", "--best")):
        assert 2 == call("diff", "t", *arguments).code


def test_diff_best_without_any_score_is_12():
    record([])
    assert 12 == call("diff", "t", "--best").code


# -------------------------------------------------------------------------------------------------------------- select


def test_select_computes_by_other_rules_and_changes_nothing_at_all(here: Path):
    before = contents(here)
    assert 2 == call_json("select", "t")["selected_iteration"]
    recent = call_json("select", "t", "--mode", "most_recent_above_threshold", "--threshold", "60")
    assert (4, True, None) == (recent["selected_iteration"], recent["meets_threshold"], recent["fallback"])
    strict = call_json("select", "t", "--threshold", "95")
    assert (2, False, "threshold") == (strict["selected_iteration"], strict["meets_threshold"], strict["fallback"])
    assert "relaxed   threshold" in call("select", "t", "--threshold", "95", check=0).out
    assert "2\n" == call("select", "t", "--quiet", check=0).out
    assert before == contents(here)


def test_select_json_has_the_seeds_fields_and_more(here: Path):
    document = call_json("select", "t")
    expected = {
        "loop_id": "t",
        "selected_iteration": 2,
        "quality_score": 90.0,
        "reason": "Highest verified quality: 90%",
        "final_iteration": 4,
        "final_quality": 65.0,
        "degradation_detected": True,
        "meets_threshold": None,
        "fallback": None,
        "runner_up": 4,
        "margin": 25.0,
        "below_start": False,
        "kept": None,
        "criteria": {"mode": "highest_quality_verified", "threshold": None, "require_verification": True},
        "standing": 2,
        "decision": None,
    }
    assert expected == document


def test_select_says_when_something_else_stands(here: Path):
    call("select", "t", "--use", "1", "--reason", "small", check=0)
    shown = call("select", "t", check=0).out
    assert "selected  iteration 1, by a person" in shown
    assert 'jumar select --use 2 --reason "…" selects 2 instead' in shown


def test_commands_to_copy_name_the_root_that_was_named(here: Path):
    called = call("show", "t", "--root", ".jumar/../.jumar", check=0)
    assert "jumar apply --root .jumar/../.jumar " in called.out


FOREIGN = {
    "loop_id": "loop-001",
    "config": {"selection": {"mode": "highest_quality_verified", "threshold": 70, "require_verification": True}},
    "iterations": [
        {
            "iteration_number": number,
            "timestamp": "2026-01-28T10:00:00Z",
            "quality_score": score,
            "quality_delta": None,
            "dimensions": {},
            "tokens_used": 5000,
            "token_cost_usd": 0.05,
            "execution_time_ms": 30000,
            "verification_status": "passed",
            "snapshot_path": f"x/iterations/iteration-00{number}",
            "artifacts": [],
            "reflections": [],
        }
        for number, score in ((1, 72), (2, 85), (3, 83))
    ],
    "best_iteration_number": 2,
    "last_updated": "2026-01-28T10:15:00Z",
}


def test_the_original_tools_directory_is_listed_untouched_and_imported_when_named(fresh_place: Path):
    directory = fresh_place / ".jumar/loops/loop-001"
    directory.mkdir(parents=True)
    (directory / "best-output-tracking.json").write_text(json.dumps(FOREIGN))
    before = contents(fresh_place)
    assert [("loop-001", "foreign")] == [(loop["loop_id"], loop["state"]) for loop in call_json("list")["loops"]]
    assert "not imported yet" in call("list", check=0).out
    assert [] == call_json("verify")["loops"]
    assert before == contents(fresh_place)
    document = call_json("show", "loop-001")
    assert [72, 85, 83] == [each["quality_score"] for each in document["iterations"]]
    assert (2, "tracked") == (document["chosen"], document["state"])
    assert 2 == call_json("select", "loop-001")["selected_iteration"]
    assert "names no working directory" in call("apply", "loop-001", check=2).err


def test_show_of_a_loop_where_everything_went_wrong(fresh_place: Path):
    generator = 'usage = {cost = "cost", tokens = "tokens", model = "model"}'
    config = write_loop(fresh_place, [0.3, "fail", 0.45], check="grep -q pass text.md", generator=generator)
    agent = fresh_place / "agent.py"
    agent.write_text(agent.read_text() + 'print(\'{"cost": 1.25, "tokens": 1500, "model": "m-1"}\')\n')
    config.write_text(config.read_text() + "\n[selection]\nthreshold = 80\n")
    os.mkfifo(fresh_place / "pipe")
    config.write_text(config.read_text().replace('"text.md"]', '"text.md", "pipe"]'))
    assert 10 == call("run", "--quiet").code
    shown = call("show", "t", check=0).out
    assert re.search(r"^   2 +— .*generator failed", shown, re.MULTILINE)
    assert "Every iteration scored lower than the start. The start does not reach the required score of 80." in " ".join(
        shown.split()
    )
    assert "$3.75 ($1.25 estimated, 1 not reported)" in shown, "the failed iteration did not report its cost"
    failed = call("show", "t", "--iteration", "2", check=0).out
    assert "no score" in failed
    assert "status    generator failed: exit code 3" in failed
    third = call("show", "t", "--iteration", "3", check=0).out
    for part in ("model     m-1", "cost      $1.2500", "tokens    1,500", "pipe: not stored"):
        assert part in third, part
    call("select", "t", "--use", "1", "--reason", "because", check=0)
    assert "by " in call("show", "t", check=0).out
    assert "because" in call("show", "t", check=0).out


def test_show_of_an_interrupted_loop_says_how_to_go_on(here: Path):
    for end in (here / ".jumar/loops/t/decisions").iterdir():
        end.unlink()
    shown = call("show", "t", check=0).out
    assert "Ended: interrupted." in shown
    assert "jumar run " in shown.partition("Next")[2].splitlines()[0]
    assert "interrupted" == call_json("show", "t")["state"]


def test_show_says_that_the_verified_one_is_below_the_start(fresh_place: Path):
    write_loop(fresh_place, [0.4], start=0.9, check="! grep -q 'pass 0' text.md")
    call("run", "--quiet")
    assert "It scores below the start, which does not pass the checks." in call("show", "t", check=0).out
    assert "less than the start state" in call("select", "t", check=0).out
    assert call_json("select", "t")["below_start"]


def test_many_changed_files_are_counted_not_listed(here: Path):
    metrics = here / ".jumar/loops/t/iterations/iteration-001/metrics.json"
    record_ = json.loads(metrics.read_text())
    record_["analysis"]["artifacts_modified"] = [f"f{number}" for number in range(25)]
    metrics.chmod(0o644)
    metrics.write_text(json.dumps(record_))
    unmarked(here / ".jumar/loops/t")
    assert "… and 5 more" in call("show", "t", "--iteration", "1", check=0).out
