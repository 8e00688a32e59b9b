"""Patterns of gitignore fit what they fitted before they were made safe, and none of them takes long."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from jumar.loop.snapshots.matching import Lines, linear, usable_lines

COUNTS = {"pairs": 0, "fitted": 0}
PATTERNS = st.lists(
    st.sampled_from(["a", "b", "*", "/", "**", "/**/", "?", "[ab]", "[!a]", "**/", ".", "^"]), min_size=1, max_size=8
)
PATHS = st.lists(st.text("ab.^", min_size=1, max_size=5), min_size=1, max_size=5).map("/".join)


@pytest.fixture(scope="module", autouse=True)
def _counts() -> Iterator[None]:
    yield
    print(f"\npatterns and paths compared: {COUNTS['pairs']:,}, of which {COUNTS['fitted']:,} fitted")
    assert not COUNTS["pairs"] or COUNTS["fitted"] > 300  # the property may have run in another process


@settings(max_examples=1500, deadline=None)
@given(PATTERNS.map("".join), st.lists(PATHS, min_size=8, max_size=8), st.booleans())
def test_a_pattern_fits_what_it_fitted(pattern: str, paths: list[str], directory: bool) -> None:
    try:
        regex, _ = GitIgnoreSpecPattern.pattern_to_regex(pattern)
    except ValueError:
        return
    if regex is None:
        return
    slow, fast = re.compile(regex.replace("[^a]", "(?!/)[^a]")), re.compile(linear(regex))
    for path in paths:
        name = path + "/" if directory else path
        expected, actual = slow.match(name), fast.match(name)
        assert (expected is None) == (actual is None), (pattern, name)
        assert expected is None or actual is None or expected.groupdict().get("ps_d") == actual.groupdict().get("ps_d")
        COUNTS["pairs"] += 1
        COUNTS["fitted"] += expected is not None


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 30 + "b", "a" * 200),
        ("**/a" * 20 + "/**/b", "a/" * 1000 + "c"),
        ("*[!b]*[ab]*?" * 9 + "c", "a" * 250),
        ("**/*a*a*a*a*b/**/*a*a*b/**/c", ("a" * 200 + "/") * 20 + "c"),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    signal.alarm(60)  # the matcher of Python never ends here, and nothing else can interrupt it
    try:
        (line,) = usable_lines(pattern.encode(), "here")
        assert Lines([line], "here").verdict(path) is None
    finally:
        signal.alarm(0)


def test_a_line_longer_than_any_path_ignores_nothing() -> None:
    assert usable_lines(b"kept\n" + b"*" * 5000 + b"\n[z-a]\nlast\r\n", "here") == ["kept", "last", ""]


def test_a_class_of_characters_fits_no_slash() -> None:
    assert Lines(["a[!b]c"], "here").verdict("a/c") is None
    assert Lines(["a[!b]c"], "here").verdict("axc") is True
