"""Seed 3's tests, each through the real command in a dry run: which iteration is best, and what is handed on."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chains import read_best, write_chain, write_scores
from loops import jumar

from jumar.cases import CaseLoopConfig, run_case_loop
from jumar.errors import ConfigError, ScoreError


def row(accuracy: float, overall: float, chain: float, **more: float) -> dict[str, float]:
    return {"accuracy": accuracy, "overall": overall, "chain": chain, **more}


def run_json(directory: Path, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(jumar(directory, "cases", "run", *arguments, "--json", check=0).stdout)
    return found


def dry_run(directory: Path, rows: Any, *options: str, cases: int = 1) -> dict[str, Any]:
    config = write_chain(directory, cases)
    most = str(max(len(each) for each in ([rows] if isinstance(rows, list) else rows.values())))
    scores = write_scores(directory, rows)
    return run_json(directory, str(config), "--dry-run", "--dry-run-scores", str(scores), "--max-iters", most, *options)


@pytest.mark.parametrize(
    ("rows", "options", "best", "decided_by"),
    [
        ([row(7, 9.5, 9.5), row(8, 5, 5)], (), 2, "accuracy"),
        ([row(8, 5, 5), row(7, 9.5, 9.5)], (), 1, "accuracy"),
        ([row(8, 7, 9), row(8, 7.5, 2)], (), 2, "overall"),
        ([row(8, 7, 6), row(8, 7, 7), row(8, 7, 5)], (), 2, "chain"),
        ([row(8, 7, 6), row(8, 7, 6), row(8, 7, 6)], (), 1, "earlier_iter"),
        ([row(8, 7, 6, diff=9), row(8, 7, 6, diff=2)], ("--best-tiebreak", "smaller_diff"), 2, "smaller_diff"),
        ([row(8, 7, 6, diff=9), row(8, 7, 6, diff=2)], ("--best-tiebreak", "earlier_iter,smaller_diff"), 1, "earlier_iter"),
        ([row(8, 7, 6, diff=2), row(8, 7, 6, diff=2)], ("--best-tiebreak", "smaller_diff"), 1, "earlier_iter"),
        ([row(7, 9, 9), row(8, 5, 5)], ("--best-order", "overall,accuracy"), 1, "overall"),
        ([row(7, 9, 9), row(8, 5, 5)], ("--best-order", "-accuracy"), 1, "accuracy"),
    ],
)
def test_which_iteration_is_best(
    tmp_path: Path, rows: list[dict[str, float]], options: tuple[str, ...], best: int, decided_by: str
) -> None:
    found = dry_run(tmp_path, rows, *options)
    pointer = read_best(Path(found["run_dir"]))

    assert best == found["cases"][0]["best_iter"] == pointer["best_iter"]
    assert decided_by == pointer["decided_by"]
    assert found["cases"][0]["ranking"] == pointer["ranking"]
    assert rows[best - 1]["chain"] == pointer["ranking"]["causal_chain_completeness"]
    assert {"accuracy", "overall", "causal_chain_completeness"} == set(pointer["ranking"])


def test_the_tie_breaks_that_are_listed_are_true_in_the_pointer(tmp_path: Path) -> None:
    found = dry_run(tmp_path, [row(8, 7, 6)], "--best-tiebreak", "smaller_diff")

    assert {"prefer_earlier_iter": False, "prefer_smaller_diff": True} == read_best(Path(found["run_dir"]))["tie_break"]


def test_a_tie_break_that_can_never_decide_is_warned_of(tmp_path: Path) -> None:
    config = write_chain(tmp_path)
    done = jumar(tmp_path, "cases", "run", str(config), "--dry-run", "--best-tiebreak", "earlier_iter,smaller_diff", check=0)

    assert "smaller_diff can never decide" in done.stdout


POISONED = {
    "1": [row(9, 8.75, 8), row(9, 8.75, 8), row(9, 8.75, 8), row(9, 8.75, 8), row(3, 3.75, 2)],
    "2": [row(3, 3.45, 2), row(4, 4.25, 3)],
}


def test_the_best_is_carried_byte_for_byte(tmp_path: Path) -> None:
    found = dry_run(tmp_path, POISONED, cases=2)
    run = Path(found["run_dir"])
    carried = json.loads((run / "inputs" / "inputs_case_02.json").read_bytes())

    assert {"case": 1, "iter": 1, "selected_by": "best"} == found["cases"][1]["carried_from"] == carried["carried_from"]
    for role, snapshot, bundle in (
        ("ckg", "base_ckg_snapshot_case_02.json", "ckg/best_ckg.json"),
        ("fix_db", "base_fix_db_snapshot_case_02.db", "fix/best_fixdb.db"),
    ):
        sent = (run / "case_01" / "best" / "iter_0001" / bundle).read_bytes()
        assert sent == (run / "inputs" / snapshot).read_bytes()
        assert hashlib.sha256(sent).hexdigest() == carried["files"][role]["sha256"]
    graph = json.loads((run / "case_02" / "best" / "iter_0002" / "ckg" / "best_ckg.json").read_bytes())
    assert ["dry_1_1_1", "dry_2_1_1", "dry_2_2_1"] == [entity["id"] for entity in graph["entities"]]


def test_the_last_is_carried_when_that_is_asked_for(tmp_path: Path) -> None:
    found = dry_run(tmp_path, POISONED, "--no-select-best", cases=2)

    assert {"case": 1, "iter": 5, "selected_by": "last"} == found["cases"][1]["carried_from"]
    pointer = read_best(Path(found["run_dir"]))
    assert ("last", 5) == (pointer["selected_by"], pointer["best_iter"])


def test_nothing_is_carried_when_each_case_starts_anew(tmp_path: Path) -> None:
    found = dry_run(tmp_path, POISONED, "--no-carry-forward", cases=2)

    assert [None, None] == [case["carried_from"] for case in found["cases"]]


def test_a_case_without_a_valid_iteration_hands_on_what_it_started_from(tmp_path: Path) -> None:
    rows = {"1": [row(5, 5, 5)], "2": [{"accuracy": None, "overall": 9, "chain": 9}], "3": [row(6, 6, 6)]}
    config = write_chain(tmp_path, 3)
    scores = write_scores(tmp_path, rows)
    done = jumar(
        tmp_path, "cases", "run", str(config), "--dry-run", "--dry-run-scores", str(scores), "--max-iters", "1", "--json", check=1
    )
    cases = json.loads(done.stdout)["cases"]

    assert [1, None, 1] == [case["best_iter"] for case in cases]
    assert [None, 1, 1] == [case["carried_from"] and case["carried_from"]["case"] for case in cases]


def test_scores_rise_to_the_thresholds(tmp_path: Path) -> None:
    config = write_chain(tmp_path)
    thresholds = ("--stop-accuracy", "9", "--stop-overall", "8", "--stop-chain", "8")
    found = run_json(tmp_path, str(config), "--dry-run", "--dry-run-stop-iter", "3", *thresholds, "--json")

    assert [(3, "thresholds", 3)] == [(c["iterations"], c["stopped_by"], c["best_iter"]) for c in found["cases"]]


def test_a_dry_run_is_the_same_every_time(tmp_path: Path) -> None:
    one, other = (Path(dry_run(tmp_path / name, POISONED, cases=2)["run_dir"]) for name in ("one", "other"))

    def bytes_of(run: Path) -> dict[str, bytes]:
        roles = ("ckg", "agent", "judge", "fix")
        return {
            path.relative_to(run).as_posix(): path.read_bytes()
            for path in sorted(run.rglob("*"))
            if path.is_file() and path.parent.name in roles
        }

    assert bytes_of(one)
    assert bytes_of(one) == bytes_of(other)


def test_one_case_alone(tmp_path: Path) -> None:
    config = write_chain(tmp_path, 3)
    found = run_json(tmp_path, str(config), "--case", "2", "--start-from-scratch", "--dry-run", "--run-id", "two")

    assert [2] == [case["case"] for case in found["cases"]]
    assert ["case_02"] == sorted(p.name for p in Path(found["run_dir"]).iterdir() if p.name.startswith("case_"))


def test_a_run_can_be_moved(tmp_path: Path) -> None:
    run = Path(dry_run(tmp_path, POISONED, cases=2)["run_dir"])
    moved = tmp_path / "elsewhere"
    run.rename(moved)
    pointer = read_best(moved)

    assert all((moved / path).is_file() for path in pointer["paths"].values())
    jumar(tmp_path, "cases", "verify", str(moved), check=0)


def from_python(tmp_path: Path, **options: Any) -> Path:
    data = tmp_path / "case2.txt"
    data.write_text("what the expert says\n---\nE2E Test Query (free of judgement):\nload is at 29 %\n")
    given: dict[str, Any] = {
        "run_id": "t",
        "case_id": "case2",
        "case_num": 2,
        "data_path": data,
        "output_root": tmp_path / "out",
        "stop_accuracy": 9.0,
        "stop_overall": 8.0,
        "dry_run": True,
        "start_from_scratch": True,
        "base_ckg_path": None,
        "base_fix_db_path": None,
    }
    return run_case_loop(CaseLoopConfig(**{**given, **options}))


def test_run_case_loop_stops_at_the_iteration_that_reaches_the_thresholds(tmp_path: Path) -> None:
    run = from_python(tmp_path, dry_run_stop_iter=3)
    iterations = sorted((run / "case_02" / "iterations").iterdir())

    assert tmp_path / "out" / "run_t" == run
    assert ["iter_0001", "iter_0002", "iter_0003"] == [path.name for path in iterations]
    reached = [json.loads(next((path / "feedback").glob("*.json")).read_bytes())["stop_reached"] for path in iterations]
    assert [False, False, True] == reached
    assert (iterations[2] / "fix" / "fixes_iter_0003_case_02.db").is_file()


def test_run_case_loop_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "out" / "run_t").mkdir(parents=True)

    with pytest.raises(FileExistsError, match="nothing in it was touched"):
        from_python(tmp_path)
    assert [] == list((tmp_path / "out" / "run_t").iterdir())


def test_run_case_loop_keeps_what_it_was_given(tmp_path: Path) -> None:
    base = tmp_path / "base.json"
    base.write_text('{"entities": [], "relations": [], "metadata": {"x": 1}}')
    run = from_python(tmp_path, start_from_scratch=False, base_ckg_path=base)

    assert base.read_bytes() == (run / "inputs" / "base_ckg_snapshot.json").read_bytes()
    assert "what the expert says" == (run / "inputs" / "human_report_case_02.txt").read_text()
    assert "load is at 29 %" == (run / "inputs" / "prompt_case_02.txt").read_text()
    assert f"{tmp_path / 'case2.txt'}\n" == (run / "inputs" / "data_source.txt").read_text()


def test_thresholds_above_every_score_are_never_reached(tmp_path: Path) -> None:
    rows = [row(10, 10, 10), row(9, 9, 9)]
    run = from_python(tmp_path, stop_accuracy=11, max_iters=2, dry_run_judge_scores=rows)

    assert 2 == len(os.listdir(run / "case_02" / "iterations"))
    assert 1 == read_best(run, 2)["best_iter"]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
def test_a_dry_score_that_is_no_finite_number_is_refused(tmp_path: Path, score: float) -> None:
    rows = [row(9, 9, 9), {**row(9, 9, 9), "overall": score}]
    with pytest.raises(ScoreError, match=r"dry_run_judge_scores: row 2: overall is -?(nan|inf), not a finite number"):
        from_python(tmp_path, dry_run_judge_scores=rows)
    assert not (tmp_path / "out").exists()
    scores = write_scores(tmp_path, rows)
    done = jumar(tmp_path, "cases", "run", str(write_chain(tmp_path)), "--dry-run", "--dry-run-scores", str(scores), check=2)
    assert "row 2: overall is " in done.stderr


def test_a_reader_that_has_seen_enough_ends_nothing(tmp_path: Path) -> None:
    write_chain(tmp_path, 3)
    line = f"{sys.executable} -m jumar.cli.entry cases run --dry-run --run-id t --max-iters 30 --dry-run-stop-iter 30 | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (0, "", 1) == (done.returncode, done.stderr, done.stdout.count("\n"))
    assert 30 == len(os.listdir(tmp_path / ".jumar" / "runs" / "run_t" / "case_03" / "iterations"))


def test_order_and_tie_breaks_may_be_lists(tmp_path: Path) -> None:
    rows = [row(8, 7, 6, diff=3), row(8, 7, 6, diff=1), row(7, 9, 9)]
    options: dict[str, Any] = {"max_iters": 3, "stop_accuracy": 11, "dry_run_judge_scores": rows}
    run = from_python(tmp_path, best_order=["accuracy", "chain"], best_tiebreak=["smaller_diff"], **options)

    assert 2 == read_best(run, 2)["best_iter"]


def test_a_scale_holds_whatever_the_order_is(tmp_path: Path) -> None:
    config = write_chain(tmp_path, 1)
    ranked = '[{key = "accuracy", min = 0, max = 10}, {key = "-overall", min = 1}, "chain"]'
    config.write_text(f"ranking = {ranked}\n{config.read_text()}")
    scores = write_scores(tmp_path, [row(8, 2, 8), row(80, 2, 8), row(9, 0, 8), row(80, 3, 9), row(8, 3, 9)])
    options = ("--dry-run", "--dry-run-scores", str(scores), "--max-iters", "5")

    assert 1 == run_json(tmp_path, str(config), *options)["cases"][0]["best_iter"]
    assert 5 == run_json(tmp_path, str(config), *options, "--best-order", "chain,accuracy")["cases"][0]["best_iter"]
    rows = [row(8, 7, 6), row(80, 7, 6)]
    wide = from_python(tmp_path, dry_run_judge_scores=rows, max_iters=2, stop_accuracy=99)
    assert 2 == read_best(wide, 2)["best_iter"]
    order = [{"key": "accuracy", "min": 0, "max": 10}, "overall"]
    narrow = from_python(tmp_path, run_id="n", dry_run_judge_scores=rows, max_iters=2, stop_accuracy=10, best_order=order)
    assert 1 == read_best(narrow, 2)["best_iter"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('{key = "accuracy", min = 10, max = 1}', "ranking.order[1]: a scale from 10.0 to 1.0: give min, max or both"),
        ('{key = "accuracy", min = 1, max = 1}', "min below max"),
        ('{key = "accuracy", most = 1}', "unknown key 'ranking.order[1].most'; known here: key, max, min"),
        ("{min = 1}", "'ranking.order[1].key' is missing"),
        ('{key = "accuracy", min = nan}', "ranking.order[1].min: input should be a finite number"),
        ('{key = "acuracy", max = 3}', "unknown key 'acuracy' in the order (did you mean 'accuracy'?)"),
        ("3", "ranking.order[1]: give a key, or {key, min, max} (found 3)"),
    ],
)
def test_a_scale_that_is_none_is_refused(tmp_path: Path, entry: str, message: str) -> None:
    config = write_chain(tmp_path, 1)
    config.write_text(f"ranking = [{entry}]\n{config.read_text()}")
    assert message in jumar(tmp_path, "cases", "run", str(config), "--dry-run", check=2).stderr
    assert not (tmp_path / ".jumar" / "runs").exists()


def test_a_resume_takes_the_options_of_the_run_and_no_others(tmp_path: Path) -> None:
    config = write_chain(tmp_path, 2)
    options = (str(config), "--dry-run", "--run-id", "off", "--no-select-best")
    run_json(tmp_path, *options)
    again = ("cases", "run", str(config), "--run-id", "off", "--resume")
    refused = jumar(tmp_path, *again, "--select-best", check=2)

    assert "options.select_best: False → True" in refused.stderr
    assert "nothing is run" in jumar(tmp_path, *again, check=0).stdout


def test_the_bundle_is_the_whole_state_that_is_carried(tmp_path: Path) -> None:
    steps = """
