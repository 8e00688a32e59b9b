"""The commands that decide and change: select --use, apply, cleanup, verify, with their locks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from commands import call, call_json, record
from finished import BEST, FOURTH, START, finished_loop, tree
from loops import jumar, write_loop

from jumar.core.lock import LoopLock
from jumar.loop.decisions import apply as deciding
from jumar.loop.ranking.score import DEFAULT_WEIGHTS
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.running import locked_tree
from jumar.loop.tracker import BestOutputTracker


@pytest.fixture
def here(fresh_place: Path) -> Path:
    return finished_loop(fresh_place)


@pytest.fixture
def held(here: Path) -> Generator[Path]:
    """The loop while somebody else writes it."""
    lock = LoopLock(LoopStore.open(here / ".jumar/loops/t").paths.lock)
    lock.acquire()
    yield here
    lock.release()


def decisions(here: Path) -> list[str]:
    return sorted(path.name for path in (here / ".jumar/loops/t/decisions").iterdir())


# -------------------------------------------------------------------------------------------------------- select --use


def test_use_lets_another_one_stand_and_touches_no_file_of_the_tree(here: Path):
    before = tree(here)
    document = call_json("select", "t", "--use", "4", "--reason", "keeps the API stable")
    expected = {
        "selected_iteration": 4,
        "quality_score": 65.0,
        "reason": "keeps the API stable",
        "final_iteration": 4,
        "final_quality": 65.0,
        "degradation_detected": False,
        "meets_threshold": None,
        "fallback": None,
        "runner_up": 2,
        "margin": -25.0,
        "below_start": False,
        "standing": 4,
    }
    assert expected == {key: document[key] for key in expected}
    decision = document["decision"]
    assert ("override", "use_specific", 4, 2) == tuple(
        decision[key] for key in ("kind", "decision", "best_iteration", "replaced")
    )
    assert before == tree(here)
    assert 4 == call_json("show", "t")["chosen"]
    assert FOURTH == tree(here / ".jumar/loops/t/final-output")


def test_use_of_one_that_failed_its_check_says_that_it_meets_no_threshold(here: Path):
    document = call_json("select", "t", "--use", "3", "--reason", "x", "--threshold", "60")
    assert (False, "threshold, verification") == (document["meets_threshold"], document["fallback"])


def test_how_far_the_next_best_is_away_is_told_in_words(fresh_place: Path):
    record([0.5, 0.8, 0.65])
    assert "runner-up iteration 3, 15 points lower" in call("select").out
    record([0.8, 0.8], loop="u")
    assert "runner-up iteration 2, the same score" in call("select", "u").out
    assert "%" not in call("select").out


def test_use_in_words(here: Path):
    assert 4 == call_json("select", "t", "--use", "final", "--reason", "newest")["standing"]
    assert 2 == call_json("select", "t", "--use", "best", "--reason", "back to the rules")["standing"]
    shown = call("select", "t", "--use", "1", "--reason", "small\x1b[2J", check=0).out
    assert "selected  iteration 1, 60, instead of 2" in shown
    assert "reason    small\\x1b[2J" in shown
    assert "jumar apply puts it into" in shown
    assert "" == call("select", "t", "--use", "1", "--reason", "again", "-q", check=0).out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--use", "2"), "reason"),
        (("--use", "2", "--reason", "  "), "reason"),
        (("--reason", "because"), "--use"),
        (("--use", "9", "--reason", "x"), "no iteration 9"),
        (("--use", "second", "--reason", "x"), "second"),
    ],
)
def test_use_needs_a_reason_and_an_iteration(here: Path, options: tuple[str, ...], message: str):
    before = decisions(here)
    assert message in call("select", "t", *options, check=2).err
    assert before == decisions(here)


def test_use_is_refused_where_the_configuration_forbids_it(fresh_place: Path):
    config = write_loop(fresh_place, [0.6, 0.7], extra="[override]\nenabled = false")
    call("run", config, "--quiet", check=0)
    assert "enabled = false" in call("select", "t", "--use", "1", "--reason", "x", check=2).err
    assert 2 == call_json("select", "t")["selected_iteration"]


def test_use_waits_for_nobody(held: Path):
    before = decisions(held)
    called = call("select", "t", "--use", "1", "--reason", "x", "--json", check=13)
    assert "LockedError" == called.document["error"]["kind"]
    assert str(os.getpid()) in called.err or "this process" in called.err
    assert before == decisions(held)


# --------------------------------------------------------------------------------------------------------------- apply


def test_apply_and_undo_restore_the_tree_deletions_included(here: Path):
    (here / "new-3.md").write_text("in the snapshot of another\n")
    start = START | {"new-3.md": "in the snapshot of another\n"}
    preview = call_json("apply", "t", "--dry-run")
    changes = {change["path"]: change["change"] for change in preview["changes"]}
    assert {"new-3.md": "remove", "new-1.md": "add", "new-2.md": "add", "score.txt": "replace", "text.md": "replace"} == changes
    assert start == tree(here)
    applied = call_json("apply", "t")
    assert (2, True, str(here)) == (applied["iteration"], applied["applied"], applied["workdir"])
    assert preview["changes"] == applied["changes"]
    assert BEST == tree(here)
    undone = call_json("apply", "t", "--undo")
    assert (applied["decision"], None, True) == (undone["undone"], undone["set_aside"], undone["changed"])
    assert start == tree(here)
    assert "NotFoundError" == call_json("apply", "t", "--undo", check=2)["error"]["kind"]


def test_what_no_iteration_has_is_left_alone_and_named(here: Path):
    mine = {"notes.md": "mine\n", "report.md": "mine\n"}
    for name, text in mine.items():
        (here / name).write_text(text)
    line = "left alone: notes.md, report.md (no iteration has them)"
    assert line in call("apply", "t", "--dry-run", check=0).words
    assert ["notes.md", "report.md"] == call_json("apply", "t", "--dry-run")["left_alone"]
    assert line in call("apply", "t", check=0).words
    assert BEST | mine == tree(here)
    assert line in call("apply", "t", check=0).words, "where nothing changes too"
    assert ", applied" in " ".join(call("show", "t").out.split()), "they do not take it out of its place"
    call("apply", "t", "--undo", check=0)
    call("apply", "t", "--undo", check=0)
    assert START | mine == tree(here)


def test_an_apply_that_changes_nothing_is_recorded_and_its_undo_takes_nothing_back(here: Path):
    first = call_json("apply", "t")
    again = call_json("apply", "t")
    assert (False, []) == (again["applied"], again["changes"])
    assert again["decision"] > first["decision"]
    assert "would change nothing" in call("apply", "t", "--undo", "--dry-run", check=0).words
    undone = call_json("apply", "t", "--undo")
    assert (again["decision"], False) == (undone["undone"], undone["changed"])
    assert BEST == tree(here)
    undone = call_json("apply", "t", "--undo")
    assert (first["decision"], True) == (undone["undone"], undone["changed"])
    assert START == tree(here)


def test_the_undo_of_an_apply_that_changed_nothing_says_so(here: Path):
    call("apply", "t", check=0)
    call("apply", "t", check=0)
    nothing, further = call("apply", "t", "--undo", check=0).out.replace("\n" + " " * 10, " ").splitlines()
    assert nothing.startswith("undone    nothing to change: ")
    assert nothing.endswith(" is what it was before iteration 2 was applied")
    assert "next      jumar apply --undo again takes back the apply of iteration 2 before it" == further
    assert "next  " not in call("apply", "t", "--undo", check=0).out


def test_apply_in_words(here: Path):
    shown = call("apply", "t", "--dry-run", check=0).out
    assert ["  A new-1.md", "  A new-2.md", "  M score.txt", "  M text.md"] == shown.splitlines()[-5:-1]
    assert "2 added, 2 replaced, 0 removed, 0 unchanged; nothing was written" in shown
    shown = call("apply", "t", check=0).out
    assert "iteration 2 is in " in shown
    assert "undo      jumar apply --undo" in shown
    assert "holds iteration 2 already (4 files)" in call("apply", "t", check=0).words
    assert ", applied" in " ".join(call("show", "t").out.split())
    assert "would change" in call("apply", "t", "--undo", "--dry-run", check=0).words
    assert BEST == tree(here)
    assert "nothing to change: " in call("apply", "t", "--undo", check=0).out
    assert "is what it was before iteration 2 was applied" in call("apply", "t", "--undo", check=0).words
    assert "" == call("apply", "t", "--quiet", check=0).out


def test_apply_follows_the_override(here: Path):
    call("select", "t", "--use", "4", "--reason", "newest", check=0)
    call("apply", "t", check=0)
    assert FOURTH == tree(here)


def test_apply_records_the_selection_when_nobody_decided_yet(here: Path):
    for path in (here / ".jumar/loops/t/decisions").iterdir():
        path.unlink()
    assert "nothing is recorded yet" in call("select", "t", check=0).out
    assert [] == decisions(here)
    call("apply", "t", check=0)
    assert ["select", "apply"] == [name.split("-", 1)[1].removesuffix(".json") for name in decisions(here)][:2]
    assert BEST == tree(here)


def test_undo_over_later_changes_needs_force_and_keeps_them(here: Path):
    call("apply", "t", check=0)
    (here / "text.md").write_text("edited\n")
    called = call("apply", "t", "--undo", check=2)
    assert "text.md" in called.err
    assert "--force" in called.err
    assert "conflict  text.md changed since" in call("apply", "t", "--undo", "--dry-run", check=0).out
    assert ["text.md"] == call_json("apply", "t", "--undo", "--dry-run")["conflicts"]
    undone = call_json("apply", "t", "--undo", "--force")
    assert START == tree(here)
    assert "edited\n" == next(Path(undone["set_aside"]).rglob("text.md")).read_text()


def interrupted_apply(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin an apply and die in the middle: the decision is there, its end is not."""
    with monkeypatch.context() as patch:
        patch.setattr(deciding, "complete", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        assert 130 == call("apply", "t").code
    assert START == tree(here)


def test_an_interrupted_apply_is_finished_by_the_next_one(here: Path, monkeypatch: pytest.MonkeyPatch):
    interrupted_apply(here, monkeypatch)
    assert "apply" == call_json("apply", "t", "--dry-run")["interrupted"]
    assert "was interrupted; jumar apply finishes it first" in call("apply", "t", "--dry-run", check=0).out
    document = call_json("apply", "t")
    assert ("apply", True, 2, 2) == tuple(document[key] for key in ("finished", "applied", "iteration", "standing"))
    assert BEST == tree(here)
    assert 0 == call("verify", "t").code


def test_an_interrupted_apply_is_taken_back_by_undo(here: Path, monkeypatch: pytest.MonkeyPatch):
    interrupted_apply(here, monkeypatch)
    call("apply", "t", "--undo", check=0)
    assert START == tree(here)
    call("apply", "t", check=0)
    assert BEST == tree(here)


def test_an_interrupted_apply_whose_file_was_edited_names_the_one_way_back(here: Path, monkeypatch: pytest.MonkeyPatch):
    interrupted_apply(here, monkeypatch)
    (here / "text.md").write_text("edited\n")
    said = call("apply", "t", check=2).err
    assert (1, 1) == (said.count("--undo"), " ".join(said.split()).count("`jumar apply t --undo --force` takes it back"))
    call("apply", "t", "--undo", "--force", check=0)


def test_apply_after_the_decision_changed_says_what_comes_next(here: Path, monkeypatch: pytest.MonkeyPatch):
    interrupted_apply(here, monkeypatch)
    call("select", "t", "--use", "4", "--reason", "x", check=0)
    assert "jumar apply again applies iteration 4" in call("apply", "t", check=0).out
    assert BEST == tree(here)
    call("apply", "t", check=0)
    assert FOURTH == tree(here)


@pytest.mark.parametrize(
    "options",
    [
        ("--undo", "--branch", "b"),
        ("--branch", "b", "--commit"),
        ("--force",),
        ("--dry-run", "--commit"),
        ("--dry-run", "--branch", "b"),
    ],
)
def test_apply_refuses_options_that_contradict_each_other(here: Path, options: tuple[str, ...]):
    called = call("apply", "t", *options, check=2)
    assert "Traceback" not in called.err
    assert START == tree(here)


def test_apply_is_13_while_a_run_holds_the_loop(held: Path):
    for options in ((), ("--branch", "b"), ("--commit",)):
        assert "LockedError" == call_json("apply", "t", *options, check=13)["error"]["kind"]
    assert START == tree(held)
    assert 0 == call("apply", "t", "--dry-run").code


def test_apply_is_13_while_another_loop_works_in_the_same_directory(here: Path):
    store = LoopStore.open(here / ".jumar/loops/t")
    with locked_tree(store, here):
        called = call("apply", "t", check=13)
    assert f"works in {here}" in called.err
    assert START == tree(here)
    assert 0 == call("apply", "t").code


def test_a_real_run_keeps_apply_out(fresh_place: Path):
    config = write_loop(fresh_place, ["hang"], generator="timeout = 60")
    runner = subprocess.Popen(
        [sys.executable, "-m", "jumar.cli.entry", "run", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 30
        while not (fresh_place / "calls.log").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        done = jumar(fresh_place, "apply", "t", check=13)
        assert f"process {runner.pid}" in done.stderr
        (loop,) = json.loads(jumar(fresh_place, "list", "--json", check=0).stdout)["loops"]
        assert ("running", runner.pid) == (loop["state"], loop["running"]["pid"])
    finally:
        runner.terminate()
        runner.wait()
    assert 143 == runner.returncode
    assert "interrupted" == call_json("list")["loops"][0]["state"]


def test_apply_of_a_tracker_writes_its_files_and_removes_nothing(fresh_place: Path):
    record([0.5, {"score": 0.9, "file": "b.md"}, {"score": 0.6, "file": "c.md"}])
    (fresh_place / "unrelated.txt").write_text("mine")
    (fresh_place / "b.md").write_text("overwritten later\n")
    document = call_json("apply", "t")
    assert (2, [{"path": "b.md", "change": "replace"}]) == (document["iteration"], document["changes"])
    assert "pass 2\n" == (fresh_place / "b.md").read_text()
    assert {"unrelated.txt", "text.md", "c.md"} <= {path.name for path in fresh_place.iterdir()}


def test_apply_with_nothing_evaluated_is_12():
    record([])
    assert 12 == call("apply", "t").code
    assert 12 == call("apply", "t", "--dry-run").code


# ----------------------------------------------------------------------------------------------------------------- git


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(here: Path) -> Path:
    git("init", "--quiet", "--initial-branch=main")
    git("add", "score.txt", "text.md")
    git("-c", "user.name=n", "-c", "user.email=e@x", "commit", "--quiet", "-m", "start")
    return here


def test_a_branch_leaves_work_directory_and_head_alone(repository: Path):
    head = git("rev-parse", "HEAD")
    document = call_json("apply", "t", "--branch", "best-of-loop")
    assert ("refs/heads/best-of-loop", True, False) == (document["ref"], document["created"], document["applied"])
    assert document["commit"] == git("rev-parse", "best-of-loop")
    assert "pass 2" == git("show", "best-of-loop:text.md")
    assert (head, START) == (git("rev-parse", "HEAD"), tree(repository))
    assert "exists" in call("apply", "t", "--branch", "best-of-loop", check=2).err


def test_a_commit_applies_and_commits(repository: Path):
    shown = call("apply", "t", "--commit", check=0).words
    assert "on main, and in " in shown
    assert BEST == tree(repository)
    assert "pass 2" == git("show", "HEAD:text.md")
    assert "" == git("status", "--porcelain", "--", "text.md", "score.txt")


def test_git_words_outside_of_a_repository(here: Path):
    assert "git init" in call("apply", "t", "--branch", "b", check=2).err


# ----------------------------------------------------------------------------------------------------- verify, cleanup


def test_verify_counts_and_is_0(here: Path):
    record([0.5], loop="other")
    shown = call("verify", check=0).out.splitlines()
    assert ["other: ok (1 iteration, 1 stored file, ", "t: ok (5 iterations, "] == [shown[0][:39], shown[1][:21]]
    document = call_json("verify", "t")
    assert (True, "t", 5, []) == (document["ok"], *(document["loops"][0][key] for key in ("loop_id", "iterations", "problems")))
    assert "" == call("verify", "-q", check=0).out
    assert "nothing to verify" in call("verify", "--root", "nowhere", check=2).err


def test_verify_names_what_is_damaged_and_is_14(here: Path):
    stored = here / ".jumar/loops/t/iterations/iteration-002/artifacts/text.md"
    stored.chmod(0o644)
    stored.write_text("pass X\n")
    (here / ".jumar/loops/broken").mkdir()
    (here / ".jumar/loops/broken/loop.json").write_text("{")
    document = call_json("verify", check=14)
    assert not document["ok"]
    found = {loop["loop_id"]: loop["problems"] for loop in document["loops"]}
    assert ["loop.json"] == [problem["path"] for problem in found["broken"]]
    assert any("iteration-002" in problem["path"] and "text.md" in problem["path"] for problem in found["t"])
    assert all(problem["what"] and problem["fix"] for problems in found.values() for problem in problems)
    shown = call("verify", "t", "--quiet", check=14).out
    assert "text.md" in shown
    assert "re-hashed" not in shown


def test_verify_of_an_unknown_loop_is_2(here: Path):
    assert "did you mean 't'" in call("verify", "tt", check=2).err


def test_cleanup_says_what_goes_and_why_the_rest_stays(here: Path):
    plan = call_json("cleanup", "t", "--keep", "0", "--dry-run")
    snapshots = {path.parent.name for path in (here / ".jumar/loops/t/iterations").glob("*/artifacts")}
    done = call_json("cleanup", "t", "--keep", "0")
    assert (plan["removed"], plan["kept"]) == (done["removed"], done["kept"])
    assert [1, 3] == done["removed"]
    left = {path.parent.name for path in (here / ".jumar/loops/t/iterations").glob("*/artifacts")}
    assert {"iteration-001", "iteration-003"} == snapshots - left
    assert 5 == len(call_json("show", "t")["iterations"])
    assert 0 == call("verify", "t").code
    assert "cleaned up" in call("show", "t", "--iteration", "1", check=0).out
    assert "cleaned up" in call("select", "t", "--use", "1", "--reason", "x", check=2).err
    shown = call("cleanup", "t", "--keep", "0", check=0).out
    assert shown.startswith("0 snapshots deleted")
    assert "  kept 2: selected" in shown


def test_cleanup_dry_run_gives_the_command(here: Path):
    shown = call("cleanup", "t", "--keep", "0", "--dry-run", check=0).out
    assert "2 snapshots would be deleted (1, 3)" in shown
    assert "jumar cleanup --keep 0 deletes them; nothing was changed" in shown


def test_cleanup_of_trees_deletes_no_snapshot_unless_keep_is_given(here: Path):
    copy, artifacts = here / ".jumar/work/t", here / ".jumar/loops/t/iterations"
    before = sorted(artifacts.glob("*/artifacts"))
    assert f"{copy} would be removed\n" == call("cleanup", "t", "--trees", "--dry-run", check=0).words + "\n"
    assert copy.is_dir()
    cleaned = call_json("cleanup", "t", "--trees")
    assert (str(copy), [], [], 0, None) == tuple(cleaned[key] for key in ("tree", "removed", "kept", "freed_bytes", "decision"))
    assert (False, before) == (copy.exists(), sorted(artifacts.glob("*/artifacts")))
    assert "there is no copy or git worktree of it" == call("cleanup", "t", "--trees", check=0).words
    assert [1, 3] == call_json("cleanup", "t", "--trees", "--keep", "0")["removed"]


def test_cleanup_is_13_while_a_run_holds_the_loop(held: Path):
    assert 13 == call("cleanup", "t", "--keep", "0").code
    assert (held / ".jumar/loops/t/iterations/iteration-001/artifacts").is_dir()


def test_an_accepted_change_of_the_rules_holds_from_then_on(fresh_place: Path):
    config = write_loop(fresh_place, [0.6, 0.7])
    call("run", "--quiet", check=0)
    assert call_json("select", "t")["criteria"]["threshold"] is None
    config.write_text(config.read_text() + "\n[selection]\nthreshold = 65\n")
    call("run", "--quiet", "-n", "3", "--accept-changes", check=0)
    selected = call_json("select", "t")
    assert (65, True) == (selected["criteria"]["threshold"], selected["meets_threshold"])
    assert 65 == call_json("report", "t")["criteria"]["threshold"]


def test_a_loop_outside_of_any_root_is_applied_by_its_path(fresh_place: Path):
    dimensions: dict[str, float] = dict.fromkeys(DEFAULT_WEIGHTS, 0.8)
    with BestOutputTracker("alone", storage_path="mine") as tracker:
        for number in (1, 2):
            (fresh_place / "a.md").write_text(f"pass {number}\n")
            tracker.record_iteration(iteration_number=number, dimensions=dimensions, artifacts=["a.md"])
    call("select", "./mine", "--use", "1", "--reason", "first", check=0)
    document = call_json("apply", "./mine")
    assert (1, True, "jumar apply ./mine --undo") == (document["iteration"], document["applied"], document["undo"])
    assert "pass 1\n" == (fresh_place / "a.md").read_text()
    call("apply", "./mine", "--undo", check=0)
    assert "pass 2\n" == (fresh_place / "a.md").read_text()
    assert 0 == call("verify", "./mine").code
