from __future__ import annotations

import json
import math
from collections.abc import Sequence

import pytest

from jumar.demo import measure as command
from jumar.demo.blocks import Block, parse
from jumar.demo.checks import links, markup, title
from jumar.demo.coverage import coverage, key_terms
from jumar.demo.length import bounds, length
from jumar.demo.novelty import novelty
from jumar.demo.plan import default_file
from jumar.demo.readability import lix, readability
from jumar.demo.structure import structure


def read(text: str) -> Sequence[Block]:
    return parse(text).blocks


GUIDE = """# Gauges

The gauge at Harl Mill sends 96 levels a day. The gauge has a battery.

## Battery

Change the battery at `11.8 V`. Run:

```sh
gauge-check
```

1. Read the board.
2. Write it down.

| gauge | km |
|---|---|
| Wend | 14 |
"""


def test_key_terms_are_words_that_come_back_numbers_names_code_and_headings():
    twice = " ".join(f"word{letter}" for letter in "abcdefgh")
    text = f"# Gauges\n\n{twice} lonely.\n\n## Battery\n\n{twice} and the man from Harl Mill saw 96 of `TX` again.\n"
    terms = key_terms(read(text))
    assert set(terms) == {*twice.split(), "gauge", "battery", "harl", "mill", "96", "tx"}
    assert list(terms.values()) == sorted(terms.values(), reverse=True)
    assert "lonely" in key_terms(read("Worda stands lonely."))


def test_a_key_term_weighs_what_its_formula_says():
    text = "# One\n\nalpha alpha beta\n\n# Two\n\nbeta gamma\n\n# Three\n\nbeta\n\n# Four\n\ndelta\n"
    terms = key_terms(read(text))
    # of four sections: alpha twice in one, beta once in each of three; with fewer than twelve terms single words count too
    assert terms["alpha"] == pytest.approx((1 + 1) * math.log2(4 / 1 + 1))
    assert terms["beta"] == pytest.approx((1 + math.log2(3)) * math.log2(4 / 3 + 1))
    assert terms["gamma"] == pytest.approx(math.log2(5))
    assert "three" not in terms or terms["three"] == pytest.approx(1.5 * math.log2(5))


def test_coverage_is_the_weight_of_the_terms_that_are_left_and_names_the_heaviest_gone():
    text = "# One\n\nalpha alpha beta\n\n# Two\n\nbeta gamma\n\n# Three\n\nbeta\n\n# Four\n\ndelta\n"
    terms = key_terms(read(text))
    shorter = read(text.replace("alpha alpha", "").replace("delta", ""))
    found = coverage(read(text), shorter)
    assert found.score == pytest.approx(1 - (terms["alpha"] + terms["delta"]) / sum(terms.values()))
    assert found.reason == f"{len(terms) - 2} of {len(terms)} key terms are there; the weightiest gone: alpha, delta"
    assert coverage(read(text), read(text)) == (1.0, f"{len(terms)} of {len(terms)} key terms are there")
    assert coverage(read(text), ()).score == 0.0
    assert coverage((), read(text)) == (1.0, "the original has no key terms")


def test_lix_is_words_a_sentence_plus_the_share_of_long_words():
    # Björnsson's formula by hand: 8 words, 2 sentences, 2 words of more than six letters
    assert lix(["The gauges measure every day.", "Nobody listens now."]) == pytest.approx(8 / 2 + 100 * 2 / 8)
    assert lix(["春眠不觉晓处处闻啼鸟。"]) == 5.0  # ten characters are five words, none long
    assert lix([]) is None
    assert lix(["…"]) is None


