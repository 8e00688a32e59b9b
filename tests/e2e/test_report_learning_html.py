"""The page of a learning run in a real browser: nothing is loaded or run, all of it can be read, on any width."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser_page import Opened
from learn_items import judged_items, write_items
from loops import jumar
from report_samples import HOSTILE

from jumar.learning.report.render import render_html
from jumar.learning.report.view import LearningReport
from jumar.learning.run.read import read_report

BACK: dict[str, Any] = {
    "action": "rolled_back",
    "description": "gap increased by 0.3",
    "before": 0.4,
    "after": 0.7,
    "confirmed": 0.4,
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> LearningReport:
    place = tmp_path_factory.mktemp("learned")
    items = write_items(place / "judged.jsonl", judged_items(50, 2, seed=8))
    options = ["--max-iterations", "2", "--profile", "seed", "-q"]
    # a process of its own: the browser's driver keeps an event loop running in this one
    jumar(place, "learn", str(items), "--judge", f"replay:{items}", "-o", "out", *options, check=0, timeout=200)
    found = read_report(place / "out")
    last = {**found.logs[-1], "actions_taken": [*found.logs[-1]["actions_taken"], BACK]}
    return replace(found, logs=[*found.logs[:-1], last])


def opened_report(browser: Any, report: LearningReport, place: Path, **options: Any) -> Opened:
    """Return the page of a run, every fold open."""
    opened = Opened(browser, render_html(report), place, **options)
    opened.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    return opened


def test_the_page_opens_from_a_file_and_fetches_nothing(browser: Any, report: LearningReport, tmp_path: Path):
    opened = opened_report(browser, report, tmp_path)
    assert ([], [opened.address]) == (opened.complaints, opened.requests)
    assert 2 == opened.page.locator("details summary b", has_text="Iteration").count()
    assert opened.page.locator("svg.wide").is_visible()
    assert not opened.page.locator("svg.narrow").is_visible()
    assert "Rolled back: gap increased by 0.3" in opened.run("document.body.innerText")
    assert opened.run("[...document.querySelectorAll('th')].every(e => ['col', 'row'].includes(e.scope))")
    assert opened.run(
        "new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size === document.querySelectorAll('[id]').length"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_in_both_colour_schemes(browser: Any, report: LearningReport, tmp_path: Path, scheme: str):
    opened = opened_report(browser, report, tmp_path, color_scheme=scheme)
    found = opened.contrasts(scheme)
    assert len(found) > 80
    assert [] == [(tag, round(ratio, 2)) for tag, ratio in found if ratio < 4.5]


@pytest.mark.parametrize("width", [320, 768, 1400])
def test_the_page_never_scrolls_sideways(browser: Any, report: LearningReport, tmp_path: Path, width: int):
    wide = {"action": "committed_pattern", "description": "x" * 300, "reason": "y" * 300, "points": 0.1}
    told = replace(
        report,
        logs=[{**report.logs[0], "actions_taken": [wide]}],
        patterns=[*report.patterns, {**report.patterns[0], "description": "z" * 300}],
    )
    opened = opened_report(browser, told, tmp_path, viewport={"width": width, "height": 800})
    assert width == opened.run("document.documentElement.scrollWidth")


def test_on_a_phone_nothing_is_cut_off_and_options_stay_whole(browser: Any, report: LearningReport, tmp_path: Path):
    opened = opened_report(browser, report, tmp_path, viewport={"width": 390, "height": 800})
    assert [] == opened.run(
        "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.innerText.slice(0, 60))"
    )
    labels = opened.run("[...document.querySelectorAll('.course td')].map(e => getComputedStyle(e, '::before').content)")
    assert '"Gap (points)"' in labels
    words = opened.run("[...document.querySelectorAll('code .word')].map(e => [e.innerText, e.getClientRects().length])")
    assert "--patterns" in [word for word, _ in words]
    assert {1} == {lines for _, lines in words}
    drawn = opened.run("document.querySelector('svg.narrow').textContent")
    assert "less is better" in drawn
    assert f"constant {report.constant:.2f}" in drawn
    for one in report.iterations:
        assert f"{one.abs_gap:.2f}" in opened.run(
            "[...document.querySelectorAll('svg.narrow text.value')].map(e => e.textContent)"
        )


def test_hostile_names_are_inert(browser: Any, report: LearningReport, tmp_path: Path):
    actions = [{"action": "committed_pattern", "description": name, "reason": name} for name in HOSTILE]
    told = replace(report, name=HOSTILE[0], logs=[{**report.logs[0], "actions_taken": actions}])
    opened = opened_report(browser, told, tmp_path)
    assert 0 == opened.run("document.scripts.length + document.images.length + document.links.length + document.forms.length")
    assert ([], [opened.address]) == (opened.complaints, opened.requests)
    assert "\x1b" not in opened.run("document.body.textContent")
