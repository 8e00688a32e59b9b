"""What recorded loops of real agents show of best and last: ``python bench/loop_evidence.py DIRECTORY``, which holds loops.jsonl.

Each loop is taken as ``jumar import`` takes it: crashes and unknown statuses never rank, scores rank by the metric's direction.
Losses are shares of all that a loop gained, from its first score to its best. Intervals are 95 %, by bootstrap over the loops:
experiments of one loop are no independent ones.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import fmean, median, quantiles

from jumar.app.imports.history import Experiment, Fate, History
from jumar.app.imports.load import positions
from jumar.loop.ranking.noise import Evidence
from jumar.loop.ranking.ratchet import select_kept
from jumar.model import IterationView, SelectionCriteria
from jumar.model.records import Repeats

CRITERIA = SelectionCriteria(mode="highest_quality", threshold=None)
FATES: dict[str, Fate] = {"keep": "kept", "discard": "discarded", "crash": "crashed"}
RESAMPLES = 4000
MARGINS = (1, 5)
NOISE = (1, 5)
DRAWS = 8


@dataclass(frozen=True, slots=True)
class Loop:
    """``scores`` are those that rank, higher is better, 0–100 of the loop's own range; ``kept`` says which the agent kept.

    ``crashes`` counts what crashed; ``selected`` is the index that the rules of jumar select.
    """

    scores: tuple[float, ...]
    kept: tuple[bool, ...]
    crashes: int
    selected: int

    @property
    def gained(self) -> float:
        return max(self.scores) - self.scores[0]

    def lost(self, index: int) -> float:
        """Return how far a score is behind the best, as a share of what the loop gained."""
        return (max(self.scores) - self.scores[index]) / self.gained


def loops_of(directory: Path) -> list[Loop]:
    """Return the loops that gained anything."""
    found: list[Loop] = []
    for line in (directory / "loops.jsonl").read_text("utf-8").splitlines():
        recorded = json.loads(line)
        experiments = tuple(
            Experiment(
                line=each["n"],
                value=each["score"],
                fate=FATES.get(each["status"], "unknown"),
                status=each["status"],
                note="",
                commit="",
                at="",
            )
            for each in recorded["iterations"]
        )
        history = History(
            metric=recorded["metric"], direction=recorded["direction"], experiments=experiments, skipped=(), found=()
        )
        places = positions(history)
        ranking = [each for each in experiments if each.ranks]
        scores = tuple(places[each.value] for each in ranking if each.value is not None)
        views = tuple(IterationView(number=number, score=score) for number, score in enumerate(scores))
        loop = Loop(
            scores=scores,
            kept=tuple(each.fate == "kept" for each in ranking),
            crashes=sum(each.fate == "crashed" for each in experiments),
            selected=select_kept(Evidence(views=views), CRITERIA).selected_iteration,
        )
        if loop.gained > 0:
            found.append(loop)
    return found


def last(loop: Loop) -> int:
    return len(loop.scores) - 1


def kept_last(loop: Loop) -> int:
    return max((index for index, kept in enumerate(loop.kept) if kept), default=0)


def better_by(margin: float) -> Callable[[Loop], int]:
    """Return the rule that keeps what is better than what it has by more than ``margin`` per cent of the loop's gain."""

    def chosen(loop: Loop) -> int:
        held = 0
        for index, score in enumerate(loop.scores):
            if score > loop.scores[held] + margin / 100 * loop.gained:
                held = index
        return held

    return chosen


RULES: tuple[tuple[str, Callable[[Loop], int]], ...] = (
    ("the last experiment", last),
    ("what the agent kept last", kept_last),
    ("keep if better", better_by(0)),
    *((f"keep if better by {margin} % of the gain", better_by(margin)) for margin in MARGINS),
    ("jumar's default", lambda loop: loop.selected),
)


