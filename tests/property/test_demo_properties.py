from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from jumar.demo.condense import condense, shorten
from jumar.demo.measure import CHECKS, FORMER, SCORES, measure
from jumar.demo.text import decode, parse, render

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
    assert text == render(parse(text))


@given(MARKED, st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]), st.sampled_from(["\n", "\r\n"]))
def test_a_text_is_read_the_same_in_every_encoding_and_with_every_line_end(text: str, encoding: str, newline: str):
    text = text.replace("\r", "").lstrip("\ufeff")
    assert text == decode(text.replace("\n", newline).encode(encoding))[0]


@given(st.one_of(documents(), MARKED))
def test_iterations_shrink_the_text_until_they_change_nothing(text: str):
    text = text.replace("\r", "")
    for _ in range(200):
        after = condense(text)
        assert after == condense(text)
        if after == text:
            return
        assert len("".join(after.split())) <= len("".join(text.split()))
        text = after
    raise AssertionError("200 iterations and no end")


@given(documents())
def test_condensing_breaks_neither_title_nor_markup_nor_links(text: str):
    original = text
    while True:
        for name in CHECKS:
            score, reason = measure(name, original, text)
            assert 1.0 == score, (reason, text)
        after = condense(text)
        if after == text:
            break
        text = after


@given(MARKED, MARKED)
def test_scores_are_finite_and_between_0_and_1_whatever_is_compared(original: str, text: str):
    for name in (*SCORES, *FORMER, *CHECKS):
        score, reason = measure(name, original, text)
        assert math.isfinite(score)
        assert 0.0 <= score <= 1.0
        assert reason or name in FORMER


@given(st.one_of(documents(), MARKED))
def test_the_original_covers_and_keeps_all_of_itself(text: str):
    assert [1.0] * 5 == [measure(name, text, text)[0] for name in ("coverage", "structure", *CHECKS)]


WORDY = "In order to, of course, please note that due to the fact really very `a b` 3 mm. so quite"


@given(st.lists(st.sampled_from(WORDY.split()), max_size=30))
def test_shortening_never_lengthens(words: list[str]):
    text = " ".join(words)
    assert len(shorten(text)) <= len(text)
