"""The scorers, with real commands and files."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from steps_kit import context, wild

from jumar.app.config.evaluator import JudgeOptions
from jumar.core.codec import Fields
from jumar.core.files import UnreadableFileError
from jumar.errors import ConfigError
from jumar.loop.scorers import BUILTIN_SCORERS, ChecksScorer, ScorerRuntime, build_scorer
from jumar.loop.scorers.coverage import count_lines
from jumar.loop.scorers.length import length_score
from jumar.loop.scorers.markdown import Heading, headings, prose_blocks
from jumar.loop.scorers.readability import FORMULAS, TextCounts, band_score, count_text
from jumar.loop.scorers.required_sections import missing_sections
from jumar.model import CheckResult, ScoreReading
from jumar.model.records import SuiteCounts

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def outcome(reading: ScoreReading) -> tuple[float | None, str | None, str | None]:
    return reading.score, reading.invalid, reading.broken


# ----------------------------------------------------------------------------------------------------- making them


def test_the_dimensions_that_scorers_have_of_their_own():
    expected = {
        "checks": "validation",
        "command": None,
        "coverage": "coverage",
        "exit": "correctness",
        "judge": "correctness",
        "junit": "correctness",
        "length": "efficiency",
        "python": None,
        "readability": "readability",
        "required_sections": "completeness",
    }
    assert expected == {name: builtin.dimension for name, builtin in BUILTIN_SCORERS.items()}


def test_a_dimension_can_be_told():
    assert "mine" == build_scorer("checks", {}, dimension="mine").dimension
    assert "validation" == build_scorer("checks", {}).dimension


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("lenght", {}, "unknown scorer 'lenght' (did you mean 'length'?); known are checks, command, coverage"),
        ("length", {"pth": "a"}, "scorer 'length': unknown option 'pth' (did you mean 'path'?); it has path, unit, min, max"),
        ("checks", {"path": "a"}, "scorer 'checks': unknown option 'path'; it has none"),
        ("length", {}, "scorer 'length': set 'min', 'max' or both"),
        ("length", {"min": 1}, "scorer 'length': option 'path' should be a path below the working directory, such as"),
        ("length", {"path": "a", "min": -1}, "scorer 'length': option 'min' should be a number of at least 0, is -1"),
        ("length", {"path": "a", "min": True}, "scorer 'length': option 'min' should be a number of at least 0, is True"),
        ("length", {"path": "a", "max": float("nan")}, "scorer 'length': option 'max' should be a number of at least 0, is nan"),
        ("length", {"path": "a", "min": 5, "max": 4}, "scorer 'length': 'max' = 4 should be above 0 and at least 'min'"),
        ("length", {"path": "a", "max": 0}, "scorer 'length': 'max' = 0 should be above 0 and at least 'min'"),
        (
            "length",
            {"path": "a", "min": 1, "unit": "word"},
            "should be one of words, chars, lines, is 'word' (did you mean 'words'?)",
        ),
        ("length", {"path": "../a", "min": 1}, "scorer 'length': the path '../a' should lie below the working directory"),
        ("length", {"path": ["a", 3], "min": 1}, "scorer 'length': option 'path' should be a list of texts"),
        ("length", {"path": 3, "min": 1}, "scorer 'length': option 'path' should be a list of texts"),
        ("readability", {"path": "a", "target": [12, 8]}, "option 'target' should be two numbers, the lower one first"),
        ("readability", {"path": "a", "target": [1, 2, 3]}, "option 'target' should be two numbers, the lower one first"),
        ("readability", {"path": "a", "target": 8}, "option 'target' should be two numbers, the lower one first"),
        ("readability", {"path": "a", "falloff": 0}, "option 'falloff' should be above 0 grades"),
        ("readability", {"path": "a", "formula": "flesch"}, "should be one of coleman-liau, ari, is 'flesch'"),
        ("required_sections", {"path": "a"}, "set 'sections' (headings), 'patterns' (regular expressions) or both"),
        ("required_sections", {"path": "a", "patterns": ["("]}, "'(' in 'patterns' is not a regular expression"),
        ("junit", {}, "scorer 'junit': option 'path' should be text, is missing"),
        ("coverage", {"path": "/abs"}, "scorer 'coverage': the path '/abs' should lie below"),
        ("command", {"command": "x"}, "scorer 'command': set 'dimension'"),
        ("exit", {"command": ""}, "scorer 'exit': the command is empty"),
        ("exit", {"command": 3}, "scorer 'exit': option 'command' should be a list of texts, is 3"),
        ("exit", {"timeout": 0}, "scorer 'exit': timeout = 0 should be a positive number of seconds"),
    ],
)
def test_wrong_options_are_refused(kind, options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        build_scorer(kind, options)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("command", {}, "scorer 'command': option 'command' is missing"),
        ("python", {}, "scorer 'python': option 'python' should be text, is missing"),
        ("python", {"python": "f"}, "scorer of 'd': python = 'f' should be 'module:function'"),
        ("checks", {}, None),
    ],
)
def test_wrong_options_with_a_dimension(kind, options, message):
    if message is None:
        assert "d" == build_scorer(kind, options, dimension="d").dimension
        return
    with pytest.raises(ConfigError, match=re.escape(message)):
        build_scorer(kind, options, dimension="d")


def test_the_page_has_every_scorer_with_its_options():
    page = (ROOT / "docs" / "reference" / "scorers.md").read_text()
    sections = dict(re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    assert set(BUILTIN_SCORERS) == set(sections)
    for name, builtin in BUILTIN_SCORERS.items():
        listed = re.findall(r"^\| `(\w+)` \|", sections[name], re.MULTILINE)
        options = ("part", *JudgeOptions.model_fields) if builtin.options is None else builtin.options
        assert sorted(options) == sorted(listed), name
        assert builtin.dimension is None or f"Dimension: `{builtin.dimension}`" in sections[name]


# --------------------------------------------------------------------------------------------------------- command


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo 0.75", (0.75, None, None)),
        ("echo noise; echo 0.25; echo warning >&2", (0.25, None, None)),
        ("echo nan", (None, "nan is not in [0, 1]", None)),
        ("echo 1.5", (None, "1.5 is not in [0, 1]; a percentage is divided by 100", None)),
        ("true", (None, "it printed nothing; print one number in [0, 1]", None)),
        ("echo 0.5; exit 3", (None, None, "exit code 3")),
        ("echo 0.5; echo 'first' >&2; echo ' KeyError: x' >&2; exit 1", (None, None, "exit code 1: KeyError: x")),
        ("no-such-scorer", (None, None, "exit code 127: /bin/sh: 1: no-such-scorer: not found")),
    ],
)
def test_a_command_prints_its_score(command, expected, work):
    reading = build_scorer("command", {"command": command}, dimension="d").score(context(work))
    if "no-such" in command:
        assert (None, None) == (reading.score, reading.invalid)
        assert (reading.broken or "").startswith("exit code 127: ")
    else:
        assert expected == outcome(reading)
    assert ("d", "command") == (reading.dimension, reading.scorer)


def test_a_command_gives_its_reason_and_sees_the_loop(work):
    command = 'printf \'{"score": 0.5, "reason": "pass %s"}\' $JUMAR_ITERATION'
    reading = build_scorer("command", {"command": command}, dimension="d").score(context(work, iteration=4))
    assert (0.5, "pass 4") == (reading.score, reading.reason)


def test_a_scorer_that_hangs_or_is_missing_is_broken(work):
    hanging = build_scorer("command", {"command": wild("hang"), "timeout": 0.3}, dimension="d")
    assert (None, None, "timed out after 0.3 s") == outcome(hanging.score(context(work)))
    missing = build_scorer("command", {"command": ["no-such-scorer"]}, dimension="d").score(context(work))
    assert (missing.broken or "").startswith("the command 'no-such-scorer' was not found")


def test_two_commands_of_one_dimension_keep_their_own_logs(work):
    step = context(work)
    for number in ("0.1", "0.2"):
        build_scorer("command", {"command": f"echo {number}"}, dimension="d").score(step)
    assert {"0.1\n", "0.2\n"} == {path.read_text() for path in step.log_directory.glob("score-*.log")}


# ---------------------------------------------------------------------------------------------------------- python

MODULE = """
import os
def number(context): print("noise"); return 0.5
def pair(context): return 1, "all " + context.loop_id
def mapping(context): return {"score": 0.25, "reason": "some"}
def outside(context): return 2.0
def nan(context): return float("nan")
def text(context): return "0.5"
def raises(context): raise ValueError("oops")
def asserts(context): assert False, "not a validator"
def dies(context): os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("number", (0.5, None, None)),
        ("pair", (1.0, None, None)),
        ("mapping", (0.25, None, None)),
        ("outside", (None, "2 is not in [0, 1]; a percentage is divided by 100", None)),
        ("nan", (None, "nan is not in [0, 1]", None)),
        ("raises", (None, None, "scoring:raises: ValueError: oops")),
        ("asserts", (None, None, "scoring:asserts: AssertionError: not a validator")),
        ("dies", (None, None, "scoring:dies gave no answer: killed by SIGKILL")),
    ],
)
def test_a_function_scores(name, expected, work, tmp_path):
    (tmp_path / "scoring.py").write_text(MODULE)
    runtime = ScorerRuntime(search=(tmp_path,))
    reading = build_scorer("python", {"python": f"scoring:{name}"}, dimension="d", runtime=runtime).score(context(work))
    assert expected == outcome(reading)
    assert f"scoring:{name}" == reading.scorer
    assert {"pair": "all loop", "mapping": "some"}.get(name, "") == reading.reason


