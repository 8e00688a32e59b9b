"""Generated items with planted effects, what a judge would say of them, and a small set of patterns for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from jumar.judging import Item, builtin_rubric
from jumar.judging.items.item import digest_of
from jumar.judging.patterns import PatternSet, PatternV2
from jumar.judging.proofs import Proof, ProofJudge
from jumar.learning.material import Target
from jumar.learning.proof.make import look_at, make_proof
from jumar.learning.proof.split import Split, split_items
from jumar.learning.run.prove import LOOKS

MADE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WORDS = [
    *("table", "river", "stone", "paper", "window", "garden", "letter", "bridge"),
    *("market", "winter", "corner", "silver", "basket", "engine", "forest", "ladder"),
]


def planted_targets(groups: int, each: int, effects: dict[str, float], *, seed: int = 0, noise: float = 0.4) -> list[Target]:
    """Items whose scores are 3.35 plus the effects of the words in them, a part of the group, and noise; two readings each."""
    draw = np.random.default_rng(seed)
    targets: list[Target] = []
    for group in range(groups):
        level = draw.normal(0, 0.3)
        for number in range(each):
            present = [word for word in effects if draw.random() < 0.4]
            filler = [WORDS[int(place)] for place in draw.integers(0, len(WORDS), int(draw.integers(10, 60)))]
            words = [*filler, *present]
            draw.shuffle(words)
            mean = 3.35 + level + sum(effects[word] for word in present)
            readings = tuple(float(one) for one in np.clip(mean + draw.normal(0, noise, 2), 1, 5))
            item = Item(f"i{group}-{number}", " ".join(words) + ".", group=f"g{group}")
            targets.append(Target(item, (readings[0] + readings[1]) / 2, readings))
    return targets


def set_of(effects: dict[str, float], weight: float = 1.0) -> PatternSet:
    """A pattern a word, good or bad as its effect."""
    return PatternSet(
        version="2.0",
        patterns=[
            PatternV2(
                id=f"p_{word}",
                type="good" if effect > 0 else "bad",
                description=f"says {word}",
                keywords=[word],
                phrases=[word],
                weight=weight,
                source="test",
                discovered_at=MADE,
            )
            for word, effect in effects.items()
        ],
    )


def parts(targets: list[Target], *, seed: int = 0) -> tuple[Split, list[Target], list[Target]]:
    """The split, the sealed targets and the open ones."""
    split = split_items([one.item for one in targets], seed=seed)
    return split, [one for one in targets if split.is_sealed(one.item)], [one for one in targets if not split.is_sealed(one.item)]


def small_proof(*, groups: int = 60, each: int = 3, seed: int = 0) -> tuple[Proof, list[Target], PatternSet]:
    """A proof of generated items, the targets and the set."""
    effects = {"velvet": 0.9, "rust": -0.9}
    targets = planted_targets(groups, each, effects, seed=seed)
    split, sealed, opened = parts(targets)
    patterns = set_of(effects, 2.0)
    rubric = builtin_rubric("text")
    judge = ProofJudge(
        identity="test",
        question_hash=digest_of(builtin_rubric("text").judge.model_dump(mode="json")),
        template=1,
        settings={"repeat": 2},
    )
    proof = make_proof(
        sealed=sealed,
        opened=opened,
        split=split,
        patterns=patterns,
        rubric=rubric,
        judge=judge,
        looks=look_at(1),
        created_at=MADE,
    )
    return proof, targets, patterns


def ridge_of_words(opened: Sequence[Target]):
    """A simple fit: the words that are in six items or more, and the length; a ridge with a fixed strength."""
    counted = Counter(word for one in opened for word in set(one.item.text.split()))
    words = [word for word, count in counted.items() if count >= 6]

    def features(items: Sequence[Item]):
        rows = [[float(word in one) for word in words] for one in (set(item.text.split()) for item in items)]
        return np.column_stack([np.ones(len(items)), np.log1p([len(item.text) for item in items]), np.asarray(rows)])

    x = features([one.item for one in opened])
    y = np.asarray([one.score for one in opened])
    strength = np.diag([0.0, 0.0] + [15.0] * len(words))
    weights = np.linalg.solve(x.T @ x + strength, x.T @ y)
    return lambda items: np.clip(features(items) @ weights, 1, 5).tolist()


def looks_made(output: Path) -> int:
    """Return how often the held-out items of a folder were looked at."""
    path = output / LOOKS
    return sum(bool(line.strip()) and '"of"' not in line for line in path.read_text().splitlines()) if path.exists() else 0
