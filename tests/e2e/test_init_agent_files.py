"""``jumar init --agent`` adds what the agent reads: a section and the MCP server, to what a person wrote."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from commands import call, call_json

FILES = {
    "claude": (".mcp.json", "AGENTS.md"),
    "codex": (".codex/config.toml", "AGENTS.md"),
    "gemini": (".gemini/settings.json", "GEMINI.md"),
}
SERVER = {"command": "jumar", "args": ["mcp"]}


def written(place: Path) -> dict[str, tuple[bytes, int, int]]:
    paths = (path for path in place.rglob("*") if path.is_file())
    return {str(path.relative_to(place)): (path.read_bytes(), path.stat().st_ino, path.stat().st_mode) for path in paths}


@pytest.mark.parametrize("agent", FILES)
def test_an_empty_directory_gets_both_and_the_second_time_nothing_changes(agent: str, fresh_place: Path):
    servers, instructions = FILES[agent]
    document = call_json("init", "--agent", agent)
    assert [str(fresh_place / name) for name in ("jumar.toml", servers, instructions)] == document["written"]
    text = (fresh_place / servers).read_text()
    if agent == "codex":
        assert tomllib.loads(text) == {"mcp_servers": {"jumar": {**SERVER, "env_vars": ["JUMAR_LOOP_ID"]}}}
    else:
        assert json.loads(text) == {"mcpServers": {"jumar": SERVER}}
    assert "record_iteration" in (fresh_place / instructions).read_text()
    before = written(fresh_place)
    again = call_json("init", "--agent", agent)
    assert ([], document["written"]) == (again["written"], again["kept"])
    assert before == written(fresh_place)


WRITTEN: dict[str, tuple[str, str, str]] = {
    "other members": (".mcp.json", '{\n\t"a": 1.10,\n\t"b": [1,2]\n}', '{"a": 1.1, "b": [1, 2], "mcpServers": {"jumar": %s}}'),
    "an empty object": (".mcp.json", "{ }", '{"mcpServers": {"jumar": %s}}'),
    "an empty file": (".mcp.json", "\n", '{"mcpServers": {"jumar": %s}}'),
    "no servers": (".mcp.json", '{"mcpServers" : { } , "z": "{"}', '{"mcpServers": {"jumar": %s}, "z": "{"}'),
    "another server": (
        ".mcp.json",
        '{"x": {"mcpServers": {}}, "mcpServers":{"o": {"command": "ö"}}}\n',
        '{"x": {"mcpServers": {}}, "mcpServers": {"jumar": %s, "o": {"command": "ö"}}}',
    ),
    "one of one's own": (
        ".mcp.json",
        '{"mcpServers": {"jumar": {"command": "mine"}}}',
        '{"mcpServers": {"jumar": {"command": "mine"}}}',
    ),
}


@pytest.mark.parametrize(("name", "before", "after"), WRITTEN.values(), ids=WRITTEN)
def test_the_server_is_added_to_what_is_there(name: str, before: str, after: str, fresh_place: Path):
    path = fresh_place / name
    path.write_text(before)
    path.chmod(0o600)
    call("init", "--agent", "claude", check=0)
    text = path.read_text()
    assert json.loads(after.replace("%s", json.dumps(SERVER))) == json.loads(text)
    assert path.stat().st_mode & 0o777 == 0o600
    left = iter(text)
    assert all(char in left for char in before.strip()), "nothing that was there is written differently"


def test_comments_and_order_of_a_toml_stay(fresh_place: Path):
    path = fresh_place / ".codex/config.toml"
    path.parent.mkdir()
    before = '# mine\r\nmodel = "x" # why\r\n[mcp_servers.other]\r\ncommand = "o"'
    path.write_bytes(before.encode())
    call("init", "--agent", "codex", check=0)
    text = path.read_bytes().decode()
    assert text.startswith(before)
    assert text.count("\n") == text.count("\r\n")
    assert ["other", "jumar"] == list(tomllib.loads(text)["mcp_servers"])


def test_a_section_keeps_what_a_person_wrote_around_it(fresh_place: Path):
    path = fresh_place / "AGENTS.md"
    path.write_bytes(b"# Mine\r\n\r\nNo end of line")
    call("init", "--agent", "codex", check=0)
    first = path.read_bytes().decode()
    assert first.startswith("# Mine\r\n\r\nNo end of line\r\n\r\n<!-- jumar:")
    assert first.count("\n") == first.count("\r\n")
    path.write_text((first.replace("record_iteration", "OLD") + "\nbelow\n").replace("\r\n", "\n"))
    call("init", "--agent", "codex", check=0)
    second = path.read_text()
    assert second == first.replace("\r\n", "\n") + "\nbelow\n"


@pytest.mark.parametrize(
    ("agent", "there", "into"),
    [
        ("claude", {"CLAUDE.md": "mine\n"}, "CLAUDE.md"),
        ("claude", {"AGENTS.md": "mine\n"}, "AGENTS.md"),
        ("claude", {".claude/CLAUDE.md": "mine\n"}, ".claude/CLAUDE.md"),
        ("gemini", {".gemini/settings.json": '{"context": {"fileName": ["GEMINI.md", "AGENTS.md"]}}'}, "AGENTS.md"),
        ("gemini", {".gemini/settings.json": '{"context": {"fileName": "RULES.md"}}'}, "RULES.md"),
        ("gemini", {".gemini/settings.json": '{"context": 3}'}, "GEMINI.md"),
    ],
)
def test_the_section_goes_where_the_agent_reads_it(agent: str, there: dict[str, str], into: str, fresh_place: Path):
    for name, text in there.items():
        (fresh_place / name).parent.mkdir(exist_ok=True)
        (fresh_place / name).write_text(text)
    assert str(fresh_place / into) in call_json("init", "--agent", agent)["written"]
    assert "record_iteration" in (fresh_place / into).read_text()


BROKEN: dict[str, tuple[str, str, Any, str]] = {
    "broken JSON": ("claude", ".mcp.json", '{\n"a": 1,\n}', ".mcp.json:3: not plain JSON"),
    "JSON with comments": ("gemini", ".gemini/settings.json", '{\n// why\n"a": 1}', "settings.json:2: not plain JSON"),
    "a list": ("claude", ".mcp.json", "[]", ".mcp.json: mcpServers is no object"),
    "servers that are none": ("claude", ".mcp.json", '{"mcpServers": 3}', ".mcp.json: mcpServers is no object"),
    "deep JSON": ("claude", ".mcp.json", "[" * 100_000, ".mcp.json: nested too deeply"),
    "broken TOML": ("codex", ".codex/config.toml", "a = \n", "config.toml: not valid TOML: Invalid value (at line 1"),
    "an inline table": ("codex", ".codex/config.toml", "mcp_servers = {}\n", "nothing can be added to `mcp_servers`"),
    "a number": ("codex", ".codex/config.toml", "mcp_servers = 3\n", "nothing can be added to `mcp_servers`"),
    "not UTF-8": ("codex", "AGENTS.md", b"\xff", "AGENTS.md: not UTF-8 at byte 0"),
    "half a section": ("codex", "AGENTS.md", "a\n<!-- /jumar -->\n", "AGENTS.md:2: half a mark of jumar's section"),
    "two sections": ("codex", "AGENTS.md", 2 * "<!-- jumar: a -->\n<!-- /jumar -->\n", "AGENTS.md:4: half a mark"),
    "a name that leads out": ("gemini", ".gemini/settings.json", '{"context": {"fileName": "../x.md"}}', "../x.md: leads out of"),
    "a file for a folder": ("codex", ".codex", "x", "config.toml: cannot be read: Not a directory"),
    "a folder for a file": ("codex", "AGENTS.md", None, "AGENTS.md: cannot be read: it is no regular file"),
}


@pytest.mark.parametrize(("agent", "name", "content", "says"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_named_and_nothing_is_written(agent: str, name: str, content: Any, says: str, fresh_place: Path):
    path = fresh_place / name
    path.parent.mkdir(exist_ok=True)
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = written(fresh_place)
    assert says in call("init", "--agent", agent, check=2).err
    assert before == written(fresh_place)


def test_links_are_followed_inside_and_refused_outside(fresh_place: Path):
    outside = fresh_place.parent / "outside.md"
    outside.write_text("theirs\n")
    (fresh_place / "AGENTS.md").write_text("mine\n")
    (fresh_place / "CLAUDE.md").symlink_to("AGENTS.md")
    call("init", "--agent", "claude", check=0)
    assert (fresh_place / "CLAUDE.md").is_symlink()
    assert "record_iteration" in (fresh_place / "AGENTS.md").read_text()
    (fresh_place / "AGENTS.md").unlink()
    (fresh_place / "AGENTS.md").symlink_to(outside)
    assert "AGENTS.md: leads out of" in call("init", "--agent", "codex", check=2).err
    assert outside.read_text() == "theirs\n"
    assert not (fresh_place / ".codex").exists()
    (fresh_place / "AGENTS.md").unlink()
    (fresh_place / "AGENTS.md").symlink_to("AGENTS.md")
    assert "AGENTS.md: cannot be read" in call("init", "--agent", "codex", check=2).err


def test_a_read_only_file_is_left_alone(fresh_place: Path):
    (fresh_place / "AGENTS.md").write_text("mine\n")
    (fresh_place / "AGENTS.md").chmod(0o444)
    assert "AGENTS.md: is read-only; chmod u+w" in call("init", "--agent", "codex", check=2).err
    assert (fresh_place / "AGENTS.md").read_text() == "mine\n"
