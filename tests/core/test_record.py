"""Records in JSON: what a dataclass declares comes back, whatever of it a file has; everything else names file and field."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import math
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jumar
from jumar.core.codec import FORMAT, Fields, decode, encode
from jumar.core.record import FileRecord, Record, dump, load, stored
from jumar.errors import ConfigError, FormatTooNewError, JumarError, StoreDamagedError
from jumar.model.attempts import AttemptEnd, AttemptStart
from jumar.model.records import IterationRecord, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf(Record):
    name: str
    weight: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree(FileRecord):
    title: str
    count: int
    share: float
    sure: bool
    kind: Literal["a", "b"] = "a"
    number: int = field(default=0, metadata=stored("no"))
    said: str | None = field(default=None, metadata=stored(omit=True))
    leaf: Leaf | None = None
    leaves: tuple[Leaf, ...] = ()
    words: tuple[str, ...] = ()
    sparse: tuple[float | None, ...] = ()
    pair: tuple[float, str] | None = None
    either: Literal["c", "d"] | Literal["e"] | None = None  # noqa: PYI030 - as two aliases of a module come together
    tags: frozenset[str] = frozenset()
    scores: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    by_name: Mapping[str, Leaf] = field(default_factory=lambda: MappingProxyType({}))
    anything: Any = None


SPECIMEN = Tree(
    title="t",
    count=1,
    share=0.5,
    sure=True,
    kind="b",
    number=3,
    said="s",
    leaf=Leaf(name="l", weight=1.5),
    leaves=(Leaf(name="m"), Leaf(name="n", weight=2)),
    words=("v", "w"),
    sparse=(1.0, None),
    pair=(0.25, "p"),
    either="e",
    tags=frozenset({"y", "x"}),
    scores={"q": 1.0},
    by_name={"o": Leaf(name="o")},
    anything={"deep": [1, None]},
)

texts = st.text(st.characters(), max_size=5)  # lone surrogates too
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**6), 10**6)
leaf = st.builds(Leaf, name=texts, weight=st.none() | numbers)
trees = st.builds(
    Tree,
    title=texts,
    count=st.integers(),
    share=numbers,
    sure=st.booleans(),
    kind=st.sampled_from(["a", "b"]),
    number=st.integers(),
    said=st.none() | texts,
    leaf=st.none() | leaf,
    leaves=st.lists(leaf, max_size=3).map(tuple),
    words=st.lists(texts, max_size=3).map(tuple),
    sparse=st.lists(st.none() | numbers, max_size=3).map(tuple),
    pair=st.none() | st.tuples(numbers, texts),
    tags=st.frozensets(texts, max_size=3),
    scores=st.dictionaries(texts, numbers, max_size=3),
    by_name=st.dictionaries(texts, leaf, max_size=3),
    anything=st.recursive(st.none() | st.booleans() | texts, lambda inner: st.lists(inner, max_size=3), max_leaves=4),
)


@given(trees)
def test_a_record_comes_back_from_its_bytes(tree: Tree) -> None:
    data = encode(tree.to_json(), exact=True)
    assert Tree.from_json(decode(data, "tree.json")) == tree


def test_the_json_has_the_fields_in_order_under_their_stored_names() -> None:
    assert list(SPECIMEN.to_json())[:8] == ["format", "title", "count", "share", "sure", "kind", "no", "said"]
    assert SPECIMEN.to_json()["format"] == FORMAT
    assert (SPECIMEN.to_json()["tags"], SPECIMEN.to_json()["pair"]) == (["x", "y"], [0.25, "p"])
    assert "said" not in dataclasses.replace(SPECIMEN, said=None).to_json()
    assert "leaf" in dataclasses.replace(SPECIMEN, leaf=None).to_json()


def test_what_a_file_lacks_takes_its_default_and_what_it_has_besides_is_ignored() -> None:
    tree = load(Tree, Fields({"title": "t", "count": 1, "share": 2, "sure": False, "newer": 1}, "tree.json"))
    assert tree == Tree(title="t", count=1, share=2, sure=False)
    assert load(Leaf, Fields({"name": "l"}, "leaf")).weight is None
    with pytest.raises(StoreDamagedError, match=r"^tree\.json: field 'count' should be a whole number, is missing$"):
        load(Tree, Fields({"title": "t"}, "tree.json"))


def test_fields_that_are_left_out_are_not_looked_at() -> None:
    data = {**dump(SPECIMEN), "leaves": "nonsense"}
    assert load(Tree, Fields(data, "tree.json"), without={"leaves"}) == dataclasses.replace(SPECIMEN, leaves=())


WRONG: list[tuple[str, Any, str]] = [
    ("title", 1, "field 'title' should be a string, is 1"),
    ("title", None, "field 'title' should be a string, is None"),
    ("count", True, "field 'count' should be a whole number, is True"),
    ("count", 1.0, "field 'count' should be a whole number, is 1.0"),
    ("share", math.nan, "field 'share' should be a finite number, is nan"),
    ("share", math.inf, "field 'share' should be a finite number, is inf"),
    ("share", 10**400, "field 'share' should be a finite number"),
    ("sure", 1, "field 'sure' should be true or false, is 1"),
    ("kind", "c", "field 'kind' should be one of a, b, is 'c'"),
    ("either", "f", "field 'either' should be one of c, d, e, is 'f'"),
    ("no", "3", "field 'no' should be a whole number, is '3'"),
    ("leaf", [], "field 'leaf' should be an object, is []"),
    ("leaf", {"name": 1}, "leaf: field 'name' should be a string, is 1"),
    ("leaves", {}, "field 'leaves' should be a list of objects, is {}"),
    ("leaves", [{"name": "l"}, 1], "field 'leaves' should be a list of objects"),
    ("leaves", [{"name": "l"}, {"name": None}], "leaves[1]: field 'name' should be a string, is None"),
    ("words", ["a", 1], "field 'words' should be a list of strings"),
    ("words", "ab", "field 'words' should be a list of strings, is 'ab'"),
    ("sparse", [1, math.nan], "field 'sparse' should be a list of numbers"),
    ("pair", [1.0], "field 'pair' should be a list of a finite number and a string"),
    ("pair", ["a", "b"], "pair: field '0' should be a finite number, is 'a'"),
    ("scores", {"q": "1"}, "scores: field 'q' should be a finite number, is '1'"),
    ("by_name", {"o": {"weight": 1}}, "by_name: o: field 'name' should be a string, is missing"),
]


@pytest.mark.parametrize(("key", "value", "message"), WRONG)
def test_a_wrong_value_is_named_with_its_file_and_place(key: str, value: Any, message: str) -> None:
    with pytest.raises(StoreDamagedError) as raised:
        load(Tree, Fields({**dump(SPECIMEN), key: value}, "tree.json"))
    assert str(raised.value).startswith(f"tree.json: {message}")


def test_a_newer_format_is_refused() -> None:
    data = encode({**SPECIMEN.to_json(), "format": FORMAT + 1})
    with pytest.raises(FormatTooNewError, match="newer jumar"):
        Tree.from_json(decode(data, "tree.json"))


def test_a_type_that_no_json_has_is_refused_when_the_class_is_first_used() -> None:
    @dataclass(frozen=True)
    class Odd(Record):
        when: complex = 0j

    @dataclass(frozen=True)
    class Either(Record):
        value: int | str = 0

    for kind in (Odd, Either):
        with pytest.raises(TypeError, match="a field of"):
            dump(kind())


WHOLE = IterationRecord(iteration_number=1, timestamp="t", quality_score=50.0)
START = AttemptStart(number=1, iteration=1, parent=None, nonce="n", started_at="t")
END = AttemptEnd(outcome="ok", seconds=1.0, ended_at="t")


@given(st.sampled_from([SPECIMEN, WHOLE, START, END, Usage()]), st.data())
def test_a_damaged_file_is_read_or_refused_in_words(record: Record, data: st.DataObject) -> None:
    document = json.loads(encode(record.to_json()))
    key = data.draw(st.sampled_from(sorted(document)))
    strange: list[Any] = [None, True, -1, 1.5, "x", [], [1], {}, {"a": None}, [{}], 10**30]
    document[key] = data.draw(st.sampled_from(strange))
    refused, again = "", record
    try:
        again = type(record).from_json(Fields(document, "file.json"))
    except JumarError as error:
        refused = str(error)
    assert not refused or refused.startswith("file.json: ")
    assert type(record).from_json(Fields(json.loads(encode(again.to_json())), "file.json")) == again


def test_every_record_of_the_package_has_types_that_json_has() -> None:
    """A class is looked at when it is first written: here all of them are, so that none fails in somebody's loop."""
    for module in pkgutil.walk_packages(jumar.__path__, "jumar."):
        if not module.name.startswith(("jumar.integrations", "jumar.cli.entry")):
            importlib.import_module(module.name)
    kinds, known = [*Record.__subclasses__()], set[type[Record]]()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if kind.__module__.startswith("jumar.") and dataclasses.is_dataclass(kind):
            known.add(kind)
            with contextlib.suppress(StoreDamagedError, ConfigError):  # of one that may not be empty
                load(kind, Fields({}, "empty"))
    assert len(known) > 40
