"""The plugin in the real Claude Code: ``/jumar:loop`` holds the session until its loop has ended; any other is left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest
from mcp_kit import JUMAR
from model_server import Call, ModelServer, Reply
from real_agents import REAL_AGENTS, converse, on_disk

pytestmark = pytest.mark.real_agent

PLUGIN = Path(__file__).parents[2] / "plugins" / "claude-code"
TOOL = "mcp__plugin_jumar_jumar__"
CHECKS = ["grep -q one text.md", "grep -q two text.md"]


@pytest.fixture
def place() -> Generator[Path]:
    if REAL_AGENTS["claude"].missing is not None:
        pytest.skip(REAL_AGENTS["claude"].missing)
    with on_disk() as directory:
        (directory / "here").mkdir()
        (directory / "here" / "text.md").write_text("nothing\n")
        (directory / "bin").mkdir()
        (directory / "bin" / "jumar").write_text(f'#!/bin/sh\nexec {JUMAR[0]} -P -m jumar.cli.entry "$@"\n')
        (directory / "bin" / "jumar").chmod(0o755)
        yield directory / "here"


def talk(place: Path, prompt: str, script: Sequence[Reply], *, path: str = "bin:") -> tuple[str, ModelServer]:
    """Have a conversation of one prompt; return what Claude Code printed, and the model with what it was asked."""
    command = ["claude", "-p", prompt, "--output-format", "stream-json", "--verbose", "--plugin-dir", str(PLUGIN)]
    command += ["--allowedTools", "mcp__plugin_jumar_jumar,Read,Write"]
    before = path.replace("bin", str(place.parent / "bin"))
    return converse(REAL_AGENTS["claude"], command, place, script, before_path=before)


def written(place: Path, text: str) -> Reply:
    return Reply("I mend it.", 100, 10, call=Call("Write", {"file_path": str(place / "text.md"), "content": text}))


def begun(place: Path) -> list[Reply]:
    start = Call(f"{TOOL}start_loop", {"objective": "one and two", "checks": CHECKS})
    return [Reply("", 100, 10, call=start), Reply("", 100, 10, call=Call("Read", {"file_path": str(place / "text.md")}))]


def test_a_session_that_began_with_the_command_goes_on_until_the_checks_pass(place: Path):
    stop = Reply("Done.", 100, 5)
    script = [*begun(place), written(place, "one\n"), stop, written(place, "nil\n"), stop, written(place, "one two\n"), stop]
    said, server = talk(place, "/jumar:loop one and two", script)
    assert len(server.turns) == len(script), said[-3000:]
    assert (place / "text.md").read_text() == "one two\n"
    asked = server.asked(len(script) - 1)
    assert "jumar recorded iteration 1: score 50.0, best so far iteration 1 (50.0), 9 iterations left." in asked
    assert "- fails: grep -q two text.md" in asked
    assert "jumar recorded iteration 2: score 0.0, best so far iteration 1 (50.0)" in asked
    assert not list(place.glob(".jumar/mcp/sessions/*")), "the session is like any other again"
    assert len(list(place.glob(".jumar/loops/*/iterations/*"))) == 4


def test_an_agent_that_changes_nothing_more_may_stop_and_leaves_the_best(place: Path):
    stop = Reply("I can't.", 100, 5)
    script = [*begun(place), written(place, "one\n"), stop, written(place, "spoiled\n"), stop, stop]
    said, server = talk(place, "/jumar:loop one and two", script)
    assert len(server.turns) == len(script), said[-3000:]
    assert (place / "text.md").read_text() == "one\n", "the best, not the last"


def test_another_session_is_left_alone(place: Path):
    script = [*begun(place), written(place, "one\n"), Reply("Done.", 100, 5)]
    said, server = talk(place, "one and two, please", script)
    assert len(server.turns) == len(script), said[-3000:]
    assert [path.name for path in place.glob(".jumar/loops/*/iterations/*")] == ["iteration-000"]


def test_without_jumar_the_command_says_how_to_install_it(place: Path):
    (place.parent / "bin" / "jumar").unlink()
    said, server = talk(place, "/jumar:loop one and two", [], path="")
    if "pip install 'jumar[mcp]'" not in said:
        assert any(Path(folder, "jumar").exists() for folder in os.environ["PATH"].split(":")), said[-2000:]
    assert not server.turns


def test_the_plugin_and_its_marketplace_are_valid(place: Path):
    environment = {**os.environ, **REAL_AGENTS["claude"].environment(place.parent, "http://127.0.0.1:9")}
    for path in (PLUGIN, PLUGIN.parents[1]):
        done = subprocess.run(
            ["claude", "plugin", "validate", str(path)], env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert "Validation passed" in done.stdout, done.stdout + done.stderr
    assert json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["jumar"]["args"] == ["mcp"]
    assert sys.platform == "win32" or os.access(PLUGIN / "bin" / "jumar.sh", os.X_OK)
