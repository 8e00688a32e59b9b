"""The example of a case chain: real programs, the figures of its README, and recordings replayed by a step."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from loops import jumar

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "case-chain"
DATA = Path(os.environ.get("JUMAR_DATA") or ROOT.parent / "shared" / "data") / "closed_loop"

SHOP, RECORDED = "cases of the shop", "recorded cases"
MODES = {"best": (), "last": ("--no-select-best",), "nothing": ("--no-carry-forward",)}


@pytest.fixture
def closed_loop() -> Path:
    """Three recorded cases of another tool. They are not part of the repository."""
    if not DATA.is_dir():
        pytest.skip("recorded cases: set JUMAR_DATA to the folder that has closed_loop/ in it")
    return DATA


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example's directory. Its ``python3`` is this one: that of a version manager takes ten times as long."""
    interpreter = tmp_path / "bin" / "python3"
    interpreter.parent.mkdir()
    interpreter.symlink_to(Path(sys.executable).resolve())
    monkeypatch.setenv("PATH", f"{interpreter.parent}{os.pathsep}{os.environ['PATH']}")
    return shutil.copytree(EXAMPLE, tmp_path / "case-chain", ignore=shutil.ignore_patterns("__pycache__", ".jumar"))


def readme_row(table: str, carried: str) -> list[float]:
    """Return a row of the README's table: the overall score of each case, and their mean."""
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^\| {table} \|(?:.*\n)+?\| {carried} carried.*?\|(.*)\|$", text, re.MULTILINE)
    assert found, f"no row '{carried} carried' below '{table}'"
    return [float(cell) for cell in found[1].split("|")]


def limits_table(name: str) -> dict[str, list[float]]:
    """Return the README's means by the number of facts an iteration."""
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    rows = {mode: re.search(rf"^\| {name}, {mode} carried \|(.*)\|$", text, re.MULTILINE) for mode in MODES}
    return {mode: [float(cell) for cell in row[1].split("|")] for mode, row in rows.items() if row}


