"""``jumar run`` as a person uses it: real processes in real directories."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from loops import calls, deaf, jumar, jumar_json, write_loop


def test_the_best_is_kept_not_the_last(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.72, 0.853, 0.831], start=0.612)

    result = jumar_json(tmp_path, "run")

    assert {
        "loop_id": "t",
        "selected_iteration": 2,
        "quality_score": 85.3,
        "final_iteration": 3,
        "final_quality": 83.1,
        "degradation_detected": True,
        "meets_threshold": None,
        "stop_reason": "max_iterations",
        "verified": True,
        "runner_up": 3,
        "margin": 2.2,
    }.items() <= result.items()
    assert {"iterations": 3, "tokens": None, "cost_usd": None}.items() <= result["spend"].items()
    assert "pass 2\n" == (tmp_path / "text.md").read_text()
    assert "pass 2\n" == (Path(result["output"]) / "text.md").read_text()

    jumar(tmp_path, "apply", "t", "--undo", check=0)
    assert "pass 3\n" == (tmp_path / "text.md").read_text()


def test_without_configuration(tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("0")
    command = "n=$(cat n.txt); echo $((n+1)) > n.txt"

    result = jumar_json(tmp_path, "run", "-n", "3", "--check", 'test "$(cat n.txt)" = 2', "--", "sh", "-c", command)

    assert 2 == result["selected_iteration"]
    assert 100.0 == result["quality_score"]
    assert result["verified"] is True
    assert "2\n" == (tmp_path / "n.txt").read_text()


def test_json_after_the_separator_belongs_to_the_agent(tmp_path: Path) -> None:
    done = jumar(tmp_path, "run", "-n", "1", "--check", "test -e seen", "--", "sh", "-c", "echo $0 > seen", "--json", check=0)

    assert "--json\n" == (tmp_path / "seen").read_text()
    assert "at iteration 1 (all checks pass), already in place" in done.stdout


@pytest.mark.parametrize(("threshold", "code"), [(85, 0), (86, 10)])
def test_gate(tmp_path: Path, threshold: int, code: int) -> None:
    write_loop(tmp_path, [0.85, 0.7], extra=f"[selection]\nthreshold = {threshold}\n")

    result = jumar_json(tmp_path, "run", check=code)

    assert (code == 0) == result["meets_threshold"]


def test_an_unverified_best_does_not_pass_the_gate(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.9], check="false", extra="[selection]\nthreshold = 70\n")

    result = jumar_json(tmp_path, "run", check=10)

    assert "threshold, verification" == result["fallback"]
    assert result["verified"] is False


def test_a_time_limit_exits_11(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6, 0.6], extra="[stop]\nmax_seconds = 0.0001\n[selection]\nthreshold = 90\n")

    result = jumar_json(tmp_path, "run", check=11)

    assert "max_seconds" == result["stop_reason"]
    assert 0 == result["spend"]["iterations"], "scoring the start took longer than that already"
    assert 0 < result["spend"]["seconds"]


def test_a_finished_loop_pays_nothing_and_exits_2(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6, 0.7])
    jumar_json(tmp_path, "run")

    again = jumar_json(tmp_path, "run", check=2)

    assert [1, 2] == calls(tmp_path)
    assert 2 == again["selected_iteration"]
    assert again["already_finished"] is True

    longer = jumar_json(tmp_path, "run", "-n", "3")
    assert [1, 2, 3] == calls(tmp_path)
    assert 3 == longer["spend"]["iterations"]

    new = jumar_json(tmp_path, "run", "--new")
    assert "t-2" == new["loop_id"]
    assert [1, 2, 3, 1, 2] == calls(tmp_path)


def test_a_failed_pass_is_recorded_never_chosen_and_does_not_poison_the_next(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6, "fail", 0.7])

    result = jumar_json(tmp_path, "run")
    shown = jumar_json(tmp_path, "show", "t")

    statuses = [(record["iteration_number"], record["status"]) for record in shown["iterations"]]
    assert [(0, "ok"), (1, "ok"), (2, "generator_failed"), (3, "ok")] == statuses
    assert shown["iterations"][2]["quality_score"] is None
    assert 1 == shown["iterations"][3]["parent"]
    assert 3 == result["selected_iteration"]


def test_consecutive_failures_stop_the_loop(tmp_path: Path) -> None:
    write_loop(tmp_path, ["fail"] * 9)

    result = jumar_json(tmp_path, "run", check=1)

    assert "consecutive_failures" == result["stop_reason"]
    assert [1, 2, 3] == calls(tmp_path)
    assert 0 == result["selected_iteration"]
    assert "0.5" == (tmp_path / "score.txt").read_text()


def test_a_hanging_generator_is_ended(tmp_path: Path) -> None:
    write_loop(tmp_path, ["hang", 0.8], generator="timeout = 0.5")

    result = jumar_json(tmp_path, "run")
    shown = jumar_json(tmp_path, "show", "t")

    assert "generator_timeout" == shown["iterations"][1]["status"]
    assert 2 == result["selected_iteration"]


def test_an_unusable_score_is_invalid_and_never_best(tmp_path: Path) -> None:
    printed = ["nan", "inf", "1.5", "-0.1", "many", ""]
    write_loop(tmp_path, [*printed, 0.6], extra="[stop]\nconsecutive_failures = 9\n")

    result = jumar_json(tmp_path, "run")
    shown = jumar_json(tmp_path, "show", "t")

    statuses = [(record["quality_score"], record["status"]) for record in shown["iterations"][1:]]
    assert [(None, "invalid_score")] * len(printed) + [(60.0, "ok")] == statuses
    assert 7 == result["selected_iteration"]


def test_nothing_evaluated_exits_12(tmp_path: Path) -> None:
    write_loop(tmp_path, ["nan"], start="nan")

    result = jumar_json(tmp_path, "run", "--allow-broken-start", check=12)

    assert result["selected_iteration"] is None


def test_never_worse_than_the_start(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.4, 0.3], start=0.9)

    result = jumar_json(tmp_path, "run")

    assert 0 == result["selected_iteration"]
    assert "0.9" == (tmp_path / "score.txt").read_text()


def test_a_lower_score_that_alone_verified_is_flagged(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.4, 0.3], start=0.9, check='test "$(cat score.txt)" = 0.4')

    result = jumar_json(tmp_path, "run", check=10)

    assert 1 == result["selected_iteration"]
    assert result["below_start"] is True


def test_a_perfect_start_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")

    words = ("run", "-n", "1", "--score", "echo 1", "--", "sh", "-c", "echo b > a.txt")
    done = jumar(tmp_path, *words, check=0)

    assert "add a check that is red now" in " ".join(done.stdout.split())
    assert "b\n" == (tmp_path / "a.txt").read_text()  # no worse than the start, so the work stays


def test_in_a_copy_the_work_directory_is_left_alone(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.8, 0.7], loop='isolation = "copy"')

    result = jumar_json(tmp_path, "run")

    assert "pass 0\n" == (tmp_path / "text.md").read_text()
    assert not (tmp_path / "calls.log").exists()
    assert "pass 1\n" == (Path(result["output"]) / "text.md").read_text()
    jumar(tmp_path, "apply", "t", check=0)
    assert "pass 1\n" == (tmp_path / "text.md").read_text()


def start(directory: Path, *arguments: str, ignoring: bool = False) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "jumar.cli.entry", *arguments]
    return subprocess.Popen(
        deaf(command) if ignoring else command,
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


def runs(pid: int) -> bool:
    """Whether the process is there and no zombie (nobody need have reaped an orphan)."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


