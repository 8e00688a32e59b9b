"""What `jumar.loop.ranking` and `jumar.model.budget` offer, and what importing them costs."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

import jumar.loop.ranking
import jumar.model.budget
from jumar.loop.ranking import Cause, InvalidView, Key, LexicographicOrder, Ranking, difference

PUBLIC = [
    "DEFAULT_DECLINE",
    "DEFAULT_DIMINISHING",
    "DEFAULT_OSCILLATION",
    "DEFAULT_PLATEAU",
    "DEFAULT_TIE_BREAKS",
    "DEFAULT_WEIGHTS",
    "PATTERNS",
    "TIE_BREAKS",
    "Cause",
    "InvalidView",
    "Key",
    "LexicographicOrder",
    "Ranking",
    "check_criteria",
    "check_rules",
    "check_weights",
    "choose",
    "detect_degradation",
    "detect_diminishing_returns",
    "difference",
    "evaluate_stop",
    "invalid_reason",
    "likely_causes",
    "merge_weights",
    "ordered",
    "parse_order",
    "resolve_weights",
    "running_best",
    "valid_score",
    "weighted_score",
]


def test_public_names():
    assert PUBLIC == jumar.loop.ranking.__all__
    assert jumar.model.budget.__all__ == [
        "Gate",
        "Go",
        "RunningReservation",
        "RunningSpend",
        "Stop",
        "Wait",
        "budget_left",
        "may_begin",
        "reservation",
        "spend",
        "spent_up",
    ]
    for name in PUBLIC:
        assert getattr(jumar.loop.ranking, name) is not None


def test_public_functions_and_classes_say_what_they_do():
    for name in PUBLIC:
        part = getattr(jumar.loop.ranking, name)
        if callable(part):
            assert part.__doc__, name
            assert not part.__doc__.startswith(f"{name}("), f"{name} has only what the dataclass wrote itself"


@pytest.mark.parametrize(
    "value",
    [
        Key("accuracy"),
        LexicographicOrder((Key("accuracy"),)),
        InvalidView(number=1, reason="no score"),
        Ranking(ordered=(), invalid=(), decided_by=None, explanation=""),
        Cause(pattern="style drift", meaning="", evidence="", mitigation=""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_are_frozen_and_small(value):
    field = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, field, getattr(value, field))
    assert not hasattr(value, "__dict__")


def test_differences_have_four_decimals():
    assert difference(1.00004, 1.0) == 0.0
    assert difference(1.00006, 1.0) == 0.0001
    assert difference(85, 72) == 13
    assert type(difference(85, 72)) is int


def test_importing_loads_no_library_and_reads_no_clock():
    code = "import sys; before = {*sys.modules}; import jumar.loop.ranking, jumar.model.budget; print(*{*sys.modules} - before)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    assert "jumar" in tops
    assert tops - sys.stdlib_module_names <= {"jumar"}
    assert tops.isdisjoint({"datetime", "random", "subprocess", "tempfile", "fractions", "decimal", "difflib"})
