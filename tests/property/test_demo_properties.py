from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jumar.demo.blocks import parse, render
from jumar.demo.condense import condense
from jumar.demo.coverage import coverage
from jumar.demo.measure import CHECKS, SCORES, measure
from jumar.demo.novelty import novelty
from jumar.demo.reading import Text, decode, encode
from jumar.demo.scores import Check, Score, sentences_of, words_of
from jumar.demo.wording import shorten
from jumar.demo.words import content, count_words, function_words, split_sentences

MARKS = """
# Title
## A part
### Deeper
- item one
  - below
1. first
2. second
> quoted
```
~~~
    indented = 1
| a | b |
|---|---|
Setext
======
-----
***
[x]: https://a.example
.. note:: x
<div>
NAME
-a, --all
       does all of it
term
    meaning of it
a::
\t- x
Words stand here. More stand there:
In order to win, basically run.
see [a](#a-part) and [x][x]
春眠不觉晓。处处闻啼鸟。
Дом стоит на горе. """
LINES = st.sampled_from(MARKS.split("\n"))
MARKED = st.one_of(
    st.lists(LINES, max_size=40).map("\n".join), st.text(max_size=200), st.text("#-*`~ \n|:>.a1<[]()_=", max_size=120)
)

VOCABULARY = "river gauge battery logger level station cable Ashmere 14 38 red mark the of and is flood `TX 0` antenna"
WORDS = st.sampled_from(VOCABULARY.split())
SENTENCE = st.lists(WORDS, min_size=1, max_size=14).map(lambda words: " ".join(words).capitalize() + ".")
PARAGRAPH = st.lists(SENTENCE, min_size=1, max_size=5).map(" ".join)
NAMES = st.sampled_from(["Rounds", "Batteries", "Who to call", "The flood", "Cables & such"])


@st.composite
def _lists(draw: st.DrawFn) -> str:
    mark = draw(st.sampled_from(["- ", "* ", None]))
    lines: list[str] = []
    for number in range(draw(st.integers(1, 5))):
        lines.append(f"{mark or f'{number + 1}. '}{draw(PARAGRAPH)}")
        if draw(st.booleans()):
            lines += [f"    - {draw(SENTENCE)}" for _ in range(draw(st.integers(1, 2)))]
    announced = f"{draw(SENTENCE)[:-1]}:\n\n" if draw(st.booleans()) else ""
    return announced + "\n".join(lines)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Well-formed markdown: sections with paragraphs, lists, code, tables, links to sections, references with definitions."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    slugs = {"Rounds": "rounds", "Batteries": "batteries", "Who to call": "who-to-call", "The flood": "the-flood"}
    slugs["Cables & such"] = "cables--such"
    link = st.sampled_from(names).map(lambda name: f"See [{name}](#{slugs[name]}) for more of it.")
    code = SENTENCE.map(lambda line: f"Run this:\n\n```sh\n{line}\n```")
    table = SENTENCE.map(lambda line: f"| a | b |\n|---|---|\n| {line} | 2 |")
    reference = st.just("The [manual][m] says so.")
    block = st.one_of(PARAGRAPH, PARAGRAPH, _lists(), code, table, link, reference)
    parts = ["# The gauges", draw(PARAGRAPH)]
    if draw(st.booleans()):
        parts.append("\n".join(f"- [{name}](#{slugs[name]})" for name in names))
    for name in names:
        parts.append(f"## {name}")
        parts += draw(st.lists(block, max_size=4))
    parts.append("[m]: https://manual.example/m")
    return "\n\n".join(parts) + "\n"


@given(MARKED)
def test_a_text_read_and_written_is_the_same_text(text: str):
    assert render(parse(text)) == text


@given(st.binary(max_size=300), st.sampled_from([b"", b"\xef\xbb\xbf", b"\xff\xfe"]))
def test_bytes_read_and_written_are_the_same_bytes_when_their_line_ends_agree(data: bytes, mark: bytes):
    data = mark + data
    assume(b"\r" not in data)
    assert encode(decode(data)) == data


