"""HTTP for who knows the token, several clients at once, loops that are handed over, and what the tools promise."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from mcp_kit import BEGIN, JUMAR, Served, over_http, over_stdio, running, serving_http

from jumar.errors import NotFoundError
from jumar.mcp.places import Places
from jumar.mcp.server import fitted

CHECK = ["grep -q done text.md"]
LOOKS = {"best", "status", "diff", "evaluate_items", "choose_k"}
REPLACES = {"apply", "undo"}


@pytest.fixture
def place(fresh_place: Path) -> Path:
    (fresh_place / "here").mkdir()
    (fresh_place / "here" / "text.md").write_text("nothing\n")
    return fresh_place / "here"


def asked(served: Served, **headers: str) -> int:
    """Ask to begin a session; return the status."""
    document = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    given = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    request = urllib.request.Request(served.address, json.dumps(document).encode(), given)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_only_who_knows_the_token_comes_in(place: Path):
    with serving_http(place) as served:
        right = {"authorization": f"Bearer {served.token}"}
        assert asked(served) == 401
        assert asked(served, authorization="Bearer wrong") == 401
        assert asked(served, authorization=f"Basic {served.token}") == 401
        assert asked(served, **right, host="evil.example") == 421
        assert asked(served, **right, origin="http://evil.example") == 403
        assert asked(served, **right) not in {401, 403, 421}


def test_a_program_of_a_loop_does_not_decide_through_a_persons_server(place: Path):
    asking = (
        "import sys, urllib.request, urllib.error\n"
        "request = urllib.request.Request(sys.argv[1], b'{}', {'Authorization': 'Bearer ' + sys.argv[2]}, method='POST')\n"
        "try:\n    urllib.request.urlopen(request)\n"
        "except urllib.error.HTTPError as error:\n    print(error.code, error.read().decode())\n"
    )
    with serving_http(place) as served:
        said = []
        for more in ({}, {"JUMAR_LOOP_ID": "t", "JUMAR_ITERATION": "2"}):
            command = [sys.executable, "-c", asking, served.address, served.token]
            done = subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True, check=True)
            said.append(done.stdout)
    assert not said[0].startswith("403")
    assert said[1].startswith("403 A program of loop t asked for this")


def test_a_person_who_tries_it_in_a_terminal_ends_it_with_ctrl_c(place: Path):
    with subprocess.Popen([*JUMAR, "mcp"], cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": BEGIN}) + "\n")
        server.stdin.flush()
        assert server.stdout.readline()
        server.send_signal(signal.SIGINT)
        assert server.wait(10) == -signal.SIGINT


def test_two_agents_in_one_repository_do_not_disturb_each_other(place: Path):
    async def agent(served: Served, name: str) -> tuple[str, list[int]]:
        (place / name).mkdir()
        async with over_http(served) as client:
            started = await client.call("start_loop", objective=name, checks=[f"grep -q {name} text.md"], directory=name)
            numbers = []
            for text in ("nothing yet", f"{name} is done"):
                (place / name / "text.md").write_text(text)
                numbers.append((await client.call("record_iteration"))["iteration"])
            best = await client.call("best")
            assert (best["loop"], best["iteration"], best["score"]) == (started["loop"], 2, 100.0)
            return started["loop"], numbers

    async def work() -> None:
        with serving_http(place) as served:
            made = await asyncio.gather(agent(served, "red"), agent(served, "blue"))
        assert {numbers == [1, 2] for _, numbers in made} == {True}
        assert len({loop for loop, _ in made}) == 2

    running(work)


def test_a_loop_is_handed_over_and_looked_at(place: Path):
    program = (
        "import os; n = int(os.environ['JUMAR_ITERATION']); open('text.md', 'w').write(('nothing', 'done', 'spoiled')[n - 1])"
    )
    agent = f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}; : $JUMAR_PROMPT_FILE"

    async def work() -> None:
        async with over_stdio(place) as client:
            started = await client.call(
                "start_loop", objective="x", checks=CHECK, scorers=["echo 0.5"], agent=agent, max_iterations=3
            )
            assert "jumar's own agent" in await client.refused("record_iteration")
            found = await client.until("status", lambda found: found["ended"] is not None)
            assert (found["loop"], found["iterations"], found["ended"].split(":")[0]) == (started["loop"], 3, "max_iterations")
            assert (await client.call("best"))["iteration"] == 2

    running(work)
    assert (place / "text.md").read_text() == "done"


def test_a_loop_in_the_background_outlives_its_server_and_is_stopped_by_another(place: Path):
    async def begin() -> None:
        async with over_stdio(place) as client:
            agent = "sleep 0.3; date +%N > text.md; : $JUMAR_PROMPT_FILE"
            await client.call("start_loop", objective="x", checks=CHECK, agent=agent, max_iterations=500)

    async def end() -> None:
        async with over_stdio(place) as client:
            assert (await client.call("status"))["state"] == "running"
            assert (await client.call("stop"))["asked"] is True
            found = await client.until("status", lambda found: found["state"] != "running")
            assert found["state"] == "interrupted"

    running(begin)
    running(end)


def test_every_tool_says_what_it_may_do_and_takes_typed_arguments(place: Path):
    async def work() -> None:
        async with over_stdio(place) as client:
            tools = {tool.name: tool for tool in (await client.session.list_tools()).tools}
            assert len(tools) == 11
            for name, tool in tools.items():
                assert tool.annotations is not None
                assert tool.annotations.read_only_hint is (name in LOOKS)
                assert bool(tool.annotations.destructive_hint) is (name in REPLACES)
                assert len(tool.description or "") > 20
                assert all("type" in each or "anyOf" in each for each in tool.input_schema["properties"].values())
            prompts = {prompt.name for prompt in (await client.session.list_prompts()).prompts}
            assert prompts == {"improve-until", "explain-selection"}
            assert "greater than or equal" in await client.refused("choose_k", scores=[0.5], max_k=0)
            assert (await client.call("choose_k", scores=[0.9, 0.88, 0.2], max_k=3))["kept"] == [0, 1]
            assert "score" in await client.refused("choose_k", scores=[0.9], strategy="scored")

    running(work)


def test_the_report_and_the_changes_are_resources(place: Path):
    async def work() -> None:
        async with over_stdio(place) as client:
            loop = (await client.call("start_loop", objective="x", checks=CHECK))["loop"]
            (place / "text.md").write_text("done\n")
            await client.call("record_iteration")
            assert json.loads(await client.read("jumar://loops")) == [loop]
            assert "given_by: agent" in await client.read(f"jumar://loops/{loop}/report")
            assert "+done" in await client.read(f"jumar://loops/{loop}/iterations/1/diff")
            for wrong in (
                "jumar://loops/..%2F..%2Fetc/report",
                "jumar://loops/none/report",
                f"jumar://loops/{loop}/iterations/9/diff",
            ):
                with pytest.raises(Exception, match=r"no loop|no iteration|not found|Unknown|iteration 9|Resource"):
                    await client.read(wrong)

    running(work)


def test_a_client_that_cannot_be_told_from_others_names_its_loop(place: Path):
    places = Places(place, place / ".jumar")
    for name in ("one", "two"):
        (place / ".jumar" / "loops" / name).mkdir(parents=True)
        (place / ".jumar" / "loops" / name / "loop.json").write_text("{}")
        places.started(name, f"session of {name}")
        places.started(name, None)
    assert places.find(None, "session of one").name == "one"
    assert places.find("two", "session of one").name == "two"
    with pytest.raises(NotFoundError, match="say which loop: one, two"):
        places.find(None, None)


@pytest.mark.parametrize("most", [400, 2_000])
def test_an_answer_is_cut_until_it_fits(most: int):
    document = {
        "text": "ä" * 5_000,
        "output": "begin " + "x" * 5_000 + " end",
        "rows": [{"name": "y" * 300, "n": n} for n in range(100)],
        "number": 1.5,
        "none": None,
    }
    short = fitted(document, most)
    assert len(json.dumps(short, ensure_ascii=False, separators=(",", ":")).encode()) <= most
    assert short["number"] == 1.5
    assert short["output"].endswith("end")
    assert fitted(short, most) == short


def test_the_scores_of_an_imported_loop_are_as_given_in_both_parts_of_an_answer(fresh_place: Path):
    (fresh_place / "runs.csv").write_text("run,latency_ms\n1,1500.5\n2,900\n3,1100\n")
    imported = ["import", "table", "runs.csv", "--metric", "latency_ms", "--direction", "min", "--quiet"]
    subprocess.run([*JUMAR, *imported], cwd=fresh_place, check=True, capture_output=True)

    async def work() -> None:
        async with over_stdio(fresh_place) as client:
            best = await client.call("best")
            assert (best["score"], best["last"]["score"]) == (900.0, 1100.0)
            status = await client.call("status", detail=True)
            assert [row["score"] for row in status["rows"]] == [1500.5, 900.0, 1100.0]

    asyncio.run(work())
