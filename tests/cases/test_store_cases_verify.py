"""Verify finds what was changed in a run of cases behind the store's back, and calls nothing else damage."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cases_kit import POISONED, add_iteration, finish, make_run

from jumar.cases.layout import RunTrust
from jumar.cases.run_store import RunStore
from jumar.cases.verify import verify_run
from jumar.core import files, leftovers
from jumar.errors import NotFoundError

HERE = Path(".jumar/runs/run_r")


@pytest.fixture
def run() -> RunStore:
    """Two cases of three iterations; the best of the first was carried into the second."""
    return make_run(POISONED)


def found(path: Path = HERE) -> list[tuple[str, str]]:
    return [(problem.path, problem.what) for problem in verify_run(path).problems]


def notes(path: Path = HERE) -> list[str]:
    report = verify_run(path)
    assert () == report.problems
    return list(report.notes)


def edit(name: str, change: Callable[[dict[str, Any]], None], *, sealed: bool = True) -> None:
    """Change a record, as somebody does who also mends its seal; ``sealed`` False leaves the old one."""
    path = HERE / name
    data = json.loads(path.read_bytes())
    change(data)
    if sealed:
        del data["seal"]
        data.pop("mark", None)
        path.write_bytes(RunTrust(HERE.absolute()).encode(data, path.absolute()))
    else:
        path.write_text(json.dumps(data))


def test_a_sound_run_has_no_problem(run: RunStore):
    report = verify_run(HERE)
    assert ((), ()) == (report.problems, report.notes)
    # 2 × (report, prompt, ckg, fix_db), 6 × 6 outputs, 2 × 6 copies, data_source.txt
    assert (6, 8 + 36 + 12 + 1) == (report.iterations, report.files)
    assert report.bytes > 1000


@pytest.mark.parametrize("select", ["best", "last"])
def test_runs_with_failures_and_without_a_best_are_sound(select: str):
    rows = {1: ["exit 1", None, (5, 5, 5)], 2: ["a", "b"], 3: [None, None], 7: [(1, 1, 1)]}
    make_run(rows, select=select)
    assert [] == notes()


def test_a_run_that_carries_nothing_is_sound():
    make_run(POISONED, carry=False)
    assert [] == notes()


def test_what_is_no_run_is_not_found():
    Path("x").mkdir()
    with pytest.raises(NotFoundError, match="no run of cases: it has no run"):
        verify_run(Path("x"))


# ---------------------------------------------------------------------------------------------------- every single file


def test_every_file_that_is_gone_or_changed_is_named(run: RunStore):
    """Each file of a run, one after the other: removed, cut off, one byte changed."""
    names = sorted(path.relative_to(HERE).as_posix() for path in HERE.rglob("*") if path.is_file())
    tried = 0
    for name in names:
        if name == "inputs/data_source.txt" or "/logs/" in name:  # for people
            continue
        path = HERE / name
        data = path.read_bytes()
        for changed in (None, data[:-2], bytes([data[0] ^ 1]) + data[1:] if data else b"x"):
            if changed == data:
                continue
            if changed is None:
                path.unlink()
            else:
                path.write_bytes(changed)
            report = verify_run(HERE)
            # the last case's end is written after everything else: without it, the run looks interrupted
            expected = report.notes if (name, changed) == ("case_02/case.json", None) else report.problems
            assert expected, (name, changed)
            assert all(problem.fix for problem in report.problems)
            tried += 1
            path.write_bytes(data)
    assert [] == found()
    print(f"{tried} changes of {len(names)} files")
    assert tried > 200


def test_every_record_has_a_seal(run: RunStore):
    records = [path for path in HERE.rglob("*.json") if b'"seal"' in path.read_bytes()]
    assert len(records) == 1 + 2 + 6 * 3 + 2 + 2
    for path in records:
        name = path.relative_to(HERE).as_posix()
        data = path.read_bytes()
        edit(name, lambda content: content.update(note="by hand"), sealed=False)
        assert [name] == [where for where, what in found() if "does not match its seal" in what]
        path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "case_01/iterations/iter_0002/ckg/candidate_ckg_iter_0002_case_01.json",
            "has another content than iteration.json recorded",
        ),
        ("case_01/best/iter_0001/ckg/best_ckg.json", "has another content than best.json recorded"),
        ("inputs/human_report_case_01.txt", "has another content than inputs_case_01.json recorded"),
        ("inputs/base_ckg_snapshot_case_02.json", "has another content than inputs_case_02.json recorded"),
    ],
)
def test_another_content_of_the_same_length(run: RunStore, name: str, expected: str):
    path = HERE / name
    path.write_bytes(path.read_bytes().swapcase())
    assert [(name, expected)] == found()


def test_sizes_links_and_missing_files(run: RunStore):
    directory = HERE / "case_02" / "iterations" / "iter_0001"
    (directory / "judge" / "judge_result_iter_0001_case_02.json").write_bytes(b"")
    (directory / "feedback" / "feedback_iter_0001_case_02.json").unlink()
    report = directory / "agent" / "agent_report_iter_0001_case_02.md"
    report.rename(directory / "moved")
    report.symlink_to(directory / "moved")
    size = (HERE / "case_02/iterations/iter_0002/judge/judge_result_iter_0002_case_02.json").stat().st_size
    inside = "case_02/iterations/iter_0001"
    assert [
        (f"{inside}/agent/agent_report_iter_0001_case_02.md", "should be a regular file"),
        (f"{inside}/judge/judge_result_iter_0001_case_02.json", f"has 0 bytes, iteration.json recorded {size}"),
        (f"{inside}/feedback/feedback_iter_0001_case_02.json", "is missing; iteration.json recorded it"),
        (f"{inside}/moved", "is nothing that an iteration holds"),
    ] == found()


# -------------------------------------------------------------------------------------------------------------- numbering


def test_gaps_in_the_numbering(run: RunStore):
    shutil.rmtree(HERE / "case_02" / "iterations" / "iter_0001")
    assert [
        ("case_02/iterations/iter_0001", "is missing: iterations are numbered without gaps"),
        ("case_02/iterations", "holds 2 iterations, case.json recorded 3"),
    ] == found()


def test_the_last_iteration_is_missed_too(run: RunStore):
    shutil.rmtree(HERE / "case_02" / "iterations" / "iter_0003")
    assert [("case_02/iterations", "holds 2 iterations, case.json recorded 3")] == [
        problem for problem in found() if "case.json" in problem[1]
    ]
    assert ("case_02/best/best.json", "says that iteration 3 is the last one, it is 2") in found()


def test_a_renamed_iteration_says_what_it_is(run: RunStore):
    place = HERE / "case_01" / "iterations"
    (place / "iter_0003").rename(place / "iter_0004")
    said = dict(found())
    assert "holds iteration 3 of case 1: was it renamed by hand?" == said["case_01/iterations/iter_0004/iteration.json"]
    assert "is missing: iterations are numbered without gaps" == said["case_01/iterations/iter_0003"]


def test_runs_of_steps_have_a_start_an_end_and_no_gap(run: RunStore):
    steps = HERE / "case_01" / "iterations" / "iter_0001" / "steps"
    (steps / "0001-all.end.json").unlink()
    shutil.copy(steps / "0001-all.start.json", steps / "0003-all.start.json")
    shutil.copy(HERE / "case_01/iterations/iter_0002/steps/0001-all.end.json", steps / "0003-all.end.json")
    (steps / "notes.txt").write_text("mine")
    inside = "case_01/iterations/iter_0001/steps"
    assert [
        (f"{inside}/notes.txt", "is not the name of a step's record"),
        (f"{inside}/0002-*.start.json", "is missing: runs of steps are numbered without gaps"),
        (f"{inside}/0001-all.end.json", "is missing: 0001-all.start.json is there"),
        (f"{inside}/0003-all.start.json", "was not written by jumar"),
        (f"{inside}/0003-all.end.json", "was not written by jumar"),
    ] == found()


def test_the_end_of_a_step_is_that_of_the_record(run: RunStore):
    edit("case_01/iterations/iter_0001/steps/0001-all.end.json", lambda data: data.update(seconds=99))
    assert [("case_01/iterations/iter_0001/iteration.json", "does not list the runs of steps that steps/ has")] == found()


# -------------------------------------------------------------------------------------------------- contradictions


def rehash(data: dict[str, Any], role: str, other: str) -> None:
    data["files"][role]["sha256"] = other


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("case_01/best/best.json", lambda d: d.update(case=2), "is about case 2: was it renamed by hand?"),
        ("case_01/best/best.json", lambda d: d["ranking"].update(accuracy=8), "has other scores than iteration 1"),
        ("case_01/best/best.json", lambda d: d.update(last_iter=2), "says that iteration 2 is the last one, it is 3"),
        ("case_01/best/best.json", lambda d: d.update(best_iter=9), "names iteration 9, which is not there"),
        ("case_01/best/best.json", lambda d: d.update(selected_by="last"), "chose iteration 1 as the last one, that is 3"),
        ("case_01/best/best.json", lambda d: d["files"].pop("judge"), "judge is not what iteration 1 wrote"),
        ("case_01/case.json", lambda d: d.update(best_iter=2), "names iteration 2 as the best, best.json names 1"),
        ("case_01/case.json", lambda d: d.update(case=3), "is about case 3: was it renamed by hand?"),
        ("case_01/case.json", lambda d: d.update(best_iter=None), "is there, but case.json says that no iteration was selected"),
        ("inputs/inputs_case_02.json", lambda d: d.update(case=1), "is about case 1: was it renamed by hand?"),
        (
            "inputs/inputs_case_02.json",
            lambda d: d["carried_from"].update(iter=3),
            "says that iteration 3 of case 1 was carried as its best, its best.json has iteration 1 as its best",
        ),
        (
            "inputs/inputs_case_02.json",
            lambda d: d["carried_from"].update(case=5),
            "says that it was carried from case 5, which has no readable best bundle",
        ),
    ],
)
def test_records_that_contradict_each_other(run: RunStore, name: str, change: Callable[[dict[str, Any]], None], expected: str):
    edit(name, change)
    assert expected in [what for _, what in found()]


def test_what_was_carried_is_compared_with_its_bundle(run: RunStore):
    """Both records agree with their files, and yet case 2 did not get what case 1 chose."""
    name = "inputs/base_ckg_snapshot_case_02.json"
    shutil.copy(HERE / "case_01/iterations/iter_0003/ckg/candidate_ckg_iter_0003_case_01.json", HERE / name)
    other = json.loads((HERE / "case_01/iterations/iter_0003/iteration.json").read_bytes())["outputs"]["ckg"]
    edit("inputs/inputs_case_02.json", lambda data: data["files"]["ckg"].update(sha256=other["sha256"], size=other["size"]))
    assert [(name, "is not what it was carried from, case_01/best/iter_0001/ckg/best_ckg.json")] == found()


def test_a_role_that_was_not_written_comes_from_what_that_case_began_with(run: RunStore):
    for name in ("case_01/iterations/iter_0001/iteration.json", "case_01/best/best.json"):
        edit(name, lambda data: (data.get("outputs") or data["files"]).pop("fix_db"))
    (HERE / "case_01/best/iter_0001/fix/best_fixdb.db").unlink()
    assert (
        "inputs/base_fix_db_snapshot_case_02.db",
        "is not what it was carried from, inputs/base_fix_db_snapshot.db",
    ) in found()
    edit("inputs/inputs_case_01.json", lambda data: data["files"].pop("fix_db"))
    assert ("inputs/base_fix_db_snapshot_case_02.db", "was carried from case 1, which has no fix_db") in found()


def test_a_failed_iteration_is_not_the_best():
    make_run({1: [(5, 5, 5), None]})
    edit("case_01/best/best.json", lambda data: data.update(best_iter=2, ranking=dict.fromkeys(data["ranking"])))
    assert "chose iteration 2, which has no usable score" in [what for _, what in found()]


def test_a_best_bundle_that_is_gone(run: RunStore):
    shutil.rmtree(HERE / "case_02" / "best")
    assert [("case_02/best", "is missing: case.json names iteration 2 as the best")] == found()


# ---------------------------------------------------------------------------------------------------------- leftovers


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("case_01/x.txt", "is nothing that a case holds"),
        ("case_01/iterations/x", "is not an iteration's name"),
        ("case_01/iterations/iter_0001/x", "is nothing that an iteration holds"),
        ("case_01/best/iter_0003", "is nothing that a best bundle holds"),
        ("case_01/best/iter_0001/ckg/x.json", "is not in best.json"),
        ("case_01/pending/x", "is not an iteration's name"),
        ("case_01/pending/iter_0001", "iteration 1 is recorded already"),
        ("case_03", "is a case that run.json does not list"),
        ("inputs/x.json", "is nothing that a case was given"),
    ],
)
def test_what_nobody_wrote(run: RunStore, name: str, expected: str):
    (HERE / name).parent.mkdir(exist_ok=True)
    (HERE / name).write_text("x")
    assert [(name, expected)] == found()


def test_what_harmless_commands_and_steps_leave_is_a_note(run: RunStore):
    for name in (
        f"{leftovers.TEMPORARY}1",
        "report.html",
        "case_01/iterations/iter_0001/fix/fixes.db-journal",
        "case_01/scratch/augment/x",
    ):
        (HERE / name).parent.mkdir(exist_ok=True, parents=True)
        (HERE / name).write_text("x")
    said = notes()
    assert f"{leftovers.TEMPORARY}1: left by an interrupted command, the next run removes it" in said
    assert "report.html: nothing that jumar wrote; it is left alone" in said
    assert "case_01/iterations/iter_0001/fix/fixes.db-journal: not recorded; a step may have left it beside its output" in said
    assert "case_01/scratch/augment: scratch of a step, the next run removes it" in said


def test_folders_that_are_files(run: RunStore):
    shutil.rmtree(HERE / "case_02" / "iterations" / "iter_0002" / "steps")
    (HERE / "case_02" / "iterations" / "iter_0002" / "steps").write_text("x")
    assert ("case_02/iterations/iter_0002/steps", "should be a directory") in found()


# ---------------------------------------------------------------------------------------------------- runs under way


def test_a_run_under_way_is_sound():
    run = make_run({1: [(5, 5, 5)], 2: [(6, 6, 6)], 3: [(7, 7, 7)]}, begun=2, ended=False)
    with run.store(2).lock() as store:
        add_iteration(store, 2, (1, 1, 1), commit=False)
    assert ["case_02/pending/iter_0002: an iteration that is being made; if nothing runs, --resume resumes it"] == notes()


def test_between_the_best_and_the_end():
    run = make_run({1: [(5, 5, 5)]}, ended=False)
    with run.store(1).lock() as store:
        finish(store, end=False)
    assert ["case_01/best: the case's end is not written yet; --resume writes it"] == notes()


def test_a_run_that_has_not_begun_needs_its_inputs():
    make_run({1: [], 2: []}, begun=0)
    (HERE / "inputs" / "rules.txt").write_text("a role of somebody's own")
    assert ["inputs/rules.txt: not recorded yet: its case has not begun"] == notes()
    (HERE / "inputs" / "prompt_case_02.txt").unlink()
    assert [("inputs/prompt_case_02.txt", "is missing; run.json recorded it")] == found()


def test_inputs_that_are_gone_after_the_case_began(run: RunStore):
    (HERE / "inputs" / "inputs_case_02.json").unlink()
    assert ("inputs/inputs_case_02.json", "is missing: the case has begun") in found()


def test_a_run_without_its_run_json_is_checked_all_the_same(run: RunStore):
    (HERE / "run.json").unlink()
    (HERE / "case_02" / "case.json").unlink()
    assert [("run.json", f"{(HERE / 'run.json').absolute()} is missing; `jumar verify` lists what is damaged")] == found()


def test_a_newer_format_says_upgrade(run: RunStore):
    edit("case_01/case.json", lambda data: data.update(format=99))
    (problem,) = verify_run(HERE).problems
    assert "upgrade jumar: this was written by a newer version" == problem.fix


def test_a_file_that_may_not_be_read(run: RunStore, monkeypatch: pytest.MonkeyPatch):
    def refuse(path: Path) -> str:
        if path.name == "prompt_case_01.txt":
            raise PermissionError(errno.EACCES, "no")
        return files.sha256_file(path)

    monkeypatch.setattr("jumar.cases.verify.files", SimpleNamespace(**(vars(files) | {"sha256_file": refuse})))
    assert [("inputs/prompt_case_01.txt", "cannot be read: Permission denied")] == found()


def test_two_cases_of_which_one_has_no_directory_yet():
    make_run({1: [(5, 5, 5)], 2: []}, begun=1)
    assert [] == notes()
