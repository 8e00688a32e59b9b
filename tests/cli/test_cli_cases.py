"""`jumar cases`: the group itself, and the commands that read runs and recordings."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cases_kit import POISONED, make_recording, make_run
from commands import CONTROL, call, call_json

from jumar.cases.records import CaseNotice, tell
from jumar.cli import application as module
from jumar.cli.application import application
from jumar.cli.cases.run import CaseProgress
from jumar.cli.table import GROUPS, every_command, render_help

CHAIN: dict[int, list[Any]] = {
    1: [(9, 8.75, 8), (9, 8.75, 8), (3, 3.75, 2)],
    2: [(3, 3.45, 2), (4, 4.25, 3), (4, 4.2, 3)],
    3: [(7, 7.25, 6), (7, 7, 6)],
}
SEED = {"accuracy", "overall", "causal_chain_completeness"}


def ask(*arguments: object, check: int = 0) -> Any:
    """A command of the group, with ``--json``."""
    return call("cases", *arguments, "--json", check=check).document


def recording(rows: dict[int, list[Any]] = CHAIN) -> Path:
    return make_recording(Path("recorded"), rows, carried={2: (1, 3), 3: (2, 3)})


# ----------------------------------------------------------------------------------------------------------- the group


def test_the_group_is_in_the_help_and_has_its_own():
    assert "\n  cases " in call("--help", check=0).out
    assert render_help("cases") == call("cases", "--help", check=0).out == call("cases", check=0).out == call("cases", "-h").out
    assert [] == [line for line in render_help("cases").splitlines() if len(line) > 100]
    assert {"cases replay", "cases report", "cases run", "cases show", "cases verify", "run", "show"} < set(every_command())


@pytest.mark.parametrize("arguments", [["cases"], ["cases", "--help"], ["cases", "-h"]])
def test_the_groups_help_needs_no_library(arguments: list[str]):
    code = (
        f"import sys\nsys.argv[1:] = {arguments}\nfrom jumar.cli.entry import main\n"
        "try: main()\nfinally: print(sorted({'click', 'jinja2', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"{render_help('cases')}[]\n" == done.stdout


@pytest.mark.parametrize("name", GROUPS["cases"].commands)
def test_a_summary_line_says_what_the_command_says(name: str):
    shown = call("cases", name, "--help", check=0).out
    assert shown.startswith(f"Usage: jumar cases {name} ")
    assert f"jumar cases {name}" in shown.partition("Examples:")[2]


@pytest.mark.parametrize(
    ("arguments", "code", "kind", "message"),
    [
        (
            ("cases", "shwo", "r"),
            2,
            "UsageError",
            "no such command 'cases shwo' (did you mean 'show'?)\nTry 'jumar cases --help'.",
        ),
        (("casse", "show"), 2, "UsageError", "no such command 'casse' (did you mean 'cases'?)"),
        (("cases", "show"), 2, "UsageError", "RUN"),
        (("cases", "show", "--frobnicate"), 2, "UsageError", "Try 'jumar cases show --help'."),
        (("cases", "show", "rr"), 2, "NotFoundError", "no run called 'rr' in .jumar/runs (did you mean 'r'?); there are: r"),
        (("cases", "show", "nowhere/run_r"), 2, "NotFoundError", "there is no directory nowhere/run_r"),
        (("cases", "verify", "x"), 2, "NotFoundError", "no run called 'x'"),
        (("cases", "replay", "nothing"), 2, "NotFoundError", "no run called 'nothing' in .jumar/runs; there are: r"),
        (("cases", "replay", "./nothing"), 2, "NotFoundError", "there is no directory ./nothing"),
        (("cases", "report", "r", "--format", "pdf"), 2, "UsageError", "pdf"),
        (("cases", "report", "r", "-o", "x.pdf"), 2, "UsageError", "its format cannot be told from the name"),
        (("cases", "report", "r", "-o", "no/x.md"), 2, "UsageError", "the folder no does not exist"),
        (("cases", "report", "r", "--best-order", "chain"), 2, "UsageError", "--best-order: a run is reported by the order that"),
        (
            ("cases", "report", "r", "--key", "a=b", "--best-tiebreak", "earlier_iter"),
            2,
            "UsageError",
            "--best-tiebreak and --key",
        ),
    ],
)
def test_mistakes_are_one_message_and_one_document(arguments: tuple[str, ...], code: int, kind: str, message: str):
    make_run({1: [(1, 1, 1)]})
    plain = call(*arguments, check=code)
    assert plain.out == ""
    assert message in plain.err
    assert "Traceback" not in plain.err
    found = call(*arguments, "--json", check=code).document["error"]
    assert (kind, code) == (found["kind"], found["exit_code"])
    assert message in found["message"]


def test_variables_of_the_group_have_its_name(monkeypatch: pytest.MonkeyPatch):
    recording()
    monkeypatch.setenv("JUMAR_CASES_REPLAY_JSON", "1")
    monkeypatch.setenv("JUMAR_CASES_REPLAY_BEST_ORDER", "-overall")
    monkeypatch.setenv("JUMAR_CASES_REPLAY_KEY", "one=composite_score\n\ntwo=dimensions[0].score")
    assert module._wants_json(["cases", "replay", "x"])
    assert not module._wants_json(["cases", "show", "x"])
    first = call("cases", "replay", "recorded", check=0).document["cases"][0]
    assert (["-overall"], 3, {"one", "two"} | SEED) == (first["order"], first["best_iter"], set(first["ranking"]))
    error = call("cases", "replay", "recorded", "--best-order", "x", check=2).document["error"]
    assert "ConfigError" == error["kind"]


def test_a_shell_completes_the_group_its_commands_and_runs():
    from click.shell_completion import BashComplete

    make_run({1: [(1, 1, 1)]}, run_id="nightly")
    make_run({1: [(1, 1, 1)]}, run_id="other")

    def complete(*words: str) -> list[str]:
        *before, last = words
        return [found.value for found in BashComplete(application, {}, "jumar", "_X").get_completions(before, last)]

    assert ["cases"] == complete("ca")
    assert ["list", "replay", "report", "run", "show", "verify"] == complete("cases", "")
    assert ["nightly"] == complete("cases", "show", "n")
    assert ["nightly", "other"] == complete("cases", "verify", "")
    assert "--best-order" in complete("cases", "replay", "--best")
    assert ["nightly", "n"] == complete("cases", "replay", "n")


# -------------------------------------------------------------------------------------------------------------- replay


def test_replay_says_what_would_have_been_chosen():
    recording()
    document = ask("replay", "recorded")
    assert ["cases"] == list(document)
    first, second, third = document["cases"]
    assert [(1, 1, 3), (2, 2, 3), (3, 1, 2)] == [(one["case"], one["best_iter"], one["last_iter"]) for one in document["cases"]]
    assert {"accuracy": 9, "overall": 8.75, "causal_chain_completeness": 8} == first["ranking"]
    assert {"accuracy": 3, "overall": 3.75, "causal_chain_completeness": 2} == first["last_ranking"]
    assert ["accuracy", "overall", "chain"] == first["order"]
    assert (2, 0, "earlier_iter") == (first["runner_up"], first["margin"], first["decided_by"])
    assert (3, 0.05, "overall") == (second["runner_up"], second["margin"], second["decided_by"])
    assert {"case": 1, "iter": 3, "selected_by": "last", "roles": ["ckg"], "by_hash": True} == second["carried_from"]
    assert {"case": 2, "iter": 3, "selected_by": "last", "roles": ["ckg"], "by_hash": True} == third["carried_from"]
    assert [1, 2, 3] == [one["iteration"] for one in first["iterations"]]
    assert [1, 2, 3] == [one["diff"] for one in first["iterations"]]


def test_replay_writes_nothing():
    recording()
    before = {path: os.stat(path).st_mtime_ns for path in Path().rglob("*")}
    ask("replay", "recorded")
    call("cases", "replay", "recorded", check=0)
    assert before == {path: os.stat(path).st_mtime_ns for path in Path().rglob("*")}


def test_replay_in_words():
    recording()
    shown = call("cases", "replay", "recorded", check=0)
    best = "case 1 Iteration 1 is best: accuracy 9, overall 8.75, chain 8. The last, iteration 3, is worse: accuracy 3"
    assert best in shown.words
    assert "carried Case 2 started from iteration 3 of case 1, not from its best, iteration 1:" in shown.words
    assert "" == shown.err
    quiet = call("cases", "replay", "recorded", "-q", check=0).out
    assert 4 == len(quiet.splitlines())
    assert ["1", "1", "3", "9", "8.75", "8", "a", "base"] == quiet.splitlines()[1].split()[:8]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), [1, 2, 1]),
        (("--best-order", "overall,accuracy,chain"), [1, 2, 1]),
        (("--best-order", "-overall"), [3, 1, 2]),
        (("--best-order", "chain:min"), [3, 1, 1]),
        (("--best-order", "chain", "--best-tiebreak", "smaller_diff"), [1, 2, 1]),
        (("--key", "overall=to_number('1')", "--best-order", "overall"), [1, 1, 1]),
    ],
)
def test_other_orders_choose_others(options: tuple[str, ...], expected: list[int]):
    recording()
    assert expected == [one["best_iter"] for one in ask("replay", "recorded", *options)["cases"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--best-order", "acuracy"),
            "unknown key 'acuracy' in the order (did you mean 'accuracy'?); known are: accuracy, chain, overall",
        ),
        (("--best-order", ""), "the order has no keys"),
        (("--best-tiebreak", "later"), "unknown tie-break 'later'"),
        (("--key", "cost"), "--key cost: write NAME=JMESPATH"),
        (("--key", "=x"), "--key =x: write NAME=JMESPATH"),
        (("--key", "cost=]"), "--key cost: ']' is no JMESPath expression"),
        (("--key", "cost=usage", "--best-order", "cots"), "(did you mean 'cost'?); known are: accuracy, chain, cost, overall"),
    ],
)
def test_orders_that_cannot_be(options: tuple[str, ...], message: str):
    recording()
    error = ask("replay", "recorded", *options, check=2)["error"]
    assert ("ConfigError", True) == (error["kind"], message in error["message"]), error


def test_a_tie_break_that_can_never_decide_is_warned_of():
    recording()
    called = call("cases", "replay", "recorded", "--best-tiebreak", "earlier_iter,smaller_diff", "--json", check=0)
    assert "jumar: warning: the tie-break smaller_diff can never decide: earlier_iter stands before it" in called.err
    assert [1, 2, 1] == [one["best_iter"] for one in called.document["cases"]]
    assert "" == call("cases", "replay", "recorded", "--best-tiebreak", "smaller_diff,earlier_iter", "--json", check=0).err


def test_iterations_with_unusable_scores_are_not_ranked():
    bad = [b"no json", b"{}", b'{"composite_score": NaN, "dimensions": []}', b"\xff", b"", None, (1, 1, 1), (True, 2, 2)]
    recording({1: bad, 2: [b"{}"]})
    first, second = ask("replay", "recorded")["cases"]
    assert (7, 8) == (first["best_iter"], first["last_iter"])
    assert {"accuracy": None, "overall": 2, "causal_chain_completeness": 2} == first["last_ranking"]
    assert [1, 2, 3, 4, 5, 6, 8] == [one["iteration"] for one in first["invalid"]]
    assert all(one["reason"] for one in first["invalid"])
    assert (None, None, 1) == (second["best_iter"], second["ranking"], second["last_iter"])


def test_no_case_with_a_usable_score_is_12():
    recording({1: [b"{}"], 2: [None]})
    called = call("cases", "replay", "recorded", "--json", check=12)
    assert [None, None] == [one["best_iter"] for one in called.document["cases"]]
    assert [1, None] == [one["last_iter"] for one in called.document["cases"]]
    assert "jumar: no case has an iteration with a usable score\n" == called.err
    assert "No iteration is valid" in call("cases", "replay", "recorded", check=12).out


def test_two_directories_of_one_case_are_refused():
    make_recording(Path("recorded/a"), {1: [(1, 1, 1)]})
    make_recording(Path("recorded/b"), {1: [(1, 1, 1)]})
    assert "case 1 is there twice" in ask("replay", "recorded", check=2)["error"]["message"]


def test_files_below_best_are_no_iterations_and_a_run_of_ours_can_be_replayed():
    make_run(POISONED)
    assert [(1, 3), (2, 3)] == [(one["best_iter"], one["last_iter"]) for one in ask("replay", ".jumar/runs/run_r")["cases"]]
    assert {"case": 1, "iter": 1, "selected_by": "best", "roles": ["ckg"], "by_hash": True} == (
        ask("replay", ".jumar/runs/run_r")["cases"][1]["carried_from"] | {"roles": ["ckg"]}
    )


def test_a_run_is_replayed_by_its_own_order_and_keys_unless_told_otherwise():
    run = make_run(POISONED)
    document = json.loads(run.paths.run_json.read_bytes())
    document["plan"] |= {"order": ["-total"], "keys": {**document["plan"]["keys"], "total": "composite_score"}}
    del document["mark"]
    run.paths.run_json.write_text(json.dumps(document))
    Path("r").mkdir()
    assert [(["-total"], 3), (["-total"], 1)] == [(one["order"], one["best_iter"]) for one in ask("replay", "run_r")["cases"]]
    assert [1, 2] == [one["best_iter"] for one in ask("replay", "run_r", "--best-order", "accuracy,total")["cases"]]
    ties = ask("replay", "run_r", "--best-tiebreak", "smaller_diff")
    assert [["-total"], ["-total"]] == [one["order"] for one in ties["cases"]]
    assert "holds no recorded case" in ask("replay", "r", check=2)["error"]["message"], "a directory comes first here"


def test_the_recording_that_this_was_built_from(recorded_data: Path):
    cases = ask("replay", recorded_data / "closed_loop" / "recorded_chain")["cases"]
    assert [(1, 1, 5), (2, 2, 5), (3, 1, 5)] == [(one["case"], one["best_iter"], one["last_iter"]) for one in cases]
    assert [None, (1, 5), (2, 5)] == [
        None if one["carried_from"] is None else (one["carried_from"]["case"], one["carried_from"]["iter"]) for one in cases
    ]


# ---------------------------------------------------------------------------------------------------------------- show


def test_show_lists_cases_with_all_their_iterations():
    make_run({**POISONED, 3: ["exit 1", None, (5, 5, 5)]})
    document = ask("show", "r")
    assert ("r", str(Path(".jumar/runs/run_r").absolute())) == (document["run_id"], document["run_dir"])
    first, _, third = document["cases"]
    assert [1, 2, 3] == [one["iteration"] for one in first["iterations"]]
    assert ["step_failed", "invalid_score", "ok"] == [one["status"] for one in third["iterations"]]
    assert {"accuracy": 9, "overall": 8.75, "causal_chain_completeness": 8} == first["ranking"] == first["best"]["ranking"]
    assert ("max_iters", "max_iters", 1) == (first["stopped_by"], first["end"]["stopped_by"], first["end"]["best_iter"])
    assert (None, {"case": 1, "iter": 1}) == (
        first["carried_from"],
        {name: document["cases"][1]["carried_from"][name] for name in ("case", "iter")},
    )


def test_show_in_words():
    make_run({**POISONED, 3: ["exit 1", None]}, begun=3)
    shown = call("cases", "show", "r", check=0).out
    lines = shown.splitlines()
    assert lines[0].startswith("jumar cases show · r   3 cases · 8 iterations · 12s · $0.0800")
    assert ["case", "it", "1", "it", "2", "it", "3", "best", "last"] == lines[1].split()[:9]
    assert ["1", "★→9", "9", "3", "1", "3", "max", "iters", "the", "run's", "start"] == lines[2].split()
    assert "          iteration 1: step failed: step all: exit 1" in lines
    assert "Case 2 started from iteration 1 of case 1, its best" in shown
    assert 4 == len(call("cases", "show", "r", "-q", check=0).out.splitlines())


def test_the_runs_are_listed():
    assert "no runs of cases" in call("cases", "list", check=0).out
    make_run({1: [(1, 1, 1)], 2: []}, run_id="one", begun=1)
    make_run({1: [(1, 1, 1)]}, run_id="two")
    found = ask("list")["runs"]
    assert {("one", 1, 2), ("two", 1, 1)} == {(run["run_id"], run["ended"], run["cases"]) for run in found}
    shown = call("cases", "list", check=0).out
    assert "unfinished" in shown
    Path(".jumar/runs/run_one/run.json").write_text("{")
    assert "damaged: jumar cases verify" in call("cases", "list", check=0).out
    assert "run.json" in next(run for run in ask("list")["runs"] if run["run_id"] == "one")["damaged"]


def test_a_wide_case_has_no_column_an_iteration():
    make_run({1: [(1, 1, 1)] * 22})
    assert "it 1" not in call("cases", "show", "r", check=0).out


def test_unfinished_and_unknown_in_words():
    make_run({1: [(1, 1, 1)], 2: []}, begun=1, cost=None)
    shown = call("cases", "show", "r", check=0).out
    assert "not begun" in shown
    assert "$" not in shown


@pytest.mark.parametrize("name", ["nightly-1", "run_nightly-1", "night", ".jumar/runs/run_nightly-1", "./here"])
def test_a_run_is_named_by_id_beginning_or_directory(name: str):
    make_run({1: [(1, 1, 1)]}, run_id="nightly-1")
    Path("here").symlink_to(".jumar/runs/run_nightly-1")
    assert "nightly-1" == ask("show", name)["run_id"]


def test_a_beginning_of_several_names_them():
    for run_id in ("night-1", "night-2", "day"):
        make_run({1: [(1, 1, 1)]}, run_id=run_id)
    assert "2 begin like that: night-1, night-2" in ask("show", "night", check=2)["error"]["message"]
    assert "night-2" == ask("show", "night-2")["run_id"]


def test_an_id_comes_before_a_directory_of_that_name():
    make_run({1: [(1, 1, 1)]}, run_id="r")
    make_run({1: [(1, 1, 1)]}, run_id="inside", root=Path("x"))
    Path("x/run_inside").rename("r")
    assert ["r", "inside"] == [ask("show", name)["run_id"] for name in ("r", "./r")]


def test_no_runs_at_all_says_how_to_make_one():
    assert "it holds no runs; `jumar cases run` makes one" in ask("show", "r", check=2)["error"]["message"]
    assert "is no run of cases: it has no run.json" in ask("show", ".", check=2)["error"]["message"]


def test_the_root_is_an_option_and_a_variable(monkeypatch: pytest.MonkeyPatch):
    make_run({1: [(1, 1, 1)]}, root=Path("other/runs"))
    assert "r" == ask("show", "r", "--root", "other")["run_id"]
    monkeypatch.setenv("JUMAR_ROOT", "other")
    assert "r" == ask("show", "r")["run_id"]


def test_damage_is_14():
    make_run({1: [(1, 1, 1)]})
    Path(".jumar/runs/run_r/case_01/case.json").write_text("{")
    assert "ForgedError" == ask("show", "r", check=14)["error"]["kind"]


def test_control_characters_are_shown():
    make_run({1: ["\x1b[31mred\x9b\r", (1, 1, 1)]})
    for command in ("show", "report"):
        shown = call("cases", command, "r", check=0).out
        assert "\\x1b[31mred\\x9b\\r" in shown
        assert set() == CONTROL & set(shown)


# -------------------------------------------------------------------------------------------------------------- report


def test_report_in_three_formats():
    make_run(POISONED)
    markdown = call("cases", "report", "r", check=0).out
    assert markdown.startswith("# Case report: run r\n")
    assert markdown == call("cases", "report", "r", "--format", "markdown", check=0).out
    assert call("cases", "report", "r", "--format", "html", check=0).out.startswith("<!doctype html>")
    document = ask("report", "r")
    assert document == json.loads(call("cases", "report", "r", "--format", "json", check=0).out)
    assert [1, 2] == [case["best_iter"] for case in document["cases"]]
    assert [False] == [handed["poisoned"] for handed in document["handovers"]]


@pytest.mark.parametrize(
    ("options", "form"),
    [
        (("-o", "x.html"), "html"),
        (("-o", "x.HTM"), "html"),
        (("-o", "x.md"), "markdown"),
        (("-o", "x.json"), "json"),
        (("-o", "x"), "markdown"),
        (("-o", "x.md", "--format", "html"), "html"),
    ],
)
def test_the_format_follows_the_name(options: tuple[str, ...], form: str):
    make_run(POISONED)
    said = ask("report", "r", *options)
    data = Path(options[1]).read_bytes()
    assert (form, str(Path(options[1]).absolute()), len(data)) == (said["format"], said["output"], said["bytes"])
    assert data.startswith({"html": b"<!doctype", "markdown": b"# Case report", "json": b"{"}[form])
    assert f"wrote {options[1]} ({form}, {len(data):,} bytes)\n" == call("cases", "report", "r", *options, check=0).out
    assert "" == call("cases", "report", "r", *options, "-q", check=0).out


def test_two_documents_for_one_stdout_are_refused():
    make_run(POISONED)
    assert "two documents for one stdout" in ask("report", "r", "--format", "html", check=2)["error"]["message"]


def test_a_recording_is_reported_with_the_options_of_replay():
    recording()
    assert "# Case report: recording recorded\n" == call("cases", "report", "recorded", check=0).out.splitlines(keepends=True)[0]
    document = ask("report", "./recorded", "--best-order", "-overall")
    assert ([3, 1, 2], ["-overall"], None) == (
        [one["best_iter"] for one in document["cases"]],
        document["order"],
        document["run_id"],
    )
    assert "| Order | \\-overall; between equals" in call("cases", "report", "recorded", "--best-order", "-overall", check=0).out


# -------------------------------------------------------------------------------------------------------------- verify


def test_verify_one_run_or_all():
    make_run(POISONED, run_id="a")
    make_run(POISONED, run_id="b")
    document = ask("verify")
    assert (True, ["a", "b"], [6, 6]) == (
        document["ok"],
        [one["run_id"] for one in document["runs"]],
        [one["iterations"] for one in document["runs"]],
    )
    assert ["a"] == [one["run_id"] for one in ask("verify", "a")["runs"]]
    assert call("cases", "verify", "a", check=0).out.startswith("a: ok (6 iterations, 57 files, ")
    assert "" == call("cases", "verify", "-q", check=0).out


def test_damage_is_listed_with_what_to_do():
    make_run(POISONED)
    Path(".jumar/runs/run_r/case_01/best/iter_0001/ckg/best_ckg.json").write_text("{}")
    Path(".jumar/runs/run_r/report.html").write_text("mine")
    document = ask("verify", "r", check=14)
    assert (False, False) == (document["ok"], document["runs"][0]["ok"])
    (problem,) = document["runs"][0]["problems"]
    assert "case_01/best/iter_0001/ckg/best_ckg.json" == problem["path"]
    assert {"path", "what", "fix"} == set(problem)
    shown = call("cases", "verify", check=14).out
    assert f"r: {problem['path']}: {problem['what']}\n    {problem['fix']}\n" in shown
    assert "r: note: report.html: nothing that jumar wrote; it is left alone\n" in shown
    assert "r: 1 problem (6 iterations" in shown


def test_nothing_to_verify():
    assert "nothing to verify" in call("cases", "verify", check=2).err


def test_the_loops_commands_are_still_there():
    assert "loops" in call_json("list")


def test_the_list_of_loops_points_to_runs_of_cases():
    make_run({1: [(1, 1, 1)]})
    shown = call("list", check=0).out
    assert "there are runs of cases here: jumar cases list" in shown


class Gone(io.StringIO):
    """A terminal that went away."""

    def write(self, s: str, /) -> int:
        raise OSError(errno.EIO, "Input/output error", s)


def test_a_line_of_progress_that_cannot_be_written_is_no_error_of_the_run(caplog: pytest.LogCaptureFixture):
    tell(CaseNotice(message="something"), CaseProgress(Gone(), heading="jumar").hear)
    assert "listener_failed" not in caplog.text
