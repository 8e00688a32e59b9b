"""``jumar evaluate``: what it prints, writes and refuses in cheap mode."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from commands import call

from jumar.judging import builtin_rubric

STORIES = [
    {"id": "a", "title": "Add a filter", "description": "The user can find it. " * 4, "acceptance_criteria": ["1", "2", "3"]},
    {"id": "b", "title": "The list", "description": "", "acceptance_criteria": []},
    {"id": "c", "title": "", "description": "", "acceptance_criteria": []},
]


@pytest.fixture(autouse=True)
def _here(fresh_place: Path):
    return fresh_place


def rows(*records: Any, name: str = "in.jsonl") -> Path:
    path = Path(name)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def cheap(path: Path, *options: object, check: int = 0) -> Any:
    return call("evaluate", path, "--mode", "cheap", "--json", *options, check=check).document


def pattern(name: str, phrase: str, status: str = "active") -> dict[str, Any]:
    known = {"id": name, "type": "good", "description": phrase, "keywords": [], "phrases": [phrase], "source": "t"}
    return {**known, "discovered_at": "2026-01-01T00:00:00Z", "status": status}


def test_the_document():
    found = cheap(rows(*STORIES))
    assert ("cheap", 3, 2, 1) == tuple(found[name] for name in ("mode", "story_count", "scored", "unscored"))
    assert pytest.approx((4.2 + 1.0) / 2) == found["cheap"]["gestalt_avg"]
    assert (1.0, 4.2) == (found["cheap"]["gestalt_min"], pytest.approx(found["cheap"]["gestalt_max"]))
    assert {"good_title": 1, "good_ac": 1, "clear_user_value": 1, "appropriate_scope": 1} == found["cheap"]["reasons"]
    assert {"abstained": 1} == found["cheap"]["unscored"]
    assert [1, 0, 0, 0, 0, 0, 1, 0] == found["cheap"]["distribution"]
    assert {"story": builtin_rubric("story").digest, "text": builtin_rubric("text").digest} == found["cheap"]["rubrics"]
    assert {"healthy": True, "flags": [], "details": {"score_range": [1.0, 4.2], "variance": pytest.approx(5.12)}} == found[
        "health"
    ]["cheap_evaluator"]


def test_a_line_for_each_item():
    Path("p.json").write_text(
        json.dumps({"version": "2.0", "patterns": [pattern("f", "filter"), pattern("l", "list", "provisional")]})
    )
    found = cheap(rows(*STORIES), "--patterns", "p.json", "--per-item", "out.jsonl")
    first, second, third = (json.loads(line) for line in Path("out.jsonl").read_text().splitlines())
    assert {"id", "cheap", "expensive", "gap", "reasons", "patterns_matched"} < set(first)
    assert ("a", None, None, ["f"]) == (first["id"], first["expensive"], first["gap"], first["patterns_matched"])
    assert pytest.approx(4.4) == first["cheap"]
    assert (1.0, [], ["l"], None) == (second["cheap"], second["reasons"], second["patterns_matched"], second["unscored"])
    assert (None, "abstained") == (third["cheap"], third["unscored"]["kind"])
    known = found["cheap"]["patterns"]
    assert {
        "known": 2,
        "active": 1,
        "fired_items": 2,
        "pattern_match": 1.0,
        "fired_patterns": 2,
        "fired": {"f": 1, "l": 1},
    } == known
    assert ["in.jsonl", "out.jsonl", "p.json"] == sorted(one.name for one in Path().iterdir())


def test_the_folder_of_an_iteration():
    path = rows(*STORIES, {"id": "t", "text": "x", "prompt": "y", "group": "g"})
    found = cheap(path, "-o", "outputs")
    assert str(Path("outputs/iteration_1").absolute()) == found["output"]
    assert str(Path("outputs/iteration_2").absolute()) == cheap(path, "-o", "outputs")["output"]
    assert ["iteration_1", "iteration_2"] == sorted(one.name for one in Path("outputs").iterdir())
    made = {
        name: json.loads(Path("outputs/iteration_1", name).read_text())
        for name in ("stories.json", "cheap_eval.json", "manifest.json")
    }
    assert ["a", "b", "c", "t"] == [one["id"] for one in made["stories.json"]]
    assert {"id": "t", "text": "x", "prompt": "y", "group": "g"} == made["stories.json"][3]
    evaluated = made["cheap_eval.json"]
    assert ("cheap", 4, found["cheap"]["gestalt_avg"]) == (evaluated["mode"], evaluated["story_count"], evaluated["gestalt_avg"])
    assert ["a", "b", "c", "t"] == [one["story_id"] for one in evaluated["individual_scores"]]
    source = {"path": "in.jsonl", "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
    assert [source] == made["manifest.json"]["sources"]
    for name in ("stories.json", "cheap_eval.json"):
        assert (Path("outputs/iteration_1", name).read_bytes()) == Path("outputs/iteration_2", name).read_bytes()


def test_people_get_a_table():
    Path("p.json").write_text(json.dumps({"version": "2.0", "patterns": [pattern("f", "filter")]}))
    out = call("evaluate", rows(*STORIES), "--mode", "cheap", "--patterns", "p.json", "--per-item", "o.jsonl", check=0).out
    assert "cheap     2.70 · 2 items scored, 1 not · standard deviation 2.40\n" in out
    for part in (
        "4.0–4.5",
        "good_title",
        "patterns  1 of 1 fired, 1 are active; on 1 of 2 items",
        "abstained",
        "wrote     o.jsonl",
    ):
        assert part in out
    quiet = call("evaluate", "in.jsonl", "--mode", "cheap", "-q", check=0)
    assert (quiet.out, quiet.err) == ("", "")


def learned_set() -> Path:
    """A scorecard: one phrase that makes the scores, one step that hardly does, one that is known and does not count."""
    patterns = [
        {**pattern("p_google", "google"), "type": "bad", "weight": 2.0, "description": "says 'google'"},
        {**pattern("p_thanks", "thanks"), "weight": 1.0, "description": "says 'thanks'"},
        {
            **pattern("p_step", "unused"),
            "phrases": [],
            "feature": "words",
            "at_least": 1.0,
            "weight": 0.002,
            "description": "a word",
        },
        {**pattern("p_new", "google", "provisional"), "description": "still tried"},
    ]
    card = {
        "format": 1,
        "kind": "scorecard",
        "rubric": "text",
        "base": 3.2,
        "unit": 0.5,
        "curve": {"x": [1.0, 5.0], "y": [1.0, 5.0]},
    }
    path = Path("learned.json")
    path.write_text(json.dumps({"version": "2.0", "patterns": patterns, "calibration": card}))
    return path


def test_what_is_printed_of_a_learned_set_is_what_makes_its_scores():
    texts = ["Ask google.", "No, thanks.", "Google says thanks.", "Nothing here."]
    path = rows(*({"id": f"t{number}", "text": text} for number, text in enumerate(texts)))
    options = ("--patterns", learned_set(), "--per-item", "o.jsonl")
    out = call("evaluate", path, "--mode", "cheap", *options, check=0).out
    own = cheap(path, *options)["cheap"]
    moved = own["scorecard"]["moved"]
    found = [json.loads(line) for line in Path("o.jsonl").read_text().splitlines()]

    assert own["scorecard"]["base"] == 3.2
    assert list(moved) == ["p_google", "p_thanks", "p_step"]
    assert moved["p_google"] == pytest.approx({"points": -1.0, "items": 2, "mean_points": 0.5})
    assert moved["p_thanks"] == pytest.approx({"points": 0.5, "items": 2, "mean_points": 0.25})
    assert own["reasons"] == {}  # those of the rubric, which gives no points here
    mean = 3.2 + sum(one["points"] * one["items"] for one in moved.values()) / 4
    assert own["gestalt_avg"] == pytest.approx(mean)
    assert [one["reasons"] for one in found] == [
        ["-1.00 says 'google'"],
        ["+0.50 says 'thanks'"],
        ["-1.00 says 'google'", "+0.50 says 'thanks'"],
        [],
    ]
    assert "base      3.20" in out
    lines = out.splitlines()
    first = next(place for place, line in enumerate(lines) if "what moves the score" in line)
    assert lines[first + 1].split() == ["says", "'google'", "2", "50%", "-1.00", "0.500"]
    assert "good_length" not in out
    assert cheap(path, *options)["health"]["cheap_evaluator"]["flags"] == []


def test_good_phrases_that_were_withheld_moved_nothing():
    known = json.loads(learned_set().read_text())
    known["calibration"]["guard"] = {"good_phrases": 0.1}
    Path("learned.json").write_text(json.dumps(known))
    path = rows({"id": "a", "text": "Thanks, google."}, {"id": "b", "text": "Nothing."})
    own = cheap(path, "--patterns", "learned.json")["cheap"]

    assert list(own["scorecard"]["moved"]) == ["p_google", "p_step"]
    assert own["scorecard"]["moved"]["p_google"]["items"] == 1


def test_nothing_scored_ends_with_12():
    found = cheap(rows(STORIES[2]), check=12)
    assert (0, 1, None, ["no_scores"]) == (
        found["scored"],
        found["unscored"],
        found["cheap"]["gestalt_avg"],
        found["health"]["cheap_evaluator"]["flags"],
    )
    assert "cheap     — · 0 items scored, 1 not\n" in call("evaluate", "in.jsonl", "--mode", "cheap", check=12).out


def test_weights_that_nobody_knows_are_named():
    Path("p.json").write_text(json.dumps({"version": "2.0", "patterns": [], "scoring_weights": {"gusto": 1.0}}))
    called = call("evaluate", rows(*STORIES), "--mode", "cheap", "--patterns", "p.json", check=0)
    assert "warning: scoring_weights of the patterns name 'gusto'" in called.err


def test_a_folder_of_text_and_fields(fresh_place: Path):
    folder = fresh_place / "stories"
    folder.mkdir()
    (folder / "a.txt").write_text("#G1# As a user, I want x, so that y.\n")
    assert ["text", "story"] == [
        next(iter(cheap(folder, *more)["cheap"]["rubrics"])) for more in (["--rubric", "text"], ["--rubric", "story"])
    ]
    assert 1 == cheap(rows({"id": 1, "answer": "Because it rains."}), "--field", "text=answer")["scored"]


# -------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--mode dual needs a judge, and none is configured: give --judge "),
        (["--mode", "expensive"], "--mode expensive needs a judge"),
        (["--mode", "cheap", "--patterns", "nowhere.json"], "nowhere.json"),
        (["--mode", "cheap", "--rubric", "txt"], "--rubric txt: no rubric and no file of this name (did you mean 'text'?)"),
        (["--mode", "cheap", "--rubric", "own.toml"], "--rubric own.toml: no such file"),
        (["--mode", "cheap", "--field", "txt=a"], "no field 'txt'"),
        (["--mode", "cheap", "--per-item", "no/such.jsonl"], "--per-item no/such.jsonl: its folder does not exist"),
        (["--mode", "cheap", "--per-item", "."], "'.' is a directory"),
        (["--mode", "cheap", "--jobs", "2", "--executor", "threads:2"], "choose one"),
        (["--mode", "cheap", "--executor", "cloud"], "--executor cloud: write threads:N"),
        (["--mode", "cheap", "--judge-scale", "5,1"], "the smaller one first"),
        (["--mode", "cheap", "--judge-scale", "1,inf"], "two finite numbers"),
        (["--mode", "cheap", "--judge-scale", "x"], "write LO,HI"),
    ],
)
def test_what_cannot_be_done_ends_with_2(options: list[str], message: str):
    called = call("evaluate", rows(*STORIES), *options, check=2)
    assert message in called.err
    assert "" == called.out


def test_an_error_in_the_last_line_leaves_nothing_behind():
    for jobs in (1, 2):
        path = rows(*({"id": number, "text": "x"} for number in range(3000)), {"id": 5, "text": "x"})
        called = call("evaluate", path, "--mode", "cheap", "--per-item", "o.jsonl", "-o", "outputs", "--jobs", jobs, check=2)
        assert "in.jsonl, line 3001: the id '5' was there before" in called.err
        assert ["in.jsonl", "outputs"] == sorted(one.name for one in Path().iterdir())
        assert [] == list(Path("outputs").iterdir())


def test_a_file_without_items_ends_with_2():
    assert "there are no items in it" in call("evaluate", rows(), "--mode", "cheap", check=2).err


# -------------------------------------------------------------------------------------------------------------- rubrics


def rubric(text: str) -> Path:
    path = Path("own.toml")
    path.write_text(f'name = "own"\nkind = "story"\n{text}\n[judge]\ntask = "Judge."\ncriteria = ["good"]\n')
    return path


def test_an_own_rubric_counts():
    rubric("[weights]\ntitle_quality = 0\n[ac_count]\nbest_from = 1")
    found = cheap(rows({**STORIES[1], "acceptance_criteria": ["x"]}), "--rubric", "own.toml")
    assert pytest.approx(1.0 + 4.0 / 4) == found["cheap"]["gestalt_avg"]
    assert ["own"] == list(found["cheap"]["rubrics"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[weights]\ntitle_quality = 3", "own.toml:4: weights.title_quality: input should be less than or equal to 2 (found 3"),
        ("[weights]\ntitle_quality = nan", "own.toml:4: weights.title_quality"),
        ("[weights]\ntitle = 1", "own.toml:4: unknown key 'weights.title'; known here: ac_count"),
        ("[ac_count]\nbest_from = 9\nbest_to = 4", "own.toml:3: ac_count: best_from, best_to and most have to be in this order"),
        ("[titel_quality]\nlongest = 3", "own.toml:3: unknown key 'titel_quality' (did you mean 'title_quality'?)"),
        ("[title_quality]\naction_words = ['']", "own.toml:4: title_quality.action_words[1]"),
        ("[patterns]\nmost = 6", "own.toml:4: patterns.most: input should be less than or equal to 5"),
        (
            "[weights]\ntitle_quality = 0\nac_count = 0\ntech_specificity = 0\nuser_focus = 0\nscope_check = 0",
            "own.toml:3: weights: every weight is 0",
        ),
        ("[weights", "own.toml: not valid TOML"),
    ],
)
def test_an_own_rubric_that_is_wrong_says_where(text: str, message: str):
    assert message in call("evaluate", rows(*STORIES), "--mode", "cheap", "--rubric", rubric(text), check=2).err


def test_a_rubric_of_another_kind_is_refused():
    Path("own.toml").write_text('name = "own"\nkind = "poem"\n[judge]\ntask = "Judge."\ncriteria = ["good"]\n')
    assert (
        "own.toml:2: kind: input should be 'story' or 'text'"
        in call("evaluate", rows(*STORIES), "--mode", "cheap", "--rubric", "own.toml", check=2).err
    )
