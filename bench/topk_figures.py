"""The table of strategies with their skill, computed anew from the public runs: ``python bench/topk_figures.py DIRECTORY``.

The directory has ``cranfield_minilm.jsonl``, ``vaswani_minilm.jsonl`` and ``clinc_minilm.jsonl``. The figures are those that
``jumar topk compare FILE`` and ``jumar topk tune FILE`` print. tests/topk/test_topk_figures.py holds the docs to them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from jumar.topk.rankings import read_runs
from jumar.topk.strategies.fixed_k import FixedKSelectionStrategy
from jumar.topk.tuning.metrics import Estimate, compare
from jumar.topk.tuning.tune import Tuning, tune

RUNS = {"Cranfield": "cranfield_minilm.jsonl", "Vaswani": "vaswani_minilm.jsonl", "CLINC150": "clinc_minilm.jsonl"}
MAX_K = 20


class Default(NamedTuple):
    """What a strategy reaches without being told anything."""

    f1: float
    skill: float
    mean_k: float


class Run(NamedTuple):
    defaults: dict[str, Default]
    fixed: tuple[float, int]
    oracle: float
    tuning: Tuning


def measured(directory: Path) -> list[Run]:
    """Return one entry a run, in the order of ``RUNS``."""
    return [_run(directory / name) for name in RUNS.values()]


def _run(path: Path) -> Run:
    queries = read_runs(path)
    found = compare(queries, max_k=MAX_K)
    fixed = compare(queries, [FixedKSelectionStrategy(k) for k in range(1, MAX_K + 1)], max_k=MAX_K)
    best = max(fixed.rows, key=lambda row: _value(row.f1))
    return Run(
        {row.strategy: Default(_value(row.f1), _value(row.skill), _value(row.mean_k)) for row in found.rows},
        (_value(best.f1), int(best.params["k"])),
        _value(found.oracle_f1),
        tune(queries, max_k=MAX_K),
    )


def _value(estimate: Estimate) -> float:
    assert estimate.value is not None
    return estimate.value


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def share(value: float, *, signed: bool = False) -> str:
    """Return three digits: ``.289``, with a sign ``+.007``."""
    text = f"{value:+.3f}" if signed else f"{value:.3f}"
    return text.replace("0.", ".", 1).replace("-", "−")


def ranked(runs: list[Run]) -> list[str]:
    """Return the strategies, the best mean F1 first."""
    return sorted(runs[0].defaults, key=lambda name: -mean([run.defaults[name].f1 for run in runs]))


def table(runs: list[Run]) -> str:
    lines = [f"| F1 · skill (mean k) | {' | '.join(RUNS)} | mean F1 |", "|---" * (len(RUNS) + 2) + "|"]
    for name in ranked(runs):
        cells = [
            f"{share(one.f1)} · {share(one.skill, signed=True)} ({one.mean_k:.1f})"
            for one in (run.defaults[name] for run in runs)
        ]
        cells.append(share(mean([run.defaults[name].f1 for run in runs])))
        lines.append(f"| [`{name}`](../topk/{name}.md) | {' | '.join(cells)} |")
    tuned = [_value(run.tuning.quality) for run in runs]
    lines.append(f"| **`jumar topk tune`**, held out | {' | '.join(map(share, [*tuned, mean(tuned)]))} |")
    cells = [f"{share(f1)} · +.000 ({k})" for f1, k in (run.fixed for run in runs)]
    lines.append(f"| best fixed k, in hindsight | {' | '.join(cells)} | {share(mean([run.fixed[0] for run in runs]))} |")
    oracles = [run.oracle for run in runs]
    lines.append(f"| oracle: best k of each query, in hindsight | {' | '.join(map(share, [*oracles, mean(oracles)]))} |")
    return "\n".join(lines)


def verdict(runs: list[Run]) -> str:
    """Return what the table means, with intervals."""
    best = ranked(runs)[0]
    tuned, default = mean([_value(run.tuning.quality) for run in runs]), mean([run.defaults[best].f1 for run in runs])
    over_default = [f"{_with_interval(run.tuning.over_default)} on {name}" for name, run in zip(RUNS, runs, strict=True)]
    over_fixed = [_with_interval(run.tuning.gain) for run in runs]
    return "\n".join(
        [
            f"**Missed:** a tuned choice was to be .05 above the best untuned default. It is {tuned - default:.2f} above:"
            f" {share(tuned)} against {share(default)}".replace("0.", "."),
            f"(`{best}`). Against the best default of each run, which only its labels tell, held out, with 95 % intervals:",
            f"{', '.join(over_default)}.",
            f"Against a tuned fixed k: {', '.join(over_fixed)}: better than that on {_better(runs)} of {len(runs)}.",
        ]
    )


def _better(runs: list[Run]) -> str:
    return ("none", "one", "two", "all")[sum(not run.tuning.fixed_k_as_good for run in runs)]


def _with_interval(estimate: Estimate) -> str:
    assert estimate.low is not None
    assert estimate.high is not None
    low, high = share(estimate.low, signed=True), share(estimate.high, signed=True)
    return f"{share(_value(estimate), signed=True)} ({low} to {high})"


def main() -> None:
    runs = measured(Path(sys.argv[1]))
    print(table(runs), verdict(runs), sep="\n\n")


if __name__ == "__main__":
    main()
