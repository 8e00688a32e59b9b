"""The lines of ``--per-item`` against the standard library's JSON of the whole result, with and without the quick library."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.judging import CheapModeEvaluator, CheapModeResult, Unscored
from jumar.judging.cheap import rows
from jumar.judging.items.item import as_items
from jumar.judging.patterns import PatternSet

HOSTILE = ["plain", "50 % of %s and %d", 'a "quote" \\ and \n a line', "NUL \x00 and \x1f", "é 日本 😀 \u2028", "\x7f", "{0} {}"]
RECORDS: list[dict[str, Any]] = [
    *({"id": f"t {text}", "text": f"{text}: the report is wrong, because 3 of 4 say so.", "prompt": text} for text in HOSTILE),
    *(
        {
            "id": f"s {text}",
            "title": f"Add {text}",
            "description": f"users will {text}",
            "acceptance_criteria": [text, "1 so"],
        }
        for text in HOSTILE
    ),
    {"id": "%", "text": ""},
    {"id": "none", "title": "", "description": " ", "acceptance_criteria": []},
]


def patterns(*, card: bool) -> PatternSet:
    def one(number: int, phrase: str, **fields: Any) -> dict[str, Any]:
        known = {
            "id": f"p{number} {phrase}",
            "type": "good",
            "description": f"says {phrase}",
            "keywords": [],
            "phrases": [phrase],
        }
        return {**known, "source": "test", "discovered_at": datetime(2026, 1, 1, tzinfo=UTC), "status": "active", **fields}

    made: dict[str, Any] = {
        "version": "2.0",
        "patterns": [
            *(one(number, text) for number, text in enumerate(HOSTILE)),
            one(20, "report", type="bad", weight=0.3),
            one(21, "wrong", weight=0.0, type="bad"),
            one(22, "nothing", phrases=[], feature="words", at_least=5.0, weight=1e-7),
        ],
    }
    if card:
        guard = {"good_phrases": 0.1}
        made["calibration"] = {"base": 2.9, "unit": 0.37, "curve": {"x": [1.0, 5.0], "y": [1.0, 5.0]}, "guard": guard}
    return PatternSet.model_validate(made)


def expected(result: CheapModeResult | Unscored) -> str:
    scored = isinstance(result, CheapModeResult)
    row: dict[str, Any] = {
        "id": result.story_id,
        "cheap": result.gestalt if scored else None,
        "expensive": None,
        "gap": None,
        "reasons": result.reasons if scored else [],
        "patterns_matched": result.patterns_matched if scored else [],
        "patterns_missed": result.patterns_missed if scored else [],
        "raw_score": result.raw_score if scored else None,
        "contributions": [asdict(contribution) for contribution in result.contributions] if scored else [],
        "sub_scores": result.sub_scores if scored else {},
        "unscored": None if scored else {"kind": result.kind, "message": result.message},
    }
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


@pytest.fixture(params=[True, False], ids=["quick", "standard"])
def _library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(rows, "quick_json", lambda: None)


@pytest.mark.usefixtures("_library")
@pytest.mark.parametrize("known", [None, patterns(card=False), patterns(card=True)], ids=["rubric", "patterns", "scorecard"])
def test_a_line_is_what_the_standard_library_writes_of_the_result(known: PatternSet | None) -> None:
    evaluator = CheapModeEvaluator(known)
    items = as_items(RECORDS)
    assert "".join(map(expected, evaluator.evaluate(items))) == rows.row_lines(evaluator, list(map(evaluator.read, items)))
    assert rows.row_lines(evaluator, []) == ""
    empty = list(map(evaluator.read, items[-2:-1]))
    assert rows.row_lines(evaluator, empty) == "".join(map(expected, evaluator.evaluate(items[-2:-1])))


EDGES = [0.0, -0.0, 1e-4, 9.9e-5, 1e-5, 1e-7, 5e-324, 1e15, 1e16, 1e17, 1.7e308, 0.1 + 0.2, 10.00001, 3, -12, 2**70 // 2**10]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(EDGES)))
def test_numbers_are_written_as_the_standard_library_writes_them(values: list[float]) -> None:
    assert [json.dumps(value) for value in values] == ([] if not values else rows.number_texts(values))


@pytest.mark.usefixtures("_library")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        rows.number_texts([1.0, value])
