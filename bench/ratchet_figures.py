"""What starting from the best is worth, against starting from the previous one: ``python bench/ratchet_figures.py [DIRECTORY]``.

Simulated loops whose true quality is known, each run twice with the same luck: iteration n of both draws the same numbers, only
what it starts from differs. The rules of ``jumar run`` decide what that is, what is selected and what the working directory is
left with.

With the directory of ``loops.jsonl`` also the recorded loops of real agents. They nearly all went back to their best, so what
they would have made of the previous state is not in them. Replayed is a model: each experiment changes the score by as much as
it did, from wherever it starts; it never falls below the worst that was recorded, and a crash changes nothing.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from jumar.loop.ranking.noise import Evidence
from jumar.loop.ranking.ratchet import choose_parent, select_kept
from jumar.model import IterationView, SelectionCriteria
from jumar.model.records import Repeats

ITERATIONS = 12
LOOPS = 200
CRITERIA = SelectionCriteria(mode="highest_quality", threshold=None)
RULES = ("previous", "best")
TESTS = 12
VALLEY = (50, 55, 60, 52, 44, 50, 58, 66, 74, 82, 90, 95, 100)
State = Any


@dataclass(frozen=True, slots=True)
class World:
    """What an iteration makes of a state; ``truth`` and ``seen`` are points, ``noise`` the standard deviation of one answer.

    ``goal`` is a score that a loop may be ended at.
    """

    name: str
    start: State
    step: Callable[[State, random.Random], State]
    truth: Callable[[State], float]
    goal: float
    seen: Callable[[State], float] | None = None
    noise: float = 0.0


def walk(drift: float, width: float) -> Callable[[State, random.Random], State]:
    return lambda state, chance: min(100.0, max(0.0, state + chance.gauss(drift, width)))


def mend(state: State, chance: random.Random) -> State:
    """Repair some of the failing tests, and break some of the others."""
    return tuple(chance.random() < (0.95 if passes else 0.15) for passes in state)


def same(state: State) -> float:
    return state


WORLDS = (
    World("improves a little each time", 60.0, walk(0.5, 1.5), same, 65),
    World("improves as often as it spoils", 60.0, walk(0, 3), same, 65),
    World("spoils more than it improves", 60.0, walk(-2, 4), same, 65),
    World("repairs and breaks tests", (True,) * 3 + (False,) * 9, mend, lambda state: 100 * sum(state) / TESTS, 90),
    World("improves a little, noisy scores", 60.0, walk(0.5, 1.5), same, 65, noise=3),
    World("improves as often as it spoils, noisy scores", 60.0, walk(0, 3), same, 65, noise=3),
    World("has to get worse before it gets better", 0, lambda state, _: min(TESTS, state + 1), lambda state: VALLEY[state], 90),
    World("improves, and nothing measures it", 60.0, walk(1, 1), same, 70, seen=lambda _: 50.0),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One loop: the true quality that the working directory is left with, and how many iterations it took to the goal."""

    quality: float
    needed: int


def run(world: World, seed: int, rule: str) -> Run:
    """Return what becomes of one loop."""
    states: list[State] = [world.start]
    views: list[IterationView] = []
    for number in range(ITERATIONS + 1):
        chance = random.Random(f"{world.name} {seed} {number}")
        parent = choose_parent(Evidence(views=tuple(views)), CRITERIA, rule) if number else None
        if parent is not None:
            states.append(world.step(states[parent], chance))
        exact = (world.seen or world.truth)(states[-1])
        answers = (
            [min(100.0, max(0.0, chance.gauss(exact, world.noise))) / 100 for _ in range(2)] if world.noise else [exact / 100]
        )
        worth = fmean(answers)
        repeats = (Repeats("worth", tuple(answers)),) if world.noise else ()
        views.append(
            IterationView(number=number, score=round(100 * worth, 4), dimensions={"worth": worth}, repeats=repeats, parent=parent)
        )
    evidence = Evidence(views=tuple(views))
    result = select_kept(evidence, CRITERIA)
    left = result.selected_iteration if result.kept is None else result.kept
    reached = (number for number, state in enumerate(states) if world.truth(state) >= world.goal)
    return Run(world.truth(states[left]), next(reached, ITERATIONS))


