"""What a judge may have written: scores by JMESPath, and what becomes of everything that is none."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from jumar.cases.judgement import check_expression, diff_size, read_judgement, write_feedback
from jumar.cases.records import CaseLimits
from jumar.core.codec import Fields
from jumar.errors import ConfigError, StoreDamagedError
from jumar.model.pipeline import DEFAULT_KEYS, CaseStepContext

JUDGED = """{"composite_score": 8.75, "dimensions": [
  {"name": "Root Cause Accuracy", "score": 9}, {"name": "Causal Chain Completeness", "score": 8},
  {"name": "Root Cause Accuracy", "score": 1}]}"""


def judged(text: str | bytes) -> Path:
    path = Path("judge.json")
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_seed_s_three_scores() -> None:
    found = read_judgement(judged(JUDGED), DEFAULT_KEYS)

    assert {"accuracy": 9, "overall": 8.75, "chain": 8} == dict(found.values)
    assert {} == dict(found.problems)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "judge.json is empty"),
        ("{", "judge.json is not JSON: .* in line 1"),
        (b"\xff{}", "judge.json is not (UTF-8|JSON)"),
        ("[" * 100_000, "judge.json is (nested too deeply|not JSON)"),
        ('{"composite_score": ' + "9" * 5_000 + "}", "a number of thousands of digits"),
        ('{"composite_score": ' + "9" * 400 + "}", "is 9+, not a finite number"),
        ('{"composite_score": NaN}', "is nan, not a finite number"),
        ('{"composite_score": -Infinity}', "is -inf, not a finite number"),
        ('{"composite_score": true}', "is True, not a number"),
        ('{"composite_score": "9"}', "is '9', not a number"),
        ('{"composite_score": null}', "there is no composite_score in judge.json"),
        ("{}", "there is no composite_score"),
        ("[1]", "there is no composite_score"),
    ],
)
def test_what_is_no_score(text: str | bytes, problem: str) -> None:
    found = read_judgement(judged(text), {"overall": "composite_score"})

    assert None is found.values["overall"]
    assert re.search(problem, found.problems["overall"]), found.problems


def test_the_names_that_the_judge_uses_are_said() -> None:
    found = read_judgement(judged('{"dimensions": [{"name": "accuracy", "score": 9}, 7, {"name": "chain"}]}'), DEFAULT_KEYS)

    assert found.problems["accuracy"].endswith("in judge.json (its dimensions are called accuracy, chain)")


def test_a_file_that_cannot_be_read() -> None:
    assert "cannot be read" in read_judgement(Path("nothing.json"), {"overall": "x"}).problems["overall"]
    assert "cannot be evaluated" in read_judgement(judged("{}"), {"overall": "length(composite_score)"}).problems["overall"]


def refuse(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def read(path: Path, **_: object) -> bytes:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("jumar.cases.judgement.read_bytes", read)


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE])
def test_what_the_machine_refuses_to_read_says_nothing_about_the_judge(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    path = judged(JUDGED)
    refuse(monkeypatch, number)
    for read in (lambda: read_judgement(path, DEFAULT_KEYS), lambda: diff_size(path)):
        with pytest.raises(OSError, match=re.escape(os.strerror(number))):
            read()


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT, errno.EISDIR, errno.ELOOP, errno.ENXIO])
def test_a_file_that_the_judge_closed_or_did_not_write_is_its_problem(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    path = judged(JUDGED)
    refuse(monkeypatch, number)
    assert f"judge.json cannot be read: {os.strerror(number)}" == read_judgement(path, {"overall": "x"}).problems["overall"]
    assert None is diff_size(path)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_link_to_a_file_that_refuses_every_reader_is_the_judges_problem() -> None:
    Path("judge.json").symlink_to("/proc/self/mem")
    assert {"overall": "judge.json cannot be read: Input/output error"} == read_judgement(
        Path("judge.json"), {"overall": "x"}
    ).problems


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ('{"added_entities": ["a", "b"], "added_relations": [{}]}', 3),
        ('{"added_entities": [], "added_relations": []}', 0),
        ('{"added_entities": ["a"]}', None),
        ("no json", None),
    ],
)
def test_the_size_of_a_diff(text: str, size: float | None) -> None:
    assert size == diff_size(judged(text))


def test_without_a_diff_its_size_is_unknown() -> None:
    assert None is diff_size(None)


def test_what_is_no_expression() -> None:
    assert "a.b" == check_expression("a.b", where="key x")
    with pytest.raises(ConfigError, match=r"key x: 'a\.\[' is no JMESPath expression"):
        check_expression("a.[", where="key x")


def test_a_huge_integer_in_a_record_is_damage_and_no_traceback() -> None:
    with pytest.raises(StoreDamagedError, match="should be a finite number"):
        Fields({"diff": 10**400}, "iteration.json").number("diff")


def feedback(judge: str, **limits: Any) -> dict[str, Any]:
    path, target = judged(judge), Path("feedback.json")
    context = CaseStepContext(
        run_id="r",
        case_id="c",
        case_num=1,
        iteration=2,
        workdir=Path(),
        inputs={"judge": path},
        outputs={"feedback": target},
        usage_file=Path("usage.json"),
        log=Path("log"),
    )
    write_feedback(context, CaseLimits(thresholds=limits))
    found: dict[str, Any] = json.loads(target.read_bytes(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    return found


def test_the_feedback_has_what_the_judge_missed() -> None:
    found = feedback(JUDGED, accuracy=9.0)

    assert (True, 8.75, 9) == (found["stop_reached"], found["average_score"], found["accuracy_score"])
    assert ["Root Cause Accuracy", "Causal Chain Completeness"] == [d["name"] for d in found["per_case"]["c"]["dimensions"][:2]]
    assert {"min_accuracy": 9.0} == found["stop"]


@pytest.mark.parametrize(
    "judge",
    [
        "no json",
        "[]",
        '{"composite_score": 1e999}',
        '{"composite_score": NaN}',
        '{"summary": "\\ud800", "composite_score": 1}',
        "7",
    ],
)
def test_the_feedback_is_json_whatever_the_judge_wrote(judge: str) -> None:
    assert feedback(judge, overall=9.0)["stop_reached"] is False
