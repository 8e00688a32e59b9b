"""What an agent lays where the hooks keep their sessions leads nowhere: no file and no directory of a person's is changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from mcp_kit import JUMAR

from jumar.mcp.hook import heard

BEGIN = {"session_id": "abc", "hook_event_name": "UserPromptSubmit", "prompt": "/jumar:loop do it"}
STOP = {"session_id": "abc", "hook_event_name": "Stop"}


def test_nothing_is_written_through_a_link_in_the_place_of_a_session(tmp_path: Path):
    notes, sessions = tmp_path / "notes", tmp_path / ".jumar" / "mcp" / "sessions"
    notes.write_text("precious")
    sessions.mkdir(parents=True)
    (sessions / "abc").symlink_to(notes)
    assert heard(BEGIN, tmp_path, tmp_path / ".jumar") is None
    assert notes.read_text() == "precious"
    assert (sessions / "abc").read_text() == ""
    assert not (sessions / "abc").is_symlink()


def test_no_session_is_kept_behind_a_link_in_the_place_of_their_directory(tmp_path: Path):
    elsewhere, place = tmp_path / "elsewhere", tmp_path / "here"
    elsewhere.mkdir()
    (place / ".jumar").mkdir(parents=True)
    (place / ".jumar" / "mcp").symlink_to(elsewhere)
    heard(BEGIN, place, place / ".jumar")
    assert list(elsewhere.iterdir()) == []
    assert (place / ".jumar" / "mcp" / "sessions" / "abc").is_file()


def test_a_session_that_names_a_loop_of_another_directory_changes_nothing_there(tmp_path: Path):
    place, other = tmp_path / "here", tmp_path / "other"
    (place / ".jumar" / "mcp" / "sessions").mkdir(parents=True)
    other.mkdir()
    (other / "doc.md").write_text("one\n")
    words = [
        "run",
        "-q",
        "--root",
        str(place / ".jumar"),
        "--id",
        "theirs",
        "-n",
        "1",
        "--check",
        "grep -q two doc.md",
        "--",
        "true",
    ]
    subprocess.run([*JUMAR, *words], cwd=other, check=False, capture_output=True)
    (other / "doc.md").write_text("what the person wrote since\n")
    (place / ".jumar" / "mcp" / "sessions" / "abc").write_text("theirs")
    answer = heard(STOP, place, place / ".jumar")
    assert answer is not None
    assert "lies outside of" in answer["systemMessage"]
    assert (other / "doc.md").read_text() == "what the person wrote since\n"
