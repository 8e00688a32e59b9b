"""What a chain may be made of: every mistake is refused before anything is made, with where it is and the way out."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from jumar.cases.config import CaseLoopConfig, chain_settings
from jumar.cases.records import CaseLimits
from jumar.cases.run_store import CaseSource
from jumar.cases.settings import ChainSettings, DryRun, check_chain, read_case_file
from jumar.cases.steps import DRY_STEPS, dry_scores, fill_words, parse_scores
from jumar.errors import ConfigError
from jumar.model.ordering import parse_order
from jumar.model.pipeline import DEFAULT_ROLES, CaseStepContext, Role, Step

CASE = CaseSource(number=1, case_id="case1", report="r", prompt="p", source="case1.txt")
JUDGE = Step(name="judge", command=("true",), inputs=("report",), outputs=("judge",))


def settings(**changes: Any) -> ChainSettings:
    given: dict[str, Any] = {
        "run_id": "t",
        "output_root": Path("out"),
        "cases": (CASE,),
        "steps": (JUDGE,),
        "order": parse_order("accuracy"),
        "limits": CaseLimits(thresholds=MappingProxyType(dict[str, float]())),
        "from_scratch": True,
    }
    return ChainSettings(**{**given, **changes})


def steps(*given: Step) -> dict[str, Any]:
    return {"steps": (*given, JUDGE)}


def role(**changes: Any) -> dict[str, Any]:
    made = Role(name="rules", folder="rules", file="rules_{iter}.txt", best="best_rules.txt", carry=True, snapshot="rules.txt")
    return {"roles": {**DEFAULT_ROLES, "rules": replace(made, **changes)}}


def test_the_seed_s_pipeline_and_a_role_of_one_s_own_are_fine() -> None:
    check_chain(settings())
    check_chain(settings(steps=DRY_STEPS, dry_run=DryRun()))
    check_chain(settings(**role(), **steps(Step(name="a", command="x", inputs=("rules?",), outputs=("rules",)))))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cases": ()}, "no cases"),
        ({"cases": (CASE, CASE)}, "two cases have the number 1: case1.txt and case1.txt"),
        ({"cases": (replace(CASE, number=0),)}, "start at 1"),
        ({"base": {"ckg": Path("b")}}, "exclude each other"),
        ({"from_scratch": False}, "nothing to start from"),
        ({"from_scratch": False, "base": {"ckg": Path("nowhere")}}, "nowhere, is no file"),
        ({"from_scratch": False, "base": {"judge": Path("x")}}, "base: unknown name 'judge'"),
        ({"steps": ()}, "no steps"),
        ({"steps": (Step(name="a", command="x", outputs=("ckg",)),)}, "no step writes the role 'judge'"),
        (steps(JUDGE), "the name is there twice"),
        (steps(Step(name="A b", command="x")), "the name should be"),
        (steps(Step(name="a")), "give one of command, python or builtin"),
        (steps(Step(name="a", command="x", python="m:f")), "not command and python"),
        (steps(Step(name="a", command=" ")), "the command is empty"),
        (steps(Step(name="a", command=())), "the command is empty"),
        (steps(Step(name="a", python="nothing")), "module:function"),
        (steps(Step(name="a", builtin="feedbak")), "did you mean 'feedback'"),
        (steps(Step(name="a", builtin="feedback", outputs=("feedback",))), r'the builtin feedback needs inputs = \["judge"\]'),
        (steps(Step(name="a", builtin="feedback", inputs=("judge",), outputs=("judge",))), r'and outputs = \["feedback"\]'),
        (steps(Step(name="a", command="x", timeout=0)), "timeout"),
        (steps(Step(name="a", command="x", inputs=("ckk",))), "step a: input: unknown name 'ckk'.*did you mean 'ckg'"),
        (steps(Step(name="a", command="x", outputs=("ckk",))), "step a: output: unknown name 'ckk'"),
        (steps(Step(name="a", command="x", inputs=("agent_report",))), "never there: no step writes it"),
        (steps(Step(name="a", command="x", inputs=("judge",))), r"write 'judge\?'"),
        (steps(Step(name="a", command="x", outputs=("judge",))), "written by step a already"),
        (
            steps(Step(name="a", command=("x", "{in.repport}"), inputs=("report",))),
            "step a: {in.repport} is not among its inputs.*did you mean",
        ),
        (steps(Step(name="a", command=("x", ("-o", "{out.ckg}")))), "step a: {out.ckg} is not among its outputs; they are: none"),
        (role(name="Rules"), "a role's name is"),
        (role(name="prompt"), "not report or prompt"),
        (role(folder="a/b"), "folder = 'a/b' should be one name"),
        (role(folder="steps"), "jumar's own"),
        (role(snapshot=""), "snapshot = ''"),
        (role(folder="ckg", file="candidate_ckg_{iter}_{case}.json"), "roles ckg and rules have the same file"),
        (role(folder="ckg", best="best_ckg.json"), "roles ckg and rules have the same best"),
        (role(snapshot="base_ckg_snapshot.json"), "roles ckg and rules have the same snapshot"),
        (role(folder="iteration.json"), "jumar's own"),
        ({"keys": {"diff": "a", "accuracy": "b"}}, "key diff: this name means something else"),
        ({"keys": {"causal_chain_completeness": "a"}}, "how the key chain is called"),
        ({"keys": {"accuracy": "a.["}}, "key accuracy: .* no JMESPath"),
        ({"diff": ("length(",)}, "diff: .* no JMESPath"),
        ({"limits": CaseLimits(thresholds={"acuracy": 9})}, "stop threshold: unknown name 'acuracy'.*did you mean 'accuracy'"),
        ({"limits": CaseLimits(thresholds={"accuracy": float("nan")})}, "finite"),
        ({"limits": CaseLimits(thresholds={}, max_iters=0)}, "max_iters"),
        ({"environment": ("A B",)}, "no pattern"),
    ],
)
def test_what_cannot_work_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_chain(settings(**changes))


def test_settings_travel_to_other_processes() -> None:
    sent = settings(**role(), limits=CaseLimits(thresholds=MappingProxyType({"accuracy": 9.0})))

    assert sent == pickle.loads(pickle.dumps(sent))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("report only\n", r"c\.txt: no line with the marker 'E2E Test Query' in 1 line"),
        ("", "in 0 lines"),
        ("\n \n---\nE2E Test Query:\nq\n", r"c\.txt:3: the expert's report is empty"),
        ("E2E Test Query:\nq\n", r"c\.txt:1: the expert's report is empty"),
        ("r\n---\nE2E Test Query: here is nothing\n \n", r"c\.txt:3: the query is empty"),
    ],
)
def test_a_case_file_that_cannot_be_used_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "c.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_case_file(path)


def test_a_case_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read_case_file(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="is a directory"):
        read_case_file(tmp_path)
    (tmp_path / "latin.txt").write_bytes(b"r\xe9\n---\nE2E Test Query\nq")
    with pytest.raises(ConfigError, match="not UTF-8 at byte 1"):
        read_case_file(tmp_path / "latin.txt")


def test_the_parts_of_a_case_file(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_bytes("\ufeffone\n---\ntwo\n --- \n\nE2E Test Query (x):\n\nq1\n---\nq2\n".encode())
    assert ("one\n---\ntwo", "q1\n---\nq2") == read_case_file(path)
    path.write_text("one\nASK\nq")
    assert ("one", "q") == read_case_file(path, marker="ASK")


def context(**inputs: Path) -> CaseStepContext:
    return CaseStepContext(
        run_id="r",
        case_id="c",
        case_num=3,
        iteration=4,
        workdir=Path("/w"),
        inputs=inputs,
        outputs={"judge": Path("/o/judge.json")},
        usage_file=Path("/s/usage.json"),
        log=Path("/l"),
    )


def test_words_are_filled_and_groups_left_out() -> None:
    words = ("p", "{in.ckg}", ("--feedback", "{in.feedback}"), "{out.judge}", "{case_num}-{iteration}-{run_id}", "{x} {}")

    assert ["p", "/k", "/o/judge.json", "3-4-r", "{x} {}"] == fill_words(words, context(ckg=Path("/k")))
    assert ["--feedback", "/f"] == fill_words(words, context(ckg=Path("/k"), feedback=Path("/f")))[2:4]


def test_rows_of_scores() -> None:
    assert {None: ({"accuracy": 1},)} == dict(parse_scores([{"accuracy": 1}], where="s"))
    assert {1: ({"a": 1},), 2: ({"a": 2},)} == dict(parse_scores({"1": [{"a": 1}], "case2": [{"a": 2}]}, where="s"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "there are no rows"),
        ({}, "give a list of rows"),
        (7, "give a list of rows"),
        ([1], "row 1 is 1"),
        ({"one": [{}]}, "'one' is no case"),
        ({"1": 5}, "case 1: there are no rows"),
        ([{"diff": -1}], "diff is -1"),
        ([{"diff": "x"}], "diff is 'x'"),
        ([{"diff": 10**9}], "up to 100,000"),
        ([{"accuracy": [1]}], "row 1 holds [1]"),
        ({"1": [{}], "case01": [{}]}, "case 1 is there twice"),
    ],
)
def test_rows_that_cannot_be_used(data: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        parse_scores(data, where="s")


def test_scores_by_case_and_iteration() -> None:
    dry = DryRun(scores=parse_scores({"1": [{"accuracy": 1}, {"accuracy": 2}]}, where="s"), stop_iter=2)
    found = [
        dry_scores(dry, settings(), case, iteration)["accuracy"] for case, iteration in ((1, 1), (1, 2), (1, 9), (2, 1), (2, 5))
    ]

    assert [1, 2, 2, 4.5, 9] == found


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("data_path", 1, "data_path is 1: it should be a path"),
        ("workdir", b"x", "workdir is b'x': it should be a path"),
        ("max_iters", True, "max_iters is True: it should be a whole number from 1 to 9,999"),
        ("case_num", 10_000, "case_num is 10000: it should be a whole number from 1 to 9,999"),
        ("resume", 1, "resume is 1: it should be True or False"),
        ("stop_overall", "8", "stop_overall is '8': it should be a number, or None"),
        ("case_id", "a\nb", r"case_id is 'a\nb': it should be a text of one line, or None"),
        ("continue_from", [], "continue_from is []: it should be 'previous' or 'best'"),
        ("env", "PATH", "env is 'PATH': it should be a list of texts"),
        ("best_order", [1], "best_order is [1]: it should be a list of keys, or one with commas"),
        ("best_order", [{"name": "x"}], "{'name': 'x'} in the order: write a key, or {key, min, max}"),
        ("steps", ["judge"], "steps is ['judge']: it should be a list of Step"),
        ("dry_run_judge_scores", [1], "dry_run_judge_scores is [1]: it should be a list of rows, or the path of a file"),
        ("roles", None, "roles is None: it should be a mapping of roles by name"),
        ("keys", "accuracy", "keys is 'accuracy': it should be a mapping of texts by name"),
        ("base_paths", ["ckg"], "base_paths is ['ckg']: it should be a mapping of paths by role"),
    ],
)
def test_an_option_of_another_type_is_refused_by_its_name(name: str, value: Any, message: str):
    options: dict[str, Any] = {"data_path": "case.txt", "output_root": "runs", name: value}
    with pytest.raises(ConfigError) as refused:
        chain_settings(CaseLoopConfig(**options))
    assert message == str(refused.value)


def test_a_base_that_is_named_twice_is_recorded_as_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "case.txt").write_text("report\n---\nE2E Test Query\nprompt\n")
    made = chain_settings(
        CaseLoopConfig(
            data_path=tmp_path / "case.txt",
            output_root=tmp_path,
            dry_run=True,
            base_ckg_path=tmp_path / "named.json",
            base_paths={"ckg": tmp_path / "other.json", "fix_db": tmp_path / "fix.db"},
        )
    )
    expected = {"ckg": str(tmp_path / "named.json"), "fix_db": str(tmp_path / "fix.db")}
    assert made.recorded["base"] == expected
    assert {role: str(path) for role, path in made.base.items()} == expected
