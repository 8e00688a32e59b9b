"""The page of cases in a real browser: nothing is loaded or run, all of it can be read, on any width and in both schemes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases_kit import POISONED, make_run
from report_samples import HOSTILE

from jumar.report.cases.html import render_html
from jumar.report.cases.read import load_run

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: the page was not opened in a browser"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync"
)
ALL_STATES: dict[int, list[Any]] = {**POISONED, 3: ["exit 1", None, (5, 5, 5)], 4: [(6, 6, 6)], 5: []}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH: the page was not opened in a browser")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield started
        started.close()


class Opened:
    """The page of a run, with all that it complained about or asked for."""

    def __init__(self, browser: Any, rows: dict[int, list[Any]] = ALL_STATES, **options: Any) -> None:
        path = Path("report.html")
        path.write_text(render_html(load_run(make_run(rows, select="last", begun=4))), encoding="utf-8")
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = browser.new_page(**({"viewport": {"width": 1100, "height": 800}} | options))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.address = path.absolute().as_uri()
        self.page.goto(self.address)

    def run(self, script: str) -> Any:
        return self.page.evaluate(script)


def test_the_page_opens_from_a_file_and_fetches_nothing(browser: Any):
    opened = Opened(browser)
    assert ([], [opened.address]) == (opened.complaints, opened.requests)
    assert "run r · Case Report" == opened.page.title()
    assert "2px" == opened.run("getComputedStyle(document.querySelector('.cell.best')).borderTopWidth"), (
        "the style's hash is wrong"
    )
    assert ["★ 9", "★ 4", "★ 5", "★ 6"] == opened.page.locator(".cell.best b").all_inner_texts()
    assert ["↓ into case 2", "↓ into case 3"] == opened.page.locator(".arrow.worse").all_inner_texts()


def test_states_differ_without_colour(browser: Any):
    """By text or by line: not evaluated, failed, no usable score and a score never look the same in grey."""
    opened = Opened(browser)
    seen = opened.run(
        """['ok', 'failed', 'invalid', 'absent'].map(state => {
          const cell = document.querySelector(`.cell.${state}:not(.best)`), style = getComputedStyle(cell);
          const said = cell.innerText.replace(/[0-9. ·\\n]+/g, '');
          return [said, style.borderTopStyle, style.backgroundImage !== 'none'].join(' ');
        })"""
    )
    assert 4 == len(set(seen)), seen


@pytest.mark.parametrize("name", ["<script>window.__pwned=1</script>", "<img src=x onerror=window.__pwned=1>", *HOSTILE])
def test_hostile_reasons_are_inert(browser: Any, name: str):
    opened = Opened(browser, {1: [name, (1, 1, 1)]})
    assert "undefined" == opened.run("typeof window.__pwned")
    assert 0 == opened.run("document.scripts.length + document.images.length + document.links.length + document.forms.length")
    assert ([], [opened.address]) == (opened.complaints, opened.requests)
    assert "\x1b" not in opened.run("document.body.textContent")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_in_both_colour_schemes(browser: Any, scheme: str):
    """Contrast by WCAG 2, computed from the pixels' colours: a canvas knows every notation of CSS."""
    opened = Opened(browser, color_scheme=scheme)
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
              const front = bright('white', ...backs, getComputedStyle(e).color), back = bright('white', ...backs);
              return [`${e.tagName}.${e.className}`, (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05)];
            });
        }"""
    )
    print(f"{scheme}: {len(found)} pieces of text, lowest contrast {min(ratio for _, ratio in found):.2f}")
    assert len(found) > 100
    assert [] == [(tag, round(ratio, 2)) for tag, ratio in found if ratio < 4.5]


@pytest.mark.parametrize("width", [320, 768, 1400])
@pytest.mark.parametrize("rows", [ALL_STATES, {1: ["x" * 300, *[(1, 1, 1)] * 19]}, {1: []}], ids=["states", "wide", "empty"])
def test_the_page_never_scrolls_sideways(browser: Any, width: int, rows: dict[int, list[Any]]):
    opened = Opened(browser, rows, viewport={"width": width, "height": 800})
    assert width == opened.run("document.documentElement.scrollWidth")


def test_everything_has_a_name_for_a_screen_reader(browser: Any):
    opened = Opened(browser)
    assert ("en", 1) == (opened.run("document.documentElement.lang"), opened.run("document.querySelectorAll('h1').length"))
    assert opened.run("[...document.querySelectorAll('th')].every(e => ['col', 'row'].includes(e.scope))")
    assert opened.run(
        "[...document.querySelectorAll('[aria-labelledby]')]"
        ".every(e => document.getElementById(e.getAttribute('aria-labelledby')))"
    )
    assert opened.run(
        "new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size === document.querySelectorAll('[id]').length"
    )
    assert {"not evaluated"} == set(opened.page.locator(".cell.absent").all_text_contents())
    opened.page.set_viewport_size({"width": 360, "height": 800})
    opened.page.keyboard.press("Tab")
    assert "scroll" == opened.run("document.activeElement.className")
