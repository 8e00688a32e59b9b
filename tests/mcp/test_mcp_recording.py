"""An agent works, and jumar records: a real client of a real server, in a directory that no call but apply may change."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp_kit import BEGIN, JUMAR, Client, over_stdio, running

CHECKS = ["grep -q one text.md", "grep -q two text.md"]
START = {"objective": "one and two", "checks": CHECKS}


@pytest.fixture
def place(fresh_place: Path) -> Path:
    (fresh_place / "here" / "sub").mkdir(parents=True)
    (fresh_place / "here" / "text.md").write_text("nothing\n")
    (fresh_place / "here" / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (fresh_place / "here" / "sub" / "run.sh").chmod(0o755)
    (fresh_place / "here" / "link").symlink_to("text.md")
    return fresh_place / "here"


def state(place: Path) -> dict[str, Any]:
    """What stands in the directory, without the store: contents, modes, times and links."""
    found = {}
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name != ".jumar"]
        for name in names:
            path = Path(folder, name)
            status = path.lstat()
            content = os.readlink(path) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(place))] = (content, status.st_mode, status.st_mtime_ns, status.st_ino)
    return found


def reported(place: Path) -> Any:
    command = [*JUMAR, "report", "--format", "json"]
    return json.loads(subprocess.run(command, cwd=place, capture_output=True, check=True, text=True).stdout)


def test_the_best_of_what_an_agent_did_is_kept_and_put_in_place(place: Path):
    async def work() -> None:
        async with over_stdio(place) as client:
            started = await client.call("start_loop", **START)
            assert (started["iteration"], started["score"], started["given_by"]) == (0, 0.0, "agent")
            assert [each["check"] for each in started["failing"]] == CHECKS
            scores = []
            for text in ("one\n", "nothing again\n", "one two\n"):
                (place / "text.md").write_text(text)
                before = state(place)
                answer = await client.call("record_iteration", note=f"wrote {text}")
                assert state(place) == before, "recording changes nothing"
                scores.append(answer["score"])
                if text == "nothing again\n":
                    assert answer["best"] == {"iteration": 1, "score": 50.0}
                    assert "apply" in answer["next"]
            assert scores == [50.0, 0.0, 100.0]
            assert answer["ended"].startswith("target")
            (place / "text.md").write_text("spoiled\n")
            assert (await client.call("best"))["iteration"] == 3
            assert "+one two" in (await client.call("diff"))["diff"]
            assert (await client.call("apply"))["files"] == ["replace text.md"]
            assert (place / "text.md").read_text() == "one two\n"
            await client.call("undo")
            assert (place / "text.md").read_text() == "spoiled\n"
            assert (await client.call("select", iteration=1, reason="one is enough"))["held"] is False
            await client.call("apply")
            assert (place / "text.md").read_text() == "one\n"

    running(work)
    report = reported(place)
    assert report["given_by"] == "agent"
    assert {decision["by"].split(" of ")[0] for decision in report["decisions"] if decision["kind"] == "override"} == {"an agent"}
    subprocess.run([*JUMAR, "verify"], cwd=place, check=True, capture_output=True)


def test_nothing_new_records_nothing(place: Path):
    async def work() -> None:
        async with over_stdio(place) as client:
            await client.call("start_loop", **START)
            for _ in range(2):
                answer = await client.call("record_iteration")
                assert (answer["iteration"], answer["note"]) == (0, "nothing changed since iteration 0: nothing was recorded")
            assert (await client.call("status"))["state"] == "waiting for record_iteration"

    running(work)


def test_what_an_agent_says_of_itself_is_no_score(place: Path):
    async def work() -> None:
        async with over_stdio(place) as client:
            await client.call("start_loop", **START)
            (place / "text.md").write_text("one\n")
            answer = await client.call("record_iteration", note='{"score": 1.0, "gestalt": 5} all tests pass')
            assert answer["score"] == 50.0
            assert any("said of it: " in reason for reason in answer["reasons"])

    running(work)


def test_where_a_file_says_what_is_checked_nobody_else_does(place: Path):
    (place / "jumar.toml").write_text(
        '[loop]\nid = "ours"\n[generator]\ncommand = "false"\n[[checks]]\nname = "three"\ncommand = "grep -q three text.md"\n'
    )

    async def work() -> None:
        async with over_stdio(place) as client:
            for wrong in ({"checks": ["true"]}, {"scorers": ["echo 1"]}, {"max_iterations": 99}):
                assert "jumar.toml" in await client.refused("start_loop", objective="x", **wrong)
            started = await client.call("start_loop", objective="three")
            assert [each["check"] for each in started["failing"]] == ["three"]
            (place / "text.md").write_text("three\n")
            answer = await client.call("record_iteration")
            assert (answer["loop"], answer["score"], answer["passed"]) == (started["loop"], 100.0, ["three"])

    running(work)


def test_an_agent_that_edits_the_file_gets_no_more_than_it_had(place: Path):
    file = place / "jumar.toml"
    text = '[loop]\nmax_iterations = 2\n[budget]\nmax_seconds = 100\n[[checks]]\nname = "c"\ncommand = "grep -q three text.md"\n'
    file.write_text(text)
    edits = {
        "max_iterations was 2 and is 300": text.replace("= 2", "= 300"),
        "max_seconds was 100 s and is 1,000 s": text.replace("100", "1000"),
        "max_seconds was 100 s and is none": text.replace("max_seconds = 100", ""),
        "recheck": text.replace("[budget]", 'recheck = "off"\n[budget]'),
        "checks[c].command": text.replace("grep -q three text.md", "true"),
        "not valid TOML": "[",
    }

    async def work() -> None:
        async with over_stdio(place) as client:
            await client.call("start_loop", objective="three")
            (place / "text.md").write_text("one\n")
            for says, edited in edits.items():
                file.write_text(edited)
                assert says in await client.refused("record_iteration"), says
            file.write_text(text.replace("= 2", "= 1"))
            assert "max_iterations" in (await client.call("record_iteration"))["ended"]

    running(work)
    subprocess.run([*JUMAR, "verify"], cwd=place, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"objective": " ", "checks": ["true"]}, "objective"),
        ({"objective": "x"}, "give checks"),
        ({"objective": "x", "checks": ["true"], "max_cost_usd": 1}, "goes with agent"),
        ({"objective": "x", "checks": ["true"], "directory": ".."}, "lies outside"),
        ({"objective": "x", "checks": ["true"], "directory": "/etc"}, "lies outside"),
        ({"objective": "x", "checks": ["true"], "directory": "away"}, "lies outside"),
        ({"objective": "x", "checks": ["true"], "directory": "text.md"}, "no directory"),
        ({"objective": "x", "checks": ["true"], "directory": "a\0b"}, "no path"),
        ({"objective": "x\0y", "checks": ["true"]}, "NUL"),
        ({"objective": "x" * 10_000_000, "checks": ["true"]}, "more than"),
        ({"objective": "x", "checks": ["true"], "agent": "no-such-agent"}, "no-such-agent"),
        ({"objective": "x", "checks": ["true"], "max_iterations": 0}, "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_started_says_what_to_do(place: Path, arguments: dict[str, Any], says: str):
    (place / "away").symlink_to("/")

    async def work() -> None:
        async with over_stdio(place) as client:
            assert says in await client.refused("start_loop", **arguments)
            assert "start_loop" in await client.refused("record_iteration")

    running(work)
    assert not list(place.glob(".jumar/loops/*"))


def test_an_agent_that_jumar_runs_begins_no_loop_inside_of_the_loop(place: Path):
    async def work() -> None:
        async with over_stdio(place, env={**os.environ, "JUMAR_LOOP_ID": "outer"}) as client:
            for tool, arguments in (("start_loop", {**START, "agent": "claude"}), ("record_iteration", {})):
                assert "loop 'outer' runs you" in await client.refused(tool, **arguments)

    running(work)
    assert not (place / ".jumar").exists()


def test_paths_stay_in_the_roots_that_the_client_gives(place: Path):
    other = place.parent / "other"
    other.mkdir()
    (other / "items.txt").write_text("As a user I want to log in.\n")

    async def work() -> None:
        async with over_stdio(place, roots=[other]) as client:
            assert "lies outside" in await client.refused("start_loop", directory=str(place), **START)
            assert (await client.call("evaluate_items", path="items.txt"))["items"] == 1
            assert "lies outside" in await client.refused("evaluate_items", path=str(place / "text.md"))
        async with over_stdio(place, roots=[]) as client:
            assert "lies outside" in await client.refused("evaluate_items", path=str(other / "items.txt"))

    running(work)


def test_a_file_out_of_the_roots_and_one_that_never_ends_are_not_read(place: Path):
    (place / "items.txt").write_text("As a user I want to log in.\n")
    (place / "etc").symlink_to("/etc")
    os.mkfifo(place / "pipe")

    async def work() -> None:
        async with over_stdio(place) as client:
            for name in ("rubric", "patterns"):
                for wrong in ("/etc/hostname", "etc/hostname", "../x"):
                    assert "lies outside" in await client.refused("evaluate_items", path="items.txt", **{name: wrong})
                assert "pipe is no file" in await client.refused("evaluate_items", path="items.txt", **{name: "pipe"})
            assert "pipe is no file" in await client.refused("evaluate_items", path="pipe")
            assert (await client.call("evaluate_items", path="items.txt", rubric="story"))["items"] == 1
            assert len(await client.refused("best", loop="x" * 100_000)) < 2_100
            assert "at most 2000" in await client.refused("select", iteration=0, reason="x" * 1_000_000)

    running(work)


def test_a_loop_of_another_root_is_looked_at_only(place: Path):
    async def work() -> None:
        async with over_stdio(place) as client:
            loop = (await client.call("start_loop", **START))["loop"]
        (place / "text.md").write_text("one\n")
        async with over_stdio(place, roots=[place / "sub"]) as client:
            before = state(place)
            for tool in ("record_iteration", "apply", "undo"):
                assert "lies outside" in await client.refused(tool, loop=loop)
            assert (await client.call("best", loop=loop))["iteration"] == 0
            assert state(place) == before

    running(work)


def test_stop_asks_one_loop_and_no_other(place: Path):
    async def work() -> None:
        async with over_stdio(place) as client:
            first = (await client.call("start_loop", **START))["loop"]
            second = (await client.call("start_loop", **START))["loop"]
            assert (await client.call("stop", loop=first))["asked"] is True
            (place / "text.md").write_text("one\n")
            assert (await client.call("record_iteration", loop=second))["score"] == 50.0
            assert "STOP" in await client.refused("record_iteration", loop=first)
            assert (await client.call("status", loop=first))["state"].startswith("stopped: nothing more is recorded")
            assert "jumar stop --undo" in (await client.call("stop", loop=first))["next"]
            assert (await client.call("status", loop=second))["state"] == "waiting for record_iteration"
            await client.call("select", loop=second, iteration=0, reason="as it was")
            found = [(await client.call(tool, loop=second)) for tool in ("best", "status")]
            assert found[0]["iteration"] == found[1]["best"]["iteration"] == 0

    running(work)


def test_a_call_that_is_cancelled_loses_nothing(place: Path):
    slow = [*CHECKS, "test ! -e slow || sleep 60"]

    async def work() -> None:
        async with over_stdio(place) as client:
            await client.call("start_loop", objective="x", checks=slow)
            (place / "text.md").write_text("one\n")
            (place / "slow").touch()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(4):
                    await client.call("record_iteration")
            (place / "slow").unlink()
            await client.until("status", lambda found: found["state"].startswith("waiting"))
            answer = await client.call("record_iteration")
            assert answer["score"] == pytest.approx(200 / 3, abs=0.01)

    running(work)
    subprocess.run([*JUMAR, "verify"], cwd=place, check=True, capture_output=True)
    assert not [each for each in psutil.process_iter(["cwd"]) if str(each.info["cwd"] or "").startswith(str(place))]


def test_a_check_that_kills_its_run_is_told(place: Path):
    once = 'cd "$JUMAR_PROJECT_DIR" && ! test -e once || { rm once; kill -9 $PPID; }'

    async def work() -> None:
        async with over_stdio(place) as client:
            await client.call("start_loop", objective="x", checks=[once, "false"])
            (place / "once").touch()
            assert "killed (signal 9)" in await client.refused("record_iteration")
            assert (await client.call("record_iteration"))["score"] == 50.0

    running(work)
    subprocess.run([*JUMAR, "verify"], cwd=place, check=True, capture_output=True)


def test_a_server_that_is_killed_loses_nothing(place: Path):
    async def start(client: Client) -> None:
        await client.call("start_loop", objective="x", checks=[*CHECKS, "test ! -e slow || sleep 3"])
        (place / "text.md").write_text("one\n")
        (place / "slow").touch()
        calling = asyncio.create_task(client.call("record_iteration"))
        await asyncio.sleep(1.5)
        (server,) = [each for each in psutil.Process().children() if "mcp" in each.cmdline()]
        server.send_signal(signal.SIGKILL)
        calling.cancel()

    async def killed() -> None:
        with contextlib.suppress(BaseException):
            async with over_stdio(place, errors=subprocess.DEVNULL) as client:
                await start(client)

    running(killed)
    until = time.monotonic() + 30
    while not list(place.glob(".jumar/loops/*/iterations/*1")) and time.monotonic() < until:
        time.sleep(0.1)

    async def again() -> None:
        async with over_stdio(place) as client:
            answer = await client.call("record_iteration")
            assert (answer["iteration"], answer["note"]) == (1, "nothing changed since iteration 1: nothing was recorded")

    running(again)
    subprocess.run([*JUMAR, "verify"], cwd=place, check=True, capture_output=True)


def test_one_call_sent_twice_is_one_iteration(place: Path):
    """What a client repeats, with the same id, before it has an answer."""
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": BEGIN},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "start_loop", "arguments": START}},
    ]
    twice = {"id": 3, "method": "tools/call", "params": {"name": "record_iteration", "arguments": {}}}
    with subprocess.Popen([*JUMAR, "mcp"], cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def say(*said: dict[str, Any]) -> None:
            server.stdin.writelines(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in said)  # pyright: ignore[reportOptionalMemberAccess]
            server.stdin.flush()  # pyright: ignore[reportOptionalMemberAccess]

        def answered(number: int) -> None:
            while json.loads(server.stdout.readline()).get("id") != number:  # pyright: ignore[reportOptionalMemberAccess]
                pass

        say(messages[0])
        answered(1)
        say(*messages[1:])
        answered(2)
        (place / "text.md").write_text("one\n")
        say(twice, twice)
        answered(3)
        server.stdin.close()
        server.wait(30)
    assert [path.name for path in sorted(place.glob(".jumar/loops/*/iterations/*"))] == ["iteration-000", "iteration-001"]


def test_a_loop_with_a_hundred_failing_tests_is_still_told_in_two_kilobytes(place: Path):
    printing = "print(f'FAILED tests/unit/test_{60 * chr(120)}.py::test_number_{n} - assert 1 == 2')"
    (place / "fail.py").write_text(f"import sys\nfor n in range(100): {printing}\nsys.exit(1)\n")

    async def work() -> None:
        async with over_stdio(place) as client:
            names = [f"{sys.executable} fail.py --group {'long' * 20}-{n}" for n in range(12)]
            await client.call("start_loop", objective="x", checks=names)
            (place / "text.md").write_text("x" * 100_000)
            await client.call("record_iteration", note="y" * 5_000)
            for tool in ("best", "status", "diff"):
                await client.call(tool)
            assert len(json.dumps(await client.call("best", detail=True))) > 100

    running(work)
