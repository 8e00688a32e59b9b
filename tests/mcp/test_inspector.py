"""The inspector of the protocol's makers, its command line, against the server over standard input and output."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_kit import JUMAR

pytestmark = pytest.mark.real_agent

INSPECTOR = shutil.which("mcp-inspector", path=str(Path(sys.prefix) / "npm-agents" / "node_modules" / ".bin"))


@pytest.fixture
def place(fresh_place: Path) -> Path:
    if INSPECTOR is None:
        pytest.skip("the inspector is not installed: make .venv/.npm-agents")
    (fresh_place / "here").mkdir()
    (fresh_place / "here" / "text.md").write_text("nothing\n")
    return fresh_place / "here"


def inspected(place: Path, method: str, *options: str, code: int = 0) -> Any:
    """Call one method in a server of its own, and return what the inspector shows."""
    command = [str(INSPECTOR), "--cli", *JUMAR, "mcp", "--method", method, *options]
    home = {**os.environ, "HOME": str(place.parent)}
    done = subprocess.run(command, cwd=place, env=home, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def called(place: Path, tool: str, *arguments: str, code: int = 0) -> Any:
    words = [word for argument in arguments for word in ("--tool-arg", argument)]
    return inspected(place, "tools/call", "--tool-name", tool, *words, code=code)


def test_the_inspector_lists_and_calls_what_the_server_has(place: Path):
    tools = {tool["name"]: tool for tool in inspected(place, "tools/list")["tools"]}
    assert len(tools) == 11
    assert tools["start_loop"]["inputSchema"]["required"] == ["objective"]
    assert tools["apply"]["annotations"]["destructiveHint"] is True
    assert not [name for name, tool in tools.items() if "\n   " in tool["description"]], "nothing is paid for margins"

    started = called(place, "start_loop", "objective=done", 'checks=["grep -q done text.md"]')["structuredContent"]
    (place / "text.md").write_text("done\n")
    recorded = called(place, "record_iteration", "note=wrote it")["structuredContent"]
    assert (recorded["loop"], recorded["iteration"], recorded["score"]) == (started["loop"], 1, 100.0)

    assert [each["uri"] for each in inspected(place, "resources/list")["resources"]] == ["jumar://loops"]
    templates = inspected(place, "resources/templates/list")["resourceTemplates"]
    assert [each["uriTemplate"] for each in templates] == [
        "jumar://loops/{loop}/report",
        "jumar://loops/{loop}/iterations/{iteration}/diff",
    ]
    report = inspected(place, "resources/read", "--uri", f"jumar://loops/{started['loop']}/report")
    assert "given_by: agent" in report["contents"][0]["text"]
    assert {each["name"] for each in inspected(place, "prompts/list")["prompts"]} == {"improve-until", "explain-selection"}


def test_a_refused_call_is_an_answer_that_says_what_to_do(place: Path):
    answer = called(place, "record_iteration", code=5)
    assert answer["isError"] is True
    assert "begin with start_loop" in answer["content"][0]["text"]
