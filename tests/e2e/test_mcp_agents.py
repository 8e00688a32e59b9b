"""The published coding agents call the MCP server: it is found, its tools are called, and its answers reach the model."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from model_server import Call, Reply
from real_agents import REAL_AGENTS, called, converse, on_disk

pytestmark = pytest.mark.real_agent

SERVER = [sys.executable, "-P", "-m", "jumar.cli.entry", "mcp"]
STATES = ("half of it\n", "whole\n", "spoiled\n")


@pytest.fixture
def place() -> Generator[Path]:
    with on_disk() as directory:
        (directory / "here").mkdir()
        (directory / "here" / "text.md").write_text("nothing\n")
        yield directory / "here"


def claude(place: Path) -> list[str]:
    configuration = place.parent / "mcp.json"
    configuration.write_text(json.dumps({"mcpServers": {"jumar": {"command": SERVER[0], "args": SERVER[1:]}}}))
    return [
        *("claude", "-p", "make it whole", "--output-format", "json", "--mcp-config", str(configuration), "--strict-mcp-config"),
        *("--allowedTools", "mcp__jumar,Read,Write"),
    ]


def codex(_place: Path) -> list[str]:
    server = {
        "command": SERVER[0],
        "args": SERVER[1:],
        "default_tools_approval_mode": "approve",
        "required": True,
    }  # it does not wait for others
    words = [word for key, value in server.items() for word in ("-c", f"mcp_servers.jumar.{key}={json.dumps(value)}")]
    return ["codex", "exec", "--json", "--sandbox", "workspace-write", "--skip-git-repo-check", *words, "make it whole"]


COMMANDS = {"claude": claude, "codex": codex}


def scripted(name: str, place: Path) -> list[Reply]:
    """An agent that begins a loop, changes the file three times, the last time for the worse, and has the best put back."""
    checks = [f"grep -q {word} text.md" for word in ("whole", "o")]
    calls = [Call("mcp__jumar__start_loop", {"objective": "whole", "checks": checks, "scorers": ["echo 0.5"]})]
    if name == "claude":
        calls.append(Call("Read", {"file_path": str(place / "text.md")}))
    for text in STATES:
        if name == "claude":
            calls.append(Call("Write", {"file_path": str(place / "text.md"), "content": text}))
        else:
            calls.append(Call("exec_command", {"cmd": f"printf %s {shlex.quote(text)} > text.md", "login": False}))
        calls.append(Call("mcp__jumar__record_iteration", {"note": text.strip()}))
    return called(*calls, Call("mcp__jumar__apply"))


@pytest.mark.parametrize("name", COMMANDS)
def test_an_agent_keeps_its_best_through_the_server(name: str, place: Path):
    agent = REAL_AGENTS[name]
    if agent.missing is not None:
        pytest.skip(agent.missing)
    script = scripted(name, place)
    said, server = converse(agent, COMMANDS[name](place), place, script)
    asked = server.asked(len(server.turns) - 1)
    assert len(server.turns) == len(script), (said[-3000:], asked[-1500:])
    assert (place / "text.md").read_text() == "whole\n", "the best of the three, not the last"
    assert '"failing":[{"check":"grep -q whole text.md"' in asked, "what jumar answered is what the model reads"
    assert [record["verification_status"] for record in recorded(place)] == ["failed", "failed", "passed", "failed"]


def recorded(place: Path) -> list[dict[str, Any]]:
    paths = sorted(place.glob(".jumar/loops/*/iterations/*/metrics.json"))
    return [json.loads(path.read_text()) for path in paths]
