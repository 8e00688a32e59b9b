"""The page in a real browser: it opens from a file, loads nothing, runs nothing, and can be read by everybody."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_samples import HOSTILE, engine_report, hostile_report, long_report, report_of

from jumar.report.html import render_html
from jumar.report.read import LoopReport

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: the page was not opened in a browser"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync"
)
ATTACKS = (
    "<script>window.__pwned=1</script>",
    "<img src=x onerror=window.__pwned=1>",
    '"><svg onload=window.__pwned=1>',
    "</style><script>window.__pwned=1</script>",
    "</title><script>window.__pwned=1</script>",
    "javascript:window.__pwned=1",
    "{{ 7 * 7 }}{% raw %}",
    "' onmouseover='window.__pwned=1",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH: the page was not opened in a browser")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield started
        started.close()


class Opened:
    """A page that was opened from a file, with all that it complained about or asked for."""

    def __init__(self, browser: Any, report: LoopReport, **options: Any) -> None:
        path = Path("report.html")
        path.write_text(render_html(report), encoding="utf-8")
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = browser.new_page(**({"viewport": {"width": 1100, "height": 800}} | options))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.address = path.absolute().as_uri()
        self.page.goto(self.address)

    def run(self, script: str) -> Any:
        return self.page.evaluate(script)


def colour(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text[text.index("(") + 1 : -1].split(",")[:3])


def contrast(one: str, other: str) -> float:
    """WCAG 2's contrast ratio of two CSS colours."""

    def luminance(text: str) -> float:
        parts = [value / 255 for value in colour(text)]
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_page_opens_from_a_file_and_fetches_nothing(browser: Any):
    opened = Opened(browser, engine_report())
    assert opened.complaints == []
    assert opened.requests == [opened.address]
    assert opened.page.title() == "readme-polish · Output Selection Report"
    assert opened.run("getComputedStyle(document.body).fontVariantNumeric") == "tabular-nums", "the style sheet's hash is wrong"
    assert opened.page.locator("tr.chosen th").inner_text() == "4"
    assert opened.page.locator("svg.wide .mark.chosen title").text_content() == "iteration 4: 85.3%, verified, chosen"


@pytest.mark.parametrize("name", [*ATTACKS, *HOSTILE])
def test_hostile_names_are_inert(browser: Any, name: str):
    opened = Opened(browser, hostile_report(name))
    opened.page.mouse.move(300, 300)
    opened.page.locator("summary").first.click()
    assert opened.run("typeof window.__pwned") == "undefined"
    assert opened.run("document.scripts.length + document.images.length + document.links.length + document.forms.length") == 0
    assert opened.run("document.querySelectorAll('style').length") == 1
    assert opened.complaints == []
    assert opened.requests == [opened.address]
    text = opened.run("document.body.textContent")
    assert "\x1b" not in text
    assert "49" not in opened.page.locator("h1").inner_text()


def test_a_page_that_was_tampered_with_still_runs_no_script(browser: Any):
    """The policy in the page is a second wall behind the escaping."""
    html = render_html(engine_report()).replace(
        "</main>", "<script>window.__pwned=1</script><img src='https://x.invalid/a'></main>"
    )
    Path("tampered.html").write_text(html, encoding="utf-8")
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(Path("tampered.html").absolute().as_uri())
    assert page.evaluate("typeof window.__pwned") == "undefined"
    assert sum("Content Security Policy" in text for text in complaints) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_in_both_colour_schemes(browser: Any, scheme: str):
    opened = Opened(browser, engine_report(), color_scheme=scheme)
    found = opened.run(
        """() => [...document.querySelectorAll('body *')]
          .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
          .map(e => {
            let back = e;
            const clear = 'rgba(0, 0, 0, 0)';
            while (getComputedStyle(back).backgroundColor === clear && back.parentElement) back = back.parentElement;
            const svg = e.namespaceURI.includes('svg');
            return [e.tagName + '.' + e.getAttribute('class'), svg ? getComputedStyle(e).fill : getComputedStyle(e).color,
                    getComputedStyle(back).backgroundColor];
          })"""
    )
    ratios = {(tag, contrast(front, back)) for tag, front, back in found if tag.split(".")[0] not in {"title", "desc"}}
    print(f"{scheme}: {len(found)} pieces of text, lowest contrast {min(ratio for _, ratio in ratios):.2f}")
    assert len(found) > 100
    assert [(tag, round(ratio, 2)) for tag, ratio in ratios if ratio < 4.5] == []
    backgrounds = opened.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(colour(backgrounds)) < 200) == (scheme == "dark")


