"""One learning iteration without the judge: 10,000 items, 2,000 provisional patterns, in the time of one core.

The limit is what nobody can avoid: matching the patterns over the items once, and one product of the matrix of what fires.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import part_cheap
from timing import Row, shortest

from jumar.judging import Item
from jumar.learning.scorecard import FitSettings, fit_scorecard
from jumar.patterns import PatternSet, PatternV2
from jumar.patterns.matcher import PatternMatcher

ITEMS, PATTERNS, AIM = 10_000, 2_000, 10.0
MADE = datetime(2026, 1, 1, tzinfo=UTC)


def measure(_: Path) -> Iterator[Row]:
    draw = random.Random(1)
    items, scores = _items(draw)
    groups = [item.group for item in items]
    proposals = _proposals(draw)
    matcher = PatternMatcher(PatternSet(version="2.0", patterns=proposals))

    def fit(*, mine: bool) -> None:
        fit_scorecard(items, scores, groups=groups, made=MADE, proposals=proposals, settings=FitSettings(mine_phrases=mine))

    fit(mine=False)
    scan, whole, mined = shortest(
        [lambda: [matcher.fired(item.text) for item in items], lambda: fit(mine=False), lambda: fit(mine=True)],
        rounds=2,
        clock=time.process_time,
    )
    what = f"fit and matching, {ITEMS:,} items, {PATTERNS:,} provisional patterns"
    yield what, f"{whole:.1f} s", f"matching alone {scan:.2f} s: {whole / scan:.0f}×", f"≤ {AIM:.0f} s on one core"
    yield "… and words of the items as candidates", f"{mined:.1f} s", f"matching alone: {mined / scan:.0f}×", f"≤ {AIM:.0f} s"


def _items(draw: random.Random) -> tuple[list[Item], list[float]]:
    items: list[Item] = []
    scores: list[float] = []
    for number in range(ITEMS):
        words = part_cheap.sentence(draw, draw.randint(20, 180))
        prompt = part_cheap.sentence(draw, 40)
        items.append(Item(f"i{number}", f"{words}.", prompt=prompt, group=f"g{number // 5}"))
        scores.append(min(5.0, max(1.0, 2.0 + len(words) / 600 + draw.gauss(0, 0.6))))
    return items, scores


def _proposals(draw: random.Random) -> list[PatternV2]:
    found: list[PatternV2] = []
    for number in range(PATTERNS):
        phrase = f"{draw.choice(part_cheap.WORDS)} {draw.choice(part_cheap.SMALL)}"
        fields = {
            "id": f"p{number}",
            "type": draw.choice(["good", "bad"]),
            "description": phrase,
            "keywords": [],
            "phrases": [phrase],
        }
        found.append(PatternV2.model_validate({**fields, "source": "bench", "discovered_at": MADE, "status": "provisional"}))
    return found