# ---------------------------------------------------------------------------------------------------- checks, exit


def check(
    name: str, *, passed: bool = False, broken: str | None = None, tests: tuple[int, int, int] | None = None
) -> CheckResult:
    counts = None if tests is None else SuiteCounts(passed=tests[0], failed=tests[1], missing=tests[2], total=sum(tests))
    return CheckResult(name=name, passed=passed, broken=broken, tests=counts)


@pytest.mark.parametrize(
    ("checks", "expected", "reason"),
    [
        ([check("a", passed=True), check("b", passed=True)], (1.0, None, None), "2 of 2 checks passed"),
        (
            [check("a", passed=True), check("b"), check("c"), check("d")],
            (0.25, None, None),
            "1 of 4 checks passed; failing: b, c, d",
        ),
        ([check("a"), check("b", broken="x")], (0.0, None, None), "0 of 1 check passed; failing: a"),
        ([], (None, "there are no checks to count", None), ""),
        ([check("a", broken="x")], (None, None, "every check is broken"), ""),
        ([check("a", tests=(3, 1, 0))], (0.75, None, None), "3 of 4 tests pass"),
        ([check("a", passed=True, tests=(1, 1, 0))], (0.5, None, None), "1 of 2 tests pass"),
        (
            [check("a", tests=(3, 0, 1)), check("b", passed=True), check("c"), check("d", broken="x")],
            (pytest.approx(1.75 / 3), None, None),
            "a: 3 of 4 tests pass, 1 missing; 1 of 2 checks passed; failing: c",
        ),
        (
            [check(f"c{n:02}", passed=True, tests=(1, 0, 0)) for n in range(12)],
            (1.0, None, None),
            "; ".join([*(f"c{n:02}: 1 of 1 test pass" for n in range(10)), "2 more"]),
        ),
    ],
)
def test_the_share_of_checks(checks, expected, reason, work):
    reading = ChecksScorer().score(context(work, checks=tuple(checks)))
    assert (expected, reason, "validation") == (outcome(reading), reading.reason, reading.dimension)


