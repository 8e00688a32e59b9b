"""Rubrics as models: the built-in ones, what contradicts itself, and digests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from jumar.judging import StoryRubric, TextRubric, builtin_rubric
from jumar.judging.cheap.evidence import DETECTORS
from jumar.judging.cheap.panels import StoryPanel, TextPanel

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "rubrics.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["story", "text"])
def test_the_built_in_rubrics_spell_out_every_default_but_lists_of_words(kind: Any):
    rubric = builtin_rubric(kind)
    defaults = type(rubric)(name=kind, kind=kind, judge=rubric.judge).model_dump()
    given = rubric.model_dump()
    for component, settings in given.items():
        if isinstance(settings, dict) and component != "judge":
            without = {name: value for name, value in settings.items() if name != "phrases"}
            assert without == {name: value for name, value in defaults[component].items() if name != "phrases"}
    assert {"1", "5"} <= set(rubric.judge.anchors)


@pytest.mark.parametrize(
    ("kind", "table", "message"),
    [
        ("text", {"length": {"enough": 9, "most": 8}}, "enough is more than most"),
        ("text", {"sentences": {"shortest": 9, "longest": 8}}, "shortest is more than longest"),
        ("text", {"weights": dict.fromkeys(TextRubric.COMPONENTS, 0)}, "every weight is 0"),
        ("text", {"hedging": {"most": 0}}, "greater than 0"),
        ("story", {"ac_count": {"best_to": 2}}, "in this order"),
    ],
)
def test_what_contradicts_itself_is_refused(kind: str, table: dict[str, Any], message: str):
    model = TextRubric if kind == "text" else StoryRubric
    with pytest.raises(ValueError, match=message):
        model.model_validate({"name": "n", "kind": kind, "judge": {"task": "t", "criteria": ["c"]}, **table})


def test_a_rubric_has_the_components_of_its_kind():
    with pytest.raises(ValueError, match="a rubric of kind 'text' has other components"):
        StoryRubric(name="n", kind="text", judge=builtin_rubric("story").judge)


def test_digests_tell_rubrics_apart():
    story = builtin_rubric("story")
    same = StoryRubric.model_validate(story.model_dump())
    other = StoryRubric.model_validate({**story.model_dump(), "title_quality": {"longest": 79}})
    assert re.fullmatch("[0-9a-f]{64}", story.digest)
    assert (True, False) == (same.digest == story.digest, other.digest == story.digest)


def test_the_page_names_every_component_reason_indicator_and_setting():
    missing = [name for panel in (StoryPanel, TextPanel) for name in (*panel.names, *panel.codes) if f"`{name}`" not in PAGE]
    assert [] == missing + [name for name in DETECTORS if f"`{name}`" not in PAGE]
    settings = {
        name
        for model in (StoryRubric, TextRubric)
        for part in model.COMPONENTS
        for name in builtin_rubric(model.KIND).model_dump()[part]
    }
    assert set() == {name for name in settings if not re.search(rf"`(?:\[[a-z_]+\.)?{name}\]?`", PAGE)}
