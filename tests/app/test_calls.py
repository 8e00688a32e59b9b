"""What `import jumar` offers beside the tracker: the commands as functions."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest

import jumar
from jumar.processes.control import StopSwitch

GROWS = [sys.executable, "-c", "open('text', 'a').write('x')"]
SCORE = f"{sys.executable} -c \"print(len(open('text').read()) / 10)\""


def test_run_makes_a_loop_and_resumes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "text").write_text("x")
    monkeypatch.chdir(tmp_path)
    heard: list[str] = []
    options = {"command": GROWS, "scores": [f"length={SCORE}"], "loop_id": "grown", "environment": ["X_*"]}
    first = jumar.run(**options, max_iterations=1, listener=lambda event: heard.append(type(event).__name__))
    assert (first.loop_id, first.stop.reason, first.exit_code) == ("grown", "max_iterations", 0)
    assert first.selection is not None
    assert (first.selection.selected_iteration, first.selection.quality_score) == (1, 20.0)
    assert heard
    second = jumar.run(**options, max_iterations=3, root=tmp_path / ".jumar")
    assert (second.resumed, second.start is not None and second.start.quality_score) == (True, 10.0)
    assert second.selection is not None
    assert second.selection.selected_iteration == 3
    assert (tmp_path / "text").read_text() == "xxxx"


def test_run_reads_a_configuration_and_lays_the_keywords_over_it(tmp_path: Path):
    (tmp_path / "text").write_text("x")
    scorer = f"[[scorers]]\ndimension = 'length'\ncommand = {json.dumps(SCORE)}\n"
    (tmp_path / "jumar.toml").write_text(f"[loop]\nid = 't'\n[generator]\ncommand = {json.dumps(GROWS)}\n{scorer}")
    outcome = jumar.run(tmp_path, max_iterations=2, isolation="copy", threshold=90.0)
    assert (outcome.directory, outcome.gate_met, outcome.exit_code) == (tmp_path / ".jumar/loops/t", False, 10)
    assert (tmp_path / "text").read_text() == "x"


def test_run_is_stopped_from_another_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "text").write_text("x")
    monkeypatch.chdir(tmp_path)
    switch = StopSwitch()
    timer = threading.Timer(0.2, switch.now)
    timer.start()
    outcome = jumar.run(command=[sys.executable, "-c", "import time; time.sleep(60)"], scores=[SCORE], switch=switch)
    timer.join()
    assert outcome.stop.reason == "interrupted"


def test_what_cannot_be_run_is_an_error_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    before = list(tmp_path.iterdir())
    with pytest.raises(jumar.ConfigError, match="no agent is named"):
        jumar.run()
    with pytest.raises(TypeError, match="no keyword 'iterations'"):
        jumar.run(command=GROWS, iterations=3)  # type: ignore[call-arg]
    with pytest.raises(jumar.ConfigError, match="--mode dual needs a judge"):
        jumar.evaluate("items.jsonl", mode="dual")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="no keyword 'repeat'"):
        jumar.evaluate("items.jsonl", mode="cheap", repeat=3)  # type: ignore[call-overload]
    assert list(tmp_path.iterdir()) == before


def test_evaluate_scores_every_item(tmp_path: Path):
    items = tmp_path / "items.jsonl"
    items.write_text(
        "".join(json.dumps({"id": f"{n}", "words": f"An answer of some length, number {n}."}) + "\n" for n in range(3))
    )
    cheap = jumar.evaluate(items, mode="cheap", fields={"text": "words"}, per_item=tmp_path / "rows.jsonl")
    assert (cheap.tally.scored, cheap.document()["mode"]) == (3, "cheap")
    judged = tmp_path / "judged.jsonl"
    rows = [{"id": f"{n}", "judge_scores": [4.0]} for n in range(3)]
    judged.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expensive = jumar.evaluate(items, f"replay:{judged}", mode="expensive", fields={"text": "words"})
    assert (expensive.scored, expensive.document()["expensive"]["gestalt_avg"]) == (3, 4.0)


def test_run_cases_returns_the_best_of_each_case(tmp_path: Path):
    (tmp_path / "one.txt").write_text("a report\n---PROMPT---\na prompt\n")
    (tmp_path / "cases.toml").write_text("[[cases]]\nfile = 'one.txt'\n[case_file]\nmarker = '---PROMPT---'\n")
    result = jumar.run_cases(tmp_path, dry_run=True, start_from_scratch=True, max_iters=2, run_id="r")
    assert (result.run_id, result.exit_code, result.stopped) == ("r", 0, None)
    assert result.run_dir == tmp_path / ".jumar/runs/run_r"
    assert [case["best_iter"] for case in result.cases] == [1]
    assert result.document()["cases"][0]["case"] == 1
