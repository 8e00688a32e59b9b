"""What the pages about choosing k show is what their code prints, pasted as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "docs/how-to/choose-k.md",
    "docs/how-to/own-strategy.md",
    "docs/topk/stages.md",
    "docs/reference/retrieval.md",
    "docs/reference/api.md",
)
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def examples() -> list[tuple[str, str, str]]:
    return [(page, code, shown) for page in PAGES for code, shown in EXAMPLE.findall((ROOT / page).read_text(encoding="utf-8"))]


def test_no_page_has_code_without_what_it_prints():
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert 0 < len(EXAMPLE.findall(text)) == text.count("```python"), page


@pytest.mark.parametrize(("page", "code", "shown"), examples())
def test_the_code_of_a_page_prints_what_the_page_shows(
    page: str, code: str, shown: str, fresh_place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
    for library in ("langchain_core", "llama_index.core", "haystack"):
        if library in code:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pytest.importorskip(library)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (0, shown) == (done.returncode, done.stdout), f"{page}: {done.stderr}"
