"""Loops whose true quality is known: scoring again picks better ones, and the optimism that is told is the true one."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from statistics import fmean, stdev

ROOT = Path(__file__).parents[2]


def error(values: list[float]) -> float:
    return stdev(values) / math.sqrt(len(values))


def test_simulated_loops_and_the_page_that_shows_them() -> None:
    bench = runpy.run_path(str(ROOT / "bench" / "noise_figures.py"))
    found = dict(bench["outcomes"]())
    loops = 0
    for name, each in found.items():
        loops += len(each)
        saved = [one.ties - one.again for one in each]
        bias = [one.told_optimism - one.true_optimism for one in each]
        covered = sum(abs(value) <= one.width for value, one in zip(bias, each, strict=True)) / len(each)
        readings = sum(one.readings for one in each)
        print(f"{name}: {len(each)} loops, {readings} later readings, saved {fmean(saved):.2f} ± {error(saved):.2f},")
        print(f"  bias of the optimism {fmean(bias):+.2f} ± {error(bias):.2f}, interval holds in {covered:.0%}")
        assert abs(fmean(bias)) < 3.5 * error(bias)
        assert 0.90 < covered < 1
        naive = [one.naive_optimism - one.true_optimism for one in each]
        assert fmean(naive) > 3 * error(naive)  # what looking again takes away
        if name != "does not change at all":
            assert fmean(saved) > 3 * error(saved)  # against the same rules without looking again
    for name in ("wanders", "wanders far"):
        against_highest = [one.highest - one.again for one in found[name]]
        print(f"{name}: saved against the highest score {fmean(against_highest):.2f} ± {error(against_highest):.2f}")
        assert fmean(against_highest) > -error(against_highest)
    print(f"{loops} loops")
    page = (ROOT / "docs" / "how-to" / "noise.md").read_text("utf-8")
    assert "\n".join(bench["lines"](found)) in page
