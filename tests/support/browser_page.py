"""A page in a real browser: what it complains about, what it asks for, and how well its text can be read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: the page was not opened in a browser"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync"
)
_CONTRASTS = """() => {
  const pen = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d');
  const bright = (...colours) => {
    for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    const linear = [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  return [...document.querySelectorAll('body *')]
    .filter(e => !['title', 'desc'].includes(e.tagName.toLowerCase()) && !e.classList.contains('unseen'))
    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .map(e => {
      const backs = [];
      for (let at = e; at; at = at.parentElement) backs.unshift(getComputedStyle(at).backgroundColor);
      const style = getComputedStyle(e), colour = e.closest('svg') ? style.fill : style.color;
      const front = bright('white', ...backs, colour), back = bright('white', ...backs);
      return [`${e.tagName}.${e.getAttribute('class')}`, (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05)];
    });
}"""


def started_browser() -> Iterator[Any]:
    """Yield a real browser; without one on PATH the tests of pages are skipped, visibly."""
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH: the page was not opened in a browser")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield started
        started.close()


class Opened:
    """A page that was opened from a file, with all that it complained about or asked for."""

    def __init__(self, browser: Any, html: str, place: Path | None = None, **options: Any) -> None:
        path = (place or Path()) / "report.html"
        path.write_text(html, encoding="utf-8")
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

    def contrasts(self, said: str) -> list[tuple[str, float]]:
        """Return WCAG 2's contrast ratio of each piece of text, by the pixels' colours: a canvas knows every notation of CSS."""
        found = [(tag, ratio) for tag, ratio in self.run(_CONTRASTS)]
        print(f"{said}: {len(found)} pieces of text, lowest contrast {min(ratio for _, ratio in found):.2f}")
        return found
