"""What an iteration made and ignored by itself is no part of the next one, in which the earlier ignore file counts again."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import call

CONFIGURATION = """
[loop]
id = "t"
max_iterations = 2
isolation = "none"
[generator]
command = "sh agent.sh"
[[scorers]]
dimension = "quality"
command = "echo 0.$(cat text.md)"
"""
AGENT = """
echo $((4 - JUMAR_ITERATION)) > text.md
[ $JUMAR_ITERATION = 1 ] || exit 0
mkdir junk; echo x > junk/made; echo y > notes; printf 'kept\\njunk/\\nnotes\\n' > .gitignore
"""


@pytest.mark.parametrize("before", ["kept\n", None])
def test_what_an_iteration_ignored_itself_goes_with_its_ignore_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.md").write_text("9\n")
    (tmp_path / "kept").write_text("a person's\n")
    (tmp_path / "agent.sh").write_text(AGENT)
    (tmp_path / "jumar.toml").write_text(CONFIGURATION)
    if before is not None:
        (tmp_path / ".gitignore").write_text(before)
    done = call("run", "--json", check=0).document
    assert (0, 2) == (done["selected_iteration"], done["spend"]["iterations"])
    snapshot = tmp_path / ".jumar/loops/t/iterations/iteration-002/artifacts"
    assert not (snapshot / "junk").exists()
    assert not (snapshot / "notes").exists()
    assert not (tmp_path / "notes").exists()
    assert "a person's\n" == (tmp_path / "kept").read_text()