def test_readability_falls_in_a_straight_line_from_25_to_75():
    easy = "It is so. " * 3
    hard = "Notwithstanding aforementioned considerations, interdependencies complicate straightforward recommendations."
    middle = "One two three four five six seven eight nine ten. Another gauge, another battery, nothing here."
    assert readability(read(easy)).score == 1.0
    assert readability(read(hard)).score == 0.0
    found = readability(read(middle))  # 16 words, 4 of them long, 2 sentences
    assert found.score == pytest.approx((75 - (16 / 2 + 100 * 4 / 16)) / 50)
    assert found.reason == "LIX 33 (25 is very easy, 60 hard), 8.0 words a sentence"
    assert readability(read("# Heading\n\n```\ncode is no prose\n```\n")) == (0.0, "there are no sentences to read")


@pytest.mark.parametrize(
    ("words", "least", "most"), [(1000, 250, 400), (300, 75, 150), (100, 25, 150), (0, 0, 150), (375, 93.75, 150)]
)
def test_the_right_length_is_a_quarter_to_two_fifths_but_150_words_are_always_fine(words: int, least: float, most: float):
    assert bounds(words) == (least, most)


@pytest.mark.parametrize(("words", "score"), [(1000, 0.0), (1200, 0.0), (700, 0.5), (400, 1.0), (250, 1.0), (125, 0.5), (0, 0.0)])
def test_length_falls_in_straight_lines_on_both_sides(words: int, score: float):
    found = length(read("word " * 1000), read("word " * words))
    assert found == (pytest.approx(score), f"{words:,} words of 1,000; 250 to 400 are right")


def test_a_short_text_is_as_long_as_it_should_be():
    assert length(read("word " * 90), read("word " * 90)).score == 1.0
    assert length(read("word " * 90), read("word " * 9)).score == pytest.approx(9 / 22.5)


def test_novelty_counts_what_was_said_before():
    text = "Gauges measure river levels. Gauges measure river levels. Nobody reads river levels."
    # pairs of terms: 3 new, 3 repeated, then nobody-read and read-river are new and river-level is not
    assert novelty(read(text)) == (pytest.approx(5 / 9), "1 of 3 sentences said again, 4 of 9 pairs of terms repeated")
    assert novelty(read("Gauges.")).score == 1.0
    assert novelty(()) == (0.0, "there are no sentences to compare")


def test_structure_is_what_is_left_of_each_kind():
    fewer = GUIDE.replace("## Battery\n", "").replace("2. Write it down.\n", "").replace("```sh\ngauge-check\n```\n", "")
    found = structure(read(GUIDE), read(fewer))
    weight = math.sqrt(2) + 1 + 1 + 1  # two headings, a list, a code block, a table
    assert found == (
        pytest.approx((math.sqrt(2) / 2 + 0 + 0 + 1) / weight),
        "kept 1 of 2 headings, 0 of 1 list, 0 of 1 code block, 1 of 1 table",
    )
    hollow = structure(read("# A\n\nText.\n\n# B\n\nText.\n"), read("# A\n\n# B\n\nText.\n"))
    assert hollow == (0.5, "kept 1 of 2 headings, 1 section without content")
    assert structure(read("One here.\n\nTwo here.\n"), read("One here.\n")) == (0.5, "kept 1 of 2 paragraphs")
    assert structure((), ()) == (1.0, "the original has no structure to keep")


def test_a_list_stands_while_two_of_its_items_do():
    text = "- a\n  - x\n  - y\n- b\n- c\n\nText.\n\n- d\n- e\n"
    assert structure(read(text), read(text)).reason == "kept 3 of 3 lists"
    assert structure(read(text), read("- a\n- b\n\nText.\n\n- d\n")).reason == "kept 1 of 3 lists"


