"""The cheap judge: the whole command first, on real texts where JUMAR_DATA has them; then the score alone, in this process.

The command's figure is CPU seconds of one core, with start, reading and a line of everything for each item (``--per-item``). The
score is held against one bare scan by the library and the first design's naive loop. Made-up stories of some 0.8 KB and patterns
are drawn from a list of words. The naive loop looks for every phrase of every pattern with ``in``; it is timed on fewer stories
and scaled up.
"""

from __future__ import annotations

import itertools
import json
import os
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
COMMAND = [sys.executable, "-c", "from jumar.cli.entry import main; main()"]
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
    yield from _commands(directory, stories, draw)
    items = [Item.of(Story.model_validate(story)) for story in stories]
    yield from _speed(items, stories, draw)
    yield from _reading(directory / "stories.jsonl")


def _commands(directory: Path, stories: list[dict[str, Any]], draw: random.Random) -> Iterator[Row]:
    data = Path(os.environ.get("JUMAR_DATA", "../shared/data"))
    lines = [line for file in sorted((data / "stories").glob("*.txt")) for line in file.read_text("utf-8").splitlines() if line]
    if lines:
        real = directory / "real.txt"
        real.write_text("\n".join(itertools.islice(itertools.cycle(lines), STORIES)) + "\n", encoding="utf-8")
        patterns = directory / "real.json"
        run([*COMMAND, "patterns", "migrate", str(data / "patterns" / "learned_patterns_v1.json"), "-o", str(patterns), "-q"])
        yield _command(
            f"user stories of {sum(map(len, lines)) / len(lines):.0f} characters, 471 migrated patterns", real, patterns
        )
    made, known = directory / "stories.jsonl", directory / "made.json"
    made.write_text("".join(json.dumps(story) + "\n" for story in stories))
    known.write_text(_patterns(draw, 471).model_dump_json())
    yield _command("made-up stories of 0.8 KB, 471 patterns", made, known)


def _command(what: str, items: Path, patterns: Path) -> Row:
    rows = items.with_suffix(".rows")
    command = [*COMMAND, "evaluate", str(items), "--patterns", str(patterns), "--mode", "cheap", "--per-item", str(rows), "-q"]
    (cpu,) = shortest([lambda: run([*command, "--jobs", "1"])], 3, children_time)
    one, two = shortest([lambda: run([*command, "--jobs", "1"]), lambda: run([*command, "--jobs", "2"])], 3)
    return (
        f"`jumar evaluate --mode cheap --per-item`, {what}",
        _rate(cpu),
        f"`--jobs 2`: {one / two:.2f}× as fast",
        "≥ 30,000/s, ≥ 1.8×",
    )


def children_time() -> float:
    used = os.times()
    return used.children_user + used.children_system


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


def _reading(path: Path) -> Iterator[Row]:
    lines = path.read_bytes().splitlines()
    parse, read = shortest([lambda: _drain(map(json.loads, lines)), lambda: _drain(read_items(path))], 5)
    yield "items from JSON Lines, checked", _rate(read), f"`json.loads` alone {_rate(parse)}: {read / parse:.2f}×", ""


def run(command: list[str]) -> None:
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
