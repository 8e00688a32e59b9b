"""Where the result of a loop in place is, told by looking at the directory; and the way back to what was there before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import call, call_json

AGENT = """
n=$JUMAR_ITERATION
echo $n > out.txt
echo $n >> new-$n.txt
rm -f gone.txt
test $n = "$STOP_AT" && echo stop > .jumar/loops/t/STOP
true
"""


@pytest.fixture
def place(fresh_place: Path) -> Path:
    (fresh_place / "agent.sh").write_text(AGENT)
    (fresh_place / "out.txt").write_text("0\n")
    (fresh_place / "gone.txt").write_text("from the start\n")
    return fresh_place


def run(last: int, *, passes_at: int = 2, check: int | None = None) -> str:
    """Run a loop whose iteration ``passes_at`` is the best; the others are as bad as the start."""
    command = ("--check", f"grep -q {passes_at} out.txt", "--keep-going", "--id", "t", "--env", "STOP_AT", "--", "sh", "agent.sh")
    return call("run", "-n", last, *command, check=check).out


def tree(place: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(place.glob("*.txt"))}


def told(text: str) -> str:
    """Return what was printed in one line, from the result on where there is one."""
    return " ".join(text[text.find("Result") if "Result" in text else 0 :].split())


START = {"gone.txt": "from the start\n", "out.txt": "0\n"}
BEST = {"new-1.txt": "1\n", "new-2.txt": "2\n", "out.txt": "2\n"}


def test_after_the_usual_end_one_undo_puts_the_start_back(place: Path) -> None:
    said = told(run(2, check=0))
    assert "at iteration 2 (all checks pass), already in place" in said
    assert "jumar apply --undo put the start back" in said
    assert tree(place) == BEST

    planned = told(call("apply", "--undo", "--dry-run", check=0).out)
    assert "putting the start back in" in planned
    assert tree(place) == BEST
    undone = told(call("apply", "--undo", check=0).out)
    assert "is what it was before the loop began" in undone
    assert "next jumar apply applies the selected iteration again" in undone
    assert tree(place) == START
    assert "not in the directory any more" in told(call("show", check=0).out)
    assert "the start is back already" in told(call("apply", "--undo", check=2).err)

    call("apply", check=0)
    assert tree(place) == BEST
    call("apply", "--undo", check=0)
    assert tree(place) == START


def test_what_was_edited_since_is_not_lost(place: Path) -> None:
    run(2, check=0)
    (place / "out.txt").write_text("mine\n")
    (place / "also-mine.txt").write_text("x\n")
    (place / "new-1.txt").unlink()
    before = tree(place)

    refused = told(call("apply", "--undo", check=2).err)
    assert "1 path changed since the loop left it: out.txt" in refused
    assert before == tree(place)
    assert "note left alone: also-mine.txt (no iteration has it)" in told(call("apply", "--undo", "--dry-run", check=0).out)
    document = call_json("apply", "--undo", "--force")
    assert {**START, "also-mine.txt": "x\n"} == tree(place)
    assert {"out.txt": "mine\n"} == tree(Path(document["set_aside"]) / "artifacts")


@pytest.mark.parametrize("use", [1, 0])
def test_what_was_selected_since_is_not_applied_yet_and_gone_when_it_was(place: Path, use: int) -> None:
    run(2, check=0)
    call("select", "--use", use, "--reason", "I say so", check=0)
    said = told(call("show", check=0).out)
    assert "not applied yet" in said
    assert f"jumar apply put {'iteration 1' if use else 'the start'} into this directory" in said
    assert "not applied yet" in told(run(2, check=2))
    call("apply", check=0)
    (place / "out.txt").write_text("mine\n")
    assert "not in the directory any more" in told(call("show", check=0).out)


def test_each_undo_goes_one_apply_back_and_the_last_to_the_start(place: Path) -> None:
    run(3, check=0)  # the third is worse, so that the second is applied
    third = {**BEST, "new-3.txt": "3\n", "out.txt": "3\n"}
    assert tree(place) == BEST
    assert "jumar apply --undo put back what iteration 3 left" in told(call("show", check=0).out)
    call("apply", "--undo", check=0)
    assert tree(place) == third
    call("apply", "--undo", check=0)
    assert tree(place) == START


def test_an_apply_from_before_the_loop_was_resumed_is_not_what_is_taken_back(place: Path) -> None:
    run(3, check=0)
    run(4, check=0)
    run(4, passes_at=2)
    assert tree(place) == BEST
    again = told(call("show", check=0).out)
    assert re.search(r"applied here|already in place", again)
    for _ in range(2):
        call("apply", "--undo", check=0)
    assert tree(place) == START


def test_a_loop_that_worked_elsewhere_has_nothing_to_take_back(place: Path) -> None:
    call("run", "-n", 1, "--isolation", "copy", "--check", "grep -q 1 out.txt", "--id", "t", "--", "sh", "agent.sh", check=0)
    assert tree(place) == START
    said = told(call("show", check=0).out)
    assert "not applied ·" in said
    assert "--undo" not in said
    assert "there is no apply to take back" in told(call("apply", "--undo", check=2).err)


def test_where_it_is_agrees_with_what_apply_would_do(place: Path) -> None:
    said = run(2, check=0)
    for change, words, planned in (
        ("nothing", "already in place", "holds iteration 2 already"),
        ("reset", "not in the directory any more", "applying iteration 2"),
        ("back", "already in place", "holds iteration 2 already"),
    ):
        if change != "nothing":
            (place / "out.txt").write_text({"reset": "0\n", "back": "2\n"}[change])
        said = told(call("show", check=0).out)
        again = told(run(2, check=2))
        assert words in said
        assert words in again
        assert planned in told(call("apply", "--dry-run", check=0).out)
        assert ("jumar apply put iteration 2 into this directory" in said) == (change == "reset")


@pytest.mark.parametrize(("passes_at", "where"), [(2, "already in place"), (1, "not applied yet")])
def test_after_an_interruption_the_directory_is_looked_at_too(
    place: Path, monkeypatch: pytest.MonkeyPatch, passes_at: int, where: str
) -> None:
    monkeypatch.setenv("STOP_AT", "2")
    said = told(run(4, passes_at=passes_at, check=130))
    assert f"at iteration {passes_at} so far (all checks pass), {where}" in said
    (place / ".jumar/loops/t/STOP").unlink()
    assert f"at iteration {passes_at} so far (all checks pass), {where}" in told(call("show", check=0).out)


def test_a_best_that_is_followed_by_iterations_that_change_nothing_is_in_place(place: Path) -> None:
    (place / "agent.sh").write_text("test $JUMAR_ITERATION = 1 && echo 1 > out.txt; true\n")
    said = told(run(3, passes_at=1, check=0))
    assert "at iteration 1 (all checks pass), already in place" in said
    assert "at iteration 1 (all checks pass), already in place" in told(call("show", check=0).out)