@pytest.mark.parametrize(
    ("options", "generator_exit", "expected"),
    [
        ({}, 0, (1.0, None, None)),
        ({}, 3, (0.0, None, None)),
        ({}, None, (None, "its generator was no process: there is no exit code", None)),
        ({"command": "true"}, 3, (1.0, None, None)),
        ({"command": "exit 9"}, 0, (0.0, None, None)),
        ({"command": ["sh", "-c", "kill -9 $$"]}, 0, (0.0, None, None)),
        ({"command": "no-such"}, 0, (None, None, "exit code 127: a command in it was not found")),
        ({"command": wild("hang"), "timeout": 0.3}, 0, (None, None, "timed out after 0.3 s")),
    ],
)
def test_exit_codes(options, generator_exit, expected, work):
    assert expected == outcome(build_scorer("exit", options).score(context(work, generator_exit=generator_exit)))


def test_the_start_stays_comparable_where_only_exit_codes_count(work):
    reading = build_scorer("exit", {}).score(context(work, iteration=0))
    assert (1.0, "the start: no generator ran that could have failed") == (reading.score, reading.reason)


# ----------------------------------------------------------------------------------------------------------- texts


def test_a_missing_document_scores_0_and_an_unreadable_one_is_invalid(work, tmp_path):
    step = context(work)
    for kind, options in (("length", {"min": 1}), ("readability", {}), ("required_sections", {"sections": ["A"]})):
        reading = build_scorer(kind, {"path": ["a.md", "b/*.md"], **options}).score(step)
        assert (0.0, "missing: a.md, b/*.md") == (reading.score, reading.reason)
    (tmp_path / "secret").write_text("words")
    (work / "a.md").symlink_to(tmp_path / "secret")
    reading = build_scorer("length", {"path": "a.md", "min": 1}).score(step)
    assert (None, "'a.md' leads out of the working directory", None) == outcome(reading)
    (work / "a.md").unlink()
    os.mkfifo(work / "a.md")
    assert None is build_scorer("length", {"path": "a.md", "min": 1}).score(step).score


