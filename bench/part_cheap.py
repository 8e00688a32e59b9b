"""The cheap judge: stories in a second on one core, against one bare scan by the library and the first design's naive loop.

Stories of some 0.8 KB and patterns are drawn from a list of words. The naive loop looks for every phrase of every pattern with
``in``; it is timed on fewer stories and scaled up.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from ahocorasick_rs import BytesAhoCorasick, Implementation
from cheap_seed import score_as_first_designed
from timing import Row, shortest

from jumar.judging import CheapModeEvaluator, Item, Story
from jumar.judging.items.records import read_items
from jumar.judging.patterns import PatternSet, PatternV2

STORIES, NAIVE_BYTES = 20_000, 2e9
AIMS = {471: 50_000, 10_000: None, 100_000: 20_000}
STEMS = ["ex", "im", "trans", "re", "con", "sub", "inter", "over", "under", "out"]
ROOTS = [
    *("port", "form", "late", "act", "press", "view", "lay", "take", "turn", "line", "mit", "fer"),
    *("duct", "ject", "spect", "scribe", "tract", "vert", "cede", "pose"),
]
ENDS = ["", "s", "ed", "ing", "er", "ion", "able"]
WORDS = [stem + root + end for stem in STEMS for root in ROOTS for end in ENDS]
SMALL = [
    *("the", "a", "of", "to", "in", "is", "and", "for", "with", "on", "as", "by"),
    *("from", "that", "this", "it", "user", "can", "list", "page", "when", "then"),
]


def measure(directory: Path) -> Iterator[Row]:
    draw = random.Random(1)
    stories = [_story(draw, number) for number in range(STORIES)]
    items = [Item.of(Story.model_validate(story)) for story in stories]
    yield from _speed(items, stories, draw)
    yield from _files(directory, stories)


def _speed(items: list[Item], stories: list[dict[str, Any]], draw: random.Random) -> Iterator[Row]:
    texts = [item.text for item in items]
    for count, aim in AIMS.items():
        known = _patterns(draw, count)
        evaluator = CheapModeEvaluator(known)
        bare = _bare([phrase for one in known.patterns for phrase in one.phrases])
        scan, score, whole, full = shortest(
            [
                lambda bare=bare: _drain(map(bare, texts)),
                lambda evaluator=evaluator: _drain(map(evaluator.read, items)),
                lambda evaluator=evaluator: _drain(evaluator.evaluate(items, parts=False)),
                lambda evaluator=evaluator: _drain(evaluator.evaluate(items)),
            ],
            5,
        )
        naive = _naive(stories, texts, known)
        goal = "≤ 3×" if aim is None else f"≥ {aim:,}/s, ≤ 3×"
        yield (
            f"score, reasons and patterns of a story, {count:,} patterns",
            _rate(score),
            f"one bare scan {_rate(scan)}: {score / scan:.2f}×",
            goal,
        )
        yield "… with every contribution", _rate(whole), f"one bare scan: {whole / scan:.2f}×", ""
        yield "… and all sub-scores", _rate(full), f"one bare scan: {full / scan:.2f}×", ""
        yield f"… the naive loop, {count:,} patterns", f"{1 / naive:,.0f}/s", f"{naive * STORIES / score:,.0f}× slower", ""


def _files(directory: Path, stories: list[dict[str, Any]]) -> Iterator[Row]:
    path = directory / "stories.jsonl"
    path.write_text("".join(json.dumps(story) + "\n" for story in stories))
    lines = path.read_bytes().splitlines()
    parse, read = shortest([lambda: _drain(map(json.loads, lines)), lambda: _drain(read_items(path))], 5)
    yield "items from JSON Lines, checked", _rate(read), f"`json.loads` alone {_rate(parse)}: {read / parse:.2f}×", ""
    command = [
        sys.executable,
        "-c",
        "from jumar.cli.entry import main; main()",
        "evaluate",
        str(path),
        "--mode",
        "cheap",
        "-q",
        "--jobs",
    ]
    one, two = shortest([lambda: _run([*command, "1"]), lambda: _run([*command, "2"])], 3)
    yield "`jumar evaluate --mode cheap`, start and file included", _rate(one), f"--jobs 2: {_rate(two)}", ""


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _rate(seconds: float) -> str:
    return f"{STORIES / seconds:,.0f}/s"


def _drain(results: Any) -> None:
    for _ in results:
        pass


def _bare(phrases: list[str]) -> Callable[[str], object]:
    """One iteration of the library over a text, without word boundaries and without asking whose phrase it was."""
    size = sum(map(len, phrases))
    kind = Implementation.DFA if size < 1 << 18 else None
    find = BytesAhoCorasick([phrase.encode() for phrase in dict.fromkeys(phrases)], implementation=kind).find_matches_as_indexes
    return lambda text: find(text.lower().encode(), overlapping=True)


def _naive(stories: list[dict[str, Any]], texts: list[str], known: PatternSet) -> float:
    """Seconds for one story, phrase by phrase."""
    phrases = [one.phrases for one in known.patterns]
    count = max(1, int(NAIVE_BYTES / 800 / sum(map(len, phrases))))
    count = min(count, 2000)
    began = time.perf_counter()
    for story, text in zip(stories[:count], texts[:count], strict=True):
        score_as_first_designed(story)
        lowered = text.lower()
        [index for index, group in enumerate(phrases) if any(phrase in lowered for phrase in group)]
    return (time.perf_counter() - began) / count


def sentence(draw: random.Random, count: int) -> str:
    return " ".join(draw.choice(SMALL if draw.random() < 0.5 else WORDS) for _ in range(count))


def _story(draw: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": f"s{number}",
        "title": f"{draw.choice(['Add', 'Fix', 'The'])} {sentence(draw, 5)}",
        "description": ". ".join(sentence(draw, 12).capitalize() for _ in range(6)),
        "acceptance_criteria": [sentence(draw, 9) for _ in range(draw.choice([2, 4, 5]))],
        "technical_area": draw.choice(["app/list/view.py", "backend", None]),
    }


def _patterns(draw: random.Random, count: int) -> PatternSet:
    def one(number: int) -> PatternV2:
        phrases = [
            f"{draw.choice(WORDS)} {draw.choice(WORDS)}",
            f"{draw.choice(WORDS)} {draw.choice(SMALL)} {draw.choice(WORDS)}",
        ]
        fields = {
            "id": f"p{number}",
            "type": draw.choice(["good", "bad"]),
            "description": phrases[0],
            "keywords": [],
            "phrases": phrases,
        }
        return PatternV2.model_validate({**fields, "source": "bench", "discovered_at": datetime(2026, 1, 1, tzinfo=UTC)})

    return PatternSet(version="2.0", patterns=[one(number) for number in range(count)])