@given(MARKED, st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]), st.sampled_from(["\n", "\r\n"]))
def test_a_text_keeps_its_encoding_and_line_ends(text: str, encoding: str, newline: str):
    text = text.replace("\r", "").lstrip("\ufeff") + "\n"
    assert decode(encode(Text(text, encoding, newline))) == Text(text, encoding, newline)


@given(st.one_of(documents(), MARKED))
def test_passes_shrink_the_text_until_they_change_nothing(text: str):
    text = text.replace("\r", "")
    for _ in range(200):
        done = condense(text)
        assert condense(text) == done
        if done.text == text:
            assert (done.phrases, done.removed, done.headings) == (0, 0, 0)
            return
        assert count_words(done.text) <= count_words(text)
        assert len("".join(done.text.split())) < len("".join(text.split()))
        text = done.text
    raise AssertionError("200 iterations and no end")


@given(documents())
def test_condensing_breaks_neither_title_nor_markup_nor_links(text: str):
    reference = parse(text).blocks
    while True:
        blocks = parse(text).blocks
        for name in CHECKS:
            found = measure(name, reference, blocks)
            assert found == Check(passed=True, reason=found.reason), text
        after = condense(text).text
        if after == text:
            break
        text = after


@given(MARKED, MARKED)
def test_scores_are_finite_and_between_0_and_1_whatever_is_compared(original: str, text: str):
    reference, blocks = parse(original).blocks, parse(text).blocks
    for name in SCORES:
        found = measure(name, reference, blocks)
        assert isinstance(found, Score)
        assert math.isfinite(found.score)
        assert 0.0 <= found.score <= 1.0
        assert found.reason


@given(st.one_of(documents(), MARKED))
def test_the_original_covers_and_keeps_all_of_itself(text: str):
    blocks = parse(text).blocks
    assert measure("coverage", blocks, blocks).reason.startswith(("the original has no", f"{_terms(text)} of {_terms(text)} "))
    assert coverage(blocks, blocks).score == 1.0
    structure = measure("structure", blocks, blocks)
    assert isinstance(structure, Score)
    assert structure.score == 1.0
    for name in CHECKS:
        assert isinstance(check := measure(name, blocks, blocks), Check)
        assert check.passed or (name == "title" and not words_of(blocks))


def _terms(text: str) -> int:
    from jumar.demo.coverage import key_terms

    return len(key_terms(parse(text).blocks))


@given(documents(), st.data())
def test_coverage_never_rises_when_a_block_goes(text: str, data: st.DataObject):
    reference = parse(text).blocks
    gone = data.draw(st.integers(0, len(reference) - 1))
    fewer = data.draw(st.integers(0, len(reference) - 1))
    once = [block for at, block in enumerate(reference) if at != gone]
    twice = [block for at, block in enumerate(reference) if at not in {gone, fewer}]
    assert 1.0 >= coverage(reference, once).score >= coverage(reference, twice).score


@given(documents())
def test_novelty_is_the_share_of_pairs_that_no_earlier_sentence_has(text: str):
    sentences = sentences_of(parse(text).blocks)
    functional = function_words(sentences)
    terms = [content(sentence, functional) for sentence in sentences]
    pairs = [{(one[at], one[at + 1]) for at in range(len(one) - 1)} for one in terms]
    fresh = total = 0
    for at, own in enumerate(pairs):
        for pair in own:
            total += 1
            fresh += not any(pair in earlier for earlier in pairs[:at])
    expected = (fresh / total if total else 1.0) if any(terms) else 0.0
    assert novelty(parse(text).blocks).score == pytest.approx(expected)


@given(st.text(max_size=200))
def test_sentences_hold_all_that_is_not_space(text: str):
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)


WORDY = "In order to, of course, please note that due to the fact really very `a b` 3 mm. so quite"


@given(st.lists(st.sampled_from(WORDY.split()), max_size=30))
def test_shortening_never_lengthens_and_is_done_at_once(words: list[str]):
    text = " ".join(words)
    shorter = shorten(text)
    assert len(shorter.text) <= len(text)
    assert (shorter.text == text) == (shorter.phrases == 0)
    assert shorten(shorter.text) == (shorter.text, 0)
