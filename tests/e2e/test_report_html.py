"""The page in a real browser: it opens from a file, loads nothing, runs nothing, and can be read by everybody."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from browser_page import Opened
from report_samples import HOSTILE, engine_report, hostile_report, long_report, report_of

from jumar.loop.report.page import render_html
from jumar.loop.report.read import LoopReport

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


def opened_report(browser: Any, report: LoopReport, **options: Any) -> Opened:
    return Opened(browser, render_html(report), **options)


def colour(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text[text.index("(") + 1 : -1].split(",")[:3])


def test_the_page_opens_from_a_file_and_fetches_nothing(browser: Any):
    opened = opened_report(browser, engine_report())
    assert opened.complaints == []
    assert opened.requests == [opened.address]
    assert opened.page.title() == "readme-polish · Output Selection Report"
    assert opened.run("getComputedStyle(document.body).fontVariantNumeric") == "tabular-nums", "the style sheet's hash is wrong"
    assert opened.page.locator("tr.chosen th").inner_text() == "4"
    assert (
        opened.page.locator("svg.wide .mark.chosen title").text_content() == "iteration 4: 85.3%, verified, 31s, $0.06, selected"
    )


@pytest.mark.parametrize("name", [*ATTACKS, *HOSTILE])
def test_hostile_names_are_inert(browser: Any, name: str):
    opened = opened_report(browser, hostile_report(name))
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
    opened = opened_report(browser, engine_report(), color_scheme=scheme)
    found = opened.contrasts(scheme)
    assert len(found) > 100
    assert [(tag, round(ratio, 2)) for tag, ratio in found if ratio < 4.5] == []
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
    opened = opened_report(browser, report[which](), viewport={"width": width, "height": 800})
    assert opened.run("document.documentElement.scrollWidth") == width
    drawn = [
        opened.page.locator(f"svg.{kind}").count() and opened.page.locator(f"svg.{kind}").is_visible()
        for kind in ("wide", "narrow")
    ]
    assert drawn == ([0, 0] if which == "empty" else [width > 640, width <= 640])


def test_text_in_the_plot_is_large_enough_on_a_phone(browser: Any):
    opened = opened_report(browser, engine_report(), viewport={"width": 360, "height": 800})
    heights = opened.run("[...document.querySelectorAll('svg.narrow text')].map(e => e.getBoundingClientRect().height)")
    assert min(heights) >= 11


def test_labels_of_the_plot_do_not_overlap(browser: Any):
    for width in (360, 1100):
        opened = opened_report(browser, engine_report(), viewport={"width": width, "height": 800})
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
    opened = opened_report(browser, engine_report())
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
    opened = opened_report(browser, engine_report(), viewport={"width": 360, "height": 800})
    opened.page.keyboard.press("Tab")
    assert opened.run("document.activeElement.className") == "scroll"


def test_a_loop_of_ten_thousand_iterations_opens(browser: Any):
    report = long_report(10_000)
    opened = opened_report(browser, report)
    assert opened.complaints == []
    assert opened.page.locator("tbody tr").count() == 10_001 + 1
    assert opened.page.locator("svg.wide .mark").count() == 3
    size = os.path.getsize("report.html")
    print(f"10,000 iterations: {size / 1e6:.1f} MB")
    assert size < 10_000_000
