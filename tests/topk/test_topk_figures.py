"""The figures of the docs are those that the public runs give today, and the code of the page of strategies runs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from jumar.topk import STRATEGIES
from jumar.topk.tuning.tune import Tuning

ROOT = Path(__file__).resolve().parents[2]
AGAIN = "the figures have changed: python bench/topk_figures.py DIRECTORY prints them"


@pytest.fixture(scope="module")
def figures() -> Any:
    spec = importlib.util.spec_from_file_location("topk_figures", ROOT / "bench" / "topk_figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def runs(figures: Any, recorded_data: Path) -> list[Any]:
    found: list[Any] = figures.measured(recorded_data / "retrieval")
    return found


def read(*names: str) -> str:
    return ROOT.joinpath(*names).read_text(encoding="utf-8")


def cells_of(text: str, row: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {row}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_page_has_the_skill_of_every_strategy(figures: Any, runs: list[Any]):
    page = read("docs", "concepts", "topk-skill.md")
    assert figures.table(runs) in page, AGAIN
    assert figures.verdict(runs) in page, AGAIN
    assert set(STRATEGIES) == set(figures.ranked(runs))


def test_the_table_of_strategies_has_the_same_figures(figures: Any, runs: list[Any]):
    page = read("docs", "topk", "index.md")
    for name in STRATEGIES:
        defaults = [run.defaults[name] for run in runs]
        expected = [f"{figures.share(one.f1)} ({one.mean_k:.1f})" for one in defaults]
        assert [*expected, figures.share(figures.mean([one.f1 for one in defaults]))] == cells_of(page, f"[`{name}`]")[2:6], AGAIN
    fixed = [f"{figures.share(f1)} ({k})" for f1, k in (run.fixed for run in runs)]
    assert [*fixed, figures.share(figures.mean([run.fixed[0] for run in runs]))] == cells_of(page, "the best fixed k")[2:6], AGAIN
    oracles = [run.oracle for run in runs]
    assert [figures.share(one) for one in [*oracles, figures.mean(oracles)]] == cells_of(page, "the best k of each")[2:6], AGAIN
    listed = re.findall(r"^\| \[`(\w+)`\]", page, flags=re.MULTILINE)
    assert figures.ranked(runs) == listed, "best first"


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_the_page_of_a_strategy_has_the_same_figures(name: str, figures: Any, runs: list[Any]):
    expected = " · ".join(f"{figures.share(one.f1)} ({one.mean_k:.1f})" for one in (run.defaults[name] for run in runs))
    assert f"CLINC150: {expected}.\n" in read("docs", "topk", f"{name}.md"), AGAIN


def test_shares_are_written_without_a_leading_zero(figures: Any):
    assert [".289", "+.007", "−.002", "1.000"] == [
        figures.share(0.2894),
        figures.share(0.007, signed=True),
        figures.share(-0.002, signed=True),
        figures.share(1.0),
    ]


def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]):
    blocks: list[str] = re.findall(r"```python\n(.*?)```", read("docs", "topk", "index.md"), flags=re.DOTALL)
    code = next(block for block in blocks if "jumar.topk" in block)
    names: dict[str, Any] = {}
    exec(code, names)
    assert [2] == names["keep"].tolist()
    assert isinstance(names["best"], Tuning)
    printed = capsys.readouterr().out
    assert printed.startswith("3 0.71 adaptive_k {")
    assert "otsu keeps 3 of 4 items" in printed
