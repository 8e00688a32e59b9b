"""Recordings of other tools: which directories are cases and iterations, and how they are numbered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jumar.cases.recorded import RecordedCase, read_recording
from jumar.errors import ConfigError, NotFoundError
from jumar.model.pipeline import DEFAULT_DIFF, DEFAULT_ROLES


def judge(path: str, score: float = 1) -> None:
    target = Path(path) / "judge" / "j.json"
    target.parent.mkdir(parents=True)
    target.write_text(json.dumps({"composite_score": score}))


def read(directory: str = ".") -> tuple[RecordedCase, ...]:
    keys = {"overall": "composite_score"}
    return read_recording(Path(directory), roles=DEFAULT_ROLES, keys=keys, needed=["overall"], diff=DEFAULT_DIFF)


def numbers(directory: str = ".") -> dict[int, str]:
    return {case.number: case.directory.name for case in read(directory)}


def test_cases_are_numbered_by_their_names_and_not_by_the_alphabet() -> None:
    for name in ("case1", "case2", "case10"):
        judge(f"{name}/iter_0001")
    assert {1: "case1", 2: "case2", 10: "case10"} == numbers()


def test_a_case_without_a_number_gets_one_that_is_free() -> None:
    for name in ("case_02/iterations", "odd", "even"):
        judge(f"{name}/iter_0001")
    assert {1: "even", 2: "case_02", 3: "odd"} == numbers()


def test_the_number_does_not_depend_on_where_one_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    judge("case_02/iterations/iter_0001")
    for place in ("case_02", "iterations"):
        monkeypatch.chdir(place)
        assert {2: "case_02"} == numbers()


def test_iterations_with_fewer_zeros() -> None:
    for name in ("iter_1", "iter_002", "iter_0010"):
        judge(f"case_01/{name}")
    assert [1, 2, 10] == [iteration.number for iteration in read()[0].iterations]


def test_what_lies_below_best_or_is_being_made_is_no_iteration() -> None:
    for name in ("iterations/iter_0001", "best/iter_0002", "pending/iter_0003"):
        judge(f"case_01/{name}")
    judge("scratch/case_02/iter_0001")
    assert {1: [1], 2: [1]} == {case.number: [one.number for one in case.iterations] for case in read()}


def test_two_cases_with_one_number() -> None:
    for name in ("a/case_01", "b/case_01"):
        judge(f"{name}/iter_0001")
    with pytest.raises(ConfigError, match="case 1 is there twice"):
        read()


def test_nothing_there() -> None:
    Path("empty").mkdir()
    Path("file").touch()
    for name, problem in (("empty", "holds no recorded case"), ("file", "is a file"), ("nowhere", "does not exist")):
        with pytest.raises(NotFoundError, match=problem):
            read(name)
