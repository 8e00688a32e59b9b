"""JSON documents as they are laid out for people."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.text import json_rows

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4))


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5))
def test_a_document_in_rows_says_what_it_says(document: dict[str, Any]) -> None:
    assert json.loads(json_rows(document)) == document


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
