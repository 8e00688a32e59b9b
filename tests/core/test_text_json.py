"""JSON documents as they are laid out for people."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.text import escape_block, json_rows, json_text

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4))


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5))
def test_a_document_in_rows_says_what_it_says(document: dict[str, Any]) -> None:
    assert json.loads(json_rows(document)) == document


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5))
def test_a_document_for_people_holds_nothing_that_a_terminal_obeys(document: dict[str, Any]) -> None:
    everything = "".join(
        map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x61C, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xDCFF])
    )
    shown = json_text({**document, everything: everything})
    assert shown == escape_block(shown)
    assert json.loads(shown) == {**document, everything: everything}


def test_records_have_a_line_each() -> None:
    shown = json_rows({"figures": {"mean": 1.5, "ids": ["a", "b"]}, "rows": [{"id": "é\n", "n": [1]}, {"id": "b"}], "none": []})
    assert shown.splitlines() == [
        "{",
        '  "figures": {',
        '    "mean": 1.5,',
        '    "ids": ["a", "b"]',
        "  },",
        '  "rows": [',
        '    {"id": "é\\n", "n": [1]},',
        '    {"id": "b"}',
        "  ],",
        '  "none": []',
        "}",
    ]
    with pytest.raises(ValueError, match="JSON"):
        json_rows({"rows": [{"a": float("nan")}]})
