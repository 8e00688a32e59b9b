"""The models of patterns: the bounds of the first design, and its files as they are."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import pytest
from pydantic import ValidationError

from jumar.judging.patterns import PatternProposal, PatternSet, PatternV1, PatternV2

MINIMAL: dict[str, Any] = {
    "id": "p_001",
    "type": "good",
    "description": "names the file",
    "keywords": ["file"],
    "source": "test",
    "discovered_at": "2026-01-16T12:00:00",
}


def test_what_is_not_said_has_the_defaults_of_the_design() -> None:
    pattern = PatternV2.model_validate(MINIMAL)
    assert (1.0, 0.0, 0, "active") == (pattern.weight, pattern.accuracy, pattern.times_fired, pattern.status)
    assert datetime(2026, 1, 16, 12) == pattern.discovered_at  # noqa: DTZ001 - a file of the first design has no zone


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("weight", 3.0),
        ("weight", -0.1),
        ("weight", math.nan),
        ("weight", math.inf),
        ("accuracy", 1.1),
        ("accuracy", math.nan),
        ("times_fired", -1),
        ("status", "sleeping"),
        ("type", "good_pattern"),
        ("id", ""),
        ("discovered_at", "yesterday"),
    ],
)
def test_values_out_of_bounds_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        PatternV2.model_validate({**MINIMAL, field: value})
    assert (field,) == caught.value.errors()[0]["loc"]


def test_a_set_needs_only_version_and_patterns() -> None:
    assert [] == PatternSet.model_validate({"version": "2.0", "patterns": []}).patterns
    for missing in ("version", "patterns"):
        with pytest.raises(ValidationError, match=missing):
            PatternSet.model_validate({key: value for key, value in {"version": "2.0", "patterns": []}.items() if key != missing})


def test_keys_of_others_survive_a_round_trip() -> None:
    data = {"version": "2.0", "patterns": [{**MINIMAL, "owner": "us"}], "team": {"name": "us"}}
    written = PatternSet.model_validate(data).model_dump(mode="json")
    assert ({"name": "us"}, "us") == (written["team"], written["patterns"][0]["owner"])


def test_a_narrative_pattern_names_its_source() -> None:
    pattern = PatternV1(type="bad_pattern", description="d", example="e", discovered_at=datetime(2026, 1, 1))  # noqa: DTZ001 - as above
    assert "scoping_validation" == pattern.source


@pytest.mark.parametrize(
    ("tested", "correct", "commit", "reject"),
    [
        (0, 0, False, False),
        (4, 0, False, False),
        (5, 1, False, True),
        (10, 3, False, False),
        (9, 9, False, False),
        (10, 7, True, False),
        (10, 6, False, False),
    ],
)
def test_a_proposal_is_committed_from_ten_items_and_rejected_from_five(
    tested: int, correct: int, commit: bool, reject: bool
) -> None:
    proposal = PatternProposal(pattern={"description": "d"}, proposed_at=1, stories_tested=tested, correct_predictions=correct)
    assert (commit, reject) == (proposal.should_commit(), proposal.should_reject())
