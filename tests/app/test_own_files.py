"""The configuration in use and the file that output goes to are never artifacts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from loops import write_loop

from jumar.app.run.preflight import own_files


def test_the_configuration_is_named_when_it_lies_below_the_work_directory(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()

    assert ("/a\\ b/jumar.toml",) == own_files(tmp_path, tmp_path / "a b" / "jumar.toml")
    assert () == own_files(tmp_path / "a b", tmp_path / "jumar.toml")


def test_redirected_output_survives_the_loop_and_a_later_apply(tmp_path: Path) -> None:
    config = write_loop(tmp_path, [0.9, 0.4])
    config.write_text(config.read_text().replace('include = ["score.txt", "text.md"]', ""))
    jumar = [sys.executable, "-m", "jumar.cli.entry"]
    with (tmp_path / "run.log").open("w") as log:
        subprocess.run([*jumar, "run"], cwd=tmp_path, stdout=log, stderr=log, check=True)
    subprocess.run([*jumar, "apply", "t"], cwd=tmp_path, capture_output=True, check=True)

    shown = (tmp_path / "run.log").read_text()
    assert "at iteration 1 (all checks pass), applied here" in shown
    assert "pass 1\n" == (tmp_path / "text.md").read_text()
    assert config.exists()
