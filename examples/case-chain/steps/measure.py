"""Measure what carrying does in every order of the cases, and with more or fewer facts an iteration: the README's last tables.

    python3 steps/measure.py limits cases/*.txt    seconds
    python3 steps/measure.py orders cases/*.txt    every order of the cases: half a minute for five

It calls the steps' functions without a process for each; a test holds it to what `jumar cases run` measures.
"""

import json
import sys
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from agent import diagnose
from augment import LIMIT, Graph, learn, missing_elements
from judge import judge
from reading import Reading, read

MODES = ("best", "last", "nothing")
ITERATIONS = 5
STOP = (9, 8, 8)


class Case(NamedTuple):
    report: str
    query: str
    reading: Reading


def load(path: str) -> Case:
    report, _, query = Path(path).read_text(encoding="utf-8").partition("\n---\n")
    return Case(report.strip(), query.partition("\n")[2].strip(), read(report.strip()))


def refine(case: Case, graph: dict, limit: int) -> list[tuple[tuple[float, float, float], dict]]:
    """Return the ranking and the graph of each iteration."""
    iterations: list[tuple[tuple[float, float, float], dict]] = []
    feedback: list[dict] = []
    for _ in range(ITERATIONS):
        candidate = Graph(json.loads(json.dumps(graph)))
        learn(candidate, case.reading, missing_elements(feedback), limit)
        graph = candidate.stored()
        feedback = judge(case.reading, case.report, diagnose(graph, case.query))
        overall = round(sum(each["score"] * each["weight"] for each in feedback), 2)
        ranking = (feedback[0]["score"], overall, feedback[1]["score"])
        iterations.append((ranking, graph))
        if all(value >= least for value, least in zip(ranking, STOP, strict=True)):
            break
    return iterations


def chain(cases: Sequence[Case], mode: str, limit: int = LIMIT) -> list[float]:
    """Return the overall score of each case's best iteration."""
    nothing: dict = {"entities": [], "relations": [], "metadata": {}}
    carried, scores = nothing, []
    for case in cases:
        iterations = refine(case, nothing if mode == "nothing" else carried, limit)
        best = max(iterations, key=lambda iteration: iteration[0])  # the earlier of equals
        scores.append(best[0][1])
        carried = best[1] if mode == "best" else iterations[-1][1]
    return scores


def limits(cases: Sequence[Case]) -> dict[str, list[float]]:
    return {mode: [round(mean(chain(cases, mode, limit)), 2) for limit in range(1, 7)] for mode in MODES}


def orders(cases: Sequence[Case]) -> list[float]:
    """Return how many orders there are; and for last and nothing: best above, best below, mean difference."""
    means = [{mode: mean(chain(order, mode)) for mode in MODES} for order in permutations(cases)]
    row: list[float] = [len(means)]
    for other in ("last", "nothing"):
        differences = [round(each["best"] - each[other], 6) for each in means]
        row += [sum(each > 0 for each in differences), sum(each < 0 for each in differences), round(mean(differences), 2)]
    return row


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] not in {"limits", "orders"}:
        sys.exit(__doc__)
    cases = [load(path) for path in sys.argv[2:]]
    print(json.dumps(limits(cases) if sys.argv[1] == "limits" else orders(cases)))


if __name__ == "__main__":
    main()
