"""Matching patterns: 471, 10,000 and 100,000 of them over texts of 0.8 KB, on one core.

Against one bare scan by the library that finds the phrases (over text in lower case already, every match as it comes, no word
boundaries, each automaton that it has: the fastest counts), and against the naive loop `any(phrase in text …)`, which is timed on
few texts and scaled up. Texts are drawn from a vocabulary with the frequencies of a language; phrases are one to three of
its words, as many of one word as of three and twice as many of two. The patterns that migration makes are there too, where the
recorded data is.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ahocorasick_rs
from timing import Row, shortest

from jumar.judging.patterns import PatternMatcher, PatternSet, PatternV2, migrate_existing_patterns

TEXTS, LENGTH = 4_000, 800
NAIVE = {471: 400, 10_000: 20, 100_000: 2}
AIMS = {471: 50_000, 10_000: 20_000, 100_000: 20_000}
DATA = Path(os.environ.get("JUMAR_DATA") or Path(__file__).parents[2] / "shared" / "data")


def measure(directory: Path) -> Iterator[Row]:
    del directory
    draw = random.Random(1)
    words = sorted(
        {"".join(draw.choices("etaoinshrdlucmfwypvbgkjqxz", range(26, 0, -1), k=draw.randint(3, 10))) for _ in range(20_000)}
    )
    draw.shuffle(words)
    weights = [1 / (rank + 3) for rank in range(len(words))]
    texts = [" ".join(draw.choices(words, weights, k=200))[:LENGTH].capitalize() for _ in range(TEXTS)]
    for count, naive in NAIVE.items():
        phrases: set[str] = set()
        while len(phrases) < count:
            phrases.add(" ".join(draw.choices(words[300:], k=draw.choice((1, 2, 2, 3)))))
        yield from _one(f"{count:,} patterns", [_pattern(phrase) for phrase in sorted(phrases)], texts, naive, AIMS[count])
    recorded = DATA / "patterns" / "learned_patterns_v1.json"
    if recorded.exists():
        found = PatternSet.model_validate(migrate_existing_patterns(json.loads(recorded.read_text())))
        sentences = [line for path in sorted((DATA / "stories").glob("*.txt")) for line in path.read_text().splitlines() if line]
        joined = ["\n".join(draw.sample(sentences, 8))[:LENGTH] for _ in range(TEXTS)]
        phrases_of = len({phrase for one in found.patterns for phrase in one.phrases})
        expressions = sum(one.regex is not None for one in found.patterns)
        name = f"{len(found.patterns)} migrated patterns ({phrases_of:,} phrases, {expressions} expressions), real stories"
        yield from _one(name, found.patterns, joined, 20, 50_000)


def _pattern(phrase: str) -> PatternV2:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return PatternV2(id=phrase, type="good", description="", keywords=[], phrases=[phrase], source="", discovered_at=when)


def _one(name: str, patterns: list[PatternV2], texts: list[str], naive: int, aim: int) -> Iterator[Row]:
    began = time.process_time()
    matcher = PatternMatcher(patterns)
    built = time.process_time() - began
    phrases = sorted({phrase for one in patterns for phrase in one.phrases})
    low = [text.lower() for text in texts]
    bare = [_scan(phrases, kind, low) for kind in _kinds(len(phrases))]

    def slow() -> None:
        for text in low[:naive]:
            for one in patterns:
                any(phrase in text for phrase in one.phrases)

    ours, *scans = shortest([lambda: [matcher.fired(text) for text in texts], *bare], clock=time.process_time)
    scan = min(scans)
    loop = shortest([slow], 1, time.process_time)[0] / naive
    rate = len(texts) / ours
    fired = sum(len(matcher.fired(text)) for text in texts) / len(texts)
    yield (
        f"{name}: {fired:.1f} fire on a text of 0.8 KB, built in {built:.2f} s",
        f"{rate:,.0f} texts/s",
        f"bare scan {len(texts) / scan:,.0f}/s: {ours / scan:.2f}× its time; naive loop {1 / loop:,.1f}/s: {loop * rate:,.0f}×",
        f"≥ {aim:,} texts/s, ≤ 3×",
    )


def _kinds(phrases: int) -> list[Any]:
    kinds = ahocorasick_rs.Implementation
    return [kinds.ContiguousNFA, kinds.DFA] if phrases < 50_000 else [kinds.ContiguousNFA]


def _scan(phrases: list[str], kind: Any, texts: list[str]) -> Callable[[], object]:
    find = ahocorasick_rs.AhoCorasick(phrases, implementation=kind).find_matches_as_indexes
    return lambda: [find(text, overlapping=True) for text in texts]
