"""The person's commands around the steps: setup, reset, on_stop; and the ports of a tree."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from steps_kit import context

from jumar.errors import ConfigError, JumarError
from jumar.loop.hooks import PORTS, Hook, Hooks, notify, port_of, reset_failure, set_up, tear_down


def hook(command: str | list[str], name: str = "setup", timeout: float = 30) -> Hook:
    return Hook(name=name, command=command, timeout=timeout)


def run_setup(hooks: Hooks, place: Path, tree: str = "main") -> None:
    set_up(hooks, loop=place / "loop", tree=tree, cwd=place, environment={"PATH": os.environ["PATH"], "JUMAR_PORT": "21000"})


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_setup_runs_in_the_tree_and_its_output_is_kept(fresh_place: Path) -> None:
    run_setup(Hooks(setup=hook("echo on $JUMAR_PORT; pwd > here")), fresh_place, "c02")

    assert f"{fresh_place}\n" == (fresh_place / "here").read_text()
    assert "on 21000\n" == (fresh_place / "loop/logs/setup-c02.log").read_text()
    assert None is Hooks().setup


@pytest.mark.parametrize(
    ("command", "why"), [("echo no room; exit 3", "exit code 3: no room"), (["/nonexistent/x"], "nonexistent")]
)
def test_a_setup_that_fails_says_why_and_where_its_output_is(fresh_place: Path, command: str | list[str], why: str) -> None:
    with pytest.raises(JumarError, match=r"setup-main\.log") as failed:
        run_setup(Hooks(setup=hook(command)), fresh_place)

    assert why in str(failed.value)
    assert "nothing was paid" in str(failed.value)
    assert 1 == failed.value.exit_code


def test_a_setup_that_hangs_is_ended(fresh_place: Path) -> None:
    with pytest.raises(JumarError, match=r"\[loop\] setup: timed out after 0.3 s"):
        run_setup(Hooks(setup=hook("sleep 600 & echo $! > pid; wait", timeout=0.3)), fresh_place)

    assert not alive(int((fresh_place / "pid").read_text()))


def test_a_server_that_setup_starts_stays_until_it_is_torn_down(fresh_place: Path) -> None:
    hooks = Hooks(setup=hook("setsid sleep 600 >/dev/null 2>&1 & echo $! >> pids"))
    run_setup(hooks, fresh_place)
    run_setup(hooks, fresh_place, "c01")
    first, other = map(int, (fresh_place / "pids").read_text().split())
    assert (True, True) == (alive(first), alive(other))
    run_setup(hooks, fresh_place)  # as after a run that was killed: what it left is ended before another is started
    second = int((fresh_place / "pids").read_text().split()[-1])

    assert (False, True, True) == (alive(first), alive(other), alive(second))
    for tree in ("main", "c01"):
        tear_down(hooks, loop=fresh_place / "loop", tree=tree)
    assert (False, False) == (alive(other), alive(second))


def test_a_reset_that_fails_is_run_once_more(fresh_place: Path) -> None:
    step = context(fresh_place)
    once = hook("echo x >> runs; test $(wc -l < runs) -gt 1", name="reset")
    assert None is reset_failure(Hooks(reset=once), step, "score", tries=2)
    assert 2 == len((fresh_place / "runs").read_text().split())
    assert (step.log_directory / "reset-score.log").exists()
    assert "[loop] reset: exit code 1: gone" == reset_failure(
        Hooks(reset=hook("echo gone; exit 1", "reset")), step, "score", tries=2
    )
    assert None is reset_failure(Hooks(), step, "score", tries=2)


def test_a_reset_that_is_stopped_is_no_failure(fresh_place: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert None is reset_failure(Hooks(reset=hook("sleep 600", "reset"), stop=stop), context(fresh_place), "generate", tries=2)


def test_the_end_is_told_on_standard_input_and_in_a_file(fresh_place: Path) -> None:
    document = {"loop_id": "t", "stop_reason": "target", "quality_score": 91.5, "output": "/x\udce9"}
    tell = hook('cat > in.json; cp "$JUMAR_OUTCOME_FILE" file.json; echo "$JUMAR_LOOP_ID"', "on_stop")
    failed = notify(tell, document, loop=fresh_place / "loop", cwd=fresh_place, allowed=())

    assert None is failed
    assert 91.5 == json.loads((fresh_place / "in.json").read_text())["quality_score"]
    assert (fresh_place / "in.json").read_bytes() == (fresh_place / "file.json").read_bytes()
    assert "t\n" == (fresh_place / "loop/logs/on_stop.log").read_text()


@pytest.mark.parametrize(
    ("command", "why"), [("cat >&2; exit 9", "exit code 9"), ("sleep 600", "timed out"), ("/none", "exit code 127")]
)
def test_a_notification_that_fails_is_a_sentence(fresh_place: Path, command: str, why: str) -> None:
    failed = notify(hook(command, "on_stop", 0.5), {"loop_id": "t"}, loop=fresh_place / "l", cwd=fresh_place, allowed=())

    assert failed is not None
    assert failed.startswith("[loop] on_stop: ")
    assert why in failed


def test_a_notification_sees_no_secret_that_the_steps_do_not_see(fresh_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAT_TOKEN", "planted-4711-secret")
    for allowed, seen in (((), ""), (("CHAT_TOKEN",), "planted-4711-secret")):
        tell = hook('printf %s "$CHAT_TOKEN" > seen', "on_stop")
        assert None is notify(tell, {"loop_id": "t"}, loop=fresh_place / "l", cwd=fresh_place, allowed=allowed)
        assert seen == (fresh_place / "seen").read_text()


def test_ports_are_the_same_each_time_and_those_of_slots_never_meet(fresh_place: Path) -> None:
    loops = [fresh_place / f"loop{number}" for number in range(300)]
    firsts = [port_of(loop, None) for loop in loops]
    slots = [port_of(loops[0], slot) for slot in (None, *range(1, 65))]

    assert firsts == [port_of(loop, None) for loop in loops]
    assert all(20_000 <= port and port + PORTS <= 32_768 for port in (*firsts, *slots))
    assert 65 * PORTS == len({port + offset for port in slots for offset in range(PORTS)})
    assert 200 < len(set(firsts))


def test_a_command_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"\[loop\] reset: the command is empty"):
        hook(" ", "reset")
