"""Migration: nothing is lost, and what comes out can fire. The recorded stories are counted where they are there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jumar.errors import PatternLoadError
from jumar.judging.items.records import read_items
from jumar.judging.patterns import PatternMatcher, PatternSet, PatternV2, extract_keywords, migrate_existing_patterns
from jumar.judging.patterns.coverage import NaiveCount, measure_coverage, same_firing, same_wording
from jumar.judging.patterns.phrases import bits, compound, derive_phrases, domain_terms, forms


def v1(description: str, **fields: Any) -> dict[str, Any]:
    known = {"type": "good_pattern", "example": "e", "discovered_at": "2026-01-13T21:11:48.132107", "source": "reviews"}
    return {**known, "description": description, **fields}


LEGACY: dict[str, Any] = {
    "version": "1.0",
    "last_updated": "2026-01-14T03:50:41.218897",
    "patterns": [
        v1("Bundle error handling with the core fix", example="AC #5", reviewer="k"),
        v1("Do not change the backend for timezone display", type="bad_pattern", source="other"),
        v1("bundle ERROR handling - with the core fix!"),
    ],
    "service_insights": {
        "parcel": [
            {
                "finding": "The form is in parcel/web/src/form.tsx, line 12; see parcel/web/form.ts and parcel/jobs/send.py.",
                "at": "x",
            },
            {"finding": "Not a path: and/or, 12/2025, https://example.org/parcel/a/b.ts, parcel/readme"},
        ],
        "depot": [],
    },
    "scoping_rules": [{"action": "SPLIT", "detail": "into two"}],
    "something_else": {"kept": True},
}


def test_nothing_is_lost():
    found = migrate_existing_patterns(LEGACY)
    for old, new in zip(LEGACY["patterns"], found["patterns"], strict=True):
        assert {**old, "type": old["type"].removesuffix("_pattern")} == {name: new[name] for name in old}
    assert LEGACY["service_insights"] == found["tech_validation"]["service_insights"]
    for name in ("scoping_rules", "something_else", "last_updated"):
        assert LEGACY[name] == found[name]
    assert found == json.loads(json.dumps(found))
    loaded = PatternSet.model_validate(found)
    assert found["patterns"][0]["reviewer"] == loaded.patterns[0].model_dump()["reviewer"]


def test_what_is_new():
    first, second, third = migrate_existing_patterns(LEGACY)["patterns"]
    assert ["p_001", "p_002", "p_003"] == [first["id"], second["id"], third["id"]]
    assert [("good", 2), ("bad", 1), ("good", 2)] == [(one["type"], one["frequency"]) for one in (first, second, third)]
    assert {("provisional", 1.0)} == {(one["status"], one["weight"]) for one in (first, second, third)}
    assert all(one["keywords"] and one["phrases"] for one in (first, second, third))


def test_paths_are_those_that_the_insights_really_name():
    found = migrate_existing_patterns(LEGACY)["tech_validation"]
    assert {"parcel": ["web/", "jobs/"]} == found["valid_repo_paths"]
    assert [".py", ".ts", ".tsx"] == sorted(found["valid_extensions"])


def test_a_technical_section_of_its_own_is_joined_with_the_insights():
    own = {
        "valid_repo_paths": {"parcel": ["jobs/", "lib/"], "quay": ["src/"]},
        "service_insights": {"quay": [1], "depot": [2]},
        "owner": "us",
        "valid_extensions": None,
    }
    found = migrate_existing_patterns({**LEGACY, "tech_validation": own})["tech_validation"]
    assert {"parcel": ["jobs/", "lib/", "web/"], "quay": ["src/"]} == found["valid_repo_paths"]
    assert {**LEGACY["service_insights"], "quay": [1], "depot": [2]} == found["service_insights"]
    assert ("us", 3) == (found["owner"], len(found["valid_extensions"]))


def test_what_a_pattern_has_of_its_own_is_used():
    own = {
        "id": "own",
        "weight": 0.5,
        "keywords": ["a b"],
        "phrases": ["zebra"],
        "regex": "z+",
        "category": "c",
        "status": "pruned",
        "frequency": 9,
        "accuracy": 0.25,
        "times_fired": 4,
        "learned_iter": 2,
    }
    found = migrate_existing_patterns({"patterns": [v1("Bundle error handling", **own)]})["patterns"][0]
    assert own == {name: found[name] for name in own}
    assert "v1" not in found


def test_what_is_not_allowed_stands_aside():
    own = {
        "id": 7,
        "weight": -1.5,
        "keywords": "a",
        "phrases": [" "],
        "regex": "(a",
        "category": ["c"],
        "status": "active",
        "frequency": -1,
        "accuracy": 2,
        "times_fired": "4",
        "learned_iter": 0.5,
    }
    document = migrate_existing_patterns({"patterns": [v1("Bundle error handling", **own, v1="taken")]})
    (found,) = document["patterns"]
    assert (own, "taken", "p_001", 1.0, "provisional") == tuple(found[name] for name in ("v1_", "v1", "id", "weight", "status"))
    PatternMatcher(PatternSet.model_validate(document))


def test_ids_stay_apart():
    given = [v1("a"), v1("b", id="p_001"), v1("c", id="x"), v1("d", id="x"), v1("e", id=" ")]
    found = migrate_existing_patterns({"patterns": given})["patterns"]
    assert ["p_001_", "p_001", "x", "p_004", "p_005"] == [one["id"] for one in found]
    assert [None, None, None, {"id": "x"}, {"id": " "}] == [one.get("v1") for one in found]


@pytest.mark.parametrize("description", ["", " \n"])
def test_a_pattern_that_says_nothing_has_no_phrases(description: str):
    (found,) = migrate_existing_patterns({"patterns": [v1(description)]})["patterns"]
    assert ([], [], None) == (found["phrases"], found["keywords"], found["regex"])


@pytest.mark.parametrize("version", [1, 1.0, "1", "1.0", "1.2"])
def test_versions_that_are_migrated(version: Any):
    assert "2.0" == migrate_existing_patterns({"version": version, "patterns": []})["version"]


def test_the_legacy_file_is_not_touched():
    before = json.dumps(LEGACY)
    migrate_existing_patterns(LEGACY)
    assert before == json.dumps(LEGACY)


def test_an_empty_file_of_format_1():
    found = migrate_existing_patterns({"version": "1.0", "patterns": []})
    assert [] == PatternSet.model_validate(found).patterns


@pytest.mark.parametrize(
    ("legacy", "message"),
    [
        ([], r"^f: not a file of format 1: \[\]"),
        ({"version": "2.0", "patterns": []}, "is of format 2.0 already"),
        ({"version": "3.1", "patterns": []}, "newer jumar: format 3.1"),
        ({"version": 2.0, "patterns": []}, "is of format 2.0 already"),
        ({"version": 3, "patterns": []}, "newer jumar: format 3"),
        ({"version": True, "patterns": []}, "version is true; what can be migrated"),
        ({"version": "0.9", "patterns": []}, r"^f: format 0.9 is not known here; known are 1.0, which can be migrated, and 2.0$"),
        ({"patterns": [v1("d", x=[float("nan")])]}, r"f: patterns\[0\].x\[0\] is not a finite number"),
        ({"patterns": [], "tech_validation": "x"}, 'tech_validation is "x", and service_insights says'),
        (
            {"patterns": [], "service_insights": {"a": "x"}, "tech_validation": {"service_insights": {"a": "y"}}},
            'tech_validation.service_insights.a is "y", and service_insights says "x"; keep one',
        ),
        ({"version": "1.0"}, "'patterns' is missing"),
        ({"patterns": {}}, r"'patterns' is \{\}; give a list"),
        ({"patterns": [v1("d"), "x"]}, r"pattern 2: it is \"x\""),
        ({"patterns": [{"type": "good_pattern"}]}, "pattern 1: description is missing"),
        ({"patterns": [v1("d", type="good")]}, "pattern 1: type is \"good\": Input should be 'good_pattern' or"),
        ({"patterns": [v1("d", discovered_at="soon")]}, 'pattern 1: discovered_at is "soon"'),
        ({"patterns": [], "service_insights": []}, r"service_insights is \[\]"),
        ({"patterns": [], "scoping_rules": 3}, "scoping_rules.* is 3"),
    ],
)
def test_what_is_no_file_of_format_1(legacy: Any, message: str):
    with pytest.raises(PatternLoadError, match=message):
        migrate_existing_patterns(legacy, where="f")


# --------------------------------------------------------------------------------------------------------- what fires


def fires(description: str, text: str) -> bool:
    return bool(PatternMatcher(PatternSet.model_validate(migrate_existing_patterns({"patterns": [v1(description)]}))).fired(text))


@pytest.mark.parametrize(
    ("description", "text"),
    [
        ("Include error handling within the same slice", "As a clerk, I want to see why an upload fails"),
        ("Keep OAuth for a single vendor in one story", "As a member, I want to stay logged in"),
        ("DST edge cases belong together", "As a driver, I want departures in my local time"),
        ("Correctly scope the parcel label preview", "I want previews of parcel labels before I print"),
        ("Name ParcelFormView as the place of the fix", "The parcelformview breaks on a phone"),
        ("Story identifies the exact file path", "Mend src/forms/label.tsx so that the label fits"),
        ("Group invoice numbering with its settings", "I want to number invoices by year"),
        ("No backend changes are needed for the label colours", "New colours, without backend changes"),
    ],
)
def test_a_pattern_fires_on_what_it_is_about(description: str, text: str):
    assert fires(description, text)


@pytest.mark.parametrize(
    ("description", "text"),
    [
        ("Include error handling within the same slice", "As a clerk, I want a story about the same slice of bread"),
        ("No backend changes are needed for the label colours", "As a clerk, I want backend changes"),
        ("It belongs here when it doesn't require backend changes", "As a clerk, I want the backend changed"),
        ("Story correctly identifies the single root cause", "As a user, I want a single story that identifies me correctly"),
        ("Keep it in one service", "As a cook, I want one good service"),
        ("ALL criteria must hold TO BE good", "I want to be able to see all of my good data"),
    ],
)
def test_a_pattern_does_not_fire_on_common_words_or_on_the_opposite(description: str, text: str):
    assert not fires(description, text)


def test_phrases_are_the_same_in_every_process():
    code = (
        "import json,sys; from jumar.judging.patterns import migrate_existing_patterns as m;"
        "print(json.dumps(m(json.load(sys.stdin)), sort_keys=True))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(LEGACY),
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert {json.dumps(migrate_existing_patterns(LEGACY), sort_keys=True) + "\n"} == said


def test_concepts_are_named():
    assert ["authentication", "errors"] == derive_phrases("Bundle OAuth with its error messages").concepts
    assert [] == derive_phrases("No API is touched, without any error handling").concepts


def test_the_recorded_patterns_fire_where_the_naive_ones_do_not(recorded_data: Path):
    legacy = json.loads((recorded_data / "patterns" / "learned_patterns_v1.json").read_text())
    found = PatternSet.model_validate(migrate_existing_patterns(legacy))
    texts = [item.text for item in read_items(recorded_data / "stories")]
    naive = NaiveCount(found)
    measured = measure_coverage(found, naive.seen(texts))
    assert {"items": len(texts), "fired_items": 0, "fired_patterns": 0} == naive.as_json()
    assert 0.15 < measured.fired_items / measured.items < 0.4
    assert measured.fired_patterns > 300
    assert measured.largest_share < 0.05  # nothing fires on everything


# ----------------------------------------------------------------------------------------------------- words, keywords


def test_forms_of_words():
    assert {"error", "errors"} == set(forms("error"))
    assert {"identify", "identifies", "identified", "identifying"} == set(forms("identifies"))
    assert {"stop", "stops", "stopped", "stopping"} == set(forms("stop"))
    assert {"validation", "validate", "validated", "validates"} < set(forms("validation"))
    assert {"personalization", "personalise", "personalized"} < set(forms("personalization"))
    assert "integrity" not in forms("integration")
    assert ("qwertling", "qwertlings") == forms("qwertling")


def test_how_common_a_word_is():
    assert 4 < bits("the") < 6 < bits("user") < bits("validation") < bits("qwertling") == 30


def test_compounds():
    assert ("time", "zone") == compound("timezone")
    assert ("back", "end") == compound("backend")
    assert compound("integration") is compound("time") is None


def test_terms_stay_whole():
    text = "In depot/api/label_form.py, ParcelView calls renderLabel() and send_mail; the API of Mondial and parcel break."
    assert ["depot/api/label_form.py", "ParcelView", "renderLabel", "send_mail", "API", "Mondial", "parcel"] == domain_terms(
        text, ["parcel"]
    )


def test_keywords_begin_with_terms_and_are_few():
    found = extract_keywords("The label preview of ParcelView must show the customs declaration before printing", limit=4)
    assert "parcelview" == found[0]
    assert 2 <= len(found) <= 4
    assert all(word == word.lower() for word in found)
    assert any("customs" in word for word in extract_keywords("The preview must show the customs declaration before printing"))


@pytest.mark.parametrize("text", ["", "   ", "!!!", "12 34"])
def test_a_text_without_words_has_no_keywords(text: str):
    assert [] == [word for word in extract_keywords(text) if any(char.isalpha() for char in word)]


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValueError, match="limit is 0"):
        extract_keywords("a text", limit=0)


# ------------------------------------------------------------------------------------------------- coverage, duplicates


def pattern(number: int, phrase: str, **fields: Any) -> PatternV2:
    known: dict[str, Any] = {"type": "good", "description": phrase, "keywords": [], "phrases": [phrase], "source": "t"}
    return PatternV2.model_validate({"id": f"p_{number}", "discovered_at": "2026-01-01T00:00:00Z", **known, **fields})


def test_coverage_counts_items_and_patterns():
    patterns = [pattern(1, "red"), pattern(2, "blue"), pattern(3, "green"), pattern(4, "red", status="pruned")]
    found = measure_coverage(PatternSet(version="2.0", patterns=patterns), ["red red", "a red and blue one", "none"])
    assert (3, 2, 2, {"p_1": 2, "p_2": 1, "p_3": 0}, ["p_3"]) == (
        found.items,
        found.fired_items,
        found.fired_patterns,
        found.fired,
        found.never,
    )
    assert {"items": 3, "fired_items": 2, "fired_patterns": 2, "largest_share": 2 / 3} == found.as_json()


def test_the_naive_count_wants_all_keywords():
    patterns = [pattern(1, "a", keywords=["Red", "blue"]), pattern(2, "b", keywords=[])]
    naive = NaiveCount(PatternSet(version="2.0", patterns=patterns))
    assert ["red", "RED and bluest"] == list(naive.seen(["red", "RED and bluest"]))
    assert {"items": 2, "fired_items": 1, "fired_patterns": 1} == naive.as_json()


def test_coverage_of_nothing():
    found = measure_coverage(PatternSet(version="2.0", patterns=[]), [])
    assert {"items": 0, "fired_items": 0, "fired_patterns": 0, "largest_share": 0.0} == found.as_json()


def test_patterns_that_say_the_same():
    patterns = [
        pattern(1, "keep the error path in one story"),
        pattern(2, "In one story keep the ERROR path", type="bad"),
        pattern(3, "something else"),
        pattern(4, ""),
        pattern(5, ""),
    ]
    assert [("p_1", "p_2", 1.0, False)] == [
        (one.first, one.second, one.similarity, one.same_type) for one in same_wording(patterns)
    ]


def test_patterns_that_fire_on_the_same():
    patterns = [pattern(number, str(number)) for number in range(5)]
    fired = {0: [1, 2, 3, 4], 1: [1, 2, 3, 4], 2: [1, 2, 3, 4, 5], 3: [7, 8, 9], 4: [1]}
    found = same_firing(patterns, fired, threshold=0.8)
    assert [("p_0", "p_1", 1.0), ("p_0", "p_2", 0.8), ("p_1", "p_2", 0.8)] == [
        (one.first, one.second, one.similarity) for one in found
    ]
