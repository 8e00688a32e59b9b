"""``jumar learn`` on recorded judgements, then one iteration of 10,000 items and 2,000 provisional patterns; CPU of one core.

The command is timed whole, three iterations with a recorded judge, where JUMAR_DATA has the sets.
The iteration is what `jumar learn` does: proposals, fit, tests, and the iteration's files. Six in ten of the items are open; the
sealed ones are split and read, and no more. What nobody can avoid is matching the patterns over the items once.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import part_cheap
from timing import Row, shortest

from jumar.judging import Item
from jumar.judging.asking.settings import JudgeConfig
from jumar.judging.judges import make_judge
from jumar.judging.patterns import PatternSet, PatternV2
from jumar.judging.patterns.matcher import PatternMatcher
from jumar.judging.patterns.storage import load_pattern_set
from jumar.learning.proposals.candidates import by_terms
from jumar.learning.run.data import LearnData, read_learning_items, split_of
from jumar.learning.run.learn import Learner, write_set
from jumar.learning.run.read import publish
from jumar.learning.run.request import LearnRequest
from jumar.learning.scorecard.fit import fit_scorecard
from jumar.learning.scorecard.pool import FitSettings
from jumar.learning.state import PATTERNS as PATTERNS_FILE
from jumar.model.protocols import StepContext

ITEMS, PATTERNS, AIM = 10_000, 2_000, 5.0
COMMANDS = {("vicuna",): 10, ("vicuna", "--robust"): 40, ("newsroom",): 10, ("topical_chat",): 10}
"""Recorded sets with the options of the command, and the CPU seconds that are aimed at."""
MADE = datetime(2026, 1, 1, tzinfo=UTC)


def measure(directory: Path) -> Iterator[Row]:
    yield from _commands(directory)
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
    whole_iteration = _iteration(directory, items, scores, proposals)
    what = f"one iteration with its files, {ITEMS:,} items, {PATTERNS:,} provisional patterns"
    yield (
        what,
        f"{whole_iteration:.1f} s",
        f"matching alone {scan:.2f} s: {whole_iteration / scan:.0f}×",
        f"≤ {AIM:.0f} s on one core",
    )
    what = f"fit and matching, {ITEMS:,} items, {PATTERNS:,} provisional patterns"
    yield what, f"{whole:.1f} s", f"matching alone {scan:.2f} s: {whole / scan:.0f}×", f"≤ {AIM:.0f} s on one core"
    yield "… and words of the items as candidates", f"{mined:.1f} s", f"matching alone: {mined / scan:.0f}×", f"≤ {AIM:.0f} s"


def _commands(directory: Path) -> Iterator[Row]:
    data = Path(os.environ.get("JUMAR_DATA", "../shared/data")) / "judged"
    for (name, *options), aim in COMMANDS.items():
        items, output = data / f"{name}.jsonl", directory / "-".join([name, *options])
        if not items.exists():
            continue
        began = part_cheap.children_time()
        judge = ["--judge", f"replay:{items}", "--max-iterations", "3", "-q"]
        part_cheap.run([*part_cheap.COMMAND, "learn", str(items), *judge, "-o", str(output), *options])
        spent = part_cheap.children_time() - began
        yield " ".join(["`jumar learn`, 3 iterations:", name, *options]), f"{spent:.1f} s", "", f"≤ {aim} s on one core"


def _iteration(directory: Path, items: list[Item], scores: list[float], proposals: list[PatternV2]) -> float:
    """Return the CPU seconds of one iteration, the judge having been asked; with what it leaves on the disk."""
    source, patterns, output = directory / "items.jsonl", directory / "provisional.json", directory / "out"
    with source.open("w") as file:
        for item, score in zip(items, scores, strict=True):
            row = {"id": item.id, "text": item.text, "prompt": item.prompt, "group": item.group, "judge_scores": [score, score]}
            file.write(json.dumps({**row, "judge_feedback": f"clear: {item.text[:60]}"}) + "\n")
    first = {one.phrases[0]: one for one in proposals}  # the same phrase twice would be merged before anything else
    patterns.write_text(PatternSet(version="2.0", patterns=list(first.values())).model_dump_json())
    request = LearnRequest(items=source, output=output, judge=JudgeConfig(spec=f"replay:{source}"), patterns=patterns)
    read = read_learning_items(request)
    judge = make_judge(request.judge.spec)
    data = LearnData(
        request=request,
        items=read,
        split=split_of(request, read),
        judge=judge,
        made=MADE,
        proposer=by_terms,
        stop=lambda: False,
        halt=lambda: None,
    )
    write_set(load_pattern_set(patterns), output / PATTERNS_FILE)
    data.material()
    nowhere = directory / "none"
    context = StepContext(
        loop_id="learn",
        iteration=1,
        workdir=output,
        prompt_file=nowhere,
        feedback_file=nowhere,
        usage_file=nowhere,
        log_directory=nowhere,
    )
    learner = Learner(data, lambda learned, material: publish(data, learned, material), lambda: MADE)
    began = time.process_time()
    done = learner.generate(context)
    spent = time.process_time() - began
    if done.failure or not (output / "iteration_1" / "iteration_log.json").exists():
        raise RuntimeError(f"the iteration did not come to its end: {done.failure}")
    return spent


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
