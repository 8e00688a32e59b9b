"""What an iteration of learning costs without the judge: proposing, merging, trying, checking; processor time on one core.

10,000 items of 200 words with the frequencies of a language, four a group, with reasons of some 50 words; 2,000 proposals; 10,000
patterns of one to three words.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.judging.patterns import PatternV2, merge_patterns, validate_provisional_patterns
from jumar.learning import GapItem, Scored, check_change, propose

if TYPE_CHECKING:
    from timing import Row

ITEMS, PROPOSALS, PATTERNS = 10_000, 2_000, 10_000


def measure(directory: Path) -> Iterator[Row]:
    del directory
    draw = random.Random(1)
    words = sorted({"".join(draw.choices("etaoinshrdlucmfwypvbgk", k=draw.randint(3, 9))) for _ in range(20_000)})
    draw.shuffle(words)
    weights = [1 / (rank + 10) for rank in range(len(words))]
    items: list[GapItem] = []
    for number in range(ITEMS):
        said = draw.choices(words, weights, k=200)
        reason = f"The item {' '.join(said[:8])} lacks {' '.join(draw.choices(words, weights, k=40))}"
        score = draw.uniform(1, 5)
        text, group = " ".join(said), str(number // 4)
        items.append(GapItem(id=str(number), text=text, expensive=score, cheap=3, group=group, reasoning=reason))
    found, took = _timed(lambda: propose(items, limit=PROPOSALS))
    yield f"proposals from {ITEMS:,} items", f"{took:.1f} s", f"{len(found):,} proposals", "seconds"
    judged = [{"gestalt": one.expensive} for one in items]
    _, took = _timed(lambda: validate_provisional_patterns(found, items, judged))
    yield f"{len(found):,} proposals tried on {ITEMS:,} items", f"{took:.1f} s", "the first design's counters", "seconds"
    before = [Scored(id=one.id, expensive=one.expensive, cheap=one.cheap, group=one.group) for one in items]
    after = [Scored(id=one.id, expensive=one.expensive, cheap=draw.uniform(1, 5), group=one.group) for one in items]
    _, took = _timed(lambda: check_change(before, after))
    yield f"regression check, {ITEMS:,} items, 1,000 resamples", f"{took:.1f} s", "three conditions", "seconds"
    patterns = [_pattern(number, draw, words, weights) for number in range(PATTERNS)]
    for texts in ([], [one.text for one in items[:2_000]], [one.text for one in items]):
        merged, took = _timed(lambda texts=texts: merge_patterns(patterns, texts))
        yield f"{PATTERNS:,} patterns merged, {len(texts):,} texts", f"{took:.1f} s", f"{len(merged.merges):,} merged", "≤ 10 s"


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def _pattern(number: int, draw: random.Random, words: list[str], weights: list[float]) -> PatternV2:
    phrase = " ".join(draw.choices(words, weights, k=draw.choice((1, 2, 2, 3))))
    kind: Any = draw.choice(("good", "bad"))
    when = datetime(2026, 1, 1, tzinfo=UTC)
    known = {"description": phrase, "keywords": [phrase], "phrases": [phrase], "source": "bench"}
    return PatternV2.model_validate({"id": f"p{number}", "type": kind, "discovered_at": when, **known})
