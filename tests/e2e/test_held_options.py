"""An option that a loop was begun with holds for it: the command that is proposed at an interruption resumes it as it stands."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from commands import Called, call, call_json

from jumar.app.run.given import LIMITS
from jumar.cli.loop.run import run_command

USED = """echo '{"tokens_used": 5}' > $JUMAR_USAGE_FILE; echo $JUMAR_ITERATION >> made.txt"""
STOPPING = f"{USED}; test -e ../on || {{ touch ../on; kill -INT {os.getpid()}; }}; sleep 0.3"
CONFIG = f"""
[loop]
objective = "Make it better."
max_iterations = 3

[generator]
command = {json.dumps(STOPPING)}

[[checks]]
name = "made"
command = "test $(cat made.txt | wc -l) -ge 9"
"""
GIVEN = {
    "agent": STOPPING,
    "objective": "Make it worse.",
    "max_iterations": "2",
    "max_cost": "3",
    "reserve_cost": "0.5",
    "max_tokens": "300",
    "max_seconds": "100",
    "checks": "test -e made.txt",
    "scores": "size=wc -l < made.txt | awk '{ print $1 / 20 }'",
    "include": "*.txt",
    "exclude": "*.log",
    "target": "90",
    "keep_going": None,
    "threshold": "50",
    "mode": "highest_quality",
    "isolation": "copy",
    "candidates": "2",
    "workers": "1",
    "protect": "tests/**",
    "continue_from": "previous",
    "timeout": "60",
    "environment": "SLOW",
    "given_by": "agent",
}
OF_ONE_RUN = {"estimate", "loop_id", "new", "resume", "no_input", "steps", "allow_broken_start", "accept_size", "accept_changes"}
AROUND = {"root", "as_json", "quiet", "config"}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a configuration whose generator presses Ctrl-C once, in its first iteration."""
    here = tmp_path / "calc"
    (here / "tests").mkdir(parents=True)
    (here / "tests/test_it.py").touch()
    (here / "made.txt").touch()
    (here / "jumar.toml").write_text(CONFIG)
    monkeypatch.chdir(here)
    return here


def proposed(ended: Called) -> list[str]:
    """Return the words of the command that the end of a run proposes first."""
    found = re.search(r"^Next +jumar (run.*?)(?:  |$)", ended.out, re.MULTILINE)
    assert found is not None, ended
    return shlex.split(found[1])


def spelled(option: str) -> str:
    return next(each.opts[0] for each in run_command.params if each.name == option)


def given(option: str) -> list[str]:
    value = GIVEN[option]
    reserve = ["--reserve-cost", "0.1"] if option == "max_cost" else []
    return [spelled(option), *([] if value is None else [value]), *reserve]


def test_every_option_of_run_is_known_here() -> None:
    assert {each.name for each in run_command.params} == GIVEN.keys() | OF_ONE_RUN | AROUND


@pytest.mark.parametrize("option", GIVEN)
def test_what_is_proposed_resumes_with_the_option_the_loop_began_with(option: str, place: Path) -> None:
    cut = call("run", *given(option), check=130)
    shown = call_json("show")

    assert ["run"] == proposed(cut)
    again = call("run")

    assert again.code in {0, 10, 11}, again
    most = 2 if option == "max_iterations" else 3
    assert f"up to {most} iterations" in again.out
    after = call_json("show")
    assert len(after["iterations"]) > len(shown["iterations"])
    held = option not in LIMITS.values()
    assert not held or f"still in force: {spelled(option) if spelled(option) != '--max-iterations' else '-n'}" in again.words


def test_an_option_given_anew_holds_from_then_on_and_so_does_an_edit_of_the_file(place: Path) -> None:
    call("run", "--workers", 1, "-n", 2, check=130)
    (place.parent / "on").unlink()
    again = call("run", "-n", 3, check=130)
    assert "up to 3 iterations" in again.out
    (place / "jumar.toml").write_text(CONFIG.replace("max_iterations = 3", "max_iterations = 5"))
    told = call("run").words
    assert "still in force: --workers 1" in told, "without the -n: the file was edited since"
    assert "up to 5 iterations" in told


def test_a_number_of_iterations_that_was_reached_is_used_up(place: Path) -> None:
    (place.parent / "on").touch()
    assert 2 == call_json("run", "-n", 2, check=10)["final_iteration"]
    assert 3 == call_json("run", check=10)["final_iteration"]


def test_target_and_keep_going_take_each_others_place(place: Path) -> None:
    call("run", "--keep-going", check=130)
    assert "keep-going" not in call("run", "--target", "30").out


def test_another_value_of_what_changes_scores_is_refused_and_one_that_is_accepted_holds(place: Path) -> None:
    call("run", "--env", "SLOW", check=130)
    refused = call("run", "--env", "FAST", check=2)
    assert "loop.env: ['SLOW'] → ['FAST']" in refused.err
    (place.parent / "on").unlink()
    call("run", "--env", "FAST", "--accept-changes", check=130)
    assert "still in force: --env FAST" in call("run").words


def test_an_agent_that_a_file_leaves_open_is_that_of_the_beginning(place: Path) -> None:
    (place / "jumar.toml").write_text(re.sub(r"\[generator\]\n.*\n", "", CONFIG))
    assert "generator" in call("run", check=2).err
    call("run", "--agent", STOPPING, check=130)
    assert "still in force: --agent" in call("run").words
    assert "generator" in call("run", "--new", check=2).err


def test_an_option_whose_value_is_a_secret_is_asked_for_again(place: Path) -> None:
    secret = "sk-ant-api03-" + "a1B2" * 20
    call("run", "--agent", f"{STOPPING} # {secret}", check=130)
    refused = call("run", check=2)
    assert "give --agent again" in refused.err
    assert secret not in (place / ".jumar/loops/calc/loop.json").read_text()


def test_a_loop_named_by_its_id_keeps_what_it_was_given_at_a_resume(place: Path) -> None:
    (place / "jumar.toml").unlink()
    command: Sequence[str] = ("--check", "test -e ../never", "--", "sh", "-c", STOPPING)
    cut = call("run", "-n", 2, *command, check=130)
    words = proposed(cut)
    (place.parent / "on").unlink()
    assert proposed(call(*words, "-n", 3, check=130)) == words
    assert "up to 3 iterations" in call(*words).out


@pytest.mark.parametrize("words", [["--env", "SLOW"], []])
def test_while_it_runs_the_command_says_that_it_is_locked(place: Path, words: list[str]) -> None:
    (place.parent / "on").touch()
    (place / "jumar.toml").write_text(CONFIG.replace("sleep 0.3", "touch ../began; sleep 20"))
    with subprocess.Popen(
        [sys.executable, "-m", "jumar.cli.entry", "run", "--env", "SLOW", "-q"], stdin=subprocess.DEVNULL
    ) as running:
        try:
            while not (place.parent / "began").exists():
                assert running.poll() is None
                time.sleep(0.05)
            assert "configuration differs" not in call("run", *words, "--env", "OTHER", check=13).err
            call("run", *words, check=13)
        finally:
            running.terminate()