def simulated(loops: int = LOOPS) -> Iterator[tuple[str, list[tuple[Run, Run]]]]:
    """Yield each world's name and its loops, each by both rules."""
    for world in WORLDS:
        yield world.name, [(run(world, seed, "previous"), run(world, seed, "best")) for seed in range(loops)]


def lines(worlds: Sequence[tuple[str, list[tuple[Run, Run]]]]) -> list[str]:
    """Return the lines of the table. ``±`` is a 95 % interval of the mean difference."""
    made = [
        "| the agent | `previous` | `best` | difference | better, equal, worse | iterations to the goal |",
        "|---|---|---|---|---|---|",
    ]
    for name, pairs in worlds:
        gains = [best.quality - previous.quality for previous, best in pairs]
        error = 1.96 * stdev(gains) / math.sqrt(len(gains))
        means = [fmean(pair[place].quality for pair in pairs) for place in (0, 1)]
        needed = [fmean(pair[place].needed for pair in pairs) for place in (0, 1)]
        shares = " / ".join(f"{100 * share:.0f} %" for share in compared(gains))
        made.append(
            f"| {name} | {means[0]:.1f} | {means[1]:.1f} | {fmean(gains):+.1f} ± {error:.1f} | {shares} "
            f"| {needed[0]:.1f} → {needed[1]:.1f} |"
        )
    return made


def compared(gains: Sequence[float]) -> tuple[float, float, float]:
    """Return the shares of gains above 0, of 0, and below."""
    better, worse = (sum(sign * gain > 1e-9 for gain in gains) / len(gains) for sign in (1, -1))
    return better, 1 - better - worse, worse


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded loop. Gains are shares of what it had gained itself, from its first score to its best.

    ``apart`` is the share of experiments for which the two rules would start from different ones; ``previous`` says how far the
    best of the replay from the previous one is behind the best.
    """

    apart: float
    previous: float


def recorded(directory: Path) -> list[Recorded]:
    """Return the loops of ``loops.jsonl`` that gained anything; experiments without a score crashed."""
    found: list[Recorded] = []
    for line in (directory / "loops.jsonl").read_text("utf-8").splitlines():
        loop = json.loads(line)
        sign = 1 if loop["direction"] == "max" else -1
        scores = [sign * one["score"] for one in loop["iterations"] if one["score"] is not None and math.isfinite(one["score"])]
        bests = list(accumulate(scores, max))
        gained, floor = bests[-1] - scores[0], min(scores)
        if gained <= 0:
            continue
        chain = [scores[0]]
        for score, best in zip(scores[1:], bests, strict=False):
            chain.append(max(floor, chain[-1] + score - best))
        scaled = [100 * (score - floor) / (bests[-1] - floor) for score in scores]
        views = tuple(IterationView(number=number, score=round(score, 4)) for number, score in enumerate(scaled))
        starts = [choose_parent(Evidence(views=views[:end]), CRITERIA, "best") for end in range(1, len(views))]
        apart = fmean(start != previous for previous, start in enumerate(starts))
        found.append(Recorded(apart, (bests[-1] - max(chain)) / gained))
    return found


def told(loops: Sequence[Recorded]) -> list[str]:
    """Return what the recorded loops say, one sentence a line."""
    worse, equal, better = (f"{100 * share:.0f} %" for share in compared([one.previous for one in loops]))
    apart = 100 * fmean(one.apart for one in loops)
    missing = 100 * median(one.previous for one in loops if one.previous > 1e-9)
    return [
        f"{len(loops)} recorded loops gained something; in {apart:.0f} % of an average one's experiments the rules start apart.",
        f"Replayed from the previous one, the best is worse in {worse}, equal in {equal}, better in {better}.",
        f"Where it is worse, {missing:.0f} % of the gain is missing (median).",
    ]


if __name__ == "__main__":
    shown = lines(list(simulated()))
    if len(sys.argv) > 1:
        shown += ["", *told(recorded(Path(sys.argv[1])))]
    sys.stdout.write("\n".join(shown) + "\n")