@pytest.mark.parametrize("width", [320, 390, 768, 1400])
@pytest.mark.parametrize("which", ["engine", "hostile", "empty", "long"])
def test_the_page_never_scrolls_sideways(browser: Any, width: int, which: str):
    name = "/".join(("a" * 90, "x" * 255, "deep" * 20))
    report = {
        "engine": engine_report,
        "hostile": lambda: hostile_report(name),
        "empty": lambda: report_of([]),
        "long": long_report,
    }
    opened = Opened(browser, report[which](), viewport={"width": width, "height": 800})
    assert opened.run("document.documentElement.scrollWidth") == width
    drawn = [
        opened.page.locator(f"svg.{kind}").count() and opened.page.locator(f"svg.{kind}").is_visible()
        for kind in ("wide", "narrow")
    ]
    assert drawn == ([0, 0] if which == "empty" else [width > 640, width <= 640])


def test_text_in_the_plot_is_large_enough_on_a_phone(browser: Any):
    opened = Opened(browser, engine_report(), viewport={"width": 360, "height": 800})
    heights = opened.run("[...document.querySelectorAll('svg.narrow text')].map(e => e.getBoundingClientRect().height)")
    assert min(heights) >= 11


def test_labels_of_the_plot_do_not_overlap(browser: Any):
    for width in (360, 1100):
        opened = Opened(browser, engine_report(), viewport={"width": width, "height": 800})
        boxes = opened.run(
            f"""[...document.querySelectorAll('svg.{"narrow" if width < 640 else "wide"} text')].map(e => {{
              const b = e.getBoundingClientRect(); return [e.textContent, b.left, b.top, b.right, b.bottom]; }})"""
        )
        clashes = [
            (one[0], other[0])
            for index, one in enumerate(boxes)
            for other in boxes[index + 1 :]
            if one[1] < other[3] and other[1] < one[3] and one[2] < other[4] and other[2] < one[4]
        ]
        assert clashes == []


def test_everything_has_a_name_for_a_screen_reader(browser: Any):
    opened = Opened(browser, engine_report())
    assert opened.run("document.documentElement.lang") == "en"
    assert opened.run("document.querySelectorAll('h1').length") == 1
    assert opened.run("[...document.querySelectorAll('th')].every(e => ['col', 'row'].includes(e.scope))")
    images = opened.run(
        """[...document.querySelectorAll('svg[role=img]')].map(e => e.getAttribute('aria-label')
          ?? (e.getAttribute('aria-labelledby') ?? '').split(' ')
            .map(id => document.getElementById(id)?.textContent).join(' '))"""
    )
    assert len(images) == 6
    assert all(text.strip() and "undefined" not in text for text in images)
    labelled = opened.run(
        "[...document.querySelectorAll('[aria-labelledby]')].every(e => e.getAttribute('aria-labelledby').split(' ')"
        ".every(id => document.getElementById(id)))"
    )
    assert labelled
    assert opened.run(
        "new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size === document.querySelectorAll('[id]').length"
    )


def test_a_table_that_scrolls_can_be_reached_with_the_keyboard(browser: Any):
    opened = Opened(browser, engine_report(), viewport={"width": 360, "height": 800})
    opened.page.keyboard.press("Tab")
    assert opened.run("document.activeElement.className") == "scroll"


def test_a_loop_of_ten_thousand_iterations_opens(browser: Any):
    report = long_report(10_000)
    opened = Opened(browser, report)
    assert opened.complaints == []
    assert opened.page.locator("tbody tr").count() == 10_001 + 1
    assert opened.page.locator("svg.wide .mark").count() == 3
    size = os.path.getsize("report.html")
    print(f"10,000 iterations: {size / 1e6:.1f} MB")
    assert size < 10_000_000