def interval(values: Sequence[float], statistic: Callable[[Sequence[float]], float], *, places: int = 0) -> str:
    """Return the 95 % interval of a statistic of per-loop values, in per cent."""
    chance = random.Random(0)
    drawn = sorted(statistic(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return f"{100 * drawn[int(0.025 * RESAMPLES)]:.{places}f}–{100 * drawn[int(0.975 * RESAMPLES)]:.{places}f}"


def share(values: Sequence[float], statistic: Callable[[Sequence[float]], float] = fmean) -> str:
    return f"{100 * statistic(values):.0f} % ({interval(values, statistic)})"


def table(loops: Sequence[Loop]) -> list[str]:
    """Return what each rule ends with."""
    made = [
        "| what is left at the end | not the best, of the loops | missing of the gain: median (quartiles) | missing on average |",
        "|---|---|---|---|",
    ]
    for name, rule in RULES:
        lost = [loop.lost(rule(loop)) for loop in loops]
        some = [each for each in lost if each > 0]
        spread = "—"
        if len(some) > 1:
            low, middle, high = (100 * each for each in quantiles(some, n=4))
            spread = f"{middle:.1f} % ({low:.1f}–{high:.1f})"
        made.append(f"| {name} | {share([float(each > 0) for each in lost])} | {spread} | {share(lost)} |")
    return made


def told(loops: Sequence[Loop]) -> list[str]:
    """Return what else is in them, one sentence a line."""
    ranked = sum(len(loop.scores) for loop in loops)
    after = [1 - (loop.scores.index(max(loop.scores)) + 1) / len(loop.scores) for loop in loops]
    before = [list(accumulate(loop.scores, max)) for loop in loops]
    idle = [
        fmean(score <= best for score, best in zip(loop.scores[1:], bests, strict=False))
        for loop, bests in zip(loops, before, strict=True)
    ]
    keeps = worse = thrown = better = 0
    spoiled: list[float] = []
    for loop in loops:
        held, slips = float("-inf"), 0
        for score, kept in zip(loop.scores, loop.kept, strict=True):
            keeps, thrown = keeps + (kept and held > float("-inf")), thrown + (not kept)
            slips += kept and score < held
            better += not kept and score > held
            held = max(held, score) if kept else held
        worse += slips
        spoiled.append(float(slips > 0))
    crashed = [float(loop.crashes > 0) for loop in loops]
    return [
        f"{len(loops)} loops gained something, with {ranked:,} scored experiments; {share(crashed)} had a crash.",
        f"{share(idle)} of an average loop's experiments after the first are no better than the best so far.",
        f"{share(after, median)} of the experiments of the median loop come after its best.",
        f"In {share(spoiled)} of the loops the agent kept something worse than what it had kept: {worse} of {keeps:,} times.",
        f"{better} of the {thrown:,} experiments that were thrown away were better than what was kept.",
    ]


def noisy(loops: Sequence[Loop], *, draws: int = DRAWS) -> list[str]:
    """Return what rules lose where each score is read with noise: the recorded one is taken for the truth."""
    made = [
        "| noise (sd, of the gain) | keep if better | keep if better by twice the noise | jumar, each scored three times |",
        "|---|---|---|---|",
    ]
    for level in NOISE:
        lost: dict[str, list[float]] = {"better": [], "apart": [], "jumar": []}
        for place, loop in enumerate(loops):
            for name, values in lost.items():
                values.append(
                    fmean(loop.lost(_read(loop, name, level, random.Random(f"{place} {draw}"))) for draw in range(draws))
                )
        cells = [f"{100 * fmean(values):.1f} % ({interval(values, fmean, places=1)})" for values in lost.values()]
        made.append(f"| {level} % | {' | '.join(cells)} |")
    return made


def _read(loop: Loop, rule: str, level: float, chance: random.Random) -> int:
    """Return what a rule ends with where every reading of a score is off by chance."""
    width = level / 100 * loop.gained
    if rule != "jumar":
        margin = 2 * width if rule == "apart" else 0.0
        held, seen = 0, chance.gauss(loop.scores[0], width)
        for index, score in enumerate(loop.scores[1:], 1):
            reading = chance.gauss(score, width)
            if reading > seen + margin:
                held, seen = index, reading
        return held
    views: list[IterationView] = []
    for number, score in enumerate(loop.scores):
        answers = tuple(min(1.0, max(0.0, chance.gauss(score, width) / 100)) for _ in range(3))
        repeats = (Repeats("metric", answers),)
        mean = fmean(answers)
        views.append(IterationView(number=number, score=100 * mean, dimensions={"metric": mean}, repeats=repeats))
    result = select_kept(Evidence(views=tuple(views)), CRITERIA)
    return result.stands


if __name__ == "__main__":
    known = loops_of(Path(sys.argv[1]))
    sys.stdout.write("\n".join([*table(known), "", *noisy(known), "", *told(known)]) + "\n")
