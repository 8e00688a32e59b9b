"""The examples run as they stand, and show what they claim to."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from loops import jumar_json

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_every_example_is_listed_and_tested() -> None:
    directories = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    listed = (EXAMPLES / "README.md").read_text()

    assert {"case-chain", "headline", "local-llm", "own-loop"} == directories  # test_case_chain_example.py, test_local_llm.py
    assert all(f"`{name}/`" in listed for name in directories)


def test_headline(tmp_path: Path) -> None:
    place = shutil.copytree(EXAMPLES / "headline", tmp_path / "headline")

    result = jumar_json(place, "run")

    assert 0 < result["selected_iteration"] < result["final_iteration"]
    assert result["degradation_detected"] is True
    assert result["meets_threshold"] is True
    assert "Elmswick" in (place / "headline.txt").read_text()


def test_own_loop(tmp_path: Path) -> None:
    place = shutil.copytree(EXAMPLES / "own-loop", tmp_path / "own-loop")

    done = subprocess.run([sys.executable, "loop.py"], cwd=place, capture_output=True, text=True, check=True)

    view = json.loads((place / ".jumar/loops/smooth/best-output-tracking.json").read_text())
    assert f"chosen: iteration {view['best_iteration_number']}" in done.stdout
    assert view["best_iteration_number"] < len(view["iterations"])
