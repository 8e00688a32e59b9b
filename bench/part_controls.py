"""Null and positive control of learning: what is found in shuffled scores, and what is found of effects that were planted.

Sets: generated ones, and those of ``$JUMAR_DATA/judged`` where it is there. ``JUMAR_CONTROL_SEEDS`` is 20.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from jumar.app.items import read_items
from jumar.judging import CheapModeEvaluator, Item, builtin_rubric
from jumar.judging.cheap.scoring import Reading
from jumar.judging.expensive.replay import ReplayJudge
from jumar.learning.controls import ControlRun, Planted, control_run, most_by_chance, planted_targets, shuffled, words_apart
from jumar.learning.scorecard import fit_scorecard
from jumar.learning.targets import Target

SEEDS = int(os.environ.get("JUMAR_CONTROL_SEEDS", "20"))
DATA = Path(os.environ.get("JUMAR_DATA") or Path(__file__).resolve().parents[1] / ".." / "shared" / "data") / "judged"
SETS = ("vicuna", "topical_chat", "newsroom")
EFFECTS = (0.0, 0.25, 0.5, 0.75, 1.0)
Row = tuple[str, str, str, str]
RUBRIC = builtin_rubric("text")


def measure(_directory: Path) -> Iterator[Row]:
    generated = planted_targets(Planted(effect=0.8), 1)
    for name, targets in (*((one, _recorded(one)) for one in SETS), ("generated", generated)):
        if not targets:
            yield (f"null, {name}", "not here", "set JUMAR_DATA", "")
            continue
        ways: tuple[Literal["across", "within"], ...] = ("across", "within")
        for how in ways:
            yield _null(
                f"null, {name}, shuffled {how} groups", [_run(shuffled(targets, how, seed), seed) for seed in range(SEEDS)]
            )
    for effect in EFFECTS:
        yield _power(Planted(effect=effect))


def _run(targets: Sequence[Target], seed: int) -> ControlRun:
    return control_run(targets, _fit, words_apart, seed=seed)


def _fit(opened: Sequence[Target]):
    found = fit_scorecard(
        [one.item for one in opened],
        [one.score for one in opened],
        groups=[one.group for one in opened],
        made=datetime(2026, 1, 1, tzinfo=UTC),
    )
    evaluator = CheapModeEvaluator(found.patterns, rubric=RUBRIC)

    def scores(items: Sequence[Item]) -> list[float]:
        readings = [evaluator.read(item) for item in items]
        return [one.gestalt if isinstance(one, Reading) else 3.0 for one in readings]

    return scores


def _null(what: str, runs: Sequence[ControlRun]) -> Row:
    tracked = sum(one.evidence.verdict == "tracks" for one in runs)
    supported = sum(bool(one.supported) for one in runs)
    words = sum(one.proposed for one in runs)
    aim = f"≤ {most_by_chance(len(runs), 0.025)} track, ≤ {most_by_chance(len(runs), 0.05)} support"
    return (what, f"{tracked} of {len(runs)} track", f"{supported} of {len(runs)} support any of {words:,} words", aim)


def _power(planted: Planted) -> Row:
    runs = [_run(planted_targets(planted, 100 + seed), seed) for seed in range(SEEDS)]
    tracked = sum(one.evidence.verdict == "tracks" for one in runs)
    known = set(planted.phrases)
    found = sum(len(one.supported & known) for one in runs)
    others = sum(len(one.supported - known) for one in runs)
    what = f"planted, {planted.effect:g} points a phrase, {planted.groups} groups of {planted.each}"
    figure = f"{tracked} of {len(runs)} track"
    return (what, figure, f"{found} of {len(known) * len(runs)} phrases supported, {others} others", "")


def _recorded(name: str) -> list[Target]:
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        return []
    import asyncio

    from jumar.judging import JudgeSettings, judge_items
    from jumar.learning.targets import targets_of

    items = list(read_items(path))
    found = asyncio.run(judge_items(items, ReplayJudge(path), RUBRIC.judge, JudgeSettings()))
    return targets_of(items, found.results)


if __name__ == "__main__":
    for row in measure(Path()):
        print("| " + " | ".join(row) + " |", flush=True)
