"""The examples run as they stand, and show what they claim to."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from loops import jumar, jumar_json

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_every_example_is_listed_and_tested() -> None:
    directories = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    listed = (EXAMPLES / "README.md").read_text()

    assert {
        "case-chain",
        "headline",
        "learn",
        "local-llm",
        "overnight",
        "own-loop",
    } == directories  # test_case_chain_example.py, test_local_llm.py
    assert all(f"`{name}/`" in listed for name in directories)


def test_headline(tmp_path: Path) -> None:
    place = shutil.copytree(EXAMPLES / "headline", tmp_path / "headline")

    result = jumar_json(place, "run")

    assert 0 < result["selected_iteration"] < result["final_iteration"]
    assert result["degradation_detected"] is True
    assert result["meets_threshold"] is True
    assert "Elmswick" in (place / "headline.txt").read_text()


def test_overnight(tmp_path: Path) -> None:
    place = shutil.copytree(EXAMPLES / "overnight", tmp_path / "overnight")

    night = json.loads(jumar(place, "run", "--no-input", "--json", check=0, timeout=200).stdout)
    report = jumar(place, "report", "overnight").stdout
    frame = jumar(place, "watch", "--once").stdout
    status = jumar(place, "status", "overnight").stdout

    spend, passes = night["spend"], night["final_iteration"]
    charged = spend["known_cost_usd"] + spend["assumed_cost_usd"]
    print(f"{passes} passes, {spend['iterations']} runs, ${charged:.4f}, {night['failures']}")
    assert "max_cost" == night["stop_reason"]
    assert {"generator_failed": 1, "rate_limited": 2, "changed_nothing": 1} == night["failures"]
    assert passes + 3 == spend["iterations"], "a crash and two refusals are attempts, and no passes"
    assert (1, 0.10) == (spend["unknown_costs"], spend["assumed_cost_usd"])
    assert 1.55 >= charged
    assert night["meets_threshold"] is True
    assert night["optimism"] > 0, "questions that were learnt by heart"
    assert "print('fine')" not in (place / "shop/checks/short.py").read_text()
    took = report.partition("## What the Run Took")[2].partition("## ")[0]
    assert f"| In all | {spend['calls']} |" in took
    assert f"${charged:.4f} of $1.55 ($0.10 estimated, 1 not reported) |" in took
    assert "- Went wrong: 1 generator failed, 2 rate limited, 1 changed nothing" in took
    assert "- Asked to wait by the provider: " in took
    assert "- To resume: raise [budget] max_cost_usd (jumar run --max-cost); an iteration took $0." in report
    assert f"(iteration {night['selected_iteration']}" in next(line for line in frame.splitlines() if line.startswith("selected"))
    assert "($0.10 estimated, 1 not reported)" in frame
    assert "1 generator failed, 2 rate limited, 1 changed nothing" in status


def test_learn(tmp_path: Path) -> None:
    place = shutil.copytree(EXAMPLES / "learn", tmp_path / "learn")
    subprocess.run([sys.executable, "answers.py"], cwd=place, capture_output=True, check=True)

    judged = ["answers.jsonl", "--judge", "replay:scores.jsonl", "-o", "outputs"]
    learned = jumar(place, "learn", *judged, "--max-iterations", "1", "--json", check=0, timeout=200)
    found = json.loads(learned.stdout)
    jumar(place, "learn", "report", "outputs", "-o", "report.html", check=0)
    cheap = jumar_json(place, "evaluate", "new.jsonl", "--mode", "cheap", "--patterns", "outputs/patterns.json")

    held = found["heldout"]
    print(
        f"{found['verdict']}: off by {held['mae']:.2f}, a constant by {held['constant_mae']:.2f}, Spearman {held['spearman']:.2f}"
    )
    assert "tracks" == found["verdict"]
    assert 80 == cheap["scored"]
    page = (place / "report.html").read_text(encoding="utf-8")
    assert "It tracks the judge." in page
    assert "the fit gave them points" in page
    assert "108 of 108" in learned.stderr, "how far the judge is stands beside the JSON"


def test_own_loop(tmp_path: Path) -> None:
    place = shutil.copytree(EXAMPLES / "own-loop", tmp_path / "own-loop")

    done = subprocess.run([sys.executable, "loop.py"], cwd=place, capture_output=True, text=True, check=True)

    view = json.loads((place / ".jumar/loops/smooth/best-output-tracking.json").read_text())
    assert f"selected: iteration {view['best_iteration_number']}" in done.stdout
    assert view["best_iteration_number"] < len(view["iterations"])