def test_the_title_must_stay():
    assert title(read(GUIDE), read("# Gauges\n\nText.\n")) == (True, "the title is there: Gauges")
    assert title(read(GUIDE), read("# Batteries\n\nGauges.\n")) == (False, "the title is gone: Gauges")
    assert title(read(GUIDE), ()) == (False, "the document is empty")
    assert title(read("First sentence here. Second.\n"), read("First sentence here.\n")).passed
    assert not title(read("First sentence here. Second.\n"), read("Second.\n")).passed
    assert title(read(""), read("Text.")).passed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (GUIDE, None),
        ("# Gauges\n", None),
        (GUIDE.replace("gauge-check\n```", "gauge-check\n"), "a code fence is not closed"),
        (GUIDE[: GUIDE.index("```sh")], "1 announcement with nothing after it"),
        (GUIDE.replace("1. Read the board.\n", ""), "a list goes on at 2 without what comes before"),
        (GUIDE + "\nText here.\n\n    - below nothing\n", "1 item without the item above it"),
    ],
)
def test_markup_must_stay_whole(text: str, reason: str | None):
    found = markup(read(GUIDE), read(text))
    assert found == (reason is None, reason or "fences, announcements and lists are whole")
    assert markup(read(text), read(text)).passed  # what the original did not have is not asked for


LINKED = "# A\n\nSee [b](#b), [m](m.md), [the man][x] and a note[^1].\n\n## B\n\nText.\n\n[x]: https://x.example\n[^1]: Note.\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LINKED, None),
        ("# A\n\nSee m.\n", None),
        (LINKED.replace("m.md", "m.m"), "a link was damaged: m.m"),
        (LINKED.replace("## B\n", ""), "a link leads to a section that is gone: #b"),
        (LINKED.replace("[x]: https://x.example\n", ""), "a link lost its definition: [x]"),
        (LINKED.replace("[^1]: Note.\n", ""), "a link lost its definition: [^1]"),
    ],
)
def test_links_must_lead_somewhere(text: str, reason: str | None):
    found = links(read(LINKED), read(text))
    assert found.passed == (reason is None)
    assert found.reason == reason or reason is None
    assert links(read("# A\n\n[dead](#no) [x][y]\n"), read("# A\n\n[dead](#no) [x][y]\n")) == (True, "1 link, none broken")


def test_the_command_prints_a_score_as_json_and_a_check_as_a_line(tmp_path, capsys):
    original, document = tmp_path / "original", tmp_path / "document.md"
    original.write_text(GUIDE)
    document.write_text(GUIDE.replace("# Gauges", "# Gau\x1bges"))
    assert command.main(["length", str(document), "--reference", str(original)]) == 0
    assert json.loads(capsys.readouterr().out) == {"score": 1.0, "reason": "37 words of 36; 9 to 150 are right"}
    assert command.main(["title", str(document), "--reference", str(original)]) == 1
    assert capsys.readouterr().out == "the title is gone: Gauges\n"
    assert command.main(["title", "--reference", str(document), str(document)]) == 0
    assert capsys.readouterr().out == "the title is there: Gau\\x1bges\n"
    assert command.main(["length", str(document), "--reference", str(original), "--bytes", "8"]) == 0
    assert json.loads(capsys.readouterr().out)["reason"].startswith("37 words of 1;")


@pytest.mark.parametrize(
    "call",
    [
        "",
        "length",
        "length a",
        "length a --reference",
        "width a --reference b",
        "length a b --reference c",
        "length a --reference b --bytes x",
    ],
)
def test_a_wrong_call_is_exit_code_2_and_shows_the_right_one(call: str, capsys):
    assert command.main(call.split()) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err[:7]) == ("", "usage: ")


def test_a_missing_document_is_exit_code_2(tmp_path, capsys):
    assert command.main(["novelty", "gone.md", "--reference", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "could not read gone.md: No such file or directory\n"


def test_the_shipped_text_can_be_improved_in_every_way_but_one_way_only_by_losing():
    blocks = read(default_file().read_text("utf-8"))
    assert [length(blocks, blocks).score, coverage(blocks, blocks).score, structure(blocks, blocks).score] == [0.0, 1.0, 1.0]
    assert 0.5 < readability(blocks).score < 1.0
    assert 0.5 < novelty(blocks).score < 1.0
    assert all(check(blocks, blocks).passed for check in (title, markup, links))
