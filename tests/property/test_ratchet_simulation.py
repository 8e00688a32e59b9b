"""Loops whose true quality is known: starting from the best does not lose, but where the score misleads; and the page says so."""

from __future__ import annotations

import runpy
from pathlib import Path
from statistics import fmean, stdev

ROOT = Path(__file__).parents[2]


def test_simulated_loops_and_the_page_that_shows_them() -> None:
    bench = runpy.run_path(str(ROOT / "bench" / "ratchet_figures.py"))
    worlds = dict(bench["simulated"]())
    for name, pairs in worlds.items():
        gains = [best.quality - previous.quality for previous, best in pairs]
        error = stdev(gains) / len(gains) ** 0.5
        if "nothing measures it" in name:
            assert [0.0] * len(gains) == gains  # the latest of equals is the previous one
        elif "get worse before" in name:
            assert fmean(gains) < 0  # what the page warns of
        elif name == "improves a little, noisy scores":
            assert fmean(gains) > -2 * error  # nothing is lost to a lucky score
        else:
            assert fmean(gains) > 3 * error
    page = (ROOT / "docs" / "concepts" / "best-not-last.md").read_text("utf-8")
    assert "\n".join(bench["lines"](list(worlds.items()))) in page


def test_recorded_loops_and_the_page_that_speaks_of_them(recorded_data: Path) -> None:
    bench = runpy.run_path(str(ROOT / "bench" / "ratchet_figures.py"))
    page = " ".join((ROOT / "docs" / "concepts" / "best-not-last.md").read_text("utf-8").split())
    for sentence in bench["told"](bench["recorded"](recorded_data / "loops")):
        assert sentence in page


def test_what_recorded_loops_show_and_the_page_that_says_so(recorded_data: Path) -> None:
    bench = runpy.run_path(str(ROOT / "bench" / "loop_evidence.py"))
    loops = bench["loops_of"](recorded_data / "loops")
    page = (ROOT / "docs" / "concepts" / "best-not-last.md").read_text("utf-8")
    assert "\n".join(bench["table"](loops)) in page
    assert "\n".join(bench["noisy"](loops)) in page
    assert all(sentence in page for sentence in bench["told"](loops))
    print(f"{len(loops)} recorded loops, {sum(len(loop.scores) for loop in loops)} scored experiments")
