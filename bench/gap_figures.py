"""What a mean gap hides: judges of the same answers, as a table. ``python bench/gap_figures.py DIR`` with recorded judgements.

The constant is the mean of the expensive judge's scores, in hundredths. The shuffled judge gives these scores themselves, to the
wrong items: means over ten shuffles. The last row is one reading of the expensive judge against another.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from jumar.judging import CheapModeEvaluator, CheapModeResult, Item
from jumar.judging.tracking import Tracking, track

SHUFFLES = 10


def figures(file: Path) -> list[tuple[str, list[Tracking]]]:
    """Return the judges by name, each with its tracking (one, or one a shuffle)."""
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    truth = [float(median(row["judge_scores"])) for row in rows]
    items = [Item(row["id"], row["text"], row["prompt"], group=row["group"]) for row in rows]

    def against(scores: Sequence[float], target: Sequence[float] = truth) -> Tracking:
        return track(target, scores, lengths=[len(one.text) for one in items], groups=[one.group for one in items])

    constant = round(fmean(truth), 2)
    cheap = [one.gestalt for one in CheapModeEvaluator().evaluate(items) if isinstance(one, CheapModeResult)]
    first, second = ([float(row["judge_scores"][at]) for row in rows] for at in (0, 1))
    return [
        (f"always {constant:.2f}", [against([constant] * len(rows))]),
        ("the judge's own scores, shuffled", [against(_shuffled(truth, seed)) for seed in range(SHUFFLES)]),
        ("length alone, fitted on other groups", [_of_baseline(against(cheap))]),
        ("the cheap judge, rubric `text`", [against(cheap)]),
        ("the expensive judge, asked again", [against(second, first)]),
    ]


def _shuffled(scores: Sequence[float], seed: int) -> list[float]:
    mixed = list(scores)
    random.Random(seed).shuffle(mixed)
    return mixed


def _of_baseline(tracking: Tracking) -> Tracking:
    return replace(tracking, agreement=tracking.baselines["length_only"], checks=(), verdict="not_proven")


def table(file: Path) -> list[str]:
    """Return the lines of the table, in markdown."""
    lines = ["| judge | gap | mean absolute error | off by more than half | Spearman | verdict |", "|---|---|---|---|---|---|"]
    for name, found in figures(file):
        lines.append(f"| {name} | {_row(found)} |")
    return lines


def _row(found: Sequence[Tracking]) -> str:
    def mean(field: str) -> float | None:
        values: list[Any] = [getattr(one.agreement, field) for one in found]
        return None if None in values else fmean(values)

    rank = mean("spearman")
    verdicts = {one.verdict.replace("_", " ") for one in found} if found[0].checks else {"—"}
    gap, error, share = (mean(field) or 0.0 for field in ("bias", "mae", "off_by_more_than_half"))
    return " | ".join(
        [
            f"{round(-gap, 2) + 0.0:+.2f}",
            f"{error:.2f}",
            f"{share:.0%}",
            "—" if rank is None else f"{round(rank, 2) + 0.0:.2f}",
            ", ".join(sorted(verdicts)),
        ]
    )


if __name__ == "__main__":
    print("\n".join(table(Path(sys.argv[1]) / "judged" / "vicuna.jsonl")))