def test_a_glob_sees_what_the_loop_keeps(work):
    (work / "kept.md").write_text("one two")
    (work / "other.md").write_text("one two three")
    options = {"path": "*.md", "min": 5}
    assert 1.0 == build_scorer("length", options).score(context(work)).score
    reading = build_scorer("length", options).score(context(work, artifacts=("kept.md",)))
    assert (0.0, "2 words, wanted 5–…") == (reading.score, reading.reason)


@pytest.mark.parametrize(("unit", "count"), [("words", 5), ("chars", 23), ("lines", 3)])
def test_units_of_length(unit, count, work):
    (work / "a").write_text("one two\n\nthree-four ä\tb")
    reading = build_scorer("length", {"path": "a", "unit": unit, "max": 100}).score(context(work))
    assert (1.0, f"{count} {unit}, wanted 0–100") == (reading.score, reading.reason)


@pytest.mark.parametrize(
    ("count", "score"), [(0, 0.0), (50, 0.0), (75, 0.5), (100, 1.0), (150, 1.0), (200, 1.0), (300, 0.5), (400, 0.0), (9_999, 0.0)]
)
def test_length_falls_off_in_straight_lines(count, score):
    assert score == length_score(count, 100, 200)


def test_open_ends_of_length():
    assert 1.0 == length_score(10**9, 100, None)
    assert 1.0 == length_score(0, None, 10)
    assert 1.0 == length_score(0, 0, 10)


DOCUMENT = """---
title: # Not a heading
---
# Guide #

Intro
-----

## **1. Install:** it ##

```sh
# Comment, not a heading
```

### [Usage](#usage)

| a | b |
|---|---|

- item
---
####### seven
#nospace
#

~~~
## Hidden
~~~
"""


def test_headings():
    expected = [
        Heading(1, "Guide"),
        Heading(2, "Intro"),
        Heading(2, "**1. Install:** it"),
        Heading(3, "[Usage](#usage)"),
        Heading(1, ""),
    ]
    assert expected == headings(DOCUMENT)


@pytest.mark.parametrize(
    ("sections", "patterns", "missing"),
    [
        (("Guide", "intro", "  USAGE "), (), ()),
        (("# Guide", "## Intro", "### Usage"), (), ()),
        (("## Guide", "# Usage"), (), ("## Guide", "# Usage")),
        (("Install: it", "1. Install: it"), (), ()),
        (
            ("Hidden", "Comment, not a heading", "Not a heading", "seven"),
            (),
            ("Hidden", "Comment, not a heading", "Not a heading", "seven"),
        ),
        ((), (r"^- item$", r"^\| a", r"nothing here"), ("nothing here",)),
        (("Guide", "Gone"), (r"x{9}",), ("Gone", r"x{9}")),
    ],
)
def test_required_sections(sections, patterns, missing):
    assert missing == missing_sections(DOCUMENT, sections, patterns)


