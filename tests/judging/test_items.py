"""Items from files: every format, every way of being wrong."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from jumar.errors import ConfigError, ItemError, UsageError
from jumar.judging import Item
from jumar.judging.items import sources
from jumar.judging.items.records import ItemReader, SeenIds, field_map, read_items
from jumar.judging.items.sources import CHUNK_BYTES, LIMIT, Chunk, read_chunks, size_of

STORY = {"id": "s1", "title": "Add x", "description": "Because", "acceptance_criteria": ["one", "two"]}


def write(content: str | bytes, name: str = "in.jsonl") -> Path:
    path = Path(name)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows(*records: Any, name: str = "in.jsonl") -> Path:
    return write("".join(json.dumps(record) + "\n" for record in records), name)


def read(path: Path, **options: Any) -> list[Item]:
    return list(read_items(path, **options))


# ------------------------------------------------------------------------------------------------------------ formats


def test_json_lines_of_stories_and_of_texts():
    first, second, third = read(
        rows(STORY, {"id": 2, "text": "hi", "prompt": None, "group": 7}, {"id": "c", "text": None, "group": ""})
    )
    assert first.story is not None
    assert ("s1", "Add x\nBecause\none\ntwo", "in.jsonl, line 1") == (first.id, first.text, first.source)
    assert Item("2", "hi", group="7", source="in.jsonl, line 2") == second
    assert ("", None) == (third.text, third.group)


def test_blank_lines_a_mark_at_the_start_and_no_end_of_line_are_fine():
    assert ["a", "b"] == [one.id for one in read(write('\ufeff\n{"id": "a", "text": "x"}\n \n{"id": "b", "text": "y"}'))]


@pytest.mark.parametrize("name", ["in.json", "in.jsonl", "whatever"])
def test_an_array_is_read_like_lines(name: str):
    records = [STORY, {"id": "b", "text": "y" * CHUNK_BYTES}, *({"id": str(number), "text": "z" * 100} for number in range(3000))]
    lines = read(rows(*records))
    array = read(write(" \n" + json.dumps(records, indent=1) + "\n", name))
    assert [(one.id, one.text, one.story) for one in lines] == [(one.id, one.text, one.story) for one in array]
    assert f"{name}, element 2" == array[1].source
    assert [] == read(write("[ ]", name))


def test_an_array_is_read_in_blocks_of_characters_of_several_bytes():
    text = "ä€😀" * (CHUNK_BYTES // 3)
    assert [text, "x"] == [
        one.text for one in read(write(json.dumps([{"id": 1, "text": text}, {"id": 2, "text": "x"}], ensure_ascii=False)))
    ]


def test_a_table_has_lists_as_json_or_as_lines():
    table = (
        'id,title,description,acceptance_criteria,services\n1,Add,"two\nlines","[""a"", ""b""]",\n2,,,"a\n\n b ",x\n3,Fix,z,,\n'
    )
    first, second, third = read(write(table, "in.csv"))
    stories = [one.story for one in (first, second, third)]
    assert [["a", "b"], ["a", "b"], []] == [one.acceptance_criteria for one in stories if one]
    assert ["two\nlines", "", "z"] == [one.description for one in stories if one]
    assert ["in.csv, line 2", "in.csv, line 4", "in.csv, line 7"] == [first.source, second.source, third.source]
    assert ["x y"] == [one.text for one in read(write("id\ttext\n1\tx y\n", "in.tsv"))]


def test_parquet():
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist([STORY | {"services": None}, STORY | {"id": None}][:1]), "in.parquet")
    (only,) = read(Path("in.parquet"))
    assert only.story is not None
    assert (["one", "two"], [], "in.parquet, row 1") == (only.story.acceptance_criteria, only.story.services, only.source)


def test_parquet_without_the_extra_says_which():
    with mock.patch.dict(sys.modules, {"pyarrow": None}), pytest.raises(ConfigError, match=r"pip install 'jumar\[parquet\]'"):
        read(write("", "in.parquet"))


def test_a_folder_of_stories_one_a_line():
    folder = Path("stories")
    folder.mkdir()
    (folder / "b.txt").write_text("#G02# As a user, I want y.\n\nplain\n")
    (folder / "a.txt").write_text("#G14#  As a user, I want x. \n")
    (folder / "notes.md").write_text("not this")
    assert [
        Item("a.txt:1", "As a user, I want x.", group="G14", source="a.txt, line 1"),
        Item("b.txt:1", "As a user, I want y.", group="G02", source="b.txt, line 1"),
        Item("b.txt:3", "plain", source="b.txt, line 3"),
    ] == read(folder)
    story = read(folder, kind="story")[0].story
    assert story is not None
    assert ("", "As a user, I want x.", []) == (story.title, story.description, story.acceptance_criteria)


def test_standard_input():
    with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"id": 1, "text": "x"}\n'))):
        assert ["stdin, line 1"] == [one.source for one in read(Path("-"))]


# ------------------------------------------------------------------------------------------------------------- fields


def test_fields_are_mapped():
    (only,) = read(
        rows({"key": 4, "answer": "a", "question": "q", "topic": "t"}),
        fields=field_map(["id=key", "text=answer", "prompt=question", "group=topic"]),
    )
    assert ("4", "a", "q", "t") == (only.id, only.text, only.prompt, only.group)
    (story,) = read(
        rows({"id": 1, "name": "Add", "description": "", "criteria": []}),
        fields={"title": "name", "acceptance_criteria": "criteria"},
    )
    assert story.story is not None


def test_a_mapped_text_beats_the_story():
    (only,) = read(rows(STORY), fields={"text": "description"})
    assert (None, "Because") == (only.story, only.text)


def test_records_without_any_id_are_numbered():
    assert ["line-1", "line-3"] == [one.id for one in read(write('{"text": "x"}\n\n{"text": "y"}\n'))]
    assert ["element-1"] == [one.id for one in read(write('[{"text": "x"}]'))]


def test_half_a_surrogate_pair_becomes_the_replacement_character():
    (only,) = read(write('{"id": "\\uD83D", "text": "a\\udc00b\\ud83d\\ude00"}'))
    assert ("�", "a�b😀") == (only.id, only.text)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["text"], "write NAME=KEY"),
        (["=x"], "write NAME=KEY"),
        (["txt=x"], r"no field 'txt' \(did you mean 'text'"),
        (["text=a", "text=b"], "'text' is given twice"),
    ],
)
def test_field_options_that_make_no_sense(given: list[str], message: str):
    with pytest.raises(UsageError, match=message):
        field_map(given)


# -------------------------------------------------------------------------------------------------------------- wrong


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": 1, "text": "x"}\nnope', "line 2: not JSON"),
        ('{"id": 1, "text": "x"', "line 1: not JSON"),
        ('{"id": 1, "text": NaN}', "line 1: NaN is no number"),
        ('{"id": -Infinity}', "line 1: -Infinity is no number"),
        ("3", "line 1: int instead of an object"),
        ('{"id": ' + "[" * 100_000, "line 1: not JSON"),
        (b'{"id": 1, "text": "\xff"}', "line 1: not UTF-8 at byte 20"),
        ('{"id": 1, "text": 5}', r"line 1: 'text' is a number \(5\); give a text"),
        ('{"id": 1, "text": ["a"]}', "line 1: 'text' is a list; give a text"),
        ('{"id": 1, "text": "x", "prompt": 3}', "line 1: 'prompt' is a number"),
        ('{"id": 1, "text": "x", "group": true}', "line 1: 'group' is true"),
        ('{"id": 1, "answer": "x"}', "line 1: 'text' is missing.*--field text=KEY. There are: id, answer"),
        ('{"id": 1, "title": "t", "acceptance_criteria": []}', "line 1: 'description' is missing"),
        (
            '{"id": 1, "title": "t", "acceptance_criteria": "a", "description": ""}',
            r"'acceptance_criteria' is text \('a'\); give a list",
        ),
        (
            '{"id": 1, "title": "t", "acceptance_criteria": ["a", 3], "description": ""}',
            r"'acceptance_criteria'\[2\] is a number \(3\)",
        ),
        ('{"id": 1, "title": null, "acceptance_criteria": [], "description": ""}', "'title' is null; give a text"),
        ('{"id": "", "text": "x"}', "line 1: 'id' is empty"),
        ('{"id": " ", "text": "x"}', "line 1: 'id' is empty"),
        ('{"id": 1.5, "text": "x"}', r"line 1: 'id' is a number \(1.5\)"),
        ('{"id": 1, "text": "x"}\n{"text": "y"}', "line 2: 'id' is missing.*--field id=KEY"),
        ('{"text": "x"}\n{"id": 1, "text": "y"}', "line 2: has 'id', the first record has not"),
        ('{"id": 1, "text": "x"}\n{"id": "1", "text": "y"}', "line 2: the id '1' was there before"),
        ('[{"id": 1, "text": "x"} {"id": 2}]', "element 1: no comma"),
        ('[{"id": 1, "text": "x"}, 3]', "element 2: no JSON object"),
        ('[{"id": 1, "text": "x"}, {"id": 2', "element 2: not JSON"),
        ('[{"id": 1, "text": "x"}', "element 1: no comma or bracket"),
        ('[{"id": 1, "text": NaN}]', "element 1: NaN is no number"),
        ('[{"id": 1, "text": "x"}] 3', "something follows the end of the array"),
        (b'[{"id": 1, "text": "\xff"}]', "not UTF-8"),
        (b'{"id": 1, "text": "' + b"x" * 50_000_000 + b'"}', f"line 1: longer than {LIMIT:,} bytes"),
        (b'[{"id": 1, "text": "' + b"x" * 50_000_000 + b'"}]', f"element 1: not JSON, or longer than {LIMIT:,}"),
    ],
    ids=range(31),
)
def test_what_is_wrong_is_named_by_its_line(content: str | bytes, message: str):
    with pytest.raises(ItemError, match=f"^in.jsonl.*{message}"):
        read(write(content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('id,text\n1,"x', "line 2: not a table"),
        ("id,text\n1,x,y", "line 2: 3 cells below 2 columns"),
        ("id,id\n1,x", "line 1: two columns are called 'id'"),
        (b"id,text\n1,\xff", "line 2: not UTF-8"),
        ("id,text\n,x", "line 2: 'id' is empty"),
        ('id,title,description,acceptance_criteria\n1,a,b,"[1]"', r"line 2: 'acceptance_criteria'\[1\] is a number"),
        (b"id,text\n1," + b"x" * (LIMIT + 1), "line 2: longer than"),
    ],
    ids=range(7),
)
def test_what_is_wrong_in_a_table_is_named_by_its_line(content: str | bytes, message: str):
    with pytest.raises(ItemError, match=f"^in.csv, {message}"):
        read(write(content, "in.csv"))


@pytest.mark.parametrize("header", ["id;text", "id\ttext"])
def test_cells_that_are_parted_by_something_else_are_told_so(header: str):
    with pytest.raises(ItemError, match=r"^in.csv, line 1: one column, '.*'; columns are separated by commas in .csv"):
        read(write(f"{header}\n1,x\n", "in.csv"))
    assert [None] == [one.group for one in read(write("text\nx; y\n", "in.csv"))]


def test_a_mapped_key_that_is_not_there_names_the_nearest():
    with pytest.raises(
        ItemError, match=r"no 'anser', which --field maps to text \(did you mean 'answer'\?\); there are: id, answer"
    ):
        read(rows({"id": 1, "answer": "x"}), fields={"text": "anser"})


def test_files_that_cannot_be_read():
    Path("empty").mkdir()
    for path, message in (
        (Path("nowhere"), "no such file"),
        (Path("empty"), "no .txt file"),
        (write("x", "a.parquet"), "not a Parquet file"),
    ):
        with pytest.raises(ItemError, match=message):
            read(path)
    with pytest.raises(ItemError, match="lines of text have no fields"):
        read(write("one\n", "a.txt"), fields={"text": "x"})


def test_ids_are_told_apart_however_many_there_are():
    seen = SeenIds()
    seen.add((f"i{number}", "there") for number in range(20_000))
    seen.add((f"j{number}", "there") for number in range(20_000))
    for again in ("i0", "i19999", "j0", "j12345"):
        with pytest.raises(ItemError, match=f"here: the id '{again}' was there before"):
            seen.add([(again, "here")])


def test_sizes_are_known_before_reading_where_they_can_be():
    folder = Path("stories")
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"x" * 7)
    (folder / "b.txt").write_bytes(b"y\n" * 2)
    assert [11, 3, None, None] == [size_of(path) for path in (folder, write("abc"), Path("-"), Path("nowhere"))]
    assert [7, 11] == [chunk.end for chunk in read_chunks(folder)]


def test_halves_of_pairs_are_replaced_in_everything_that_a_record_holds():
    (only,) = read(
        write(r'[{"id": 1, "title": "\ud83d", "description": "", "acceptance_criteria": ["a\udc00"], "x": {"\ud800": 1}}]')
    )
    assert "\ufffd\n\na\ufffd" == only.text


def test_an_element_over_the_limit_is_refused_where_it_is_read_at_once():
    with pytest.raises(ItemError, match=r"element 2: longer than 50 characters"):
        read(write(json.dumps([{"id": 1, "text": "x"}, {"id": 2, "text": "y" * 60}])), limit=50)


def test_blank_rows_of_a_table_are_skipped():
    assert ["1", "2"] == [one.id for one in read(write("id,text\n1,x\n\n2,y\n", "in.csv"))]


def test_a_parquet_file_that_is_not_there():
    with pytest.raises(ItemError, match="no such file"):
        read(Path("nowhere.parquet"))


def test_a_cell_with_boxes_to_tick_is_lines_and_one_that_only_opens_brackets_is_text(tmp_path: Path):
    file = tmp_path / "in.csv"
    for cell, expected in (
        ("[ ] one\n[x] two", ["[ ] one", "[x] two"]),
        ("[" * 100_000, ["[" * 100_000]),
        ('["a", "b"]', ["a", "b"]),
    ):
        with file.open("w", newline="") as stream:
            csv.writer(stream).writerows([["id", "title", "acceptance_criteria"], ["1", "t", cell]])
        (item,) = read_items(file)
        assert item.story is not None
        assert expected == item.story.acceptance_criteria


@pytest.mark.parametrize("text", ['{"id": "a", "text": "x", "text": "y"}\n', '[{"id": "a", "text": "x", "text": "y"}]'])
def test_a_key_that_is_there_twice_is_refused(text: str):
    with pytest.raises(ItemError, match=r"the key 'text' is there twice in one object"):
        read(write(text, "in.json" if text.startswith("[") else "in.jsonl"))


HOSTILE_LINES = [
    '{"id": "a", "text": "plain"}',
    '{"id": "a", "text": "one", "text": "two"}',
    '{"id" : "a", "text"\t: "blank before colons", "text" :1}',
    '{"id": "a", "text": "a string with \\": colons", "prompt": ":"}',
    '{"id": "a", "text": ":", "extra": {"text": "inside"}}',
    '{"id": "a", "text": "t", "extra": {"k": 1, "k": 2}}',
    '{"id": "a", "text": "\\ud800 half", "prompt": "\\ud83d\\ude00 whole"}',
    '{"id": "a", "text": "\\ud800", "prompt": "\ufffd"}',
    '{"id": "a", "text": "NUL \\u0000 and \\u001f"}',
    '{"id": "a", "text": "raw \x00"}',
    '{"id": 123456789012345678901234567890, "text": "t"}',
    '{"id": 18446744073709551616, "text": "t", "group": 340282366920938463463374607431768211456}',
    '{"id": -0, "text": "t", "group": 0}',
    '{"id": 1.0, "text": "t"}',
    '{"id": true, "text": "t"}',
    '{"id": "a", "text": 1e999}',
    '{"id": "a", "text": "t", "score": NaN}',
    '{"id": "a", "text": "t", "score": 1e999}',
    '{"id": "a", "text": 100000000000000000000}',
    '{"id": "a", "text": ["t"]}',
    '{"id": "a", "text": null, "context": 3}',
    '{"id": "", "text": "t"}',
    '{"text": "t"}',
    '{"id": "a", "title": "Add", "description": "d", "acceptance_criteria": ["x", 100000000000000000000]}',
    '{"id": "a", "title": "Add", "description": "d", "acceptance_criteria": ["x \\u2028"], "services": null}',
    '{"id": "a", "title": "Add", "acceptance_criteria": []}',
    '["id", "text"]',
    '"text"',
    '{"id": "a", "text": "t"} trailing',
    '{"id": "a", "text": "t",}',
    "{'id': 'a'}",
    "{",
]


@pytest.mark.parametrize("line", HOSTILE_LINES)
def test_the_quick_library_reads_a_line_as_the_standard_one_does(line: str, monkeypatch: pytest.MonkeyPatch):
    def read() -> object:
        chunk = Chunk("f", "line", "json", [(1, line.encode("utf-8"))], 0)
        try:
            return ItemReader({}).items(chunk)
        except ItemError as error:
            return str(error)

    quickly = read()
    monkeypatch.setattr(sources, "quick_json", lambda: None)
    assert read() == quickly


def test_a_plain_line_is_read_by_the_quick_library_and_another_one_is_not():
    assert {"id": "a", "text": "a: \u20ac"} == sources.decode_plainly('{"id": "a", "text": "a: \u20ac"}'.encode())
    assert sources.decode_plainly(b'{"id": "a", "id": "b"}') is None
    assert sources.decode_plainly(b"[1]") is None
