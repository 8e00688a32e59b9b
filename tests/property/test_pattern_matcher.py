"""The matcher against a slow and obvious reference: every phrase looked for by itself, with boundaries written out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jumar.errors import PatternLoadError
from jumar.judging.patterns import PatternMatcher, PatternV2

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def pattern(number: int = 1, **given_: Any) -> PatternV2:
    known: dict[str, Any] = {"type": "good", "description": "", "keywords": [], "source": "", "discovered_at": WHEN}
    return PatternV2(id=f"p_{number:03d}", **{**known, **given_})


def word(char: str) -> bool:
    return char.isalnum() or char == "_"


def occurs(phrase: str, text: str) -> bool:
    for start in range(len(text) - len(phrase) + 1):
        end = start + len(phrase)
        if text[start:end] != phrase:
            continue
        before = start > 0 and word(text[start - 1]) and word(phrase[0])
        after = end < len(text) and word(text[end]) and word(phrase[-1])
        if not before and not after:
            return True
    return False


def plain(text: str) -> str:
    return re.sub("[ \t\u00a0\u202f]+", " ", unicodedata.normalize("NFC", text.casefold()))


def reference(patterns: Sequence[PatternV2], text: str) -> list[int]:
    fired: list[int] = []
    for index, one in enumerate(patterns):
        if one.status in {"pruned", "rejected"}:
            continue
        phrases = one.phrases if one.phrases or one.regex is not None else one.keywords
        literal = any(occurs(plain(phrase.strip()), plain(text)) for phrase in phrases if phrase.strip())
        if literal or (one.regex is not None and re.search(one.regex, text, re.IGNORECASE)):
            fired.append(index)
    return fired


WORDS = st.sampled_from(
    ["a", "api", "capital", "chat.ts", "c++", ".ts", "über", "Ünï", "_x", "日本", "é", "e\u0301", "ß", "SS", "(", "–", "’s", "x2"]
)
GLUE = st.sampled_from([" ", " ", "-", "\n", ", ", "", "’", "  ", "\t ", "\u00a0", "\u202f ", "."])
TEXTS = st.lists(st.tuples(WORDS, GLUE), max_size=8).map(lambda found: "".join(one + glue for one, glue in found))
PHRASES = st.lists(st.one_of(TEXTS, st.text(alphabet="aB .-é_", max_size=4)), max_size=3)
EXPRESSIONS = st.sampled_from([None, None, None, "a+p", "(a|aa)+i$", r"c\+", "x.{0,3}a", "^a"])
PATTERNS = st.lists(
    st.builds(
        lambda phrases, keywords, regex, status: {"phrases": phrases, "keywords": keywords, "regex": regex, "status": status},
        PHRASES,
        PHRASES,
        EXPRESSIONS,
        st.sampled_from(["active", "provisional", "rejected", "pruned"]),
    ),
    max_size=6,
)


@given(PATTERNS, TEXTS)
@example([{"phrases": ["api"]}], "capital api_x")
@example([{"phrases": ["time zone"]}], "time-zone time\nzone time  zone")
@example([{"phrases": ["a a"]}, {"phrases": ["a a a"]}], "a a a")
@example([{"phrases": ["(a"]}, {"phrases": ["a)"]}], "(a)")
@example([{"phrases": ["++"]}], "c++")
@example([{"phrases": ["straße"]}], "DIE STRASSE STRAßE")
def test_what_fires_is_what_the_reference_says(given_patterns: list[dict[str, Any]], text: str):
    patterns = [pattern(number, **one) for number, one in enumerate(given_patterns)]
    matcher = PatternMatcher(patterns)
    assert reference(patterns, text) == matcher.fired(text)
    assert [patterns[index].id for index in matcher.fired(text)] == matcher.fired_ids(text)
    assert {name for name, _ in matcher.evidence(text)} == set(matcher.fired_ids(text))


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("user can", "The user  can"),
        ("user can", "The user\tcan"),
        ("user can", "The user\u00a0 can, é"),
        ("user  can", "user can"),
        ("café", "CAFE\u0301"),
        ("cafe\u0301", "Café"),
        ("strasse", "Straße"),
        ("straße", "STRASSE"),
    ],
)
def test_what_is_written_otherwise_is_the_same(phrase: str, text: str):
    assert [0] == PatternMatcher([pattern(phrases=[phrase])]).fired(text)


@pytest.mark.parametrize(("phrase", "text"), [("user can", "user\ncan"), ("user can", "user-can"), ("cafe", "cafe\u0301")])
def test_what_is_something_else(phrase: str, text: str):
    assert [] == PatternMatcher([pattern(phrases=[phrase])]).fired(text)


@given(st.lists(st.text(max_size=6), max_size=4), st.text(max_size=30))
def test_any_text_is_read(phrases: list[str], text: str):
    patterns = [pattern(phrases=phrases, regex="zq")]
    assert reference(patterns, text) == PatternMatcher(patterns).fired(text)


def test_many_phrases_use_another_automaton_and_say_the_same():
    patterns = [pattern(number, phrases=[f"word{number} other{number}", "end"]) for number in range(20_000)]
    matcher = PatternMatcher(patterns)
    assert [7] == matcher.fired("Word7 other7, word8 other9")
    assert 20_000 == len(matcher.fired("the END"))


def test_half_of_a_surrogate_pair_is_read():
    matcher = PatternMatcher([pattern(phrases=["api"], regex="x+y"), pattern(2, phrases=["\ud800"])])
    assert [0] == matcher.fired("\udfff api")
    assert [0] == matcher.fired("\udfff xxy")
    assert [1] == matcher.fired("a\ud800b")


@pytest.mark.parametrize("regex", ["(", "(?=a)", r"(a)\1", "a{1001}", "((a{30}){30}){30}" + "b" * 5, "x{1000}y{1000}" * 400])
def test_an_expression_that_cannot_be_used_names_its_pattern(regex: str):
    with pytest.raises(PatternLoadError, match="pattern p_002: its regex"):
        PatternMatcher([pattern(1), pattern(2, regex=regex)])


def test_nested_quantifiers_are_harmless():
    matcher = PatternMatcher([pattern(regex="(x+x+)+y")])
    assert [] == matcher.fired("x" * 100_000)


def test_expressions_that_do_not_fit_into_one_set_are_split():
    patterns = [pattern(number, regex=f"{number:04d}.{{0,900}}z") for number in range(150)]
    matcher = PatternMatcher(patterns)
    assert len(matcher._sets) > 1
    text = "0011 " + "x" * 500 + " 0149z"
    assert reference(patterns, text) == matcher.fired(text) == [11, 149]


def test_no_patterns_and_no_phrases_fire_on_nothing():
    assert [] == PatternMatcher([]).fired("anything")
    assert [] == PatternMatcher([pattern(keywords=["", "  "])]).fired("  anything")


def test_evidence_says_what_was_there():
    matcher = PatternMatcher([pattern(1, phrases=["error message"]), pattern(2, regex="fail(s|ed)")])
    assert [("p_001", "error message"), ("p_002", "fail(s|ed)")] == matcher.evidence("An ERROR message: it failed.")