[[steps]]
name = "all"
command = "true"
outputs = ["ckg", "judge"]
"""
    config = write_chain(tmp_path, 2, extra=steps)
    run = Path(run_json(tmp_path, str(config), "--dry-run")["run_dir"])
    pointer = read_best(run)

    assert "case_01/best/iter_0001/fix/best_fixdb.db" == pointer["paths"]["fix_db"]
    assert b"" == (run / pointer["paths"]["fix_db"]).read_bytes()
    assert None is pointer["paths"]["agent_report"]
    jumar(tmp_path, "cases", "verify", str(run), check=0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("run_id", 5), ("run_id", ""), ("case_id", "a\nb"), ("case_num", "2"), ("case_num", True), ("case_num", 10**30)),
        *(("data_path", None), ("output_root", 3), ("base_ckg_path", 5), ("max_iters", 2.0), ("dry_run_stop_iter", None)),
        *(("dry_run", "yes"), ("select_best", "no"), ("stop_accuracy", "9"), ("continue_from", "worst"), ("best_order", 5)),
        *(("best_order", {"overall"}), ("best_tiebreak", [1]), ("steps", "x"), ("steps", [{}]), ("env", "A"), ("diff", None)),
        *(("dry_run_judge_scores", 5), ("dry_run_judge_scores", [1])),
    ],
)
def test_a_field_of_another_kind_is_named(tmp_path: Path, field: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"^{field} is "):
        from_python(tmp_path, **{field: value})
    assert not (tmp_path / "out").exists()


def test_a_resume_from_python_with_other_scores_is_refused(tmp_path: Path) -> None:
    from_python(tmp_path, dry_run_judge_scores=[row(5, 5, 5)], max_iters=1)

    with pytest.raises(ConfigError, match="dry_run_judge_scores"):
        from_python(tmp_path, dry_run_judge_scores=[row(8, 8, 8)], max_iters=1, resume=True)


def test_scores_of_a_case_that_is_not_there_are_refused(tmp_path: Path) -> None:
    config = write_chain(tmp_path, 2)
    scores = write_scores(tmp_path, {"9": [row(1, 1, 1)]})
    done = jumar(tmp_path, "cases", "run", str(config), "--dry-run", "--dry-run-scores", str(scores), check=2)

    assert "there is no case 9; the configuration has 1, 2" in done.stderr


def test_an_output_that_a_later_step_changes_makes_the_iteration_a_failure(tmp_path: Path) -> None:
    steps = """
