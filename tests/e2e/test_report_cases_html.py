"""The page of cases in a real browser: nothing is loaded or run, all of it can be read, on any width and in both schemes."""

from __future__ import annotations

from typing import Any

import pytest
from browser_page import Opened
from cases_kit import POISONED, make_run
from report_samples import HOSTILE

from jumar.cases.report import load_run
from jumar.cases.report.render import render_html

ALL_STATES: dict[int, list[Any]] = {**POISONED, 3: ["exit 1", None, (5, 5, 5)], 4: [(6, 6, 6)], 5: []}


def opened_run(browser: Any, rows: dict[int, list[Any]] = ALL_STATES, **options: Any) -> Opened:
    return Opened(browser, render_html(load_run(make_run(rows, select="last", begun=4))), **options)


def test_the_page_opens_from_a_file_and_fetches_nothing(browser: Any):
    opened = opened_run(browser)
    assert ([], [opened.address]) == (opened.complaints, opened.requests)
    assert "run r · Case Report" == opened.page.title()
    assert "2px" == opened.run("getComputedStyle(document.querySelector('.cell.best')).borderTopWidth"), (
        "the style's hash is wrong"
    )
    assert ["★ 9", "★ 4", "★ 5", "★ 6"] == opened.page.locator(".cell.best b").all_inner_texts()
    assert ["↓ into case 2", "↓ into case 3"] == opened.page.locator(".arrow.worse").all_inner_texts()


def test_states_differ_without_colour(browser: Any):
    """By text or by line: not evaluated, failed, no usable score and a score never look the same in grey."""
    opened = opened_run(browser)
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
    opened = opened_run(browser, {1: [name, (1, 1, 1)]})
    assert "undefined" == opened.run("typeof window.__pwned")
    assert 0 == opened.run("document.scripts.length + document.images.length + document.links.length + document.forms.length")
    assert ([], [opened.address]) == (opened.complaints, opened.requests)
    assert "\x1b" not in opened.run("document.body.textContent")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_in_both_colour_schemes(browser: Any, scheme: str):
    opened = opened_run(browser, color_scheme=scheme)
    found = opened.contrasts(scheme)
    assert len(found) > 100
    assert [] == [(tag, round(ratio, 2)) for tag, ratio in found if ratio < 4.5]


@pytest.mark.parametrize("width", [320, 768, 1400])
@pytest.mark.parametrize("rows", [ALL_STATES, {1: ["x" * 300, *[(1, 1, 1)] * 19]}, {1: []}], ids=["states", "wide", "empty"])
def test_the_page_never_scrolls_sideways(browser: Any, width: int, rows: dict[int, list[Any]]):
    opened = opened_run(browser, rows, viewport={"width": width, "height": 800})
    assert width == opened.run("document.documentElement.scrollWidth")


def test_everything_has_a_name_for_a_screen_reader(browser: Any):
    opened = opened_run(browser)
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
