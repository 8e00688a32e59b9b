"""The published coding agents call the MCP server: it is found, its tools are called, and its answers reach the model."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from loops import jumar
from model_server import Call, Reply
from real_agents import REAL_AGENTS, called, converse, on_disk

pytestmark = pytest.mark.real_agent

STATES = ("half of it\n", "whole\n", "spoiled\n")
CHECKS = "".join(f'[[checks]]\nname = "{word}"\ncommand = "grep -q {word} text.md"\n' for word in ("whole", "o"))


@pytest.fixture
def place() -> Generator[Path]:
    with on_disk() as directory:
        (directory / "here").mkdir()
        (directory / "here" / "text.md").write_text("nothing\n")
        (directory / "here" / "jumar.toml").write_text(f'{CHECKS}[[scorers]]\ndimension = "half"\ncommand = "echo 0.5"\n')
        (directory / "bin").mkdir()
        (directory / "bin" / "jumar").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m jumar.cli.entry "$@"\n')
        (directory / "bin" / "jumar").chmod(0o755)
        yield directory / "here"


def commands(place: Path) -> dict[str, list[str]]:
    """How each is run on what `jumar init` wrote, when a person has trusted the directory and approved the server."""
    trusted = [
        f'projects.{place}.trust_level="trusted"',
        'mcp_servers.jumar.default_tools_approval_mode="approve"',
        "mcp_servers.jumar.required=true",
    ]
    return {
        "claude": [
            *("claude", "-p", "make it whole", "--settings", '{"enabledMcpjsonServers": ["jumar"]}'),
            *("--allowedTools", "mcp__jumar,Read,Write"),
        ],
        "codex": [
            *("codex", "exec", "--json", "--sandbox", "workspace-write", "--skip-git-repo-check"),
            *(word for setting in trusted for word in ("-c", setting)),
            "make it whole",
        ],
        "gemini": ["env", "GEMINI_CLI_TRUST_WORKSPACE=true", "gemini", "-p", "make it whole", "--approval-mode=yolo"],
    }


def scripted(name: str, place: Path) -> list[Reply]:
    """An agent that begins a loop, changes the file three times, the last time for the worse, and has the best put back."""
    tool = "mcp_jumar_" if name == "gemini" else "mcp__jumar__"
    calls = [Call(f"{tool}start_loop", {"objective": "whole"})]
    if name == "claude":
        calls.append(Call("Read", {"file_path": str(place / "text.md")}))
    for text in STATES:
        file = {"file_path": str(place / "text.md"), "content": text}
        command = {"cmd": f"printf %s {shlex.quote(text)} > text.md", "login": False}
        edits = {"claude": Call("Write", file), "codex": Call("exec_command", command), "gemini": Call("write_file", file)}
        calls += [edits[name], Call(f"{tool}record_iteration", {"note": text.strip()})]
    return called(*calls, Call(f"{tool}apply"))


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
def test_an_agent_finds_the_server_where_init_wrote_it_and_keeps_its_best(name: str, place: Path):
    agent = REAL_AGENTS[name]
    if agent.missing is not None:
        pytest.skip(agent.missing)
    jumar(place, "init", "--agent", name)
    script = scripted(name, place)
    said, server = converse(agent, commands(place)[name], place, script, before_path=f"{place.parent / 'bin'}:")
    asked = server.asked(len(server.turns) - 1)
    assert len(server.turns) == len(script), (said[-3000:], asked[-1500:])
    assert (place / "text.md").read_text() == "whole\n", "the best of the three, not the last"
    assert "keep the best, not the last" in json.dumps(server.turns[0].json), "it reads the section"
    assert '"failing":[{"check":"whole"' in asked.replace('\\"', '"'), "what jumar answered is what the model reads"
    assert [record["verification_status"] for record in recorded(place)] == ["failed", "failed", "passed", "failed"]


def recorded(place: Path) -> list[dict[str, Any]]:
    paths = sorted(place.glob(".jumar/loops/*/iterations/*/metrics.json"))
    return [json.loads(path.read_text()) for path in paths]
