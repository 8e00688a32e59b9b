"""Draws the dashboard's pictures from a real run: ``jumar demo`` in a folder of its own, in a real browser on the path."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

DOCS = Path(__file__).resolve().parent
PROGRAM = str(Path(sys.executable).with_name("jumar"))
SCREENS = {"dashboard-run.png": ("", 985), "dashboard-iteration.png": ("/iterations/3?against=start", 900)}
WIDTH = 1100


def main() -> int:
    """Make the pictures; return the exit code."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.stdout.write("no Chromium on the path: the dashboard's pictures stay as they are\n")
        return 0
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([PROGRAM, "demo", "-q"], cwd=place, check=True)
        with subprocess.Popen([PROGRAM, "dashboard", "--no-open"], cwd=place, stdout=subprocess.PIPE, text=True) as served:
            try:
                address = next(iter(served.stdout or ())).strip().rstrip("/")
                draw(address, chromium)
            finally:
                served.send_signal(signal.SIGINT)
    return 0


def draw(address: str, chromium: str) -> None:
    """Write each screen, in the light scheme, from the top."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-background-networking"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.goto(f"{address}/?kind=loop")
        loop = page.locator("table.runs tbody a").first.get_attribute("href")
        for name, (path, height) in SCREENS.items():
            page.goto(f"{address}{loop}{path}")
            page.screenshot(path=DOCS / name, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
