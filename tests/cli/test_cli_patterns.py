"""`jumar patterns`: what each command prints, and what it says about bad input."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from commands import call

from jumar.judging.patterns import load_patterns_safely, save_patterns_safely
from jumar.judging.patterns.storage import load_pattern_set

OLD: dict[str, Any] = {
    "version": "1.0",
    "patterns": [
        {
            "type": kind,
            "description": description,
            "example": "e",
            "discovered_at": "2026-01-13T21:11:48",
            "source": "reviews",
        }
        for kind, description in [
            ("good_pattern", "Bundle error handling with the core fix"),
            ("good_pattern", "Keep the timezone display in one story"),
            ("bad_pattern", "Do not bundle error handling with the core fix"),
        ]
    ],
    "service_insights": {},
    "scoping_rules": [],
}
FILE = Path("patterns.json")


@pytest.fixture
def migrated() -> Path:
    Path("old.json").write_text(json.dumps(OLD))
    call("patterns", "migrate", "old.json", "-o", FILE, check=0)
    return FILE


def document(*arguments: object, check: int = 0) -> Any:
    return call("patterns", *arguments, "--json", check=check).document


def error(*arguments: object, check: int = 2) -> str:
    called = call("patterns", *arguments, check=check)
    assert "" == called.out
    assert called.err.startswith("jumar: ")
    assert 1 == called.err.count("\n")
    return called.err


def test_migrate_reports_what_became_of_the_patterns():
    Path("old.json").write_text(json.dumps(OLD))
    Path("stories").mkdir()
    Path("stories/a.txt").write_text("I want to see why an upload fails\nI want bread\n")
    Path("stories/b.txt").write_text("I want my local time\n")
    found = document("migrate", "old.json", "-o", FILE, "--on", "stories")
    assert (3, 2, 1, 3, 0) == tuple(found[name] for name in ("migrated", "good", "bad", "provisional", "without_keywords"))
    assert {"items": 3, "fired_items": 2, "fired_patterns": 3, "largest_share": 1 / 3} == found["coverage"]
    assert {"items": 3, "fired_items": 0, "fired_patterns": 0} == found["naive_coverage"]
    assert [["p_001", "p_003"]] == found["near_duplicates"]
    assert [] == found["never_fired"]
    assert 3 == len(load_patterns_safely(FILE))


def test_migrate_takes_items_as_json_lines():
    Path("old.json").write_text(json.dumps(OLD))
    Path("items.jsonl").write_text('{"id": "a", "text": "an error"}\n{"id": "b", "text": "none"}\n')
    assert 1 == document("migrate", "old.json", "-o", FILE, "--on", "items.jsonl")["coverage"]["fired_items"]
    assert document("migrate", "old.json", "-o", FILE)["coverage"] is None


def test_migrate_for_people(migrated: Path):
    Path("a.txt").write_text("an error\n\nnone\n")
    said = call("patterns", "migrate", "old.json", "-o", migrated, "--on", "a.txt", check=0).out
    assert "wrote patterns.json: 3 patterns (2 good, 1 bad; 0 without keywords), all provisional" in said
    assert "1 of 2 (50.0 %)" in said
    assert "one good and one bad" in said
    assert "" == call("patterns", "migrate", "old.json", "-o", migrated, "-q", check=0).out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"version": "2.0", "patterns": []}', "is of format 2.0 already"),
        (b'{"version": "9.0", "patterns": []}', "written by a newer jumar: format 9.0"),
        (b"[1", "in.json, line 1: not JSON"),
        (b"\xff", "not UTF-8"),
        (b"x" * 50_000_000, "in.json, line 1: not JSON: Expecting value, column 1"),
        (b'{"patterns": [{}]}', "pattern 1: type is missing"),
    ],
)
def test_migrate_says_what_is_wrong_with_its_input(content: bytes, message: str):
    Path("in.json").write_bytes(content)
    said = error("migrate", "in.json", "-o", FILE)
    assert message in said
    assert len(said) < 400
    assert not FILE.exists()


@pytest.mark.parametrize("version", ["1.0", "7.0"])
def test_migrate_overwrites_no_file_of_another_format(version: str):
    Path("old.json").write_text(json.dumps(OLD))
    FILE.write_text(json.dumps({**OLD, "version": version}))
    before = FILE.read_bytes()
    assert "not saved" in error("migrate", "old.json", "-o", FILE)
    assert before == FILE.read_bytes()
    assert {"old.json", "patterns.json"} == {found.name for found in Path.cwd().iterdir()}


def test_migrate_keeps_what_cannot_be_read():
    Path("old.json").write_text(json.dumps(OLD))
    FILE.write_text("my notes")
    called = call("patterns", "migrate", "old.json", "-o", FILE, check=0)
    (kept,) = Path("patterns.json.versions/unreadable").iterdir()
    assert "my notes" == kept.read_text()
    assert called.err.startswith("jumar: warning: ")
    assert called.err.endswith(f"{kept}\n")


def test_check_warns_of_an_expression_that_fires_on_everything(migrated: Path):
    content = json.loads(migrated.read_text())
    for pattern, regex in zip(content["patterns"], ("a*", "^$", "^.?$"), strict=True):
        pattern["regex"] = regex
    migrated.write_text(json.dumps(content))
    assert ["the regex of pattern p_001 fires on everything"] == document("check", migrated)["warnings"]


def test_migrate_counts_what_is_not_provisional_and_what_says_nothing():
    patterns = [{**OLD["patterns"][0], "status": "pruned"}, {**OLD["patterns"][0], "description": " "}]
    Path("old.json").write_text(json.dumps({**OLD, "patterns": patterns}))
    assert (
        "(2 good, 0 bad; 1 without keywords), 1 of them provisional"
        in call("patterns", "migrate", "old.json", "-o", FILE, check=0).out
    )
    assert "is valid" in call("patterns", "check", FILE, check=0).out


def test_rollback_to_another_shape_says_so(migrated: Path):
    migrated.write_text(json.dumps(json.loads(migrated.read_text())))
    call("patterns", "migrate", "old.json", "-o", migrated, check=0)
    foreign, last = (document("log", migrated)["versions"][at]["hash"] for at in (1, 0))
    assert (
        f"is version {foreign[:9]} again, in the shape of today: {last[:12]}, with 3 patterns; it is save 4"
        in call("patterns", "rollback", migrated, foreign[:9], check=0).out
    )
    assert last == document("rollback", migrated, foreign)["version"]


def test_migrate_says_what_is_missing():
    assert "there is no file nowhere.json" in error("migrate", "nowhere.json", "-o", FILE)
    Path("old.json").write_text(json.dumps(OLD))
    assert "the folder nowhere does not exist" in error("migrate", "old.json", "-o", "nowhere/p.json")
    assert "that is the file to be migrated" in error("migrate", "old.json", "-o", "old.json")
    assert "Is a directory" in error("migrate", ".", "-o", FILE)
    Path("empty").mkdir()
    assert "empty" in error("migrate", "old.json", "-o", FILE, "--on", "empty")
    assert not FILE.exists()


@pytest.mark.parametrize(("module", "command"), [("yake", "migrate"), ("ahocorasick_rs", "check")])
def test_a_missing_extra_is_named(migrated: Path, module: str, command: str):
    from importlib.util import find_spec

    from jumar.judging.patterns.phrases import _extractor

    _extractor.cache_clear()
    with mock.patch("jumar.core.lazy.find_spec", lambda name: None if name == module else find_spec(name)):
        given = ["old.json", "-o", "new.json"] if command == "migrate" else [migrated]
        assert f"needs {module}, not installed here: pip install 'jumar[judge]'" in error(command, *given)
    _extractor.cache_clear()


def test_check(migrated: Path):
    assert "patterns.json is valid: 3 patterns, format 2.0\n" == call("patterns", "check", migrated, check=0).out
    assert {"valid": True, "version": "2.0", "patterns": 3, "warnings": []} == document("check", migrated)
    assert "" == call("patterns", "check", "-q", migrated, check=0).out


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("weight", 3.0, "line 4: pattern 1 (p_001): weight is 3.0: Input should be less than or equal to 2"),
        ("regex", "", 'line 4: pattern 1 (p_001): regex is "": String should have at least 1 character'),
        ("regex", "(a", "pattern p_001: its regex '(a' is not one of RE2, or too big: missing ): (a"),
    ],
)
def test_check_names_what_is_wrong_in_one_line(migrated: Path, field: str, value: Any, message: str):
    content = json.loads(migrated.read_text())
    content["patterns"][0][field] = value
    migrated.write_text(json.dumps(content, indent=2))
    said = error("check", migrated)
    assert message in said
    assert "patterns.json" in said
    failed = document("check", migrated, check=2)["error"]
    assert ("PatternLoadError", 2) == (failed["kind"], failed["exit_code"])


def test_check_warns_of_names_that_are_nearly_known(migrated: Path):
    content = json.loads(migrated.read_text())
    content["patterns"][1] |= {"phrase": ["a"], "reviewer": "k", "v1": {}}
    content |= {"value_phrase": [], "team": "us"}
    migrated.write_text(json.dumps(content))
    called = call("patterns", "check", migrated, check=0)
    expected = [
        "the file has 'value_phrase', which nothing reads; did you mean 'value_phrases'?",
        "pattern p_002 has 'phrase', which nothing reads; did you mean 'phrases'?",
    ]
    assert [f"jumar: warning: patterns.json: {one}" for one in expected] == called.err.splitlines()
    assert "is valid" in called.out
    assert expected == document("check", migrated)["warnings"]


def test_check_is_about_the_file_and_not_its_backup(migrated: Path):
    call("patterns", "migrate", "old.json", "-o", migrated, check=0)
    migrated.write_text("{")
    assert "patterns.json, line 1: not JSON" in error("check", migrated)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        called = call("patterns", "list", migrated, check=0)
    assert called.err.startswith("jumar: warning: patterns.json, line 1: not JSON")
    assert "p_003" in called.out


def test_check_tells_how_to_migrate():
    Path("old.json").write_text(json.dumps(OLD))
    assert "`jumar patterns migrate old.json -o patterns.json`" in error("check", "old.json")
    assert "there is no patterns file nowhere.json" in error("check", "nowhere.json")


def test_list_and_show(migrated: Path):
    said = call("patterns", "list", migrated, "--type", "bad", check=0).out
    assert "p_003" in said
    assert "p_001" not in said
    assert "1 of 3 patterns" in said
    assert [] == document("list", migrated, "--status", "active")["patterns"]
    assert "Bundle error handling" in call("patterns", "show", migrated, "p_001", check=0).out
    assert "e" == document("show", migrated, "p_002")["example"]
    assert "learned_iter" not in call("patterns", "show", migrated, "p_001", "-q", check=0).out
    assert "no pattern 'p_0001' (did you mean 'p_001'?)" in error("show", migrated, "p_0001")


def test_stats(migrated: Path):
    Path("a.txt").write_text("an error\n\nnone\n")
    found = document("stats", migrated, "--on", "a.txt")
    assert ({"good": 2, "bad": 1}, {"provisional": 3}, {"reviews": 3}) == (found["types"], found["statuses"], found["sources"])
    assert {"p_001": 1, "p_002": 0, "p_003": 1} == found["fired"]
    assert found["phrases"] > found["distinct_phrases"] > 0
    assert f"{found['phrases']:,} ({found['distinct_phrases']:,} distinct)\n" in call("patterns", "stats", migrated, check=0).out
    assert ["p_002"] == found["never_fired"]
    assert [("wording", False)] == [(one["by"], one["same_type"]) for one in found["near_duplicates"]]
    assert "patterns that fire on an item    2 of 3 (66.7 %)" in call("patterns", "stats", migrated, "--on", "a.txt", check=0).out
    assert "coverage" not in document("stats", migrated)


def test_stats_counts_what_fires_as_the_cheap_judge_does():
    rest = {"weight": 1.0, "source": "me", "discovered_at": "2026-01-01T00:00:00Z", "description": "d", "type": "bad"}
    patterns = [
        {"id": "long", "keywords": [], "feature": "words", "at_least": 5, "status": "active"},
        {"id": "gone", "keywords": [], "phrases": ["better", "nicer"], "status": "pruned"},
        {"id": "plain", "keywords": ["exports"], "status": "active"},
        {"id": "has_clear_user_problem", "keywords": [], "status": "active"},
        {"id": "mute", "keywords": [], "status": "active"},
    ]
    Path("p.json").write_text(json.dumps({"version": "2.0", "patterns": [{**rest, **each} for each in patterns]}))
    story = {"id": "1", "title": "Export", "description": "As a user, I want exports", "acceptance_criteria": ["a"]}
    Path("items.json").write_text(json.dumps([story]))
    found = document("stats", Path("p.json"), "--on", "items.json")
    assert (1, 1, 0, 1, 1) == tuple(found[k] for k in ("phrases", "distinct_phrases", "expressions", "features", "indicators"))
    assert ["mute"] == found["cannot_fire"] == found["never_fired"]
    said = call("patterns", "stats", Path("p.json"), check=0).out
    assert "expressions, features, built in  0, 1, 1\n" in said
    assert "nothing to fire on               1 pattern: mute\n" in said
    judged = call("evaluate", "items.json", "--mode", "cheap", "--patterns", "p.json", "--json", check=0).document
    assert {"long": 1, "plain": 1, "has_clear_user_problem": 1} == judged["cheap"]["patterns"]["fired"]
    assert {**judged["cheap"]["patterns"]["fired"], "mute": 0} == found["fired"]


def test_log_diff_and_rollback(migrated: Path):
    first = document("log", migrated)["versions"][0]
    changed = load_pattern_set(migrated)
    changed.patterns[0].weight = 0.5
    del changed.patterns[2]
    save_patterns_safely(changed, migrated)
    said = call("patterns", "diff", migrated, first["hash"][:8], check=0).out
    assert ["- p_003  Do not bundle error handling with the core fix", "~ p_001  weight: 1.0 → 0.5"] == said.splitlines()
    found = document("diff", migrated, first["hash"])
    assert [{"id": "p_001", "fields": {"weight": [1.0, 0.5]}}] == found["changed"]
    assert ["p_003"] == [one["id"] for one in found["removed"]]
    said = call("patterns", "rollback", migrated, first["hash"][:6], check=0).out
    assert f"patterns.json is version {first['hash'][:12]} again, with 3 patterns; it is save 3\n" == said
    assert 3 == len(load_patterns_safely(migrated))
    assert [3, 2, 1] == [one["number"] for one in document("log", migrated)["versions"]]
    assert "no difference\n" == call("patterns", "diff", migrated, first["hash"], check=0).out
    assert "rolled back to" in call("patterns", "log", migrated, check=0).out
    assert 4 == document("rollback", migrated, first["hash"])["number"]
    assert "there is no version 'ffff'" in error("rollback", migrated, "ffff")


def test_a_file_without_versions():
    FILE.write_text('{"version": "2.0", "patterns": []}')
    assert "was never saved by jumar" in call("patterns", "log", FILE, check=0).out
    assert [] == document("log", FILE)["versions"]
    assert "there is no patterns file" in error("log", "nowhere.json")


def test_names_of_others_are_shown_not_obeyed():
    content = {**OLD, "patterns": [{**OLD["patterns"][0], "description": "an \x1b[2J error"}]}
    Path("old.json").write_text(json.dumps(content))
    call("patterns", "migrate", "old.json", "-o", FILE, check=0)
    for command in (["list", FILE], ["show", FILE, "p_001"]):
        assert "\x1b" not in call("patterns", *command, check=0).out


def test_the_group_shows_its_commands():
    assert "rollback" in call("patterns", check=0).out
    assert {"error"} == set(document("show", FILE, "p", check=2))