SLOW = """
import os, sys, time
n = os.environ["JUMAR_ITERATION"]
open("calls.log", "a").write(n + "\\n")
open("text.md", "w").write(f"pass {n}\\n")
open("score.txt", "w").write(str(0.5 + int(n) / 10))
open("started", "w").write(n)
time.sleep(1.5)
"""


WAITING = SLOW.replace("time.sleep(1.5)", "while not os.path.exists('go'):\n    time.sleep(0.02)")


def test_ctrl_c_once_finishes_the_step_and_the_next_run_goes_on(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6, 0.7, 0.8])
    (tmp_path / "agent.py").write_text(SLOW)
    process = start(tmp_path, "run", "--json")
    wait_for(tmp_path / "started")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)

    assert 130 == process.returncode
    assert "interrupted" == json.loads(output)["stop_reason"]
    assert [1] == calls(tmp_path)
    assert 2 == len(jumar_json(tmp_path, "show", "t")["iterations"])

    result = jumar_json(tmp_path, "run")
    assert result["resumed"] is True
    assert [1, 2, 3] == calls(tmp_path)
    assert 3 == result["selected_iteration"]


def test_ctrl_c_twice_stops_now_and_charges_the_attempt(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6, 0.7])
    (tmp_path / "agent.py").write_text(SLOW.replace("1.5", "600"))
    process = start(tmp_path, "run", "--json")
    wait_for(tmp_path / "started")
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)

    assert 130 == process.returncode
    assert 1 == json.loads(output)["spend"]["iterations"]
    assert 1 == len(jumar_json(tmp_path, "show", "t")["iterations"])