def test_required_sections_over_several_files(work):
    (work / "a.md").write_text("# One\n")
    (work / "b.md").write_text("Two\n===\n")
    options = {"path": "*.md", "sections": ["One", "Two", "Three"], "patterns": "^Tw"}
    reading = build_scorer("required_sections", options).score(context(work))
    assert (0.75, "3 of 4 present; missing: Three") == (reading.score, reading.reason)
    complete = build_scorer("required_sections", {**options, "sections": ["One", "Two"]}).score(context(work))
    assert (1.0, "3 of 3 present") == (complete.score, complete.reason)


PROSE = """# A heading

<!-- a comment
over lines --> First sentence here. Second one!  Is it
the third? Yes.

- an item with `code here` and a [link](https://example.org/a/b)
- ![picture](x.png) another: https://example.org/path see it

> quoted text with <b>markup</b>

| table | cell |
|---|---|

```python
print("code")
```
"""


def test_prose_leaves_out_what_nobody_reads_aloud():
    words = re.findall(r"\w+", " ".join(prose_blocks(PROSE)))
    spoken = "A heading First sentence here Second one Is it the third Yes an item with and a link another see it"
    assert [*spoken.split(), "quoted", "text", "with", "markup"] == words


def test_counts_of_a_text():
    counts = count_text('# Two words\n\nIt isn\'t 3.14 metres. Ends here… "Really?" (Yes.)\n\n- one\n- two\n')
    assert TextCounts(words=12, sentences=7, letters=43, digits=3) == counts


def test_formulas_on_counts_worked_out_by_hand():
    # the abstract of the 1975 paper: 119 words, 639 letters, 5 sentences, grade 14.5
    assert 14.5 == round(FORMULAS["coleman-liau"](TextCounts(words=119, sentences=5, letters=639, digits=0)), 1)
    # 4.71 · 5 + 0.5 · 20 − 21.43
    assert 12.12 == round(FORMULAS["ari"](TextCounts(words=100, sentences=5, letters=490, digits=10)), 4)


@pytest.mark.parametrize(
    ("grade", "score"), [(8, 1.0), (12, 1.0), (6, 0.5), (14, 0.5), (4, 0.0), (16, 0.0), (-50, 0.0), (99, 0.0)]
)
def test_the_band_of_grades(grade, score):
    assert score == band_score(grade, 8, 12, 4)


def test_readability_tells_easy_from_hard(work):
    (work / "easy.md").write_text("The cat sat on the mat. It was a big cat. We saw it run. The dog ran too. " * 5)
    hard = "Notwithstanding considerable organisational heterogeneity, interdisciplinary institutionalisation necessitates "
    (work / "hard.md").write_text((hard + "comprehensive administrative rationalisation. ") * 5)
    scores = {}
    for name in ("easy", "hard"):
        for formula in FORMULAS:
            options = {"path": f"{name}.md", "formula": formula, "target": [-20, 5]}
            reading = build_scorer("readability", options).score(context(work))
            scores[name, formula] = reading.score
            assert re.fullmatch(rf"grade -?\d+\.\d \({formula}\), wanted -20–5", reading.reason)
    assert {("easy", "coleman-liau"): 1.0, ("easy", "ari"): 1.0, ("hard", "coleman-liau"): 0.0, ("hard", "ari"): 0.0} == scores


@pytest.mark.parametrize("text", ["", "\n\n", "```\ncode\n```\n", "--- ***\n", "| a |\n"])
def test_a_text_without_words_has_no_grade(text, work):
    (work / "a.md").write_text(text)
    reading = build_scorer("readability", {"path": "a.md"}).score(context(work))
    assert (None, "there are no words to measure", None) == outcome(reading)


