"""Every shape of a patterns file, and what is said about one that is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jumar.errors import PatternLoadError
from jumar.judging.patterns.reading import parse_pattern_text, parse_patterns

ONE: dict[str, Any] = {
    "id": "p_001",
    "type": "good",
    "description": "names the file",
    "keywords": ["file"],
    "source": "test",
    "discovered_at": "2026-01-16T12:00:00",
}
SEED: dict[str, Any] = {
    "version": "2.0",
    "last_updated": "2026-01-16T12:00:00Z",
    "iteration_learned": 5,
    "quality_signals": {
        "good_indicators": [{"pattern": "has_clear_user_problem", "weight": 1.0, "learned_iter": 0}],
        "bad_indicators": [{"pattern": "kitchen_sink", "weight": -1.5, "learned_iter": 2}],
    },
    "value_phrases": [{"phrase": "frustrated when", "weight": 0.8, "learned_iter": 3}],
    "tech_validation": {"valid_repo_paths": {"aero": ["apps/"]}, "valid_extensions": [".ts"], "learned_iter": 1},
    "scoring_weights": {"title_quality": 1.0},
    "calibration_history": [{"iteration": 1, "gap": 1.1}],
}


def changed(**fields: Any) -> dict[str, Any]:
    return {"version": "2.0", "patterns": [ONE, {**ONE, "id": "p_002", **fields}]}


def test_a_bare_list_is_a_set():
    found = parse_patterns([ONE], "f")
    assert ["p_001"] == [one.id for one in found.patterns]
    assert "2.0" == found.version


def test_an_empty_list_is_legal():
    assert [] == parse_patterns([], "f").patterns == parse_patterns({"version": "2.0", "patterns": []}, "f").patterns


def test_indicators_of_the_first_design():
    found = parse_patterns(SEED, "f")
    said = [
        (one.id, one.type, one.description, one.keywords, one.weight, one.learned_iter, one.category) for one in found.patterns
    ]
    assert [
        ("p_001", "good", "has_clear_user_problem", ["has_clear_user_problem"], 1.0, 0, "good_story_indicators"),
        ("p_002", "bad", "kitchen_sink", ["kitchen_sink"], 1.5, 2, "bad_story_indicators"),
    ] == said
    assert found.last_updated == found.patterns[0].discovered_at
    assert ["frustrated when"] == [one.phrase for one in found.value_phrases]
    assert {"aero": ["apps/"]} == found.tech_validation.valid_repo_paths
    assert (5, {"title_quality": 1.0}, [{"iteration": 1, "gap": 1.1}]) == (
        found.iteration_learned,
        found.scoring_weights,
        found.calibration_history,
    )


def test_what_the_first_designs_migration_writes():
    entry = {"description": "Keep OAuth flow in one story", "keywords": ["oauth flow"], "weight": 1.0, "source": "unknown"}
    document = {"version": "2.0", "quality_signals": {"good_indicators": [entry], "bad_indicators": []}, "tech_validation": {}}
    (found,) = parse_patterns(document, "f").patterns
    assert ("p_001", "good", ["oauth flow"], "unknown") == (found.id, found.type, found.keywords, found.source)


def test_the_plain_lists_of_the_first_design():
    heuristics = {"ac_count": "1 point if 3-7 acceptance criteria"}
    document = {
        "good_story_indicators": ["reasonable_scope"],
        "bad_story_indicators": ["too_vague"],
        "valid_tech_paths": {"tack": ["service/"]},
        "gestalt_heuristics": heuristics,
    }
    found = parse_patterns(document, "f")
    assert [("good", "reasonable_scope"), ("bad", "too_vague")] == [(one.type, one.description) for one in found.patterns]
    assert {"tack": ["service/"]} == found.tech_validation.valid_repo_paths
    assert heuristics == found.model_dump()["gestalt_heuristics"]


V1 = {"type": "good_pattern", "description": "d", "example": "e", "discovered_at": "2026-01-13T21:11:48"}


@pytest.mark.parametrize("document", [{"version": "1.0", "patterns": [V1]}, {"patterns": [V1], "version": "2.0"}, [V1]])
def test_format_1_is_told_how_to_migrate(document: Any):
    with pytest.raises(PatternLoadError, match=r"jumar patterns migrate old\.json"):
        parse_patterns(document, "old.json")


@pytest.mark.parametrize("version", ["2.1", "3.0", "10", "2.0.1"])
def test_a_newer_version_is_named(version: str):
    with pytest.raises(PatternLoadError, match=f"f: written by a newer jumar: format {version}, .* up to 2.0; update"):
        parse_patterns({"version": version, "patterns": [{"unheard": "of"}]}, "f")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"weight": 3.0}, "weight is 3.0: Input should be less than or equal to 2"),
        ({"weight": float("nan")}, "weight is NaN: Input should be a finite number"),
        ({"type": "great"}, "type is \"great\": Input should be 'good' or 'bad'"),
        ({"keywords": [1]}, "keywords.0 is 1: Input should be a valid string"),
        ({"status": "sleeping"}, "status is \"sleeping\": Input should be 'active', 'provisional', 'rejected' or 'pruned'"),
        ({"description": "x" * 90, "accuracy": "y" * 90}, 'accuracy is "' + "y" * 58),
    ],
)
def test_a_value_out_of_bounds_names_line_pattern_field_and_what_is_allowed(fields: dict[str, Any], message: str):
    text = json.dumps(changed(**fields), indent=1)
    line = text[: text.index("p_002")].count("\n")
    with pytest.raises(PatternLoadError) as raised:
        parse_pattern_text(text, "f.json")
    assert str(raised.value).startswith(f"f.json, line {line}: pattern 2 (p_002): {message}")
    with pytest.raises(PatternLoadError, match=r"^f.json: pattern 2 \(p_002\): "):
        parse_patterns(changed(**fields), "f.json")


@pytest.mark.parametrize(
    "text", ['{"patterns":[{}],"version":"2.0"}', "[\n\n{}]", '{"a":{"b":[1]},\n"version":"2.0","patterns":[{}]}']
)
def test_all_missing_fields_of_a_pattern_are_named(text: str):
    line = text[: text.index("{}")].count("\n") + 1
    too = "type, description, keywords, source, discovered_at too"
    with pytest.raises(PatternLoadError, match=rf"^f, line {line}: pattern 1: id is missing; {too}$"):
        parse_pattern_text(text, "f")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("text", 'not a patterns file: "text" instead of an object'),
        (None, "not a patterns file: null"),
        ({}, "'version' is missing"),
        ({"version": "2.0"}, "'patterns' is missing"),
        ({"version": 2, "patterns": []}, "version is 2: Input should be '2.0'"),
        ({"version": "2.0", "patterns": {}}, "patterns is {}: Input should be a valid list"),
        ({"version": "2.0", "patterns": [ONE, ONE]}, "pattern 2 has the id 'p_001' of pattern 1"),
        ({"version": "2.0", "patterns": ["p"]}, 'pattern 1: it is "p"'),
        ({"version": "2.0", "patterns": [], "x": {"y": [float("inf")]}}, r"x.y\[0\] is not a finite number"),
        ({"version": "2.0", "quality_signals": []}, r"quality_signals is \[\]"),
        ({"version": "2.0", "quality_signals": {"good_indicators": 1}}, "good_indicators is 1; give a list"),
        ({"version": "2.0", "quality_signals": {"good_indicators": [1]}}, "good_indicators, entry 1: 1; give an object"),
        ({"version": "2.0", "quality_signals": {"good_indicators": [{"weight": 1}]}}, "neither pattern nor description"),
        ({"version": "2.0", "quality_signals": {"bad_indicators": [{"pattern": "a", "weight": -2.5}]}}, "weight is 2.5"),
    ],
)
def test_what_is_no_patterns_file_is_told_what_one_is(data: Any, message: str):
    with pytest.raises(PatternLoadError, match=f"^f: .*{message}|^f: {message}"):
        parse_patterns(data, "f")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f, line 1: not JSON: it is empty"),
        ('{"version":\n "2.0",,', "f, line 2: not JSON"),
        ("[" * 100_000, "f: not a patterns file: nested too deeply"),
        ('{"version": ' + "1" * 5000 + "}", "f: not a patterns file: Exceeds"),
        ("x" * 1_000_000, "f, line 1: not JSON: Expecting value, column 1$"),
    ],
)
def test_what_is_not_json_is_named_by_its_line(text: str, message: str):
    with pytest.raises(PatternLoadError, match=message):
        parse_pattern_text(text, "f")
