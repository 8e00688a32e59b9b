"""What a file of items could prove, before anything is learned: how many groups a verdict needs for an effect. Pure.

An effect is the rank correlation with the judge of a set whose errors are as small as that correlation allows, where the length
of the texts says nothing. A verdict needs all of its intervals above 0: here, with four chances in five. What needs most items is
nearly always to err less than a constant. Simulated verdicts came out so in 70 to 95 of 100 cases.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from jumar.core.text import number, plural
from jumar.judging.agreement import group_numbers
from jumar.judging.items.item import Item
from jumar.judging.tracking import FEWEST_GROUPS, FEWEST_ITEMS
from jumar.learning.material import Target
from jumar.learning.proof.evidence import NoiseCeiling, noise_ceiling
from jumar.learning.proof.split import FEWEST_TO_SPLIT, group_key, split_items

EFFECTS: Final = (0.2, 0.4, 0.6)
INTRACLASS: Final = 0.2
"""How alike a set's gains are in one group, at least: what a set misses in one item it misses in others of the group."""

_ERRORS: Final = 1.96 + 0.84  # standard errors: an interval of 95 % above 0 with a chance of 80 %
_DRAWN: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectNeeds:
    """What an effect needs: held-out groups, and groups in the whole file at this share of held-out ones."""

    effect: float
    heldout_groups: int
    groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a file could prove.

    ``heldout`` is the share of the groups that is held out. ``smallest`` is the least effect that these could prove, None for
    none; ``fewest_groups`` is how many the file has to have for any verdict but ``not_proven``. ``intraclass`` is the correlation
    inside of groups that it is computed with, ``ceiling`` that of the judge's noise, None where it is not known; ``judge`` says
    what the recorded scores say of the judge.
    """

    items: int
    groups: int
    heldout: float
    heldout_items: int
    heldout_groups: int
    intraclass: float
    effects: tuple[EffectNeeds, ...]
    smallest: float | None
    fewest_groups: int
    ceiling: NoiseCeiling | None
    judge: str

    @property
    def held(self) -> str:
        """The held-out items and groups in words."""
        return f"{plural(self.heldout_items, 'held-out item')} in {plural(self.heldout_groups, 'group')}"

    @property
    def says(self) -> str:
        """What this file could prove, in a sentence."""
        if self.smallest is None:
            return (
                f"{self.held} cannot prove anything: {FEWEST_ITEMS} in {FEWEST_GROUPS} are the least, so give "
                f"{self.fewest_groups:,} groups or more"
            )
        told = f"{self.held} could prove a rank correlation with the judge of about {self.smallest:.2f} or more"
        if self.ceiling is not None and self.ceiling.spearman < self.smallest:
            told += (
                f", which the judge's own noise does not allow ({self.ceiling.spearman:.2f}): give more groups, or `--repeat 3`"
            )
        return told

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "says": self.says}

    def lines(self) -> list[tuple[str, str]]:
        """Return what a person is told: label and text."""
        few = self.groups < FEWEST_TO_SPLIT
        told = [
            ("items", f"{plural(self.items, 'item')} in {plural(self.groups, 'group')}"),
            ("held out", f"{self.heldout:.0%} of the groups: {self.held}"),
            ("judge", self.judge),
            ("effect", "the set's rank correlation with the judge"),
            *(
                ("", f"{one.effect} needs {one.heldout_groups:,} held-out groups, so {one.groups:,} groups in the file")
                for one in self.effects
            ),
        ]
        if few:
            told.append(
                (
                    "learning",
                    f"needs {FEWEST_TO_SPLIT} groups or more, and there {'is' if self.groups == 1 else 'are'} {self.groups}",
                )
            )
        return [*told, ("plan", self.says)]


def make_plan(items: Sequence[Item], *, heldout: float, seed: int = 0, judged: Sequence[Target] = ()) -> Plan:
    """Return what ``items``, copies of one text in one group, could prove with the share ``heldout`` of their groups held out.

    ``judged`` are open items with the judge's scores, where these are on file.
    """
    groups = len({group_key(item) for item in items})
    sealed: Sequence[Item] = ()
    if groups >= FEWEST_TO_SPLIT:
        sealed = split_items(items, seed=seed, heldout=heldout).part(items, "sealed")
    sealed_groups = len({group_key(item) for item in sealed})
    each = len(items) / groups if groups else 1.0
    intraclass = max(INTRACLASS, _intraclass(judged))
    fewest = max(FEWEST_GROUPS, math.ceil(FEWEST_ITEMS / each))

    def needed(effect: float) -> int:
        return max(fewest, math.ceil(_items_needed(effect) * (1 + (each - 1) * intraclass) / each))

    enough = sealed_groups >= FEWEST_GROUPS and len(sealed) >= FEWEST_ITEMS
    tried = (hundredths / 100 for hundredths in range(5, 100))
    return Plan(
        items=len(items),
        groups=groups,
        heldout=heldout,
        heldout_items=len(sealed),
        heldout_groups=sealed_groups,
        intraclass=intraclass,
        effects=tuple(
            EffectNeeds(effect=one, heldout_groups=needed(one), groups=math.ceil(needed(one) / heldout)) for one in EFFECTS
        ),
        smallest=next((one for one in tried if needed(one) <= sealed_groups), None) if enough else None,
        fewest_groups=math.ceil(fewest / heldout),
        ceiling=(ceiling := noise_ceiling(judged, judged)),
        judge=_judge_text(ceiling, judged),
    )


@functools.cache
def _items_needed(effect: float) -> int:
    """Return how many independent items show an effect: that it errs less than a constant, and ranks better than the length."""
    judge, other = np.random.default_rng(0).standard_normal((2, _DRAWN))
    own = effect * (effect * judge + math.sqrt(1 - effect**2) * other)
    gain = np.abs(judge) - np.abs(judge - own)
    errs_less = (_ERRORS * float(gain.std()) / float(gain.mean())) ** 2
    ranks_better = _ERRORS**2 * ((1 - effect**2) ** 2 + 1) / effect**2
    return math.ceil(max(errs_less, ranks_better))


def _intraclass(judged: Sequence[Target]) -> float:
    """Return how alike scores in one group are, from 0 to 1: the intraclass correlation of one-way analysis of variance.

    0 where no group has several items, or all scores are the same.
    """
    scores = np.asarray([one.score for one in judged], dtype=np.float64)
    numbers = group_numbers([one.group for one in judged])
    sizes = np.bincount(numbers)
    groups, items = sizes.size, scores.size
    if groups < 2 or items == groups:
        return 0.0
    means = np.bincount(numbers, scores) / sizes
    between = float((sizes * (means - scores.mean()) ** 2).sum()) / (groups - 1)
    within = float(((scores - means[numbers]) ** 2).sum()) / (items - groups)
    size = (items - float((sizes**2).sum()) / items) / (groups - 1)
    spread = between + (size - 1) * within
    return 0.0 if spread <= 0 else min(1.0, max(0.0, (between - within) / spread))


def _judge_text(ceiling: NoiseCeiling | None, judged: Sequence[Target]) -> str:
    if len(judged) > 1 and len({one.score for one in judged}) == 1:
        return f"it gave all open items the score {number(judged[0].score)}: there is nothing to learn from it"
    if ceiling is None:
        few = "too few of its recorded scores have repeats, or they differ by no more than noise"
        return f"its own noise is not known: {few if judged else 'no recorded scores were read (`--judge replay:FILE`)'}"
    return (
        f"reliability {number(ceiling.reliability)}: no set can rank better than {number(ceiling.spearman)}, or have an MAE "
        f"below about {number(ceiling.mae)}"
    )
