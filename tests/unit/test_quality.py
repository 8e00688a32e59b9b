"""``make quality`` on recorded judgements: the learned judge beats the floors that it promises to beat."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumar.judging.tracking.agreement import spearman

BENCH = Path(__file__).parents[2] / "bench" / "quality"


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    for name in ("measuring", "floors"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("measuring")


@pytest.mark.parametrize(
    ("name", "rank", "error"),
    # at least this much above the Spearman of the TF-IDF floor, and below its mean absolute error
    [("newsroom", 0.02, 0.02), ("topical_chat", 0.0, 0.0), ("vicuna", -0.02, 0.0)],
)
def test_it_beats_words_and_length(measuring: Any, recorded_data: Path, name: str, rank: float, error: float):
    data = measuring.read(recorded_data, name)
    found = np.array(measuring.learned(data, seed=0).predictions)
    floors = measuring.baseline(data, seed=0)
    floor = floors["TF-IDF ridge"]
    ours, theirs = spearman(found, data.y), spearman(floor, data.y)
    assert ours is not None
    assert theirs is not None
    off, floor_off, constant_off = (np.abs(one - data.y).mean() for one in (found, floor, floors["constant"]))
    print(f"{name}: Spearman {ours:.3f} against {theirs:.3f}, MAE {off:.3f} against {floor_off:.3f}, median {constant_off:.3f}")
    assert ours > theirs + rank
    assert off < floor_off - error
    assert off < constant_off + 0.001


@pytest.mark.parametrize("name", ["newsroom", "topical_chat"])
def test_what_makes_a_text_worse_raises_no_score_of_a_guarded_set(measuring: Any, recorded_data: Path, name: str):
    data = measuring.read(recorded_data, name)
    plain, guarded = (measuring.gamed(data, 0, guard=guard) for guard in (False, True))
    for what in ("seen", "not seen"):
        changes = [
            (one.name, one.mean_change, was.mean_change)
            for one, was in zip(guarded[what].results, plain[what].results, strict=True)
        ]
        print(name, what, "; ".join(f"{probe}: {before:+.2f} → {after:+.2f}" for probe, after, before in changes))
        assert not plain[what].passed
        # of items not seen the mean may be a little over what holds of those of the fit, and its interval more so
        assert all(after < 0.15 for _, after, _ in changes)
    assert guarded["seen"].passed
