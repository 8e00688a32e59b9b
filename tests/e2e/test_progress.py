"""Progress is measured without a scorer: a check that runs tests scores the share that passes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import calc
from loops import jumar, jumar_json

AGENT = (sys.executable, str(Path(calc.__file__)))
ENVIRONMENT = {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def test_the_iteration_with_the_fewest_failing_tests_is_kept(tmp_path: Path) -> None:
    calc.write_project(tmp_path)

    result = jumar_json(tmp_path, "run", "-n", "5", "--check", "pytest -q", "--", *AGENT, check=10, env=ENVIRONMENT)
    logs = Path(result["directory"]) / "iterations" / "iteration-005" / "logs"
    records = jumar_json(tmp_path, "show", result["loop_id"])["iterations"]

    assert [25.0, 75.0, 83.3, 91.7, 66.7, 66.7] == [round(record["quality_score"], 1) for record in records]
    assert (3, False) == (result["selected_iteration"], result["verified"])
    assert (tmp_path / "calc.py").read_text().count("return None") == 1
    tests = [record["checks"][0]["tests"] for record in records]
    assert [(3, 9), (9, 3), (10, 2), (11, 1), (8, 4), (8, 4)] == [(test["passed"], test["failed"]) for test in tests]
    assert {(12, 12, 0)} == {(test["total"], test["known"], test["missing"]) for test in tests}
    assert "validation: 11 of 12 tests pass" in records[3]["reasons"]
    rows = {
        line.split()[0]: line for line in jumar(tmp_path, "show", result["loop_id"], check=0).stdout.splitlines() if "/12" in line
    }
    assert rows["1"].endswith("fixed test_add, test_avg, test_neg +3 more")
    assert rows["3"].split()[3:4] == ["11/12"]
    assert "fixed test_div" in rows["3"]
    assert "broke test_add, test_neg, test_sub" in rows["4"]
    assert (
        "tests     broke test_add, test_neg, test_sub since iteration 3"
        in jumar(tmp_path, "show", "--iteration", "4", check=0).stdout
    )
    prompt, feedback = (logs / "prompt.md").read_text(), json.loads((logs / "feedback.json").read_text())
    assert "Iteration 4 broke `test_add, test_neg, test_sub`." in prompt
    broke = [f"test_calc::test_{name}" for name in ("add", "neg", "sub")]
    nothing = {"count": 0, "names": []}
    expected = {"iteration": 4, "fixed": nothing, "broke": {"count": 3, "names": broke}, "missing": nothing, "flaky": nothing}
    assert [expected] == feedback["progress"][-1:]
    assert {"name": "pytest -q", "passed": False} == {name: result["checks"][0][name] for name in ("name", "passed")}
    assert (11, 12) == (result["checks"][0]["tests"]["passed"], result["checks"][0]["tests"]["total"])


def test_another_result_of_the_same_files_is_chance_and_no_repair(tmp_path: Path) -> None:
    (tmp_path / "test_luck.py").write_text(
        "import os, pathlib\n"
        "def test_flaky():\n"
        "    runs = pathlib.Path(os.environ['HOME'], 'runs')\n"
        "    runs.write_text((runs.read_text() if runs.exists() else '') + 'x')\n"
        "    assert len(runs.read_text()) > 1\n"
        "def test_fine():\n    pass\n"
    )
    home = tmp_path.with_name("home")
    home.mkdir()

    shown = jumar(
        tmp_path, "run", "-n", "1", "--check", "pytest -q", "--", "true", check=0, env=ENVIRONMENT | {"HOME": str(home)}
    ).stdout

    assert "flaky test_flaky" in shown
    assert "fixed" not in shown
    assert "Its files are those of the start, so what differs is chance: test_flaky." in " ".join(shown.split())


def test_with_a_score_checks_only_decide_what_is_verified(tmp_path: Path) -> None:
    calc.write_project(tmp_path)
    scored = "worth=grep -c None calc.py | awk '{print $1 / 10}'"

    result = jumar_json(
        tmp_path, "run", "-n", "1", "--check", "pytest -q", "--score", scored, "--", *AGENT, check=10, env=ENVIRONMENT
    )
    records = jumar_json(tmp_path, "show", result["loop_id"])["iterations"]

    assert [{"worth": 0.9}, {"worth": 0.3}] == [record["dimensions"] for record in records]
    assert ["failed", "failed"] == [record["verification_status"] for record in records]
    assert [3, 9] == [record["checks"][0]["tests"]["passed"] for record in records]