[run]
max_iters = 2
[ranking]
order = "overall"
[[steps]]
name = "augment"
command = "echo 1 > $JUMAR_OUT_CKG"
outputs = ["ckg"]
[[steps]]
name = "judge"
command = '''
echo '{"composite_score": 9}' > $JUMAR_OUT_JUDGE
iteration=$(dirname $JUMAR_OUT_JUDGE)/..
[ $JUMAR_ITERATION = 1 ] || echo 2 > $iteration/ckg/candidate_ckg_iter_0002_case_01.json
echo junk > $iteration/iteration.json
'''
outputs = ["judge"]
"""
    config = write_chain(tmp_path, extra=steps)
    run = Path(run_json(tmp_path, str(config))["run_dir"])
    second = json.loads((run / "case_01" / "iterations" / "iter_0002" / "iteration.json").read_bytes())

    assert 1 == read_best(run)["best_iter"]
    assert ("step_failed", "ckg was changed by a later step; a step writes its own outputs only") == (
        second["status"],
        second["reason"],
    )
    jumar(tmp_path, "cases", "verify", str(run), check=0)


def test_steps_may_be_python_functions_in_a_child_process(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(
        "import json\n"
        "def judge(context):\n"
        "    print('judging', context.case_id, context.inputs['report'].read_text())\n"
        "    context.outputs['judge'].write_text(json.dumps({'composite_score': context.iteration}))\n"
        "    return {'token_cost_usd': 0.25}\n"
        "def breaks(context):\n"
        "    raise ValueError('no idea')\n"
    )
    step = '[[steps]]\nname = "judge"\npython = "steps:{name}"\ninputs = ["report"]\noutputs = ["judge"]\n'
    head = '[run]\nmax_iters = 2\n[ranking]\norder = "overall"\n'
    config = write_chain(tmp_path, extra=head + step.format(name="judge"))
    run = Path(run_json(tmp_path, str(config))["run_dir"])
    record = json.loads((run / "case_01" / "iterations" / "iter_0002" / "iteration.json").read_bytes())

    assert 2 == read_best(run)["best_iter"]
    assert 0.25 == record["steps"][0]["usage"]["token_cost_usd"]
    log = (run / "case_01" / "iterations" / "iter_0001" / "logs" / "judge.log").read_text()
    assert "judging case1 the pump of unit 1 failed" in log

    config = write_chain(tmp_path, extra=head + step.format(name="breaks"))
    done = json.loads(jumar(tmp_path, "cases", "run", str(config), "--json", check=12).stdout)
    failed = json.loads(next(Path(done["run_dir"]).glob("case_01/iterations/iter_0001/iteration.json")).read_bytes())
    assert ("step_failed", "step judge: steps:breaks: ValueError: no idea") == (failed["status"], failed["reason"])
