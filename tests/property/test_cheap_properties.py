"""The cheap judge for any input: bounded, explained, and the same to the last bit, whoever asks and however often."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from commands import call
from hypothesis import given
from hypothesis import strategies as st

from jumar.judging import CheapModeEvaluator, CheapModeResult, Item, Story
from jumar.judging.cheap.evidence import DETECTORS
from jumar.judging.component_health import CheapTally
from jumar.judging.patterns import PatternSet, PatternV2

WORDS = st.lists(
    st.sampled_from(
        ["Add", "user can", "the", "list", "fix", "depends on", "3", "maybe", "because", ".", "\n", "- x", "`go`", "ä"]
    ),
    max_size=30,
).map(" ".join)
TEXTS = WORDS | st.text(max_size=80)
STORIES = st.builds(
    Story,
    id=st.just("s"),
    title=TEXTS,
    description=TEXTS,
    acceptance_criteria=st.lists(TEXTS, max_size=12),
    technical_area=st.none() | st.sampled_from(["aero/packages/", "src/a.py", "x"]) | TEXTS,
)
ITEMS = STORIES.map(Item.of) | st.builds(Item, id=st.just("t"), text=TEXTS, prompt=TEXTS)


def _pattern(number: int, phrase: str, kind: str, weight: float, status: str) -> PatternV2:
    fields: dict[str, Any] = {"id": f"p{number}", "type": kind, "weight": weight, "status": status, "keywords": [], "source": "t"}
    fields |= {"description": phrase, "phrases": [] if phrase in DETECTORS else [phrase]}
    return PatternV2.model_validate({**fields, "discovered_at": datetime(2026, 1, 1, tzinfo=UTC)})


PATTERNS = st.lists(
    st.tuples(
        st.sampled_from(["list", "user", "the", "3", *DETECTORS]),
        st.sampled_from(["good", "bad"]),
        st.floats(0, 2),
        st.sampled_from(["active", "provisional", "rejected", "pruned"]),
    ),
    max_size=12,
).map(lambda found: PatternSet(version="2.0", patterns=[_pattern(number, *one) for number, one in enumerate(found)]))


@given(ITEMS, PATTERNS)
def test_a_score_is_in_range_and_its_contributions_add_up_to_it(item: Item, patterns: PatternSet):
    found = CheapModeEvaluator(patterns).evaluate_item(item)
    if not isinstance(found, CheapModeResult):
        assert "" == item.text.strip()
        return
    assert 1.0 <= found.gestalt <= 5.0
    assert found.gestalt == 1.0 + found.raw_score / 5.0 * 4.0
    assert math.isclose(found.raw_score, sum(one.points for one in found.contributions), abs_tol=1e-9)
    assert all(0.0 <= score <= 1.0 for score in found.sub_scores.values())
    assert all(0.0 <= one.share <= 1.0 for one in found.contributions)
    moved = sum(one.points for one in found.contributions if one.name in found.patterns_matched)
    assert abs(moved) <= 1.0 + 1e-9


@given(st.lists(ITEMS, max_size=8), PATTERNS)
def test_what_was_judged_before_does_not_matter(items: list[Item], patterns: PatternSet):
    one = CheapModeEvaluator(patterns)
    together = list(one.evaluate([*items, *reversed(items)]))
    alone = [CheapModeEvaluator(patterns).evaluate_item(item) for item in items]
    assert [*alone, *reversed(alone)] == together


@given(STORIES, st.text(alphabet=" \t", max_size=3))
def test_provisional_patterns_never_move_a_score(story: Story, blank: str):
    provisional = PatternSet(version="2.0", patterns=[_pattern(0, "the", "good", 2.0, "provisional")])
    with_blank = story.model_copy(update={"acceptance_criteria": [*story.acceptance_criteria, blank]})
    found = [CheapModeEvaluator(known).evaluate_story(story) for known in (None, provisional)]
    assert 1 == len({one.gestalt if isinstance(one, CheapModeResult) else None for one in found})
    assert CheapModeEvaluator().evaluate_story(story) == CheapModeEvaluator().evaluate_story(with_blank)


@given(st.lists(st.floats(1.0, 5.0), max_size=40), st.integers(0, 40))
def test_averages_are_exact_however_the_items_are_cut(scores: list[float], cut: int):
    from fractions import Fraction

    from jumar.judging.cheap.scoring import CheapReading

    def tally(part: list[float]) -> CheapTally:
        made = CheapTally()
        made.add_all([CheapReading(Item("i", ""), score, 0.0, (), []) for score in part])
        return made

    whole, first = tally(scores), tally(scores[:cut])
    first.merge(tally(scores[cut:]))
    assert whole == first
    assert whole.mean == (float(sum(map(Fraction, scores)) / len(scores)) if scores else None)
    if len(scores) > 1:
        mean = sum(map(Fraction, scores)) / len(scores)
        assert whole.variance == float(sum((Fraction(score) - mean) ** 2 for score in scores) / (len(scores) - 1))


# ---------------------------------------------------------------------------------------------------- same input, same bytes

RECORDS = [
    {
        "id": f"i{number}",
        "title": ("Add" if number % 3 else "The") + " list",
        "description": "the user can " * (number % 9),
        "acceptance_criteria": ["a"] * (number % 12),
    }
    if number % 2
    else {
        "id": f"i{number}",
        "text": "The list is long because nobody cuts it. " * (number % 7),
        "prompt": "Why is the list long?",
    }
    for number in range(2500)
]


@pytest.fixture
def files(fresh_place: Path) -> Path:
    (fresh_place / "in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    known = PatternSet(
        version="2.0", patterns=[_pattern(0, "list", "good", 1.0, "active"), _pattern(1, "too_vague", "bad", 0.5, "active")]
    )
    (fresh_place / "p.json").write_text(known.model_dump_json())
    return fresh_place


def test_the_seed_of_hashes_does_not_matter(files: Path):
    outputs: set[tuple[str, bytes]] = set()
    for seed in ("0", "1", "4711"):
        words = f"jumar evaluate in.jsonl --mode cheap --patterns p.json --per-item {seed}.jsonl --json".split()
        code = f"import sys; sys.argv = {words!r}; from jumar.cli.entry import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONHASHSEED": seed, "PATH": ""}, check=True
        )
        outputs.add((done.stdout, (files / f"{seed}.jsonl").read_bytes()))
    assert 1 == len(outputs)
    assert len(RECORDS) == next(iter(outputs))[1].count(b"\n")


@pytest.mark.parametrize("how", [["--jobs", "2"], ["--executor", "threads:2"], ["--executor", "processes:1"]])
def test_it_does_not_matter_who_works(files: Path, how: list[str]):
    common = ["evaluate", "in.jsonl", "--mode", "cheap", "--patterns", "p.json", "--json"]
    alone = call(*common, "--per-item", "alone.jsonl", check=0).out
    assert alone == call(*common, "--per-item", "others.jsonl", *how, check=0).out
    assert (files / "alone.jsonl").read_bytes() == (files / "others.jsonl").read_bytes()