def test_sigterm_exits_143_and_leaves_nothing_running(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6])
    (tmp_path / "agent.py").write_text("import os, time; open('started', 'w').write(str(os.getpid())); time.sleep(600)")
    process = start(tmp_path, "run")
    wait_for(tmp_path / "started")
    time.sleep(0.1)
    agent = int((tmp_path / "started").read_text())
    process.terminate()
    process.communicate(timeout=30)

    assert 143 == process.returncode
    assert not runs(agent)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_was_ignored_when_it_started_ends_nothing(tmp_path: Path, number: int) -> None:
    write_loop(tmp_path, [0.6, 0.7])
    (tmp_path / "agent.py").write_text(WAITING)
    process = start(tmp_path, "run", "--json", ignoring=True)
    wait_for(tmp_path / "started")
    for _ in range(2):
        process.send_signal(number)
        time.sleep(0.1)
    (tmp_path / "go").touch()
    output, err = process.communicate(timeout=30)

    assert 0 == process.returncode, err
    assert ("max_iterations", [1, 2]) == (json.loads(output)["stop_reason"], calls(tmp_path))


def test_two_runs_at_once(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6])
    (tmp_path / "agent.py").write_text(WAITING)
    first = start(tmp_path, "run")
    wait_for(tmp_path / "started")

    second = jumar(tmp_path, "run", check=13)
    third = jumar(tmp_path, "run", "-n", "1", "--check", "true", "--", "true", check=13)

    assert str(first.pid) in second.stderr
    assert str(first.pid) in third.stderr
    (tmp_path / "go").touch()
    first.communicate(timeout=60)
    assert 0 == first.returncode


def test_killed_while_generating(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6, 0.7])
    (tmp_path / "agent.py").write_text(SLOW)
    process = start(tmp_path, "run")
    wait_for(tmp_path / "started")
    process.kill()
    process.communicate(timeout=30)
    (tmp_path / "started").unlink()
    (tmp_path / "text.md").write_text("half an iteration")

    result = jumar_json(tmp_path, "run")
    aside = list((tmp_path / ".jumar/loops/t/set-aside").rglob("text.md"))

    assert ["half an iteration"] == [path.read_text() for path in aside]

    assert 3 == result["spend"]["iterations"]
    assert [1, 1, 2] == calls(tmp_path)
    assert 2 == result["selected_iteration"]
    jumar(tmp_path, "verify", "t", check=0)


def test_what_a_killed_run_left_running_is_ended(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6])
    (tmp_path / "agent.py").write_text("import os, time; open('started', 'w').write(str(os.getpid())); time.sleep(600)")
    process = start(tmp_path, "run")
    wait_for(tmp_path / "started")
    time.sleep(0.1)
    agent = int((tmp_path / "started").read_text())
    process.kill()
    process.communicate(timeout=30)
    (tmp_path / "agent.py").write_text("pass")

    jumar_json(tmp_path, "run")

    assert not runs(agent)


def test_killed_while_scoring_is_scored_not_generated_again(tmp_path: Path) -> None:
    slow_scorer = "[[scorers]]\ndimension = 'slow'\ncommand = 'test $JUMAR_ITERATION = 0 || touch scoring; sleep 1; echo 1'\n"
    write_loop(tmp_path, [0.6, 0.7], extra=slow_scorer)
    process = start(tmp_path, "run")
    wait_for(tmp_path / "scoring")
    process.kill()
    process.communicate(timeout=30)

    result = jumar_json(tmp_path, "run")

    assert [1, 2] == calls(tmp_path)
    assert 2 == result["spend"]["iterations"]


