"""What a person sees who installed the core alone: what needs no extra works, and everything else says which one it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import unwrapped

ABSENT = (
    "ahocorasick_rs",
    "numpy",
    "rapidfuzz",
    "re2",
    "scipy",
    "sklearn",
    "snowballstemmer",
    "symspellpy",
    "threadpoolctl",
    "yake",
)
JUMAR = Path(sys.executable).with_name("jumar")
AUTO = ("evaluate", "items.jsonl", "--mode", "auto", "--judge", "mock:")
HIDING = f"""
import importlib.machinery, sys

class Core(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {ABSENT!r} else super().find_spec(name, path, target)

sys.meta_path[:] = [Core if one is importlib.machinery.PathFinder else one for one in sys.meta_path]
"""


@pytest.fixture
def core(tmp_path: Path) -> dict[str, str]:
    """Return the environment of an interpreter that finds no package of an extra."""
    place = tmp_path / "hiding"
    place.mkdir()
    (place / "usercustomize.py").write_text("")
    (place / "sitecustomize.py").write_text(HIDING)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    return environment | {"PYTHONPATH": str(place)}


def jumar(core: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(JUMAR), *arguments], env=core, capture_output=True, text=True, check=False)


def items(lines: int = 3) -> str:
    rows = [{"id": f"i{n}", "text": f"the text of item {n}", "judge_scores": 1 + n % 5} for n in range(lines)]
    Path("items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "items.jsonl"


@pytest.mark.parametrize("judge", ["replay:items.jsonl", "mock:", f"command:{sys.executable} judge.py"], ids=lambda one: one[:6])
def test_the_expensive_judge_needs_the_core_alone(core: dict[str, str], judge: str):
    Path("judge.py").write_text("print('{\"gestalt\": 3}')\n")
    done = jumar(core, "evaluate", items(), "--mode", "expensive", "--judge", judge, "--repeat", "1")
    assert (0, "") == (done.returncode, done.stderr)
    assert "3 items scored" in done.stdout


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("evaluate", "items.jsonl", "--judge", "mock:"), "judge"),
        ((*AUTO, "--patterns", "p.json", "--proof", "p.json", "--decision-line", "3"), "judge"),
        (("learn", "items.jsonl", "--judge", "mock:", "-o", "out"), "learn"),
        (("learn", "items.jsonl", "--judge", "mock:", "-o", "out", "--profile", "seed"), "learn"),
        (("learn", "status", "out"), "learn"),
        (("learn", "report", "out"), "learn"),
        (("prove", "out"), "judge"),
        (("prove", "--verify", "proof.json"), "judge"),
        (("topk", "tune", "items.jsonl"), "topk"),
    ],
    ids=lambda one: one if isinstance(one, str) else " ".join(one[:3]),
)
def test_what_needs_an_extra_names_it_and_changes_nothing(core: dict[str, str], command: tuple[str, ...], extra: str):
    items()
    Path("p.json").write_text('{"version": "2.0", "patterns": []}')
    done = jumar(core, *command)
    assert (2, "") == (done.returncode, done.stdout)
    assert f"not installed here: pip install 'jumar[{extra}]'" in unwrapped(done.stderr)
    assert "Traceback" not in done.stderr
    assert 1 == unwrapped(done.stderr).count("\n")
    assert {"items.jsonl", "p.json"} == {one.name for one in Path().iterdir()}


def test_the_interpreter_of_these_tests_really_lacks_the_packages(core: dict[str, str]):
    for package in ABSENT:
        done = subprocess.run([sys.executable, "-c", f"import {package}"], env=core, capture_output=True, text=True, check=False)
        assert f"No module named '{package}'" in done.stderr
