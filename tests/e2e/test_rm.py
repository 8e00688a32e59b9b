"""``jumar rm``: what goes, what is asked, and that a kill leaves the loop or nothing that a command stumbles over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import call, call_json, record
from dying import Killed, changing_calls, dying, not_waiting
from loops import calls, jumar, jumar_json, started_on_a_terminal, write_loop

from jumar.app.removal import look_at, remove_loop
from jumar.errors import NotFoundError
from jumar.loop.store.layout import list_loops, tidy_removed
from jumar.loop.store.loop_store import LoopStore


def asked(place: Path, answer: bytes, *words: str) -> tuple[int, str]:
    """Run ``jumar rm WORDS`` on a terminal and answer its question; return the code and what was on the screen."""
    process, terminal = started_on_a_terminal(place, "rm", *words)
    screen = b""
    try:
        while b"[y/N]" not in screen and process.poll() is None:
            screen += os.read(terminal, 4096)
        os.write(terminal, answer)
        while True:
            screen += os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return process.wait(30), screen.decode()
    finally:
        os.close(terminal)


def test_it_says_what_goes_and_asks(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.9, 0.6])
    jumar(tmp_path, "run", check=0)
    code, screen = asked(tmp_path, b"n\n", "t")
    assert 0 == code
    assert "loop t: 2 iterations, " in screen
    assert "iteration 1 is applied in " in " ".join(screen.split())
    assert "nothing was removed" in screen
    assert ["t"] == [loop["loop_id"] for loop in jumar_json(tmp_path, "list")["loops"]]
    code, screen = asked(tmp_path, b"y\n", "t")
    assert 0 == code
    assert "removed   loop t: 2 iterations, " in screen
    assert [[], []] == [list((tmp_path / ".jumar/loops").iterdir()), list((tmp_path / ".jumar/locks").glob("t"))]
    assert "0.9" == (tmp_path / "score.txt").read_text(), "the working directory stays"
    assert "t" == jumar_json(tmp_path, "run")["loop_id"]


EDITED = "edited by hand\n"


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """A finished loop in place of which iteration 1 was applied over a file that was edited after the loop."""
    write_loop(tmp_path, [0.9, 0.6])
    jumar(tmp_path, "run", check=0)
    (tmp_path / "text.md").write_text(EDITED)
    (tmp_path / "notes.md").write_text("mine")
    jumar(tmp_path, "apply", check=0)
    return tmp_path


def test_what_only_the_loop_still_has_is_named_and_a_selection_that_is_not_applied_is_told(edited: Path) -> None:
    _, screen = asked(edited, b"n\n", "t")
    told = " ".join(screen.split())
    assert "what no iteration has, and your directory has no more: undo/" in told
    assert "/artifacts/text.md goes too" in told
    assert "which is selected" not in told
    assert "notes" not in told
    jumar(edited, "select", "--use", "2", "--reason", "x", check=0)
    told = " ".join(asked(edited, b"y\n", "t")[1].split())
    assert "iteration 2, which is selected, is not in " in told
    assert ": jumar apply first" in told
    assert [] == list((edited / ".jumar").glob("quarantine/*")), "whoever was asked let it go"


def test_unasked_a_copy_of_what_only_the_loop_has_stays(edited: Path) -> None:
    jumar(edited, "select", "--use", "0", "--reason", "x", check=0)
    told = " ".join(jumar(edited, "rm", "t", "-y", check=0).stdout.split())
    (kept,) = (edited / ".jumar/quarantine").iterdir()
    assert [EDITED] == [path.read_text() for path in kept.rglob("*") if path.is_file()]
    assert f"kept {kept.relative_to(edited)} has what no iteration has" in told
    assert "note the start, which is selected, was not in " in told


def test_what_is_back_in_the_directory_or_in_an_iteration_is_not_kept(edited: Path) -> None:
    (edited / "text.md").write_text(EDITED)
    removed = jumar_json(edited, "rm", "t", "-y")
    assert (1, [], None) == (removed["unapplied"], removed["only_here"], removed["kept"])
    assert not (edited / ".jumar/quarantine").exists()


def test_without_a_terminal_it_wants_a_yes_and_a_whole_name(fresh_place: Path) -> None:
    record([0.5], loop="calc-12")
    assert "--yes" in call("rm", "calc-12", check=2).err
    assert "'calc-12' would" not in call("rm", "calc-1", "-y", check=2).err
    assert "did you mean 'calc-12'" in call("rm", "ca", "-y", check=2).err
    assert "LOOP" in call("rm", check=2).err
    assert "no directory" in call("rm", "./elsewhere", "-y", check=2).err
    (fresh_place / ".jumar/loops/link").symlink_to("calc-12")
    assert "is a link" in call("rm", "link", "-y", check=2).err
    (fresh_place / ".jumar/loops/link").unlink()
    shutil.copytree(".jumar/loops/calc-12", "mine")
    assert "delete that directory yourself" in call("rm", "./mine", "-y", check=2).err
    removed = call_json("rm", "calc-12", "-y")
    assert ("calc-12", 1, [], []) == tuple(removed[key] for key in ("loop_id", "iterations", "trees", "refs"))
    assert removed["bytes"] > 500
    assert () == list_loops(Path(".jumar"))


@pytest.mark.parametrize("broken", ["{", None])
def test_a_damaged_loop_goes_too(broken: str | None) -> None:
    record([0.5])
    path = Path(".jumar/loops/t/loop.json")
    path.unlink() if broken is None else path.write_text(broken)
    assert 1 == call_json("rm", "t", "-y")["iterations"]
    assert not path.parent.exists()


def test_one_that_runs_is_refused_and_left_alone(tmp_path: Path) -> None:
    write_loop(tmp_path, ["hang"], loop="isolation = 'copy'")
    process = subprocess.Popen([sys.executable, "-m", "jumar.cli.entry", "run", "-q"], cwd=tmp_path)
    try:
        deadline = time.monotonic() + 30
        while not calls(tmp_path / ".jumar/work/t"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert "is being written by process" in jumar(tmp_path, "rm", "t", "-y", check=13).stderr
        assert calls(tmp_path / ".jumar/work/t")
    finally:
        process.terminate()
        process.wait(30)
    code, screen = asked(tmp_path, b"y\n", "t")
    assert (0, True) == (code, "it has not ended" in screen)
    assert [] == list((tmp_path / ".jumar/work").iterdir())


def test_its_worktrees_go_and_what_was_committed_in_them_is_named(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6, 0.7], loop="isolation = 'worktree'\napply = 'never'")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")
    agent = tmp_path / "agent.py"
    agent.write_text(agent.read_text() + f"\nimport subprocess\nsubprocess.run({[*git, 'commit', '-qam', 'x']!r})\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    jumar(tmp_path, "run", check=0)
    removed = jumar_json(tmp_path, "rm", "t", "-y")
    assert [str(tmp_path / ".jumar/work/t")] == removed["trees"]
    (ref,) = removed["refs"]
    listed = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname)", "refs/jumar"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ref == listed.stdout.strip()
    trees = subprocess.run(["git", "worktree", "list"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert 1 == len(trees.stdout.splitlines())
    assert [] == list((tmp_path / ".jumar/work").iterdir())


def test_killed_anywhere_the_loop_is_whole_or_gone(tmp_path: Path) -> None:
    record([0.5, 0.6])
    root, kept = Path(".jumar"), tmp_path / "kept"
    (root / "work/t").mkdir(parents=True)
    (root / "work/t/file").touch()
    shutil.copytree(root, kept)

    def removal() -> None:
        remove_loop(look_at(root / "loops/t"))

    def again() -> None:
        shutil.rmtree(root)
        shutil.copytree(kept, root)

    with not_waiting():
        count = changing_calls(removal)
        assert () == list_loops(root)
        outcomes: set[bool] = set()
        for at in range(1, count + 1):
            for way in ("killed before", "killed after"):
                again()
                with pytest.raises(Killed), dying(at, way):
                    removal()
                there = list_loops(root) == ("t",)
                outcomes.add(there)
                assert {"ok": True} == {key: value for key, value in call_json("verify").items() if key == "ok"}
                assert there == (root / "loops/t").exists()
                tidy_removed(root)
                assert [root / "loops/t"] * there == list((root / "loops").iterdir())
                if there:
                    removal()
                assert not any((root / "work").iterdir())
    assert {True, False} == outcomes


def test_a_run_tidies_what_a_killed_removal_left(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6])
    left = tmp_path / ".jumar/loops/.removed-0123456789ab/attempts"
    left.mkdir(parents=True)
    jumar(tmp_path, "run", check=0)
    assert ["t"] == [path.name for path in (tmp_path / ".jumar/loops").iterdir()]


def test_who_opened_it_before_writes_nothing_any_more() -> None:
    record([0.5])
    store = LoopStore.open(".jumar/loops/t")
    call("rm", "t", "-y", check=0)
    with pytest.raises(NotFoundError, match="was removed"), store.lock():
        pass
    assert [] == list(Path(".jumar/loops").iterdir())
