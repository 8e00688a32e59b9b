"""The page on what the gap hides, against figures that are computed anew."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_figures_of_the_recorded_judgements(recorded_data: Path) -> None:
    table = runpy.run_path(str(ROOT / "bench" / "gap_figures.py"))["table"]
    page = (ROOT / "docs" / "concepts" / "what-the-gap-hides.md").read_text("utf-8")
    assert "\n".join(table(recorded_data / "judged" / "vicuna.jsonl")) in page