@pytest.mark.parametrize(
    "text",
    [
        "<!--" * 500_000,
        "![" * 500_000,
        "`" * 1_000_000,
        "` `` " * 200_000,
        "." * 1_000_000 + "x",
        "# " + " " * 1_000_000 + "x",
        "# " + " #" * 500_000 + "x",
        ">" * 1_000_000,
        "---\n" * 250_000,
        "[" * 1_000_000 + "](",
        "a'" * 500_000,
        "<a" * 500_000,
        "[](" * 300_000,
        "![](" * 250_000,
        "~" * 1_000_000,
    ],
    ids=lambda text: repr(text[:6]),
)
def test_a_hostile_text_takes_time_in_proportion_to_its_length(text, work):
    (work / "a.md").write_text(text)
    began = time.process_time()
    for kind, options in (("length", {"min": 1}), ("readability", {}), ("required_sections", {"sections": ["A"]})):
        build_scorer(kind, {"path": "a.md", **options}).score(context(work))
    assert time.process_time() - began < 10


# --------------------------------------------------------------------------------------------------------- reports


def junit(passed: int, failed: int = 0, skipped: int = 0) -> str:
    cases = '<testcase name="p"/>' * passed
    cases += "".join(f'<testcase classname="k" name="f{n}"><failure/></testcase>' for n in range(failed))
    cases += '<testcase name="s"><skipped/></testcase>' * skipped
    return f"<testsuite>{cases}</testsuite>"


@pytest.mark.parametrize(
    ("content", "expected", "reason"),
    [
        (junit(3, 1, 2), (0.75, None, None), "3 of 4 tests passed; failing: k::f0"),
        (junit(2), (1.0, None, None), "2 of 2 tests passed"),
        (junit(0, 1), (0.0, None, None), "0 of 1 tests passed; failing: k::f0"),
        (junit(0, 0, 3), (None, "the report says that no test ran", None), ""),
        (junit(0), (None, "the report says that no test ran", None), ""),
        ("<a", (None, "r.xml: not readable as XML (unclosed token: line 1, column 0)", None), ""),
    ],
)
def test_the_share_of_tests(content, expected, reason, work):
    (work / "r.xml").write_text(content)
    reading = build_scorer("junit", {"path": "r.xml"}).score(context(work))
    assert (expected, reason) == (outcome(reading), reading.reason)


def test_reports_of_several_modules_are_added_up(work):
    for name, content in (("a", junit(1, 1)), ("b", junit(2))):
        (work / name).mkdir()
        (work / name / "TEST-x.xml").write_text(content)
    assert 0.75 == build_scorer("junit", {"path": "*/TEST-*.xml"}).score(context(work)).score


def test_a_command_makes_the_report_and_its_exit_code_does_not_matter(work):
    (work / "next").write_text(junit(1, 1))
    reading = build_scorer("junit", {"path": "r.xml", "command": "cp next r.xml; exit 1"}).score(context(work))
    assert (0.5, None, None) == outcome(reading)


def test_what_measures_nothing_is_invalid_and_what_cannot_run_is_broken(work):
    def run(**options):
        return outcome(build_scorer("junit", {"path": "r.xml", **options}).score(context(work)))

    nothing = "there is no report at r.xml: nothing was measured"
    assert (None, nothing, None) == run()
    assert (None, nothing, None) == run(command="exit 1")
    (work / "r.xml").write_text(junit(1))
    assert (None, "r.xml was there before and the command did not write it", None) == run(command="exit 1")
    assert (1.0, None, None) == run()
    assert (None, None, "exit code 127: a command in it was not found") == run(command="no-such")
    assert (None, None, "timed out after 0.3 s") == run(command=wild("hang"), timeout=0.3)


