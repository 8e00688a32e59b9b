"""What looking again is worth: loops whose true quality is known, as a table. ``python bench/noise_figures.py``.

The true quality of twelve passes is a random walk; a scorer reads each twice, with normal noise. Each loop is selected from three
times: by the highest score, by the tie rule alone, and with finalists scored again. All of it runs through the rules that
``jumar run`` uses; only files and programs are missing.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from jumar.loop.ranking.choose import choose
from jumar.loop.ranking.confirmed import certainty, next_reading
from jumar.loop.ranking.noise import Evidence, select
from jumar.model import IterationView, NoiseRules, Reading, ScoreReading, SelectionCriteria
from jumar.model.records import Repeats

PASSES = 12
REPEAT = 2
LOOPS = 150
CRITERIA = SelectionCriteria(mode="highest_quality", threshold=None)
SCENARIOS = {
    "improves by half a point an iteration": (0.5, 1.5, 3.0),
    "wanders": (0.0, 2.0, 3.0),
    "wanders far": (0.0, 5.0, 3.0),
    "does not change at all": (0.0, 0.0, 3.0),
}
"""Drift and standard deviation of a step of the true quality, standard deviation of one answer; points."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One loop. What is lost against the truly best pass, by rule; then what is told and what is true of the chosen one."""

    highest: float
    ties: float
    again: float
    readings: int
    naive_optimism: float
    told_optimism: float
    true_optimism: float
    width: float


def outcome(seed: int, drift: float, step: float, noise: float) -> Outcome:
    """Return what becomes of one loop."""
    chance = random.Random(seed)
    truth = [60.0]
    for _ in range(PASSES):
        truth.append(truth[-1] + chance.gauss(drift, step))

    def read(number: int) -> Repeats:
        answers = (chance.gauss(truth[number], noise) / 100 for _ in range(REPEAT))
        return Repeats("worth", tuple(min(1.0, max(0.0, answer)) for answer in answers))

    views: list[IterationView] = []
    for number in range(PASSES + 1):
        answers = read(number)
        score = fmean(answers.scores)
        views.append(IterationView(number=number, score=round(100 * score, 4), dimensions={"worth": score}, repeats=(answers,)))
    start = Evidence(views=tuple(views))
    evidence = start
    while (wanted := next_reading(evidence, CRITERIA, held_out=False)) is not None:
        scores = read(wanted.iteration).scores
        reading = Reading(
            number=len(evidence.readings) + 1,
            kind=wanted.kind,
            iteration=wanted.iteration,
            at="",
            attempt=None,
            score=round(100 * fmean(scores), 4),
            dimensions={"worth": fmean(scores)},
            readings=(ScoreReading(dimension="worth", score=fmean(scores), repeats=scores),),
        )
        evidence = replace(evidence, readings=(*evidence.readings, reading))
    highest = choose(views, CRITERIA)
    ties = select(replace(start, rules=NoiseRules(rescore=0)), CRITERIA)
    again = select(evidence, CRITERIA)
    told = certainty(evidence, CRITERIA, again)
    if told is None or told.optimism is None or told.optimism_width is None:
        raise AssertionError("a noisy loop is confirmed")
    best = max(truth)
    return Outcome(
        highest=best - truth[highest.selected_iteration],
        ties=best - truth[ties.selected_iteration],
        again=best - truth[again.selected_iteration],
        readings=len(evidence.readings),
        naive_optimism=highest.quality_score - truth[highest.selected_iteration],
        told_optimism=told.optimism,
        true_optimism=again.quality_score - truth[again.selected_iteration],
        width=told.optimism_width,
    )


def outcomes(loops: int = LOOPS) -> Iterator[tuple[str, list[Outcome]]]:
    """Yield each scenario's name and its loops."""
    for name, (drift, step, noise) in SCENARIOS.items():
        yield name, [outcome(seed, drift, step, noise) for seed in range(loops)]


def lines(scenarios: Mapping[str, list[Outcome]]) -> list[str]:
    """Return the lines of the table. ``±`` is a 95 % interval of the mean."""
    made = [
        "| true quality | lost: highest score | lost: ties only | lost: scored again | optimism: highest score | told | true |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in scenarios.items():
        columns = (
            [one.highest for one in found],
            [one.ties for one in found],
            [one.again for one in found],
            [one.naive_optimism for one in found],
            [one.told_optimism for one in found],
            [one.true_optimism for one in found],
        )
        made.append(f"| {name} | " + " | ".join(_mean(column) for column in columns) + " |")
    return made


def _mean(values: list[float]) -> str:
    return f"{fmean(values):.1f} ± {1.96 * stdev(values) / math.sqrt(len(values)):.1f}"


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines(dict(outcomes()))) + "\n")