def orders_row(name: str) -> list[float]:
    """Return the README's counts and differences over all orders of the cases."""
    row = re.search(rf"^\| {name} \|(.*)\|$", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert row, name
    return [float(cell.replace("−", "-")) for cell in row[1].split("|")]


def measure(example: Path, what: str, files: Sequence[Path]) -> Any:
    done = subprocess.run(
        [sys.executable, "steps/measure.py", what, *map(str, files)], cwd=example, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def put_cases(example: Path, config: str, files: Sequence[Path]) -> None:
    """Let a configuration run over these case files, and change nothing else in it."""
    path = example / config
    text = re.sub(r"\[\[cases\]\]\n(?:.+\n)+\n*", "", path.read_text(encoding="utf-8"))
    tables = (f"[[cases]]\nnumber = {number}\nfile = {json.dumps(str(file))}\n\n" for number, file in enumerate(files, 1))
    path.write_text(text.replace("[[steps]]", "".join(tables) + "[[steps]]", 1), encoding="utf-8")


def run(
    example: Path, *arguments: str, config: str = "cases.toml", env: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], Path]:
    """Run a chain; return what it printed, and the run's directory."""
    done = jumar(example, "cases", "run", config, "--json", *arguments, env=env, timeout=280, check=0)
    result: dict[str, Any] = json.loads(done.stdout)
    return result, example / result["run_dir"]


def scores(run_dir: Path, case: int) -> list[tuple[float, float, float]]:
    """Return accuracy, overall and chain of each iteration of a case."""
    records = sorted(run_dir.glob(f"case_{case:02d}/iterations/*/iteration.json"))
    rankings = [json.loads(path.read_text(encoding="utf-8"))["ranking"] for path in records]
    return [(each["accuracy"], each["overall"], each["causal_chain_completeness"]) for each in rankings]


def measured(example: Path, mode: str) -> tuple[list[float], dict[str, Any], Path]:
    """Run the chain and return the overall score of each case's best iteration and their mean, as the README has them."""
    result, run_dir = run(example, *MODES[mode])
    best = [max(scores(run_dir, each["case"]))[1] for each in result["cases"]]
    return [*best, round(sum(best) / len(best), 2)], result, run_dir


def ckg(case: int, iteration: int) -> str:
    return f"case_{case:02d}/iterations/iter_{iteration:04d}/ckg/candidate_ckg_iter_{iteration:04d}_case_{case:02d}.json"


# ------------------------------------------------------------------------------------------------ a chain of one's own


def test_the_best_is_carried_byte_for_byte(example: Path) -> None:
    figures, result, run_dir = measured(example, "best")

    assert readme_row(SHOP, "best") == figures
    assert [3, 4, 1, 1, 1] == [each["best_iter"] for each in result["cases"]]
    assert [0, 0, 10, 0, 0] == [accuracy for accuracy, _, _ in scores(run_dir, 1)]
    assert (run_dir / ckg(1, 3)).read_bytes() == (run_dir / "inputs/base_ckg_snapshot_case_02.json").read_bytes()
    carried = run_dir / "inputs/base_fix_db_snapshot_case_02.db"
    assert (run_dir / "case_01/iterations/iter_0003/fix/fixes_iter_0003_case_01.db").read_bytes() == carried.read_bytes()
    database = sqlite3.connect(f"file:{carried}?mode=ro", uri=True)
    assert [("slow-checkout:nightly-export", "checkout-api")] == database.execute("SELECT id, symptom FROM fixes").fetchall()
    database.close()

    replayed, again = run(example, config="replayed.toml", env={"RECORDED_CHAIN": str(run_dir)})

    choices = ("case", "best_iter", "ranking", "stopped_by", "iterations")
    assert [[each[name] for name in choices] for each in result["cases"]] == [
        [each[name] for name in choices] for each in replayed["cases"]
    ]
    assert (run_dir / ckg(5, 1)).read_bytes() == (again / ckg(5, 1)).read_bytes()


@pytest.mark.parametrize("mode", ["last", "nothing"])
def test_the_comparisons_are_those_of_the_readme(example: Path, mode: str) -> None:
    assert readme_row(SHOP, mode) == measured(example, mode)[0]


def test_carrying_the_best_helps_here_and_the_last_harms() -> None:
    best, last, nothing = (readme_row(SHOP, mode)[-1] for mode in MODES)

    assert last < nothing < best


def test_how_much_an_iteration_learns_decides_whether_carrying_helps(example: Path) -> None:
    assert limits_table("shop") == measure(example, "limits", sorted(example.glob("cases/*.txt")))


def test_the_agent_never_sees_the_experts_report() -> None:
    steps = tomllib.loads((EXAMPLE / "cases.toml").read_text(encoding="utf-8"))["steps"]

    assert [["ckg", "prompt"]] == [step["inputs"] for step in steps if step["name"] == "agent"]


def test_a_step_says_what_is_not_in_the_recording(example: Path, tmp_path: Path) -> None:
    variables = {"RECORDED_CHAIN": str(tmp_path), "JUMAR_OUT_CKG": str(tmp_path / "candidate_ckg_iter_0001_case_01.json")}

    done = subprocess.run(
        [sys.executable, "steps/replayed.py"],
        cwd=example,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )

    assert 1 == done.returncode
    assert "candidate_ckg_iter_0001_case_01.json is recorded 0 times" in done.stderr
    assert "JUMAR_OUT_CKG" in done.stderr


# --------------------------------------------------------------------------------------------------- the recorded cases


@pytest.mark.parametrize("mode", list(MODES))
def test_the_same_programs_on_the_recorded_cases(example: Path, closed_loop: Path, mode: str) -> None:
    put_cases(example, "cases.toml", sorted((closed_loop / "cases").glob("case_*.txt")))

    assert readme_row(RECORDED, mode) == measured(example, mode)[0]


def test_the_recorded_cases_in_other_orders_and_with_other_limits(example: Path, closed_loop: Path) -> None:
    files = sorted((closed_loop / "cases").glob("case_*.txt"))

    assert limits_table("recorded") == measure(example, "limits", files)
    assert orders_row("recorded") == measure(example, "orders", files)


def test_the_recorded_chain_chooses_1_2_1_and_carries_these(example: Path, closed_loop: Path) -> None:
    chain = closed_loop / "recorded_chain"
    put_cases(example, "replayed.toml", sorted((closed_loop / "cases").glob("case_*.txt")))

    # above ten is never reached: all five iterations that were recorded are looked at
    result, run_dir = run(example, "--stop-accuracy", "11", config="replayed.toml", env={"RECORDED_CHAIN": str(chain)})

    assert [1, 2, 1] == [each["best_iter"] for each in result["cases"]]
    assert [5, 5, 5] == [len(scores(run_dir, case)) for case in (1, 2, 3)]
    assert (chain / "case1" / ckg(1, 1)).read_bytes() == (run_dir / "inputs/base_ckg_snapshot_case_02.json").read_bytes()
    assert (chain / "case2" / ckg(2, 2)).read_bytes() == (run_dir / "inputs/base_ckg_snapshot_case_03.json").read_bytes()


def test_the_recorded_chain_carried_the_last(example: Path, closed_loop: Path) -> None:
    chain = closed_loop / "recorded_chain"
    put_cases(example, "replayed.toml", sorted((closed_loop / "cases").glob("case_*.txt")))

    _, run_dir = run(
        example, "--stop-accuracy", "11", "--no-select-best", config="replayed.toml", env={"RECORDED_CHAIN": str(chain)}
    )

    for case in (2, 3):
        recorded = chain / f"case{case}" / "inputs" / "base_ckg_snapshot.json"
        assert recorded.read_bytes() == (run_dir / f"inputs/base_ckg_snapshot_case_{case:02d}.json").read_bytes()