def test_a_report_of_an_earlier_iteration_does_not_count(work):
    (work / "r.xml").write_text(junit(1))
    scorer = build_scorer("junit", {"path": "r.xml"})
    written = (work / "r.xml").stat().st_mtime_ns
    assert 1.0 == scorer.score(context(work, since_ns=written)).score
    assert 1.0 == scorer.score(context(work, since_ns=written - 10**9)).score
    stale = scorer.score(context(work, since_ns=written + 10**9))
    assert (
        None,
        "r.xml was not written while this iteration was checked: it is another one's, or the generator's own",
        None,
    ) == outcome(stale)
    # a file system that keeps whole seconds
    os.utime(work / "r.xml", ns=(7 * 10**9, 7 * 10**9))
    assert 1.0 == scorer.score(context(work, since_ns=7 * 10**9 + 900_000_000)).score
    assert None is scorer.score(context(work, since_ns=10 * 10**9)).score


XML = '<coverage lines-valid="{valid}" lines-covered="{covered}" line-rate="0.1"/>'
LINES = (
    "<coverage><packages><package><classes><class><methods><method><lines><line number='1' hits='1'/></lines></method></methods>"
    "<lines><line number='1' hits='1'/><line number='2' hits='0'/></lines></class></classes></package></packages></coverage>"
)
LCOV = "TN:\nSF:a.py\nDA:1,1\nDA:2,0\nLH:1\nLF:2\nend_of_record\nSF:b.py\nLH:2\nLF:2\nend_of_record\n"


@pytest.mark.parametrize(
    ("content", "counts"),
    [
        (XML.format(valid=4, covered=3), (3, 4)),
        ("\ufeff \n" + XML.format(valid=4, covered=3), (3, 4)),
        (LINES, (1, 2)),
        (json.dumps({"totals": {"covered_lines": 5, "num_statements": 8, "percent_covered": 1}}), (5, 8)),
        (LCOV, (3, 4)),
        ("SF:a\nDA:1,5\nDA:2,0\nDA:3,1,hash\nend_of_record\n", (2, 3)),
    ],
)
def test_lines_of_every_kind_of_report(content, counts):
    assert counts == count_lines(content.encode())


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("<coverage/>", "it has no line counts"),
        ("<coverage", "not readable as XML"),
        ("{", "it is not readable as JSON"),
        ('{"totals": {"covered_lines": true, "num_statements": 1}}', "it has no totals.covered_lines"),
        ('{"totals": []}', "it has no totals.covered_lines"),
        (XML.format(valid=3, covered=4), "it counts 4 covered lines of 3"),
        ("hello", "it is neither XML nor JSON nor lcov"),
        ("", "it is neither XML nor JSON nor lcov"),
        ("\x00\xff", "it is neither XML nor JSON nor lcov"),
    ],
)
def test_reports_that_count_no_lines(content, why, work):
    with pytest.raises(UnreadableFileError, match=re.escape(why)):
        count_lines(content.encode("latin-1"))
    (work / "c").write_bytes(content.encode("latin-1"))
    reading = build_scorer("coverage", {"path": "c"}).score(context(work))
    assert (None, None) == (reading.score, reading.broken)
    assert why in (reading.invalid or "")


def test_line_coverage(work):
    (work / "c.info").write_text(LCOV)
    (work / "d.info").write_text(XML.format(valid=4, covered=0))
    reading = build_scorer("coverage", {"path": "*.info"}).score(context(work))
    assert (0.375, "3 of 8 lines covered") == (reading.score, reading.reason)
    (work / "c.info").write_text(XML.format(valid=0, covered=0))
    reading = build_scorer("coverage", {"path": "c.info"}).score(context(work))
    assert "the report has no lines to cover" == reading.invalid


# --------------------------------------------------------------------------------------------------------- records


def test_a_reading_survives_its_record():
    for reading in (
        ScoreReading(dimension="d", score=0.5, reason="r", scorer="s", seconds=1.5),
        ScoreReading(dimension="d", score=None, invalid="nan"),
        ScoreReading(dimension="d", score=None, broken="gone"),
    ):
        assert reading == ScoreReading.from_json(Fields(reading.to_json(), "x"))
    old = {key: value for key, value in ScoreReading(dimension="d", score=1.0).to_json().items() if key != "invalid"}
    assert None is ScoreReading.from_json(Fields(old, "x")).invalid
    assert replace(ScoreReading(dimension="d", score=1.0), invalid=None).score == 1.0
