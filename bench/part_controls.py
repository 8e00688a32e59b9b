"""Null and positive control of learning: what is found in shuffled scores, and what is found of effects that were planted.

Sets: generated ones, and those of ``$JUMAR_DATA/judged`` where it is there. Everything is done with a plain ridge over words, and
with the scorecard without and with the guard, which takes its time: ``JUMAR_CONTROL_SEEDS``, 20, is how often;
``JUMAR_CONTROL_ONLY`` names one of the three.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from learning_controls import (
    ControlRun,
    Fit,
    Planted,
    control_run,
    most_by_chance,
    planted_targets,
    shuffled,
    words_apart,
)
from learning_kit import ridge_of_words

from jumar.judging import CheapModeEvaluator, Item, JudgeSettings, builtin_rubric, judge_items
from jumar.judging.cheap.scoring import CheapReading
from jumar.judging.items.records import read_items
from jumar.judging.judges.replay import ReplayJudge
from jumar.learning.material import Target, targets_of
from jumar.learning.scorecard.fit import fit_scorecard
from jumar.learning.scorecard.pool import FitSettings

SEEDS = int(os.environ.get("JUMAR_CONTROL_SEEDS", "20"))
ONLY = tuple(filter(None, [os.environ.get("JUMAR_CONTROL_ONLY")]))
DATA = Path(os.environ.get("JUMAR_DATA") or Path(__file__).resolve().parents[1] / ".." / "shared" / "data") / "judged"
SETS = ("vicuna", "topical_chat", "newsroom")
EFFECTS = (0.0, 0.25, 0.5, 0.75, 1.0)
Row = tuple[str, str, str, str]
RUBRIC = builtin_rubric("text")
MADE = datetime(2026, 1, 1, tzinfo=UTC)


def measure(_directory: Path) -> Iterator[Row]:
    robust = functools.partial(_fit, robust=True)
    for label, fit, seeds in (("words", ridge_of_words, 20), ("scorecard", _fit, SEEDS), ("robust scorecard", robust, SEEDS)):
        if label in ONLY or not ONLY:
            yield from _of(label, fit, seeds)


def _of(label: str, fit: Fit, seeds: int) -> Iterator[Row]:
    for name in (*SETS, "generated"):
        targets = planted_targets(Planted(effect=0.8), 1) if name == "generated" else recorded(name)
        if not targets:
            yield (f"{label}: null, {name}", "not here", "set JUMAR_DATA", "")
            continue
        ways: tuple[Literal["across", "within"], ...] = ("across", "within")
        for how in ways:
            runs = [control_run(shuffled(targets, how, seed), fit, words_apart, seed=seed) for seed in range(seeds)]
            yield _null(f"{label}: null, {name}, shuffled {how} groups", runs)
    for effect in EFFECTS:
        planted = Planted(effect=effect)
        runs = [control_run(planted_targets(planted, 100 + seed), fit, words_apart, seed=seed) for seed in range(seeds)]
        yield _power(f"{label}: planted, {effect:g} points a phrase", planted, runs)


def _fit(opened: Sequence[Target], *, robust: bool = False):
    found = fit_scorecard(
        [one.item for one in opened],
        [one.score for one in opened],
        groups=[one.group for one in opened],
        made=MADE,
        settings=FitSettings(guard=robust),
    )
    evaluator = CheapModeEvaluator(found.patterns, rubric=RUBRIC)

    def scores(items: Sequence[Item]) -> list[float]:
        readings = [evaluator.read(item) for item in items]
        return [one.gestalt if isinstance(one, CheapReading) else 3.0 for one in readings]

    return scores


def _null(what: str, runs: Sequence[ControlRun]) -> Row:
    tracked = sum(one.evidence.verdict == "tracks" for one in runs)
    supported = sum(bool(one.supported) for one in runs)
    words = sum(one.proposed for one in runs)
    aim = f"≤ {most_by_chance(len(runs), 0.025)} track, ≤ {most_by_chance(len(runs), 0.05)} support"
    return (what, f"{tracked} of {len(runs)} track", f"{supported} of {len(runs)} support any of {words:,} words", aim)


def _power(what: str, planted: Planted, runs: Sequence[ControlRun]) -> Row:
    tracked = sum(one.evidence.verdict == "tracks" for one in runs)
    known = set(planted.phrases)
    found = sum(len(one.supported & known) for one in runs)
    others = sum(len(one.supported - known) for one in runs)
    return (
        what,
        f"{tracked} of {len(runs)} track",
        f"{found} of {len(known) * len(runs)} phrases supported, {others} others",
        "",
    )


def recorded(name: str) -> list[Target]:
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        return []
    items = list(read_items(path))
    found = asyncio.run(judge_items(items, ReplayJudge(path), RUBRIC.judge, JudgeSettings()))
    return targets_of(items, found.results)


if __name__ == "__main__":
    for row in measure(Path()):
        print("| " + " | ".join(row) + " |", flush=True)
