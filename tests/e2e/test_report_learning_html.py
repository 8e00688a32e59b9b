"""The page of a learning run in a real browser: nothing is loaded or run, all of it can be read, on any width."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from learn_items import judged_items, write_items
from loops import jumar
from report_samples import HOSTILE

from jumar.app.learning_read import read_report
from jumar.report.learning.html import render_html
from jumar.report.learning.view import LearningReport

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: the page was not opened in a browser"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync"
)
BACK: dict[str, Any] = {
    "action": "rolled_back",
    "description": "gap increased by 0.3",
    "before": 0.4,
    "after": 0.7,
    "confirmed": 0.4,
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH: the page was not opened in a browser")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield started
        started.close()


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


class Opened:
    """The page of a run, with all that it complained about or asked for; every fold is open."""

    def __init__(self, browser: Any, report: LearningReport, place: Path, **options: Any) -> None:
        path = place / "report.html"
        path.write_text(render_html(report), encoding="utf-8")
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = browser.new_page(**({"viewport": {"width": 1100, "height": 800}} | options))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.address = path.absolute().as_uri()
        self.page.goto(self.address)
        self.run("document.querySelectorAll('details').forEach(one => one.open = true)")

    def run(self, script: str) -> Any:
        return self.page.evaluate(script)


def test_the_page_opens_from_a_file_and_fetches_nothing(browser: Any, report: LearningReport, tmp_path: Path):
    opened = Opened(browser, report, tmp_path)
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
    opened = Opened(browser, report, tmp_path, color_scheme=scheme)
    found = opened.run(
        """() => {
          const pen = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d');
          const bright = (...colours) => {
            for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
            const linear = [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => v / 255)
              .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
          };
          return [...document.querySelectorAll('body *')]
            .filter(e => !e.classList.contains('unseen') && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
            .map(e => {
              const backs = [];
              for (let at = e; at; at = at.parentElement) backs.unshift(getComputedStyle(at).backgroundColor);
              const style = getComputedStyle(e), colour = e.closest('svg') ? style.fill : style.color;
              const front = bright('white', ...backs, colour), back = bright('white', ...backs);
              return [`${e.tagName}.${e.className}`, (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05)];
            });
        }"""
    )
    print(f"{scheme}: {len(found)} pieces of text, lowest contrast {min(ratio for _, ratio in found):.2f}")
    assert len(found) > 80
    assert [] == [(tag, round(ratio, 2)) for tag, ratio in found if ratio < 4.5 and not tag.startswith(("title", "desc"))]


@pytest.mark.parametrize("width", [320, 768, 1400])
def test_the_page_never_scrolls_sideways(browser: Any, report: LearningReport, tmp_path: Path, width: int):
    wide = {"action": "committed_pattern", "description": "x" * 300, "reason": "y" * 300, "points": 0.1}
    told = replace(
        report,
        logs=[{**report.logs[0], "actions_taken": [wide]}],
        patterns=[*report.patterns, {**report.patterns[0], "description": "z" * 300}],
    )
    opened = Opened(browser, told, tmp_path, viewport={"width": width, "height": 800})
    assert width == opened.run("document.documentElement.scrollWidth")


def test_hostile_names_are_inert(browser: Any, report: LearningReport, tmp_path: Path):
    actions = [{"action": "committed_pattern", "description": name, "reason": name} for name in HOSTILE]
    told = replace(report, name=HOSTILE[0], logs=[{**report.logs[0], "actions_taken": actions}])
    opened = Opened(browser, told, tmp_path)
    assert 0 == opened.run("document.scripts.length + document.images.length + document.links.length + document.forms.length")
    assert ([], [opened.address]) == (opened.complaints, opened.requests)
    assert "\x1b" not in opened.run("document.body.textContent")
