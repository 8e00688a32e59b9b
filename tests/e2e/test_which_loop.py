"""Which loop and which iteration are meant, in every command, and how a loop that was stopped is resumed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import call, call_json
from loops import write_loop

from jumar.cli.home import show_home

AGENT = ("--", "sh", "-c", 'echo $JUMAR_ITERATION > out.txt; test -z "$STOP_AT" || echo x > .jumar/loops/here-1/STOP')


@pytest.fixture
def place(fresh_place: Path) -> Path:
    (fresh_place / "out.txt").write_text("0\n")
    return fresh_place


def run(*options: object) -> str:
    return json.loads(call("run", "--json", "-n", 2, *options, "--check", "grep -q 2 out.txt", *AGENT).out)["loop_id"]


def test_a_number_that_is_no_loops_name_is_an_iteration_of_the_newest_loop(place: Path) -> None:
    assert "here-1" == run()
    one = call("show", 1, check=0).out
    for words in (("show", "-i", 1), ("show", "here-1", 1), ("show", "here-1", "--iteration", 1)):
        assert one == call(*words, check=0).out
    assert "iteration 1 of here-1" in one
    assert {1} == {call_json("logs", *words)["iteration"] for words in ((1,), ("-i", 1), ("here-1", 1), ("here-1", "-i", 1))}
    assert "0 → 1" in call("diff", 1, "--stat", check=0).out
    assert "are two iterations" in call("show", "here-1", 1, "-i", 2, check=2).err
    assert "has no iteration 7" in call("show", 7, check=2).err


def test_a_loop_that_is_called_so_comes_first(place: Path) -> None:
    run()
    (place / "out.txt").write_text("0\n")
    run("--new", "--id", "1")
    assert "1" == call_json("show", 1)["loop_id"]
    assert ["iteration 1 of 1"] == re.findall(r"iteration 1 of \S+", call("show", 1, 1, check=0).out)


@pytest.mark.parametrize(
    "words", [("apply", 1), ("apply", "--iteration", 1), ("apply", "-i", 1), ("apply", "here-1", 1), ("select", 1), ("watch", 1)]
)
def test_a_command_without_an_iteration_says_which_one_takes_it(place: Path, words: tuple[object, ...]) -> None:
    run()
    said = " ".join(call(*words).err.split())
    assert "iteration 1 is selected with `jumar select --use 1 --reason '…'` and put in place by `jumar apply`" in said


def test_a_loop_in_which_nothing_began_is_not_the_newest_where_there_is_another(place: Path) -> None:
    command = ("run", "--check", "no-such-program here", *AGENT)
    assert "cannot be judged" in call(*command).err
    assert "here-1" == call_json("status")["loops"][0]["loop_id"]
    assert "no iteration is recorded yet" in call("show", check=0).out, "it is the only one"
    assert "here-1" == run(), "its name is free again"
    assert "cannot be judged" in call(*command).err
    for words in (("show",), ("watch",), ("diff",)):
        assert "here-1" == call_json(*words)["loop_id"]


def test_an_interrupted_loop_of_a_command_line_is_resumed_by_its_name_everywhere(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STOP_AT", "1")
    assert "here-1" == run("--env", "STOP_AT")
    (place / ".jumar/loops/here-1/STOP").unlink()
    assert "interrupted: jumar run --id here-1 resumes it" in call("watch", "--once", check=0).out
    assert "interrupted (jumar run --id here-1 resumes it)" in call("status", "here-1", check=0).out
    assert "jumar run --id here-1 resumes it" == call_json("status", "here-1")["detail"]
    show_home()
    assert "  jumar run --id here-1" in capsys.readouterr().out


def test_a_configurations_loop_is_resumed_by_jumar_run(fresh_place: Path) -> None:
    write_loop(fresh_place, [0.6, 0.7])
    agent = fresh_place / "agent.py"
    agent.write_text(agent.read_text() + "open('.jumar/loops/t/STOP', 'w').write('x')\n")
    call("run", "-q", check=130)
    (fresh_place / ".jumar/loops/t/STOP").unlink()
    assert "jumar run resumes it" == call_json("status", "t")["detail"]


def test_loops_are_listed_in_the_order_of_their_numbers_and_with_the_same_best(place: Path) -> None:
    for number in (10, 2, 1):
        write_loop(place, [0.9, 0.6])
        call("run", "-q", "--id", f"mine-{number}", check=0)
    call("select", "mine-2", "--use", 2, "--reason", "reads better", check=0)
    names = ["mine-1", "mine-2", "mine-10"]
    assert (
        names
        == [one["loop_id"] for one in call_json("list")["loops"]]
        == [one["loop_id"] for one in call_json("status")["loops"]]
    )
    cells = {
        command: next(re.split(r"  +", line.strip()) for line in call(command, check=0).out.splitlines() if "mine-2" in line)
        for command in ("list", "status")
    }
    assert ["90 (it 1)", "2"] == cells["list"][2:4] == cells["status"][4:6]


def test_of_a_loop_that_was_done_at_its_start_there_is_nothing_to_apply(
    fresh_place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("run", "-q", "--check", "true", "--", "true", check=0)
    show_home()
    typed = re.findall(r"^  jumar (\S+)", capsys.readouterr().out, re.MULTILINE)
    assert ["show", "report", "--help"] == typed


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_the_first_screen_breaks_no_line(
    fresh_place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    show_home()
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= columns or line.startswith("  jumar ") for line in lines)
    assert any(line.strip() == "on your repository" for line in lines)


def test_the_columns_of_watch_never_touch(fresh_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    tests = "echo 1..100; i=1; while [ $i -le 100 ]; do echo ok $i - t$i; i=$((i+1)); done"
    write_loop(fresh_place, [0.0, 1.0], check=tests, start="1.0")
    call("run", "-q")
    frame = call("watch", "--once", check=0).out
    assert re.search(r"^ +1 +0\.0 +−100\.0 +100/100 ✓ ", frame, re.MULTILINE)
