"""What a whole ``jumar learn`` commits, on groups that it never saw: beside one fit of the same open items, and the floors.

``python bench/quality/committed.py DIR [SEEDS]``. Recorded sets, parts of them (three fifths of the groups, drawn anew), and
generated ones; by seed another split. Floors see the open items, as the run does.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import floors
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from learning_controls import Planted, planted_targets

from jumar.judging import CheapModeEvaluator, Item
from jumar.judging.agreement import spearman
from jumar.judging.cheap.scoring import CheapReading
from jumar.judging.items.records import read_items
from jumar.judging.patterns.models import PatternSet
from jumar.judging.patterns.storage import load_pattern_set
from jumar.learning import learn
from jumar.learning.proof.split import Split
from jumar.learning.scorecard.fit import fit_scorecard
from jumar.learning.scorecard.pool import FitSettings

SETS = ("vicuna", "newsroom", "topical_chat")
MADE = datetime(2026, 1, 1, tzinfo=UTC)
Record = dict[str, Any]
Figures = dict[str, tuple[float, float]]


def main() -> None:
    data, seeds = Path(sys.argv[1]) / "judged", int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print("| set | committed | one fit | TF-IDF ridge | constant |\n|---|---|---|---|---|")
    for name, records in sets(data):
        for robust in (False, True) if "--robust" in sys.argv else (False,):
            runs = [committed(records(seed), seed, robust=robust) for seed in range(seeds)]
            print(f"| {name}{', robust' if robust else ''} | {' | '.join(_mean(runs, what) for what in runs[0])} |", flush=True)


def sets(data: Path) -> Iterator[tuple[str, Callable[[int], list[Record]]]]:
    """Yield the name of a set, and what gives its records by the seed."""
    for name in SETS:
        lines = [json.loads(line) for line in (data / f"{name}.jsonl").read_text("utf-8").splitlines()]
        yield name, lambda _seed, lines=lines: lines
        yield f"{name}, a part", lambda seed, lines=lines: part_of(lines, seed)
    for effect in (0.4, 0.8):
        yield f"generated, {effect:g} points a phrase", lambda seed, effect=effect: generated(effect, seed)


def part_of(records: Sequence[Record], seed: int) -> list[Record]:
    """Return the records of three fifths of the groups."""
    names = sorted({one["group"] for one in records})
    kept = set(np.random.default_rng(1000 + seed).permutation(names)[: 3 * len(names) // 5].tolist())
    return [one for one in records if one["group"] in kept]


def generated(effect: float, seed: int) -> list[Record]:
    """Return records of generated items."""
    made = planted_targets(Planted(effect=effect), 100 + seed)
    return [
        {"id": one.item.id, "text": one.item.text, "group": one.group, "judge_scores": list(one.readings or (one.score,))}
        for one in made
    ]


def committed(records: Sequence[Record], seed: int, *, robust: bool) -> Figures:
    """Return Spearman and MAE on held-out groups: of the set that a run commits, of one fit, and of the floors."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "items.jsonl", Path(folder) / "out"
        source.write_text("".join(json.dumps(one) + "\n" for one in records))
        learn(source, f"replay:{source}", output, seed=seed, max_iterations=3, robust=robust)
        items, split = list(read_items(source)), Split.from_json((output / "split.json").read_text())
        final = load_pattern_set(output / "patterns.json")
    scores = {one["id"]: float(np.median(one["judge_scores"])) for one in records}
    opened, sealed = split.part(items, "open"), split.part(items, "sealed")
    y, truth = np.array([scores[one.id] for one in opened]), np.array([scores[one.id] for one in sealed])
    groups = [str(one.group) for one in opened]
    one_fit = fit_scorecard(opened, y.tolist(), groups=groups, made=MADE, seed=seed, settings=FitSettings(guard=robust))
    words = floors.tfidf([one.text for one in opened], y, groups, [one.text for one in sealed], seed)
    found = {
        "committed": scored(final, sealed),
        "one fit": scored(one_fit.patterns, sealed),
        "TF-IDF ridge": np.clip(words, 1.0, 5.0),
        "constant": np.full_like(truth, np.median(y)),
    }
    return {name: (spearman(one, truth) or 0.0, float(np.abs(one - truth).mean())) for name, one in found.items()}


def scored(patterns: PatternSet, items: Sequence[Item]) -> Any:
    """Return the cheap scores of a set."""
    evaluator = CheapModeEvaluator(patterns, rubric="text")
    readings = [evaluator.read(item) for item in items]
    return np.array([one.gestalt if isinstance(one, CheapReading) else 3.0 for one in readings])


def _mean(runs: Sequence[Figures], what: str) -> str:
    ranks, errors = np.mean([one[what] for one in runs], axis=0)
    return f"{ranks:.3f} / {errors:.3f}"


if __name__ == "__main__":
    main()
