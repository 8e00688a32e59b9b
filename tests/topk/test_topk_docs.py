"""The pages about strategies are true."""

from __future__ import annotations

import dataclasses
import doctest
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from jumar.topk import STRATEGIES
from jumar.topk.contract import SCALES

DOCS = Path(__file__).resolve().parents[2] / "docs" / "topk"


def test_every_strategy_has_a_page_and_every_page_a_strategy():
    assert sorted(STRATEGIES) == sorted(page.stem for page in DOCS.glob("*.md") if page.stem not in {"index", "stages"})


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_the_example_prints_what_the_page_shows(name: str):
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    sessions = re.findall(r"```pycon\n(.*?)```", text, flags=re.DOTALL)
    result = doctest.DocTestRunner(verbose=False).run(doctest.DocTestParser().get_doctest("\n".join(sessions), {}, name, name, 0))
    assert (4, 0) == (result.attempted, result.failed)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_the_page_lists_every_parameter_with_its_default(name: str):
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", text, flags=re.MULTILINE))
    strategy: Any = STRATEGIES[name]
    defaults = {one.name: one.default for one in dataclasses.fields(strategy)}
    assert set(defaults) == set(rows)
    for field, default in defaults.items():
        shown = rows[field].strip("`").replace("−", "-")
        assert ("none" if default is None else str(default)) == shown, field


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_the_page_names_its_source_its_scales_and_when_it_loses(name: str):
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    strategy: Any = STRATEGIES[name]
    row = next(line for line in text.splitlines() if line.startswith("| `scale` |"))
    assert list(strategy.SCALES) == [scale for scale in SCALES if f"`{scale}`" in row.split("|")[3]]
    for words in ("**Wins** ", "**Loses** ", "Source: ", "Metadata: "):
        assert words in text


def test_the_table_has_every_strategy():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    assert sorted(STRATEGIES) == sorted(re.findall(r"^\| \[`(\w+)`\]", text, flags=re.MULTILINE))


@pytest.fixture(scope="module")
def plots() -> Any:
    spec = importlib.util.spec_from_file_location("topk_plots", DOCS.parent / "_topk_plots.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for the module of a class
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_the_plot_is_what_the_strategy_does_today(name: str, plots: Any):
    again = "draw them again: python docs/_topk_plots.py docs/topk"
    picture = (DOCS / f"{name}.svg").read_bytes()
    assert plots.picture(name).encode() == picture, again
    assert f"![{plots.alternative(name)}]({name}.svg)" in (DOCS / f"{name}.md").read_text(encoding="utf-8"), again
    assert len(picture) < 15_000
    assert "svg" in ET.fromstring(picture).tag


def test_a_plot_shows_a_good_cut_beside_a_bad_one(plots: Any):
    assert sorted(STRATEGIES) == sorted(plots.CASES) == sorted(path.stem for path in DOCS.glob("*.svg"))
    for name in STRATEGIES:
        good, bad = (panel.f1() for panel in plots.panels(name))
        assert good > 0.7 > bad, name
