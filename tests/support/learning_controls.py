"""Does the machinery find what is not there, and does it find what is? Null and positive control. Pure.

Null: the judge's scores are dealt out anew, among all items or inside of groups, and everything is done with them as with the
real ones. Whatever tracks or is supported then was found in noise. Positive: items are generated with phrases that are worth a
known number of points, and the shares that are found are the power. A learner that commits nothing passes the first and fails the
second.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from jumar.judging.items.item import Item
from jumar.learning.material import Target
from jumar.learning.proof.evidence import ProofEvidence, compare_with_judge, fit_baselines
from jumar.learning.proof.split import group_key, split_items
from jumar.learning.proof.support import Firing, Sign, ledger_entries, support
from jumar.learning.state import LedgerEntry, ProposalLedger

__all__ = [
    "ControlRun",
    "Fit",
    "Planted",
    "Propose",
    "control_run",
    "most_by_chance",
    "planted_targets",
    "shuffled",
    "words_apart",
]

Fit = Callable[[Sequence[Target]], Callable[[Sequence[Item]], Sequence[float]]]
"""Learns from open targets; what it returns scores items."""

Propose = Callable[[Sequence[Target]], Sequence[tuple[str, Sign]]]
"""Proposes words, each with the direction that it is thought to have."""

_WORDS: Final = tuple(
    first + second
    for first in ("bar", "cor", "del", "fen", "gal", "hor", "jin", "kel", "lom", "mar")
    for second in ("ado", "ent", "ick", "olo", "ump", "ash", "ery", "isk", "oth", "una")
)


def shuffled(targets: Sequence[Target], how: Literal["across", "within"], seed: int) -> list[Target]:
    """Return the items with what the judge said of another one: of any, or of one of the same group. No verdict is lost."""
    draw = np.random.default_rng(seed)
    places: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(targets):
        places["" if how == "across" else group_key(one.item)].append(place)
    made = list(targets)
    for own in places.values():
        order: list[int] = draw.permutation(len(own)).tolist()
        for place, other in zip(own, order, strict=True):
            made[place] = replace(targets[own[other]], item=targets[place].item)
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """Generated items: ``groups`` of ``each``, in which ``good`` and ``bad`` phrases are worth ``effect`` points either way.

    A phrase stands in a share ``present`` of the items. To that come ``between`` (standard deviation of the groups),
    ``by_length`` (points for a length e times as long) and ``noise`` (of a reading). Scores are rounded to whole points, as
    judges give them.
    """

    groups: int = 80
    each: int = 4
    effect: float = 0.5
    good: int = 3
    bad: int = 2
    present: float = 0.3
    between: float = 0.4
    by_length: float = 0.3
    noise: float = 0.6

    @property
    def phrases(self) -> dict[str, float]:
        """What each planted word is worth."""
        return {f"good{number}": self.effect for number in range(self.good)} | {
            f"bad{number}": -self.effect for number in range(self.bad)
        }


def planted_targets(planted: Planted, seed: int) -> list[Target]:
    """Return generated items with what a judge says of them who sees the planted phrases, the length and the group."""
    draw = np.random.default_rng(seed)
    targets: list[Target] = []
    expected = sum(planted.phrases.values()) * planted.present
    for group in range(planted.groups):
        level = draw.normal(0, planted.between)
        for number in range(planted.each):
            count = int(np.exp(draw.normal(3.6, 0.4)))
            words = [_WORDS[int(place)] for place in draw.integers(0, len(_WORDS), count)]
            found = [word for word in planted.phrases if draw.random() < planted.present]
            words += found
            draw.shuffle(words)
            worth = sum(planted.phrases[word] for word in found) - expected
            score: float = 3.2 + level + worth + planted.by_length * (math.log(count) - 3.6) + draw.normal(0, planted.noise)
            reading = float(min(5, max(1, round(score))))
            targets.append(Target(Item(f"{group}-{number}", " ".join(words), group=f"group {group}"), reading, (reading,)))
    return targets


def words_apart(targets: Sequence[Target], most: int = 40, least: int = 6) -> list[tuple[str, Sign]]:
    """Return the words, in ``least`` items or more, whose items differ most in score from the others of their groups."""
    means: dict[str, list[float]] = defaultdict(list)
    for one in targets:
        means[group_key(one.item)].append(one.score)
    scores: dict[str, list[float]] = defaultdict(list)
    for one in targets:
        own = means[group_key(one.item)]
        for word in set(one.item.text.lower().split()):
            scores[word].append(one.score - sum(own) / len(own))
    known = {word: found for word, found in scores.items() if len(found) >= least}
    strength = {word: sum(found) / len(found) ** 0.5 for word, found in known.items()}
    chosen = sorted(strength, key=lambda word: (-abs(strength[word]), word))[:most]
    return [(word, "good" if strength[word] > 0 else "bad") for word in chosen]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRun:
    """One iteration: the evidence of the held-out items, how many words were proposed, and which of them were supported."""

    evidence: ProofEvidence
    proposed: int
    supported: frozenset[str]

    def to_json(self) -> dict[str, Any]:
        return {"verdict": self.evidence.verdict, "proposed": self.proposed, "supported": sorted(self.supported)}


def control_run(
    targets: Sequence[Target], fit: Fit, propose: Propose = words_apart, *, seed: int, heldout: float = 0.4
) -> ControlRun:
    """Split; propose and fit on the open items; prove the fit, and test each proposal once, on the held-out ones."""
    split = split_items([one.item for one in targets], seed=seed, heldout=heldout)
    sealed = [one for one in targets if split.is_sealed(one.item)]
    opened = [one for one in targets if not split.is_sealed(one.item)]
    score = fit(opened)
    found = compare_with_judge(
        sealed, [float(one) for one in score([one.item for one in sealed])], fit_baselines(opened), seed=seed
    )
    ledger = ProposalLedger().added(_tests(list(propose(opened)), sealed))
    return ControlRun(evidence=found, proposed=len(ledger.entries), supported=ledger.supported())


def _tests(words: Sequence[tuple[str, Sign]], tested: Sequence[Target]) -> list[LedgerEntry]:
    numbers = {word: place for place, (word, _) in enumerate(words)}
    rows = [[numbers[word] for word in set(one.item.text.lower().split()) if word in numbers] for one in tested]
    found = support(
        [one.score for one in tested],
        lengths=[one.length for one in tested],
        groups=[one.group for one in tested],
        firing=Firing.of_items(rows, len(words)),
        types=[kind for _, kind in words],
    )
    return ledger_entries([word for word, _ in words], found, 0)


def most_by_chance(runs: int, chance: float, certainty: float = 0.99) -> int:
    """Return how many of ``runs`` may go wrong at ``chance`` each before it is no chance any more: a binomial quantile."""
    from importlib import import_module

    stats: Any = import_module("scipy.stats")
    return int(stats.binom.ppf(certainty, runs, chance))
