"""``make auto`` on recorded judgements: mode auto keeps its promise, and beats a constant that saves as many questions."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch, recorded_data: Path) -> Any:
    monkeypatch.setenv("JUMAR_DATA", str(recorded_data))
    monkeypatch.syspath_prepend(str(BENCH))
    for name in ("part_auto", "part_controls"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("part_auto")


@pytest.mark.parametrize("name", ["newsroom", "topical_chat"])
def test_it_beats_the_constant_at_the_same_saving_and_keeps_its_promise(part: Any, name: str) -> None:
    targets = part.recorded(name)
    trials = [part.trial_of(targets, seed) for seed in range(2)]
    found = [part.figures(trials, line, 0.9) for line in (2.5, 3.0, 3.5, 4.0)]
    decided, errors = sum(one.decided for one in found), sum(one.errors for one in found)
    for one in found:
        print(f"{name}: saved {one.saved}, wrong {one.wrong} of all, {one.errors} of {one.decided}; constant {one.constant:.3f}")

    assert decided > 0
    assert sum(sum(one.wrong) / len(one.wrong) for one in found) < 0.5 * sum(one.constant for one in found)
    assert errors <= binom.ppf(0.999, decided, 0.1)
