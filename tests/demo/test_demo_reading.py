from __future__ import annotations

import pytest

from jumar.demo.blocks import parse, render, rewrite
from jumar.demo.outline import anchors, empty_sections, holders, numbered_lists, targets, title_of
from jumar.demo.plan import default_file
from jumar.demo.reading import Text, decode, encode, is_binary, read_text, write_text
from jumar.demo.words import content, count_words, fold, function_words, split_sentences, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four… five", ["One.", "Two!", "Three?", "Four… five"]),
        ("See e.g. Smith, i.e. J. Smith et al. and Dr. No.", ["See e.g. Smith, i.e. J. Smith et al. and Dr. No."]),
        ("It runs 3.11. Then it stops.", ["It runs 3.11.", "Then it stops."]),
        ("3. Update the file. Done.", ["3. Update the file.", "Done."]),
        ("Stop. [See 3. Here](#x) or `a. B`. End.", ["Stop.", "[See 3. Here](#x) or `a. B`.", "End."]),
        ('He said "Go." Then (all went.) So.', ['He said "Go."', "Then (all went.)", "So."]),
        ("A full stop. before a small letter.", ["A full stop. before a small letter."]),
        ("Not a list. 14. January came.", ["Not a list. 14. January came."]),
        ("春眠不觉晓。处处闻啼鸟！夜来", ["春眠不觉晓。", "处处闻啼鸟！", "夜来"]),
        ("Дом стоит. Лес шумит.", ["Дом стоит.", "Лес шумит."]),
        ("Stop.  ", ["Stop."]),
        ("", []),
        ("   ", []),
    ],
)
def test_sentences(text: str, expected: list[str]):
    assert split_sentences(text) == expected


def test_words_of_every_script_are_counted():
    assert tokens("It's 3.5 % of well-known foo_bar, 1,200 m.") == ["It's", "3.5", "of", "well-known", "foo_bar", "1,200", "m"]
    assert tokens("ab 春眠不 cd 晓") == ["ab", "春眠", "眠不", "cd", "晓"]
    assert count_words("Дом стоит, naïve café.") == 4
    assert count_words("春眠不觉晓 and two") == 3 + 2
    assert count_words("— … !") == 0


@pytest.mark.parametrize(
    ("word", "term"),
    [
        ("Services", "service"),
        ("retries", "retry"),
        ("Ines’s", "ines"),
        ("class", "class"),
        ("status", "status"),
        ("3.11", "3.11"),
    ],
)
def test_forms_of_a_word_are_one_term(word: str, term: str):
    assert fold(word) == term


def test_words_that_stand_everywhere_say_nothing():
    russian = [f"Это что слово{number} или дом{number}." for number in range(16)]
    assert {"это", "что", "или"} <= function_words(russian)
    assert "слово1" not in function_words(russian)
    assert "это" not in function_words(russian[:15])
    assert content("The gauge is at km 14, ok? これは", function_words([])) == ["gauge", "14"]


def _kinds(text: str) -> list[str]:
    blocks = parse(text).blocks
    assert render(parse(text)) == text
    return [block.kind for block in blocks]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("", []),
        ("\n \n\n", []),
        ("# A\ntext\n## B\n", ["heading", "text", "heading"]),
        ("Setext\n===\n\nText goes\non here.\n\nB\n---\n", ["heading", "text", "heading"]),
        ("=====\nOver\n=====\n\nText here.\n", ["heading", "text"]),
        ("NAME\n       ls - list directory contents\n", ["heading", "text"]),
        ("**Bold alone**\n\nText.\n", ["heading", "text"]),
        ("# set the path\nPATH=/bin\n# and go\ngo(1);\n", ["verbatim"]),
        ("---\ntitle: x\n---\n\n# A\n", ["front", "heading"]),
        ("- a\n- b\n  - c\n\n1. d\n2. e\n", ["item"] * 5),
        ("Text one.\n- a\n* b\n", ["text", "item", "item"]),
        ("```sh\n\n# no heading\n```\nText.\n", ["code", "text"]),
        ("```\nnever closed\n\n# no heading\n", ["code"]),
        ("Look here::\n\n    a = 1\n\n    b = 2\n\nText again.\n", ["text", "code", "text"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", ["table"]),
        ("+---+---+\n| a | b |\n+---+---+\n", ["table"]),
        ("Text one.\n\n***\n\nText two.\n", ["text", "rule", "text"]),
        ("[x]: https://a.example\n[^1]: A note\n  goes on.\n", ["definition", "definition"]),
        (".. note::\n\n   Inside it.\n\nText.\n", ["verbatim", "text"]),
        ("<!-- a\n\nb -->\nText.\n", ["verbatim", "text"]),
        ("> quoted text\n> goes on\n", ["text"]),
        ("for (i = 0; i < n; i++) {\n    x[i] = y[i] + 1;\n}\n", ["verbatim"]),
        ("name      age      place\nAda        36      London\n", ["verbatim"]),
        ("Ada L.\nBob M.\nCyd N.\n", ["verbatim"]),
        ("# " + "very long " * 40 + "line\n", ["text"]),
    ],
)
def test_each_block_is_known_by_its_own_lines(text: str, kinds: list[str]):
    assert _kinds(text) == kinds


def test_an_option_and_its_explanation_are_one_block():
    (block,) = parse("       -a, --all\n           Do not ignore\n           entries. Really not.").blocks
    assert block.sentences == ("Do not ignore entries.", "Really not.")
    assert rewrite(block, block.sentences[1:]).raw == ("       -a, --all", "           Really not.")


def test_words_broken_at_the_end_of_a_line_are_joined():
    (block,) = parse("The size is re\u2010\nquired and 春眠\n不觉 too.").blocks
    assert block.sentences == ("The size is required and 春眠不觉 too.",)