def test_a_changed_configuration_is_refused_unless_accepted(tmp_path: Path) -> None:
    config = write_loop(tmp_path, [0.6, 0.7, 0.8])
    (tmp_path / "agent.py").write_text(SLOW)
    process = start(tmp_path, "run")
    wait_for(tmp_path / "started")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    config.write_text(config.read_text().replace("make it better", "make it shorter"))

    refused = jumar(tmp_path, "run", check=2)

    assert "make it better" in refused.stderr
    assert "--accept-changes" in refused.stderr
    jumar(tmp_path, "run", "--accept-changes", check=0)
    jumar(tmp_path, "run", check=2)


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        ("[loop]\nmax_iteratons = 3\n", "max_iterations"),
        ("[stop]\ntarget = 'high'\n", "stop.target"),
        ("[stop]\n\nplateau = 1\n", "jumar.toml:3: stop.plateau: a window of 1 would end every loop at once; give 2 or more"),
        ("[stop]\noscillation = {delta = 2, window = 1}\n", "jumar.toml:2: stop.oscillation: a window of 1 would"),
        ("[loop]\nmax_iterations = 0\n", "loop.max_iterations"),
        ("[weights]\nqualty = 1\n", "quality"),
        ("[weights]\nquality = -1\n", "quality"),
        ("[weights]\nquality = nan\n", "quality"),
        ("[selection]\nthreshold = 101\n", "selection.threshold"),
        ("[loop]\nmax_iterations = 3\n[stop]\nmax_iterations = 3\n", "one limit"),
        ("= 3", "TOML"),
    ],
)
def test_a_wrong_configuration_names_the_place_and_the_way_out(tmp_path: Path, broken: str, named: str) -> None:
    parts = "[generator]\ncommand = 'true'\n[[scorers]]\ndimension = 'quality'\ncommand = 'echo 1'\n"
    (tmp_path / "jumar.toml").write_text(broken + parts)

    done = jumar(tmp_path, "run", check=2)

    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".jumar" / "loops").exists() or not list((tmp_path / ".jumar" / "loops").iterdir())


def test_escape_sequences_never_reach_the_terminal(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6])
    (tmp_path / "agent.py").write_text("print('\\x1b]0;owned\\x07'); raise SystemExit('\\x1b[31mred')")

    done = jumar(tmp_path, "run")
    shown = jumar(tmp_path, "show", "t")

    assert "\x1b" not in done.stdout + done.stderr + shown.stdout + shown.stderr


def test_a_refused_new_loop_leaves_nothing(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6])
    (tmp_path / "agent.py").write_text(WAITING)
    first = start(tmp_path, "run")
    wait_for(tmp_path / "started")

    jumar(tmp_path, "run", "--new", check=13)

    assert ["t"] == [path.name for path in (tmp_path / ".jumar" / "loops").iterdir()]
    (tmp_path / "go").touch()
    first.communicate(timeout=60)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["run", "-n", "1", "--check", "true", "--", "no-such-agent"], "no-such-agent"),
        (["run", "-n", "1", "agent", "-p", "x"], "put -- before"),
        (["run", "--check", "", "--", "true"], "--check is empty"),
    ],
)
def test_slips_are_met_before_anything_is_made(tmp_path: Path, arguments: list[str], hint: str) -> None:
    done = jumar(tmp_path, *arguments, check=2)

    assert hint in done.stderr
    assert not (tmp_path / ".jumar" / "loops").exists() or not list((tmp_path / ".jumar" / "loops").iterdir())


def test_a_loop_that_failed_goes_on_once_its_configuration_is_mended(tmp_path: Path) -> None:
    config = write_loop(tmp_path, ["fail"] * 3)
    jumar_json(tmp_path, "run", check=1)
    (tmp_path / "agent.py").write_text(SLOW.replace("1.5", "0"))
    config.write_text(config.read_text().replace("make it better", "make it best").replace("iterations = 3", "iterations = 5"))

    result = jumar_json(tmp_path, "run", "--accept-changes")

    assert 5 == result["selected_iteration"]


def test_a_stop_rule_may_change_freely_and_the_way_on_names_it(tmp_path: Path) -> None:
    config = write_loop(tmp_path, [0.6, 0.6, 0.6, 0.6], extra="[stop]\nplateau = 2\n")
    assert "plateau" == jumar_json(tmp_path, "run", str(config))["stop_reason"]
    ended = jumar(tmp_path, "run", str(config), check=2)
    assert "this one resumes without the [stop] rule that ended it" in " ".join(ended.stdout.split())

    config.write_text(config.read_text().replace("plateau = 2", "target = 99"))
    assert "max_iterations" == jumar_json(tmp_path, "run", str(config))["stop_reason"]
    assert "Ended: 4 of 4 iterations done." in jumar(tmp_path, "show", "t", check=0).stdout


def test_a_loop_that_is_named_is_that_one_and_not_its_newest(tmp_path: Path) -> None:
    config = write_loop(tmp_path, [0.6])
    for options in ((), ("--new",)):
        jumar(tmp_path, "run", str(config), *options, check=0)
    named = jumar_json(tmp_path, "run", str(config), "--id", "t", "-n", "2")
    newest = jumar_json(tmp_path, "run", str(config), "-n", "2")

    assert ("t", "t-2") == (named["loop_id"], newest["loop_id"])
