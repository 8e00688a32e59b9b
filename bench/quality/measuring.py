"""The judge and the floors on one set after the other, as a table."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import floors
import numpy as np

from jumar.judging import Item
from jumar.judging.agreement import bootstrap, spearman
from jumar.learning.proof.probes import ProbeReport
from jumar.learning.scorecard.fit import ScorecardFit, fit_scorecard
from jumar.learning.scorecard.pool import FitSettings
from jumar.learning.set_building import probe_set

MADE = datetime(2026, 1, 1, tzinfo=UTC)
SETS: Mapping[str, Callable[[list[float]], float]] = {
    "newsroom": statistics.fmean,
    "topical_chat": statistics.fmean,
    "vicuna": statistics.median,
}


@dataclass(frozen=True)
class Judged:
    """One set: items, targets, groups."""

    items: list[Item]
    y: Any
    groups: list[str]


def read(folder: Path, name: str) -> Judged:
    """Return a recorded set; the target is the median of a judge's repeats, the mean of distinct raters."""
    rows = [json.loads(line) for line in (folder / "judged" / f"{name}.jsonl").read_text("utf-8").splitlines()]
    items = [
        Item(row["id"], row["text"], row.get("prompt") or "", context=row.get("context") or "", group=row["group"])
        for row in rows
    ]
    y = np.array([float(SETS[name]([float(one) for one in row["judge_scores"]])) for row in rows])
    return Judged(items, y, [row["group"] for row in rows])


def learned(data: Judged, seed: int, *, guard: bool = True) -> ScorecardFit:
    """Return the fit on a set, with its out-of-fold predictions."""
    chosen = FitSettings(guard=guard)
    return fit_scorecard(data.items, data.y.tolist(), groups=data.groups, made=MADE, seed=seed, settings=chosen)


def gamed(data: Judged, seed: int, *, guard: bool = True) -> dict[str, ProbeReport]:
    """Return what the probes do to items of the fit, and to those of a third of the groups by a set that never saw them."""
    third = floors.folds(data.groups, 3, seed) == 0
    own, out = np.flatnonzero(~third), np.flatnonzero(third)
    inside = Judged([data.items[at] for at in own], data.y[own], [data.groups[at] for at in own])
    whole, part = learned(data, seed, guard=guard), learned(inside, seed, guard=guard)
    return {
        "seen": probe_set(whole.patterns, data.items, "text", seed=seed),
        "not seen": probe_set(part.patterns, [data.items[at] for at in out], "text", seed=seed),
    }


def baseline(data: Judged, seed: int) -> dict[str, Any]:
    """Return the out-of-fold predictions of each floor."""
    fold = floors.folds(data.groups, 5, seed)
    texts = [item.text for item in data.items]
    found = {name: np.zeros_like(data.y) for name in ("TF-IDF ridge", "length", "constant")}
    for one in range(5):
        inside, outside = np.flatnonzero(fold == one), np.flatnonzero(fold != one)
        own, others, y = [texts[at] for at in outside], [texts[at] for at in inside], data.y[outside]
        found["TF-IDF ridge"][inside] = floors.tfidf(own, y, [data.groups[at] for at in outside], others, seed)
        found["length"][inside] = floors.length(own, y, others)
        found["constant"][inside] = np.median(y)
    return found


def report(folder: Path, seeds: int) -> None:
    """Print a table a set."""
    for name in SETS:
        data = read(folder, name)
        runs: dict[str, list[Any]] = {}
        took, sizes, curves = 0.0, [], []
        for seed in range(seeds):
            began = time.process_time()
            found = learned(data, seed)
            took += (time.process_time() - began) / seeds
            runs.setdefault("without the guard", []).append(np.array(learned(data, seed, guard=False).predictions))
            sizes.append(len(found.patterns.patterns))
            curves.append(found.report.calibration)
            runs.setdefault("scorecard", []).append(np.array(found.predictions))
        for seed in range(seeds):
            for floor, predictions in baseline(data, seed).items():
                runs.setdefault(floor, []).append(predictions)
        size = f"{len(data.items)} items, {len(set(data.groups))} groups"
        print(f"\n{name}: {size}; {max(sizes)} patterns at most; curves: {_counted(curves)}; {took:.1f} s a fit")
        print("\n| judge | Spearman | MAE |\n|---|---|---|")
        for judge, predictions in runs.items():
            print(f"| {judge} | {_rank(predictions, data.y, judge)} | {_figure([_mae(one, data.y) for one in predictions])} |")
        _differences(runs, data)
        _probes(data)


def _probes(data: Judged) -> None:
    """Print the mean change of the score by probe, with the upper end of its interval, which has to be 0.1 at most.

    The five that raise it most, and how many pass.
    """
    for guard in (False, True):
        print(f"\n| probes, {'guarded' if guard else 'without the guard'} | passed | raise it most |\n|---|---|---|")
        for what, found in gamed(data, 0, guard=guard).items():
            passed = sum(one.passed for one in found.results)
            most = sorted(found.results, key=lambda one: -one.most)[:5]
            shown = [f"{one.name} {one.how} {one.mean_change or 0.0:+.2f} ({one.most:+.2f})".replace("  ", " ") for one in most]
            print(f"| {what} | {passed} of {len(found.results)} | {', '.join(shown)} |", flush=True)


def _differences(runs: Mapping[str, list[Any]], data: Judged) -> None:
    """Print the gains over the floors in pairs, with intervals over resampled groups; means over the seeds in each resample."""
    own = runs["scorecard"]

    def gains(at: Any) -> dict[str, float | None]:
        y, found = data.y[at], {}
        for floor in ("TF-IDF ridge", "length", "constant"):
            pairs = list(zip(own, runs[floor], strict=True))
            found[f"{floor} MAE"] = float(np.mean([_mae(one[at], y) - _mae(other[at], y) for one, other in pairs]))
            if floor != "constant":
                ranks = [(spearman(one[at], y) or 0.0) - (spearman(other[at], y) or 0.0) for one, other in pairs]
                found[f"{floor} Spearman"] = float(np.mean(ranks))
        return found

    at_all, intervals = gains(np.arange(data.y.size)), bootstrap(data.groups, gains, count=400)
    print("\n| against | difference | 95 % over groups |\n|---|---|---|")
    for what, value in at_all.items():
        interval = intervals[what]
        shown = "—" if interval is None else f"{interval.low:+.3f} to {interval.high:+.3f}"
        print(f"| {what} | {value:+.4f} | {shown} |", flush=True)


def _mae(predictions: Any, y: Any) -> float:
    return float(np.abs(predictions - y).mean())


def _rank(predictions: list[Any], y: Any, judge: str) -> str:
    return "—" if judge == "constant" else _figure([spearman(one, y) or 0.0 for one in predictions])


def _figure(values: list[float]) -> str:
    return f"{np.mean(values):.4f} ± {np.std(values):.4f}"


def _counted(names: list[str]) -> str:
    return ", ".join(f"{name} {names.count(name)}" for name in sorted(set(names)))
