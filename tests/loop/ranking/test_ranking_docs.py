"""The examples in the pages about ranking, stopping and degradation are true."""

from __future__ import annotations

import doctest
import re
import tomllib
from pathlib import Path

import pytest

from jumar.app.config.config import StopConfig
from jumar.loop.ranking import PATTERNS, detect_degradation, evaluate_stop
from jumar.model import IterationView

DOCS = Path(__file__).resolve().parents[3] / "docs"
STOPPING = DOCS / "concepts" / "stopping.md"
DEGRADATION = DOCS / "concepts" / "degradation.md"


def table(page, heading):
    """The rows of the table whose first cell is ``heading``, as lists of cells without backquotes."""
    lines = page.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
    return rows


@pytest.mark.parametrize("page", ["design/ranking.md", "concepts/degradation.md"])
def test_python_examples_print_what_the_page_shows(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    sessions = re.findall(r"```pycon\n(.*?)```", text, flags=re.DOTALL)
    example = doctest.DocTestParser().get_doctest("\n".join(sessions), {}, page, page, 0)
    result = doctest.DocTestRunner(verbose=False).run(example)
    assert result.attempted >= 4
    assert result.failed == 0


def pass_or_failure(number, text):
    if text == "failed":
        return IterationView(number=number, score=None, status="generator_failed")
    return IterationView(number=number, score=float(text))


def rules_from(toml):
    return StopConfig.model_validate(tomllib.loads(toml)).rules(10)


@pytest.mark.parametrize("row", table(STOPPING, "scores"), ids=lambda row: f"{row[1]} {row[0]}")
def test_stopping_examples_end_as_the_page_says_and_not_earlier(row):
    scores, rule, after = row
    views = [pass_or_failure(number, text) for number, text in enumerate(scores.split(", "))]
    for length in range(1, len(views)):
        assert evaluate_stop(views[:length], rules_from(rule), seconds=0) is None
    decision = evaluate_stop(views, rules_from(rule), seconds=0)
    assert after == (decision.detail if decision else "continues")


def test_trend_rules_in_the_configuration_have_the_sizes_in_their_comments():
    (block,) = re.findall(r"```toml\n\[stop\]\n(.*?)```", STOPPING.read_text(encoding="utf-8"), flags=re.DOTALL)
    sizes = r"\{window = (\d+), delta = (\d+)\}"
    checked = 0
    for line in block.splitlines():
        written, _, comment = line.partition("#")
        name = written.partition("=")[0].strip()
        for said, (window, delta) in zip(re.findall(f"(true is )?{sizes}", comment), re.findall(sizes, comment), strict=True):
            rule = getattr(rules_from(f"{name} = true" if said[0] else written), name)
            assert (int(window), int(delta)) == (rule.window, rule.delta), line
            checked += 1
    assert checked == 5


def test_every_stop_key_of_the_page_is_a_key_of_the_configuration():
    assert set(StopConfig.model_fields) == {row[0] for row in table(STOPPING, "key")}


@pytest.mark.parametrize("row", table(DEGRADATION, "scores"), ids=lambda row: row[0])
def test_degradation_examples_fire_as_the_page_says(row):
    scores, failing, fires = row
    numbers = [float(score) for score in scores.split(", ")]
    failures = [None] * len(numbers) if failing == "—" else [int(count) for count in failing.split(", ")]
    views = [
        IterationView(number=number, score=score, failed_checks=failed)
        for number, (score, failed) in enumerate(zip(numbers, failures, strict=True), 1)
    ]
    found = detect_degradation(views)
    told = f"{', '.join(found.triggers)} at {', '.join(map(str, found.iterations))}" if found.detected else "nothing"
    assert fires == told


def test_the_page_lists_the_patterns_and_their_meaning_as_the_code_does():
    assert [(pattern, meaning) for pattern, (meaning, _) in PATTERNS.items()] == [
        (row[0], row[1]) for row in table(DEGRADATION, "pattern")
    ]
