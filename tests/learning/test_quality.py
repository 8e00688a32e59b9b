"""``make quality`` on recorded judgements: the learned judge beats the floors that it promises to beat."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumar.judging.agreement import spearman
from jumar.learning.proof.attacks import WORD_CHOICE

BENCH = Path(__file__).parents[2] / "bench" / "quality"
FITS: dict[Any, Any] = {}  # what several tests ask for is fitted once: the same items, seed and guard come to the same fit


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    for name in ("measuring", "floors"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module("measuring")
    fit = module.learned

    def learned(data: Any, seed: int, *, guard: bool = True) -> Any:
        asked = (tuple(data.items), tuple(data.y.tolist()), tuple(data.groups), seed, guard)
        if asked not in FITS:
            FITS[asked] = fit(data, seed, guard=guard)
        return FITS[asked]

    monkeypatch.setattr(module, "learned", learned)
    return module


@pytest.mark.parametrize(
    ("name", "rank", "error"),
    # at least this much above the Spearman of the TF-IDF floor, and below its mean absolute error
    [("newsroom", 0.02, 0.02), ("topical_chat", 0.0, 0.0), ("vicuna", -0.02, 0.0)],
)
def test_it_beats_words_and_length(measuring: Any, recorded_data: Path, name: str, rank: float, error: float):
    data = measuring.read(recorded_data, name)
    found = np.array(measuring.learned(data, seed=0, guard=False).predictions)  # as `jumar learn` fits
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
def test_what_the_guard_foresees_raises_scores_no_more_or_much_less(measuring: Any, recorded_data: Path, name: str):
    """It promises no more: of many mined phrases some gain when they are stuffed, and a choice of words is not foreseen."""
    data = measuring.read(recorded_data, name)
    plain, guarded = (measuring.gamed(data, 0, guard=guard) for guard in (False, True))
    for what in ("seen", "not seen"):
        before = {one.name: one.mean_change for one in plain[what].results if one.mean_change is not None}
        after = {one.name: one.mean_change for one in guarded[what].results if one.mean_change is not None}
        print(name, what, "; ".join(f"{probe}: {gain:+.2f} → {after[probe]:+.2f}" for probe, gain in before.items()))
        assert not plain[what].passed
        assert max(before.values()) > 0.5
        assert after["stuffing"] < before["stuffing"] / 2
        # of items not seen the mean may be a little over what holds of those of the fit, and its interval more so
        assert [] == [probe for probe in after if after[probe] > 0.15 and probe not in {"stuffing", *WORD_CHOICE}]
