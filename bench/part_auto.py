"""Mode auto on recorded judgements: questions saved, wrong decisions; beside a constant that saves as many and the judge's flips.

Sets of ``$JUMAR_DATA/judged``. ``JUMAR_AUTO_SEEDS`` (5) times two fifths of the groups are new items; the scorecard, and its
intervals by out-of-fold errors, are fitted on the others. No audits: every decision is looked at.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

from part_controls import DATA, MADE, RUBRIC, SETS, recorded

from jumar.judging import CheapModeEvaluator
from jumar.judging.auto.escalation import AutoRules, plan, side_of
from jumar.judging.auto.intervals import ConformalIntervals, fit_intervals
from jumar.judging.cheap.scoring import CheapReading
from jumar.learning.material import Target
from jumar.learning.proof.evidence import compare_with_judge, fit_baselines
from jumar.learning.proof.split import split_items
from jumar.learning.scorecard.fit import fit_scorecard

SEEDS = int(os.environ.get("JUMAR_AUTO_SEEDS", "5"))
LINES = (2.5, 3.0, 3.5, 4.0)
CONFIDENCES = (0.9, 0.95)
Row = tuple[str, str, str, str]


@dataclass(frozen=True)
class Trial:
    """A seed: cheap and expensive scores of the new items, the intervals, which side most open items are on by line."""

    cheap: list[float]
    judge: list[float]
    intervals: ConformalIntervals
    opened: list[float]
    verdict: str


def measure(_directory: Path) -> Iterator[Row]:
    for name in SETS:
        targets = recorded(name)
        if not targets:
            yield (name, "not here", f"set JUMAR_DATA; looked in {DATA.name}", "")
            continue
        trials = [trial_of(targets, seed) for seed in range(SEEDS)]
        verdicts = [one.verdict for one in trials]
        said = ", ".join(f"{verdicts.count(one)} {one}" for one in sorted(set(verdicts)))
        ends = [statistics.fmean(one) for one in zip(*(_covered(one) for one in trials), strict=True)]
        held = f"lower {ends[0]:.1%}, upper {ends[1]:.1%}"
        yield (f"{name}: ends of the intervals at 90 % that hold", held, f"proofs: {said}", "≥ 90 %")
        for line in LINES:
            for confidence in CONFIDENCES:
                yield _row(name, line, confidence, figures(trials, line, confidence), targets)


def trial_of(targets: Sequence[Target], seed: int) -> Trial:
    """Return what was learned of three fifths of the groups, and the others as new items."""
    split = split_items([one.item for one in targets], seed=seed)
    opened = [one for one in targets if not split.is_sealed(one.item)]
    new = [one for one in targets if split.is_sealed(one.item)]
    scores, groups = [one.score for one in opened], [one.group for one in opened]
    fit = fit_scorecard([one.item for one in opened], scores, groups=groups, made=MADE, seed=seed)
    evaluator = CheapModeEvaluator(fit.patterns, rubric=RUBRIC)
    readings = [evaluator.read(one.item) for one in new]
    cheap = [one.gestalt if isinstance(one, CheapReading) else 3.0 for one in readings]
    found = compare_with_judge(new, cheap, fit_baselines(opened), seed=seed)
    return Trial(cheap, [one.score for one in new], fit_intervals(fit.predictions, scores, groups), scores, found.verdict)


def _covered(trial: Trial) -> tuple[float, float]:
    """Return on how many new items the lower and the upper end hold."""
    pairs = list(zip(trial.cheap, trial.judge, strict=True))
    ends = [trial.intervals.at(cheap, 0.9) for cheap, _ in pairs]
    low = sum(judge >= one for (_, judge), (one, _) in zip(pairs, ends, strict=True))
    high = sum(judge <= one for (_, judge), (_, one) in zip(pairs, ends, strict=True))
    return low / len(pairs), high / len(pairs)


@dataclass(frozen=True)
class Figures:
    """Over the trials: shares of the new items that are not escalated, and that are decided wrongly; the constant's errors."""

    saved: list[float]
    wrong: list[float]
    decided: int
    errors: int
    minority: list[float]

    @property
    def constant(self) -> float:
        """Share of all items that a constant gets wrong which decides as many of them, drawn at random."""
        return statistics.fmean(share * rate for share, rate in zip(self.saved, self.minority, strict=True))


def figures(trials: Sequence[Trial], line: float, confidence: float) -> Figures:
    """Return what mode auto saves and gets wrong; the constant says what most open items are."""
    found = Figures([], [], 0, 0, [])
    decided = errors = 0
    for trial in trials:
        scores = ((str(at), score) for at, score in enumerate(trial.cheap))
        planned = plan(scores, trial.intervals, AutoRules(line=line, confidence=confidence, audit=0))
        kept = [(one, judge) for one, judge in zip(planned, trial.judge, strict=True) if not one.escalated]
        mistakes = sum(side_of(one.cheap or 0.0, line) != side_of(judge, line) for one, judge in kept)
        found.saved.append(len(kept) / len(planned))
        found.wrong.append(mistakes / len(planned))
        decided, errors = decided + len(kept), errors + mistakes
        most = "above" if 2 * sum(side_of(one, line) == "above" for one in trial.opened) >= len(trial.opened) else "below"
        found.minority.append(sum(side_of(one, line) != most for one in trial.judge) / len(trial.judge))
    return replace(found, decided=decided, errors=errors)


def _row(name: str, line: float, confidence: float, found: Figures, targets: Sequence[Target]) -> Row:
    among = f"{found.errors / found.decided:.1%} of {found.decided} not escalated" if found.decided else "none decided"
    flips = _flips(targets, line)
    constant = f"constant {found.constant:.1%} of all, {statistics.fmean(found.minority):.1%} of those"
    return (
        f"{name}: line {line:g}, confidence {confidence:.0%}",
        f"{_shown(found.saved)} saved",
        f"wrong {_shown(found.wrong)} of all, {among}; {constant}",
        f"≤ {1 - confidence:.0%} of those; judge's flips {'—' if flips is None else f'{flips:.1%}'}",
    )


def _flips(targets: Sequence[Target], line: float) -> float | None:
    """Return how often two readings of one item are on different sides of the line; None without second readings."""
    pairs = [side_of(one, line) != side_of(other, line) for each in targets for one, other in permutations(each.readings, 2)]
    return sum(pairs) / len(pairs) if pairs else None


def _shown(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.1%} ± {statistics.pstdev(values):.1%}"