def test_a_paragraph_keeps_its_width_marks_and_indentation():
    (block,) = parse("> One two three four.\n> Five six seven eight. Nine ten.").blocks
    assert rewrite(block, ["One two three four.", "Nine ten eleven twelve."]).raw == (
        "> One two three four. Nine ten",
        "> eleven twelve.",
    )
    (item,) = parse("3. One two.\n   Three four. Five six.").blocks
    assert rewrite(item, ["Three four.", "Five seven."]).raw == ("3. Three four. Five", "   seven.")
    (single,) = parse("One. " * 60).blocks
    assert len(rewrite(single, ["Two."] * 60).raw) == 1


def test_no_line_is_begun_with_a_list_mark():
    (block,) = parse("It fell to minus six\ndegrees.").blocks
    assert rewrite(block, ["It fell one more time", "to seven."]).raw == ("It fell one more", "time to seven.")
    assert rewrite(block, ["It fell one more day - to seven."]).raw == ("It fell one more day - to seven.",)


def test_the_shipped_text_reads_as_its_author_meant_it():
    text = default_file().read_text("utf-8")
    assert render(parse(text)) == text
    blocks = parse(text).blocks
    kinds = [block.kind for block in blocks]
    assert (kinds.count("heading"), kinds.count("code"), kinds.count("table"), kinds.count("item")) == (7, 1, 1, 21)
    assert 1200 <= count_words(text) <= 1800
    assert title_of(blocks) == 0


def test_the_title_is_the_first_thing_that_says_something():
    assert title_of(parse("---\na: b\n---\n\n<!-- x -->\n\n[![b](c.svg)](d)\n\n# Title\n").blocks) == 3
    assert title_of(parse("---\n***\n").blocks) is None


def test_what_belongs_to_what():
    text = "# T\n\nDo this:\n\n1. a\n   - b\n\n   c\n2. d\n\nText.\n\n"
    text += "3. Alone\n\nBelow it.\n\nMore below.\n\n- x:\n\n```\ncode\n```\n"
    blocks = parse(text).blocks
    names = [block.raw[0].strip() for block in blocks]
    shown = {name: None if at is None else names[at] for name, at in zip(names, holders(blocks), strict=True)}
    assert shown == {
        "# T": None,
        "Do this:": None,
        "1. a": "Do this:",
        "- b": "1. a",
        "c": "1. a",
        "2. d": "Do this:",
        "Text.": None,
        "3. Alone": None,
        "Below it.": "3. Alone",
        "More below.": "3. Alone",
        "- x:": None,
        "```": "- x:",
    }


def test_numbered_lists_count_up_across_code_but_not_across_paragraphs():
    text = "1. a\n\n```\nx\n```\n\n2. b\n   1. c\n3. d\n\nText.\n\n4. e\n\n# H\n\n5. f\n1. g\n"
    assert [[number for _, number in numbered] for numbered in numbered_lists(parse(text).blocks)] == [
        [1, 2, 3],
        [1],
        [4],
        [5],
        [1],
    ]


def test_sections_anchors_and_targets():
    blocks = parse("# A & b\n\n## Same\n\n## Same\n\nText. <a id='own'></a>\n\n## [Link](x.md) `code` {#named}\n").blocks
    assert [blocks[at].sentences[0] for at in empty_sections(blocks)] == ["Same", "[Link](x.md) `code` {#named}"]
    assert {"a--b", "same", "same-1", "own", "named"} <= anchors(blocks)
    text = "[a](b.md#c) <https://d.example/e> and https://f.example/g. `x`"
    assert targets(text) == ["b.md#c", "https://d.example/e", "https://f.example/g"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("naïve\n".encode(), Text("naïve\n", "utf-8", "\n")),
        (b"\xef\xbb\xbfa\r\nb\r\n", Text("a\nb\n", "utf-8-sig", "\r\n")),
        ("a\nб".encode("utf-16"), Text("a\nб", "utf-16", "\n")),
        (b"na\xefve \x93q\x94", Text("naïve “q”", "cp1252", "\n")),
        (b"\x81\xff", Text("\x81ÿ", "latin-1", "\n")),
        (b"a\rb", Text("a\nb", "utf-8", "\r")),
        (b"", Text("", "utf-8", "\n")),
    ],
)
def test_files_are_read_and_written_the_way_they_are(data: bytes, expected: Text, tmp_path):
    path = str(tmp_path / "file")
    (tmp_path / "file").write_bytes(data)
    assert read_text(path) == decode(data) == expected
    write_text(path, expected)
    assert (tmp_path / "file").read_bytes() == encode(expected) == data
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_file()] == ["file"]


def test_the_beginning_of_a_file_can_be_read_alone(tmp_path):
    (tmp_path / "file").write_bytes(b"one two")
    assert read_text(str(tmp_path / "file"), limit=3).text == "one"


def test_a_write_that_fails_leaves_the_file_and_nothing_else(tmp_path):
    (tmp_path / "file").write_bytes(b"before")
    with pytest.raises(UnicodeEncodeError):
        write_text(str(tmp_path / "file"), Text("зима", "cp1252", "\n"))
    with pytest.raises(FileNotFoundError):
        write_text(str(tmp_path / "no such folder" / "file"), Text("x", "utf-8", "\n"))
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir() if entry.is_file()} == {"file": b"before"}


def test_binary_files_are_known():
    assert is_binary(b"\x7fELF\0\0")
    assert is_binary(bytes(range(1, 32)) * 3)
    assert not is_binary(b"text\n\t\x1b[31m")
    assert not is_binary("text".encode("utf-16"))
    assert not is_binary(b"")
