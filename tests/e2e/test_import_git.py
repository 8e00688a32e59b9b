"""``jumar import git``: each commit is checked where the person's tree is not, and what is cut off goes on."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import call

from jumar.app.imports.git import checked_out, read_range

CHECK = "sh check.sh"
ENVIRONMENT = {
    **os.environ,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout.strip()


def commit(name: str, value: str) -> str:
    Path("value").write_text(value)
    git("add", "-A")
    git("commit", "-q", "-m", name)
    return git("rev-parse", "HEAD")


@pytest.fixture
def branch(fresh_place: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three commits on ``main`` after its first: good, better by a score, broken; with a merge of one commit between."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(fresh_place.parent / "cache"))
    git("init", "-q", "-b", "main", ".")
    Path("check.sh").write_text('test "$(cat value)" -ge 5\n')
    Path("score.sh").write_text('echo "0.$(cat value)"\n')
    hook = Path(".git/hooks/post-checkout")
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {fresh_place.parent}/hooked\n")
    hook.chmod(0o755)
    base = commit("start", "1")
    git("tag", "base")
    made = [base, commit("good", "5"), commit("better", "9")]
    git("checkout", "-q", "-b", "side", "base")
    Path("beside").write_text("x")
    git("add", "-A")
    git("commit", "-q", "-m", "beside")
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-edit", "side")
    made += [git("rev-parse", "HEAD"), commit("broken", "not a number")]
    (fresh_place.parent / "hooked").unlink(missing_ok=True)
    return made


def imported(*options: str) -> Any:
    return call("import", "git", *options, "--json", check=0).document


def test_every_commit_is_an_iteration_and_the_working_directory_is_not_touched(branch: list[str], fresh_place: Path) -> None:
    Path("value").write_text("7")
    Path("unsaved").write_text("mine")
    before = git("status", "--porcelain"), git("rev-parse", "HEAD")
    git("config", "core.fsmonitor", f"touch {fresh_place.parent}/watched; false")
    found = imported("base..HEAD", "--check", CHECK, "--score", "worth=sh score.sh")
    git("config", "--unset", "core.fsmonitor")
    assert (found["iterations"], found["best_iteration"], found["best_score"], found["last_score"]) == (5, 2, 90, None)
    assert (found["best_commit"], found["last_commit"], found["skipped_rows"]) == (branch[2], branch[4], 1)
    assert (git("status", "--porcelain"), git("rev-parse", "HEAD")) == (before[0].replace("?? .jumar/\n", ""), before[1])
    assert (Path("value").read_text(), Path("unsaved").read_text()) == ("7", "mine")
    assert not (fresh_place.parent / "hooked").exists()
    assert not (fresh_place.parent / "watched").exists(), "no program of the repository's own settings runs"
    assert git("worktree", "list").count("\n") == 0  # its own worktree is gone
    call("verify", check=0)
    shown = call("show", "2", check=0).out
    assert branch[2][:12] in shown


def test_git_has_what_was_imported_so_nothing_is_applied_or_resumed(branch: list[str], fresh_place: Path) -> None:
    imported("base..HEAD", "--check", CHECK)
    way = f"git switch --detach {branch[2][:12]}"
    assert way in call("select", "--use", "2", "--reason", "as an example", check=0).out
    assert f"iteration 2 is `{way}`" in " ".join(call("apply", check=2).err.split())
    shown = call("show", check=0).out
    assert "jumar diff" in shown
    assert not [word for word in ("put iteration", "jumar run --id") if word in shown]


def test_nobody_is_told_to_protect_the_tests_of_commits_that_are_made(branch: list[str], fresh_place: Path) -> None:
    told = call("import", "git", "base..HEAD", "--check", "pytest -q || true", check=0)
    assert "weakening" not in told.out + told.err


def test_the_same_range_again_runs_nothing(branch: list[str], fresh_place: Path) -> None:
    first = imported("base..HEAD", "--check", CHECK)
    assert (first["best_iteration"], first["best_score"]) == (1, 100)
    Path("check.sh").write_text("exit 1\n")
    assert imported("base..HEAD", "--check", CHECK) == first
    assert imported("base..HEAD~1", "--check", CHECK)["loop_id"] != first["loop_id"]  # another range is another loop
    out = call("import", "git", "base..HEAD", "--check", CHECK, check=0).out
    assert f"iteration 1: {branch[1][:7]}" in out
    assert "not followed: 1 commit" in out


def test_a_check_that_takes_git_away_from_its_tree_hurts_nobody(branch: list[str], fresh_place: Path) -> None:
    Path("value").write_text("not committed")
    found = call("import", "git", "base..main", "--check", f"rm -rf .git; {CHECK}", "--json", check=0).document
    assert (found["iterations"], found["best_iteration"]) == (5, 1)
    assert Path("value").read_text() == "not committed"
    assert git("rev-parse", "HEAD") == branch[-1]


def test_imports_of_one_range_with_other_checks_or_another_root_do_not_meet(branch: list[str], fresh_place: Path) -> None:
    del branch
    found = read_range("base..main")
    kinds = [
        (fresh_place, {"checks": ["true"]}),
        (fresh_place, {"checks": ["false"]}),
        (fresh_place / "other", {"checks": ["true"]}),
    ]
    with contextlib.ExitStack() as opened:
        trees = [opened.enter_context(checked_out(found, *kind)) for kind in kinds]
        assert len(set(trees)) == len(kinds)
        with checked_out(found, *kinds[0]) as again:
            assert again == trees[0]
        assert [tree.exists() for tree in trees] == [False, True, True]
    assert git("worktree", "list").count("\n") == 0


def test_what_cannot_go_on_says_so_each_time(branch: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumar.app.imports.git._CHECKOUT", "exit 1")
    for _ in range(2):
        refused = call("import", "git", "base..main", "--check", CHECK, "--json", check=2)
        assert "not every commit could be checked: `jumar show" in refused.document["error"]["message"]


def test_killed_in_the_middle_the_same_command_goes_on(branch: list[str], fresh_place: Path) -> None:
    slow = f"echo ran >> {fresh_place.parent}/ran; sleep 0.7; {CHECK}"
    command = [sys.executable, "-m", "jumar.cli.entry", "import", "git", "base..HEAD", "--check", slow, "-q"]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while len(list(fresh_place.glob(".jumar/loops/*/iterations/*"))) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = len(list(fresh_place.glob(".jumar/loops/*/iterations/*")))
    assert 2 <= done < 5
    if done == 2:  # and the worktree lost meanwhile, as after a restart of the machine
        shutil.rmtree(fresh_place.parent / "cache")
    found = imported("base..HEAD", "--check", slow)
    assert (found["iterations"], found["best_iteration"]) == (5, 1)
    runs = (fresh_place.parent / "ran").read_text().count("ran")
    assert runs <= 5 + 2  # the one that was cut off, and the recheck at the end
    assert call("verify", check=0).code == 0
    print(f"killed after {done} of 5 iterations; {runs} checks ran")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["main", "--check", "true"], "no range of commits"),
        (["nope..HEAD", "--check", "true"], "no commit called nope"),
        (["HEAD..HEAD", "--check", "true"], "holds no commits"),
        (["base..HEAD"], "give --check CMD, or --score CMD"),
        (["--check", "true", "--", "--upload-pack=x..HEAD"], "no commit called --upload-pack=x"),
    ],
)
def test_a_range_that_is_none_is_refused(branch: list[str], options: list[str], why: str) -> None:
    assert why in " ".join(call("import", "git", *options, check=2).err.split())
    assert not Path(".jumar").exists()


def test_outside_of_a_repository_it_is_refused(fresh_place: Path) -> None:
    assert "is in no git repository" in call("import", "git", "a..b", "--check", "true", check=2).err


def test_branches_without_a_common_commit_are_refused(branch: list[str]) -> None:
    git("checkout", "-q", "--orphan", "other")
    git("commit", "-q", "-m", "alone")
    assert "no commit in common" in call("import", "git", "main..other", "--check", "true", check=2).err
